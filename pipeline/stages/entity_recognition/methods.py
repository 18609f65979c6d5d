"""What a methods section says of entity_recognition."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...tables.ratios import F1, PRECISION, RECALL, scales
from .. import methods
from ..mentions.rules import rule_in_words
from ..standard_figures import on_other_data
from ..units import Counted, SampleSizes, nouns_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..methods import Measured


NOUNS = {"predicted": "predicted mentions", "gold": "gold mentions"}
AVERAGES = {
    "micro": "of the summed counts",
    "macro": "as means of the documents' ratios where these are defined",
    "semeval": "as in SemEval-2019 Task 12 (Weissenbacher et al. 2019)",
    "semeval_micro": "as the micro scores of SemEval-2019 Task 12 (Weissenbacher et al. 2019)",
}


def sentences(measured: Measured) -> Iterator[str]:
    """Say how recognised mentions were matched with gold mentions, and what came out."""
    scores, parameters = measured.tables["entity_recognition_scores"], measured.parameters
    yield (
        f"{measured.used('predicted'):,} predicted mentions were compared with {measured.used('gold'):,} gold mentions "
        f"in {measured.most(scores['n_documents'])} documents, by matching {rule_in_words(parameters)}."
    )
    yield methods.left_out(measured, NOUNS)
    if measured.facts["scores"] == "yes":
        yield methods.scored_predictions(measured)
        yield methods.invalid_scores(measured, "Predictions")
        yield methods.criteria(measured)
    yield f"Precision, recall and F1 are given {methods.listed(AVERAGES[name] for name in parameters['averages'])}."
    units = methods.units_in_words(measured, {"doc_id": "documents"})
    yield methods.intervals(
        measured,
        units,
        f"are those of proportions whose counts are divided by the design effect, by the jackknife over {units}",
    )
    yield from _results(measured, scores)


def _results(measured: Measured, scores: pl.DataFrame) -> Iterator[str]:
    """Give the chosen point of all mentions, or without scores the first average."""
    points = measured.tables["entity_recognition_operating_points"]
    rows = on_other_data(methods.of_first_criterion(points))
    if rows.is_empty():
        rows = scores.filter(pl.col("average") == measured.parameters["averages"][0], pl.col("threshold").is_null())
    yield from methods.results(rows, methods.RATIO_NAMES, measured.confidence, methods.CHOSEN)


# What the numbers of entity_recognition rest on: documents, with their mentions.


_GOLD, _PREDICTED = "gold mentions", "predicted mentions"
_COUNTS = (
    Counted(_GOLD, ("tp", "fn")),
    Counted(_PREDICTED, ("tp", "fp")),
    Counted("gold or predicted mentions", ("tp", "fp", "fn"), is_listed=False),
)
SAMPLE_SIZES = SampleSizes(
    nouns={"doc_id": "documents"},
    units={"doc_id": "n_documents"},
    counts=_COUNTS,
    rests_on=nouns_of((PRECISION, RECALL, F1), _COUNTS),
    scales=scales((PRECISION, RECALL, F1)),
    clusters="entity_recognition_scores",
)
