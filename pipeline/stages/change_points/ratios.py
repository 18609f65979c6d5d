"""Precision, recall and F1 of counts, each rounded once."""

from __future__ import annotations

import numpy as np
import polars as pl


def quotient(over: pl.Series, under: pl.Series) -> pl.Series:
    """One column divided by another; NULL where the second is 0 or either is NULL.

    By NumPy, because Polars multiplies by the reciprocal where a column is a repeated scalar: the last digit of a
    result would depend on how the frame was made.
    """
    dividend, divisor = (each.cast(pl.Float64).fill_null(np.nan).to_numpy() for each in (over, under))
    found = np.divide(dividend, divisor, out=np.full(len(divisor), np.nan), where=divisor != 0)
    return pl.Series(over.name, found, dtype=pl.Float64).fill_nan(None)


def with_ratios(frame: pl.DataFrame, recalls: tuple[str, str] | None) -> pl.DataFrame:
    """The frame with precision, recall, f1, and why one is `undefined`.

    Args:
        frame: Columns n_true, n_predicted, tp.
        recalls: Columns of a sum of recalls and of their number, where recall is a mean (`tcpd`); F1 then is the
            harmonic mean, as precision and recall count different things, else it comes from the counts.
    """
    precision = quotient(frame["tp"], frame["n_predicted"]).alias("precision")
    if recalls is None:
        recall = quotient(frame["tp"], frame["n_true"])
        f1 = quotient(2 * frame["tp"], frame["n_predicted"] + frame["n_true"])
    else:
        recall = quotient(frame[recalls[0]], frame[recalls[1]])
        f1 = quotient(2 * precision * recall, precision + recall)
        f1 = pl.select(pl.when((precision + recall) == 0).then(0.0).otherwise(f1)).to_series()
    nothing = pl.when(pl.col("n_predicted") == 0).then(pl.lit("no_prediction"))
    undefined = nothing.when(pl.col("n_true") == 0).then(pl.lit("no_positive")).alias("undefined")
    return frame.with_columns(precision, recall.alias("recall"), f1.alias("f1"), undefined)
