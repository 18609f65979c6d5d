"""Precision from a random sample that people checked, alone and combined with the estimate that needs no labels.

The target is the share R / M of correct matches among the M matches of this data set. If k of n sampled matches are
correct, k is hypergeometric (M, R, n); nothing else is assumed about the matches.

- The sample alone: with Jeffreys' prior, R - k is beta-binomial (M - n; k + 1/2, n - k + 1/2), which is exact for
  n = M. The limits are its quantiles, but k = n always keeps 1 in the interval and k = 0 always keeps 0 (Brown, Cai &
  DasGupta 2001).
- The combination: the false positives M - R are predicted from those before the event, as φ times a negative binomial
  number (`placebo.predicted`), which is a Poisson number whose mean is gamma distributed. That mean is multiplied by
  κ, the false positive rate after the event over that before it, whose prior is gamma with mean 1 (`kappa`); the
  product is taken as gamma, with its own mean and variance. The prior of R is a mixture in which this prediction and
  Jeffreys' prior each have weight one half (the robust prior of Schmidli et al. 2014). Bayes' theorem with the
  hypergeometric likelihood of the sample gives the posterior of R. The worse the sample fits the prediction, the less
  weight the prediction receives: the limits widen and finally become those of the sample alone.
- Limits are whole numbers of correct matches, estimates are means. Where nearly all of a distribution lies on one
  number, its mean can lie beyond a quantile; the limit is then the next whole number on the other side of the mean.
- Agreement of the two: how far k lies in the tails of its distribution under the prediction (Box 1980), as a two-sided
  mid-p-value.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy

from ...records import dataclass
from ..uncertainty.jackknife import t_quantile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats
    from .assumption import Prediction
    from .intervals import Counts

VAGUE_WEIGHT = 0.5  # of Jeffreys' prior in the mixture
_ROUNDING = 1e-12  # of cumulative probabilities
_MOST_POINTS = 2001  # whole numbers that stand for a range
_MOST_NODES = 200  # numbers that stand for the prior in the test of agreement
_STANDARD_DEVIATIONS = 9.0  # beyond which a distribution is cut off
_MEAN_ROUNDING = 1e-9  # relative, of means


@dataclass(frozen=True)
class AuditedPrecision:
    """The share of correct matches at every threshold.

    Wherever there is an estimate, 0 <= lower <= estimate <= upper <= 1.

    Attributes:
        estimate: Shape (T,): k / n, or the posterior mean of R / M; nan where no match was sampled.
        lower: Lower limit of the share.
        upper: Upper limit of the share.
    """

    estimate: Floats
    lower: Floats
    upper: Floats


def audited_precision(matches: Counts, audited: Counts, right: Counts, *, confidence: float) -> AuditedPrecision:
    """The share of correct matches, estimated from the sample alone.

    Args:
        matches: Shape (T,): M, the matches that the sample was drawn from.
        audited: Shape (T,): n, how many of them were sampled.
        right: Shape (T,): k, how many of the sampled ones are correct.
        confidence: Such as 0.95.
    """
    shares = np.full((3, len(matches)), np.nan)
    for index, (m, n, k) in _sampled(matches, audited, right):
        points = _between(*_likely(m, n, k), m)
        unsampled = points - k  # correct matches that are not in the sample: beta-binomial, up to a constant factor
        log = (
            scipy.special.betaln(unsampled + k + 0.5, m - points + 0.5)
            - scipy.special.gammaln(unsampled + 1)
            - scipy.special.gammaln(m - n - unsampled + 1)
        )
        lower, upper = _limits(points, log, confidence)
        lower, upper = min(lower, float(k * m // n)), max(upper, float(-(-k * m // n)))  # the interval contains k / n
        shares[:, index] = k / n, 0.0 if k == 0 else lower / m, 1.0 if k == n else upper / m
    return AuditedPrecision(*shares)


def combined_precision(
    matches: Counts,
    audited: Counts | Floats,
    right: Counts | Floats,
    prediction: Prediction,
    *,
    confidence: float,
    kappa_variance: Floats | float = 0.0,
) -> tuple[AuditedPrecision, Floats]:
    """The share of correct matches from both the sample and the predicted false positives, and whether the two agree.

    Args:
        matches: Shape (T,): M, the matches after the event.
        audited: Shape (T,): n, how many of them were sampled; by another design, how many drawn alike tell as much.
        right: Shape (T,): k, how many of the sampled ones are correct.
        prediction: Prediction of the false positives among the matches.
        confidence: Such as 0.95.
        kappa_variance: Variance of the prior of κ, shape (T,) or one number; 0: the false positive rates before and
            after the event are known to be equal.

    Returns:
        The combined estimate and the p-value of agreement; both are nan where no match was sampled. The p-value is of
        the sample and the estimate without labels, which takes κ = 1, so it knows of no doubt about κ.
    """
    shares, p_values = np.full((3, len(matches)), np.nan), np.full(len(matches), np.nan)
    # φ is itself estimated: it is raised by the squared ratio of the t quantile to the normal one
    wider = (t_quantile(confidence, prediction.degrees) / scipy.special.ndtri(0.5 + confidence / 2)) ** 2
    phi = prediction.phi * wider
    size, odds = prediction.count / phi + 0.5, float(prediction.after[0] / prediction.before)
    doubtful = _with_doubt(size, odds, np.broadcast_to(kappa_variance, size.shape))
    for index, (m, n, k) in _sampled(matches, audited, right):
        p_values[index] = _Prior(m, float(phi[index]), float(size[index]), odds).agreement(round(n), round(k))
        prior = _Prior(m, float(phi[index]), *(float(values[index]) for values in doubtful))
        points = _support(_likely(m, n, k), prior.range, (m, n, k))
        # logarithm of prior × hypergeometric likelihood, the prior being the mixture
        mixture = np.logaddexp(prior.log(points) + np.log1p(-VAGUE_WEIGHT), _vague(points, m) + np.log(VAGUE_WEIGHT))
        log = mixture + _log_choose(points, k) + _log_choose(m - points, n - k)
        weights = np.exp(log - log.max()) * _widths(points)
        mean = float(weights @ points / weights.sum())
        lower, upper = _around(mean, *_limits(points, log, confidence))
        all_right = k == n and prediction.count[index] == 0
        shares[:, index] = min(max(mean, lower), upper) / m, lower / m, 1.0 if all_right else upper / m
    return AuditedPrecision(*shares), p_values


def _with_doubt(size: Floats, odds: float, kappa_variance: Floats) -> tuple[Floats, Floats]:
    """Size and odds of the negative binomial number whose gamma mean is multiplied by κ: the same mean, wider."""
    # squared coefficient of variation of a product of independent factors of mean 1: (1 + 1/size) (1 + Var κ) - 1
    squared = 1 / size + kappa_variance * (1 + 1 / size)
    return 1 / squared, size * odds * squared


def _vague(points: Floats, m: int) -> Floats:
    """Logarithm of Jeffreys' prior of the number of correct matches among m: beta-binomial (m; 1/2, 1/2)."""
    return np.asarray(
        _log_choose(m, points) + scipy.special.betaln(points + 0.5, m - points + 0.5) - scipy.special.betaln(0.5, 0.5)
    )


