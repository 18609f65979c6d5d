"""The stage compare, put together."""

from __future__ import annotations

from pipeline.stages.compare import figures, methods, planning, results, summary
from pipeline.stages.compare.contract import COUNTS, UNITS, CompareParameters, further_columns
from pipeline.stages.compare.evidence import EVIDENCE
from pipeline.stages.compare.sample_sizes import SAMPLE_SIZES
from pipeline.stages.compare.tables import TABLES
from pipeline.stages.stage import Stage

STAGE = Stage(
    kind="compare",
    parameters=CompareParameters,
    inputs=(UNITS,),
    tables=TABLES,
    count_columns=COUNTS,
    plan=planning.plan,
    derive=results.derive,
    warnings=summary.warnings,
    summarize=summary.summarize,
    figures=figures.figures,
    key_numbers=figures.key_numbers,
    methods=methods.sentences,
    evidence=EVIDENCE,
    sample_sizes=SAMPLE_SIZES,
    further_columns=further_columns,
)
