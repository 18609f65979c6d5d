"""The stage ranking: from means to tables, and what people look at."""

from __future__ import annotations

import re
from functools import partial
from statistics import NormalDist
from typing import TYPE_CHECKING

import polars as pl

from ...base.columns import REPLICATE, as_key
from ...base.errors import Note
from ...base.schemas import GROUPING, TOTAL, Grouping
from ...base.sql_files import statement
from ...base.visible_text import listed, of_every
from ...metrics.ranking.measures import RECALL_LEVELS, measure_of
from ...metrics.uncertainty.limits import FEWEST_CLUSTERS, warnings_of_marks
from .. import sections
from ..figures import (
    RATIO_NAMES,
    Axis,
    Figure,
    Series,
    Wanted,
    across_groups,
    caption,
    drawn,
    histogram_of_shares,
    intervals,
    key_numbers_of,
    keys_of,
    level,
    shares,
    shown,
    visible,
    with_limits,
)
from ..sections import EXPLAINED_ROWS, Convention, Evidence, Measure, Profile, Section
from ..stage import (
    CLUSTER,
    SampleSizes,
    Stage,
    Summary,
    UnitTable,
    groups_with,
    integer,
    interval,
    interval_cells,
    percent,
    summary_of,
)
from .contract import (
    COUNTS,
    CUTOFF_MEANS,
    CUTOFFS,
    INTERPOLATED,
    MEANS_OF_MEASURES,
    MEASURE_NAMES,
    MEASURE_TABLE,
    QUERIES,
    QUERY_TABLE,
    RANKING,
    RELEVANCE,
    SUMMARY,
    TABLES,
    RankingParameters,
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
from .planning import PLACE, plan

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import sqlglot.expressions as exp

    from ...base.schemas import Column
    from ..figures import KeyNumber
    from ..sections import Asked, Measured


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
    means = {"ranking_summary": (SUMMARY, _summary, rankings), "ranking_cutoff_means": (CUTOFF_MEANS, _at_k, cutoffs)}
    if params.measures:
        means[MEASURE_TABLE] = MEANS_OF_MEASURES, _by_name, rankings
    tables = {
        QUERY_TABLE: _per_query(params, rankings, by, (*QUERIES, *further[QUERY_TABLE])),
        "ranking_cutoffs": _per_query(params, with_hits_null(cutoffs), by, CUTOFFS),
    }
    for table, (stated, make, frame) in means.items():
        names = [GROUPING.name, *by, *(column.name for column in (*stated, *further[table]))]
        made_of = ((grouping, rows) for grouping in params.groupings for rows in make(params, frame, grouping))
        tables[table] = pl.concat([_labelled(rows, grouping, by, rankings).select(names) for grouping, rows in made_of])
    return tables


def _measured(params: RankingParameters, lists: pl.DataFrame) -> pl.DataFrame:
    """Ratios of every ranking; for a query without a relevant document as the parameters say."""
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
        lists.with_columns_seq(pool(params).alias("n"), *by_name)
        .with_columns_seq(
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
        _labelled(frame, grouping, by, frame)
        for grouping in params.groupings
        if not frame.select(*grouping.columns, *keys).is_duplicated().any()
    ]
    frames = frames or [_labelled(frame, Grouping(()), by, frame).clear()]
    return pl.concat([rows.select(GROUPING.name, *by, *names) for rows in frames])


def _labelled(frame: pl.DataFrame, grouping: Grouping, by: Sequence[str], like: pl.DataFrame) -> pl.DataFrame:
    """A frame with the name of its grouping, and the other grouping columns NULL."""
    absent_groups = [pl.lit(None, dtype=like.schema[name]).alias(name) for name in by if name not in grouping.columns]
    return frame.with_columns(pl.lit(grouping.label).alias(GROUPING.name), *absent_groups)


def _summary(params: RankingParameters, rankings: pl.DataFrame, grouping: Grouping) -> Iterator[pl.DataFrame]:
    """Means of the measures of all queries of every group, beside those under random selection."""
    groups = Groups(rankings, grouping.columns)
    frame = _beside(groups, params, MEANS, null_of_means(groups))
    unknown = (
        pl.when(pl.col("n_queries") == 0)
        .then(pl.lit("no_query"))
        .when(pl.col("map_expected").is_null())
        .then(pl.lit("query_without_null"))
        .when(pl.any_horizontal(pl.col(INTERPOLATED).is_null()))
        .then(pl.lit("ties"))
    )
    yield frame.with_columns(unknown.alias("undefined"))


def _at_k(params: RankingParameters, cutoffs: pl.DataFrame, grouping: Grouping) -> Iterator[pl.DataFrame]:
    """Means of precision and recall at every cutoff."""
    means = [("precision", "precision", True), ("recall", "recall", True)]
    for k in params.cutoffs:
        frame = _beside(Groups(cutoffs.filter(pl.col("k") == k), grouping.columns), params, means)
        yield frame.with_columns(_NO_QUERY, pl.lit(k, dtype=pl.Int64).alias("k"))


def _by_name(params: RankingParameters, rankings: pl.DataFrame, grouping: Grouping) -> Iterator[pl.DataFrame]:
    """Means of the measures that the config names, each over the rankings in which it is defined."""
    clusters = [column for column in (CLUSTER, PLACE) if column in rankings.columns]
    for name in params.measures:
        columns = [*grouping.columns, "query_id", *clusters, name, pl.col(name).is_not_null().alias("included")]
        frame = _beside(Groups(rankings.select(columns), grouping.columns), params, [(name, "mean", True)])
        yield frame.with_columns(_NO_QUERY, pl.lit(name).alias("measure"))


_NO_QUERY = pl.when(pl.col("n_queries") == 0).then(pl.lit("no_query")).alias("undefined")


def _beside(
    groups: Groups,
    params: RankingParameters,
    means: Sequence[tuple[str, str, bool]],
    further: Iterable[pl.Series] = (),
) -> pl.DataFrame:
    """Every group with its numbers of queries, its means, as `Groups.means` has them, and how far to trust these."""
    limited = [column for column, _, is_limited in means if is_limited]
    columns = [*groups.counts(), *groups.means(means, params), *further, *groups.trust(params, limited)]
    return groups.keys.hstack(columns) if groups.keys.width else pl.DataFrame(columns)


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
    unknown = queries.filter(pl.col("undefined") == "unranked_relevant").height
    if unknown:
        messages.append(
            Note(
                f"the value by chance is missing for {unknown:,} of {queries.height:,} rankings: relevant documents "
                "are not in them, so it is not known how many documents there were to rank; n_candidates says it"
            )
        )
    return tuple(messages)


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """The means of every group, the total first: of the measures that the config names, else of the usual ones."""
    summary, names = with_measures(tables), measure_names(tables)
    if summary.is_empty():
        return Summary(headers=(), rows=(), sentence="No group has any ranking.")
    shown = summary.sort(pl.col(GROUPING.name) != TOTAL, maintain_order=True)
    usual = {} if names else {"r_precision": "R-precision", "reciprocal_rank": "reciprocal rank"}
    return summary_of(
        shown,
        {
            "queries": lambda row: integer(row["n_queries"]),
            "MAP": lambda row: interval(row, "map"),
            "by chance": lambda row: percent(row["map_expected"]),
            **{name: partial(interval, name=name, quality=quality_of(name)) for name in names},
            **interval_cells({title: name for name, title in usual.items()}),
        },
        _sentence,
    )


def _sentence(row: Mapping[str, object]) -> str:
    value = row["map"]
    if not isinstance(value, float):
        return "No query has a relevant document."
    return (
        f"On average, when a reader going down the list reaches a relevant document, {of_every(value)} documents read "
        f"so far are relevant (MAP of {percent(value)} over {integer(row['n_queries'])} queries)."
    )


# What there is to look at of ranking: means beside chance, precision and recall at cutoffs, spread over queries.
#
# Measures that the config names have a figure each.


NUMBERS = (
    Wanted("map", "Mean average precision", "average precision, mean over queries", "precision"),
    Wanted("r_precision", "R-precision", "relevant share of first R", "neutral"),
    Wanted("reciprocal_rank", "Reciprocal rank", "1 / rank of first relevant", "neutral"),
    Wanted("map_expected", "By chance", "expected MAP of random order", "chance"),
)


@shown
def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> Iterator[Figure | None]:
    """Mean average precision beside chance, precision and recall at cutoffs, average precision over queries."""
    yield _map(tables["ranking_summary"], confidence)
    expected = _expected(tables["ranking_cutoffs"])
    for ratio in ("precision", "recall"):
        yield _means_at_cutoffs(tables["ranking_cutoff_means"], expected, ratio, confidence)
    for name in measure_names(tables):
        yield _measure(tables[MEASURE_TABLE].filter(pl.col("measure") == name), name, confidence)
    yield histogram_of_shares(
        tables["ranking_queries"],
        "average_precision",
        name="average_precision_of_queries",
        title="Average precision of the queries",
        what="average precision of a query",
        unit="queries",
    )


def _map(summary: pl.DataFrame, confidence: float) -> Figure:
    spread = NormalDist().inv_cdf((1 + confidence) / 2) * pl.col("map_variance").sqrt()
    by_chance = summary.with_columns(
        (pl.col("map_expected") - spread).clip(0.0).alias("map_expected_lower"),
        (pl.col("map_expected") + spread).clip(None, 1.0).alias("map_expected_upper"),
    )
    chance = with_limits(by_chance, Series("map_expected", "By chance", "chance", "point"))
    mean = with_limits(by_chance, Series("map", "Mean average precision", "precision", "point"))
    words = "Mean average precision over queries, and its mean if every query's documents were in random order."
    of_mean = f"Bars at the mean are {level(confidence)} intervals." if mean.lower else ""
    of_chance = f"Bars at chance hold {level(confidence)} of random orders, taken as normally distributed."
    return across_groups(
        by_chance,
        (chance, mean),
        "n_queries",
        name="map",
        title="Mean average precision beside chance",
        words=caption(words, of_mean, of_chance if chance.lower else ""),
        y=shares("Mean average precision"),
    )


def _measure(means: pl.DataFrame, name: str, confidence: float) -> Figure:
    mean = with_limits(means, Series("mean", name, "precision", "point"))
    return across_groups(
        means,
        (mean,),
        "n_queries",
        name=f"measure_{re.sub('[^a-z0-9]+', '_', name.lower()).strip('_')}",
        title=f"{name} of the groups",
        words=caption(f"{name}, mean over the queries in which it is defined.", intervals((mean,), confidence)),
        y=shares(f"{name}, mean over queries"),
    )


def _expected(cutoffs: pl.DataFrame) -> pl.DataFrame:
    """Means over the queries of what random selection gives at every cutoff; NULL unless known for all of them."""
    judged = cutoffs.filter(pl.col("precision").is_not_null())
    names = ["precision_expected", "recall_expected"]
    is_complete = {name: pl.col(name).is_not_null().all() for name in names}
    means = (pl.when(is_complete[name]).then(pl.col(name).mean()).alias(name) for name in names)
    return judged.group_by(*keys_of(cutoffs), "k").agg(*means)


def _means_at_cutoffs(means: pl.DataFrame, expected: pl.DataFrame, ratio: str, confidence: float) -> Figure:
    keys = [*keys_of(means), "k"]
    chance = expected.select(*keys, f"{ratio}_expected")
    table = means.join(chance, on=keys, how="left", nulls_equal=True).sort(keys)
    name = RATIO_NAMES[ratio]
    series = (
        visible(table, Series(f"{ratio}_expected", "By chance", "chance")),
        with_limits(table, Series(ratio, name, "precision" if ratio == "precision" else "recall")),
    )
    words = (
        f"{name} among the k documents that come first, mean over queries; by chance: its mean with the documents in "
        "random order, where that is known for all queries."
    )
    return Figure(
        name=f"{ratio}_at_k",
        title=f"{name} by cutoff k",
        caption=caption(words, intervals(series, confidence)),
        frame=drawn(table, "k", series),
        x=Axis("k", "Cutoff k: number of documents that come first", "integer", logarithmic=True),
        y=shares(f"{name}, mean over queries"),
        series=series,
    )


def key_numbers(tables: Mapping[str, pl.DataFrame]) -> tuple[KeyNumber, ...]:
    """Mean average precision and what chance gives, R-precision and reciprocal rank, and measures that are named."""
    named = tuple(
        Wanted(name, name, "mean over queries", "neutral", quality=quality_of(name)) for name in measure_names(tables)
    )
    return key_numbers_of(with_measures(tables), (*NUMBERS, *named))


# What a methods section says of ranking.


TIES = {
    "trec": "documents of equal rank by document id, descending, as trec_eval orders them",
    "expected": "every measure being its mean over all orders of tied documents (McSherry and Najork 2008)",
    "order": "ties being impossible",
}
MISSING = {
    "zero": "Queries for which a system retrieved nothing count as 0.",
    "skip": "Queries for which a system retrieved nothing are left out of its means.",
    "error": "",
}


SOURCES = {
    "nDCG": "nDCG divides the discounted gains by those of the best order (Järvelin and Kekäläinen 2002)",
    "RBP": "RBP is rank-biased precision (Moffat and Zobel 2008)",
    "ERR": "ERR is expected reciprocal rank (Chapelle et al. 2009)",
}
EXPONENTIAL = "with the gain exponential a document counts 2 to the power of its relevance, less 1 (Burges et al. 2005)"


def sentences(measured: Measured) -> Iterator[str]:
    """Say how rankings were evaluated, and what came out."""
    summary, parameters = measured.tables["ranking_summary"], measured.parameters
    yield (
        f"Rankings of {measured.used('ranking'):,} retrieved documents were evaluated query by query as trec_eval does "
        f"(Buckley and Voorhees 2000), a document counting as relevant from a relevance of "
        f"{parameters['relevance_level']:g} on."
    )
    yield sections.left_out(measured, {"ranking": "retrieved documents", "relevance": "judgements"})
    yield f"Documents were ordered by {measured.facts['order']}, {TIES[parameters['ties']]}."
    yield MISSING[parameters["missing_queries"]]
    treated = "count as 0" if parameters["no_relevant"] == "zero" else "are left out of the means"
    yield f"Queries without a relevant document {treated}."
    yield from _definitions(measure_names(measured.tables))
    units = sections.units_in_words(measured, {}) if "independent" in measured.facts else "queries"
    yield sections.intervals(
        measured,
        units,
        f"of means over queries are beta quantiles of a share with the variance between {units}, with the tails of "
        "Student's t",
    )
    shown, _ = sections.headline_rows(summary)
    for row in shown:
        group = sections.named_group(row)
        n_queries = row["n_queries"]
        words = "is 1 query" if n_queries == 1 else f"are {n_queries:,} queries"
        yield f"There {words}{f' of {group}' if group else ''}."
    names = {"map": "mean average precision", "r_precision": "R-precision", "reciprocal_rank": "mean reciprocal rank"}
    names |= {name: f"mean {name}" for name in measure_names(measured.tables)}
    yield from sections.results(with_measures(measured.tables), names, measured.confidence)
    expected = [percent(row["map_expected"]) for row in shown if row["map_expected"] is not None]
    if expected:
        values = listed(dict.fromkeys(expected))
        yield f"Random selection would give a mean average precision of {values} (exact expectation: Bestgen 2015)."


def _definitions(names: Sequence[str]) -> Iterator[str]:
    """Say what the measures are that the config names, where a name alone does not."""
    measures = [measure_of(name) for name in names]
    kinds = dict.fromkeys(measure.kind for measure in measures)
    words = [SOURCES[kind] for kind in kinds if kind in SOURCES]
    if any(measure.gain == "exponential" for measure in measures):
        words.append(EXPONENTIAL)
    if words:
        yield f"{'; '.join(words)}."


SAMPLE_SIZES = SampleSizes(
    nouns={"query_id": "queries"},
    unit="query_id",
    units={"query_id": "n_queries"},
    other_scale="mean",
    clusters="ranking_summary",
    has_groups=False,
)


# What trec_eval does otherwise.


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
            "equal scores", "in descending order of the document ids as text; ranks are ignored", {"ties": "trec"}
        ),
        Convention(
            "queries without a retrieved document",
            "left out of means (with -c they count as 0)",
            {"missing_queries": "skip"},
            keeps={"missing_queries": "error"},  # then the run had none
        ),
        Convention(
            "queries without a relevant document", "every measure is 0, and counts in means", {"no_relevant": "zero"}
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


# Where the numbers of ranking come from: the worst queries, and the documents that make them so.


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
            absent=lambda asked: (
                "" if asked.source("relevance") is not None else "the judgements are those of the ranking itself"
            ),
        ),
    ),
    rows=lambda asked: {EXPLAINED_ROWS: _rows(asked)},
    threshold="",
    values=lambda asked: {"relevance_level": asked.params.relevance_level},
    independent="queries",
    profiles=(TREC_EVAL,),
    decides=("ties", "relevance_level", "missing_queries", "no_relevant", "n_candidates"),
)


STAGE = Stage(
    kind="ranking",
    parameters=RankingParameters,
    inputs=(RANKING, RELEVANCE),
    tables=TABLES,
    count_columns=COUNTS,
    plan=plan,
    derive=derive,
    warnings=warnings,
    summarize=summarize,
    figures=figures,
    key_numbers=key_numbers,
    methods=sentences,
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