@dataclass(frozen=True)
class _Prior:
    """Distribution of the number of correct matches among m, from the prediction of the false ones.

    Attributes:
        m: Number of matches.
        phi: Dispersion φ: the number of false matches is φ times a negative binomial number.
        size: Size of the negative binomial distribution.
        odds: Compared pairs after the event over those before it; the negative binomial mean is size × odds.
    """

    m: int
    phi: float
    size: float
    odds: float

    @property
    def range(self) -> tuple[float, float]:
        """Range of correct matches outside which the probability is negligible."""
        mean = self.size * self.odds
        spread = np.sqrt(mean * (1 + self.odds)) + 1
        far = mean + _STANDARD_DEVIATIONS * spread + _STANDARD_DEVIATIONS**2 / 2 * self.odds
        return self.m - self.phi * far, self.m - self.phi * (mean - _STANDARD_DEVIATIONS * spread)

    def log(self, points: Floats) -> Floats:
        """Logarithm of the probability of each number of correct matches."""
        return np.asarray(self._raw(points) - self._total)

    def _raw(self, points: Floats) -> Floats:
        false = (self.m - points) / self.phi
        return np.asarray(
            scipy.special.gammaln(false + self.size)
            - scipy.special.gammaln(false + 1)
            - false * np.log1p(1 / self.odds)
        )

    @cached_property
    def _points(self) -> Floats:
        return _between(*self.range, self.m)

    @cached_property
    def _total(self) -> float:
        raw = self._raw(self._points)
        return float(raw.max() + np.log(np.exp(raw - raw.max()) @ _widths(self._points)))

    def agreement(self, n: int, k: int) -> float:
        """Two-sided mid-p-value of finding k correct matches among n sampled ones."""
        nodes, weights = self._nodes
        # the probability of each number in the shorter tail: hypergeometric given R, averaged over the prior of R
        is_lower_tail = k <= n / 2
        numbers = np.arange(k + 1.0) if is_lower_tail else np.arange(k, n + 1.0)
        choices = _log_choose(nodes[:, None], numbers) + _log_choose(self.m - nodes[:, None], n - numbers)
        mass = weights @ np.exp(choices - _log_choose(self.m, n))
        tail, at_k = float(mass.sum()), float(mass[-1 if is_lower_tail else 0])
        return max(min(2 * min(tail - at_k / 2, 1 - tail + at_k / 2), 1.0), 0.0)

    @property
    def _nodes(self) -> tuple[Floats, Floats]:
        """Numbers that represent the distribution, and their probabilities: all points, or evenly spaced quantiles."""
        weights = np.exp(self.log(self._points)) * _widths(self._points)
        if len(weights) <= _MOST_NODES:
            return self._points, weights
        levels = (np.arange(_MOST_NODES) + 0.5) / _MOST_NODES
        middle = np.cumsum(weights) - weights / 2
        return np.rint(np.interp(levels, middle, self._points)), np.full(_MOST_NODES, 1 / _MOST_NODES)


