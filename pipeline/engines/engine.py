"""The verbs that every engine has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import polars as pl
    import sqlglot.expressions as exp


class Engine(Protocol):
    """The verbs of an engine."""

    def scan(self, name: str, files: Sequence[str], *, located: bool = False) -> None:
        """Register files of one schema."""
        ...

    def define(self, name: str, query: exp.Query, *, keep: bool = False) -> None:
        """Give a query a name."""
        ...

    def fetch(self, query: exp.Query, params: Mapping[str, float] | None = None) -> pl.DataFrame:
        """Run a query."""
        ...

    def stream(self, query: exp.Query) -> Iterator[pl.DataFrame]:
        """Run a query and return its rows in blocks of one size, in order; they need not fit into memory together."""
        ...

    def fill(self, name: str, frames: Iterable[pl.DataFrame]) -> None:
        """Make a relation of frames of the same columns, at least one; the engine may keep its rows on disk."""
        ...

    def bucket(self, keys: Sequence[str], count: int) -> exp.Expr:
        """Expression of a number from 0 to count - 1 that is the same for rows of the same key."""
        ...

    def memory(self) -> int:
        """Memory limit of the engine in bytes."""
        ...
