"""Intervals of the curve of threshold_sweep: rows are independent, or only clusters of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from ...metrics.curves.cross_fitting import FOLDS, at_choices, split_rows
from ...metrics.curves.operating_points import Candidates, Outcomes, f_beta_of_counts, ratios_of_counts
from ...metrics.uncertainty.indices import index_limits_of_clusters, index_limits_of_rows, index_of
from ...metrics.uncertainty.interval_quality import FEWEST_EVENTS
from ...metrics.uncertainty.limits import (
    Interval,
    clusters_of_parents,
    intervals_of,
    limit_columns,
    marked_in_time,
    no_clusters,
    no_limits,
    with_limits,
    with_quality,
)
from ...metrics.uncertainty.proportions import PROPORTIONS, Confusion, Weights, intervals_of_clusters, intervals_of_rows
from ...tables.columns import RATIOS, THRESHOLD, beside, doubles, nothing, ratio_of
from ...tables.ratios import INDEX_OF, RATIO_OF
from .contract import HEAVIEST, LIGHTEST, OF_DRAWN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ...metrics.curves.cross_fitting import Ints
    from ...metrics.uncertainty.bootstrap import Resampling
    from ...metrics.uncertainty.cube import Cube, GroupCounts
    from ...metrics.uncertainty.jackknife import Floats, Limits
    from ...tables.ratios import Index
    from .contract import ThresholdSweepParameters
    from .few_labels import Estimates


CONFUSION = ("tp", "fp", "fn", "tn")
SEEN = "_seen"  # events of a kind of row that a group has none of
FAR_HEAVIER = 10  # times
_BY_LABEL = "_by_label"


def with_intervals(
    curve: pl.DataFrame, cube: Cube, params: ThresholdSweepParameters, clusters: pl.DataFrame
) -> pl.DataFrame:
    """The curve, with the heaviest weights, with `<ratio>_lower`, `<ratio>_upper` and what is said of them."""
    names = (*PROPORTIONS, *params.metrics)
    if params.cluster is None:
        if not params.is_replicated:
            return with_quality(curve.with_columns(no_limits(names, "none")), names)
        fixed = params.class_sizes == "fixed"
        limits = limits_of_rows(curve, params.confidence, names, fixed_sizes=fixed)
        intervals = {name: Interval.of(limits[name], "undefined_ratio") for name in names}
        return with_quality(curve.hstack(list(limit_columns(intervals))), names, events=CONFUSION)

    def of_clusters(rows: pl.DataFrame, group: GroupCounts) -> dict[str, Interval]:
        replicates = min(len(counts.replicates) for counts in (group, *group.crossed))
        limits = limits_of_clusters(rows, group, params.confidence, names, params.resampling)
        return intervals_of(limits, replicates)

    return with_limits(
        curve,
        cube,
        names,
        of_clusters,
        wanted=params.is_replicated,
        clusters=clusters,
        events=CONFUSION,
        resamples=params.drawn_resamples,
    )


def clusters_of_groups(params: ThresholdSweepParameters, cube: Cube) -> pl.DataFrame:
    """`clusters_of` the groups, of two parents the fewer; NULL where rows are independent or not in replicates."""
    if params.cluster is None or not params.is_replicated:
        return no_clusters(cube)
    kind = kind_of_counts(cube.counts)
    table = clusters_of_parents(cube, sizes_of(kind))
    return marked_in_time(table, cube, sizes_of(kind), partial(confusion_of, kind=kind))


def with_heaviest(rows: pl.DataFrame, heaviest: pl.DataFrame | None, keys: Sequence[str]) -> pl.DataFrame:
    """Rows with how heavy a positive and a negative row of their group may be that was not observed.

    Where all rows of a label weigh the same, in both labels, the label gave the weight, and a row weighs what those of
    its label do; in place of a label without rows that of the other. Otherwise something else gave it, such as the
    score that rows were sampled by, so that a row may be as heavy as any of its group: that no positive was drawn from
    the stratum of the heaviest rows is no sign that it has none.
    """
    if heaviest is None:
        return rows.hstack([pl.Series(name, [1.0]).new_from_index(0, rows.height) for name in HEAVIEST])
    either = pl.max_horizontal(HEAVIEST)
    is_own = (pl.when(pl.col(_BY_LABEL) & (pl.col(name) > 0)).then(name) for name in HEAVIEST)
    names = zip(is_own, HEAVIEST, strict=True)
    largest = _weights(heaviest, keys).select(*keys, *(own.otherwise(either).alias(name) for own, name in names))
    return beside(rows, largest, keys)


def with_fewest_seen(rows: pl.DataFrame, heaviest: pl.DataFrame | None, keys: Sequence[str]) -> pl.DataFrame:
    """Rows with `SEEN`: few where a label has no row nearly as heavy as the heaviest of the group, which may hide one.

    It is NULL elsewhere, and where the label gave the weights, see `with_heaviest`.
    """
    if heaviest is None:
        return rows.hstack(nothing([SEEN], rows.height, pl.Int64))
    hides = ~pl.col(_BY_LABEL) & (pl.min_horizontal(HEAVIEST) * FAR_HEAVIER < pl.max_horizontal(HEAVIEST))
    few = _weights(heaviest, keys).select(*keys, pl.when(hides).then(pl.lit(FEWEST_EVENTS - 1)).alias(SEEN))
    return beside(rows, few, keys)


def _weights(heaviest: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The heaviest row of each label by group, and whether all rows of a label weigh the same, in both labels."""
    extremes = heaviest.group_by(keys).agg(
        *(pl.col(name).cast(pl.Float64).max() for name in HEAVIEST),
        *(pl.col(name).cast(pl.Float64).min() for name in LIGHTEST),
    )
    sides = zip(HEAVIEST, LIGHTEST, strict=True)
    alike = ((pl.col(high) <= 0) | (pl.col(high) == pl.col(low)) for high, low in sides)
    return extremes.with_columns(pl.all_horizontal(*alike).alias(_BY_LABEL))


