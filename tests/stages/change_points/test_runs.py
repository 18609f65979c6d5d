"""The stage change_points as whole runs: against brute force at every threshold, and what its inputs may hold."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import POINTS, points_tables, read_table, rows_by_status, run_change_points, stage_config
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_bipartite_matching

from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters
from pipeline.runs.config import parse_config
from pipeline.runs.evaluation import render_opened
from pipeline.runs.opening import open_inputs
from pipeline.stages.change_points.points import Matcher

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.random import Generator
    from numpy.typing import NDArray

SERIES, METHODS, SCORES = 12, ("x", "y"), 5
ONE = {"predictions": {"series_id": ["a"], "position": [10]}, "annotations": {"series_id": ["a"], "position": [12]}}


def frames(**columns: dict[str, list[Any]]) -> dict[str, pl.DataFrame]:
    return {name: pl.DataFrame(values) for name, values in (ONE | columns).items()}


def random_points(rng: Generator, kind: str) -> dict[str, pl.DataFrame]:
    """Crowded points of a few series and two methods, with few scores; every position once per run."""

    def of(position: NDArray[np.int64]) -> pl.Series:
        if kind == "times":
            return pl.Series([dt.datetime(2020, 1, 1) + dt.timedelta(hours=int(each)) for each in position])  # noqa: DTZ001
        return pl.Series(position / 4 if kind == "floats" else position)

    marks = pl.DataFrame({"series_id": rng.integers(0, SERIES, 60), "position": rng.integers(0, 60, 60)}).unique(
        maintain_order=True
    )
    found = {"series_id": rng.integers(0, SERIES, 150), "method": rng.integers(0, 2, 150)}
    predictions = pl.DataFrame(found | {"position": rng.integers(0, 60, 150)}).unique(maintain_order=True)
    predictions = predictions.with_columns(
        pl.Series("score", rng.integers(0, SCORES, predictions.height) / SCORES),
        pl.col("method").replace_strict(dict(enumerate(METHODS))),
    )
    return {
        name: frame.sort(pl.all()).with_columns(of(frame.sort(pl.all())["position"].to_numpy()).alias("position"))
        for name, frame in (("predictions", predictions), ("annotations", marks))
    }


def one_method(seed: int) -> dict[str, pl.DataFrame]:
    """Random points of a single method."""
    data = random_points(np.random.default_rng(seed), "integers")
    return data | {"predictions": data["predictions"].filter(method="x").drop("method")}


def largest(near: NDArray[np.bool_]) -> int:
    if not near.size:
        return 0
    return int((maximum_bipartite_matching(csr_matrix(near.astype(int)), perm_type="column") >= 0).sum())


def by_hand(rule: str, truth: pl.DataFrame, found: pl.DataFrame, *, strict: bool) -> int:
    """True positives of one run, by definition: everything within 6 before and 3 after."""
    difference = found["position"].to_numpy()[:, None] - truth["position"].to_numpy()[None]
    near = (difference > -6) & (difference < 3) if strict else (difference >= -6) & (difference <= 3)
    if rule == "any":
        return int(near.any(axis=0).sum())
    if rule == "ruptures":
        free, tp = np.ones(len(near), dtype=bool), 0
        for column in near.T:
            tp += bool((column & free).any())
            free &= ~column
        return tp
    return largest(near)  # first fit on sorted points without repeats is a largest matching


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize("rule", ["one_to_one", "any", "roerich", "ruptures"])
def test_counts_at_every_threshold(tmp_path: Path, rule: str, strict: bool) -> None:  # noqa: FBT001 - a parameter
    rng = np.random.default_rng(8)
    data = random_points(rng, "integers")
    keys = {"margin": {"before": 6, "after": 3}, "margin_boundary": "<" if strict else "<=", "matching": rule}
    found = points_tables(tmp_path, data, by=["method"], **keys)
    series = set(data["predictions"]["series_id"]) | set(data["annotations"]["series_id"])
    assert found["series"].height == len(METHODS) * len(series)
    for row in found["curve"].iter_rows(named=True):
        own = data["predictions"].filter(pl.col("score") >= row["threshold"])
        own = own if row["grouping"] == "all" else own.filter(method=row["method"])
        copies = len(METHODS) if row["grouping"] == "all" else 1
        tp = sum(
            by_hand(
                rule, data["annotations"].filter(series_id=each), own.filter(series_id=each, method=name), strict=strict
            )
            for each in series
            for name in METHODS
        )
        n_true = data["annotations"].height * copies
        assert (row["n_true"], row["n_predicted"], row["tp"]) == (n_true, own.height, tp)
        assert row["n_series"] == len(series) * copies
        assert row["precision"] == tp / own.height
        assert row["recall"] == tp / n_true
        assert row["f1"] == 2 * tp / (own.height + n_true)
    assert found["curve"].height == 3 * SCORES


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("kind", ["floats", "times"])
def test_positions_of_other_types_count_the_same(tmp_path: Path, kind: str) -> None:
    margin = {"integers": 5, "floats": 1.25, "times": "5h"}
    found = {}
    for each in ("integers", kind):
        data = random_points(np.random.default_rng(5), each)
        found[each] = points_tables(tmp_path / each, data, by=["method"], margin=margin[each])
    for name in ("curve", "areas"):
        assert found["integers"][name].equals(found[kind][name])
    whole, other = (found[each]["series"].drop("covering") for each in ("integers", kind))
    scale = {"floats": 4.0, "times": 1.0}[kind]
    assert other.drop("mean_delay").equals(whole.drop("mean_delay"))
    rescaled = (other["mean_delay"] * scale).to_list()
    assert rescaled == pytest.approx(whole["mean_delay"].to_list(), nan_ok=True)


def test_times_are_exact_to_the_microsecond(tmp_path: Path) -> None:
    start = dt.datetime(2300, 1, 1, tzinfo=dt.UTC)
    at = [start + dt.timedelta(hours=2, microseconds=offset) for offset in (-1, 0, 1)]
    data = frames(
        predictions={"series_id": ["a", "b", "c"], "position": at},
        annotations={"series_id": ["a", "b", "c"], "position": [start] * 3},
    )
    for boundary, tp in (("<", [1, 0, 0]), ("<=", [1, 1, 0])):
        found = points_tables(tmp_path / str(len(boundary)), data, margin="2h", margin_boundary=boundary)
        assert found["series"]["tp"].to_list() == tp


def test_integers_beyond_doubles_are_exact(tmp_path: Path) -> None:
    data = frames(
        predictions={"series_id": ["a", "b"], "position": [2**60 + 1, 2**60]},
        annotations={"series_id": ["a", "b"], "position": [2**60, 2**60]},
    )
    assert points_tables(tmp_path, data, margin=1)["series"]["tp"].to_list() == [0, 1]


@pytest.mark.wide
def test_parts_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_points(np.random.default_rng(3), "integers")
    whole = points_tables(tmp_path / "whole", data, by=["method"], margin=5)
    monkeypatch.setattr("pipeline.plan.counts.BATCH_ROWS", 40)
    parts = points_tables(tmp_path / "parts", data, by=["method"], margin=5)
    assert all(whole[name].equals(parts[name]) for name in whole)


def test_parts_hold_about_as_many_rows_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    crowded, alone = np.repeat(np.arange(9), 30), np.arange(9, 200)
    series = np.concatenate([crowded, alone])
    data = {"predictions": pl.DataFrame({"series_id": series, "position": np.arange(len(series))})}
    data["annotations"] = data["predictions"]
    sizes = []

    def match(self: Matcher, parts: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        sizes.append(parts["predictions"].height + parts["annotations"].height)
        return own(self, parts)

    own = Matcher.match
    monkeypatch.setattr(Matcher, "match", match)
    monkeypatch.setattr("pipeline.plan.counts.BATCH_ROWS", 100)
    table = points_tables(tmp_path, data, margin=1)["series"]
    assert sum(sizes) == 2 * len(series) == 922
    assert len(sizes) == 10
    assert max(sizes) <= 100 + 60  # a part, and the rest of a series
    assert table["tp"].sum() == table["n_true"].sum() == len(series)


@pytest.mark.wide
def test_parts_lose_no_series_without_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = random_points(np.random.default_rng(4), "integers")
    listed = pl.DataFrame({"series_id": range(-5, SERIES + 5)})
    data |= {"series": listed, "runs": listed.join(pl.DataFrame({"method": METHODS}), how="cross")}
    whole = points_tables(tmp_path / "whole", data, by=["method"], margin=5)
    assert whole["series"].height == len(METHODS) * (SERIES + 10)
    monkeypatch.setattr("pipeline.plan.counts.BATCH_ROWS", 40)
    parts = points_tables(tmp_path / "parts", data, by=["method"], margin=5)
    assert all(whole[name].equals(parts[name]) for name in whole)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("scale", [1000.0, 1e-6])
@pytest.mark.parametrize("shift", [0.0, -5000.0])
def test_areas_do_not_depend_on_the_scale_of_the_scores(tmp_path: Path, scale: float, shift: float) -> None:
    data = one_method(2)
    moved = data | {"predictions": data["predictions"].with_columns(pl.col("score") * scale + shift)}
    found = [points_tables(tmp_path / str(n), each, margin=5)["areas"] for n, each in enumerate((data, moved))]
    assert found[0].equals(found[1])


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("boundary", [">=", ">"])
def test_areas_use_every_score_whatever_the_thresholds(tmp_path: Path, boundary: str) -> None:
    data = one_method(2)
    every = points_tables(tmp_path / "every", data, margin=5)["areas"]
    grid = points_tables(tmp_path / "grid", data, margin=5, thresholds=[0.3], boundary=boundary)
    names = ["average_precision", "pr_auc_roerich"]
    assert every.select(names).equals(grid["areas"].select(names))
    first = grid["curve"].row(0, named=True)
    assert grid["areas"]["pr_auc"][0] == pytest.approx(first["recall"] * first["precision"])
    few = points_tables(tmp_path / "few", data, margin=5, thresholds=[0.3], area_scores="thresholds")
    row = few["curve"].row(0, named=True)
    assert few["areas"]["average_precision"].item() == pytest.approx(row["recall"] * row["precision"])


def test_scores_above_the_threshold_only(tmp_path: Path) -> None:
    data = one_method(2)
    at, above = (
        points_tables(tmp_path / str(n), data, margin=5, boundary=boundary)["curve"].sort("threshold")
        for n, boundary in enumerate((">=", ">"))
    )
    assert above["tp"].to_list() == [*at["tp"].to_list()[1:], 0]
    assert above["undefined"].to_list()[-1] == "no_prediction"
    grid = points_tables(tmp_path / "grid", data, margin=5, thresholds=at["threshold"].to_list())["curve"]
    assert grid.equals(at.select(grid.columns))


def test_precision_above_1_is_shown_and_said(tmp_path: Path) -> None:
    data = frames(
        predictions={"series_id": ["a"], "position": [105]},
        annotations={"series_id": ["a"] * 2, "position": [100, 110]},
    )
    run = run_change_points(tmp_path, data, margin=10, matching="any")
    row = read_table(run, f"{POINTS}_curve", POINTS).row(0, named=True)
    assert (row["tp"], row["precision"], row["recall"]) == (2, 2.0, 1.0)
    assert any("precision is above 1" in text for text in run.warnings)
    capped = points_tables(tmp_path / "capped", data, margin=10)["curve"].row(0, named=True)
    assert (capped["tp"], capped["precision"], capped["recall"]) == (1, 1.0, 0.5)


def test_intervals_of_any_are_of_recall_alone(tmp_path: Path) -> None:
    data = one_method(2)
    row = points_tables(tmp_path, data, margin=5, matching="any")["curve"].row(0, named=True)
    assert row["recall_lower"] < row["recall"] < row["recall_upper"]
    assert (row["precision_lower"], row["f1_lower"]) == (None, None)
    assert row["undefined_interval"] == "not_a_proportion"


def test_intervals_come_from_series_or_clusters(tmp_path: Path) -> None:
    data = one_method(2)
    series = pl.DataFrame({"series_id": range(SERIES), "site": [number // 4 for number in range(SERIES)]})
    kinds = {"series": {}, "site": {"cluster": "site"}, "none": {"uncertainty": "none"}}
    found = {
        name: points_tables(tmp_path / name, data | {"series": series}, margin=5, **keys)["curve"].row(0, named=True)
        for name, keys in kinds.items()
    }
    for name in ("series", "site"):
        assert found[name]["f1_lower"] < found[name]["f1"] < found[name]["f1_upper"]
    assert found["series"]["recall_upper"] != found["site"]["recall_upper"]
    assert (found["none"]["f1_lower"], found["none"]["undefined_interval"]) == (None, "none")
    assert len({row["tp"] for row in found.values()}) == 1


@pytest.mark.parametrize("threshold", [0.0, 0.4])
def test_intervals_are_those_of_the_counts_of_every_series(tmp_path: Path, threshold: float) -> None:
    data = one_method(6)
    keys: dict[str, Any] = {"margin": 5, "series_counts": True}
    row = points_tables(tmp_path / "all", data, thresholds=[threshold], **keys)["curve"].row(0, named=True)
    entered = data["predictions"].filter(pl.col("score") >= threshold)
    series = points_tables(tmp_path / "entered", data | {"predictions": entered.drop("score")}, **keys)["series"]
    tp, n_predicted, n_true = (series[name].to_numpy()[:, None] for name in ("tp", "n_predicted", "n_true"))
    counts = Confusion(tp, n_predicted - tp, n_true - tp, np.zeros_like(tp))
    for name, (lower, upper) in intervals_of_clusters(counts, 0.95).items():
        if name != "fpr":
            assert row[f"{name}_lower"] == pytest.approx(lower.item(), rel=1e-9)
            assert row[f"{name}_upper"] == pytest.approx(upper.item(), rel=1e-9)
    assert row["undefined_interval"] is None


# Runs, series and groups ---------------------------------------------------------------------------------------------


def test_runs_that_found_nothing_differ_from_absent_runs(tmp_path: Path) -> None:
    data = frames(
        predictions={"series_id": ["a", "b", "c"], "position": [10, 10, 1], "method": ["x", "x", "z"]},
        annotations={"series_id": ["a", "b"], "position": [10, 10]},
        runs={"series_id": ["a", "a", "b"], "method": ["x", "y", "y"]},
    )
    run = run_change_points(tmp_path, data, by=[["method"]], margin=5)
    rows = read_table(run, f"{POINTS}_series", POINTS)
    assert rows.select("method", "series_id", "tp").rows() == [("x", "a", 1), ("y", "a", 0), ("y", "b", 0)]
    curve = read_table(run, f"{POINTS}_curve", POINTS)
    assert curve.select("method", "n_series", "n_true", "n_predicted").rows() == [("x", 1, 1, 1), ("y", 2, 2, 0)]
    assert rows_by_status(run, "predictions", POINTS) == {"used": 1, "unlisted_run": 2}
    assert curve["undefined"].to_list() == [None, "no_prediction"]


def test_without_runs_every_method_ran_on_every_series(tmp_path: Path) -> None:
    data = frames(
        predictions={"series_id": ["a", "b"], "position": [10, 10], "method": ["x", "y"]},
        annotations={"series_id": ["a", "b"], "position": [10, 10]},
    )
    curve = points_tables(tmp_path, data, by=[["method"]], margin=5)["curve"]
    assert curve.select("method", "n_series", "n_true", "tp").rows() == [("x", 2, 2, 1), ("y", 2, 2, 1)]


def test_methods_that_are_null_are_a_group(tmp_path: Path) -> None:
    data = frames(
        predictions={"series_id": ["a", "a"], "position": [10, 11], "method": ["x", None]},
        runs={"series_id": ["a", "a"], "method": ["x", None]},
    )
    curve = points_tables(tmp_path, data, by=[["method"]], margin=5)["curve"]
    assert curve.select("method", "tp").rows() == [("x", 1), (None, 1)]


def test_series_that_nobody_annotated_are_left_out(tmp_path: Path) -> None:
    data = frames(predictions={"series_id": ["a", "b"], "position": [10, 10]}, series={"series_id": ["a"]})
    run = run_change_points(tmp_path / "listed", data, margin=5)
    assert rows_by_status(run, "predictions", POINTS) == {"used": 1, "unjudged_series": 1}
    assert not any("no mark" in text for text in run.warnings)
    del data["series"]
    run = run_change_points(tmp_path / "unlisted", data, margin=5)
    assert rows_by_status(run, "predictions", POINTS) == {"used": 2}
    assert any("1 series have no mark" in text for text in run.warnings)
    data["coders"] = pl.DataFrame({"series_id": ["b"], "annotator_id": ["1"]})
    run = run_change_points(tmp_path / "coded", data, margin=5)
    assert rows_by_status(run, "predictions", POINTS) == {"used": 2}


def test_groups_of_series_have_their_own_marks(tmp_path: Path) -> None:
    data = frames(
        predictions={"series_id": ["a", "b"], "position": [10, 50]},
        annotations={"series_id": ["a", "b", "b"], "position": [10, 10, 20]},
        series={"series_id": ["a", "b"], "site": ["s", "t"]},
    )
    curve = points_tables(tmp_path, data, by=["site"], margin=5)["curve"]
    assert curve.select("grouping", "site", "n_true", "tp").rows() == [
        ("all", None, 3, 1),
        ("site", "s", 1, 1),
        ("site", "t", 2, 0),
    ]


# Tables ---------------------------------------------------------------------------------------------------------------


def test_delays_are_signed_and_of_the_pairs(tmp_path: Path) -> None:
    data = random_points(np.random.default_rng(4), "integers")
    found = points_tables(tmp_path, data, by=[["method"]], margin={"before": 6, "after": 3}, margin_boundary="<=")
    delays = found["delays"]
    assert delays.height == found["series"]["tp"].sum() > 0
    assert delays["delay"].min() == -6
    assert delays["delay"].max() == 3
    for name in ("position", "true_position"):
        assert not delays.select("method", "series_id", name).is_duplicated().any()
    means = delays.group_by("method", "series_id").agg(pl.col("delay").mean())
    joined = found["series"].join(means, on=["method", "series_id"], how="left")
    assert joined["mean_delay"].to_list() == pytest.approx(joined["delay"].to_list(), nan_ok=True)


@pytest.mark.parametrize("zone", [None, "UTC"])
def test_times_are_shown_as_timestamps_to_the_microsecond(tmp_path: Path, zone: str | None) -> None:
    """A double of microseconds loses the last digit from the year 2255 on."""
    mark = dt.datetime(2400, 1, 1, 10, 0, 0, 1)  # noqa: DTZ001 - UTC without a zone
    late = mark + dt.timedelta(minutes=30, microseconds=2)
    data = frames(
        predictions={"series_id": ["a", "a"], "position": [late, mark + dt.timedelta(days=9)]},
        annotations={"series_id": ["a"], "position": [mark]},
    )
    data = {name: frame.with_columns(pl.col("position").dt.replace_time_zone(zone)) for name, frame in data.items()}
    delays = points_tables(tmp_path / "with", data, margin="2h")["delays"]
    assert delays.schema["position"] == delays.schema["true_position"] == pl.Datetime("us")
    assert delays.select("position", "true_position").rows() == [(late, mark)]
    assert delays["delay"].to_list() == pytest.approx([0.5 + 2 / 3.6e9], rel=1e-12)
    without = points_tables(tmp_path / "without", data, margin="1s")["delays"]
    assert (without.schema, without.height) == (delays.schema, 0)


def test_dates_are_shown_as_timestamps(tmp_path: Path) -> None:
    day = dt.date(2024, 2, 29)
    points: dict[str, list[Any]] = {"series_id": ["a"], "position": [day]}
    delays = points_tables(tmp_path, frames(predictions=points, annotations=points), margin="1d")["delays"]
    assert delays.select(pl.col("position", "true_position").dt.date(), "delay").rows() == [(day, day, 0.0)]
    assert delays.schema["position"] == pl.Datetime("us")


def test_covering_without_observations_is_null(tmp_path: Path) -> None:
    data = frames(
        predictions={"series_id": ["a", "b"], "position": [10, 10]},
        annotations={"series_id": ["a", "b"], "position": [10, 10]},
        series={"series_id": ["a", "b"], "n_obs": [20, None]},
    )
    found = points_tables(tmp_path, data, margin=5)
    assert found["series"]["covering"].to_list() == [1.0, None]
    assert found["areas"].select("n_covered", "covering").row(0) == (1, 1.0)


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_the_rows_that_are_matched_are_rendered(tmp_path: Path, dialect: str) -> None:
    config = parse_config(stage_config(tmp_path, POINTS, frames(), margin=5), base=tmp_path)
    opened = open_inputs(config, config.stages[0])
    text = render_opened(opened, dialect=dialect)
    titles = [line for line in text.splitlines() if "for relation outcomes" in line]
    assert [title.split()[3].rstrip(",") for title in titles] == ["runs", "predictions", "annotations"]


def test_big_tables_are_written_when_asked(tmp_path: Path) -> None:
    path = run_change_points(tmp_path, frames(), margin=5, series_counts=False, delays=False).path
    assert not {"change_points_series", "change_points_delays"} & {folder.name for folder in path.iterdir()}
    assert (path / "change_points_curve").is_dir()
