"""What every command does: report progress, print the result, turn an error into its exit code, and never hang."""

from __future__ import annotations

import faulthandler
import io
import json
import math
import os
import select
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import typer

from ..errors import Interrupted, ResourceError, StorageError, ThresherError, system_fault
from ..interrupts import NOTES, SAME_REQUEST, STOP_SIGNALS, leaving_at_once
from ..visible_text import cleaned

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl
    from typing_extensions import Buffer

    from .console import Console


# Text for people: nothing in a file name, a group value or a message can control the terminal.


__all__ = ["cleaned", "forgive_full_stderr", "open_closed_streams", "width_of_output", "write"]


def write(text: str) -> None:
    """Write text to stdout, cleaned if stdout is a terminal."""
    sys.stdout.write(cleaned(text) if sys.stdout.isatty() else text)


def width_of_output() -> int | None:
    """Return how many columns the terminal has, or COLUMNS says in a pipe; None: nobody has said."""
    asked = os.environ.get("COLUMNS", "")
    is_asked = asked.isdecimal() and int(asked) > 0
    return shutil.get_terminal_size().columns if sys.stdout.isatty() or is_asked else None


def open_closed_streams() -> None:
    """Let what is written to stdout or stderr vanish where a scheduler has started the process with it closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: PTH123, SIM115 - no path, and never closed


class _Forgiving(io.RawIOBase):
    """A stream whose writes vanish where they cannot be written: a full disk behind a log, a reader that has gone."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def isatty(self) -> bool:
        return os.isatty(self._descriptor)

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer, /) -> int:
        view = memoryview(data)
        with suppress(OSError):
            return os.write(self._descriptor, view)
        return len(view)


def forgive_full_stderr() -> None:
    """Let no run stop because its log cannot be written: what stderr does not take vanishes."""
    stream = sys.stderr
    if stream is sys.__stderr__ and isinstance(stream, io.TextIOWrapper):
        with suppress(OSError, ValueError):
            forgiving = io.BufferedWriter(_Forgiving(stream.fileno()))
            sys.stderr = io.TextIOWrapper(forgiving, stream.encoding, stream.errors, line_buffering=True)


# Lines of the log as JSON: one object a line, the same fields everywhere, nothing that JSON cannot hold.


