"""Matchers side by side in one input of pairs: each of them compared the same pairs, so these are counted for each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import DataError
from ...plan.nodes import Relation
from ...queries.load import statement
from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl
    import sqlglot.expressions as exp

    from ...plan import rows
    from .contract import Compared

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

    def relations(self, of_events: Sequence[str]) -> Iterator[Relation]:
        """The matchers, numbered from 1, and the events that pairs were compared with, once for each of them.

        Args:
            of_events: Columns of the events that counting needs.
        """
        query = statement("before_after/matchers", self.columns) if self else statement("before_after/one_matcher")
        yield Relation(MATCHERS, query, keep=True)
        segment = {"events": of_events, "matchers": self.columns}
        yield Relation(COMPARED_EVENTS, statement("before_after/compared_events", segment))

    def numbered(self, columns: Sequence[str]) -> exp.Query:
        """Used pairs with the number of their matcher, and with some of their columns."""
        return statement("before_after/pairs_of_matchers", {"used_pairs": columns, "matchers": self.columns})

    def frames(self) -> dict[str, exp.Query]:
        """What `repeated` needs."""
        return {MATCHERS: statement("before_after/known_matchers", self.columns)} if self else {}

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
        matcher_columns = [name for name in segment if name in self.columns]
        copies = counts.join(matchers.select(*matcher_columns, MATCHER), how="cross").drop(MATCHER)
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
