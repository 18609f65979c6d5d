"""What entity_recognition asks of an engine: mentions matched, and what became of each."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...errors import ConfigError, DataError, Note
from ...metrics.matching.spans import POOLED_AVERAGES
from ...plan import rows
from ...plan.accounting import NOT_JUDGED, pooled_systems
from ...plan.counts import Query, Reduction, Sweep, Transform
from ...plan.nodes import After, Frame, Relation, doubtful_groups, doubtful_scores, missing_check
from ...plan.plan import OptionalTable, Plan
from ...queries.dialect import all_rows
from ...queries.load import statement
from ...records import dataclass
from ...sources.bindings import KeyMatch
from ...tables.columns import lowest_retrieved
from ...tables.schemas import GROUPING, Grouping
from ..mentions import DOCUMENT, FILE_ORDER, TYPE, MentionRows, in_order, matched_rows, resolve_by
from .contract import COUNT_NAMES, OUTCOMES
from .documents import (
    CORPUS,
    frame_of_mentions,
    judged_relations,
    mentions_of_documents,
    repeated_documents,
    sums_of_documents,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import sqlglot.expressions as exp

    from ...plan.nodes import Check, Node
    from ...sources.source import Source
    from ..mentions import MentionParameters
    from .contract import EntityRecognitionParameters


MOST_ROWS_FOR_OUTCOMES = 1_000_000

ACCEPTED = ', or say duplicates = "keep" if they are meant'


def plan(params: EntityRecognitionParameters, sources: Mapping[str, Source]) -> Plan:
    """Bind the mentions, match them, and count matched and other predictions per bin and per document.

    Raises:
        DataError: an input lacks a column that the parameters need.
    """
    return _Planner(
        params, sources["predicted"], sources["gold"], sources.get("documents"), sources.get("judged")
    ).plan()


@dataclass(frozen=True)
class _Planner:
    params: EntityRecognitionParameters
    predicted: Source
    gold: Source
    documents: Source | None
    judged: Source | None

    def plan(self) -> Plan:
        mentions = self.mentions
        mentions.check()
        self._check_judged()
        if self.params.threshold_values is not None and not self.scored:
            message = "input predicted has no column 'score', which thresholds compare"
            raise DataError(message, remedy="Map it with columns = { score = … }, or leave thresholds out.")
        match = matcher(self.params, mentions.passed_on, shown=self.with_outcomes)
        frames = {"gold": mentions.rows_of_gold(), "predicted": mentions.rows_of_predicted()}
        listed = Relation("listed_documents", self._listed())
        return Plan(
            nodes=(
                *self._relations(),
                listed,
                *self._checks(),
                *mentions.cross_checks(),
                *(check for each in (self.gold, self.predicted) for check in mentions.repeats(each, ACCEPTED)),
                pooled_systems(self.predicted, mentions.by),
                Transform("mentions", frames, (DOCUMENT,), match, self.predicted.rows + self.gold.rows),
                *self._counts(),
                *self._sums_of_documents(),
                *self._frames(),
                *rows.frame_in_time(self.mentions.order),
                *self._after_results(),
            ),
            sources=self.sources,
            by=mentions.by,
            used=("tp", "fp"),
            accounting=Query(f"entity_recognition/{'accounting' if self.judged is None else 'accounting_of_judged'}"),
            optional=(self.outcomes,),
            other_accounting=self._other_accounting(),
            key_matches=tuple(self._key_matches()),
            warnings=tuple(self._warnings()),
            facts=self._facts,
            remedies={} if self.judged is None else {NOT_JUDGED: "Write yes into the column judged of the sheet."},
        )

    def _key_matches(self) -> Iterator[KeyMatch]:
        yield KeyMatch(self.predicted, self.gold, "doc_id")
        if self.documents is not None and self.judged is None:
            yield KeyMatch(self.predicted, self.documents, "doc_id", "unlisted_document")
            yield KeyMatch(self.gold, self.documents, "doc_id", "unlisted_document")

    @property
    def _facts(self) -> dict[str, str]:
        """What is independent, whether there are scores, and how limits are made of documents that were drawn."""
        cluster = (self.params.first_cluster if self.judged is None else None) or "doc_id"
        facts = {"independent": cluster, "scores": "yes" if self.scored else "no"}
        return facts if self.judged is None else facts | {"limits": "from draws that know the strata of the sample"}

    def _check_judged(self) -> None:
        """Refuse a sheet of documents without the documents that it was drawn from.

        Raises:
            ConfigError: they are not listed.
        """
        if self.judged is not None and self.documents is None:
            message = "judged goes with documents: misses in documents without any prediction would not be known"
            remedy = "Give documents = …, one row per document, also of those that were not drawn."
            raise ConfigError(message, remedy=remedy)

    def _relations(self) -> Iterator[Node]:
        """Mentions and documents as they are read; of a sheet only the documents that are judged."""
        for relation in self.mentions.relations():
            if self.judged is None or relation.into != "documents_read":
                yield relation
            else:
                columns = [name for name in (self.mentions.cluster, self.mentions.order) if name is not None]
                yield from judged_relations(relation, self.judged, self.mentions.of_documents, columns)

    @cached_property
    def mentions(self) -> MentionRows:
        """How the inputs are read."""
        by = resolve_by(self.params, self.predicted, self.gold, self.documents)
        places = ("start", "end") if self.params.match == "text" else ()
        shown = ("doc_id", *SHOWN) if self.with_outcomes else places
        return MentionRows(self.params, self.predicted, self.gold, self.documents, by, self.params.needs(), shown)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The inputs that are given, the primary input first."""
        return tuple(each for each in (self.predicted, self.gold, self.documents, self.judged) if each is not None)

    @property
    def scored(self) -> bool:
        """Whether predictions have scores."""
        return self.predicted.has("score")

    @property
    def outcomes(self) -> OptionalTable:
        """The table of single mentions."""
        sources = (self.gold, self.predicted)
        return OptionalTable(OUTCOMES.name, "outcomes", self.params.outcomes, MOST_ROWS_FOR_OUTCOMES, sources)

    @property
    def with_outcomes(self) -> bool:
        """Whether the table of single mentions may be made."""
        return self.outcomes.is_possible

    @property
    def lowest_score(self) -> float:
        """The lowest score that is retrieved at the lowest threshold; see `above_lowest`, too."""
        if self.params.threshold_values is None:
            return -math.inf
        return lowest_retrieved(self.params.threshold_values[0], self.params.boundary)

    @property
    def above_lowest(self) -> bool:
        """Whether the lowest score of a group is its lowest threshold, and is not retrieved by it."""
        return self.scored and self.params.threshold_values is None and self.params.boundary == ">"

    def _counts(self) -> Iterator[Query]:
        sweep = Sweep("scored_mentions", all_rows("mentions"), "score", self.params.grid())
        name = "predictions_by_score" if self.scored else "predictions"
        yield Query(f"entity_recognition/{name}", columns=COUNT_NAMES, sweep=sweep if self.scored else None)
        yield Query("entity_recognition/gold", columns=COUNT_NAMES)

    def _frames(self) -> Iterator[Frame]:
        by = [each.name for each in self.mentions.by]
        mentions = mentions_of_documents(by, listed=self.mentions.may_be_empty)
        lowest = {"lowest_score": self.lowest_score}
        counts = statement("entity_recognition/documents", by, relations=mentions, values=lowest)
        if self.above_lowest:
            yield Frame("lowest", statement("entity_recognition/lowest_predictions", by))
        yield Frame("documents", counts)
        if self.judged is not None:
            yield frame_of_mentions(by)
        key = self.mentions.cluster
        name, columns = ("document_ids", {}) if key is None else ("clusters_of_documents", {"cluster_key": key})
        yield Frame("document_ids", statement(f"entity_recognition/{name}", columns=columns))

    def _listed(self) -> exp.Query:
        """Every document, once for each system; it has no type."""
        segment = {"s": self.mentions.systems, "d": self.mentions.of_documents}
        name = "documents_of_systems" if self.params.type_group is None else "documents_of_systems_and_types"
        return statement(f"entity_recognition/{name}", segment)

    def _sums_of_documents(self) -> Iterator[Reduction]:
        if set(self.params.averages) - POOLED_AVERAGES:
            grid = self.params.grid() if self.scored else None
            yield sums_of_documents(self.params, grid, scored=self.scored, listed=self.mentions.may_be_empty)

    def _other_accounting(self) -> dict[str, Query]:
        """Gold mentions of documents that are not listed are left out; without a list each has its document."""
        if self.judged is not None:
            names = {"gold": "accounting_of_judged_gold", "documents": "accounting_of_corpus"}
            return {name: Query(f"entity_recognition/{file}") for name, file in names.items()}
        return {} if self.documents is None else {"gold": Query("entity_recognition/accounting_of_gold")}

    def _after_results(self) -> Iterator[After]:
        if self.with_outcomes:
            by = [each.name for each in self.mentions.by]
            yield follow_up(by, self.lowest_score, scored=self.scored, above_lowest=self.above_lowest)

    def _checks(self) -> Iterator[Check]:
        yield from self.mentions.checks()
        if self.documents is not None:
            yield missing_check(self.documents, "doc_id")
            yield repeated_documents(self.documents, "" if self.judged is None else CORPUS)
            for name in dict.fromkeys(filter(None, (self.mentions.cluster, self.mentions.order))):
                yield missing_check(self.documents, name)

    def _warnings(self) -> Iterator[str]:
        yield from doubtful_groups(self.sources, self.mentions.by)
        if self.scored:
            yield from doubtful_scores(self.predicted)
        if self.scored and self.params.assignment == "file_order" and self.params.match in {"overlap", "text_near"}:
            yield Note(
                'assignment = "file_order" pairs all predictions at once: at high thresholds more could be matched'
            )


