"""Calibration errors, and the Brier score in parts, of many groups at once.

With the share of true rows ȳ_k, the mean score s̄_k and the share q_k of all rows in bin k, and ȳ of all rows:

    ece         = Σ q_k |ȳ_k - s̄_k|                                     (expected calibration error: Naeini et al. 2015)
    reliability = Σ q_k (ȳ_k - s̄_k)²,  resolution = Σ q_k (ȳ_k - ȳ)²,  uncertainty = ȳ (1 - ȳ)          (Murphy 1973)
    brier       = reliability - resolution + uncertainty + within_bin_variance - within_bin_covariance
                                                                          (Stephenson, Coelho & Jolliffe 2008)

Errors of noisy shares are too large on average, also of perfect scores. Three numbers say by how much:

- `ece_if_calibrated`: the mean of the ECE of scores that are probabilities. The number of true rows in a bin is then
  about binomial; its mean absolute deviation is de Moivre's, of as many rows as would have the variance.
- `ece_debiased`: less what noise of the size of the standard errors adds to the gaps that were seen, that is by how
  much E|N(d, v)| exceeds |d| (the parametric bootstrap of Kumar, Liang & Ma 2019, in closed form).
- `reliability_debiased` and its sisters: less the estimated variances, which makes them unbiased (Bröcker 2012; Ferro &
  Fricker 2012). The variance of a gap is that of y - s, and what it differs from that of y goes to the terms within
  bins, so that the sum is the Brier score again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import scipy

from ...records import dataclass
from .bins import group_of_bins

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .bins import BinSums

Floats: TypeAlias = "NDArray[np.float64]"
ERRORS = (
    "ece",
    "ece_if_calibrated",
    "ece_debiased",
    "mce",
    "brier",
    "reliability",
    "resolution",
    "uncertainty",
    "within_bin_variance",
    "within_bin_covariance",
    "reliability_debiased",
    "resolution_debiased",
    "uncertainty_debiased",
)


@dataclass(frozen=True)
class Variances:
    """Sampling variances; nan where they are not known.

    Attributes:
        share: Of the share of true rows in every bin, shape (N,).
        gap: Of its gap to the mean score, likewise.
        gap_if_calibrated: The same if scores are probabilities, likewise.
        prevalence: Of the share of true rows in every group, shape (groups,).
    """

    share: Floats
    gap: Floats
    gap_if_calibrated: Floats
    prevalence: Floats


@np.errstate(divide="ignore", invalid="ignore")
def calibration_errors(sums: BinSums, variances: Variances, starts: NDArray[np.int64]) -> dict[str, Floats]:
    """The numbers of `ERRORS` of every group.

    Args:
        sums: Of bins with a weight above 0, those of one group one after the other, shape (N,).
        variances: Of these bins and groups.
        starts: Index of the first bin of every group, rising; there is one.
    """
    moments, share, mean, gap = sums.weighted, sums.share, sums.mean_score, sums.gap
    group = group_of_bins(starts, len(gap))

    def total(values: Floats) -> Floats:
        return np.add.reduceat(values, starts)

    weight = total(moments.weight)
    size = moments.weight / weight[group]
    prevalence = total(moments.hits) / weight
    of_gap, of_share = (_known(values, sums) for values in (variances.gap, variances.share))
    reliability, resolution = total(size * gap**2), total(size * (share - prevalence[group]) ** 2)
    uncertainty, excess = prevalence * (1 - prevalence), np.nan_to_num(variances.prevalence)
    return {
        "ece": total(size * np.abs(gap)),
        "ece_if_calibrated": total(size * _deviation(mean, variances.gap_if_calibrated)),
        "ece_debiased": total(size * (np.abs(gap) - _added_by_noise(gap, of_gap))),
        "mce": np.maximum.reduceat(np.abs(gap), starts),
        "brier": total(moments.squared_errors) / weight,
        "reliability": reliability,
        "resolution": resolution,
        "uncertainty": uncertainty,
        # decimals of scores are rounded: of equal scores the variance is 0 but for these
        "within_bin_variance": np.maximum(total(moments.squares - moments.scores * mean) / weight, 0.0),
        "within_bin_covariance": 2 * total(moments.hit_scores - moments.scores * share) / weight + 0.0,
        "reliability_debiased": reliability - total(size * of_gap),
        "resolution_debiased": resolution - total(size * of_share) + excess,
        "uncertainty_debiased": uncertainty + excess,
    }


def _known(variances: Floats, sums: BinSums) -> Floats:
    """Variances; of a bin with a single row or replicate, which shows none, that of labels with the mean score."""
    mean = sums.mean_score
    return np.where(np.isnan(variances), mean * (1 - mean) * sums.heavy.weight / sums.weighted.weight**2, variances)


@np.errstate(divide="ignore", invalid="ignore")
def _deviation(mean: Floats, variance: Floats) -> Floats:
    """Mean absolute deviation of a binomial share with this mean and this variance; of no variance 0.

    De Moivre: E|X - n p| = 2 ν (1 - p) P(X = ν) with ν = ⌊n p⌋ + 1, for p up to 1/2; here n need not be whole.
    """
    rare = np.minimum(mean, 1 - mean)
    size = rare * (1 - rare) / variance
    above = np.floor(size * rare) + 1
    ways = scipy.special.gammaln(size + 1) - scipy.special.gammaln(above + 1) - scipy.special.gammaln(size - above + 1)
    probability = np.exp(ways + scipy.special.xlogy(above, rare) + scipy.special.xlog1py(size - above, -rare))
    return np.where((variance > 0) & (rare > 0), 2 * above * (1 - rare) * probability / size, 0.0)


@np.errstate(divide="ignore", invalid="ignore")
def _added_by_noise(gap: Floats, variance: Floats) -> Floats:
    """By how much E|N(gap, variance)| exceeds |gap|."""
    error = np.sqrt(variance)
    ratio = np.where(error > 0, np.abs(gap) / error, np.inf)
    return np.asarray(
        error * np.sqrt(2 / np.pi) * np.exp(-(ratio**2) / 2) - 2 * np.abs(gap) * scipy.special.ndtr(-ratio)
    )
