"""A node that counts rows and adds up their probabilities by cells of the probability, for tables of calibration."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar

import polars as pl
import sqlglot.expressions as exp

from ..errors import Note
from ..queries.dialect import column, double
from ..queries.kept import kept, part
from ..queries.load import expand, load
from ..records import dataclass
from ..sources.probability_cells import ProbabilityCells
from ..tables.schemas import COUNT_TABLE, GROUPING
from ..tables.sweep import REPLICATE, add_up
from .count_tables import BIN
from .counts import by_parent
from .nodes import Phase, Statement
from .swept_cells import HIGHEST, LOWEST, SIDES, are_narrow, as_probabilities, with_sums

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ..engines.engine import Engine
    from .count_tables import CountTables
    from .nodes import Progress
    from .optional_tables import Unfit

ROWS = "probabilities"  # the relation of the rows
CELL = "cell"
LOWER, UPPER = "cell_lower", "cell_upper"  # keys of the count table: edges of a cell, the same if it is one score
MOST_SCORES = 250_000  # rows that have a cell for every score
MOST_SUMS = 1 << 21  # cells of all groups and replicates
FINEST, COARSEST = 1024, 32


@dataclass(frozen=True)
class ProbabilitySums:
    """Sums over rows with a score from 0 to 1, by group, replicate and cell of the score.

    Few rows have a cell for every score. Of many rows cells are fixed intervals, so that sums add up over files; these
    are coarser where there are many groups or replicates.

    Attributes:
        into: The count table, with the edges of the cell as keys `LOWER` and `UPPER`.
        name: The query, which groups by `cell`.
        rows: The query of the rows, with `probability`.
        columns: Its sums.
        bins: Bins of equal width that cells must not cross.
        width: Widest bounds of a mean score that cells of the counts may leave.
        unfit: Says why the rows that were counted are no probabilities, in no group; None: in some group they are.
        replicated: Whether rows fall into replicates; else all are in replicate 0.
        beside: As for `counts.Query`.
        crossed: Likewise.
        replicated_like: Count tables whose replicates rows fall into: of both parents where they have two.
    """

    phase: ClassVar[Phase] = Phase.AREAS
    into: str
    name: str
    rows: exp.Query
    columns: tuple[str, ...]
    bins: int
    width: float
    unfit: Callable[[CountTables], Unfit | None]
    replicated: bool = False
    beside: tuple[str, ...] = ()
    crossed: tuple[str, ...] = ()
    replicated_like: tuple[str, ...] = (COUNT_TABLE,)

    def run(self, engine: Engine, progress: Progress) -> None:
        """Count, unless no group has probabilities."""
        if progress.counts[COUNT_TABLE].is_empty():
            return
        unfit = progress.counts.say(self.unfit)
        if unfit is not None:
            if not unfit.is_obvious:
                words = f"{self.into} is left out: {unfit.reason}; {self.into} = true names the first"
                progress.warnings.append(Note(words))
            return
        cells = self._cells(progress.counts)
        of_cells = {segment: _of_cells(counted, segment, cells) for segment, counted in progress.cells.items()}
        if of_cells and all(map(self._are_narrow, of_cells.values(), of_cells)):
            for segment, sums in of_cells.items():
                progress.counts.add(self.into, segment, sums, (LOWER, UPPER), self.columns)
            return
        engine.define(ROWS, self._in_cells(cells))
        for segment in progress.counts.segments(additive=True):
            sums = _with_edges(engine.fetch(self._query(segment)), cells)
            for table, rows in by_parent(sums, self.into, self.crossed):
                progress.counts.add(table, segment, rows, (LOWER, UPPER), self.columns)

    def _are_narrow(self, sums: pl.DataFrame, segment: Sequence[str]) -> bool:
        """Whether cells bound the mean score of every group closely."""
        n = (pl.col("n_positive") + pl.col("n_negative")).alias("n")
        of_groups = add_up(sums.with_columns(n), segment, ["n", "scores_open"])
        return are_narrow(of_groups.with_columns(n_outside=0), ["scores_open"], self.width)

    def _cells(self, counts: CountTables) -> ProbabilityCells | None:
        """The cells; None: every score is one."""
        table = counts[COUNT_TABLE]
        of_grouping = table.filter(pl.col(GROUPING.name) == table[GROUPING.name].first())
        if of_grouping.select(pl.sum_horizontal("n_positive", "n_negative").sum()).item() <= MOST_SCORES:
            return None
        groups = table.select(table.columns[: table.columns.index(REPLICATE)]).n_unique()
        replicates = math.prod(counts[name][REPLICATE].n_unique() for name in self.replicated_like)
        most = MOST_SUMS // (groups * replicates)
        fineness = FINEST
        while fineness > COARSEST and ProbabilityCells(fineness, self.bins).count > most:
            fineness //= 2
        return ProbabilityCells(fineness, self.bins)

    def _in_cells(self, cells: ProbabilityCells | None) -> exp.Query:
        """The rows with the number of their cell; without cells, with their score as cell, -0 as 0."""
        return kept(("in_cells", part(self.rows), cells), lambda: self._made_in_cells(cells))

    def _made_in_cells(self, cells: ProbabilityCells | None) -> exp.Query:
        score, first_bin, rows = column("probability"), column("first_bin"), self.rows.subquery("probabilities_alone")
        if cells is None:
            return exp.select(exp.Star(), exp.alias_(score + double(0.0), CELL)).from_(rows)
        in_bins = exp.select(exp.Star(), exp.alias_(cells.first_bin(score), first_bin.name)).from_(rows)
        in_cells = exp.select(exp.Star(), exp.alias_(cells.number(first_bin, score), CELL))
        return in_cells.from_(in_bins.subquery("in_bins"))

    def _query(self, segment: Sequence[str]) -> exp.Query:
        return expand(load(self.name), (*self.beside, *segment), zero=[] if self.replicated else [REPLICATE])

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:
        """The rows in the finest cells, and the sums."""
        cells = ProbabilityCells(FINEST, self.bins)
        yield Statement(f"relation {ROWS}, of many rows", self._in_cells(cells), ROWS)
        yield Statement(f"counts {self.into}", self._query(by))


def _of_cells(counted: pl.DataFrame, segment: Sequence[str], cells: ProbabilityCells | None) -> pl.DataFrame:
    """Sums by cell of the probability, from those narrower cells of scores that lie in it or begin in it.

    The edges of a cell are the lowest and the highest score of all groups in it, so that they add up over groups.
    """
    inside = counted.filter((pl.col(LOWEST) >= 0) & (pl.col(HIGHEST) <= 1))
    moments = as_probabilities(inside).moments()
    sums, values = with_sums(inside, moments), [*SIDES, *moments]
    edges = sums.group_by(BIN).agg(pl.col(LOWEST).min().alias(LOWER), pl.col(HIGHEST).max().alias(UPPER)).sort(BIN)
    if cells is not None:
        number = pl.Series(CELL, cells.numbers(edges[LOWER].to_numpy()))
        edges = edges.with_columns(pl.col(LOWER).min().over(number), pl.col(UPPER).max().over(number))
    return add_up(sums.join(edges, on=BIN), [*segment, REPLICATE, LOWER, UPPER], values)


def _with_edges(sums: pl.DataFrame, cells: ProbabilityCells | None) -> pl.DataFrame:
    """The sums with the edges of their cell in its place."""
    if cells is None:
        edges = (sums[CELL].to_numpy(), sums[CELL].to_numpy())
    else:
        edges = cells.edges(sums[CELL].cast(pl.Int64).to_numpy())
    series = [pl.Series(name, values, dtype=pl.Float64) for name, values in zip((LOWER, UPPER), edges, strict=True)]
    return sums.drop(CELL).with_columns(*series)
