"""References in a config, what they stand for, and what a run is about: its logical date and its labels."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..crash_notes import NOTES
from ..errors import ConfigError, ThresherError, together
from ..records import dataclass
from ..sources.inputs import Input
from ..sources.paths import shortened
from ..sources.predicates import ENVIRONMENT, MARKED, expanded, replaced
from ..stages import find_stage
from .config_faults import near, toml

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..stages.parameters import StageParameters


# What the references of a config stand for, and what a run is about: its logical date and its labels.


DS = "ds"
SHORTEST_SECRET = 4  # characters: shorter values are not hidden in messages, which would be unreadable
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DECLARED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNUSABLE = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True)
class Variables:
    """What the references of a config stand for, and what a run is about.

    Attributes:
        values: By name, as it stands between the braces: what paths and SQL of the stages refer to.
        secrets: Values of the environment that paths and SQL refer to, by name without `env.`.
        ds: Logical date of the run, ISO; None if it has none.
        labels: Its labels.
    """

    values: Mapping[str, str] = field(default_factory=dict)
    secrets: Mapping[str, str] = field(default_factory=dict, repr=False)
    ds: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)

    def record(self) -> dict[str, Any]:
        """Return what records and files keep: values of the environment are left out, their names are not."""
        values = {name: value for name, value in self.values.items() if not name.startswith(ENVIRONMENT)}
        names = sorted(name.removeprefix(ENVIRONMENT) for name in self.values if name.startswith(ENVIRONMENT))
        kept = {"ds": self.ds, "labels": dict(self.labels), "vars": values, "environment": names}
        return {key: value for key, value in kept.items() if value}

    def identity(self) -> dict[str, Any]:
        """Return what makes a run another run; only for hashing, as it holds values of the environment."""
        identity = {"ds": self.ds, "labels": dict(self.labels), "values": dict(self.values)}
        return {key: value for key, value in identity.items() if value}

    def bound(self, params: StageParameters) -> StageParameters:
        """Return parameters whose inputs know the values; nothing else is changed."""
        inputs = {name: spec for name in type(params).model_fields if isinstance(spec := getattr(params, name), Input)}
        changed = {name: bound for name, spec in inputs.items() if (bound := spec.bound(self.values)) is not spec}
        return params.model_copy(update=changed) if changed else params

    def expanded(self, text: str) -> str:
        """Return a text with the values of its references.

        Raises:
            ConfigError: one has no value.
        """
        return expanded(text, self.values)

    def revealed(self, text: str) -> str:
        """Undo `concealed` in a path."""
        for name, value in self.secrets.items():
            text = text.replace(f"${{{ENVIRONMENT}{name}}}", value)
        return text

    def concealed(self, text: str) -> str:
        """Return a text with `${env.NAME}` in the place of values of the environment, also as SQL and JSON write it."""
        for name, value in sorted(self.secrets.items(), key=lambda item: -len(item[1])):
            for_spark = value.replace("\\", "\\\\").replace("'", "\\'")
            as_json = (json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
            lines = value.splitlines() if "\n" in value else ()
            forms = (value, value.replace("'", "''"), for_spark, repr(value)[1:-1], *as_json, *lines)
            for form in dict.fromkeys(forms):
                if len(form) >= SHORTEST_SECRET:
                    text = text.replace(form, f"${{{ENVIRONMENT}{name}}}")
        return text

    @contextmanager
    def concealing(self) -> Iterator[None]:
        """Let errors name no value of the environment.

        Raises:
            ThresherError: the same error; where the environment is used, without its cause, whose text is not ours.
        """
        if self.secrets:
            NOTES.concealed = self.concealed
        try:
            yield
        except ThresherError as error:
            if not self.secrets:
                raise
            for fault in (error, *error.faults):
                fault.message = self.concealed(fault.message)
                fault.remedy = None if fault.remedy is None else self.concealed(fault.remedy)
                fault.args = (fault.message,)
            raise error from None
        finally:
            NOTES.concealed = str


NO_VARIABLES = Variables()


def recorded_variables(record: Mapping[str, Any]) -> Variables:
    """Return the variables of a published run; the environment is read as it is now, and may lack some."""
    secrets = {name: os.environ[name] for name in record.get("environment", ()) if name in os.environ}
    values = dict(record.get("vars", {})) | {f"{ENVIRONMENT}{name}": value for name, value in secrets.items()}
    return Variables(values, secrets, record.get("ds"), dict(record.get("labels", {})))


def checked_day(text: str, *, origin: str) -> str:
    """Return an ISO date.

    Raises:
        ConfigError: the text is none.
    """
    try:
        if _DAY.fullmatch(text):
            return dt.date.fromisoformat(text).isoformat()
    except ValueError:
        pass
    message = f"{origin}: ds = {toml(text)} is not a date"
    remedy = "Write the day as 2026-11-20; for the hour of a run declare another variable in [vars]."
    if ".." in text:
        remedy = "thresher run takes a range of days, FIRST..LAST, with --var; everything else takes one day."
    raise ConfigError(message, remedy=remedy)


class Declared:
    """The variables that a config declares, with their defaults or the values that a run gives them.

    Args:
        table: The table `[vars]`.
        chosen: Values by name, as `--var` gives them.
        origin: Name of the config in messages.

    Attributes:
        values: By name; None for a variable that has no value.
        faults: What is wrong with names and values.
    """

    def __init__(self, table: object, chosen: Mapping[str, Any], origin: str) -> None:
        self.values: dict[str, str | None] = {}
        self.faults: list[ConfigError] = []
        self._origin = origin
        if not isinstance(table, Mapping):
            self._fail(f"vars: {toml(table)} is not allowed", 'Write a table: [vars], and in it region = "nl".')
            return
        for name, default in table.items():
            self.values[str(name)] = self._default(str(name), default)
        for name, value in chosen.items():
            self._set(name, value)
        if (ds := self.values.get(DS)) is not None:
            try:
                self.values[DS] = checked_day(ds, origin=origin)
            except ConfigError as error:
                self.faults.append(error)

    def value(self, name: str) -> str:
        """Return the value of a variable, or of the environment for a name that starts with `env.`.

        Raises:
            ConfigError: it is unknown, or has no value.
        """
        if name.startswith(ENVIRONMENT):
            return _of_environment(name.removeprefix(ENVIRONMENT))
        if (value := self.values.get(name)) is not None:
            return value
        if name in self.values or name == DS:
            example = "2026-11-20" if name == DS else "VALUE"
            message = f"${{{name}}} is not set"
            raise ConfigError(message, remedy=f"Set it with --var {name}={example}, or give a default in [vars].")
        message = f"unknown variable ${{{name}}}{near(name, [*self.values, DS])}"
        remedy = "Declare it in [vars] of the config; ${env.NAME} is an environment variable, $${ a literal ${."
        raise ConfigError(message, remedy=remedy)

    def _set(self, name: str, value: object) -> None:
        if name not in self.values and name != DS:
            names = ", ".join(dict.fromkeys([*self.values, DS]))
            message = f"--var {shortened(name)}: no variable of that name is declared{near(name, [*self.values, DS])}"
            self._fail(message, f"Declare it in [vars] of the config; known are: {names}.")
            return
        text = _value_text(value)
        if text is None or _UNUSABLE.search(text):
            self._fail(f"--var {name}: its value is not text that a file can hold", "Give text, a number or a date.")
        self.values[name] = text

    def _default(self, name: str, default: object) -> str | None:
        if not _DECLARED.fullmatch(name):
            self._fail(f"vars: {name!r} is not a name", "Use letters, digits and _, and start with no digit.")
        if default == {"required": True}:
            return None
        text = _value_text(default)
        if text is None or _UNUSABLE.search(text):
            self._fail(f"vars.{name}: {toml(default)} is not allowed", "Write text in quotes, or { required = true }.")
        elif MARKED in text:
            self._fail(f"vars.{name}: a default holds no variables", "Write ${…} where the variable is used.")
        return text

    def _fail(self, words: str, remedy: str) -> None:
        self.faults.append(ConfigError(f"{self._origin}: {words}", remedy=remedy))


def _of_environment(name: str) -> str:
    value = os.environ.get(name)
    if value:
        if _UNUSABLE.search(value):
            message = f"the environment variable {name} holds a character that no file can have"
            raise ConfigError(message, remedy="Set it to text in UTF-8.")
        return value
    words = "is empty" if value == "" else f"is not set{near(name, os.environ)}"
    message = f"the environment variable {name} {words}"
    raise ConfigError(message, remedy=f"Set it before the run: export {name}=…")


def _value_text(value: object) -> str | None:
    """Return a value of a variable as text; None for tables, lists and times."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return value.isoformat()
    return str(value) if isinstance(value, str | int | float) else None