def sizes_of(kind: str) -> tuple[str, str]:
    """The counts that make the size of a cluster."""
    return f"{kind}_positive", f"{kind}_negative"


def kind_of_counts(counts: pl.DataFrame) -> Literal["weight", "n"]:
    """`weight` where rows have weights, else `n`; a run whose weights are all 0 is refused before it counts."""
    return "weight" if counts["weight_positive"].sum() or counts["weight_negative"].sum() else "n"


def confusion_of(group: GroupCounts, kind: str) -> Confusion:
    """Counts or weights of each replicate at each threshold."""
    tp, fp = (group.at_or_above(f"{kind}_{side}") for side in ("positive", "negative"))
    positives, negatives = (group.totals(f"{kind}_{side}")[:, None] for side in ("positive", "negative"))
    return Confusion(tp, fp, positives - tp, negatives - fp, in_time=group.in_time)


def limits_of_clusters(
    rows: pl.DataFrame,
    group: GroupCounts,
    confidence: float,
    names: Sequence[str],
    resampling: Resampling | None = None,
) -> dict[str, Limits]:
    """Limits of the ratios of one group where replicates are independent, of two parents those that share neither."""
    (counts, *crossed), heaviest = counts_of_clusters(rows, group)
    indices, ratios = _told_apart(names)
    limits = intervals_of_clusters(
        counts, confidence, heaviest=heaviest, names=ratios, crossed=crossed, resampling=resampling
    )
    if indices:
        _, weights = confusion_of_rows(rows)
        squares = None if weights is None else weights.squares
        limits |= {each.name: index_limits_of_clusters(each, counts, squares, confidence, crossed) for each in indices}
    return limits


def counts_of_clusters(rows: pl.DataFrame, group: GroupCounts) -> tuple[list[Confusion], tuple[float, float] | None]:
    """Counts or weights of one group by each of its clusterings, and the heaviest weights where rows have any."""
    weighted = rows["tp_weight"].null_count() < rows.height
    heaviest = (rows[HEAVIEST[0]][0], rows[HEAVIEST[1]][0]) if weighted else None
    kind: Literal["weight", "n"] = "weight" if weighted else "n"
    return [confusion_of(clustering, kind) for clustering in (group, *group.crossed)], heaviest


def limits_of_rows(
    curve: pl.DataFrame, confidence: float, names: Sequence[str], *, fixed_sizes: bool
) -> dict[str, Limits]:
    """Limits where rows are independent: of the counts, or of weights with their squares."""
    counts, weights = confusion_of_rows(curve)
    indices, ratios = _told_apart(names)
    limits = intervals_of_rows(counts, weights, confidence, fixed_sizes=fixed_sizes, names=ratios)
    squares = None if weights is None else weights.squares
    return limits | {each.name: index_limits_of_rows(each, counts, squares, confidence) for each in indices}


