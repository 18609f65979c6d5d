"""Engines of small tests are connections to one database: to start a database takes a sixth of a small run."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import duckdb

from pipeline.engines import duckdb as engine
from pipeline.engines import expression_types

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pytest

LIMITS = ("memory_limit", "threads", "max_temp_directory_size")
_SKIPPED = ("SET memory_limit", "SET allowed_directories", "SET enable_external_access", "SET lock_configuration")


class OpenConnection:
    """A connection to a database that serves others, too, and thus cannot be locked; its folders are remembered."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection
        self.folders: list[Path] = []

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a connection has
        return getattr(self._connection, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def execute(self, text: str, params: Any = None) -> duckdb.DuckDBPyConnection:  # noqa: ANN401 - as of a connection
        """Run a statement, unless it is a setting of the database."""
        if text.startswith("SET allowed_directories"):
            self.folders = [Path(folder) for folder in params[0]]
        return self._connection if text.startswith(_SKIPPED) else self._connection.execute(text, params)


def share_database(patch: pytest.MonkeyPatch, started: duckdb.DuckDBPyConnection) -> None:
    """Let engines without limits of their own, and those that find types, be connections to a database.

    That an engine reads files of its folders alone is asserted here; what locks a connection is tested elsewhere.
    """

    def connect(name: str, config: dict[str, Any] | None = None) -> duckdb.DuckDBPyConnection | OpenConnection:
        if config is None or any(limit in config for limit in LIMITS):
            return duckdb.connect(name) if config is None else duckdb.connect(name, config=config)
        return OpenConnection(started.cursor())

    def note(self: engine.DuckDB, files: Sequence[str]) -> None:
        connection: object = self._connection
        if isinstance(connection, OpenConnection):
            folders = connection.folders
            assert all(any(Path(file).is_relative_to(folder) for folder in folders) for file in files), folders
        note_files(self, files)

    note_files = engine.DuckDB._note_files
    patch.setattr(engine.DuckDB, "_note_files", note)
    patch.setattr(engine, "duckdb", SimpleNamespace(**{**vars(duckdb), "connect": connect}))
    types = {**vars(duckdb), "connect": lambda *_, **__: OpenConnection(started.cursor())}
    patch.setattr(expression_types, "duckdb", SimpleNamespace(**types))
