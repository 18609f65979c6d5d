"""Inputs at fault, and keys that do not fit: every message names the input, the column and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import run_stages, stage_config

from pipeline.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pathlib import Path

KIND = "entity_recognition"
GOLD = pl.DataFrame({"doc_id": ["a"], "start": [0], "end": [3], "text": ["Ohm"], "type": ["t"], "genre": ["news"]})
PREDICTED = GOLD.with_columns(system=pl.lit("x")).drop("genre")


def run_on(folder: Path, *given: pl.DataFrame, **keys: Any) -> None:  # noqa: ANN401
    frames = dict(zip(("gold", "predicted", "documents"), given, strict=False))
    run_stages(stage_config(folder, KIND, frames, **keys))


def null(frame: pl.DataFrame, name: str) -> pl.DataFrame:
    return frame.with_columns(pl.lit(None, dtype=frame.schema[name]).alias(name))


@pytest.mark.first_cases(12)
@pytest.mark.parametrize(
    ("gold", "predicted", "keys", "words"),
    [
        (GOLD.drop("start"), PREDICTED, {}, "input gold: .* has no column 'start'"),
        (GOLD, PREDICTED.drop("end"), {}, "input predicted: .* has no column 'end'"),
        (GOLD, PREDICTED.drop("text"), {"match": "text"}, "input predicted: .* has no column 'text'"),
        (GOLD.drop("type"), PREDICTED, {"match_type": True}, "input gold: .* has no column 'type'"),
        (null(GOLD, "start"), PREDICTED, {}, "input gold: column 'start' is NULL or not finite in 1 row"),
        (
            GOLD,
            null(PREDICTED, "start"),
            {},
            r"predicted: column 'start' is NULL .* in 1 row \(1 in .*first at row 1\)",
        ),
        (null(GOLD, "text"), PREDICTED, {"match": "text"}, "input gold: column 'text' is NULL"),
        (GOLD, null(PREDICTED, "doc_id"), {}, "input predicted: column 'doc_id' is NULL"),
        (GOLD.with_columns(start=4), PREDICTED, {}, "input gold: 'end' is before 'start', .* in 1 row"),
        (GOLD, PREDICTED.with_columns(start=-(2**40)), {}, "one is beyond ±1,000,000,000, in 1"),
        (GOLD, PREDICTED.with_columns(end=2**40), {}, "input predicted: 'end' is before 'start', or one is"),
        (GOLD, PREDICTED.with_columns(text=1), {"match": "text"}, "column text is .*: the two cannot be compared"),
        (GOLD, PREDICTED.with_columns(doc_id=1), {}, "column doc_id is .*: the two cannot be compared"),
        (GOLD, PREDICTED, {"thresholds": [0.5]}, "no column 'score', which thresholds compare"),
        (GOLD, PREDICTED, {"by": ["type"]}, "groups of types need match_type = true"),
        (GOLD, PREDICTED, {"by": ["predicted.type"], "match_type": True}, "Write type"),
        (GOLD, PREDICTED, {"by": ["genre"]}, "'genre' is a column of gold only"),
        (GOLD, PREDICTED.with_columns(genre=pl.lit("x")), {"by": ["genre"]}, "'genre' is a column of gold and of"),
        (GOLD, PREDICTED, {"by": ["sistem"]}, "Did you mean 'system'"),
        (GOLD, PREDICTED, {"cluster": "genre"}, "cluster: 'genre' is no column of the input documents"),
    ],
)
def test_inputs_at_fault_are_refused(
    tmp_path: Path, gold: pl.DataFrame, predicted: pl.DataFrame, keys: dict[str, Any], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        run_on(tmp_path, gold, predicted, **keys)


@pytest.mark.parametrize(
    ("documents", "keys", "words"),
    [
        ({"doc_id": ["a", "a"]}, {}, "input documents: doc_id repeats: doc_id = a"),
        ({"doc_id": [None, "a"]}, {}, "input documents: column 'doc_id' is NULL"),
        ({"doc_id": ["a"], "source": [None]}, {"cluster": "source"}, "input documents: column 'source' is NULL"),
        ({"doc_id": ["a"], "system": ["y"]}, {"by": ["system"]}, "is a column of predicted and of documents"),
    ],
)
def test_documents_at_fault_are_refused(
    tmp_path: Path, documents: dict[str, Any], keys: dict[str, Any], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        run_on(tmp_path, GOLD, PREDICTED, pl.DataFrame(documents), **keys)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"averages": []}, "at least one"),
        ({"averages": ["micro", "micro"]}, "each average once"),
        ({"match": "fuzzy"}, "match"),
        ({"minimum_overlap": 1.5}, "minimum_overlap"),
        ({"max_centre_distance": 0}, "max_centre_distance"),
        ({"duplicates": "max"}, "has no meaning here"),
        ({"by": ["score"]}, "score"),
        ({"gold": {"columns": {"strat": "start"}}}, "Did you mean 'start'"),
    ],
)
def test_keys_that_do_not_fit_are_refused(tmp_path: Path, keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        run_on(tmp_path, GOLD, PREDICTED, **keys)
