"""Documents for people to judge, drawn by strata of their numbers of predicted mentions, and how they are read."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, ClassVar, Literal

import sqlglot.expressions as exp

from ...base.dialect import column
from ...base.errors import ConfigError
from ...base.schemas import internal_name
from ...base.sql_files import statement
from ...metrics.few_labels.draws import worth_of_documents
from ...plan import rows
from ...plan.nodes import Relation
from ...plan.plan import Plan
from ...sources.inputs import Field as InputField
from ...sources.inputs import Input, InputContract
from ..sampling import SampleParameters, nodes_of
from ..stage import Stage
from .contract import DOCUMENTS, PREDICTED
from .documents import CORPUS, repeated_documents

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...plan.nodes import Node
    from ...sources.source import Source
    from ..sampling import Worth

LABELLED = InputContract(
    "labelled",
    (InputField("doc_id", "key", "a document that was drawn", required=True),),
    "the sheet of an earlier draw",
)


class DocumentsToSample(SampleParameters):
    """What is drawn of documents: predicted mentions, and all documents, also those without any mention."""

    source: ClassVar[str] = DOCUMENTS.name
    key: ClassVar[tuple[str, ...]] = ("doc_id",)
    score_name: ClassVar[str] = "n_predicted"
    answer: ClassVar[str] = "judged"
    nouns: ClassVar[str] = "documents"
    kind: Literal["sample"] = "sample"
    predicted: Input
    documents: Input | None = None

    @classmethod
    def worth_of(cls) -> Worth:
        """Documents with more mentions tell more."""
        return worth_of_documents


def plan(params: DocumentsToSample, sources: Mapping[str, Source]) -> Plan:
    """Read the documents with their numbers of predicted mentions, and the sheet of the earlier draw.

    Raises:
        ConfigError: the documents are not listed.
    """
    if "documents" not in sources:
        message = "documents are drawn from those that the input documents lists, and it is not there"
        raise ConfigError(message, remedy="Give documents = …, one row per document, also of those without a mention.")
    documents, predicted = sources["documents"], sources["predicted"]
    by = rows.resolve_by([tuple(dict.fromkeys([*params.groups, *params.shown]))], [documents])
    names = [each.name for each in by]
    corpus = replace(rows.read(documents, ["doc_id"], by, {}), into=CORPUS)
    to_sample = statement("entity_recognition/documents_to_sample", names)
    in_cells = statement(
        "threshold_sweep/rows_to_sample", [*names, "doc_id"], relations={"predictions_read": "documents_to_sample"}
    )
    groups = [internal_name(name) for name in params.groups]
    labelled = None
    if "labelled" in sources:
        key = exp.cast(column("doc_id", "canonical"), exp.DataType.Type.VARCHAR)
        labelled = rows.read(sources["labelled"], ["doc_id"], (), {"id": key, "label": exp.null()})
    nodes: tuple[Node, ...] = (
        corpus,
        rows.read(predicted, ["doc_id"], (), {}),
        Relation("documents_to_sample", to_sample),
        repeated_documents(documents),
        *nodes_of(in_cells, groups, labelled),
    )
    return Plan(nodes=nodes, sources=tuple(sources.values()), by=by)


SAMPLE = Stage(
    kind="sample",
    parameters=DocumentsToSample,
    inputs=(DOCUMENTS, PREDICTED, LABELLED),
    plan=plan,
)
