"""The stage entity_recognition, put together."""

from __future__ import annotations

from ..stage import Stage, UnitTable
from . import figures, methods, planning, results
from .contract import (
    COUNTS,
    DOCUMENTS,
    GOLD,
    PREDICTED,
    TABLES,
    EntityRecognitionParameters,
    further_columns,
)
from .evidence import EVIDENCE
from .methods import SAMPLE_SIZES

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
    further_columns=further_columns,
    sample_sizes=SAMPLE_SIZES,
    units=UnitTable("entity_recognition_documents", "doc_id", has_clusters=True),
)
