"""Areas under the curves of threshold_sweep, with their intervals, and bands that hold the whole curve."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...base.columns import (
    IN_TIME,
    REPLICATE,
    THRESHOLD,
    add_up,
    beside,
    by_group,
    doubles,
    lowest_retrieved,
    nothing,
    nulls,
)
from ...base.schemas import Column, Table, limits_of_share
from ...metrics.curves.bands import (
    DRAWS,
    RATIOS,
    Draws,
    Largest,
    band_of_clusters,
    band_of_rows,
    band_of_sample,
    spread_out,
)
from ...metrics.curves.influence import ClassMoments, spread_of_means
from ...metrics.curves.trapezoidal_area import (
    Retrieved,
    partial_roc_areas,
    replicate_shifts,
    true_point_areas,
)
from ...metrics.uncertainty.clusters import Spread, area_interval, combined_spread
from ...metrics.uncertainty.limits import (
    DOUBTFUL,
    FEWEST_OF_CLASS,
    INTERVAL_QUALITY,
    N_CLUSTERS,
    N_EFFECTIVE,
    QUALITY_COLUMN,
    Interval,
    limit_columns,
    no_limits,
    with_numbers,
    with_quality,
)
from ...metrics.uncertainty.replicates import MOST_CELLS, Cube, GroupCounts, area_limits, area_quantiles, otherwise
from ..figures import caption, keys_of, level
from .contract import (
    CONFUSION,
    COUNT_NAMES,
    CROSSED,
    CROSSED_LIKELIHOOD,
    LIKELIHOOD,
    SEEN,
    confusion_of_rows,
    counts_of_clusters,
    kind_of_counts,
    with_fewest_seen,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...metrics.curves.bands import Band
    from ...metrics.uncertainty.limits import Reason
    from ...metrics.uncertainty.replicates import Block
    from ..figures import Figure
    from .contract import ThresholdSweepParameters
    from .few_labels import Estimates


# The table threshold_sweep_areas: areas, likelihoods, their standard errors and intervals.


TWO = 2  # a spread needs two
SIDES = ("positive", "negative")
WEIGHTED_ROWS = ("_positives", "_negatives")  # rows with a weight above 0
EFFECTIVE_ROWS = ("_effective_positives", "_effective_negatives")  # of equal weight that would vary as much (Kish)
OF_PROBABILITIES = ("log_likelihood", "log_likelihood_se", "brier")
BOUNDS_OF_MEANS = ("log_likelihood_min", "log_likelihood_max", "brier_min", "brier_max")
SCORED = "_scored"  # rows with a valid score and a weight above 0
AREAS = ("average_precision", "pr_auc", "roc_auc")
PARTIAL = "partial_roc_auc"
OF_ERROR = ("se", "degrees", "skewed", "low", "high")
WORKING = tuple(f"{name}_{kind}" for name in (*AREAS, PARTIAL) for kind in OF_ERROR[1:])  # of no table
TRUE_POINTS = ("pr_auc", "pr_auc_se_true_points", *(f"pr_auc_{kind}" for kind in OF_ERROR))
PARTIAL_ROC = (PARTIAL, *(f"{PARTIAL}_{kind}" for kind in OF_ERROR))
ROUNDING = 1e-12  # areas that differ less from 0 or 1 are 0 or 1
CLUSTERS = (N_CLUSTERS, N_EFFECTIVE)


def areas_of(params: ThresholdSweepParameters) -> tuple[str, ...]:
    """The areas that have intervals."""
    return AREAS if params.max_fpr is None else (*AREAS, PARTIAL)


def partial_columns(max_fpr: float) -> tuple[Column, ...]:
    """The columns of the area up to a false positive rate."""
    said = f"area under the ROC curve up to a false positive rate of {max_fpr:g}, at the thresholds of the stage"
    return (
        Column(
            PARTIAL,
            "DOUBLE",
            f"{said}, standardised (McClish 1989): 1/2 by chance, 1 at best; NULL: no positive, or no negative",
            nullable=True,
        ),
        Column(
            f"{PARTIAL}_se",
            "DOUBLE",
            f"standard error of {PARTIAL}, by influence functions; "
            "NULL: fewer than two positives, one negative, or one replicate",
            nullable=True,
        ),
        *limits_of_share(PARTIAL),
    )


def areas_table(
    params: ThresholdSweepParameters,
    counts: Mapping[str, pl.DataFrame],
    keys: Sequence[str],
    clusters: pl.DataFrame,
    estimates: Estimates | None = None,
) -> pl.DataFrame:
    """One row per group.

    Args:
        params: The parameters.
        counts: The tables of the plan.
        keys: Columns that identify a group.
        clusters: `clusters_of` the groups, NULL where rows are independent.
        estimates: What labels of a sample say of all rows, if labels are those of a sample.
    """
    kind = "n_weighted" if kind_of_counts(counts["counts"]) == "weight" else "n"
    rows = {name: pl.col(f"{kind}_{side}") for side, name in zip(SIDES, WEIGHTED_ROWS, strict=True)}
    frame = add_up(counts["counts"], keys, COUNT_NAMES).select_seq(
        *keys,
        *COUNT_NAMES[:2],
        (pl.col("n_positive") + pl.col("n_negative")).alias("n"),
        *(number.alias(name) for name, number in rows.items()),
        *_effective_rows(rows, weighted=kind == "n_weighted"),
    )
    for columns in (counts["areas"], _true_points(params, counts, keys), _losses(params, counts, keys)):
        frame = beside(frame, columns, keys)
    missed = pl.sum_horizontal(WEIGHTED_ROWS) > pl.col(SCORED).fill_null(0)  # their score says no probability
    if params.cluster is not None and params.uncertainty == "none":  # those of rows would pass for those of clusters
        errors = (f"{name}_se" for name in (*areas_of(params), "log_likelihood"))
        frame = frame.with_columns(nothing(errors, frame.height))
    undefined = (
        pl.when(pl.col("average_precision").is_null())
        .then(pl.lit("no_positive"))
        .when(pl.col("roc_auc").is_null())
        .then(pl.lit("no_negative"))
        .when(missed)
        .then(pl.lit("no_score"))
        .when(pl.col("log_likelihood").is_null())
        .then(pl.lit("no_probability"))
    )
    in_cells = pl.col("average_precision_min").is_not_null() | pl.col("roc_auc_min").is_not_null()
    method = pl.when(in_cells).then(pl.lit("binned")).otherwise(pl.lit(params.method))
    intervals = _intervals(frame, params)
    if estimates is not None:
        frame, intervals = estimates.areas(frame, intervals)
    of_probabilities = pl.when(~missed).then(pl.col(OF_PROBABILITIES + BOUNDS_OF_MEANS))
    frame = frame.with_columns_seq(
        of_probabilities, *limit_columns(intervals), undefined.alias("undefined"), method.alias("method")
    )
    frame = with_fewest_seen(frame, counts.get("heaviest"), keys)
    events = (*EFFECTIVE_ROWS, SEEN)
    frame = with_quality(frame, areas_of(params), clusters=clusters, keys=keys, events=events, fewest=FEWEST_OF_CLASS)
    frame = with_numbers(frame, clusters, keys)
    working = {"n_negative", SCORED, SEEN, *WEIGHTED_ROWS, *EFFECTIVE_ROWS, *WORKING}
    return frame[[name for name in frame.columns if name not in working]]


def _effective_rows(rows: Mapping[str, pl.Expr], *, weighted: bool) -> list[pl.Expr]:
    """Rows of each class, of weighted ones their effective number (Σ w)² / Σ w², exact where all weights are equal."""
    if not weighted:
        return [rows[name].alias(of) for name, of in zip(WEIGHTED_ROWS, EFFECTIVE_ROWS, strict=True)]
    numbers = []
    for side, of in zip(SIDES, EFFECTIVE_ROWS, strict=True):
        weight, squares = (pl.col(f"{kind}_{side}").cast(pl.Float64) for kind in ("weight", "squares"))
        numbers.append((weight**2 / pl.when(squares > 0).then(squares)).fill_null(0.0).round(9).alias(of))
    return numbers


def _true_points(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]
) -> pl.DataFrame:
    """Areas of every group at the thresholds of the stage; with `distinct`, so that every score is parted."""
    table = counts["counts"]
    kind = kind_of_counts(table)
    cube = Cube.of(table, keys, params.threshold_values, in_time=IN_TIME in counts)
    frames = [block.groups.hstack(_of_block(params, block, kind)) for block in cube.blocks(COUNT_NAMES)]
    if not frames:  # no group has a row, and the total is not asked for
        return table.select(keys).with_columns(nulls(_at_thresholds(params)))
    frame = pl.concat(frames)
    if not _clustered(params):
        return frame
    crossed = [by_group(counts[name], keys) for name in CROSSED if name in counts]
    measured = [name for name in ("pr_auc", PARTIAL) if name in frame.columns]
    areas = {key: rows.row(0, named=True) for key, rows in by_group(frame, keys).items()}
    rows = [
        (*key, *_of_replicates(group, [of_group[key] for of_group in crossed], kind, params, areas[key]))
        for key, group in cube.groups()
    ]
    names = [f"{area}_{name}" for area in measured for name in OF_ERROR]
    schema = {name: table.schema[name] for name in keys} | dict.fromkeys(names, pl.Float64())
    of_clusters = pl.DataFrame(rows, schema=schema, orient="row").with_columns(pl.col(names).fill_nan(None))
    return frame.drop(names).join(of_clusters, on=list(keys), how="left", nulls_equal=True)


def _at_thresholds(params: ThresholdSweepParameters) -> tuple[str, ...]:
    """The columns of areas at the thresholds of the stage."""
    return TRUE_POINTS if params.max_fpr is None else (*TRUE_POINTS, *PARTIAL_ROC)


def _clustered(params: ThresholdSweepParameters) -> bool:
    return params.cluster is not None and params.is_replicated


def _of_block(params: ThresholdSweepParameters, block: Block, kind: str) -> list[pl.Series]:
    """Areas of the groups of a block where rows are independent."""

    def retrieved(kind: str) -> Retrieved:
        names = [f"{kind}_{side}" for side in SIDES]
        return Retrieved(*(block.at_or_above[name] for name in names), *(block.totals[name] for name in names))

    rows = retrieved("n_weighted" if kind == "weight" else "n")
    weights_and_squares = (retrieved("weight"), retrieved("squares")) if kind == "weight" else (rows, rows)
    areas = true_point_areas(*weights_and_squares, rows, random_sizes=params.class_sizes == "random")
    nothing = np.full_like(areas.se, np.nan)
    rest = (np.zeros_like(areas.se), nothing, nothing)
    values = [areas.auc, areas.se_true_points, areas.se, areas.degrees, *rest]
    if params.max_fpr is not None:
        values += [*partial_roc_areas(*weights_and_squares, rows, max_fpr=params.max_fpr), *rest]
    return [doubles(name, column) for name, column in zip(_at_thresholds(params), values, strict=True)]


def _of_replicates(
    group: GroupCounts,
    crossed: Sequence[pl.DataFrame],
    kind: str,
    params: ThresholdSweepParameters,
    areas: Mapping[str, float | None],
) -> list[float]:
    """Standard error, degrees of freedom, skewness and quantiles of the bootstrap where replicates are independent."""
    names = [f"{kind}_{side}" for side in SIDES]

    def retrieved(counts: GroupCounts) -> Retrieved:
        falling = (counts.at_or_above(name)[:, ::-1] for name in names)
        return Retrieved(*falling, *(counts.totals(name) for name in names))

    others = (GroupCounts.of(counts, group.thresholds) for counts in crossed)
    clusterings = [retrieved(group), *map(retrieved, others)]
    moved = {"pr_auc": replicate_shifts(*clusterings, in_time=group.in_time)}
    if params.max_fpr is not None:
        moved[PARTIAL] = replicate_shifts(*clusterings, max_fpr=params.max_fpr, in_time=group.in_time)
    numbers = []
    for name, of_clusterings in moved.items():
        spread, quantiles = combined_spread([shifts.spread for shifts in of_clusterings]), (np.nan, np.nan)
        area, shifts = areas[name], of_clusterings[0]
        if params.resampling is not None and area is not None:
            used = shifts.values[shifts.has_rows]
            quantiles = area_quantiles(used, area, params.confidence, params.resampling)
        numbers += [float(np.sqrt(spread.variance)), float(spread.degrees), float(spread.skewed), *quantiles]
    return numbers


def _losses(params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """Mean log-likelihood, its standard error, the Brier score, and their rows; NULL where one is no probability."""
    table = counts["likelihood"]
    sums = add_up(table, keys, LIKELIHOOD)  # decimals are added up exactly
    doubled = {name: sums[name].cast(pl.Float64) for name in LIKELIHOOD}
    n, weights, squares, first, weighted, second, errors = (
        doubled[name].to_numpy()
        for name in ("n", "weights", "squares", "first", "weighted", "second", "squared_errors")
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        mean, brier = first / weights, errors / weights
    variance = ClassMoments(n, weights, squares, first, weighted, second).variance
    if _clustered(params):
        tables = [table, *(counts[name] for name in CROSSED_LIKELIHOOD if name in counts)]
        variance = _of_clusters(tables, sums[list(keys)], keys, in_time=IN_TIME in counts)
    are_probabilities = doubled["n_outside"].to_numpy() == 0
    bounds = [
        *_bounds(mean, doubled["first_open"], weights, -np.inf, 0),
        *_bounds(brier, doubled["squared_errors_open"], weights, 0, 1),
    ]
    values = zip(OF_PROBABILITIES + BOUNDS_OF_MEANS, (mean, np.sqrt(variance), brier, *bounds), strict=True)
    series = (doubles(name, np.where(are_probabilities, column, np.nan)) for name, column in values)
    return sums[list(keys)].hstack([*series, pl.Series(SCORED, n, dtype=pl.Float64)])


def _bounds(
    mean: NDArray[np.float64], left: pl.Series, weights: NDArray[np.float64], least: float, most: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Bounds of means of which a sum may be off by what is left open; nan where it is exact."""
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.where(left.to_numpy() > 0, left.to_numpy() / weights, np.nan)
    return np.maximum(mean - distance, least), np.minimum(mean + distance, most)


