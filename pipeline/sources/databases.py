"""Tables and views of DuckDB files: read without changing the file, and written to Parquet before they are read."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

import duckdb
import sqlglot.expressions as exp

from ..errors import BusyError, DataError
from ..queries.dialect import render
from .frames import write_batches

if TYPE_CHECKING:
    from pathlib import Path

_LOCKED_UP: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoload_known_extensions": "false",
    "memory_limit": "1GB",
}
_TABLES = """
SELECT database_name, schema_name, table_name FROM duckdb_tables() WHERE NOT internal
UNION ALL SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal
ORDER BY ALL
"""
_MOST_TABLES = 10


def write_rows(path: Path, table: str | None, target: Path, *, name: str) -> None:
    """Write the rows of a table of a DuckDB file to a Parquet file, in a stream.

    A view may read what is in the file, and nothing else.

    Args:
        path: The file.
        table: Name of a table or view, perhaps with its schema; None: its only one.
        target: The Parquet file.
        name: Name of the input in messages.

    Raises:
        DataError: the file is no whole database, has no such table, or its view cannot be computed.
        BusyError: another program writes to it.
    """
    log = path.with_name(f"{path.name}.wal")
    if log.exists() and log.stat().st_size:
        message = f"input {name}: {path} has changes that are only in {log.name} yet"
        raise BusyError(message, remedy="Close the program that writes to it, or run CHECKPOINT there.")
    try:
        with closing(duckdb.connect(path, read_only=True, config=_LOCKED_UP)) as connection:
            tables = connection.execute(_TABLES).fetchall()
            chosen = _chosen(path, table, tables, name=name)
            try:
                reader = connection.sql(render(exp.select("*").from_(chosen))).to_arrow_reader()
                write_batches(reader.schema, reader, target)
            except duckdb.Error as error:
                message = f"input {name}: {table} of {path} cannot be read: {_reason(error)}"
                raise DataError(message, remedy="A view can read the tables of its own file alone.") from error
    except (duckdb.IOException, duckdb.ConnectionException) as error:
        if "lock" in str(error).lower() or isinstance(error, duckdb.ConnectionException):
            owner = "this process" if isinstance(error, duckdb.ConnectionException) else "another program"
            message = f"input {name}: {owner} has {path} open for writing"
            raise BusyError(message, remedy="Close it there, or name a copy of the file.") from error
        message = f"input {name}: {path} cannot be read as a DuckDB file: {_reason(error)}"
        raise DataError(message, remedy="Open it with the version of DuckDB that wrote it.") from error


def tables_of(path: Path, name: str) -> list[str]:
    """Return the names of the tables and views of a DuckDB file, those of other schemas with these.

    Raises:
        DataError: it is no whole database, or has no table.
    """
    try:
        with closing(duckdb.connect(path, read_only=True, config=_LOCKED_UP)) as connection:
            tables = connection.execute(_TABLES).fetchall()
    except duckdb.Error as error:
        message = f"input {name}: {path} cannot be read as a DuckDB file: {_reason(error)}"
        raise DataError(message, remedy="Open it with the version of DuckDB that wrote it.") from error
    if not tables:
        message = f"input {name}: {path} has no table"
        raise DataError(message, remedy="Name a file that has tables.")
    return [table if schema == "main" else f"{schema}.{table}" for _, schema, table in tables]


def _chosen(path: Path, table: str | None, tables: list[tuple[str, str, str]], *, name: str) -> exp.Table:
    """Return the table that is meant.

    Raises:
        DataError: there is none, or several.
    """
    fitting = [names for names in tables if table in {None, names[2], f"{names[1]}.{names[2]}"}]
    if len(fitting) == 1:
        database, schema, own_name = (exp.to_identifier(part, quoted=True) for part in fitting[0])
        return exp.Table(this=own_name, db=schema, catalog=database)
    shown = [own_name if schema == "main" else f"{schema}.{own_name}" for _, schema, own_name in tables]
    asked = (
        f"no table {table!r}" if table is not None and not fitting else "no table" if not tables else "several tables"
    )
    more = f" and {len(shown) - _MOST_TABLES:,} more" if len(shown) > _MOST_TABLES else ""
    told = f"It has {', '.join(shown[:_MOST_TABLES])}{more}: name one, table = …"
    remedy = told if shown else "Name a file that has tables."
    message = f"input {name}: {path} has {asked}"
    raise DataError(message, remedy=remedy)


def _reason(error: duckdb.Error) -> str:
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
