"""Bins of probabilities: where they lie, the sums over their rows, calibration errors, and the Brier score in parts."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import polars as pl
import scipy

from ...base.columns import add_up, runs
from ...base.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray


Binning: TypeAlias = Literal["quantile", "width"]
BINNINGS: tuple[Binning, ...] = get_args(Binning)
BINNING, BIN = "binning", "bin"
LOWER, UPPER = "score_lower", "score_upper"


def bins_of_cells(cells: pl.DataFrame, keys: Sequence[str], edges: tuple[str, str], count: int) -> pl.DataFrame:
    """Which bin every cell of every group lies in, by either binning.

    By width, bin k of K holds the scores above (k - 1) / K up to k / K, the first also 0 (Guo et al. 2017). By
    quantile, the upper edge of bin k is the upper edge of the cell of the row with the rank ⌊k (n - 1) / K⌋, counted
    from 0, so that rows of one cell stay together; where two edges fall into one cell there is one bin fewer. With a
    cell for every score these are the edges of NumPy's lower quantiles, and the bins those of scikit-learn's
    `calibration_curve`.

    Args:
        cells: One row per group and cell, with `n`, the number of its rows, and any other columns.
        keys: Columns that identify a group.
        edges: Columns of the lower and the upper edge of a cell; a cell holds its upper edge.
        count: K.

    Returns:
        The columns of the cells, `binning` and `bin`, which counts from 1: a row for each cell and binning.
    """
    lower, upper = edges
    with_rows = cells.filter(pl.col("n") > 0) if (cells["n"] <= 0).any() else cells
    in_order = with_rows.sort([*keys, upper, lower])
    inner = [number / count for number in range(1, count)]
    by_width = pl.Series(np.searchsorted(inner, in_order[upper].to_numpy()) + 1, dtype=pl.Int64)
    by_quantile = _by_quantile(in_order, keys, count)
    return pl.concat(
        in_order.hstack([pl.Series(BINNING, [binning]).new_from_index(0, in_order.height), bins.alias(BIN)])
        for binning, bins in (("quantile", by_quantile), ("width", by_width))
    )


def _by_quantile(in_order: pl.DataFrame, keys: Sequence[str], count: int) -> pl.Series:
    """The bin of every cell, of cells in order: one more than the cells below it that hold an upper edge."""
    n = in_order["n"].to_numpy()
    starts = np.flatnonzero(np.diff(runs(in_order, keys), prepend=-1))
    sizes = np.diff(starts, append=len(n))

    def below(values: Ints) -> Ints:
        """The sum of the cells of the group that are lower."""
        sums = values.cumsum() - values
        return sums - np.repeat(sums[starts], sizes)

    rows_below = below(n)
    gaps = np.repeat(np.maximum(np.add.reduceat(n, starts) - 1, 1) if len(n) else n, sizes)

    def edges_among(rows: Ints) -> Ints:
        """How many of the ranks ⌊k gaps / K⌋, k from 1 to K - 1, are among the lowest rows of a group."""
        return np.asarray(np.clip((count * rows - 1) // gaps, 0, count - 1))

    is_edge = edges_among(rows_below + n) > edges_among(rows_below)
    return pl.Series(below(is_edge.astype(np.int64)) + 1, dtype=pl.Int64)


def summed(sums: pl.DataFrame, bins: pl.DataFrame, by: Sequence[str], edges: tuple[str, str]) -> pl.DataFrame:
    """Sums by bin of what is known by cell; decimals are added exactly.

    Args:
        sums: One row per group, cell and perhaps replicate: columns of keys, `edges`, and sums.
        bins: As from `bins_of_cells`.
        by: Columns that rows are summed by, beside binning and bin; those of the keys among them.
        edges: Columns of the edges of a cell.
    """
    keys = [name for name in bins.columns if name not in {*edges, BINNING, BIN}]
    values = [name for name in sums.columns if name not in {*by, *keys, *edges}]
    joined = bins.join(sums, on=[*keys, *edges], how="inner", nulls_equal=True)
    return add_up(joined, [*by, BINNING, BIN], values)


# Neighbouring bins put together until each holds enough to be tested.
#
# Where hardly a true row is expected, or hardly a false one, the squared surplus of a bin over its variance is next
# to nothing in nearly all samples and huge in the others. Its mean is 1 all the same, so that no chi-square
# distribution with the mean and the variance of such terms has their tails: a sum of terms that all are as small as
# they mostly are lies far out in it. Bins are therefore pooled until the variance of their number of true rows is
# `_LEAST`, by their scores alone.


Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"

_LEAST = 5.0


def pooled(variance: Floats, starts: Ints) -> tuple[Ints, Ints]:
    """Pools of neighbouring bins.

    From the lowest score on bins join a pool until it has enough; what is left at the end joins the pool before it.

    Args:
        variance: Variance of the number of true rows in each bin, bins of one group one after the other, shape (N,).
        starts: Index of the first bin of every group, rising.

    Returns:
        Index of the first bin of every pool, and index of the first pool of every group. A group has one pool at least,
        and that one may have less than enough.
    """
    sizes = np.diff(np.append(starts, len(variance)))
    begins = np.zeros(len(variance), dtype=np.bool_)
    held = np.full(len(starts), np.inf)
    for number in range(int(sizes.max(initial=0))):
        has_bin = number < sizes
        bins, is_full = starts[has_bin] + number, held[has_bin] >= _LEAST
        begins[bins] = is_full
        held[has_bin] = np.where(is_full, 0.0, held[has_bin]) + variance[bins]
    latest = np.maximum.reduceat(np.where(begins, np.arange(len(variance)), -1), starts)
    begins[latest[(held < _LEAST) & (latest > starts)]] = False
    pools = np.flatnonzero(begins)
    return pools, np.searchsorted(pools, starts)


# Sums over rows of which only the cell of the score is known: midpoints of certified bounds.
#
# A cell holds so many positives and negatives, and its lowest and its highest score. A term of a row lies between
# what it is at one and at the other, because it rises or falls with the score. The sum of the midpoints is then
# nowhere farther from the sum of the terms than the sum of half their distances, called *open* here. All of it is for
# scores from 0 to 1.


NEAREST = 1e-15  # a probability nearer to 0 or 1 counts as so far away
_ROUNDING = 4e-15  # of a term, in proportion to it, and of what is added for it in 15 decimals


@dataclass(frozen=True)
class Cells:
    """Rows in cells; all arrays have one shape."""

    positive: Floats  # number of rows with a true label
    negative: Floats  # number of the others
    lowest: Floats  # lowest score, from 0 to 1
    highest: Floats  # highest score

    def losses(self) -> dict[str, Floats]:
        """Sums of logarithms of the likelihood, of their squares, and of squared errors, and what is open of them."""
        ends = [np.clip(each, NEAREST, 1 - NEAREST) for each in (self.lowest, self.highest)]
        positive, negative = _between(*map(np.log, ends)), _between(*(np.log(1 - each) for each in ends))
        first, first_open = self._total(positive, negative)
        second, _ = self._total((positive[0] ** 2, 0.0), (negative[0] ** 2, 0.0))
        of_positives = _between(*((1 - each) ** 2 for each in (self.lowest, self.highest)))
        errors, errors_open = self._total(of_positives, _between(self.lowest**2, self.highest**2))
        return {
            "first": first,
            "first_open": first_open,
            "second": second,
            "squared_errors": errors,
            "squared_errors_open": errors_open,
        }

    def moments(self) -> dict[str, Floats]:
        """Sums that tables of calibration are made of, with half of what is open of the scores."""
        score, squares = _between(self.lowest, self.highest), _between(self.lowest**2, self.highest**2)
        scores, scores_open = self._total(score, score)
        slope = 1 - 2 * score[0]
        rows = self.positive + self.negative
        return {
            "scores": scores,
            "scores_open": scores_open,
            "scores_positive": self.positive * score[0],
            "score_squares": rows * squares[0],
            "test_variance": rows * slope**2 * score[0] * (1 - score[0]),
        }

    def _total(
        self, positive: tuple[Floats, Floats | float], negative: tuple[Floats, Floats | float]
    ) -> tuple[Floats, Floats]:
        """The sum over the rows of a cell of midpoints, and of half distances, widened by what rounding can do."""
        total = self.positive * positive[0] + self.negative * negative[0]
        left = self.positive * positive[1] + self.negative * negative[1]
        return total, left + _ROUNDING * (self.positive + self.negative + np.abs(total))


def _between(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Midpoint and half the distance of two ends."""
    return (one + other) / 2, np.abs(other - one) / 2


