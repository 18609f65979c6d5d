"""Quotients, each rounded once; precision, recall and F1 from counts."""

from __future__ import annotations

import numpy as np
import polars as pl

RATIOS = ("precision", "recall", "f1")


def quotient(over: pl.Series, under: pl.Series) -> pl.Series:
    """Divide one column by another, as DOUBLE; NULL where the divisor is 0 or either value is NULL.

    NumPy divides, because Polars multiplies by the reciprocal of a column that it knows to be constant: that rounds
    twice, makes 49 / 49 less than 1, and lets the last digit depend on how a frame was made.
    """
    dividend, divisor = (each.cast(pl.Float64).to_numpy() for each in (over, under))  # NULL is nan
    quotients = np.divide(dividend, divisor, out=np.full(len(divisor), np.nan), where=divisor != 0)
    return pl.Series(over.name, quotients, dtype=pl.Float64, nan_to_null=True)


def divide(over: pl.Expr, under: pl.Expr) -> pl.Expr:
    """Divide one expression by another of the same length, as `quotient` does."""
    return pl.map_batches(
        [over, under], lambda pair: quotient(pair[0], pair[1]), return_dtype=pl.Float64, is_elementwise=True
    )


def ratios(tp: pl.Expr, fp: pl.Expr, fn: pl.Expr) -> list[pl.Expr]:
    """Return the columns `precision`, `recall` and `f1` = 2 tp / (2 tp + fp + fn); NULL where the denominator is 0."""
    fractions = ((tp, tp + fp), (tp, tp + fn), (2 * tp, 2 * tp + fp + fn))
    return [divide(over, under).alias(name) for name, (over, under) in zip(RATIOS, fractions, strict=True)]
