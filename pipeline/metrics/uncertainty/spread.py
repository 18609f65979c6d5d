"""The spread of a statistic over one way of clustering its rows, or over two that cross.

Rows with two parents, such as pairs of an event and an article, are not independent if they share either. The variance
is then that over the one parent, plus that over the other, less that over their intersections, which both hold
(Cameron, Gelbach & Miller 2011, eq. 2.12). In samples this difference can come out too low, or below 0. The smaller of
the variances over the one parent and over the other is its least value: who knows both parents is never more certain
than who knows one of them.

The variance over intersections is no such bound. Where what rows share cancels in a statistic, as the level of an event
cancels in the difference of its near and its far pairs, that over the parent is the smaller one, and the intersections
hold what cancels. And where rows are independent, a bound that is as high as the variance itself raises it on average.

Second parents that follow each other in time, such as days, may go together with their neighbours; what that adds, see
`serial`, is added where it is positive.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...records import dataclass
from .jackknife import FEWEST_DEGREES, covariance, effective_degrees

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .jackknife import Floats
    from .serial import SerialCorrelation

Moments = tuple["Floats", "Floats", "Floats"]

ONE_WAY, TWO_WAYS = 1, 3
CELLS_OF_BOTH = 251  # replicates of intersections; a prime, so that few that share a parent share one


def replicate_of_both(first: Any, second: Any) -> Any:  # noqa: ANN401 - arrays, or expressions over columns
    """The replicate of an intersection, below `CELLS_OF_BOTH`, from the replicates of both parents as integers."""
    return (first * 16 + second) % CELLS_OF_BOTH


def combined(variances: Sequence[Floats]) -> Floats:
    """The variance over one clustering, or over the first parent, the second parent, and their intersections."""
    if len(variances) == ONE_WAY:
        return variances[0]
    first, second, both = variances
    return np.maximum(first + second - both, np.minimum(first, second))


@dataclass(frozen=True)
class JackknifeSpread:
    """How values that are taken without each replicate in turn vary.

    Attributes:
        sizes: Number of replicates of every clustering, in their order on axis 0: of the one clustering, or of the
            first parent, of the second parent, and of their intersections.
        serial: How second parents go together over time; None: they are independent, or there are none.
    """

    sizes: tuple[int, ...]
    serial: SerialCorrelation | None = None

    def __post_init__(self) -> None:
        """Refuse any other number of clusterings."""
        if len(self.sizes) not in {ONE_WAY, TWO_WAYS}:
            message = f"one clustering, or two and their intersections: {self.sizes}"
            raise ValueError(message)

    def _by_clustering(self, values: Floats) -> Iterator[Floats]:
        """The values of every clustering."""
        ends = np.cumsum(self.sizes)
        for size, end in zip(self.sizes, ends, strict=True):
            yield values[end - size : end]

    def variance(self, values: Floats) -> Floats:
        """Variance of a statistic.

        Args:
            values: Shape (sum of `sizes`, …): the statistic without each replicate of each clustering in turn.
        """
        clusterings = list(self._by_clustering(values))
        variance = combined([covariance(of_clustering) for of_clustering in clusterings])
        if self.serial is None:
            return variance
        second = clusterings[1]
        return np.asarray(variance + np.fmax(self.serial.covariance(second, second), 0.0))

    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def moments(self, top: Floats, bottom: Floats, ratio: Floats) -> Moments:
        """Variances of two statistics and their covariance, such that top - ratio × bottom has its `variance`.

        Args:
            top: Shape (sum of `sizes`, …): one statistic without each replicate in turn.
            bottom: The same of another, of a shape that broadcasts.
            ratio: Where two clusterings are combined, they are combined as for top - ratio × bottom.
        """
        pairs = list(zip(self._by_clustering(top), self._by_clustering(bottom), strict=True))
        moments = [(covariance(over), covariance(under), covariance(over, under)) for over, under in pairs]
        if len(moments) == ONE_WAY:
            return moments[0]
        shape = np.broadcast_shapes(top.shape[1:], bottom.shape[1:])
        summed = tuple(first + second - both for first, second, both in zip(*moments, strict=True))
        candidates = [[np.broadcast_to(moment, shape) for moment in triple] for triple in (*moments[:2], summed)]
        of_first, of_second, of_sum = (
            np.nan_to_num(over - 2 * ratio * shared + ratio**2 * under, nan=-np.inf)
            for over, under, shared in candidates
        )
        smaller = np.where(of_first <= of_second, 0, 1)
        chosen = np.where(of_sum >= np.minimum(of_first, of_second), 2, smaller)
        over, under, shared = (np.choose(chosen, choices) for choices in zip(*candidates, strict=True))
        if self.serial is None:
            return over, under, shared
        above, below = pairs[1]
        more_over, more_under = self.serial.covariance(above, above), self.serial.covariance(below, below)
        more_shared = self.serial.covariance(above, below)
        is_more = more_over - 2 * ratio * more_shared + ratio**2 * more_under > 0
        return (
            over + np.where(is_more, more_over, 0.0),
            under + np.where(is_more, more_under, 0.0),
            shared + np.where(is_more, more_shared, 0.0),
        )

    def degrees(self, values: Floats) -> Floats:
        """Degrees of freedom of the variance: of two parents the fewer (Cameron, Gelbach & Miller 2011, 2.4)."""
        of_parents = [effective_degrees(of_parent) for of_parent in list(self._by_clustering(values))[:2]]
        if self.serial is not None:
            of_parents[1] = np.maximum(of_parents[1] / self.serial.divisor_of_degrees, FEWEST_DEGREES)
        return np.asarray(np.min(of_parents, axis=0))

    @property
    def most_degrees(self) -> float:
        """Degrees of freedom if the clusters are alike: the number of replicates of the smaller parent less one."""
        most = min(self.sizes[:2]) - 1
        if self.serial is None:
            return most
        return min(most, max((self.sizes[1] - 1) / self.serial.divisor_of_degrees, FEWEST_DEGREES))
