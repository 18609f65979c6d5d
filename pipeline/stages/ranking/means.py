"""Means over queries and their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.metrics.uncertainty.bootstrap import otherwise, share_limits
from pipeline.metrics.uncertainty.jackknife import FEWEST_DEGREES, tail
from pipeline.metrics.uncertainty.limits import UNDEFINED_INTERVAL, limit_series
from pipeline.metrics.uncertainty.proportions import mean_limits
from pipeline.metrics.uncertainty.qualities import FEWEST_CLUSTERS, INTERVAL_QUALITY, LARGEST_SHARE
from pipeline.metrics.uncertainty.resampling import MOST_UNITS
from pipeline.tables.columns import doubles, texts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.jackknife import Limits
    from pipeline.metrics.uncertainty.resampling import Resampling
    from pipeline.stages.ranking.contract import RankingParameters

_QUERY = "query_id"


class Groups:
    """The rankings of one grouping, with the group of each.

    Args:
        rankings: Rankings or their values at cutoffs, with `query_id` and `included`: whether means take them in.
        keys: Columns that identify a group; without any there is one group, of no ranking even.
    """

    def __init__(self, rankings: pl.DataFrame, keys: Sequence[str]) -> None:
        ordered = rankings.sort([*keys, _QUERY], nulls_last=True, maintain_order=True)
        group, self.keys = _runs(ordered, keys)
        self.size = self.keys.height if keys else 1
        included = ordered["included"].to_numpy()
        self.rankings, self.group = ordered.filter(pl.col("included")), group[included]
        self.cluster, _ = _runs(self.rankings, [*keys, _QUERY])
        self.n = np.bincount(self.group, minlength=self.size)
        self.n_excluded = np.bincount(group, minlength=self.size) - self.n
        first = np.flatnonzero(np.diff(self.cluster, prepend=-1))
        self._group_of_cluster = self.group[first]
        self._clusters = np.bincount(self._group_of_cluster, minlength=self.size)

    def column(self, name: str) -> NDArray[np.float64]:
        """Values of the included rankings; NULL is nan."""
        return self.rankings[name].cast(pl.Float64).to_numpy()

    def total(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of values of the included rankings, by group."""
        return np.bincount(self.group, values, self.size).astype(np.float64)

    def mean(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mean by group; nan without rankings."""
        with np.errstate(invalid="ignore"):
            return self.total(values) / self.n

    def limits(self, values: NDArray[np.float64], confidence: float, resampling: Resampling | None = None) -> Limits:
        """Limits of the mean, see `mean_limits`, with the tails of Student's t.

        Rankings of one query are not independent. The variance sums the squared sums of deviations over the rankings of
        each query, times C / (C - 1) for C queries: with one ranking per query the usual variance of a mean. Its
        degrees of freedom are C - 1, or fewer where few queries make up most of it. Limits of the bootstrap, if it is
        wanted, take the place of these wherever it has any.
        """
        mean = self.mean(values)
        deviations = np.bincount(self.cluster, values - mean[self.group], len(self._group_of_cluster))
        squares = np.bincount(self._group_of_cluster, deviations**2, self.size)
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = self._clusters / (self._clusters - 1) * squares / self.n**2
            # Satterthwaite's degrees of freedom from the fourth moment, as `jackknife.effective_degrees` has them
            fourth = np.bincount(self._group_of_cluster, deviations**4, self.size) - squares**2 / self._clusters
            most = np.where(self._clusters > 1, self._clusters - 1.0, np.nan)
            degrees = np.where(fourth > 0, 2 * squares**2 / fourth, np.inf)
            degrees = np.clip(degrees, np.minimum(FEWEST_DEGREES, most), most)
        # of a single query there is no spread, and a mean at 0 or 1 is then no limit either
        known = np.where(self._clusters > 1, mean, np.nan)
        closed = mean_limits(known, variance, self.n.astype(np.float64), tail(confidence, degrees))
        return closed if resampling is None else otherwise(self._resampled(values, confidence, resampling), closed)

    def _resampled(self, values: NDArray[np.float64], confidence: float, resampling: Resampling) -> Limits:
        """Limits from resampled queries, for each group; more than 1,000 of them are put into as many, in turn."""
        sums = [np.bincount(self.cluster, side, len(self._group_of_cluster)) for side in (values, 1 - values)]
        limits = np.full((2, self.size), np.nan)
        ends = np.cumsum(self._clusters)
        for group, (number, end) in enumerate(zip(self._clusters, ends, strict=True)):
            if number < 2:  # noqa: PLR2004 - a spread needs two
                continue
            unit = np.arange(number) % MOST_UNITS
            hits, misses = (np.maximum(np.bincount(unit, side[end - number : end]), 0.0)[:, None] for side in sums)
            lower, upper = share_limits(hits, misses, confidence, resampling)
            limits[:, group] = lower[0], upper[0]
        return limits[0], limits[1]

    def means(self, named: Iterable[tuple[str, str, bool]], params: RankingParameters) -> Iterator[pl.Series]:
        """Means of columns, with limits where asked for.

        Args:
            named: Column, name of its mean, whether it has limits.
            params: The parameters of the stage.
        """
        nothing = np.full(self.size, np.nan)
        for column, name, limited in named:
            values = self.column(column)
            yield doubles(name, self.mean(values))
            if limited:
                wanted = params.is_replicated
                limits = self.limits(values, params.confidence, params.resampling) if wanted else (nothing, nothing)
                yield from limit_series(name, limits)

    def counts(self) -> tuple[pl.Series, pl.Series]:
        """n_queries and n_excluded."""
        return pl.Series("n_queries", self.n).cast(pl.Int64), pl.Series("n_excluded", self.n_excluded).cast(pl.Int64)

    def reasons(self, params: RankingParameters) -> pl.Series:
        """undefined_interval."""
        reasons = np.where(self._clusters == 0, "no_query", np.where(self._clusters == 1, "one_query", ""))
        if params.uncertainty == "none":
            reasons = np.full(self.size, "none")
        return texts(UNDEFINED_INTERVAL, reasons)

    def quality(self, params: RankingParameters) -> pl.Series:
        """interval_quality: queries are the clusters, and the rankings of a query its size."""
        number, size = self._clusters, np.bincount(self.cluster, minlength=len(self._group_of_cluster))
        with np.errstate(divide="ignore", invalid="ignore"):
            effective = self.n**2 / np.bincount(self._group_of_cluster, size**2, self.size)
        largest = np.zeros(self.size)
        np.maximum.at(largest, self._group_of_cluster, size)
        is_unequal = largest > np.maximum(LARGEST_SHARE, 2 / np.maximum(number, 1)) * self.n
        quality = np.where(
            is_unequal, "unequal_clusters", np.where(effective < FEWEST_CLUSTERS, "few_clusters", "good")
        )
        has_limits = (number > 1) & (params.uncertainty != "none")
        return texts(INTERVAL_QUALITY, np.where(has_limits, quality, ""))


def _runs(frame: pl.DataFrame, keys: Sequence[str]) -> tuple[NDArray[np.int64], pl.DataFrame]:
    """Number of the group of each row of an ordered frame, and the groups."""
    if not keys:
        return np.zeros(frame.height, dtype=np.int64), frame.select()
    runs = frame.select(pl.struct(list(keys)).rle_id().cast(pl.Int64)).to_series()
    return runs.to_numpy(), frame.select(keys).filter(runs.is_first_distinct())
