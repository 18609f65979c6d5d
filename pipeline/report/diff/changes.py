"""What differs between the records of two runs: inputs, parameters, bindings, versions, warnings."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...records import dataclass
from ..words import setting

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..published import PublishedRun

_NUMBER = re.compile(r"\d[\d.,]*")


@dataclass(frozen=True)
class Change:
    """One entry of a record that differs.

    Attributes:
        name: What it is; keys of tables in tables are joined by dots.
        before: Its value in the first run as text; None: it had none.
        after: Its value in the second run; None: it has none.
    """

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True)
class InputChange:
    """An input of a stage that differs.

    Attributes:
        name: Stage and input, joined by a dot.
        added: Paths of files that only the second run read.
        gone: Paths of files that only the first run read.
        replaced: Paths of files that both read, with another content: the footer differs.
        rows: Rows in the files and rows by what became of them, where the numbers differ.
    """

    name: str
    added: tuple[str, ...]
    gone: tuple[str, ...]
    replaced: tuple[str, ...]
    rows: tuple[Change, ...]


@dataclass(frozen=True)
class RecordChanges:
    """All that differs between two run records.

    Attributes:
        stages_added: Names of the stages that only the second run has.
        stages_gone: Names of the stages that only the first run has.
        inputs: Inputs of the stages of both.
        parameters: Parameters, as `stage.key`; with the engine, the day, the labels and the variables.
        bindings: Which column of the files is read as which field, as `stage.input.field`.
        facts: What the stages decided from their inputs, as `stage.fact`.
        code: Versions of thresher, Python and the libraries, and the hash of the code.
        warnings_added: Warnings of the second run alone, with their stages.
        warnings_gone: Warnings of the first run alone.
        warnings_changed: Warnings of both that differ in numbers only, as the second run says them.
    """

    stages_added: tuple[str, ...]
    stages_gone: tuple[str, ...]
    inputs: tuple[InputChange, ...]
    parameters: tuple[Change, ...]
    bindings: tuple[Change, ...]
    facts: tuple[Change, ...]
    code: tuple[Change, ...]
    warnings_added: tuple[str, ...]
    warnings_gone: tuple[str, ...]
    warnings_changed: tuple[str, ...]

    @property
    def is_empty(self) -> bool:
        """Whether nothing differs."""
        return not any(vars(self).values())


def record_changes(before: PublishedRun, after: PublishedRun) -> RecordChanges:
    """Compare the records of two runs.

    What belongs to a stage is compared for the stages of both runs only.
    """
    names = [stage.name for stage in before.stages]
    names_after = [stage.name for stage in after.stages]
    shared = [name for name in names_after if name in names]
    records = before.record, after.record
    parameters = (dict(_flat(_parameters(record, shared))) for record in records)
    return RecordChanges(
        stages_added=tuple(name for name in names_after if name not in names),
        stages_gone=tuple(name for name in names if name not in names_after),
        inputs=tuple(_input_changes(*records, shared)),
        parameters=tuple(_changes(*parameters)),
        bindings=tuple(_changes(*(_bindings(record, shared) for record in records))),
        facts=tuple(_changes(*(dict(_flat(_of_stages(record["facts"], shared))) for record in records))),
        code=tuple(_changes(*(_code(record) for record in records))),
        warnings_added=tuple(_new_warnings(*records, shared)),
        warnings_gone=tuple(_new_warnings(after.record, before.record, shared)),
        warnings_changed=tuple(_changed_warnings(*records, shared)),
    )


def _of_stages(values: Mapping[str, Any], stages: Sequence[str]) -> dict[str, Any]:
    return {name: values[name] for name in stages if name in values}


def _parameters(record: Mapping[str, Any], stages: Sequence[str]) -> dict[str, Any]:
    configuration = record["configuration"]
    named = {parameters["name"]: parameters for parameters in configuration["stages"]}
    values = {name: value for name, value in record.get("vars", {}).items() if name != "ds"}
    of_run = {"ds": record.get("ds"), "labels": record.get("labels", {}), "vars": values}
    return {"engine": configuration["engine"], **of_run, **_of_stages(named, stages)}


def _flat(value: object, name: str = "") -> Iterator[tuple[str, str]]:
    """Return the entries of nested tables by dotted keys; what is not set has no entry, and lists are one entry."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(inner, f"{name}.{key}" if name else str(key))
    elif value is not None:
        yield name, value if isinstance(value, str) else setting(value)


