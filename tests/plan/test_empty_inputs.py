"""Inputs that have no rows: nothing to evaluate is an error, an empty input beside one with rows is a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import run_before_after, run_stages, stage_config

from pipeline.base.errors import DataError, NoInputError
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from pathlib import Path

SPANS = pl.DataFrame({"doc_id": [1, 1, 2], "start": [0, 10, 0], "end": [4, 14, 4]})
PLACES = pl.DataFrame({"mention_id": [1, 2], "latitude": [52.0, 48.0], "longitude": [5.0, 2.0]})
POINTS = pl.DataFrame({"series_id": [1, 1, 2], "position": [10, 50, 20]})
DOCUMENTS = pl.DataFrame({"query_id": [1, 1, 2], "doc_id": ["a", "b", "a"]})
SYSTEM = pl.lit("x").alias("system")
INPUTS: dict[str, dict[str, pl.DataFrame]] = {
    "before_after": {
        "pairs": pl.DataFrame({"event_id": [1, 1, 2], "score": [0.9, 0.2, 0.8], "lag_hours": [1.0, -1.0, 2.0]}),
        "events": pl.DataFrame({"event_id": [1, 2], "n_before": [9, 9], "n_after": [9, 9], "system": ["x", "x"]}),
    },
    "threshold_sweep": {
        "predictions": pl.DataFrame({"score": [0.9, 0.4, 0.1], "label": [True, False, True]}).with_columns(SYSTEM)
    },
    "entity_recognition": {
        "predicted": SPANS.with_columns(pl.lit(0.5).alias("score"), SYSTEM),
        "gold": SPANS,
        "documents": SPANS.select("doc_id").unique().sort("doc_id"),
    },
    "geocoding": {"predicted": PLACES.with_columns(SYSTEM), "gold": PLACES},
    "change_points": {
        "predictions": POINTS.with_columns(pl.lit(0.5).alias("score"), SYSTEM),
        "annotations": POINTS,
        "series": POINTS.select("series_id").unique().sort("series_id"),
    },
    "ranking": {
        "ranking": DOCUMENTS.with_columns(pl.Series("score", [0.9, 0.8, 0.7]), SYSTEM),
        "relevance": DOCUMENTS.with_columns(pl.Series("relevance", [1, 0, 1])),
    },
    "compare": {
        "units": pl.DataFrame({"unit": [1, 1, 2, 2], "system": ["x", "y"] * 2, "quality": [0.5, 0.6, 0.7, 0.2]})
    },
}
KEYS: dict[str, dict[str, Any]] = {
    "before_after": {"thresholds": [0.5]},
    "change_points": {"margin": 5},
    "ranking": {"missing_queries": "zero"},
    "compare": {"metrics": ["quality"], "resamples": 99, "system": "system"},
}
LISTS = {("before_after", "events"), ("entity_recognition", "documents"), ("change_points", "series")}
GROUPINGS: dict[str, Any] = {"total": [[]], "groups": [["system"]]}


def config(folder: Path, kind: str, empty: tuple[str, ...], by: Any, **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    frames = {name: frame.clear() if name in empty else frame for name, frame in INPUTS[kind].items()}
    groups = {} if kind == "compare" else {"by": by}
    return stage_config(folder, kind, frames, **KEYS.get(kind, {}), **groups, **keys)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("grouping", GROUPINGS)
@pytest.mark.parametrize("kind", INPUTS)
def test_no_row_in_any_input_is_nothing_to_evaluate(tmp_path: Path, kind: str, grouping: str) -> None:
    by, every = GROUPINGS[grouping], tuple(INPUTS[kind])
    with pytest.raises(NoInputError, match=f"nothing is left to evaluate.* input {every[0]} has no rows"):
        run_stages(config(tmp_path / "refused", kind, every, by))
    run = run_stages(config(tmp_path / "allowed", kind, every, by, allow_empty=True))
    assert all(any(f"input {name} has no rows" in text for text in run.warnings) for name in every)
    assert not any("single cluster" in text for text in run.warnings)
    omitted = run.stages[0].omitted  # no column says what a unit of threshold_sweep is
    for table in next(entry for entry in STAGES if entry.kind == kind).load().tables:
        assert (run.path / table.name / f"{kind}.parquet").is_file() == (table.name not in omitted)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, frames in INPUTS.items() if len(frames) > 1 for name in frames]
)
def test_an_empty_input_beside_one_with_rows_is_a_result_with_a_warning(tmp_path: Path, kind: str, name: str) -> None:
    both = [names for by in GROUPINGS.values() for names in by]
    if (kind, name) in LISTS:
        with pytest.raises(DataError, match=f"left out: un.* {name} has none"):
            run_stages(config(tmp_path / "refused", kind, (name,), both))
        run = run_stages(config(tmp_path, kind, (name,), both, allow_empty=True))
        assert any(f"{name} has none" in text for text in run.warnings)
        return
    run = run_stages(config(tmp_path, kind, (name,), both))
    assert any(f"input {name} has no rows" in text for text in run.warnings)


def test_every_stage_and_each_of_its_required_inputs_is_tried() -> None:
    for entry in STAGES:
        assert {each.name for each in entry.load().inputs if each.required} <= set(INPUTS[entry.kind])


def test_where_that_keeps_no_row_is_nothing_to_evaluate(tmp_path: Path) -> None:
    frames = {"pairs": INPUTS["before_after"]["pairs"]}
    keys: dict[str, Any] = {"thresholds": [0.5], "pairs": {"where": "score > 5"}}
    with pytest.raises(NoInputError, match=r"input pairs: where keeps none of 3 rows\nCheck path and where"):
        run_before_after(tmp_path, frames, **keys)
    assert any("keeps none" in text for text in run_before_after(tmp_path, frames, allow_empty=True, **keys).warnings)
