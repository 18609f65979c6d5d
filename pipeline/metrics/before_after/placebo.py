"""Near against far before the event: the placebo test of equal false positive rates, and the realised precision."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pipeline.metrics.before_after.intervals import FEW, TWO, Sums, as_interval, no_interval
from pipeline.metrics.uncertainty.jackknife import (
    binomial_interval,
    negative_binomial_quantile,
    p_value,
    paired_dispersion,
    sign_flip_test,
    tail,
)

if TYPE_CHECKING:
    from pipeline.metrics.before_after.intervals import Counts, Interval
    from pipeline.metrics.uncertainty.jackknife import Floats


@dataclass(frozen=True)
class Placebo:
    """Comparison of the false positive rates near to the event and far before it, at every threshold.

    Attributes:
        log_rate_ratio: Shape (T,): log of near over far; nan where either has no match.
        lower: Its lower limit; nan without matches near the event.
        upper: Its upper limit; nan without matches far from it.
        p_value: Two-sided, of equal rates; nan where it cannot be given.
    """

    log_rate_ratio: Floats
    lower: Floats
    upper: Floats
    p_value: Floats


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def realised_precision_interval(
    m_before: Counts,
    m_after: Counts,
    n_before: Counts,
    n_after: Counts,
    m_near: Counts,
    n_near: Counts,
    *,
    confidence: float,
    reference: int | None = None,
    reference_recall: float = 1.0,
) -> Interval:
    """Interval of the precision that this data set has, not of the one to expect: it depends on the FP that occurred.

    FP / φ is predicted to be negative binomial with size M_b / φ + 1/2 and probability N_b / (N_a + N_b). φ compares
    the near part of the time before the event with the rest, as the time after it will differ from the time before.

    Arguments as for `intervals`; `m_near` and `n_near` are those of `m_before` and `n_before` in the near part, best
    as long as the time after the event. With a reference FP is predicted for the N_a - A pairs that are negative, and
    the limits hold the corrected precision; without one for all N_a, and they hold the uncorrected one. Limits lie in
    [0, 1], but a negative precision is its own lower limit.
    """
    matched = m_after.sum(axis=0)
    found = predicted(
        m_before, m_after, n_before, n_after, m_near, n_near, reference=reference, reference_recall=reference_recall
    )
    if found is None:
        return no_interval(m_before.shape[1], "no_before" if n_after.any() else "no_prediction")
    size, odds, phi = found.size, found.probability, found.phi
    tails, expected = tail(confidence, found.degrees), found.expected
    few, many = (phi * negative_binomial_quantile(level, size, odds) for level in (tails, 1 - tails))
    skewed = expected * np.exp(
        -scipy.special.ndtri(tails) * np.sqrt((1 + found.before / found.after) / np.maximum(found.count / phi, 1.0))
    )
    many = many + np.minimum(found.count / FEW, 1.0) * np.fmax(skewed - many, 0.0)
    estimate = 1 - expected / matched
    lower, upper = np.clip(1 - many / matched, 0.0, 1.0), np.clip(1 - few / matched, 0.0, 1.0)
    reason = np.where(matched > 0, "", "no_prediction")
    return as_interval((np.minimum(lower, estimate), np.maximum(upper, np.minimum(estimate, 1.0))), reason)


@dataclass(frozen=True)
class Prediction:
    """How many false positives are to be expected after the event: φ times a negative binomial number.

    Attributes:
        count: Shape (T,): matches before the event.
        phi: Shape (T,): dispersion of the false positives.
        degrees: Shape (T,): degrees of freedom of `phi`.
        before: Compared pairs before the event.
        after: Shape (1,): compared pairs after it that are negative.
    """

    count: Floats
    phi: Floats
    degrees: Floats
    before: float
    after: Floats

    @property
    def size(self) -> Floats:
        """Shape (T,): size of the negative binomial."""
        return self.count / self.phi + 0.5

    @property
    def probability(self) -> Floats:
        """Shape (1,): its probability."""
        return self.before / (self.before + self.after)

    @property
    def expected(self) -> Floats:
        """Shape (T,): expected false positives."""
        return self.count * (self.after / self.before)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def predicted(
    m_before: Counts,
    m_after: Counts,
    n_before: Counts,
    n_after: Counts,
    m_near: Counts,
    n_near: Counts,
    *,
    reference: int | None = None,
    reference_recall: float = 1.0,
) -> Prediction | None:
    """The prediction that `realised_precision_interval` takes its limits from, with the same arguments.

    None where fewer than two replicates have pairs before the event, where there is no pair after it, or where the
    pairs in its near part are not known.
    """
    before, after = n_before.sum(), n_after.sum()
    if not (0 < n_near.sum() < before) or (n_before > 0).sum() < TWO or after == 0:
        return None
    parts = _Parts(m_before - m_near, m_near, n_before - n_near, n_near)
    phi, degrees = parts.dispersion
    negative = np.full(1, float(after))
    if reference is not None:
        matched = m_after.sum(axis=0)
        full = Sums(reference, reference_recall, parts.count, matched, np.full(1, before), np.full(1, after))
        negative = negative - np.nan_to_num(full.positives[:1])
        phi = phi * np.nan_to_num(1 + full.fpr * full.positives / full.tp_reference, nan=1.0) ** 2  # error of A
    return Prediction(parts.count, phi, degrees, float(before), negative)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def placebo(m_far: Counts, m_near: Counts, n_far: Counts, n_near: Counts, *, confidence: float) -> Placebo:
    """Are the false positive rates equal near to the event and far before it?

    Given their sum, matches near the event are binomial with probability N_near / N; both counts are divided by the
    dispersion of the residuals m_near - (N_near / N_far) m_far of the replicates, at least 1.

    Args:
        m_far: Shape (G, T): matches in the far part of the time before the event, per replicate.
        m_near: Shape (G, T): the same in the near part.
        n_far: Shape (G,): compared pairs in the far part.
        n_near: Shape (G,): the same in the near part.
        confidence: Such as 0.95.
    """
    if ((n_far + n_near) > 0).sum() < TWO or n_far.sum() == 0 or n_near.sum() == 0:
        nothing = np.full(m_far.shape[1], np.nan)
        return Placebo(nothing, nothing, nothing, nothing)
    parts = _Parts(m_far, m_near, n_far, n_near)
    phi, degrees = parts.dispersion
    far, near = m_far.sum(axis=0), m_near.sum(axis=0)
    share = parts.odds / (1 + parts.odds)
    lower, upper, tails = binomial_interval(near / phi, far / phi, share, tail(confidence, degrees))
    known = (near > 0) & (far > 0), near > 0, far > 0
    rates = near / far, lower / (1 - lower), upper / (1 - upper)
    ratio, low, high = (np.log(np.where(k, r, np.nan) / parts.odds) for k, r in zip(known, rates, strict=True))
    return Placebo(ratio, low, high, p_value(tails, degrees))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def placebo_joint(
    m_far: Counts, m_near: Counts, n_far: Counts, n_near: Counts, *, flips: int = 999, seed: int = 0
) -> float:
    """p-value of equal false positive rates at all thresholds together: `sign_flip_test` of the replicates' residuals.

    Only thresholds that let at least ten matches be expected in both parts take part, as the signs of rare matches
    are not symmetric; nan without one. Arguments as for `placebo`, and `flips` and `seed` as for `sign_flip_test`.
    """
    if n_far.sum() == 0 or n_near.sum() == 0 or ((n_far + n_near) > 0).sum() < TWO:
        return float("nan")
    parts = _Parts(m_far, m_near, n_far, n_near)
    enough = parts.count * min(parts.odds, 1.0) / (1 + parts.odds) >= FEW
    single = placebo(m_far, m_near, n_far, n_near, confidence=0.5).p_value[enough]
    if np.isnan(single).any():
        return float("nan")
    return sign_flip_test(parts.residuals[:, enough], np.abs(scipy.special.ndtri(single / 2)), flips=flips, seed=seed)


@dataclass(frozen=True)
class _Parts:
    """The time before the event in two parts; arguments as for `placebo`."""

    m_far: Counts
    m_near: Counts
    n_far: Counts
    n_near: Counts

    @cached_property
    def count(self) -> Floats:
        return np.asarray(self.m_far.sum(axis=0) + self.m_near.sum(axis=0), dtype=np.float64)

    @cached_property
    def odds(self) -> float:
        return float(self.n_near.sum() / self.n_far.sum())

    @cached_property
    def residuals(self) -> Floats:
        """What each replicate adds to M_near - odds × M_far, less what its numbers of pairs let expect."""
        rate = self.count / (self.n_far.sum() + self.n_near.sum())
        pairs = self.n_near - self.odds * self.n_far
        return np.asarray(self.m_near - self.odds * self.m_far - pairs[:, None] * rate)

    @cached_property
    def dispersion(self) -> tuple[Floats, Floats]:
        """Variance of the sum of residuals over that of Poisson counts, and its degrees of freedom."""
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = (self.n_near / self.n_far)[:, None]
        residuals = self.residuals / math.sqrt(self.odds)
        return paired_dispersion(self.m_far.astype(np.float64), self.m_near.astype(np.float64), expected, residuals)
