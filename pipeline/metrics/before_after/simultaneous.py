"""Limits that hold at all thresholds together, so that a threshold may be chosen after looking at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from pipeline.metrics.before_after.intervals import intervals
from pipeline.metrics.uncertainty.jackknife import leave_one_out

if TYPE_CHECKING:
    from pipeline.metrics.before_after.intervals import Counts
    from pipeline.metrics.uncertainty.jackknife import Floats

DRAWS = 1999


def single_confidence(contributions: Floats, confidence: float, *, draws: int = DRAWS, seed: int = 0) -> float:
    """Two-sided confidence of single limits whose upper limits hold together with a one-sided confidence.

    The signs of whole replicates are flipped at random, jointly for all thresholds, to see how large the largest of the
    standardised sums becomes (wild bootstrap: Davidson & Flachaire 2008). Never stricter than Bonferroni's share.

    Args:
        contributions: Shape (G, T): what each replicate adds to the error at each threshold.
        confidence: Of all limits together, one-sided.
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
    """Lower limits of precision that hold at all thresholds together.

    The precision of whatever threshold is chosen for its limit is at least that limit, with the given confidence.

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
    before, after, n_b, n_a = (leave_one_out(each) for each in (m_before, m_after, n_before, n_after))
    share = (before / n_b[:, None]) / (after / n_a[:, None])
    contributions = np.nan_to_num(share.mean(axis=0) - share, posinf=0.0, neginf=0.0)
    single = single_confidence(contributions, confidence)
    found = intervals(m_before, m_after, n_before, n_after, reference=None, confidence=single)
    return found["precision"].lower
