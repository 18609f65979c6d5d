"""Decisions in threshold_sweep: costs, net benefit, groups put together, and other prevalences."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from ...base.columns import IN_TIME, REPLICATE, THRESHOLD, by_group, divide, doubles, lowest_retrieved, nulls, ratios
from ...base.records import dataclass
from ...base.schemas import GROUPING, TOTAL, Column, limits_of
from ...metrics.curves.decisions import NOTHING, Payoffs, Rate, Rates, allocate, correlation_of_rates, of_smaller
from ...metrics.curves.operating_points import COST, CRITERION, Outcomes, asked_of, cost_columns, pick
from ...metrics.uncertainty.limits import (
    INTERVAL_QUALITY,
    UNDEFINED_INTERVAL,
    Interval,
    intervals_of,
    limit_columns,
    limit_names,
    limit_series,
    no_limits,
    of_chosen,
    with_quality,
)
from ...metrics.uncertainty.proportions import PROPORTIONS, Confusion, Weights, intervals_of_clusters
from ...metrics.uncertainty.replicates import Cube
from ..parameters import FEWEST_REPLICATES
from ..stage import doubt
from .areas import CLUSTERS
from .contract import (
    CONFUSION,
    COST_PER_ROW,
    CROSSED,
    HEAVIEST,
    confusion_of,
    confusion_of_rows,
    kind_of_counts,
    limits_of_rows,
    outcomes,
)
from .units import COST as OF_UNIT
from .units import TABLE as UNITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ...metrics.curves.operating_points import Criterion
    from ...metrics.uncertainty.jackknife import Floats, Limits
    from ...metrics.uncertainty.replicates import GroupCounts
    from .contract import ThresholdSweepParameters
    from .few_labels import Estimates


# Cost per row of threshold_sweep, with its interval: at the operating points, and of groups put together.


PER_ROW = (
    Column(
        COST_PER_ROW,
        "DOUBLE",
        "cost divided by all rows, of the weights if there are any; NULL: not reached, or a criterion without costs",
        nullable=True,
    ),
    *limits_of(COST_PER_ROW),
)


def columns_of_costs(params: ThresholdSweepParameters) -> dict[str, tuple[Column, ...]]:
    """The columns of costs that operating points and units have if a criterion has costs."""
    columns = cost_columns(params.operating_points)
    return {"threshold_sweep_operating_points": (*columns, *PER_ROW), UNITS: (OF_UNIT,)} if columns else {}


def with_cost_per_row(
    points: pl.DataFrame, labels: Sequence[str], params: ThresholdSweepParameters, cuts: Callable[[], Cuts] | None
) -> pl.DataFrame:
    """Rows of outcomes with `cost_per_row` and its limits; as they are if no criterion has costs.

    Args:
        points: With `criterion`, `cost`, the outcomes, their weights and squares, and the heaviest weights.
        labels: Columns that tell the rows apart, `criterion` among them.
        params: The parameters.
        cuts: The counts of the rows by replicate, told apart by the labels, where clusters are independent; None:
            intervals between clusters are beyond the budget.
    """
    costs = [point for point in params.operating_points if point.cost is not None]
    if not costs:
        return points
    counts = outcomes()
    total = counts.retrieved + counts.fn + (counts.tn if counts.tn is not None else 0.0)
    payoffs = {point.text: Payoffs(*point.cost.by_outcome) for point in costs if point.cost is not None}
    points = points.with_columns(divide(pl.col(COST), total).alias(COST_PER_ROW))
    limits = np.full((2, points.height), np.nan)
    if params.cluster is None and params.is_replicated:
        for criterion, payoff in payoffs.items():
            rows = points.with_row_index("_row").filter(pl.col(CRITERION) == criterion, pl.col(COST).is_not_null())
            limits[:, rows["_row"].to_numpy()] = payoff.limits_of_rows(*confusion_of_rows(rows), params.confidence)
    elif params.is_replicated and cuts is not None:
        _fill_of_clusters(limits, points, labels, cuts(), payoffs, params)
    return points.with_columns(*limit_series(COST_PER_ROW, (limits[0], limits[1])))


def _fill_of_clusters(
    limits: Floats,
    points: pl.DataFrame,
    labels: Sequence[str],
    cuts: Cuts,
    payoffs: Mapping[str, Payoffs],
    params: ThresholdSweepParameters,
) -> None:
    """Write the limits of every row that has a cost."""
    numbers = {label: number for number, label in enumerate(points.select(labels).rows())}
    criteria, has_cost = points[CRITERION].to_list(), points[COST].is_not_null().to_list()
    for label, (counts, *crossed) in cuts.by_replicate():
        number = numbers[label]
        replicates = min(len(clustering.tp) for clustering in (counts, *crossed))
        if not has_cost[number] or replicates < FEWEST_REPLICATES:
            continue
        heaviest = points.select(HEAVIEST).row(number) if cuts.kind == "weight" else None
        of_row = payoffs[criteria[number]].limits_of_clusters(
            counts, params.confidence, heaviest=heaviest, crossed=crossed, resampling=params.resampling
        )
        limits[:, number] = [limit[0] for limit in of_row]


def is_about_cost(points: pl.DataFrame) -> bool:
    """Whether the criterion of some operating points has costs."""
    return COST_PER_ROW in points.columns and points[COST_PER_ROW].null_count() < points.height


def cost_text(row: Mapping[str, object]) -> str:
    """The cost per row for people, without limits."""
    return _short(row[COST_PER_ROW])


def cost_cell(row: Mapping[str, object], quality: str) -> str:
    """The cost per row and its limits for people, with a mark where these are doubtful."""
    lower, upper = (row[f"{COST_PER_ROW}_{side}"] for side in ("lower", "upper"))
    dash = "–" if isinstance(lower, float) and lower >= 0 else " to "
    limits = "" if lower is None else f" ({_short(lower)}{dash}{_short(upper)}){doubt(row, quality)}"
    return f"{cost_text(row)}{limits}"


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "–"


# Outcomes where groups are cut at thresholds, by replicate: of single groups, or of several put together.


CUT = "_cut"
Kind = Literal["n", "weight", "squares"]


@dataclass(frozen=True)
class Cuts:
    """Counts at thresholds, by what the cuts are told apart by.

    Attributes:
        labels: What a cut is told by.
        frames: For the one clustering, or for both parents and their intersections: columns `labels`, `replicate`, and
            for every kind of counts the outcomes, such as `n_tp` and `weight_fn`.
        kind: The counts that ratios are of.
        in_time: Whether the replicates follow each other in time.
    """

    labels: tuple[str, ...]
    frames: tuple[pl.DataFrame, ...]
    kind: Literal["n", "weight"]
    in_time: bool = False

    @classmethod
    def of(cls, cube: Cube, cuts: pl.DataFrame, labels: Sequence[str]) -> Cuts:
        """Cut every group.

        Args:
            cube: The counts of the groups.
            cuts: The keys of the cube, `labels`, and `_cut`: the threshold, NULL where nothing of a group is retrieved.
                A group is in no cut of which it has no row.
            labels: What tells cuts apart; counts of groups with the same labels are added up.
        """
        names = list(dict.fromkeys(labels))
        is_above = cube.thresholds is None and cube.boundary == ">"
        frames = (_cut(counts, cuts, list(cube.keys), names, is_above=is_above) for counts in _clusterings(cube))
        return cls(tuple(names), tuple(frames), kind_of_counts(cube.counts), cube.in_time)

    def totals(self) -> pl.DataFrame:
        """One row per cut: the labels and the outcomes of all replicates; weights and squares as DOUBLE."""
        names = [f"{kind}_{outcome}" for kind in ("n", "weight", "squares") for outcome in CONFUSION]
        summed = self.frames[0].group_by(self.labels, maintain_order=True).agg(pl.col(names).sum())
        return summed.with_columns(pl.col(name).cast(pl.Float64) for name in names[len(CONFUSION) :])

    def by_replicate(self) -> Iterator[tuple[tuple[object, ...], list[Confusion]]]:
        """The labels of every cut, and its counts by replicate, of shape (G, 1), by each clustering."""
        tables = [by_group(frame, self.labels) for frame in self.frames]
        for label, rows in tables[0].items():
            yield label, [self._confusion(rows), *(self._confusion(table[label]) for table in tables[1:])]

    def _confusion(self, rows: pl.DataFrame) -> Confusion:
        rows = rows.sort(REPLICATE)
        columns = (rows[f"{self.kind}_{outcome}"].cast(pl.Float64).to_numpy() for outcome in CONFUSION)
        return Confusion(*(np.asarray(column)[:, None] for column in columns), in_time=self.in_time)


def _clusterings(cube: Cube) -> tuple[pl.DataFrame, ...]:
    return (cube.counts, *cube.crossed)


def _cut(
    counts: pl.DataFrame, cuts: pl.DataFrame, keys: list[str], labels: list[str], *, is_above: bool
) -> pl.DataFrame:
    """The outcomes by labels and replicate; sums of decimals are exact."""
    joined = counts.join(cuts.select(*dict.fromkeys((*keys, *labels, CUT))), on=keys, how="inner", nulls_equal=True)
    at, cut = pl.col(THRESHOLD), pl.col(CUT)
    retrieved = (at > cut if is_above else at >= cut).fill_null(value=False)
    sums = []
    for kind in ("n", "weight", "squares"):
        sides = (pl.col(f"{kind}_positive"), pl.col(f"{kind}_negative"))
        hits = [side.filter(retrieved).sum() for side in sides]
        misses = [side.filter(~retrieved).sum() for side in sides]
        sums += [value.alias(f"{kind}_{name}") for value, name in zip((*hits, *misses), CONFUSION, strict=True)]
    summed = joined.group_by([*labels, REPLICATE]).agg(*sums)
    return summed.sort([*labels, REPLICATE], nulls_last=True)


# The table threshold_sweep_allocations: how many of the alerts that all groups share each group gets.


N_ALERTS = "n_alerts"
_ROUNDING = 1e-9


def allocations(params: ThresholdSweepParameters, curve: pl.DataFrame, label: str) -> pl.DataFrame:
    """The threshold of every group of a grouping, for every criterion with a capacity.

    Rows with weights have no allocation, and neither has a capacity for which the exact search would be too large.

    Args:
        params: The parameters.
        curve: The curve.
        label: The grouping.
    """
    keys = curve.columns[: curve.columns.index(THRESHOLD)]
    rows = curve.filter(pl.col(GROUPING.name) == label).sort([*keys, THRESHOLD], nulls_last=True)
    retrieved = (pl.col("tp") + pl.col("fp")).alias(N_ALERTS)
    rows = rows.select(*keys, THRESHOLD, *CONFUSION, retrieved, pl.col("tp_weight").is_not_null().alias("_is_weighted"))
    nothing = _allocated(rows.clear(), "")
    limited = [criterion for criterion in params.operating_points if criterion.has_capacity]
    if not limited or rows["_is_weighted"].any():
        return nothing
    groups = list(by_group(rows, keys).values())
    counts = [(group[N_ALERTS].to_numpy(), group["tp"].to_numpy()) for group in groups]
    shares = [allocate(counts, _capacity(criterion, groups)) for criterion in limited]
    allocated = (
        _allocated(pl.concat(map(_at, groups, numbers)), criterion.text)
        for criterion, numbers in zip(limited, shares, strict=True)
        if numbers is not None
    )
    return pl.concat([nothing, *allocated])


def not_allocated(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """A warning of criteria whose alerts were not shared out because the search was too large; none without any."""
    pooled = tables.get("threshold_sweep_pooled_points")
    if pooled is None:
        return ()
    counted = pooled.filter(pl.col("tp_weight").is_null(), pl.col(CRITERION).str.starts_with("max_alert"))
    without = counted.group_by("pooled", CRITERION, maintain_order=True).agg(
        (pl.col("thresholds") == "allocated").any().alias("is_allocated")
    )
    texts = without.filter(~pl.col("is_allocated"))[CRITERION].unique(maintain_order=True).to_list()
    if not texts:
        return ()
    words = (
        "the alerts are not shared out over groups: an exact search would be too large; give fewer alerts or thresholds"
    )
    return (f"{', '.join(texts)}: {words}",)


def _capacity(criterion: Criterion, groups: list[pl.DataFrame]) -> int:
    """The most rows to retrieve of all groups."""
    if criterion.max_alerts is not None:
        return criterion.max_alerts
    total = sum(sum(group.row(0, named=True)[name] for name in CONFUSION) for group in groups)
    return math.floor(total * (criterion.max_alert_share or 1.0) * (1 + _ROUNDING))


def _at(group: pl.DataFrame, number: int) -> pl.DataFrame:
    """The row of a group at a threshold; without one nothing is retrieved."""
    if number != NOTHING:
        return group[[number]]
    nothing = pl.lit(0, dtype=pl.Int64)
    return group[[0]].with_columns(
        pl.lit(None, dtype=pl.Float64).alias(THRESHOLD),
        nothing.alias("tp"),
        nothing.alias("fp"),
        nothing.alias(N_ALERTS),
        (pl.col("tp") + pl.col("fn")).alias("fn"),
        (pl.col("fp") + pl.col("tn")).alias("tn"),
    )


def _allocated(rows: pl.DataFrame, criterion: str) -> pl.DataFrame:
    """The rows of a criterion, with the columns of the table."""
    tp, fp, fn = (pl.col(name) for name in ("tp", "fp", "fn"))
    return rows.with_columns(
        pl.lit(criterion).alias(CRITERION),
        divide(tp, tp + fp).alias("precision"),
        divide(tp, tp + fn).alias("recall"),
    ).drop("_is_weighted")


# The table threshold_sweep_pooled_points: all groups together, each cut at its own threshold or all at a common one.
#
# A threshold for each group does better on the rows that it was chosen on than one for all, and may do so on new
# rows. A group in which a criterion is not reached has no threshold, and nothing of it is retrieved. Alerts that all
# groups share are given to the groups where they hold the most true positives (`allocations`).


POOLED, THRESHOLDS = "pooled", "thresholds"
OWN, COMMON, ALLOCATED = "own", "common", "allocated"
LABELS = (POOLED, CRITERION, THRESHOLDS)
OF_COSTS = (COST, COST_PER_ROW, f"{COST_PER_ROW}_lower", f"{COST_PER_ROW}_upper")
TABLES = ("threshold_sweep_pooled_points", "threshold_sweep_allocations")


@dataclass(frozen=True)
class Swept:
    """The results that the stage has derived already.

    Attributes:
        cube: Its counts.
        curve: The curve with squares and heaviest weights.
        points: The operating points, likewise.
        clusters: `clusters_of_groups`.
        estimates: What labels of a sample say of all rows; None where all rows have labels.
    """

    cube: Cube
    curve: pl.DataFrame
    points: pl.DataFrame
    clusters: pl.DataFrame
    estimates: Estimates | None = None


def pooled_tables(params: ThresholdSweepParameters, swept: Swept) -> dict[str, pl.DataFrame]:
    """The tables of pooled points and of allocated alerts; none without the total, or without a group beside it."""
    groupings = groupings_to_pool(params)
    if not groupings or swept.curve.is_empty():
        return {}
    allocated = pl.concat([allocations(params, swept.curve, label) for label in groupings])
    rows = []
    for label in groupings:
        cuts = _cuts(params, swept, allocated, label)
        if cuts.is_empty():
            continue
        counted = Cuts.of(_of_grouping(swept.cube, label), cuts, LABELS)
        rows.append(_with_intervals(_with_ratios(counted, cuts, swept), counted, params))
    if not rows:
        return {}
    table = _marked(pl.concat(rows), swept, params)
    return dict(zip(TABLES, (table, allocated), strict=True))


def groupings_to_pool(params: ThresholdSweepParameters) -> list[str]:
    """The groupings whose groups are put together: those beside the total, none without it."""
    labels = [grouping.label for grouping in params.groupings if grouping.columns]
    return labels if len(labels) < len(params.groupings) else []


def _of_grouping(cube: Cube, label: str) -> Cube:
    """The counts of the groups of one grouping."""
    counts, *crossed = (table.filter(pl.col(GROUPING.name) == label) for table in (cube.counts, *cube.crossed))
    return Cube.of(counts, cube.keys, cube.thresholds, cube.boundary, crossed, in_time=cube.in_time)


def _cuts(params: ThresholdSweepParameters, swept: Swept, allocated: pl.DataFrame, label: str) -> pl.DataFrame:
    """Where each group is cut: its keys, `LABELS`, `_cut`, and the criterion's threshold where it is common to all."""
    keys = list(swept.cube.keys)
    is_own = {point.text: not point.is_given and point.max_alerts is None for point in params.operating_points}
    of_groups = swept.points.filter(pl.col(GROUPING.name) == label)
    groups = of_groups.select(keys).unique(maintain_order=True)
    common = swept.points.filter(pl.col(GROUPING.name) == TOTAL).select(CRITERION, THRESHOLD)
    criteria = [text for text, wanted in is_own.items() if wanted]
    frames = {
        OWN: of_groups.filter(pl.col(CRITERION).is_in(criteria)),
        COMMON: groups.join(common, how="cross"),
        ALLOCATED: allocated.filter(pl.col(GROUPING.name) == label),
    }
    at = pl.col(THRESHOLD)
    return pl.concat(
        frame.select(
            *keys,
            pl.lit(label).alias(POOLED),
            CRITERION,
            pl.lit(name).alias(THRESHOLDS),
            at.alias(CUT),
            (at if name == COMMON else pl.lit(None, dtype=pl.Float64)).alias(THRESHOLD),
        )
        for name, frame in frames.items()
    )


