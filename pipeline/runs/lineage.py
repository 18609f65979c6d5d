"""Lineage events, made from the records of attempts and runs alone, and sent by OpenLineage's own client.

What the parts of an event mean: https://openlineage.io/docs/spec/facets.
"""

from __future__ import annotations

import os
import re
import uuid
from dataclasses import field
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from openlineage.client import event_v2 as events
from openlineage.client import facet_v2 as facets
from openlineage.client.transport.file import FileConfig, FileTransport
from openlineage.client.transport.http import ApiKeyTokenProvider, HttpConfig, HttpTransport
from requests import Session

from ..base.records import dataclass
from ..base.schemas import COUNT_TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..storage.layout import PublishedFile


PARENT, KEY = "OPENLINEAGE_PARENT_ID", "OPENLINEAGE_API_KEY"
ENDPOINT = "api/v1/lineage"
TIMEOUT, SHORT_TIMEOUT = 5.0, 1.0  # seconds that a server has; the short one where a signal asked to stop
_KNOWN_AT_START = ("run_id", "config", "ds", "labels")
_ENDINGS = {"published": events.RunState.COMPLETE, "unchanged": events.RunState.COMPLETE}
_ENDINGS["interrupted"] = events.RunState.ABORT
_WILD = re.compile(r"[*?\[{]")
_REMOTE = re.compile(r"(?P<store>[a-z][a-z0-9+.-]*://[^/]+)/*(?P<key>.*)", re.IGNORECASE | re.DOTALL)


def append(file: str, event: events.RunEvent) -> None:
    """Append an event to a file as one line, or raise whatever the client finds wrong."""
    FileTransport(FileConfig(log_file_path=file, append=True)).emit(event)


def post(url: str, event: events.RunEvent, timeout: float = TIMEOUT) -> None:
    """Send an event to a server once, with the key in OPENLINEAGE_API_KEY if there is one.

    It may take `timeout` seconds to connect, and to answer; else, or where it refuses, any exception is raised.
    """
    address = urlsplit(url)
    session = Session()
    session.max_redirects = 0  # the key is meant for the server that the config names
    settings: dict[str, Any] = {"endpoint": address.path.strip("/") or ENDPOINT, "timeout": timeout, "session": session}
    if key := os.environ.get(KEY):
        settings["auth"] = ApiKeyTokenProvider({"api_key": key})
    transport = HttpTransport(HttpConfig(url=f"{address.scheme}://{address.netloc}/", retry={"total": 0}, **settings))
    try:
        transport.emit(event)
    finally:
        transport.close(timeout)


@dataclass(frozen=True)
class Job:
    """What the events of a config say of it: names, the place of the results, what their columns mean by table."""

    namespace: str
    name: str
    output: str
    descriptions: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    def start(self, record: Mapping[str, Any]) -> events.RunEvent:
        """Return the event that an attempt begins."""
        beginning = {name: record[name] for name in _KNOWN_AT_START if name in record}
        return self._event(events.RunState.START, record["started_at"], beginning)

    def end(
        self, record: Mapping[str, Any], run: Mapping[str, Any] | None, files: Sequence[PublishedFile]
    ) -> events.RunEvent:
        """Return the event that an attempt has ended: COMPLETE, FAIL, or ABORT after a signal.

        `run` is the record of the run that it published or found unchanged, if there is one, with its files.
        """
        event = self._event(_ENDINGS.get(record["status"], events.RunState.FAIL), record["ended_at"], record)
        if run is not None:
            event.inputs = input_datasets(run)
            event.outputs = _output_datasets(run, files, self.output, self.descriptions)
        return event

    def _event(self, kind: events.RunState, moment: str, record: Mapping[str, Any]) -> events.RunEvent:
        producer = f"urn:thresher:{version('thresher')}"
        facets.set_producer(producer)
        run_id = uuid.uuid5(uuid.NAMESPACE_URL, f"urn:thresher:run:{record['run_id']}")  # which has to be a UUID
        kind_of_job = facets.job_type_job.JobTypeJobFacet("BATCH", "THRESHER", "JOB")
        return events.RunEvent(
            eventType=kind,
            eventTime=f"{moment}Z",
            producer=producer,
            run=events.Run(str(run_id), _run_facets(record)),
            job=events.Job(self.namespace, self.name, {"jobType": kind_of_job}),
        )


