"""What follows from the measures of every ranking: values of queries, values at cutoffs, means, and words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...errors import Note
from ...metrics.uncertainty.interval_quality import FEWEST_CLUSTERS
from ...metrics.uncertainty.limits import warnings_of_marks
from ...tables.columns import REPLICATE, as_key
from ...tables.groupings import TOTAL, Grouping, group_text
from ...tables.schemas import GROUPING
from ...visible_text import of_every
from ..stage import CLUSTER, Summary, groups_with, integer, interval, of_group, percent
from .contract import (
    CUTOFF_MEANS,
    CUTOFFS,
    INTERPOLATED,
    MEANS_OF_MEASURES,
    MEASURE_NAMES,
    MEASURE_TABLE,
    QUERIES,
    QUERY_TABLE,
    SUMMARY,
    further_columns,
)
from .means import (
    Groups,
    measure_names,
    null_of_means,
    pool,
    quality_of,
    why_no_null,
    with_average_precision_null,
    with_hits_null,
    with_measures,
)
from .ranking_measures import PLACE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...tables.schemas import Column
    from .contract import RankingParameters

MEANS = tuple(
    (name, "map" if name == "average_precision" else name, name not in INTERPOLATED) for name in MEASURE_NAMES
)


def derive(params: RankingParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables of ranking."""
    columns = counts["counts"].columns
    by, further = columns[1 : columns.index(REPLICATE)], further_columns(params)
    rankings = with_average_precision_null(_measured(params, counts["lists"]), params)
    if CLUSTER in rankings.columns:
        rankings = rankings.with_columns(as_key(rankings[CLUSTER]))
    cutoffs = _at_cutoffs(params, rankings)
    return {
        QUERY_TABLE: _per_query(params, rankings, by, (*QUERIES, *further[QUERY_TABLE])),
        "ranking_cutoffs": _per_query(params, with_hits_null(cutoffs), by, CUTOFFS),
        "ranking_summary": _grouped(
            [_summary(params, rankings, grouping) for grouping in params.groupings],
            by,
            (*SUMMARY, *further["ranking_summary"]),
            rankings,
        ),
        "ranking_cutoff_means": _grouped(
            [_means_at(params, cutoffs, grouping, k) for grouping in params.groupings for k in params.cutoffs],
            by,
            (*CUTOFF_MEANS, *further["ranking_cutoff_means"]),
            rankings,
        ),
    } | _means_by_name(params, rankings, by)


def _measured(params: RankingParameters, lists: pl.DataFrame) -> pl.DataFrame:
    """Ratios of every ranking; those of a query without a relevant document as the parameters say."""
    relevant, retrieved = pl.col("n_relevant"), pl.col("n_retrieved")
    ratios = {
        "average_precision": pl.col("precision_sum") / relevant,
        "r_precision": pl.col("relevant_at_r") / relevant,
        "reciprocal_rank": pl.col("reciprocal_rank"),
        "bpref": pl.col("bpref"),
        "set_precision": pl.when(retrieved > 0).then(pl.col("n_relevant_retrieved") / retrieved).otherwise(0.0),
        "set_recall": pl.col("n_relevant_retrieved") / relevant,
    } | {name: pl.when(~pl.col("mixed")).then(pl.col(name)) for name in INTERPOLATED}
    none = pl.lit(0.0) if params.no_relevant == "zero" else pl.lit(None, dtype=pl.Float64)
    without = pl.when(pl.col("judged")).then(none)
    by_name = (pl.when(pl.col("judged")).then(pl.coalesce(name, none)).alias(name) for name in params.measures)
    reason = pl.coalesce("no_null", pl.when(pl.col("mixed")).then(pl.lit("ties")))
    return (
        lists.with_columns(pool(params).alias("n"), *by_name)
        .with_columns(
            why_no_null(params).alias("no_null"),
            *(pl.when(relevant > 0).then(ratio).otherwise(without).alias(name) for name, ratio in ratios.items()),
        )
        .with_columns(pl.col("average_precision").is_not_null().alias("included"), reason.alias("undefined"))
    )