def _changes(before: Mapping[str, str], after: Mapping[str, str]) -> Iterator[Change]:
    for name in dict.fromkeys((*before, *after)):
        if before.get(name) != after.get(name):
            yield Change(name, before.get(name), after.get(name))


def _bindings(record: Mapping[str, Any], stages: Sequence[str]) -> dict[str, str]:
    """Return what every field is read from, in words, by stage, input and field."""
    return {
        f"{stage}.{field}": " ".join(binding[key] for key in ("source", "column", "sql") if key in binding)
        for stage, fields in _of_stages(record["bindings"], stages).items()
        for field, binding in fields.items()
    }


def _code(record: Mapping[str, Any]) -> dict[str, str]:
    return {**record["versions"], "hash of the code": record["code_sha256"][:12]}


def _new_warnings(before: Mapping[str, Any], after: Mapping[str, Any], stages: Sequence[str]) -> Iterator[str]:
    """Return the warnings of which the first record has none that differs in numbers only."""
    for stage in stages:
        present = {_without_numbers(text) for text in _warnings(before, stage)}
        yield from (f"{stage}: {text}" for text in _warnings(after, stage) if _without_numbers(text) not in present)


def _changed_warnings(before: Mapping[str, Any], after: Mapping[str, Any], stages: Sequence[str]) -> Iterator[str]:
    for stage in stages:
        present = _warnings(before, stage)
        shapes = {_without_numbers(text) for text in present}
        for text in _warnings(after, stage):
            if text not in present and _without_numbers(text) in shapes:
                yield f"{stage}: {text}"


def _warnings(record: Mapping[str, Any], stage: str) -> list[str]:
    return list(record["results"][stage]["warnings"])


def _without_numbers(text: str) -> str:
    return _NUMBER.sub("#", text)


# Inputs --------------------------------------------------------------------------------------------------------------


def _input_changes(before: Mapping[str, Any], after: Mapping[str, Any], stages: Sequence[str]) -> Iterator[InputChange]:
    files_before, files_after = _files(before), _files(after)
    for stage in stages:
        rows_before, rows_after = before["accounting"][stage], after["accounting"][stage]
        for name in dict.fromkeys((*rows_before, *rows_after)):
            old, new = files_before.get((stage, name), {}), files_after.get((stage, name), {})
            change = InputChange(
                name=f"{stage}.{name}",
                added=tuple(path for path in new if path not in old),
                gone=tuple(path for path in old if path not in new),
                replaced=tuple(path for path in new if path in old and new[path] != old[path]),
                rows=tuple(_changes(_counts(rows_before.get(name, {})), _counts(rows_after.get(name, {})))),
            )
            if change.added or change.gone or change.replaced or change.rows:
                yield change


def _files(record: Mapping[str, Any]) -> dict[tuple[str, str], dict[str, tuple[int, str]]]:
    """Return rows and hash of the footer of every file, by stage and input."""
    files: dict[tuple[str, str], dict[str, tuple[int, str]]] = {}
    for file in record["inputs"]:
        files.setdefault((file["stage"], file["input"]), {})[file["path"]] = (
            file["rows"],
            file["footer_sha256"] or file.get("files_sha256"),
        )
    return files


def _counts(rows: Mapping[str, int]) -> dict[str, str]:
    """Return numbers of rows as text, all rows first."""
    names = sorted(rows, key=lambda name: (name != "rows_in", name != "used", name))
    return {"rows" if name == "rows_in" else name: f"{rows[name]:,}" for name in names}
