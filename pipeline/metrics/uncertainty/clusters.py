"""The spread of a statistic over one way of clustering its rows, over two that cross, or over days in order."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import scipy

from ...base.records import dataclass
from .jackknife import FEWEST_DEGREES, covariance, effective_degrees, logit_interval, satterthwaite, t_quantile

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from .jackknife import Floats, Limits


# Serial correlation of clusters that follow each other in time, such as days, and of such second parents of rows.
#
# Days are not independent where what happens on one goes on on the next. The variance over days then lacks the
# covariances of neighbouring days (Thompson 2011; Chiang, Hansen & Sasaki 2024),
#
#     2 Σ w_l Γ_l,    Γ_l = Σ_d u_d u_{d+l}
#
# where u_d is what a day contributes to the error and w_l = 1 - l / S are Bartlett's weights (Newey & West 1987). A
# first parent, such as an event, lies on several days, which its own level makes alike; the variance over first parents
# has that. Of rows that are independent but for such levels, the variance over first parents exceeds that of
# independent rows by W, say, and where a first parent lies on D days in equal shares, Γ_l has W (D - l) / (D (D - 1))
# of it, which is taken off.
#
# The bandwidth S is that of Andrews (1991, eqs. 6.2 and 6.4) for an autoregression. Its coefficient is Γ_1 over Γ_0,
# both less what comes from first parents, and Γ_0 less what independent rows bring, so that the noise of small counts
# does not hide it.
#
# Clusters of one parent, of which nothing but their contributions is known, get the same covariances, see `over_time`.
# Their coefficient is Γ_1 over Γ_0 too; where neighbours are significantly alike it is at least (Γ_2 + Γ_3 + Γ_4) over
# (Γ_1 + Γ_2 + Γ_3), which noise does not lower. The covariances are taken whether neighbours are significantly alike or
# not, and are at least those of an autoregression whose correlation of neighbours r is one standard error, 1 / √G,
# above the one observed: 1 + 2 r / (1 - φ), φ being its coefficient. Clusters that happen to look independent are those
# whose variance looks low, so that a test which fails to see the correlation would leave limits short just there. Of
# independent clusters this widens limits by 20, 14, 10 and 5% of 30, 60, 120 and 365 (`studies/coverage_of_days.py`).
# Fewer than 50 cannot tell: too many samples of a high correlation do not show it.


_FEWEST_NEIGHBOURS = 8  # pairs of neighbours that are compared
_FEWEST_IN_TIME = 50  # clusters whose neighbours may be alike unless that is significant; of fewer it is not excluded
_CRITICAL = 1.645  # standard errors by which the covariance of neighbours must exceed 0: significant at 5%, one-sided
SHORTEST_SPAN = 2.0  # days that a first parent lies on, where it is not known
_MOST_PERSISTENT = 0.97  # coefficient of the autoregression (Andrews 1991)
_MOST_LIKELY = 0.9  # the same where it is one standard error above the observed one
_LEVEL = 0.05  # of the test of neighbours
_LAGS = 5  # clusters before each one that it is compared with
_TINY, _LARGEST = 1e-15, 0.9  # p-values beyond are taken as these: a large one is no argument against a small one
_RATE = 1.1447  # of Bartlett's bandwidth, Andrews (1991, eq. 6.2)


@dataclass(frozen=True)
class _OverTime:
    """The factor, at least 1, of a variance between clusters, and the divisor 1 + 2 Σ w² of its degrees of freedom."""

    factor: Floats
    divisor: Floats

    def degrees(self, degrees: Floats | float) -> Floats:
        """Degrees of freedom of the variance, from those that it has of independent clusters; at least 4 of them."""
        return np.asarray(np.maximum(degrees / self.divisor, np.minimum(degrees, FEWEST_DEGREES)))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def over_time(shifts: Floats) -> _OverTime:
    """Covariances of clusters nearby, by Bartlett's weights.

    Args:
        shifts: Shape (G, …): how far each cluster moves a statistic, in the order of the clusters.
    """
    number = len(shifts)
    if number <= _FEWEST_NEIGHBOURS:
        return _OverTime(np.ones(shifts.shape[1:]), np.ones(shifts.shape[1:]))
    deviations = shifts - shifts.mean(axis=0)
    variance = (deviations**2).sum(axis=0)
    # of independent clusters products of deviations from their mean are below 0 on average
    gammas = [_at_lag(deviations, lag) + variance * (number - lag) / number**2 for lag in range(1, 5)]
    # the coefficient of an autoregression
    observed = gammas[0] / variance
    lasting = np.where(sum(gammas[:3]) > 0, sum(gammas[1:]) / sum(gammas[:3]), 0.0)
    lasting = np.where(_p_values_of_neighbours(shifts) < _LEVEL, np.maximum(observed, lasting), observed)
    bandwidth = np.maximum(_bandwidth(np.nan_to_num(lasting), number), 1.0)
    # the variance with Bartlett's covariances, raised for the mean that deviations are from
    total, once, squared = variance.copy(), np.zeros_like(variance), np.zeros_like(variance)
    for lag in range(1, int(np.ceil(bandwidth.max(initial=1.0)))):
        weight = np.maximum(1 - lag / bandwidth, 0.0)
        total, once, squared = total + 2 * weight * _at_lag(deviations, lag), once + weight, squared + weight**2
    raised = (number - 1) / (number - np.minimum(1 + 2 * once, number / 2))
    # at least that of an autoregression whose correlation is a standard error above the observed one
    likely = np.clip(np.nan_to_num(observed) + 1 / np.sqrt(number), 0.0, _MOST_LIKELY)
    least = 1 + 2 * likely / (1 - np.clip(np.fmax(lasting, likely), 0.0, _MOST_LIKELY))
    return _OverTime(np.fmax(total * raised / variance, least), 1 + 2 * squared)


@np.errstate(divide="ignore", invalid="ignore")
def _p_values_of_neighbours(shifts: Floats) -> Floats:
    """One-sided p-values of clusters that are independent, against neighbours that are alike; nan where nothing varies.

    Of each cluster the product with the one before it, and with the sum of the five before it, is taken: sums of these
    products over the root of the sum of their squares are nearly normal, and both p-values are combined.
    """
    number, deviations = len(shifts), shifts - shifts.mean(axis=0)
    variance, before, tails = (deviations**2).sum(axis=0), np.zeros_like(deviations), []
    for lag in range(1, min(_LAGS, number - 1) + 1):
        before[lag:] += deviations[:-lag]
        if lag in {1, _LAGS}:
            products = deviations * before
            expected = variance * sum(number - each for each in range(1, lag + 1)) / number**2
            tails.append(scipy.special.ndtr(-(products.sum(axis=0) + expected) / np.sqrt((products**2).sum(axis=0))))
    return _combined_p_value(np.array(tails)) if tails else np.full_like(variance, np.nan)


def _combined_p_value(p_values: Floats) -> Floats:
    """One p-value from several of tests that depend on each other in any way (Liu & Xie 2020), along axis 0."""
    with np.errstate(divide="ignore", invalid="ignore"):
        tangents = np.tan((0.5 - np.clip(p_values, _TINY, _LARGEST)) * np.pi)
        is_known = ~np.isnan(tangents)
        mean = np.where(is_known, tangents, 0.0).sum(axis=0) / is_known.sum(axis=0)
    return np.asarray(0.5 - np.arctan(mean) / np.pi)


def may_neighbours_be_alike(shifts: Floats) -> bool:
    """Whether clusters that follow each other are significantly alike in any of several statistics, shape (G, K).

    Of fewer than `_FEWEST_IN_TIME` it is not excluded, whatever they look like.
    """
    if len(shifts) < 2 or not shifts.shape[1]:  # noqa: PLR2004 - a single one has no neighbour
        return False
    return len(shifts) < _FEWEST_IN_TIME or bool(_combined_p_value(_p_values_of_neighbours(shifts)) < _LEVEL)


def _bandwidth(coefficient: Floats, number: int) -> Floats:
    """Bartlett's bandwidth for an autoregression with this coefficient (Andrews 1991, eqs. 6.2 and 6.4)."""
    squared = np.clip(coefficient, 0.0, _MOST_PERSISTENT) ** 2
    persistence = 4 * squared / (1 - squared) ** 2
    return np.asarray(np.minimum(_RATE * (persistence * number) ** (1 / 3), number / 3))


