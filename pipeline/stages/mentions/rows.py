"""Rows of gold and predicted mentions, ready to be matched: with the number of their document and of their system."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.errors import DataError
from pipeline.plan import rows
from pipeline.plan.checks import missing_check, rows_check
from pipeline.plan.nodes import Relation
from pipeline.queries.dialect import column
from pipeline.sources.inputs import Field
from pipeline.sources.keys import is_missing
from pipeline.sources.source import SCORE_STATE
from pipeline.stages.mentions.rules import DOCUMENT, FARTHEST_CHARACTER, FILE_ORDER, SYSTEM, TYPE
from pipeline.tables.sweep import REPLICATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.plan.nodes import Check
    from pipeline.sources.source import Source
    from pipeline.stages.mentions.rules import MentionParameters

UNITS = "documents"
NUMBERED = "numbered_documents"
SYSTEMS = "systems"


@dataclass(frozen=True)
class MentionRows:
    """What gold and predicted mentions are read as.

    Attributes:
        params: The rule of matching, groups and clusters.
        predicted: Predicted mentions.
        gold: Gold mentions.
        documents: The documents that are judged; None: those with a mention.
        by: The grouping columns.
        needs: Columns that must be there and known in every row.
        shown: Further columns that are taken along where an input has them; documents have their number without it.
        located: Whether rows know their file and their place in it.
    """

    params: MentionParameters
    predicted: Source
    gold: Source
    documents: Source | None
    by: tuple[rows.Grouped, ...]
    needs: tuple[str, ...]
    shown: tuple[str, ...] = ()
    located: bool = False

    @property
    def systems(self) -> tuple[str, ...]:
        """Grouping columns that only predictions have: the gold mentions count for each of their values."""
        return tuple(each.name for each in self.by if each.source == "predicted" and not self.is_type(each))

    @property
    def of_documents(self) -> tuple[str, ...]:
        """Grouping columns of the documents."""
        return tuple(each.name for each in self.by if each.source == UNITS)

    @property
    def of_gold(self) -> tuple[str, ...]:
        """Grouping columns of the gold mentions; predictions that are not matched have none."""
        return tuple(each.name for each in self.by if each.source == "gold")

    @property
    def passed_on(self) -> tuple[str, ...]:
        """Columns of every row that counting needs: groups, but for the type, the document's number and replicate."""
        return (*self.systems, *self.of_documents, DOCUMENT, REPLICATE)

    @property
    def may_be_empty(self) -> bool:
        """Whether a document may be without any mention, of a system at least."""
        return self.documents is not None or bool(self.systems)

    @property
    def in_file_order(self) -> bool:
        """Whether the order of the rows in the files counts."""
        return self.params.assignment == "file_order"

    def taken(self, source: Source) -> tuple[str, ...]:
        """Columns that are read of gold or of predicted mentions."""
        return tuple(dict.fromkeys((*self.needs, *(name for name in self.shown if source.can_show(name)))))

    def check(self) -> None:
        """Refuse inputs that lack a column, and clusters that are not known of every document.

        Raises:
            DataError: names the column and the remedy.
        """
        given = [each for each in (self.predicted, self.gold, self.documents) if each is not None]
        rows.check_keys(given, "doc_id")
        for name in ("text", TYPE):
            if name in self.needs:
                rows.check_keys((self.predicted, self.gold), name)
        cluster = self.params.cluster
        if cluster not in {None, "doc_id"} and (self.documents is None or not self.documents.has(str(cluster))):
            message = f"cluster: {cluster!r} is no column of the input documents"
            raise DataError(message, remedy="Every document lies in one cluster: give documents with that column.")

    def units(self) -> rows.Units:
        """The documents."""
        cluster = None if self.params.cluster == "doc_id" else self.params.cluster_column
        replicates = None if self.params.replicates == "auto" else self.params.replicates
        replicated = self.params.uncertainty == "jackknife"
        return rows.Units(UNITS, "doc_id", cluster=cluster, replicated=replicated, replicates=replicates)

    def relations(self) -> Iterator[Relation]:
        """Mentions as they are read, documents with their replicate and number, and systems with their number."""
        own, located = [each for each in self.by if not self.is_type(each)], self.located or self.in_file_order
        has_score = ["score"] if self.predicted.field("score") is not None else []
        wanted = [*self.taken(self.predicted), *has_score]
        fault = {"fault": fault_of(self.needs, has_score=bool(has_score))}
        yield rows.read(self.predicted, wanted, own, fault, located=located)
        yield rows.read(self.gold, self.taken(self.gold), self.by, {}, located=located)
        units = self.units()
        if self.documents is not None:
            cluster = [units.cluster] if units.cluster else []
            yield rows.read(self.documents, ["doc_id", *cluster], self.by, {})
            yield from rows.units_relations(self.predicted, units, self.documents, self.by)
        else:
            yield from self._documents_with_mentions(units)
        order = exp.Window(this=exp.RowNumber(), order=exp.Order(expressions=[exp.Ordered(this=column("doc_id"))]))
        number = exp.alias_(exp.cast(order, "BIGINT"), DOCUMENT, quoted=True)
        yield Relation(NUMBERED, exp.select("*", number).from_(UNITS), keep=True)
        yield systems_relation(self.systems)

    def _documents_with_mentions(self, units: rows.Units) -> Iterator[Relation]:
        """The documents, where none are listed; each is a cluster of its own."""
        origin = f"{UNITS}_read"
        yield Relation(origin, self._keys_of_mentions(), keep=True)
        if not units.replicated:
            none = exp.alias_(exp.cast(exp.Literal.number(0), "SMALLINT"), REPLICATE)
            yield Relation(UNITS, exp.select("doc_id", none).from_(origin))
            return
        _, replicates = rows.replicate_relations(origin, "doc_id", units.replicates)
        yield Relation("clusters", exp.select(exp.alias_(column("doc_id"), "cluster")).from_(origin))
        yield replicates
        key = exp.alias_(column("cluster"), "doc_id", quoted=True)
        yield Relation(UNITS, exp.select(key, REPLICATE).from_("replicates"))

    def _keys_of_mentions(self) -> exp.Query:
        """The documents with a gold or predicted mention, in the form of an input; keys have one type."""
        kinds = {key_type(each, "doc_id") for each in (self.gold, self.predicted)}
        value = column("doc_id") if len(kinds) == 1 else exp.cast(column("doc_id"), "BIGINT")
        parts = [
            exp.select(
                exp.alias_(value.copy(), "doc_id", quoted=True), exp.alias_(exp.true(), "passes_where", quoted=True)
            )
            .from_(name)
            .where(column("passes_where"), exp.Not(this=is_missing("doc_id")))
            for name in ("gold_read", "predicted_read")
        ]
        return exp.union(*parts)

    def rows_of_predicted(self) -> exp.Select:
        """The predictions that take part."""
        names = [*self.taken(self.predicted)]
        if self.predicted.field("score") is not None:
            names.append("score")
        same: list[exp.Expr] = [
            exp.NullSafeEQ(this=column(name, "p"), expression=column(name, "s")) for name in self.systems
        ]
        query = self._joined("predicted_read", names)
        query = query.where(exp.Is(this=column("fault", "p"), expression=exp.null()))
        return query.join(exp.to_table(SYSTEMS).as_("s"), on=exp.and_(*same), join_type="inner") if same else query

    def rows_of_gold(self) -> exp.Select:
        """The gold mentions, once for each system."""
        query = self._joined("gold_read", (*self.taken(self.gold), *self.of_gold))
        return query.join(exp.to_table(SYSTEMS).as_("s"), on=exp.true(), join_type="left") if self.systems else query

    def listed(self) -> exp.Select:
        """Every document, once for each system; without a type."""
        names = [*(column(name, "s") for name in self.systems), *(column(name, "d") for name in self.of_documents)]
        query = exp.select(*names, column(DOCUMENT, "d"), column(REPLICATE, "d")).from_(exp.to_table(NUMBERED).as_("d"))
        for each in filter(self.is_type, self.by):
            query = query.select(exp.alias_(exp.cast(exp.null(), key_type(self.gold, TYPE)), each.name, quoted=True))
        return query.join(exp.to_table(SYSTEMS).as_("s"), on=exp.true(), join_type="left")

    def is_type(self, each: rows.Grouped) -> bool:
        """Whether a grouping column is the type of the mentions."""
        return each.source == "predicted" and each.name == self.params.type_group

    def _joined(self, relation: str, names: Sequence[str]) -> exp.Select:
        """Rows of a relation, `p`, with what is known of their documents, `d`, and systems, `s`, if there are any."""
        located = FILE_ORDER if self.in_file_order else ()
        named = ("doc_id",) if "doc_id" in self.shown else ()
        query = exp.select(
            *(column(name, "p") for name in dict.fromkeys((*names, *located)) if name != "doc_id"),
            *(column(name, "s") for name in self.systems),
            *(column(name, "d") for name in (*named, *self.of_documents, REPLICATE, DOCUMENT)),
        ).from_(exp.to_table(relation).as_("p"))
        if self.systems:
            number = exp.Coalesce(this=column(SYSTEM, "s"), expressions=[exp.Literal.number(0)])
            query = query.select(_number(number, SYSTEM))
        same = exp.EQ(this=column("doc_id", "p"), expression=column("doc_id", "d"))
        return query.join(exp.to_table(NUMBERED).as_("d"), on=same, join_type="inner").where(
            column("passes_where", "p")
        )

    def checks(self) -> Iterator[Check]:
        """Values that must be known, and places that cannot be."""
        for name in self.needs:
            yield missing_check(self.gold, name)
        if "start" in self.needs:
            for source in (self.gold, self.predicted):
                yield _misplaced(source)


