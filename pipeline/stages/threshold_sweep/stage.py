"""The stage threshold_sweep, put together."""

from __future__ import annotations

from ..stage import Stage, UnitTable
from . import figures, methods, planning, results
from .areas import AREAS
from .contract import COUNTS, PREDICTIONS, ThresholdSweepParameters
from .evidence import EVIDENCE
from .methods import SAMPLE_SIZES
from .tables import TABLES, further_columns
from .units import COST, UNITS

STAGE = Stage(
    kind="threshold_sweep",
    parameters=ThresholdSweepParameters,
    inputs=(PREDICTIONS,),
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
    units=UnitTable(
        UNITS.name,
        "unit",
        metrics=(*AREAS, "pooled_precision", "pooled_recall", "pooled_f1"),
        contributions=(*AREAS, COST.name),
    ),
)
