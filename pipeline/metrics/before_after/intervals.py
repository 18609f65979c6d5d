"""Intervals of the before/after estimates, and the placebo test of their assumption, from counts per replicate.

Three statistics and their jackknife covariances carry everything: the false positive rate F = M_b / N_b, the rate of
matches after the event H = M_a / N_a, and the true positives TP = M_a - F N_a.

- F: an overdispersed count with gamma limits, which exist for M_b = 0 too and become those of the log scale for many
  matches (`gamma_interval`, `dispersion`).
- P = 1 - F / H: the limits of F and H, put together on the log scale (MOVER: Zou & Donner 2008).
- R = TP / TP(reference), F1 = 2 TP / (M_a + TP(reference)): by Fieller (1954), as the denominators are uncertain.
- The corrected P and R: the same of the corrected statistics.

Quantiles are Student's t with one degree of freedom less than there are replicates with data, or fewer where few of
them make up the variance (`effective_degrees`).
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

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.jackknife import Floats, Limits

Counts: TypeAlias = "NDArray[np.int64]"
Reasons: TypeAlias = "NDArray[np.str_]"

NAMES = ("fpr", "precision", "recall", "f1", "precision_corrected", "recall_corrected")
FEW = 10
TWO = 2


@dataclass(frozen=True)
class Interval:
    """Limits at every threshold.

    Attributes:
        lower: Shape (T,); nan where no interval can be given.
        upper: Shape (T,); nan where `lower` is.
        reason: Shape (T,), objects: why there is none, None where there is one. `one_replicate` (on which all hangs);
            `no_before`; `no_prediction`; `negative_tp`; `no_reference`; `all_positive` (no pair after the event is left
            to be negative); `unbounded` (nothing in [0, 1] can be excluded).
    """

    lower: Floats
    upper: Floats
    reason: NDArray[np.object_]


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
        reference: Index of the threshold that recall is measured against, held fixed; None: there is none.
        confidence: Such as 0.95.
        reference_recall: What recall is believed to be at the reference; only the corrected ratios use it.

    Returns:
        By name: `fpr`, `precision`, `recall`, `f1`, `precision_corrected`, `recall_corrected`. Limits lie in [0, 1],
        but every interval holds its estimate: a negative precision is its own lower limit, and a corrected recall
        outside [0, 1] its own limit. An upper limit of precision below 0 says that the assumption fails.
    """
    used = (n_before + n_after) > 0
    counts = [c[used] for c in (m_before, m_after, n_before[:, None], n_after[:, None])]
    if (n_before > 0).sum() < TWO:
        reason = "one_replicate" if used.sum() < TWO or n_before.any() else "no_before"
        return dict.fromkeys(NAMES, no_interval(m_before.shape[1], reason))
    full = Sums(reference, reference_recall, *(c.sum(axis=0).astype(np.float64) for c in counts))
    rest = Sums(reference, reference_recall, *(leave_one_out(c) for c in counts))
    return intervals_of_sums(full, rest, confidence=confidence, degrees=int(used.sum()) - 1)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def intervals_of_sums(full: Sums, rest: Sums, *, confidence: float, degrees: int) -> dict[str, Interval]:
    """Intervals as of `intervals`, from totals and from totals without each replicate.

    Args:
        full: Totals.
        rest: The same without each replicate in turn, as from `leave_one_out`.
        confidence: Such as 0.95.
        degrees: Degrees of freedom: the number of replicates less one.
    """
    return _Limits(full, rest, confidence, degrees).all()


@dataclass(frozen=True)
class Sums:
    """Totals of shape (T,) and (1,), or totals without each replicate, with the replicates on axis 0 before."""

    reference: int | None
    reference_recall: float
    m_before: Floats
    m_after: Floats
    n_before: Floats
    n_after: Floats

    @cached_property
    def fpr(self) -> Floats:
        """False positive rate."""
        return self.m_before / self.n_before

    @cached_property
    def tp(self) -> Floats:
        """Estimated true positives."""
        return self.m_after - self.fpr * self.n_after

    @cached_property
    def tp_reference(self) -> Floats:
        """Estimated true positives at the reference."""
        return self._at_reference(self.tp)

    @cached_property
    def positives(self) -> Floats:
        """A: all there is to be found, from the estimate at the reference (Rogan & Gladen 1978)."""
        left = self.reference_recall - self._at_reference(self.fpr)
        return np.where(left > 0, self.tp_reference / left, np.nan)

    @cached_property
    def tp_corrected(self) -> Floats:
        """True positives without the overestimate of the false ones."""
        return self.tp + self.fpr * self.positives

    def _at_reference(self, values: Floats) -> Floats:
        return np.full_like(values[..., :1], np.nan) if self.reference is None else values[..., [self.reference]]