# References in a config are looked up and replaced before its keys are checked.
#
# Paths of inputs and SQL stay as they are written, so that records show them so; values meet them where files are
# opened and SQL is parsed.


_COLUMN_KEYS = frozenset({"by", "cluster", "strata", "system", "average_over"})


def substituted(
    document: Mapping[str, Any], values: Mapping[str, Any], *, origin: str
) -> tuple[Mapping[str, Any], Variables]:
    """Put variables into a config.

    Args:
        document: As parsed from TOML; it is left as it is.
        values: Values by name, as `--var` gives them.
        origin: Name of the config in messages.

    Returns:
        The config without `vars`, and the variables; labels are not among them yet. A config without `vars` and without
        references is the same object.

    Raises:
        ConfigError: it lists every reference that is unknown or has no value, and every variable that is not declared.
    """
    if "vars" not in document and not values and not _has_reference(document):
        return document, NO_VARIABLES
    declared = Declared(document.get("vars", {}), values, origin)
    substitution = _Substitution(declared, origin, names_columns="vars" in document)
    try:
        changed = substitution.document(document)
    except RecursionError as error:
        message = f"{origin}: the config is nested too deep"
        raise ConfigError(message) from error
    if faults := [*declared.faults, *substitution.faults]:
        raise together(faults)
    return changed, Variables(substitution.used, substitution.secrets, declared.values.get(DS))


