"""The rate of false alarms over time, with limits."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import scipy

from ...records import dataclass
from ..uncertainty.bootstrap import otherwise, ratio_limits, studentised
from ..uncertainty.clusters import effective_number, spread_of_shifts, stretches
from ..uncertainty.cube import MOST_CELLS
from ..uncertainty.jackknife import gamma_interval, leave_one_out, t_quantile, tail
from ..uncertainty.proportions import Confusion, intervals_of_clusters
from ..uncertainty.serial import may_neighbours_be_alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..uncertainty.bootstrap import Resampling
    from ..uncertainty.clusters import Spread
    from ..uncertainty.jackknife import Limits


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


# How long alarms come before what they tell of: mean and quantiles of leads, with limits over clusters of true
# points.
#
# A lead is the start of a true point minus the position of the first alarm in its zone; a positive lead is ahead of
# time.


Ints: TypeAlias = "NDArray[np.int64]"
Pair: TypeAlias = tuple[float, float]

NO_LIMITS: Pair = (np.nan, np.nan)


@dataclass(frozen=True)
class Leads:
    """Leads of one group at one threshold.

    Attributes:
        values: Distinct leads, rising, shape (V,).
        counts: How many true points of each replicate have each, shape (G, V); every replicate has at least one.
        in_time: Whether the replicates follow each other in time.
    """

    values: Floats
    counts: Ints
    in_time: bool = False

    @classmethod
    def of(cls, lead: Floats, replicate: Ints, number: Ints) -> Leads:
        """The leads of rows that repeat, and may take each other away.

        Args:
            lead: Lead of each row.
            replicate: Its replicate.
            number: How many true points come or, below 0, go.
        """
        values, column = np.unique(lead, return_inverse=True)
        replicates, row = np.unique(replicate, return_inverse=True)
        counts = np.zeros((len(replicates), len(values)), dtype=np.int64)
        np.add.at(counts, (row, column), number)
        columns, rows = counts.any(axis=0), counts.any(axis=1)
        return cls(values[columns], counts[rows][:, columns])

    @property
    def number(self) -> int:
        """How many true points there are."""
        return int(self.counts.sum())

    @property
    def sizes(self) -> Ints:
        """How many of them each replicate has, shape (G,)."""
        return np.asarray(self.counts.sum(axis=1))

    @property
    def mean(self) -> float:
        """Their mean; nan without any."""
        return float(self._totals.sum() / self.number) if self.number else np.nan

    @cached_property
    def _totals(self) -> Floats:
        return np.asarray(self.counts @ self.values, dtype=np.float64)

    @property
    def n_ahead(self) -> int:
        """How many leads are above 0."""
        return int(self.counts[:, self.values > 0].sum())

    def quantile(self, share: float) -> float:
        """The value below which a share of the leads lies, by linear interpolation between ranks, as in numpy."""
        if not self.number:
            return np.nan
        rank = share * (self.number - 1)
        until = np.cumsum(self.counts.sum(axis=0))
        low, high = (
            self.values[np.searchsorted(until, whole, side="right")] for whole in (np.floor(rank), np.ceil(rank))
        )
        return float(low + (high - low) * (rank - np.floor(rank)))

    @property
    def _shifts(self) -> Floats:
        """How far each replicate moves the mean, shape (G, 1)."""
        means = leave_one_out(self._totals) / leave_one_out(self.sizes)
        return np.asarray(means.mean() - means)[:, None]

    @cached_property
    def _spread(self) -> Spread:
        """The sampling error of the mean."""
        return spread_of_shifts(self._shifts, effective_number(self.sizes)[None], in_time=self.in_time)

    @property
    def may_neighbours_be_alike(self) -> bool:
        """Whether replicates that follow each other in time are alike in their mean leads."""
        return self.in_time and len(self.counts) > 1 and may_neighbours_be_alike(self._shifts)

    def mean_limits(self, confidence: float, resampling: Resampling | None = None) -> Pair:
        """Limits of the mean by Student's t, farther on the side of the long tail; nan for one replicate.

        Args:
            confidence: Such as 0.95.
            resampling: How the bootstrap draws; None: limits of the closed form.
        """
        if len(self.counts) < 2:  # noqa: PLR2004 - a spread needs two
            return NO_LIMITS
        spread = self._spread
        reach = t_quantile(confidence, spread.degrees) * np.sqrt(spread.variance)
        lower, upper = stretches(spread.skewed, spread.degrees, confidence)
        limits = self.mean - lower * reach, self.mean + upper * reach
        if resampling is not None:
            drawn = studentised(_ratio, (self._totals[:, None], self.sizes[:, None]), confidence, resampling)
            limits = otherwise(drawn.limits, limits)
        return float(limits[0][0]), float(limits[1][0])

    def ahead_limits(self, confidence: float, resampling: Resampling | None = None) -> Pair:
        """Limits of the share of leads above 0; arguments as for `mean_limits`."""
        lower, upper = self._limits_of_shares(
            self.counts[:, self.values > 0].sum(axis=1)[:, None], confidence, resampling
        )
        return float(lower[0]), float(upper[0])

    def quantile_limits(
        self, shares: Sequence[float], confidence: float, resampling: Resampling | None = None
    ) -> list[Pair]:
        """Limits of quantiles: the values for which the share is within the limits of the distribution function.

        The limits of the share of leads up to a value are those of a proportion over clusters, at every value that
        occurs, so that each value is tested as the quantile (Woodruff 1952; with independent leads these are limits by
        order statistics). A limit beyond the lowest or the highest lead is not known.

        Args:
            shares: Which quantiles, such as 0.5.
            confidence: Such as 0.95.
            resampling: As for `mean_limits`.

        Returns:
            Lower and upper limit of each; nan where there is none.
        """
        draws = 1 if resampling is None else resampling.resamples
        if len(self.counts) < 2 or len(self.values) * max(len(self.counts), draws) > MOST_CELLS:  # noqa: PLR2004
            return [NO_LIMITS] * len(shares)
        hits = np.concatenate([np.zeros((len(self.counts), 1)), np.cumsum(self.counts, axis=1)], axis=1)
        lower, upper = self._limits_of_shares(hits, confidence, resampling)
        # limits of a distribution function rise, whatever the spread of single values
        upper, lower = np.maximum.accumulate(upper), np.minimum.accumulate(lower[::-1])[::-1]
        ends = np.concatenate([[np.nan], self.values]), np.concatenate([self.values, [np.nan]])
        return [
            (float(ends[0][np.searchsorted(upper, share)]), float(ends[1][np.searchsorted(lower, share, "right") - 1]))
            for share in shares
        ]

    def _limits_of_shares(
        self, hits: Ints | Floats, confidence: float, resampling: Resampling | None
    ) -> tuple[Floats, Floats]:
        """Limits of shares of all leads, from hits of shape (G, K)."""
        nothing = np.zeros_like(hits)
        counts = Confusion(hits, nothing, self.sizes[:, None] - hits, nothing, in_time=self.in_time)
        return intervals_of_clusters(counts, confidence, names=["recall"], resampling=resampling)["recall"]


def _ratio(totals: Sequence[Floats], _sample: Sequence[Floats]) -> tuple[Floats, Sequence[Floats]]:
    """The quotient of two totals, and its derivatives by them."""
    top, bottom = totals
    return top / bottom, (1 / bottom, -top / bottom**2)
