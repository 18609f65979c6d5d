"""Tests of the hypothesis that scores are probabilities of their labels.

- *Spiegelhalter* (1986): the sum of (y - s) (1 - 2 s), which is the excess of the Brier score over what is expected,
  over its standard error. Scores that are too extreme raise it, scores that are too near to 1/2 lower it.
- *Hosmer & Lemeshow* (1980): squares of what true rows in bins exceed the scores by, over their variances, added up.

Where rows are independent the scores give the variances, and the sum of squares is held against a scaled chi-square
distribution with its mean and its variance (Satterthwaite 1946), so that bins in which hardly a true row is expected do
no harm. Weights may depend on labels: with them Spiegelhalter's variance is the sum of squares of what rows add. Where
only clusters are independent, the standard error is that between clusters, with Student's t.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import chdtrc, ndtr, stdtr

from pipeline.metrics.calibration.sums import spread_of_means
from pipeline.metrics.uncertainty.spread import ONE_WAY

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from pipeline.metrics.calibration.sums import BinSums, Moments

Floats: TypeAlias = "NDArray[np.float64]"
Tested: TypeAlias = "tuple[Floats, Floats]"  # the statistic and its two-sided p-value


@np.errstate(divide="ignore", invalid="ignore")
def spiegelhalter_of_rows(sums: BinSums, starts: NDArray[np.int64]) -> Tested:
    """Statistic z and p-value of every group where rows are independent; nan where no score tells.

    Args:
        sums: Of bins with a weight above 0, those of one group one after the other.
        starts: Index of the first bin of every group, rising.
    """
    excess, variance = (np.add.reduceat(values, starts) for values in (sums.weighted.test_sum, sums.test_variance))
    z = np.where(variance > 0, excess / np.sqrt(variance), np.nan)
    return z, 2 * ndtr(-np.abs(z))


@np.errstate(divide="ignore", invalid="ignore")
def spiegelhalter_of_clusters(clusterings: Sequence[Moments]) -> Tested:
    """Statistic and p-value of one group where only replicates are independent, shape (1,); nan without a spread.

    Args:
        clusterings: Sums by replicate and bin, shape (G, K): of the one clustering, or of both parents and of both.
    """
    together = [moments.over_bins() for moments in clusterings]
    spread = spread_of_means(lambda moments: moments.test_sum, together)
    mean = together[0].test_sum.sum() / together[0].weight.sum()
    statistic = np.where(spread.variance > 0, mean / np.sqrt(spread.variance), np.nan)
    return statistic, 2 * stdtr(spread.degrees, -np.abs(statistic))


@np.errstate(divide="ignore", invalid="ignore")
def hosmer_lemeshow_of_rows(sums: BinSums, variance: Floats, starts: NDArray[np.int64]) -> Tested:
    """Statistic and p-value of every group where rows are independent; arguments as for `spiegelhalter_of_rows`."""
    surplus = sums.weighted.surplus
    terms = np.where(variance > 0, surplus**2 / variance, np.where(np.abs(surplus) > _ROUNDING, np.inf, 0.0))
    spread = np.where(variance > 0, _spread(sums, variance), 0.0)
    statistic, mean, of_statistic = (
        np.add.reduceat(values, starts) for values in (terms, (variance > 0).astype(np.float64), spread)
    )
    return statistic, _chi_square(statistic, mean, of_statistic)


@np.errstate(divide="ignore", invalid="ignore")
def hosmer_lemeshow_of_clusters(sums: BinSums, least: Floats, clusterings: Sequence[Moments]) -> Tested:
    """Statistic and p-value of one group where only replicates are independent, shape (1,).

    Variances are those of independent rows times the design effect of all bins together, which is at least 1 (Rao &
    Scott 1981); with weights, in each bin that between replicates if it is larger. Correlations between bins are those
    between the sums of replicates.

    Args:
        sums: Of the bins of the group, shape (K,).
        least: Variance of the surplus of each bin if rows were independent, see `BinSums.variance_if_calibrated`.
        clusterings: As for `spiegelhalter_of_clusters`.
    """
    products = [moments.surplus.T @ moments.surplus for moments in clusterings]
    together = products[0]
    if len(products) > ONE_WAY:
        together = products[0] + products[1] - products[2]
        of_one = np.minimum(np.diag(products[0]), np.diag(products[1]))
        np.fill_diagonal(together, np.maximum(np.diag(together), of_one))
    # one design effect for all bins: those of single bins with few true rows say little, but weights make them differ
    effect = max(np.trace(together) / least.sum(), 1.0) if least.any() else 1.0
    variance = np.maximum(np.diag(together), least) if sums.is_weighted else effect * least
    used, replicates = variance > 0, min(len(moments.weight) for moments in clusterings)
    if not used.any() or replicates == 1:
        return np.full(1, np.nan), np.full(1, np.nan)
    correlation = together[np.ix_(used, used)] / np.sqrt(np.outer(variance[used], variance[used]))
    statistic = np.sum(sums.weighted.surplus[used] ** 2 / variance[used])
    count = used.sum()
    squares = np.sum(correlation**2) - np.sum(np.diag(correlation) ** 2)
    # squares of correlations that are 0 are 1 / G on average
    squares = max((replicates * squares - count * (count - 1)) / (replicates - 1), 0.0)
    spread = 2 * squares + np.sum(_spread(sums, variance)[used])
    return np.array([statistic]), _chi_square(np.array([statistic]), np.array([float(count)]), np.array([spread]))


@np.errstate(divide="ignore", invalid="ignore")
def _spread(sums: BinSums, variance: Floats) -> Floats:
    """Variance of the squared surplus of bins over its variance: 2 if it is normal, and its excess kurtosis.

    Without weights the fourth cumulant is Σ p q (1 - 6 p q) of probabilities p and q = 1 - p, which follows from the
    sums of p q and of p q (1 - 4 p q). With weights the kurtosis is that of a binomial count with the variance of the
    share.
    """
    if not sums.is_weighted:
        fourth = 1.5 * sums.test_variance - 0.5 * sums.weighted.expected_variance
        return np.maximum(2 + fourth / variance**2, _LEAST_SPREAD)
    product = sums.mean_score * (1 - sums.mean_score)
    kurtosis = (1 - 6 * product) * variance / (sums.weighted.weight * product) ** 2
    return np.maximum(2 + kurtosis, _LEAST_SPREAD)


@np.errstate(divide="ignore", invalid="ignore")
def _chi_square(statistic: Floats, mean: Floats, variance: Floats) -> Floats:
    """Probability of more than the statistic under the scaled chi-square distribution with a mean and a variance."""
    degrees = 2 * mean**2 / variance
    return np.where(np.isinf(statistic), 0.0, chdtrc(degrees, statistic * degrees / mean))


_ROUNDING = 1e-12  # sums of decimals that are 0 but for their last digits
_LEAST_SPREAD = 0.01