def _has_reference(document: Mapping[str, Any]) -> bool:
    pending: list[Any] = [document]
    seen = set()  # a table made in Python may hold itself
    while pending:
        value = pending.pop()
        text = _text(value)
        if text is not None and MARKED in text:
            return True
        if isinstance(value, Mapping | list | tuple) and id(value) not in seen:
            seen.add(id(value))
            pending += value.values() if isinstance(value, Mapping) else value
    return False


def _text(value: object) -> str | None:
    """Return a text or the text of a path; None for everything else."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    return path if isinstance(path, str) else None


class _Substitution:
    """One pass over a config.

    Attributes:
        faults: References without a value.
        used: Values that paths and SQL of stages refer to, by name.
        secrets: Values of the environment that these and the scratch folder refer to, by name.
    """

    def __init__(self, declared: Declared, origin: str, *, names_columns: bool) -> None:
        self._declared, self._origin, self._names_columns = declared, origin, names_columns
        self.faults: list[ConfigError] = []
        self.used: dict[str, str] = {}
        self.secrets: dict[str, str] = {}

    def document(self, document: Mapping[str, Any]) -> dict[str, Any]:
        changed = {}
        for key, value in document.items():
            if key == "stages" and isinstance(value, list):
                changed[key] = [self._stage(table, number) for number, table in enumerate(value, start=1)]
            elif key == "resources":
                changed[key] = self._replaced(value, key, self._scratch)
            elif key != "vars":
                changed[key] = self._replaced(value, key, self._seen if key in {"output", "labels"} else self._plain)
        return changed

    def _stage(self, table: Any, number: int) -> Any:  # noqa: ANN401 - any TOML value
        if not isinstance(table, Mapping):
            return table
        where = f"[[stages]] {number}"
        kind = self._replaced(table.get("kind"), f"{where}: kind", self._plain)
        entry = find_stage(kind) if isinstance(kind, str) else None
        inputs = set() if entry is None else {contract.name for contract in entry.load().inputs}
        changed = {key: self._of_stage(key, value, f"{where}: {key}", inputs) for key, value in table.items()}
        return changed | ({"kind": kind} if "kind" in table else {})

    def _of_stage(self, key: str, value: Any, where: str, inputs: set[str]) -> Any:  # noqa: ANN401 - any TOML value
        if key in inputs and isinstance(value, Mapping):
            return {name: self._of_input(name, inner, f"{where}.{name}") for name, inner in value.items()}
        if key in inputs or key == "results":
            return self._looked_up(value, where)
        if key in _COLUMN_KEYS:
            return self._columns(value, where)
        return self._replaced(value, where, self._seen if key == "name" else self._plain)

    def _of_input(self, key: str, value: Any, where: str) -> Any:  # noqa: ANN401 - any TOML value
        if key in {"path", "where"}:
            return self._looked_up(value, where)
        if key != "columns" or not isinstance(value, Mapping):
            return self._replaced(value, where, self._plain)
        return {
            name: self._looked_up(mapped, f"{where}.{name}")
            if isinstance(mapped, Mapping)
            else self._columns(mapped, f"{where}.{name}")
            for name, mapped in value.items()
        }

    def _looked_up(self, value: Any, where: str) -> Any:  # noqa: ANN401 - any TOML value
        """Return paths or SQL as they are written, once their references are known to have values."""
        self._replaced(value, where, self._kept)
        return value

    def _replaced(self, value: Any, where: str, use: Callable[[str], str]) -> Any:  # noqa: ANN401 - any TOML value
        """Replace the references in all texts at any depth; `use` returns what one stands for."""
        if isinstance(value, Mapping):
            return {key: self._replaced(inner, f"{where}.{key}", use) for key, inner in value.items()}
        if isinstance(value, list | tuple):
            return [self._replaced(inner, where, use) for inner in value]
        text = _text(value)
        if text is None or MARKED not in text:
            return value
        with_faults = self._collecting(use, where)
        return self._collecting(lambda written: replaced(written, with_faults), where)(text)

    def _columns(self, value: Any, where: str) -> Any:  # noqa: ANN401 - any TOML value
        """Replace declared variables in names of columns, which may hold `${` themselves."""
        if isinstance(value, list | tuple):
            return [self._columns(inner, where) for inner in value]
        if not isinstance(value, str) or not self._names_columns:
            return value
        for name in self._declared.values:
            if (reference := f"${{{name}}}") in value:
                value = value.replace(reference, self._collecting(self._declared.value, where)(name))
        return value

    def _collecting(self, step: Callable[[str], str], where: str) -> Callable[[str], str]:
        def attempt(text: str) -> str:
            try:
                return step(text)
            except ConfigError as error:
                self.faults.append(ConfigError(f"{self._origin}: {where}: {error.message}", remedy=error.remedy))
                return ""

        return attempt

    def _seen(self, name: str) -> str:
        return self._declared.value(name)

    def _plain(self, name: str) -> str:
        """The value of a text that records show, for which no value of the environment is let in."""
        if name.startswith(ENVIRONMENT):
            message = f"${{{name}}} would be seen in every record of the run"
            raise ConfigError(message, remedy="Declare a variable in [vars] and set it: --var NAME=VALUE.")
        return self._declared.value(name)

    def _scratch(self, name: str) -> str:
        value = self._declared.value(name)
        if name.startswith(ENVIRONMENT):
            self.secrets[name.removeprefix(ENVIRONMENT)] = value
        return value

    def _kept(self, name: str) -> str:
        self.used[name] = self._scratch(name)
        return self.used[name]