def _at_cutoffs(params: RankingParameters, rankings: pl.DataFrame) -> pl.DataFrame:
    """One row per ranking and cutoff: hits, precision and recall."""
    kept = [name for name in rankings.columns if not name.startswith(("hits_", "straddled_"))]
    dropped = {"undefined", "undefined_p_value", *MEASURE_NAMES, *params.measures}
    kept = [name for name in kept if name not in dropped]
    included = pl.when(pl.col("included"))
    frames = [
        rankings.select(*kept, f"hits_{k}", f"straddled_{k}")
        .rename({f"hits_{k}": "hits", f"straddled_{k}": "straddled"})
        .with_columns(pl.lit(k, dtype=pl.Int64).alias("k"), pl.col("no_null").alias("undefined"))
        for k in params.cutoffs
    ]
    recall = pl.when(pl.col("n_relevant") > 0).then(pl.col("hits") / pl.col("n_relevant")).otherwise(0.0)
    return pl.concat(frames).with_columns(
        included.then(pl.col("hits") / pl.col("k")).alias("precision"), included.then(recall).alias("recall")
    )


def _per_query(
    params: RankingParameters, frame: pl.DataFrame, by: Sequence[str], columns: Sequence[Column]
) -> pl.DataFrame:
    """Rows of every grouping in which a query has one ranking."""
    names = [column.name for column in columns]
    keys = [name for name in ("query_id", "k") if name in names]
    frames = [
        _labelled(frame, grouping, by, frame).select(GROUPING.name, *by, *names)
        for grouping in params.groupings
        if not frame.select(*grouping.columns, *keys).is_duplicated().any()
    ]
    return (
        pl.concat(frames)
        if frames
        else _labelled(frame, Grouping(()), by, frame).select(GROUPING.name, *by, *names).clear()
    )


def _labelled(frame: pl.DataFrame, grouping: Grouping, by: Sequence[str], like: pl.DataFrame) -> pl.DataFrame:
    """A frame with the name of its grouping, and the other grouping columns NULL."""
    absent_groups = [pl.lit(None, dtype=like.schema[name]).alias(name) for name in by if name not in grouping.columns]
    return frame.with_columns(pl.lit(grouping.label).alias(GROUPING.name), *absent_groups)


def _grouped(
    frames_of_groupings: Sequence[tuple[Grouping, pl.DataFrame]],
    by: Sequence[str],
    columns: Sequence[Column],
    like: pl.DataFrame,
) -> pl.DataFrame:
    names = [GROUPING.name, *by, *(column.name for column in columns)]
    return pl.concat([_labelled(frame, grouping, by, like).select(names) for grouping, frame in frames_of_groupings])


def _summary(params: RankingParameters, rankings: pl.DataFrame, grouping: Grouping) -> tuple[Grouping, pl.DataFrame]:
    groups = Groups(rankings, grouping.columns)
    means = (*groups.means(MEANS, params), *null_of_means(groups))
    limited = [name for name, _, is_limited in MEANS if is_limited]
    columns = [*groups.counts(), *means, *groups.trust(params, limited)]
    frame = _beside(groups, columns)
    unknown = (
        pl.when(pl.col("n_queries") == 0)
        .then(pl.lit("no_query"))
        .when(pl.col("map_expected").is_null())
        .then(pl.lit("query_without_null"))
        .when(pl.any_horizontal(pl.col(INTERPOLATED).is_null()))
        .then(pl.lit("ties"))
    )
    return grouping, frame.with_columns(unknown.alias("undefined"))


def _means_at(
    params: RankingParameters, cutoffs: pl.DataFrame, grouping: Grouping, k: int
) -> tuple[Grouping, pl.DataFrame]:
    groups = Groups(cutoffs.filter(pl.col("k") == k), grouping.columns)
    means = groups.means([("precision", "precision", True), ("recall", "recall", True)], params)
    frame = _beside(groups, [*groups.counts(), *means, *groups.trust(params, ["precision", "recall"])])
    none = pl.when(pl.col("n_queries") == 0).then(pl.lit("no_query")).alias("undefined")
    return grouping, frame.with_columns(none, pl.lit(k, dtype=pl.Int64).alias("k"))


