"""Two counts of the same replicates compared: their dispersion, and a test with limits for the share of one of them.

Given their sum, one of two counts is binomial if rows are independent. Rows that come together, or replicates that
differ in the ratio of both, make the difference vary more, by the dispersion φ, and both counts are divided by φ
before the binomial distribution is used. A test has the size that it is said to have only if φ is neither rounded up
nor taken for better known than it is:

- φ is not raised to 1 although it is 1 at least. It is as often too low by chance as too high, and Student's t already
  allows for both; to raise it as well counts the doubt twice.
- The replicates' residuals are centred before they are squared. Squares about 0 hold the square of the difference that
  is tested, so that they are largest where it is; t is right for squares about the mean.
- Degrees of freedom are one less than there are replicates, also where few of them make up most of φ. Fewer would be
  right if the difference and φ were independent, but what makes φ large makes the difference large, too, so that t
  keeps its size whatever the tails of symmetric residuals are (Efron 1969).
- The tail is that of the mid-p value (Lancaster 1961): half of the probability of what was observed, and all of what is
  farther out. Tails that hold all of it (Clopper & Pearson 1934) reject true hypotheses less often than they say, of
  ten counts in one or two of a hundred samples instead of five.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from .jackknife import (
    binomial_limits,
    borrowed_dispersion,
    covariance,
    effective_degrees,
    leave_one_out,
)

if TYPE_CHECKING:
    from .jackknife import Floats, Limits

_LEAST_DISPERSION = 0.5  # what is estimated below it is chance: counts are never half as regular as independent ones
_TINY = 1e-300  # a probability that stands for smaller ones
_PRECISION = 1e-12  # relative, of limits
_STEPS = 100  # of Newton's method; bisection takes over where it leaves the bracket


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def paired_squares(
    first: Floats, second: Floats, expected: Floats, means: Floats, residuals: Floats
) -> tuple[Floats, Floats]:
    """Variance over mean of the comparison of two nested counts of the same replicates, and its degrees of freedom.

    The sum of squared residuals rises with their sum where counts are few and more are expected of the first. There,
    squares that weigh both alike take its place. With both counts in a replicate, a² + b² - (e + 1 / e) a b is free of
    its rate; with one of them, the square about its mean is taken.

    Args:
        first: Shape (G, T).
        second: Shape (G, T).
        expected: Shape (G, 1): what is expected of the second over what is expected of the first; 0 or infinite where
            one of them cannot occur.
        means: Shape (G, T): what is expected of both together if all replicates have one rate.
        residuals: Shape (G, T): second less what is expected of it, scaled so that their sum has the variance of the
            count if that is Poisson.
    """
    replicates = len(first)
    count, jackknifed = (first + second).sum(axis=0), leave_one_out(residuals)
    product = np.where((first > 0) & (second > 0), (expected + 1 / expected) * (first * second), 0.0)
    has_both = (expected > 0) & np.isfinite(expected)
    alike = np.where(has_both, first**2 + second**2 - product, (first + second - means) ** 2).sum(axis=0)
    centred = (alike - residuals.sum(axis=0) ** 2 / replicates) * (replicates / (replicates - 1))
    few = np.nan_to_num(np.minimum(2.5 * count / (count + ((first + second) ** 2).sum(axis=0)), 1.0))
    observed = (few * centred + (1 - few) * covariance(jackknifed)) / np.maximum(count, 1.0)
    return observed, effective_degrees(jackknifed)


def paired_dispersion(observed: Floats, count: Floats) -> Floats:
    """φ for a test: as `jackknife.dispersion`, but neither raised to 1 nor cautious.

    Args:
        observed: Shape (T,): variance over mean at each threshold; anything where the count is 0.
        count: Shape (T,), not rising.
    """
    observed, borrowed = np.where(count > 0, observed, 1.0), borrowed_dispersion(observed, count)
    phi = borrowed.weight * observed + (1 - borrowed.weight) * borrowed.value
    return np.asarray(np.maximum(phi, _LEAST_DISPERSION))


def mid_p_tail(hits: Floats, misses: Floats, probability: Floats | float) -> Floats:
    """The smaller mid-p tail of hits among hits and misses, at most 1/2.

    P(X > k) + P(X = k) / 2 = (I_p(k, m + 1) + I_p(k + 1, m)) / 2 with the incomplete beta function I, which is defined
    for numbers that are not whole, too; the other tail is what it lacks of 1 (Lancaster 1961).

    Args:
        hits: k ≥ 0, any shape; overdispersed counts are divided by their dispersion before.
        misses: m ≥ 0, likewise.
        probability: p, strictly between 0 and 1.
    """
    above = _mid_p_above(hits, misses, probability)
    return np.asarray(np.minimum(above, 1 - above))


def _mid_p_above(hits: Floats, misses: Floats, probability: Floats | float) -> Floats:
    at_least = np.where(hits > 0, scipy.special.betainc(np.where(hits > 0, hits, 1.0), misses + 1, probability), 1.0)
    more = np.where(misses > 0, scipy.special.betainc(hits + 1, np.where(misses > 0, misses, 1.0), probability), 0.0)
    return np.asarray((at_least + more) / 2)


@np.errstate(divide="ignore")
def mid_p_odds(hits: Floats, misses: Floats, tail_probability: Floats | float) -> Limits:
    """The odds p / (1 - p) of the probabilities that have this mid-p tail on each side.

    What `mid_p_tail` does not reject lies between them. Odds, because a probability beside 1 is rounded to it.
    Arguments as for `mid_p_tail`. The lower limit is 0 without a hit, the upper one infinite without a miss, and
    likewise where the tail is so small that the probability, or that of a miss, would be below 1e-300.
    """
    starts = binomial_limits(hits, misses, tail_probability)
    tails = np.broadcast_to(np.asarray(tail_probability, dtype=np.float64), hits.shape)
    lower = np.maximum(_mid_p_lower(hits, misses, tails, starts[0]), _TINY)
    beyond = np.maximum(_mid_p_lower(misses, hits, tails, 1 - starts[1]), _TINY)
    return (
        np.where((hits > 0) & (lower > _TINY), lower / (1 - lower), 0.0),
        np.where((misses > 0) & (beyond > _TINY), (1 - beyond) / beyond, np.inf),
    )


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _mid_p_lower(hits: Floats, misses: Floats, tails: Floats, start: Floats) -> Floats:
    """The probability at which `_mid_p_above`, which rises with it, is a tail, by Newton's method in a bracket."""
    points = np.clip(start, _TINY, 1 - 1e-16)
    unsolved = np.flatnonzero((hits > 0) & np.isfinite(misses + tails + points))
    low, high = np.zeros(len(unsolved)), np.ones(len(unsolved))
    for _ in range(_STEPS):
        point = points[unsolved]
        excess = _mid_p_above(hits[unsolved], misses[unsolved], point) - tails[unsolved]
        low, high = np.where(excess < 0, point, low), np.where(excess < 0, high, point)
        step = point - excess / _mid_p_slope(hits[unsolved], misses[unsolved], point)
        step = np.where(np.isfinite(step), step, -1.0)  # the slope may underflow
        is_far = (np.abs(step - point) > _PRECISION * point) & (high - low > _PRECISION * point)
        points[unsolved] = np.where(is_far & ((step <= low) | (step >= high)), (low + high) / 2, step)
        unsolved, low, high = unsolved[is_far], low[is_far], high[is_far]
        if not len(unsolved):
            break
    return points


def _mid_p_slope(hits: Floats, misses: Floats, probability: Floats) -> Floats:
    """The derivative of `_mid_p_above` by the probability, for hits above 0."""
    on_hits, on_misses = np.log(probability), np.log1p(-probability)
    at_least = np.exp((hits - 1) * on_hits + misses * on_misses - scipy.special.betaln(hits, misses + 1))
    more = np.exp(
        hits * on_hits + (misses - 1) * on_misses - scipy.special.betaln(hits + 1, np.where(misses > 0, misses, 1.0))
    )
    return np.asarray((at_least + np.where(misses > 0, more, 0.0)) / 2)
