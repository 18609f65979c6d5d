"""Averages of precision, recall and F1 over documents, from counts per document.

`micro`          ratios of the summed counts; every mention counts the same
`macro`          means of the ratios of the documents for which a ratio is defined; the number of others is reported
`semeval`        the macro scores of the scorer of SemEval-2019 Task 12 (Weissenbacher et al. 2019): means over all
                 documents, where precision is 1 without a prediction, recall is 1 without a gold mention, each by
                 itself, and F1 is the harmonic mean of the averaged precision and recall, 0 if both are 0
`semeval_micro`  the micro scores of the same scorer: ratios of the summed counts, by the same two rules
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import polars as pl

from ...tables.columns import RATIOS, ratios

if TYPE_CHECKING:
    from collections.abc import Sequence

Average = Literal["micro", "macro", "semeval", "semeval_micro"]
POOLED_AVERAGES: frozenset[Average] = frozenset({"micro", "semeval_micro"})  # computed from summed counts only


def averages(documents: pl.DataFrame, keys: Sequence[str], kinds: Sequence[Average]) -> pl.DataFrame:
    """Averages of the documents of every group.

    Args:
        documents: One row per group × document with the integers `tp`, `fp`, `fn`, including documents without any
            mention.
        keys: Columns that identify a group; NULL is a value like any other. Without keys all rows form one group.
        kinds: The averages to compute.

    Returns:
        One row per group × average, ordered by the keys and in the order of `kinds`: the keys, `average`,
        `n_documents`, `tp`, `fp`, `fn` (sums), `precision`, `recall`, `f1` and, for each of the three,
        `<name>_dropped`: the number of documents that a mean leaves out because its ratio is undefined. A mean is NULL
        if no document is left, a `micro` ratio if the summed denominator is 0, and the SemEval averages only if there
        is no document at all.
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
    return [
        *(pl.col(name).mean() for name in RATIOS),
        *(_dropped(pl.col(name).null_count(), name) for name in RATIOS),
    ]


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
