"""Precision, negative predictive value, F1 and cost where the share of positives is another one.

Recall R and the false positive rate F are shares of one class each. If only the shares of the classes change, and each
class scores as before (prior shift), they stay, and at the prevalence π precision is R π / (R π + F (1 - π)) by Bayes'
theorem. Its odds are R / F times those of π, the odds of the negative predictive value are (1 - F) / (1 - R) times
those of 1 - π, and F1 = 2 J / (1 + J) of J = R π / (π + F (1 - π)). Limits of these ratios come from the limits of R
and F (MOVER-R: Donner & Zou 2012; Newcombe 2016), which are those of the curve; between clusters R and F go together,
with the correlation of their jackknifed values.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from ..uncertainty.jackknife import covariance, leave_one_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..uncertainty.proportions import Confusion
    from .operating_points import Cost

    Floats: TypeAlias = NDArray[np.float64]
    Limits: TypeAlias = tuple[Floats, Floats]


@dataclass(frozen=True)
class Rate:
    """A rate with its limits; arrays of one shape, nan where undefined.

    Attributes:
        value: The rate.
        lower: Its lower limit.
        upper: Its upper limit.
    """

    value: Floats
    lower: Floats
    upper: Floats

    @property
    def sides(self) -> tuple[Floats, Floats, Floats]:
        """The rate and its limits."""
        return self.value, self.lower, self.upper

    def of_rest(self) -> Rate:
        """The share of the others, 1 - rate."""
        return Rate(1 - self.value, 1 - self.upper, 1 - self.lower)

    def scaled(self, factor: float, added: float = 0.0) -> Rate:
        """Added + factor × rate, for a factor above 0."""
        return Rate(*(added + factor * side for side in self.sides))


@dataclass(frozen=True)
class Rates:
    """Recall and false positive rate at thresholds.

    Attributes:
        recall: Share of the positives that is retrieved.
        fpr: Share of the negatives that is.
        correlation: Of the errors of both, of their shape; 0 where rows are independent.
    """

    recall: Rate
    fpr: Rate
    correlation: Floats

    def precision(self, prevalence: float) -> Rate:
        """Share of positives among what is retrieved; nan where nothing is."""
        odds = prevalence / (1 - prevalence)
        return _of_odds(self.recall, self.fpr, odds, self.correlation)

    def negative_predictive_value(self, prevalence: float) -> Rate:
        """Share of negatives among what is not retrieved; nan where everything is."""
        odds = (1 - prevalence) / prevalence
        return _of_odds(self.fpr.of_rest(), self.recall.of_rest(), odds, self.correlation)

    @np.errstate(divide="ignore", invalid="ignore")
    def f1(self, prevalence: float) -> Rate:
        """Harmonic mean of precision and recall."""
        positives, retrieved = self.recall.scaled(prevalence), self.fpr.scaled(1 - prevalence, prevalence)
        lower, upper = ratio_limits(positives, retrieved, self.correlation)
        sides = (positives.value / retrieved.value, lower, upper)
        value, lower, upper = (2 * side / (1 + side) for side in (np.minimum(side, 1.0) for side in sides))
        return Rate(value, np.minimum(lower, value), np.maximum(upper, value))

    def alert_share(self, prevalence: float) -> Floats:
        """Share of all rows that is retrieved."""
        return self.recall.value * prevalence + self.fpr.value * (1 - prevalence)

    def cost_per_row(self, cost: Cost, prevalence: float) -> Rate:
        """The mean cost, with limits from those of both rates (MOVER: Zou & Donner 2008)."""
        of_hits, of_alarms = (cost.fn - cost.tp) * prevalence, (cost.fp - cost.tn) * (1 - prevalence)
        value = cost.fn * prevalence + cost.tn * (1 - prevalence) - of_hits * self.recall.value
        value = value + of_alarms * self.fpr.value

        def distance(hits: Floats, alarms: Floats) -> Floats:
            """How far a limit lies from the mean if both rates move to a limit: the cost of fewer hits, more alarms."""
            first, second = of_hits * (hits - self.recall.value), of_alarms * (alarms - self.fpr.value)
            square = first**2 + second**2 + 2 * self.correlation * first * second
            return np.asarray(np.sqrt(np.maximum(square, 0.0)))

        return Rate(
            value,
            value - distance(self.recall.upper, self.fpr.lower),
            value + distance(self.recall.lower, self.fpr.upper),
        )


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _of_odds(over: Rate, under: Rate, factor: float, correlation: Floats) -> Rate:
    """The share whose odds are the ratio of two rates times a factor."""
    lower, upper = (factor * limit for limit in ratio_limits(over, under, correlation))
    value = factor * over.value / (factor * over.value + under.value)
    # infinite odds are a share of 1
    lower, upper = (np.where(np.isinf(odds), 1.0, odds / (1 + odds)) for odds in (lower, upper))
    return Rate(value, np.minimum(lower, value), np.maximum(upper, value))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def ratio_limits(over: Rate, under: Rate, correlation: Floats) -> Limits:
    """Limits of the ratio of two rates, recovered from the limits of both.

    A ratio θ is inside if over - θ under is nearer to 0 than the distances of both to their limits allow together,
    which gives a quadratic for each limit (Donner & Zou 2012, with the correlation as in Zou & Donner 2008).

    Args:
        over: The rate in the numerator.
        under: The rate in the denominator.
        correlation: Of the errors of both.

    Returns:
        Shape of the rates; the upper limit is infinite where the denominator may be 0, and both are nan where a rate or
        one of its limits is.
    """

    def products(of_over: Floats, of_under: Floats) -> tuple[Floats, Floats, Floats]:
        """The coefficients of the quadratic, from the limit of either rate."""
        shared = correlation * (of_over - over.value) * (of_under - under.value)
        return (
            of_under * (2 * under.value - of_under),
            over.value * under.value + shared,
            of_over * (2 * over.value - of_over),
        )

    square, half, constant = products(over.lower, under.upper)
    root = np.sqrt(np.maximum(half**2 - square * constant, 0.0))
    # two forms of one root: in either the terms are added up where they do not cancel
    lower = np.where(half >= 0, constant / (half + root), (half - root) / square)
    square, half, constant = products(over.upper, under.lower)
    upper = (half + np.sqrt(np.maximum(half**2 - square * constant, 0.0))) / square
    defined = ~np.isnan([*over.sides, *under.sides]).any(axis=0)
    lower = np.where(defined, np.nan_to_num(np.maximum(lower, 0.0), nan=0.0), np.nan)
    return lower, np.where(defined, np.where(square > 0, upper, np.inf), np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def correlation_of_rates(clusterings: Sequence[Confusion]) -> Floats:
    """The correlation of the errors of recall and false positive rate between clusters; 0 where one does not vary.

    Args:
        clusterings: Counts by replicate, of shape (G, K), G ≥ 2; of rows with two parents by each of them and by their
            intersections, whose moments are combined as variances are (`spread.combined`).
    """
    moments = [_moments(counts) for counts in clusterings]
    of_recall, of_fpr, shared = moments[0]
    if len(moments) > 1:
        of_recall, of_fpr, shared = (first + second - both for first, second, both in zip(*moments, strict=True))
    return np.asarray(np.clip(np.nan_to_num(shared / np.sqrt(of_recall * of_fpr), posinf=0.0, neginf=0.0), -1.0, 1.0))


def _moments(counts: Confusion) -> tuple[Floats, Floats, Floats]:
    """Jackknife variances of recall and of the false positive rate, and their covariance."""
    tp, fp, fn, tn = (leave_one_out(side) for side in (counts.tp, counts.fp, counts.fn, counts.tn))
    recall, fpr = tp / (tp + fn), fp / (fp + tn)
    return covariance(recall), covariance(fpr), covariance(recall, fpr)