def _sampled(
    matches: Counts, audited: Counts | Floats, right: Counts | Floats
) -> Iterator[tuple[int, tuple[int, float, float]]]:
    for index in np.nonzero(audited)[0]:
        yield int(index), (int(matches[index]), audited[index].item(), right[index].item())


def _likely(m: int, n: float, k: float) -> tuple[float, float]:
    """Range of correct matches among m outside which the sample makes the number practically impossible."""
    share = (k + 0.5) / (n + 1)
    spread = np.sqrt(share * (1 - share) / (n + 2))
    reach = _STANDARD_DEVIATIONS * spread + _STANDARD_DEVIATIONS**2 / (n + 2)
    low, high = max(share - reach, 0.0), min(share + reach, 1.0)
    return k + (m - n) * low, k + (m - n) * high


def _support(likely: tuple[float, float], expected: tuple[float, float], sample: tuple[int, float, float]) -> Floats:
    """Numbers of correct matches that the sample allows, dense where the sample or the prediction expects them.

    The range between the two is covered as well, so that no single number has to represent a wide gap.
    """
    m, n, k = sample
    least, most = float(k), float(m - n + k)
    ranges = (likely, expected, (min(likely[0], expected[0]), max(likely[1], expected[1])))
    clipped = ((min(max(low, least), most), max(min(high, most), least)) for low, high in ranges)
    return np.unique(np.concatenate([_between(low, high, m) for low, high in clipped]))


def _between(low: float, high: float, m: int) -> Floats:
    """Whole numbers between two limits, within 0 … m: all of them, or evenly spaced ones; at least one."""
    low = min(max(np.floor(low), 0.0), float(m))
    high = max(min(np.ceil(high), float(m)), low)
    return np.unique(np.rint(np.linspace(low, high, int(min(high - low + 1, _MOST_POINTS)))))


def _widths(points: Floats) -> Floats:
    """How many whole numbers each of the chosen numbers represents."""
    edges = np.concatenate([points[:1] - 0.5, (points[1:] + points[:-1]) / 2, points[-1:] + 0.5])
    return np.diff(edges)


def _limits(points: Floats, log: Floats, confidence: float) -> tuple[float, float]:
    """Limits that leave at most half of 1 - confidence on each side; rounding never makes them narrower."""
    weights = np.exp(log - log.max()) * _widths(points)
    below = np.cumsum(weights) / weights.sum()
    tail = (1 - confidence) / 2
    indices = np.searchsorted(below, tail - _ROUNDING), np.searchsorted(below, 1 - tail + _ROUNDING)
    first, last = (min(int(index), len(points) - 1) for index in indices)
    return float(points[first]), float(points[last])


def _around(mean: float, low: float, high: float) -> tuple[float, float]:
    """The limits, moved out to the whole numbers on both sides of a mean; a mean of one number is that number."""
    rounding = _MEAN_ROUNDING * (1 + mean)
    return min(low, float(np.floor(mean + rounding))), max(high, float(np.ceil(mean - rounding)))


def _log_choose(n: Floats | float, k: Floats | float) -> NDArray[np.float64]:
    """Logarithm of a binomial coefficient; -inf where k is not from 0 to n."""
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    inside = (k >= 0) & (k <= n)
    n_, k_ = np.where(inside, n, 1.0), np.where(inside, k, 0.0)
    return np.where(
        inside,
        scipy.special.gammaln(n_ + 1) - scipy.special.gammaln(k_ + 1) - scipy.special.gammaln(n_ - k_ + 1),
        -np.inf,
    )
