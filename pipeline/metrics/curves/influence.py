"""Standard errors of areas from the influence of every row, which is how much the row shifts the area.

An area A is a function of two distributions, of the scores of positives and of the scores of negatives. A row of score
x in class c shifts it by (ψ_c(x) - mean of ψ_c) / W_c, where W_c is the weight of the class. The variance of A is the
sum of squares of these shifts (von Mises 1947; Hampel 1974; for the area under the ROC curve: DeLong, DeLong &
Clarke-Pearson 1988). Rows of one cluster shift it together, so that their shifts are summed before they are squared,
and divided by what the class keeps without the cluster: then they are the shifts of leaving the cluster out.

A variance to which only a few rows or clusters contribute is itself uncertain. Its degrees of freedom, for quantiles of
Student's t, come from the fourth moment of the shifts: 2 V² / Var(V) (Satterthwaite 1946).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from ..uncertainty.bootstrap import area_quantiles
from ..uncertainty.clusters import Spread, combined_spread, effective_number, spread_of_shifts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..uncertainty.resampling import Resampling

Floats: TypeAlias = "NDArray[np.float64]"

_TWO = 2
_NORMAL_KURTOSIS = 3.0
_UNSEEN_TAILS = 3.0  # by which what the kurtosis of few rows exceeds the normal one is multiplied
_FEWEST_DEGREES = 3.0
_ROUNDING = 1e-12  # a class of which a replicate holds all but this share has no weight without it


@dataclass(frozen=True)
class ClassMoments:
    """Sums over the rows of one class; all arrays have the shape of the areas.

    Attributes:
        rows: Number of rows.
        weight: Sum of the weights w; without weights, the number of rows.
        squares: Sum of w².
        first: Sum of w ψ.
        weighted: Sum of w² ψ.
        second: Sum of w² ψ².
        third: Sum of w² ψ³; None if degrees of freedom are not needed.
        fourth: Sum of w² ψ⁴; None likewise.
    """

    rows: Floats
    weight: Floats
    squares: Floats
    first: Floats
    weighted: Floats
    second: Floats
    third: Floats | None = None
    fourth: Floats | None = None

    @property
    def mean(self) -> Floats:
        """Mean influence; nan for an empty class."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return self.first / self.weight

    @property
    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def variance(self) -> Floats:
        """Contribution of the class to the variance of the area: rows / (rows - 1) × Σ w² (ψ - mean)² / W².

        It is nan for fewer than two rows, because a single value has no spread.
        """
        spread = self.second - 2 * self.mean * self.weighted + self.mean**2 * self.squares
        factor = np.where(self.rows >= _TWO, self.rows / (self.rows - 1), np.nan)
        return np.asarray(factor * np.maximum(spread, 0.0) / self.weight**2)

    @property
    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def kurtosis(self) -> Floats:
        """Kurtosis of ψ: fourth central moment over the squared second one, weighted by w²; at least the normal 3.

        Few rows give values that are too low; a value below the normal one would claim more certainty than they allow.

        Raises:
            ValueError: the third and fourth sums are missing.
        """
        if self.third is None or self.fourth is None:
            message = "the kurtosis needs the sums of third and fourth powers"
            raise ValueError(message)
        # central moments from the raw ones
        mean = self.mean
        second = self.second - 2 * mean * self.weighted + mean**2 * self.squares
        fourth = self.fourth - 4 * mean * self.third + 6 * mean**2 * self.second
        fourth = fourth - 4 * mean**3 * self.weighted + mean**4 * self.squares
        kurtosis = fourth * self.squares / second**2
        return np.fmax(np.where(second > 0, kurtosis, _NORMAL_KURTOSIS), _NORMAL_KURTOSIS)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def variance_of_rows(positives: ClassMoments, negatives: ClassMoments, slope: Floats, *, random_sizes: bool) -> Floats:
    """Variance of areas where rows are independent.

    Args:
        positives: Moments of the rows with a true label.
        negatives: Moments of the other rows.
        slope: Derivative of the area with respect to the logit of the share of positives.
        random_sizes: Whether another sample would have different numbers of positives and negatives. If so, the
            variance due to the share of positives is added: slope² × (1 / P + 1 / N).
    """
    sizes = slope**2 * (_inverse_size(positives) + _inverse_size(negatives))
    variance = positives.variance + np.where(negatives.rows > 0, negatives.variance, 0.0)
    return variance + (sizes if random_sizes else 0.0)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def degrees_of_rows(positives: ClassMoments, negatives: ClassMoments, variance: Floats) -> Floats:
    """Degrees of freedom of `variance_of_rows`.

    Satterthwaite (1946, eq. 17) with Var(V_c) = V_c² (kurtosis_c - 1) / (n_c - 1), where n_c is the effective number of
    rows of class c (Kish 1965). For normal influences this is Welch's (1947) rule. Long tails give fewer degrees, but
    never fewer than 3, or than Welch's rule if that gives less. Few rows seldom show their tails, so that what their
    kurtosis exceeds the normal one by is taken three times; measured in `benchmarks/coverage_of_areas.py`.

    Args:
        positives: Moments of the rows with a true label, with third and fourth powers.
        negatives: Moments of the other rows.
        variance: Result of `variance_of_rows`.

    Returns:
        An array of the shape of the areas, at least 1; the number of rows minus two where nothing varies.
    """
    uncertain, normal = np.zeros_like(variance), np.zeros_like(variance)
    for moments in (positives, negatives):
        size = np.where(moments.rows > 0, moments.weight**2 / moments.squares, 0.0)
        per_degree = np.where(moments.rows > 0, moments.variance**2 / np.maximum(size - 1, 1.0), 0.0)
        kurtosis = _NORMAL_KURTOSIS + _UNSEEN_TAILS * (moments.kurtosis - _NORMAL_KURTOSIS)
        uncertain = uncertain + per_degree * (kurtosis - 1)
        normal = normal + per_degree * (_NORMAL_KURTOSIS - 1)
    degrees, welch = 2 * variance**2 / uncertain, 2 * variance**2 / normal
    degrees = np.maximum(degrees, np.minimum(_FEWEST_DEGREES, welch))
    rows = positives.rows + negatives.rows - _TWO
    return np.maximum(np.where(uncertain > 0, degrees, rows), 1.0)


