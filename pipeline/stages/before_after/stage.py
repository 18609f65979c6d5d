"""The stage before_after, put together."""

from __future__ import annotations

from ...metrics.curves.operating_points import cost_column
from ..stage import Stage, UnitTable
from . import figures, methods, planning, results
from .contract import (
    ARTICLES,
    AUDITED,
    EVENTS,
    GOLD,
    GOLD_ARTICLES,
    PAIRS,
    BeforeAfterParameters,
)
from .evidence import EVIDENCE
from .methods import SAMPLE_SIZES
from .tables import COUNT_TABLE, TABLES

STAGE = Stage(
    kind="before_after",
    parameters=BeforeAfterParameters,
    inputs=(PAIRS, EVENTS, ARTICLES, GOLD, GOLD_ARTICLES, AUDITED),
    tables=TABLES,
    count_columns=COUNT_TABLE,
    plan=planning.plan,
    derive=results.derive,
    warnings=results.warnings,
    summarize=results.summarize,
    figures=figures.figures,
    key_numbers=figures.key_numbers,
    methods=methods.sentences,
    evidence=EVIDENCE,
    further_columns=lambda params: {"before_after_operating_points": cost_column(params.operating_points)},
    sample_sizes=SAMPLE_SIZES,
    units=UnitTable("before_after_events", "event_id", grouped=False),
)
