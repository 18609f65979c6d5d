"""Shared by all commands: report progress, print the result, turn an error into its exit code, and never hang.

Results go to stdout, and all else that people or machines read to stderr, by way of a `Console`.
"""

from __future__ import annotations

import faulthandler
import io
import json
import math
import os
import select
import shlex
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
import warnings
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import typer

from ..base.errors import Interrupted, ResourceError, StorageError, ThresherError, UsageError, system_fault
from ..base.interrupts import NOTES, SAME_REQUEST, STOP_SIGNALS, leaving_at_once
from ..base.visible_text import cleaned, rows_in_words

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl
    from typing_extensions import Buffer

    from ..runs.opening import OpenedStage
    from ..runs.stage_results import Run, StageResult, Watcher


# Text for people: nothing in a file name, a group value or a message can control the terminal.


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
    """Return one line of the log, an object without a line break: an event, the same for people, and further facts.

    Numbers that are not finite become null; docs/operations.md lists the events.
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
    """Return the first numbers of a stage, in its rows of the table `metrics`, that are defined: first the total."""
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
    """Write the errors of the command line's parser as one line of JSON if that is wanted, and exit with their code."""
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


MOST_SUMMARY_ROWS = 20
FACTS_OF_GATES = ("gate", "stage", "condition", "group", "value", "limit", "p_adjusted", "outcome", "on_fail")
STYLES = {"warning": "yellow", "failure": "bold red"}


