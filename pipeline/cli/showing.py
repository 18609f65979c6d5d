"""`thresher show`: what a published run shows a person, at any time and in a pipe."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..report.published import kept_run, latest_run
from ..report.text import latex, markdown, methods, plain, summary
from .terminal import width_of_output

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from ..report.text.blocks import Block

FORMATS = ("text", "markdown", "latex")


def show_run(results: Path, stages: Sequence[str], run: str | None, format_: str, *, methods_only: bool) -> None:
    """Write what a run shows to stdout.

    Args:
        results: The output folder of a run.
        stages: Names of the stages that are wanted; none: all.
        run: A kept run by generation, run id or folder; None: the latest.
        format_: `text`, `markdown` or `latex`.
        methods_only: Whether a paragraph for a methods section is written in place of the summary.

    Raises:
        UsageError: there is no such run, stage or format.
    """
    check_format(format_)
    published = latest_run(results) if run is None else kept_run(results, run)
    blocks_of = methods.blocks_of_methods if methods_only else summary.blocks_of_run
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
