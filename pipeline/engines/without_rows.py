"""DuckDB as an engine that reads no row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .duckdb import DuckDB

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from ..queries.partitions import Partition
    from .engine import Place


class DuckDBWithoutRows(DuckDB):
    """An engine that reads the footers of files and none of their rows: it tells the types of all that a plan makes."""

    def scan(
        self, name: str, files: Sequence[str], partitions: Sequence[Partition] = (), *, located: bool = False
    ) -> None:
        """Register no row of some files as a relation; arguments as those of `DuckDB.scan`."""
        self.define(name, self._rows_of(name, files, partitions, located=located).limit(0))

    def scan_place(self, name: str, target: Place, *, located: bool = False) -> None:
        """Register no row of a table of another engine; arguments as those of `ReadsPlaces.scan_place`."""
        import pyarrow as pa  # noqa: PLC0415 - only those whose rows Spark reads need it here

        plain = [column for column in target.schema if not isinstance(column.type, pa.BaseExtensionType)]
        location = [pa.field("source_file", pa.string()), pa.field("file_row_number", pa.int64())] if located else []
        super().hand_over(name, pa.schema([*plain, *location]).empty_table())

    def hand_over(self, name: str, table: pa.Table) -> None:
        """Register no row of a table as a relation."""
        super().hand_over(name, table.schema.empty_table())