def _with_ratios(counted: Cuts, cuts: pl.DataFrame, swept: Swept) -> pl.DataFrame:
    """One row per cut, with the columns of a curve; a common threshold that is not reached leaves all NULL."""
    n_groups = cuts.group_by(LABELS).agg(
        pl.len().cast(pl.Int64).alias("n_groups"),
        pl.col(CUT).is_null().sum().cast(pl.Int64).alias("n_without_threshold"),
        pl.col(THRESHOLD).first(),
    )
    is_weighted = pl.lit(counted.kind == "weight")
    totals = counted.totals().select(
        *LABELS,
        *(pl.col(f"n_{name}").cast(pl.Int64).alias(name) for name in CONFUSION),
        *(pl.when(is_weighted).then(f"weight_{name}").alias(f"{name}_weight") for name in CONFUSION),
        *(pl.col(f"squares_{name}").alias(f"{name}_squares") for name in CONFUSION),
    )
    rows = totals.join(n_groups, on=list(LABELS), how="left", maintain_order="left")
    heaviest = swept.curve.filter(pl.col(GROUPING.name) == TOTAL).select(HEAVIEST).head(1)
    counts = outcomes()
    tp, fp, fn, tn = counts.tp, counts.fp, counts.fn, pl.lit(0.0) if counts.tn is None else counts.tn
    reason = pl.when(tp + fp <= 0).then(pl.lit("no_prediction")).when(tp + fn <= 0).then(pl.lit("no_positive"))
    return rows.join(heaviest, how="cross").with_columns_seq(
        *ratios(tp, fp, fn),
        divide(fp, fp + tn).alias("fpr"),
        reason.when(fp + tn <= 0).then(pl.lit("no_negative")).alias("undefined"),
    )


