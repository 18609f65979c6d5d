"""The table of operating points of a curve: thresholds chosen by criteria, and what the choice is worth elsewhere.

A criterion with a confidence chooses among the thresholds that keep its minimum on new data (`promises`). The choice of
any other criterion is repeated without each fold of clusters in turn and counted on that fold (`cross_fitting`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
import polars as pl

from pipeline.metrics.curves.cross_fitting import by_fold, cross_fitted
from pipeline.metrics.curves.operating_points import CRITERION, NOT_PROMISED, NOT_REACHED, pick
from pipeline.metrics.curves.promises import keeps_precision, keeps_recall
from pipeline.tables.schemas import Column

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    from pipeline.metrics.curves.cross_fitting import Ints
    from pipeline.metrics.curves.operating_points import Criterion
    from pipeline.metrics.curves.promises import Bools
    from pipeline.metrics.uncertainty.jackknife import Floats

NotFitted: TypeAlias = Literal[
    "none",  # clusters, but uncertainty = "none": replicates were not counted
    "confidence",  # the criterion has a confidence, and holds on new data by itself
    "one_replicate",  # fewer than two clusters
    "not_reached",  # without some fold no threshold meets the criterion
    "undefined_ratio",  # the choice retrieves nothing of the data that it was not made on
]
Fitted: TypeAlias = tuple[float | None, float | None, float | None, NotFitted | None]
BATCH_CELLS = 1_000_000  # replicates × thresholds of the groups whose choices are made at once
CROSS_FITTED = ("precision_cross_fitted", "recall_cross_fitted", "f1_cross_fitted")
UNDEFINED_CROSS_FITTED = "undefined_cross_fitted"
COLUMNS = (
    Column(
        CROSS_FITTED[0],
        "DOUBLE",
        (
            "precision where the threshold is [chosen on other clusters](threshold_sweep.md#operating-points); "
            "NULL: none can be given"
        ),
        nullable=True,
    ),
    Column(
        CROSS_FITTED[1],
        "DOUBLE",
        "recall where the threshold is chosen on other clusters; NULL: none can be given",
        nullable=True,
    ),
    Column(
        CROSS_FITTED[2],
        "DOUBLE",
        "F1 where the threshold is chosen on other clusters: what the same choice gives on other data; "
        "NULL: none can be given",
        nullable=True,
    ),
    Column(
        UNDEFINED_CROSS_FITTED,
        "VARCHAR",
        (
            "why one of these three is NULL: `confidence`, `one_replicate`, `not_reached`, `undefined_ratio`, "
            "`none`; NULL: all three are given"
        ),
        nullable=True,
    ),
)


@dataclass(frozen=True)
class Candidates:
    """One group of a curve, for criteria to choose from.

    Attributes:
        rows: Its rows by rising threshold, with the keys.
        lower: Lower limits, shape (K,), of `precision` or `recall` by two-sided confidence; None: there are none.
        retrieved: Rows that each threshold retrieves, shape (K,).
        counts: Additive counts by fold and threshold, each of shape (folds, K); or why there are none.
        ratios: Precision, recall and F-beta of such counts added up, from the counts and beta; the same of all groups.
    """

    rows: pl.DataFrame
    lower: Callable[[str, float], Floats] | None
    retrieved: Floats
    counts: Sequence[NDArray[Any]] | NotFitted
    ratios: Callable[[Sequence[Floats], float], tuple[Floats, Floats, Floats]]

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
        precision, recall, f_beta = self.ratios(counts, criterion.beta or 1.0)
        if criterion.min_precision is not None:
            best = np.where(precision >= criterion.min_precision, recall, np.nan)
        elif criterion.min_recall is not None:
            best = np.where(recall >= criterion.min_recall, precision, np.nan)
        else:
            best = f_beta
        best = np.where(np.isnan(best), -np.inf, best)
        return np.where(best.max(axis=1) > -np.inf, best.argmax(axis=1), -1)


@np.errstate(divide="ignore", invalid="ignore")
def ratios_of_counts(counts: Sequence[Floats], beta: float) -> tuple[Floats, Floats, Floats]:
    """Precision, recall and F-beta of counts of true positives, false positives and false negatives; 0 / 0 is nan."""
    tp, fp, fn = counts
    square = beta**2
    return tp / (tp + fp), tp / (tp + fn), (1 + square) * tp / ((1 + square) * tp + square * fn + fp)


def operating_points(
    curve: pl.DataFrame,
    keys: Sequence[str],
    criteria: Sequence[Criterion],
    candidates: Iterable[Candidates],
    f_beta: Callable[[float], pl.Expr],
) -> pl.DataFrame:
    """The threshold that each criterion chooses in every group.

    Args:
        curve: One row per group × threshold, with `precision`, `recall` and `undefined`.
        keys: Columns that identify a group.
        criteria: What thresholds are chosen for.
        candidates: The groups of the curve.
        f_beta: F-beta of a row of the curve, by beta.

    Returns:
        One row per group and criterion: the columns of the curve, `criterion` and `COLUMNS`.
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
    chosen = pl.concat([_point(whole_curve, keys, criterion, f_beta) for criterion in criteria])
    types = {name: curve.schema[name] for name in keys} | {CRITERION: pl.String()}
    types |= dict.fromkeys(CROSS_FITTED, pl.Float64()) | {UNDEFINED_CROSS_FITTED: pl.String()}
    elsewhere = pl.DataFrame(fitted, schema=types, orient="row")
    points = chosen.join(elsewhere, on=[*keys, CRITERION], how="left", nulls_equal=True, maintain_order="left")
    return points.select(*curve.columns, CRITERION, *CROSS_FITTED, UNDEFINED_CROSS_FITTED)


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
    """Precision, recall and F1 of the choice made on other clusters, in each group of a batch, or why none is."""
    if criterion.confidence is not None:
        return [(None, None, None, "confidence")] * len(groups)
    folds = [group.folds for group in groups if not isinstance(group.folds, str)]
    if not folds:
        return [(None, None, None, group.folds) for group in groups if isinstance(group.folds, str)]
    stacked = [np.stack(count) for count in zip(*folds, strict=True)]
    pooled = cross_fitted(stacked, lambda totals: groups[0].chosen(criterion, totals))
    ratios = (ratio.tolist() for ratio in groups[0].ratios(pooled, 1.0))
    return [
        (None, None, None, "not_reached") if missing else _or_undefined(values)
        for missing, *values in zip(np.isnan(pooled[0]).tolist(), *ratios, strict=True)
    ]


