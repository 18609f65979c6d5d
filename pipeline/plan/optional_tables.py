"""Result tables that are made only on request or while inputs are small, and samples of single rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

from ..records import dataclass
from .nodes import Phase, Statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import polars as pl
    import sqlglot.expressions as exp

    from ..engines.engine import Engine
    from ..sources.source import Source
    from .count_tables import CountTables
    from .nodes import Check, Progress


# A node that samples rows once results are known: it reads them in blocks and keeps a bounded number.


class Sampler(Protocol):
    """What keeps some of the rows that it is shown."""

    def see(self, rows: pl.DataFrame) -> None:
        """Keep the rows of a block that belong to the sample, as far as can be told."""
        ...

    def sample(self) -> pl.DataFrame:
        """Return the sample."""
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
    sampler: Callable[[Mapping[str, pl.DataFrame]], Sampler]

    def run(self, engine: Engine, progress: Progress) -> None:
        """Replace the table, which has no row so far, by the sample."""
        sampler = self.sampler(progress.tables)
        for block in engine.stream(self.query):
            sampler.see(block)
        table = sampler.sample()
        if not table.is_empty():
            progress.fill(self.into, table)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - the query has its columns already
        """The rows that are sampled."""
        yield Statement(f"rows for table {self.into}", self.query, function=self.sampler)


# Result tables that are made only on request, while the inputs are small, or of rows that fit them.


ANY_NUMBER_OF_ROWS = 1 << 62


@dataclass(frozen=True)
class Unfit:
    """Why the rows that were counted do not fit a table.

    Attributes:
        reason: Why, in words.
        is_obvious: Whether nobody would expect the table of such rows, so that only the record says why it is not made.
    """

    reason: str
    is_obvious: bool


@dataclass(frozen=True)
class OptionalTable:
    """A result table that is made if the config asks for it, or while the inputs are small and their rows fit it.

    Attributes:
        table: The result table.
        key: The key of the config that asks for it.
        asked: Its value: `auto` makes the table while the inputs have at most `limit` rows after `where`. Of a key with
            other values, whether it asks for the table.
        limit: Most rows of the inputs together.
        sources: The inputs whose rows are counted.
        wish: What in a config would ask for it, in words that `does` follows; empty: the value `true` of the key.
        told: Whether a run warns that the table is not made for its size; the record says so in any case.
        unfit: Says of the counts why `auto` does not make it of such rows; None: it fits all rows.
        lacking: What the inputs lack that the table is made of, in words; empty: nothing.
        check: A check whose faults leave the table out.
    """

    table: str
    key: str
    asked: Literal["auto"] | bool
    limit: int = ANY_NUMBER_OF_ROWS
    sources: tuple[Source, ...] = ()
    wish: str = ""
    told: bool = True
    unfit: Callable[[CountTables], Unfit | None] | None = None
    lacking: str = ""
    check: Check | None = None

    @property
    def is_possible(self) -> bool:
        """Whether the table may be made, as far as config and footers tell: `where` may leave few enough rows."""
        if self.lacking:
            return False
        return self.asked is True or (self.asked == "auto" and (self.is_small(self.rows) or self.is_filtered))

    @property
    def is_open(self) -> bool:
        """Whether the rows have to be counted after `where`, as the footers alone hold too many."""
        return self.asked == "auto" and self.is_filtered and not self.is_small(self.rows)

    @property
    def is_filtered(self) -> bool:
        """Whether an input has a `where`."""
        return any(source.spec.where is not None for source in self.sources)

    @property
    def rows(self) -> int:
        """Rows in the files, before `where`."""
        return sum(source.rows for source in self.sources)

    def is_small(self, rows: int) -> bool:
        """Whether so many rows are few enough."""
        return rows <= self.limit

    def why_unfit(self, counts: CountTables) -> str | None:
        """Why the rows that were counted do not fit the table, which is made of them all the same if asked for."""
        unfit = counts.say(self.unfit) if self.asked == "auto" and self.unfit is not None else None
        return None if unfit is None else unfit.reason

    def reason(self, rows: int) -> str:
        """Why the table is not made, and how to get it.

        Args:
            rows: Rows of the inputs, after `where` where it was asked.
        """
        if self.asked is False and self.wish:
            return f"nothing asks for it; {self.wish} does"
        if self.asked is False:
            return f"{self.key} = false; {self.key} = true makes it"
        if self.lacking:
            return self.lacking
        names = " and ".join(source.name for source in self.sources)
        have, together = ("have", " together") if len(self.sources) > 1 else ("has", "")
        return (
            f'{self.key} = "auto" makes it while {names} {have} at most {self.limit:,} rows{together}, and there are '
            f"{rows:,}; {self.key} = true makes it"
        )