def _with_intervals(rows: pl.DataFrame, counted: Cuts, params: ThresholdSweepParameters) -> pl.DataFrame:
    """The rows with limits of the ratios, costs, and limits of these."""
    outcome = outcomes()
    cost = pl.lit(None, dtype=pl.Float64)
    for point in params.operating_points:
        if point.cost is not None:
            cost = pl.when(pl.col(CRITERION) == point.text).then(outcome.cost(point.cost)).otherwise(cost)
    rows = with_cost_per_row(rows.with_columns(cost.alias(COST)), LABELS, params, lambda: counted)
    rows = rows.with_columns(nulls(name for name in OF_COSTS if name not in rows.columns))
    if not params.is_replicated:
        return rows.with_columns(no_limits(PROPORTIONS, "none"))
    if params.cluster is None:
        fixed = params.class_sizes == "fixed"
        limits = limits_of_rows(rows, params.confidence, PROPORTIONS, fixed_sizes=fixed)
        intervals = {name: Interval.of(limits[name], "undefined_ratio") for name in PROPORTIONS}
        return rows.with_columns(*limit_columns(intervals))
    return pl.concat(_of_clusters(rows, counted, params))


def _of_clusters(rows: pl.DataFrame, counted: Cuts, params: ThresholdSweepParameters) -> Iterator[pl.DataFrame]:
    """Each row with its limits between clusters."""
    by_label = {label: rows[[number]] for number, label in enumerate(rows.select(LABELS).iter_rows())}
    for label, (counts, *crossed) in counted.by_replicate():
        row = by_label[label]
        heaviest = row.select(HEAVIEST).row(0) if counted.kind == "weight" else None
        limits = intervals_of_clusters(
            counts, params.confidence, heaviest=heaviest, crossed=crossed, resampling=params.resampling
        )
        replicates = min(len(clustering.tp) for clustering in (counts, *crossed))
        yield row.with_columns(*limit_columns(intervals_of(limits, replicates)))