@dataclass(frozen=True)
class Moments:
    """Sums over rows of the score s and the label y, each row with a weight v; arrays of one shape.

    Attributes:
        weight: Σ v.
        hits: Σ v y.
        scores: Σ v s.
        hit_scores: Σ v s y.
        squares: Σ v s².
        in_time: Whether these are sums of replicates, on axis 0, that follow each other in time.
    """

    weight: Floats
    hits: Floats
    scores: Floats
    hit_scores: Floats
    squares: Floats
    in_time: bool = field(default=False, kw_only=True)

    @property
    def surplus(self) -> Floats:
        """Sum of v (y - s): by how much true rows exceed what the scores say."""
        return self.hits - self.scores

    @property
    def squared_errors(self) -> Floats:
        """Sum of v (y - s)²."""
        return self.hits - 2 * self.hit_scores + self.squares

    @property
    def expected_variance(self) -> Floats:
        """Sum of v s (1 - s): the variance of the number of true rows, v being 1, if scores are their probabilities."""
        return self.scores - self.squares

    @property
    def test_sum(self) -> Floats:
        """Sum of v (y - s) (1 - 2 s), whose expected value is 0 if scores are probabilities (Spiegelhalter 1986)."""
        return self.hits - self.scores - 2 * self.hit_scores + 2 * self.squares

    def over_bins(self) -> Moments:
        """The sums over all bins, the last axis, which has one entry then."""
        return self._each(lambda values: values.sum(axis=-1, keepdims=True))

    def of_groups(self, starts: Ints) -> Moments:
        """The sums over the bins of every group, which begin at `starts`."""
        return self._each(lambda values: np.add.reduceat(values, starts, axis=-1))

    def _each(self, function: Callable[[Floats], Floats]) -> Moments:
        """A function of every sum."""
        sums = (self.weight, self.hits, self.scores, self.hit_scores, self.squares)
        return Moments(*map(function, sums), in_time=self.in_time)


