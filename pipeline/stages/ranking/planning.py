"""What ranking asks of an engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.errors import DataError
from pipeline.plan import rows
from pipeline.plan.checks import duplicate_check, missing_check
from pipeline.plan.counts import Query
from pipeline.plan.nodes import Check, Relation
from pipeline.plan.plan import Plan
from pipeline.plan.transforms import RankedAmong, Reduction
from pipeline.queries.dialect import column, double
from pipeline.queries.load import expand, fill, load, page
from pipeline.sources.keys import KeyMatch, repeated_keys
from pipeline.stages.ranking.contract import COUNTS
from pipeline.stages.ranking.lists import Lists
from pipeline.stages.ranking.places import NAME, NUMBER, VALUE, judged_places, tied_places
from pipeline.tables.groupings import users_name
from pipeline.tables.sweep import REPLICATE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.sources.source import Source
    from pipeline.stages.ranking.contract import RankingParameters

KEYS = ("query_id", "doc_id")


def plan(params: RankingParameters, ranking: Source, relevance: Source | None) -> Plan:
    """Bind the inputs, find the places of judged documents, and fold them into measures of every ranking.

    Raises:
        DataError: the inputs lack a column that the parameters need.
    """
    return _Planner(params, ranking, relevance).plan()


@dataclass(frozen=True)
class _Planner:
    params: RankingParameters
    ranking: Source
    relevance: Source | None

    def plan(self) -> Plan:
        self._check_columns()
        sources = tuple(each for each in (self.ranking, self.relevance) if each is not None)
        by = rows.resolve_by(self.params.by, sources)
        for key in KEYS:
            rows.check_keys(sources, key)
        own = [each.name for each in by if each.source == self.ranking.name]
        names = [each.name for each in by]
        labelled = self.relevance is None and not self.counts_missed
        lists = Lists(self.params, tuple(names), tuple(own), labelled=labelled, judged_apart=self.relevance is not None)
        frames = {"rankings": exp.select("*").from_("rankings")}
        if not labelled:
            frames["judged_queries"] = exp.select("*").from_("judged_queries")
        return Plan(
            nodes=(
                *self._relations(by),
                *self._checks(own, names),
                Query("ranking/counts", columns=tuple(count.name for count in COUNTS)),
                Reduction("lists", self._ranked(), frames, lists.reduce),
            ),
            sources=sources,
            by=by,
            used=("n_retrieved",),
            accounting=Query("ranking/accounting" if self.scored else "ranking/accounting_of_ranks"),
            positive=self._positive,
            key_matches=tuple(KeyMatch(self.ranking, each, "query_id") for each in sources if each is self.relevance),
            warnings=tuple(self._warnings()),
            facts={"order": "score" if self.scored else "rank", "ties": self.params.ties},
        )

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
        names = [] if self.params.ties == "expected" else [NAME]
        return RankedAmong(
            rows=exp.select("*").from_("judged_places"),
            among=exp.select(*(column(name) for name in (NUMBER, VALUE, *names))).from_("numbered_documents"),
            key=NUMBER,
            sizes=load("ranking/judged_per_ranking").tree.copy(),
            function=judged_places if names else tied_places,
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
        order = "score" if self.scored else "rank"
        labels = ["relevance"] if self.relevance is None else []
        yield rows.read(self.ranking, [*KEYS, order, *labels], by, {})
        own = [each for each in by if each.source == self.ranking.name]
        ranked = rows.joined_rows(self.ranking, None, (), [*KEYS, order, *labels], own, required=[*KEYS, order])
        if self.params.duplicates == "max":
            ranked = rows.distinct_rows(ranked, [*(each.name for each in own), *KEYS], [order])
        value = column(order) if self.scored else exp.Neg(this=column(order))
        names = [each.name for each in own]
        kept = [column(name) for name in (*names, REPLICATE, *KEYS, *labels)]
        query = exp.select(*kept, exp.alias_(value, VALUE, quoted=True)).from_(ranked.subquery("ranked_rows"))
        sorts = self.params.duplicates == "max"
        yield Relation("ranked_documents", query, keep=sorts)  # it is read thrice
        retrieved = expand(load("ranking/retrieved"), names)
        if self.relevance is None:
            yield Relation("rankings", retrieved, keep=True)
            if self.counts_missed:
                yield from self._labelled(own)
        else:
            theirs = [each.name for each in by if each.source == self.relevance.name]
            yield from self._judged(self.relevance, by, theirs)
            yield Relation("retrieved", retrieved, keep=True)
            yield Relation("rankings", _looked_up("retrieved", "judged_queries", ("query_id",), theirs), keep=True)
        yield from _places(names, labels, self._level)

    def _labelled(self, own: list[rows.Grouped]) -> Iterator[Relation]:
        """Labels of all documents of the ranking, those without a valid score too, as judgements of its queries."""
        names = [each.name for each in own]
        labels = rows.joined_rows(self.ranking, None, (), [*KEYS, "score", "relevance"], own, required=KEYS)
        if self.params.duplicates == "max":
            labels = rows.distinct_rows(labels, [*names, *KEYS], ["score"])
        yield Relation("judged_documents", labels)
        queries = expand(load("ranking/judged_queries"), names)
        yield Relation("judged_queries", fill(queries, self._level), keep=True)

    def _judged(self, source: Source, by: tuple[rows.Grouped, ...], theirs: list[str]) -> Iterator[Relation]:
        yield rows.read(source, [*KEYS, "relevance"], by, {})
        judged = rows.passing_rows(source)
        if self.params.duplicates != "error":
            judged = rows.distinct_rows(judged, KEYS, ["relevance", *theirs])
        yield Relation("judged_documents", judged, keep=True)
        yield Relation("judged_queries", fill(expand(load("ranking/judged_queries"), theirs), self._level), keep=True)

    def _checks(self, own: list[str], names: list[str]) -> Iterator[Check]:
        if self.relevance is not None:
            for name in (*KEYS, "relevance"):
                yield missing_check(self.relevance, name)
            if len(own) < len(names):
                yield _one_value_check(self.relevance, [name for name in names if name not in own])
        if self.params.duplicates == "error":
            remedy = 'Keep one row per query and document, or set duplicates = "max" to keep the best of each.'
            yield duplicate_check(self.ranking, (*own, *KEYS), remedy=remedy)
            if self.relevance is not None:
                yield duplicate_check(self.relevance, KEYS, remedy=remedy)
        if self.params.ties == "order":
            remedy = 'With ties = "order" every rank must be given once in a ranking; ties = "trec" breaks ties.'
            keys = (*own, "query_id", "rank")
            yield duplicate_check(self.ranking, keys, remedy=remedy)

    def _warnings(self) -> Iterator[str]:
        if self.scored and self.ranking.has_float32("score"):
            yield "scores are single precision (FLOAT); scores that are equal in it are ties"
        if self.params.null != "exact":
            yield f"null = {self.params.null!r}: these moments are wrong; {page('ranking')} says how far"


def _places(own: list[str], labels: list[str], level: dict[str, float]) -> Iterator[Relation]:
    """Documents with the number of their ranking, and the judged ones among them."""
    name = exp.alias_(exp.cast(column("doc_id", "p"), "TEXT"), NAME, quoted=True)
    kept = (column(each, "p") for each in (VALUE, *KEYS, *labels))
    query = exp.select(column(NUMBER, "o"), *kept, name).from_(exp.to_table("ranked_documents").as_("p"))
    same = [exp.NullSafeEQ(this=column(each, "p"), expression=column(each, "o")) for each in (*own, "query_id")]
    query = query.join(exp.to_table("rankings").as_("o"), on=exp.and_(*same), join_type="inner")
    yield Relation("numbered_documents", query)
    labelled = exp.select("*").from_("numbered_documents")
    if not labels:
        labelled = _looked_up("numbered_documents", "judged_documents", KEYS, ["relevance"], kind="inner")
    yield Relation("labelled_documents", labelled)
    yield Relation("judged_places", fill(expand(load("ranking/judged_places"), ()), level), keep=True)


def _looked_up(relation: str, other: str, keys: tuple[str, ...], names: list[str], *, kind: str = "left") -> exp.Select:
    """A relation with columns of another that has at most one row for each key."""
    matches = exp.and_(*(exp.EQ(this=column(key, "p"), expression=column(key, "o")) for key in keys))
    theirs = (column(name, "o") for name in names)
    star = exp.Column(this=exp.Star(), table=exp.to_identifier("p"))
    query = exp.select(star, *theirs).from_(exp.to_table(relation).as_("p"))
    return query.join(exp.to_table(other).as_("o"), on=matches, join_type=kind)


def _one_value_check(source: Source, names: list[str]) -> Check:
    """A query whose judged documents differ in a grouping column."""

    def explain(faults: list[dict[str, object]]) -> tuple[str, str]:
        query = faults[0]["query_id"]
        shown = ", ".join(map(users_name, names))
        message = f"input {source.name}: {source.source_name('query_id')} = {query} has several values of {shown}"
        return message, "A grouping column of relevance describes the query: give it one value in all rows of a query."

    return Check(repeated_keys("judged_queries", ("query_id",), everything=True), explain)
