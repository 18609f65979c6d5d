"""The mean of what rows are worth by their outcome: cost per row, and net benefit.

Every row is a true or false positive or negative, and each of the four has a value: what it costs, or for net benefit
(Vickers & Elkin 2006) 1 for a true positive, minus the odds of the threshold probability for a false positive, and 0.
The mean over rows lies between the lowest and the highest of these values, so that on that scale it is a share: values
are its hits and what they lack of the highest its misses. Limits are those of a share (`proportions`) with the variance
of the mean, and a row that was not observed may have the highest or the lowest value: one miss that costs 20 false
alarms can hide in a sample without any.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from ..uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..uncertainty.resampling import Resampling

    Floats: TypeAlias = NDArray[np.float64]
    Limits: TypeAlias = tuple[Floats, Floats]

_SHARE = "recall"  # of hits, given as true positives, and misses, given as false negatives


@dataclass(frozen=True)
class Payoffs:
    """What each outcome is worth: numbers, or one for each threshold.

    Attributes:
        tp: A true positive.
        fp: A false positive.
        fn: A false negative.
        tn: A true negative.
    """

    tp: Floats | float
    fp: Floats | float
    fn: Floats | float
    tn: Floats | float

    @classmethod
    def of_net_benefit(cls, probabilities: Floats) -> Payoffs:
        """Net benefit of retrieving by a threshold probability p below 1: tp / n - fp / n × p / (1 - p)."""
        return cls(1.0, -probabilities / (1 - probabilities), 0.0, 0.0)

    @classmethod
    def beyond_all(cls, probabilities: Floats) -> Payoffs:
        """Net benefit less that of retrieving every row."""
        return cls(0.0, 0.0, -1.0, probabilities / (1 - probabilities))

    @property
    def values(self) -> tuple[Floats | float, ...]:
        """In the order of `Confusion`."""
        return self.tp, self.fp, self.fn, self.tn

    @np.errstate(divide="ignore", invalid="ignore")
    def mean(self, counts: Confusion) -> Floats:
        """The mean over rows, of weights if the counts are; nan without any row."""
        return _total(counts, self.values) / _total(counts, (1.0,) * 4)

    def _range(self) -> tuple[Floats, Floats]:
        """The lowest value, and by how much the highest exceeds it."""
        table = np.stack(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in self.values)))
        return table.min(axis=0), table.max(axis=0) - table.min(axis=0)

    @np.errstate(divide="ignore", invalid="ignore")
    def limits_of_rows(self, counts: Confusion, weights: Weights | None, confidence: float) -> Limits:
        """Limits of the mean where rows are independent.

        Args:
            counts: Counts, or sums of weights, of the shape of the values or of one that broadcasts.
            weights: What else is known of the weights; None: every weight is 1.
            confidence: Such as 0.95.

        Returns:
            nan without any row.
        """
        low, width = self._range()
        units = [(value - low) / width for value in self.values]
        hits, misses = _total(counts, units), _total(counts, [1 - unit for unit in units])
        share, size = hits / (hits + misses), hits + misses
        squares = counts if weights is None else weights.squares
        variance = _total(squares, [(unit - share) ** 2 for unit in units]) / size**2
        effect = np.where((hits > 0) & (misses > 0), variance * size / (share * (1 - share)), 1.0)
        heaviest = 1.0 if weights is None else np.maximum(weights.positive, weights.negative)
        spread = Weights(_as_share(effect * hits, effect * misses), np.maximum(heaviest, 0.0), 0.0)
        limits = intervals_of_rows(_as_share(hits, misses), spread, confidence, names=[_SHARE])[_SHARE]
        lower, upper = (low + width * limit for limit in limits)
        return lower, upper

    def limits_of_clusters(
        self,
        replicates: Confusion,
        confidence: float,
        *,
        heaviest: tuple[float, float] | None = None,
        crossed: Sequence[Confusion] = (),
        resampling: Resampling | None = None,
    ) -> Limits:
        """Limits of the mean of one group where only replicates, groups of clusters, are independent.

        Args:
            replicates: Shape (G, K): counts or weights of each replicate; values are numbers or of shape (K,).
            confidence: Such as 0.95.
            heaviest: The heaviest weight of a positive and of a negative row; None: every weight is 1.
            crossed: As for `intervals_of_clusters`.
            resampling: Likewise.

        Returns:
            Shape (K,); nan for one replicate of any parent.
        """
        low, width = self._range()
        units = [(value - low) / width for value in self.values]
        most = 1.0 if heaviest is None else max(heaviest)
        shares = [
            _as_share(_total(counts, units), _total(counts, [1 - unit for unit in units]), in_time=counts.in_time)
            for counts in (replicates, *crossed)
        ]
        limits = intervals_of_clusters(
            shares[0], confidence, heaviest=(most, most), names=[_SHARE], crossed=shares[1:], resampling=resampling
        )[_SHARE]
        lower, upper = (low + width * limit for limit in limits)
        return lower, upper


def _total(counts: Confusion, values: Sequence[Floats | float]) -> Floats:
    """The sum of values over rows."""
    sides = (counts.tp, counts.fp, counts.fn, counts.tn)
    return np.asarray(sum(np.asarray(side, np.float64) * value for side, value in zip(sides, values, strict=True)))


def _as_share(hits: Floats, misses: Floats, *, in_time: bool = False) -> Confusion:
    nothing = np.zeros_like(hits)
    return Confusion(hits, nothing, misses, nothing, in_time=in_time)


def of_smaller(first: Limits, second: Limits) -> Limits:
    """Limits of the smaller of two means: both are at least the lower of the lower limits.

    The smaller mean is one of the two, so that it is above its own lower limit, and below both upper ones.
    """
    return np.minimum(first[0], second[0]), np.minimum(first[1], second[1])
