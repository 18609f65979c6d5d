"""The stage geocoding, put together."""

from __future__ import annotations

from ...metrics.geocoding.accuracy import ERRORS
from ..stage import Stage, UnitTable
from . import figures, methods, planning, results
from .contract import COUNTS, GOLD, PREDICTED, TABLES, GeocodingParameters
from .documents import TABLE as UNITS
from .evidence import EVIDENCE
from .methods import SAMPLE_SIZES

STAGE = Stage(
    kind="geocoding",
    parameters=GeocodingParameters,
    inputs=(PREDICTED, GOLD),
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
    units=UnitTable(
        UNITS,
        "unit",
        metrics=(*ERRORS, "pooled_precision", "pooled_recall", "pooled_f1"),
        contributions=ERRORS,
    ),
    sample_sizes=SAMPLE_SIZES,
)