def _marked(rows: pl.DataFrame, swept: Swept, params: ThresholdSweepParameters) -> pl.DataFrame:
    """The rows in the group `all`, with the marks of their intervals."""
    keys = list(swept.cube.keys)
    by = [pl.lit(None, dtype=swept.points.schema[name]).alias(name) for name in keys if name != GROUPING.name]
    rows = rows.with_columns(pl.lit(TOTAL).alias(GROUPING.name), *by)
    clusters = None if params.cluster is None else swept.clusters
    rows = with_quality(rows, PROPORTIONS, clusters=clusters, keys=keys, events=CONFUSION)
    rows = rows.join(swept.clusters.select(*keys, *CLUSTERS), on=keys, how="left", nulls_equal=True)
    chosen = [not point.is_given and point.confidence is None for point in params.operating_points]
    texts = [point.text for point, wanted in zip(params.operating_points, chosen, strict=True) if wanted]
    is_chosen = pl.col(CRITERION).is_in(texts)
    rows = pl.concat([of_chosen(rows.filter(is_chosen)), rows.filter(~is_chosen)])
    return rows.drop(*(f"{name}_squares" for name in CONFUSION), *HEAVIEST)


# The table threshold_sweep_net_benefit: decision curves of scores that are probabilities.
#
# Who acts by a threshold probability acts on the rows that the boundary of the stage retrieves: from it on, or above
# it.


