"""The plan of ranking, and the measures of its ranked lists."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...base.columns import IN_TIME, REPLICATE, doubles
from ...base.dialect import all_rows, column, double
from ...base.errors import DataError
from ...base.records import dataclass
from ...base.schemas import cluster_name, users_name
from ...base.sql_files import page, statement
from ...metrics.ranking.average_precision import Documents, RankCounter
from ...metrics.ranking.measures import (
    EXPONENTIAL,
    MOST_GRADE,
    GradedRankings,
    Grades,
    Judged,
    Measures,
    Ties,
    measure_values,
    measures,
)
from ...plan import rows
from ...plan.counts import Query, RankedAmong, Reduction
from ...plan.nodes import (
    OF_ORDER,
    Check,
    Grouped,
    Relation,
    doubtful_scores,
    duplicate_check,
    file_check,
    missing_check,
    one_cluster_check,
)
from ...plan.plan import OptionalTable, Plan
from ...plan.roles import pooled_systems
from ...sources.bindings import KeyMatch
from ..stage import CLUSTER
from .contract import COUNTS, INTERPOLATED, MEASURE_TABLE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...sources.source import Source
    from .contract import RankingParameters


NUMBER = "_ranking"
VALUE = "_value"
NAME = "_name"
RELEVANCE = "relevance"
BLOCK_ROWS = 1 << 20


def judged_places(judged: pl.DataFrame, blocks: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Judged documents with their ranks less one, `n_before`; equal values come in descending order of names.

    Judged documents have the number of the ranking, value (-0 is 0), name, `n_hits`, `n_misses`, and `relevance` where
    gains are taken of it; blocks are all documents of these rankings: number, value and name. Whole rankings come in
    blocks of about a million rows, with `n_documents`, which is 1, `n_hits`, `n_misses`, and `relevance` if the
    documents have it.
    """
    marked = judged.with_columns(pl.col(VALUE) + 0.0).sort(NUMBER, VALUE, NAME, descending=[False, True, True])
    before, _ = _counted(marked, blocks)
    yield from _whole_rankings(
        marked.with_columns(before.alias("n_before"), pl.lit(1, dtype=pl.Int64).alias("n_documents"))
    )


def tied_places(judged: pl.DataFrame, blocks: Iterator[pl.DataFrame]) -> Iterator[pl.DataFrame]:
    """Ties with a judged document, the documents above each (`n_before`) and in it (`n_documents`).

    A tie has one row, or one for each relevance in it, where documents have that; input as for `judged_places`, without
    names.
    """
    graded = [RELEVANCE] if RELEVANCE in judged.columns else []
    rows = judged.group_by(NUMBER, pl.col(VALUE) + 0.0, *graded).agg(pl.col("n_hits", "n_misses").sum())
    rows = rows.sort(NUMBER, VALUE, *graded, descending=[False, True, *(True for _ in graded)])
    tie = rows.select(pl.struct(NUMBER, VALUE).rle_id().cast(pl.Int64)).to_series()
    before, equal = _counted(rows.filter(tie.is_first_distinct()), blocks)
    yield from _whole_rankings(
        rows.with_columns(before.alias("n_before").gather(tie), equal.alias("n_documents").gather(tie))
    )


def _counted(marked: pl.DataFrame, blocks: Iterator[pl.DataFrame]) -> tuple[pl.Series, pl.Series]:
    """How many documents come before each of those that are marked, if any is, and how many are equal to it."""
    if marked.is_empty():
        return pl.Series(dtype=pl.Int64), pl.Series(dtype=pl.Int64)
    places = RankCounter(_documents(marked))
    for block in blocks:
        places.add(_documents(block))
    return pl.Series(places.before()), pl.Series(places.equal())


def _documents(frame: pl.DataFrame) -> Documents:
    name = frame[NAME] if NAME in frame.columns else None
    return Documents(frame[NUMBER].to_numpy(), frame[VALUE].to_numpy(), name)


