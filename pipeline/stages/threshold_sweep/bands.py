"""Bands that hold the whole curve."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

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
from ...metrics.uncertainty.cube import MOST_CELLS
from ...metrics.uncertainty.interval_quality import DOUBTFUL, INTERVAL_QUALITY, QUALITY_COLUMN
from ...metrics.uncertainty.limits import Interval, limit_columns, no_limits, with_quality
from ...tables.columns import THRESHOLD, by_group, doubles, lowest_retrieved, nulls
from ...tables.schemas import Column, Table, limits_of_share
from ..figures import caption, keys_of, level
from .uncertainty import CONFUSION, confusion_of_rows, counts_of_clusters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...metrics.curves.bands import Band
    from ...metrics.uncertainty.cube import Cube, GroupCounts
    from ...metrics.uncertainty.interval_quality import Reason
    from ..figures import Figure
    from .contract import ThresholdSweepParameters
    from .few_labels import Estimates


# Limits that hold at all thresholds together: their table, and their region in figures.


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
