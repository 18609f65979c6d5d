"""Means over queries and their intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...metrics.uncertainty.bootstrap import otherwise, share_limits
from ...metrics.uncertainty.clusters import spread_of_shifts
from ...metrics.uncertainty.jackknife import FEWEST_DEGREES, tail
from ...metrics.uncertainty.limits import UNDEFINED_INTERVAL, limit_series
from ...metrics.uncertainty.marks import quality_of_sizes
from ...metrics.uncertainty.proportions import mean_limits
from ...metrics.uncertainty.qualities import (
    INTERVAL_QUALITY,
    N_CLUSTERS,
    N_EFFECTIVE,
)
from ...metrics.uncertainty.resampling import MOST_UNITS
from ...metrics.uncertainty.serial import may_neighbours_be_alike
from ...tables.columns import doubles, texts
from ..stage import CLUSTER
from .lists import PLACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from ...metrics.uncertainty.jackknife import Limits
    from ...metrics.uncertainty.resampling import Resampling
    from .contract import RankingParameters

_QUERY = "query_id"


class Groups:
    """The rankings of one grouping, with the group of each.

    Args:
        rankings: Rankings or their values at cutoffs, with `query_id` and `included`: whether means take them in; and
            `cluster` if queries lie in clusters, which are then what is independent, and their place in the order of
            time if they have one.
        keys: Columns that identify a group; without any there is one group, of no ranking even.
    """

    def __init__(self, rankings: pl.DataFrame, keys: Sequence[str]) -> None:
        self.is_clustered = CLUSTER in rankings.columns
        self.in_time = PLACE in rankings.columns
        unit = PLACE if self.in_time else CLUSTER if self.is_clustered else _QUERY
        ordered = rankings.sort([*keys, unit, _QUERY], nulls_last=True, maintain_order=True)
        group, self.keys = _runs(ordered, keys)
        self.size = self.keys.height if keys else 1
        included = ordered["included"].to_numpy()
        self.rankings, self.group = ordered.filter(pl.col("included")), group[included]
        self.cluster, _ = _runs(self.rankings, [*keys, unit])
        self.n = np.bincount(self.group, minlength=self.size)
        self.n_excluded = np.bincount(group, minlength=self.size) - self.n
        first = np.flatnonzero(np.diff(self.cluster, prepend=-1))
        self._group_of_cluster = self.group[first]
        self._clusters = np.bincount(self._group_of_cluster, minlength=self.size)
        self._sizes = np.bincount(self.cluster, minlength=len(first))
        with np.errstate(divide="ignore", invalid="ignore"):
            self._effective = self.n**2 / np.bincount(self._group_of_cluster, self._sizes**2, self.size)

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

        Rankings of one query, or of one cluster of queries, are not independent. The variance is that of leaving each
        out in turn, (C - 1) / C times the sum of squared shifts: with one ranking per query the usual variance of a
        mean. Its degrees of freedom are C - 1, or fewer where few queries make up most of it, or the effective number
        of clusters less one. If clusters follow each other in time it has the covariances of those nearby. Limits of
        the bootstrap, if it is wanted, take the place of these wherever it has any.
        """
        mean, shifts = self.mean(values), self._shifts(values)
        with np.errstate(divide="ignore", invalid="ignore"):
            squares = np.bincount(self._group_of_cluster, shifts**2, self.size)
            variance = (self._clusters - 1) / self._clusters * squares
            # Satterthwaite's degrees of freedom from the fourth moment, as `jackknife.effective_degrees` has them
            fourth = np.bincount(self._group_of_cluster, shifts**4, self.size) - squares**2 / self._clusters
            most = np.where(self._clusters > 1, self._clusters - 1.0, np.nan)
            degrees = np.where(fourth > 0, 2 * squares**2 / fourth, np.inf)
            degrees = np.clip(degrees, np.minimum(FEWEST_DEGREES, most), most)
            degrees = np.where(self._clusters > 1, np.maximum(np.minimum(degrees, self._effective - 1), 1.0), np.nan)
            if self.in_time:
                of_groups = zip(self._by_group(shifts), self._effective, strict=True)
                spreads = [spread_of_shifts(each[:, None], number, in_time=True) for each, number in of_groups]
                variance = np.array([each.variance[0] for each in spreads])
                degrees = np.array([each.degrees[0] for each in spreads])
        # of a single query there is no spread, and a mean at 0 or 1 is then no limit either
        known = np.where(self._clusters > 1, mean, np.nan)
        closed = mean_limits(known, variance, self.n.astype(np.float64), tail(confidence, degrees))
        return closed if resampling is None else otherwise(self._resampled(values, confidence, resampling), closed)

    def _shifts(self, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """How far each cluster moves the mean of its group."""
        deviations = np.bincount(self.cluster, values - self.mean(values)[self.group], len(self._group_of_cluster))
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(deviations / (self.n[self._group_of_cluster] - self._sizes))

    def _by_group(self, of_clusters: NDArray[Any]) -> list[NDArray[Any]]:
        """Numbers of clusters, one array for each group."""
        return np.split(of_clusters, np.cumsum(self._clusters))[:-1]

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

    def trust(self, params: RankingParameters, columns: Sequence[str]) -> Iterator[pl.Series]:
        """undefined_interval and interval_quality; of clusters n_clusters and n_clusters_effective, too.

        Args:
            params: The parameters of the stage.
            columns: Columns whose means have limits, by which clusters nearby in time are compared.
        """
        yield self._reasons(params)
        yield self._quality(params, columns)
        if self.is_clustered:
            yield pl.Series(N_CLUSTERS, self._clusters).cast(pl.Int64)
            yield doubles(N_EFFECTIVE, self._effective)

    def counts(self) -> tuple[pl.Series, pl.Series]:
        """n_queries and n_excluded."""
        return pl.Series("n_queries", self.n).cast(pl.Int64), pl.Series("n_excluded", self.n_excluded).cast(pl.Int64)

    def _reasons(self, params: RankingParameters) -> pl.Series:
        """undefined_interval."""
        single = "one_replicate" if self.is_clustered else "one_query"
        reasons = np.where(self._clusters == 0, "no_query", np.where(self._clusters == 1, single, ""))
        if params.uncertainty == "none":
            reasons = np.full(self.size, "none")
        return texts(UNDEFINED_INTERVAL, reasons)

    def _quality(self, params: RankingParameters, columns: Sequence[str]) -> pl.Series:
        """interval_quality: queries are the clusters unless they lie in some, and the rankings of one its size."""
        has_limits = (self._clusters > 1) & (params.uncertainty != "none")
        qualities = [quality_of_sizes(of_group) for of_group in self._by_group(self._sizes)]
        if self.in_time:
            shifts = np.stack([self._shifts(self.column(name)) for name in columns], axis=1)
            alike = (may_neighbours_be_alike(of_group) for of_group in self._by_group(shifts))
            qualities = [
                "correlated_days" if each == "good" and is_alike else each
                for each, is_alike in zip(qualities, alike, strict=True)
            ]
        return texts(
            INTERVAL_QUALITY,
            (quality if is_limited else "" for quality, is_limited in zip(qualities, has_limits, strict=True)),
        )


def _runs(frame: pl.DataFrame, keys: Sequence[str]) -> tuple[NDArray[np.int64], pl.DataFrame]:
    """Number of the group of each row of an ordered frame, and the groups."""
    if not keys:
        return np.zeros(frame.height, dtype=np.int64), frame.select()
    runs = frame.select(pl.struct(list(keys)).rle_id().cast(pl.Int64)).to_series()
    return runs.to_numpy(), frame.select(keys).filter(runs.is_first_distinct())
