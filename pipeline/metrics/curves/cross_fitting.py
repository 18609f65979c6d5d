"""What a choice of a threshold gives on data that it was not made on.

The best F-beta of a curve is the highest of many noisy values, and better than what its threshold gives on new data.
Here the threshold is chosen on the clusters of all folds but one, what it retrieves is counted on that fold, and the
counts of all folds are pooled (cross-validation: Stone 1974; pooled counts, because ratios of small folds are biased:
Forman & Scholz 2010). No count then takes part in the choice that it is counted for. The choice is made on nine tenths
of the data, so the result is a little pessimistic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats

Ints: TypeAlias = "NDArray[np.int64]"
Choice: TypeAlias = "Callable[[Sequence[Floats]], Ints]"  # numbers of thresholds, shape (N,), from counts of (N, K)

FOLDS = 10


def by_fold(counts: Sequence[NDArray[Any]], folds: int = FOLDS) -> list[NDArray[Any]]:
    """Additive counts by replicate, each of shape (G, K), added up by fold, shape (F, K): the g-th is in g modulo F.

    There are fewer folds if there are fewer replicates.
    """
    if len(counts[0]) <= folds:
        return list(counts)
    return [np.stack([count[fold::folds].sum(axis=0) for fold in range(folds)]) for count in counts]


def cross_fitted(counts: Sequence[NDArray[Any]], choose: Choice) -> list[Floats]:
    """Counts at thresholds that were chosen without them.

    Args:
        counts: Additive counts, such as tp, fp and fn, each of shape (N, F, K): by group, fold and threshold, with
            F ≥ 2. Folds are independent.
        choose: The numbers of the thresholds that it takes from the totals without a fold, each of shape (N, K); -1:
            none will do.

    Returns:
        The pooled counts, shape (N,) for each of `counts`; nan where some fold is left without a choice.
    """
    sums = [count.sum(axis=1) for count in counts]
    pooled = [np.zeros(len(count)) for count in counts]
    for fold in range(counts[0].shape[1]):  # one after the other, as all at once would take as many times the memory
        held_out = [count[:, fold] for count in counts]
        chosen = choose([total - count for total, count in zip(sums, held_out, strict=True)])
        at_choices = (np.take_along_axis(count, chosen[:, None], axis=1)[:, 0] for count in held_out)
        chosen_counts = (np.where(chosen < 0, np.nan, count) for count in at_choices)
        pooled = [total + count for total, count in zip(pooled, chosen_counts, strict=True)]
    return pooled


def at_choices(count: NDArray[Any], chosen: Ints) -> NDArray[Any]:
    """Counts by replicate at the threshold of its fold, shape (G, 1), from those at all thresholds, shape (G, K).

    Args:
        count: The counts; the g-th replicate is in fold g modulo F, as in `by_fold`.
        chosen: The number of the threshold of each fold, shape (F,).
    """
    return np.take_along_axis(count, chosen[np.arange(len(count)) % len(chosen), None], axis=1)


def split_rows(
    retrieved: Ints, total: int, weights: tuple[Floats, float] | None = None, *, folds: int = FOLDS, seed: int = 0
) -> tuple[Floats, Floats]:
    """Counts of independent rows, each in a fold at random, as replicates for `cross_fitted`.

    Rows of one bin are alike, so that a multinomial split of its count is a random split of its rows.

    Args:
        retrieved: Rows at or above rising thresholds, shape (K,).
        total: All rows.
        weights: The same of their weights, which rows of one bin then share equally; None: counts are wanted.
        folds: How many folds.
        seed: The same seed gives the same folds.

    Returns:
        By fold: what is at or above each threshold, shape (folds, K), and all there is, shape (folds, 1).
    """
    bins = _bins(retrieved, total)
    split = np.random.default_rng(seed).multinomial(bins, np.full(folds, 1 / folds)).T.astype(np.float64)
    if weights is not None:
        split *= np.divide(_bins(*weights), bins, out=np.zeros(len(bins)), where=bins > 0)
    return split[:, 1:][:, ::-1].cumsum(axis=1)[:, ::-1], split.sum(axis=1, keepdims=True)


def _bins(retrieved: NDArray[Any], total: float) -> NDArray[Any]:
    """What no threshold retrieves, and what each threshold retrieves beyond the next higher one."""
    at_or_above = np.concatenate([[total], retrieved, [0]])
    return np.asarray(at_or_above[:-1] - at_or_above[1:])