def _or_undefined(ratios: Iterable[float]) -> Fitted:
    """Three ratios, of which nan is None and a reason."""
    precision, recall, f1 = (None if math.isnan(ratio) else ratio for ratio in ratios)
    return precision, recall, f1, "undefined_ratio" if None in (precision, recall, f1) else None


def _promised(criterion: Criterion) -> str:
    return f"_promised_{criterion.text}"


def _promises(group: Candidates, criteria: Sequence[Criterion]) -> Iterator[pl.Series]:
    """A working column for each criterion with a confidence: whether the threshold keeps its minimum."""
    for criterion in criteria:
        if criterion.confidence is not None:
            yield pl.Series(_promised(criterion), group.promised(criterion), dtype=pl.Boolean)


def _point(
    curve: pl.DataFrame, keys: Sequence[str], criterion: Criterion, f_beta: Callable[[float], pl.Expr]
) -> pl.DataFrame:
    """The row of every group that one criterion chooses."""
    precision, recall = pl.col("precision"), pl.col("recall")
    if criterion.beta is not None:
        among, best = pl.lit(value=True), f_beta(criterion.beta)
    elif criterion.min_precision is not None:
        among, best = precision >= criterion.min_precision, recall
    else:
        among, best = recall >= criterion.min_recall, precision
    promised = criterion.confidence is not None
    among = pl.col(_promised(criterion)) if promised else among
    return pick(
        curve,
        keys,
        criterion=criterion.text,
        among=among,
        best=best.fill_nan(None),
        otherwise=NOT_PROMISED if promised else NOT_REACHED,
    )
