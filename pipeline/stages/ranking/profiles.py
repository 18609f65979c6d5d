"""What trec_eval does otherwise."""

from __future__ import annotations

from ...metrics.ranking.measures import RECALL_LEVELS
from ..profiles import Convention, Profile
from .contract import INTERPOLATED

_INTERPOLATED_THERE = {
    name: f"iprec_at_recall_{level:.2f}" for name, level in zip(INTERPOLATED, RECALL_LEVELS, strict=True)
}
TREC_EVAL = Profile(
    name="trec_eval",
    tool="trec_eval 10.0",
    measures={
        "map": "map",
        "r_precision": "Rprec",
        "reciprocal_rank": "recip_rank",
        "bpref": "bpref",
        "set_precision": "set_P",
        "set_recall": "set_recall",
        **_INTERPOLATED_THERE,
    },
    conventions=(
        Convention(
            "equal scores",
            "in descending order of the document ids as text; ranks are ignored",
            {"ties": "trec"},
        ),
        Convention(
            "queries without a retrieved document",
            "left out of means (with -c they count as 0)",
            {"missing_queries": "skip"},
            keeps={"missing_queries": "error"},  # then the run had none
        ),
        Convention(
            "queries without a relevant document",
            "every measure is 0, and counts in means",
            {"no_relevant": "zero"},
        ),
        Convention("relevant documents", "those with a relevance from 1 on (-l sets it)", {"relevance_level": 1.0}),
        Convention(
            "hits that a recall asks for",
            "the nearest whole number; up to 9.0.8 it added 0.9 and cut off",
            {"interpolation": "trec_eval_10"},
            measures=INTERPOLATED,
        ),
    ),
    exactly="trec_eval prints it with four digits",
    units=("ranking_queries", "query_id", ("average_precision", "r_precision", "reciprocal_rank")),
)
