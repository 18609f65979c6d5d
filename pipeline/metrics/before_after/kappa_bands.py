"""Precision and recall as κ, the false positive rate after the event over that before it, runs from 0.75 to 1.5."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...tables.sweep import THRESHOLD
from ..uncertainty.limits import limit_series

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..uncertainty.jackknife import Floats

KAPPAS = np.geomspace(0.75, 1.5, 31)
BANDS = ("precision_over_kappa", "recall_over_kappa")
_COUNTS = ("m_before", "m_after", "n_before", "n_after")


@np.errstate(divide="ignore", invalid="ignore")
def ratios_over_kappa(chosen: Floats, reference: Floats, reference_recall: float = 1.0) -> tuple[Floats, Floats]:
    """Corrected precision and recall at one threshold for every κ in `KAPPAS`.

    With FPR = κ M_b / N_b at both thresholds, A = (M_a(reference) - FPR(reference) N_a) / (r0 - FPR(reference)),
    TP = M_a - FPR (N_a - A), P = TP / M_a and R = TP / A (Rogan & Gladen 1978).

    Args:
        chosen: M_b, M_a, N_b and N_a at the threshold, shape (4,).
        reference: The same at the recall reference.
        reference_recall: What recall is believed to be there, r0.

    Returns:
        Two arrays of the shape of `KAPPAS`. Precision may be negative, recall is clipped to [0, 1]; nan where there is
        no estimate of the positives: A is not between 0 and N_a, or there is no pair before the event.
    """
    m_before, m_after, n_before, n_after = chosen
    rate, rate_reference = (KAPPAS * of_matches / n_before for of_matches in (m_before, reference[0]))
    # positives after the event
    gap, hits = reference_recall - rate_reference, reference[1] - rate_reference * n_after
    positives = np.where((gap > 0) & (hits > 0), hits / gap, np.nan)
    positives = np.where(positives <= n_after, positives, np.nan)
    tp = m_after - rate * (n_after - positives)
    precision = tp / np.where(m_after > 0, m_after, np.nan)
    return np.asarray(precision), np.asarray(np.clip(tp / positives, 0.0, 1.0))


def with_bands(
    points: pl.DataFrame, curve: pl.DataFrame, keys: Sequence[str], reference_recall: float = 1.0
) -> pl.DataFrame:
    """Add `precision_over_kappa_lower`, `…_upper` and the same of recall to operating points.

    Args:
        points: One row per group and criterion, with `threshold` and the counts.
        curve: Estimates, one row per group × threshold; `is_reference` marks the recall reference.
        keys: Columns that identify a group.
        reference_recall: What recall is believed to be at the reference.

    Returns:
        The lowest and the highest value over all κ; NULL where there is no reference, no match, or no estimate of the
        positives for one of the κ.
    """
    names = [f"_{name}" for name in _COUNTS]
    references = curve.filter("is_reference").select(
        *keys, *(pl.col(name).alias(alias) for name, alias in zip(_COUNTS, names, strict=True))
    )
    joined = points.select(*keys, THRESHOLD, *_COUNTS).join(
        references, on=list(keys), how="left", nulls_equal=True, maintain_order="left"
    )
    counts, of_references = (
        joined.select(columns).cast(pl.Float64).fill_null(np.nan).to_numpy() for columns in (_COUNTS, names)
    )
    values = [
        ratios_over_kappa(chosen, reference, reference_recall)
        for chosen, reference in zip(counts, of_references, strict=True)
    ]
    bands = np.array(values).reshape(len(values), len(BANDS), len(KAPPAS))
    return points.with_columns(
        *(
            series
            for index, name in enumerate(BANDS)
            for series in limit_series(name, (bands[:, index].min(axis=1), bands[:, index].max(axis=1)))
        )
    )
