"""Lineage events say what a run read and wrote, as OpenLineage's client writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import polars as pl
import pytest
from openlineage.client.serde import Serde

from pipeline.base.errors import DataError, Interrupted
from pipeline.runs.announcing import announced
from pipeline.runs.config import parse_config
from pipeline.runs.lineage import PARENT, Job, input_datasets

if TYPE_CHECKING:
    from openlineage.client.event_v2 import InputDataset, RunEvent

    from runs.announcing.nights import Night

RECORD = {"run_id": "0123456789ab", "started_at": "2026-11-20T01:02:03.000004", "config": "n.toml"}
JOB = Job("thresher", "n", "/results")


def written(event: RunEvent | InputDataset) -> dict[str, Any]:
    """An event as the client writes it."""
    return Serde.to_dict(event)


def test_a_published_run_has_sent_two_events_of_one_run(published: Night) -> None:
    events = published.sent()[:2]
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]
    assert len({event["run"]["runId"] for event in events}) == 1
    assert UUID(events[0]["run"]["runId"])
    assert not (published.results / "latest" / "lineage.jsonl").exists()


def test_an_input_that_two_stages_read_by_a_glob_is_one_dataset(published: Night) -> None:
    (dataset,) = published.sent()[1]["inputs"]
    assert (dataset["namespace"], dataset["name"]) == ("file", str(published.folder / "in"))
    path = published.folder / "in" / "day=1" / "p.parquet"
    read, quality = dataset["inputFacets"]["inputStatistics"], dataset["inputFacets"]["dataQualityMetrics"]
    assert (read["rowCount"], read["size"], read["fileCount"]) == (82, path.stat().st_size, 1)
    assert (quality["rowCount"], [*quality["columnMetrics"]]) == (81, ["their score"])
    assert quality["columnMetrics"]["their score"].items() >= {"nullCount": 1, "count": 81}.items()
    fields = {field["name"]: field["description"] for field in dataset["facets"]["schema"]["fields"]}
    assert fields["their score"] == "read as score"
    assert "group\nname" in fields


def test_outputs_are_the_tables_with_their_rows_and_columns(published: Night) -> None:
    outputs = {Path(dataset["name"]).name: dataset for dataset in published.sent()[1]["outputs"]}
    folder = (published.results / "latest").resolve()
    assert outputs.keys() == {path.name for path in folder.iterdir() if path.is_dir()} - {"counts"}
    curve = outputs["threshold_sweep_curve"]
    frames = [pl.read_parquet(path) for path in (folder / "threshold_sweep_curve").iterdir()]
    written = curve["outputFacets"]["outputStatistics"]
    assert (written["rowCount"], written["fileCount"]) == (sum(frame.height for frame in frames), 2)
    names = [field["name"] for field in curve["facets"]["schema"]["fields"]]
    assert set(names) == {column for frame in frames for column in frame.columns}
    assert curve["facets"]["version"]["datasetVersion"] == folder.name
    assert next(field for field in curve["facets"]["schema"]["fields"] if field["name"] == "recall")["description"]


def test_a_failed_run_sends_its_error(night: Night) -> None:
    with pytest.raises(DataError):
        night.run(stages=[night.config()["stages"][0] | {"invalid_scores": "error"}])
    start, fail = night.sent()
    assert (start["eventType"], fail["eventType"], fail["outputs"]) == ("START", "FAIL", [])
    assert "is NULL in 1 row" in fail["run"]["facets"]["errorMessage"]["message"]
    tags = {tag["key"]: tag["value"] for tag in fail["run"]["facets"]["tags"]["tags"]}
    assert (tags["status"], tags["exit"]) == ("failed", "65")


def test_a_signal_is_an_abort() -> None:
    event = written(
        JOB.end(RECORD | {"status": "interrupted", "ended_at": RECORD["started_at"], "exit": 143}, None, ())
    )
    assert event["eventType"] == "ABORT"


@pytest.mark.parametrize(("logical_date", "time"), [("2026-11-20", "2026-11-20T00:00:00+00:00"), (None, None)])
def test_the_logical_date_is_the_nominal_time(logical_date: str | None, time: str | None) -> None:
    event = written(JOB.start(RECORD | {"ds": logical_date, "labels": {"model": "v7"}}))
    assert event["run"]["facets"].get("nominalTime", {}).get("nominalStartTime") == time
    tags = {tag["key"]: tag["value"] for tag in event["run"]["facets"]["tags"]["tags"]}
    assert tags["label.model"] == "v7"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("air/dag.task/01941f29-7c00-7087-8940-40e5bd5ea3b2", "dag.task"),
        ("air/a/b/01941f29-7c00-7087-8940-40e5bd5ea3b2", "a/b"),
        ("air/dag.task/7", None),
        ("01941f29-7c00-7087-8940-40e5bd5ea3b2", None),
    ],
)
def test_the_run_of_a_scheduler_is_the_parent(text: str, name: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PARENT, text)
    event = written(JOB.start(RECORD))
    assert event["run"]["facets"].get("parent", {}).get("job", {}).get("name") == name


def read_by(path: str, configured: str) -> dict[str, Any]:
    """The only dataset of a run with one input that reads one file."""
    file = {"stage": "s", "input": "pairs", "path": path, "rows": 3, "footer_sha256": ""}
    run = {
        "base": "/srv/news",
        "inputs": [file],
        "configuration": {"stages": [{"name": "s", "pairs": {"path": [configured]}}]},
    }
    (dataset,) = input_datasets(run)
    return written(dataset)


@pytest.mark.parametrize(
    ("path", "configured", "namespace", "name"),
    [
        ("/srv/news/pairs/a.parquet", "pairs", "file", "/srv/news/pairs"),
        ("/srv/news/pairs/a.parquet", "pairs/*.parquet", "file", "/srv/news/pairs"),
        ("/srv/news/pairs/d=1/a.parquet", "pairs/d=?/**", "file", "/srv/news/pairs"),
        ("/srv/news/pairs/d=1/a.parquet", "pairs/d=${ds}/a.parquet", "file", "/srv/news/pairs"),  # the same every day
        ("/srv/news/a.parquet", "*.parquet", "file", "/srv/news"),
        ("/data/a.parquet", "/*/a.parquet", "file", "/"),
        ("/srv/news/p [1].parquet", "p [1].parquet", "file", "/srv/news"),
        ("/elsewhere/a.parquet", "pairs", "file", "/elsewhere/a.parquet"),
        ("/srv/news/a.parquet", "file:///srv/news/a.parquet", "file", "/srv/news/a.parquet"),
        ("s3://bucket/a/b.parquet", "s3://bucket/a/*.parquet", "s3://bucket", "a"),
    ],
)
def test_a_dataset_has_the_name_that_the_specification_gives_it(
    path: str, configured: str, namespace: str, name: str
) -> None:
    dataset = read_by(path, configured)
    assert (dataset["namespace"], dataset["name"]) == (namespace, name)


def test_tables_of_the_run_itself_and_frames_are_no_inputs() -> None:
    files = [
        {"stage": "s", "input": "a", "path": "ranking_queries/s.parquet", "rows": 1},
        {"stage": "s", "input": "b", "path": "/frame", "rows": 1, "is_frame": True},
    ]
    run = {"base": "/", "inputs": files, "configuration": {"stages": [{"name": "s"}]}}
    assert input_datasets(run) == []


def test_an_attempt_that_could_not_begin_sends_nothing(night: Night) -> None:
    from pipeline.base.interrupts import StopRequest

    with pytest.raises(Interrupted), announced(parse_config(night.config(), base=night.folder), StopRequest()):
        raise Interrupted(15)
    assert not night.events.exists()
    assert 'exit_code{results="' in night.metrics.read_text()
    assert night.metrics.read_text().count(" 143.0\n") == 1
