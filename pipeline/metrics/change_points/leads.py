"""How long alarms come before what they tell of: mean and quantiles of leads, with limits over clusters of true points.

A lead is the start of a true point minus the position of the first alarm in its zone; a positive lead is ahead of time.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from ..uncertainty.bootstrap import otherwise, studentised
from ..uncertainty.clusters import effective_number, spread_of_shifts, stretches
from ..uncertainty.cube import MOST_CELLS
from ..uncertainty.jackknife import leave_one_out, t_quantile
from ..uncertainty.proportions import Confusion, intervals_of_clusters
from ..uncertainty.serial import may_neighbours_be_alike

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..uncertainty.clusters import Spread
    from ..uncertainty.resampling import Resampling

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
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
