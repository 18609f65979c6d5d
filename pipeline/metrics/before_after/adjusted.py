"""The false positive rate standardised to the pairs after the event: direct standardisation over strata.

If matches by chance are more frequent in some strata, such as days of the week, and the compared pairs after the event
lie in other strata than those before it, the plain rate M_b / N_b is that of the wrong mixture. The rates of the strata
before the event, applied to the pairs after it (Miettinen 1972), are not:

    FP_adj = sum over s of (M_b,s / N_b,s) N_a,s       FPR_adj = FP_adj / N_a

Everything else follows from FP_adj as the plain estimates do from FP.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pipeline.metrics.before_after.intervals import TWO, Sums, intervals_of_sums, no_interval
from pipeline.metrics.uncertainty.jackknife import leave_one_out

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pipeline.metrics.before_after.intervals import Counts, Interval
    from pipeline.metrics.uncertainty.jackknife import Floats


NAMES = ("fpr", "precision")


@dataclass(frozen=True)
class Stratum:
    """Counts of one stratum by replicate.

    Attributes:
        m_before: Shape (G, T): matches before the event at or above each threshold.
        n_before: Shape (G,): compared pairs before the event.
        n_after: Shape (G,): the same after it.
    """

    m_before: Counts
    n_before: Counts
    n_after: Counts


@dataclass(frozen=True)
class Standardised:
    """Estimated false positives after the event.

    Attributes:
        fp: Shape (T,).
        fp_rest: Shape (G, T): without each replicate in turn, raised to the size of the full totals; nan where a
            stratum then has pairs after the event and none before. It has no row if there are fewer than two
            replicates.
        n_strata: Strata with any compared pair.
        n_unsupported: Pairs after the event in strata without a pair before it; `fp` lacks their false positives.
    """

    fp: Floats
    fp_rest: Floats
    n_strata: int
    n_unsupported: int


def standardise(strata: Iterable[Stratum], replicates: int, thresholds: int) -> Standardised:
    """Sum the false positives of the strata, in their order.

    Args:
        strata: The strata.
        replicates: G.
        thresholds: T.
    """
    fp, number, unsupported = np.zeros(thresholds), 0, 0
    fp_rest = np.zeros((replicates if replicates >= TWO else 0, thresholds))
    for each in strata:
        n_before, n_after = int(each.n_before.sum()), int(each.n_after.sum())
        number += n_before + n_after > 0
        if n_before:
            fp += each.m_before.sum(axis=0).astype(np.float64) * n_after / n_before
        else:
            unsupported += n_after
        if n_after and len(fp_rest):
            fp_rest += _without_each(each)
    return Standardised(fp, fp_rest, number, unsupported)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _without_each(stratum: Stratum) -> Floats:
    """False positives of a stratum without each replicate; 0 where no pair after the event is left in it."""
    matches, before, after = (
        leave_one_out(each) for each in (stratum.m_before, stratum.n_before[:, None], stratum.n_after[:, None])
    )
    return np.where(after > 0, matches / before * after, 0.0)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def adjusted_intervals(
    found: Standardised,
    m_after: Counts,
    n_before: Counts,
    n_after: Counts,
    *,
    reference: int | None,
    confidence: float,
) -> dict[str, Interval]:
    """Intervals of the ratios with the standardised rate, as `before_after_intervals.intervals` makes the plain ones.

    The standardised rate stands in for M_b / N_b, in full and without each replicate, so the weights of the strata vary
    with the replicates as they would with other events.

    Args:
        found: As from `standardise`, of replicates with at least one pair.
        m_after: Shape (G, T): matches after the event, of the same replicates.
        n_before: Shape (G,): compared pairs before the event, in all strata.
        n_after: Shape (G,): the same after it.
        reference: Index of the threshold that recall is measured against; None: there is none.
        confidence: Such as 0.95.
    """
    size = m_after.shape[1]
    if len(n_before) < TWO or not n_after.any():
        return dict.fromkeys(NAMES, no_interval(size, "one_replicate"))
    if found.n_unsupported or np.isnan(found.fp_rest).any():
        reason = "unsupported_stratum" if found.n_unsupported else "thin_stratum"
        return dict.fromkeys(NAMES, no_interval(size, reason))
    totals = [each.sum(axis=0).astype(np.float64) for each in (m_after, n_before[:, None], n_after[:, None])]
    without = [leave_one_out(each) for each in (m_after, n_before[:, None], n_after[:, None])]
    full = Sums(reference, 1.0, found.fp / totals[2] * totals[1], *totals)
    rest = Sums(reference, 1.0, found.fp_rest / without[2] * without[1], *without)
    limits = intervals_of_sums(full, rest, confidence=confidence, degrees=len(n_before) - 1)
    return {name: limits[name] for name in NAMES}
