"""Engines of small tests are connections to one database: to start a database takes a sixth of a small run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import duckdb

from pipeline.engines import duckdb as engine
from pipeline.engines import expression_types

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


class _Library:
    """DuckDB with another way to connect."""

    def __init__(self, connect: Callable[..., object]) -> None:
        self.connect = connect

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever the library has
        return getattr(duckdb, name)


class OneDatabase:
    """A database that is started when the first engine connects to it."""

    def __init__(self) -> None:
        self._started: duckdb.DuckDBPyConnection | None = None

    def close(self) -> None:
        """End it."""
        if self._started is not None:
            self._started.close()

    def share(self, patch: pytest.MonkeyPatch) -> None:
        """Let engines without limits of their own, and those that find types, be connections to it.

        That an engine reads files of its folders alone is asserted here; what locks a connection is tested elsewhere.
        """

        def connect(name: str, config: dict[str, Any] | None = None) -> duckdb.DuckDBPyConnection | OpenConnection:
            if config is None or any(limit in config for limit in LIMITS):
                return duckdb.connect(name) if config is None else duckdb.connect(name, config=config)
            return self._connected()

        def note(engine_itself: engine.DuckDB, files: Sequence[str]) -> None:
            connection: object = engine_itself._connection
            if isinstance(connection, OpenConnection):
                folders = connection.folders
                assert all(any(Path(file).is_relative_to(folder) for folder in folders) for file in files), folders
            note_files(engine_itself, files)

        note_files = engine.DuckDB._note_files
        patch.setattr(engine.DuckDB, "_note_files", note)
        patch.setattr(engine, "duckdb", _Library(connect))
        patch.setattr(expression_types, "duckdb", _Library(lambda *_, **__: self._connected()))

    def _connected(self) -> OpenConnection:
        if self._started is None:
            # tests write a file again within the moment that a time stamp tells: what was read of it must not be kept
            config: dict[str, Any] = {"preserve_insertion_order": False, "enable_external_file_cache": False}
            self._started = duckdb.connect(":memory:", config=config)
        return OpenConnection(self._started.cursor())
