"""What every command does: report progress, print the result, and turn an error into its exit code."""

from __future__ import annotations

import io
import os
import signal
import sys
import tempfile
import traceback
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import typer

from ..errors import Interrupted, ThresherError, system_fault
from ..interrupts import leaving_at_once
from .terminal import LOG_FORMATS, cleaned, json_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .console import Console


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
