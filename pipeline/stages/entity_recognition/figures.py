"""What there is to look at of entity_recognition: averages, curves by confidence, and spread over documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...tables.columns import THRESHOLD, ratio_of
from ...tables.ratios import F1
from ..figures import Axis, Figure, caption, drawn, intervals, keys_of, of_best, ratio_series, rising, shares, shown
from ..standard_figures import (
    Wanted,
    by_threshold,
    histogram_of_shares,
    key_numbers_of,
    precision_recall,
    ratios_of_groups,
)
from .results import best_on_other_data, best_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..figures import KeyNumber

NUMBERS = (
    Wanted("precision", "Precision", "predicted mentions that are right", "precision"),
    Wanted("recall", "Recall", "gold mentions that are found", "recall"),
    Wanted("f1", "F1", "harmonic mean of the two", "f1"),
)
CURVES = ("micro", "macro", "semeval_micro", "semeval")  # the average of the curves: the first that there is


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Curves by confidence where there are scores, averages at their best threshold, F1 over documents.

    Args:
        tables: The result tables of the stage.
        confidence: The level of their intervals.
    """
    scores = tables["entity_recognition_scores"]
    if scores.is_empty():
        return
    average = headline_average(scores)
    curve = scores.filter(pl.col("average") == average)
    points = tables["entity_recognition_operating_points"] if average == "micro" else None
    if curve[THRESHOLD].n_unique() > 1:
        words = f"The ratios ({average} average) if every prediction that scores at least the threshold counts."
        x_title = "Threshold: confidence from which a prediction counts"
        by_confidence = rising(curve)
        yield by_threshold(by_confidence, points, confidence, what=words, x_title=x_title)
        yield precision_recall(by_confidence, points)
    best = of_best(best_rows(curve))
    yield ratios_of_groups(best, "tp", confidence, f"({average} average) at its best threshold")
    yield _averages(scores, confidence)
    documents = tables.get("entity_recognition_documents")
    if documents is not None:
        yield _documents(documents)


def headline_average(scores: pl.DataFrame) -> str:
    """Return the average that stands for all: `micro` if there is one."""
    present = set(scores["average"])
    return next(average for average in CURVES if average in present)


def _averages(scores: pl.DataFrame, confidence: float) -> Figure:
    best = of_best(best_rows(scores)).sort(*keys_of(scores), "average")
    series = ratio_series(best, "point")
    words = (
        "Every average at the threshold with its best F1: micro of all mentions together, macro the mean over "
        "documents, semeval by the conventions of that task."
    )
    return Figure(
        name="averages",
        title="Precision, recall and F1 by average",
        caption=caption(words, intervals(series, confidence)),
        frame=drawn(best, "average", series),
        x=Axis("average", "Average", "category"),
        y=shares("Precision, recall, F1"),
        series=series,
    )


def _documents(documents: pl.DataFrame) -> Figure:
    tp, fp, fn = (pl.col(name) for name in ("tp", "fp", "fn"))
    return histogram_of_shares(
        documents.with_columns(ratio_of(F1, {"tp": tp, "fp": fp, "fn": fn})),
        "f1",
        name="f1_of_documents",
        title="F1 of the documents",
        what="F1 of a document, all its predictions counted",
        unit="documents",
    )


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Precision, recall and F1 of every group at the threshold with the best F1, the micro average if there is one."""
    scores = tables["entity_recognition_scores"]
    if scores.is_empty():
        return ()
    of_average = scores.filter(pl.col("average") == headline_average(scores))
    return key_numbers_of(best_on_other_data(tables, of_average), NUMBERS)
