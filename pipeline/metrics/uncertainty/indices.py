"""Limits of numbers of all four outcomes that are no shares, such as the Matthews correlation coefficient.

An index I(tp, fp, fn, tn) is a smooth function of counts that does not change when all of them are doubled. Of
independent rows, multinomial given their number, its variance is Σ n_i (∂I/∂n_i)² (the delta method; with weights Σ of
squared weights in the place of n_i). The derivatives are those of a complex step (Squire & Trapp 1998), exact but for
rounding, so that an index is stated by its formula alone. Half a row is added to every outcome first (Haldane 1956,
Anscombe 1956): without errors the counts show no variance, and are no certainty. Of clusters the variance is that of
the jackknife, and at least that of independent rows.

Limits are symmetric on Fisher's scale, artanh of the index stretched to (-1, 1).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import scipy

from ...tables.formulas import value_of
from .clusters import combined_spread, effective_number, spread_of_shifts
from .jackknife import leave_one_out, tail

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ...tables.ratios import Index
    from .jackknife import Floats, Limits
    from .proportions import Confusion

_STEP = 1e-20  # of a complex step: nothing is subtracted, so that it can be as small as need be
_FUNCTIONS = {"sqrt": np.sqrt}


@np.errstate(divide="ignore", invalid="ignore")
def index_of(index: Index, counts: Confusion) -> Floats:
    """The value of an index; nan where it is undefined."""
    return np.asarray(value_of(index.text, _by_name(*map(_floats, _outcomes(counts))), _FUNCTIONS))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def index_limits_of_rows(
    index: Index, counts: Confusion, squares: Confusion | None, confidence: Floats | float
) -> Limits:
    """Limits of an index where rows are independent.

    Args:
        index: The index.
        counts: Counts, or sums of weights.
        squares: Sums of squared weights; None: every weight is 1.
        confidence: Such as 0.95.

    Returns:
        Lower and upper limit, of the shape of the counts; nan where the index is undefined.
    """
    middle, variance = _with_half_a_row(index, counts, squares)
    return _limits(index, index_of(index, counts), middle, variance, np.asarray((1 - confidence) / 2))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def index_limits_of_clusters(
    index: Index, replicates: Confusion, squares: Confusion | None, confidence: float, crossed: Sequence[Confusion] = ()
) -> Limits:
    """Limits of an index of one group where only replicates, groups of clusters, are independent.

    Args:
        index: The index.
        replicates: Shape (G, K): counts or weights of each replicate.
        squares: Shape (K,): sums of squared weights of all rows; None: every weight is 1.
        confidence: Such as 0.95.
        crossed: The same of the second parent of rows that have two, and of the intersections of both.

    Returns:
        Limits of shape (K,); nan where the index is undefined, and for one replicate of any parent.
    """
    clusterings = (replicates, *crossed)
    total = type(replicates)(*(side.sum(axis=0) for side in _outcomes(replicates)))
    if min(len(each.tp) for each in clusterings) < 2:  # noqa: PLR2004 - a spread needs two
        return np.full(total.tp.shape, np.nan), np.full(total.tp.shape, np.nan)
    estimate = index_of(index, total)
    in_time = replicates.in_time and not crossed
    sizes = [effective_number(np.add.reduce(_outcomes(each))) for each in clusterings]
    pairs = zip((_shifts(index, each, estimate) for each in clusterings), sizes, strict=True)
    spread = combined_spread([spread_of_shifts(shifts, size, in_time=in_time) for shifts, size in pairs])
    middle, of_rows = _with_half_a_row(index, total, squares)
    variance = np.fmax(spread.variance, of_rows)
    return _limits(index, estimate, middle, variance, tail(confidence, spread.degrees))


def _shifts(index: Index, replicates: Confusion, estimate: Floats) -> Floats:
    """How far each replicate moves an index, of shape (G, K)."""
    without = index_of(index, type(replicates)(*map(leave_one_out, _outcomes(replicates))))
    without = np.where(np.isnan(without), estimate, without)
    return np.asarray(without.mean(axis=0) - without)


def _with_half_a_row(index: Index, counts: Confusion, squares: Confusion | None) -> tuple[Floats, Floats]:
    """An index with half a row more of every outcome, and its variance if rows were independent."""
    outcomes = list(map(_floats, _outcomes(counts)))
    of_squares = outcomes if squares is None else list(map(_floats, _outcomes(squares)))
    weight = np.add.reduce(of_squares) / np.add.reduce(outcomes)  # of a row, on average
    more = [each + weight / 2 for each in outcomes]
    variance = np.zeros_like(more[0])
    for number, square in enumerate(of_squares):
        stepped = [each + 1j * _STEP * (at == number) for at, each in enumerate(more)]
        derivative = np.imag(value_of(index.text, _by_name(*stepped), _FUNCTIONS)) / _STEP
        variance += (square + weight**2 / 2) * derivative**2
    return np.asarray(value_of(index.text, _by_name(*more), _FUNCTIONS)), variance


def _limits(index: Index, estimate: Floats, middle: Floats, variance: Floats, tails: Floats) -> Limits:
    """Limits around the middle on Fisher's scale, which hold the estimate."""
    stretch = 2 / (1 - index.lowest)
    scaled = (middle - index.lowest) * stretch - 1
    half = -scipy.special.ndtri(tails) * np.sqrt(variance) * stretch / (1 - scaled**2)
    sides = (np.tanh(np.arctanh(scaled) + sign * half) for sign in (-1, 1))
    lower, upper = ((side + 1) / stretch + index.lowest for side in sides)
    is_undefined = np.isnan(estimate)
    lower, upper = np.minimum(lower, estimate), np.maximum(upper, estimate)
    return np.where(is_undefined, np.nan, lower), np.where(is_undefined, np.nan, upper)


def _outcomes(counts: Confusion) -> tuple[Floats, Floats, Floats, Floats]:
    return counts.tp, counts.fp, counts.fn, counts.tn


def _floats(values: Floats) -> Floats:
    return np.asarray(values, dtype=np.float64)


def _by_name(*outcomes: NDArray[Any]) -> dict[str, NDArray[Any]]:
    return dict(zip(("tp", "fp", "fn", "tn"), outcomes, strict=True))