def _of_clusters(
    tables: Sequence[pl.DataFrame], groups: pl.DataFrame, keys: Sequence[str], *, in_time: bool
) -> NDArray[np.float64]:
    """Variance of the mean log-likelihood of every group, in the order of the groups."""
    doubled = (table.with_columns(pl.col(LIKELIHOOD).cast(pl.Float64)).sort(REPLICATE) for table in tables)
    clusterings = [by_group(table, keys) for table in doubled]
    variances = []
    for key in groups.iter_rows():
        frames = (replicates[key] for replicates in clusterings)
        sums = [(frame["first"].to_numpy(), frame["weights"].to_numpy()) for frame in frames]
        variances.append(spread_of_means(sums, in_time=in_time).variance)
    return np.asarray(variances, dtype=np.float64)


def _intervals(frame: pl.DataFrame, params: ThresholdSweepParameters) -> dict[str, Interval]:
    """Limits on the logit scale, with Student's t or the quantiles of the bootstrap.

    The standard error of `pr_auc` is too low just where the area is, so that of average precision, which estimates the
    same area, takes its place where it is higher. Clusters need none of this.
    """
    if params.uncertainty == "none":
        return dict.fromkeys(areas_of(params), Interval.none(frame.height, "none"))
    reasons, intervals = _reasons(frame), {}
    for name in areas_of(params):
        area, *spread = (
            frame[column].cast(pl.Float64).to_numpy() for column in (name, *(f"{name}_{kind}" for kind in OF_ERROR))
        )
        if name == "pr_auc" and not _clustered(params):
            spread[0] = np.fmax(spread[0], frame["average_precision_se"].cast(pl.Float64).to_numpy())
        # where the rows show no spread, as if all scores are equal, they do not tell how much an area varies
        inside = np.where((np.minimum(area, 1 - area) > ROUNDING) & (spread[0] > ROUNDING), area, np.nan)
        limits = area_interval(
            inside, Spread(spread[0] ** 2, *spread[1:3]), params.confidence, clustered=_clustered(params)
        )
        limits = otherwise(area_limits(inside, spread[0], (spread[3], spread[4])), limits)
        is_still = (np.minimum(area, 1 - area) > ROUNDING) & (spread[0] <= ROUNDING)
        intervals[name] = Interval.of(limits, np.where(is_still, "no_spread", reasons))
    return intervals


