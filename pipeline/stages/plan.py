"""What a stage asks of an engine, as data: it can be run, rendered or looked at."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.dialect import column

if TYPE_CHECKING:
    from collections.abc import Callable

    from pipeline.sources.bins import Grid
    from pipeline.sources.rows import Grouped, Relation
    from pipeline.sources.source import Source

BIN = "bin"
REPLICATE = "replicate"

Parameters = dict[str, float]


@dataclass(frozen=True)
class Check:
    """A query whose rows are faults.

    Attributes:
        query: Returns no row when all is well.
        explain: Turns the rows, as dictionaries, into (message, remedy).
    """

    query: exp.Query
    explain: Callable[[list[dict[str, object]]], tuple[str, str]]


@dataclass(frozen=True)
class CountQuery:
    """One counting query of sql/.

    Attributes:
        name: `<stage>/<file>`.
        params: Values of its parameters.
        swept: Whether it reads the row relation and groups by its bin.
    """

    name: str
    params: Parameters = field(default_factory=dict)
    swept: bool = False


@dataclass(frozen=True)
class Sweep:
    """The row relation, with its bin still open.

    Attributes:
        name: Logical name of the relation that swept queries read.
        rows: Query of the rows, without a bin.
        score: The column that is compared with the thresholds.
        grid: The thresholds; None: every distinct score is one, and the bin is the score.
    """

    name: str
    rows: exp.Select
    score: str
    grid: Grid | None

    def by_cell(self) -> exp.Select:
        """Rows with their arithmetic cell as bin; without a grid the score itself, -0 as 0."""
        score = column(self.score)
        zero = exp.Add(this=score.copy(), expression=exp.cast(exp.Literal.string("0"), "DOUBLE"))
        return self._with_bin(zero if self.grid is None else self.grid.cell(score))

    def exactly(self, cells: list[int]) -> exp.Select:
        """Rows of the given cells with their exact bin, by comparisons."""
        if self.grid is None:
            message = "without a grid every cell is exact"
            raise ValueError(message)
        score = column(self.score)
        inside = exp.In(this=self.grid.cell(score), expressions=[exp.Literal.number(cell) for cell in cells])
        return self._with_bin(self.grid.exact(score)).where(inside)

    def _with_bin(self, value: exp.Expr) -> exp.Select:
        bin_column = exp.alias_(value, BIN, quoted=True)
        return exp.select("*", bin_column).from_(self.rows.subquery("canonical_rows"))


@dataclass(frozen=True)
class Plan:
    """Everything that reads data for one stage.

    Attributes:
        sources: The inputs, the row input first.
        by: The grouping columns in order.
        relations: Relations to define before the checks, in order.
        checks: Faults that only a scan shows; the first with rows stops the stage.
        sweep: The row relation of the swept queries.
        counts: The counting queries; their rows add up to the count table.
        used: The count columns that together count every used row of the row input once.
        accounting: Query that says what became of every row of the row input; asked only when rows were left out.
        warnings: What the user should know before the numbers are used.
        facts: Choices made for the user, kept in the run record.
    """

    sources: tuple[Source, ...]
    by: tuple[Grouped, ...]
    relations: tuple[Relation, ...]
    checks: tuple[Check, ...]
    sweep: Sweep
    counts: tuple[CountQuery, ...]
    used: tuple[str, ...]
    accounting: CountQuery
    warnings: tuple[str, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)
