"""What people see: progress, summaries, warnings and errors, on stderr and for terminals only."""

from __future__ import annotations

import json
import os
import sys
import tomllib
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pipeline.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.errors import ThresherError
    from pipeline.runner import Run, StageResult, Watcher

BLOCKS = " ▁▂▃▄▅▆▇█"
CURVE_WIDTH = 60
MOST_ROWS = 20


class Console:
    """Where the story of a run goes.

    Args:
        log_format: `text`, or `json` for one object per line.
        quiet: Whether only errors are told.
    """

    def __init__(self, *, log_format: str = "text", quiet: bool = False) -> None:
        self._json = log_format == "json"
        self._quiet = quiet
        terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb" and "CI" not in os.environ
        self.interactive = terminal and not self._json and not quiet

    def log(self, level: str, message: str, **facts: Any) -> None:  # noqa: ANN401 - whatever JSON can hold
        """One line, or one object."""
        if self._quiet and level != "error":
            return
        if self._json:
            moment = datetime.now(UTC).isoformat(timespec="milliseconds")
            print(json.dumps({"time": moment, "level": level, "message": message, **facts}), file=sys.stderr)  # noqa: T201
        else:
            print(f"{level}: {message}", file=sys.stderr)  # noqa: T201 - stderr is where the story goes

    def error(self, error: ThresherError) -> None:
        """What went wrong, what to do, and the exit code."""
        if self._json:
            self.log("error", error.message, remedy=error.remedy, exit=error.code)
            return
        first, *more = [line for part in (error.message, error.remedy) if part for line in part.splitlines()]
        lines = [f"error: {first}", *(f"       {line}" for line in more)]
        print("\n".join(lines) + f"  [exit {error.code}]", file=sys.stderr)  # noqa: T201

    @contextmanager
    def watching(self) -> Iterator[Watcher]:
        """A watcher that shows one live line while a stage reads its inputs, on a terminal."""
        from pipeline.runner import Watcher  # noqa: PLC0415 - an error message must not load the engine

        if not self.interactive:
            yield Watcher(on_stage=lambda name: self.log("info", f"stage {name}", stage=name))
            return
        from rich.console import Console as RichConsole  # noqa: PLC0415 - only for terminals
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn  # noqa: PLC0415

        columns = (TextColumn("{task.fields[stage]}", markup=False), BarColumn(), TimeElapsedColumn())
        with Progress(*columns, console=RichConsole(stderr=True), transient=True) as progress:
            task = progress.add_task("", total=100, stage="opening")
            yield Watcher(
                on_stage=lambda name: progress.update(task, stage=name, completed=0),
                on_progress=lambda percent: progress.update(task, completed=max(percent, 0)),
            )

    def finished(self, run: Run) -> None:
        """The end of a run: tables and warnings for people, log lines for machines."""
        if not self.interactive:
            for warning in run.warnings:
                self.log("warning", warning)
            self.log(
                "info", f"{run.status} {run.path.name} in {run.seconds:.1f} s", status=run.status, path=str(run.path)
            )
            return
        from rich.console import Console as RichConsole  # noqa: PLC0415 - only for terminals

        rich = RichConsole(stderr=True)
        for stage in run.stages:
            _print_stage(rich, stage)
        if run.warnings:
            rich.print(
                f"{len(run.warnings)} warning{'s' if len(run.warnings) > 1 else ''}", style="yellow", highlight=False
            )
            for warning in run.warnings:
                rich.print(f"  {warning}", markup=False, style="yellow", highlight=False)
        verb = "Unchanged since" if run.status == "unchanged" else "Published"
        rich.print(f"{verb} {run.path.name}  ({run.seconds:.1f} s)", highlight=False)


def _print_stage(rich: Any, stage: StageResult) -> None:  # noqa: ANN401 - a rich console
    from rich.table import Table  # noqa: PLC0415 - only for terminals
    from rich.text import Text  # noqa: PLC0415

    summary = stage.summary
    table = Table(title=Text(f"{stage.name}  {stage.kind}  {stage.seconds:.1f} s"), title_justify="left")
    for index, header in enumerate(summary.headers):
        table.add_column(Text(header), justify="left" if index == 0 else "right")
    for row in summary.rows[:MOST_ROWS]:
        table.add_row(*(Text(cell) for cell in row))
    rich.print(table)
    if len(summary.rows) > MOST_ROWS:
        rich.print(f"… {len(summary.rows) - MOST_ROWS} more groups", highlight=False)
    rich.print(Text(summary.sentence))
    if summary.curve is not None:
        rich.print(Text(f"{draw(summary.curve)}  {summary.curve_title}"))


def draw(values: Sequence[float | None], width: int = CURVE_WIDTH) -> str:
    """A curve of values between 0 and 1 as block characters; a gap where a value is undefined."""
    if not values:
        return ""
    step = max(1.0, len(values) / width)
    shown = [values[int(index * step)] for index in range(min(width, len(values)))]
    top = len(BLOCKS) - 1
    return "".join(" " if value is None else BLOCKS[max(1, round(min(max(value, 0.0), 1.0) * top))] for value in shown)


def parse_setting(text: str) -> tuple[str, Any]:
    """`KEY=VALUE`, the value as in TOML; what is no TOML value is text.

    Raises:
        UsageError: there is no `=`, or a list, table or quoted text is not TOML.
    """
    key, equals, value = text.partition("=")
    if not equals or not key:
        message = f"--set {text}: write KEY=VALUE"
        raise UsageError(message, remedy="For example --set stages.before_after.boundary='\">\"'.")
    try:
        return key.strip(), tomllib.loads(f"value = {value}")["value"]
    except (ValueError, RecursionError) as error:  # also numbers that are too long, and lists too deep
        if value.strip()[:1] in {"[", "{", '"', "'"}:  # anything else is text without its quotes
            message = f"--set {text}: the value is not TOML ({error})"
            remedy = "Write numbers with a digit before the point, 0.5, and text in quotes."
            raise UsageError(message, remedy=remedy) from error
        return key.strip(), value
