"""Standard errors and intervals from replicate sums: the delete-a-group jackknife; quantiles of beta, on all cores."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import scipy

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray


# Quantiles of beta distributions, of which limits of proportions are made: many at once.
#
# SciPy searches for each of them. Where both shapes are large, the logarithm of the odds is so nearly normal that the
# expansion of Cornish & Fisher (1938) in its cumulants, which are polygamma functions, is wrong by a few millionths of
# a standard deviation, and one step of Halley's method makes it right to the last digits. Where the step is longer, and
# for small shapes, SciPy is asked, once for equal arguments.


Floats: TypeAlias = "NDArray[np.float64]"

_LARGE_SHAPE = 200.0  # smaller ones take SciPy no longer
_LEAST_LEVEL = 1e-4  # below, differences of probabilities have too few digits
_LONGEST_STEP = 3e-5  # in standard deviations; what it leaves is of the order of its cube
_SMALLEST_LOG, _HALVINGS = -745.0, 80  # of doubles above 0; enough halvings for the last bit


def _beta_quantile(a: Floats, b: Floats, probability: Floats | float, *, above: bool = False) -> Floats:
    """The value below or above which a beta distribution has some probability; arrays broadcast, nan gives nan."""
    arrays = np.broadcast_arrays(np.asarray(a, np.float64), b, np.asarray(probability, np.float64))
    columns = [array.ravel() for array in arrays]
    begins = np.ones(columns[0].size, dtype=np.bool_)  # rows unlike the row before: along a curve, counts stay the same
    begins[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    a, b, tails = (column[begins] for column in columns)
    # large shapes by the expansion, the others by a search
    level = 1 - tails if above else tails
    is_large = (np.minimum(a, b) >= _LARGE_SHAPE) & (np.abs(level - 0.5) <= 0.5 - _LEAST_LEVEL)
    quantiles = np.full(a.shape, np.nan)
    quantiles[is_large] = _on_all_cores(_of_large_shapes, a[is_large], b[is_large], level[is_large])
    lacking = np.isnan(quantiles)
    quantiles[lacking] = _searched(a[lacking], b[lacking], tails[lacking], above=above)
    return np.asarray(quantiles[begins.cumsum() - 1].reshape(arrays[0].shape))


def _of_large_shapes(a: Floats, b: Floats, level: Floats) -> Floats:
    """Quantiles from a normal distribution of the log odds; nan where that is not exact.

    Of X and 1 - X the one that is smaller on average is looked for, since it has more digits.
    """
    swapped = a > b
    small, large = np.where(swapped, b, a), np.where(swapped, a, b)
    level = np.where(swapped, 1 - level, level)
    log_odds, deviation = _cornish_fisher(small, large, scipy.special.ndtri(level))
    value = scipy.special.expit(log_odds)
    density = np.exp(small * log_odds + (small + large) * np.log1p(-value) - scipy.special.betaln(small, large))
    newton = (scipy.special.betainc(small, large, value) - level) / density
    step = newton / (1 - newton * (small - (small + large) * value) / 2)
    value = scipy.special.expit(log_odds - step)
    return np.where(np.abs(step) <= _LONGEST_STEP * deviation, np.where(swapped, 1 - value, value), np.nan)


def _cornish_fisher(a: Floats, b: Floats, normal: Floats) -> tuple[Floats, Floats]:
    """The quantile of the log odds for a quantile of the standard normal distribution, and their standard deviation.

    The cumulant of order r is the polygamma function of order r - 1 of `a`, and that of `b`, less it for odd r. The
    expansion has the terms to the third order (Abramowitz & Stegun 1964, 26.2.49).
    """
    mean, variance, third, fourth, fifth = (
        of_a + sign * of_b for of_a, of_b, sign in zip(_polygammas(a), _polygammas(b), (-1, 1, -1, 1, -1), strict=True)
    )
    deviation = np.sqrt(variance)
    skewness, excess, tailed = third / deviation**3, fourth / variance**2, fifth / deviation**5
    square = normal * normal
    first = skewness * (square - 1) / 6
    second = normal * (excess * (square - 3) / 24 - skewness**2 * (2 * square - 5) / 36)
    of_fifth = tailed * ((square - 6) * square + 3) / 120
    of_both = skewness * excess * ((square - 5) * square + 2) / 24
    of_cube = skewness**3 * ((12 * square - 53) * square + 17) / 324
    return mean + deviation * (normal + first + second + of_fifth - of_both + of_cube), deviation


def _polygammas(shape: Floats) -> tuple[Floats, Floats, Floats, Floats, Floats]:
    """Polygamma functions of order 0 to 4 of a large number, by their series in 1 / (shape - 1/2)."""
    inverse = 1 / (shape - 0.5)
    square = inverse * inverse
    return (
        square * (1 / 24 - square * 7 / 960) - np.log(inverse),
        inverse * (1 - square * (1 / 12 - square * 7 / 240)),
        -square * (1 - square * (1 / 4 - square * 7 / 48)),
        2 * inverse * square * (1 - square / 2),
        -6 * square * square * (1 - square * 5 / 6),
    )


def _searched(a: Floats, b: Floats, probability: Floats, *, above: bool) -> Floats:
    """The quantiles of SciPy; where it finds none, by bisection."""
    (a, b, probability), row_of_each = _once(a, b, probability)
    quantiles = _on_all_cores(scipy.special.betainccinv if above else scipy.special.betaincinv, a, b, probability)
    lacking = np.isnan(quantiles) & ~(np.isnan(a) | np.isnan(b) | np.isnan(probability))
    if lacking.any():
        shapes = (b[lacking], a[lacking]) if above else (a[lacking], b[lacking])
        bisected = _bisected(*shapes, probability[lacking])
        quantiles = quantiles.copy()
        quantiles[lacking] = 1 - bisected if above else bisected
    return np.asarray(quantiles[row_of_each])


def _once(*columns: Floats) -> tuple[Floats, NDArray[np.int64]]:
    """Rows of numbers without repetitions, a column each, and which of them each row is: small groups repeat counts."""
    table = np.stack(columns, axis=1)
    # rows are compared by their bytes, which is several times as fast as number by number
    as_bytes = table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel()
    _, row_of_unique, row_of_each = np.unique(as_bytes, return_index=True, return_inverse=True)
    return table[row_of_unique].T, row_of_each


def _bisected(a: Floats, b: Floats, probability: Floats) -> Floats:
    """Beta quantiles by bisection on the log scale."""
    low, high = np.full(len(a), _SMALLEST_LOG), np.zeros(len(a))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        is_above = scipy.special.betainc(a, b, np.exp(middle)) >= probability
        low, high = np.where(is_above, low, middle), np.where(is_above, middle, high)
    return np.exp(high)


# The delete-a-group jackknife.
#
# Rows are not independent, clusters are. Every cluster lies in one of G replicates and the counts are known per
# replicate, so a statistic can be taken again without each replicate in turn: the spread of these G values is its
# sampling variance, with G - 1 degrees of freedom (Quenouille 1956; Tukey 1958; delete-a-group: Kott 2001). Arrays have
# the replicates on axis 0.


Limits: TypeAlias = "tuple[Floats, Floats]"

_FEW_COUNTS = 10.0
_ENOUGH_COUNTS = 30
FEWEST_DEGREES = 4.0
_MANY_DEGREES = 1e6


def leave_one_out(counts: NDArray[Any]) -> Floats:
    """Totals without each replicate in turn, raised by G / (G - 1) to the size of the full totals.

    Args:
        counts: Shape (G, …), G ≥ 2; sums of each replicate.

    Returns:
        Shape (G, …). Any function of totals may be taken of them; `covariance` then gives its variance.
    """
    replicates = counts.shape[0]
    return np.asarray((counts.sum(axis=0) - counts) * (replicates / (replicates - 1)), dtype=np.float64)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def covariance(first: Floats, second: Floats | None = None) -> Floats:
    """Jackknife covariance of two statistics, or the variance of one: (G - 1) / G times the sum of products.

    Args:
        first: Shape (G, …): a statistic without each replicate in turn, as from `leave_one_out`.
        second: The same of another statistic, of a shape that broadcasts; None: the first again.

    Returns:
        The remaining shape. For a total this is G / (G - 1) times the sum of squares about the mean, for a smooth
        function the linearised variance up to terms of order 1 / G². nan where a value without one replicate is nan or
        infinite.
    """
    replicates = first.shape[0]
    left = first - first.mean(axis=0)
    right = left if second is None else second - second.mean(axis=0)
    return np.asarray(np.einsum("g...,g...->...", left, right) * ((replicates - 1) / replicates))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def effective_degrees(values: Floats) -> Floats:
    """Degrees of freedom of `covariance(values)`, fewer than G - 1 where few replicates make up most of the variance.

    Satterthwaite (1946): 2 V² / Var(V), with the variance of V from the fourth moment of the deviations.

    Args:
        values: Shape (G, …), as for `covariance`.

    Returns:
        The remaining shape; from 4 to G - 1, which it is too where nothing varies.
    """
    squares = (values - values.mean(axis=0)) ** 2
    return satterthwaite(squares.sum(axis=0), np.einsum("g...,g...->...", squares, squares), float(len(values)))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def satterthwaite(second: Floats, fourth: Floats, replicates: Floats | float) -> Floats:
    """`effective_degrees` from the sums of squares and of fourth powers of the deviations of so many replicates."""
    spread = fourth - second**2 / replicates
    degrees = np.where(spread > 0, 2 * second**2 / spread, np.inf)
    most = np.asarray(replicates) - 1.0
    return np.clip(degrees, np.minimum(FEWEST_DEGREES, most), most)


def t_quantile(confidence: float, degrees: Floats | float) -> Floats:
    """Two-sided quantile of Student's t: P(|t| ≤ quantile) = confidence."""
    return np.asarray(scipy.special.stdtrit(degrees, 0.5 + confidence / 2))


