"""A node that samples rows once results are known: it reads them in blocks and keeps a bounded number."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol

import polars as pl

from ..records import dataclass
from .nodes import Phase, Statement

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import sqlglot.expressions as exp

    from ..engines.engine import Engine
    from .nodes import Progress


class Sampler(Protocol):
    """What keeps some of the rows that it is shown."""

    def see(self, rows: pl.DataFrame) -> None:
        """Keep the rows of a block that belong to the sample, as far as can be told."""
        ...

    def sample(self) -> pl.DataFrame:
        """Return the sample."""
        ...


class MakesSampler(Protocol):
    """Makes a sampler from the result tables."""

    def __call__(self, tables: Mapping[str, pl.DataFrame], /) -> Sampler:
        """Make a sampler."""
        ...


@dataclass(frozen=True)
class Sample:
    """A result table of single rows that are chosen by the other tables, in bounded memory.

    Attributes:
        into: The result table.
        query: The rows.
        sampler: Makes what chooses among them, from the result tables.
    """

    phase: ClassVar[Phase] = Phase.AFTER_RESULTS
    into: str
    query: exp.Query
    sampler: MakesSampler

    def run(self, engine: Engine, progress: Progress) -> None:
        """Replace the table, which has no row so far, by the sample."""
        sampler = self.sampler(progress.tables)
        for block in engine.stream(self.query):
            sampler.see(block)
        table, empty = sampler.sample(), progress.tables[self.into].schema
        if table.is_empty():
            return
        lacking = [pl.lit(None, dtype=dtype).alias(name) for name, dtype in empty.items() if name not in table.columns]
        progress.tables[self.into] = table.with_columns(lacking)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - the query has its columns already
        """The rows that are sampled."""
        yield Statement(f"rows for table {self.into}", self.query, function=self.sampler)
