"""Standard errors and intervals from replicate sums: the delete-a-group jackknife, shared by all stages.

Rows are not independent, clusters are. Every cluster lies in one of G replicates and the counts are known per
replicate, so a statistic can be taken again without each replicate in turn: the spread of these G values is its
sampling variance, with G - 1 degrees of freedom (Quenouille 1956; Tukey 1958; delete-a-group: Kott 2001). Arrays have
the replicates on axis 0.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy

from ...records import dataclass
from .beta import beta_quantile

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
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

    Args:
        estimate: A positive quantity, any shape.
        standard_error: Of the estimate itself, not of its logarithm.
        quantile: As from `t_quantile`.
    """
    width = np.where(estimate > 0, quantile * standard_error / estimate, np.nan)
    return np.asarray(estimate * np.exp(-width)), np.asarray(estimate * np.exp(width))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def logit_interval(estimate: Floats, standard_error: Floats, quantile: Floats | float) -> Limits:
    """Symmetric on the logit scale: logit(estimate) ± quantile × SE / (estimate (1 - estimate)).

    Args:
        estimate: A proportion, any shape; at 0, at 1 and outside the limits are nan.
        standard_error: Of the estimate itself, not of its logit.
        quantile: As from `t_quantile`.
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


@dataclass(frozen=True)
class Borrowed:
    """What the highest threshold with enough counts says of the dispersion at those above it.

    Attributes:
        source: Index of that threshold; the lowest if none has enough.
        value: Shape (T,): the dispersion that it lets expect at every threshold.
        weight: Shape (T,): what the dispersion of a threshold's own counts weighs beside it; 1 up to the source.
    """

    source: int
    value: Floats
    weight: Floats


def borrowed_dispersion(observed: Floats, count: Floats) -> Borrowed:
    """What is carried upwards: 1 + c + κ × mean, see `dispersion`; the arguments are the same."""
    observed = np.where(count > 0, observed, 1.0)
    source = max(int((count >= _ENOUGH_COUNTS).sum()) - 1, 0)
    kappa = max(0.0, observed[0] - 1) / max(count[0], 1.0)
    value = observed[source] - kappa * (count[source] - count)
    weight = np.where(np.arange(len(count)) > source, np.minimum(count / _ENOUGH_COUNTS, 1.0), 1.0)
    return Borrowed(source, value, weight)


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
    observed, borrowed = np.where(count > 0, observed, 1.0), borrowed_dispersion(observed, count)
    is_above = np.arange(len(count)) > borrowed.source
    mixed = borrowed.weight * observed + (1 - borrowed.weight) * np.maximum(observed, borrowed.value)
    phi = np.maximum(np.where(is_above, mixed, observed), 1.0)
    degrees = np.where(is_above, np.maximum(degrees, degrees[borrowed.source]), degrees)
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
    low_shape, high_shape = _beta_shapes(hits, misses)
    lower = np.where(hits > 0, beta_quantile(*low_shape, tail_probability), 0.0)
    upper = np.where(misses > 0, beta_quantile(*high_shape, tail_probability, above=True), 1.0)
    return lower, upper


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
    return np.where(others <= 0, 1.0, beta_quantile(events - share, shape, tail_probability, above=True))


def _beta_shapes(hits: Floats, misses: Floats) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
    """Shapes of the beta distributions of the lower and of the upper limit; at no hit or miss any that is defined."""
    share = 0.5 * np.minimum(np.minimum(hits, misses) / _FEW_COUNTS, 1.0)
    low = np.where(hits > 0, hits + share, 1.0), misses + 1 - share
    return low, (hits + 1 - share, np.where(misses > 0, misses + share, 1.0))


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