class Console:
    """Reports the progress of a run on stderr, as text or, with `json`, one object per line; or errors only.

    The lines are about the run `run_id`, until another one begins; empty: about none.
    """

    def __init__(self, *, log_format: str = "text", quiet: bool = False, run_id: str = "") -> None:
        self._json = log_format == "json"
        self._quiet = quiet
        self._run_id = run_id
        terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and "CI" not in os.environ
        self.interactive = terminal and not self._json and not quiet

    def log(self, level: str, message: str, *, event: str, **facts: Any) -> None:  # noqa: ANN401 - what JSON can hold
        """Write one line, or one JSON object."""
        if not self._quiet or level == "error":
            print(self._line(level, event, message, facts), file=sys.stderr)  # noqa: T201 - progress goes to stderr

    def error(self, error: ThresherError, stage: str = "") -> None:
        """Write what went wrong, in which stage if the others went on, what to do, and the exit code."""
        print(self.told(error, stage), file=sys.stderr)  # noqa: T201 - see log

    def told(self, error: ThresherError, stage: str = "") -> str:
        """Return the error as text without a line break at its end; it takes what `error` takes."""
        message = f"stage {stage!r} failed: {error.message}" if stage else error.message
        if self._json:
            ending = "interrupted" if isinstance(error, Interrupted) else "failed"
            event = "stage_failed" if stage else f"run_{ending}" if self._run_id else "error"
            facts = {"stage": stage} if stage else {}
            return self._line("error", event, message, {"remedy": error.remedy, "exit": error.code} | facts)
        first, *more = [line for part in (message, error.remedy) if part for line in part.splitlines()]
        lines = [f"error: {first}", *(f"       {line}" for line in more)]
        return cleaned("\n".join(lines) + f"  [exit {error.code}]")

    def _line(self, level: str, event: str, message: str, facts: dict[str, Any]) -> str:
        if not self._json:
            return cleaned(f"{level}: {message}")
        run = {"run_id": self._run_id} if self._run_id else {}
        return json_line(level, event, message, run | facts)

    @contextmanager
    def logged_warnings(self) -> Iterator[None]:
        """Write the warnings of libraries as lines of the log where every line is an object."""

        def told(message: Warning | str, category: type[Warning], *_where: object) -> None:
            self.log("warning", f"{category.__name__}: {message}", event="warning")

        with warnings.catch_warnings():
            if self._json:
                warnings.showwarning = told  # type: ignore[assignment]  # where it comes from is not told
            yield

    @contextmanager
    def watching(self) -> Iterator[Watcher]:
        """Provide a watcher; on a terminal it shows one live line while a stage reads its inputs."""
        from ..runs.stage_results import Watcher  # noqa: PLC0415 - an error message must not load the engine

        watcher = Watcher(self._begin, lambda sentence: self.log("warning", sentence, event="warning"))
        if not self.interactive:
            yield replace(
                watcher,
                on_stage=lambda name: self.log("info", f"stage {name}", event="stage_started", stage=name),
                on_opened=self._inputs_found,
                on_result=self._stage_ends,
                on_taken_over=self._stage_taken_over,
            )
            return
        from rich.console import Console as RichConsole  # noqa: PLC0415 - only for terminals
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415
        from rich.text import Text  # noqa: PLC0415

        from ..sources.bindings import bindings_in_words  # noqa: PLC0415 - as the runner

        columns = (TextColumn("{task.fields[stage]}", markup=False), BarColumn(), TimeElapsedColumn())
        rich = RichConsole(stderr=True)

        def show(opened: OpenedStage) -> None:
            for line in bindings_in_words(opened.bindings):
                rich.print(Text(cleaned(f"{opened.name}  {line}"), style="dim"))

        def taken_over(name: str, attempt: str) -> None:
            rich.print(Text(f"{name}  taken over from run {attempt}: nothing has changed since", style="dim"))

        with Progress(*columns, console=rich, transient=True) as progress:
            task = progress.add_task("", total=100, stage="opening")
            yield replace(
                watcher,
                on_stage=lambda name: progress.update(task, stage=name, completed=0),
                on_opened=show,
                on_taken_over=taken_over,
                on_progress=lambda percent: progress.update(task, completed=max(percent, 0)),
            )

    def between_runs(self) -> None:
        """Let the lines that follow be about no run, until one begins."""
        self._run_id = ""

    def _begin(self, run_id: str) -> None:
        self._run_id = run_id
        if self._json:
            self.log("info", f"run {run_id}", event="run_started")

    def _inputs_found(self, opened: OpenedStage) -> None:
        from ..sources.bindings import bindings_in_words  # noqa: PLC0415 - see watching

        for line in bindings_in_words(opened.bindings):
            self.log("info", f"{opened.name} reads {line}", event="bindings", stage=opened.name)

    def _stage_ends(self, result: StageResult) -> None:
        facts = {"stage": result.name, "rows": result.n_rows, "seconds": round(result.seconds, 3)}
        if self._json and result.key_figures is not None:
            facts |= numbers_of(result.key_figures)
        message = f"stage {result.name}: {rows_in_words(result.n_rows)} in {result.seconds:.1f} s"
        self.log("info", message, event="stage_finished", **facts)
        for words in result.reused:
            self.log("info", f"stage {result.name}: {words}", event="reuse", stage=result.name)

    def _tell_gates(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write what gates found: failures that make the run exit with 3 as errors, which --quiet leaves."""
        from ..report.summary import summary_of_gates  # noqa: PLC0415 - see watching
        from ..runs.stage_results import is_failure  # noqa: PLC0415 - likewise

        if self._json:
            for row in rows:
                level = "error" if is_failure(row) else "info" if row["outcome"] == "passed" else "warning"
                self.log(level, row["sentence"], event="gate", **{name: row[name] for name in FACTS_OF_GATES})
        elif (summary := summary_of_gates(rows)) is not None:
            for text in summary.passed:
                self.log("info", f"gate {text}", event="gate")
            for text in summary.failed:
                self.log("error", f"gate {text}", event="gate")

    def _stage_taken_over(self, name: str, attempt: str) -> None:
        message = f"stage {name}: taken over from run {attempt}, which counted the same inputs with the same config"
        self.log("info", message, event="stage_taken_over", stage=name, counted_by=attempt)

    def finished(self, run: Run) -> None:
        """Report the end of a run: tables and warnings for people, log lines for machines."""
        if not self.interactive:
            self._tell_gates(run.gates)
            for warning in run.warnings:
                self.log("warning", warning, event="warning")
            for note in run.notes:
                self.log("info", f"note: {note}" if not self._json else note, event="note")
            facts: dict[str, Any] = {"status": run.status, "path": run.place, "exit": run.exit_code}
            facts["seconds"] = round(run.seconds, 3)
            if run.stages:
                facts["rows"] = sum(stage.n_rows for stage in run.stages if not stage.carried)
            self.log("info", f"{run.status} {run.path.name} in {run.seconds:.1f} s", event=f"run_{run.status}", **facts)
            return
        from rich.console import Console as RichConsole  # noqa: PLC0415 - only for terminals
        from rich.text import Text  # noqa: PLC0415

        from ..report import summary, text  # noqa: PLC0415 - likewise

        rich = RichConsole(stderr=True)
        shown = [stage for stage in run.stages if not stage.carried]  # of the others the warnings tell
        blocks = [block for stage in shown for block in summary.blocks_of_stage(stage, MOST_SUMMARY_ROWS)]
        if run.warnings:
            blocks.append(summary.warnings_block(run.warnings))
        blocks += summary.blocks_of_gates(run.gates)
        for block in blocks:
            style = STYLES.get(getattr(block, "tone", ""), "")
            lines = "\n".join(text.lines_of(block, rich.width))
            rich.print(Text(f"{lines}\n", style=style), soft_wrap=True)
        for stage in run.stages:
            for words in stage.reused:
                rich.print(Text(cleaned(f"{stage.name}  {words}"), style="dim"))
        verb = "Unchanged since" if run.status == "unchanged" else "Published"
        rich.print(f"{verb} {run.path.name}  ({run.seconds:.1f} s)", highlight=False)
        results = shlex.quote(cleaned(run.results, layout=""))
        if run.notes:
            notes = f"{summary.notes_in_words(run.notes)}: thresher show {results}"
            rich.print(Text(notes, style="dim"), soft_wrap=True)
        rich.print(f"Report: thresher report {results}", markup=False, highlight=False, soft_wrap=True)


def parse_named(
    texts: Sequence[str] | None, option: str = "--var", example: str = "--var ds=2026-11-20."
) -> dict[str, str]:
    """Parse texts `NAME=VALUE` of an option; the value is text as it stands."""
    values = {}
    for text in texts or ():
        name, equals, values[name] = text.partition("=")
        if not equals or not name:
            message = f"{option} {text}: write NAME=VALUE"
            raise UsageError(message, remedy=f"For example {example}")
    return values


def parse_setting(text: str) -> tuple[str, Any]:
    """Parse `KEY=VALUE`, the value as in TOML; anything else is text, but for a wrong list, table or quoted text."""
    import tomllib  # noqa: PLC0415 - few commands set keys

    key, equals, value = text.partition("=")
    if not equals or not key:
        message = f"--set {text}: write KEY=VALUE"
        raise UsageError(message, remedy="For example --set stages.before_after.boundary='\">\"'.")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError) as error:  # no TOML, a number too long, tables too deep
        if value.strip()[:1] in {"[", "{", '"', "'"}:  # anything else is text without its quotes
            message = f"--set {text}: the value is not TOML ({error})"
            remedy = "Write numbers with a digit before the point, 0.5, and text in quotes."
            raise UsageError(message, remedy=remedy) from error
        return key.strip(), value
