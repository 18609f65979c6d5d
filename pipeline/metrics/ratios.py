"""Precision, recall and F1 of counts."""

from __future__ import annotations

import polars as pl

RATIOS = ("precision", "recall", "f1")


def ratios(tp: pl.Expr, fp: pl.Expr, fn: pl.Expr) -> list[pl.Expr]:
    """Columns `precision`, `recall` and `f1` = 2 tp / (2 tp + fp + fn); NULL where the denominator is 0.

    Every denominator is a sum with `tp`: Polars divides by a column that repeats one value, such as a literal or a
    cross join leaves, by multiplying with the reciprocal, and 3 / 5 is then above 0.6.
    """
    parts = ((tp, tp + fp), (tp, tp + fn), (2 * tp, 2 * tp + fp + fn))
    return [
        pl.when(whole > 0).then(part / whole).alias(name) for name, (part, whole) in zip(RATIOS, parts, strict=True)
    ]
