"""Precision, recall and F1 of counts, each rounded once."""

from __future__ import annotations

import polars as pl

from ...tables.ratios import quotient


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
