"""Documents that were drawn and judged: which they are, how they were drawn, and what they say of all documents."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ...errors import DataError, Note
from ...metrics.few_labels.documents import DocumentDesign, JudgedMentions, estimated_scores
from ...metrics.few_labels.draws import worth_of_documents
from ...metrics.uncertainty.limits import Interval, limit_columns
from ...metrics.uncertainty.proportions import Confusion
from ...plan import rows
from ...plan.nodes import Frame, Phase, Relation, Statement, duplicate_check
from ...queries.load import statement
from ...records import dataclass
from ...tables.columns import RATIOS, doubles, lowest_retrieved
from ...tables.schemas import GROUPING
from ...visible_text import rows_in_words
from ..mentions import DOCUMENT
from ..sheets import Sheet, drawn_of_these, labels_of, strata_of
from .contract import WEIGHTS
from .documents import mentions_of_documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...engines.engine import Engine
    from ...metrics.few_labels.documents import EstimatedScores
    from ...metrics.matching.spans import Average
    from ...metrics.uncertainty.interval_quality import Reason
    from ...plan.nodes import Check, Node, Progress
    from ...sources.source import Source
    from .contract import EntityRecognitionParameters

    Floats = NDArray[np.float64]


# The sheet beside the documents that it was drawn from.


CORPUS = "corpus_read"  # all documents that are listed
DESIGN, SIZES, MENTIONS = "judged_documents", "sizes_of_strata", "judged_mentions"
_TO_SAMPLE = "corpus_to_sample"
_MOST_REPLICATES = 1_000
_DESIGNED = ("probability", "stratum")


def repeated_documents(documents: Source, relation: str = CORPUS) -> Check:
    """Check that no document is listed twice; of a sheet among all documents, and not only the judged ones."""
    return duplicate_check(documents, ("doc_id",), remedy="Keep one row per document.", relation=relation)


def judged_relations(relation: Relation, judged: Source, by: Sequence[str], columns: Sequence[str]) -> Iterator[Node]:
    """The documents that are judged in the place of all that are listed.

    Args:
        relation: All documents, as they are read.
        judged: The sheet.
        by: The grouping columns of documents.
        columns: What else is read of documents.
    """
    yield replace(relation, into=CORPUS)
    wanted = ["doc_id", *(name for name in ("judged", *_DESIGNED) if judged.has(name))]
    derived: dict[str, exp.Expr] = {} if judged.has("judged") else {"judged": exp.true()}
    yield rows.read(judged, wanted, (), derived, located=judged.without_places is None)
    yield Relation("documents_to_sample", statement("entity_recognition/documents_to_sample", {"d": by}))
    relations = {"predictions_read": "documents_to_sample"}
    yield Relation(_TO_SAMPLE, statement("threshold_sweep/rows_to_sample", [*by, "doc_id"], relations=relations))
    yield JudgedDocuments(judged, tuple(by))
    segment = {CORPUS: list(dict.fromkeys([*columns, *by]))}
    yield Relation(relation.into, statement("entity_recognition/judged_documents", segment))


def frame_of_mentions(by: Sequence[str]) -> Frame:
    """All mentions of judged documents, with a row for each of these."""
    mentions = mentions_of_documents(by, listed=True)
    return Frame(MENTIONS, statement("entity_recognition/mentions_by_document", by, relations=mentions))


@dataclass(frozen=True)
class JudgedDocuments:
    """The relation of the documents that are judged, and how they were drawn.

    Attributes:
        judged: The sheet.
        by: The grouping columns of documents.
    """

    phase: ClassVar[Phase] = Phase.RELATIONS
    into: ClassVar[str] = DESIGN
    judged: Source
    by: tuple[str, ...]

    def run(self, engine: Engine, progress: Progress) -> None:
        """Define it.

        Raises:
            DataError: rows of the sheet and documents do not fit, or nothing says how documents were drawn.
        """
        sheet = self._checked(engine.fetch(self._sheet))
        judged = sheet.filter(pl.col("is_judged")).sort("doc_id")
        cells = engine.fetch(self._cells)
        strata = strata_of(cells, self.by, judged.height, worth_of_documents)
        keys = [*self.by, "cell"]
        judged = judged.join(strata.cells.select(*keys, "stratum"), on=keys, how="left", nulls_equal=True)
        named = [name for name in _DESIGNED if self.judged.has(name)]
        is_drawn_of_these = drawn_of_these(judged, cells, self.by, named, worth_of_documents)
        is_alike = judged.height in {0, int(cells["n_rows"].sum())} or is_drawn_of_these
        relative = pl.lit(1.0) if is_alike else self._how_drawn()
        judged = judged.with_columns(relative.cast(pl.Float64).alias("relative"))
        engine.hand_over(DESIGN, judged.select("doc_id").to_arrow())
        progress.tables[DESIGN] = judged.select("doc_id", "stratum", "relative")
        progress.tables[SIZES] = pl.DataFrame({"n_documents": strata.rows})
        progress.warnings += self._warnings(sheet, int(strata.rows.sum()), is_drawn_of_these=is_drawn_of_these)

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - its columns are its own
        """The queries, and the relation, which has none."""
        yield Statement(f"rows of the sheet, for relation {DESIGN}", self._sheet, function=JudgedDocuments)
        yield Statement(f"documents of cells, for relation {DESIGN}", self._cells, function=strata_of)
        yield Statement(f"relation {DESIGN}", None, DESIGN, function=JudgedDocuments)

    @property
    def _sheet(self) -> exp.Query:
        absent = {name: exp.null() for name in _DESIGNED if not self.judged.has(name)}
        if self.judged.without_places is not None:
            absent |= {name: exp.null() for name in ("source_file", "file_row_number")}
        return statement("entity_recognition/judged_beside_documents", {"p": self.by}, columns=absent)

    @property
    def _cells(self) -> exp.Query:
        return statement("threshold_sweep/cells_to_sample", self.by, relations={"rows_to_sample": _TO_SAMPLE})

    def _checked(self, sheet: pl.DataFrame) -> pl.DataFrame:
        """The rows of the sheet, with `is_judged`.

        Raises:
            DataError: a document repeats or is unknown, `judged` is no truth value, or a probability is none.
        """
        answers = labels_of(sheet["label_text"], "judged", "judged")
        sheet = sheet.with_columns(answers.fill_null(value=False).alias("is_judged"))
        self._beside.check(sheet)
        self._beside.refuse(
            sheet.filter(pl.col("met_id").is_null()),
            "{rows}, such as {row}, are of no document that the input documents lists",
            "Name the documents that the sheet was drawn from.",
        )
        return sheet

    def _how_drawn(self) -> pl.Expr:
        """How heavy a judged document is beside others of its stratum.

        Raises:
            DataError: nothing says it.
        """
        if self.judged.has("probability"):
            return 1 / pl.col("probability")
        has_strata = self.judged.has("stratum")
        lacking = "its strata are not those of a sheet of these documents" if has_strata else "it has no probability"
        message = f"input judged: nothing says how its documents were drawn: {lacking}"
        remedy = (
            "Map probability, the share of the documents like it that were drawn; one number for all if all were alike."
        )
        raise DataError(message, remedy=remedy)

    @property
    def _beside(self) -> Sheet:
        has_probability = self.judged.has("probability")
        return Sheet("judged", "documents", "column 'doc_id'", _row, has_probability, "that are not judged")

    def _warnings(self, sheet: pl.DataFrame, n_documents: int, *, is_drawn_of_these: bool) -> Iterator[str]:
        """Documents that nobody has judged, and a sheet that lacks rows."""
        is_judged = pl.col("is_judged")
        n_judged = sheet.filter(is_judged).height
        yield Note(
            f"{n_judged:,} of {n_documents:,} documents are judged: mentions of the others are left out, and numbers "
            "are estimates for all documents"
        )
        if without := sheet.height - n_judged:
            yield Note(
                f"input judged: {rows_in_words(without)} of {sheet.height:,} are not judged yet, and do not count"
            )
        yield from self._beside.skipped(sheet, ~is_judged)
        if not is_drawn_of_these:
            yield from self._beside.of_fewer(sheet, n_documents)


def _row(row: Mapping[str, object]) -> str:
    return f"doc_id {row['label_id']!r}"


# What the judged documents say of all documents.


@dataclass(frozen=True)
class JudgedScores:
    """Judged documents with their mentions.

    Attributes:
        params: The parameters.
        design: How the documents were drawn, in the order of their numbers.
        mentions: Their mentions by all grouping columns, and a row for each document.
    """

    params: EntityRecognitionParameters
    design: DocumentDesign
    mentions: pl.DataFrame

    @classmethod
    def of(cls, params: EntityRecognitionParameters, counts: Mapping[str, pl.DataFrame]) -> JudgedScores:
        """What the frames of the plan say."""
        ids = counts["document_ids"].to_series(0).alias("doc_id").to_frame()
        drawn = ids.join(counts[DESIGN], on="doc_id", how="left", maintain_order="left")
        sizes = counts[SIZES]["n_documents"].to_numpy().astype(np.float64)
        stratum = drawn["stratum"].to_numpy().astype(np.int64)
        return cls(params, DocumentDesign.of(sizes, stratum, drawn["relative"].to_numpy()), counts[MENTIONS])

    def scores(self, label: pl.DataFrame, thresholds: Floats) -> EstimatedScores:
        """The scores of one group at rising thresholds, one nan where everything is retrieved.

        Args:
            label: The keys of the group, in one row.
            thresholds: Its thresholds.
        """
        key = [name for name in label.columns if name != GROUPING.name and name in self._columns(label)]
        mentions = self.mentions
        if key:
            mentions = mentions.join(label.select(key), on=key, how="semi", nulls_equal=True)
        lowest = np.array([lowest_retrieved(each, self.params.boundary) for each in thresholds])
        score = mentions["score"].fill_null(0.0).to_numpy()
        number = np.ones(len(score)) if np.isnan(thresholds).any() else np.searchsorted(lowest, score, side="right")
        retrieving = np.where(mentions["is_predicted"].to_numpy(), number, 0).astype(np.int64)
        document = mentions[DOCUMENT].to_numpy() - 1
        in_group = np.zeros(len(self.design.weight), np.bool_)
        in_group[document] = True
        rows_of_group = JudgedMentions(document, retrieving, mentions["is_gold"].to_numpy(), in_group)
        return estimated_scores(
            self.design,
            rows_of_group,
            len(thresholds),
            self.params.averages if "micro" in self.params.averages else (*self.params.averages, "micro"),
            np.arange(len(in_group)) % _MOST_REPLICATES,
            confidence=self.params.confidence,
            seed=self.params.seed,
        )

    def _columns(self, label: pl.DataFrame) -> tuple[str, ...]:
        """The grouping columns of a group."""
        return next(each.columns for each in self.params.groupings if each.label == label[GROUPING.name][0])


def with_estimates(rows: pl.DataFrame, average: Average, scores: EstimatedScores, *, wanted: bool) -> pl.DataFrame:
    """Rows of an average by rising threshold, with what is estimated for all documents in the place of ratios.

    Args:
        rows: The rows.
        average: Which.
        scores: The scores of the group.
        wanted: Whether limits are.
    """
    columns = [doubles(name, scores.values[average, name][0]) for name in RATIOS]
    sides = (scores.tp, scores.fp, scores.fn)
    columns += [doubles(column.name, side.sum(axis=0)) for column, side in zip(WEIGHTS, sides, strict=True)]
    limits = {}
    for name in RATIOS:
        _, lower, upper = scores.values[average, name]
        reason: Reason = "harmonic_mean" if (average, name) == ("semeval", "f1") else "undefined_ratio"
        limits[name] = Interval.of((lower, upper), reason) if wanted else Interval.none(len(lower), "none")
    return rows.with_columns(*columns).with_columns(limit_columns(limits))


def weighted_confusion(scores: EstimatedScores) -> Confusion:
    """The weights of outcomes by replicate."""
    return Confusion(scores.tp, scores.fp, scores.fn, np.zeros_like(scores.tp))