NET_BENEFIT = "threshold_sweep_net_benefit"
LIMITED = ("net_benefit", "net_benefit_difference")
RATIOS = ("net_benefit", "net_benefit_all", "standardized_net_benefit", "net_benefit_difference")


def net_benefit_table(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], swept: Swept
) -> dict[str, pl.DataFrame]:
    """The table, if it is wanted.

    Args:
        params: The parameters.
        counts: The tables of the plan, with bins at all threshold probabilities.
        swept: What has been derived from them.
    """
    curve, clusters = swept.curve, swept.clusters
    probabilities = np.asarray(params.probabilities, dtype=np.float64)
    if not params.net_benefit:
        return {}
    is_given = params.threshold_values is not None  # else bins are scores
    at = [p if is_given else lowest_retrieved(p, params.boundary) for p in params.probabilities]
    crossed = [counts[name] for name in CROSSED if name in counts]
    cube = Cube.of(counts["counts"], None, at, crossed=crossed, in_time=IN_TIME in counts)
    keys, weighted = list(cube.keys), kind_of_counts(cube.counts) == "weight"
    groups = cube.counts.select(keys).unique(maintain_order=True)
    frame = groups.join(pl.DataFrame({THRESHOLD: at}, schema={THRESHOLD: pl.Float64}), how="cross")
    within = params.cluster is None or cube.within_budget(frame.height, params.drawn_resamples)
    heaviest = {tuple(row[:-2]): row[-2:] for row in curve.select(*keys, *HEAVIEST).unique(keys).iter_rows()}
    tables = []
    for rows, group in cube.beside(frame):
        key = rows.select(keys).row(0)
        of_group = _Group(probabilities, group, heaviest.get(key, (1.0, 1.0)) if weighted else None)
        if swept.estimates is not None:
            of_group.estimated = swept.estimates.worth(key, params.probabilities, of_group.payoffs)
        tables.append(rows.with_columns(pl.Series(THRESHOLD, probabilities), *of_group.columns(params, within=within)))
    if not tables:
        return {}
    table = _defined(pl.concat(tables), counts["likelihood"], keys)
    marking = None if params.cluster is None or not params.is_replicated else clusters
    table = with_quality(table, LIMITED, clusters=marking, keys=keys, events=("tp", "fp"))
    return {NET_BENEFIT: table.join(clusters.select(*keys, *CLUSTERS), on=keys, how="left", nulls_equal=True)}