def tail(confidence: float, degrees: Floats | float) -> Floats:
    """Tail probability beyond the t quantile under the normal distribution.

    With it the quantiles of any distribution (gamma, beta) are widened as t widens the normal.
    """
    return np.asarray(scipy.special.ndtr(-t_quantile(confidence, degrees)))


def p_value(tails: Floats, degrees: Floats | float) -> Floats:
    """Two-sided p-value of the smaller tail probability: the inverse of `tail`, at most 1."""
    return np.asarray(np.minimum(2 * scipy.special.stdtr(degrees, scipy.special.ndtri(np.minimum(tails, 0.5))), 1.0))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def log_interval(estimate: Floats, standard_error: Floats, quantile: Floats | float) -> Limits:
    """Symmetric on the log scale: estimate × exp(± quantile × SE / estimate); nan unless the estimate is positive.

    The standard error is of the estimate itself, not of its logarithm; the quantile is as from `t_quantile`.
    """
    width = np.where(estimate > 0, quantile * standard_error / estimate, np.nan)
    return np.asarray(estimate * np.exp(-width)), np.asarray(estimate * np.exp(width))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def logit_interval(estimate: Floats, standard_error: Floats, quantile: Floats | float) -> Limits:
    """Symmetric on the logit scale: logit(estimate) ± quantile × SE / (estimate (1 - estimate)).

    The arguments are those of `log_interval`; at 0, at 1 and outside the limits are nan.
    """
    inside = np.where((estimate > 0) & (estimate < 1), estimate, np.nan)
    centre, width = scipy.special.logit(inside), quantile * standard_error / (inside * (1 - inside))
    return np.asarray(scipy.special.expit(centre - width)), np.asarray(scipy.special.expit(centre + width))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def fieller_interval(
    numerator: Floats, denominator: Floats, variances: tuple[Floats, Floats, Floats], quantile: Floats | float
) -> Limits:
    """Limits of a ratio that must lie in [0, 1] (Fieller 1954).

    All ratios r with (N - r D)² ≤ quantile² Var(N - r D). The set is an interval where D differs from 0
    significantly. Otherwise it reaches to infinity on both sides, and may leave out a piece between; what is given is
    the smallest interval around its part in [0, 1], at worst [0, 1] itself.

    Args:
        numerator: N, any shape.
        denominator: D > 0.
        variances: Of N and of D, and their covariance.
        quantile: As from `t_quantile`.

    The limits hold N / D clipped to [0, 1]; they are nan where D ≤ 0 or an argument is nan.
    """
    of_numerator, of_denominator, shared = variances
    square = denominator**2 - quantile**2 * of_denominator
    half = numerator * denominator - quantile**2 * shared
    constant = numerator**2 - quantile**2 * of_numerator
    root = np.sqrt(np.maximum(half**2 - square * constant, 0.0))
    far = half + np.where(half >= 0, root, -root)  # the roots are far / square and constant / far
    smaller, larger = np.fmin(far / square, constant / far), np.fmax(far / square, constant / far)
    point = np.clip(np.where(denominator > 0, numerator / denominator, np.nan), 0.0, 1.0)
    bounded = square >= 0  # for 0 one root is infinite, and the set is the half-line of the other
    lower = np.where(constant <= 0, 0.0, np.where(bounded, smaller, larger))
    upper = np.where(square - 2 * half + constant <= 0, 1.0, np.where(bounded, larger, smaller))
    return np.minimum(np.clip(lower, 0.0, 1.0), point), np.maximum(np.clip(upper, 0.0, 1.0), point)


