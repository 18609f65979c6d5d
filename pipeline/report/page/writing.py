"""Write the report of a run as a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import CannotCreateError, os_fault
from ...runs.written import report_file
from .page import report

if TYPE_CHECKING:
    from pathlib import Path

    from ..published import PublishedRun

FILE_NAME = "report.html"


def write_report(run: PublishedRun, results: Path, path: Path | None = None) -> Path:
    """Write the page of a run, whole or not at all.

    Args:
        run: The run.
        results: Its results folder, absolute.
        path: The file; default: `report.html` in the results folder.

    Returns:
        The path of the file.

    Raises:
        CannotCreateError: the file cannot be written there.
    """
    file = path or results / FILE_NAME
    if file.is_dir():
        message = f"the report {file} is a folder"
        raise CannotCreateError(message, remedy="Name a file with --output.")
    own = report_file(file)
    if own.fault:
        message = f"the report {file} cannot be written: it {own.fault}"
        raise CannotCreateError(message, remedy=own.remedy)
    content = report(run, results).encode()
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        fault = os_fault(error, f"the folder {file.parent} cannot be written")
        raise CannotCreateError(fault.message, remedy="Name another file with --output.") from error
    own.replace(content)
    return file
