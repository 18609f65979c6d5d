"""The stage before_after, put together."""

from __future__ import annotations

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
from .tables import COUNT_TABLE, TABLES, further_columns

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
    further_columns=further_columns,
    sample_sizes=SAMPLE_SIZES,
    units=UnitTable("before_after_events", "event_id", grouped=False, has_clusters=True),
)
