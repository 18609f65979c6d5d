"""The tables of a stage read back from the folder of its run, and its result made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.errors import DataError
from pipeline.runs.stage_records import CARRIED, NOTES, StageRecord
from pipeline.runs.stage_results import StageResult
from pipeline.tables.groupings import internal_name

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.stages.stage import Stage


@dataclass(frozen=True)
class RecordedTables(Mapping[str, pl.DataFrame]):
    """The tables of a stage, each read when it is needed: some are large, and few are shown.

    Attributes:
        folder: Folder of the run.
        stage: Name of the stage.
        names: Tables that it made.
        groups: Grouping columns, by the users' names, with the names that they have inside a run.

    Raises:
        DataError: a table is read, and its file is damaged.
    """

    folder: Path
    stage: str
    names: tuple[str, ...]
    groups: Mapping[str, str]

    def __getitem__(self, name: str) -> pl.DataFrame:
        if name not in self.names:
            raise KeyError(name)
        path = self.folder / name / f"{self.stage}.parquet"
        try:
            table = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            message = f"{path} cannot be read: {str(error).splitlines()[0]}"
            remedy = f"thresher verify {self.folder.parent.parent} lists what is damaged."
            raise DataError(message, remedy=remedy) from error
        return table.rename({column: inside for column, inside in self.groups.items() if column in table.columns})

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def recorded_tables(
    folder: Path, stage: Stage, parameters: Mapping[str, Any], omitted: Mapping[str, str]
) -> RecordedTables:
    """Return the tables of a stage of a run.

    Args:
        folder: Folder of the run.
        stage: Its task.
        parameters: Its parameters as the run record holds them.
        omitted: Tables that it did not make.
    """
    inside = {column: internal_name(column) for grouping in parameters.get("by", [[]]) for column in grouping}
    names = tuple(table.name for table in stage.tables if table.name not in omitted)
    return RecordedTables(folder, parameters["name"], names, inside)


def recorded_result(folder: Path, stage: Stage, record: StageRecord) -> StageResult:
    """Return the result of a stage that this run did not count, from its tables in the folder of the run."""
    omitted = record.entries["omitted"]
    summary = stage.summarize(recorded_tables(folder, stage, record.entries["configuration"], omitted))
    n_rows = sum(account["rows_in"] for account in record.entries["accounting"].values())
    warnings, seconds = tuple(record.result["warnings"]), record.result["seconds"]
    carried = notice_of(record.result)
    return StageResult(record.name, stage.kind, summary, warnings, seconds, n_rows, dict(omitted), carried=carried)


def notice_of(result: Mapping[str, Any]) -> str:
    """Return the sentence that says of which run the numbers of a stage are; empty if this run counted it."""
    return str(result[NOTES][0]) if result.get(CARRIED) and result.get(NOTES) else ""
