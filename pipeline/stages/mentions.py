"""Mentions of gold and predicted: the rule by which they are matched, and the rows that are matched."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Literal

import numpy as np
import polars as pl
import sqlglot.expressions as exp
from pydantic import Field, field_validator

from ..base.columns import REPLICATE
from ..base.dialect import column, kept
from ..base.errors import DataError
from ..base.records import dataclass
from ..base.schemas import internal_name
from ..base.sql_files import statement
from ..metrics.matching import (
    Assignment,
    Mentions,
    ShareOf,
    match_near,
    match_overlapping,
    match_spans,
    match_texts,
    normalised_text,
    packed,
    rising_order,
)
from ..plan import rows
from ..plan.nodes import CrossCheck, Grouped, Relation, file_check, missing_check, repeats_check
from ..sources.inputs import Field as InputField
from ..sources.source import SCORE_STATE
from .parameters import StageParameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..plan.nodes import Check
    from ..sources.source import Source


Match = Literal["span", "text", "overlap", "text_near"]
DOCUMENT, SYSTEM = "_document", "_system"
FILE_ORDER = ("source_file", "file_row_number")
PLACE = ("start", "end")
TYPE = "type"
FARTHEST_CHARACTER = 1_000_000_000


class MentionParameters(StageParameters):
    """Parameters of stages that match mentions.

    Attributes:
        match: Which mentions may be matched: `span`: the same characters; `text`: the same normalised text anywhere in
            the document; `overlap`: characters in common; `text_near`: the same text and close centres; None: none are.
        match_type: Whether the types must be equal, too.
        assignment: `maximum`: a largest one-to-one matching; `file_order`: every gold mention in the order of the file
            takes the first prediction still free.
        minimum_overlap: For `overlap`: smallest share of characters in common.
        overlap_of: What that is a share of: characters in either mention (`union`), or in the gold mention.
        max_centre_distance: For `text_near`: the centres are less than this number of characters apart.
    """

    match: Match | None = None
    match_type: bool = False
    assignment: Assignment = "maximum"
    minimum_overlap: Annotated[float, Field(ge=0, le=1)] = 0.0
    overlap_of: ShareOf = "union"
    max_centre_distance: Annotated[float, Field(gt=0, le=1_000_000)] = 10.0

    @field_validator("duplicates")
    @classmethod
    def _no_highest(cls, value: str) -> str:
        if value == "max":
            message = 'duplicates = "max" has no meaning here: use "error" or "keep"'
            raise ValueError(message)
        return value

    @property
    def type_group(self) -> str | None:
        """Internal name of the grouping column that is the type of matched mentions; None: no grouping has it."""
        grouped = self.match_type and any(TYPE in names for names in self.by)
        return internal_name(TYPE) if grouped else None

    def needs(self) -> tuple[str, ...]:
        """The columns that matching needs of gold and predicted mentions."""
        places = () if self.match == "text" else ("start", "end")
        texts = ("text",) if self.match in {"text", "text_near"} else ()
        return ("doc_id", *places, *texts, *(("type",) if self.match_type else ()))


def matched_rows(gold: pl.DataFrame, predicted: pl.DataFrame, params: MentionParameters) -> NDArray[np.int64]:
    """The matching of gold and predicted mentions by the rule of a stage.

    Args:
        gold: Columns `_document` and, if there are several, `_system`, numbers from 0, within which mentions are
            matched, and those that the rule needs; where it does not need `start` and `end`, they may be missing or
            unknown.
        predicted: The same, and `score` if there is one.
        params: The rule.

    Returns:
        Shape (gold.height,): row of the matched prediction, or -1.
    """
    frames = gold, predicted
    documents = [frame[DOCUMENT].to_numpy() for frame in frames]
    if SYSTEM in gold.columns:
        documents = _combined(documents, [frame[SYSTEM].to_numpy() for frame in frames])
    codes = [np.zeros(frame.height, dtype=np.int64) for frame in frames]
    for name in ("text", "type"):
        if name in params.needs() and (name != "type" or params.match_type):
            codes = _combined(codes, _numbers([frame[name] for frame in frames], normalised=name == "text"))
    sides = []
    for frame, document, code, (start, end) in zip(frames, documents, codes, _places(frames), strict=True):
        score = frame["score"].to_numpy() if "score" in frame.columns else None
        sides.append(Mentions(document, start, end, code, score))
    of_gold, of_predicted = sides[0], sides[1]
    if params.match == "span":
        return match_spans(of_gold, of_predicted)
    if params.match == "text":
        return match_texts(of_gold, of_predicted, assignment=params.assignment)
    if params.match == "text_near":
        return match_near(
            of_gold, of_predicted, max_centre_distance=params.max_centre_distance, assignment=params.assignment
        )
    return match_overlapping(
        of_gold,
        of_predicted,
        minimum_share=params.minimum_overlap,
        share_of=params.overlap_of,
        assignment=params.assignment,
    )


def in_order(mentions: pl.DataFrame, further: Sequence[str] = ()) -> pl.DataFrame:
    """Mentions by document, system, place and further columns, whatever the order of their rows.

    A largest matching takes the first of rows that it cannot tell apart: which one that is, the further columns decide.
    """
    if mentions.height < 2:  # noqa: PLR2004 - one row is in order
        return mentions
    first = [name for name in (DOCUMENT, SYSTEM, *PLACE) if name in mentions.columns]
    keys = list(dict.fromkeys([*first, *(name for name in further if name in mentions.columns)]))
    outside = FARTHEST_CHARACTER + 1
    columns = mentions.select(pl.col(first).fill_null(outside).clip(-outside, outside))
    words = packed([(column.to_numpy(), np.empty(0, dtype=np.int64)) for column in columns])
    order = rising_order(words[0]) if len(words) == 1 else np.lexsort(words[::-1])
    same = np.logical_and.reduce([np.diff(word[order]) == 0 for word in words])
    repeated = np.append(False, same) | np.append(same, False)
    rows = order[repeated]
    again = mentions.select(keys)[rows].select(pl.arg_sort_by(keys, nulls_last=True))
    order[repeated] = rows[again.to_series().to_numpy()]
    return mentions[order]


def text_numbers(texts: pl.Series) -> pl.Series:
    """The same number from 0 for the same normalised text."""
    return pl.Series(_numbers([texts], normalised=True)[0])


def _places(frames: tuple[pl.DataFrame, pl.DataFrame]) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """First character and the one after the last of gold and of predicted mentions; zeros where one side has none.

    Mentions whose place is not known, or cannot be one, stand behind all others, predicted ones at another place than
    gold ones: nothing says that the two are the same.
    """
    if not all(name in frame.columns for frame in frames for name in PLACE):
        nothing = [np.zeros(frame.height, dtype=np.int64) for frame in frames]
        return list(zip(nothing, nothing, strict=True))
    places = []
    for behind, frame in enumerate(frames, start=1):
        somewhere = is_placed().fill_null(value=False)
        names = [pl.when(somewhere).then(name).otherwise(FARTHEST_CHARACTER + behind).alias(name) for name in PLACE]
        start, end = (column.to_numpy() for column in frame.select(names))
        places.append((start, end))
    return places


def is_placed() -> pl.Expr:
    """Whether `start` and `end` are the place of a mention in a text; NULL or false: they are not."""
    start, end = (pl.col(name) for name in PLACE)
    return (start >= -FARTHEST_CHARACTER) & (start <= end) & (end <= FARTHEST_CHARACTER)


def _numbers(columns: Sequence[pl.Series], *, normalised: bool) -> list[NDArray[np.int64]]:
    """The same number for the same value in both columns; texts are normalised once each."""
    everything = pl.concat(columns)
    if everything.dtype == pl.String and len(everything):
        coded = everything.cast(pl.Categorical(pl.Categories.random()))
        values = coded.unique()
        texts = pl.DataFrame({"value": values.cast(pl.String)})
        names = texts.select(normalised_text(pl.col("value")) if normalised else pl.col("value")).to_series()
        of_code = np.zeros(len(values), dtype=np.int64)
        of_code[values.to_physical().to_numpy()] = names.rank("dense").cast(pl.Int64).to_numpy() - 1
        numbers = of_code[coded.to_physical().to_numpy()]
    else:
        numbers = everything.rank("dense").cast(pl.Int64).to_numpy() - 1
    return [numbers[: len(columns[0])], numbers[len(columns[0]) :]]


def _combined(first: list[NDArray[np.int64]], second: list[NDArray[np.int64]]) -> list[NDArray[np.int64]]:
    """One number for each pair of two numbers."""
    size = 1 + max(int(each.max(initial=0)) for each in second)
    return [left * size + right for left, right in zip(first, second, strict=True)]


def rule_in_words(parameters: Mapping[str, object]) -> str:
    """Say which mentions may be matched and how they are, as the end of a sentence."""
    share = f"at least {parameters['minimum_overlap']:.10g} of the characters in "
    of_share = share + ("the gold mention" if parameters["overlap_of"] == "gold" else "either")
    rules = {
        "span": "whose first and last characters are equal",
        "text": "whose normalised texts are equal",
        "overlap": f"that have {of_share if parameters['minimum_overlap'] else 'a character'} in common",
        "text_near": (
            f"whose normalised texts are equal and whose centres lie less than {parameters['max_centre_distance']:g} "
            "characters apart (Gritta et al. 2018)"
        ),
    }
    types = ", and whose types are equal" if parameters["match_type"] else ""
    how = (
        "by a largest one-to-one matching"
        if parameters["assignment"] == "maximum"
        else "one to one, every gold mention in the order of the file taking the first prediction that is free"
    )
    return f"mentions of one document {rules[str(parameters['match'])]}{types}, {how}"


# Rows of gold and predicted mentions, ready to be matched: with the number of their document and of their system.


DOCUMENTS = "documents"
SYSTEMS = "systems"


@dataclass(frozen=True)
class MentionRows:
    """Relations of gold and predicted mentions.

    Attributes:
        params: The rule of matching, groups and clusters.
        predicted: Predicted mentions.
        gold: Gold mentions.
        documents: The documents that are annotated; None: those with a mention.
        by: The grouping columns.
        needs: Columns that must be there and known in every row.
        shown: Further columns that are passed on where an input has them; documents have their number without it.
        located: Whether rows know their file and their place in it.
    """

    params: MentionParameters
    predicted: Source
    gold: Source
    documents: Source | None
    by: tuple[Grouped, ...]
    needs: tuple[str, ...]
    shown: tuple[str, ...] = ()
    located: bool = False

    @property
    def systems(self) -> tuple[str, ...]:
        """Grouping columns that only predictions have: the gold mentions count for each of their values."""
        return tuple(group.name for group in self.by if group.source == "predicted" and not self.is_type(group))

    @property
    def of_documents(self) -> tuple[str, ...]:
        """Grouping columns of the documents."""
        return tuple(group.name for group in self.by if group.source == DOCUMENTS)

    @property
    def of_gold(self) -> tuple[str, ...]:
        """Grouping columns of the gold mentions; predictions that are not matched have none."""
        return tuple(group.name for group in self.by if group.source == "gold")

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

    @property
    def with_texts(self) -> bool:
        """Whether gold and predictions both have texts with their places, which can be held against each other."""
        sources = (self.gold, self.predicted)
        return all(source.can_show(name) for source in sources for name in (*PLACE, "text")) and {
            key_type(source, "text") for source in sources
        } == {"VARCHAR"}

    @property
    def cluster(self) -> str | None:
        """Column of the documents whose values are independent; None: the documents themselves are."""
        return None if self.params.cluster == "doc_id" else self.params.cluster_column

    @cached_property
    def order(self) -> str | None:
        """Column that orders clusters of documents in time, as they are read; None: their order means nothing."""
        cluster, order = self.params.first_cluster, self.params.cluster_order
        if self.documents is None or cluster is None or not self.params.is_replicated:
            return None
        return None if (cluster, order) == ("doc_id", None) else rows.order_of_clusters(self.documents, cluster, order)

    def check(self) -> None:
        """Refuse inputs that lack a column, and clusters that are not known of every document.

        Raises:
            DataError: names the column and the remedy.
        """
        sources = [source for source in (self.predicted, self.gold, self.documents) if source is not None]
        rows.check_keys(sources, "doc_id")
        for name in ("text", TYPE):
            if name in self.needs:
                rows.check_keys((self.predicted, self.gold), name)
        for source in (self.predicted, self.gold):
            if self.in_file_order and (table := source.without_places) is not None:
                message = (
                    f'input {source.name}: assignment = "file_order" needs the order of rows, which {table} has not'
                )
                raise DataError(message, remedy='Use assignment = "maximum", or name the address of the files.')
        cluster = self.params.cluster
        if cluster not in {None, "doc_id"} and (self.documents is None or not self.documents.has(str(cluster))):
            message = f"cluster: {cluster!r} is no column of the input documents"
            raise DataError(message, remedy="Every document lies in one cluster: give documents with that column.")
        order = self.params.cluster_order
        if order is not None and (self.documents is None or not self.documents.has(order)):
            message = f"cluster_order: {order!r} is no column of the input documents"
            raise DataError(message, remedy="Give documents with that column.")

    def relations(self) -> Iterator[Relation]:
        """Mentions as they are read, documents with their replicate and number, and systems with their number."""
        groups = [group for group in self.by if not self.is_type(group)]
        located = self.located or self.in_file_order
        score = self._score
        fault = {"fault": fault_of(self.needs, has_score=bool(score))}
        compared = (*PLACE, "text") if self.with_texts else ()
        predicted = dict.fromkeys((*self.taken(self.predicted), *compared, *score))
        yield rows.read(self.predicted, predicted, groups, fault, located=located)
        yield rows.read(self.gold, dict.fromkeys((*self.taken(self.gold), *compared)), self.by, {}, located=located)
        if self.documents is not None:
            columns = dict.fromkeys(("doc_id", self._cluster_key, *([] if self.order is None else [self.order])))
            yield rows.read(self.documents, columns, self.by, {})
        yield from self._graph.relations("clusters", DOCUMENTS, SYSTEMS)

    @property
    def _score(self) -> list[str]:
        """The column of the scores, if there is one."""
        return ["score"] if self.predicted.field("score") is not None else []

    @property
    def _cluster_key(self) -> str:
        return self.cluster or "doc_id"

    @property
    def _graph(self) -> rows.Graph:
        """The relations of sql/mentions/, where there is a choice: documents that are listed, or have a mention."""
        count, together = self.params.n_replicates, not self.params.is_replicated
        made: dict[str, rows.From | Sequence[Relation]] = {SYSTEMS: systems_from(self.systems)}
        if self.documents is not None:
            read, key = f"{DOCUMENTS}_read", self._cluster_key
            made["replicates"] = rows.replicate_relations(read, key, count, together=together, order=self.order)
            made[DOCUMENTS] = rows.From("documents_listed", columns={"cluster_key": key})
        else:
            types = {key_type(source, "doc_id") for source in (self.gold, self.predicted)}
            as_integer = {} if len(types) == 1 else {"doc_id": exp.cast(column("doc_id"), "BIGINT")}
            made["clusters"] = rows.From("documents_with_mentions", columns=as_integer)
            made["replicates"] = rows.replicate_relations("clusters", "cluster", count, together=together)[1:]
        return rows.Graph("mentions", self.by, made, segments={"systems": self.systems})

    def rows_of_predicted(self) -> exp.Query:
        """The predictions that take part."""
        columns = [*self._of_mentions(self.predicted), *self._score, *self.systems]
        return statement("mentions/predicted", self._segments(columns))

    def rows_of_gold(self) -> exp.Query:
        """The gold mentions, once for each system."""
        return statement("mentions/gold", self._segments([*self._of_mentions(self.gold), *self.of_gold]))

    def _segments(self, of_mentions: Sequence[str]) -> dict[str, Sequence[str]]:
        """Columns that are passed on, of mentions, of their systems and of their documents."""
        shown = ["doc_id"] if "doc_id" in self.shown else []
        return {"p": of_mentions, "s": self.systems, "d": [*shown, *self.of_documents]}

    def _of_mentions(self, source: Source) -> list[str]:
        """Columns of mentions that are passed on; their key is the document's."""
        return [name for name in (*self.taken(source), *(FILE_ORDER if self.in_file_order else ())) if name != "doc_id"]

    def is_type(self, group: Grouped) -> bool:
        """Whether a grouping column is the type of the mentions."""
        return group.source == "predicted" and group.name == self.params.type_group

    def checks(self) -> Iterator[Check]:
        """Values that must be known, and places that cannot be."""
        for name in self.needs:
            yield missing_check(self.gold, name)
        if "start" in self.needs:
            for source in (self.gold, self.predicted):
                yield file_check("mentions/checks/misplaced", source, values={"farthest": FARTHEST_CHARACTER})

    def repeats(self, source: Source, accepted: str = "") -> Iterator[CrossCheck]:
        """Whether mentions stand twice at one place; `accepted` is what the config can say if they are meant."""
        taken = self.taken(source)
        if self.params.duplicates == "error" and all(name in taken for name in PLACE):
            systems = self.systems if source is self.predicted else ()
            types = (
                " (of different types: match_type = true)" if not self.params.match_type and source.has(TYPE) else ""
            )
            words = f"Each counts as a mention of its own{types}: keep one row per mention{accepted}"
            yield repeats_check(source, tuple(dict.fromkeys((*self.needs, *PLACE, *systems))), words)

    def cross_checks(self) -> Iterator[CrossCheck]:
        """Whether gold and predictions count characters of the same texts, in the same way."""
        if self.with_texts:
            farthest = {"farthest": FARTHEST_CHARACTER}
            other = statement("mentions/other_texts", self.systems)
            shifted = statement("mentions/shifted_texts", self.systems, values=farthest)
            yield CrossCheck({"other": other, "shifted": shifted}, texts_in_words, is_alarm=True)