def _borrowed(observed: Floats, count: Floats) -> tuple[int, Floats, Floats]:
    """The dispersion at the highest threshold with enough counts, for the thresholds above it: 1 + c + κ × mean.

    It takes the arguments of `dispersion`, and gives the index of that threshold, the lowest if none has enough; the
    dispersion that it lets expect at every threshold; and the weight of a threshold's own beside it.
    """
    source = max(int((count >= _ENOUGH_COUNTS).sum()) - 1, 0)
    kappa = max(0.0, observed[0] - 1) / max(count[0], 1.0)
    expected = observed[source] - kappa * (count[source] - count)
    return source, expected, np.where(np.arange(len(count)) > source, np.minimum(count / _ENOUGH_COUNTS, 1.0), 1.0)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def dispersion(observed: Floats, degrees: Floats, count: Floats) -> tuple[Floats, Floats]:
    """Variance over mean of nested counts, at least 1, and its degrees of freedom.

    Variance over mean is 1 + c + κ × mean: copies that come together make c, clusters that differ make κ. Above the
    highest threshold with at least 30 counts it is too uncertain to be taken from its own counts alone: what that
    threshold says is carried upwards, with κ from the lowest threshold of all. The share of 1 is known, not estimated,
    which adds degrees of freedom (Satterthwaite 1946).

    Args:
        observed: Shape (T,): variance over mean at each threshold; anything where the count is 0.
        degrees: Shape (T,): degrees of freedom of these variances.
        count: Shape (T,), not rising.
    """
    observed = np.where(count > 0, observed, 1.0)
    source, expected, weight = _borrowed(observed, count)
    is_above = np.arange(len(count)) > source
    mixed = weight * observed + (1 - weight) * np.maximum(observed, expected)
    phi = np.maximum(np.where(is_above, mixed, observed), 1.0)
    degrees = np.where(is_above, np.maximum(degrees, degrees[source]), degrees)
    return phi, np.minimum(degrees * (phi / (phi - 1)) ** 2, _MANY_DEGREES)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def gamma_interval(count: Floats, phi: Floats, tail_probability: Floats | float) -> Limits:
    """Limits of the mean of an overdispersed count.

    `count / phi` is taken as a Poisson count k, limits being gamma quantiles of shape k + a and k + 1 - a. Few counts
    get the exact limits of Garwood (1936), a = 0, many get the mid ones, a = 1/2, whose coverage is right on average
    (Cohen & Yang 1994): a rises in proportion to k up to k = 10. Sums over clusters are more skewed than such a k, so
    that the upper limit of many counts is at least the one on the log scale.

    Args:
        count: Observed, ≥ 0, any shape.
        phi: Variance over mean of the count, > 0.
        tail_probability: On each side, as from `tail`.
    """
    effective = count / phi
    share = 0.5 * np.minimum(effective / _FEW_COUNTS, 1.0)
    lower = scipy.special.gammaincinv(effective + share, tail_probability) * phi
    upper = scipy.special.gammainccinv(effective + 1 - share, tail_probability) * phi
    log_upper = count * np.exp(-scipy.special.ndtri(tail_probability) / np.sqrt(np.maximum(effective, 1.0)))
    upper = upper + np.minimum(count / _FEW_COUNTS, 1.0) * np.maximum(log_upper - upper, 0.0)
    return np.where(effective > 0, lower, 0.0), np.asarray(upper)


