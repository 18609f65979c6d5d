"""The verbs that every engine has."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
