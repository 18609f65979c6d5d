"""A file of metrics for the textfile collector of node_exporter: how the last attempt went, and the latest numbers.

The text is written by Prometheus' own client.
"""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polars as pl
from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import GaugeMetricFamily

from ..base.run_tables import METRICS
from ..storage.layout import RUN_RECORD, read_own

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path


MOST_NUMBERS = 2_000  # rows of the table `metrics`: each is up to three series
STATUSES = ("published", "unchanged", "failed", "interrupted")
_LABELS = ("stage", "grouping", "group", "result_table", "criterion", "metric")
_GATE_LABELS = ("stage", "gate", "condition", "grouping", "group", "criterion", "metric")


class Metric(GaugeMetricFamily):
    """A metric with its samples."""

    def add(self, value: object, **labels: object) -> None:
        """Add a sample; labels without a value are left out, and so is a sample without a value."""
        if isinstance(value, int | float):
            texts = {
                name: str(text).encode("utf-8", "replace").decode() for name, text in labels.items() if text is not None
            }
            self.add_sample(self.name, texts, float(value))


def metrics_text(results: str, attempt: Mapping[str, Any], last_success: str | None, run: Path | None) -> bytes:
    """Return the content of the file, from the record of the attempt that has just ended and the folder of a run.

    The place of the results is the label `results` of every sample: it tells several configs apart. `last_success` is
    when an attempt last ended well, if that is known.
    """
    metrics = [*_of_attempt(attempt, last_success)]
    if run is not None:
        record = json.loads(read_own(run / RUN_RECORD))
        metrics += [*_of_run(record), *_of_stages(record), *_numbers(run, record), _gates(record)]
    for metric in metrics:
        for sample in metric.samples:
            sample.labels["results"] = results
    told = [metric for metric in metrics if metric.samples]
    return generate_latest(SimpleNamespace(collect=lambda: told))


def _single(name: str, meaning: str, value: object) -> Metric:
    """A metric with one sample without labels, or none."""
    metric = Metric(name, meaning)
    metric.add(value)
    return metric


def _of_attempt(attempt: Mapping[str, Any], last_success: str | None) -> Iterator[Metric]:
    started, ended = epoch(attempt.get("started_at")), epoch(attempt.get("ended_at"))
    seconds = None if started is None or ended is None else ended - started
    start = "thresher_last_attempt"
    success = "when an attempt last ended with published or unchanged"
    yield _single(f"{start}_timestamp_seconds", "when the last attempt ended, in seconds since 1970", ended)
    yield _single("thresher_last_success_timestamp_seconds", success, epoch(last_success))
    yield _single(f"{start}_duration_seconds", "how long the last attempt took", seconds)
    yield _single(f"{start}_exit_code", "exit code of the last attempt", attempt.get("exit"))
    status = Metric("thresher_last_attempt_status", "1 for the status of the last attempt, 0 for the others")
    for name in STATUSES:
        status.add(int(attempt.get("status") == name), status=name)
    yield status


def _of_run(record: Mapping[str, Any]) -> Iterator[Metric]:
    made_by = Metric("thresher_run_info", "the latest run, of which all that follows tells; always 1")
    version = record.get("versions", {}).get("thresher")
    made_by.add(1, run_id=record["run_id"], config=record.get("config"), version=version, ds=record.get("ds"))
    moment = "when the latest run was made, in seconds since 1970"
    memory = record.get("peak_rss_bytes")
    yield made_by
    yield _single(
        "thresher_run_generation", "place of the latest run in the sequence of runs", record.get("generation")
    )
    yield _single("thresher_run_timestamp_seconds", moment, epoch(record.get("ended_at")))
    yield _single("thresher_run_duration_seconds", "how long the latest run took", record.get("seconds"))
    yield _single("thresher_run_peak_memory_bytes", "peak resident memory of the latest run", memory)


def _of_stages(record: Mapping[str, Any]) -> Iterator[Metric]:
    seconds = Metric("thresher_stage_duration_seconds", "how long a stage took")
    warnings = Metric("thresher_stage_warnings", "number of warnings of a stage")
    for stage, result in record.get("results", {}).items():
        seconds.add(result.get("seconds"), stage=stage)
        warnings.add(len(result.get("warnings", ())), stage=stage)
    rows = Metric("thresher_input_rows", "rows of an input by status: used, or why they were left out")
    for stage, inputs in record.get("accounting", {}).items():
        for name, account in inputs.items():
            for status in sorted(account.keys() - {"rows_in"}):
                rows.add(account[status], stage=stage, input=name, status=status)
    yield from (seconds, warnings, rows)


def _numbers(run: Path, record: Mapping[str, Any]) -> Iterator[Metric]:
    """Yield the numbers of the table `metrics`: of the total first, up to a limit."""
    frames = (run / METRICS.name / f"{stage}.parquet" for stage in record.get("results", {}))
    rows = [row for path in frames if path.is_file() for row in pl.read_parquet(path).iter_rows(named=True)]
    defined = [row for row in rows if row["value"] is not None]
    in_order = sorted(defined, key=lambda row: row["grouping"] != "all")
    values = Metric("thresher_number", "a row of the table metrics: value")
    lower = Metric("thresher_number_lower", "a row of the table metrics: lower limit of its interval")
    upper = Metric("thresher_number_upper", "a row of the table metrics: upper limit of its interval")
    for row in in_order[:MOST_NUMBERS]:
        labels = {name: row[name] for name in _LABELS}
        for metric, key in ((values, "value"), (lower, "lower"), (upper, "upper")):
            metric.add(row[key], **labels)
    beyond = f"numbers of the latest run beyond the first {MOST_NUMBERS:,}"
    left_out = _single("thresher_numbers_left_out", beyond, max(len(in_order) - MOST_NUMBERS, 0))
    yield from (values, lower, upper, left_out)


def _gates(record: Mapping[str, Any]) -> Metric:
    failed = Metric("thresher_gate_failed", "1 if a gate failed in the latest run, 0 if not")
    for gate in record.get("gates", ()):
        failed.add(int(gate["outcome"] == "failed"), **{name: gate.get(name) for name in _GATE_LABELS})
    return failed


def epoch(moment: object) -> float | None:
    """Return a time of a record, which is in UTC without a zone, in seconds since 1970; None if it is none."""
    with suppress(TypeError, ValueError):
        return datetime.fromisoformat(moment).replace(tzinfo=UTC).timestamp()  # type: ignore[arg-type]  # expected
    return None