def _reasons(frame: pl.DataFrame) -> NDArray[np.str_]:
    """Why a limit of an area would be missing."""
    positives, negatives = (frame[name].to_numpy() for name in WEIGHTED_ROWS)
    measured = np.logical_and.reduce([frame[f"{name}_se"].is_not_null().to_numpy() for name in AREAS])
    few = np.where(positives < TWO, "few_positives", np.where(negatives < TWO, "few_negatives", "one_replicate"))
    return np.where((positives >= TWO) & (negatives >= TWO) & measured, "at_limit", few)


# The result table threshold_sweep_bands.


def _critical(ratio: str) -> Column:
    said = f"what takes the place of the normal quantile in the limits of {ratio}; above 1.96 of 95% intervals"
    return Column(f"critical_{ratio}", "DOUBLE", f"{said}; NULL: there is no band", nullable=True)


COLUMNS = (
    Column("threshold", "DOUBLE", "threshold of the curve; of more than 1,000 in a group about as many are chosen"),
    Column("precision", "DOUBLE", "as in the curve; NULL: nothing retrieved", nullable=True),
    *limits_of_share("precision", "the band of precision"),
    Column("recall", "DOUBLE", "as in the curve; NULL: no positive", nullable=True),
    *limits_of_share("recall", "the band of recall, for both curves"),
    Column("fpr", "DOUBLE", "as in the curve; NULL: no negative", nullable=True),
    *limits_of_share("fpr", "the band of the false positive rate"),
    *map(_critical, ("precision", "recall", "fpr")),
    Column(
        "method",
        "VARCHAR",
        "how the critical values were found: `sup_t_rows`, `sup_t_clusters`, `sup_t_sample`, "
        "`bonferroni`; NULL: there is no band",
        nullable=True,
    ),
    Column("n_thresholds", "BIGINT", "thresholds of the group at which the limits hold together: its rows here"),
    Column(
        "undefined_interval",
        "VARCHAR",
        "why a limit is NULL: `budget`, `one_replicate`, `undefined_ratio`; the "
        "[reasons](methods/threshold_sweep.md#bands-of-the-whole-curve); NULL: all limits are given",
        nullable=True,
    ),
    QUALITY_COLUMN,
)
BANDS = Table("threshold_sweep_bands", "one row per group and threshold", COLUMNS, ("threshold",))