def _means_by_name(params: RankingParameters, rankings: pl.DataFrame, by: Sequence[str]) -> dict[str, pl.DataFrame]:
    """The table of means of the measures that the config names, each over the rankings in which it is defined."""
    if not params.measures:
        return {}
    frames = [_mean_of(params, rankings, grouping, name) for grouping in params.groupings for name in params.measures]
    columns = (*MEANS_OF_MEASURES, *further_columns(params)[MEASURE_TABLE])
    return {MEASURE_TABLE: _grouped(frames, by, columns, rankings)}


def _mean_of(
    params: RankingParameters, rankings: pl.DataFrame, grouping: Grouping, name: str
) -> tuple[Grouping, pl.DataFrame]:
    clusters = [each for each in (CLUSTER, PLACE) if each in rankings.columns]
    columns = [*grouping.columns, "query_id", *clusters, name, pl.col(name).is_not_null().alias("included")]
    groups = Groups(rankings.select(columns), grouping.columns)
    means = groups.means([(name, "mean", True)], params)
    frame = _beside(groups, [*groups.counts(), *means, *groups.trust(params, [name])])
    none = pl.when(pl.col("n_queries") == 0).then(pl.lit("no_query")).alias("undefined")
    return grouping, frame.with_columns(none, pl.lit(name).alias("measure"))


def _beside(groups: Groups, columns: Sequence[pl.Series]) -> pl.DataFrame:
    return groups.keys.with_columns(*columns) if groups.keys.width else pl.DataFrame(columns)


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Doubts that the numbers themselves raise."""
    summary, queries = tables["ranking_summary"], tables["ranking_queries"]
    messages: list[str] = []
    excluded = max(summary["n_excluded"].to_list(), default=0)
    if excluded:
        most = "1 ranking" if excluded == 1 else f"{excluded:,} rankings"
        where = "" if summary.height == 1 else " in the group with the most"
        messages.append(Note(f"means leave out rankings of queries without a relevant document: {most}{where}"))
    few = summary.filter(pl.col("n_queries").is_between(1, FEWEST_CLUSTERS - 1)).height
    if few:
        messages.append(
            f"{groups_with(few, summary.height, only='there are')} fewer than {FEWEST_CLUSTERS} queries: means are "
            "very uncertain, and their intervals may be too narrow (marked few_clusters)"
        )
    messages += warnings_of_marks(tables, without=() if CLUSTER in queries.columns else ("few_clusters",))
    if (queries["undefined"] == "small_pool").any():
        messages.append("some rankings hold more documents than n_candidates says: what they reach by chance is empty")
    return tuple(messages)


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """The means of every group, the total first: of the measures that the config names, else of the usual ones."""
    summary, names = with_measures(tables), measure_names(tables)
    if summary.is_empty():
        return Summary(headers=(), rows=(), sentence="No group has any ranking.")
    shown = summary.sort(pl.col(GROUPING.name) != TOTAL, maintain_order=True)
    usual = {} if names else {"r_precision": "R-precision", "reciprocal_rank": "reciprocal rank"}
    rows = tuple(
        (
            group_text(row),
            integer(row["n_queries"]),
            interval(row, "map"),
            percent(row["map_expected"]),
            *(interval(row, name, quality_of(name)) for name in names),
            *(interval(row, name) for name in usual),
        )
        for row in shown.iter_rows(named=True)
    )
    return Summary(
        headers=("group", "queries", "MAP", "by chance", *names, *usual.values()),
        rows=rows,
        groupings=tuple(shown[GROUPING.name]),
        sentence=of_group(shown.row(0, named=True), _sentence(shown.row(0, named=True))),
    )


def _sentence(row: Mapping[str, object]) -> str:
    value = row["map"]
    if not isinstance(value, float):
        return "No query has a relevant document."
    return (
        f"On average, when a reader going down the list reaches a relevant document, {of_every(value)} documents read "
        f"so far are relevant (MAP of {percent(value)} over {integer(row['n_queries'])} queries)."
    )
