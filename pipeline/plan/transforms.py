"""Nodes in which pure functions say what SQL cannot say portably, over rows that need not fit into memory together.

Rows are handed over in batches. A batch is a range of a key of whole numbers where it is known how many rows its values
have: of files sorted by the key only the rows of a batch are read. Else a batch is a bucket of a hash.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, ClassVar

import polars as pl
import sqlglot.expressions as exp

from ..queries.dialect import column
from ..records import dataclass
from .nodes import Phase, Statement, frames_of, shown_reads

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ..engines.engine import Engine
    from .nodes import Progress

BATCH_ROWS = 3_000_000
RANKED = "ranked"  # the relation of rows with their ranks, where workers find them


@dataclass(frozen=True)
class Transform:
    """A relation that a pure function makes of rows: maximum matching, for example.

    Attributes:
        into: Logical name of the relation.
        reads: The rows it needs, by name; each has the columns of the key.
        key: Columns within whose values the function works, for example document or series; rows of one key stay
            together.
        function: Turns the frames of a batch into the rows of the relation, with the same columns and types for any
            batch, empty ones too.
        rows: Rows of all frames together, as far as footers tell.
        sizes: Approximate `n_rows` for each value of the key, which must be a single column of integers: batches are
            then ranges of the key with about as many rows each. None: batches are made by hash.
    """

    phase: ClassVar[Phase] = Phase.TRANSFORMS
    into: str
    reads: Mapping[str, exp.Query]
    key: tuple[str, ...]
    function: Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]
    rows: int
    sizes: exp.Query | None = None

    def run(self, engine: Engine, progress: Progress) -> None:  # noqa: ARG002 - all nodes are called alike
        """Define the relation."""
        engine.transform(self.into, self.reads, self.key, self.function, self.batches(engine))

    def batches(self, engine: Engine) -> Iterator[pl.DataFrame]:
        """Rows of the relation, batch by batch, at least one."""
        for condition in self._conditions(engine):
            reads = {name: _within(query, condition) for name, query in self.reads.items()}
            yield self.function(frames_of(engine, reads))

    def _conditions(self, engine: Engine) -> Iterator[exp.Expr | None]:
        """What the rows of every batch have in common; None: one batch has all."""
        n_batches = max(1, -(-self.rows // BATCH_ROWS))
        if n_batches == 1:
            yield None
        elif self.sizes is not None:
            yield from _ranges(engine, self.sizes, *self.key)
        else:
            for number in range(n_batches):
                yield engine.bucket(self.key, n_batches).eq(number)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - as `run`
        """The queries of the rows, and the relation, which has no query."""
        yield from shown_reads(self.reads, f"relation {self.into}", self.function)
        yield Statement(f"relation {self.into}", None, self.into, function=self.function)


@dataclass(frozen=True)
class RankedAmong:
    """Rows that have a rank among many others: found in one pass over the others, which need no order.

    Attributes:
        rows: The rows whose ranks are asked for.
        among: The rows that they have ranks among; read once for each batch.
        key: Column of whole numbers of both, within whose values rows are ranked.
        sizes: `n_rows` of `rows` for each value of the key; batches are ranges of it.
        function: Turns the rows of a batch and the blocks of rows they stand among, in any order, into rows with ranks.
    """

    rows: exp.Query
    among: exp.Query
    key: str
    sizes: exp.Query
    function: Callable[[pl.DataFrame, Iterator[pl.DataFrame]], Iterator[pl.DataFrame]]

    def blocks(self, engine: Engine) -> Iterator[pl.DataFrame]:
        """Rows with their ranks: batch by batch, or all at once where workers have found them."""
        if engine.has_workers:
            reads = {"rows": self.rows, "among": self.among}
            engine.transform(RANKED, reads, (self.key,), self._ranked, ())
            ranked = pl.concat(engine.stream(exp.select("*").from_(RANKED)))
            if not ranked.is_empty():
                yield ranked.sort(self.key, maintain_order=True)
            return
        for condition in _ranges(engine, self.sizes, self.key):
            batch = engine.fetch(_within(self.rows, condition))
            if not batch.is_empty():
                yield from self.function(batch, engine.stream(_within(self.among, condition)))

    def _ranked(self, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """All rows of some values of the key with their ranks."""
        return pl.concat(self.function(frames["rows"], iter([frames["among"]])))


@dataclass(frozen=True)
class Reduction:
    """A table that a pure function makes of many rows: rows in order, or rows ranked among others.

    Attributes:
        into: Name of the table.
        rows: The rows, in the order in which they are handed over; or those that are ranked among others.
        reads: Small relations it needs too, by name.
        function: Turns the blocks of rows and the frames into the table, for all groupings together.
    """

    phase: ClassVar[Phase] = Phase.FRAMES
    into: str
    rows: exp.Query | RankedAmong
    reads: Mapping[str, exp.Query]
    function: Callable[[Iterator[pl.DataFrame], Mapping[str, pl.DataFrame]], pl.DataFrame]

    def run(self, engine: Engine, progress: Progress) -> None:
        """Add the table."""
        blocks = self.rows.blocks(engine) if isinstance(self.rows, RankedAmong) else engine.stream(self.rows)
        progress.tables[self.into] = self.function(blocks, frames_of(engine, self.reads))

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - all nodes are called alike
        """The queries of the rows."""
        if isinstance(self.rows, RankedAmong):
            ranked = {"to be ranked": self.rows.rows, "they are ranked among": self.rows.among}
            yield from shown_reads(ranked, self.into, self.rows.function)
            yield from shown_reads({"per batch": self.rows.sizes}, self.into, self.rows.function)
        else:
            yield Statement(f"rows in order, for {self.into}", self.rows, function=self.function)
        yield from shown_reads(self.reads, self.into, self.function)


def _within(query: exp.Query, condition: exp.Expr | None) -> exp.Query:
    return query if condition is None else exp.select("*").from_(query.subquery("rows_of_batches")).where(condition)


def _ranges(engine: Engine, sizes: exp.Query, name: str) -> Iterator[exp.Expr | None]:
    """Ranges of a key that have about as many rows as a batch may have."""
    edges = engine.fetch(_starts(sizes, column(name)))["start"].sort().to_list()[1:]
    for start, stop in pairwise([None, *edges, None]):
        limits: list[exp.Expr] = [column(name) >= exp.convert(start)] if start is not None else []
        limits += [column(name) < exp.convert(stop)] if stop is not None else []
        yield exp.and_(*limits) if limits else None


def _starts(sizes: exp.Query, key: exp.Column) -> exp.Select:
    """The first key of every batch: keys in order, cut where the rows up to them fill one more batch."""
    in_order = exp.Order(expressions=[exp.Ordered(this=key.copy())])
    until = exp.Window(this=exp.Sum(this=column("n_rows")), order=in_order)
    share = exp.Div(this=exp.cast(until, "DOUBLE"), expression=exp.Literal.number(BATCH_ROWS))
    batch = exp.alias_(exp.Ceil(this=share), "batch")
    numbered = exp.select(key.copy(), batch).from_(sizes.subquery("sizes"))
    start = exp.alias_(exp.Min(this=key.copy()), "start")
    return exp.select(start).from_(numbered.subquery("numbered")).group_by(column("batch"))