def _run_facets(record: Mapping[str, Any]) -> dict[str, facets.RunFacet]:
    engine = facets.processing_engine_run.ProcessingEngineRunFacet(version("duckdb"), "duckdb", version("thresher"))
    texts = {name: record.get(name) for name in ("run_id", "status", "exit", "generation", "config", "ds")}
    texts |= {f"label.{name}": label for name, label in record.get("labels", {}).items()}
    tag = facets.tags_run.TagsRunFacetFields
    tags = [tag(name, str(text), "THRESHER") for name, text in texts.items() if text is not None]
    said: dict[str, facets.RunFacet] = {"processing_engine": engine, "tags": facets.tags_run.TagsRunFacet(tags)}
    if record.get("ds"):
        said["nominalTime"] = facets.nominal_time_run.NominalTimeRunFacet(f"{record['ds']}T00:00:00+00:00")
    if record.get("error"):
        said["errorMessage"] = facets.error_message_run.ErrorMessageRunFacet(record["error"], "PYTHON")
    if (parent := _parent(os.environ.get(PARENT, ""))) is not None:
        said["parent"] = parent
    return said


def _parent(text: str) -> facets.RunFacet | None:
    """Return the run that a scheduler names as the one which started this run: `namespace/job/run id`."""
    namespace, _, below = text.partition("/")
    name, _, run_id = below.rpartition("/")
    try:
        known_id = str(uuid.UUID(run_id))
    except ValueError:
        return None
    if not (namespace and name):
        return None
    kinds = facets.parent_run
    return kinds.ParentRunFacet(kinds.Run(known_id), kinds.Job(namespace, name))


def input_datasets(run: Mapping[str, Any]) -> list[events.InputDataset]:
    """Return what a run read, one dataset for each file, folder or start of a glob that its config names.

    Frames, and tables that other stages of the run made, are no datasets. A dataset that several stages read is listed
    once.
    """
    datasets: dict[str, _Read] = {}
    for stage in run["configuration"]["stages"]:
        for file in run["inputs"]:
            path, name = file["path"], file["input"]
            is_outside = Path(path).is_absolute() or _REMOTE.fullmatch(path)
            if file["stage"] != stage["name"] or not is_outside or file.get("is_frame"):
                continue
            # the paths of an input as they are configured, absolute, up to the first wild character
            configured = stage.get(name)
            texts = configured.get("path", []) if isinstance(configured, dict) else []
            roots = (_root(text, Path(run["base"])) for text in texts if isinstance(text, str))
            above = (root for root in roots if path == root or path.startswith(root.rstrip("/") + "/"))
            root = max(above, key=len, default=path)
            datasets.setdefault(root, _Read(root)).add(run, stage["name"], name, file)
    return [datasets[root].dataset for root in sorted(datasets)]


def _root(text: str, base: Path) -> str:
    if (wild := _WILD.search(text)) is not None:
        text = text[: wild.start()].rpartition("/")[0] or ("/" if text.startswith("/") else ".")
    if _REMOTE.fullmatch(text):
        return text.rstrip("/")
    return os.path.abspath(base / Path(text.removeprefix("file://")).expanduser())  # noqa: PTH100 - links stay


