"""What a chosen threshold is worth on data that it was not chosen on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats


# Thresholds that keep a minimum on new data, although they are chosen on the same rows that are counted.
#
# A threshold that is picked because its precision is high looks better than it is. What is promised here holds for
# whatever threshold is chosen among those that pass: with probability `confidence` all of them keep the minimum. Two
# arguments give it without a correction for the number of thresholds, which may be as many as there are scores:
#
# - Recall never rises with the threshold, so there is a strictest threshold that keeps the minimum. The thresholds are
# tested from the lowest up until a test fails, each at the full level: to pass one that is too strict, the test of the
# lowest of these must err (closed, fixed-sequence tests: Maurer, Hothorn & Lehmacher 1995). - Precision may rise and
# fall. Its thresholds are tested in sequences from stricter to lower ones, each sequence until a test fails. A sequence
# starts where a number of rows is retrieved that does not depend on labels: at the fewest rows that could pass, if all
# were true, at four times as many, and so on. Every sequence has its share of the level (fixed sequences with several
# starts: Angelopoulos, Bates, Candès, Jordan & Lei 2025, section 4.2).
#
# The tests are one-sided limits, so that a promise is as good as these are for a single threshold.


Bools: TypeAlias = "NDArray[np.bool_]"
Lower: TypeAlias = "Callable[[float], Floats]"  # lower limits at all thresholds, rising, by two-sided confidence

_WIDER = 4  # each sequence starts at so many times the rows of the one before
_MOST_STARTS = 64


def keeps_recall(lower: Lower, minimum: float, confidence: float) -> Bools:
    """Whether each threshold keeps a minimum recall.

    Args:
        lower: Lower limits of recall, shape (K,), at rising thresholds; nan where there is none.
        minimum: The least recall.
        confidence: Of all that pass together, such as 0.95.

    Returns:
        Shape (K,); true up to the first threshold whose limit is below the minimum.
    """
    return np.logical_and.accumulate(lower(2 * confidence - 1) >= minimum)


def keeps_precision(lower: Lower, retrieved: Floats, minimum: float, confidence: float) -> Bools:
    """Whether each threshold keeps a minimum precision.

    Args:
        lower: Lower limits of precision, shape (K,), at rising thresholds; nan where there is none.
        retrieved: Rows that each threshold retrieves, shape (K,), not rising.
        minimum: The least precision.
        confidence: Of all that pass together, such as 0.95.

    Returns:
        Shape (K,).
    """
    starts = _starts(retrieved, minimum, 1 - confidence)
    keeps = np.zeros(len(retrieved), dtype=np.bool_)
    if not starts:
        return keeps
    passes = lower(1 - 2 * (1 - confidence) / len(starts)) >= minimum
    for start in starts:
        # from the start down to the first threshold that fails
        run = passes[start::-1]
        length = len(run) if run.all() else int(np.argmin(run))
        keeps[start - length + 1 : start + 1] = True
    return keeps


def _starts(retrieved: Floats, minimum: float, level: float) -> list[int]:
    """Where the sequences of tests of precision start: thresholds by number, the strictest first."""
    most = retrieved.max(initial=0)
    starts: list[int] = []
    for number in range(1, _MOST_STARTS):
        sizes = _fewest(minimum, level / number) * float(_WIDER) ** np.arange(number + 1)
        # the strictest threshold that retrieves so many rows; several sizes may share one
        sizes = sizes[sizes <= most]
        starts = list(dict.fromkeys(int(np.flatnonzero(retrieved >= size)[-1]) for size in sizes))
        if len(starts) <= number:
            break
    return starts


def _fewest(minimum: float, level: float) -> float:
    """The fewest rows that could pass: all true, their exact lower limit is the minimum; infinite for 1."""
    if minimum <= 0:
        return 1.0
    return math.ceil(math.log(level) / math.log(minimum)) if minimum < 1 else math.inf


# What a choice of a threshold gives on data that it was not made on.
#
# The best F-beta of a curve is the highest of many noisy values, and better than what its threshold gives on new
# data. Here the threshold is chosen on the clusters of all folds but one, what it retrieves is counted on that fold,
# and the counts of all folds are pooled (cross-validation: Stone 1974; pooled counts, because ratios of small folds
# are biased: Forman & Scholz 2010). No count then takes part in the choice that it is counted for. The choice is made
# on nine tenths of the data, so the result is a little pessimistic.


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