def _inverse_size(moments: ClassMoments) -> Floats:
    """Reciprocal of the effective number of rows; 0 for an empty class, whose share does not vary."""
    return np.where(moments.rows > 0, moments.squares / moments.weight**2, 0.0)


@dataclass(frozen=True)
class Shifts:
    """How far each replicate, a group of clusters, moves areas.

    Attributes:
        values: Shape (G, …): by how much an area is higher with the replicate than without it.
        has_rows: Shape (G, …): whether the replicate has any row, with a weight above 0.
        effective: Effective number of replicates, of the shape of the areas.
        in_time: Whether replicates follow each other in time.
    """

    values: Floats
    has_rows: NDArray[np.bool_]
    effective: Floats
    in_time: bool = False

    @property
    def spread(self) -> Spread:
        """Sampling error of the areas."""
        number = self.has_rows.sum(axis=0).astype(np.float64)
        return spread_of_shifts(self.values, self.effective, number, in_time=self.in_time)

    def quantiles(self, areas: Floats, confidence: float, resampling: Resampling) -> tuple[Floats, Floats]:
        """Quantiles of the bootstrap of areas of shape (groups,), see `bootstrap.area_quantiles`."""
        rows = [
            area_quantiles(self.values[self.has_rows[:, group], group], area, confidence, resampling)
            for group, area in enumerate(areas.tolist())
        ]
        low, high = np.array(rows, dtype=np.float64).reshape(-1, _TWO).T
        return low, high


def spread_of_clusters(
    weights: tuple[Floats, Floats], influences: tuple[Floats, Floats], slope: Floats | float, *, in_time: bool = False
) -> Spread:
    """Variance, degrees of freedom and skewness as in `clusters` of areas, see `shifts_of_clusters`."""
    return shifts_of_clusters(weights, influences, slope, in_time=in_time).spread


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def shifts_of_clusters(
    weights: tuple[Floats, Floats], influences: tuple[Floats, Floats], slope: Floats | float, *, in_time: bool = False
) -> Shifts:
    """What moves areas where only the replicates, groups of clusters, are independent.

    The number of positives and of negatives differs between clusters, so their spread always counts. What a replicate
    shifts in a class of which it holds the share h is divided by 1 - h: so far the area moves, to first order, if the
    replicate is left out (CR3: MacKinnon & White 1985; Bell & McCaffrey 2002). The variance is (G - 1) / G × Σ z_g²,
    where G replicates have data: the jackknife's, and for equal shares exactly G / (G - 1) × the sum of squares of the
    undivided shifts.

    Args:
        weights: Weight of the positives and of the negatives in each replicate, shape (G, …).
        influences: Sum of w ψ of the positives and of the negatives in each replicate, shape (G, …).
        slope: As for `variance_of_rows`, of a shape without G.
        in_time: Whether replicates follow each other in time.

    Returns:
        The shifts; the variance of their spread is nan for one replicate. The effective number of clusters is that of
        the class which has fewer.
    """
    shifts = np.zeros(np.broadcast_shapes(weights[0].shape, np.shape(slope)))
    effective = np.full(shifts.shape[1:], np.inf)
    for weight, influence, sign in zip(weights, influences, (1.0, -1.0), strict=True):
        total = weight.sum(axis=0)
        # what the replicate shifts: its centred influences, and its part in the share of positives
        centred = influence - weight * (influence.sum(axis=0) / total) + sign * slope * weight
        # without the replicate the class has 1 - h of its weight; if that is nothing, no area is left to compare with
        others = np.where(total - weight > _ROUNDING * total, total - weight, total)
        shifts = shifts + np.where(total > 0, centred / others, 0.0)
        effective = np.fmin(effective, effective_number(weight))
    return Shifts(shifts, (weights[0] + weights[1]) > 0, effective, in_time)


def variance_of_means(
    values: Floats, weights: Floats, *crossed: tuple[Floats, Floats], in_time: bool = False
) -> Floats:
    """Variance of a weighted mean where only replicates are independent.

    Args:
        values: Shape (G, …): sum of w x in each replicate.
        weights: Shape (G, …): sum of w in each replicate.
        crossed: The same two by the second parent of rows that have two, and by the intersections of both.
        in_time: Whether replicates follow each other in time.

    Returns:
        That of the delete-a-group jackknife about the mean, see `spread_of_clusters`; nan for one replicate.
    """
    spreads = []
    for sums, sizes in ((values, weights), *crossed):
        nothing = np.zeros_like(sizes)
        spreads.append(spread_of_clusters((sizes, nothing), (sums, nothing), 0.0, in_time=in_time))
    return combined_spread(spreads).variance
