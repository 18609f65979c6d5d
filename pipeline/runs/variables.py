"""The text of a config: its references and their values, the subject of a run, and faults in terms of TOML."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import tomllib
import types
from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import field
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from ..base.errors import ConfigError, ThresherError, together
from ..base.interrupts import NOTES
from ..base.paths import shortened
from ..base.records import dataclass
from ..base.sql_files import resource_folder
from ..sources.inputs import Input
from ..sources.predicates import ENVIRONMENT, MARKED, expanded, replaced
from ..stages import find_stage

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

    from ..stages.parameters import StageParameters


Keys = tuple[str | int, ...]
LONGEST_VALUE, LONGEST_EXAMPLE, MOST_KEYS = 60, 100, 3
_BOUNDS = {
    "greater_than": ("gt", "greater than"),
    "greater_than_equal": ("ge", "at least"),
    "less_than": ("lt", "less than"),
    "less_than_equal": ("le", "at most"),
}
_ONE = {
    str: "text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Path: "a path in quotes",
}
_SEVERAL = {str: "texts in quotes", int: "whole numbers", float: "numbers", bool: "true or false", Path: "paths"}
_UNWRITABLE = re.compile("[\0\ud800-\udfff]")
_SETTING = re.compile(r"^#?(?P<key>[a-z_]+) = ")


def explain(error: ValidationError, model: type[BaseModel], values: Mapping[str, Any], starter: str) -> list[str]:
    """List the faults that pydantic found in a table of a class, in the order of its keys, each once.

    The starter config of the given name has examples of its keys.
    """
    faults = [_Fault(each, model, values, starter) for each in error.errors(include_url=False)]
    return list(dict.fromkeys(fault.text() for fault in _one_branch_each(faults)))


def near(name: str, names: Iterable[str]) -> str:
    """Return the nearest known name as a hint, if any is near."""
    matches = get_close_matches(name, list(names), n=1)
    return f". Did you mean `{matches[0]}`?" if matches else ""


class _Fault:
    """A fault, located in the table as it was written, without pydantic's names of alternatives.

    Attributes:
        keys: Keys and indexes that lead to the faulty value, or to the table that lacks a key.
        site: Number of keys in front of an alternative among types, `branch`; None if there is none.
    """

    def __init__(self, details: ErrorDetails, model: type[BaseModel], values: Mapping[str, Any], starter: str) -> None:
        self.details, self.model, self.starter = details, model, starter
        self.kind = details["type"]
        self.site: int | None = None
        self.branch = ""
        keys: list[str | int] = []
        value: Any = values
        *path, last = details["loc"] or ("",)
        for key in path if self.kind == "missing" else details["loc"]:
            if _holds(value, key):
                value = value[key]
                keys.append(key)
            elif self.site is None:
                self.site, self.branch = len(keys), str(key)
        self.value = value
        self.keys: Keys = (*keys, last) if self.kind == "missing" and isinstance(value, dict) else (*keys,)

    @property
    def is_inside(self) -> bool:
        """Whether the value is of the right kind for its alternative, and something in it is wrong."""
        return len(self.keys) > (self.site or 0) or self.kind in _BOUNDS or self.kind == "value_error"

    def text(self) -> str:
        """Return the fault as one sentence that starts with its key."""
        key = ".".join(map(str, self.keys))
        if self.kind == "extra_forbidden":
            return f"unknown key `{key}`{near(str(self.keys[-1]), _known_keys(self.model, self.keys[:-1]))}"
        if self.kind == "missing":
            return f"`{key}` is missing{self._example()}"
        words = self._words()
        return f"{key}: {words}" if key else words

    def _words(self) -> str:
        if self.kind in {"value_error", "assertion_error"}:
            return str(self.details["ctx"]["error"])
        if self.kind in _BOUNDS:
            name, words = _BOUNDS[self.kind]
            bound = self.details["ctx"][name]
            return f"{toml(self.value)} must be {words} {bound:.12g}"
        forms = dict.fromkeys(_form(each, _ONE) for each in _annotations(self.model, self.keys))
        expected = " or ".join(forms) or "something else"
        return f"{toml(self.value)} is not allowed: write {expected}{self._example()}"

    def _example(self) -> str:
        names = [name for name in self.keys if isinstance(name, str)]
        lines = examples(self.starter)
        line = next((lines[name] for name in (*names[-1:], *names[:1]) if name in lines), "")
        return f", for example {line}" if 0 < len(line) <= LONGEST_EXAMPLE else ""


def _holds(value: object, key: str | int) -> bool:
    if isinstance(value, dict):
        return key in value
    return isinstance(value, list | tuple) and isinstance(key, int) and key < len(value)


def _one_branch_each(faults: list[_Fault]) -> Iterator[_Fault]:
    """If a value may have one of several types, keep the faults of the type that it comes nearest to, or one fault."""
    alternatives: dict[Keys, dict[str, list[_Fault]]] = {}
    for fault in faults:
        if fault.site is not None:
            alternatives.setdefault(fault.keys[: fault.site], {}).setdefault(fault.branch, []).append(fault)
    chosen: set[int] = set()
    for branches in alternatives.values():
        inside = [of_branch for of_branch in branches.values() if any(fault.is_inside for fault in of_branch)]
        nearest: list[_Fault] = min(inside, key=len) if inside else next(iter(branches.values()))[:1]
        chosen.update(map(id, nearest))
    yield from (fault for fault in faults if fault.site is None or id(fault) in chosen)


@cache
def examples(starter: str) -> dict[str, str]:
    """Return the lines of a starter config by key, without comments; a starter shows every key of its stage."""
    path = resource_folder("configs") / f"{starter}.toml"
    lines = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else ():
        if match := _SETTING.match(line):
            setting = re.split(r"\s{2,}#", line.removeprefix("#"))[0].strip()
            try:
                tomllib.loads(setting)
            except tomllib.TOMLDecodeError:  # a value of several lines, or a sentence
                continue
            lines[match["key"]] = setting
    return lines


def toml(value: object) -> str:
    """Write a value as TOML, cut off if it is long or nested deeply."""
    text = _toml(value, LONGEST_VALUE)
    return text if len(text) <= LONGEST_VALUE else f"{text[:LONGEST_VALUE]}…"


def _toml(value: object, levels: int) -> str:
    if isinstance(value, dict | list | tuple) and not levels:
        return "…"
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {_toml(item, levels - 1)}" for key, item in value.items())
        return f"{{ {inner} }}" if value else "{}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(_toml(item, levels - 1) for item in value)}]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | Path):
        return json.dumps(str(value), ensure_ascii=False)
    return str(value)


def _alternatives(annotation: Any) -> Iterator[Any]:  # noqa: ANN401 - any annotation
    """Yield the types that an annotation allows, without None and without metadata."""
    if get_origin(annotation) is Annotated:
        yield from _alternatives(get_args(annotation)[0])
    elif get_origin(annotation) in {Union, types.UnionType}:
        for alternative in get_args(annotation):
            yield from _alternatives(alternative)
    elif annotation not in {None, types.NoneType}:
        yield annotation


def _annotations(model: type[BaseModel], keys: Keys) -> list[Any]:
    """Return the types that are allowed at some keys; empty if none is."""
    annotations: list[Any] = [model]
    for key in keys:
        annotations = [part for each in annotations for inner in _inside(each, key) for part in _alternatives(inner)]
    return annotations


def _inside(annotation: Any, key: str | int) -> Iterator[Any]:  # noqa: ANN401 - any annotation
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        fields = annotation.model_fields
        if key in fields:
            yield fields[str(key)].annotation
        elif isinstance(key, int):  # a list that stands for a table with one key
            for field in fields.values():
                for alternative in _alternatives(field.annotation):
                    yield from _inside(alternative, key) if get_origin(alternative) in {tuple, list} else ()
    elif get_origin(annotation) in {tuple, list} and isinstance(key, int):
        yield get_args(annotation)[0]
    elif get_origin(annotation) is dict:
        yield get_args(annotation)[1]


def _form(annotation: Any, names: Mapping[Any, str]) -> str:  # noqa: ANN401 - any annotation
    """Say how one value, or several values, of a type are written in TOML."""
    one = names is _ONE
    if annotation in names:
        return names[annotation]
    if get_origin(annotation) is Literal:
        *first, last = (toml(value) for value in get_args(annotation))
        return f"{', '.join(first)} or {last}" if first else last
    if get_origin(annotation) in {tuple, list}:
        inner = " or ".join(_form(part, _SEVERAL) for part in _alternatives(get_args(annotation)[0]))
        return f"{'a list' if one else 'lists'} of {inner}"
    noun = "a table" if one else "tables"
    if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
        return noun
    fields = annotation.model_fields
    keys = [name for name, field in fields.items() if field.is_required()] or list(fields)[:1]
    inner = ", ".join(f"{name} = …" for name in keys[:MOST_KEYS])
    return getattr(annotation, "forms", None) or f"{noun} {{ {inner} }}"


def _known_keys(model: type[BaseModel], keys: Keys) -> list[str]:
    """Return the keys of the tables that are allowed at some keys."""
    tables = [each for each in _annotations(model, keys) if isinstance(each, type) and issubclass(each, BaseModel)]
    # a stage leaves out those that mean nothing to it
    return [name for table in tables for name in getattr(table, "keys", table.model_fields.keys)()]


DS = "ds"
SHORTEST_SECRET = 4  # characters: shorter values are not hidden in messages, which would be unreadable
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_DECLARED = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Variables:
    """The values of the references of a config, and the subject of a run.

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
        """Return a text with the values of its references."""
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
        """Let errors name no value of the environment, nor have a cause, whose text is not ours."""
        if self.secrets:
            NOTES.concealed = self.concealed
        try:
            yield
        except ThresherError as error:
            if not self.secrets:
                raise
            error.reword(self.concealed)
            raise error from None
        finally:
            NOTES.concealed = str


