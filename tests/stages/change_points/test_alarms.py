"""Change points as alarms in whole runs: against plain loops at every threshold, and what inputs may hold."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from alarms_by_hand import Terms, by_hand
from running import POINTS, read_table, rows_by_status, run_change_points, stage_config

import pipeline
from pipeline.base.errors import ConfigError, DataError
from pipeline.metrics.change_points.alarms import poisson_limits
from pipeline.metrics.change_points.windows import Margin
from pipeline.report.evidence import Wish
from pipeline.report.explaining import Shown, explain
from pipeline.report.published import PublishedRun, latest_run
from pipeline.report.summary import paragraph_of

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

COUNTS = ("n_predicted", "tp", "n_false", "n_ignored", "n_merged")
START = dt.datetime(2026, 3, 28, tzinfo=dt.UTC)  # a clock of Amsterdam moves in between
SERIES, METHODS, HOURS = 14, ("x", "y"), 200
QUANTILES = {"lead_p10": 0.1, "lead_p25": 0.25, "median_lead": 0.5, "lead_p75": 0.75, "lead_p90": 0.9}
TERMS = Terms(Margin(3, 2, closed=False), is_any=False, ignores=True, cooldown=4)


def scene() -> dict[str, list[tuple[Any, ...]]]:
    """Crowded hourly alarms, incidents that overlap, series without either, and lengths of observation."""
    rng = np.random.default_rng(5)
    alarms = {
        (f"s{rng.integers(0, SERIES - 1):02d}", METHODS[rng.integers(0, 2)], int(rng.integers(0, HOURS)))
        for _ in range(300)
    }
    incidents = set()
    for _ in range(60):
        start = int(rng.integers(0, HOURS))
        series = f"s{rng.integers(1, SERIES):02d}"
        incidents.add((series, start, start + int(rng.integers(0, 12))))
        if series != f"s{SERIES - 1:02d}":
            alarms |= {(series, METHODS[late % 2], start + late) for late in rng.integers(-3, 12, 4).tolist()}
    return {
        "alarms": [(*alarm, int(rng.integers(0, 6))) for alarm in sorted(alarms)],
        "incidents": sorted(incidents),
        "series": [(f"s{number:02d}", HOURS + 24 * number) for number in range(SERIES)],
    }


def frames(data: dict[str, list[tuple[Any, ...]]]) -> dict[str, pl.DataFrame]:
    """The same as files: zones of time, and rows in no order."""

    def moments(hours: list[int], zone: str) -> pl.Series:
        times = [START + dt.timedelta(hours=hour) for hour in hours]
        return pl.Series(times, dtype=pl.Datetime("us", "UTC")).dt.convert_time_zone(zone)

    series, method, position, score = map(list, zip(*data["alarms"], strict=True))
    predictions = {"series_id": series, "method": method, "score": score, "position": moments(position, "UTC")}
    of_incidents, start, end = map(list, zip(*data["incidents"], strict=True))
    amsterdam = "Europe/Amsterdam"
    annotations = {"series_id": of_incidents, "start": moments(start, amsterdam), "end": moments(end, amsterdam)}
    names, hours = map(list, zip(*data["series"], strict=True))
    listed = {"series_id": names, "start": moments([0] * len(names), "UTC"), "end": moments(hours, "UTC")}
    mixed = pl.DataFrame(predictions).sample(fraction=1, shuffle=True, seed=1)
    return {"predictions": mixed, "annotations": pl.DataFrame(annotations), "series": pl.DataFrame(listed)}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    keys = {"margin": {"before": "3h", "after": "2h"}, "cooldown": "4h", "per": "1d", "by": ["method"]}
    return pipeline.run(stage_config(tmp_path_factory.mktemp("alarms"), POINTS, frames(scene()), **keys))


def by_method(method: str | None, threshold: float) -> tuple[dict[str, int], list[float]]:
    """Counts and leads, in hours, of a method or of both together."""
    data, counts, leads = scene(), dict.fromkeys(COUNTS, 0), []
    for name in METHODS if method is None else [method]:
        alarms = [(series, hour, score) for series, other, hour, score in data["alarms"] if other == name]
        of_method, firsts = by_hand(alarms, data["incidents"], TERMS, threshold)
        counts = {count: counts[count] + of_method[count] for count in COUNTS}
        leads += [incident[1] - first for incident, first in firsts.items()]
    return counts, leads


@pytest.mark.wide
def test_every_threshold_of_every_group_is_counted_by_hand(run: Run) -> None:
    table = read_table(run, "change_points_alarms", POINTS)
    assert table.height == 3 * 6
    days = sum(hours for _, hours in scene()["series"]) / 24
    for row in table.iter_rows(named=True):
        counts, leads = by_method(row["method"], row["threshold"])
        copies = len(METHODS) if row["method"] is None else 1
        assert {name: row[name] for name in COUNTS} == counts
        assert (row["n_true"], row["n_series"]) == (copies * len(scene()["incidents"]), copies * SERIES)
        assert row["observed"] == pytest.approx(copies * days)
        assert row["false_alarm_rate"] == pytest.approx(counts["n_false"] / (copies * days))
        assert row["time_between_false_alarms"] == pytest.approx(copies * days / counts["n_false"])
        assert row["false_alarm_rate_lower"] < row["false_alarm_rate"] < row["false_alarm_rate_upper"]
        assert row["time_between_false_alarms_lower"] == pytest.approx(1 / row["false_alarm_rate_upper"])
        assert (row["n_alerted"], row["n_ahead"]) == (len(leads), sum(lead > 0 for lead in leads))
        assert row["mean_lead"] == pytest.approx(np.mean(leads))
        assert row["undefined"] is None
    curve = read_table(run, "change_points_curve", POINTS)
    shared = ["method", "threshold", "n_predicted", "tp", "recall", "recall_lower", "recall_upper"]
    assert curve.select(shared).equals(table.select(shared))


@pytest.mark.wide
def test_leads_at_the_chosen_threshold_are_those_of_numpy(run: Run) -> None:
    points = read_table(run, "change_points_alarm_points", POINTS)
    assert points["criterion"].to_list() == ["max_f1"] * 3
    for row in points.iter_rows(named=True):
        _, leads = by_method(row["method"], row["threshold"])
        assert row["share_ahead"] == pytest.approx(np.mean(np.array(leads) > 0))
        for name, share in QUANTILES.items():
            assert row[name] == pytest.approx(np.quantile(leads, share))
            lower, upper = row[f"{name}_lower"], row[f"{name}_upper"]
            assert lower is None or lower <= row[name]
            assert upper is None or upper >= row[name]
        assert row["median_lead_lower"] < row["median_lead_upper"]
        assert row["mean_lead"] == pytest.approx(np.mean(leads))
        assert row["mean_lead_lower"] < row["mean_lead"] < row["mean_lead_upper"]


def test_a_number_of_alerts_bounds_all_alarms_that_people_receive(tmp_path: Path) -> None:
    data, terms = scene(), Terms(TERMS.margin, is_any=False, ignores=True, cooldown=None)
    alarms = [(series, hour, score) for series, method, hour, score in data["alarms"] if method == "x"]
    counted = {score: by_hand(alarms, data["incidents"], terms, score)[0] for score in range(6)}
    received = {score: counts["n_predicted"] + counts["n_ignored"] for score, counts in counted.items()}
    assert received == {score: sum(alarm[2] >= score for alarm in alarms) for score in range(6)}
    limits = sorted({*received.values(), *(counts["n_predicted"] for counts in counted.values()), 1})
    by_limit = {
        f"max_alerts={most}": min((s for s in range(6) if received[s] <= most), default=None) for most in limits
    }
    keys = {"margin": {"before": "3h", "after": "2h"}, "operating_points": [{"max_alerts": most} for most in limits]}
    run = run_change_points(tmp_path, frames(data) | {"predictions": one_method()}, **keys)
    points = read_table(run, "change_points_operating_points", POINTS)
    assert dict(points.select("criterion", "threshold").iter_rows()) == by_limit
    shown = read_table(run, "change_points_alarm_points", POINTS)
    assert dict(shown.select("criterion", pl.col("n_predicted") + pl.col("n_ignored")).iter_rows()) == {
        criterion: received[score] for criterion, score in by_limit.items() if score is not None
    }
    assert all(shown["n_ignored"])


def test_the_lists_of_series_and_delays_tell_of_all_alarms(run: Run) -> None:
    total = {name: by_method(None, 0)[0][name] for name in COUNTS}
    series = read_table(run, "change_points_series", POINTS)
    assert series.height == SERIES * len(METHODS)
    assert (series["n_predicted"].sum(), series["tp"].sum()) == (total["n_predicted"], total["tp"])
    rates = read_table(run, "change_points_alarms", POINTS)
    assert rates["time_between_false_alarms_upper"].to_list() == pytest.approx(
        (1 / rates["false_alarm_rate_lower"]).to_list()
    )
    delays = read_table(run, "change_points_delays", POINTS)
    assert sorted(delays["delay"].to_list()) == pytest.approx(sorted(-lead for lead in by_method(None, 0)[1]))
    areas = read_table(run, "change_points_areas", POINTS)
    assert set(areas["undefined"]) == {"cooldown"}
    assert rows_by_status(run, "predictions", POINTS)["used"] == len(scene()["alarms"])
    assert any("lie before the start or after the end" in words for words in run.warnings) is False


@pytest.fixture(scope="module")
def published(run: Run) -> PublishedRun:
    return latest_run(run.path.parents[1])


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("threshold", [0.0, 3.0, None])
def test_the_rows_behind_a_rate_add_up_to_its_counts(published: PublishedRun, threshold: float | None) -> None:
    explanation = explain(published, POINTS, Wish("false_alarm_rate", threshold), Shown(most_rows=1000))
    (stage,) = published.stages
    table = stage.tables["change_points_alarms"]
    row = table.filter(pl.col("grouping") == "all", pl.col("threshold") == explanation.threshold).to_dicts()[0]
    assert explanation.steps[-1].value == pytest.approx(row["false_alarm_rate"])
    sections = {section.name: section for section in explanation.sections}
    assert sections["false_points"].n_rows == row["n_false"]
    assert sections["missed"].n_rows == row["n_true"] - row["n_alerted"]
    assert sections["not_counted"].rows["why"].value_counts(sort=True).rows() == [
        ("it comes within the cooldown", row["n_merged"]),
        *([("it repeats a detection", row["n_ignored"])] if row["n_ignored"] else []),
    ]
    asked = explain(published, POINTS, Wish("false_alarm_rate", threshold), Shown(("series",), 1000)).sections[0]
    assert "what false_alarm_rate would be without one of the series is not known" in asked.absent
    of_f1 = explain(published, POINTS, Wish("f1", explanation.threshold), Shown(("series",), 1000))
    counts = of_f1.sections[0].rows.select("tp", "fp", "fn").sum().row(0)
    assert counts == (row["tp"], row["n_false"], row["n_true"] - row["tp"])


def test_what_people_see_first_has_the_false_alarms(published: PublishedRun) -> None:
    (stage,) = published.stages
    figures = {figure.name: figure for figure in stage.stage.figures(stage.tables)}
    alarms = stage.tables["change_points_alarms"]
    assert figures["false_alarms"].frame["false_alarm_rate"].sum() == pytest.approx(alarms["false_alarm_rate"].sum())
    assert figures["detected_at_rate"].x.title == "False alarms per 1d of observed time"
    assert figures["leads"].frame["median_lead"].is_not_null().all()
    numbers = [number for number in stage.stage.key_numbers(stage.tables) if number.name == "False alarms per 1d"]
    assert [number.group for number in numbers] == ["all", "x", "y"]
    summary = stage.stage.summarize(stage.tables)
    assert summary.headers[-1] == "false alarms per 1d"
    assert summary.rows[0][-1].startswith(f"{numbers[0].value:.4g} (")
    words = paragraph_of(published, stage)
    rate = numbers[0].value or 0.0
    for phrase in (
        "less than 4h after an alarm",
        "count neither as true nor as false",
        f"there were {rate:.3g} (95% CI",
    ):
        assert phrase in words


ONE = {
    "predictions": {"series_id": ["a", "a"], "position": [3, 12]},
    "annotations": {"series_id": ["a"], "start": [10], "end": [14]},
    "series": {"series_id": ["a"], "n_obs": [40]},
}


def small(**columns: Any) -> dict[str, pl.DataFrame]:  # noqa: ANN401 - columns by input
    return {name: pl.DataFrame(values) for name, values in (ONE | columns).items()}


def alarms_of(folder: Path, data: dict[str, pl.DataFrame], **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    """The only row of the table of alarms."""
    (row,) = read_table(run_change_points(folder, data, **keys), "change_points_alarms", POINTS).to_dicts()
    return row


def test_the_false_alarms_of_a_single_series_have_exact_limits(tmp_path: Path) -> None:
    row = alarms_of(tmp_path, small(), margin=2, per=10)
    lower, upper = poisson_limits(np.array([1.0]), 0.95)
    assert (row["n_false"], row["observed"], row["false_alarm_rate"]) == (1, 4, 1 / 4)
    limits = row["false_alarm_rate_lower"], row["false_alarm_rate_upper"]
    assert limits == pytest.approx((lower[0] / 4, upper[0] / 4))
    assert limits == pytest.approx((0.0253 / 4, 5.572 / 4), rel=1e-3)  # Garwood's table for one event
    assert row["interval_quality"] == "few_clusters"


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("columns", "keys", "values"),
    [
        ({}, {"per": 10, "uncertainty": "none"}, {"undefined_interval": "none", "false_alarm_rate_lower": None}),
        ({}, {"repeats": "ignore"}, {"undefined": "no_unit", "observed": None, "per": None}),
        (
            {"series": {"series_id": ["a"], "start": [20], "end": [20]}},
            {"per": 10},
            {"undefined": "no_time", "observed": 0.0},
        ),
        ({"predictions": {"series_id": ["a"], "position": [1]}}, {}, {"undefined": "no_unit", "n_alerted": 0}),
        (
            {"predictions": {"series_id": ["a"], "position": [11]}},
            {"per": 10},
            {"undefined": "no_false_alarm", "time_between_false_alarms": None, "false_alarm_rate": 0.0},
        ),
        (
            {"annotations": {"series_id": ["a"], "start": [30], "end": [35]}},
            {"per": 10},
            {"undefined": "no_alert", "mean_lead": None, "recall": 0.0, "n_false": 2},
        ),
    ],
)
def test_what_is_not_defined_says_why(
    tmp_path: Path, columns: dict[str, Any], keys: dict[str, Any], values: dict[str, Any]
) -> None:
    row = alarms_of(tmp_path, small(**columns), margin=2, **keys)
    assert {name: row[name] for name in values} == values


def test_rows_that_repeat_an_incident_count_once_with_a_note(tmp_path: Path) -> None:
    twice = {"series_id": ["a", "a"], "start": [10, 10], "end": [14, 14]}
    run = run_change_points(tmp_path, small(annotations=twice), margin=2, per=10)
    assert read_table(run, "change_points_alarms", POINTS)["n_true"].to_list() == [1]
    assert any("1 row of annotations marks a point that is marked already" in words for words in run.notes)


def test_alarms_outside_the_observed_time_are_told(tmp_path: Path) -> None:
    observed = {"series_id": ["a"], "start": [5], "end": [45]}
    run = run_change_points(tmp_path, small(series=observed), margin=2, per=10)
    assert any("1 predictions lie before the start" in words for words in run.warnings)


def test_limits_of_the_bootstrap_are_near_the_others(tmp_path: Path, run: Run) -> None:
    keys = {"margin": {"before": "3h", "after": "2h"}, "cooldown": "4h", "per": "1d", "thresholds": [1]}
    drawn = alarms_of(tmp_path, frames(scene()) | {"predictions": one_method()}, uncertainty="bootstrap", **keys)
    closed = read_table(run, "change_points_alarms", POINTS).filter(method="x", threshold=1.0).to_dicts()[0]
    assert drawn["false_alarm_rate"] == closed["false_alarm_rate"]
    for side in ("lower", "upper"):
        name = f"false_alarm_rate_{side}"
        assert drawn[name] != closed[name]
        assert drawn[name] == pytest.approx(closed[name], rel=0.4)


def one_method() -> pl.DataFrame:
    return frames(scene())["predictions"].filter(method="x")


@pytest.mark.parametrize(
    ("columns", "keys", "words"),
    [
        (
            {"annotations": {"series_id": ["a", "a"], "start": [1, 10], "end": [1, 9]}},
            {},
            r"'end' is before 'start' in 1 row.*annotations.parquet, first at row 2",
        ),
        ({"annotations": {"series_id": ["a"], "start": [1], "end": [None]}}, {}, "'end' is NULL"),
        ({"annotations": {"series_id": ["a"], "start": [1]}}, {}, "needs both 'start' and 'end'"),
        ({"annotations": {"series_id": ["a"], "where": [1]}}, {}, "has no column 'position'"),
        ({"annotations": {"series_id": ["a"], "start": [1], "end": [2.5]}}, {}, "cannot be compared exactly"),
        ({}, {"matching": "ruptures"}, "pairs positions"),
        ({}, {"cooldown": "2h"}, "cooldown: positions are integers"),
        ({}, {"per": "1d"}, "per: positions are integers"),
        ({"series": {"series_id": ["a"]}}, {"per": 5}, "not known how long"),
        ({"series": {"series_id": ["a"], "n_obs": [None]}}, {"per": 5}, "'n_obs' is NULL"),
        ({"series": {"series_id": ["a"], "start": [9], "end": [3]}}, {"per": 5}, "'end' is before 'start'"),
        (
            {
                "predictions": {"series_id": ["a"], "position": [1.5]},
                "annotations": {"series_id": ["a"], "position": [1.0]},
            },
            {"per": 5},
            "n_obs of series is a number of observations",
        ),
    ],
)
def test_faults_of_alarms_are_named(tmp_path: Path, columns: dict[str, Any], keys: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        run_change_points(tmp_path, small(**columns), margin=2, **keys)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"cooldown": 0}, "above 0"),
        ({"per": -1}, "above 0"),
        ({"per": "1 day"}, "no duration"),
        ({"repeats": "drop"}, "repeats"),
        ({"per": 5, "annotators": "tcpd"}, "leave per out"),
    ],
)
def test_keys_of_alarms_at_fault_are_named(tmp_path: Path, keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        run_change_points(tmp_path, small(), margin=2, **keys)


def test_a_position_beside_a_start_and_an_end_is_a_point_with_a_warning(tmp_path: Path) -> None:
    both = {"series_id": ["a"], "position": [3], "start": [10], "end": [14]}
    run = run_change_points(tmp_path / "points", small(annotations=both), margin=2, per=10)
    assert read_table(run, "change_points_delays", POINTS)["true_position"].to_list() == [3.0]
    assert any("points are counted" in words for words in run.warnings)
    keys = {"annotations": {"columns": {"position": False}}, "margin": 2, "per": 10}
    run = run_change_points(tmp_path / "incidents", small(annotations=both), **keys)
    assert read_table(run, "change_points_delays", POINTS)["true_position"].to_list() == [10.0]
    with pytest.raises(DataError, match="Keep one of the two"):
        run_change_points(
            tmp_path / "mapped",
            small(annotations=both),
            annotations={"columns": {"start": "start", "end": "end"}},
            margin=2,
        )
