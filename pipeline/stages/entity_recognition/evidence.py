"""Where the numbers of entity_recognition come from: false positives and misses with what stands beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.stages.entity_recognition.profiles import PROFILES
from pipeline.stages.evidence import Evidence, Measure
from pipeline.stages.influence import with_influence
from pipeline.stages.sections import EXPLAINED_ROWS, Section
from pipeline.tables.ratios import RATIOS

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

    from pipeline.stages.sections import Asked

FORMULAS = {
    "precision": "tp / (tp + fp)",
    "recall": "tp / (tp + fn)",
    "f1": "2 * tp / (2 * tp + fp + fn)",
}


def _documents(documents: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    return with_influence(documents, asked.measure)


def _inputs(side: str) -> dict[str, dict[str, str]]:
    """The document of a mention, and the mention itself where it has a span."""
    mention = {"doc_id": "doc_id", "start": f"{side}_start", "end": f"{side}_end"}
    return {side: mention, "documents": {"doc_id": "doc_id"}}


EVIDENCE = Evidence(
    measures=tuple(Measure(name, "entity_recognition_scores", (((name, FORMULAS[name]),),)) for name in RATIOS),
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
            "Each document with the ratio that all others have together without it; the largest influence first.",
            "entity_recognition/explain/documents",
            finish=_documents,
            ranks=True,
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
