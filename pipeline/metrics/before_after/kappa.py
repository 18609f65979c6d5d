"""How far the false positive rate after the event may differ from that before it: a prior of κ, after over before.

The estimate without labels takes κ = 1. Nothing before the event can prove that: an event draws attention and changes
what else is written. A conclusion that is drawn from the rate before the event and from labels together must therefore
hold doubt about κ. It is a gamma distribution with mean 1 and a variance of two terms:

- `DOUBT`², which no data set can take away. With it κ lies between 0.38 and 1.92 in nineteen of twenty cases.
- The drift that the time before the event shows. The placebo compares the near part with the far part, the trend
  projects the slope per day from the middle of the time before the event to the middle of the time after it. Each gives
  a log rate ratio L with a standard error s. If the drift of the rate over such a time is random with variance τ², then
  E L² = τ² + s², so that L² - s² estimates τ²; the larger of the two is taken, and at least 0 (the estimator of moments
  of DerSimonian & Laird 1986, for a single study).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy

from ...records import dataclass
from .placebo import placebo

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..uncertainty.jackknife import Floats, Limits
    from .placebo import NearAndFar
    from .sums import Counts

DOUBT = 0.4  # standard deviation of κ that remains when nothing drifts before the event
ONE_ERROR = 0.6826894921370859  # confidence of an interval of one standard error on both sides


@dataclass(frozen=True)
class LogRatio:
    """A measured drift of the false positive rate; shapes are (T,), or single numbers.

    Attributes:
        value: Natural logarithm of the later rate over the earlier one; nan where it is not known.
        error: Its standard error; nan likewise.
    """

    value: Floats
    error: Floats

    @property
    def excess(self) -> Floats:
        """Estimate of the variance of the drift, ≥ 0; 0 where it is not known."""
        return np.nan_to_num(np.maximum(self.value**2 - self.error**2, 0.0))


def placebo_ratio(
    m_far: Counts, m_near: Counts, n_far: Counts, n_near: Counts, *, crossed: Sequence[NearAndFar] = ()
) -> LogRatio:
    """The log rate ratio of the placebo test with its standard error; the arguments are those of `placebo`."""
    tests = placebo(m_far, m_near, n_far, n_near, confidence=ONE_ERROR, crossed=crossed)
    return LogRatio(tests.log_rate_ratio, (tests.upper - tests.lower) / 2)


def kappa_variance(*drifts: LogRatio) -> Floats:
    """Variance of the prior of κ, from what drifts were measured; see the head of this file."""
    excess = np.zeros(1)
    for drift in drifts:
        excess = np.maximum(excess, drift.excess)
    return np.asarray(DOUBT**2 + excess)


def kappa_limits(variance: Floats, confidence: float) -> Limits:
    """The range in which κ lies with this probability, with equal tails."""
    shape = 1 / variance
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    lower, upper = (np.asarray(scipy.special.gammaincinv(shape, tail) / shape) for tail in tails)
    return lower, upper
