"""Rows of the tables that tell how runs and attempts went, from manifests and from the records in JSON."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from ..tables.run_tables import (
    ATTEMPTS,
    FILES,
    HISTORY_COLUMNS,
    INPUT_FILES,
    PARAMETERS,
    RECORD_TABLES,
    RUNS,
    STAGES,
    WARNINGS,
)
from ..tables.schemas import polars_types
from .durable import read_record
from .layout import RUN_RECORD, Layout

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from ..tables.schemas import Column, Table
    from .manifest import Manifest, PublishedFile

HISTORY_ROWS = 10_000  # the rows of a table of a run that has more are not in `history`

_Row = tuple[Any, ...]


def in_history(file: PublishedFile, manifest: Manifest) -> bool:
    """Whether `history` holds the rows of a file: those of a table of a run that has at most HISTORY_ROWS."""
    return bool(file.table) and sum(each.rows for each in manifest.files if each.table == file.table) <= HISTORY_ROWS


def runs_frame(runs: Iterable[tuple[Path, Manifest]], left_out: dict[str, tuple[str, ...]]) -> pl.DataFrame:
    """Return the table `runs`: one row per run, in the given order.

    Args:
        runs: Folder and manifest of the runs.
        left_out: Damaged files of a run by the name of its folder.
    """
    rows = []
    for folder, manifest in runs:
        folders_named = Layout(folder.parent.parent).named_folders()
        record = _record(folder)
        versions = record.get("versions")
        rows.append(
            (
                manifest.run_id,
                manifest.generation,
                *_moment_and_day(manifest, record),
                folders_named + folder.name,
                _moment(record.get("started_at")),
                _float(record.get("seconds")),
                _text(record.get("config")),
                _text(versions.get("thresher")) if isinstance(versions, dict) else None,
                _integer(record.get("peak_rss_bytes")),
                _text(record.get("verify_inputs")),
                list(left_out.get(folder.name, ())),
            )
        )
    return _frame(rows, RUNS.columns)


def record_frames(runs: Sequence[tuple[Path, Manifest]]) -> dict[str, pl.DataFrame]:
    """Return the other tables that manifest and record of every run tell, with the columns of history, by name."""
    rows: dict[str, list[_Row]] = {table.name: [] for table in RECORD_TABLES}
    makers = {STAGES: _stages, PARAMETERS: _parameters, WARNINGS: _warnings, INPUT_FILES: _input_files}
    for folder, manifest in runs:
        record = _record(folder)
        leading = (manifest.run_id, *_moment_and_day(manifest, record))
        rows[FILES.name] += [(*leading, *row) for row in _files(manifest)]
        for table, make in makers.items():
            with suppress(AttributeError, KeyError, TypeError, ValueError):  # the record of another version
                rows[table.name] += [(*leading, *row) for row in [*make(record)]]
    return {table.name: _frame(rows[table.name], (*HISTORY_COLUMNS, *table.columns)) for table in RECORD_TABLES}


def attempts_frame(records: Iterable[tuple[str, dict[str, Any]]]) -> pl.DataFrame:
    """Return the table `attempts` from the records of attempts by their ids, in order of their start."""
    rows = [
        (
            run_id,
            _text(record.get("status")),
            _integer(record.get("exit")),
            _text(record.get("error")),
            _moment(record.get("started_at")),
            _moment(record.get("ended_at")),
            _integer(record.get("generation")),
            _text(record.get("config")),
            _text(record.get("host")),
            _day(record),
        )
        for run_id, record in records
    ]
    return _frame(rows, ATTEMPTS.columns).sort("started_at", "run_id")


def history_frame(runs: Iterable[tuple[Path, Manifest]]) -> pl.DataFrame:
    """Return what rows in `history` have in front, one row per run."""
    rows = [(manifest.run_id, *_moment_and_day(manifest, _record(folder))) for folder, manifest in runs]
    return _frame(rows, HISTORY_COLUMNS)


def empty_frame(table: Table) -> pl.DataFrame:
    """Return a table of this module without a row."""
    return _frame([], table.columns)


def _stages(record: dict[str, Any]) -> Iterator[_Row]:
    kinds = {stage["name"]: stage["kind"] for stage in record["configuration"]["stages"]}
    for name, result in record["results"].items():
        inputs = record["accounting"].get(name, {}).values()
        n_rows = [sum(rows[key] for rows in inputs) for key in ("rows_in", "used")]
        omitted = [f"{table}: {reason}" for table, reason in record.get("omitted", {}).get(name, {}).items()]
        n_warnings = len(result["warnings"])
        yield (name, kinds.get(name), float(result["seconds"]), *n_rows, n_warnings, omitted, *_whence(result))
    for name, facts in record.get("absent", {}).items():
        failure = (_integer(facts["exit"]), _text(facts["error"]))
        yield (name, facts["kind"], None, None, None, 1, [], None, None, None, *failure)


def _whence(result: dict[str, Any]) -> _Row:
    """Of which run the rows of a stage are, and why it failed, if it did."""
    carried = result.get("carried_from") or {}
    whence = (_text(carried.get("run_id")), _moment(carried.get("published_at")), _text(result.get("taken_over_from")))
    return (*whence, _integer(carried.get("exit")), _text(carried.get("error")))


def _parameters(record: dict[str, Any]) -> Iterator[_Row]:
    for stage in record["configuration"]["stages"]:
        for name, value in stage.items():
            if name != "name":
                yield (stage["name"], name, json.dumps(value, ensure_ascii=False))


def _warnings(record: dict[str, Any]) -> Iterator[_Row]:
    for stage, result in record["results"].items():
        for number, warning in enumerate(result["warnings"], start=1):
            yield (stage, number, warning)
    for stage, facts in record.get("absent", {}).items():
        yield (stage, 1, facts["warning"])


def _files(manifest: Manifest) -> Iterator[_Row]:
    for file in manifest.files:
        stored = in_history(file, manifest)
        yield (file.path, file.table or None, file.stage or None, file.rows, file.size, file.sha256, stored)


def _input_files(record: dict[str, Any]) -> Iterator[_Row]:
    for file in record["inputs"]:
        yield (*_source(file), False, file["rows"], file.get("size"), file["footer_sha256"])
    for file in record.get("skipped", []):
        yield (*_source(file), True, None, None, None)


def _source(file: dict[str, Any]) -> tuple[str, str, str]:
    return file["stage"], file["input"], file["path"]


def _moment_and_day(manifest: Manifest, record: dict[str, Any]) -> _Row:
    """When a run was published, its logical date and its labels, of which runs of earlier versions have none."""
    labels = record.get("labels")
    text = json.dumps(labels, ensure_ascii=False) if isinstance(labels, dict) and labels else None
    return _moment(manifest.published_at), _day(record), text


def _day(record: dict[str, Any]) -> date | None:
    with suppress(TypeError, ValueError):
        return date.fromisoformat(record["ds"]) if "ds" in record else None
    return None


def _record(folder: Path) -> dict[str, Any]:
    """Return the record of a run; empty if it is damaged."""
    return read_record(folder / RUN_RECORD) or {}


def _frame(rows: list[_Row], columns: Sequence[Column]) -> pl.DataFrame:
    schema = {column.name: polars_types(column.type)[0] for column in columns}
    return pl.DataFrame(rows, schema=schema, orient="row")


def _moment(value: object) -> datetime | None:
    with suppress(TypeError, ValueError):
        return datetime.fromisoformat(value).replace(tzinfo=None)  # type: ignore[arg-type]  # TypeError is expected
    return None


def _integer(value: object) -> int | None:
    return value if type(value) is int and -(1 << 63) <= value < 1 << 63 else None


def _float(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
