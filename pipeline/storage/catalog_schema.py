"""Which tables a catalog has for given runs: their columns, and whether their rows are copied into it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..records import dataclass
from ..tables.run_tables import ATTEMPTS, GATES, HISTORY_COLUMNS, METRICS, RECORD_TABLES, RUNS
from .records import in_history
from .statements import HISTORY, MAIN

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ..tables.schemas import Column
    from .manifest import Manifest, PublishedFile
    from .statements import Columns, View


TABLE_ROWS = 100_000  # a table of the latest run that has more rows is a view of its files
RENAMED_COLUMNS = {"inputs": {"fate": "status"}}  # table: {name in kept runs of earlier versions: name in the catalog}

RunFolder = tuple["Path", "Manifest"]


@dataclass(frozen=True)
class Shape:
    """One table of a catalog.

    Attributes:
        columns: Its columns.
        is_view: Whether it is a view of files.
    """

    columns: Columns
    is_view: bool = False


def shapes(runs: Sequence[RunFolder], *, holds_all: bool = False) -> dict[View, Shape]:
    """Return the tables of a catalog by schema and name.

    Args:
        runs: Its runs, the last of which is the latest.
        holds_all: Whether no table is a view of files, however large, so that the catalog can be read without them.
    """
    wanted: dict[View, Shape] = {(MAIN, table.name): Shape(of_contract(table.columns)) for table in (RUNS, ATTEMPTS)}
    leading = of_contract(HISTORY_COLUMNS)
    for table in (METRICS, GATES, *RECORD_TABLES):  # also where a run made no such table: macros and readers need them
        columns = of_contract(table.columns)
        wanted[MAIN, table.name], wanted[HISTORY, table.name] = Shape(columns), Shape(leading + columns)
    for name in tables_of(runs[-1:]):
        files = files_of(runs[-1:], name)
        is_view = not holds_all and name != METRICS.name and sum(file.rows for _, _, file in files) > TABLE_ROWS
        wanted[MAIN, name] = Shape(columns_of(file for _, _, file in files), is_view)
    for name in tables_of(runs):
        wanted[HISTORY, name] = Shape(_with_front([file for _, _, file in files_of(runs, name)]))
    return wanted


def _with_front(files: Sequence[PublishedFile]) -> Columns:
    """Return the columns of a table of history; text where some files name a grouping column as one in front."""
    columns, named = columns_of(files), [{name.lower() for name in file.schema} for file in files]
    mixed = {name for name, _ in of_contract(HISTORY_COLUMNS) if not all(name in names for names in named)}
    texts = tuple((name, "VARCHAR" if name.lower() in mixed else sql_type) for name, sql_type in columns)
    return in_front(columns) + texts


def in_front(columns: Columns) -> Columns:
    """Return the columns that a table has in addition in `history`; a grouping column of the same name comes first."""
    taken = {name.lower() for name, _ in columns}
    return tuple(column for column in of_contract(HISTORY_COLUMNS) if column[0] not in taken)


def of_contract(columns: Iterable[Column]) -> Columns:
    """Return the columns of a contract."""
    return tuple((column.name, column.type) for column in columns)


def tables_of(runs: Iterable[RunFolder]) -> list[str]:
    """Return the names of the result tables of runs, sorted."""
    return sorted({file.table for _, manifest in runs for file in manifest.files if file.table})


def files_of(runs: Iterable[RunFolder], table: str) -> list[tuple[Path, Manifest, PublishedFile]]:
    """Return the files of a table in runs, each with the folder and the manifest of its run."""
    return [(folder, manifest, file) for folder, manifest in runs for file in manifest.files if file.table == table]


def stored_files(runs: Iterable[RunFolder], table: str) -> list[tuple[Path, Manifest, PublishedFile]]:
    """Return the files of a table in runs whose rows are in history."""
    return [listed for listed in files_of(runs, table) if in_history(listed[2], listed[1])]


def columns_of(files: Iterable[PublishedFile]) -> Columns:
    """Return the union of the columns in order of appearance; a column whose type differs between files is VARCHAR."""
    columns: dict[str, str] = {}
    for file in files:
        for name, name_in_file in names_in_file(file):
            sql_type = file.schema[name_in_file]
            if columns.setdefault(name, sql_type) != sql_type:
                columns[name] = "VARCHAR"
    return tuple(columns.items())


def names_in_file(file: PublishedFile) -> Columns:
    """Return names of columns in the catalog and in the file: they differ if a later version renamed them."""
    renamed = RENAMED_COLUMNS.get(file.table, {})
    return tuple((renamed.get(name, name), name) for name in file.schema)
