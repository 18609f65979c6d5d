"""Contributions of units to areas: values whose plain mean is the area, and whose spread is its sampling error.

An area is no mean over units, since what a row adds to it depends on all others. To first order it is one: leaving a
unit out shifts the area by the influences of its rows. With n units, and z_u the shift of unit u, the pseudo-values

    v_u = area + (n - 1) (z_u - mean of z)

have the area as their mean (Tukey 1958; Efron & Stein 1981), and sd(v) / √n is its standard error. For rows that are
independent and z from the von Mises expansion of the area under the ROC curve it is that of DeLong, DeLong &
Clarke-Pearson (1988), and the paired t statistic of the values of two systems is the statistic of their test.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from ...records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"
Pair: TypeAlias = "tuple[Floats, Floats]"  # of the positives and of the negatives
Independent = Literal["rows", "clusters"]

_FEWEST_UNITS = 2  # a spread needs two
_ROUNDING = 1e-12  # a class of which a unit holds all but this share has no weight without it


@dataclass(frozen=True)
class UnitSums:
    """Sums over the rows of units; arrays of shape (units,).

    Attributes:
        group: Index of the group.
        weights: Weight of the positives and of the negatives.
        influences: Sum of w ψ of the positives and of the negatives.
    """

    group: Integers
    weights: Pair
    influences: Pair


@np.errstate(divide="ignore", invalid="ignore")
def contributions(sums: UnitSums, area: Floats, slope: Floats, independent: Independent) -> Floats:
    """Contributions of units to an area.

    What a unit shifts in a class of which it holds the share h is divided by 1 - h for clusters, so far moves the area
    if the cluster is left out (`influence.shifts_of_clusters`), and by √(1 - h) for rows, which gives each class of n
    rows the factor n / (n - 1) of `influence.variance_of_rows`.

    Args:
        sums: Of the units.
        area: Shape (groups,): the areas; nan where undefined.
        slope: Shape (groups,): derivative of the area with respect to the logit of the share of positives; 0: the
            numbers of positives and of negatives would be the same in another sample.
        independent: What is: units that are single rows, or clusters of them.

    Returns:
        Shape (units,); nan for a unit without weight, and in a group in which fewer than two units hold positives or a
        single one holds negatives: then nothing tells how much others would differ.
    """
    size = len(area)
    has_weight = (sums.weights[0] + sums.weights[1]) > 0
    holders = [_per_group(sums.group, weight > 0, size) for weight in sums.weights]
    shifts = np.zeros(len(sums.group))
    for weight, influence, sign in zip(sums.weights, sums.influences, (1.0, -1.0), strict=True):
        total, mean = (_per_group(sums.group, values, size) for values in (weight, influence))
        mean = np.where(total > 0, mean / total, 0.0)
        all_of_class = total[sums.group]
        others = np.where(all_of_class - weight > _ROUNDING * all_of_class, all_of_class - weight, all_of_class)
        centred = influence - weight * (mean - sign * slope)[sums.group]
        left = others if independent == "clusters" else np.sqrt(all_of_class * others)
        shifts += np.where(weight > 0, centred / left, 0.0)
    number = _per_group(sums.group, has_weight, size)
    scale = number - 1 if independent == "clusters" else np.sqrt(number * (number - 1))
    centred = shifts - (_per_group(sums.group, shifts, size) / number)[sums.group]
    is_known = (holders[0] >= _FEWEST_UNITS) & (holders[1] != 1)
    values = np.where(is_known, area, np.nan)[sums.group] + scale[sums.group] * centred
    return np.where(has_weight, values, np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def ratio_contributions(group: Integers, values: Floats, weights: Floats, size: int) -> Floats:
    """Contributions of units to a ratio of sums, such as the cost per row, from the ratio without each of them.

    The pseudo-values R + (n - 1) (mean of R_u - R_u), with R_u the ratio without unit u, have R as their mean, and
    their spread is that of the delete-one jackknife (Tukey 1958). Of units of one weight they are the values over that
    weight.

    Args:
        group: Index of the group of each unit.
        values: Sum over the rows of each unit, of what the numerator adds up.
        weights: Weight of each unit, of which the denominator is the sum.
        size: Number of groups.

    Returns:
        Shape (units,); nan for a unit without weight, and in a group in which fewer than two units have one.
    """
    has_weight = weights > 0
    of_values, of_weights, number = (
        _per_group(group, np.where(has_weight, sums, 0.0), size) for sums in (values, weights, np.ones_like(weights))
    )
    without = (of_values[group] - values) / (of_weights[group] - weights)
    mean = _per_group(group, np.where(has_weight, without, 0.0), size) / number
    pseudo = (of_values / of_weights)[group] + (number[group] - 1) * (mean[group] - without)
    return np.where(has_weight & (number[group] >= _FEWEST_UNITS), pseudo, np.nan)


def _per_group(group: Integers, values: NDArray[np.float64] | NDArray[np.bool_], size: int) -> Floats:
    sums = np.bincount(group, weights=values.astype(np.float64), minlength=size)
    return np.asarray(sums, dtype=np.float64)
