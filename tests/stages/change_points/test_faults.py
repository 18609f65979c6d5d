"""Faults of the data and of the keys of change_points, each named; and rows that repeat."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import POINTS, points_tables, read_table, rows_by_status, run_change_points, run_stages, stage_config

from pipeline.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pathlib import Path

ONE = {"predictions": {"series_id": ["a"], "position": [10]}, "annotations": {"series_id": ["a"], "position": [12]}}


def frames(**columns: dict[str, list[Any]]) -> dict[str, pl.DataFrame]:
    return {name: pl.DataFrame(values) for name, values in (ONE | columns).items()}


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"annotations": {"series_id": ["a"], "position": [12.0]}}, "the two cannot be compared exactly"),
        ({"predictions": {"series_id": [1], "position": [12]}}, "the two cannot be compared"),
        ({"annotations": {"series_id": ["a"], "position": ["12"]}}, "not a number, date or timestamp"),
        ({"annotations": {"series_id": ["a", "a"], "position": [1, None]}}, "'position' is NULL"),
        ({"predictions": {"series_id": ["a", "a"], "position": [1, None]}}, "'position' is NULL"),
        ({"predictions": {"series_id": ["a", None], "position": [1, 2]}}, "'series_id' is NULL"),
        ({"predictions": {"series_id": ["a", "a"], "position": [1, 1]}}, "repeat"),
        ({"predictions": {"series_id": ["a"], "position": [1], "score": [None]}}, "NULL"),
        ({"series": {"series_id": ["a", "a"], "n_obs": [9, 9]}}, "repeat"),
        ({"series": {"series_id": ["a"], "n_obs": [-1]}}, "negative"),
        ({"runs": {"series_id": [None]}}, "column series_id is|'series_id' is NULL"),
        (
            {
                "predictions": {"series_id": ["a"], "position": [2**62]},
                "annotations": {"series_id": ["a"], "position": [-(2**62) - 9]},
            },
            "further apart",
        ),
    ],
)
def test_faults_of_the_data_are_named(tmp_path: Path, columns: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        run_change_points(tmp_path, frames(**columns), margin=5)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"margin": "2h"}, "positions are integers"),
        ({"margin": 5, "annotators": "separate"}, "needs annotator_id"),
        ({"margin": 5, "thresholds": [1, 2]}, "no column 'score'"),
        ({"margin": 5, "cluster": "site"}, "must be a column of the input series"),
        ({"margin": 5, "by": ["method"]}, "no input has a column 'method'"),
    ],
)
def test_keys_that_do_not_fit_the_data_are_named(tmp_path: Path, keys: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        run_change_points(tmp_path, frames(), **keys)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "`margin` is missing"),
        ({"margin": 0}, "not even an exact hit"),
        ({"margin": {"before": 0, "after": 5}}, "not even an exact hit"),
        ({"margin": "0h"}, "not even an exact hit"),
        ({"margin": -1}, "from 0 on"),
        ({"margin": True}, "margin"),
        ({"margin": float("inf")}, "from 0 on"),
        ({"margin": "2 hours"}, "no duration"),
        ({"margin": {"before": 1, "after": "2h"}}, "both durations"),
        ({"margin": {"before": 1}}, "after` is missing"),
        ({"margin": 5, "annotators": "tcpd", "duplicates": "keep"}, "sets of positions"),
        ({"margin": 5, "by": ["annotator_id"]}, "goes with annotators"),
        ({"margin": 5, "matching": "nearby"}, "matching"),
    ],
)
def test_keys_at_fault_are_named(tmp_path: Path, keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        run_stages(stage_config(tmp_path, POINTS, frames(), **keys))


def test_runs_must_have_the_grouping_columns_of_predictions(tmp_path: Path) -> None:
    data = frames(predictions={"series_id": ["a"], "position": [10], "method": ["x"]}, runs={"series_id": ["a"]})
    with pytest.raises(DataError, match="it has no column 'method'"):
        run_change_points(tmp_path / "lacking", data, by=["method"], margin=5)
    data |= {"runs": pl.DataFrame({"series_id": ["a"], "method": [3]})}
    with pytest.raises(DataError, match="BIGINT but VARCHAR"):
        run_change_points(tmp_path / "other", data, by=["method"], margin=5)


def test_signed_and_unsigned_integers_are_one_series(tmp_path: Path) -> None:
    data = {
        "predictions": pl.DataFrame({"series_id": [1], "position": pl.Series([10], dtype=pl.UInt64)}),
        "annotations": pl.DataFrame({"series_id": pl.Series([1], dtype=pl.UInt64), "position": [12]}),
    }
    assert points_tables(tmp_path, data, margin=5)["series"].select("series_id", "tp").rows() == [(1, 1)]


def test_a_margin_of_0_matches_exact_hits(tmp_path: Path) -> None:
    data = frames(predictions={"series_id": ["a"] * 2, "position": [12, 13]})
    found = points_tables(tmp_path, data, margin=0, margin_boundary="<=")["series"]
    assert found["tp"].to_list() == [1]


def test_times_need_one_clock(tmp_path: Path) -> None:
    moment = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    data = frames(
        predictions={"series_id": ["a"], "position": [moment]},
        annotations={"series_id": ["a"], "position": [moment.replace(tzinfo=None)]},
    )
    with pytest.raises(DataError, match=r"no time zone in annotations\.position"):
        run_change_points(tmp_path, data, margin="1h")
    declared = {"annotations": {"timezone": "Europe/Amsterdam"}}
    row = points_tables(tmp_path / "declared", data, margin="2h", **declared)["series"].row(0, named=True)
    assert (row["tp"], row["mean_delay"]) == (1, 1.0)
    with pytest.raises(DataError, match="positions are times"):
        run_change_points(tmp_path / "number", data, margin=5, **declared)


def test_repeated_predictions(tmp_path: Path) -> None:
    rows: dict[str, list[Any]] = {"series_id": ["a"] * 3, "position": [10, 10, 11], "score": [0.1, 0.7, 0.5]}
    data = frames(predictions=rows, annotations={"series_id": ["a"] * 2, "position": [10, 11]})
    for duplicates, predicted in (("max", 2), ("keep", 3)):
        run = run_change_points(tmp_path / duplicates, data, margin=5, duplicates=duplicates)
        curve = read_table(run, f"{POINTS}_curve", POINTS).sort("threshold")
        assert (curve["n_predicted"][0], curve["tp"][0]) == (predicted, 2)
        used = {"used": 2, "duplicate": 1} if duplicates == "max" else {"used": 3}
        assert rows_by_status(run, "predictions", POINTS) == used


def test_repeated_predictions_are_ranked_by_score_and_then_by_true_position(tmp_path: Path) -> None:
    data = frames(
        predictions={"series_id": ["a"] * 5, "position": [11, 11, 11, 30, 30], "score": [0.5, 0.9, 0.7, 0.4, 0.4]},
        annotations={"series_id": ["a"] * 5, "position": [10, 11, 13, 29, 32]},
    )
    delays = points_tables(tmp_path, data, margin=5, duplicates="keep")["delays"].sort("position", "rank")
    ranked = [(11, 1, 0.9), (11, 2, 0.7), (11, 3, 0.5), (30, 1, 0.4), (30, 2, 0.4)]
    assert delays.select("position", "rank", "score").rows() == ranked
    assert delays.filter(pl.col("position") == 30)["true_position"].to_list() == [29, 32]


def test_repeated_marks_count_once(tmp_path: Path) -> None:
    marks: dict[str, list[Any]] = {"series_id": ["a"] * 3, "position": [12] * 3, "annotator_id": ["1", "1", "2"]}
    run = run_change_points(tmp_path, frames(annotations=marks), margin=5)
    assert read_table(run, f"{POINTS}_curve", POINTS)["n_true"].to_list() == [1]
    assert any("1 row of annotations marks a point that is marked already" in text for text in run.notes)


@pytest.mark.parametrize("by", [[[]], ["method"]], ids=["one run for each series", "several"])
@pytest.mark.parametrize("repeated", [0, 3])
def test_repeated_marks_are_counted(tmp_path: Path, by: list[Any], repeated: int) -> None:
    marks: dict[str, list[Any]] = {"series_id": ["a", "b", "b"], "position": [12, 12, 30]}
    marks = {name: values + values[:1] * repeated for name, values in marks.items()}
    found: dict[str, list[Any]] = {"series_id": ["a", "c"], "position": [10, 10], "method": ["x", "y"]}
    run = run_change_points(tmp_path, frames(predictions=found, annotations=marks), margin=5, by=by)
    words = [text for text in run.notes if "marked already" in text]
    assert [text.split(" rows")[0] for text in words] == ([f"{POINTS}: {repeated}"] if repeated else [])
    assert any("1 series have no mark" in text for text in run.warnings)


POSITIONS: dict[str, Any] = {
    "predictions": {"series_id": ["a", "b"], "position": [30, 10]},
    "series": {"series_id": ["a", "b"]},
}
OF_POINTS = {"annotations": {"series_id": ["a", "b"], "position": [31, 12]}}
OF_INCIDENTS: dict[str, Any] = {"annotations": {"series_id": ["a", "b"], "start": [30, 10], "end": [35, 12]}}


@pytest.mark.wide
@pytest.mark.parametrize(
    ("true", "keys", "outside"),
    [
        (OF_POINTS, {}, -1),
        (OF_INCIDENTS, {"per": 10}, 100),
        (OF_INCIDENTS, {"matching": "one_to_one", "repeats": "ignore"}, 1_700_000_050),
        (OF_INCIDENTS, {}, -1),
        (OF_POINTS, {"per": 10}, 100),
    ],
)
def test_a_position_outside_its_series_is_a_fault(
    tmp_path: Path, true: dict[str, Any], keys: dict[str, Any], outside: int
) -> None:
    inside = {name: pl.DataFrame(values) for name, values in (POSITIONS | true).items()}
    inside["series"] = inside["series"].with_columns(n_obs=pl.lit(100))
    run_change_points(tmp_path / "inside", inside, margin=5, **keys)
    columns = [("predictions", "position"), *(("annotations", name) for name in true["annotations"])]
    for number, (name, column) in enumerate(columns):
        if column == "series_id":
            continue
        shift = {each: outside for each in inside[name].columns if each in {column, "end"} and name == "annotations"}
        shift |= {column: outside} | ({"start": outside} if outside < 0 and column == "end" else {})
        first = pl.int_range(pl.len()) == 0
        wrong = inside[name].with_columns(
            pl.when(first).then(pl.lit(value, dtype=pl.Int64)).otherwise(each).alias(each)
            for each, value in shift.items()
        )
        with pytest.raises(DataError, match=f"is {outside} in series a, which has 100 observations") as caught:
            run_change_points(tmp_path / f"outside{number}", inside | {name: wrong}, margin=5, **keys)
        assert f"input {name}" in str(caught.value)
        assert "in all 1 position lies outside" in str(caught.value)
        assert f"{name}.parquet" in str(caught.value)
        assert caught.value.exit_code == 65
        where = f"{column} >= 0 AND {column} < 100"
        where += ' AND start >= 0 AND "end" < 100' if len(shift) > 1 else ""
        left_out = keys | {name: {"where": where, "columns": {}}}
        run_change_points(tmp_path / f"left_out{number}", inside | {name: wrong}, margin=5, **left_out)


@pytest.mark.parametrize("n_files", [1, 3])
def test_positions_outside_their_series_are_counted_alike_in_all_and_in_the_file(tmp_path: Path, n_files: int) -> None:
    data = frames(
        predictions={"series_id": ["b", "a", "a", "a", "b", "c"], "position": [5, 105, 7, 105, -1, 999]},
        annotations={"series_id": ["a", "b"], "position": [7, 9]},
        series={"series_id": ["a", "b", "c"], "n_obs": [100, 50, None]},
    )
    (tmp_path / "files").mkdir()
    for number in range(n_files):
        data["predictions"].write_parquet(tmp_path / "files" / f"{number}.parquet")
    predictions = {"path": str(tmp_path / "files" / "*.parquet"), "columns": {}}
    with pytest.raises(DataError) as caught:
        run_change_points(tmp_path, data, margin=5, duplicates="keep", predictions=predictions)
    words = (
        f"'position' is 105 in series a, which has 100 observations (n_obs), numbered from 0; in all {3 * n_files} pos"
    )
    assert words in str(caught.value)
    assert "(3 in " in str(caught.value)
    assert "0.parquet, first at row 2)" in str(caught.value)


def test_positions_in_seconds_are_mapped_to_the_number_of_the_observation(tmp_path: Path) -> None:
    data = frames(
        predictions={"series_id": ["a"], "position": [1_700_000_050]},
        annotations={"series_id": ["a", "a"], "position": [1_700_000_070, 1_700_000_090]},
        series={"series_id": ["a"], "n_obs": [100]},
    )
    with pytest.raises(DataError, match=r"'position' is 1700000050 in series a, .* 1 position lies outside .* row 1\)"):
        run_change_points(tmp_path / "seconds", data, margin=5)
    numbered = {"columns": {"position": {"sql": "position - 1700000000"}}}
    run = run_change_points(tmp_path / "numbered", data, margin=5, predictions=numbered, annotations=numbered)
    assert read_table(run, "change_points_areas", POINTS)["covering"][0] < 1


def test_the_ends_of_a_series_and_an_unknown_length_are_no_fault(tmp_path: Path) -> None:
    data = frames(
        predictions={"series_id": ["a", "a", "b"], "position": [0, 99, 5_000]},
        annotations={"series_id": ["a", "b"], "position": [12, 4_000]},
        series={"series_id": ["a", "b"], "n_obs": [100, None]},
    )
    run_change_points(tmp_path, data, margin=5)
