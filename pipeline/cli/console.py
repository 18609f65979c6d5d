"""What people see on stderr: progress, summaries, warnings and errors; bars and tables on terminals only."""

from __future__ import annotations

import os
import shlex
import sys
import tomllib
import warnings
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ..errors import Interrupted, UsageError
from ..visible_text import rows_in_words
from .session import cleaned, json_line, numbers_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..errors import ThresherError
    from ..runs.opening import OpenedStage
    from ..runs.stage_results import Run, StageResult, Watcher

MOST_SUMMARY_ROWS = 20
FACTS_OF_GATES = ("gate", "stage", "condition", "group", "value", "limit", "p_adjusted", "outcome", "on_fail")
STYLES = {"warning": "yellow", "failure": "bold red"}


class Console:
    """Reports the progress of a run on stderr.

    Args:
        log_format: `text`, or `json` for one object per line.
        quiet: Whether to print errors only.
        run_id: Id of the run that the lines are about, until another one begins; empty: they are about none.
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
        with warnings.catch_warnings():
            if self._json:
                warnings.showwarning = self._library_warns  # type: ignore[assignment]  # where it comes from is not told
            yield

    def _library_warns(self, message: Warning | str, category: type[Warning], *_where: object) -> None:
        self.log("warning", f"{category.__name__}: {message}", event="warning")

    @contextmanager
    def watching(self) -> Iterator[Watcher]:
        """Provide a watcher; on a terminal it shows one live line while a stage reads its inputs."""
        from ..runs.stage_results import Watcher  # noqa: PLC0415 - an error message must not load the engine

        if not self.interactive:
            yield Watcher(
                on_run=self._begin,
                on_crash=self._crashed_before,
                on_stage=self._stage_begins,
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
            yield Watcher(
                on_run=self._begin,
                on_crash=self._crashed_before,
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

    def _crashed_before(self, sentence: str) -> None:
        self.log("warning", sentence, event="warning")

    def _stage_begins(self, name: str) -> None:
        self.log("info", f"stage {name}", event="stage_started", stage=name)

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


def parse_variable(text: str) -> tuple[str, str]:
    """Parse `NAME=VALUE`; the value is text as it stands.

    Raises:
        UsageError: there is no `=`.
    """
    name, equals, value = text.partition("=")
    if not equals or not name:
        message = f"--var {text}: write NAME=VALUE"
        raise UsageError(message, remedy="For example --var ds=2026-11-20.")
    return name, value


def parse_setting(text: str) -> tuple[str, Any]:
    """Parse `KEY=VALUE`, the value as in TOML; anything else is text.

    Raises:
        UsageError: there is no `=`, or a list, table or quoted text is not valid TOML.
    """
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