def key_type(source: Source, name: str) -> str:
    """SQL type as which a key column of an input is read."""
    return source.types(name, source.contract.field(name) or Field(name, "key", "a key"))


def systems_relation(systems: Sequence[str]) -> Relation:
    """Every combination of values of some columns of the predictions, with its number from 1; else one row, 0."""
    names = [column(name) for name in systems]
    if not names:
        return Relation(SYSTEMS, exp.select(_number(exp.Literal.number(0), SYSTEM)), keep=True)
    found = exp.select(*names).distinct().from_("predicted_read").where(column("passes_where"))
    order = exp.Order(expressions=[exp.Ordered(this=name.copy(), nulls_first=False) for name in names])
    number = _number(exp.Window(this=exp.RowNumber(), order=order), SYSTEM)
    query = exp.select(*(name.copy() for name in names), number).from_(found.subquery("found"))
    return Relation(SYSTEMS, query, keep=True)


def resolve_by(
    params: MentionParameters, predicted: Source, gold: Source, documents: Source | None
) -> tuple[rows.Grouped, ...]:
    """The grouping columns: of the predictions alone, of the documents, or the type of the mentions.

    Raises:
        DataError: a column of gold mentions that tells nothing of false positives, or `type` without `match_type`.
    """
    looked = [predicted, *([documents] if documents is not None else [])]
    for name in dict.fromkeys(name for grouping in params.by for name in grouping):
        if name == TYPE and not params.match_type and gold.has(TYPE):
            message = "by: groups of types need match_type = true: else a match may have two types"
            raise DataError(message, remedy="Set match_type = true, or count by type in the table of outcomes.")
        if name != TYPE and gold.has(name):
            where = "of gold and of predicted" if predicted.has(name) else "of gold only"
            message = f"by: {name!r} is a column {where}"
            raise DataError(
                message,
                remedy="Group by a column that only predicted has, or put one that describes documents into documents.",
            )
    found = rows.resolve_by(params.by, looked)
    odd = [each.label for each in found if each.column == TYPE and each.label != TYPE and gold.has(TYPE)]
    if odd:
        message = f"by: {odd[0]!r} is the type of matched mentions, which gold has, too"
        raise DataError(message, remedy="Write type.")
    return found


