"""Sums over the rows of every unit: counts at a threshold, and what the rows add to the areas of their group."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ..base.columns import doubles
from ..base.dialect import column, kept
from ..base.records import dataclass
from ..base.sql_files import expand, load
from ..metrics.curves.influence import Influences, Steps, influences_of_thresholds, influences_of_ties, steps_of_scores
from ..metrics.curves.ordered_areas import ROW_AREAS, Rows
from ..metrics.curves.trapezoidal_area import AreaCells, CellGrid, Extremes, finer, rounded_outwards
from ..sources.bins import BLOCK
from .nodes import Phase, Statement
from .rows import CELL, rows_in_cells, span_of_scores

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..engines.engine import Engine
    from .nodes import Progress


Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"

AREAS = ("average_precision", "pr_auc", "roc_auc")
SIDES = ("negative", "positive")  # by the label as an integer
PLACE, UNIT = "_place", "unit"


@dataclass(frozen=True)
class GroupCurves:
    """Facts about the groups of one grouping, known before their rows are read again.

    Attributes:
        columns: The grouping columns.
        groups: One row per group: its values of the grouping columns, and whatever else is known of it.
        lowest: Shape (groups,): lowest score that the chosen threshold retrieves; nan: none was chosen.
        thresholds: In ascending order of group and value.
        retrieved: What each threshold retrieves.
        at_or_above: Whether a score equal to a threshold is retrieved.
        rows: Number of rows of all groups.
    """

    columns: tuple[str, ...]
    groups: pl.DataFrame
    lowest: Floats
    thresholds: Floats
    retrieved: Steps
    at_or_above: bool
    rows: int

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.groups.height

    @property
    def numbered(self) -> pl.DataFrame:
        """The grouping columns and the index of every group."""
        return self.groups.select(*self.columns, pl.int_range(pl.len(), dtype=pl.Int64).alias(PLACE))

    def places(self, rows: pl.DataFrame) -> pl.Series:
        """Index of the group of each row."""
        if not self.columns:
            return pl.Series(PLACE, np.zeros(rows.height, dtype=np.int64))
        keys = list(self.columns)
        joined = rows.select(keys).join(self.numbered, on=keys, how="left", nulls_equal=True, maintain_order="left")
        return joined[PLACE]

    def steps(self, group: Integers, scores: Floats) -> Integers:
        """Index of the highest threshold that retrieves each score; -1: none does."""
        groups = self.retrieved.group, group
        return steps_of_scores(groups, self.thresholds, scores, at_or_above=self.at_or_above)


@dataclass(frozen=True)
class SummedUnits:
    """The units of one grouping.

    Attributes:
        frame: One row per group and unit, in their order: `PLACE`, `UNIT`, and of each side `n_<side>` rows,
            `n_retrieved_<side>` of them retrieved by the chosen threshold, the same as `weight_…` where rows have
            weights, and `<area>_<side>`, the sum of influences times weights.
        slopes: Shape (groups,) by area: derivative with respect to the logit of the share of positives.
    """

    frame: pl.DataFrame
    slopes: Mapping[str, Floats]


def slopes_of(influences: Mapping[str, Influences]) -> dict[str, Floats]:
    """The slopes alone."""
    return {area: of_area.slope for area, of_area in influences.items()}


def sums_of_rows(rows: pl.DataFrame, curves: GroupCurves, *, weighted: bool) -> SummedUnits:
    """Add up all rows at once, every score a tie.

    Sums are made in an order of all that is read of a row, so that they do not depend on the order of the rows.

    Args:
        rows: The grouping columns, `unit`, `score`, `label`, and `weight` if weighted.
        curves: What is known of the groups.
        weighted: Whether rows have weights.
    """
    number = pl.col(UNIT).rank("dense").cast(pl.Int64).alias("_unit")
    names = ["score", "label", *(["weight"] if weighted else [])]
    placed = rows.select(curves.places(rows), number, pl.col("score") + 0.0, *names[1:]).sort(PLACE, *names)
    group, unit, score = (placed[name].to_numpy() for name in (PLACE, "_unit", "score"))
    label = placed["label"].to_numpy()
    weight = placed["weight"].to_numpy() if weighted else np.ones(placed.height)
    influences, steps = _influences(curves, group, score, label, weight)
    values = {"n": np.ones(placed.height)}
    with np.errstate(invalid="ignore"):
        values["n_retrieved"] = (score >= curves.lowest[group]).astype(np.float64)
    if weighted:
        values |= {"weight": weight, "weight_retrieved": weight * values["n_retrieved"]}
    for area, of_area in influences.items():
        positive, negative = (np.append(psi, 0.0) for psi in (of_area.positive, of_area.negative))  # 0 at step -1
        values[area] = weight * np.where(label, positive[steps[area]], negative[steps[area]])
    frame = _added_up(group, unit, label, values)
    units = rows.select(UNIT, number).unique("_unit").sort("_unit")[UNIT]
    named = units.gather(frame["_unit"] - 1)
    return SummedUnits(frame.drop("_unit").insert_column(1, named), slopes_of(influences))


def _influences(
    curves: GroupCurves, group: Integers, score: Floats, label: NDArray[np.bool_], weight: Floats
) -> tuple[dict[str, Influences], dict[str, Integers]]:
    """The influences on each area by step, and the step of every row; rows in ascending order of group and score."""
    begins = np.diff(group, prepend=-1) != 0
    begins[1:] |= score[1:] != score[:-1]
    starts = np.flatnonzero(begins)
    tie = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(score))))
    sides = (np.where(label, weight, 0.0), np.where(label, 0.0, weight))
    positive, negative = (np.add.reduceat(side, starts) if len(starts) else side for side in sides)
    ties = Steps.of_ties(group[starts], positive, negative, curves.size)
    influences = influences_of_ties(ties) | {"pr_auc": influences_of_thresholds(curves.retrieved)}
    steps = dict.fromkeys(influences, tie) | {"pr_auc": curves.steps(group, score)}
    return influences, steps


def _added_up(group: Integers, unit: Integers, label: NDArray[np.bool_], values: Mapping[str, Floats]) -> pl.DataFrame:
    """Sums by group and unit, of each side."""
    order = np.lexsort((unit, group))  # stable: the rows of a unit keep their order
    group, unit, label = group[order], unit[order], label[order]
    starts = np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(unit, prepend=-1) != 0))
    columns = {PLACE: group[starts], "_unit": unit[starts]}
    for name, value in values.items():
        for side, is_side in zip(SIDES, (~label, label), strict=True):
            of_side = np.where(is_side, value[order], 0.0)
            columns[f"{name}_{side}"] = np.add.reduceat(of_side, starts) if len(starts) else of_side
    counts = [pl.col(f"{name}_{side}").cast(pl.Int64) for name in ("n", "n_retrieved") for side in SIDES]
    return pl.DataFrame(columns).with_columns(counts)


# Sums over the rows of every unit where rows are too many to be put in order: they are added up by the engine.
#
# Influences are those of cells of scores, as if the rows of a cell tied. Cells are made finer until the areas of all
# groups are certain to `WIDTH`, or `ROUNDS` have passed: then the influence of hardly any row is off by more than
# that.


UNIT_ROWS, IN_CELLS, GROUPS, INFLUENCES = "unit_rows", "unit_rows_in_cells", "groups_of_units", "influences_in_cells"
INFLUENCE = "influence_"  # and the area: a column of the relation
CELLS = 65_000  # one block of cells, which engines count in a table indexed by the cell
FEWEST_CELLS = 64
MOST_CELLS_OF_GROUPS = 1 << 21
WIDTH = 1e-4
ROUNDS = 3
_MOST_BITS = 62  # of a sum


@dataclass(frozen=True)
class UnitCells:
    """The rows of one grouping, in the relation `UNIT_ROWS`.

    Attributes:
        engine: Where they are.
        curves: What is known of the groups.
        weighted: Whether rows have weights.
        missed: Whether rows may have the score minus infinity.
        span: Lowest and highest score that the files promise, for the first cells; None: rows are asked.
    """

    engine: Engine
    curves: GroupCurves
    weighted: bool
    missed: bool
    span: tuple[float, float] | None

    def sums(self) -> SummedUnits:
        """Add up the rows of every unit."""
        cells, extremes = self._narrowed()
        influences = self._influences(cells, extremes)
        scales = {area: self._scale(influences[area]) for area in AREAS}
        numbers = int(cells.score.max(initial=0)) + 1
        self.engine.fill(INFLUENCES, [self._steps(cells, influences, scales, numbers)])
        self.engine.fill(GROUPS, [self._groups(numbers)])
        query = load("areas/weighted_units" if self.weighted else "areas/units")
        counted = self.engine.fetch(expand(query, self.curves.columns), once=True)
        return SummedUnits(_by_unit(counted, scales, weighted=self.weighted), slopes_of(influences))

    def _narrowed(self) -> tuple[Rows, Extremes]:
        """Counts and extremes of cells that are fine enough; in the last round of those that there are."""
        count = max(FEWEST_CELLS, min(CELLS, MOST_CELLS_OF_GROUPS // max(self.curves.size, 1)))
        grid = CellGrid(self._span(), (count,))
        for number in range(ROUNDS):
            rows, extremes = self._cells(grid)
            cells = AreaCells(rows, extremes)
            bounds = cells.bounds(self.curves.size, weighted=self.weighted)
            open_ = max(np.nan_to_num(each.highest - each.lowest) for area in ROW_AREAS for each in bounds[area])
            if open_ <= WIDTH or number == ROUNDS - 1:
                break
            grid = finer(cells.open(bounds, extremes), count)
        return rows, extremes

    def _span(self) -> tuple[float, float]:
        return rounded_outwards(*(self.span or span_of_scores(self.engine, UNIT_ROWS, once=True)))

    def _cells(self, grid: CellGrid) -> tuple[Rows, Extremes]:
        """Counts and extremes in the cells of a grid, in ascending order of group and cell."""
        self.engine.define(IN_CELLS, rows_in_cells(grid, missed=self.missed, rows=UNIT_ROWS))
        query = load("areas/weighted_cells_of_units" if self.weighted else "areas/cells_of_units")
        counted = self.engine.fetch(expand(query, self.curves.columns), once=True)
        counted = counted.with_columns(self.curves.places(counted)).sort(PLACE, *CELL)
        block, cell, lowest, highest, positive, negative = (
            counted[name].cast(pl.Float64).to_numpy() for name in (*CELL, "lowest", "highest", "positive", "negative")
        )
        rows = Rows(counted[PLACE].to_numpy(), block * BLOCK + cell, positive, negative)
        return rows, Extremes(lowest, highest)

    def _influences(self, cells: Rows, extremes: Extremes) -> dict[str, Influences]:
        """Influences of each cell; on `pr_auc` the mean of the influences of its lowest and its highest score."""
        of_thresholds = influences_of_thresholds(self.curves.retrieved)
        ends = [self.curves.steps(cells.group, end) for end in (extremes.lowest, extremes.highest)]
        psi = []
        for values in (of_thresholds.positive, of_thresholds.negative):
            padded = np.append(values, 0.0)  # 0 at step -1, where no threshold retrieves
            psi.append((padded[ends[0]] + padded[ends[1]]) / 2)
        ties = Steps.of_ties(cells.group, cells.positive, cells.negative, self.curves.size)
        return influences_of_ties(ties) | {"pr_auc": Influences(psi[0], psi[1], of_thresholds.slope)}

    def _scale(self, influences: Influences) -> float:
        """A power of two by which influences are multiplied: to whole numbers whose sums do not overflow, or to 1."""
        values = np.concatenate([influences.positive, influences.negative])
        largest = float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
        exponent = math.frexp(largest)[1] if largest else 0
        bits = 0 if self.weighted else _MOST_BITS - max(self.curves.rows, 1).bit_length()
        return 2.0 ** (bits - exponent)

    def _steps(
        self, cells: Rows, influences: dict[str, Influences], scales: dict[str, float], numbers: int
    ) -> pl.DataFrame:
        """Two rows for each cell: the influences of its negatives and of its positives."""
        cell = 2 * (cells.group * numbers + cells.score.astype(np.int64))
        columns: dict[str, Integers | Floats] = {"step": np.concatenate([cell, cell + 1])}
        for area in AREAS:
            values = np.concatenate([influences[area].negative, influences[area].positive]) * scales[area]
            finite = np.where(np.isfinite(values), values, 0.0)
            columns[f"{INFLUENCE}{area}"] = finite if self.weighted else np.rint(finite).astype(np.int64)
        return pl.DataFrame(columns)

    def _groups(self, numbers: int) -> pl.DataFrame:
        """The groups with the first of their steps."""
        lowest = doubles("lowest_score", self.curves.lowest)
        first = (2 * numbers * pl.col(PLACE)).alias("first_step")
        return self.curves.numbered.with_columns(first, lowest).rename({PLACE: "place"})


def _by_unit(counted: pl.DataFrame, scales: dict[str, float], *, weighted: bool) -> pl.DataFrame:
    """Sums by unit and label → sums by unit, with negatives and positives in columns of their own."""
    names = ["n", "n_retrieved", *(["weight", "weight_retrieved"] if weighted else [])]
    values = [pl.col(names[:2]), pl.col(names[2:]).cast(pl.Float64)]
    values += [(pl.col(area).cast(pl.Float64) / scales[area]).alias(area) for area in AREAS]
    keys, summed = ["place", UNIT], counted.select("place", UNIT, "label", *values)
    sides = [
        summed.filter(pl.col("label") == bool(label)).drop("label").rename({n: f"{n}_{side}" for n in (*names, *AREAS)})
        for label, side in enumerate(SIDES)
    ]
    joined = sides[0].join(sides[1], on=keys, how="full", coalesce=True, nulls_equal=True)
    zeros = joined.with_columns(pl.exclude(keys).fill_null(0))
    return zeros.rename({"place": PLACE}).sort(PLACE, UNIT)


# The node of a table with a row per unit, in which the units of every group add up to its areas.


MOST_ROWS_IN_ORDER = 250_000


@dataclass(frozen=True)
class Units:
    """A table with a row per group and unit, from the rows once more.

    Few rows are put in order here; of more the engine adds up what cells of scores add to the areas.

    Attributes:
        into: The result table.
        rows: The rows: the grouping columns, `unit`, `score`, `label` and `weight`.
        by: All grouping columns.
        weighted: Whether rows have weights.
        missed: Whether rows may have the score minus infinity.
        span: Lowest and highest score that the files promise; only a hint.
        curves: What is known of the groups of every grouping, from the result tables.
        function: Makes the table.
    """

    phase: ClassVar[Phase] = Phase.AFTER_RESULTS
    into: str
    rows: exp.Query
    by: tuple[str, ...]
    weighted: bool
    missed: bool
    span: tuple[float, float] | None
    curves: Callable[[Mapping[str, pl.DataFrame]], Sequence[GroupCurves]]
    function: Callable[[SummedUnits, GroupCurves], pl.DataFrame]

    def run(self, engine: Engine, progress: Progress) -> None:
        """Replace the table, which has no row so far."""
        engine.define(UNIT_ROWS, self.rows)
        curves = self.curves(progress.tables)
        summed = self._in_order(engine, curves) if self._fits(engine, curves) else self._in_cells(engine, curves)
        tables = [self.function(units, of_grouping) for units, of_grouping in zip(summed, curves, strict=True)]
        if tables:
            progress.fill(self.into, pl.concat(tables, how="diagonal_relaxed"))

    @staticmethod
    def _fits(engine: Engine, curves: Sequence[GroupCurves]) -> bool:
        most = min(MOST_ROWS_IN_ORDER, engine.most_in_order or MOST_ROWS_IN_ORDER)
        return max((of_grouping.rows for of_grouping in curves), default=0) <= most

    def _in_order(self, engine: Engine, curves: Sequence[GroupCurves]) -> Iterator[SummedUnits]:
        blocks = list(engine.stream(self._selected()))
        rows = pl.concat(blocks) if blocks else engine.fetch(self._selected().limit(0))
        for of_grouping in curves:
            yield sums_of_rows(rows, of_grouping, weighted=self.weighted)

    def _in_cells(self, engine: Engine, curves: Sequence[GroupCurves]) -> Iterator[SummedUnits]:
        for of_grouping in curves:
            yield UnitCells(engine, of_grouping, self.weighted, self.missed, self.span).sums()

    def _selected(self) -> exp.Select:
        names = (*self.by, UNIT, "score", "label", *(["weight"] if self.weighted else []))
        return kept(("unit rows", names), lambda: exp.select(*map(column, names)).from_(UNIT_ROWS))

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:
        """The rows, and what is asked of them where they are many; with every score a cell."""
        in_cells = rows_in_cells(None, missed=self.missed, rows=UNIT_ROWS)
        weighted = "weighted_" if self.weighted else ""
        title = f"rows for table {self.into}, while there are at most {MOST_ROWS_IN_ORDER:,}"
        yield Statement(f"relation {UNIT_ROWS}", self.rows, UNIT_ROWS)
        yield Statement(title, self._selected(), function=sums_of_rows)
        yield Statement(f"relation {IN_CELLS} of more rows", in_cells, IN_CELLS)
        cells = expand(load(f"areas/{weighted}cells_of_units"), by)
        yield Statement(f"cells for table {self.into}", cells, function=UnitCells.sums)
        yield Statement(f"relation {GROUPS}, made of the results", _no_group(by), GROUPS)
        yield Statement(f"relation {INFLUENCES}, made of the cells", _no_influence(weighted=self.weighted), INFLUENCES)
        yield Statement(f"units for table {self.into}", expand(load(f"areas/{weighted}units"), by))


def _no_group(by: Sequence[str]) -> exp.Select:
    """The relation of groups without a row."""
    types = {"place": "BIGINT", "first_step": "BIGINT", "lowest_score": "DOUBLE"}
    return exp.select(*map(column, by), *_nulls(types)).from_(UNIT_ROWS).where(exp.false())


def _no_influence(*, weighted: bool) -> exp.Select:
    """The relation of influences without a row."""
    types = {"step": "BIGINT"} | {f"{INFLUENCE}{area}": "DOUBLE" if weighted else "BIGINT" for area in AREAS}
    return exp.select(*_nulls(types)).where(exp.false())


def _nulls(types: Mapping[str, str]) -> list[exp.Expr]:
    return [exp.alias_(exp.cast(exp.null(), sql_type), name) for name, sql_type in types.items()]
