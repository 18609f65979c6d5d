"""The stage ranking, put together."""

from __future__ import annotations

from ..stage import Stage, UnitTable
from . import figures, methods, planning, results
from .contract import (
    COUNTS,
    QUERY_TABLE,
    RANKING,
    RELEVANCE,
    TABLES,
    RankingParameters,
    further_columns,
)
from .evidence import EVIDENCE
from .methods import SAMPLE_SIZES

STAGE = Stage(
    kind="ranking",
    parameters=RankingParameters,
    inputs=(RANKING, RELEVANCE),
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
    further_columns=further_columns,
    units=UnitTable(
        QUERY_TABLE,
        "query_id",
        columns={"tp": "n_relevant_retrieved", "n_predicted": "n_retrieved", "n_true": "n_relevant"},
        metrics=("average_precision", "r_precision", "reciprocal_rank"),
        has_clusters=True,
    ),
)
