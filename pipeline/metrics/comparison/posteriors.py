"""Posterior distributions of precision, recall and F1 from counts, and the probability that one system is better.

True positives among predictions are binomial in the precision, true positives among positives in the recall, and with a
beta prior the posteriors are beta distributions (Goutte & Gaussier 2005). Units are taken as independent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import scipy

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from pipeline.metrics.uncertainty.jackknife import Floats

_REACH = 9.0  # standard deviations, and with the next number the reach of tails that fall exponentially
_FALL = 42.0
_STEPS = 4.0  # per standard deviation
_WIDEST_STEP = 0.3


@dataclass(frozen=True)
class BetaPosterior:
    """A beta distribution with the methods of scipy's frozen distributions. Shapes are numbers or arrays.

    Attributes:
        a: First shape, > 0.
        b: Second shape, > 0.
    """

    a: Floats | float
    b: Floats | float

    def mean(self) -> Floats:
        """Posterior mean."""
        return np.asarray(self.a / (self.a + self.b))[()]

    def var(self) -> Floats:
        """Posterior variance."""
        total = self.a + self.b
        return np.asarray(self.a / total * (self.b / total) / (total + 1))[()]

    def std(self) -> Floats:
        """Posterior standard deviation."""
        return np.sqrt(self.var())

    def median(self) -> Floats:
        """Posterior median."""
        return self.ppf(0.5)

    def pdf(self, x: ArrayLike) -> Floats:
        """Density at x."""
        x_ = np.asarray(x, dtype=np.float64)
        inside = np.clip(x_, 0.0, 1.0)
        with np.errstate(divide="ignore"):
            logs = scipy.special.xlogy(self.a - 1, inside) + scipy.special.xlog1py(self.b - 1, -inside)
            density = np.exp(logs - scipy.special.betaln(self.a, self.b))
        return np.asarray(np.where(x_ == inside, density, 0.0))[()]

    def cdf(self, x: ArrayLike) -> Floats:
        """Probability of at most x."""
        return np.asarray(scipy.special.betainc(self.a, self.b, np.clip(x, 0.0, 1.0)))[()]

    def sf(self, x: ArrayLike) -> Floats:
        """Probability of more than x."""
        return np.asarray(scipy.special.betaincc(self.a, self.b, np.clip(x, 0.0, 1.0)))[()]

    def ppf(self, q: ArrayLike) -> Floats:
        """Quantile: where `cdf` is q."""
        return np.asarray(scipy.special.betaincinv(self.a, self.b, q))[()]

    def isf(self, q: ArrayLike) -> Floats:
        """Quantile from above: where `sf` is q."""
        return np.asarray(scipy.special.betainccinv(self.a, self.b, q))[()]

    def interval(self, confidence: float = 0.95) -> tuple[Floats, Floats]:
        """Credible interval with equal tails."""
        return self.ppf(0.5 - confidence / 2), self.isf(0.5 - confidence / 2)


class F1Posterior(BetaPosterior):
    """Distribution of F1 = 2 B / (1 + B), where B has the beta distribution with the shapes a and b.

    B = TP / (TP + FP + FN), the share of hits among all that was predicted or to be found, with TP and FP + FN as
    independent gamma variables (Goutte & Gaussier 2005, section 4, whose U / (U + V) it is).
    """

    def mean(self) -> Floats:
        """Posterior mean, a / (a + b) × ₂F₁(1, b; a + b + 1; 1/2), from Euler's integral and Pfaff's transformation."""
        total = self.a + self.b
        return np.asarray(self.a / total * scipy.special.hyp2f1(1.0, self.b, total + 1, 0.5))[()]

    def var(self) -> Floats:
        """Posterior variance; the second moment as the mean, with ₂F₁(2, b; a + b + 2; 1/2)."""
        total = self.a + self.b
        square = self.a / total * ((self.a + 1) / (total + 1)) * scipy.special.hyp2f1(2.0, self.b, total + 2, 0.5)
        return np.asarray(np.maximum(square - self.mean() ** 2, 0.0))[()]

    def pdf(self, x: ArrayLike) -> Floats:
        """Density at x."""
        x_ = np.asarray(x, dtype=np.float64)
        return np.asarray(super().pdf(x_ / (2 - x_)) * 2 / (2 - x_) ** 2)[()]

    def cdf(self, x: ArrayLike) -> Floats:
        """Probability of at most x."""
        return super().cdf(_share(x))

    def sf(self, x: ArrayLike) -> Floats:
        """Probability of more than x."""
        return super().sf(_share(x))

    def ppf(self, q: ArrayLike) -> Floats:
        """Quantile: where `cdf` is q."""
        share = super().ppf(q)
        return 2 * share / (1 + share)

    def isf(self, q: ArrayLike) -> Floats:
        """Quantile from above: where `sf` is q."""
        share = super().isf(q)
        return 2 * share / (1 + share)


def _share(f1: ArrayLike) -> Floats:
    """B where F1 = 2 B / (1 + B)."""
    inside = np.clip(np.asarray(f1, dtype=np.float64), 0.0, 1.0)
    return np.asarray(inside / (2 - inside))


def precision_posterior(tp: ArrayLike, fp: ArrayLike, prior: float = 0.5) -> BetaPosterior:
    """Posterior of precision: Beta(TP + prior, FP + prior) (Goutte & Gaussier 2005, equation 5).

    Args:
        tp: True positives, ≥ 0; numbers or arrays.
        fp: False positives, ≥ 0.
        prior: Both shapes of the prior; 1/2 is that of Jeffreys, 1 the uniform one.

    Returns:
        A distribution with mean, var, std, median, pdf, cdf, sf, ppf, isf and interval, as scipy's.

    Raises:
        ValueError: a negative or undefined count, or a prior that is not positive.
    """
    return BetaPosterior(*_shapes(prior, (tp, 1), (fp, 1)))


def recall_posterior(tp: ArrayLike, fn: ArrayLike, prior: float = 0.5) -> BetaPosterior:
    """Posterior of recall: Beta(TP + prior, FN + prior) (Goutte & Gaussier 2005, equation 6).

    Args:
        tp: True positives, ≥ 0; numbers or arrays.
        fn: False negatives, ≥ 0.
        prior: As for `precision_posterior`.

    Raises:
        ValueError: as for `precision_posterior`.
    """
    return BetaPosterior(*_shapes(prior, (tp, 1), (fn, 1)))


def f1_posterior(tp: ArrayLike, fp: ArrayLike, fn: ArrayLike, prior: float = 0.5) -> F1Posterior:
    """Posterior of F1 in closed form: that of 2 B / (1 + B) with B ~ Beta(TP + prior, FP + FN + 2 prior).

    Args:
        tp: True positives, ≥ 0; numbers or arrays.
        fp: False positives, ≥ 0.
        fn: False negatives, ≥ 0.
        prior: As for `precision_posterior`.

    Raises:
        ValueError: as for `precision_posterior`.
    """
    missed = np.asarray(fp, dtype=np.float64) + np.asarray(fn, dtype=np.float64)
    _shapes(prior, (fp, 1), (fn, 1))
    return F1Posterior(*_shapes(prior, (tp, 1), (missed, 2)))


def _shapes(prior: float, *counts: tuple[ArrayLike, int]) -> list[Floats]:
    values = [np.asarray(count, dtype=np.float64) for count, _ in counts]
    if not prior > 0 or not all((each >= 0).all() and np.isfinite(each).all() for each in values):
        message = "counts must not be negative or undefined, and the prior must be positive"
        raise ValueError(message)
    return [each + times * prior for each, (_, times) in zip(values, counts, strict=True)]


def probability_better(wins_a: ArrayLike, wins_b: ArrayLike, prior: float = 0.5) -> Floats:
    """Probability that system a is right where b is wrong more often than the other way round.

    With a Dirichlet prior on the shares of units that only a gets right, only b, or both or neither, P(π_a > π_b) does
    not depend on the third: π_a / (π_a + π_b) ~ Beta(wins_a + prior, wins_b + prior), so that the random draws of
    Goutte & Gaussier (2005, section 5) are not needed.

    Args:
        wins_a: Units that only a gets right, ≥ 0; numbers or arrays.
        wins_b: Units that only b gets right, ≥ 0.
        prior: Of both shares.

    Raises:
        ValueError: as for `precision_posterior`.
    """
    first, second = _shapes(prior, (wins_a, 1), (wins_b, 1))
    return np.asarray(scipy.special.betaincc(first, second, 0.5))[()]


def probability_greater(first: BetaPosterior, second: BetaPosterior) -> Floats:
    """Probability that a value of the first posterior exceeds an independent one of the second.

    Right for systems measured on different units; the same units call for paired tests or `probability_better`. F1
    rises with its B, so that its probability is that of two beta variables too. The integral of one density times the
    other distribution function is a trapezoidal sum on the logit scale, where it converges exponentially; the narrower
    distribution gives the density.

    Args:
        first: Of precision, recall or F1.
        second: Of the same measure.

    Returns:
        Numbers for numbers, arrays for arrays; errors are below 1e-12 for counts up to a million.

    Raises:
        TypeError: one posterior is of F1 and the other is not.
    """
    if type(first) is not type(second):
        message = "posteriors of different measures cannot be compared"
        raise TypeError(message)
    shapes = np.broadcast_arrays(first.a, first.b, second.a, second.b)
    a, b, c, d = (np.asarray(each, dtype=np.float64) for each in shapes)
    if not a.size:
        return np.zeros(a.shape)
    turned = _logit_deviation(a, b) > _logit_deviation(c, d)
    below = _mean_of_cdf(*(np.where(turned, x, y) for x, y in ((c, a), (d, b), (a, c), (b, d))))
    return np.asarray(np.where(turned, 1 - below, below))[()]


def _logit_deviation(a: Floats, b: Floats) -> Floats:
    return np.asarray(np.sqrt(scipy.special.polygamma(1, a) + scipy.special.polygamma(1, b)))


def _mean_of_cdf(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    """P(Y ≤ X) for X ~ Beta(a, b) and Y ~ Beta(c, d)."""
    centre, deviation = scipy.special.psi(a) - scipy.special.psi(b), _logit_deviation(a, b)
    low, high = centre - _REACH * deviation - _FALL / a, centre + _REACH * deviation + _FALL / b
    count = int(np.max((high - low) / np.minimum(deviation / _STEPS, _WIDEST_STEP))) + 2
    z = low[..., None] + (high - low)[..., None] * np.linspace(0, 1, count)
    logs = a[..., None] * scipy.special.log_expit(z) + b[..., None] * scipy.special.log_expit(-z)
    weight = np.exp(logs - logs.max(axis=-1, keepdims=True))
    x, complement = scipy.special.expit(z), scipy.special.expit(-z)
    below = np.where(
        z < 0,
        scipy.special.betainc(c[..., None], d[..., None], x),
        scipy.special.betaincc(d[..., None], c[..., None], complement),
    )
    return np.asarray((weight * below).sum(axis=-1) / weight.sum(axis=-1))
