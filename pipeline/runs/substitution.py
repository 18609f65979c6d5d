"""References in a config are looked up and replaced before its keys are checked.

Paths of inputs and SQL stay as they are written, so that records show them so; values meet them where files are opened
and SQL is parsed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..errors import ConfigError, together
from ..sources.references import ENVIRONMENT, MARKED, replaced
from ..stages import find_stage
from .variables import DS, NO_VARIABLES, Declared, Variables

if TYPE_CHECKING:
    from collections.abc import Callable

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
