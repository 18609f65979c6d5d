"""What lies in a results folder that this package did not make: it is told before anything is written or read."""

from __future__ import annotations

import glob
import os
import re
import stat
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING

import duckdb

from ..errors import CannotCreateError, os_fault
from ..queries.load import macro_names
from ..safe_files import kind_in_words
from . import statements
from .catalog_fill import define_macros
from .catalog_schema import shapes
from .durable import make_folder, storage_errors
from .layout import RUN_ID, RUN_NAME

if TYPE_CHECKING:
    from collections.abc import Collection
    from pathlib import Path

    from .layout import Layout
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


def make_results_folder(layout: Layout, option: str = "output") -> None:
    """Create a results folder, or see that what is there is one, into which a run can be written and published.

    Args:
        layout: The folder.
        option: What names it: a key of a config, or an option of a command.

    Raises:
        CannotCreateError: it cannot be created or written; what has the name of a folder of ours is a link or no
            folder, or lies on another device, so that no run could be moved there; the lock, the pointer or the catalog
            are somebody else's.
        StorageError: the disk is full or failing.
    """
    make_folder(layout.root, option)
    with storage_errors(f"looking at {layout.root}"):
        device = _device(layout.root.stat())
        for path in (layout.runs, layout.attempts, layout.staging):
            _refuse_unless(_fault_of_folder(path, device), path, option)
        _refuse_unless(_fault_of_lock(layout.lock), layout.lock, option)
        if not _has_own_names(layout):
            for path in (layout.current, layout.catalog):
                _refuse_unless("is not of thresher" if os.path.lexists(path) else "", path, option)


def _refuse_unless(fault: str, path: Path, option: str) -> None:
    if fault:
        message = f"the output folder {path.parent} cannot be written: {path} {fault}"
        raise CannotCreateError(message, remedy=f"Choose another folder with {option}, or move {path.name} elsewhere.")


def _fault_of_folder(path: Path, device: int) -> str:
    """Say why runs cannot be kept in a folder; empty if they can, or it is not there."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return ""
    if stat.S_ISLNK(status.st_mode):
        return f"is a link (to {os.readlink(path)}), and thresher keeps its files in folders of its own"  # noqa: PTH115 - as text
    if not stat.S_ISDIR(status.st_mode):
        return f"is {kind_in_words(status.st_mode) or 'a file'}, not a folder"
    if _device(status) != device:
        return "lies on another device, to which a finished run cannot be moved in one step"
    return ""


def _device(status: os.stat_result) -> int:
    return status.st_dev


def _fault_of_lock(path: Path) -> str:
    try:
        status = path.lstat()
    except FileNotFoundError:
        return ""
    if kind := kind_in_words(status.st_mode):
        return f"is {kind}, not the lock of thresher"
    return "has a content, and the lock of thresher has none" if status.st_size else ""


def _has_own_names(layout: Layout) -> bool:
    """Whether a run or an attempt has left anything in a results folder."""
    for folder, ending, pattern in (
        (layout.runs, "", RUN_NAME),
        (layout.attempts, ".json", RUN_ID),
    ):
        try:
            names = os.listdir(folder)  # noqa: PTH208 - names suffice
        except FileNotFoundError:
            continue
        except OSError as error:
            raise os_fault(error, f"reading {folder}") from error
        if any(name.endswith(ending) and pattern.fullmatch(name.removesuffix(ending)) for name in names):
            return True
    return False


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