def _told_apart(names: Sequence[str]) -> tuple[list[Index], list[str]]:
    """The indices among some numbers, and the names of the ratios."""
    return [INDEX_OF[name] for name in names if name in INDEX_OF], [name for name in names if name in RATIO_OF]


def with_further(curve: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The curve with further numbers of its outcomes, of weights if there are any; undefined ones are NULL."""
    if not names:
        return curve
    counted = outcomes()
    values = {"tp": counted.tp, "fp": counted.fp, "fn": counted.fn, "tn": counted.tn}
    counts = curve.select(value.alias(name) for name, value in values.items() if value is not None)
    of_all = Confusion(*(counts[name].to_numpy() for name in CONFUSION))
    indices, ratios = _told_apart(names)
    of_ratios = counts.select(ratio_of(RATIO_OF[name], {each: pl.col(each) for each in CONFUSION}) for name in ratios)
    return curve.with_columns(*of_ratios, *(doubles(index.name, index_of(index, of_all)) for index in indices))


def confusion_of_rows(curve: pl.DataFrame) -> tuple[Confusion, Weights | None]:
    """Outcomes of rows of the curve, of weights where there are any, and what else is known of the weights."""
    weighted = curve["tp_weight"].is_not_null().to_numpy()
    counts = [curve[name].cast(pl.Float64).to_numpy() for name in CONFUSION]

    if not weighted.any():
        return Confusion(*counts), None

    def confusion(suffix: str) -> Confusion:
        weights = [curve[f"{name}{suffix}"].cast(pl.Float64).fill_null(0.0).to_numpy() for name in CONFUSION]
        return Confusion(*(np.where(weighted, heavy, light) for light, heavy in zip(counts, weights, strict=True)))

    heaviest = (np.where(weighted, curve[name].to_numpy(), 1.0) for name in HEAVIEST)
    return confusion("_weight"), Weights(confusion("_squares"), *heaviest)


# What the criteria of threshold_sweep choose from: limits and counts by fold of every group.


def candidates(
    curve: pl.DataFrame, cube: Cube, params: ThresholdSweepParameters, estimates: Estimates | None = None
) -> Iterator[Candidates]:
    """Every group of the curve, with the working columns of squares and heaviest weights.

    A promise allows for other class sizes, whatever `class_sizes` says, as the next data may have others.
    """
    within_budget = params.cluster is None or cube.within_budget(curve.height)
    promises = params.is_replicated and within_budget
    any_weight = curve["tp_weight"].null_count() < curve.height
    if not any(criterion.confidence is not None for criterion in params.operating_points):  # counts are enough
        numbers = (f"{name}{suffix}" for suffix in ("", "_weight", "_squares", OF_DRAWN) for name in CONFUSION)
        wanted = (*cube.keys, THRESHOLD, *numbers, *HEAVIEST)
        curve = curve[[name for name in wanted if name in curve.columns]]
    for rows, group in cube.beside(curve):

        def lower(name: str, confidence: float, rows: pl.DataFrame = rows, group: GroupCounts = group) -> Floats:
            if estimates is not None:
                return estimates.lower(rows, name, confidence)
            if params.cluster is None:
                return limits_of_rows(rows, confidence, [name], fixed_sizes=False)[name][0]
            return limits_of_clusters(rows, group, confidence, [name])[name][0]

        is_split = params.cluster is None or params.uncertainty != "none"
        counts = _by_fold(rows, group, params, weighted=any_weight) if is_split else None
        yield Candidates(
            rows=rows,
            lower=lower if promises else None,
            retrieved=(rows["tp"] + rows["fp"]).to_numpy().astype(np.float64),
            counts="none" if counts is None else counts,
            ratios=ratios_of_counts,
            f_beta=f_beta_of_counts,
            outcomes=lambda counts: Outcomes(*counts),
            **_limits(rows, group, params, counts) if promises and counts is not None else {},
        )


def _limits(
    rows: pl.DataFrame, group: GroupCounts, params: ThresholdSweepParameters, counts: Sequence[Floats]
) -> dict[str, Callable[..., Any]]:
    """How `Candidates` has its limits."""
    if params.cluster is not None:
        return {"at_folds": partial(_limits_of_clusters, rows, group, params)}
    weighted = rows["tp_weight"].null_count() < rows.height
    at_folds = partial(_weights_at_folds, rows, counts) if weighted else _counts_at_folds
    return {"at_folds": at_folds, "limits": partial(_limits_of_rows, params)}


def _counts_at_folds(_chosen: Ints, pooled: Sequence[Floats]) -> Sequence[Floats]:
    """The outcomes of independent rows whose folds have thresholds of their own."""
    return pooled


def _weights_at_folds(
    rows: pl.DataFrame, weights: Sequence[Floats], chosen: Ints, _pooled: Sequence[Floats]
) -> list[Floats]:
    """The same of weights, their squares, and the heaviest ones."""
    heaviest = [rows[name][:1].to_numpy() for name in HEAVIEST]
    return [at_choices(side, chosen).sum(axis=0) for side in (*weights, *_of_rows(rows, "_squares"))] + heaviest


def _limits_of_rows(params: ThresholdSweepParameters, at_folds: Sequence[Sequence[Floats]]) -> dict[str, Limits]:
    """Limits of the ratios of several groups, from `_counts_at_folds` or `_weights_at_folds`."""
    counts = [np.concatenate(sides) for sides in zip(*at_folds, strict=True)]
    squares = counts[len(CONFUSION) :]
    weights = Weights(Confusion(*squares[: len(CONFUSION)]), *squares[len(CONFUSION) :]) if squares else None
    fixed = params.class_sizes == "fixed"
    outcomes = Confusion(*counts[: len(CONFUSION)])
    return intervals_of_rows(outcomes, weights, params.confidence, fixed_sizes=fixed, names=RATIOS)


def _limits_of_clusters(
    rows: pl.DataFrame,
    group: GroupCounts,
    params: ThresholdSweepParameters,
    chosen: Ints,
    _pooled: Sequence[Floats],
) -> dict[str, Limits]:
    """Limits of the ratios of a group whose folds have thresholds of their own.

    Of two parents the first is in folds; the second, which tells the spread alone, is taken at the middle one of their
    thresholds.
    """
    (first, *crossed), heaviest = counts_of_clusters(rows, group)
    middle = np.full(1, np.sort(chosen)[len(chosen) // 2])
    of_folds, *of_others = (
        Confusion(*(at_choices(side, at) for side in (each.tp, each.fp, each.fn, each.tn)), in_time=each.in_time)
        for each, at in zip((first, *crossed), (chosen, *[middle] * len(crossed)), strict=True)
    )
    resampling = params.resampling
    return intervals_of_clusters(
        of_folds, params.confidence, heaviest=heaviest, names=RATIOS, crossed=of_others, resampling=resampling
    )


def _by_fold(
    rows: pl.DataFrame, group: GroupCounts, params: ThresholdSweepParameters, *, weighted: bool
) -> tuple[Floats, Floats, Floats, Floats]:
    """The four outcomes by fold, or their weights: of clusters, else of rows."""
    if params.cluster is not None:
        counts = confusion_of(group.in_folds(FOLDS), "weight" if weighted else "n")
        return counts.tp, counts.fp, counts.fn, counts.tn
    of_weights = OF_DRAWN if f"tp{OF_DRAWN}" in rows.columns else "_weight"
    return _of_rows(rows, of_weights if weighted else "")


def _of_rows(rows: pl.DataFrame, suffix: str) -> tuple[Floats, Floats, Floats, Floats]:
    """The four outcomes of independent rows by fold, or what the columns with this suffix hold of them."""
    true, positives = _split(rows, ("tp", "fn"), suffix, seed=0)
    false, negatives = _split(rows, ("fp", "tn"), suffix, seed=1)
    return true, false, positives - true, negatives - false


def _split(rows: pl.DataFrame, names: tuple[str, str], suffix: str, *, seed: int) -> tuple[Floats, Floats]:
    """What is retrieved of one class, and all of it, by fold."""
    retrieved, missed = (rows[name].to_numpy() for name in names)
    weights = None
    if suffix:
        heavy, heavy_missed = (rows[f"{name}{suffix}"].to_numpy() for name in names)
        weights = (heavy, float(heavy[0] + heavy_missed[0]))
    return split_rows(retrieved, int(retrieved[0] + missed[0]), weights, seed=seed)


def outcomes() -> Outcomes[pl.Expr]:
    """Outcomes of a row of the curve, of weights if there are any."""
    return Outcomes(*(pl.coalesce(f"{name}_weight", pl.col(name).cast(pl.Float64)) for name in CONFUSION))


def f_beta(beta: float) -> pl.Expr:
    """F-beta of a row of the curve, of weights if there are any."""
    square = beta**2
    counts = outcomes()
    tp, fp, fn = counts.tp, counts.fp, counts.fn
    return (1 + square) * tp / ((1 + square) * tp + square * fn + fp)
