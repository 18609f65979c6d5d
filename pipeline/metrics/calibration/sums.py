"""Sums over the rows of bins, and what follows from them: shares, mean scores, gaps and their variances."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from ..curves.influence import spread_of_clusters
from ..uncertainty.clusters import Spread, combined_spread

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Ints: TypeAlias = "NDArray[np.int64]"


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
        values = (each.sum(axis=-1, keepdims=True) for each in self._values)
        return Moments(*values, in_time=self.in_time)

    def of_groups(self, starts: Ints) -> Moments:
        """The sums over the bins of every group, which begin at `starts`."""
        values = (np.add.reduceat(each, starts, axis=-1) for each in self._values)
        return Moments(*values, in_time=self.in_time)

    @property
    def _values(self) -> tuple[Floats, ...]:
        return (self.weight, self.hits, self.scores, self.hit_scores, self.squares)


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
        """Return m / (m - 1) × Σ w² (x - mean)² / (Σ w)², with m effective rows (Kish 1965).

        Args:
            mean: Of x.
            first: Σ w² x.
            second: Σ w² x².
        """
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
        """Mean weight of true and of false rows, each counting with its weight; without rows that of the others."""
        weighted, heavy = self.weighted, self.heavy
        positive = heavy.hits / weighted.hits
        negative = (heavy.weight - heavy.hits) / (weighted.weight - weighted.hits)
        either = np.fmax(positive, negative)
        return np.where(np.isnan(positive), either, positive), np.where(np.isnan(negative), either, negative)


def group_of_bins(starts: Ints, count: int) -> Ints:
    """Number of the group of every bin.

    Args:
        starts: Index of the first bin of every group, rising.
        count: Number of bins.
    """
    return np.repeat(np.arange(len(starts)), np.diff([*starts, count]))


@np.errstate(divide="ignore", invalid="ignore")
def spread_of_means(sums: Callable[[Moments], Floats], clusterings: Sequence[Moments]) -> Spread:
    """Sampling error of a weighted mean where only replicates, groups of clusters, are independent.

    Args:
        sums: Sum of w x in each replicate.
        clusterings: Sums by replicate, on axis 0: of the one clustering, or of both parents and their intersections.
    """
    spreads = []
    for moments in clusterings:
        nothing, of_both = np.zeros_like(moments.weight), (sums(moments), np.zeros_like(moments.weight))
        spreads.append(spread_of_clusters((moments.weight, nothing), of_both, 0.0, in_time=moments.in_time))
    return combined_spread(spreads)
