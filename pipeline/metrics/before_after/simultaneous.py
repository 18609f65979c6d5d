"""Limits that hold simultaneously at all thresholds, so that a threshold may be chosen after looking at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from pipeline.metrics.before_after.intervals import intervals
from pipeline.metrics.uncertainty.jackknife import leave_one_out

if TYPE_CHECKING:
    from pipeline.metrics.before_after.intervals import Counts
    from pipeline.metrics.uncertainty.jackknife import Floats

_DRAWS = 1999


def single_confidence(contributions: Floats, confidence: float, *, draws: int = _DRAWS, seed: int = 0) -> float:
    """Two-sided confidence of pointwise limits whose upper limits hold simultaneously with a one-sided confidence.

    The signs of the replicates are flipped at random, jointly for all thresholds, to find the distribution of the
    largest standardised sum (wild bootstrap: Davidson & Flachaire 2008). The result is never stricter than Bonferroni's
    correction.

    Args:
        contributions: Shape (G, T): each replicate's contribution to the error at each threshold.
        confidence: One-sided confidence of all limits together.
        draws: Number of random draws.
        seed: The same seed gives the same result.
    """
    scale = np.sqrt((contributions**2).sum(axis=0))
    used = scale > 0
    share = (1 - confidence) / int(contributions.shape[1])
    if not used.any():
        return 1 - 2 * share
    signs = np.random.default_rng(seed).integers(0, 2, (draws, len(contributions))) * 2.0 - 1.0
    largest = (signs @ (contributions[:, used] / scale[used])).max(axis=1)
    critical = float(np.quantile(largest, confidence, method="higher"))
    return 1 - 2 * max(float(scipy.special.ndtr(-critical)), share)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def precision_at_least(
    m_before: Counts, m_after: Counts, n_before: Counts, n_after: Counts, *, confidence: float
) -> Floats:
    """Lower limits of precision that hold simultaneously at all thresholds.

    Whichever threshold is chosen by its limit, its precision is at least that limit, with this confidence.

    Args:
        m_before: Shape (G, T), as for `intervals`.
        m_after: Shape (G, T).
        n_before: Shape (G,).
        n_after: Shape (G,).
        confidence: One-sided, such as 0.95.

    Returns:
        Shape (T,); nan where no limit can be given.
    """
    if (n_before > 0).sum() < 2:  # noqa: PLR2004 - one replicate has no spread
        return np.full(m_before.shape[1], np.nan)
    before, after, n_b, n_a = (leave_one_out(counts) for counts in (m_before, m_after, n_before, n_after))
    # 1 - P without each replicate; its deviations from the mean are the contributions to the error
    share = (before / n_b[:, None]) / (after / n_a[:, None])
    contributions = np.nan_to_num(share.mean(axis=0) - share, posinf=0.0, neginf=0.0)
    single = single_confidence(contributions, confidence)
    limits = intervals(m_before, m_after, n_before, n_after, reference=None, confidence=single)
    return limits["precision"].lower
