"""Micro and macro averages and those of SemEval-2019 Task 12 at every threshold, with intervals from replicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from ...metrics.matching.document_averages import POOLED_AVERAGES
from ...metrics.uncertainty.limits import Interval, compared_at, limit_columns
from ...metrics.uncertainty.proportions import UNSEEN, Confusion, intervals_of_clusters, may_days_be_alike
from ...tables.columns import RATIOS, THRESHOLD, doubles, ratios

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from ...metrics.matching.document_averages import Average
    from ...metrics.uncertainty.bootstrap import Resampling
    from ...metrics.uncertainty.interval_quality import Reason
    from ...metrics.uncertainty.proportions import Limits
    from .documents import Group

Floats: TypeAlias = "NDArray[np.float64]"
_Limits: TypeAlias = "Callable[[float, Resampling | None], dict[str, Limits]]"


def average_of(
    group: Group, kind: Average, confidence: float | None, resampling: Resampling | None = None
) -> pl.DataFrame:
    """One row per threshold: the columns of the table of scores.

    Args:
        group: The counts of the group.
        kind: Which average.
        confidence: Level of the intervals; None: none are wanted.
        resampling: How the bootstrap draws; None: limits of the closed form.
    """
    tp, fp = group.tp.sum(axis=0), group.fp.sum(axis=0)
    fn = group.n_gold.sum() - tp
    frame = pl.DataFrame({"tp": tp, "fp": fp, "fn": fn}).with_columns(
        pl.lit(kind).alias("average"),
        doubles(THRESHOLD, group.thresholds),
        pl.lit(group.n_documents, dtype=pl.Int64).alias("n_documents"),
    )
    values, dropped, limits = _pooled(group, frame, kind) if kind in POOLED_AVERAGES else _of_documents(group, kind)
    return frame.with_columns(
        *(doubles(name, column) for name, column in values.items()),
        *(pl.Series(f"{name}_dropped", column.astype(np.int64)) for name, column in dropped.items()),
    ).with_columns(*limit_columns(_intervals(group, limits, confidence, resampling)), _undefined(kind))


def _pooled(group: Group, frame: pl.DataFrame, kind: Average) -> tuple[dict[str, Floats], dict[str, Floats], _Limits]:
    """Ratios of summed counts; a ratio that the conventions of SemEval alone define has no limits."""
    pooled = frame.select(ratios(*(pl.col(name) for name in ("tp", "fp", "fn"))))
    if kind == "semeval_micro" and group.n_documents:
        pooled = pooled.fill_null(1.0)
    values = {name: pooled[name].to_numpy() for name in RATIOS}
    dropped = {name: np.zeros(frame.height) for name in RATIOS}

    def limits(confidence: float, resampling: Resampling | None) -> dict[str, Limits]:
        return intervals_of_clusters(group.confusion, confidence, resampling=resampling)

    return values, dropped, limits


def _of_documents(group: Group, kind: Average) -> tuple[dict[str, Floats], dict[str, Floats], _Limits]:
    """Means of the documents' ratios."""
    sums = (
        _semeval(group) if kind == "semeval" else {name: (group.sums[name], group.sums[f"n_{name}"]) for name in RATIOS}
    )
    values, dropped = {}, {}
    for name, (total, defined) in sums.items():
        number = defined.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            values[name] = np.where(number > 0, total.sum(axis=0) / number, np.nan)
        dropped[name] = group.n_documents - number
    if kind == "semeval":
        values["f1"], dropped["f1"] = _harmonic(values["precision"], values["recall"]), np.zeros(len(group.thresholds))

    def limits(confidence: float, resampling: Resampling | None) -> dict[str, Limits]:
        in_time = group.counts.in_time
        means = {name: _means(*of_ratio, in_time=in_time) for name, of_ratio in sums.items()}
        return {name: _of_means(of_ratio, confidence, resampling) for name, of_ratio in means.items()}

    return values, dropped, limits


def _semeval(group: Group) -> dict[str, tuple[Floats, Floats]]:
    """Sums of ratios, each of them 1 in a document where it is undefined."""
    number = group.sums["n_documents"]
    return {name: (group.sums[name] + number - group.sums[f"n_{name}"], number) for name in ("precision", "recall")}


def are_alike_in_time(group: Group) -> tuple[bool, bool]:
    """Whether clusters nearby in time are alike in ratios of all mentions, and in means of ratios of documents."""
    retrieved, pooled = (group.tp + group.fp).sum(axis=0), group.confusion
    if not pooled.in_time or not len(retrieved) or not group.counts.within_budget:
        return False, False
    columns = compared_at(retrieved[0] - np.append(retrieved[1:], 0.0))
    of_mentions = (side[:, columns] for side in (pooled.tp, pooled.fp, pooled.fn, pooled.tn))
    of_documents = [
        (group.sums[name][:, columns], group.sums[f"n_{name}"][:, columns]) for name in RATIOS if group.sums
    ]
    means = [np.concatenate(sums, axis=1) for sums in zip(*of_documents, strict=True)]
    return (
        may_days_be_alike(Confusion(*of_mentions, in_time=True)),
        bool(means) and may_days_be_alike(_means(*means, in_time=True)),
    )


def _means(total: Floats, defined: Floats, *, in_time: bool) -> Confusion:
    """Sums of ratios as hits, and what they lack of the number of ratios as misses, see `mean_limits`."""
    hits, misses = np.clip(total, 0.0, None), np.clip(defined - total, 0.0, None)
    nothing = np.zeros_like(hits)
    return Confusion(hits, misses, nothing, nothing, in_time=in_time)


def _of_means(means: Confusion, confidence: float, resampling: Resampling | None) -> Limits:
    """Limits of a mean of ratios: of a share whose hits are the ratios."""
    names, heaviest = ["precision"], (UNSEEN, UNSEEN)
    return intervals_of_clusters(means, confidence, heaviest=heaviest, names=names, resampling=resampling)["precision"]


def _harmonic(precision: Floats, recall: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = 2 * precision * recall / (precision + recall)
    return np.where(precision + recall == 0, 0.0, mean)


def _intervals(
    group: Group, limits: _Limits, confidence: float | None, resampling: Resampling | None
) -> dict[str, Interval]:
    """Intervals of the three ratios; a row gives one reason for all of them."""
    size = len(group.thresholds)
    resamples = 0 if resampling is None else resampling.resamples
    if confidence is None or not group.counts.within_budget_of(resamples):
        return dict.fromkeys(RATIOS, Interval.none(size, "none" if confidence is None else "budget"))
    of_ratios = limits(confidence, resampling)
    reason: Reason = "undefined_ratio" if "f1" in of_ratios else "harmonic_mean"
    reason = "one_replicate" if len(group.counts.replicates) == 1 else reason
    return {
        name: Interval.of(of_ratios[name], reason) if name in of_ratios else Interval.none(size, reason)
        for name in RATIOS
    }


def _undefined(kind: Average) -> pl.Expr:
    tp, fp, fn = (pl.col(name) for name in ("tp", "fp", "fn"))
    none = pl.col("precision").is_null() if kind != "micro" else tp + fp == 0
    no_gold = pl.col("recall").is_null() if kind != "micro" else tp + fn == 0
    reason = pl.when(none).then(pl.lit("no_prediction")).when(no_gold).then(pl.lit("no_positive"))
    return reason.alias("undefined")
