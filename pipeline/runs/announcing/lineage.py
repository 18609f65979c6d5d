"""Lineage events in the format of OpenLineage, made from the records of attempts and runs alone.

Source of the format: the OpenLineage specification, version 2-0-2, https://openlineage.io/spec/2-0-2/OpenLineage.json.
"""

from __future__ import annotations

import json
import os
import uuid
from contextlib import suppress
from dataclasses import field
from datetime import UTC, date, datetime
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from ...records import dataclass
from .datasets import input_datasets, output_datasets
from .facets import Facet, facet, producer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...storage.manifest import PublishedFile

LINEAGE = "lineage.jsonl"  # beside the record of a run
SCHEMA_URL = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
PARENT = "OPENLINEAGE_PARENT_ID"
_KNOWN_AT_START = ("run_id", "config", "ds", "labels")
_ENDINGS = {"published": "COMPLETE", "unchanged": "COMPLETE", "interrupted": "ABORT"}


@dataclass(frozen=True)
class Job:
    """What the events of a config say of it.

    Attributes:
        namespace: Namespace of the job.
        name: Its name.
        output: The place of the results.
        descriptions: What the columns of the result tables mean: table → column → text.
    """

    namespace: str
    name: str
    output: str
    descriptions: Mapping[str, Mapping[str, str]] = field(default_factory=dict, repr=False)

    def start(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """Return the event that an attempt begins."""
        beginning = {name: record[name] for name in _KNOWN_AT_START if name in record}
        return self._event("START", record["started_at"], beginning)

    def end(
        self, record: Mapping[str, Any], run: Mapping[str, Any] | None, files: Sequence[PublishedFile]
    ) -> dict[str, Any]:
        """Return the event that an attempt has ended: COMPLETE, FAIL, or ABORT after a signal.

        Args:
            record: The record of the attempt.
            run: The record of the run that it published or found unchanged; None if there is none.
            files: The files of that run.
        """
        kind = _ENDINGS.get(record["status"], "FAIL")
        event = self._event(kind, record["ended_at"], record)
        if run is not None:
            event["inputs"] = input_datasets(run)
            event["outputs"] = output_datasets(run, files, self.output, self.descriptions)
        return event

    def lines(self, record: Mapping[str, Any], files: Sequence[PublishedFile]) -> bytes:
        """Return the events of a run that is being published, which lie beside its record."""
        return event_line(self.start(record)) + event_line(self.end(record, record, files))

    def _event(self, kind: str, moment: str, record: Mapping[str, Any]) -> dict[str, Any]:
        kind_of_job = facet("2-0-4", "JobTypeJobFacet", processingType="BATCH", integration="THRESHER", jobType="JOB")
        return {
            "eventType": kind,
            "eventTime": f"{moment}Z",
            "producer": producer(),
            "schemaURL": SCHEMA_URL,
            "run": {"runId": event_run_id(record["run_id"]), "facets": _run_facets(record)},
            "job": {
                "namespace": self.namespace,
                "name": self.name,
                "facets": {"jobType": kind_of_job},
            },
            "inputs": [],
            "outputs": [],
        }


def event_line(event: Mapping[str, Any]) -> bytes:
    """Return an event as one line of JSON."""
    return json.dumps(event, allow_nan=False).encode() + b"\n"


def event_run_id(run_id: str) -> str:
    """Return the id of a run in events, which have to be UUIDs: a hash of the run's own id."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"urn:thresher:run:{run_id}"))


def _run_facets(record: Mapping[str, Any]) -> dict[str, Facet]:
    engine = {"name": "duckdb", "version": version("duckdb"), "openlineageAdapterVersion": version("thresher")}
    facets = {
        "processing_engine": facet("1-1-1", "ProcessingEngineRunFacet", **engine),
        "tags": facet("1-0-0", "TagsRunFacet", tags=_tags(record)),
    }
    if (nominal := _nominal_time(record.get("ds"))) is not None:
        facets["nominalTime"] = facet("1-0-1", "NominalTimeRunFacet", nominalStartTime=nominal)
    if record.get("error"):
        words = {"message": record["error"], "programmingLanguage": "PYTHON"}
        facets["errorMessage"] = facet("1-0-1", "ErrorMessageRunFacet", **words)
    if (parent := _parent(os.environ.get(PARENT, ""))) is not None:
        facets["parent"] = facet("1-2-0", "ParentRunFacet", **parent)
    return facets


def _tags(record: Mapping[str, Any]) -> list[dict[str, str]]:
    labels = record.get("labels")
    texts = {name: record.get(name) for name in ("run_id", "status", "exit", "generation", "config", "ds")}
    texts |= {f"label.{name}": value for name, value in (labels if isinstance(labels, dict) else {}).items()}
    return [{"key": name, "value": str(text), "source": "THRESHER"} for name, text in texts.items() if text is not None]


def _nominal_time(logical_date: object) -> str | None:
    """Return the logical date of a run as a time in UTC, or None if it is none."""
    if isinstance(logical_date, date) and not isinstance(logical_date, datetime):
        logical_date = logical_date.isoformat()
    with suppress(TypeError, ValueError):
        moment = datetime.fromisoformat(str(logical_date))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC).isoformat()
    return None


def _parent(text: str) -> Facet | None:
    """Return the run that a scheduler names as the one which started this run: `namespace/job/run id`."""
    namespace, _, below = text.partition("/")
    name, _, run_id = below.rpartition("/")
    try:
        known_id = str(uuid.UUID(run_id))
    except ValueError:
        return None
    return {"run": {"runId": known_id}, "job": {"namespace": namespace, "name": name}} if namespace and name else None
