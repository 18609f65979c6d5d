"""What every engine can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    import polars as pl
    import pyarrow as pa
    import sqlglot.expressions as exp

    from ..queries.partitions import Partition

    Fetch = Callable[[exp.Query], pl.DataFrame]
    Settle = Callable[[Fetch, pl.DataFrame], pl.DataFrame]
    Function = Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]


class Engine(Protocol):
    """What an engine can do.

    Attributes:
        name: Name of the engine, as the config has it.
        has_workers: Whether pure functions run where the rows are, on workers, not in this process.
        most_in_order: Most rows that it hands over in order; None: any number.
    """

    name: str
    has_workers: bool
    most_in_order: int | None

    def scan(
        self, name: str, files: Sequence[str], partitions: Sequence[Partition] = (), *, located: bool = False
    ) -> None:
        """Register files with the same schema as a relation, with further columns that have one value for each file."""
        ...

    def hand_over(self, name: str, table: pa.Table) -> None:
        """Register a table that lies in memory as a relation; its rows are not copied."""
        ...

    def define(self, name: str, query: exp.Query, *, keep: bool = False) -> None:
        """Give a query a name."""
        ...

    def fetch(self, query: exp.Query, params: Mapping[str, float] | None = None, *, once: bool = False) -> pl.DataFrame:
        """Run a query.

        Args:
            query: The query.
            params: Values of its parameters.
            once: Whether no later run will ask it in the same words, so that there is nothing to keep.
        """
        ...

    def count(self, query: exp.Query, params: Mapping[str, float], settle: Settle, settled_by: str) -> pl.DataFrame:
        """Run a query whose counts are settled where they are counted: of all files, or file by file.

        Args:
            query: The query; its counts add up once they are settled.
            params: Values of its parameters.
            settle: Turns what it returns into counts that add up, with another query of the same rows where it needs
                one; rows of several files have a further column, by which it groups.
            settled_by: Text that tells what it does: with another text, what was kept is not used.
        """
        ...

    def stream(self, query: exp.Query) -> Iterator[pl.DataFrame]:
        """Run a query and return its rows in order, in blocks of equal size; they need not all fit into memory."""
        ...

    def fill(self, name: str, frames: Iterable[pl.DataFrame]) -> None:
        """Create a relation from at least one frame, all with the same columns; its rows may lie on disk."""
        ...

    def transform(
        self,
        name: str,
        reads: Mapping[str, exp.Query],
        key: Sequence[str],
        function: Function,
        batches: Iterable[pl.DataFrame],
    ) -> None:
        """Create a relation that a pure function makes of rows that lie together by a key.

        Args:
            name: The relation.
            reads: The rows that the function needs, by name; each has the columns of the key.
            key: Columns; rows with the same values are handed over together, in any order.
            function: Turns the frames of some values of the key into rows, with the same columns and types for any
                frames, empty ones too.
            batches: The same rows, made here batch by batch when they are asked for: for an engine without workers.
        """
        ...

    def bucket(self, keys: Sequence[str], count: int) -> exp.Expr:
        """Return an expression for a number from 0 to count - 1 that is the same for all rows with the same key."""
        ...

    def memory(self) -> int:
        """Return the memory limit of the engine in bytes."""
        ...


class Place(Protocol):
    """A table that an engine knows by name, or files at an address that it reaches."""

    @property
    def kind(self) -> str:
        """`table`, or `parquet` for files."""

    @property
    def target(self) -> str:
        """Name of the table, or the address."""

    @property
    def schema(self) -> pa.Schema:
        """Columns, as they were described when it was opened."""

    @property
    def rows(self) -> int:
        """Rows, as they were counted then."""


@runtime_checkable
class ReadsPlaces(Protocol):
    """An engine that reads tables which it knows by name, and files at addresses which it reaches."""

    def scan_place(self, name: str, target: Place, *, located: bool = False) -> None:
        """Register a table, or files at an address, as a relation.

        Args:
            name: The relation.
            target: What is read.
            located: As for `Engine.scan`; rows without a place have a number that is made from their values.
        """
        ...
