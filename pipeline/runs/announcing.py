"""Announcements of one attempt: an event when it begins, an event and a file of metrics when it ends."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager, suppress
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ..base import run_tables
from ..base.errors import Interrupted, ThresherError, system_fault
from ..base.records import dataclass
from ..base.schemas import LEADING
from ..storage.layout import MANIFEST, RUN_RECORD, Layout, parse_manifest, read_own, read_record
from ..storage.state import utc_now
from .written import EVENTS, METRICS, OwnFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from openlineage.client.event_v2 import RunEvent

    from ..base.interrupts import StopRequest
    from .config import Config
    from .lineage import Job


MOST_ATTEMPTS = 1_000  # looked through for the last success
_GOOD = {"published", "unchanged"}


@dataclass
class Announcement:
    """What is announced of one attempt, from its record once it has begun; what cannot be announced is a warning."""

    config: Config
    stop: StopRequest
    record: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    started_at: str = field(default_factory=utc_now)

    def begins(self, record: dict[str, Any]) -> None:
        """Announce that the attempt begins; facts are added to its record until it ends."""
        self.record = record
        with self.stop.at_once():
            self._send(lambda: self._job().start(record))

    def ends(self, run: Path) -> None:
        """Announce that the attempt has ended well: it published a run in a folder, or found it unchanged."""

        def event() -> RunEvent:
            files = parse_manifest(read_own(run / MANIFEST), run / MANIFEST).files
            return self._job().end(self.record, json.loads(read_own(run / RUN_RECORD)), files)

        self._send(event)
        self._write_metrics(self.record, self.record.get("ended_at"), run)

    def fails(self, error: BaseException) -> None:
        """Announce that an error stopped the attempt, perhaps before it could even be begun."""
        record = self.record
        if record:
            self._send(lambda: self._job().end(record, None, ()))
        else:
            fault = error if isinstance(error, ThresherError) else system_fault(error)
            status = "interrupted" if isinstance(error, Interrupted) else "failed"
            moments = {"started_at": self.started_at, "ended_at": utc_now()}
            record = {"status": status, "exit": 70 if fault is None else fault.code, **moments}
        latest = Layout(self.config.output).latest
        self._write_metrics(record, None, latest if (latest / RUN_RECORD).is_file() else None)

    def _send(self, event: Callable[[], RunEvent]) -> None:
        """Send an event wherever the config says."""
        file, url = self.config.lineage.file, self.config.lineage.url
        if file is None and url is None:
            return
        from . import lineage  # noqa: PLC0415 - an optional extra

        if file is not None:

            def append() -> None:
                if fault := OwnFile("lineage.file", Path(file), EVENTS).fault:  # a pipe would make a run wait
                    raise OSError(fault)
                lineage.append(file, event())

            self._tried(f"the lineage in {file}", append)
        if url is not None:
            timeout = lineage.SHORT_TIMEOUT if self.stop.is_set else lineage.TIMEOUT
            self._tried(f"the lineage at {urlsplit(url).hostname}", lambda: lineage.post(url, event(), timeout))

    def _write_metrics(self, record: Mapping[str, Any], last_success: str | None, run: Path | None) -> None:
        file = self.config.prometheus.file
        if file is None:
            return
        from .prometheus import metrics_text  # noqa: PLC0415 - an optional extra

        def write() -> None:
            success = last_success or _last_success(Layout(self.config.output))
            text = metrics_text(self.config.results, record, success, run)
            OwnFile("prometheus.file", Path(file), METRICS).replace(text)

        self._tried(f"the metrics in {file}", write)

    def _tried(self, what: str, action: Callable[[], None]) -> None:
        """Do what must not stop a run, whatever goes wrong with it: that becomes a warning."""
        try:
            action()
        except Interrupted:
            raise
        except Exception as error:  # noqa: BLE001 - a fault of ours, or of a place outside, never costs results
            warning = self.config.variables.concealed(f"{what} could not be written: {_reason(error)}")
            self.warnings += [] if warning in self.warnings else [warning]

    def _job(self) -> Job:
        from .lineage import Job  # noqa: PLC0415 - an optional extra

        settings, origin = self.config.lineage, self.config.origin
        name = settings.job or (Path(origin).stem if origin.endswith(".toml") else origin)
        of_stages = (table for stage in self.config.stages for table in stage.stage.tables_of(stage.params))
        tables = (run_tables.INPUTS, run_tables.BINDINGS, run_tables.METRICS, *of_stages)
        meanings = {
            table.name: {column.name: column.meaning for column in (*LEADING, *table.columns)} for table in tables
        }
        return Job(settings.namespace, name, self.config.results, meanings)


@contextmanager
def announced(config: Config, stop: StopRequest) -> Iterator[Announcement]:
    """Announce what becomes of an attempt: it fails if an error leaves the context."""
    announcement = Announcement(config, stop)
    try:
        yield announcement
    except BaseException as error:
        announcement.fails(error)
        raise


def _reason(error: Exception) -> str:
    if isinstance(error, ThresherError):
        return error.message
    if isinstance(error, OSError):
        return str(error.strerror or getattr(error, "reason", None) or error)  # a URLError has a reason alone
    return f"{type(error).__name__}: {error}"


def _last_success(layout: Layout) -> str | None:
    """Return when an attempt last ended well, from the youngest records; None if none of them did."""
    with suppress(OSError), os.scandir(layout.attempts) as entries:
        youngest = sorted(entries, key=lambda entry: entry.stat().st_mtime_ns, reverse=True)[:MOST_ATTEMPTS]
        for entry in youngest:
            record = read_record(Path(entry.path)) or {}
            if record.get("status") in _GOOD:
                return str(record.get("ended_at"))
    return None
