"""Where the numbers of ranking come from: the worst queries, and the documents that make them so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...queries.load import statement
from ...tables.schemas import GROUPING
from ..sections import EXPLAINED_ROWS, Evidence, Measure, Section
from .contract import INTERPOLATED, MEASURE_NAMES, MEASURE_TABLE
from .profiles import TREC_EVAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    import sqlglot.expressions as exp

    from ..sections import Asked

_MEASURES = ("map", *(name for name in MEASURE_NAMES[1:] if name not in INTERPOLATED), *INTERPOLATED)
OF_MEASURES = "mean"  # of a measure that the config names, which the column `measure` tells
_SHOWN = ("query_id", "n_relevant", "n_retrieved", "n_relevant_retrieved")
_INPUTS = {name: {"query_id": "query_id", "doc_id": "doc_id"} for name in ("ranking", "relevance")}


def _rows(asked: Asked) -> exp.Query:
    is_labelled = asked.source("relevance") is None
    return statement(f"ranking/explain/{'labelled_rows' if is_labelled else 'rows'}", asked.by)


def _queries(queries: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Queries in the order of what is explained, the lowest first; those in which it is undefined are not shown."""
    name = {"map": "average_precision", OF_MEASURES: asked.row.get("measure", "")}.get(asked.measure, asked.measure)
    name = name if name in queries.columns else "average_precision"  # of numbers that single queries have not
    same = (pl.col(key).eq_missing(pl.lit(value)) for key, value in asked.group.items())
    of_group = queries.filter(pl.col(GROUPING.name) == asked.row[GROUPING.name], *same)
    names = dict.fromkeys((*asked.group, *_SHOWN, name, "average_precision", "ap_expected"))
    return of_group.drop_nulls(name).sort(name, "query_id").select(*names)


def _documents(documents: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Documents with their score; of a ranking that is read by rank the value is only the rank."""
    is_scored = asked.params.ties != "order" and asked.plan.sources[0].has("score")
    return documents.rename({"value": "score"}) if is_scored else documents.drop("value")


def _without_judgements(asked: Asked) -> str:
    return "" if asked.source("relevance") is not None else "the judgements are those of the ranking itself"


EVIDENCE = Evidence(
    measures=(*(Measure(name, "ranking_summary") for name in _MEASURES), Measure(OF_MEASURES, MEASURE_TABLE)),
    sections=(
        Section(
            "worst_queries",
            "Queries with the lowest value",
            "Queries in the order of the measure, or of average precision where single queries do not have it; the "
            "lowest first, beside what random selection would give.",
            table="ranking_queries",
            finish=_queries,
            ranks=True,
        ),
        Section(
            "relevant_last",
            "Relevant documents that are ranked last",
            "Retrieved documents that are relevant, the last ranks first.",
            "ranking/explain/relevant_last",
            finish=_documents,
            inputs=_INPUTS,
        ),
        Section(
            "irrelevant_first",
            "Documents that are ranked first and are not relevant",
            "Retrieved documents that are judged not relevant, or are not judged (relevance is NULL), the first ranks "
            "first.",
            "ranking/explain/irrelevant_first",
            finish=_documents,
            inputs=_INPUTS,
        ),
        Section(
            "not_retrieved",
            "Relevant documents that were not retrieved",
            "Relevant documents that a ranked query did not retrieve, the most relevant first.",
            "ranking/explain/not_retrieved",
            inputs={"relevance": {"query_id": "query_id", "doc_id": "doc_id"}},
            absent=_without_judgements,
        ),
    ),
    rows=lambda asked: {EXPLAINED_ROWS: _rows(asked)},
    threshold="",
    values=lambda asked: {"relevance_level": asked.params.relevance_level},
    independent="queries",
    profiles=(TREC_EVAL,),
    decides=("ties", "relevance_level", "missing_queries", "no_relevant", "n_candidates"),
)
