"""Records of attempts, written when an attempt starts and ends; attempts that were killed are recognised."""

from __future__ import annotations

import os
import platform
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..crash_notes import NOTES, noted
from ..errors import ThresherError
from ..records import dataclass
from ..safe_files import remove_own
from .durable import DamagedError, read_record, read_start, storage_errors, write_json
from .layout import RUN_ID, RUN_RECORD

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from .layout import Layout

RUNNING, CRASHED, PUBLISHED = "running", "crashed", "published"
FAILED, INTERRUPTED = "failed", "interrupted"
ABANDONED, ABANDONED_ON_STORES = timedelta(hours=1), timedelta(days=1)
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_START = 1024  # bytes: the status is the third key of a record
_LARGEST_PID = (1 << 31) - 1
_START_FIELD = 19  # of what follows the name of the program in /proc/<pid>/stat


@dataclass
class Attempt:
    """The record of one attempt.

    Attributes:
        path: Its file.
        record: Its content.
        send: Called with the file whenever that was written: puts it on the store where the results live.
    """

    path: Path
    record: dict[str, Any]
    send: Callable[[Path], None] = lambda _path: None

    def write(self, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """Add facts to the record and write it anew."""
        self.record |= facts
        with storage_errors(f"writing {self.path}"):
            self.path.parent.mkdir(exist_ok=True)
        write_json(self.path, self.record)
        if self.record["status"] == RUNNING:
            NOTES.keep_beside(self.path)
        else:
            NOTES.forget()
        self.send(self.path)


def process_facts() -> dict[str, Any]:
    """Return what identifies this process, even after its number was reused or the machine restarted."""
    pid = os.getpid()
    return {"pid": pid, "host": platform.node(), "boot_id": _boot_id(), "process_start": _process_start(pid)}


def status_of(layout: Layout, run_id: str) -> str | None:
    """Return the status in the record of an attempt, or None if there is no such record."""
    record = read_record(layout.attempt(run_id))
    return None if record is None else str(record.get("status"))


def crashed(layout: Layout, *, held: bool = False, settled: Collection[str] = ()) -> list[Path]:
    """Return the records that say `running` although the process is gone.

    Args:
        layout: The results folder.
        held: Whether the caller holds the lock: then no process on another host can have been at work for long, either;
            on a store, which has no lock, for a day.
        settled: Ids of attempts that are known to have ended.
    """
    longest = (ABANDONED_ON_STORES if layout.address else ABANDONED) if held else None
    paths = [layout.attempt(run_id) for run_id in layout.attempt_ids() if run_id not in settled]
    return [path for path in paths if _is_running(path) and _is_gone(read_record(path) or {}, held=longest)]


def settle(layout: Layout, published: dict[str, Path], latest: str) -> list[str]:
    """Complete the record of every attempt that was killed: `crashed`, or `published` if its run exists.

    Returns:
        What those attempts were reading when their processes ended, as sentences.

    Args:
        layout: The results folder, whose lock the caller holds.
        published: Folder of every kept run by its id.
        latest: Id of the latest run; those before it have been settled.
    """
    sentences = []
    for path in crashed(layout, held=True, settled=published.keys() - {latest}):
        record = read_record(path)
        if record is None:
            continue
        folder = published.get(path.stem)
        existing = None if folder is None else read_record(folder / RUN_RECORD)
        facts = {"status": CRASHED, "noticed_at": utc_now()}
        if existing is None and (words := noted(path)):
            facts["error"] = f"the process crashed or was killed while {words}"
            sentences.append(
                f"attempt {path.stem} of {record.get('started_at')} crashed or was killed while {words}; "
                "if this run ends there, too, without a word, then that file is damaged"
            )
        write_json(path, existing or record | facts)
    for path in layout.attempts.glob(".*.reading"):
        if RUN_ID.fullmatch(path.stem[1:]) and status_of(layout, path.stem[1:]) != RUNNING:
            remove_own(path, layout.root)
    return sentences


def settle_ended(path: Path, status: str, code: int, error: str) -> None:
    """Complete the record of an attempt whose process has ended, unless it is complete; if it cannot be written, go on.

    Args:
        path: The record.
        status: What it says from now on.
        code: Exit code of the command.
        error: What happened, and what to do.
    """
    record = read_record(path)
    if record is not None and record.get("status") == RUNNING:
        with suppress(ThresherError):
            write_json(path, record | {"status": status, "exit": code, "error": error, "ended_at": utc_now()})


def _is_running(path: Path) -> bool:
    try:
        return b'"status": "running"' in read_start(path, _START)
    except DamagedError:
        return False


def _is_gone(record: dict[str, Any], *, held: timedelta | None) -> bool:
    """Whether the process of a record that says `running` has ended; False if that is uncertain.

    Args:
        record: The record.
        held: How long a process on another host can have been at work; None: as long as it likes.
    """
    if record.get("status") != RUNNING:
        return False
    if record.get("host") != platform.node() or os.name != "posix":
        return held is not None and str(record.get("started_at")) < _iso_text(datetime.now(UTC) - held)
    if record.get("boot_id", _boot_id()) != _boot_id():
        return True
    pid = record.get("pid")
    if type(pid) is not int or not 0 < pid <= _LARGEST_PID or not _is_alive(pid):
        return True
    start = _process_start(pid)
    return bool(record.get("process_start", start) != start)


def _is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is another user's
        return True
    return True


def _boot_id() -> str:
    with suppress(OSError):
        return _BOOT_ID.read_text("ascii").strip()
    return ""


def _process_start(pid: int) -> str:
    """Return when a process started, in ticks since the machine was booted; empty if the system does not tell."""
    with suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[_START_FIELD]
    return ""


def _iso_text(time: datetime) -> str:
    return time.replace(tzinfo=None).isoformat(timespec="microseconds")


def utc_now() -> str:
    """Return the current time in UTC: ISO 8601 with microseconds, without a zone."""
    return _iso_text(datetime.now(UTC))
