"""Serial correlation of the second parents of rows, such as the days of articles, which follow each other in time.

Days are not independent where what happens on one goes on on the next. The variance over days then lacks the
covariances of neighbouring days (Thompson 2011; Chiang, Hansen & Sasaki 2024),

    2 Σ w_l (Γ_l - Γ'_l),    Γ_l = Σ_d u_d u_{d+l}

where u_d is what a day contributes to the error and w_l = 1 - l / S are Bartlett's weights (Newey & West 1987). The
covariances Γ'_l within a first parent, such as an event that lies on several days, are taken off, because the variance
over first parents has them. They come from the intersections of both parents, whose numbers rise with that of the day.

The bandwidth S is that of Andrews (1991, eqs. 6.2 and 6.4) for an autoregression, whose coefficient is Γ_1 over Γ_0,
both less what lies within first parents, so that the noise of small counts does not hide it.
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

FEWEST_TIMES = 8  # replicates in time of which neighbours are compared
CRITICAL = 1.645  # standard errors by which the covariance of neighbours must exceed 0: significant at 5%, one-sided
_MOST_PERSISTENT = 0.97  # coefficient of the autoregression (Andrews 1991)
_RATE = 1.1447  # of Bartlett's bandwidth, Andrews (1991, eq. 6.2)


@dataclass(frozen=True)
class InTime:
    """Replicates that follow each other in time.

    Attributes:
        numbers: Shape (G,): the number of every replicate; the next in time has the next number.
        cycle: How many numbers there are; the first follows the last.
    """

    numbers: NDArray[np.int64]
    cycle: int

    def __getitem__(self, used: NDArray[np.bool_]) -> InTime:
        """Some of the replicates."""
        return InTime(self.numbers[used], self.cycle)

    def placed(self, values: Floats) -> Floats:
        """Deviations of values from their mean, each at its number; 0 at numbers without a replicate.

        Args:
            values: Shape (G, …): a statistic without each replicate in turn.
        """
        deviations = np.zeros((self.cycle, *values.shape[1:]))
        deviations[self.numbers] = values - values.mean(axis=0)
        return deviations


def _products(first: Floats, second: Floats, lag: int) -> Floats:
    """Of deviations that lie so many numbers apart, the mean of both orders; shape (cycle, …)."""
    return np.asarray((first * np.roll(second, -lag, axis=0) + second * np.roll(first, -lag, axis=0)) / 2)


@dataclass(frozen=True)
class SerialCorrelation:
    """How what second parents contribute goes together over time.

    Attributes:
        second: The replicates of second parents.
        both: Those of the intersections of both parents; the next has the next second parent and the same first.
        bandwidth: S, above 1.
    """

    second: InTime
    both: InTime
    bandwidth: float

    @cached_property
    def weights(self) -> Floats:
        """Bartlett's weights of the lags 1, 2, … below the bandwidth."""
        return np.asarray(1 - np.arange(1, np.ceil(self.bandwidth)) / self.bandwidth)

    @property
    def divisor_of_degrees(self) -> float:
        """By what the degrees of freedom of the variance over second parents are divided: 1 + 2 Σ w²."""
        return float(1 + 2 * (self.weights**2).sum())

    def covariance(self, second: tuple[Floats, Floats], both: tuple[Floats, Floats]) -> Floats:
        """What serial correlation adds to a covariance of two statistics.

        The covariances of deviations from a mean are too low on average, the more so the more lags there are: the
        whole of those of second parents is raised by n / (n - 1 - 2 Σ w), n being their number, but at most doubled.

        Args:
            second: The two statistics without each replicate of the second parents in turn.
            both: The same without each replicate of the intersections in turn.
        """
        over_time, within = self._lagged(self.second, second), self._lagged(self.both, both)
        n = len(self.second.numbers)
        raised = n / (n - min(1 + 2 * float(self.weights.sum()), n / 2)) - 1
        return np.asarray(over_time - within + raised * (covariance(*second) + over_time))

    def _lagged(self, order: InTime, pair: tuple[Floats, Floats]) -> Floats:
        first, second = (order.placed(values) for values in pair)
        lags = enumerate(self.weights, start=1)
        return np.asarray(sum(2 * weight * _products(first, second, lag).sum(axis=0) for lag, weight in lags))


def serial_correlation(second: Floats, both: Floats, in_time: tuple[InTime, InTime]) -> SerialCorrelation | None:
    """Serial correlation of a statistic over second parents; None where it is not significant, or they are too few.

    Neighbours are tested by the sum of their products: it must exceed what deviations from a mean of independent
    replicates let expect by 1.645 standard errors, which come from the squares of the products.

    Args:
        second: Shape (G,): the statistic without each replicate of the second parents in turn.
        both: The same without each replicate of the intersections in turn.
        in_time: How the replicates of second parents and of intersections follow each other.
    """
    n = len(second)
    if n < FEWEST_TIMES:
        return None
    of_second, of_both = (order.placed(values) for order, values in zip(in_time, (second, both), strict=True))
    neighbours, within = _products(of_second, of_second, 1), _products(of_both, of_both, 1)
    variance = (of_second**2).sum()
    net = float(neighbours.sum() - within.sum())
    error = float(np.sqrt((neighbours**2).sum() + (within**2).sum()))
    if not net + variance / n > CRITICAL * error:
        return None
    levels = max(float(variance - (of_both**2).sum()), net)
    coefficient = float(np.clip(net / levels, 0.0, _MOST_PERSISTENT)) if levels > 0 else 0.0
    persistence = 4 * coefficient**2 / (1 - coefficient**2) ** 2
    bandwidth = min(_RATE * (persistence * n) ** (1 / 3), n / 3)
    return SerialCorrelation(*in_time, bandwidth) if bandwidth > 1 else None
