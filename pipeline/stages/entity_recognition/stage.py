"""The stage entity_recognition, put together."""

from __future__ import annotations

from ...metrics.curves.choice_columns import cost_columns
from ..stage import Stage, UnitTable
from . import figures, methods, planning, results
from .contract import (
    COUNTS,
    DOCUMENTS,
    GOLD,
    PREDICTED,
    TABLES,
    EntityRecognitionParameters,
)
from .evidence import EVIDENCE
from .sample_sizes import SAMPLE_SIZES

STAGE = Stage(
    kind="entity_recognition",
    parameters=EntityRecognitionParameters,
    inputs=(PREDICTED, GOLD, DOCUMENTS),
    tables=TABLES,
    count_columns=COUNTS,
    plan=planning.plan,
    derive=results.derive,
    warnings=results.warnings,
    summarize=results.summarize,
    figures=figures.figures,
    key_numbers=figures.key_numbers,
    methods=methods.sentences,
    evidence=EVIDENCE,
    further_columns=lambda params: {"entity_recognition_operating_points": cost_columns(params.operating_points)},
    sample_sizes=SAMPLE_SIZES,
    units=UnitTable("entity_recognition_documents", "doc_id"),
)