# The table threshold_sweep_bands: limits that hold at all thresholds together.


MOST_THRESHOLDS = 1_000  # of a group, beside those of its operating points
MOST_DRAWN = 10 * MOST_CELLS  # thresholds of all groups × draws
CRITICAL = tuple(f"critical_{name}" for name in RATIOS)
_AT, _INDEX, _SIZE = "_at", "_index", "_size"


def bands_table(
    params: ThresholdSweepParameters,
    curve: pl.DataFrame,
    points: pl.DataFrame,
    cube: Cube,
    clusters: pl.DataFrame,
    estimates: Estimates | None,
) -> pl.DataFrame:
    """One row per group and threshold, of many thresholds at most about `MOST_THRESHOLDS`.

    Args:
        params: The parameters of the stage.
        curve: The curve with its limits, squared weights and heaviest weights.
        points: The operating points, whose thresholds are always among those of the band.
        cube: The counts of the groups.
        clusters: `clusters_of` the groups.
        estimates: What labels of a sample say, if labels are those of one.
    """
    rows = _chosen(curve, points, cube.keys)
    banded = _banded(params, rows, cube, estimates)
    marked = with_quality(
        banded, RATIOS, clusters=None if params.cluster is None else clusters, keys=cube.keys, events=CONFUSION
    )
    return marked.select(*cube.keys, *(column.name for column in BANDS.columns))


