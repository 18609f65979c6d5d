"""Errors of Spark in our words."""

from __future__ import annotations

import re

from pipeline import errors
from pipeline.engines.faults import UNREADABLE
from pipeline.errors import DataError, InvalidQueryError, ResourceError, ThresherError, UnavailableError, UncomputableError

_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\]\s*(?P<reason>[^\n]*)")
_OF_VALUES = ("CAST_", "DIVIDE_BY_ZERO", "ARITHMETIC_OVERFLOW", "NUMERIC_", "DATETIME_", "INVALID_ARRAY", "BINARY_")
_OF_SQL = ("PARSE_", "UNRESOLVED_", "DATATYPE_MISMATCH", "TABLE_OR_VIEW", "WRONG_NUM_ARGS", "INVALID_SQL", "MISSING_")
_OF_FILES = ("FAILED_READ_FILE", "CANNOT_READ_FILE", "PATH_NOT_FOUND", "PARQUET_", "UNABLE_TO_INFER", "FILE_NOT_EXIST")
_OURS = re.compile(r"^pipeline\.errors\.(?P<kind>\w+): (?P<text>.*?)(?=^\s*SQLSTATE|^\s+at |\Z)", re.MULTILINE | re.DOTALL)
_RAISED = re.compile(r"^[\w.]+(Error|Exception|Interrupt): .+$", re.MULTILINE)


def translated(error: Exception, text: str) -> ThresherError:
    """Return an error that Spark raised for a query as one of ours: it says what is at fault, and what to do."""
    message = str(error)
    conditions = [(match["name"], match["reason"].partition(" SQLSTATE:")[0].strip()) for match in _CONDITION.finditer(message)]
    for name, reason in conditions:
        if name.startswith(_OF_VALUES):
            remedy = "Check the types of the columns that `where` compares, and the values of text that is cast."
            return UncomputableError("a value cannot be computed", reason.partition(" Use `")[0], remedy=remedy)
    for name, reason in conditions:
        if name.startswith(_OF_FILES):
            return DataError(f"an input cannot be read: {reason}", remedy=UNREADABLE)
        if name.startswith(_OF_SQL):
            return InvalidQueryError(reason, text)
    if "from the Python worker" in message:
        return _of_worker(message)
    if "OutOfMemoryError" in message or "MemoryError" in message or "maxResultSize" in message:
        remedy = "Raise memory in [resources], or spark.driver.memory and spark.executor.memory in [spark] options."
        return ResourceError(f"Spark ran out of memory: {_first_line(message)}", remedy=remedy)
    if "No space left on device" in message:
        return ResourceError("Spark ran out of disk space for its scratch data", remedy="Free space, or set scratch.")
    if type(error).__module__.startswith(("py4j", "grpc")) or "Connection refused" in message:
        return UnavailableError(f"Spark does not answer: {_first_line(message)}", remedy="Run again.")
    return InvalidQueryError(message.strip(), text)


def _of_worker(message: str) -> ThresherError:
    """Return the error of a pure function on a worker: one of ours as it is, another as a fault of the worker."""
    if (ours := _OURS.search(message)) is not None:
        kind = getattr(errors, ours["kind"], DataError)
        text, _, remedy = ours["text"].strip().partition("\n")
        return kind(text, remedy=remedy or None)  # type: ignore[no-any-return]
    reason = next((match[0] for match in reversed(list(_RAISED.finditer(message)))), "no reason is given")
    remedy = "thresher and what it needs must be installed in the Python of the workers (spark.pyspark.python)."
    return UnavailableError(f"a worker of Spark failed: {reason}", remedy=remedy)


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), "no reason is given")
