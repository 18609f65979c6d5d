"""Means over queries, of measures and under random selection, with their intervals."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...base.columns import doubles, texts
from ...metrics.ranking.measures import is_measure
from ...metrics.ranking.random_selection import (
    average_precision_moments_of,
    average_precision_p_values,
    average_precision_skewness,
    hits_moments,
    hits_p_value,
    monte_carlo_tail_of_mean,
    shifted_lognormal_tail,
    zhang_su_2012_moments,
)
from ...metrics.uncertainty.clusters import may_neighbours_be_alike, spread_of_shifts
from ...metrics.uncertainty.jackknife import FEWEST_DEGREES, tail
from ...metrics.uncertainty.limits import (
    INTERVAL_QUALITY,
    N_CLUSTERS,
    N_EFFECTIVE,
    UNDEFINED_INTERVAL,
    limit_series,
    quality_of_sizes,
)
from ...metrics.uncertainty.proportions import mean_limits
from ...metrics.uncertainty.replicates import MOST_UNITS, otherwise, share_limits
from ..figures import keys_of
from ..stage import CLUSTER
from .contract import MEASURE_TABLE, QUERY_TABLE
from .planning import PLACE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...metrics.uncertainty.jackknife import Limits
    from ...metrics.uncertainty.replicates import Resampling
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
        """Means of columns, with limits where asked for: column, name of its mean, whether it has limits."""
        nothing = np.full(self.size, np.nan)
        for column, name, limited in named:
            values = self.column(column)
            yield doubles(name, self.mean(values))
            if limited:
                wanted = params.is_replicated
                limits = self.limits(values, params.confidence, params.resampling) if wanted else (nothing, nothing)
                yield from limit_series(name, limits)

    def trust(self, params: RankingParameters, columns: Sequence[str]) -> Iterator[pl.Series]:
        """undefined_interval, interval_quality by columns whose means have limits, and numbers of clusters, if any."""
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


# Means of the measures that the config names, beside the summary of every group.


def measure_names(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """The measures of a run in the order of its config; none where the config names none."""
    return tuple(name for name in tables[QUERY_TABLE].columns if is_measure(name))


def quality_of(name: str) -> str:
    """The column of `with_measures` that says how far the limits of a measure can be trusted."""
    return f"{name}_{INTERVAL_QUALITY}"


def with_measures(tables: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    """The summary of every group with the mean of each measure, its limits and their quality: `nDCG@10_lower`."""
    summary = tables["ranking_summary"]
    keys = keys_of(summary)
    for name in measure_names(tables):
        columns = {"mean": name, INTERVAL_QUALITY: quality_of(name)}
        columns |= {f"mean_{side}": f"{name}_{side}" for side in ("lower", "upper")}
        means = tables[MEASURE_TABLE].filter(pl.col("measure") == name).select(*keys, *columns)
        summary = summary.join(means.rename(columns), on=keys, how="left", nulls_equal=True, maintain_order="left")
    return summary


# Means over queries under random selection.


MOST_RANKS = 20_000_000  # over which third moments are summed
MOST_DRAWN = 2_000  # hits, or misses where they are fewer, of all rankings whose means are drawn
REPLICATES = 99_999
SKEWED = 1.0  # skewness of a mean from which random rankings are drawn

Found = tuple[float, str, str]


def null_of_means(groups: Groups) -> Iterator[pl.Series]:
    """map_expected, map_variance, map_p_value, its method and why it is missing.

    Under random selection rankings are independent, so that variances and third central moments add up. A ranking
    without relevant document that counts 0 is a constant.
    """
    constant = groups.column("n_relevant") == 0
    moments = {}
    for name in ("ap_expected", "ap_variance", "_exact_mean", "_exact_variance"):
        moments[name] = np.where(constant, 0.0, groups.column(name))
    with np.errstate(invalid="ignore", divide="ignore"):
        yield doubles("map_expected", groups.mean(moments["ap_expected"]))
        yield doubles("map_variance", groups.mean(moments["ap_variance"]) / groups.n)
    tests = list(_p_values(groups, moments["_exact_mean"], moments["_exact_variance"]))
    yield doubles("map_p_value", np.array([value for value, _, _ in tests], dtype=np.float64))
    yield texts("map_p_value_method", (method for _, method, _ in tests))
    yield texts("undefined_p_value", (reason for _, _, reason in tests))


def _p_values(groups: Groups, means: NDArray[np.float64], variances: NDArray[np.float64]) -> Iterator[Found]:
    """p-value, method and reason of every group.

    The mean is taken as shifted lognormal with its three moments, or as normal where third moments would be summed over
    too many ranks. If it is very skewed, random rankings are drawn.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = groups.mean(variances) / groups.n
        third, method = _third_moments(groups, variances)
        skewness = groups.total(third) / groups.n**3 / variance**1.5
        standard = (groups.mean(groups.column("average_precision")) - groups.mean(means)) / np.sqrt(variance)
    tied = groups.total(groups.column("mixed")) > 0
    alone = _alone(groups)
    left = MOST_DRAWN
    for group in range(groups.size):
        if tied[group]:
            yield np.nan, "", "ties"
        elif group in alone:
            yield alone[group]
        elif variance[group] == 0:
            yield 1.0, method, ""
        elif np.isnan(standard[group]):
            yield np.nan, "", ""
        elif skewness[group] <= SKEWED:
            yield float(shifted_lognormal_tail(standard[group], float(skewness[group]))), method, ""
        else:
            varying = (groups.group == group) & (variances > 0)  # rankings that are not always the same
            n, m = (groups.column(name)[varying].astype(np.int64) for name in ("n", "n_relevant"))
            left -= int(np.minimum(m, n - m).sum())
            if left < 0:
                yield np.nan, "", "budget"
                continue
            total = float(groups.column("average_precision")[varying].sum())
            value = monte_carlo_tail_of_mean(total, n.tolist(), m.tolist(), replicates=REPLICATES, seed=0)
            yield value, "monte_carlo", ""


