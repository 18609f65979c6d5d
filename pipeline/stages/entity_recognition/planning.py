"""The plan of entity_recognition: mentions matched, and the outcome of each."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...base.columns import lowest_retrieved
from ...base.dialect import all_rows
from ...base.errors import ConfigError, DataError, Note
from ...base.records import dataclass
from ...base.schemas import GROUPING, Grouping
from ...base.sql_files import statement
from ...metrics.matching import POOLED_AVERAGES
from ...plan import rows
from ...plan.accounting import NOT_JUDGED
from ...plan.counts import Query, Sweep, Transform
from ...plan.nodes import After, Frame, Relation, doubtful_groups, doubtful_scores, missing_check
from ...plan.plan import OptionalTable, Plan
from ...plan.roles import pooled_systems
from ...sources.bindings import KeyMatch
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
        ConfigError: documents were judged, and those that they were drawn from are not listed.
    """
    optional = (sources.get(name) for name in ("documents", "judged"))
    return _Planner(params, sources["predicted"], sources["gold"], *optional).plan()


@dataclass(frozen=True)
class _Planner:
    params: EntityRecognitionParameters
    predicted: Source
    gold: Source
    documents: Source | None
    judged: Source | None

    def plan(self) -> Plan:
        params, mentions, judged = self.params, self.mentions, self.judged
        mentions.check()
        self._check()
        by = [grouped.name for grouped in mentions.by]
        match = matcher(params, mentions.passed_on, shown=self.outcomes.is_possible)
        frames = {"gold": mentions.rows_of_gold(), "predicted": mentions.rows_of_predicted()}
        key_matches = [KeyMatch(self.predicted, self.gold, "doc_id")]
        facts = {"independent": params.first_cluster or "doc_id", "scores": "yes" if self.scored else "no"}
        # without a list every mention has its document; of a list gold mentions elsewhere are left out, too
        other_accounting = {} if self.documents is None else {"gold": "accounting_of_gold"}
        if judged is not None:
            facts |= {"independent": "doc_id", "limits": "from draws that know the strata of the sample"}
            other_accounting = {"gold": "accounting_of_judged_gold", "documents": "accounting_of_corpus"}
        elif self.documents is not None:
            sides = (self.predicted, self.gold)
            key_matches += [KeyMatch(side, self.documents, "doc_id", "unlisted_document") for side in sides]
        return Plan(
            nodes=(
                *self._relations(),
                *self._checks(),
                *mentions.cross_checks(),
                *(check for side in (self.gold, self.predicted) for check in mentions.repeats(side, ACCEPTED)),
                pooled_systems(self.predicted, mentions.by),
                Transform("mentions", frames, (DOCUMENT,), match, self.predicted.rows + self.gold.rows),
                *self._counts(by),
                *rows.frame_in_time(mentions.order),
                *self._outcomes(by),
            ),
            sources=self.sources,
            by=mentions.by,
            used=("tp", "fp"),
            accounting=Query(f"entity_recognition/{'accounting' if judged is None else 'accounting_of_judged'}"),
            optional=(self.outcomes,),
            other_accounting={name: Query(f"entity_recognition/{file}") for name, file in other_accounting.items()},
            key_matches=tuple(key_matches),
            warnings=tuple(self._warnings()),
            facts=facts,
            remedies={} if judged is None else {NOT_JUDGED: "Write yes into the column judged of the sheet."},
        )

    def _check(self) -> None:
        """Refuse a sheet without the documents that it was drawn from, and thresholds without scores."""
        if self.judged is not None and self.documents is None:
            message = "judged goes with documents: misses in documents without any prediction would not be known"
            remedy = "Give documents = …, one row per document, also of those that were not drawn."
            raise ConfigError(message, remedy=remedy)
        if self.params.threshold_values is not None and not self.scored:
            message = "input predicted has no column 'score', which thresholds compare"
            raise DataError(message, remedy="Map it with columns = { score = … }, or leave thresholds out.")

    @cached_property
    def mentions(self) -> MentionRows:
        """How the inputs are read."""
        by = resolve_by(self.params, self.predicted, self.gold, self.documents)
        places = ("start", "end") if self.params.match == "text" else ()
        shown = ("doc_id", *SHOWN) if self.outcomes.is_possible else places
        return MentionRows(self.params, self.predicted, self.gold, self.documents, by, self.params.needs(), shown)

    @property
    def sources(self) -> tuple[Source, ...]:
        """The inputs that are given, the primary input first."""
        inputs = (self.predicted, self.gold, self.documents, self.judged)
        return tuple(source for source in inputs if source is not None)

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
    def lowest_score(self) -> float:
        """The lowest score that is retrieved at the lowest threshold; see `above_lowest`, too."""
        if self.params.threshold_values is None:
            return -math.inf
        return lowest_retrieved(self.params.threshold_values[0], self.params.boundary)

    @property
    def above_lowest(self) -> bool:
        """Whether the lowest score of a group is its lowest threshold, and is not retrieved by it."""
        return self.scored and self.params.threshold_values is None and self.params.boundary == ">"

    def _relations(self) -> Iterator[Node]:
        """Mentions and documents as they are read, of a sheet only those that are judged; and all that are listed."""
        mentions = self.mentions
        for relation in mentions.relations():
            if self.judged is None or relation.into != "documents_read":
                yield relation
            else:
                columns = [name for name in (mentions.cluster, mentions.order) if name is not None]
                yield from judged_relations(relation, self.judged, mentions.of_documents, columns)
        # every document, once for each system; it has no type
        name = "documents_of_systems" if self.params.type_group is None else "documents_of_systems_and_types"
        segment = {"s": mentions.systems, "d": mentions.of_documents}
        yield Relation("listed_documents", statement(f"entity_recognition/{name}", segment))

    def _checks(self) -> Iterator[Check]:
        yield from self.mentions.checks()
        if self.documents is not None:
            yield missing_check(self.documents, "doc_id")
            yield repeated_documents(self.documents, "" if self.judged is None else CORPUS)
            for name in dict.fromkeys(filter(None, (self.mentions.cluster, self.mentions.order))):
                yield missing_check(self.documents, name)

    def _counts(self, by: Sequence[str]) -> Iterator[Node]:
        """Counts of mentions by bin, sums over documents, and counts of documents."""
        grid, may_be_empty = self.params.grid(), self.mentions.may_be_empty
        if self.scored:
            sweep = Sweep("scored_mentions", all_rows("mentions"), "score", grid)
            yield Query("entity_recognition/predictions_by_score", columns=COUNT_NAMES, sweep=sweep)
        else:
            yield Query("entity_recognition/predictions", columns=COUNT_NAMES)
        yield Query("entity_recognition/gold", columns=COUNT_NAMES)
        if set(self.params.averages) - POOLED_AVERAGES:
            in_bins = grid if self.scored else None
            yield sums_of_documents(self.params, in_bins, scored=self.scored, listed=may_be_empty)
        if self.above_lowest:
            yield Frame("lowest", statement("entity_recognition/lowest_predictions", by))
        mentions, lowest = mentions_of_documents(by, listed=may_be_empty), {"lowest_score": self.lowest_score}
        yield Frame("documents", statement("entity_recognition/documents", by, relations=mentions, values=lowest))
        if self.judged is not None:
            yield frame_of_mentions(by)
        key = self.mentions.cluster
        name, columns = ("document_ids", {}) if key is None else ("clusters_of_documents", {"cluster_key": key})
        yield Frame("document_ids", statement(f"entity_recognition/{name}", columns=columns))

    def _outcomes(self, by: Sequence[str]) -> Iterator[After]:
        if self.outcomes.is_possible:
            yield follow_up(by, self.lowest_score, scored=self.scored, above_lowest=self.above_lowest)

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
