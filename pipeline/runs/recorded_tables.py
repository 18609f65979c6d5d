"""The tables of a stage read back from the folder of its run, and its result made from them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import polars as pl

from ..errors import DataError
from ..records import dataclass
from ..safe_files import read_file
from ..storage.layout import MANIFEST
from ..storage.manifest import parse_manifest
from ..tables.groupings import internal_name
from ..tables.schemas import COUNT_TABLE, empty_table, polars_types
from .stage_records import ABOUT_RUN, CARRIED, StageRecord
from .stage_results import StageResult

if TYPE_CHECKING:
    from pathlib import Path

    from ..stages.stage import Stage
    from ..tables.schemas import Table


EARLIER_VERSION = "made since a later version of thresher than that of the run; run the config again to have"


@dataclass(frozen=True)
class RecordedTables(Mapping[str, pl.DataFrame]):
    """The tables of a stage, each read when it is needed: some are large, and few are shown.

    A run of an earlier version lacks what came later: such a table has no row, and such a column is NULL.

    Attributes:
        folder: Folder of the run.
        stage: Name of the stage.
        contracts: Tables that a run of this version has, by name.
        later: What the version which made the run did not know: by table the columns, none for the whole table.
        groups: Grouping columns, by the users' names, with the names that they have inside a run.

    Raises:
        DataError: a table is read, and its file is damaged.
    """

    folder: Path
    stage: str
    contracts: Mapping[str, Table]
    later: Mapping[str, tuple[str, ...]]
    groups: Mapping[str, str]

    def __getitem__(self, name: str) -> pl.DataFrame:
        contract = self.contracts[name]
        if self.later.get(name) == ():
            return empty_table(contract, self._renamed(self._read(COUNT_TABLE)), tuple(self.groups.values()))
        table = self._renamed(self._read(name))
        later = (column for column in contract.columns if column.name in self.later.get(name, ()))
        return table.with_columns(pl.lit(None, polars_types(column.type)[-1]).alias(column.name) for column in later)

    @property
    def lacking(self) -> dict[str, str]:
        """Tables that the run lacks, or columns of them, with the reason."""
        return {
            name: f"{', '.join(columns)}: {EARLIER_VERSION} them" if columns else f"{EARLIER_VERSION} it"
            for name, columns in self.later.items()
        }

    def __contains__(self, name: object) -> bool:
        return name in self.contracts

    def __iter__(self) -> Iterator[str]:
        return iter(self.contracts)

    def __len__(self) -> int:
        return len(self.contracts)

    def _path(self, name: str) -> Path:
        return self.folder / name / f"{self.stage}.parquet"

    def _read(self, name: str) -> pl.DataFrame:
        path = self._path(name)
        try:
            return pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            message = f"{path} cannot be read: {str(error).splitlines()[0]}"
            remedy = f"thresher verify {self.folder.parent.parent} lists what is damaged."
            raise DataError(message, remedy=remedy) from error

    def _renamed(self, table: pl.DataFrame) -> pl.DataFrame:
        return table.rename({column: inside for column, inside in self.groups.items() if column in table.columns})


def recorded_tables(
    folder: Path, stage: Stage, parameters: Mapping[str, Any], omitted: Mapping[str, str]
) -> RecordedTables:
    """Return the tables of a stage of a run.

    Args:
        folder: Folder of the run.
        stage: Its task, with the tables that its parameters ask for.
        parameters: Its parameters as the run record holds them.
        omitted: Tables that it did not make.
    """
    inside = {column: internal_name(column) for grouping in parameters.get("by", [[]]) for column in grouping}
    contracts = {table.name: table for table in stage.tables if table.name not in omitted}
    name = parameters["name"]
    return RecordedTables(folder, name, contracts, dict(_later(folder, name, contracts)), inside)


def _later(folder: Path, stage: str, contracts: Mapping[str, Table]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """What the manifest of a run, if it has one, does not name; a file that it names and that is gone is damage."""
    path = folder / MANIFEST
    if not path.is_file():
        return
    files = {file.table: file for file in parse_manifest(read_file(path), path).files if file.stage == stage}
    for name, contract in contracts.items():
        if name not in files:
            yield name, ()
        elif columns := tuple(column.name for column in contract.columns if column.name not in files[name].schema):
            yield name, columns


def recorded_result(folder: Path, stage: Stage, record: StageRecord) -> StageResult:
    """Return the result of a stage that this run did not count, from its tables in the folder of the run."""
    omitted = record.entries["omitted"]
    summary = stage.summarize(recorded_tables(folder, stage, record.entries["configuration"], omitted))
    n_rows = sum(account["rows_in"] for account in record.entries["accounting"].values())
    warnings, seconds = tuple(record.result["warnings"]), record.result["seconds"]
    return StageResult(
        record.name,
        stage.kind,
        summary,
        warnings,
        seconds,
        n_rows,
        dict(omitted),
        unrequested=record.entries.get("unrequested", {}),
        carried=notice_of(record.result),
        notes=tuple(record.result.get("notes", ())),
    )


def notice_of(result: Mapping[str, Any]) -> str:
    """Return the sentence that says of which run the numbers of a stage are; empty if this run counted it."""
    return str(result[ABOUT_RUN][0]) if result.get(CARRIED) and result.get(ABOUT_RUN) else ""
