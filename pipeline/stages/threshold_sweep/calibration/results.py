"""The tables threshold_sweep_reliability and threshold_sweep_calibration, from sums by cells of the score."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ....metrics.calibration.bins import BIN, BINNING, BINNINGS
from ....metrics.calibration.bins import LOWER as SCORE_LOWER
from ....metrics.calibration.bins import UPPER as SCORE_UPPER
from ....metrics.calibration.errors import ERRORS, Variances, calibration_errors
from ....metrics.calibration.estimates import estimates_of_clusters, estimates_of_rows, joined
from ....metrics.uncertainty.cube import MOST_CELLS, Cube
from ....metrics.uncertainty.limits import (
    UNDEFINED_INTERVAL,
    Interval,
    clusters_of_parents,
    limit_columns,
    marked,
    marked_with,
    no_limits,
    with_numbers,
    with_quality,
)
from ....metrics.uncertainty.qualities import INTERVAL_QUALITY, N_CLUSTERS, N_EFFECTIVE
from ....tables.columns import doubles, nulls
from ....tables.schemas import polars_types
from ..contract import HEAVIEST
from ..uncertainty import with_heaviest
from .columns import CALIBRATION, RELIABILITY
from .probabilities import INTO, fitness
from .sums import Binned

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ....metrics.calibration.estimates import Estimates
    from ....metrics.uncertainty.reasons import Reason
    from ..contract import ThresholdSweepParameters

_OF_BINS = ("share_positive", "share_positive_band", "gap")
_TESTS = ("spiegelhalter_z", "spiegelhalter_p_value", "hosmer_lemeshow", "hosmer_lemeshow_p_value")
_FROM_VARIANCES = ("ece_if_calibrated", *(name for name in ERRORS if name.endswith("_debiased")))
_EVENTS = ("n_positive", "n_negative")
_SIZES = ("weight_positive", "weight_negative")


def calibration_tables(
    params: ThresholdSweepParameters, counts: Mapping[str, pl.DataFrame], clusters: pl.DataFrame
) -> dict[str, pl.DataFrame]:
    """Both tables; without the first where no group has probabilities, and none where nothing was counted for them.

    Args:
        params: The parameters.
        counts: The tables of the plan.
        clusters: `clusters_of` the groups, NULL where rows are independent.
    """
    if params.calibration is False:
        return {}
    groups = fitness(counts)
    fit = groups.filter(pl.col("undefined").is_null()).select(groups.columns[: groups.columns.index("n")])
    if fit.height and INTO not in counts:
        return {}
    binnings = pl.DataFrame({BINNING: BINNINGS}, schema={BINNING: pl.String})
    every = groups.join(binnings, how="cross", maintain_order="left")
    if fit.is_empty():
        return {"threshold_sweep_calibration": _completed(every, None, clusters)}
    binned = Binned.of(counts, fit, params.calibration_bins)
    estimates, reason = _estimated(params, binned, counts.get("heaviest"))
    return {
        "threshold_sweep_reliability": _reliability(params, binned, estimates, reason, clusters),
        "threshold_sweep_calibration": _completed(every, _errors(binned, estimates, reason), clusters),
    }


def _estimated(
    params: ThresholdSweepParameters, binned: Binned, heaviest: pl.DataFrame | None
) -> tuple[Estimates | None, Reason]:
    """Limits, variances and tests, or none; and why limits are missing."""
    if not params.is_replicated:
        return None, "none"
    positive, negative = with_heaviest(binned.frame, heaviest, binned.keys[:-1]).select(HEAVIEST).to_numpy().T
    if params.cluster is None:
        weights = (positive, negative) if binned.is_weighted else None
        return estimates_of_rows(binned.sums, binned.starts, weights, params.confidence), "undefined_ratio"
    if binned.frame.height * max(binned.replicates, params.drawn_resamples) > MOST_CELLS:
        return None, "budget"
    of_groups = []
    for start, (sums, clusterings) in zip(binned.starts, binned.groups(), strict=True):
        heavy = (positive[start], negative[start]) if binned.is_weighted else None
        of_groups.append(estimates_of_clusters(sums, clusterings, heavy, params.confidence, params.resampling))
    return joined(of_groups), "one_replicate"


def _reliability(
    params: ThresholdSweepParameters,
    binned: Binned,
    estimates: Estimates | None,
    reason: Reason,
    of_groups: pl.DataFrame,
) -> pl.DataFrame:
    """One row per group, binning and bin; of bins of equal width those without a row, too."""
    sums = binned.sums
    frame = binned.frame.with_columns(
        pl.sum_horizontal(_EVENTS).cast(pl.Int64).alias("n"),
        pl.col("n_positive").cast(pl.Int64),
        doubles("mean_score", sums.mean_score),
        *binned.bounds(),
        doubles("share_positive", sums.share),
        doubles("gap", sums.gap),
        *nulls(["undefined"], pl.String),
    )
    weights = [doubles("weight", sums.weighted.weight), doubles("weight_positive", sums.weighted.hits)]
    if estimates is None:
        frame = frame.with_columns(no_limits(_OF_BINS, reason))
    else:
        limits = zip(_OF_BINS, (estimates.bins.share, estimates.bins.band, estimates.bins.gap), strict=True)
        frame = frame.with_columns(*limit_columns({name: Interval.of(values, reason) for name, values in limits}))
    of_bin = [*binned.keys, BIN]
    clusters = None
    if params.cluster is not None:
        cube = Cube.of(binned.by_replicate[0], of_bin, None, crossed=binned.by_replicate[1:])
        is_alike = of_groups.filter(marked_with("correlated_days"))
        bins = binned.frame.join(is_alike, on=binned.keys[:-1], how="semi", nulls_equal=True)
        clusters = marked(clusters_of_parents(cube, _SIZES), "correlated_days", bins)
    frame = with_quality(frame, _OF_BINS, clusters=clusters, keys=of_bin, events=_EVENTS)
    frame = frame.with_columns(weights if binned.is_weighted else nulls(["weight", "weight_positive"]))
    shown = frame.select(*binned.keys[:-1], *(column.name for column in RELIABILITY))
    empty = _empty_bins(shown, binned, params.calibration_bins, reason if estimates is None else "undefined_ratio")
    return pl.concat([shown, empty], how="diagonal")


def _empty_bins(bins: pl.DataFrame, binned: Binned, count: int, reason: Reason) -> pl.DataFrame:
    """The bins of equal width that have no row, without numbers."""
    of_width = bins.filter(pl.col(BINNING) == "width").select(binned.keys).unique(maintain_order=True)
    number = pl.col(BIN)
    every = of_width.join(pl.DataFrame({BIN: range(1, count + 1)}, schema={BIN: pl.Int64}), how="cross")
    return every.join(bins, on=[*binned.keys, BIN], how="anti", nulls_equal=True).with_columns(
        ((number - 1) / count).alias(SCORE_LOWER),
        (number / count).alias(SCORE_UPPER),
        *(pl.lit(0, dtype=pl.Int64).alias(name) for name in ("n", "n_positive")),
        pl.lit("no_row").alias("undefined"),
        pl.lit(reason).alias(UNDEFINED_INTERVAL),
    )


def _errors(binned: Binned, estimates: Estimates | None, reason: Reason) -> pl.DataFrame:
    """The numbers of every group and binning that has probabilities."""
    sums, starts = binned.sums, binned.starts
    groups = sums.of_groups(starts)
    nothing, nothing_of_bins = np.full(len(starts), np.nan), np.full(len(sums.rows), np.nan)
    unknown = Variances(nothing_of_bins, nothing_of_bins, nothing_of_bins, nothing)
    variances = unknown if estimates is None else estimates.variances
    numbers = calibration_errors(sums, variances, starts)
    known = ~np.isnan(variances.prevalence)
    numbers |= {name: np.where(known, numbers[name], np.nan) for name in _FROM_VARIANCES}
    numbers |= {"mean_score": groups.mean_score, "share_positive": groups.share, "gap": groups.gap}
    tests = (nothing,) * 4 if estimates is None else (*estimates.spiegelhalter, *estimates.hosmer_lemeshow)
    numbers |= {name: np.where(np.isinf(test), np.nan, test) for name, test in zip(_TESTS, tests, strict=True)}
    gap = (nothing, nothing) if estimates is None else estimates.gap
    sizes = np.diff([*starts, len(sums.rows)])
    of_groups = binned.frame.select(pl.col(binned.keys).gather(starts.tolist()))
    return of_groups.with_columns(
        pl.Series("n_bins", sizes, dtype=pl.Int64),
        *binned.bounds(starts),
        pl.Series("_positive", groups.weighted.hits),
        pl.Series("_negative", groups.weighted.weight - groups.weighted.hits),
        *(doubles(name, values) for name, values in numbers.items()),
        *limit_columns({"gap": Interval.of(gap, reason)}),
    )


def _completed(groups: pl.DataFrame, errors: pl.DataFrame | None, clusters: pl.DataFrame) -> pl.DataFrame:
    """One row per group and binning, without numbers where the group has no probabilities."""
    keys = groups.columns[: groups.columns.index("n")]
    columns = {column.name: polars_types(column.type)[0] for column in CALIBRATION}
    events = ("_positive", "_negative")
    if errors is not None:
        groups = groups.join(errors, on=[*keys, BINNING], how="left", nulls_equal=True, maintain_order="left")
    is_undefined, present = pl.col("undefined").is_not_null(), set(groups.columns)
    given = pl.col(UNDEFINED_INTERVAL) if UNDEFINED_INTERVAL in present else pl.lit(None, dtype=pl.String)
    why = pl.when(is_undefined).then(pl.lit("undefined_ratio")).otherwise(given).alias(UNDEFINED_INTERVAL)
    made_below = {UNDEFINED_INTERVAL, N_CLUSTERS, N_EFFECTIVE, INTERVAL_QUALITY}
    absent = [name for name in (*columns, *events) if name not in present | made_below]
    frame = groups.with_columns(
        why, *(pl.lit(None, dtype=columns.get(name, pl.Float64())).alias(name) for name in absent)
    )
    frame = with_quality(frame, ["gap"], clusters=clusters, keys=keys, events=events)
    return with_numbers(frame, clusters, keys).select(*keys, *columns)
