"""Precision from a random sample that people checked, alone and together with the estimate without labels.

The target is the share R / M of right ones among the M matches of this data set. k of n sampled ones are right, so k is
hypergeometric (M, R, n); nothing is assumed of the matches.

- The sample alone: with Jeffreys' prior R - k is beta-binomial (M - n; k + 1/2, n - k + 1/2), which is exact for n = M.
  The limits are its quantiles; k = n leaves 1 and k = 0 leaves 0 in (Brown, Cai & DasGupta 2001).
- Together: the false positives M - R are predicted from those before the event, as φ times a negative binomial number
  (`before_after_placebo.predicted`). The prior of R is a mixture, half this prediction and half Jeffreys' (the robust
  prior of Schmidli et al. 2014); Bayes' theorem with the hypergeometric likelihood of the sample gives the distribution
  of R. The worse the sample fits the prediction, the less the prediction counts, so that limits become wider and, in
  the end, those of the sample alone.
- Limits are whole numbers of right ones, estimates are means. Where a distribution lies nearly all on one number, its
  mean can lie beyond a quantile; a limit then is the next whole number on the other side of the mean.
- Whether the two agree: how far k lies in the tails of its distribution under the prediction (Box 1980), as a two-sided
  mid-p-value.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy

from pipeline.metrics.uncertainty.jackknife import t_quantile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pipeline.metrics.before_after.intervals import Counts
    from pipeline.metrics.before_after.placebo import Prediction
    from pipeline.metrics.uncertainty.jackknife import Floats

VAGUE = 0.5
ROUNDING = 1e-12
_POINTS = 2001
_NODES = 200
_FAR = 9.0
_MEAN_ROUNDING = 1e-9


@dataclass(frozen=True)
class AuditedPrecision:
    """The share of right matches at every threshold.

    Where there is an estimate, 0 <= lower <= estimate <= upper <= 1.

    Attributes:
        estimate: Shape (T,): k / n, or the mean of the distribution of R / M; nan without a sampled match.
        lower: Its lower limit.
        upper: Its upper limit.
    """

    estimate: Floats
    lower: Floats
    upper: Floats


def audited_precision(matches: Counts, audited: Counts, right: Counts, *, confidence: float) -> AuditedPrecision:
    """The share of right matches from the sample alone.

    Args:
        matches: Shape (T,): M, the matches that the sample is of.
        audited: Shape (T,): n, how many of them were sampled.
        right: Shape (T,): k, how many of these are right.
        confidence: Such as 0.95.
    """
    found = np.full((3, len(matches)), np.nan)
    for place, (m, n, k) in _sampled(matches, audited, right):
        points = _between(*_likely(m, n, k), m)
        others = points - k
        log = (
            scipy.special.betaln(others + k + 0.5, m - points + 0.5)
            - scipy.special.gammaln(others + 1)
            - scipy.special.gammaln(m - n - others + 1)
        )
        lower, upper = _limits(points, log, confidence)
        lower, upper = min(lower, k * m // n), max(upper, -(-k * m // n))
        found[:, place] = k / n, 0.0 if k == 0 else lower / m, 1.0 if k == n else upper / m
    return AuditedPrecision(*found)


def combined_precision(
    matches: Counts, audited: Counts, right: Counts, prediction: Prediction, *, confidence: float
) -> tuple[AuditedPrecision, Floats]:
    """The share of right matches from the sample and from the prediction of false positives, and whether they agree.

    Args:
        matches: Shape (T,): M, the matches after the event.
        audited: Shape (T,): n, how many of them were sampled.
        right: Shape (T,): k, how many of these are right.
        prediction: Of the false positives among the matches.
        confidence: Such as 0.95.

    Returns:
        The combination and the p-value of agreement; both nan without a sampled match.
    """
    found, p_values = np.full((3, len(matches)), np.nan), np.full(len(matches), np.nan)
    # what t has more than the normal distribution at this confidence, as more dispersion
    wider = (t_quantile(confidence, prediction.degrees) / scipy.special.ndtri(0.5 + confidence / 2)) ** 2
    phi = prediction.phi * wider
    size, odds = prediction.count / phi + 0.5, float(prediction.after[0] / prediction.before)
    for place, (m, n, k) in _sampled(matches, audited, right):
        prior = _Prior(m, float(phi[place]), float(size[place]), odds)
        p_values[place] = prior.agreement(n, k)
        points = _support(_likely(m, n, k), prior.range, (m, n, k))
        either = np.logaddexp(prior.log(points) + np.log1p(-VAGUE), _vague(points, m) + np.log(VAGUE))
        log = either + _log_choose(points, k) + _log_choose(m - points, n - k)
        weights = np.exp(log - log.max()) * _widths(points)
        mean = float(weights @ points / weights.sum())
        lower, upper = _around(mean, *_limits(points, log, confidence))
        all_right = k == n and prediction.count[place] == 0
        found[:, place] = min(max(mean, lower), upper) / m, lower / m, 1.0 if all_right else upper / m
    return AuditedPrecision(*found), p_values


def _vague(points: Floats, m: int) -> Floats:
    """Logarithm of Jeffreys' distribution of the right ones among m: beta-binomial (m; 1/2, 1/2)."""
    return np.asarray(
        _log_choose(m, points) + scipy.special.betaln(points + 0.5, m - points + 0.5) - scipy.special.betaln(0.5, 0.5)
    )


