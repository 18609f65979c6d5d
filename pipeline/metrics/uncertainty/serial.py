"""Serial correlation of clusters that follow each other in time, such as days, and of such second parents of rows.

Days are not independent where what happens on one goes on on the next. The variance over days then lacks the
covariances of neighbouring days (Thompson 2011; Chiang, Hansen & Sasaki 2024),

    2 Σ w_l Γ_l,    Γ_l = Σ_d u_d u_{d+l}

where u_d is what a day contributes to the error and w_l = 1 - l / S are Bartlett's weights (Newey & West 1987). A first
parent, such as an event, lies on several days, which its own level makes alike; the variance over first parents has
that. Of rows that are independent but for such levels, the variance over first parents exceeds that of independent rows
by W, say, and where a first parent lies on D days in equal shares, Γ_l has W (D - l) / (D (D - 1)) of it, which is
taken off.

The bandwidth S is that of Andrews (1991, eqs. 6.2 and 6.4) for an autoregression. Its coefficient is Γ_1 over Γ_0, both
less what comes from first parents, and Γ_0 less what independent rows bring, so that the noise of small counts does not
hide it.

Clusters of one parent, of which nothing but their contributions is known, get the same covariances, see `over_time`.
Their coefficient is Γ_1 over Γ_0 too; where neighbours are significantly alike it is at least (Γ_2 + Γ_3 + Γ_4) over
(Γ_1 + Γ_2 + Γ_3), which noise does not lower. The covariances are taken whether neighbours are significantly alike or
not, and are at least those of an autoregression whose correlation of neighbours r is one standard error, 1 / √G, above
the one observed: 1 + 2 r / (1 - φ), φ being its coefficient. Clusters that happen to look independent are those whose
variance looks low, so that a test which fails to see the correlation would leave limits short just there. Of
independent clusters this widens limits by 20, 14, 10 and 5% of 30, 60, 120 and 365 (`studies/coverage_of_days.py`).
Fewer than 50 cannot tell: too many samples of a high correlation do not show it.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ...records import dataclass
from .jackknife import FEWEST_DEGREES, covariance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .jackknife import Floats

FEWEST_NEIGHBOURS = 8  # pairs of neighbours that are compared
FEWEST_IN_TIME = 50  # clusters whose neighbours may be alike unless that is significant; of fewer it is not excluded
CRITICAL = 1.645  # standard errors by which the covariance of neighbours must exceed 0: significant at 5%, one-sided
SHORTEST_SPAN = 2.0  # days that a first parent lies on, where it is not known
_MOST_PERSISTENT = 0.97  # coefficient of the autoregression (Andrews 1991)
_MOST_LIKELY = 0.9  # the same where it is one standard error above the observed one
_LEVEL = 0.05  # of the test of neighbours
_LAGS = 5  # clusters before each one that it is compared with
_TINY, _LARGEST = 1e-15, 0.9  # p-values beyond are taken as these: a large one is no argument against a small one
_RATE = 1.1447  # of Bartlett's bandwidth, Andrews (1991, eq. 6.2)


@dataclass(frozen=True)
class OverTime:
    """What the covariances of clusters nearby make of a variance between clusters; arrays of the shape of the variance.

    Attributes:
        factor: By which the variance is multiplied, at least 1.
        divisor: By which its degrees of freedom are divided: 1 + 2 Σ w².
    """

    factor: Floats
    divisor: Floats

    def degrees(self, degrees: Floats | float) -> Floats:
        """Degrees of freedom of the variance, from those that it has of independent clusters; at least 4 of them."""
        return np.asarray(np.maximum(degrees / self.divisor, np.minimum(degrees, FEWEST_DEGREES)))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def over_time(shifts: Floats) -> OverTime:
    """Covariances of clusters nearby, by Bartlett's weights.

    Args:
        shifts: Shape (G, …): how far each cluster moves a statistic, in the order of the clusters.
    """
    number = len(shifts)
    if number <= FEWEST_NEIGHBOURS:
        return OverTime(np.ones(shifts.shape[1:]), np.ones(shifts.shape[1:]))
    deviations = shifts - shifts.mean(axis=0)
    variance = (deviations**2).sum(axis=0)
    # of independent clusters products of deviations from their mean are below 0 on average
    gammas = [_at_lag(deviations, lag) + variance * (number - lag) / number**2 for lag in range(1, 5)]
    observed = gammas[0] / variance
    lasting = np.where(sum(gammas[:3]) > 0, sum(gammas[1:]) / sum(gammas[:3]), 0.0)
    lasting = np.where(p_values_of_neighbours(shifts) < _LEVEL, np.maximum(observed, lasting), observed)
    coefficient = np.clip(np.nan_to_num(lasting), 0.0, _MOST_PERSISTENT)
    persistence = 4 * coefficient**2 / (1 - coefficient**2) ** 2
    bandwidth = np.maximum(np.minimum(_RATE * (persistence * number) ** (1 / 3), number / 3), 1.0)
    total, once, squared = variance.copy(), np.zeros_like(variance), np.zeros_like(variance)
    for lag in range(1, int(np.ceil(bandwidth.max(initial=1.0)))):
        weight = np.maximum(1 - lag / bandwidth, 0.0)
        total, once, squared = total + 2 * weight * _at_lag(deviations, lag), once + weight, squared + weight**2
    raised = (number - 1) / (number - np.minimum(1 + 2 * once, number / 2))
    likely = np.clip(np.nan_to_num(observed) + 1 / np.sqrt(number), 0.0, _MOST_LIKELY)
    least = 1 + 2 * likely / (1 - np.clip(np.fmax(lasting, likely), 0.0, _MOST_LIKELY))
    return OverTime(np.fmax(total * raised / variance, least), 1 + 2 * squared)


@np.errstate(divide="ignore", invalid="ignore")
def p_values_of_neighbours(shifts: Floats) -> Floats:
    """One-sided p-values of clusters that are independent, against neighbours that are alike; nan where nothing varies.

    Of each cluster the product with the one before it, and with the sum of the five before it, is taken: sums of these
    products over the root of the sum of their squares are nearly normal, and both p-values are combined.

    Args:
        shifts: As for `over_time`.
    """
    number, deviations = len(shifts), shifts - shifts.mean(axis=0)
    variance, before, tails = (deviations**2).sum(axis=0), np.zeros_like(deviations), []
    for lag in range(1, min(_LAGS, number - 1) + 1):
        before[lag:] += deviations[:-lag]
        if lag in {1, _LAGS}:
            products = deviations * before
            expected = variance * sum(number - each for each in range(1, lag + 1)) / number**2
            tails.append(scipy.special.ndtr(-(products.sum(axis=0) + expected) / np.sqrt((products**2).sum(axis=0))))
    return combined_p_value(np.array(tails)) if tails else np.full_like(variance, np.nan)


def combined_p_value(p_values: Floats) -> Floats:
    """One p-value from several of tests that depend on each other in any way (Liu & Xie 2020), along axis 0.

    Args:
        p_values: Shape (N, …); those that are nan do not count.
    """
    with np.errstate(invalid="ignore"):
        tangents = np.tan((0.5 - np.clip(p_values, _TINY, _LARGEST)) * np.pi)
        is_known = ~np.isnan(tangents)
        mean = np.where(is_known, tangents, 0.0).sum(axis=0) / np.where(
            is_known.any(axis=0), is_known.sum(axis=0), np.nan
        )
    return np.asarray(0.5 - np.arctan(mean) / np.pi)


def may_neighbours_be_alike(shifts: Floats) -> bool:
    """Whether clusters that follow each other are significantly alike in any of several statistics, shape (G, K).

    Of fewer than `FEWEST_IN_TIME` it is not excluded, whatever they look like.
    """
    if len(shifts) < 2 or not shifts.shape[1]:  # noqa: PLR2004 - a single one has no neighbour
        return False
    return len(shifts) < FEWEST_IN_TIME or bool(combined_p_value(p_values_of_neighbours(shifts)) < _LEVEL)


def _at_lag(deviations: Floats, lag: int) -> Floats:
    return np.asarray(np.einsum("g...,g...->...", deviations[:-lag], deviations[lag:]))


@dataclass(frozen=True)
class Cycle:
    """How replicates follow each other in time.

    Attributes:
        size: How many there may be; the first follows the last.
        span: D, on how many of them the rows of one first parent lie; at least `SHORTEST_SPAN`.
    """

    size: int
    span: float


@dataclass(frozen=True)
class InTime:
    """Replicates that follow each other in time.

    Attributes:
        numbers: Shape (G,): the number of every replicate; the next in time has the next number. -1: it is not known.
        cycle: How they follow each other.
    """

    numbers: NDArray[np.int64]
    cycle: Cycle

    def __getitem__(self, used: NDArray[np.bool_]) -> InTime:
        """Some of the replicates."""
        return InTime(self.numbers[used], self.cycle)

    @property
    def neighbours(self) -> int:
        """How many pairs of replicates follow each other."""
        is_there = np.zeros(self.cycle.size, dtype=bool)
        is_there[self.numbers[self.numbers >= 0]] = True
        return int((is_there & np.roll(is_there, -1)).sum())

    def placed(self, values: Floats) -> Floats:
        """Deviations of values from their mean, each at its number; 0 at numbers without a replicate.

        Args:
            values: Shape (G, …): a statistic without each replicate in turn.
        """
        deviations, is_known = np.zeros((self.cycle.size, *values.shape[1:])), self.numbers >= 0
        deviations[self.numbers[is_known]] = (values - values.mean(axis=0))[is_known]
        return deviations


@dataclass(frozen=True)
class SerialCorrelation:
    """How what second parents contribute goes together over time.

    Attributes:
        in_time: Their replicates.
        bandwidth: S, above 1.
        share: The share of the covariances over time that does not come from first parents.
    """

    in_time: InTime
    bandwidth: float
    share: float = 1.0

    @cached_property
    def weights(self) -> Floats:
        """Bartlett's weights of the lags 1, 2, … below the bandwidth."""
        return np.asarray(1 - np.arange(1, np.ceil(self.bandwidth)) / self.bandwidth)

    @property
    def divisor_of_degrees(self) -> float:
        """By what the degrees of freedom of the variance over second parents are divided: 1 + 2 Σ w²."""
        return float(1 + 2 * (self.weights**2).sum())

    def covariance(self, first: Floats, second: Floats) -> Floats:
        """What serial correlation adds to a covariance of two statistics over second parents.

        The covariances of deviations from a mean are too low on average, the more so the more lags there are: they are
        raised by n / (n - 1 - 2 Σ w), n being the number of replicates, but at most doubled.

        Args:
            first: Shape (G, …): a statistic without each replicate of the second parents in turn.
            second: The same of another, or of the same.
        """
        n, over_time = len(self.in_time.numbers), self.over_time(first, second)
        raised = n / (n - min(1 + 2 * float(self.weights.sum()), n / 2)) - 1
        return np.asarray(self.share * (over_time + raised * (covariance(first, second) + over_time)))

    def over_time(self, first: Floats, second: Floats) -> Floats:
        """The weighted covariances of neighbours, 2 Σ w_l Γ_l, for the same arguments."""
        left, right = self.in_time.placed(first), self.in_time.placed(second)
        ahead, behind = np.zeros_like(left), np.zeros_like(left)
        for lag, weight in enumerate(self.weights, start=1):
            ahead += weight * np.roll(left, -lag, axis=0)
            behind += weight * np.roll(left, lag, axis=0)
        return np.asarray(((ahead + behind) * right).sum(axis=0))


