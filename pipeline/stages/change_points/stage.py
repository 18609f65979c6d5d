"""The stage change_points, put together."""

from __future__ import annotations

from ..stage import Stage, UnitTable
from . import figures, methods, planning, results
from .contract import (
    ANNOTATIONS,
    CODERS,
    COUNTS,
    PREDICTIONS,
    RUNS,
    SERIES,
    TABLES,
    ChangePointsParameters,
    further_columns,
)
from .evidence import EVIDENCE
from .methods import SAMPLE_SIZES

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
    further_columns=further_columns,
    sample_sizes=SAMPLE_SIZES,
    units=UnitTable("change_points_series", "series_id", has_clusters=True),
)
