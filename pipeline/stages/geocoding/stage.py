"""The stage geocoding, put together."""

from __future__ import annotations

from pipeline.stages.geocoding import figures, methods, planning, results
from pipeline.stages.geocoding.contract import COUNTS, GOLD, PREDICTED, TABLES, GeocodingParameters
from pipeline.stages.geocoding.evidence import EVIDENCE
from pipeline.stages.geocoding.sample_sizes import SAMPLE_SIZES
from pipeline.stages.stage import Stage

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
    sample_sizes=SAMPLE_SIZES,
)