LOG_FORMATS = ("text", "json")
OPTION = "--log-format"
MOST_NUMBERS = 20
_FIELDS = ("grouping", "group", "criterion", "metric", "value", "lower", "upper")


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether the words of a command line choose lines of JSON, also where the rest of them cannot be parsed."""
    return f"{OPTION}=json" in words or (OPTION, "json") in pairwise(words)


def json_line(level: str, event: str, message: str, facts: Mapping[str, Any]) -> str:
    """Return one line of the log, an object without a line break.

    Args:
        level: `info`, `warning` or `error`.
        event: What happened; docs/operations.md lists the events.
        message: The same for people.
        facts: Further fields; numbers that are not finite become null.
    """
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {"time": time, "level": level, "event": event, "message": message, **facts}
    return json.dumps(_finite(line), default=str, allow_nan=False)


def _finite(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def numbers_of(key_figures: pl.DataFrame) -> dict[str, Any]:
    """Return the first numbers of a stage that are defined, the total before groups.

    Args:
        key_figures: Its rows of the table `metrics`.
    """
    defined = [row for row in key_figures.iter_rows(named=True) if row["value"] is not None]
    in_order = sorted(defined, key=lambda row: row["grouping"] != "all")
    numbers = [{name: row[name] for name in _FIELDS} for row in in_order[:MOST_NUMBERS]]
    for number in numbers:
        number["group"] = json.loads(number["group"])
    return {"numbers": numbers, "numbers_left_out": len(in_order) - len(numbers)}


# A thread that ends a command which holds too much memory, waits for a disk, or heeds no signal; it says why.
#
# All three are things that the main thread cannot see to while it is in a library.


OPENING_SECONDS = 300.0
GROWTH = 4e9  # bytes per second: no process was seen to fill memory faster
_SHORTEST, _LONGEST = 0.01, 0.25  # seconds
_SECONDS_TO_OBEY = 1.0
_MB = 1_000_000
_LESS_MEMORY = "Raise memory in [resources], or use fewer or shorter group values, thresholds or replicates."


@contextmanager
def watched() -> Iterator[None]:
    """Watch this process within the context, and let a crash of a library say where it happened."""
    with suppress(AttributeError, OSError, ValueError):  # stderr is closed
        faulthandler.enable(all_threads=False)
    if os.name != "posix":  # Windows waits for sockets alone
        yield
        return
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    before = signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    if hasattr(os, "register_at_fork"):  # signals to a forked process are no requests to this one
        os.register_at_fork(after_in_child=lambda: signal.set_wakeup_fd(-1))
    NOTES.is_watched = True
    threading.Thread(target=_watch, args=(reader,), daemon=True).start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        os.close(writer)  # which ends the thread


def _watch(reader: int) -> None:
    requests: list[tuple[float, int]] = []
    while True:
        fault = _fault(requests)
        if fault is not None:
            _end(fault)
        limit = NOTES.memory
        pause = _LONGEST if limit is None else pause_until_full(resident_bytes(), limit.process)
        ready, _, _ = select.select([reader], (), (), pause)
        if ready:
            numbers = os.read(reader, 64)
            if not numbers:
                return
            now = time.monotonic()
            for number in numbers:
                if number in STOP_SIGNALS and (not requests or now > requests[-1][0] + SAME_REQUEST):
                    requests.append((now, number))


def _fault(requests: list[tuple[float, int]]) -> ThresherError | None:
    """Return why the process has to end, if it has to."""
    note, limit, now = NOTES.note, NOTES.memory, time.monotonic()
    if len(requests) > 1 and now > requests[1][0] + _SECONDS_TO_OBEY:
        return Interrupted(requests[1][1])
    if note.opened_at and now > note.opened_at + OPENING_SECONDS:
        message = f"opening {note.files[0]} took longer than {OPENING_SECONDS:.0f} s"
        return StorageError(message, remedy="Its disk or network share does not answer: check it, then run again.")
    held = 0 if limit is None else resident_bytes()
    if limit is None or held <= limit.process:
        return None
    message = (
        f"the process held {held / _MB:,.0f} MB of memory{f' while {note}' if note.files else ''}, more than "
        f"{limit.process / _MB:,.0f} MB: the limit of the engine, {limit.engine / _MB:,.0f} MB"
        f"{' by default' if limit.is_default else ''}, and a margin for Python"
    )
    return ResourceError(message, remedy=_LESS_MEMORY)


def _end(fault: ThresherError) -> None:
    """Tell why on stderr and in the record of the attempt, and end the process at once."""
    try:
        from ..storage import state  # noqa: PLC0415 - only here
        from .console import Console  # noqa: PLC0415 - only here

        fault.message = NOTES.concealed(fault.message)
        attempt = NOTES.attempt
        if attempt is not None:
            status = state.INTERRUPTED if isinstance(fault, Interrupted) else state.FAILED
            told = fault.message if fault.remedy is None else f"{fault.message}\n{fault.remedy}"
            state.settle_ended(attempt, status, fault.code, told)
            NOTES.forget()
        log_format = "json" if asks_for_json(sys.argv) else "text"
        Console(log_format=log_format, run_id="" if attempt is None else attempt.stem).error(fault)
        sys.stderr.flush()
    finally:
        os._exit(fault.code)


def resident_bytes() -> int:
    """Return the resident memory of this process; 0 where the system does not tell."""
    with suppress(OSError, IndexError, ValueError), open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - 20 times a second
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    return 0


def pause_until_full(resident: int, ceiling: int) -> float:
    """Return the seconds after which to look again, so that a process cannot grow far beyond its ceiling meanwhile."""
    return min(max((ceiling - resident) / GROWTH, _SHORTEST), _LONGEST)


# What every command does: report progress, print the result, and turn an error into its exit code.


def execute(config: Any, console: Console) -> None:  # noqa: ANN401 - a Config, which help must not import
    """Run a checked config, report its progress, and print the path of the run."""
    from ..runs import runner  # noqa: PLC0415 - help needs none of it
    from ..runs.stage_results import GATE_FAILED  # noqa: PLC0415 - likewise

    with console.watching() as watcher:
        finished = runner.run(config, watcher)
    if console.interactive and not finished.stages:
        from ..report.published import read_run  # noqa: PLC0415 - an unchanged run on a terminal
        from ..runs.stage_results import StageResults  # noqa: PLC0415

        finished = replace(finished, stages=StageResults(stage.result() for stage in read_run(finished.path).stages))
    console.finished(finished)
    # write the path of a run to stdout
    try:
        echo(finished.place)
    except BrokenPipeError:
        raise
    except OSError as error:  # readers see the run already: a late failure is a warning
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115 - never written or closed
        told = f"{finished.status} {finished.place}, but stdout cannot be written: {error.strerror}"
        console.log("warning", told, event="warning")
    for failure in finished.failures:
        fault = failure.fault if isinstance(failure.error, ThresherError) else system_fault(failure.error)
        fault = fault or _bug(failure.error)
        console.error(fault, stage=failure.stage)
    if finished.exit_code == GATE_FAILED:
        console.log("error", f"{finished.status}, but a gate failed  [exit {GATE_FAILED}]", event="gate_failed")
    if finished.exit_code:
        raise typer.Exit(finished.exit_code)


def echo(text: object) -> None:
    """Print one line to stdout, cleaned if stdout is a terminal."""
    typer.echo(cleaned(str(text)) if sys.stdout.isatty() else text)


@contextmanager
def cleaned_faults() -> Iterator[None]:
    """Clean the messages of the command line's parser, which repeat its input."""
    try:
        yield
    except Exception as error:
        message = getattr(error, "message", None)
        if isinstance(message, str) and not isinstance(error, ThresherError):
            error.message = cleaned(message, layout="\n")  # type: ignore[attr-defined]
        raise


