"""Where the numbers of geocoding come from: places that are far off, mentions that are not located, documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...metrics.geocoding.accuracy import errors_without
from ...tables.columns import lowest_retrieved
from ..sections import EXPLAINED_ROWS, Evidence, Measure, Section
from ..units import OF_COUNTS, WITHOUT, by_influence, untold, with_influence

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...tables.columns import Boundary
    from ..sections import Asked

_MEASURES = {
    "precision": "tp / n_attempted",
    "recall": "tp / n_gold",
    "f1": "2 * tp / (2 * tp + fp + fn)",
    "precision_end_to_end": "tp / (n_attempted + n_spurious)",
    "f1_end_to_end": "2 * tp / (2 * tp + fp + fn + n_spurious)",
}
_END_TO_END = "_end_to_end"
_ERRORS = ("mean_km", "median_km", "log_error_auc")
_INPUTS = {
    "gold": {"mention_id": "mention_id"},
    "predicted": {"mention_id": "mention_id"},
}


def _values(asked: Asked) -> dict[str, float]:
    tolerance = 0.0 if asked.threshold is None else asked.threshold
    boundary: Boundary = ">=" if asked.params.tolerance_boundary == "<=" else ">"
    return {"tolerance_km": tolerance, "lowest_score": lowest_retrieved(0.0 - tolerance, boundary)}


def _mentions(mentions: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], _asked: Asked) -> pl.DataFrame:
    """Mentions without the columns that the inputs lack."""
    empty = [name for name in mentions.columns if mentions[name].null_count() == mentions.height]
    removable = {"mention_id", "doc_id", "gold_start", "gold_end", "gold_text"}
    return mentions.drop(name for name in empty if name in removable and not mentions.is_empty())


def _documents(documents: pl.DataFrame, frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Documents with what all other mentions have together: a ratio of counts, or a number of their errors."""
    if asked.measure in _ERRORS:
        found = _with_errors(frames["errors"], asked)
    else:
        found = with_influence(documents, asked.measure.removesuffix(_END_TO_END))
    return found.filter(pl.col("doc_id").is_not_null())


def _with_errors(errors: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """Documents with their mentions and the mean, median or area of the errors of all others."""
    grouped = errors.group_by("doc_id", maintain_order=True)
    located = pl.col("distance_km").count().cast(pl.Int64).alias("n_located")
    documents = grouped.agg(pl.len().cast(pl.Int64).alias("n_gold"), located)
    unit = errors["doc_id"].rle_id().cast(pl.Int64).to_numpy()
    distances = errors["distance_km"].cast(pl.Float64).fill_null(float("nan")).to_numpy()
    without = errors_without(unit, distances, asked.measure, missing=asked.params.missing_errors)
    values = pl.Series(WITHOUT, without, dtype=pl.Float64, nan_to_null=True)
    return by_influence(documents.with_columns(values), asked.row[asked.measure])


def _without_documents(asked: Asked) -> str:
    gold = asked.source("gold")
    if gold is None or not gold.has("doc_id"):
        return "the gold mentions have no doc_id"
    if asked.measure in {f"{name}{_END_TO_END}" for name in OF_COUNTS} and not asked.row["n_spurious"]:
        return ""  # they are the ratios of the gold mentions
    return untold(asked, "documents", (*OF_COUNTS, *_ERRORS))


EVIDENCE = Evidence(
    measures=(
        *(Measure(name, "geocoding_scores", (((name, formula),),)) for name, formula in _MEASURES.items()),
        *(Measure(name, "geocoding_errors") for name in _ERRORS),
    ),
    sections=(
        Section(
            "wrong_places",
            "Places beyond the tolerance",
            "Gold mentions whose prediction is farther away than {threshold} km, the farthest first.",
            "geocoding/explain/wrong_places",
            finish=_mentions,
            inputs=_INPUTS,
        ),
        Section(
            "not_located",
            "Mentions that are not located",
            "Gold mentions that no prediction locates, in the order of their ids.",
            "geocoding/explain/not_located",
            finish=_mentions,
            inputs=_INPUTS,
        ),
        Section(
            "nearest",
            "Mentions nearest to the tolerance",
            "Located gold mentions in the order of the difference between their distance and {threshold} km.",
            "geocoding/explain/nearest",
            finish=_mentions,
            inputs=_INPUTS,
        ),
        Section(
            "documents",
            "Documents that carry the scores",
            "Each document with the {measure} that all others have together without it; the largest influence first.",
            "geocoding/explain/documents",
            reads={"errors": "geocoding/explain/errors"},
            finish=_documents,
            ranks=True,
            absent=_without_documents,
        ),
    ),
    rows=lambda _asked: {EXPLAINED_ROWS: "toponyms"},
    threshold="tolerance_km",
    values=_values,
    parameters={"outcomes": True},
    decides=("tolerance_boundary", "candidates", "distance", "missing_errors", "match"),
)
