"""Errors that Spark brings back from its workers: ours as they were raised, others as a fault of the worker."""

from __future__ import annotations

import pytest

from pipeline.base.errors import DataError, ThresherError, UnavailableError
from pipeline.engines.spark import translated

TRACEBACK = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "worker.py", line 1, in main
{error}
"""


def test_an_error_of_ours_is_told_as_it_was_raised() -> None:
    raised = f"{DataError.__module__}.DataError: input gold: two mentions are one\nKeep one of them."
    told = translated(RuntimeError(TRACEBACK.format(error=raised)), "SELECT 1")
    assert type(told) is DataError
    assert (told.message, told.remedy) == ("input gold: two mentions are one", "Keep one of them.")


@pytest.mark.parametrize("kind", ["pandas.errors.ParserError", "other.base.errors.DataError", "ValueError"])
def test_an_error_of_somebody_else_is_a_fault_of_the_worker(kind: str) -> None:
    told: ThresherError = translated(RuntimeError(TRACEBACK.format(error=f"{kind}: no such thing")), "SELECT 1")
    assert type(told) is UnavailableError
    assert "no such thing" in told.message