@contextmanager
def usage_errors_as_json(*, wanted: bool) -> Iterator[None]:
    """Write the errors of the command line's parser as one line of JSON if that is wanted.

    Raises:
        typer.Exit: in their place, with their exit code.
    """
    try:
        yield
    except Exception as error:
        formatted, code = getattr(error, "format_message", None), getattr(error, "exit_code", None)
        if not wanted or formatted is None or code is None:
            raise
        line = json_line("error", "error", cleaned(formatted()), {"remedy": None, "exit": code})
        typer.echo(line, err=True)
        raise typer.Exit(code) from error


LAST_FRAMES = 5


@contextmanager
def reporting(ctx: typer.Context, *, quiet: bool = False, log_format: str | None = None) -> Iterator[Console]:
    """Turn an error into a message on stderr and an exit code; stdout writes every character."""
    from .console import Console  # noqa: PLC0415

    chosen = log_format or ctx.find_root().obj or "text"
    if chosen not in LOG_FORMATS:
        message = "--log-format must be text or json"
        raise typer.BadParameter(message)
    console = Console(log_format=chosen, quiet=quiet)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with console.logged_warnings(), leaving_at_once(lambda stop: f"{console.told(stop)}\n"):
            yield console
    except ThresherError as error:
        console.error(error)
        raise typer.Exit(error.code) from error
    except BrokenPipeError:
        sys.stderr.close()
        raise typer.Exit(0) from None
    except KeyboardInterrupt as stop:
        interrupted = Interrupted(signal.SIGINT)
        console.error(interrupted)
        raise typer.Exit(interrupted.code) from stop
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        fault = system_fault(error) or _bug(error)
        console.error(fault)
        raise typer.Exit(fault.code) from error


def _bug(error: Exception) -> ThresherError:
    """Report an unforeseen error: a message, and the traceback in a file, or its end if no file can be written."""
    message = f"{type(error).__name__}: {error}"
    try:
        descriptor, path = tempfile.mkstemp(prefix="thresher-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.writelines(traceback.format_exception(error))
    except OSError:
        frames = traceback.extract_tb(error.__traceback__)[-LAST_FRAMES:]
        calls = "; ".join(f"{frame.name} in {frame.filename}, line {frame.lineno}" for frame in frames)
        return ThresherError(message, remedy=f"This is a bug of thresher; please report it. It came from: {calls}.")
    return ThresherError(message, remedy=f"This is a bug of thresher; please report it with {path}.")
