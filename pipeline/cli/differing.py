"""`thresher diff`: what changed between two published runs."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

from ..report.diff.diff import blocks_of, run_difference
from ..report.published import kept_run, latest_run, run_before
from ..report.text.blocks import Paragraph
from .showing import check_format, write_blocks

if TYPE_CHECKING:
    from pathlib import Path

    from ..report.published import PublishedRun

FORMATS = ("text", "markdown", "json")


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
    check_format(format_, FORMATS)
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