class _Group:
    """One group at all threshold probabilities."""

    def __init__(self, probabilities: Floats, group: GroupCounts, heaviest: tuple[float, float] | None) -> None:
        self._probabilities, self._heaviest = probabilities, heaviest
        kind = "n" if heaviest is None else "weight"
        self._clusterings = [confusion_of(clustering, kind) for clustering in (group, *group.crossed)]
        self._rows = _summed(confusion_of(group, "n"))
        self._totals = _summed(self._clusterings[0])
        self._weights = None
        if heaviest is not None:
            self._weights = Weights(_summed(confusion_of(group, "squares")), *heaviest)
        self.payoffs = Payoffs.of_net_benefit(probabilities), Payoffs.beyond_all(probabilities)
        self.estimated: tuple[Confusion, list[Limits]] | None = None  # what labels of a sample say of all rows

    @np.errstate(divide="ignore", invalid="ignore")
    def columns(self, params: ThresholdSweepParameters, *, within: bool) -> list[pl.Series | pl.Expr]:
        """The columns of the table but for marks; of weights if there are any.

        Args:
            params: The parameters.
            within: Whether intervals can be computed.
        """
        model, beyond = self.payoffs
        totals, rows = self._totals if self.estimated is None else self.estimated[0], self._rows
        positives = totals.tp + totals.fn
        share = positives / (positives + totals.fp + totals.tn)
        value, more_than_all = model.mean(totals), beyond.mean(totals)
        of_all = value - more_than_all
        values = (value, of_all, value / np.where(share > 0, share, np.nan), np.minimum(value, more_than_all))
        better = np.where(of_all > 0, "all", "none")
        row_counts = {"n": rows.tp + rows.fp + rows.fn + rows.tn, "n_positive": rows.tp + rows.fn}
        row_counts |= {"tp": rows.tp, "fp": rows.fp}
        return [
            *(pl.Series(name, count, dtype=pl.Int64) for name, count in row_counts.items()),
            *(doubles(name, column) for name, column in zip(RATIOS, values, strict=True)),
            pl.Series("better", better, dtype=pl.String),
            *self._limits(params, within=within),
        ]

    def _limits(self, params: ThresholdSweepParameters, *, within: bool) -> list[pl.Series] | list[pl.Expr]:
        if not params.is_replicated or not (within or self.estimated):
            return no_limits(LIMITED, "budget" if params.is_replicated else "none")
        replicates = min(len(clustering.tp) for clustering in self._clusterings)
        if params.cluster is not None and replicates < FEWEST_REPLICATES:
            return no_limits(LIMITED, "one_replicate")
        if self.estimated is not None:
            of_model, of_beyond = self.estimated[1]
        else:
            of_model, of_beyond = (self._limits_of(payoffs, params) for payoffs in self.payoffs)
        limits = (of_model, of_smaller(of_model, of_beyond))
        intervals = (Interval.of(of_mean, "undefined_ratio") for of_mean in limits)
        return list(limit_columns(dict(zip(LIMITED, intervals, strict=True))))

    def _limits_of(self, payoffs: Payoffs, params: ThresholdSweepParameters) -> Limits:
        if params.cluster is None:
            return payoffs.limits_of_rows(self._totals, self._weights, params.confidence)
        counts, *crossed = self._clusterings
        return payoffs.limits_of_clusters(
            counts, params.confidence, heaviest=self._heaviest, crossed=crossed, resampling=params.resampling
        )


