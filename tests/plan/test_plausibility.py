"""Runs that cannot be what was meant: inputs that are not used, keys that do not meet, scales that differ."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import run_before_after, run_stages, run_threshold_sweep, stage_config
from stage_examples import EXAMPLES

from pipeline.base.errors import DataError, NoInputError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

BY_KIND = {example.kind: example for example in EXAMPLES}
PAIRS = BY_KIND["before_after"].frames["pairs"]
EVENTS = BY_KIND["before_after"].frames["events"].select("event_id", "n_before", "n_after")
KEYS: dict[str, Any] = {"thresholds": [2, 5, 8]}


def run_kind(folder: Path, kind: str, changed: dict[str, pl.DataFrame]) -> Run:
    example = BY_KIND[kind]
    frames = example.frames | changed
    inputs = {name: {"columns": example.columns(name)} for name in frames}
    return run_stages(stage_config(folder, kind, frames, **(inputs | example.keys)))


def test_events_of_other_data_stop_the_run_with_an_example_of_both_keys(tmp_path: Path) -> None:
    events = EVENTS.with_columns(event_id="x" + pl.col("event_id"))
    with pytest.raises(DataError, match=r"left out: unlisted event .*pairs has .*event_id = e0, events has .*= xe0"):
        run_before_after(tmp_path, {"pairs": PAIRS, "events": events}, **KEYS)


def test_half_of_the_rows_left_out_is_the_first_warning(tmp_path: Path) -> None:
    events = EVENTS.filter(pl.col("event_id") < "e2")
    run = run_before_after(tmp_path, {"pairs": PAIRS, "events": events}, **KEYS)
    assert "left out: unlisted event" in run.warnings[0]
    fewer = run_before_after(tmp_path / "few", {"pairs": PAIRS, "events": EVENTS.tail(5)}, **KEYS)
    assert not [said for said in fewer.warnings if "left out" in said]


def test_a_run_without_a_used_row_can_be_asked_for(tmp_path: Path) -> None:
    events = EVENTS.with_columns(event_id="x" + pl.col("event_id"))
    run = run_before_after(tmp_path, {"pairs": PAIRS, "events": events}, allow_empty=True, **KEYS)
    assert "unlisted event" in run.warnings[0]


def test_no_event_with_a_complete_window_stops_the_run(tmp_path: Path) -> None:
    events = EVENTS.with_columns(complete_window=pl.lit(value=False))
    with pytest.raises(DataError, match="incomplete window"):
        run_before_after(tmp_path, {"pairs": PAIRS, "events": events}, **KEYS)


def test_a_predicate_that_matches_nothing_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(NoInputError, match="where keeps none of"):
        run_before_after(tmp_path, {"pairs": PAIRS}, pairs={"where": "score > 1e9"}, **KEYS)


def test_a_predicate_that_matches_nothing_is_no_input_beside_other_inputs_either(tmp_path: Path) -> None:
    late: dict[str, Any] = {"pairs": {"where": "score > 1e9"}} | KEYS
    with pytest.raises(NoInputError, match="input pairs: where keeps none of"):
        run_before_after(tmp_path, {"pairs": PAIRS, "events": EVENTS}, **late)
    run_before_after(tmp_path, {"pairs": PAIRS, "events": EVENTS}, allow_empty=True, **late)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("thresholds", "words"),
    [([50.0, 60.0], "no score reaches the lowest threshold, 50"), ([-2.0, -1.0], "every score reaches the highest")],
)
def test_thresholds_and_scores_on_other_scales_are_said_first(
    tmp_path: Path, thresholds: list[float], words: str
) -> None:
    frame = pl.DataFrame({"score": [0.1, 0.7, 0.9], "label": [True, False, True]})
    run = run_threshold_sweep(tmp_path, frame, thresholds=thresholds)
    assert words in run.warnings[0]
    assert "scores reach from 0.1 to 0.9" in run.warnings[0]
    right = run_threshold_sweep(tmp_path / "right", frame, thresholds=[0.5, 0.8])
    assert not [said for said in right.warnings if "scale" in said]


def test_percentages_beside_thresholds_of_shares_are_said_although_some_are_small(tmp_path: Path) -> None:
    percentages = [100 * (row + 0.5) / 1000 for row in range(1000)]
    frame = pl.DataFrame({"score": percentages, "label": [row % 3 == 0 for row in range(1000)]})
    run = run_threshold_sweep(tmp_path, frame, thresholds=[0.25, 0.5, 0.75])
    assert run.warnings[0].startswith("threshold_sweep: 99.3% of the scores reach the highest threshold, 0.75")
    at_the_limit = run_threshold_sweep(tmp_path / "limit", frame, thresholds=[0.25, 0.5, 1])
    assert "99.0% of the scores reach the highest threshold, 1" in at_the_limit.warnings[0]
    lower = run_threshold_sweep(tmp_path / "lower", frame, thresholds=[0.25, 0.5, 1.1])
    assert not [said for said in lower.warnings if "scale" in said]


def test_exactly_half_of_the_rows_left_out_is_said(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.1, 0.9, None, None], "label": [True, False, True, False]})
    run = run_threshold_sweep(tmp_path, frame, invalid_scores="drop", thresholds=[0.5])
    assert "input predictions: 2 of 4 rows left out" in run.warnings[0]
    fewer = run_threshold_sweep(tmp_path / "fewer", frame.head(3), invalid_scores="drop", thresholds=[0.5])
    assert not [said for said in fewer.warnings if "1 of 3 rows left out" in said]


@pytest.mark.parametrize(
    ("kind", "name", "key", "other"),
    [
        ("entity_recognition", "predicted", "doc_id", "documents"),
        ("change_points", "predictions", "series_id", "series"),
    ],
)
def test_predictions_of_other_units_stop_the_run(tmp_path: Path, kind: str, name: str, key: str, other: str) -> None:
    frame = BY_KIND[kind].frames[name].with_columns(("x" + pl.col(key)).alias(key))
    with pytest.raises(DataError, match=rf"{name} has for example {key} = x.*, {other} has {key} = "):
        run_kind(tmp_path, kind, {name: frame})


def test_white_space_at_the_edge_of_a_key_is_shown(tmp_path: Path) -> None:
    frame = BY_KIND["change_points"].frames["predictions"].with_columns(pl.col("series_id") + " ")
    with pytest.raises(DataError, match=r'predictions has for example series_id = "s\d ", series has series_id = s'):
        run_kind(tmp_path, "change_points", {"predictions": frame})


@pytest.mark.parametrize(
    ("kind", "name", "key", "other"),
    [("geocoding", "predicted", "mention_id", "gold"), ("ranking", "ranking", "query_id", "relevance")],
)
def test_keys_of_which_none_is_in_the_other_input_are_said_first(
    tmp_path: Path, kind: str, name: str, key: str, other: str
) -> None:
    frame = BY_KIND[kind].frames[name].with_columns(pl.col(key) + 1000)
    example = BY_KIND[kind]
    inputs = {each: {"columns": example.columns(each)} for each in example.frames}
    keys = inputs | example.keys | ({"missing_queries": "zero"} if kind == "ranking" else {})
    run = run_stages(stage_config(tmp_path, kind, example.frames | {name: frame}, **keys))
    assert f"no {key} of input {name} is in input {other}" in run.warnings[0]
