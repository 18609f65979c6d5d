"""Accuracy of geocoding: counts within a tolerance and statistics of the distance errors.

The input is the distance of every gold toponym from its prediction. It is missing where nothing was attempted: the
mention was not recognised, or it was recognised but got no coordinates. With n_attempted the number of toponyms that
have a distance:

    within the tolerance: true positive      beyond it: false positive and miss      no distance: miss

so tp + fn = n_gold and tp + fp = n_attempted. The published "accuracy at k km" is tp / n_attempted, the precision.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl

from ...tables.ratios import ratios

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Missing = Literal["exclude", "max_error"]

FARTHEST_KM = 20038.0
"""The largest possible error according to the published log error: half the equator, rounded up."""


def add_ratios(counts: pl.DataFrame) -> pl.DataFrame:
    """Add `fp`, `fn`, `precision`, `recall` and `f1` to the integers `n_gold`, `n_attempted` and `tp`.

    Precision is over the attempted toponyms, recall over all gold toponyms. NULL where nothing was attempted
    (precision), without gold toponyms (recall), and without both (f1).
    """
    tp = pl.col("tp")
    fp, fn = pl.col("n_attempted") - tp, pl.col("n_gold") - tp
    return counts.with_columns(fp.alias("fp"), fn.alias("fn")).with_columns(ratios(tp, pl.col("fp"), pl.col("fn")))


def error_statistics(distances_km: Floats, *, missing: Missing = "exclude") -> dict[str, int | float]:
    """Number of toponyms, and mean, median and area of the distance errors.

    Args:
        distances_km: Distance for each gold toponym, shape (n_gold,); nan where it was not located.
        missing: How toponyms that were not located are treated: left out, as in the published numbers, or assigned the
            largest possible error, so that a geocoder gains nothing by leaving out the hard ones.

    Returns:
        `n_gold`, `n_located`, `mean_km`, `median_km` and `log_error_auc`; the last three are nan where there is no
        error (never 0, which would look perfect).
    """
    located = distances_km[~np.isnan(distances_km)]
    errors = located if missing == "exclude" else np.where(np.isnan(distances_km), FARTHEST_KM, distances_km)
    ordered = np.sort(errors)
    return {
        "n_gold": len(distances_km),
        "n_located": len(located),
        "mean_km": float(ordered.mean()) if len(ordered) else math.nan,
        "median_km": float(np.median(ordered)) if len(ordered) else math.nan,
        "log_error_auc": log_error_auc(ordered),
    }


def log_error_auc(errors_km: Floats) -> float:
    """Area under the curve of log errors, from 0 (perfect) to 1 (Jurgens et al. 2015; Gritta et al. 2018).

    This is the trapezoid area under ln(1 + d) of the errors in ascending order, divided by ln(20039) (n - 1), the area
    for errors of half the equator. It is close to the mean of ln(1 + d) / ln(20039), but the first and the last error
    count half, so that unsorted errors would give a different number.

    Args:
        errors_km: Errors of the located toponyms, shape (n,), any order, without nan.

    Returns:
        nan with fewer than 2 errors.
    """
    if len(errors_km) <= 1:
        return math.nan
    logs = np.log1p(np.sort(errors_km))
    area = logs.sum() - (logs[0] + logs[-1]) / 2
    return float(area / (math.log(FARTHEST_KM + 1) * (len(logs) - 1)))