NO_VARIABLES = Variables()


def recorded_variables(record: Mapping[str, Any]) -> Variables:
    """Return the variables of a published run; the environment is read as it is now, and may lack some."""
    secrets = {name: os.environ[name] for name in record.get("environment", ()) if name in os.environ}
    values = dict(record.get("vars", {})) | {f"{ENVIRONMENT}{name}": value for name, value in secrets.items()}
    return Variables(values, secrets, record.get("ds"), dict(record.get("labels", {})))


def _checked_day(text: str, origin: str) -> str:
    """Return an ISO date; a ConfigError says what another text is."""
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


class _Declared:
    """The variables that a config declares in its table `[vars]`, by name, with a default or what `--var` chose.

    One that has no value is None; `faults` are what is wrong with names and values.
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
                self.values[DS] = _checked_day(ds, origin)
            except ConfigError as error:
                self.faults.append(error)

    def value(self, name: str) -> str:
        """Return the value of a variable, or of the environment for a name that starts with `env.`."""
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
        if text is None or _UNWRITABLE.search(text):
            self._fail(f"--var {name}: its value is not text that a file can hold", "Give text, a number or a date.")
        self.values[name] = text

    def _default(self, name: str, default: object) -> str | None:
        if not _DECLARED.fullmatch(name):
            self._fail(f"vars: {name!r} is not a name", "Use letters, digits and _, and start with no digit.")
        if default == {"required": True}:
            return None
        text = _value_text(default)
        if text is None or _UNWRITABLE.search(text):
            self._fail(f"vars.{name}: {toml(default)} is not allowed", "Write text in quotes, or { required = true }.")
        elif MARKED in text:
            self._fail(f"vars.{name}: a default holds no variables", "Write ${…} where the variable is used.")
        return text

    def _fail(self, words: str, remedy: str) -> None:
        self.faults.append(ConfigError(f"{self._origin}: {words}", remedy=remedy))


def _of_environment(name: str) -> str:
    value = os.environ.get(name)
    if value:
        if _UNWRITABLE.search(value):
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
    """Put variables, chosen by name as `--var` does, into a config, which is left as it is.

    Returns:
        The config without `vars`, and the variables; labels are not among them yet.

    Raises:
        ConfigError: it lists every reference that is unknown or has no value, and every variable that is not declared.
    """
    declared = _Declared(document.get("vars", {}), values, origin)
    substitution = _Substitution(declared, origin, names_columns="vars" in document)
    try:
        changed = substitution.document(document)
    except RecursionError as error:
        message = f"{origin}: the config is nested too deep"
        raise ConfigError(message) from error
    if faults := [*declared.faults, *substitution.faults]:
        raise together(faults)
    return changed, Variables(substitution.used, substitution.secrets, declared.values.get(DS))


def _text(value: object) -> str | None:
    """Return a text or the text of a path; None for everything else."""
    path = os.fspath(value) if isinstance(value, os.PathLike) else value
    return path if isinstance(path, str) else None


class _Substitution:
    """One pass over a config, with the references that have no value as faults.

    Values that paths and SQL of stages refer to are `used`, by name; those of the environment among them, and those
    that the scratch folder refers to, are `secrets`.
    """

    def __init__(self, declared: _Declared, origin: str, *, names_columns: bool) -> None:
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
                use = self._declared.value if key in {"output", "labels"} else self._plain
                changed[key] = self._replaced(value, key, use)
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
        return self._replaced(value, where, self._declared.value if key == "name" else self._plain)

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
