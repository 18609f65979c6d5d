"""The table threshold_sweep_units: counts of every unit at the chosen threshold, and its contributions to areas."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...errors import ConfigError
from ...metrics.curves.influence import Steps, UnitSums, contributions, ratio_contributions
from ...metrics.curves.operating_points import CRITERION
from ...plan.checks import missing_check
from ...plan.plan import OptionalTable
from ...plan.units import AREAS, PLACE, UNIT, GroupCurves, Units
from ...queries.dialect import column, double, is_finite
from ...queries.load import statement
from ...records import dataclass
from ...sources.source import SCORE_GIVEN
from ...tables.columns import THRESHOLD, as_key, doubles, lowest_retrieved
from ...tables.groupings import users_name
from ...tables.schemas import GROUPING, Column, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...metrics.curves.influence import Independent, Pair
    from ...plan.nodes import Check
    from ...plan.units import SummedUnits
    from ...sources.source import Source
    from ...tables.groupings import Grouping
    from .contract import ThresholdSweepParameters


# Columns of the table threshold_sweep_units.


TABLE = "threshold_sweep_units"
CELLS = ("tp", "fp", "fn", "tn")
CONFUSION = (*CELLS, *(f"{name}_weight" for name in CELLS))

_NO_THRESHOLD = "NULL: no threshold was chosen"
_WORDS = {
    "tp": "rows with a true label that the threshold retrieves",
    "fp": "retrieved rows with a false label",
    "fn": "other rows with a true label",
    "tn": "other rows with a false label",
}


def _contribution(area: str, never: str) -> Column:
    return Column(
        area,
        "DOUBLE",
        f"its [contribution](methods/threshold_sweep.md#units) to `{area}`, whose mean over the units is the area; "
        f"NULL: {never}, no weight, or a single unit with positives or with negatives",
        nullable=True,
    )


COLUMNS = (
    Column("unit", "KEY", "the value of the (first) cluster column, else the id"),
    Column("n", "BIGINT", "rows of the unit"),
    Column("n_positive", "BIGINT", "of these, rows with a true label"),
    Column("weight", "DOUBLE", "weight of its rows; NULL: no weights", nullable=True),
    Column("weight_positive", "DOUBLE", "weight of its rows with a true label; NULL: no weights", nullable=True),
    Column(
        "threshold",
        "DOUBLE",
        "the threshold of its group: that of the first operating point that has one; NULL: none was chosen",
        nullable=True,
    ),
    *(Column(name, "BIGINT", f"{words}; {_NO_THRESHOLD}", nullable=True) for name, words in _WORDS.items()),
    *(
        Column(f"{name}_weight", "DOUBLE", f"weight of the {name}; {_NO_THRESHOLD}, or no weights", nullable=True)
        for name in CELLS
    ),
    _contribution("average_precision", "no positive"),
    _contribution("pr_auc", "no positive"),
    _contribution("roc_auc", "no positive or no negative"),
)
UNITS = Table(TABLE, "one row per group and unit", COLUMNS, ("unit",))
COST = Column(
    "cost_per_row",
    "DOUBLE",
    "its [contribution](methods/threshold_sweep.md#units) to the cost per row at the threshold, whose mean over the "
    "units is that cost; NULL: the threshold was not chosen for a cost, no weight, or a single unit",
    nullable=True,
)


# The table threshold_sweep_units: counts of every unit at the chosen threshold, and its contributions to the areas.


ID = "id"
MOST_ROWS, MOST_ITEMS = 1_000_000, 250_000
CURVE, AREAS_TABLE, POINTS = (f"threshold_sweep_{name}" for name in ("curve", "areas", "operating_points"))
NO_UNIT = (
    "nothing tells which rows are of one unit: give cluster, or map the column that names the item, for example "
    'predictions = { path = "…", columns = { id = "item_id" } }'
)


@dataclass(frozen=True)
class UnitsOfSweep:
    """What threshold_sweep plans for its units.

    Attributes:
        params: The parameters.
        predictions: The input.
        relations: The relation of the rows that are counted, where it is not that of all predictions.
    """

    params: ThresholdSweepParameters
    predictions: Source
    relations: Mapping[str, str]

    @property
    def unit(self) -> str | None:
        """The column that names the unit of a row: the first cluster, else the id; None: rows have none."""
        return self.params.cluster_column or (ID if self.relations or self.predictions.is_mapped(ID) else None)

    @property
    def table(self) -> OptionalTable:
        """When the table is made.

        Raises:
            ConfigError: the config asks for it, and rows have no unit.
        """
        if self.unit is None and self.params.units is True:
            message = "units = true: nothing tells which rows are of one unit"
            raise ConfigError(message, remedy=f"{NO_UNIT.partition(': ')[2].capitalize()}.")
        check = missing_check(self.predictions, ID) if self.unit == ID else None
        lacking = "" if self.unit is not None else NO_UNIT
        most = MOST_ITEMS if self.unit == ID else MOST_ROWS
        asked, sources = self.params.units, (self.predictions,)
        return OptionalTable(TABLE, "units", asked, most, sources, told=False, lacking=lacking, check=check)

    @property
    def facts(self) -> dict[str, str]:
        """What the units are, in the words in which the record says what is independent."""
        if self.unit is None:
            return {}
        return {"units": "rows" if self.params.cluster is None else users_name(self.unit)}

    def checks(self) -> Iterator[Check]:
        """Every row has its unit where the config asks for the table; a missing cluster is refused in any case."""
        if self.params.units is True and self.unit == ID:
            yield missing_check(self.predictions, ID)

    def nodes(self, by: Sequence[str], *, weighted: bool) -> Iterator[Units]:
        """What makes the table.

        Args:
            by: All grouping columns.
            weighted: Whether rows have weights.
        """
        if self.unit is None or not self.table.is_possible:
            return
        given, missed = column(SCORE_GIVEN), self.params.counts_missed
        lowest = exp.func("coalesce", column("score"), double(-math.inf))
        columns = {"used_score": lowest if missed else given, "is_scored": exp.true() if missed else is_finite(given)}
        rows = statement(
            "threshold_sweep/unit_rows", by, columns={"unit_key": self.unit, **columns}, relations=self.relations
        )
        span = self.predictions.span("score")
        yield Units(TABLE, rows, tuple(by), weighted, missed, span, self._curves, self._rows)

    def _curves(self, tables: Mapping[str, pl.DataFrame]) -> list[GroupCurves]:
        """The groups of every grouping."""
        return [self._of_grouping(grouping, tables) for grouping in self.params.groupings]

    def _of_grouping(self, grouping: Grouping, tables: Mapping[str, pl.DataFrame]) -> GroupCurves:
        """The groups of a grouping with their areas and the threshold of the first operating point that has one."""
        keys, boundary = list(grouping.columns), self.params.boundary
        areas, curve, points = (
            tables[name].filter(pl.col(GROUPING.name) == grouping.label) for name in (AREAS_TABLE, CURVE, POINTS)
        )
        numbered = areas.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(PLACE))
        curve = _beside(curve.drop_nulls(THRESHOLD), numbered, keys).sort(PLACE, THRESHOLD)
        points = _beside(points.drop_nulls(THRESHOLD), numbered, keys).unique(PLACE, keep="first", maintain_order=True)
        groups = numbered.join(points.select(PLACE, THRESHOLD, CRITERION), on=PLACE, how="left", maintain_order="left")
        lowest = [math.nan if each is None else lowest_retrieved(each, boundary) for each in groups[THRESHOLD]]
        return GroupCurves(
            columns=grouping.columns,
            groups=groups.select(GROUPING.name, *keys, THRESHOLD, CRITERION, *AREAS),
            lowest=np.array(lowest, dtype=np.float64),
            thresholds=curve[THRESHOLD].to_numpy(),
            retrieved=_retrieved(curve, groups.height),
            at_or_above=boundary == ">=",
            rows=int(areas["n"].sum()),
        )

    def _rows(self, units: SummedUnits, curves: GroupCurves) -> pl.DataFrame:
        """The rows of one grouping."""
        frame, groups = units.frame, curves.groups
        place = frame[PLACE].to_numpy()
        weights = _of_sides(frame, "weight" if "weight_positive" in frame.columns else "n")
        series = []
        for area in AREAS:
            sums = UnitSums(place, weights, _of_sides(frame, area))
            slope = units.slopes[area] if self._has_random_sizes else np.zeros(curves.size)
            values = contributions(sums, groups[area].to_numpy(), slope, self._independent)
            series.append(doubles(area, values))
        if self._costs:
            series.append(self._contributions_to_cost(frame, groups[CRITERION].to_list()))
        of_groups = groups.select(GROUPING.name, *curves.columns, THRESHOLD).select(pl.all().gather(place))
        rows = of_groups.with_columns(as_key(frame[UNIT]), *frame.select(_counts(frame)), *series)
        return rows.with_columns(pl.when(pl.col(THRESHOLD).is_not_null()).then(pl.col(CONFUSION)))

    @property
    def _costs(self) -> dict[str, tuple[float, ...]]:
        """Costs of the outcomes, by criterion."""
        return {point.text: point.cost.by_outcome for point in self.params.operating_points if point.cost is not None}

    def _contributions_to_cost(self, frame: pl.DataFrame, criteria: Sequence[str | None]) -> pl.Series:
        """Contributions to the cost per row in groups whose threshold was chosen for a cost; elsewhere NULL."""
        place, kind = frame[PLACE].to_numpy(), "weight" if "weight_positive" in frame.columns else "n"
        (positive, negative), (tp, fp) = (_of_sides(frame, name) for name in (kind, f"{kind}_retrieved"))
        unknown = (math.nan,) * len(CELLS)
        costs = np.array([self._costs.get(criterion or "", unknown) for criterion in criteria])[place]
        of_units = (costs * np.stack((tp, fp, positive - tp, negative - fp), axis=1)).sum(axis=1)
        return pl.Series(COST.name, ratio_contributions(place, of_units, positive + negative, len(criteria))).fill_nan(
            None
        )

    @property
    def _independent(self) -> Independent:
        return "rows" if self.params.cluster is None else "clusters"

    @property
    def _has_random_sizes(self) -> bool:
        """Whether another sample would have other numbers of positives and negatives; clusters always vary in size."""
        return self.params.cluster is not None or self.params.class_sizes == "random"


def _beside(rows: pl.DataFrame, numbered: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    """Rows with the index of their group."""
    if not keys:
        return rows.with_columns(pl.lit(0, dtype=pl.Int64).alias(PLACE))
    return rows.join(numbered.select(*keys, PLACE), on=keys, how="inner", nulls_equal=True, maintain_order="left")


def _retrieved(curve: pl.DataFrame, groups: int) -> Steps:
    """What the thresholds retrieve: weights if there are any, else rows."""
    tp, fp, fn, tn = (
        curve.select(pl.coalesce(f"{name}_weight", pl.col(name).cast(pl.Float64))).to_series().to_numpy()
        for name in CELLS
    )
    place = curve[PLACE].to_numpy()
    totals = np.zeros((2, groups))
    totals[:, place] = tp + fn, fp + tn  # the same in every row of a group, but for rounding
    return Steps(place, tp, fp, totals[0], totals[1])


def _of_sides(frame: pl.DataFrame, name: str) -> Pair:
    """A sum of the positives and of the negatives."""
    positive, negative = (frame[f"{name}_{side}"].cast(pl.Float64).to_numpy() for side in ("positive", "negative"))
    return positive, negative


def _counts(frame: pl.DataFrame) -> list[pl.Expr]:
    """Rows and weights of every unit, and what the chosen threshold makes of them; of weights NULL without any."""
    columns = []
    for kind, suffix, names in (("n", "", ("n", "n_positive")), ("weight", "_weight", ("weight", "weight_positive"))):
        positive, negative, tp, fp = (
            pl.col(f"{name}_{side}") if f"{name}_{side}" in frame.columns else pl.lit(None, dtype=pl.Float64)
            for name in (kind, f"{kind}_retrieved")
            for side in ("positive", "negative")
        )
        values = (positive + negative, positive, tp, fp, positive - tp, negative - fp)
        named = (*names, *(f"{name}{suffix}" for name in CELLS))
        columns += [value.alias(name) for name, value in zip(named, values, strict=True)]
    return columns
