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

from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import scipy

from ...records import dataclass
from .jackknife import FEWEST_DEGREES, covariance, effective_degrees, logit_interval, satterthwaite, t_quantile
from .serial import over_time

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from .jackknife import Limits
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


# How far a variance between clusters can be trusted: effective number, degrees of freedom, and skewness.
#
# A statistic of G clusters moves by a shift z_g if cluster g is left out; its jackknife variance is about the sum of
# z_g². For clusters of similar size that variance has G - 1 degrees of freedom and the statistic is nearly normal.
# Where few clusters hold most rows neither is true, and three corrections are made, the same for ratios and for
# areas:
#
# 1. *Variance.* The shifts are those of leaving a cluster out (CR3 of MacKinnon & White 1985; Bell & McCaffrey 2002),
#    not influences of its rows, which a large cluster makes small by pulling the estimate towards itself.
# 2. *Degrees of freedom.* The smaller of two numbers. What the shifts show: 2 V² / Var(V) from their fourth moment
#    (Satterthwaite 1946), low where a few of them make up the variance. What the sizes alone imply: the effective
#    number of clusters less one, (Σ n)² / Σ n² - 1 (Kish 1965); this is the effective number of Carter, Schnepel &
#    Steigerwald (2017) where variances grow with sizes. The first alone is high by chance just where the variance is
#    low.
# 3. *Skewness.* Where sizes go along with the outcome, shifts are skewed beyond what the limits of a proportion allow
#    for, and these lie too near on the side of the long tail. The quantile on that side is the one of Hall's (1992)
#    transformation of t, if it lies farther out.
#
# Measured in `studies/coverage_of_clusters.py`. Tried and not taken: degrees of freedom of Bell & McCaffrey for
# variances in proportion to squared sizes, with which 95 % intervals between unequal clusters hold the truth in 97 to
# 100 % of data sets unless sizes go along with the outcome; and Hall's quantiles on both sides, which are too near on
# the side of the short tail. Where few clusters decide, because sizes with a heavy tail go along with the outcome or
# because one cluster in many is broken, limits fall short all the same: samples without them miss, and nothing in
# these tells.


Floats: TypeAlias = "NDArray[np.float64]"

_MOST_SKEWED = 0.4  # beyond it Hall's cubic is nearly flat, and its inverse is far from any data
_NEARLY_NORMAL = 1e-6


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def effective_number(sizes: NDArray[Any]) -> Floats:
    """Effective number of clusters (Σ n)² / Σ n² (Kish 1965): G if all have one size; nan without any row.

    Args:
        sizes: Shape (G, …), ≥ 0: rows, or weight, of each cluster.
    """
    values = np.asarray(sizes, dtype=np.float64)
    return np.asarray(values.sum(axis=0) ** 2 / np.einsum("g...,g...->...", values, values))


