"""The stage threshold_sweep, put together."""

from __future__ import annotations

from pipeline.stages.stage import Stage, UnitTable
from pipeline.stages.threshold_sweep import figures, methods, planning, results
from pipeline.stages.threshold_sweep.areas import AREAS
from pipeline.stages.threshold_sweep.contract import COUNTS, PREDICTIONS, ThresholdSweepParameters
from pipeline.stages.threshold_sweep.decisions.costs import further_columns
from pipeline.stages.threshold_sweep.evidence import EVIDENCE
from pipeline.stages.threshold_sweep.sample_sizes import SAMPLE_SIZES
from pipeline.stages.threshold_sweep.tables import TABLES
from pipeline.stages.threshold_sweep.unit_columns import COST, UNITS

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
