"""Lineage events are valid by the schemas of the specification, in the folder openlineage (Apache License 2.0)."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import polars as pl
import pytest
from jsonschema import Draft202012Validator, FormatChecker
from referencing import Registry, Resource

from pipeline.errors import DataError, Interrupted
from pipeline.runs.announcing.announcement import announced
from pipeline.runs.announcing.datasets import input_datasets
from pipeline.runs.announcing.lineage import PARENT, Job
from pipeline.runs.config import parse_config

if TYPE_CHECKING:
    from runs.announcing.nights import Night

SCHEMAS = Path(__file__).parent / "openlineage"
RECORD = {"run_id": "0123456789ab", "started_at": "2026-11-20T01:02:03.000004", "config": "n.toml"}
JOB = Job("thresher", "n", "/results")


@cache
def schemas() -> dict[str, dict[str, Any]]:
    """Every schema by its id; facets refer to one version of the event or another."""
    by_id = {schema["$id"]: schema for path in SCHEMAS.glob("*.json") for schema in [json.loads(path.read_bytes())]}
    return by_id | {
        "https://openlineage.io/spec/2-0-2/OpenLineage.json": json.loads((SCHEMAS / "OpenLineage.json").read_bytes())
    }


def assert_valid(event: dict[str, Any]) -> None:
    """The event, and each of its facets by the schema that it names."""
    registry = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in schemas().items())

    def check(value: Any, schema: str) -> None:  # noqa: ANN401 - JSON
        assert schema.partition("#")[0] in schemas(), schema
        Draft202012Validator({"$ref": schema}, registry=registry, format_checker=FormatChecker()).validate(value)

    check(event, event["schemaURL"])
    holders = [event["run"], event["job"], *event["inputs"], *event["outputs"]]
    for holder in holders:
        for kind in ("facets", "inputFacets", "outputFacets"):
            for facet in holder.get(kind, {}).values():
                check(facet, facet["_schemaURL"])
                properties = {key for part in facet_parts(facet["_schemaURL"]) for key in part.get("properties", {})}
                assert facet.keys() <= properties | {"_producer", "_schemaURL"}


def facet_parts(url: str) -> list[dict[str, Any]]:
    """The alternatives of a facet's schema that hold its own fields: a misspelt field is valid by itself."""
    address, _, name = url.partition("#/$defs/")
    alternatives: list[dict[str, Any]] = schemas()[address]["$defs"][name]["allOf"]
    return alternatives


def test_a_published_run_has_sent_two_valid_events_which_lie_beside_its_record(published: Night) -> None:
    events = published.sent()[:2]
    for event in events:
        assert_valid(event)
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]
    assert len({event["run"]["runId"] for event in events}) == 1
    assert UUID(events[0]["run"]["runId"])
    assert (published.results / "latest" / "lineage.jsonl").read_bytes() == published.events.read_bytes()[
        : (published.results / "latest" / "lineage.jsonl").stat().st_size
    ]


def test_an_input_that_two_stages_read_by_a_glob_is_one_dataset(published: Night) -> None:
    (dataset,) = published.sent()[1]["inputs"]
    assert (dataset["namespace"], dataset["name"]) == ("file", str(published.folder / "in"))
    path = published.folder / "in" / "day=1" / "p.parquet"
    read, quality = dataset["inputFacets"]["inputStatistics"], dataset["inputFacets"]["dataQualityMetrics"]
    assert (read["rowCount"], read["size"], read["fileCount"]) == (82, path.stat().st_size, 1)
    assert (quality["rowCount"], quality["columnMetrics"]) == (81, {"their score": {"nullCount": 1, "count": 81}})
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
    for event in (start, fail):
        assert_valid(event)
    assert (start["eventType"], fail["eventType"], fail["outputs"]) == ("START", "FAIL", [])
    assert "is NULL in 1 row" in fail["run"]["facets"]["errorMessage"]["message"]
    tags = {tag["key"]: tag["value"] for tag in fail["run"]["facets"]["tags"]["tags"]}
    assert (tags["status"], tags["exit"]) == ("failed", "65")


def test_a_signal_is_an_abort() -> None:
    event = JOB.end(RECORD | {"status": "interrupted", "ended_at": RECORD["started_at"], "exit": 143}, None, ())
    assert_valid(event)
    assert event["eventType"] == "ABORT"


@pytest.mark.parametrize(
    ("logical_date", "time"),
    [
        ("2026-11-20", "2026-11-20T00:00:00+00:00"),
        ("2026-11-20T03:00:00+01:00", "2026-11-20T02:00:00+00:00"),
        ("tomorrow", None),
        (None, None),
    ],
)
def test_the_logical_date_is_the_nominal_time(logical_date: str | None, time: str | None) -> None:
    event = JOB.start(RECORD | {"ds": logical_date, "labels": {"model": "v7"}})
    assert_valid(event)
    assert event["run"]["facets"].get("nominalTime", {}).get("nominalStartTime") == time
    assert {"key": "label.model", "value": "v7", "source": "THRESHER"} in event["run"]["facets"]["tags"]["tags"]


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
    event = JOB.start(RECORD)
    assert_valid(event)
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
    return dataset


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
    from pipeline.interrupts import StopRequest

    with pytest.raises(Interrupted), announced(parse_config(night.config(), base=night.folder), StopRequest()):
        raise Interrupted(15)
    assert not night.events.exists()
    assert 'exit_code{results="' in night.metrics.read_text()
    assert night.metrics.read_text().count(" 143\n") == 1
