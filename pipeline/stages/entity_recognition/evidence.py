"""Where the numbers of entity_recognition come from: false positives and misses with what stands beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...metrics.matching.document_averages import POOLED_AVERAGES
from ...tables.columns import RATIOS, ratios
from ...tables.ratios import F1, PRECISION, RECALL
from ..sections import EXPLAINED_ROWS, Evidence, Measure, Section
from ..units import WITHOUT, by_influence, untold, with_influence
from .profiles import PROFILES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..sections import Asked


def _documents(documents: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Documents with the ratio of all others together or, for a mean of documents, the mean of their ratios."""
    average = asked.row["average"]
    if average in POOLED_AVERAGES:
        return with_influence(documents, asked.measure)
    n_documents = asked.row["n_documents"] - asked.row[f"{asked.measure}_dropped"]
    of_document = ratios(*(pl.col(name) for name in ("tp", "fp", "fn")))[RATIOS.index(asked.measure)]
    if average == "semeval":
        of_document = of_document.fill_null(1.0)
    value = asked.row[asked.measure]
    others = pl.lit(value, dtype=pl.Float64) * n_documents - pl.col(asked.measure).fill_null(0.0)
    n_others = n_documents - pl.col(asked.measure).is_not_null().cast(pl.Int64)
    means = documents.with_columns(of_document.alias(asked.measure)).with_columns(
        pl.when(n_others > 0).then(others / n_others).alias(WITHOUT)
    )
    return by_influence(means, value)


def _without_documents(asked: Asked) -> str:
    of_harmonic_mean = asked.row.get("average") == "semeval"  # of two means over all documents
    return untold(asked, "documents", ("precision", "recall") if of_harmonic_mean else RATIOS)


def _inputs(side: str) -> dict[str, dict[str, str]]:
    """The document of a mention, and the mention itself where it has a span."""
    mention = {"doc_id": "doc_id", "start": f"{side}_start", "end": f"{side}_end"}
    return {side: mention, "documents": {"doc_id": "doc_id"}}


EVIDENCE = Evidence(
    measures=tuple(
        Measure(ratio.name, "entity_recognition_scores", (((ratio.name, ratio.formula()),),))
        for ratio in (PRECISION, RECALL, F1)
    ),
    sections=(
        Section(
            "false_positives",
            "False positives",
            "Predictions at {threshold} that are matched with no gold mention, beside the gold mention that they "
            "overlap most; the highest scores first.",
            "entity_recognition/explain/false_positives",
            inputs=_inputs("predicted"),
        ),
        Section(
            "misses",
            "Misses",
            "Gold mentions that are matched with no prediction at {threshold}, beside the prediction that they overlap "
            "most, whatever its score; those that no threshold matches come first.",
            "entity_recognition/explain/misses",
            inputs=_inputs("gold"),
        ),
        Section(
            "documents",
            "Documents that carry the scores",
            "Each document with the {measure} that all others have together without it; the largest influence first.",
            "entity_recognition/explain/documents",
            finish=_documents,
            ranks=True,
            absent=_without_documents,
            inputs={"documents": {"doc_id": "doc_id"}},
        ),
    ),
    rows=lambda _asked: {EXPLAINED_ROWS: "mentions"},
    points="entity_recognition_operating_points",
    preferred={"average": "micro"},
    parameters={"outcomes": True},
    profiles=PROFILES,
    decides=("match", "match_type", "assignment", "boundary", "invalid_scores"),
)
