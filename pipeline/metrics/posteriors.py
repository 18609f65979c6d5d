"""Posterior distributions of precision, recall and F1 from counts, and the probability that one system is better.

True positives among predictions are binomial in the precision, true positives among positives in the recall, and with a
beta prior the posteriors are beta distributions (Goutte & Gaussier 2005). Units are taken as independent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from ..base.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .uncertainty.jackknife import Floats

_STANDARD_DEVIATIONS = 9.0  # on each side of the mean, over which a density is integrated
_TAIL_EXPONENT = 42.0  # beyond, the exponential tails on the logit scale are negligible
_STEPS = 4.0  # per standard deviation
_WIDEST_STEP = 0.3


@dataclass(frozen=True)
class BetaPosterior:
    """A beta distribution with the methods of scipy's frozen distributions; its shapes are numbers or arrays.

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

    B = TP / (TP + FP + FN) is the share of hits among everything that was predicted or should have been, with TP and
    FP + FN as independent gamma variables (Goutte & Gaussier 2005, section 4: their U / (U + V)).
    """

    def mean(self) -> Floats:
        """Posterior mean, a / (a + b) × ₂F₁(1, b; a + b + 1; 1/2), from Euler's integral and Pfaff's transformation."""
        total = self.a + self.b
        return np.asarray(self.a / total * scipy.special.hyp2f1(1.0, self.b, total + 1, 0.5))[()]

    def var(self) -> Floats:
        """Posterior variance; the second moment is found like the mean, with ₂F₁(2, b; a + b + 2; 1/2)."""
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
        prior: Both shapes of the prior; 1/2 is Jeffreys' prior, 1 the uniform one.

    Returns:
        A distribution with mean, var, std, median, pdf, cdf, sf, ppf, isf and interval, as in scipy.

    Raises:
        ValueError: a negative or undefined count, or a prior that is not positive.
    """
    return BetaPosterior(*_shapes(prior, (tp, 1), (fp, 1)))


def recall_posterior(tp: ArrayLike, fn: ArrayLike, prior: float = 0.5) -> BetaPosterior:
    """Posterior of recall: Beta(TP + prior, FN + prior) (Goutte & Gaussier 2005, equation 6).

    Arguments, result and errors are those of `precision_posterior`, with false negatives in the place of false
    positives.
    """
    return precision_posterior(tp, fn, prior)


def f1_posterior(tp: ArrayLike, fp: ArrayLike, fn: ArrayLike, prior: float = 0.5) -> F1Posterior:
    """Posterior of F1 in closed form: F1 = 2 B / (1 + B) with B ~ Beta(TP + prior, FP + FN + 2 prior).

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
    if not prior > 0 or not all((count >= 0).all() and np.isfinite(count).all() for count in values):
        message = "counts must not be negative or undefined, and the prior must be positive"
        raise ValueError(message)
    return [count + times * prior for count, (_, times) in zip(values, counts, strict=True)]


def probability_better(wins_a: ArrayLike, wins_b: ArrayLike, prior: float = 0.5) -> Floats:
    """Probability that "a right, b wrong" is more frequent than "b right, a wrong".

    There is a Dirichlet prior on the shares of units that only a gets right, that only b gets right, and that both or
    neither get right. P(π_a > π_b) does not depend on the third share: π_a / (π_a + π_b) ~ Beta(wins_a + prior,
    wins_b + prior). The random draws of Goutte & Gaussier (2005, section 5) are therefore not needed.

    Args:
        wins_a: Units that only a gets right, ≥ 0; numbers or arrays.
        wins_b: Units that only b gets right, ≥ 0.
        prior: Both shapes of the prior.

    Raises:
        ValueError: as for `precision_posterior`.
    """
    first, second = _shapes(prior, (wins_a, 1), (wins_b, 1))
    return np.asarray(scipy.special.betaincc(first, second, 0.5))[()]


def probability_greater(first: BetaPosterior, second: BetaPosterior) -> Floats:
    """Probability that a value of the first posterior exceeds an independent one of the second.

    This suits systems measured on different units; for the same units use paired tests or `probability_better`. F1
    increases with its B, so that for F1, too, this is a probability about two beta variables. The integral of the
    density of one times the distribution function of the other is a trapezoidal sum on the logit scale, where it
    converges exponentially; the density is that of the narrower distribution.

    Args:
        first: Posterior of precision, recall or F1.
        second: Posterior of the same measure for another system.

    Returns:
        Numbers for numbers, arrays for arrays; errors are below 1e-12 for counts up to a million.

    Raises:
        TypeError: one posterior is of F1 and the other is not.
    """
    if type(first) is not type(second):
        message = "posteriors of different measures cannot be compared"
        raise TypeError(message)
    shapes = np.broadcast_arrays(first.a, first.b, second.a, second.b)
    a, b, c, d = (np.asarray(shape, dtype=np.float64) for shape in shapes)
    if not a.size:
        return np.zeros(a.shape)
    # P(Y ≤ X), or 1 - P(X ≤ Y) where X is the wider of the two
    swapped = _logit_deviation(a, b) > _logit_deviation(c, d)
    below = _mean_of_cdf(*(np.where(swapped, x, y) for x, y in ((c, a), (d, b), (a, c), (b, d))))
    return np.asarray(np.where(swapped, 1 - below, below))[()]


def _logit_deviation(a: Floats, b: Floats) -> Floats:
    """Standard deviation of the logit of a beta variable: √(ψ'(a) + ψ'(b))."""
    return np.asarray(np.sqrt(scipy.special.polygamma(1, a) + scipy.special.polygamma(1, b)))


def _mean_of_cdf(a: Floats, b: Floats, c: Floats, d: Floats) -> Floats:
    """P(Y ≤ X) for X ~ Beta(a, b) and Y ~ Beta(c, d): the mean of the distribution function of Y at X."""
    # an even grid of logits z that covers practically all of X
    centre, deviation = scipy.special.psi(a) - scipy.special.psi(b), _logit_deviation(a, b)
    low = centre - _STANDARD_DEVIATIONS * deviation - _TAIL_EXPONENT / a
    high = centre + _STANDARD_DEVIATIONS * deviation + _TAIL_EXPONENT / b
    count = int(np.max((high - low) / np.minimum(deviation / _STEPS, _WIDEST_STEP))) + 2
    z = low[..., None] + (high - low)[..., None] * np.linspace(0, 1, count)
    # density of z up to a constant, which cancels in the mean
    logs = a[..., None] * scipy.special.log_expit(z) + b[..., None] * scipy.special.log_expit(-z)
    weight = np.exp(logs - logs.max(axis=-1, keepdims=True))
    x, complement = scipy.special.expit(z), scipy.special.expit(-z)
    # P(Y ≤ x), from the side on which no digits are lost
    below = np.where(
        z < 0,
        scipy.special.betainc(c[..., None], d[..., None], x),
        scipy.special.betaincc(d[..., None], c[..., None], complement),
    )
    return np.asarray((weight * below).sum(axis=-1) / weight.sum(axis=-1))
