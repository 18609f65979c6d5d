"""The false positive rate standardised to the pairs after the event: direct standardisation over strata.

Chance matches can be more frequent in some strata, such as certain days of the week. If the compared pairs after the
event are spread over the strata differently from those before it, the plain rate M_b / N_b belongs to the wrong
mixture. Applying each stratum's rate before the event to its pairs after the event (Miettinen 1972) corrects this:

    FP_adj = sum over s of (M_b,s / N_b,s) N_a,s       FPR_adj = FP_adj / N_a

Everything else follows from FP_adj as the plain estimates do from FP.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...records import dataclass
from ..uncertainty.clusters import JackknifeSpread
from ..uncertainty.jackknife import leave_one_out
from ..uncertainty.limits import Interval, union
from .estimates import Sums
from .intervals import MIN_REPLICATES, intervals_of_sums

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from ..uncertainty.interval_quality import Reason
    from ..uncertainty.jackknife import Floats
    from .estimates import Counts
    from .intervals import Choice


ADJUSTED_NAMES = ("fpr", "precision")


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
        fp_jackknifed: Shape (G, T): `fp` without each replicate in turn, scaled up to the size of the full totals; nan
            where a stratum is then left with pairs after the event but none before it. The array has no rows if there
            are fewer than two replicates.
        n_strata: Number of strata with at least one compared pair.
        n_unsupported: Number of pairs after the event in strata that have no pair before it; `fp` does not include
            their false positives.
    """

    fp: Floats
    fp_jackknifed: Floats
    n_strata: int
    n_unsupported: int


def standardise(strata: Iterable[Stratum], replicates: int, thresholds: int) -> Standardised:
    """Sum the expected false positives over the strata, in the order in which they come.

    Args:
        strata: The strata; their arrays have the same shapes.
        replicates: Number of replicates, G.
        thresholds: Number of thresholds, T.
    """
    fp, n_strata, n_unsupported = np.zeros(thresholds), 0, 0
    fp_jackknifed = np.zeros((replicates if replicates >= MIN_REPLICATES else 0, thresholds))
    for stratum in strata:
        n_before, n_after = int(stratum.n_before.sum()), int(stratum.n_after.sum())
        n_strata += n_before + n_after > 0
        if n_before:
            fp += stratum.m_before.sum(axis=0).astype(np.float64) * n_after / n_before
        else:
            n_unsupported += n_after
        if n_after and len(fp_jackknifed):
            fp_jackknifed += _jackknifed_false_positives(stratum)
    return Standardised(fp, fp_jackknifed, n_strata, n_unsupported)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _jackknifed_false_positives(stratum: Stratum) -> Floats:
    """False positives of a stratum without each replicate in turn; 0 where it then has no pair after the event."""
    matches, before, after = (
        leave_one_out(counts) for counts in (stratum.m_before, stratum.n_before[:, None], stratum.n_after[:, None])
    )
    return np.where(after > 0, matches / before * after, 0.0)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def adjusted_intervals(
    standardised: Standardised,
    m_after: Counts,
    n_before: Counts,
    n_after: Counts,
    *,
    reference: int | None,
    confidence: float,
    reference_recalls: Sequence[float] = (1.0,),
    choice: Choice | None = None,
) -> dict[str, Interval]:
    """Intervals of the ratios based on the standardised rate, computed as `intervals` computes them for the plain rate.

    The standardised rate takes the place of M_b / N_b, both in the totals and without each replicate. The weights of
    the strata therefore vary with the replicates, as they would vary with other events.

    Args:
        standardised: Result of `standardise`, restricted to replicates with at least one pair.
        m_after: Shape (G, T): matches after the event, of the same replicates.
        n_before: Shape (G,): compared pairs before the event, in all strata.
        n_after: Shape (G,): the same after it.
        reference: Index of the threshold that recall is measured against, or None if there is none.
        confidence: Such as 0.95.
        reference_recalls: As for `intervals`.
        choice: As for `intervals`.
    """
    size = m_after.shape[1]
    if len(n_before) < MIN_REPLICATES or not n_after.any():
        return dict.fromkeys(ADJUSTED_NAMES, Interval.none(size, "one_replicate"))
    if standardised.n_unsupported or np.isnan(standardised.fp_jackknifed).any():
        reason: Reason = "unsupported_stratum" if standardised.n_unsupported else "thin_stratum"
        return dict.fromkeys(ADJUSTED_NAMES, Interval.none(size, reason))
    counts = (m_after, n_before[:, None], n_after[:, None])
    sums = [values.sum(axis=0).astype(np.float64) for values in counts]
    without = [leave_one_out(values) for values in counts]
    spread, of_recalls = JackknifeSpread((len(n_before),)), []
    for recall in dict.fromkeys(reference_recalls):
        totals = adjusted_sums(standardised.fp, sums, reference, recall)
        jackknifed = adjusted_sums(standardised.fp_jackknifed, without, reference, recall)
        of_recalls.append(intervals_of_sums(totals, jackknifed, spread, confidence=confidence, choice=choice))
    return {name: union([limits[name] for limits in of_recalls]) for name in ADJUSTED_NAMES}


def adjusted_sums(fp: Floats, counts: Sequence[Floats], reference: int | None, reference_recall: float) -> Sums:
    """The sums in which the standardised rate takes the place of the plain one.

    FP / N_a × N_b is the M_b that gives the rate by which FP of the N_a pairs after the event would be false positives
    if all of them were negative.

    Args:
        fp: As in `Standardised`: totals, or without each replicate.
        counts: M_a, N_b and N_a likewise.
        reference: Index of the threshold that recall is measured against, or None if there is none.
        reference_recall: What recall is believed to be there.
    """
    m_after, n_before, n_after = counts
    return Sums.of(reference, reference_recall, [fp / n_after * n_before, m_after, n_before, n_after])