# The relation `mentions`: matched pairs, false positives and misses, one row each.


SHOWN = ("start", "end", "text", "type")
_TYPES: dict[str, pl.DataType] = {"start": pl.Int64(), "end": pl.Int64(), "text": pl.String(), "type": pl.String()}


def matcher(
    params: MentionParameters, passed_on: Sequence[str], *, shown: bool
) -> Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]:
    """The function of the frames `gold` and `predicted` that makes the relation, with the columns that are passed on.

    Its rows have these columns, `score` (0 without scores, NULL without a prediction), `is_gold`, `is_predicted` and,
    where a grouping has it, the type, which is the same in a matched pair; if `shown`, for people, `doc_id` and the
    spans, texts and types of both sides.
    """

    def match(frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        gold, predicted = frames["gold"], frames["predicted"]
        if params.assignment == "file_order":
            gold, predicted = (each.sort(FILE_ORDER) for each in (gold, predicted))
        elif shown:  # counts are the same for mentions that the rule cannot tell apart, but people see their texts
            gold, predicted = (in_order(each, ("text", "type")) for each in (gold, predicted))
        matched = matched_rows(gold, predicted, params)
        spurious = np.ones(predicted.height, dtype=np.bool_)
        spurious[matched[matched >= 0]] = False
        columns = [pl.col(name) for name in (*passed_on, *(["doc_id"] if shown else []))]
        columns += [pl.col(TYPE).alias(params.type_group)] if params.type_group else []
        # A row for every gold mention, with the prediction that it is matched with
        row = pl.Series(matched)
        score = _taken(_score(predicted), row)
        rows = gold.select(columns).with_columns(
            score.alias("score"), pl.lit(value=True).alias("is_gold"), (row >= 0).alias("is_predicted")
        )
        pairs = rows.with_columns(*_shown(gold, "gold", None), *_shown(predicted, "predicted", row)) if shown else rows
        unmatched = predicted.filter(pl.Series(spurious))
        absent = pl.Series(np.zeros(unmatched.height, dtype=np.int64) - 1)
        false_positives = unmatched.select(columns).with_columns(
            _score(unmatched), pl.lit(value=False).alias("is_gold"), pl.lit(value=True).alias("is_predicted")
        )
        if shown:
            shown_columns = (*_shown(gold, "gold", absent), *_shown(unmatched, "predicted", None))
            false_positives = false_positives.with_columns(*shown_columns)
        return pl.concat([pairs, false_positives.select(pairs.columns)])

    return match


def _score(predicted: pl.DataFrame) -> pl.Series:
    """The scores, 0 without."""
    if "score" in predicted.columns:
        return predicted["score"]
    return pl.Series("score", np.zeros(predicted.height))


def _shown(frame: pl.DataFrame, side: str, row: pl.Series | None) -> list[pl.Series]:
    """Span, text and type of rows of a frame, NULL where the row is -1 and where the frame lacks the column."""
    height = frame.height if row is None else len(row)
    columns = []
    for name in SHOWN:
        if name not in frame.columns:
            column = pl.Series(values=[None], dtype=_TYPES[name]).new_from_index(0, height)
        else:
            column = frame[name] if row is None else _taken(frame[name], row)
        columns.append(column.alias(f"{side}_{name}"))
    return columns


def _taken(column: pl.Series, row: pl.Series) -> pl.Series:
    """Values of some rows; NULL for row -1."""
    return column.gather(row.set(row < 0, None)) if len(column) else column.extend_constant(None, len(row))


# The table entity_recognition_outcomes: what became of every mention.


_OF_PREDICTION = (*(column.name for column in OUTCOMES.columns if column.name.startswith("predicted_")), "score")
_PLACES = ("gold_start", "predicted_start")


def follow_up(by: Sequence[str], lowest_score: float, *, scored: bool, above_lowest: bool = False) -> After:
    """Every mention at the lowest threshold, above the lowest score where that is not retrieved, with all groups."""

    def finish(mentions: pl.DataFrame, _: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        mentions = _above_lowest(mentions, by) if above_lowest else mentions
        names = [column.name for column in OUTCOMES.columns if column.name != "mention"]
        within = [*by, "doc_id"]
        order = [pl.col(within), pl.coalesce(_PLACES), *(pl.col(name) for name in names if name != "doc_id")]
        rows = mentions.sort(order, nulls_last=True)
        if not scored:
            rows = rows.with_columns(pl.lit(None, dtype=pl.Float64).alias("score"))
        number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(within).alias("mention")
        grouping = pl.lit(Grouping(tuple(by)).label).alias(GROUPING.name)
        return rows.select(grouping, *by, number, *names)

    params = {"lowest_score": lowest_score}
    return After(OUTCOMES.name, None, statement("entity_recognition/outcomes", by), params, {}, finish)


def _above_lowest(mentions: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """The rows when predictions with the lowest score of their group are not retrieved: their gold is missed."""
    score = pl.col("score")
    lost = (score == (score.min().over(by) if by else score.min())).fill_null(value=False)
    evaluated = mentions.with_columns(lost.alias("_lost")).filter(~pl.col("_lost") | (pl.col("outcome") == "tp"))
    without = [pl.when(~pl.col("_lost")).then(name).alias(name) for name in _OF_PREDICTION]
    outcome = pl.when("_lost").then(pl.lit("fn")).otherwise("outcome").alias("outcome")
    return evaluated.with_columns(outcome, *without).drop("_lost")