def _whole_rankings(places: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Blocks that end where a ranking ends, at least one."""
    graded = [RELEVANCE] if RELEVANCE in places.columns else []
    places = places.select(NUMBER, "n_before", "n_documents", "n_hits", "n_misses", *graded)
    number = places[NUMBER]
    if number.is_empty():
        yield places
    start = 0
    while start < len(number):
        last = number[min(start + BLOCK_ROWS, len(number)) - 1]
        end = int(number.search_sorted(last, side="right"))
        yield places[start:end]
        start = end


# The measures that the config asks for by name, for every ranking.


N_DOCUMENTS = "n_documents"
GRADES = "judged_grades"  # frame of the judged documents of every query by relevance
_ROW = "_ranking_row"
_ROUNDING = 1e-9


@dataclass(frozen=True)
class Grading:
    """Makes one column for each measure.

    Attributes:
        params: The parameters of the stage.
        judged: Judged documents by query and relevance, with `n_documents`; None: those of a ranking are its own.
        key: The columns by which rankings find theirs.
    """

    params: RankingParameters
    judged: pl.DataFrame | None
    key: Sequence[str]

    def __post_init__(self) -> None:
        if self.judged is not None:
            self._refuse(self.judged[RELEVANCE])

    def queries_that_count(self) -> pl.DataFrame:
        """Keys of the queries in which a measure is defined, so that it matters whether they were retrieved."""
        if self.judged is None or not self.params.measures:
            return pl.DataFrame()
        highest = self.judged.group_by(self.key).agg(pl.col(RELEVANCE).max())
        asked = self.params.ranking_measures
        levels = [self.params.relevance_level if measure.rel is None else measure.rel for measure in asked]
        counts = [
            pl.lit(measure.kind == "Judged")
            | (pl.col(RELEVANCE) > 0 if measure.is_graded else pl.col(RELEVANCE) >= level)
            for measure, level in zip(asked, levels, strict=True)
        ]
        return highest.filter(pl.any_horizontal(counts)).select(self.key)

    def columns(self, rankings: pl.DataFrame, ties: Ties, grades: Grades) -> Iterator[pl.Series]:
        """A column for each measure; NULL where it is undefined.

        Rankings, in the order of their ties, have the key and n_retrieved; grades are the judged documents of the ties.

        Raises:
            DataError: a relevance is no grade that a measure can take; or documents that repeat make a value above 1.
        """
        if not self.params.measures:
            return
        if self.judged is None:
            self._refuse(pl.Series(grades.relevance))
        judged = _added_up(ties, grades) if self.judged is None else _judged_of(rankings, self.judged, self.key)
        n_retrieved = rankings["n_retrieved"].cast(pl.Float64).to_numpy()
        graded = GradedRankings(ties, grades, judged, n_retrieved)
        for measure in self.params.ranking_measures:
            values = measure_values(measure, graded, self.params.relevance_level)
            if (values > 1 + _ROUNDING).any():
                message = f"input ranking: {measure.name} exceeds 1, since documents repeat"
                raise DataError(message, remedy='Set duplicates = "max" to keep the highest of each.')
            yield doubles(measure.name, np.minimum(values, 1.0))

    def _refuse(self, relevance: pl.Series) -> None:
        """Stop at a relevance of which gains cannot be taken."""
        if relevance.is_empty():
            return
        highest = float(relevance.cast(pl.Float64).to_numpy().max())
        for measure in self.params.ranking_measures:
            most = measure.max_grade or (MOST_GRADE if measure.gain == EXPONENTIAL else np.inf)
            if highest > most:
                message = f"measures: {measure.name} takes a relevance of at most {most:g}, and there is {highest:g}"
                remedy = f"Write the highest relevance of the scale into the name: {measure.kind}(max_grade=…)."
                if measure.gain == EXPONENTIAL:
                    remedy = "Take nDCG with its usual gain, the relevance, or a smaller scale."
                raise DataError(message, remedy=remedy)


def _judged_of(rankings: pl.DataFrame, judged: pl.DataFrame, key: Sequence[str]) -> Grades:
    """The judged documents of the query of every ranking."""
    rows = rankings.select(*key).with_row_index(_ROW)
    return _grades(rows.join(judged.select(*key, RELEVANCE, N_DOCUMENTS), on=list(key), nulls_equal=True))


def _added_up(ties: Ties, grades: Grades) -> Grades:
    """The judged documents of every ranking, added up over its ties."""
    columns = {_ROW: ties.ranking[grades.of], RELEVANCE: grades.relevance, N_DOCUMENTS: grades.number}
    return _grades(pl.DataFrame(columns))


def _grades(rows: pl.DataFrame) -> Grades:
    added = rows.group_by(_ROW, pl.col(RELEVANCE).cast(pl.Float64)).agg(pl.col(N_DOCUMENTS).sum())
    ordered = added.sort(_ROW, RELEVANCE, descending=[False, True])
    columns = (ordered[_ROW].cast(pl.Int64), *(ordered[name].cast(pl.Float64) for name in (RELEVANCE, N_DOCUMENTS)))
    return Grades(*(column.to_numpy() for column in columns))


# One row per ranking, with its measures, from the places of its judged documents.


QUERY = "query_id"
CLUSTERS = "clusters_of_queries"  # frame, if queries lie in clusters
PLACE = "_place"  # column: that of the cluster of the query in the order of time, if clusters have one
INDEX = "_row"
TOTALS = ("n_retrieved", "n_relevant", "n_nonrelevant")
COUNTED = ("relevant", "nonrelevant")


@dataclass(frozen=True)
class Lists:
    """Makes the table of rankings.

    Attributes:
        params: The parameters of the stage.
        by: All grouping columns.
        of_ranking: Those of the ranking; a ranking is a query within one value of each.
        labelled: Whether relevance stands in the ranking, and only ranked documents are known.
        judged_apart: Whether judgements are an input of their own, the same for all rankings of a query; else every
            ranking has its own.
    """

    params: RankingParameters
    by: tuple[str, ...]
    of_ranking: tuple[str, ...]
    labelled: bool
    judged_apart: bool = True

    def reduce(self, blocks: Iterator[pl.DataFrame], frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        """One row per ranking: the grouping columns, query_id, counts and measures.

        Args:
            blocks: Places of judged documents, by number of the ranking and place; a ranking lies in one block.
            frames: `rankings`, and unless labelled `judged_queries`, with measures by name `judged_grades` too; where
                queries lie in clusters, these, and where clusters have an order in time, it.

        Raises:
            DataError: a query was not retrieved, and missing queries are an error; it counts all the same, and its
                cluster is not known; or documents that repeat make more hits than there are relevant documents.
        """
        rankings = frames["rankings"].drop(REPLICATE)
        grading = Grading(self.params, frames.get(GRADES), [*self._of_judgements, QUERY])
        if self.labelled:
            rankings = rankings.with_columns(pl.lit(value=True).alias("judged"))
        else:
            rankings = self._with_judgements(rankings, frames["judged_queries"], grading.queries_that_count())
        if CLUSTERS in frames:
            rankings = self._with_clusters(rankings, frames[CLUSTERS])
        if IN_TIME in frames:
            clusters = frames[IN_TIME].sort("in_order", CLUSTER).select(CLUSTER, pl.int_range(pl.len()).alias(PLACE))
            rankings = rankings.join(clusters, on=CLUSTER, how="left")
        rankings = rankings.sort([*self.by, QUERY], nulls_last=True).with_row_index(INDEX)
        tables = [self._measured(block, rankings, grading) for block in blocks]
        unmeasured = rankings
        if tables:
            measured = pl.concat([table[INDEX] for table in tables])
            unmeasured = rankings.filter(~pl.col(INDEX).is_in(measured.implode()))
        no_numbers, nothing = np.zeros(0, dtype=np.int64), np.zeros(0)
        no_ties, no_grades = Ties(no_numbers, *[nothing] * 4), Grades(no_numbers, nothing, nothing)
        tables.append(self._table(unmeasured, no_ties, grading, no_grades))
        return pl.concat(tables).sort(INDEX).drop(INDEX)

    @property
    def _of_judgements(self) -> list[str]:
        """The columns that tell judgements apart, beside the query."""
        return [] if self.judged_apart else list(self.of_ranking)

    def _with_judgements(self, rankings: pl.DataFrame, queries: pl.DataFrame, counting: pl.DataFrame) -> pl.DataFrame:
        """Every ranking with the judged documents of its query, and rankings of queries that are missing.

        Queries in which a measure by name is defined are counting, with or without a relevant document.
        """
        of_queries = [name for name in self.by if name not in self.of_ranking]
        of_judgements = self._of_judgements
        groups = rankings.select(self.of_ranking).unique() if self.of_ranking else pl.DataFrame({"_": [0]}).drop("_")
        wanted = queries.select(*of_judgements, QUERY, *of_queries)
        wanted = groups.join(wanted, how="cross") if self.of_ranking and not of_judgements else wanted
        numbers, key = queries.drop(of_queries), [*of_judgements, QUERY]
        missing = wanted.join(rankings, on=[*self.of_ranking, QUERY], how="anti", nulls_equal=True)
        missing = missing.join(numbers, on=key, how="left", nulls_equal=True)
        self._refuse(missing.filter(pl.col("n_relevant") > 0))
        if counting.width:
            self._refuse(missing.join(counting, on=key, how="semi", nulls_equal=True))
        rankings = rankings.join(numbers, on=key, how="left", nulls_equal=True)
        if self.params.missing_queries != "skip":
            missing = missing.with_columns(
                pl.lit(0, dtype=pl.Int64).alias("n_retrieved"), pl.lit(None, dtype=pl.Int32).alias(NUMBER)
            )
            rankings = pl.concat([rankings, missing.select(rankings.columns)])
        judged = pl.col("n_relevant").is_not_null().alias("judged")
        return rankings.with_columns(judged, *(pl.col(f"n_{name}").fill_null(0) for name in COUNTED))

    def _with_clusters(self, rankings: pl.DataFrame, clusters: pl.DataFrame) -> pl.DataFrame:
        """Every ranking with the cluster of its query."""
        rankings = rankings.join(clusters, on=QUERY, how="left", nulls_equal=True)
        unknown = rankings.filter(pl.col(CLUSTER).is_null() & pl.col("judged"))
        if not unknown.is_empty():
            first, number = unknown[QUERY].sort()[0], unknown[QUERY].n_unique()
            queries = "1 such query" if number == 1 else f"{number:,} such queries"
            message = f"cluster: no row tells {self.params.cluster!r} of the judged query {first} ({queries})"
            remedy = 'Put the column into the other input, or leave such queries out with missing_queries = "skip".'
            raise DataError(message, remedy=remedy)
        return rankings

    def _refuse(self, missing: pl.DataFrame) -> None:
        if self.params.missing_queries != "error" or missing.is_empty():
            return
        first = missing.sort([*self.of_ranking, QUERY], nulls_last=True).row(0, named=True)
        where = "".join(f", {users_name(name)} = {first[name]}" for name in self.of_ranking)
        missing_in_words = "1 query is missing" if missing.height == 1 else f"{missing.height:,} queries are missing"
        message = f"input ranking: no document of query {first[QUERY]}{where} ({missing_in_words})"
        remedy = 'Set missing_queries = "zero" to count such a query as 0, or "skip" to leave it out.'
        raise DataError(message, remedy=remedy)

    def _measured(self, places: pl.DataFrame, rankings: pl.DataFrame, grading: Grading) -> pl.DataFrame:
        runs = places[NUMBER].rle_id()
        first = places.select(NUMBER).filter(runs.is_first_distinct())
        retrieved = first.join(rankings, on=NUMBER, how="left", maintain_order="left").select(rankings.columns)
        ties, grades = _ties(places, runs.cast(pl.Int64).to_numpy())
        table = self._table(retrieved, ties, grading, grades)
        self._refuse_repeated(table.filter(pl.col("n_relevant_retrieved") > pl.col("n_relevant")))
        return table

    def _refuse_repeated(self, rankings: pl.DataFrame) -> None:
        """More hits than relevant documents: some repeat, and average precision would exceed 1."""
        if rankings.is_empty():
            return
        first = rankings.row(0, named=True)
        where = "".join(f", {users_name(name)} = {first[name]}" for name in self.of_ranking)
        hits = f"{first['n_relevant_retrieved']:,} relevant documents where {first['n_relevant']:,} are known"
        message = f"input ranking: query {first[QUERY]}{where} retrieves {hits} ({rankings.height:,} such queries)"
        raise DataError(message, remedy='Documents repeat: set duplicates = "max" to keep the highest of each.')

    def _table(self, rankings: pl.DataFrame, ties: Ties, grading: Grading, grades: Grades | None) -> pl.DataFrame:
        if self.labelled:
            numbers = (ties.hits, ties.misses)
            sums = (np.bincount(ties.ranking, number, rankings.height).astype(np.float64) for number in numbers)
            judged = Judged(*sums)
            totals = zip(COUNTED, (judged.relevant, judged.nonrelevant), strict=True)
            rankings = rankings.with_columns(pl.Series(f"n_{name}", total).cast(pl.Int64) for name, total in totals)
        else:
            judged = Judged(*(rankings[f"n_{name}"].cast(pl.Float64).to_numpy() for name in COUNTED))
        columns = [
            INDEX,
            *self.by,
            QUERY,
            *(name for name in (CLUSTER, PLACE) if name in rankings.columns),
            *TOTALS,
            "judged",
        ]
        measured = _columns(measures(ties, judged, self.params.cutoffs, self.params.interpolation), self.params.cutoffs)
        by_name = () if grades is None else grading.columns(rankings, ties, grades)
        return rankings.select(columns).with_columns(*measured, *by_name)


def _columns(measured: Measures, cutoffs: tuple[int, ...]) -> Iterator[pl.Series]:
    yield pl.Series("n_relevant_retrieved", measured.retrieved_relevant).cast(pl.Int64)
    for name in ("precision_sum", "relevant_at_r", "reciprocal_rank", "bpref", "mixed"):
        yield pl.Series(name, getattr(measured, name))
    for level, name in enumerate(INTERPOLATED):
        yield pl.Series(name, measured.interpolated[:, level])
    for number, k in enumerate(cutoffs):
        yield pl.Series(f"hits_{k}", measured.hits[:, number])
        yield pl.Series(f"straddled_{k}", measured.straddled[:, number])


def _ties(places: pl.DataFrame, ranking: NDArray[np.int64]) -> tuple[Ties, Grades | None]:
    """The ties that rows are of, and where rows have a relevance, the documents of each by relevance."""
    columns = ("n_before", "n_documents", "n_hits", "n_misses")
    before, size, hits, misses = (places[name].cast(pl.Float64).to_numpy() for name in columns)
    if RELEVANCE not in places.columns:
        return Ties(ranking, before, size, hits, misses), None
    is_new = np.diff(ranking, prepend=-1).astype(bool) | np.diff(before, prepend=-1).astype(bool)
    tie = np.cumsum(is_new) - 1
    added = (np.bincount(tie, number).astype(np.float64) for number in (hits, misses))
    relevance = places[RELEVANCE].cast(pl.Float64).to_numpy()
    return Ties(ranking[is_new], before[is_new], size[is_new], *added), Grades(tie, relevance, hits + misses)


# What ranking asks of an engine.


KEYS = ("query_id", "doc_id")
WISH_OF_MEASURES = 'measures = ["nDCG@10"], for example,'


def plan(params: RankingParameters, sources: Mapping[str, Source]) -> Plan:
    """Bind the inputs, find the places of judged documents, and fold them into measures of every ranking.

    Raises:
        DataError: the inputs lack a column that the parameters need.
    """
    return _Planner(params, sources["ranking"], sources.get("relevance")).plan()


@dataclass(frozen=True)
class _Planner:
    params: RankingParameters
    ranking: Source
    relevance: Source | None

    def plan(self) -> Plan:
        self._check_columns()
        sources = self._sources
        by = rows.resolve_by(self.params.by, sources)
        for key in KEYS:
            rows.check_keys(sources, key)
        of_ranking = [each.name for each in by if each.source == self.ranking.name]
        names = [each.name for each in by]
        labelled = self.relevance is None and not self.counts_missed
        judged_apart = self.relevance is not None
        lists = Lists(self.params, tuple(names), tuple(of_ranking), labelled=labelled, judged_apart=judged_apart)
        graph = self._graph(by)
        frames = {"rankings": graph.query("every_ranking")}
        missed = ["judged_queries"] if self.counts_missed else []
        clusters = [] if self.cluster is None else [CLUSTERS, "clusters"]
        independent = {} if self.cluster is None else {"independent": self.cluster.column}
        has_relevance = exp.GTE(this=column("relevance"), expression=double(self.params.relevance_level))
        if self.cluster is not None:
            frames[CLUSTERS] = all_rows(CLUSTERS)
        if self.order is not None:
            frames[IN_TIME] = all_rows("clusters")
        if not labelled:
            frames["judged_queries"] = graph.query("every_judged_query")
            if self.params.measures:
                frames[GRADES] = graph.query("judged_grades")
        return Plan(
            nodes=(
                *graph.relations("ranked_documents", "rankings", *missed, *clusters, "judged_places"),
                *self._checks(of_ranking, names),
                pooled_systems(self.ranking, by),
                Query("ranking/counts", columns=tuple(count.name for count in COUNTS)),
                Reduction("lists", self._ranked(), frames, lists.reduce),
            ),
            sources=sources,
            by=by,
            used=("n_retrieved",),
            accounting=Query("ranking/accounting"),
            optional=(OptionalTable(MEASURE_TABLE, "measures", bool(self.params.measures), wish=WISH_OF_MEASURES),),
            positive=has_relevance if self.scored and not judged_apart else None,
            key_matches=tuple(KeyMatch(self.ranking, each, "query_id") for each in sources if each is self.relevance),
            warnings=tuple(self._warnings()),
            facts={"order": "score" if self.scored else "rank", "ties": self.params.ties, **independent},
        )

    @cached_property
    def cluster(self) -> Grouped | None:
        """The column of the clusters of queries, and the input that has it; None: queries are independent.

        Raises:
            DataError: no input has it, or both.
        """
        if not self.params.is_clustered:
            return None
        return rows.resolve_by([[str(self.params.cluster)]], self._sources, key="cluster")[0]

    @cached_property
    def order(self) -> str | None:
        """The column that orders the clusters in time, as rows are read; None: their order means nothing."""
        if self.cluster is None or not self.params.is_replicated:
            return None
        source = next(each for each in self._sources if each.name == self.cluster.source)
        return rows.order_of_clusters(source, self.cluster.column, self.params.cluster_order)

    @property
    def _sources(self) -> tuple[Source, ...]:
        """The inputs that are given."""
        return tuple(each for each in (self.ranking, self.relevance) if each is not None)

    def _cluster_of(self, source: Source) -> list[str]:
        """The columns of the clusters and of their order, if this input has them."""
        if self.cluster is None or self.cluster.source != source.name:
            return []
        return list(dict.fromkeys([cluster_name(self.cluster.column), *([] if self.order is None else [self.order])]))

    @property
    def scored(self) -> bool:
        """Whether documents come in the order of scores, not of ranks."""
        return self.params.ties != "order" and self.ranking.has("score")

    @property
    def counts_missed(self) -> bool:
        """Whether labelled documents without a valid score are known, though not retrieved."""
        return self.scored and self.relevance is None and self.params.counts_missed

    def _ranked(self) -> RankedAmong:
        expected = self.params.ties == "expected"
        return RankedAmong(
            rows=statement(f"ranking/every_{'graded' if self.params.measures else 'judged'}_place"),
            among=statement("ranking/values_of_documents" if expected else "ranking/values_and_names_of_documents"),
            key=NUMBER,
            sizes=statement("ranking/judged_per_ranking"),
            function=tied_places if expected else judged_places,
        )

    def _check_columns(self) -> None:
        name = self.ranking.source_name
        if self.params.ties == "order" and not self.ranking.has("rank"):
            message = f'input ranking: ties = "order" needs the column {name("rank")!r}'
            raise DataError(message, remedy='Map it with columns = { rank = "…" }, or use ties = "trec".')
        if not self.ranking.has("score") and not self.ranking.has("rank"):
            message = f"input ranking: it has neither {name('score')!r} nor {name('rank')!r}"
            raise DataError(message, remedy='Map one of them with columns = { score = "…" }.')
        if self.relevance is None and not self.ranking.has("relevance"):
            message = f"input ranking: it has no column {name('relevance')!r}, and there is no input relevance"
            raise DataError(message, remedy="Give the input relevance, or map the column.")

    def _graph(self, by: tuple[Grouped, ...]) -> rows.Graph:
        """The relations of sql/ranking/, where there is a choice."""
        is_max, labels = self.params.duplicates == "max", self.relevance is None
        by_rank: dict[str, str | exp.Expr] = {"value": exp.Neg(this=column("rank")), "score": "rank"}
        labelled = {"labelled_documents": "numbered_documents" if labels else "labelled_documents"}
        made: dict[str, rows.From | Sequence[Relation]] = {
            "ranking_read": [self._read(by)],
            "ranked_documents": rows.From(
                "distinct_documents" if is_max else "ranked_documents",
                columns={"value": "score"} if self.scored else by_rank,
            ),
            "judged_places": rows.From("graded_places" if self.params.measures else "judged_places", labelled),
        }
        if self.relevance is None:
            made["rankings"] = rows.From("retrieved")
            made["judged_documents"] = rows.From("distinct_labelled_ranking" if is_max else "labelled_ranking")
        else:
            wanted = [*KEYS, "relevance", *self._cluster_of(self.relevance)]
            made["relevance_read"] = [rows.read(self.relevance, wanted, by, {})]
            is_distinct = self.params.duplicates != "error"
            made["judged_documents"] = rows.From("distinct_judged_documents" if is_distinct else "judged_documents")
        if self.cluster is not None:
            read, key = f"{self.cluster.source}_read", cluster_name(self.cluster.column)
            made[CLUSTERS] = rows.From(CLUSTERS, {"input_read": read}, {"query_cluster": key})
            made["clusters"] = [] if self.order is None else [rows.clusters_in_time(read, key, self.order)]
        judgements = [each.name for each in by if each.source == self._sources[-1].name]
        level = {"relevance_level": self.params.relevance_level}
        return rows.Graph("ranking", by, made, level, {"judgements": judgements})

    def _read(self, by: tuple[Grouped, ...]) -> Relation:
        """The ranking as it is read."""
        labels = ["relevance"] if self.relevance is None else []
        derived: dict[str, exp.Expr] = {} if labels else {"relevance": exp.cast(exp.null(), "DOUBLE")}
        if not self.scored:
            derived["score_state"] = exp.Case().when(column("rank").is_(exp.null()), exp.convert("null_rank"))
        wanted = [*KEYS, "score" if self.scored else "rank", *labels, *self._cluster_of(self.ranking)]
        return rows.read(self.ranking, wanted, by, derived)

    def _checks(self, of_ranking: list[str], names: list[str]) -> Iterator[Check]:
        if self.relevance is not None:
            for name in (*KEYS, "relevance"):
                yield missing_check(self.relevance, name)
            if len(of_ranking) < len(names):
                groups = {"groups": ", ".join(users_name(name) for name in names if name not in of_ranking)}
                yield file_check("ranking/checks/several_values", self.relevance, words=lambda _: groups, located=False)
        for source in self._sources:
            of_clusters = self._cluster_of(source)
            for name in of_clusters:
                yield missing_check(source, name)
            for cluster in of_clusters[:1]:
                yield one_cluster_check(source, CLUSTERS, "query_id", cluster)
        if self.params.duplicates == "error":
            remedy = 'Keep one row per query and document, or set duplicates = "max" to keep the best of each.'
            yield duplicate_check(self.ranking, (*of_ranking, *KEYS), remedy=remedy, of_systems=True)
            if self.relevance is not None:
                yield duplicate_check(self.relevance, KEYS, remedy=remedy)
        if self.params.ties == "order":
            remedy = 'With ties = "order" every rank must be given once in a ranking; ties = "trec" breaks ties.'
            keys = (*of_ranking, "query_id", "rank")
            yield duplicate_check(self.ranking, keys, remedy=remedy)

    def _warnings(self) -> Iterator[str]:
        if self.scored:
            yield from doubtful_scores(self.ranking, OF_ORDER)
        if self.params.null != "exact":
            yield f"null = {self.params.null!r}: these moments are wrong; {page('ranking')} says how far"
