"""The rate of false alarms over time, with limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy

from ..uncertainty.bootstrap import otherwise, ratio_limits
from ..uncertainty.clusters import effective_number, spread_of_shifts, stretches
from ..uncertainty.jackknife import gamma_interval, leave_one_out, tail

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Limits
    from ..uncertainty.resampling import Resampling

Floats: TypeAlias = "NDArray[np.float64]"

_ROUNDING = 1e-24


def poisson_limits(count: Floats, confidence: float) -> Limits:
    """Exact limits of the mean of a Poisson count (Garwood 1936).

    Args:
        count: Observed, ≥ 0, any shape.
        confidence: Such as 0.95.
    """
    tails = (1 - confidence) / 2
    lower = np.where(count > 0, scipy.special.gammaincinv(np.maximum(count, 1.0), tails), 0.0)
    return lower, np.asarray(scipy.special.gammainccinv(count + 1.0, tails))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def rate_limits(
    events: NDArray[Any],
    time: NDArray[Any],
    confidence: float,
    resampling: Resampling | None = None,
    *,
    in_time: bool = False,
) -> Limits:
    """Limits of the rate of events over time, whose replicates are independent, at every threshold.

    The events of a replicate need not be: their number may vary more than a Poisson count of the same mean, or less, as
    where a cooldown spaces them out. The jackknife gives the variance of the rate, and its quotient with that of a
    Poisson count the dispersion by which counts are divided before gamma limits are taken of them. Degrees of freedom
    and skewness are those of `clusters`. Where no event shows a dispersion, that of the nearest lower threshold stands
    in, and 1 at least. A single replicate shows none at all: its events are taken as independent, and the limits are
    the exact ones of Garwood.

    Args:
        events: Events by replicate and threshold, thresholds rising, shape (G, K).
        time: Observed time by replicate, shape (G,).
        confidence: Such as 0.95.
        resampling: How the bootstrap draws, whose limits take the place of these wherever it has any; None: none is
            wanted.
        in_time: Whether replicates follow each other in time.

    Returns:
        Limits of shape (K,), in events per unit of time; nan where no time was observed.
    """
    observed = time > 0
    events, time = events[observed | events.any(axis=1)], time[observed | events.any(axis=1)]
    count, total = events.sum(axis=0).astype(np.float64), float(time.sum())
    if not total > 0:
        return np.full(len(count), np.nan), np.full(len(count), np.nan)
    if len(time) < 2:  # noqa: PLR2004 - a spread needs two
        lower, upper = poisson_limits(count, confidence)
        return lower / total, upper / total
    rate = count / total
    without = leave_one_out(events) / leave_one_out(time)[:, None]
    spread = spread_of_shifts(without.mean(axis=0) - without, effective_number(time)[None], in_time=in_time)
    is_spread = (count > 0) & (spread.variance > _ROUNDING)
    dispersion = spread.variance * total**2 / count
    dispersion = np.where(is_spread, dispersion, np.maximum(_carried(dispersion, is_spread), 1.0))
    around = gamma_interval(count, dispersion, tail(confidence, spread.degrees))
    excess = np.where(is_spread, spread.skewed - np.sqrt(dispersion / count), 0.0)
    factors = stretches(excess, spread.degrees, confidence)
    lower, upper = (
        np.where((count > 0) & (factor > 1), rate * (limit / count) ** factor, limit / total)
        for limit, factor in zip(around, factors, strict=True)
    )
    if resampling is None:
        return lower, upper
    return otherwise(
        ratio_limits(events, np.broadcast_to(time[:, None], events.shape), confidence, resampling), (lower, upper)
    )


def _carried(values: Floats, usable: NDArray[np.bool_]) -> Floats:
    """Values, with the nearest usable one before in place of those that are not usable; 1 where there is none."""
    nearest = np.maximum.accumulate(np.where(usable, np.arange(len(values)), -1))
    return np.where(nearest >= 0, values[nearest], 1.0)