def binomial_limits(hits: Floats, misses: Floats, tail_probability: Floats | float) -> Limits:
    """Limits of a proportion.

    Beta quantiles with shapes that need not be whole. Without a hit or without a miss they are the exact limits of
    Clopper & Pearson (1934), from ten of each on the equal-tailed ones of Jeffreys' prior, and between them the shapes
    move in proportion to the smaller count, as in `gamma_interval`. Brown, Cai & DasGupta (2001, section 4) modify
    Jeffreys' limits for the same reason: unmodified they cover too little near 0 and 1. Exact coverage of the nominal
    .95 is at least .927 at every probability from 10 counts on, and at least .93 at 99 of 100.

    Args:
        hits: Observed, ≥ 0, any shape; overdispersed counts are divided by their dispersion before.
        misses: Likewise.
        tail_probability: On each side, as from `tail`.
    """
    share = 0.5 * np.minimum(np.minimum(hits, misses) / _FEW_COUNTS, 1.0)
    # without a hit or a miss the limit is the end, and the shapes are any that are defined
    low = _beta_quantile(np.where(hits > 0, hits + share, 1.0), misses + 1 - share, tail_probability)
    high = _beta_quantile(hits + 1 - share, np.where(misses > 0, misses + share, 1.0), tail_probability, above=True)
    return np.where(hits > 0, low, 0.0), np.where(misses > 0, high, 1.0)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def proportion_limit_above(events: Floats, others: Floats, tail_probability: Floats | float) -> Floats:
    """Upper limit of the share of events, of counts to which one unseen event has been added already.

    With one more event than was observed and as many others this is the upper limit of `binomial_limits`. An event
    that was not observed may weigh more than those that were (Fay & Feuer 1997), so that weighted counts are scaled
    with it.

    Args:
        events: Observed events and one more, ≥ 1 for counts, any shape; > 0 for effective counts.
        others: The rest, ≥ 0.
        tail_probability: As for `binomial_limits`.

    Returns:
        The limit; nan where an argument is.
    """
    share = 0.5 * np.clip(np.minimum(events - 1, others) / _FEW_COUNTS, 0.0, 1.0)
    shape = np.where(others > 0, others + share, 1.0)
    return np.where(others <= 0, 1.0, _beta_quantile(events - share, shape, tail_probability, above=True))


