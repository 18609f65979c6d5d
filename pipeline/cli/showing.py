"""`thresher show`: what a published run shows a person, at any time and in a pipe."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..report.diff.diff import blocks_of, run_difference
from ..report.explain.evidence import checked_rows
from ..report.explain.writing import written
from ..report.published import kept_run, latest_run, run_before
from ..report.text import latex, markdown, plain, summary
from ..report.text.summary import Paragraph
from .terminal import width_of_output, write

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ..report.explain.explaining import Explanation
    from ..report.published import PublishedRun
    from ..report.text.summary import Block


FORMATS = ("text", "markdown", "latex")


def show_run(published: PublishedRun, stages: Sequence[str], format_: str, *, methods_only: bool) -> None:
    """Write what a run shows to stdout.

    Args:
        published: The run.
        stages: Names of the stages that are wanted; none: all.
        format_: `text`, `markdown` or `latex`.
        methods_only: Whether a paragraph for a methods section is written in place of the summary.

    Raises:
        UsageError: there is no such stage.
    """
    blocks_of = summary.blocks_of_methods if methods_only else summary.blocks_of_run
    write_blocks(blocks_of(published, published.chosen(stages)), format_)


def check_format(format_: str, formats: Sequence[str] = FORMATS) -> None:
    """Refuse an unknown format before anything is read.

    Raises:
        UsageError: it is none of the formats.
    """
    if format_ not in formats:
        message = f"unknown format {format_!r}"
        raise UsageError(message, remedy=f"Choose one of {', '.join(formats)}.")


def write_blocks(blocks: Iterable[Block], format_: str) -> None:
    """Write blocks to stdout; text is fitted to the terminal, and in a pipe to COLUMNS, or to 80."""
    if format_ == "markdown":
        text = markdown.text_of(blocks)
    elif format_ == "latex":
        text = latex.text_of(blocks)
    else:
        text = plain.text_of(blocks, width_of_output() or plain.WIDTH_OF_PIPES)
    sys.stdout.write(text)


# `thresher explain`: where a published number comes from, and the verdicts of a filled-in sheet, on stdout.


def write_explanation(explanation: Explanation, format_: str, *, brief: bool) -> None:
    """Write an explanation to stdout, fitted to the terminal if that is one, and in a pipe to COLUMNS if that is set.

    Args:
        explanation: What is to be written.
        format_: `text`, `markdown`, `csv` (the rows of one section) or `json` (all of it).
        brief: Whether the number and the rows behind it are enough.

    Raises:
        UsageError: the format is unknown, or CSV is asked of several sections.
    """
    write(written(explanation, format_, width_of_output(), brief=brief))


def write_checked(run: PublishedRun, name: str, path: Path) -> None:
    """Write the verdicts of a filled-in sheet as Parquet to stdout.

    Args:
        run: The run that drew the sample.
        name: Name of its stage.
        path: The sheet, CSV.

    Raises:
        UsageError: stdout is a terminal, or the stage has no sample.
        DataError: the sheet is not that of the sample, or has a verdict that is none.
    """
    if sys.stdout.isatty():
        message = "Parquet is not for a terminal"
        raise UsageError(message, remedy=f"Send it to a file: … --checked {path} > audited.parquet")
    checked_rows(run.chosen([name])[0], path).write_parquet(sys.stdout.buffer)


# `thresher diff`: what changed between two published runs.


DIFF_FORMATS = ("text", "markdown", "json")


def diff_runs(results: Path, before: str | None, after: str | None, with_results: Path | None, format_: str) -> None:
    """Write what changed between two runs to stdout.

    Args:
        results: The output folder of a run.
        before: The first run by generation, run id or folder; None: the kept run before the second, or with another
            results folder the latest.
        after: The second run; None: the latest.
        with_results: The results folder of the second run; None: the same.
        format_: `text`, `markdown` or `json`.

    Raises:
        UsageError: there is no such run or format.
    """
    check_format(format_, DIFF_FORMATS)
    second = _run(with_results or results, after)
    if before is None and with_results is None:
        first = run_before(results, second)
        if first is None:
            _say(
                f"No run before {second.folder.name} is kept, so there is nothing to compare it with.",
                format_,
            )
            return
    else:
        first = _run(results, before)
    if first.folder == second.folder:
        _say(f"Both are the run {first.folder.name}: nothing changed.", format_)
        return
    difference = run_difference(first, second)
    if format_ == "json":
        sys.stdout.write(f"{json.dumps(asdict(difference), indent=2, ensure_ascii=False)}\n")
    else:
        write_blocks(blocks_of(difference, first, second), format_)


def _run(results: Path, name: str | None) -> PublishedRun:
    return latest_run(results) if name is None else kept_run(results, name)


def _say(sentence: str, format_: str) -> None:
    if format_ == "json":
        sys.stdout.write(f"{json.dumps({'nothing_changed': sentence}, ensure_ascii=False)}\n")
    else:
        write_blocks([Paragraph(sentence)], format_)
