"""What ranking asks of an engine."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ...errors import DataError
from ...plan import rows
from ...plan.checks import (
    OF_ORDER,
    doubtful_scores,
    duplicate_check,
    file_check,
    missing_check,
    one_cluster_check,
)
from ...plan.counts import Query, RankedAmong, Reduction
from ...plan.nodes import Check, Relation
from ...plan.optional_tables import OptionalTable
from ...plan.plan import Plan
from ...plan.plausibility import pooled_systems
from ...queries.dialect import column, double
from ...queries.load import page, statement
from ...records import dataclass
from ...sources.bindings import KeyMatch
from ...tables.columns import IN_TIME
from ...tables.groupings import cluster_name, users_name
from .contract import COUNTS, MEASURE_TABLE
from .ranking_measures import CLUSTERS, GRADES, NUMBER, Lists, judged_places, tied_places

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...sources.source import Source
    from .contract import RankingParameters

KEYS = ("query_id", "doc_id")


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
        frames = {"rankings": statement("ranking/every_ranking", names)}
        if self.cluster is not None:
            frames[CLUSTERS] = exp.select("*").from_(CLUSTERS)
        if self.order is not None:
            frames[IN_TIME] = exp.select("*").from_("clusters")
        if not labelled:
            judged_by = of_ranking if self.relevance is None else [name for name in names if name not in of_ranking]
            frames["judged_queries"] = statement("ranking/every_judged_query", judged_by)
            if self.params.measures:
                frames[GRADES] = statement("ranking/judged_grades", judged_by)
        return Plan(
            nodes=(
                *self._relations(by),
                *self._checks(of_ranking, names),
                pooled_systems(self.ranking, by),
                Query("ranking/counts", columns=tuple(count.name for count in COUNTS)),
                Reduction("lists", self._ranked(), frames, lists.reduce),
            ),
            sources=sources,
            by=by,
            used=("n_retrieved",),
            accounting=Query("ranking/accounting"),
            optional=(self._measures,),
            positive=self._positive,
            key_matches=tuple(KeyMatch(self.ranking, each, "query_id") for each in sources if each is self.relevance),
            warnings=tuple(self._warnings()),
            facts={"order": "score" if self.scored else "rank", "ties": self.params.ties, **self._independent},
        )

    @property
    def _measures(self) -> OptionalTable:
        """The means of the measures that the config names."""
        return OptionalTable(
            MEASURE_TABLE, "measures", bool(self.params.measures), wish='measures = ["nDCG@10"], for example,'
        )

    @cached_property
    def cluster(self) -> rows.Grouped | None:
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

    @property
    def _independent(self) -> dict[str, str]:
        """What is independent, if it is not the queries."""
        return {} if self.cluster is None else {"independent": self.cluster.column}

    def _cluster_of(self, source: Source) -> list[str]:
        """The column of the clusters and that of their order, if this input has them."""
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

    @property
    def _positive(self) -> exp.Expr | None:
        """Relevant documents, where the ranking itself tells them."""
        if self.relevance is not None or not self.scored:
            return None
        return exp.GTE(this=column("relevance"), expression=double(self.params.relevance_level))

    def _ranked(self) -> RankedAmong:
        expected = self.params.ties == "expected"
        return RankedAmong(
            rows=statement(f"ranking/every_{'graded' if self.params.measures else 'judged'}_place"),
            among=statement("ranking/values_of_documents" if expected else "ranking/values_and_names_of_documents"),
            key=NUMBER,
            sizes=statement("ranking/judged_per_ranking"),
            function=tied_places if expected else judged_places,
        )

    @property
    def _level(self) -> dict[str, float]:
        return {"relevance_level": self.params.relevance_level}

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

    def _relations(self, by: tuple[rows.Grouped, ...]) -> Iterator[Relation]:
        labels = ["relevance"] if self.relevance is None else []
        derived: dict[str, exp.Expr] = {} if labels else {"relevance": exp.cast(exp.null(), "DOUBLE")}
        if not self.scored:
            derived["score_state"] = exp.Case().when(column("rank").is_(exp.null()), exp.convert("null_rank"))
        wanted = [*KEYS, "score" if self.scored else "rank", *labels, *self._cluster_of(self.ranking)]
        yield rows.read(self.ranking, wanted, by, derived)
        of_ranking = [group.name for group in by if group.source == self.ranking.name]
        name = "distinct_documents" if self.params.duplicates == "max" else "ranked_documents"
        by_rank: dict[str, str | exp.Expr] = {"value": exp.Neg(this=column("rank")), "score": "rank"}
        ranked = statement(f"ranking/{name}", of_ranking, columns={"value": "score"} if self.scored else by_rank)
        yield Relation("ranked_documents", ranked, keep=self.params.duplicates == "max")  # it is read thrice
        retrieved = statement("ranking/retrieved", of_ranking)
        if self.relevance is None:
            yield Relation("rankings", retrieved, keep=True)
            if self.counts_missed:
                yield from self._labelled(of_ranking)
        else:
            of_queries = [group.name for group in by if group.source == self.relevance.name]
            yield from self._judged(self.relevance, by, of_queries)
            yield Relation("retrieved", retrieved, keep=True)
            yield Relation("rankings", statement("ranking/rankings", {"p": of_ranking, "o": of_queries}), keep=True)
        if self.cluster is not None:
            read, key = f"{self.cluster.source}_read", cluster_name(self.cluster.column)
            clusters = statement(
                "ranking/clusters_of_queries", relations={"input_read": read}, columns={"query_cluster": key}
            )
            yield Relation(CLUSTERS, clusters, keep=True)
            if self.order is not None:
                yield rows.clusters_in_time(read, key, self.order)
        yield from self._places(of_ranking)

    def _labelled(self, of_ranking: list[str]) -> Iterator[Relation]:
        """Labels of all documents of the ranking, those without a valid score too, as judgements of its queries."""
        name = "distinct_labelled_ranking" if self.params.duplicates == "max" else "labelled_ranking"
        yield Relation("judged_documents", statement(f"ranking/{name}", of_ranking))
        yield self._judged_queries(of_ranking)

    def _judged(self, source: Source, by: tuple[rows.Grouped, ...], of_queries: list[str]) -> Iterator[Relation]:
        yield rows.read(source, [*KEYS, "relevance", *self._cluster_of(source)], by, {})
        name = "judged_documents" if self.params.duplicates == "error" else "distinct_judged_documents"
        yield Relation("judged_documents", statement(f"ranking/{name}", of_queries), keep=True)
        yield self._judged_queries(of_queries)

    def _judged_queries(self, segment: list[str]) -> Relation:
        return Relation("judged_queries", statement("ranking/judged_queries", segment, values=self._level), keep=True)

    def _places(self, of_ranking: list[str]) -> Iterator[Relation]:
        """Documents with the number of their ranking, and the judged ones among them."""
        yield Relation("numbered_documents", statement("ranking/numbered_documents", of_ranking))
        labelled = "numbered_documents"
        if self.relevance is not None:
            labelled = "labelled_documents"
            yield Relation(labelled, statement("ranking/labelled_documents"))
        name = "graded_places" if self.params.measures else "judged_places"
        places = statement(f"ranking/{name}", relations={"labelled_documents": labelled}, values=self._level)
        yield Relation("judged_places", places, keep=True)

    def _checks(self, of_ranking: list[str], names: list[str]) -> Iterator[Check]:
        if self.relevance is not None:
            for name in (*KEYS, "relevance"):
                yield missing_check(self.relevance, name)
            if len(of_ranking) < len(names):
                yield _one_value_check(self.relevance, [name for name in names if name not in of_ranking])
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


def _one_value_check(source: Source, names: list[str]) -> Check:
    """A query whose judged documents differ in a grouping column."""
    words = {"groups": ", ".join(map(users_name, names))}
    return file_check("ranking/checks/several_values", source, words=lambda _: words, located=False)
