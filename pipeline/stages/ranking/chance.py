"""Means over queries under random selection."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...metrics.ranking.null import monte_carlo_tail_of_mean
from ...metrics.ranking.random_selection import average_precision_skewness
from ...metrics.ranking.shifted_lognormal import shifted_lognormal_tail
from ...tables.columns import doubles, texts

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl
    from numpy.typing import NDArray

    from .means import Groups

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
            total, n, m = _varying(groups, group, variances)
            left -= int(np.minimum(m, n - m).sum())
            yield _drawn(total, n, m) if left >= 0 else (np.nan, "", "budget")


def _varying(
    groups: Groups, group: int, variances: NDArray[np.float64]
) -> tuple[float, NDArray[np.int64], NDArray[np.int64]]:
    """Sum of average precision, and sizes, of the rankings of a group that are not always the same."""
    varying = (groups.group == group) & (variances > 0)
    n, m = (groups.column(name)[varying].astype(np.int64) for name in ("n", "n_relevant"))
    return float(groups.column("average_precision")[varying].sum()), n, m


def _drawn(total: float, n: NDArray[np.int64], m: NDArray[np.int64]) -> Found:
    value = monte_carlo_tail_of_mean(total, n.tolist(), m.tolist(), replicates=REPLICATES, seed=0)
    return value, "monte_carlo", ""


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
