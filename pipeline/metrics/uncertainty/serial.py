"""Serial correlation of the second parents of rows, such as the days of articles, which follow each other in time.

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
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from pipeline.metrics.uncertainty.jackknife import covariance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.jackknife import Floats

FEWEST_NEIGHBOURS = 8  # pairs of neighbours that are compared
CRITICAL = 1.645  # standard errors by which the covariance of neighbours must exceed 0: significant at 5%, one-sided
SHORTEST_SPAN = 2.0  # days that a first parent lies on, where it is not known
_MOST_PERSISTENT = 0.97  # coefficient of the autoregression (Andrews 1991)
_RATE = 1.1447  # of Bartlett's bandwidth, Andrews (1991, eq. 6.2)


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