def negative_binomial_quantile(level: Floats | float, size: Floats, probability: Floats | float) -> Floats:
    """Smallest whole k with P(K ≤ k) ≥ level; size may be any positive number.

    Args:
        level: Between 0 and 1; taken as 1 - 1e-12 at most.
        size: Number of successes waited for; with a gamma prior, its shape.
        probability: Of success; K counts the failures before.
    """
    level = np.minimum(level, 1 - 1e-12)
    guess = np.ceil(np.nan_to_num(scipy.special.nbdtrik(level, size, probability)))
    below = np.maximum(guess - 1, 0.0)
    return np.asarray(np.where(scipy.special.betainc(size, below + 1, probability) >= level, below, guess))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def sign_flip_test(contributions: Floats, observed: Floats, *, flips: int = 999, seed: int = 0) -> float:
    """p-value of several dependent statistics together: of the largest.

    The signs of whole replicates are flipped at random, jointly for all columns, to see what the largest of sum / root
    sum of squares does (wild bootstrap: Davidson & Flachaire 2008).

    Args:
        contributions: Shape (G, K): what each replicate adds to each of K sums with expectation 0.
        observed: Shape (K,): sizes of the statistics on the normal scale.
        flips: Number of random flips.
        seed: The same seed gives the same p-value.

    Returns:
        (1 + flips at least as extreme) / (1 + flips); nan without a column that is not 0.
    """
    scale = np.sqrt((contributions**2).sum(axis=0))
    used = scale > 0
    if not used.any():
        return float("nan")
    signs = np.random.default_rng(seed).integers(0, 2, (flips, len(contributions))) * 2.0 - 1.0
    largest = np.abs(signs @ (contributions[:, used] / scale[used])).max(axis=1)
    extreme = largest >= observed[used].max() - 1e-9
    return float((1 + extreme.sum()) / (1 + flips))


