"""Errors of Spark in our words."""

from __future__ import annotations

import re

from pipeline.engines.faults import UNREADABLE
from pipeline.errors import DataError, InvalidQueryError, ResourceError, ThresherError, UnavailableError, UncomputableError

_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\]\s*(?P<reason>[^\n]*)")
_OF_VALUES = ("CAST_", "DIVIDE_BY_ZERO", "ARITHMETIC_OVERFLOW", "NUMERIC_", "DATETIME_", "INVALID_ARRAY", "BINARY_")
_OF_SQL = ("PARSE_", "UNRESOLVED_", "DATATYPE_MISMATCH", "TABLE_OR_VIEW", "WRONG_NUM_ARGS", "INVALID_SQL", "MISSING_")
_OF_FILES = ("FAILED_READ_FILE", "CANNOT_READ_FILE", "PATH_NOT_FOUND", "PARQUET_", "UNABLE_TO_INFER", "FILE_NOT_EXIST")
_FILE = re.compile(r"file (?P<file>file:\S+|\S+\.parquet)")


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
    if "OutOfMemoryError" in message or "MemoryError" in message or "maxResultSize" in message:
        remedy = "Raise memory in [resources], or spark.driver.memory and spark.executor.memory in [spark] options."
        return ResourceError(f"Spark ran out of memory: {_first_line(message)}", remedy=remedy)
    if "No space left on device" in message:
        return ResourceError("Spark ran out of disk space for its scratch data", remedy="Free space, or set scratch.")
    if type(error).__module__.startswith(("py4j", "grpc")) or "Connection refused" in message:
        return UnavailableError(f"Spark does not answer: {_first_line(message)}", remedy="Run again.")
    return InvalidQueryError(message.strip(), text)


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), "no reason is given")
