"""Pooled precision, recall and F1 of two systems on the same units, standard errors of the differences, and counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

from ...records import dataclass
from ...tables.ratios import RATIOS
from ..uncertainty.jackknife import covariance, effective_degrees, leave_one_out, t_quantile
from ..uncertainty.serial import over_time

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from ..uncertainty.jackknife import Floats

CountsUsed: TypeAlias = Literal["as_counted", "design_effect", "one_per_unit"]


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def pooled_ratios(totals: ArrayLike) -> Floats:
    """Precision, recall and F1 computed from summed counts.

    Args:
        totals: True positives, false positives and false negatives, shape (…, 3).

    Returns:
        Shape (…, 3): TP / (TP + FP), TP / (TP + FN) and 2 TP / (2 TP + FP + FN); nan for 0 / 0.
    """
    tp, fp, fn = np.moveaxis(np.asarray(totals, dtype=np.float64), -1, 0)
    return np.stack([tp / (tp + fp), tp / (tp + fn), 2 * tp / (2 * tp + fp + fn)], axis=-1)


@dataclass(frozen=True)
class Errors:
    """Standard errors of differences, and how far they can be trusted.

    Attributes:
        error: Standard error of each difference, shape (K,).
        degrees: Degrees of freedom of its square, shape (K,).
        factor: By which its square exceeds that of independent units, as units in time have it.
    """

    error: Floats
    degrees: Floats
    factor: Floats | float = 1.0

    def half_width(self, confidence: float) -> Floats:
        """Half the width of the intervals, by Student's t."""
        return np.asarray(t_quantile(confidence, self.degrees) * self.error)

    def p_values(self, differences: Floats) -> Floats:
        """Two-sided p-values of no difference, by Student's t: 1 for a difference of 0, nan without a spread."""
        with np.errstate(divide="ignore", invalid="ignore"):
            statistic = np.abs(differences) / self.error
        p_values = 2 * scipy.special.stdtr(self.degrees, -np.where(np.isfinite(statistic), statistic, np.nan))
        return np.asarray(np.where((differences == 0) & ~np.isnan(self.error), 1.0, p_values))


def effective_number(sizes: Floats) -> Floats:
    """How many units of equal size are worth these units: (Σ size)² / Σ size² (Kish 1965); nan without any size.

    Args:
        sizes: Shape (U, …), ≥ 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(sizes.sum(axis=0) ** 2 / (sizes**2).sum(axis=0))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def standard_errors(counts_a: ArrayLike, counts_b: ArrayLike) -> Errors:
    """Standard errors of the differences of pooled precision, recall and F1, by the delete-one jackknife over units.

    Units are independent of each other, the counts of the two systems on one unit are not (Efron & Tibshirani 1993,
    chapter 11). A few large units hold most of the counts and of the variance: the degrees of freedom are those of
    Satterthwaite (`effective_degrees`), at most Kish's effective number of units less 1, the size of a unit being its
    share in the denominators of both systems.

    Args:
        counts_a: True positives, false positives and false negatives of the first system, shape (U, 3).
        counts_b: The same of the second, the same units in the same order.

    Returns:
        Shapes (3,); errors are nan for fewer than two units, and where a ratio is undefined without one of the units.
    """
    first, second = np.asarray(counts_a, dtype=np.float64), np.asarray(counts_b, dtype=np.float64)
    if len(first) < 2:  # noqa: PLR2004 - a spread needs two
        return Errors(np.full(len(RATIOS), np.nan), np.full(len(RATIOS), np.nan))
    of_first, of_second = pooled_ratios(leave_one_out(first)), pooled_ratios(leave_one_out(second))
    return jackknife_errors(of_first - of_second, effective_units(first, second))


def effective_units(counts_a: Floats, counts_b: Floats) -> Floats:
    """The effective number of the units of two systems for precision, recall and F1, shape (3,).

    Args:
        counts_a: True positives, false positives and false negatives of the first system, shape (U, 3).
        counts_b: The same of the second.
    """
    return effective_number(denominators(counts_a) + denominators(counts_b))


def jackknife_errors(jackknifed: Floats, units: Floats | float, *, in_time: bool = False) -> Errors:
    """Standard errors from differences without each unit in turn.

    Args:
        jackknifed: Shape (U, K).
        units: The effective number of units, shape (K,); degrees of freedom are at most this number less 1.
        in_time: Whether units follow each other in time, so that those nearby may be alike, see `uncertainty.serial`.
    """
    degrees = np.minimum(effective_degrees(jackknifed), np.maximum(np.nan_to_num(units, nan=1.0) - 1, 1.0))
    if not in_time:
        return Errors(np.sqrt(covariance(jackknifed)), degrees)
    nearby = over_time(jackknifed)
    return Errors(np.sqrt(covariance(jackknifed) * nearby.factor), nearby.degrees(degrees), nearby.factor)


def denominators(counts: Floats) -> Floats:
    """TP + FP, TP + FN and 2 TP + FP + FN of every unit, shape (U, 3), from their counts of the same shape."""
    tp, fp, fn = np.moveaxis(counts, -1, 0)
    return np.stack([tp + fp, tp + fn, 2 * tp + fp + fn], axis=-1)


@dataclass(frozen=True)
class EffectiveCounts:
    """Counts of hits and misses as they would be of independent rows that tell as much.

    Attributes:
        hits: What the counts of hits are worth.
        misses: What the counts of misses are worth.
        design_effect: What both were divided by, ≥ 1; nan without any count.
        used: `as_counted`: no unit has more than one count, so that counts are independent as units are;
            `design_effect`: divided by the variance between units over that of independent rows; `one_per_unit`: that
            variance cannot be told, and all counts of a unit are worth one.
    """

    hits: float
    misses: float
    design_effect: float
    used: CountsUsed


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def effective_counts(hits: Floats, misses: Floats, confidence: float, *, in_time: bool = False) -> EffectiveCounts:
    """Counts divided by the design effect of their share (Kish 1965; Rao & Scott 1992).

    The design effect is the jackknife variance of Σ hits / Σ (hits + misses) over units, over its binomial variance; at
    least 1. It is itself estimated, and the posterior knows of no degrees of freedom: it is raised by the squared ratio
    of the t quantile to the normal one. Where no unit has a miss, or none a hit, or one unit alone has counts, nothing
    tells the variance; then the effective number of units takes its place, as if all counts of a unit were alike.

    Args:
        hits: Of every unit, shape (U,).
        misses: Likewise.
        confidence: For which the quantiles are taken.
        in_time: Whether units follow each other in time.
    """
    sizes = np.asarray(hits + misses, dtype=np.float64)
    total = float(sizes.sum())
    share = float(hits.sum()) / total if total else np.nan
    if sizes.max(initial=0.0) <= 1 and not in_time:
        return EffectiveCounts(float(hits.sum()), float(misses.sum()), 1.0 if total else np.nan, "as_counted")
    effect = total / float(effective_number(sizes))
    used: CountsUsed = "one_per_unit"
    if len(sizes) > 1 and 0 < share < 1:
        of_hits, of_sizes = leave_one_out(np.asarray(hits)), leave_one_out(sizes)
        errors = jackknife_errors((of_hits / of_sizes)[:, None], effective_number(sizes), in_time=in_time)
        widened = float(errors.half_width(confidence)[0] / t_quantile(confidence, np.inf))
        measured = widened**2 * total / (share * (1 - share))
        if np.isfinite(measured):
            effect, used = measured, "design_effect"
    effect = max(effect, 1.0)
    return EffectiveCounts(float(hits.sum()) / effect, float(misses.sum()) / effect, effect, used)