def _third_moments(groups: Groups, variance: NDArray[np.float64]) -> tuple[NDArray[np.float64], str]:
    """Third central moments of average precision; zeros where they would take too long."""
    asked = np.flatnonzero(variance > 0)
    n, m = (groups.column(name)[asked] for name in ("n", "n_relevant"))
    sizes, number = np.unique(np.stack([n, m], axis=1), axis=0, return_inverse=True)
    third = np.zeros(len(variance))
    if sizes[:, 0].sum() > MOST_RANKS:
        return third, "normal"
    skewness = np.array([average_precision_skewness(int(size), int(relevant)) for size, relevant in sizes])
    third[asked] = skewness[number.ravel()] * variance[asked] ** 1.5 if len(asked) else 0.0
    return third, "lognormal"


def _alone(groups: Groups) -> dict[int, tuple[float, str, str]]:
    """p-value, its method and why it is missing of the groups with one ranking: its own."""
    alone = np.flatnonzero(groups.n[groups.group] == 1)
    rows = groups.rankings.select("ap_p_value", "ap_p_value_method", "undefined_p_value")[alone.tolist()].rows()
    numbers = groups.group[alone].tolist()
    return {
        number: (np.nan if value is None else value, method or "", reason or "")
        for number, (value, method, reason) in zip(numbers, rows, strict=True)
    }


# Moments and p-values of rankings under random selection, as columns beside the measures.


MOST_SIZES = 200
MOST_RANKINGS = 2_000


def pool(params: RankingParameters) -> pl.Expr:
    """Documents that a ranking was made from."""
    return pl.col("n_retrieved") if params.n_candidates is None else pl.lit(params.n_candidates, dtype=pl.Int64)


def why_no_null(params: RankingParameters) -> pl.Expr:
    """Why nothing is known of a ranking under random selection; NULL where it is."""
    outside = pl.col("n_relevant") - pl.col("n_relevant_retrieved") > pl.col("n") - pl.col("n_retrieved")
    alone = (pl.col("n_relevant") == 1) & (params.null == "zhang_su_2012")
    return (
        pl.when(~pl.col("judged"))
        .then(pl.lit("unjudged"))
        .when(pl.col("n_relevant") == 0)
        .then(pl.lit("no_relevant"))
        .when(pl.col("n_retrieved") == 0)
        .then(pl.lit("no_retrieved"))
        .when(pl.col("n") < pl.col("n_retrieved"))
        .then(pl.lit("small_pool"))
        .when(outside)
        .then(pl.lit("unranked_relevant"))
        .when(alone)
        .then(pl.lit("one_relevant"))
    )


