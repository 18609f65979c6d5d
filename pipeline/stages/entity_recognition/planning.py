"""What entity_recognition asks of an engine."""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ...errors import DataError, Note
from ...metrics.matching.document_averages import POOLED_AVERAGES
from ...plan import rows
from ...plan.checks import doubtful_groups, doubtful_scores, duplicate_check, missing_check
from ...plan.counts import Query, Reduction, Sweep, Transform
from ...plan.nodes import Frame, Relation
from ...plan.optional_tables import OptionalTable
from ...plan.plan import Plan
from ...plan.plausibility import pooled_systems
from ...queries.load import statement
from ...records import dataclass
from ...sources.bindings import KeyMatch
from ...tables.columns import lowest_retrieved
from ..mentions.rows import MentionRows, resolve_by
from ..mentions.rules import DOCUMENT
from .contract import COUNT_NAMES
from .documents import mentions_of_documents, sums_of_documents
from .matching import SHOWN, matcher
from .outcomes import TABLE as OUTCOMES
from .outcomes import follow_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ...plan.nodes import After, Check
    from ...sources.source import Source
    from .contract import EntityRecognitionParameters

MOST_ROWS_FOR_OUTCOMES = 1_000_000

ACCEPTED = ', or say duplicates = "keep" if they are meant'


def plan(params: EntityRecognitionParameters, sources: Mapping[str, Source]) -> Plan:
    """Bind the mentions, match them, and count matched and other predictions per bin and per document.

    Raises:
        DataError: an input lacks a column that the parameters need.
    """
    return _Planner(params, sources["predicted"], sources["gold"], sources.get("documents")).plan()


@dataclass(frozen=True)
class _Planner:
    params: EntityRecognitionParameters
    predicted: Source
    gold: Source
    documents: Source | None

    def plan(self) -> Plan:
        mentions = self.mentions
        mentions.check()
        if self.params.threshold_values is not None and not self.scored:
            message = "input predicted has no column 'score', which thresholds compare"
            raise DataError(message, remedy="Map it with columns = { score = … }, or leave thresholds out.")
        match = matcher(self.params, mentions.passed_on, shown=self.with_outcomes)
        frames = {"gold": mentions.rows_of_gold(), "predicted": mentions.rows_of_predicted()}
        listed = Relation("listed_documents", self._listed())
        return Plan(
            nodes=(
                *mentions.relations(),
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
            accounting=Query("entity_recognition/accounting"),
            optional=(self.outcomes,),
            other_accounting=self._other_accounting(),
            key_matches=tuple(self._key_matches()),
            warnings=tuple(self._warnings()),
            facts={"independent": self.params.first_cluster or "doc_id", "scores": "yes" if self.scored else "no"},
        )

    def _key_matches(self) -> Iterator[KeyMatch]:
        yield KeyMatch(self.predicted, self.gold, "doc_id")
        if self.documents is not None:
            yield KeyMatch(self.predicted, self.documents, "doc_id", "unlisted_document")
            yield KeyMatch(self.gold, self.documents, "doc_id", "unlisted_document")

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
        return tuple(each for each in (self.predicted, self.gold, self.documents) if each is not None)

    @property
    def scored(self) -> bool:
        """Whether predictions have scores."""
        return self.predicted.has("score")

    @property
    def outcomes(self) -> OptionalTable:
        """The table of single mentions."""
        sources = (self.gold, self.predicted)
        return OptionalTable(OUTCOMES, "outcomes", self.params.outcomes, MOST_ROWS_FOR_OUTCOMES, sources)

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
        sweep = Sweep("scored_mentions", exp.select("*").from_("mentions"), "score", self.params.grid())
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
        return {} if self.documents is None else {"gold": Query("entity_recognition/accounting_of_gold")}

    def _after_results(self) -> Iterator[After]:
        if self.with_outcomes:
            by = [each.name for each in self.mentions.by]
            yield follow_up(by, self.lowest_score, scored=self.scored, above_lowest=self.above_lowest)

    def _checks(self) -> Iterator[Check]:
        yield from self.mentions.checks()
        if self.documents is not None:
            yield missing_check(self.documents, "doc_id")
            yield duplicate_check(self.documents, ("doc_id",), remedy="Keep one row per document.")
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