def _number(value: exp.Expr, name: str) -> exp.Expr:
    return exp.alias_(exp.cast(value, "BIGINT"), name, quoted=True)


def fault_of(needs: Sequence[str], *, has_score: bool) -> exp.Expr:
    """Why a prediction cannot take part; NULL when it can."""
    case = exp.Case()
    if has_score:
        case = case.when(exp.Not(this=exp.Is(this=column(SCORE_STATE), expression=exp.null())), column(SCORE_STATE))
    for name in needs:
        case = case.when(exp.Is(this=column(name), expression=exp.null()), exp.Literal.string(f"null_{name}"))
    return case


def _misplaced(source: Source) -> Check:
    """Mentions that cannot be places in a text."""
    start, end = (repr(source.source_name(name)) for name in ("start", "end"))
    words = f"{end} is before {start}, or one is beyond ±{FARTHEST_CHARACTER:,},"
    remedy = "end is the character after the last one; correct these rows, or leave them out with where."
    wrong = exp.or_(
        exp.LT(this=column("start"), expression=exp.Literal.number(-FARTHEST_CHARACTER)),
        exp.LT(this=column("end"), expression=column("start")),
        exp.GT(this=column("end"), expression=exp.Literal.number(FARTHEST_CHARACTER)),
    )
    return rows_check(source, wrong, words, remedy)
