"""Several annotators in whole runs of change_points: union, separate, and the convention of TCPDBench by its rule."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from running import POINTS, points_tables, read_table, rows_by_status, run_change_points

from pipeline.base.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

SERIES, ANNOTATORS, N_OBS = 8, ("1", "2", "3"), 60


def data(seed: int, *, scored: bool = True) -> dict[str, pl.DataFrame]:
    """Crowded marks of three annotators, not all in each series, and predictions; some at index 0."""
    rng = np.random.default_rng(seed)
    marks = {"series_id": rng.integers(0, SERIES, 50), "annotator_id": rng.choice(ANNOTATORS, 50)}
    annotations = pl.DataFrame(marks | {"position": rng.integers(0, N_OBS, 50)}).unique(maintain_order=True)
    found = {"series_id": rng.integers(0, SERIES, 50), "position": rng.integers(0, N_OBS, 50)}
    predictions = pl.DataFrame(found | {"score": rng.integers(0, 4, 50) / 4}).unique(
        ["series_id", "position"], maintain_order=True
    )
    coders = pl.DataFrame({"series_id": range(SERIES)}).join(pl.DataFrame({"annotator_id": ANNOTATORS}), how="cross")
    series = pl.DataFrame({"series_id": range(SERIES), "n_obs": [N_OBS] * SERIES})
    predictions = predictions if scored else predictions.drop("score")
    return {"predictions": predictions, "annotations": annotations, "coders": coders, "series": series}


def true_positives(truth: set[int], found: set[int], margin: int) -> int:
    """The rule of TCPDBench's `true_positives`, in ascending order where theirs is that of a set."""
    free, count = set(found), 0
    for mark in sorted(truth):
        near = sorted((abs(mark - each), each) for each in free if abs(mark - each) <= margin)
        if near:
            count += 1
            free.remove(near[0][1])
    return count


def tcpdbench(marks: list[set[int]], found: set[int], margin: int) -> tuple[float, float]:
    """Precision and recall of `f_measure`, with index 0 on both sides."""
    found, marks = found | {0}, [each | {0} for each in marks]
    union = set().union(*marks)
    recall = sum(true_positives(each, found, margin) / len(each) for each in marks) / len(marks)
    return true_positives(union, found, margin) / len(found), recall


def overlap(marks: set[int], found: set[int]) -> float:
    """Segmentation covering, segment by segment."""

    def segments(points: set[int]) -> list[set[int]]:
        edges = sorted({0, N_OBS} | {each for each in points if 0 < each < N_OBS})
        return [set(range(low, high)) for low, high in pairwise(edges)]

    best = [max(len(own & each) / len(own | each) for each in segments(found)) * len(own) for own in segments(marks)]
    return sum(best) / N_OBS


def marks_of(frames: dict[str, pl.DataFrame], series: int) -> list[set[int]]:
    own = frames["annotations"].filter(series_id=series)
    return [set(own.filter(annotator_id=each)["position"]) for each in ANNOTATORS]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tcpd_at_every_threshold(tmp_path: Path, seed: int) -> None:
    frames = data(seed)
    found = points_tables(tmp_path, frames, annotators="tcpd", margin=4, margin_boundary="<=")
    assert found["curve"].height == 4
    for row in found["curve"].iter_rows(named=True):
        own = frames["predictions"].filter(pl.col("score") >= row["threshold"])
        recalls = []
        for series in range(SERIES):
            entered = set(own.filter(series_id=series)["position"])
            recalls.append(tcpdbench(marks_of(frames, series), entered, 4)[1])
        assert row["recall"] == pytest.approx(sum(recalls) / SERIES, abs=1e-13)
        assert row["f1"] == pytest.approx(2 / (1 / row["precision"] + 1 / row["recall"]))
        assert row["recall_lower"] < row["recall"] < row["recall_upper"]
        assert (row["f1_lower"], row["undefined_interval"]) == (None, "not_a_proportion")
    assert found["areas"]["undefined"].to_list() == ["averaged_recall"]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("scored", [True, False])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tcpd_of_every_series(tmp_path: Path, seed: int, scored: bool) -> None:  # noqa: FBT001 - a parameter
    frames = data(seed, scored=scored)
    run = run_change_points(tmp_path, frames, annotators="tcpd", margin=4, margin_boundary="<=")
    rows = read_table(run, f"{POINTS}_series", POINTS)
    assert rows.height == SERIES
    for row in rows.iter_rows(named=True):
        entered = set(frames["predictions"].filter(series_id=row["series_id"])["position"])
        marks = marks_of(frames, row["series_id"])
        precision, recall = tcpdbench(marks, entered, 4)
        assert (row["n_predicted"], row["precision"]) == (len(entered | {0}), precision)
        assert row["recall"] == pytest.approx(recall, abs=1e-13)
        mean = sum(overlap(each, entered) for each in marks) / len(marks)
        assert row["covering"] == pytest.approx(mean, abs=1e-13)
    assert rows_by_status(run, "predictions", POINTS) == {"used": frames["predictions"].height}