def _summed(counts: Confusion) -> Confusion:
    return Confusion(*(side.sum(axis=0).astype(np.float64) for side in (counts.tp, counts.fp, counts.fn, counts.tn)))


def _defined(table: pl.DataFrame, likelihood: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The table with `undefined`; all numbers are NULL in groups with a score that is no probability."""
    outside = likelihood.group_by(list(keys)).agg((pl.col("n_outside").sum() > 0).alias("_is_outside"))
    table = table.join(outside, on=list(keys), how="left", nulls_equal=True, maintain_order="left")
    is_outside = pl.col("_is_outside").fill_null(value=False)
    reason = (
        pl.when(is_outside)
        .then(pl.lit("no_probability"))
        .when(pl.col("net_benefit").is_null())
        .then(pl.lit("no_row"))
        .when(pl.col("standardized_net_benefit").is_null())
        .then(pl.lit("no_positive"))
    )
    names = (*RATIOS, *limit_names(LIMITED), "better")
    because = pl.when(is_outside).then(pl.lit("undefined_ratio")).otherwise("undefined_interval")
    return table.with_columns(
        reason.alias("undefined"),
        because.alias("undefined_interval"),
        *(pl.when(~is_outside).then(name).alias(name) for name in names),
    ).drop("_is_outside")


# The tables of threshold_sweep at another prevalence: all thresholds, and the operating points chosen there.


AT_PREVALENCE = ("threshold_sweep_at_prevalence", "threshold_sweep_points_at_prevalence")
PREVALENCE, NPV, ALERT_SHARE = "prevalence", "negative_predictive_value", "alert_share"
RATES = ("recall", "fpr")
_CORRELATION = "_correlation"


def tables_at_prevalence(params: ThresholdSweepParameters, cube: Cube, curve: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """Both tables, if a prevalence is asked for.

    Args:
        params: The parameters.
        cube: The counts.
        curve: The curve, with the limits of recall and of the false positive rate.
    """
    if not params.prevalences:
        return {}
    keys = list(cube.keys)
    names = [THRESHOLD, *RATES, *limit_names(RATES), "undefined", UNDEFINED_INTERVAL, INTERVAL_QUALITY]
    rows = _with_correlation(curve, cube, params).select(*keys, *names, _CORRELATION)
    table = pl.concat(_at_prevalence(rows, prevalence) for prevalence in params.prevalences)
    points = [_point(table, [*keys, PREVALENCE], criterion, params) for criterion in criteria_at_prevalence(params)]
    of_points = pl.concat(points) if points else _costs(table.clear().with_columns(nulls([CRITERION], pl.String)), None)
    return dict(zip(AT_PREVALENCE, (table.drop(_CORRELATION), of_points.drop(_CORRELATION)), strict=True))


def criteria_at_prevalence(params: ThresholdSweepParameters) -> list[Criterion]:
    """The criteria that rates and a share of positives decide: no number of alerts, and no promise."""
    return [point for point in params.operating_points if point.max_alerts is None and point.confidence is None]


def _with_correlation(curve: pl.DataFrame, cube: Cube, params: ThresholdSweepParameters) -> pl.DataFrame:
    """The curve with the correlation of the errors of both rates; 0 where rows are independent, or nothing is given."""
    if params.cluster is None or not params.is_replicated or not cube.within_budget(curve.height):
        return curve.with_columns(pl.lit(0.0).alias(_CORRELATION))
    kind, frames = kind_of_counts(cube.counts), []
    for rows, group in cube.beside(curve):
        clusterings = [confusion_of(clustering, kind) for clustering in (group, *group.crossed)]
        has_spread = min(len(clustering.tp) for clustering in clusterings) > 1
        correlation = correlation_of_rates(clusterings) if has_spread else np.zeros(rows.height)
        frames.append(rows.with_columns(pl.Series(_CORRELATION, correlation)))
    return pl.concat(frames) if frames else curve.with_columns(pl.lit(0.0).alias(_CORRELATION))


def _rates(rows: pl.DataFrame) -> Rates:
    def rate(name: str) -> Rate:
        columns = (rows[column].cast(pl.Float64) for column in (name, *limit_names([name])))
        return Rate(*(column.to_numpy() for column in columns))

    return Rates(rate("recall"), rate("fpr"), rows[_CORRELATION].to_numpy())


@np.errstate(divide="ignore", invalid="ignore")
def _at_prevalence(rows: pl.DataFrame, prevalence: float) -> pl.DataFrame:
    """The rows of the curve at a prevalence."""
    rates = _rates(rows)
    values = {
        "precision": rates.precision(prevalence),
        "f1": rates.f1(prevalence),
        NPV: rates.negative_predictive_value(prevalence),
    }
    columns = [doubles(name, rate.value) for name, rate in values.items()]
    columns += [side for name, rate in values.items() for side in limit_series(name, (rate.lower, rate.upper))]
    undefined = pl.when(pl.col("undefined").is_not_null() | (pl.col(ALERT_SHARE) > 0)).then("undefined")
    return rows.with_columns(
        pl.lit(prevalence).alias(PREVALENCE), *columns, doubles(ALERT_SHARE, rates.alert_share(prevalence))
    ).with_columns(undefined.otherwise(pl.lit("no_prediction")).alias("undefined"))


def _point(
    table: pl.DataFrame, keys: Sequence[str], criterion: Criterion, params: ThresholdSweepParameters
) -> pl.DataFrame:
    """The row of every group and prevalence that a criterion chooses there."""
    outcomes = _outcomes()
    among, best = asked_of(criterion, _f_beta, outcomes, params.boundary)
    chosen = pick(
        table,
        keys,
        criterion=criterion.text,
        among=among,
        best=best.cast(pl.Float64).fill_nan(None),
        is_given=criterion.is_given,
    )
    return _costs(chosen, criterion)


def _outcomes() -> Outcomes[pl.Expr]:
    """Shares of the outcomes among all rows."""
    positives = pl.col(PREVALENCE)
    negatives = 1 - positives
    recall, fpr = (pl.col(name) for name in RATES)
    return Outcomes(recall * positives, fpr * negatives, (1 - recall) * positives, (1 - fpr) * negatives)


def _f_beta(beta: float) -> pl.Expr:
    counts, square = _outcomes(), beta**2
    return divide((1 + square) * counts.tp, (1 + square) * counts.tp + square * counts.fn + counts.fp)


def _costs(points: pl.DataFrame, criterion: Criterion | None) -> pl.DataFrame:
    """Points with the cost per row of their criterion, if it has costs."""
    names = [COST_PER_ROW, *limit_names([COST_PER_ROW])]
    if criterion is None or criterion.cost is None:
        return points.with_columns(nulls(names))
    frames = []
    for (prevalence,), rows in points.partition_by(PREVALENCE, as_dict=True, maintain_order=True).items():
        filled = rows.with_columns(pl.col(_CORRELATION).fill_null(0.0))
        rate = _rates(filled).cost_per_row(criterion.cost, float(str(prevalence)))
        sides = zip(names, (rate.value, rate.lower, rate.upper), strict=True)
        frames.append(rows.with_columns(doubles(name, values) for name, values in sides))
    return pl.concat(frames)


# The tables that the parameters ask for, and costs.


def decision_tables(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], swept: Swept
) -> dict[str, pl.DataFrame]:
    """The tables that the parameters ask for.

    Args:
        params: The parameters.
        counts: The tables of the plan, as they were counted.
        swept: What has been derived from them.
    """
    return {
        **pooled_tables(params, swept),
        **net_benefit_table(params, counts, swept),
        **tables_at_prevalence(params, swept.cube, swept.curve),
    }


def with_costs(points: pl.DataFrame, cube: Cube, params: ThresholdSweepParameters, *, within: bool) -> pl.DataFrame:
    """Operating points with their cost per row, if a criterion has costs.

    Args:
        points: As from `choices.operating_points`, with the squares and the heaviest weights of the curve.
        cube: The counts.
        params: The parameters.
        within: Whether intervals between clusters can be computed.
    """
    labels = [*cube.keys, CRITERION]

    def cuts() -> Cuts:
        return Cuts.of(cube, points.with_columns(pl.col(THRESHOLD).alias(CUT)), labels)

    return with_cost_per_row(points, labels, params, cuts if within else None)


def at_own_thresholds(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame]
) -> Mapping[str, pl.DataFrame]:
    """The tables of the plan with bins at the thresholds of the stage, where threshold probabilities cut finer."""
    values = params.threshold_values
    if values is None or len(params.counted_thresholds or ()) == len(values):
        return counts
    names = [name for name in ("counts", *CROSSED) if name in counts]
    return {**counts, **{name: _in_bins_of(counts[name], values) for name in names}}


def _in_bins_of(counts: pl.DataFrame, thresholds: tuple[float, ...]) -> pl.DataFrame:
    """Counts whose bins begin at the highest threshold that is not above them; NULL below all."""
    thresholds_of_stage = pl.DataFrame({"_own": thresholds}, schema={"_own": pl.Float64})
    edges = counts.select(THRESHOLD).unique().drop_nulls().sort(THRESHOLD)
    joined = edges.join_asof(
        thresholds_of_stage, left_on=THRESHOLD, right_on="_own", strategy="backward", coalesce=False
    )
    names = counts.columns
    moved = counts.join(joined, on=THRESHOLD, how="left", maintain_order="left")
    return moved.with_columns(pl.col("_own").alias(THRESHOLD)).select(names)
