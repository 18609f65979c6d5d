"""Counts and ratios at every tolerance from plain distances, for the tests of geocoding and of published numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from pipeline.base.columns import ratios

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


def tolerance_counts(
    distances_km: NDArray[np.float64],
    tolerances_km: Sequence[float],
    *,
    boundary: Literal["<=", "<"] = "<=",
    n_spurious: int = 0,
) -> pl.DataFrame:
    """Counts and ratios at every tolerance.

    Args:
        distances_km: Distance for each gold toponym, shape (n_gold,); nan where nothing was attempted.
        tolerances_km: Largest distances that count as correct.
        boundary: `<=`: a distance equal to the tolerance is within it; `<`: it is not.
        n_spurious: Number of predictions with coordinates but without a gold toponym. The published accuracy leaves
            them out; the resolution scores of SemEval-2019 Task 12 (Weissenbacher et al. 2019) count them as attempted
            and wrong.

    Returns:
        One row per tolerance, in the same order: `tolerance_km`, `n_gold`, `n_attempted` (including spurious),
        `tp`, `fp`, `fn`, `precision`, `recall` and `f1`.
    """
    attempted = np.sort(distances_km[~np.isnan(distances_km)])
    side: Literal["left", "right"] = "right" if boundary == "<=" else "left"
    correct = np.searchsorted(attempted, np.asarray(tolerances_km, dtype=np.float64), side=side)
    columns = {"tolerance_km": list(tolerances_km), "tp": correct}
    counts = pl.DataFrame(columns, schema_overrides={"tolerance_km": pl.Float64}).with_columns(
        pl.lit(len(distances_km), pl.Int64).alias("n_gold"),
        pl.lit(len(attempted) + n_spurious, pl.Int64).alias("n_attempted"),
    )
    tp = pl.col("tp")
    fp, fn = (pl.col("n_attempted") - tp).alias("fp"), (pl.col("n_gold") - tp).alias("fn")
    return counts.with_columns(fp, fn).with_columns(ratios(tp, pl.col("fp"), pl.col("fn")))
