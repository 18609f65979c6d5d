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

    from pipeline.engines.engine import Resources


class OpenConnection:
    """A connection to a database that serves others, too, and thus is not locked; it remembers its folders."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, folders: Sequence[str] = ()) -> None:
        self._connection = connection
        self.folders = [Path(folder) for folder in folders]

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever a connection has
        return getattr(self._connection, name)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def cursor(self) -> OpenConnection:
        """A connection of its own, with the same folders."""
        return OpenConnection(self._connection.cursor(), [str(folder) for folder in self.folders])


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

        def database(
            resources: Resources, scratch: str, folders: list[str], bits: int, *, watched: bool = False
        ) -> duckdb.DuckDBPyConnection | OpenConnection:
            limits = (resources.memory, resources.threads, resources.scratch_limit)
            shared = limits == (None,) * 3 and not watched
            return self._connected(folders) if shared else start(resources, scratch, folders, bits, watched=watched)

        def note(engine_itself: engine.DuckDB, files: Sequence[str]) -> None:
            connection: object = engine_itself._connection
            if isinstance(connection, OpenConnection):
                folders = connection.folders
                assert all(any(Path(file).is_relative_to(folder) for folder in folders) for file in files), folders
            note_files(engine_itself, files)

        start, note_files = engine._database, engine.DuckDB._note_files
        engine.forget_databases()
        patch.setattr(engine.DuckDB, "_note_files", note)
        patch.setattr(engine, "_database", database)
        patch.setattr(expression_types, "duckdb", _Library(lambda *_, **__: self._connected()))

    def _connected(self, folders: Sequence[str] = ()) -> OpenConnection:
        if self._started is None:
            # tests write a file again within the moment that a time stamp tells: what was read of it must not be kept
            config: dict[str, Any] = {
                "preserve_insertion_order": False,
                "enable_external_file_cache": False,
                "python_enable_replacements": False,
                "perfect_ht_threshold": engine.BITS_OF_FEW,
            }
            self._started = duckdb.connect(":memory:", config=config)
            self._started.execute("SET GLOBAL TimeZone = 'UTC'")
        return OpenConnection(self._started.cursor(), folders)
