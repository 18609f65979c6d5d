"""Micro and macro averages and those of SemEval-2019 Task 12 at every threshold, with intervals from replicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from pipeline.metrics.matching.document_averages import POOLED_AVERAGES
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters
from pipeline.tables.ratios import RATIOS, ratios
from pipeline.tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from numpy.typing import NDArray

    from pipeline.metrics.matching.document_averages import Average
    from pipeline.metrics.uncertainty.proportions import Limits
    from pipeline.stages.entity_recognition.documents import Group

Floats: TypeAlias = "NDArray[np.float64]"
_Intervals: TypeAlias = "Callable[[float], dict[str, Limits]]"
BUDGET = 50_000_000


def average_of(group: Group, kind: Average, confidence: float | None) -> pl.DataFrame:
    """One row per threshold: the columns of the table of scores.

    Args:
        group: The counts of the group.
        kind: Which average.
        confidence: Level of the intervals; None: none are wanted.
    """
    tp, fp = group.tp.sum(axis=0), group.fp.sum(axis=0)
    fn = group.n_gold.sum() - tp
    frame = pl.DataFrame({"tp": tp, "fp": fp, "fn": fn}).with_columns(
        pl.lit(kind).alias("average"),
        pl.Series(THRESHOLD, group.thresholds).fill_nan(None),
        pl.lit(group.n_documents, dtype=pl.Int64).alias("n_documents"),
    )
    found, dropped, limits = _pooled(group, frame, kind) if kind in POOLED_AVERAGES else _of_documents(group, kind)
    given = confidence is not None and group.tp.size <= BUDGET
    intervals = limits(confidence) if given and confidence is not None else {}
    reason = (
        "none" if confidence is None else "budget" if not given else "one_replicate" if len(group.tp) == 1 else None
    )
    return frame.with_columns(
        *(pl.Series(name, values, dtype=pl.Float64).fill_nan(None) for name, values in found.items()),
        *(pl.Series(f"{name}_dropped", values.astype(np.int64)) for name, values in dropped.items()),
    ).with_columns(*_limits(intervals, frame.height, reason), _undefined(kind))


def _pooled(
    group: Group, frame: pl.DataFrame, kind: Average
) -> tuple[dict[str, Floats], dict[str, Floats], _Intervals]:
    """Ratios of summed counts; a ratio that the conventions of SemEval alone define has no limits."""
    made = frame.select(ratios(*(pl.col(name) for name in ("tp", "fp", "fn"))))
    if kind == "semeval_micro" and group.n_documents:
        made = made.fill_null(1.0)
    found = {name: made[name].to_numpy() for name in RATIOS}
    dropped = {name: np.zeros(frame.height) for name in RATIOS}

    def limits(confidence: float) -> dict[str, Limits]:
        replicates = Confusion(group.tp, group.fp, group.n_gold[:, None] - group.tp, np.zeros_like(group.tp))
        return intervals_of_clusters(replicates, confidence)

    return found, dropped, limits


def _of_documents(group: Group, kind: Average) -> tuple[dict[str, Floats], dict[str, Floats], _Intervals]:
    sums = (
        _semeval(group) if kind == "semeval" else {name: (group.sums[name], group.sums[f"n_{name}"]) for name in RATIOS}
    )
    found, dropped = {}, {}
    for name, (total, defined) in sums.items():
        number = defined.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found[name] = np.where(number > 0, total.sum(axis=0) / number, np.nan)
        dropped[name] = group.n_documents - number
    if kind == "semeval":
        found["f1"], dropped["f1"] = _harmonic(found["precision"], found["recall"]), np.zeros(len(group.thresholds))

    def limits(confidence: float) -> dict[str, Limits]:
        return {name: _of_means(*each, confidence) for name, each in sums.items()}

    return found, dropped, limits


def _semeval(group: Group) -> dict[str, tuple[Floats, Floats]]:
    """Sums of ratios, each of them 1 in a document where it is undefined."""
    number = group.sums["n_documents"]
    return {name: (group.sums[name] + number - group.sums[f"n_{name}"], number) for name in ("precision", "recall")}


def _of_means(total: Floats, defined: Floats, confidence: float) -> Limits:
    """Limits of a mean of ratios: of a share whose hits are the ratios and whose misses are what they lack of 1."""
    hits, misses = np.clip(total, 0.0, None), np.clip(defined - total, 0.0, None)
    nothing = np.zeros_like(hits)
    return intervals_of_clusters(Confusion(hits, misses, nothing, nothing), confidence)["precision"]


def _harmonic(precision: Floats, recall: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = 2 * precision * recall / (precision + recall)
    return np.where(precision + recall == 0, 0.0, mean)


def _limits(found: Mapping[str, Limits], height: int, reason: str | None) -> list[pl.Series]:
    """Columns of the limits and why one is missing."""
    columns = []
    missing = np.zeros(height, dtype=np.bool_)
    for name in RATIOS:
        for side, values in zip(("lower", "upper"), found.get(name, (np.full(height, np.nan),) * 2), strict=True):
            columns.append(pl.Series(f"{name}_{side}", values, dtype=pl.Float64).fill_nan(None))
            missing |= np.isnan(values)
    default = reason or ("harmonic_mean" if found and "f1" not in found else "undefined_ratio")
    words = [default if each else None for each in missing.tolist()]
    return [*columns, pl.Series("undefined_interval", words, dtype=pl.String)]


def _undefined(kind: Average) -> pl.Expr:
    tp, fp, fn = (pl.col(name) for name in ("tp", "fp", "fn"))
    none = pl.col("precision").is_null() if kind != "micro" else tp + fp == 0
    no_gold = pl.col("recall").is_null() if kind != "micro" else tp + fn == 0
    reason = pl.when(none).then(pl.lit("no_prediction")).when(no_gold).then(pl.lit("no_positive"))
    return reason.alias("undefined")
