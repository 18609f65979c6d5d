"""Inputs, parameters and result tables of entity_recognition."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, field_validator

from ...base.columns import F1, PRECISION, RATIOS, RECALL
from ...base.schemas import Column, Table, of_chosen_row
from ...metrics.curves.operating_points import COLUMNS as CHOSEN_ELSEWHERE
from ...metrics.curves.operating_points import Criterion, cost_columns, criterion_column, each_once
from ...metrics.matching import Average
from ...metrics.uncertainty.limits import CLUSTER_COLUMNS, QUALITY_COLUMN
from ...sources.inputs import Field as InputField
from ...sources.inputs import Input, InputContract
from ..mentions import Match, MentionParameters
from ..parameters import Thresholds
from ..stage import CLUSTER

_MENTION = (
    InputField("doc_id", "key", "the document of the mention", required=True),
    InputField("start", "integer", "its first character, counted from 0"),
    InputField("end", "integer", "the character after its last"),
    InputField("text", "key", "its text"),
    InputField("type", "key", "its type, for example person"),
)
PREDICTED = InputContract(
    "predicted",
    (*_MENTION, InputField("score", "number", "confidence of the prediction; higher is more likely right")),
    "one row per predicted mention",
    required=True,
    evaluated=True,
)
GOLD = InputContract("gold", _MENTION, "one row per gold mention", required=True, evaluated=True, truth_of="predicted")
DOCUMENTS = InputContract(
    "documents",
    (InputField("doc_id", "key", "the document", required=True),),
    "one row per document that is judged; default: those with a gold or predicted mention",
    evaluated=True,
)

JUDGED = InputContract(
    "judged",
    (
        InputField("doc_id", "key", "a document that was drawn", required=True),
        InputField("judged", "any", "whether all its mentions were judged: true, yes, 1; else false, no, 0, or empty"),
        InputField("probability", "number", "share of the documents like it that were drawn, if not all alike"),
        InputField("stratum", "key", "where it was drawn from, as `thresher sample` calls it"),
    ),
    "the documents that were drawn to be judged, where these are not all of documents",
)

COUNTS = (
    Column("tp", "BIGINT", "true positives: matched predictions in the bin"),
    Column("fp", "BIGINT", "false positives: other predictions in the bin"),
    Column("n_gold", "BIGINT", "gold mentions; they have no bin"),
)
COUNT_NAMES = tuple(column.name for column in COUNTS)


SCORES = (
    Column("average", "VARCHAR", "`micro`, `macro`, `semeval` or `semeval_micro`"),
    Column(
        "threshold",
        "DOUBLE",
        (
            "score from which a prediction counts; NULL: no scores, or no prediction in the group, whose scores"
            " are the thresholds"
        ),
    ),
    Column("n_documents", "BIGINT", "documents, with or without mentions"),
    Column("tp", "BIGINT", "true positives: retrieved predictions that are matched"),
    Column("fp", "BIGINT", "false positives: other retrieved predictions"),
    Column("fn", "BIGINT", "false negatives: gold mentions without a retrieved match"),
    *PRECISION.columns("or the mean of the documents'"),
    *RECALL.columns("or the mean of the documents'", "no gold"),
    *F1.columns("or the mean of the documents', see the page", "neither retrieved nor gold"),
    Column("precision_dropped", "BIGINT", "documents that the mean of precision leaves out: undefined there"),
    Column("recall_dropped", "BIGINT", "documents that the mean of recall leaves out"),
    Column("f1_dropped", "BIGINT", "documents that the mean of f1 leaves out"),
    Column("undefined", "VARCHAR", "why a ratio is NULL; NULL: all ratios are defined"),
    Column("undefined_interval", "VARCHAR", "why an interval is NULL; NULL: all limits are given"),
    QUALITY_COLUMN,
    *CLUSTER_COLUMNS,
)
_NOT_CHOSEN = {"average", *(f"{name}_dropped" for name in RATIOS)}
CHOSEN = of_chosen_row(
    (column for column in SCORES if column.name not in _NOT_CHOSEN),
    reasons="`not_reached`, `not_promised`",
    always=("undefined", "undefined_interval", "interval_quality"),
)
WEIGHTS = tuple(
    Column(f"{name}_weight", "DOUBLE", f"{words}, estimated for all documents from those that were judged")
    for name, words in (("tp", "true positives"), ("fp", "false positives"), ("fn", "false negatives"))
)
DOCUMENT_COLUMNS = (
    Column("doc_id", "KEY", "the document"),
    Column("tp", "BIGINT", "matched predictions at the lowest threshold"),
    Column("fp", "BIGINT", "other predictions at the lowest threshold"),
    Column("fn", "BIGINT", "gold mentions without a match at the lowest threshold"),
)


def _mention(side: str, without: str) -> tuple[Column, ...]:
    rule = f"; NULL: {without}, or column not there"
    return (
        Column(f"{side}_start", "BIGINT", f"first character of the {side} mention{rule}"),
        Column(f"{side}_end", "BIGINT", f"character after the last of the {side} mention{rule}"),
        Column(f"{side}_text", "KEY", f"text of the {side} mention{rule}"),
        Column(f"{side}_type", "KEY", f"type of the {side} mention{rule}"),
    )


OUTCOMES = Table(
    "entity_recognition_outcomes",
    "one row per mention",
    (
        Column("doc_id", "KEY", "the document"),
        Column("mention", "BIGINT", "number of the row within the document, from 1, in the order of the text"),
        Column("outcome", "VARCHAR", "`tp`, `fp` or `fn` at the lowest threshold"),
        *_mention("gold", "no gold mention"),
        *_mention("predicted", "no prediction"),
        Column("score", "DOUBLE", "confidence of the prediction; NULL: no score, or no prediction"),
    ),
    ("doc_id", "mention"),
)
TABLES = (
    Table("entity_recognition_scores", "one row per average and threshold", SCORES, ("average", "threshold")),
    Table(
        "entity_recognition_operating_points",
        "one row per group with scores and criterion, of all mentions together",
        (
            criterion_column("`max_f1`, `min_precision=0.9`, `min_recall=0.8,confidence=0.95`"),
            *CHOSEN,
            *CHOSEN_ELSEWHERE,
        ),
        ("criterion",),
    ),
    Table("entity_recognition_documents", "one row per document", DOCUMENT_COLUMNS, ("doc_id",)),
    OUTCOMES,
)


class EntityRecognitionParameters(MentionParameters):
    """Parameters of entity_recognition.

    Attributes:
        predicted: Predicted mentions.
        gold: Gold mentions.
        documents: The documents that are judged.
        judged: Those of the documents that were drawn and judged, where the others were not; a sheet of
            `thresher sample`.
        match: Which mentions may be matched.
        align: What becomes of CoNLL sentences whose tokens in gold and predicted differ: `exact`: none may; `prefix`:
            the tokens with which a sentence begins alike are compared, and a warning says what is left out.
        averages: Which averages: `micro`: all mentions together; `macro`: mean of documents where defined; `semeval`:
            the macro scores of the scorer of SemEval-2019 Task 12; `semeval_micro`: its micro scores.
        operating_points: Thresholds to choose by the counts of all mentions: `{ beta = 1 }`, `{ min_precision = 0.9 }`,
            `{ min_recall = 0.8 }`, the last two perhaps with a `confidence` that they hold on new data.
        outcomes: Whether the table of single mentions is made; `auto`: up to one million rows of gold and predicted.
    """

    kind: Literal["entity_recognition"] = "entity_recognition"
    predicted: Input
    gold: Input
    documents: Input | None = None
    judged: Input | None = None
    match: Match = "span"
    align: Literal["exact", "prefix"] = "exact"
    thresholds: Thresholds = "distinct"
    averages: tuple[Average, ...] = ("micro", "macro")
    operating_points: Annotated[tuple[Criterion, ...], AfterValidator(each_once)] = (Criterion(beta=1),)
    outcomes: Literal["auto"] | bool = "auto"

    @field_validator("averages")
    @classmethod
    def _once(cls, value: tuple[Average, ...]) -> tuple[Average, ...]:
        if not value or len(set(value)) < len(value):
            message = "give each average once, and at least one"
            raise ValueError(message)
        return value


def further_columns(params: EntityRecognitionParameters) -> dict[str, tuple[Column, ...]]:
    """The columns that tables have because of costs and clusters."""
    cluster = Column(CLUSTER, "KEY", "the cluster of the document; NULL: never")
    weights = WEIGHTS if params.judged is not None else ()
    return {
        "entity_recognition_scores": weights,
        "entity_recognition_operating_points": (
            *of_chosen_row(weights, reasons="`not_reached`, `not_promised`"),
            *cost_columns(params.operating_points),
        ),
        "entity_recognition_documents": () if params.cluster in {None, "doc_id"} else (cluster,),
    }