@dataclass(frozen=True)
class BinSums:
    """Sums over the rows of bins.

    Attributes:
        rows: Number of rows with a weight above 0.
        weighted: With the weight of each row.
        heavy: With the squared weight of each row; without weights the same.
        test_variance: Variance of the `test_sum` of independent rows: without weights what scores say, with them what
            labels show.
        test_expected: With weights what scores say, of true and of false rows: sums of v s (1 - s)² (1 - 2 s)² and of
            v s² (1 - s) (1 - 2 s)², to be multiplied by the mean weights of the two. Without weights `test_variance`
            and nothing.
        is_weighted: Whether rows have weights.
    """

    rows: Floats
    weighted: Moments
    heavy: Moments
    test_variance: Floats
    test_expected: tuple[Floats, Floats]
    is_weighted: bool

    @property
    @np.errstate(divide="ignore", invalid="ignore")
    def share(self) -> Floats:
        """Share of true rows; nan without a row."""
        return self.weighted.hits / self.weighted.weight

    @property
    @np.errstate(divide="ignore", invalid="ignore")
    def mean_score(self) -> Floats:
        """Mean score; nan without a row."""
        return self.weighted.scores / self.weighted.weight

    @property
    @np.errstate(divide="ignore", invalid="ignore")
    def gap(self) -> Floats:
        """Share of true rows less mean score."""
        return self.weighted.surplus / self.weighted.weight

    @property
    def variance_of_share(self) -> Floats:
        """Variance of the share where rows are independent; nan for fewer than two rows."""
        return self._variance(self.share, self.heavy.hits, self.heavy.hits)

    @property
    def variance_of_gap(self) -> Floats:
        """Variance of the gap where rows are independent; nan for fewer than two rows."""
        return self._variance(self.gap, self.heavy.surplus, self.heavy.squared_errors)

    @np.errstate(divide="ignore", invalid="ignore")
    def _variance(self, mean: Floats, first: Floats, second: Floats) -> Floats:
        """M / (m - 1) × Σ w² (x - mean)² / (Σ w)² from Σ w² x and Σ w² x², with m effective rows (Kish 1965)."""
        spread = np.maximum(second - 2 * mean * first + mean**2 * self.heavy.weight, 0.0)
        size = self.weighted.weight**2 / self.heavy.weight
        factor = np.where(self.rows > 1, size / (size - 1), np.nan)
        return np.asarray(factor * spread / self.weighted.weight**2)

    def of_groups(self, starts: Ints) -> BinSums:
        """The sums over the bins of every group, which begin at `starts`."""
        rows, test_variance, *expected = (
            np.add.reduceat(values, starts) for values in (self.rows, self.test_variance, *self.test_expected)
        )
        weighted, heavy = self.weighted.of_groups(starts), self.heavy.of_groups(starts)
        return BinSums(rows, weighted, heavy, test_variance, (expected[0], expected[1]), self.is_weighted)

    @np.errstate(divide="ignore", invalid="ignore")
    def variance_if_calibrated(self, starts: Ints) -> Floats:
        """Variance of the `surplus` of independent rows whose scores are probabilities.

        A label of probability s adds w (1 - s) if it is true, and takes away w s if it is not. Weights may depend on
        the label, as where few of the false rows were sampled: with the mean weights u and v of the two classes of the
        group the variance is Σ w s (1 - s) (u (1 - s) + v s), here with the mean score of the bin in the brackets.

        Args:
            starts: Index of the first bin of every group, rising.
        """
        if not self.is_weighted:
            return self.weighted.expected_variance
        group, mean = group_of_bins(starts, len(self.rows)), self.mean_score
        positive, negative = (weights[group] for weights in self.of_groups(starts).mean_weights)
        return self.weighted.expected_variance * (positive * (1 - mean) + negative * mean)

    def test_variance_if_calibrated(self) -> Floats:
        """Variance of the `test_sum` of independent rows of a whole group whose scores are probabilities."""
        if not self.is_weighted:
            return self.test_variance
        positive, negative = self.mean_weights
        return positive * self.test_expected[0] + negative * self.test_expected[1]

    @property
    @np.errstate(divide="ignore", invalid="ignore")
    def mean_weights(self) -> tuple[Floats, Floats]:
        """Mean weight of true and of false rows, each counted by its weight; a side without rows has the other's."""
        weighted, heavy = self.weighted, self.heavy
        positive = heavy.hits / weighted.hits
        negative = (heavy.weight - heavy.hits) / (weighted.weight - weighted.hits)
        either = np.fmax(positive, negative)
        return np.where(np.isnan(positive), either, positive), np.where(np.isnan(negative), either, negative)


