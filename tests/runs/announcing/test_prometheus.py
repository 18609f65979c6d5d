"""The file of metrics is what Prometheus reads, whatever groups are called."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from prometheus_client.parser import text_string_to_metric_families

from pipeline.base.errors import NoInputError
from pipeline.runs import prometheus
from pipeline.runs.prometheus import epoch, metrics_text
from runs.announcing.nights import HOSTILE

if TYPE_CHECKING:
    from pathlib import Path

    from runs.announcing.nights import Night

ATTEMPT = {"status": "failed", "exit": 66, "started_at": "2026-11-20T00:00:00.5", "ended_at": "2026-11-20T00:00:02"}


def samples(content: bytes | str) -> dict[str, list[tuple[dict[str, str], float]]]:
    """Labels and values by name, as the parser of Prometheus reads them."""
    text = content if isinstance(content, str) else content.decode()
    families = list(text_string_to_metric_families(text))
    assert all(family.documentation and family.type == "gauge" for family in families)
    return {family.name: [(each.labels, each.value) for each in family.samples] for family in families}


def only(values: list[tuple[dict[str, str], float]]) -> float:
    ((_, value),) = values
    return value


def test_rows_numbers_and_names_survive_the_format(published: Night) -> None:
    seen = samples(published.metrics.read_text())
    assert all(labels["results"] == str(published.results) for values in seen.values() for labels, _ in values)
    assert only(seen["thresher_last_attempt_exit_code"]) == 0
    assert [labels["status"] for labels, value in seen["thresher_last_attempt_status"] if value] == ["published"]
    rows = {(labels["stage"], labels["status"]): value for labels, value in seen["thresher_input_rows"]}
    assert (rows["again", "used"], rows["again", "null_score"]) == (81, 1)
    frames = [pl.read_parquet(path) for path in (published.results / "latest" / "metrics").iterdir()]
    metrics = pl.concat(frames).drop_nulls("value")
    key = ("stage", "grouping", "group", "result_table", "criterion", "metric")
    expected = {tuple(text or "" for text in row[:-1]): row[-1] for row in metrics.select(*key, "value").iter_rows()}
    actual = {tuple(labels.get(name, "") for name in key): value for labels, value in seen["thresher_number"]}
    assert actual == expected
    groups = {json.loads(labels["group"]).get("group\nname") for labels, _ in seen["thresher_number"]}
    assert groups == set(HOSTILE)
    assert only(seen["thresher_numbers_left_out"]) == 0
    assert seen["thresher_number_lower"]


def test_a_failed_attempt_keeps_the_numbers_and_the_time_of_success(night: Night) -> None:
    stages = night.config()["stages"][1:]
    night.run(stages=stages)
    before = samples(night.metrics.read_text())
    with pytest.raises(NoInputError):
        night.run(stages=[stages[0] | {"predictions": "gone"}])
    after = samples(night.metrics.read_text())
    assert (only(after["thresher_last_attempt_exit_code"]), only(before["thresher_last_attempt_exit_code"])) == (66, 0)
    kept = "thresher_last_success_timestamp_seconds", "thresher_number", "thresher_run_info", "thresher_input_rows"
    for name in kept:
        assert after[name] == before[name]
    assert only(after["thresher_last_attempt_timestamp_seconds"]) > only(before[kept[0]])
    night.run(stages=stages)
    again = samples(night.metrics.read_text())
    assert only(again[kept[0]]) > only(before[kept[0]])
    assert [labels["status"] for labels, value in again["thresher_last_attempt_status"] if value] == ["unchanged"]


def test_the_first_attempt_of_all_fails(tmp_path: Path) -> None:
    seen = samples(metrics_text(str(tmp_path), ATTEMPT, None, None))
    assert only(seen["thresher_last_attempt_duration_seconds"]) == 1.5
    assert "thresher_last_success_timestamp_seconds" not in seen
    assert "thresher_run_info" not in seen


def run_folder(folder: Path, **facts: Any) -> Path:  # noqa: ANN401 - any record
    (folder / "run.json").write_text(json.dumps({"run_id": "a", "results": {}, **facts}))
    return folder


def test_gates_are_told_by_name(tmp_path: Path) -> None:
    gate = {"stage": "s", "gate": "g", "condition": "min", "metric": None, "grouping": "all", "group": "{}"}
    outcomes = [gate | {"outcome": outcome, "metric": outcome} for outcome in ("failed", "passed", "undecided")]
    seen = samples(metrics_text(str(tmp_path), ATTEMPT, None, run_folder(tmp_path, gates=outcomes)))
    assert {labels["metric"]: value for labels, value in seen["thresher_gate_failed"]} == {
        "failed": 1,
        "passed": 0,
        "undecided": 0,
    }


def test_numbers_beyond_the_limit_are_counted(published: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prometheus, "MOST_NUMBERS", 5)
    run = (published.results / "latest").resolve()
    seen = samples(metrics_text(str(published.results), ATTEMPT, None, run))
    assert {labels["grouping"] for labels, _ in seen["thresher_number"]} == {"all"}
    all_of_them = samples(published.metrics.read_text())["thresher_number"]
    assert only(seen["thresher_numbers_left_out"]) == len(all_of_them) - 5


def test_text_that_is_no_text_and_numbers_without_end() -> None:
    metric = prometheus.Metric("thresher_x", "x")
    metric.add(float("inf"), name='\udc80\\"\n\r\x00')
    metric.add(1e300, name="b")
    metric.add(None, name="c")
    values = [(sample.labels, sample.value) for sample in metric.samples]
    assert values == [({"name": '?\\"\n\r\x00'}, float("inf")), ({"name": "b"}, 1e300)]


def test_times_are_in_utc() -> None:
    assert epoch("1970-01-02T00:00:00.25") == 86400.25
    assert epoch("soon") is None