@dataclass(frozen=True)
class Spread:
    """The sampling error of a statistic of clusters; arrays of the shape of the statistic.

    Attributes:
        variance: Of the statistic; nan for one cluster.
        degrees: Its degrees of freedom; at least 1, and at most G - 1 if that is more.
        skewed: Skewness of the statistic, Σ z_g³ / (Σ z_g²)^(3/2), between -1 and 1; 0 where nothing varies.
    """

    variance: Floats
    degrees: Floats
    skewed: Floats


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def spread_of_shifts(
    shifts: Floats, effective: Floats, clusters: Floats | None = None, *, in_time: bool = False
) -> Spread:
    """The sampling error of a statistic that clusters shift.

    Args:
        shifts: Shape (G, …): z_g, how far each cluster moves the statistic up.
        effective: The remaining shape: the effective number of clusters, nan where it is not known.
        clusters: The remaining shape: how many clusters have rows; None: all G.
        in_time: Whether clusters follow each other in time, so that those nearby may be alike, see `serial`.
    """
    number = float(len(shifts)) if clusters is None else clusters
    # second, third and fourth moment: V, its skewness, and what V itself varies by
    squares = shifts * shifts
    total = squares.sum(axis=0)
    third = np.einsum("g...,g...->...", squares, shifts)
    fourth = np.einsum("g...,g...->...", squares, squares)
    # Satterthwaite (1946): 2 V² / Var(V), and not more than the sizes allow for
    most = np.maximum(np.asarray(number) - 1.0, 1.0)
    observed = satterthwaite(total, fourth, number)
    degrees = np.maximum(np.fmin(np.minimum(observed, most), effective - 1.0), 1.0)
    variance = np.where(np.asarray(number) > 1, total * (number - 1.0) / number, np.nan)
    if in_time:
        nearby = over_time(shifts)
        variance = variance * nearby.factor
        degrees = nearby.degrees(degrees)
    return Spread(np.asarray(variance), np.asarray(degrees), np.asarray(np.nan_to_num(third / total**1.5)))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def combined_spread(spreads: Sequence[Spread]) -> Spread:
    """The sampling error over one clustering, or over two that cross.

    Args:
        spreads: Of the one clustering; or of the first parent, of the second parent, and of their intersections.

    Returns:
        The variance of `spread.combined` (Cameron, Gelbach & Miller 2011, eq. 2.12) with the degrees of freedom of the
        parent that has fewer (their section 2.4); nan where a parent or the intersections have a single replicate.
    """
    if len(spreads) == ONE_WAY:
        return spreads[0]
    first, second, both = spreads
    variance = combined([first.variance, second.variance, both.variance])
    # third moments of independent effects of both parents and of intersections add up as their variances do
    third = [of_clustering.skewed * of_clustering.variance**1.5 for of_clustering in spreads]
    of_smaller = np.where(first.variance <= second.variance, third[0], third[1])
    is_summed = first.variance + second.variance - both.variance >= np.minimum(first.variance, second.variance)
    skewed = np.where(is_summed, third[0] + third[1] - third[2], of_smaller) / variance**1.5
    skewed = np.clip(np.nan_to_num(skewed, posinf=0.0, neginf=0.0), -1.0, 1.0)
    return Spread(variance, np.minimum(first.degrees, second.degrees), skewed)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def implied_skewness(share: Floats, variance: Floats, limits: Literal["beta", "logit"]) -> Floats:
    """The skewness of a proportion for which its limits already allow, by being farther on one side than on the other.

    A binomial share p with the variance V has the skewness (1 - 2 p) √V / (p (1 - p)), and quantiles of beta
    distributions have it, too. Limits at t standard errors on the logit scale differ by t² V (1 - 2 p) / (p (1 - p)) in
    their distance from p, as those of Hall's transformation would for 3/2 of that skewness.

    Args:
        share: The proportion.
        variance: Of it.
        limits: What its limits are.
    """
    factor = {"beta": 1.0, "logit": 1.5}[limits]
    return factor * np.sqrt(variance) * (1.0 - 2.0 * share) / (share * (1.0 - share))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def stretches(excess: Floats, degrees: Floats, confidence: float) -> tuple[Floats, Floats]:
    """By how much the lower and the upper half of an interval must be longer for skewness; each at least 1.

    Args:
        excess: skewness of the statistic less `implied_skewness`; nan counts as none.
        degrees: Degrees of freedom of t.
        confidence: Such as 0.95.

    Returns:
        Factors for the distance of each limit from the estimate, on a scale where it is nearly normal.
    """
    gamma = np.clip(np.nan_to_num(excess), -_MOST_SKEWED, _MOST_SKEWED)
    quantile = t_quantile(confidence, degrees)

    def transformed(value: Floats) -> Floats:
        """Quantile of the studentised statistic where its transformation has this one: the root of Hall's cubic."""
        root = 3.0 / gamma * (np.cbrt(1.0 + gamma * (value - gamma / 6.0)) - 1.0)
        return np.where(np.abs(gamma) > _NEARLY_NORMAL, root, value)

    lower, upper = transformed(quantile) / quantile, -transformed(-quantile) / quantile
    return np.fmax(lower, 1.0), np.fmax(upper, 1.0)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def stretched(limits: Limits, estimate: Floats, factors: tuple[Floats, Floats]) -> Limits:
    """Limits of a proportion moved away from it on the logit scale; 0 and 1 stay where they are.

    Args:
        limits: Around the estimate.
        estimate: The proportion.
        factors: As from `stretches`.
    """
    centre = scipy.special.logit(estimate)
    moved = []
    for limit, factor in zip(limits, factors, strict=True):
        farther = scipy.special.expit(centre + factor * (scipy.special.logit(limit) - centre))
        moved.append(np.where((factor > 1) & np.isfinite(centre), farther, limit))
    return moved[0], moved[1]


def area_interval(area: Floats, spread: Spread, confidence: float, *, clustered: bool) -> Limits:
    """Limits of an area on the logit scale, with Student's t and, between clusters, with the skewness of the area.

    Args:
        area: Between 0 and 1; nan where limits are not wanted.
        spread: Its sampling error.
        confidence: Such as 0.95.
        clustered: Whether the error is that of clusters; rows have no skewness that is taken into account.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        quantile = t_quantile(confidence, spread.degrees)
        limits = logit_interval(area, np.sqrt(spread.variance), quantile)
        if not clustered:
            return limits
        excess = spread.skewed - implied_skewness(area, spread.variance, "logit")
    return stretched(limits, area, stretches(excess, spread.degrees, confidence))
