"""The stage compare, put together."""

from __future__ import annotations

from ..stage import Stage
from . import figures, methods, planning, results, summary
from .contract import COUNTS, UNITS, CompareParameters, further_columns
from .evidence import EVIDENCE
from .methods import SAMPLE_SIZES
from .tables import TABLES

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