def _at_lag(deviations: Floats, lag: int) -> Floats:
    return np.asarray(np.einsum("g...,g...->...", deviations[:-lag], deviations[lag:]))


@dataclass(frozen=True)
class Cycle:
    """How replicates follow each other in time."""

    size: int  # how many there may be; the first follows the last
    span: float  # D, on how many of them the rows of one first parent lie; at least `SHORTEST_SPAN`


@dataclass(frozen=True)
class InTime:
    """Replicates that follow each other in a cycle of time.

    Of each replicate there is a number, shape (G,): the next in time has the next number. -1: it is not known.
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
        """Deviations of values of shape (G, …) from their mean, each at its number; 0 at those without a replicate."""
        deviations, is_known = np.zeros((self.cycle.size, *values.shape[1:])), self.numbers >= 0
        deviations[self.numbers[is_known]] = (values - values.mean(axis=0))[is_known]
        return deviations


@dataclass(frozen=True)
class SerialCorrelation:
    """How what second parents contribute goes together over time."""

    in_time: InTime  # their replicates
    bandwidth: float  # S, above 1
    share: float = 1.0  # the share of the covariances over time that does not come from first parents

    @cached_property
    def weights(self) -> Floats:
        """Bartlett's weights of the lags 1, 2, … below the bandwidth."""
        return np.asarray(1 - np.arange(1, np.ceil(self.bandwidth)) / self.bandwidth)

    @property
    def divisor_of_degrees(self) -> float:
        """By what the degrees of freedom of the variance over second parents are divided: 1 + 2 Σ w²."""
        return float(1 + 2 * (self.weights**2).sum())

    def covariance(self, first: Floats, second: Floats) -> Floats:
        """The addition of serial correlation to a covariance of two statistics over second parents.

        The covariances of deviations from a mean are too low on average, the more so the more lags there are: they are
        raised by n / (n - 1 - 2 Σ w), n being the number of replicates, but at most doubled. Of either statistic the
        values without each replicate of the second parents in turn are given, shape (G, …).
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
    if pairs < _FEWEST_NEIGHBOURS:
        return None
    # the sum of the products of neighbours, less what first parents bring, against its standard error
    deviations = in_time.placed(second)
    products, variance = deviations * np.roll(deviations, -1), float((deviations**2).sum())
    lasting = max(of_first - of_rows, 0.0)
    net = float(products.sum()) - lasting / span
    if not net + variance * pairs / n**2 > _CRITICAL * float(np.sqrt((products**2).sum())):
        return None
    levels = max(variance - of_rows - lasting / span, net)
    bandwidth = float(_bandwidth(np.asarray(net / levels if levels > 0 else 0.0), n))
    if bandwidth <= 1:
        return None
    # what is left of the covariances without that which first parents bring
    correlation = SerialCorrelation(in_time, bandwidth)
    lags = np.arange(1, len(correlation.weights) + 1)
    of_levels = lasting * 2 * float((correlation.weights * np.maximum(span - lags, 0)).sum()) / (span * (span - 1))
    total = float(correlation.over_time(second, second))
    return SerialCorrelation(in_time, bandwidth, 1 - of_levels / total) if total > of_levels else None


# The spread of a statistic over one way of clustering its rows, or over two that cross.
#
# Rows with two parents, such as pairs of an event and an article, are not independent if they share either. The
# variance is then that over the one parent, plus that over the other, less that over their intersections, which both
# hold (Cameron, Gelbach & Miller 2011, eq. 2.12). In samples this difference can come out too low, or below 0. The
# smaller of the variances over the one parent and over the other is its least value: who knows both parents is never
# more certain than who knows one of them.
#
# The variance over intersections is no such bound. Where what rows share cancels in a statistic, as the level of an
# event cancels in the difference of its near and its far pairs, that over the parent is the smaller one, and the
# intersections hold what cancels. And where rows are independent, a bound that is as high as the variance itself raises
# it on average.
#
# Second parents that follow each other in time, such as days, may go together with their neighbours; what that adds,
# see `SerialCorrelation`, is added where it is positive.


ONE_WAY = 1
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


def _held(of_first: Floats, of_second: Floats, of_sum: Floats) -> NDArray[np.int64]:
    """Which variance holds: 2, the sum less that over intersections; where it is too low that over a parent, 0 or 1."""
    smaller = np.where(of_first <= of_second, 0, 1)
    return np.where(of_sum >= np.minimum(of_first, of_second), 2, smaller)


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
    def moments(self, top: Floats, bottom: Floats, ratio: Floats) -> tuple[Floats, Floats, Floats]:
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
        chosen = _held(of_first, of_second, of_sum)
        over, under, shared = (np.choose(chosen, choices) for choices in zip(*candidates, strict=True))
        if self.serial is None:
            return over, under, shared
        above, below = pairs[1]
        more = [self.serial.covariance(*both) for both in ((above, above), (below, below), (above, below))]
        is_more = more[0] - 2 * ratio * more[2] + ratio**2 * more[1] > 0
        over, under, shared = (
            moment + np.where(is_more, added, 0.0) for moment, added in zip((over, under, shared), more, strict=True)
        )
        return over, under, shared

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
    """The sampling error of a statistic of clusters; arrays of the shape of the statistic."""

    variance: Floats  # of the statistic; nan for one cluster
    degrees: Floats  # its degrees of freedom; at least 1, and at most G - 1 if that is more
    skewed: Floats  # skewness of the statistic, Σ z_g³ / (Σ z_g²)^(3/2), between -1 and 1; 0 where nothing varies


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def spread_of_shifts(
    shifts: Floats, effective: Floats, clusters: Floats | None = None, *, in_time: bool = False
) -> Spread:
    """The sampling error of a statistic that clusters shift.

    Args:
        shifts: Shape (G, …): z_g, how far each cluster moves the statistic up.
        effective: The remaining shape: the effective number of clusters, nan where it is not known.
        clusters: The remaining shape: how many clusters have rows; None: all G.
        in_time: Whether clusters follow each other in time, so that those nearby may be alike, see `over_time`.
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
        The variance of `combined` (Cameron, Gelbach & Miller 2011, eq. 2.12) with the degrees of freedom of the
        parent that has fewer (their section 2.4); nan where a parent or the intersections have a single replicate.
    """
    if len(spreads) == ONE_WAY:
        return spreads[0]
    first, second, both = spreads
    variance = combined([first.variance, second.variance, both.variance])
    # third moments of independent effects of both parents and of intersections add up as their variances do
    third = [of_clustering.skewed * of_clustering.variance**1.5 for of_clustering in spreads]
    held = _held(first.variance, second.variance, first.variance + second.variance - both.variance)
    skewed = np.choose(held, [third[0], third[1], third[0] + third[1] - third[2]]) / variance**1.5
    skewed = np.clip(np.nan_to_num(skewed, posinf=0.0, neginf=0.0), -1.0, 1.0)
    return Spread(variance, np.minimum(first.degrees, second.degrees), skewed)


def spread_of_clusterings(clusterings: Sequence[tuple[Floats, NDArray[Any]]], *, in_time: bool = False) -> Spread:
    """The sampling error of a statistic over one clustering, whose clusters may follow each other, or two that cross.

    Of each clustering, as for `combined_spread`, the shifts and the sizes of its clusters are given, of shape (G, …).
    """
    in_time = in_time and len(clusterings) == ONE_WAY
    spreads = (spread_of_shifts(shifts, effective_number(sizes), in_time=in_time) for shifts, sizes in clusterings)
    return combined_spread(list(spreads))


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
    """Limits of a proportion moved away from it on the logit scale by `stretches`; 0 and 1 stay where they are."""
    centre = scipy.special.logit(estimate)
    moved = []
    for limit, factor in zip(limits, factors, strict=True):
        farther = scipy.special.expit(centre + factor * (scipy.special.logit(limit) - centre))
        moved.append(np.where((factor > 1) & np.isfinite(centre), farther, limit))
    return moved[0], moved[1]


def area_interval(area: Floats, spread: Spread, confidence: float, *, clustered: bool) -> Limits:
    """Limits of an area on the logit scale, with Student's t and, between clusters, with the skewness of the area.

    They are nan where the area is. Rows have no skewness that is taken into account.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        quantile = t_quantile(confidence, spread.degrees)
        limits = logit_interval(area, np.sqrt(spread.variance), quantile)
        if not clustered:
            return limits
        excess = spread.skewed - implied_skewness(area, spread.variance, "logit")
    return stretched(limits, area, stretches(excess, spread.degrees, confidence))