@pytest.mark.wide
def test_separate_is_each_annotator_alone(tmp_path: Path) -> None:
    frames = data(4)
    found = points_tables(tmp_path / "separate", frames, annotators="separate", margin=4)
    for name in ANNOTATORS:
        alone = frames | {"annotations": frames["annotations"].filter(annotator_id=name)}
        wanted = points_tables(tmp_path / name, alone, margin=4)
        for table in ("curve", "areas", "series", "delays"):
            own = found[table].filter(annotator_id=name).drop("annotator_id", "grouping")
            assert own.equals(wanted[table].drop("grouping")), table
    assert found["curve"]["grouping"].unique().to_list() == ["annotator_id"]


def test_separate_counts_every_prediction_of_the_input_once(tmp_path: Path) -> None:
    frames = data(4)
    run = run_change_points(tmp_path, frames, annotators="separate", margin=4, by=[[], ["annotator_id"]])
    assert rows_by_status(run, "predictions", POINTS) == {"used": frames["predictions"].height}


def test_separate_with_methods(tmp_path: Path) -> None:
    frames = data(4)
    twice = [frames["predictions"].with_columns(method=pl.lit(name)) for name in ("x", "y")]
    frames |= {"predictions": pl.concat(twice)}
    curve = points_tables(tmp_path, frames, annotators="separate", margin=4, by=[["method"]])["curve"]
    assert curve["grouping"].unique().to_list() == ["method,annotator_id"]
    x, y = (curve.filter(method=name).drop("method") for name in ("x", "y"))
    assert x.equals(y)
    assert x.height > 0


def test_the_union_counts_a_position_once(tmp_path: Path) -> None:
    frames = data(5)
    row = points_tables(tmp_path, frames, margin=4)["curve"].row(0, named=True)
    assert row["n_true"] == frames["annotations"].select("series_id", "position").n_unique()
    assert row["n_true"] < frames["annotations"].height


def test_annotators_who_marked_nothing_count_where_coders_tell_of_them(tmp_path: Path) -> None:
    frames = {
        "predictions": pl.DataFrame({"series_id": ["a"], "position": [50]}),
        "annotations": pl.DataFrame({"series_id": ["a"], "position": [10], "annotator_id": ["1"]}),
    }
    coders = {"coders": pl.DataFrame({"series_id": ["a", "a"], "annotator_id": ["1", "2"]})}
    for name, more, recall in (("without", {}, 0.5), ("with", coders, 0.75)):
        row = points_tables(tmp_path / name, frames | more, margin=5, annotators="tcpd")["series"].row(0, named=True)
        assert (row["precision"], row["recall"]) == (0.5, recall)


@pytest.mark.wide
def test_series_without_annotators_are_left_out(tmp_path: Path) -> None:
    frames = data(4)
    frames["predictions"] = frames["predictions"].vstack(
        pl.DataFrame({"series_id": [99], "position": [1], "score": [0.5]})
    )
    for annotators in ("separate", "tcpd"):
        run = run_change_points(tmp_path / annotators, frames, margin=4, annotators=annotators)
        assert rows_by_status(run, "predictions", POINTS) == {
            "used": frames["predictions"].height - 1,
            "unjudged_series": 1,
        }


def test_tcpd_has_the_nearest_rule_unless_another_is_given(tmp_path: Path) -> None:
    """Ascending marks take the nearest free prediction: 8 takes 10, so that 12 is left with nothing."""
    frames = {
        "predictions": pl.DataFrame({"series_id": ["a"] * 2, "position": [5, 10]}),
        "annotations": pl.DataFrame({"series_id": ["a"] * 2, "position": [8, 12], "annotator_id": ["1"] * 2}),
    }
    keys = {"margin": 3, "margin_boundary": "<=", "annotators": "tcpd"}
    found = {
        rule: points_tables(tmp_path / str(rule), frames, **keys, **({"matching": rule} if rule else {}))["series"]
        for rule in (None, "nearest", "one_to_one")
    }
    assert [each["tp"].item() for each in found.values()] == [2, 2, 3]


def test_tcpd_needs_indices(tmp_path: Path) -> None:
    frames = data(4)
    moved = {name: frames[name].with_columns(pl.from_epoch("position")) for name in ("predictions", "annotations")}
    with pytest.raises(DataError, match="positions are times"):
        run_change_points(tmp_path, frames | moved, annotators="tcpd", margin="2h")


def test_annotators_of_two_types_cannot_be_compared(tmp_path: Path) -> None:
    frames = data(4)
    frames["coders"] = frames["coders"].with_columns(pl.col("annotator_id").cast(pl.Int64))
    with pytest.raises(DataError, match="annotator_id is"):
        run_change_points(tmp_path, frames, annotators="tcpd", margin=2)


def test_nothing_at_all(tmp_path: Path) -> None:
    for annotators in ("separate", "tcpd"):
        frames = {name: frame.clear() for name, frame in data(1).items()}
        found = points_tables(tmp_path / annotators, frames, annotators=annotators, margin=2, allow_empty=True)
        assert found["curve"]["n_series"].sum() == found["series"].height == 0
