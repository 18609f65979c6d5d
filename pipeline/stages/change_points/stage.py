"""The stage change_points, put together."""

from __future__ import annotations

from pipeline.stages.change_points import figures, methods, planning, results
from pipeline.stages.change_points.contract import COUNTS, TABLES, ChangePointsParameters
from pipeline.stages.change_points.evidence import EVIDENCE
from pipeline.stages.change_points.input_contracts import ANNOTATIONS, CODERS, PREDICTIONS, RUNS, SERIES
from pipeline.stages.stage import Stage, UnitTable

STAGE = Stage(
    kind="change_points",
    parameters=ChangePointsParameters,
    inputs=(PREDICTIONS, ANNOTATIONS, SERIES, RUNS, CODERS),
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
    units=UnitTable("change_points_series", "series_id"),
)
