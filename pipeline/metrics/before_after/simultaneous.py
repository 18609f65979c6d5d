"""Limits that hold simultaneously at all thresholds, so that a threshold may be chosen after looking at them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from ..uncertainty.jackknife import leave_one_out
from .intervals import MIN_REPLICATES, intervals
from .sums import Sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..uncertainty.jackknife import Floats
    from .references import Choice
    from .sums import Sides

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
    sides: Sequence[Sides],
    *,
    reference: int | None,
    confidence: float,
    reference_recalls: Sequence[float] = (1.0,),
    choice: Choice | None = None,
) -> Floats:
    """Lower limits of precision that hold simultaneously at all thresholds.

    Whichever threshold is chosen by its limit, its precision is at least that limit, with this confidence.

    Args:
        sides: As for `intervals`.
        reference: As for `intervals`.
        confidence: One-sided, such as 0.95.
        reference_recalls: As for `intervals`.
        choice: As for `intervals`.

    Returns:
        Shape (T,); nan where no limit can be given.
    """
    events = sides[0].with_data
    if (events.n_before > 0).sum() < MIN_REPLICATES:
        return np.full(events.m_before.shape[1], np.nan)
    recall = min(reference_recalls)
    shares = [Sums.of(reference, recall, [leave_one_out(n) for n in way.with_data.columns]) for way in sides]
    # 1 - P without each replicate; its deviations from the mean are the contributions to the error
    contributions = [
        np.nan_to_num(sums.precision - sums.precision.mean(axis=0), posinf=0.0, neginf=0.0) for sums in shares
    ]
    # of two parents, the one that asks for the stricter limits
    single = max(single_confidence(of_way, confidence) for of_way in contributions[:2])
    limits = intervals(
        sides, reference=reference, confidence=single, reference_recalls=reference_recalls, choice=choice
    )
    return limits["precision"].lower
