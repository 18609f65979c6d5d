"""Moments and p-values of rankings under random selection, as columns beside the measures."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...metrics.ranking.random_selection import (
    average_precision_moments_of,
    average_precision_p_values,
    hits_moments,
    hits_p_value,
    zhang_su_2012_moments,
)
from ...tables.columns import doubles, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .contract import RankingParameters

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

    Args:
        rankings: Columns n, n_relevant, average_precision, mixed, and `no_null` (see `why_no_null`).
        params: The parameters of the stage.
    """
    has_null = rankings["no_null"].is_null().to_numpy()
    n, m = (rankings[name].to_numpy()[has_null] for name in ("n", "n_relevant"))
    exact = average_precision_moments_of(n, m)
    shown = exact if params.null == "exact" else _as_printed(n, m)
    names = ("_exact_mean", "_exact_variance", "ap_expected", "ap_variance")
    columns = zip(names, (*exact, *shown), strict=True)
    series = [_spread(name, values, has_null) for name, values in columns]
    return rankings.with_columns(*series, *_p_values(rankings, has_null))


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


def _p_values(rankings: pl.DataFrame, has_null: NDArray[np.bool_]) -> Iterator[pl.Series]:
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

    Args:
        cutoffs: Columns k, n, n_relevant, hits, straddled, and `no_null` (see `why_no_null`).
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
