"""What single units, such as documents, do to the errors: the errors without each of them, and its contribution.

The mean and the area under the log errors are numbers of all errors together. With n units, and A without unit u
written A_u, the pseudo-values

    v_u = A + (n - 1) (mean of A_u - A_u)

have A as their mean (Tukey 1958; Efron & Stein 1981), and sd(v) / √n is the standard error of the delete-one jackknife.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from .accuracy import FARTHEST_KM, error_statistics

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from .accuracy import Missing

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"

ERRORS = ("mean_km", "log_error_auc")
_FEWEST = 2  # errors that an area needs, and units that a spread needs


def error_contributions(unit: Integers, distances_km: Floats, *, missing: Missing = "exclude") -> dict[str, Floats]:
    """Contributions of the units of one group.

    Args:
        unit: Index of the unit of each gold toponym, from 0 without gaps, shape (n_gold,).
        distances_km: Its distance; nan where it was not located.
        missing: As for `accuracy.error_statistics`.

    Returns:
        Shape (units,) by name; nan for all units where the number is undefined, or would be without one of them.
    """
    statistics = error_statistics(distances_km, missing=missing)
    return {
        name: _pseudo_values(float(statistics[name]), errors_without(unit, distances_km, name, missing=missing))
        for name in ERRORS
    }


def errors_without(unit: Integers, distances_km: Floats, name: str, *, missing: Missing = "exclude") -> Floats:
    """The mean, the median or the area of the errors of all other units, for each unit of one group.

    Args:
        unit: As for `error_contributions`.
        distances_km: As for `error_contributions`.
        name: `mean_km`, `median_km` or `log_error_auc`.
        missing: As for `accuracy.error_statistics`.

    Returns:
        Shape (units,); nan where the other units alone have no such number.
    """
    number = int(unit.max(initial=-1)) + 1
    is_missing = np.isnan(distances_km)
    counts = np.ones_like(is_missing) if missing == "max_error" else ~is_missing
    errors, unit = np.where(is_missing, FARTHEST_KM, distances_km)[counts], unit[counts]
    return _WITHOUT[name](unit, errors, number)


def _pseudo_values(value: float, without: Floats) -> Floats:
    if len(without) < _FEWEST or not math.isfinite(value) or np.isnan(without).any():
        return np.full(len(without), np.nan)
    return np.asarray(value + (len(without) - 1) * (without.mean() - without))


@np.errstate(divide="ignore", invalid="ignore")
def _means_without(unit: Integers, errors: Floats, number: int) -> Floats:
    """Mean error without each unit in turn; nan where no error is left."""
    sums, counts = np.bincount(unit, errors, number), np.bincount(unit, minlength=number)
    left = len(errors) - counts
    return np.where(left > 0, (errors.sum() - sums) / left, np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def _areas_without(unit: Integers, errors: Floats, number: int) -> Floats:
    """Area under the log errors without each unit in turn; nan where fewer than two errors are left.

    The first and the last error count half: without a unit they are those of the others.
    """
    logs = np.log1p(errors)
    sums, counts = np.bincount(unit, logs, number), np.bincount(unit, minlength=number)
    ends = _lowest_without(unit, logs, number) - _lowest_without(unit, -logs, number)
    left = len(logs) - counts
    areas = (logs.sum() - sums - ends / 2) / (math.log(FARTHEST_KM + 1) * (left - 1))
    return np.where(left >= _FEWEST, areas, np.nan)


def _medians_without(unit: Integers, errors: Floats, number: int) -> Floats:
    """Median error without each unit in turn; nan where no error is left."""
    order = np.argsort(errors, kind="stable")
    ordered, ranks = errors[order], np.argsort(unit[order], kind="stable")
    of_unit = np.split(ranks, np.cumsum(np.bincount(unit, minlength=number))[:-1]) if number else []
    medians = np.full(number, np.nan)
    for number_of_unit, ranks_of_unit in enumerate(of_unit):
        left = len(errors) - len(ranks_of_unit)
        if left:
            before = ranks_of_unit - np.arange(len(ranks_of_unit))  # how many of the others lie before each of its own
            middle = [rank + int((before <= rank).sum()) for rank in ((left - 1) // 2, left // 2)]
            medians[number_of_unit] = ordered[middle].mean()
    return medians


def _lowest_without(unit: Integers, values: Floats, number: int) -> Floats:
    """The lowest value of the other units, for each unit: that of the first unit, but for itself that of the second."""
    lowest = np.full(number, np.inf)
    np.minimum.at(lowest, unit, values)
    if number < _FEWEST:
        return np.full(number, np.inf)
    first = int(lowest.argmin())
    others = np.full(number, lowest[first])
    others[first] = np.delete(lowest, first).min()
    return others


_WITHOUT: dict[str, Callable[[Integers, Floats, int], Floats]] = {
    "mean_km": _means_without,
    "median_km": _medians_without,
    "log_error_auc": _areas_without,
}
