"""The table of operating points of a curve: thresholds chosen by criteria, and what the choice is worth elsewhere.

A criterion with a confidence chooses among the thresholds that keep its minimum on new data (`promises`). The choice of
any other criterion is repeated without each fold of clusters in turn and counted on that fold (`cross_fitting`); a
given threshold is no choice.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from ...records import dataclass
from ...tables.ratios import RATIOS
from ...tables.sweep import THRESHOLD
from ..uncertainty.limits import limit_names
from .choice_columns import (
    COLUMNS,
    COST,
    COST_CROSS_FITTED,
    CROSS_FITTED,
    UNDEFINED_CROSS_FITTED,
    cost_columns,
)
from .cross_fitting import by_fold, cross_fitted
from .operating_points import CRITERION, NOT_PROMISED, NOT_REACHED, holds_at, pick
from .outcome_counts import lowest_cost
from .promises import keeps_precision, keeps_recall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...tables.sweep import Boundary
    from ..uncertainty.jackknife import Floats, Limits
    from .cross_fitting import Ints
    from .operating_points import Criterion
    from .outcome_counts import Outcomes
    from .promises import Bools

NotFitted: TypeAlias = Literal[
    "none",  # clusters, but uncertainty = "none": replicates were not counted
    "confidence",  # the criterion has a confidence, and holds on new data by itself
    "given",  # the threshold was given, and is the same on new data
    "one_replicate",  # fewer than two clusters
    "not_reached",  # without some fold no threshold meets the criterion
    "undefined_ratio",  # the choice retrieves nothing of the data that it was not made on
]
Fitted: TypeAlias = tuple[float | str | None, ...]  # ratios, their limits, cost, and why a ratio is missing
LIMITS_CROSS_FITTED = limit_names(CROSS_FITTED)
BATCH_CELLS = 1_000_000  # replicates × thresholds of the groups whose choices are made at once


def _one_by_one(limits: Sequence[Mapping[str, Limits]]) -> dict[str, Limits]:
    """Limits of shape (1,) of several groups, by ratio, one after the other; nan where a group has none."""
    nothing = np.full(1, np.nan), np.full(1, np.nan)
    names = dict.fromkeys(name for of_group in limits for name in of_group)
    sides = {name: zip(*(of_group.get(name, nothing) for of_group in limits), strict=True) for name in names}
    return {name: (np.concatenate(lower), np.concatenate(upper)) for name, (lower, upper) in sides.items()}


@dataclass(frozen=True)
class Candidates:
    """One group of a curve, for criteria to choose from.

    Attributes:
        rows: Its rows by rising threshold, with the keys.
        lower: Lower limits, shape (K,), of `precision` or `recall` by two-sided confidence; None: there are none.
        retrieved: Rows that each threshold retrieves, shape (K,).
        counts: Additive counts by fold and threshold, each of shape (folds, K); or why there are none.
        ratios: Precision and recall of such counts added up; the same of all groups.
        f_beta: F-beta of such counts added up, from the counts and beta; likewise.
        outcomes: Outcomes of such counts added up; likewise.
        at_folds: What all folds retrieve, each at a threshold of its own, or its limits, by the numbers of these
            thresholds, shape (F,), and the counts there, pooled, each of shape (1,); None: there are no limits.
        limits: Limits of shape (groups,) by ratio, of `at_folds` of several groups; likewise.
    """

    rows: pl.DataFrame
    lower: Callable[[str, float], Floats] | None
    retrieved: Floats
    counts: Sequence[NDArray[Any]] | NotFitted
    ratios: Callable[[Sequence[Floats]], tuple[Floats, Floats]]
    f_beta: Callable[[Sequence[Floats], float], Floats]
    outcomes: Callable[[Sequence[Floats]], Outcomes[Floats]]
    at_folds: Callable[[Ints, Sequence[Floats]], Any] | None = None
    limits: Callable[[Sequence[Any]], Mapping[str, Limits]] = _one_by_one

    def promised(self, criterion: Criterion) -> Bools:
        """Whether each threshold keeps the minimum of a criterion with its confidence."""
        lower, confidence = self.lower, criterion.confidence
        if lower is None or confidence is None:
            return np.zeros(self.rows.height, dtype=np.bool_)
        if criterion.min_recall is not None:
            return keeps_recall(lambda level: lower("recall", level), criterion.min_recall, confidence)
        minimum = criterion.min_precision or 0.0
        return keeps_precision(lambda level: lower("precision", level), self.retrieved, minimum, confidence)

    @cached_property
    def folds(self) -> Sequence[NDArray[Any]] | NotFitted:
        """The counts added up by fold, each of shape (F, K) with F ≥ 2; or why there are none."""
        if isinstance(self.counts, str):
            return self.counts
        return by_fold(self.counts) if len(self.counts[0]) > 1 else "one_replicate"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the counts by fold; empty without any."""
        return () if isinstance(self.folds, str) else self.folds[0].shape

    @property
    def cells(self) -> int:
        """How many numbers each count consists of."""
        return 0 if isinstance(self.counts, str) else self.counts[0].size

    def chosen(self, criterion: Criterion, counts: Sequence[Floats]) -> Ints:
        """The threshold that a criterion chooses by each row of counts, by number; of equally good ones the lowest."""
        best = self._best(criterion, counts)
        best = np.where(np.isnan(best), -np.inf, best)
        return np.where(best.max(axis=1) > -np.inf, best.argmax(axis=1), -1)

    def _best(self, criterion: Criterion, counts: Sequence[Floats]) -> Floats:
        """What a criterion maximises, by counts without one fold; nan where a threshold is not eligible."""
        if criterion.cost is not None:
            return -self.outcomes(counts).whole_cost(criterion.cost)
        if criterion.has_capacity:
            share = 1 - 1 / self.shape[0]
            return np.where(self.outcomes(counts).excess(criterion, share) <= 0, 1.0, np.nan)
        if criterion.beta is not None:
            return self.f_beta(counts, criterion.beta)
        precision, recall = self.ratios(counts)
        if criterion.min_precision is not None:
            return np.where(precision >= criterion.min_precision, recall, np.nan)
        return np.where(recall >= (criterion.min_recall or 0.0), precision, np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def ratios_of_counts(counts: Sequence[Floats]) -> tuple[Floats, Floats]:
    """Precision and recall of counts of true positives, false positives and false negatives; 0 / 0 is nan."""
    tp, fp, fn = counts[:3]
    return tp / (tp + fp), tp / (tp + fn)


@np.errstate(divide="ignore", invalid="ignore")
def f_beta_of_counts(counts: Sequence[Floats], beta: float) -> Floats:
    """F-beta of the same counts; 0 / 0 is nan."""
    tp, fp, fn = counts[:3]
    square = beta**2
    return (1 + square) * tp / ((1 + square) * tp + square * fn + fp)


def operating_points(
    curve: pl.DataFrame,
    keys: Sequence[str],
    criteria: Sequence[Criterion],
    candidates: Iterable[Candidates],
    f_beta: Callable[[float], pl.Expr],
    outcomes: Outcomes[pl.Expr],
    boundary: Boundary = ">=",
) -> pl.DataFrame:
    """The threshold that each criterion chooses in every group.

    Args:
        curve: One row per group × threshold, with `precision`, `recall` and `undefined`.
        keys: Columns that identify a group.
        criteria: What thresholds are chosen for.
        candidates: The groups of the curve.
        f_beta: F-beta of a row of the curve, by beta.
        outcomes: Outcomes of a row of the curve.
        boundary: Whether a score equal to the threshold is retrieved.

    Returns:
        One row per group and criterion: the columns of the curve, `criterion`, `choice_columns.COLUMNS`, and its
        `cost_columns`.
    """
    frames, fitted = [], []
    promised = any(criterion.confidence is not None for criterion in criteria)
    for groups in _batches(candidates):
        frames += [group.rows.with_columns(_promises(group, criteria)) if promised else group.rows for group in groups]
        labels = [tuple(map(group.rows.row(0, named=True).get, keys)) for group in groups]
        for criterion in criteria:
            rows = zip(labels, _fitted(groups, criterion), strict=True)
            fitted += [(*label, criterion.text, *ratios) for label, ratios in rows]
    working = [pl.lit(value=False).alias(_promised(each)) for each in criteria if each.confidence is not None]
    whole_curve = pl.concat(frames) if frames else curve.with_columns(working)
    reads = RowValues(f_beta, outcomes, boundary)
    chosen = pl.concat([_point(whole_curve, keys, criterion, reads) for criterion in criteria])
    types = {name: curve.schema[name] for name in keys} | {CRITERION: pl.String()}
    fitted_columns = (*CROSS_FITTED, *LIMITS_CROSS_FITTED, COST_CROSS_FITTED)
    types |= dict.fromkeys(fitted_columns, pl.Float64()) | {UNDEFINED_CROSS_FITTED: pl.String()}
    elsewhere = pl.DataFrame(fitted, schema=types, orient="row")
    points = chosen.join(elsewhere, on=[*keys, CRITERION], how="left", nulls_equal=True, maintain_order="left")
    costs = (column.name for column in cost_columns(criteria))
    return points.select(*curve.columns, CRITERION, *(column.name for column in COLUMNS), *costs)


def _batches(candidates: Iterable[Candidates]) -> Iterator[list[Candidates]]:
    """Consecutive groups whose counts by fold have one shape, as many as are counted in `BATCH_CELLS`, at least one."""
    batch: list[Candidates] = []
    cells = 0
    for group in candidates:
        if batch and (group.shape != batch[0].shape or cells + group.cells > BATCH_CELLS):
            yield batch
            batch, cells = [], 0
        batch.append(group)
        cells += group.cells
    if batch:
        yield batch


def _fitted(groups: Sequence[Candidates], criterion: Criterion) -> list[Fitted]:
    """Precision, recall, F1 and cost of the choice made on other clusters, in each group of a batch, or why none is."""
    if criterion.confidence is not None or criterion.is_given:
        return [_without("given" if criterion.is_given else "confidence")] * len(groups)
    folds = [group.folds for group in groups if not isinstance(group.folds, str)]
    if not folds:
        return [_without(group.folds) for group in groups if isinstance(group.folds, str)]
    stacked = [np.stack(count) if len(groups) > 1 else count[0][None] for count in zip(*folds, strict=True)]
    choices: list[Ints] = []

    def choose(totals: Sequence[Floats]) -> Ints:
        choices.append(groups[0].chosen(criterion, totals))
        return choices[-1]

    pooled = cross_fitted(stacked, choose)
    ratios = np.stack([*groups[0].ratios(pooled), groups[0].f_beta(pooled, 1.0)], axis=1)
    costs: list[float | None] = [None] * len(groups)
    if criterion.cost is not None:
        costs = groups[0].outcomes(pooled).cost(criterion.cost).tolist()
    limits = _limits(groups, np.stack(choices, axis=1), pooled, ratios)
    sums = [count.sum(axis=1).astype(np.float64) for count in stacked]
    limits = _widened(limits, _apart(groups[0], criterion, sums, ratios))
    rows = zip(np.isnan(pooled[0]), ratios.tolist(), limits.tolist(), costs, strict=True)
    return [
        _without("not_reached") if missing else _or_undefined(of_group, sides, cost)
        for missing, of_group, sides, cost in rows
    ]


def _limits(groups: Sequence[Candidates], chosen: Ints, pooled: Sequence[Floats], ratios: Floats) -> Floats:
    """The limits of three ratios, both of each, shape (N, 6); nan where there are none, or the ratio is not defined."""
    limits = np.full((len(groups), len(LIMITS_CROSS_FITTED)), np.nan)
    at_folds = {
        at: group.at_folds(of_group, [count[at : at + 1] for count in pooled])
        for at, (group, of_group) in enumerate(zip(groups, chosen, strict=True))
        if group.at_folds is not None and (of_group >= 0).all()
    }
    if not at_folds:
        return limits
    of_ratios = groups[0].limits(list(at_folds.values()))
    for number, name in enumerate(RATIOS):
        if name in of_ratios:
            limits[list(at_folds), 2 * number : 2 * number + 2] = np.stack(of_ratios[name], axis=1)
    is_missing = np.isnan(ratios) | np.isnan(limits[:, ::2]) | np.isnan(limits[:, 1::2])
    return np.where(np.repeat(is_missing, 2, axis=1), np.nan, limits)


def _widened(limits: Floats, apart: Floats) -> Floats:
    """Limits of three ratios, widened to as far around those of all data at the threshold that these choose.

    Which of many thresholds with nearly the best F-beta is chosen is chance, too, and moves precision and recall far
    more than F-beta.
    """
    lower = np.maximum(limits[:, ::2] + np.minimum(apart, 0.0), 0.0)
    upper = np.minimum(limits[:, 1::2] + np.maximum(apart, 0.0), 1.0)
    return np.stack([lower, upper], axis=2).reshape(limits.shape)


def _apart(group: Candidates, criterion: Criterion, sums: Sequence[Floats], ratios: Floats) -> Floats:
    """What three ratios of all data, at the threshold that these choose, exceed the cross-fitted ones, shape (N, 3).

    Args:
        group: One group of the batch.
        criterion: What thresholds are chosen for.
        sums: The counts of all data, each of shape (N, K).
        ratios: The cross-fitted ones, shape (N, 3).
    """
    if criterion.has_capacity:  # a capacity of all data is another one
        return np.zeros(ratios.shape)
    best = group.chosen(criterion, sums)
    counts = [np.take_along_axis(count, best[:, None], axis=1)[:, 0] for count in sums]
    at_best = np.stack([*group.ratios(counts), group.f_beta(counts, 1.0)], axis=1)
    return np.where(best[:, None] < 0, 0.0, np.nan_to_num(at_best - ratios))


def _without(reason: NotFitted) -> Fitted:
    return (*[None] * (len(CROSS_FITTED) + len(LIMITS_CROSS_FITTED) + 1), reason)


def _or_undefined(ratios: Iterable[float], limits: Iterable[float], cost: float | None) -> Fitted:
    """Three ratios, of which nan is None and a reason, their limits, of which nan is None, and a cost."""
    values, sides = ([None if math.isnan(each) else each for each in numbers] for numbers in (ratios, limits))
    return *values, *sides, cost, "undefined_ratio" if None in values else None


def _promised(criterion: Criterion) -> str:
    return f"_promised_{criterion.text}"


def _promises(group: Candidates, criteria: Sequence[Criterion]) -> Iterator[pl.Series]:
    """A working column for each criterion with a confidence: whether the threshold keeps its minimum."""
    for criterion in criteria:
        if criterion.confidence is not None:
            yield pl.Series(_promised(criterion), group.promised(criterion), dtype=pl.Boolean)


@dataclass(frozen=True)
class RowValues:
    """How criteria read a row of the curve.

    Attributes:
        f_beta: F-beta, by beta.
        outcomes: Its outcomes.
        boundary: Whether a score equal to the threshold is retrieved.
    """

    f_beta: Callable[[float], pl.Expr]
    outcomes: Outcomes[pl.Expr]
    boundary: Boundary

    def asked(self, criterion: Criterion) -> tuple[pl.Expr, pl.Expr]:
        """Which rows are eligible for a criterion without a confidence, and what is best."""
        precision, recall, every = pl.col("precision"), pl.col("recall"), pl.lit(value=True)
        if criterion.threshold is not None:
            return holds_at(criterion.threshold, self.boundary)
        if criterion.cost is not None:
            return every, lowest_cost(self.outcomes, criterion.cost)
        if criterion.has_capacity:
            return self.outcomes.excess(criterion) <= 0, -pl.col(THRESHOLD)
        if criterion.beta is not None:
            return every, self.f_beta(criterion.beta)
        if criterion.min_precision is not None:
            return precision >= criterion.min_precision, recall
        return recall >= criterion.min_recall, precision


def _point(curve: pl.DataFrame, keys: Sequence[str], criterion: Criterion, reads: RowValues) -> pl.DataFrame:
    """The row of every group that one criterion chooses, with its cost."""
    promised = criterion.confidence is not None
    among, best = reads.asked(criterion)
    points = pick(
        curve,
        keys,
        criterion=criterion.text,
        among=pl.col(_promised(criterion)) if promised else among,
        best=best.cast(pl.Float64).fill_nan(None),
        otherwise=NOT_PROMISED if promised else NOT_REACHED,
        is_given=criterion.is_given,
    )
    cost = reads.outcomes.cost(criterion.cost) if criterion.cost is not None else pl.lit(None)
    return points.with_columns(cost.cast(pl.Float64).alias(COST))
