"""Predictions to label, and how they are read."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal

from ...plan import rows
from ...plan.plan import Plan
from ...queries.load import statement
from ...sources.inputs import Field as InputField
from ...sources.inputs import Input, InputContract
from ...tables.schemas import internal_name
from ..sampling import SampleParameters, labelled_contract, nodes_of, nothing_follows
from ..stage import Stage
from .stage import STAGE as THRESHOLD_SWEEP

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...sources.source import Source

PREDICTIONS = InputContract(
    "predictions",
    (
        InputField("score", "number", "score of the prediction; higher is more likely true", required=True),
        InputField("id", "key", "the item that is predicted, by which its label is found again", required=True),
    ),
    "one row per prediction, with its score; labels are not needed",
    required=True,
)


class PredictionsToSample(SampleParameters):
    """What is drawn of predictions.

    Attributes:
        predictions: The scored rows.
    """

    source: ClassVar[str] = PREDICTIONS.name
    kind: Literal["sample"] = "sample"
    predictions: Input


def plan(params: PredictionsToSample, sources: Mapping[str, Source]) -> Plan:
    """Read the predictions with the cells of their scores, and the sheet of the earlier draw."""
    predictions = sources["predictions"]
    by = rows.resolve_by([tuple(dict.fromkeys([*params.groups, *params.shown]))], [predictions])
    to_sample = statement("threshold_sweep/rows_to_sample", [each.name for each in by])
    groups = [internal_name(name) for name in params.groups]
    labelled = rows.read(sources["labelled"], ["id", "label"], (), {}) if "labelled" in sources else None
    nodes = (rows.read(predictions, ["id", "score"], by, {}), *nodes_of(to_sample, groups, labelled))
    return Plan(nodes=nodes, sources=tuple(sources.values()), by=by)


SAMPLE = Stage(
    kind="sample",
    parameters=PredictionsToSample,
    inputs=(PREDICTIONS, labelled_contract(InputField("id", "key", "the item that was drawn", required=True))),
    tables=(),
    count_columns=(),
    plan=plan,
    derive=nothing_follows,
    warnings=lambda _tables: (),
    summarize=THRESHOLD_SWEEP.summarize,
)
