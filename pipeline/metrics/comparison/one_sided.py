"""One-sided tests of published numbers, from their values and intervals alone.

An interval says what a number would have to be to be called different at one level. Here its limits are moved, on the
scale that they were made on, until one of them meets the value asked about: the level at which that happens is the
p-value (tests and intervals are inverses: Lehmann & Romano 2005, section 3.5). At the level of the interval nothing is
assumed: a number at one of its 95% limits has a one-sided p-value of 0.025. At other levels it is what the same method
would give, if its standard error and its degrees of freedom stay as they are.

| limits | scale on which they are moved |
|---|---|
| within [0, 1] | those of a binomial share of as many rows as give these limits |
| others | as they are, their logarithms, or those of what they lack of 1: on whichever they are most symmetric |

Published limits of a share cover what they should on average over shares, not for each of them. A p-value of one share
is therefore the tail probability of so many rows itself (Clopper & Pearson 1934), which is never too small where rows
are independent; at a published limit it lies a little above 0.025.

Limits of a difference follow from those of both numbers by the square root of the sum of the squared distances on the
sides that matter (MOVER: Newcombe 1998; Zou & Donner 2008), with the degrees of freedom of Welch (1947). That takes the
two as independent. If they share data, as two nights of a growing archive do, they vary together, the variance of the
difference is smaller than that sum, and the test is conservative: it calls fewer true nulls false than its level says,
and finds real differences later.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from ...records import dataclass
from ..uncertainty.jackknife import proportion_limit_above, t_quantile

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats

NIGHTS_PER_YEAR = 365.0
_MOST = 35.0  # quantile beyond which tail probabilities are 0 as doubles
_HALVINGS = 44
_SMALLEST_SIZE, _LARGEST_SIZE = 1e-6, 1e15  # of a binomial sample that has the limits of a share
_SHARE, _LACK, _LOG, _PLAIN = range(4)


@dataclass(frozen=True)
class Estimates:
    """Numbers with their intervals; arrays of shape (K,), nan where there is none.

    Attributes:
        value: The numbers.
        lower: Their lower limits.
        upper: Their upper limits.
        degrees: Degrees of freedom of their variances; infinite where rows are independent.
        confidence: Two-sided level of the limits.
    """

    value: Floats
    lower: Floats
    upper: Floats
    degrees: Floats
    confidence: float

    @property
    def quantile(self) -> Floats:
        """How many standard errors the limits lie away, shape (K,)."""
        return t_quantile(self.confidence, self.degrees)


def p_values_below(estimates: Estimates, limits: Floats | float) -> Floats:
    """P-values of the hypothesis that the true number is at least so large; small ones say that it lies below.

    Args:
        estimates: The numbers.
        limits: A number, or shape (K,).

    Returns:
        Shape (K,), in (0, 1): over 1/2 where the number lies above; nan where value or limits are.
    """
    return _p_values(estimates, np.broadcast_to(np.asarray(limits, dtype=np.float64), estimates.value.shape), 1.0)


def p_values_above(estimates: Estimates, limits: Floats | float) -> Floats:
    """P-values of the hypothesis that the true number is at most so large; the rest as for `p_values_below`."""
    return _p_values(estimates, np.broadcast_to(np.asarray(limits, dtype=np.float64), estimates.value.shape), -1.0)


def p_values_of_drop(before: Estimates, after: Estimates, allowance: float) -> Floats:
    """P-values of the hypothesis that the true numbers fell by at most the allowance; small ones say by more.

    Args:
        before: The earlier numbers.
        after: The later ones, in the same order.
        allowance: In the unit of the numbers, ≥ 0.

    Returns:
        Shape (K,), in (0, 1): over 1/2 where they fell by less; nan where a value or a limit is.
    """
    return _p_values_of_difference(before, after, allowance)


def p_values_of_rise(before: Estimates, after: Estimates, allowance: float) -> Floats:
    """P-values of the hypothesis that the true numbers rose by at most the allowance; as `p_values_of_drop`."""
    return _p_values_of_difference(after, before, allowance)


def p_values_of_change(before: Estimates, after: Estimates, allowance: float) -> Floats:
    """P-values of the hypothesis that the true numbers fell or rose by at most the allowance.

    Twice the smaller of both one-sided p-values, at most 1 (Bonferroni), which holds whatever the allowance.
    """
    sides = p_values_of_drop(before, after, allowance), p_values_of_rise(before, after, allowance)
    return np.asarray(np.minimum(2 * np.minimum(*sides), 1.0))


def confidence_for(alarms_per_year: float, nights_per_year: float = NIGHTS_PER_YEAR) -> float:
    """The confidence of every night at which so many nights of a year are expected to raise a false alarm.

    The expected number of nights with a false alarm is the sum of their probabilities, whether or not nights depend on
    each other, so that a share of alarms_per_year / nights_per_year in every night keeps it.

    Args:
        alarms_per_year: The expected number that is allowed, above 0 and below the number of nights.
        nights_per_year: How many nights are judged.
    """
    return 1 - alarms_per_year / nights_per_year


@dataclass(frozen=True)
class _Side:
    """The limits on one side of some numbers, as a function of how many standard errors they lie away.

    Attributes:
        value: The numbers.
        limit: Their limits at the level of the interval.
        quantile: How many standard errors away these are.
        scale: On which scale limits are moved.
        size: Of the binomial sample that has this limit, for shares.
        is_upper: Whether these are upper limits.
        is_exact: Whether limits of shares that are moved are those of Clopper and Pearson.
    """

    value: Floats
    limit: Floats
    quantile: Floats
    scale: NDArray[np.int64]
    size: Floats
    is_upper: bool
    is_exact: bool

    @classmethod
    def of(cls, estimates: Estimates, *, is_upper: bool, is_exact: bool = False) -> _Side:
        limit = estimates.upper if is_upper else estimates.lower
        mirrored, limit_above = (estimates.value, limit) if is_upper else (1 - estimates.value, 1 - limit)
        size = _binomial_size(mirrored, limit_above, scipy.special.ndtr(-estimates.quantile))
        return cls(estimates.value, limit, estimates.quantile, _scales(estimates), size, is_upper, is_exact)

    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def at(self, quantile: Floats) -> Floats:
        """The limits that lie so many standard errors away."""
        step = quantile / self.quantile
        mirrored = self.value if self.is_upper else 1 - self.value
        limit_of_share = _exact_share_limit if self.is_exact else _share_limit
        share = limit_of_share(mirrored, self.size, scipy.special.ndtr(-quantile))
        candidates = [
            share if self.is_upper else 1 - share,
            1 - (1 - self.value) * ((1 - self.limit) / (1 - self.value)) ** step,
            self.value * (self.limit / self.value) ** step,
            self.value + (self.limit - self.value) * step,
        ]
        moved = np.choose(self.scale, candidates)
        return np.asarray(np.where(self.limit == self.value, self.value, moved))


@np.errstate(divide="ignore", invalid="ignore")
def _scales(estimates: Estimates) -> NDArray[np.int64]:
    """The scale of each number: that of shares, else the one on which its interval is the most symmetric."""
    value, lower, upper = estimates.value, estimates.lower, estimates.upper
    skews = [
        np.log((np.log1p(-value) - np.log1p(-upper)) / (np.log1p(-lower) - np.log1p(-value))),
        np.log((np.log(upper) - np.log(value)) / (np.log(value) - np.log(lower))),
        np.log((upper - value) / (value - lower)),
    ]
    most_symmetric = np.argmin([np.where(np.isfinite(skew), np.abs(skew), _MOST) for skew in skews[::-1]], axis=0)
    return np.where((lower >= 0) & (upper <= 1), _SHARE, _PLAIN - most_symmetric)


def _share_limit(share: Floats, size: Floats, tails: Floats) -> Floats:
    """Upper limit of a share of so many rows, of which one more is added that was not observed."""
    share = np.clip(share, 0.0, 1.0)
    return proportion_limit_above(size * share + 1, size * (1 - share), tails)


def _exact_share_limit(share: Floats, size: Floats, tails: Floats) -> Floats:
    """Upper limit of a share of so many rows by Clopper and Pearson."""
    share = np.clip(share, 0.0, 1.0)
    misses = size * (1 - share)
    limit = scipy.special.betainccinv(size * share + 1, np.where(misses > 0, misses, 1.0), tails)
    return np.asarray(np.where(misses > 0, limit, 1.0))


def _binomial_size(share: Floats, limit: Floats, tails: Floats) -> Floats:
    """Number of rows at which the upper limit of a share is as it is: the more rows, the nearer is the limit."""
    low, high = np.full(share.shape, np.log(_SMALLEST_SIZE)), np.full(share.shape, np.log(_LARGEST_SIZE))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_wide = _share_limit(share, np.exp(middle), tails) > limit
        low, high = np.where(is_wide, middle, low), np.where(is_wide, high, middle)
    return np.asarray(np.exp((low + high) / 2))


def _p_values(estimates: Estimates, limits: Floats, direction: float) -> Floats:
    """P-values that the true number lies on the near side of limits: below for direction 1, above for -1."""
    gap = direction * (limits - estimates.value)
    upper, lower = (_Side.of(estimates, is_upper=is_upper, is_exact=True) for is_upper in (True, False))
    against, in_favour = (upper, lower) if direction > 0 else (lower, upper)

    def tails(side: _Side) -> Floats:
        quantile = _solved(gap.shape, lambda moved: np.abs(gap) - np.abs(side.at(moved) - side.value))
        return np.asarray(scipy.special.stdtr(estimates.degrees, -quantile))

    p_values = np.where(gap > 0, tails(against), 1 - tails(in_favour))
    missing = np.isnan(estimates.value) | np.isnan(estimates.lower) | np.isnan(estimates.upper)
    return np.where(missing, np.nan, p_values)


def _p_values_of_difference(larger: Estimates, smaller: Estimates, allowance: float) -> Floats:
    """P-values that the first less the second exceeds an allowance."""
    gap = larger.value - smaller.value - allowance

    def tails(*, is_upper: bool) -> Floats:
        first, second = _Side.of(larger, is_upper=is_upper), _Side.of(smaller, is_upper=not is_upper)
        degrees = _welch(first, second, larger.degrees, smaller.degrees)

        def room(moved: Floats) -> Floats:
            distances = first.value - first.at(moved), second.value - second.at(moved)
            return np.asarray(np.abs(gap) - np.hypot(*distances))

        return np.asarray(scipy.special.stdtr(degrees, -_solved(gap.shape, room)))

    p_values = np.where(gap > 0, tails(is_upper=False), 1 - tails(is_upper=True))
    missing = np.isnan(gap) | np.isnan(larger.lower + larger.upper + smaller.lower + smaller.upper)
    return np.where(missing, np.nan, p_values)


@np.errstate(divide="ignore", invalid="ignore")
def _welch(first: _Side, second: _Side, of_first: Floats, of_second: Floats) -> Floats:
    """Degrees of freedom of the variance of a difference (Welch 1947; Satterthwaite 1946)."""
    variances = [((side.limit - side.value) / side.quantile) ** 2 for side in (first, second)]
    spread = variances[0] ** 2 / of_first + variances[1] ** 2 / of_second
    return np.asarray(np.where(spread > 0, (variances[0] + variances[1]) ** 2 / spread, np.inf))


def _solved(shape: tuple[int, ...], room: Callable[[Floats], Floats]) -> Floats:
    """The quantile up to which there is room; room shrinks as it grows. 0 where there is none, at most `_MOST`."""
    low, high = np.zeros(shape), np.full(shape, _MOST)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        has_room = room(middle) > 0
        low, high = np.where(has_room, middle, low), np.where(has_room, high, middle)
    return np.asarray((low + high) / 2)