# Two counts of the same replicates compared: their dispersion, and a test with limits for the share of one of them.
#
# Given their sum, one of two counts is binomial if rows are independent. Rows that come together, or replicates that
# differ in the ratio of both, make the difference vary more, by the dispersion φ, and both counts are divided by φ
# before the binomial distribution is used. A test has the size that it is said to have only if φ is neither rounded up
# nor taken for better known than it is:
#
# - φ is not raised to 1 although it is 1 at least. It is as often too low by chance as too high, and Student's t
#   already allows for both; to raise it as well counts the doubt twice.
# - The replicates' residuals are centred before they are squared. Squares about 0 hold the square of the difference
#   that is tested, so that they are largest where it is; t is right for squares about the mean.
# - Degrees of freedom are one less than there are replicates, also where few of them make up most of φ. Fewer would be
#   right if the difference and φ were independent, but what makes φ large makes the difference large, too, so that t
#   keeps its size whatever the tails of symmetric residuals are (Efron 1969).
# - The tail is that of the mid-p value (Lancaster 1961): half of the probability of what was observed, and all of what
#   is farther out. Tails that hold all of it (Clopper & Pearson 1934) reject true hypotheses less often than they say,
#   of ten counts in one or two of a hundred samples instead of five.


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
    """φ for a test: as `dispersion`, with its arguments, but neither raised to 1 nor cautious."""
    observed = np.where(count > 0, observed, 1.0)
    _, expected, weight = _borrowed(observed, count)
    return np.asarray(np.maximum(weight * observed + (1 - weight) * expected, _LEAST_DISPERSION))


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


_OF_A_PART = 16384  # numbers that the cache of a core holds with all that is made of them on the way


def _on_all_cores(function: Callable[..., Any], *arguments: NDArray[np.float64] | float) -> NDArray[np.float64]:
    """Apply a function that is slow per element, and lets other threads run meanwhile, in as many as Polars has."""
    arrays = np.broadcast_arrays(*arguments)
    flat = [array.ravel() for array in arrays]
    n_parts = -(-flat[0].size // _OF_A_PART)
    if n_parts <= 1:
        return np.asarray(function(*arguments))
    arguments_of_parts = [np.array_split(array, n_parts) for array in flat]

    @np.errstate(all="ignore")  # which threads do not inherit
    def of_part(*elements: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray(function(*elements))

    with ThreadPoolExecutor(min(n_parts, pl.thread_pool_size())) as threads:
        return np.concatenate(list(threads.map(of_part, *arguments_of_parts))).reshape(arrays[0].shape)
