"""`thresher explain`: where a published number comes from, and the verdicts of a filled-in sheet, on stdout."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from ..errors import UsageError
from ..report.explain.checked import checked_rows
from ..report.explain.writing import written
from .terminal import width_of_output, write

if TYPE_CHECKING:
    from pathlib import Path

    from ..report.explain.explaining import Explanation
    from ..report.published import PublishedRun


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