def texts_in_words(found: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Signs, in texts of equal places and places of equal texts, of how characters were counted."""
    words = []
    for row in found["other"].iter_rows(named=True):
        places = "1 place has" if row["n_places"] == 1 else f"{row['n_places']:,} places have"
        first = f"document {row['doc_id']}, {row['start']:,} to {row['end']:,}"
        words.append(
            f"{places} another text in predicted than in gold (first: {first}: gold {row['gold_text']!r}, predicted "
            f"{row['predicted_text']!r}): do both count the characters of the same texts?"
        )
    for row in found["shifted"].iter_rows(named=True):
        texts = "1 text stands" if row["n_texts"] == 1 else f"{row['n_texts']:,} texts stand"
        gold, predicted = (
            f"{side} {row['text']!r} at {row[f'{side}_start']:,} to {row[f'{side}_end']:,}"
            for side in ("gold", "predicted")
        )
        words.append(
            f"{texts} at another place in predicted than in gold (first: document {row['doc_id']}: {gold}, {predicted})"
            ": do both count characters alike? An emoji is one character, two units of UTF-16, four bytes, and end is "
            "the character after the last"
        )
    return tuple(words)


def key_type(source: Source, name: str) -> str:
    """SQL type as which a key column of an input is read."""
    return source.types(name, source.contract.field(name) or InputField(name, "key", "a key"))


def systems_from(systems: Sequence[str]) -> rows.From:
    """Every combination of values of some columns of the predictions, with its number from 1; else one row, 0."""
    return rows.From("mentions/systems" if systems else "mentions/one_system")


def resolve_by(
    params: MentionParameters, predicted: Source, gold: Source, documents: Source | None
) -> tuple[Grouped, ...]:
    """The grouping columns: of the predictions alone, of the documents, or the type of the mentions.

    Raises:
        DataError: a column of gold mentions that tells nothing of false positives, or `type` without `match_type`.
    """
    sources = [predicted, *([documents] if documents is not None else [])]
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
    groups = rows.resolve_by(params.by, sources)
    types = [group.label for group in groups if group.column == TYPE and group.label != TYPE and gold.has(TYPE)]
    if types:
        message = f"by: {types[0]!r} is the type of matched mentions, which gold has, too"
        raise DataError(message, remedy="Write type.")
    return groups


def fault_of(needs: Sequence[str], *, has_score: bool) -> exp.Expr:
    """Why a prediction cannot take part; NULL when it can."""
    return kept(("fault", *needs, has_score), lambda: _fault_of(needs, has_score=has_score))


def _fault_of(needs: Sequence[str], *, has_score: bool) -> exp.Expr:
    case = exp.Case()
    if has_score:
        case = case.when(column(SCORE_STATE).is_(exp.null()).not_(), column(SCORE_STATE))
    for name in needs:
        case = case.when(column(name).is_(exp.null()), exp.convert(f"null_{name}"))
    return case
