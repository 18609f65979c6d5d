"""What a catalog holds that this package did not put there: it is told before anything of it is run."""

from __future__ import annotations

import glob
import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import duckdb

from ..queries.load import macro_names
from . import statements
from .catalog_tables import define_macros, shapes

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from .statements import View

_FOREIGN = {  # what must find nothing: how it is told
    """
    SELECT schema_name FROM duckdb_schemas()
    WHERE database_name = 'catalog' AND NOT internal AND schema_name NOT IN ('main', 'history')
    """: "has the schema",
    """
    SELECT schema_name, table_name, column_name FROM duckdb_columns()
    WHERE database_name = 'catalog' AND NOT internal AND column_default IS NOT NULL
    """: "computes the column",
    """
    SELECT schema_name, type_name FROM duckdb_types() WHERE database_name = 'catalog' AND NOT internal
    """: "has the type",
}
_VIEWS = "SELECT schema_name, view_name, sql FROM duckdb_views() WHERE database_name = $1 AND NOT internal"
_MACROS = """
SELECT schema_name, function_name, function_type, parameters, macro_definition
FROM duckdb_functions()
WHERE database_name = $1 AND NOT internal
"""


def locked_connection(root: Path) -> duckdb.DuckDBPyConnection:
    """Return a connection in memory that can read files below a folder and nothing else, whatever it is asked to run.

    It is locked before a catalog is attached: the catalog may be one that somebody else made.

    Args:
        root: A results folder, absolute.
    """
    connection = duckdb.connect(
        ":memory:", config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    with suppress(duckdb.InvalidInputException):  # in a Jupyter kernel without ipywidgets, which shows no bar anyway
        connection.execute("SET enable_progress_bar = false")
    connection.execute("SET TimeZone = 'UTC'")
    connection.execute("SET python_enable_replacements = false")
    # views ask for a file by its escaped name, and find it by its own
    connection.execute("SET allowed_directories = $1", [[str(root), glob.escape(str(root))]])
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    return connection


def foreign_in_catalog(connection: duckdb.DuckDBPyConnection, views: Collection[View] | None) -> str:
    """Say what an attached catalog holds that thresher does not put there; nothing of the catalog is run to tell.

    Args:
        connection: The catalog is attached, but not its current database, so that no macro of it is taken for a
            function of DuckDB.
        views: The views that it may have; None: any, because neither they nor macros are used.

    Returns:
        A sentence without its subject; empty if there is nothing.
    """
    for text, words in _FOREIGN.items():
        first = connection.execute(text).fetchone()
        if first is not None:
            return f"{words} {'.'.join(map(str, first))}, which is not of thresher"
    for view in connection.execute(_VIEWS, ["catalog"]).fetchall():
        if views is not None and view[:2] not in views:
            return f"has the view {view[0]}.{view[1]}, which no manifest explains"
    existing = macros_of(connection, "catalog")
    named_otherwise = {name for _, name, *_ in existing} - macro_names()
    if named_otherwise or (views is not None and existing - _own_macros()):  # a run calls none
        return f"has the macro {min(named_otherwise, default='of another text')}, which is not of thresher"
    return ""


def macros_of(connection: duckdb.DuckDBPyConnection, database: str) -> frozenset[tuple[str, ...]]:
    """Return the macros of an attached database: schema, name, kind, parameters and text.

    The text is without blanks and double quotes: some versions of DuckDB put names of types in quotes before a macro
    has been in a file.
    """
    macros = connection.execute(_MACROS, [database]).fetchall()
    return frozenset((*map(str, names), re.sub(r'[\s"]', "", str(text))) for *names, text in macros)


@cache
def _own_macros() -> frozenset[tuple[str, ...]]:
    with duckdb.connect(":memory:") as connection:
        connection.execute("CREATE SCHEMA history")
        for view, shape in shapes(()).items():  # the tables that macros name have to be there
            connection.execute(statements.create(view, shape.columns))
        define_macros(connection)
        return macros_of(connection, "memory")