def group_of_bins(starts: Ints, count: int) -> Ints:
    """Number of the group of every one of so many bins; those of each group begin at `starts`."""
    return np.repeat(np.arange(len(starts)), np.diff([*starts, count]))


# Calibration errors, and the Brier score in parts, of many groups at once.
#
# With the share of true rows ȳ_k, the mean score s̄_k and the share q_k of all rows in bin k, and ȳ of all rows:
#
#     ece         = Σ q_k |ȳ_k - s̄_k|                                   (expected calibration error: Naeini et al. 2015)
#     reliability = Σ q_k (ȳ_k - s̄_k)²,  resolution = Σ q_k (ȳ_k - ȳ)²,  uncertainty = ȳ (1 - ȳ)          (Murphy 1973)
#     the Brier score is reliability - resolution + uncertainty + within_bin_variance - within_bin_covariance
#                                                                           (Stephenson, Coelho & Jolliffe 2008)
#
# Errors of noisy shares are too large on average, also of perfect scores. Three numbers say by how much:
#
# - `ece_if_calibrated`: the mean of the ECE of scores that are probabilities. The number of true rows in a bin is then
#   about binomial; its mean absolute deviation is de Moivre's, of as many rows as would have the variance.
# - `ece_debiased`: less what noise of the size of the standard errors adds to the gaps that were seen, that is by how
#   much E|N(d, v)| exceeds |d| (the parametric bootstrap of Kumar, Liang & Ma 2019, in closed form).
# - `reliability_debiased` and its sisters: less the estimated variances, which makes them unbiased (Bröcker 2012; Ferro
#   & Fricker 2012). The variance of a gap is that of y - s, and what it differs from that of y goes to the terms within
#   bins, so that the sum is the Brier score again.


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
    """Sampling variances; nan where they are not known."""

    share: Floats  # of the share of true rows in every bin, shape (N,)
    gap: Floats  # of its gap to the mean score, likewise
    gap_if_calibrated: Floats  # the same if scores are probabilities, likewise
    prevalence: Floats  # of the share of true rows in every group, shape (groups,)


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
    """Variances; a bin with one row or replicate shows none and has the variance of labels at its mean score."""
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
