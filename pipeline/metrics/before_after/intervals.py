"""Intervals of the before/after estimates from counts per replicate.

Everything follows from three statistics and their jackknife covariances: the false positive rate F = M_b / N_b, the
match rate after the event H = M_a / N_a, and the true positives TP = M_a - F N_a.

- F: M_b is an overdispersed count with gamma limits, which also exist for M_b = 0 and approach those of the log scale
  when there are many matches (`gamma_interval`, `dispersion`).
- P = 1 - F / H: the limits of F and of H are combined on the log scale (MOVER: Zou & Donner 2008).
- R = TP / TP(reference), F1 = 2 TP / (M_a + TP(reference)): Fieller's (1954) limits, as the denominators are uncertain.
- The corrected P and R: the same methods, applied to the corrected statistics.

Quantiles are those of Student's t with one degree of freedom less than there are replicates with data, or fewer where
a few replicates make up most of the variance (`effective_degrees`).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from pipeline.metrics.uncertainty.jackknife import (
    covariance,
    effective_degrees,
    fieller_interval,
    leave_one_out,
    mean_count_interval,
    t_quantile,
)
from pipeline.metrics.uncertainty.limits import Interval

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.jackknife import Floats, Limits
    from pipeline.metrics.uncertainty.reasons import Reason

Counts: TypeAlias = "NDArray[np.int64]"
Reasons: TypeAlias = "NDArray[np.str_]"

INTERVAL_NAMES = ("fpr", "precision", "recall", "f1", "precision_corrected", "recall_corrected")
FEW_MATCHES = 10
MIN_REPLICATES = 2  # a spread needs two


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def intervals(
    m_before: Counts,
    m_after: Counts,
    n_before: Counts,
    n_after: Counts,
    *,
    reference: int | None,
    confidence: float,
    reference_recall: float = 1.0,
) -> dict[str, Interval]:
    """Intervals of the ratios at every threshold of one group, for the expectation over new events.

    Args:
        m_before: Shape (G, T): matches before the event at or above each threshold, ascending, per replicate.
        m_after: Shape (G, T): the same after the event.
        n_before: Shape (G,): compared pairs before the event.
        n_after: Shape (G,): the same after the event.
        reference: Index of the threshold that recall is measured against, held fixed; None if there is none.
        confidence: Such as 0.95.
        reference_recall: What recall is believed to be at the reference; only the corrected ratios use it.

    Returns:
        By name: `fpr`, `precision`, `recall`, `f1`, `precision_corrected`, `recall_corrected`. Limits lie in [0, 1],
        except that every interval contains its estimate: a negative precision is its own lower limit, and a corrected
        recall outside [0, 1] is its own limit. An upper limit of precision below 0 shows that the assumption fails.
    """
    used = (n_before + n_after) > 0
    counts = [values[used] for values in (m_before, m_after, n_before[:, None], n_after[:, None])]
    if (n_before > 0).sum() < MIN_REPLICATES:
        reason: Reason = "one_replicate" if used.sum() < MIN_REPLICATES or n_before.any() else "no_before"
        return dict.fromkeys(INTERVAL_NAMES, Interval.none(m_before.shape[1], reason))
    totals = Sums(reference, reference_recall, *(values.sum(axis=0).astype(np.float64) for values in counts))
    jackknifed = Sums(reference, reference_recall, *(leave_one_out(values) for values in counts))
    return intervals_of_sums(totals, jackknifed, confidence=confidence, degrees=int(used.sum()) - 1)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def intervals_of_sums(totals: Sums, jackknifed: Sums, *, confidence: float, degrees: int) -> dict[str, Interval]:
    """The intervals of `intervals`, from totals and from totals without each replicate.

    Args:
        totals: Totals over all replicates.
        jackknifed: The same totals without each replicate in turn, as from `leave_one_out`.
        confidence: Such as 0.95.
        degrees: Degrees of freedom: the number of replicates less one.
    """
    return _Limits(totals, jackknifed, confidence, degrees).all()


@dataclass(frozen=True)
class Sums:
    """Totals of shape (T,) and (1,), or totals without each replicate, which then have the replicates on axis 0.

    Attributes:
        reference: Index of the threshold that recall is measured against, or None.
        reference_recall: What recall is believed to be at the reference, r0.
        m_before: M_b, matches before the event.
        m_after: M_a, matches after the event.
        n_before: N_b, compared pairs before the event.
        n_after: N_a, compared pairs after the event.
    """

    reference: int | None
    reference_recall: float
    m_before: Floats
    m_after: Floats
    n_before: Floats
    n_after: Floats

    @cached_property
    def fpr(self) -> Floats:
        """False positive rate, M_b / N_b."""
        return self.m_before / self.n_before

    @cached_property
    def tp(self) -> Floats:
        """Estimated true positives, M_a - F N_a."""
        return self.m_after - self.fpr * self.n_after

    @cached_property
    def tp_reference(self) -> Floats:
        """Estimated true positives at the reference."""
        return self._at_reference(self.tp)

    @cached_property
    def positives(self) -> Floats:
        """A: the number of positives, estimated at the reference: TP / (r0 - FPR) (Rogan & Gladen 1978)."""
        gap = self.reference_recall - self._at_reference(self.fpr)
        return np.where(gap > 0, self.tp_reference / gap, np.nan)

    @cached_property
    def tp_corrected(self) -> Floats:
        """True positives when FP is not overestimated: TP + FPR A."""
        return self.tp + self.fpr * self.positives

    def _at_reference(self, values: Floats) -> Floats:
        return np.full_like(values[..., :1], np.nan) if self.reference is None else values[..., [self.reference]]


@dataclass(frozen=True)
class _Limits:
    """Limits of all ratios, from the totals and the totals without each replicate."""

    totals: Sums
    jackknifed: Sums
    confidence: float
    degrees: int

    def all(self) -> dict[str, Interval]:
        totals, always = self.totals, np.full(len(self.totals.m_before), "")
        after = np.where(totals.n_after > 0, always, "no_prediction")
        predicted = np.where(totals.m_after > 0, after, "no_prediction")
        measured = np.where(totals.tp < 0, "negative_tp", np.where(totals.tp_reference > 0, after, "no_reference"))
        identified = np.where(totals.positives > 0, after, "no_reference")
        corrected = np.where(totals.positives < totals.n_after, predicted, "all_positive")
        return {
            "fpr": as_interval(self._fpr, always),
            "precision": as_interval(self._precision, predicted),
            "recall": as_interval(self._recall(), measured, unit=True),
            "f1": as_interval(self._f1(), measured, unit=True),
            "precision_corrected": as_interval(
                self._mover(corrected=True), np.where(totals.positives > 0, corrected, "no_reference")
            ),
            "recall_corrected": as_interval(self._recall_corrected(), identified),
        }

    @cached_property
    def _fpr(self) -> Limits:
        totals = self.totals
        lower, upper = mean_count_interval(totals.m_before, self.jackknifed.fpr, totals.n_before, self.confidence)
        return lower / totals.n_before, upper / totals.n_before

    @cached_property
    def _precision(self) -> Limits:
        return self._mover(corrected=False)

    def _mover(self, *, corrected: bool) -> Limits:
        """Limits of 1 - F / H, with H = M_a / (N_a - A) if corrected (MOVER: Zou & Donner 2008).

        The distances of log F and log H to their limits are added in quadrature. The sum is scaled by the ratio of the
        variance of log F - log H to the variance that it would have if F and H were independent. Half a match takes
        the place of M_b = 0.
        """
        totals, jackknifed = self.totals, self.jackknifed
        base, jackknifed_base = totals.n_after, jackknifed.n_after
        if corrected:
            base, jackknifed_base = base - totals.positives, jackknifed_base - jackknifed.positives
        jackknifed_h = jackknifed.m_after / jackknifed_base
        h, centre = totals.m_after / base, np.maximum(totals.m_before, 0.5) / totals.n_before
        # limits of F and of H, each on its own
        f_lower, f_upper = self._fpr
        h_lower, h_upper = mean_count_interval(totals.m_after, jackknifed_h, base, self.confidence)
        # Var(log F - log H) over its value under independence, by the delta method; 1 where it cannot be estimated
        independent = covariance(jackknifed.fpr) / centre**2 + covariance(jackknifed_h) / h**2
        joint = np.maximum(1 - 2 * covariance(jackknifed.fpr, jackknifed_h) / (centre * h * independent), 0.0)
        joint = np.where((totals.m_before > 0) & (independent > 0), joint, 1.0)
        # distances to the limits of log F - log H, upwards and downwards
        up = np.sqrt(joint * (np.log(f_upper / centre) ** 2 + np.log(h * base / h_lower) ** 2))
        down = np.sqrt(joint * (np.log(centre / f_lower) ** 2 + np.log(h_upper / (h * base)) ** 2))
        # back to precision, in which the directions are reversed; the interval contains the estimate
        estimate = 1 - totals.fpr / h
        lower = np.maximum(1 - centre / h * np.exp(up), 0.0)
        upper = 1 - np.where(totals.m_before > 0, centre / h * np.exp(-down), 0.0)
        return np.minimum(lower, estimate), np.maximum(upper, estimate)

    @cached_property
    def _rare(self) -> Floats:
        """What is added to the variance of TP where fewer than ten matches are observed after the event.

        The fewer the matches, the closer the variance comes to the value with which t reaches the upper gamma limit of
        the mean of M_a.
        """
        totals, jackknifed = self.totals, self.jackknifed
        rate = jackknifed.m_after / jackknifed.n_after
        _, upper = mean_count_interval(totals.m_after, rate, totals.n_after, self.confidence)
        reached = ((upper - totals.m_after) / t_quantile(self.confidence, self.degrees)) ** 2
        missing = np.maximum(reached - covariance(jackknifed.m_after), 0.0)
        return np.clip(1 - totals.m_after / FEW_MATCHES, 0.0, 1.0) * missing

    def _fieller(self, tops: tuple[Floats, Floats], bottoms: tuple[Floats, Floats]) -> tuple[Limits, Limits]:
        """Fieller's limits of a ratio, by t with all degrees of freedom and by t with the effective ones.

        Args:
            tops: The numerator in the totals, and without each replicate.
            bottoms: The denominator likewise.
        """
        (top, jackknifed_top), (bottom, jackknifed_bottom) = tops, bottoms
        variances = (
            covariance(jackknifed_top) + self._rare,
            covariance(jackknifed_bottom),
            covariance(jackknifed_top, jackknifed_bottom),
        )
        degrees = self.degrees, effective_degrees(jackknifed_top / jackknifed_bottom)
        plain, wide = (fieller_interval(top, bottom, variances, t_quantile(self.confidence, d)) for d in degrees)
        return plain, wide

    def _recall(self) -> Limits:
        totals, jackknifed = self.totals, self.jackknifed
        (lower, upper), _ = self._fieller((totals.tp, jackknifed.tp), (totals.tp_reference, jackknifed.tp_reference))
        exact = np.arange(len(lower)) == totals.reference
        return np.where(exact, 1.0, lower), np.where(exact, 1.0, upper)

    def _f1(self) -> Limits:
        """Fieller's limits, the upper one with the effective degrees, because sums of true matches are skewed.

        At the reference R = 1, so that F1 = 2 P / (1 + P) takes its limits from those of P.
        """
        totals, jackknifed = self.totals, self.jackknifed
        half = (totals.m_after + totals.tp_reference) / 2, (jackknifed.m_after + jackknifed.tp_reference) / 2
        (lower, _), (_, upper) = self._fieller((totals.tp, jackknifed.tp), half)
        low, high = (2 * p / (1 + p) for p in np.maximum(self._precision, 0.0))
        exact = np.arange(len(lower)) == totals.reference
        estimate = 2 * totals.tp / (totals.m_after + np.maximum(totals.tp, totals.tp_reference))
        lower, upper = np.where(exact, low, lower), np.where(exact, high, upper)
        return np.minimum(lower, estimate), np.maximum(upper, estimate)

    def _recall_corrected(self) -> Limits:
        totals, jackknifed = self.totals, self.jackknifed
        tops = totals.tp_corrected, jackknifed.tp_corrected
        (lower, upper), _ = self._fieller(tops, (totals.positives, jackknifed.positives))
        estimate = totals.tp_corrected / totals.positives
        return np.minimum(lower, estimate), np.maximum(upper, estimate)


def as_interval(limits: Limits, reason: Reasons, *, unit: bool = False) -> Interval:
    """Limits as an `Interval`.

    Args:
        limits: Lower and upper limits, shape (T,).
        reason: Why there is no interval; empty where there is one.
        unit: Whether an interval that covers all of [0, 1] counts as `unbounded`.
    """
    lower, upper = limits
    reason = np.where((reason == "") & np.isnan(lower + upper), "one_replicate", reason)
    if unit:
        reason = np.where((reason == "") & (lower <= 0) & (upper >= 1), "unbounded", reason)
    is_defined, objects = reason == "", reason.astype(object)
    objects[is_defined] = None
    return Interval(np.where(is_defined, lower, np.nan), np.where(is_defined, upper, np.nan), objects)