def _chosen(curve: pl.DataFrame, points: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The thresholds of the bands, with `n_thresholds` and `_at`, the threshold."""
    index, size = pl.int_range(pl.len(), dtype=pl.Int64).over(keys), pl.len().over(keys).cast(pl.Int64)
    rows = curve.sort(THRESHOLD).with_columns(index.alias(_INDEX), size.alias(_SIZE))
    sizes = rows[_SIZE].unique().sort().to_list()
    spread = pl.DataFrame(
        [(size, index) for size in sizes for index in spread_out(size, MOST_THRESHOLDS).tolist()],
        schema={_SIZE: pl.Int64(), _INDEX: pl.Int64()},
        orient="row",
    )
    of_points = points.select(*keys, THRESHOLD)
    marks = (
        rows.join(spread, on=[_SIZE, _INDEX], how="semi"),
        rows.join(of_points, on=[*keys, THRESHOLD], how="semi", nulls_equal=True),
    )
    chosen = pl.concat(marks).unique([*keys, THRESHOLD]).sort(THRESHOLD)
    return chosen.with_columns(
        pl.len().over(keys).cast(pl.Int64).alias("n_thresholds"), pl.col(THRESHOLD).alias(_AT)
    ).drop(_INDEX, _SIZE)


def _banded(
    params: ThresholdSweepParameters, rows: pl.DataFrame, cube: Cube, estimates: Estimates | None
) -> pl.DataFrame:
    """With limits, why they are missing, critical values and method."""
    within_budget = rows.height * DRAWS <= MOST_DRAWN and (params.cluster is None or cube.within_budget(rows.height))
    if rows.is_empty() or not within_budget:
        return rows.with_columns(*no_limits(RATIOS, "budget"), *nulls(CRITICAL), *nulls(["method"], pl.String))
    if estimates is not None:
        by_key = by_group(rows.sort(THRESHOLD), cube.keys)
        return pl.concat([_of_sample(params, group, estimates.largest(key)) for key, group in by_key.items()])
    return pl.concat([_of_group(params, *group) for group in _beside(rows, cube)])


def _of_sample(
    params: ThresholdSweepParameters, rows: pl.DataFrame, largest: Mapping[str, NDArray[np.float64]]
) -> pl.DataFrame:
    """The rows of one group with the band of an estimated curve."""
    values = {name: rows[name].cast(pl.Float64).to_numpy() for name in RATIOS}
    looks = {name: int(np.isfinite(numbers).sum()) for name, numbers in values.items()}
    errors = Largest(dict(largest), looks, "sup_t_sample")
    scarcest = rows.select(pl.min_horizontal(CONFUSION).cast(pl.Float64)).to_series().to_numpy()
    return _with_band(
        rows, band_of_sample(errors, params.confidence, values, _single(rows), scarcest), "undefined_ratio"
    )


def _beside(rows: pl.DataFrame, cube: Cube) -> Iterator[tuple[pl.DataFrame, GroupCounts]]:
    """The rows of every group and its counts at their thresholds alone."""
    if cube.thresholds is None and cube.boundary == ">":
        # between the thresholds that were chosen lie others: those rows must not count as equal to a threshold
        lowest = [lowest_retrieved(threshold, ">") for threshold in rows[THRESHOLD]]
        rows = rows.with_columns(pl.Series(THRESHOLD, lowest, dtype=pl.Float64))
    for of_group, counts in replace(cube, boundary=">=").beside(rows):
        yield of_group.with_columns(pl.col(_AT).alias(THRESHOLD)), counts


def _of_group(params: ThresholdSweepParameters, rows: pl.DataFrame, group: GroupCounts) -> pl.DataFrame:
    """The rows of one group with its band."""
    band = _band(params, rows, group)
    replicates = min(len(counts.replicates) for counts in (group, *group.crossed))
    reason: Reason = "one_replicate" if params.cluster is not None and replicates == 1 else "undefined_ratio"
    return _with_band(rows, band, reason)


def _with_band(rows: pl.DataFrame, band: Band, reason: Reason) -> pl.DataFrame:
    """The rows of one group with the limits of a band."""
    intervals = {name: Interval.of(limits, reason) for name, limits in band.limits.items()}
    has_band = {name: not np.isnan(lower).all() for name, (lower, _) in band.limits.items()}
    critical = (
        doubles(column, np.full(rows.height, band.critical.values[name] if has_band[name] else np.nan))
        for column, name in zip(CRITICAL, RATIOS, strict=True)
    )
    method = pl.lit(band.critical.method if any(has_band.values()) else None, dtype=pl.String).alias("method")
    return rows.with_columns(*limit_columns(intervals), *critical, method)


def _band(params: ThresholdSweepParameters, rows: pl.DataFrame, group: GroupCounts) -> Band:
    """The band of one group, nowhere narrower than the limits of its curve."""
    single, draws = _single(rows), Draws(seed=params.seed)
    if params.cluster is None:
        sums, weights = confusion_of_rows(rows)
        fixed = params.class_sizes == "fixed"
        return band_of_rows(sums, weights, params.confidence, single, fixed_sizes=fixed, draws=draws)
    (counts, *crossed), heaviest = counts_of_clusters(rows, group)
    return band_of_clusters(counts, params.confidence, single, heaviest=heaviest, crossed=crossed, draws=draws)


def _single(rows: pl.DataFrame) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """The limits of single thresholds."""
    lower, upper = ({name: rows[f"{name}_{side}"].to_numpy() for name in RATIOS} for side in ("lower", "upper"))
    return {name: (lower[name], upper[name]) for name in RATIOS}


# The region of a figure in which a whole curve lies: the limits of all its thresholds together.


LOWER, UPPER = "band_lower", "band_upper"


def with_band(figure: Figure | None, tables: Mapping[str, pl.DataFrame], confidence: float) -> Figure | None:
    """Return a figure of one ratio against another with the region of its last series, if the stage made bands.

    At a threshold the band is a box: the limits of both ratios. The region is the union of the boxes of all thresholds,
    which is drawn from its lowest to its highest end above each value of the horizontal axis.

    Args:
        figure: The figure, or None.
        tables: The result tables of the stage.
        confidence: The level of the bands.
    """
    bands = tables.get("threshold_sweep_bands")
    if figure is None or bands is None or bands.is_empty():
        return figure
    frame, line = figure.frame, figure.series[-1]
    boxes = by_group(bands, keys_of(bands))
    ends = [
        _ends(rows, boxes.get(key), figure.x.column, line.column)
        for key, rows in by_group(frame, keys_of(frame)).items()
    ]
    with_ends = pl.concat(ends)
    if with_ends[LOWER].null_count() == with_ends.height:
        return figure
    words = (
        f"The region is a simultaneous band: in {level(confidence)} of samples it holds the whole curve. Intervals of "
        "single points are narrower: each holds its own that often, all together hold far less often."
    )
    series = (*figure.series[:-1], replace(line, lower=LOWER, upper=UPPER))
    return replace(figure, frame=with_ends, series=series, caption=caption(figure.caption, words))


def _ends(rows: pl.DataFrame, boxes: pl.DataFrame | None, across: str, upward: str) -> pl.DataFrame:
    """The rows of one group with the ends of the region above each of them, and how far it can be trusted."""
    lower = upper = np.full(rows.height, np.nan)
    quality = None
    if boxes is not None:
        names = [f"{name}_{side}" for name in (across, upward) for side in ("lower", "upper")]
        limits = boxes.select(names).drop_nulls().to_numpy().T
        lower, upper = _region(rows[across].cast(pl.Float64).to_numpy(), limits)
        marks = set(boxes[INTERVAL_QUALITY]) & set(DOUBTFUL)
        quality = next((mark for mark in DOUBTFUL if mark in marks), "good")
    marked = pl.lit(quality, dtype=pl.String).alias(INTERVAL_QUALITY)
    return rows.with_columns(doubles(LOWER, lower), doubles(UPPER, upper), marked)


def _region(at: NDArray[np.float64], limits: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The lowest and the highest end of boxes above each place; nan where no box lies above it.

    Args:
        at: Shape (M,): places on the horizontal axis; nan lies in no box.
        limits: Shape (4, K): left, right, lower and upper end of each box.
    """
    left, right, low, high = limits
    is_above = (left <= at[:, None]) & (at[:, None] <= right)
    lowest = np.where(is_above, low, np.inf).min(axis=1, initial=np.inf)
    highest = np.where(is_above, high, -np.inf).max(axis=1, initial=-np.inf)
    return np.where(np.isfinite(lowest), lowest, np.nan), np.where(np.isfinite(highest), highest, np.nan)