@dataclass(frozen=True)
class _Limits:
    """Limits of all ratios, from the totals and the totals without each replicate."""

    full: Sums
    rest: Sums
    confidence: float
    degrees: int

    def all(self) -> dict[str, Interval]:
        full, always = self.full, np.full(len(self.full.m_before), "")
        after = np.where(full.n_after > 0, always, "no_prediction")
        predicted = np.where(full.m_after > 0, after, "no_prediction")
        measured = np.where(full.tp < 0, "negative_tp", np.where(full.tp_reference > 0, after, "no_reference"))
        identified = np.where(full.positives > 0, after, "no_reference")
        corrected = np.where(full.positives < full.n_after, predicted, "all_positive")
        return {
            "fpr": as_interval(self._fpr, always),
            "precision": as_interval(self._precision, predicted),
            "recall": as_interval(self._recall(), measured, unit=True),
            "f1": as_interval(self._f1(), measured, unit=True),
            "precision_corrected": as_interval(
                self._mover(corrected=True), np.where(full.positives > 0, corrected, "no_reference")
            ),
            "recall_corrected": as_interval(self._recall_corrected(), identified),
        }

    @cached_property
    def _fpr(self) -> Limits:
        full = self.full
        lower, upper = mean_count_interval(full.m_before, self.rest.fpr, full.n_before, self.confidence)
        return lower / full.n_before, upper / full.n_before

    @cached_property
    def _precision(self) -> Limits:
        return self._mover(corrected=False)

    def _mover(self, *, corrected: bool) -> Limits:
        """Limits of 1 - F / H, with H = M_a / (N_a - A) if corrected.

        The distances of log F and log H to their limits are added in quadrature and scaled by the variance that
        log F - log H has over the one it had if F and H were independent. Half a match stands in for M_b = 0.
        """
        full, rest = self.full, self.rest
        base = full.n_after - full.positives if corrected else full.n_after
        rest_h = rest.m_after / (rest.n_after - rest.positives if corrected else rest.n_after)
        h, centre = full.m_after / base, np.maximum(full.m_before, 0.5) / full.n_before
        f_lower, f_upper = self._fpr
        h_lower, h_upper = mean_count_interval(full.m_after, rest_h, base, self.confidence)
        apart = covariance(rest.fpr) / centre**2 + covariance(rest_h) / h**2
        joint = np.maximum(1 - 2 * covariance(rest.fpr, rest_h) / (centre * h * apart), 0.0)
        joint = np.where((full.m_before > 0) & (apart > 0), joint, 1.0)
        up = np.sqrt(joint * (np.log(f_upper / centre) ** 2 + np.log(h * base / h_lower) ** 2))
        down = np.sqrt(joint * (np.log(centre / f_lower) ** 2 + np.log(h_upper / (h * base)) ** 2))
        estimate = 1 - full.fpr / h
        lower = np.maximum(1 - centre / h * np.exp(up), 0.0)
        upper = 1 - np.where(full.m_before > 0, centre / h * np.exp(-down), 0.0)
        return np.minimum(lower, estimate), np.maximum(upper, estimate)

    @cached_property
    def _rare(self) -> Floats:
        """What the variance of TP lacks where less than ten matches are seen after the event.

        It is then replaced, more and more, by the one that lets t reach the upper gamma limit of the mean of M_a.
        """
        full, rest = self.full, self.rest
        _, upper = mean_count_interval(full.m_after, rest.m_after / rest.n_after, full.n_after, self.confidence)
        reached = ((upper - full.m_after) / t_quantile(self.confidence, self.degrees)) ** 2
        return np.clip(1 - full.m_after / FEW, 0.0, 1.0) * np.maximum(reached - covariance(rest.m_after), 0.0)

    def _fieller(self, tops: tuple[Floats, Floats], bottoms: tuple[Floats, Floats]) -> tuple[Limits, Limits]:
        """Limits of a ratio by t with all degrees of freedom and with the effective ones; (full, rest) of both."""
        (top, rest_top), (bottom, rest_bottom) = tops, bottoms
        variances = covariance(rest_top) + self._rare, covariance(rest_bottom), covariance(rest_top, rest_bottom)
        degrees = self.degrees, effective_degrees(rest_top / rest_bottom)
        plain, wide = (fieller_interval(top, bottom, variances, t_quantile(self.confidence, d)) for d in degrees)
        return plain, wide

    def _recall(self) -> Limits:
        full, rest = self.full, self.rest
        (lower, upper), _ = self._fieller((full.tp, rest.tp), (full.tp_reference, rest.tp_reference))
        exact = np.arange(len(lower)) == full.reference
        return np.where(exact, 1.0, lower), np.where(exact, 1.0, upper)

    def _f1(self) -> Limits:
        """Fieller, with the effective degrees for the upper limit, as sums of true matches are skewed.

        At the reference R = 1, and F1 = 2 P / (1 + P) has the limits that P has.
        """
        full, rest = self.full, self.rest
        half = (full.m_after + full.tp_reference) / 2, (rest.m_after + rest.tp_reference) / 2
        (lower, _), (_, upper) = self._fieller((full.tp, rest.tp), half)
        low, high = (2 * p / (1 + p) for p in np.maximum(self._precision, 0.0))
        exact = np.arange(len(lower)) == full.reference
        estimate = 2 * full.tp / (full.m_after + np.maximum(full.tp, full.tp_reference))
        lower, upper = np.where(exact, low, lower), np.where(exact, high, upper)
        return np.minimum(lower, estimate), np.maximum(upper, estimate)

    def _recall_corrected(self) -> Limits:
        full, rest = self.full, self.rest
        (lower, upper), _ = self._fieller((full.tp_corrected, rest.tp_corrected), (full.positives, rest.positives))
        estimate = full.tp_corrected / full.positives
        return np.minimum(lower, estimate), np.maximum(upper, estimate)


def no_interval(thresholds: int, reason: str) -> Interval:
    """No limits at any threshold, for one reason."""
    return as_interval((np.zeros(thresholds), np.zeros(thresholds)), np.full(thresholds, reason))


def as_interval(limits: Limits, reason: Reasons, *, unit: bool = False) -> Interval:
    """With an empty reason where the interval is given; `unit`: not if it is [0, 1]."""
    lower, upper = limits
    reason = np.where((reason == "") & np.isnan(lower + upper), "one_replicate", reason)
    if unit:
        reason = np.where((reason == "") & (lower <= 0) & (upper >= 1), "unbounded", reason)
    given, objects = reason == "", reason.astype(object)
    objects[given] = None
    return Interval(np.where(given, lower, np.nan), np.where(given, upper, np.nan), objects)