@dataclass(frozen=True)
class _Prior:
    """Distribution of the right ones among m matches, from the prediction of the false ones.

    Attributes:
        m: The matches.
        phi: Dispersion: the false ones are as many times a negative binomial number.
        size: Size of that.
        odds: Compared pairs after the event over those before it: its mean is size × odds.
    """

    m: int
    phi: float
    size: float
    odds: float

    @property
    def range(self) -> tuple[float, float]:
        """Numbers of right ones that are not beyond all reason."""
        mean = self.size * self.odds
        spread = np.sqrt(mean * (1 + self.odds)) + 1
        far = mean + _FAR * spread + _FAR**2 / 2 * self.odds
        return self.m - self.phi * far, self.m - self.phi * (mean - _FAR * spread)

    def log(self, points: Floats) -> Floats:
        """Logarithm of the probability of each number."""
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
        """Two-sided mid-p-value of k right ones among n sampled ones."""
        nodes, weights = self._nodes
        few = k <= n / 2
        numbers = np.arange(k + 1.0) if few else np.arange(k, n + 1.0)
        choices = _log_choose(nodes[:, None], numbers) + _log_choose(self.m - nodes[:, None], n - numbers)
        mass = weights @ np.exp(choices - _log_choose(self.m, n))
        tail, at = float(mass.sum()), float(mass[-1 if few else 0])
        return max(min(2 * min(tail - at / 2, 1 - tail + at / 2), 1.0), 0.0)

    @property
    def _nodes(self) -> tuple[Floats, Floats]:
        """Numbers that stand for the distribution, and their probabilities: all of them, or quantiles."""
        weights = np.exp(self.log(self._points)) * _widths(self._points)
        if len(weights) <= _NODES:
            return self._points, weights
        levels = (np.arange(_NODES) + 0.5) / _NODES
        middle = np.cumsum(weights) - weights / 2
        return np.rint(np.interp(levels, middle, self._points)), np.full(_NODES, 1 / _NODES)


def _sampled(matches: Counts, audited: Counts, right: Counts) -> Iterator[tuple[int, tuple[int, int, int]]]:
    for place in np.nonzero(audited)[0]:
        yield int(place), (int(matches[place]), int(audited[place]), int(right[place]))


def _likely(m: int, n: int, k: int) -> tuple[float, float]:
    """Numbers of right ones among m that the sample does not exclude beyond all reason."""
    share = (k + 0.5) / (n + 1)
    spread = np.sqrt(share * (1 - share) / (n + 2))
    reach = _FAR * spread + _FAR**2 / (n + 2)
    low, high = max(share - reach, 0.0), min(share + reach, 1.0)
    return k + (m - n) * low, k + (m - n) * high


def _support(likely: tuple[float, float], expected: tuple[float, float], sample: tuple[int, int, int]) -> Floats:
    """Numbers of right ones that the sample leaves possible: dense where it or the prediction puts them.

    The whole range between the two is covered as well, so that no number has to stand for a gap.
    """
    m, n, k = sample
    least, most = float(k), float(m - n + k)
    parts = (likely, expected, (min(likely[0], expected[0]), max(likely[1], expected[1])))
    clipped = ((min(max(low, least), most), max(min(high, most), least)) for low, high in parts)
    return np.unique(np.concatenate([_between(low, high, m) for low, high in clipped]))


def _between(low: float, high: float, m: int) -> Floats:
    """Whole numbers from 0 to m between two, all of them or evenly chosen ones, at least one."""
    low = min(max(np.floor(low), 0.0), float(m))
    high = max(min(np.ceil(high), float(m)), low)
    return np.unique(np.rint(np.linspace(low, high, int(min(high - low + 1, _POINTS)))))


def _widths(points: Floats) -> Floats:
    """How many whole numbers each of the chosen ones stands for."""
    edges = np.concatenate([points[:1] - 0.5, (points[1:] + points[:-1]) / 2, points[-1:] + 0.5])
    return np.diff(edges)


def _limits(points: Floats, log: Floats, confidence: float) -> tuple[float, float]:
    """Limits that leave at most half of 1 - confidence on each side; rounding never makes them narrower."""
    weights = np.exp(log - log.max()) * _widths(points)
    below = np.cumsum(weights) / weights.sum()
    tail = (1 - confidence) / 2
    places = np.searchsorted(below, tail - ROUNDING), np.searchsorted(below, 1 - tail + ROUNDING)
    first, last = (min(int(place), len(points) - 1) for place in places)
    return float(points[first]), float(points[last])


def _around(mean: float, low: float, high: float) -> tuple[float, float]:
    """The limits, moved out to the whole numbers on both sides of a mean; a mean of one number is that number."""
    rounding = _MEAN_ROUNDING * (1 + mean)
    return min(low, float(np.floor(mean + rounding))), max(high, float(np.ceil(mean - rounding)))


def _log_choose(n: Floats | float, k: Floats | float) -> NDArray[np.float64]:
    """Logarithm of a binomial coefficient; -inf where k is not from 0 to n."""
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    inside = (k >= 0) & (k <= n)
    top, part = np.where(inside, n, 1.0), np.where(inside, k, 0.0)
    return np.where(
        inside,
        scipy.special.gammaln(top + 1) - scipy.special.gammaln(part + 1) - scipy.special.gammaln(top - part + 1),
        -np.inf,
    )