def serial_correlation(second: Floats, in_time: InTime, *, of_first: float, of_rows: float) -> SerialCorrelation | None:
    """Serial correlation of a statistic over second parents; None where it is not significant, or neighbours are few.

    Neighbours are tested by the sum of their products: it must exceed what deviations from a mean of independent
    replicates, and what first parents, let expect by 1.645 standard errors, which come from the squares of the
    products.

    Args:
        second: Shape (G,): the statistic without each replicate of the second parents in turn.
        in_time: How these replicates follow each other.
        of_first: Variance of the statistic over first parents.
        of_rows: Its variance if rows were independent.
    """
    n, pairs, span = len(second), in_time.neighbours, in_time.cycle.span
    if pairs < FEWEST_NEIGHBOURS:
        return None
    deviations = in_time.placed(second)
    products, variance = deviations * np.roll(deviations, -1), float((deviations**2).sum())
    lasting = max(of_first - of_rows, 0.0)
    net = float(products.sum()) - lasting / span
    if not net + variance * pairs / n**2 > CRITICAL * float(np.sqrt((products**2).sum())):
        return None
    levels = max(variance - of_rows - lasting / span, net)
    coefficient = float(np.clip(net / levels, 0.0, _MOST_PERSISTENT)) if levels > 0 else 0.0
    persistence = 4 * coefficient**2 / (1 - coefficient**2) ** 2
    bandwidth = min(_RATE * (persistence * n) ** (1 / 3), n / 3)
    if bandwidth <= 1:
        return None
    correlation = SerialCorrelation(in_time, bandwidth)
    lags = np.arange(1, len(correlation.weights) + 1)
    of_levels = lasting * 2 * float((correlation.weights * np.maximum(span - lags, 0)).sum()) / (span * (span - 1))
    total = float(correlation.over_time(second, second))
    return SerialCorrelation(in_time, bandwidth, 1 - of_levels / total) if total > of_levels else None
