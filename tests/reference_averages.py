"""Averages of precision, recall and F1 over documents, from counts per document: what recognition is held against."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.base.columns import RATIOS, ratios

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.metrics.matching import Average


def averages(documents: pl.DataFrame, keys: Sequence[str], kinds: Sequence[Average]) -> pl.DataFrame:
    """Averages of every group, from one row per group and document with `tp`, `fp` and `fn`.

    One row per group and average, ordered by the keys and in the order of `kinds`. A mean is NULL if no document is
    left, a `micro` ratio if the summed denominator is 0, and the SemEval averages only if there is no document at all.
    """
    with_ratios = documents.with_columns(ratios(*(pl.col(name) for name in ("tp", "fp", "fn"))))
    frames = [
        _grouped(with_ratios, keys, _AGGREGATES[kind]()).with_columns(
            pl.lit(kind).alias("average"), pl.lit(position).alias("_position")
        )
        for position, kind in enumerate(kinds)
    ]
    columns = [*keys, "average", "n_documents", "tp", "fp", "fn", *RATIOS, *(f"{name}_dropped" for name in RATIOS)]
    return pl.concat(frames).sort([*keys, "_position"]).select(columns)


def _grouped(frame: pl.DataFrame, keys: Sequence[str], aggregates: Sequence[pl.Expr]) -> pl.DataFrame:
    sums = [pl.len().cast(pl.Int64).alias("n_documents"), *(pl.col(name).sum() for name in ("tp", "fp", "fn"))]
    wanted = [*sums, *aggregates]
    return frame.group_by(keys).agg(wanted) if keys else frame.select(wanted)


def _dropped(count: pl.Expr, name: str) -> pl.Expr:
    return count.cast(pl.Int64).alias(f"{name}_dropped")


def _micro() -> list[pl.Expr]:
    totals = ratios(*(pl.col(name).sum() for name in ("tp", "fp", "fn")))
    return [*totals, *(_dropped(pl.lit(0), name) for name in RATIOS)]


def _macro() -> list[pl.Expr]:
    return [*(pl.col(name).mean() for name in RATIOS), *(_dropped(pl.col(name).null_count(), name) for name in RATIOS)]


def _semeval() -> list[pl.Expr]:
    precision, recall = (pl.col(name).fill_null(1.0).mean() for name in ("precision", "recall"))
    total = precision + recall
    f1 = pl.when(total > 0).then(2 * precision * recall / total).when(total == 0).then(0.0)
    return [
        *(mean.alias(name) for name, mean in zip(RATIOS, (precision, recall, f1), strict=True)),
        *(_dropped(pl.lit(0), name) for name in RATIOS),
    ]


def _semeval_micro() -> list[pl.Expr]:
    totals = ratios(*(pl.col(name).sum() for name in ("tp", "fp", "fn")))
    return [
        *(
            pl.when(pl.len() > 0).then(total.fill_null(1.0)).alias(name)
            for name, total in zip(RATIOS, totals, strict=True)
        ),
        *(_dropped(pl.lit(0), name) for name in RATIOS),
    ]


_AGGREGATES = {"micro": _micro, "macro": _macro, "semeval": _semeval, "semeval_micro": _semeval_micro}
