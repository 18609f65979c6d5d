"""Which outcomes of gates make a run fail."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


GATE_FAILED = 3  # exit code of a run that is published although a gate failed


def exit_code(rows: Sequence[Mapping[str, Any]]) -> int:
    """Return the exit code of a published run with these rows of the table `gates`: 3 if one fails, else 0."""
    return GATE_FAILED if any(is_failure(row) for row in rows) else 0


def is_failure(row: Mapping[str, Any]) -> bool:
    """Whether a row of the table `gates` makes the run exit with 3."""
    return bool(row["outcome"] == "failed" and row["on_fail"] == "fail")