def with_average_precision_null(rankings: pl.DataFrame, params: RankingParameters) -> pl.DataFrame:
    """Adds ap_expected, ap_variance, ap_p_value, its method and why it is missing, and the exact moments.

    Rankings have n, n_relevant, average_precision, mixed, and `no_null` (see `why_no_null`).
    """
    has_null = rankings["no_null"].is_null().to_numpy()
    n, m = (rankings[name].to_numpy()[has_null] for name in ("n", "n_relevant"))
    exact = average_precision_moments_of(n, m)
    shown = exact if params.null == "exact" else _as_printed(n, m)
    names = ("_exact_mean", "_exact_variance", "ap_expected", "ap_variance")
    columns = zip(names, (*exact, *shown), strict=True)
    series = [_spread(name, values, has_null) for name, values in columns]
    return rankings.with_columns(*series, *_p_values_of_rankings(rankings, has_null))


def _spread(name: str, values: NDArray[np.float64], rows: NDArray[np.bool_]) -> pl.Series:
    """Values of some rows as a column, NULL in the others."""
    column = np.full(len(rows), np.nan)
    column[rows] = values
    return doubles(name, column)


def _as_printed(n: NDArray[np.int64], m: NDArray[np.int64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    sizes, number = np.unique(np.stack([n, m], axis=1), axis=0, return_inverse=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the run says it once
        moments = np.array([zhang_su_2012_moments(*size) for size in sizes.tolist()]).reshape(-1, 2)
    of_rankings = moments[number.ravel()]
    return of_rankings[:, 0], of_rankings[:, 1]


def _p_values_of_rankings(rankings: pl.DataFrame, has_null: NDArray[np.bool_]) -> Iterator[pl.Series]:
    mixed = rankings["mixed"].to_numpy()
    asked = has_null & ~mixed
    ap, n, m = (rankings[name].cast(pl.Float64).to_numpy()[asked] for name in ("average_precision", "n", "n_relevant"))
    sizes = len(np.unique(np.stack([n, m], axis=1), axis=0))
    reason = np.where(mixed & has_null, "ties", "")
    values, methods = np.full(len(has_null), np.nan), np.full(len(has_null), "", dtype=object)
    if sizes <= MOST_SIZES and len(ap) <= MOST_RANKINGS:
        values[asked], methods[asked] = average_precision_p_values(ap, n.astype(np.int64), m.astype(np.int64))
    else:
        reason = np.where(asked, "budget", reason)
    yield doubles("ap_p_value", values)
    yield texts("ap_p_value_method", methods)
    yield texts("undefined_p_value", reason)


def with_hits_null(cutoffs: pl.DataFrame) -> pl.DataFrame:
    """Adds the hypergeometric moments of precision and recall, and the p-value of the hits.

    Cutoffs have k, n, n_relevant, hits, straddled, and `no_null` (see `why_no_null`).
    """
    has_null = cutoffs["no_null"].is_null().to_numpy()
    n, m, k, hits = (cutoffs[name].cast(pl.Float64).to_numpy()[has_null] for name in ("n", "n_relevant", "k", "hits"))
    first = np.minimum(k, n)
    mean, variance = hits_moments(n, m, first)
    p_value = hits_p_value(hits, n, m, first)
    straddled = cutoffs["straddled"].to_numpy()
    p_value[straddled[has_null]] = np.nan
    columns = {
        "precision_expected": mean / k,
        "precision_variance": variance / k**2,
        "recall_expected": mean / m,
        "recall_variance": variance / m**2,
        "p_value": p_value,
    }
    reason = texts("undefined_p_value", np.where(straddled & has_null, "ties", ""))
    return cutoffs.with_columns(*(_spread(name, values, has_null) for name, values in columns.items()), reason)