class _Read:
    """A dataset that a run read: a file, a folder, or the start of a glob.

    Attributes:
        files: Its files by path.
        columns: What its columns are read as: column → fields.
        scores: Rows and NULL of the columns that are read as scores.
        used: Rows of the largest input of which it is the whole.
    """

    def __init__(self, root: str) -> None:
        self.root = root
        self.files: dict[str, dict[str, Any]] = {}
        self.columns: dict[str, list[str]] = {}
        self.scores: dict[str, facets.data_quality_metrics_input_dataset.ColumnMetrics] = {}
        self.used = 0

    def add(self, run: Mapping[str, Any], stage: str, name: str, file: dict[str, Any]) -> None:
        """Add a file that an input of a stage reads."""
        self.files[file["path"]] = file
        account = run.get("accounting", {}).get(stage, {}).get(name, {})
        self.used = max(self.used, account.get("used", 0))
        for bound, binding in run.get("bindings", {}).get(stage, {}).items():
            source, _, canonical = bound.partition(".")
            column = binding.get("column")
            if source != name or column is None:
                continue
            if canonical not in self.columns.setdefault(column, []):
                self.columns[column].append(canonical)
            if canonical == "score" and account:
                kind = facets.data_quality_metrics_input_dataset.ColumnMetrics
                self.scores[column] = kind(nullCount=account.get("null_score", 0), count=account.get("used", 0))

    @cached_property
    def dataset(self) -> events.InputDataset:
        """The dataset of the event."""
        rows = sum(file["rows"] for file in self.files.values())
        size = sum(file.get("size", 0) for file in self.files.values())
        read = facets.input_statistics_input_dataset.InputStatisticsInputDatasetFacet(rows, size, len(self.files))
        quality = facets.data_quality_metrics_input_dataset.DataQualityMetricsInputDatasetFacet(
            self.scores, min(self.used, rows), size, len(self.files)
        )
        columns = {column: f"read as {', '.join(names)}" for column, names in self.columns.items()}
        address = self.root if _REMOTE.fullmatch(self.root) else Path(self.root).as_uri()
        source = facets.datasource_dataset.DatasourceDatasetFacet(self.root, address)
        return events.InputDataset(
            *_name(self.root),
            {"inputStatistics": read, "dataQualityMetrics": quality},
            facets={"dataSource": source, "schema": _schema(dict.fromkeys(columns), columns)},
        )


def _output_datasets(
    run: Mapping[str, Any], files: Sequence[PublishedFile], output: str, descriptions: Mapping[str, Mapping[str, str]]
) -> list[events.OutputDataset]:
    """Return the tables of a run, each named by the stable path below `latest`, with the run as its version."""
    tables: dict[str, list[PublishedFile]] = {}
    for file in files:
        folder, slash, _ = file.path.partition("/")
        if slash and folder != COUNT_TABLE:
            tables.setdefault(folder, []).append(file)
    edition = f"{run['generation']:08d}-{run['run_id']}"
    latest = f"{output}/latest/" if _REMOTE.fullmatch(output) else str(Path(output, "latest")) + os.sep
    return [_output(latest + name, tables[name], edition, descriptions.get(name, {})) for name in sorted(tables)]


def _output(
    path: str, files: Sequence[PublishedFile], edition: str, meanings: Mapping[str, str]
) -> events.OutputDataset:
    columns = {name: kind for file in files for name, kind in file.schema.items()}
    rows, size = sum(file.rows for file in files), sum(file.size for file in files)
    written = facets.output_statistics_output_dataset.OutputStatisticsOutputDatasetFacet(rows, size, len(files))
    version_of_run = facets.dataset_version_dataset.DatasetVersionDatasetFacet(edition)
    return events.OutputDataset(
        *_name(path),
        {"outputStatistics": written},
        facets={"schema": _schema(columns, meanings), "version": version_of_run},
    )


def _schema(columns: Mapping[str, str | None], meanings: Mapping[str, str]) -> facets.schema_dataset.SchemaDatasetFacet:
    """Say which columns a dataset has: name → type, and name → meaning."""
    kind = facets.schema_dataset.SchemaDatasetFacetFields
    return facets.schema_dataset.SchemaDatasetFacet(
        [kind(name, type_, meanings.get(name)) for name, type_ in columns.items()]
    )


def _name(path: str) -> tuple[str, str]:
    """Return namespace and name of a dataset as the specification forms them for files and object stores."""
    remote = _REMOTE.fullmatch(path)
    return ("file", path) if remote is None else (remote["store"], remote["key"])
