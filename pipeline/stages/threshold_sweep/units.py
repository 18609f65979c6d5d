"""Tables of single units and rows of threshold_sweep: counts of every unit, rows near the threshold, worst errors."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...base.columns import THRESHOLD, as_key, doubles, lowest_retrieved
from ...base.dialect import column, double, is_finite
from ...base.errors import ConfigError
from ...base.records import dataclass
from ...base.schemas import GROUPING, Column, Table, users_name
from ...base.sql_files import statement
from ...metrics.curves.influence import Steps, UnitSums, contributions, ratio_contributions
from ...metrics.curves.operating_points import CRITERION
from ...plan.nodes import missing_check
from ...plan.plan import OptionalTable
from ...plan.units import AREAS, PLACE, UNIT, GroupCurves, Units
from ...sources.source import SCORE_GIVEN

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...base.columns import Boundary
    from ...base.schemas import Grouping
    from ...metrics.curves.influence import Independent, Pair
    from ...plan.nodes import Check
    from ...plan.units import SummedUnits
    from ...sources.source import Source
    from ..sections import Asked
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
    """The plan of the table of units.

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
        """The units, in the words of the run record."""
        if self.unit is None:
            return {}
        return {"units": "rows" if self.params.cluster is None else users_name(self.unit)}

    def checks(self) -> Iterator[Check]:
        """Every row has its unit where the config asks for the table; a missing cluster is refused in any case."""
        if self.params.units is True and self.unit == ID:
            yield missing_check(self.predictions, ID)

    def nodes(self, by: Sequence[str], *, weighted: bool) -> Iterator[Units]:
        """The nodes that make the table.

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
    """Retrieved positives and negatives at the thresholds: weights if there are any, else rows."""
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


# The table threshold_sweep_outcomes: rows near the chosen threshold, and the most confident errors, of every group.


OUTCOMES = "threshold_sweep_outcomes"
_POINTS = "threshold_sweep_operating_points"
ROWS_OF_A_SAMPLE = 50
SAMPLES = ("nearest", "false_positives", "false_negatives")


@dataclass
class OutcomeSampler:
    """Keeps of every group the rows nearest to its threshold and its most confident errors.

    The threshold of a group is that of its first operating point that has one. Rows that are alike in all that is kept
    stand for each other, so that the sample does not depend on the order of the rows.

    Attributes:
        groupings: The groupings.
        points: The operating points.
        boundary: Whether a score equal to the threshold is retrieved.
    """

    groupings: Sequence[Grouping]
    points: pl.DataFrame
    boundary: Boundary
    _kept: dict[tuple[str, str], pl.DataFrame] = field(default_factory=dict)

    def see(self, rows: pl.DataFrame) -> None:
        """Keep the rows of a block that belong to a sample of the rows so far."""
        for grouping in self.groupings:
            outcomes = self._outcomes(rows, grouping)
            for sample in SAMPLES:
                before = self._kept.get((grouping.label, sample))
                together = outcomes if before is None else pl.concat([before, outcomes])
                self._kept[grouping.label, sample] = _sampled(together, sample, list(grouping.columns))

    def _outcomes(self, rows: pl.DataFrame, grouping: Grouping) -> pl.DataFrame:
        """The rows with the threshold of their group and what becomes of them there."""
        keys = list(grouping.columns)
        points = self.points.filter(pl.col(GROUPING.name) == grouping.label, pl.col(THRESHOLD).is_not_null())
        thresholds = points.group_by(keys, maintain_order=True).first() if keys else points[:1]
        thresholds = thresholds[[*keys, THRESHOLD]]
        if keys:
            joined = rows.join(thresholds, on=keys, how="inner", nulls_equal=True)
        elif thresholds.is_empty():
            joined = rows.clear().hstack(thresholds)
        else:
            joined = rows.hstack([thresholds[THRESHOLD].new_from_index(0, rows.height)])
        score, threshold = pl.col("score"), pl.col(THRESHOLD)
        retrieved = score >= threshold if self.boundary == ">=" else score > threshold
        outcome = (
            pl.when(retrieved & pl.col("label"))
            .then(pl.lit("tp"))
            .when(retrieved)
            .then(pl.lit("fp"))
            .when("label")
            .then(pl.lit("fn"))
            .otherwise(pl.lit("tn"))
        )
        distance = (score - threshold).abs()
        return joined.with_columns(outcome.alias("outcome"), distance.alias(_NEAR), (-distance).alias(_CONFIDENT))

    def sample(self) -> pl.DataFrame:
        """The samples of all groupings, each numbered in its order."""
        frames = list(self._numbered())
        return pl.concat(frames, how="diagonal") if frames else pl.DataFrame()

    def _numbered(self) -> Iterator[pl.DataFrame]:
        for grouping in self.groupings:
            keys, number = list(grouping.columns), pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
            kept = {sample: self._kept.get((grouping.label, sample)) for sample in SAMPLES}
            frames = [
                rows.hstack([pl.Series("sampled_as", [sample]).new_from_index(0, rows.height)])
                for sample, rows in kept.items()
                if rows is not None
            ]
            if frames:
                yield pl.concat(frames).select(
                    pl.lit(grouping.label).alias(GROUPING.name),
                    *keys,
                    "sampled_as",
                    number.over(["sampled_as", *keys]).alias("sample_rank"),
                    THRESHOLD,
                    *(name for name in ("id",) if name in frames[0].columns),
                    pl.when(pl.col("score").is_finite()).then("score").alias("score"),
                    "label",
                    "weight",
                    "outcome",
                )


_NEAR, _CONFIDENT = "_distance", "_distance_of_errors"  # what orders samples; of errors the largest distance is first


def _sampled(rows: pl.DataFrame, sample: str, keys: list[str]) -> pl.DataFrame:
    """The first rows of a sample of every group, in an order of all that is kept of a row."""
    belongs = pl.col("outcome") == ("fp" if sample == "false_positives" else "fn")
    by = _NEAR if sample == "nearest" else _CONFIDENT
    candidates = rows.filter(pl.col("score").is_finite() if sample == "nearest" else belongs)
    if candidates.height > ROWS_OF_A_SAMPLE or candidates[by].null_count():
        last = pl.col(by).bottom_k(ROWS_OF_A_SAMPLE).max()
        candidates = candidates.filter(pl.col(by) <= (last.over(keys) if keys else last))  # with all ties of the last
    order = [*keys, by, *(name for name in ("score", "label", "id", "weight") if name in rows.columns)]
    ordered = candidates.sort(order, nulls_last=True, descending=[name == "score" for name in order])
    return ordered.filter(pl.int_range(pl.len()).over(keys) < ROWS_OF_A_SAMPLE) if keys else ordered[:ROWS_OF_A_SAMPLE]


# What tells people which prediction a row is.


LOCATION = ("source_file", "file_row_number")
INPUTS = {"predictions": {name: name for name in LOCATION}}


def identity(asked: Asked) -> tuple[str, ...]:
    """The columns by which people recognise a row, beside its place in the files: groups, id and clusters."""
    predictions = asked.plan.sources[0]
    clusters = (asked.params.cluster_column, asked.params.second_cluster_column)
    ids = ("id",) if asked.params.labels is not None or predictions.is_mapped("id") else ()
    return tuple(dict.fromkeys((*asked.by, *ids, *(name for name in clusters if name is not None))))


def location_of_known(asked: Asked) -> tuple[str, ...]:
    """The place of rows in the files, where they have an id that tells which they are."""
    return LOCATION if "id" in identity(asked) else ()
