"""Summaries of an existing run, from its tables; nothing is counted again."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from pipeline.runs.runner import StageResult
from pipeline.storage.layout import RUN_RECORD
from pipeline.tables.groupings import internal_name

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.config import Config


def published_stages(config: Config, folder: Path) -> tuple[StageResult, ...]:
    """Return the results of the stages of a published run.

    Args:
        config: The config that it was made from.
        folder: Its folder.
    """
    record = json.loads((folder / RUN_RECORD).read_bytes())
    results = []
    for configured in config.stages:
        stage, name = configured.stage, configured.params.name
        omitted = record["omitted"][name]
        tables_made = tuple(table.name for table in stage.tables if table.name not in omitted)
        by = {column for grouping in configured.params.by for column in grouping}
        tables = _Tables(folder, name, tables_made, {column: internal_name(column) for column in by})
        result, accounts = record["results"][name], record["accounting"][name]
        n_rows = sum(account["rows_in"] for account in accounts.values())
        warnings = tuple(result["warnings"])
        summary = stage.summarize(tables)
        results.append(StageResult(name, stage.kind, summary, warnings, result["seconds"], n_rows, omitted))
    return tuple(results)


@dataclass(frozen=True)
class _Tables(Mapping[str, pl.DataFrame]):
    """The tables of a stage, each read when it is needed: some are large, and few are summarised.

    Attributes:
        folder: Folder of the run.
        stage: Name of the stage.
        names: Tables that it made.
        groups: Grouping columns, by the users' names, with the names that they have inside a run.
    """

    folder: Path
    stage: str
    names: tuple[str, ...]
    groups: Mapping[str, str]

    def __getitem__(self, name: str) -> pl.DataFrame:
        table = pl.read_parquet(self.folder / name / f"{self.stage}.parquet")
        return table.rename({column: inside for column, inside in self.groups.items() if column in table.columns})

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)
