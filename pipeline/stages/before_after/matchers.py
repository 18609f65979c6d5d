"""Matchers side by side in one input of pairs: each of them compared the same pairs, so these are counted for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.errors import DataError
from pipeline.plan.nodes import Relation
from pipeline.queries.dialect import column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from pipeline.plan import rows
    from pipeline.stages.before_after.contract import Compared

MATCHER = "matcher"
MATCHERS = "matchers"
COMPARED_EVENTS = "compared_events"


@dataclass(frozen=True)
class Matchers:
    """The grouping columns of pairs that name the matcher.

    Where every compared pair is a row there are none: a column of pairs then describes the compared pairs.

    Attributes:
        columns: Their internal names; none: all pairs are of one matcher.
    """

    columns: tuple[str, ...]

    @classmethod
    def of(cls, by: Sequence[rows.Grouped], compared: Compared) -> Matchers:
        """Those of a run."""
        return cls(tuple(each.name for each in by if each.source == "pairs" and compared != "pairs"))

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self.columns)

    def relations(self) -> Iterator[Relation]:
        """The matchers, numbered from 1, and the events that pairs were compared with, once for each of them.

        A matcher is every combination of values in pairs that `where` keeps, NULL too, whether a pair is used or not.
        """
        query = exp.select("*").from_(exp.to_table("events").as_("e"))
        if not self:
            yield Relation(COMPARED_EVENTS, query.select(_number(exp.Literal.number(0))))
            return
        names = [column(name) for name in self.columns]
        found = exp.select(*names).distinct().from_("pairs_read").where(column("kept"))
        order = exp.Order(expressions=[exp.Ordered(this=name.copy(), nulls_first=False) for name in names])
        number = _number(exp.Window(this=exp.RowNumber(), order=order))
        numbered = exp.select(*(name.copy() for name in names), number).from_(found.subquery("values_of_pairs"))
        yield Relation(MATCHERS, numbered, keep=True)
        yield Relation(COMPARED_EVENTS, query.join(exp.to_table(MATCHERS).as_("m"), on=exp.true(), join_type="left"))

    def numbered(self, pairs: exp.Select) -> exp.Select:
        """Rows of pairs with the number of their matcher."""
        if not self:
            return exp.select("*", _number(exp.Literal.number(0))).from_(pairs.subquery("p"))
        same = (exp.NullSafeEQ(this=column(name, "p"), expression=column(name, "m")) for name in self.columns)
        every = exp.Column(this=exp.Star(), table=exp.to_identifier("p"))
        query = exp.select(every, column(MATCHER, "m")).from_(pairs.subquery("p"))
        return query.join(exp.to_table(MATCHERS).as_("m"), on=exp.and_(*same), join_type="inner")

    def frames(self) -> dict[str, exp.Query]:
        """What `repeated` needs."""
        return {MATCHERS: exp.select("*").from_(MATCHERS)} if self else {}

    def known(self, segment: Sequence[str]) -> list[str]:
        """Those of some grouping columns that do not name the matcher."""
        return [name for name in segment if name not in self.columns]

    def repeated(
        self, counts: pl.DataFrame, frames: Mapping[str, pl.DataFrame], segment: Sequence[str]
    ) -> pl.DataFrame:
        """Counts of compared pairs, once for each matcher; the rows of matchers that a segment does not part add up.

        Args:
            counts: Counts by the columns of the segment that do not name the matcher.
            frames: Those of `frames`.
            segment: The grouping columns of the result.
        """
        if not self:
            return counts
        matchers = frames[MATCHERS]
        if matchers.is_empty():  # no pair tells of any: the compared pairs are there all the same
            matchers = matchers.clear(1)
        own = [name for name in segment if name in self.columns]
        copies = counts.join(matchers.select(*own, MATCHER), how="cross").drop(MATCHER)
        return copies.select(*segment, *(name for name in counts.columns if name not in segment))

    def check(self, others: Mapping[str, bool]) -> None:
        """Refuse what has no meaning with several matchers.

        Args:
            others: What is asked for beside them, and whether it is.

        Raises:
            DataError: names it.
        """
        for name, wanted in others.items():
            if self and wanted:
                message = f"{name} does not go with a grouping column of pairs, which names the matcher"
                raise DataError(message, remedy="Run one stage for each matcher: name it in where of pairs.")


def _number(value: exp.Expr) -> exp.Expr:
    return exp.alias_(exp.cast(value, "BIGINT"), MATCHER, quoted=True)
