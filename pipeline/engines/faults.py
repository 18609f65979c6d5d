"""Errors of DuckDB in our words."""

from __future__ import annotations

import duckdb

from ..errors import (
    DataError,
    InvalidQueryError,
    PermissionDenied,
    ResourceError,
    ThresherError,
    UncomputableError,
    os_error_number,
    os_fault,
)

UNREADABLE = "It is damaged: restore it from where it came from, or leave it out by a glob."


_TOO_LARGE = "Arrow Appender: The maximum total string size"
_KINDS: dict[str, type[duckdb.Error]] = {
    "Out of Memory Error": duckdb.OutOfMemoryException,
    "Conversion Error": duckdb.ConversionException,
    "Out of Range Error": duckdb.OutOfRangeException,
    "Invalid Input Error": duckdb.InvalidInputException,
    "IO Error": duckdb.IOException,
}


def of_reader(error: OSError) -> Exception:
    """Return the error of DuckDB that Arrow, reading rows, has turned into one of the system; others as they are."""
    kind = _KINDS.get(str(error).partition(":")[0])
    return error if kind is None or error.errno is not None else kind(str(error))


def translated(error: duckdb.Error, text: str) -> ThresherError:
    """Return an error of DuckDB, raised by a query, as one of ours: it says what is at fault, and what to do."""
    reason = str(error).partition("Possible solutions:")[0].strip()  # they are settings of DuckDB's
    if isinstance(error, duckdb.OutOfMemoryException) or _TOO_LARGE in reason:
        return ResourceError(
            f"the engine ran out of memory or scratch space: {reason}",
            remedy="Raise memory or scratch_limit in [resources], or use fewer groups or thresholds.",
        )
    if isinstance(error, duckdb.IOException) and os_error_number(error) is not None:
        return os_fault(error, "reading the inputs, or writing scratch data")
    if isinstance(error, duckdb.PermissionException):
        return PermissionDenied(f"DuckDB may not do this: {reason}")
    return _fault_of_data(error, reason) or InvalidQueryError(reason, text)


def _fault_of_data(error: duckdb.Error, whole_reason: str) -> DataError | None:
    """Translate the error of a correct query that fails because of its input; return None for other errors."""
    reason = whole_reason.splitlines()[0].split(". Use ")[0]  # the rest shows our SQL, or settings to change
    if isinstance(error, duckdb.ConversionException | duckdb.OutOfRangeException):
        remedy = "Check the types of the columns that `where` compares, and the values of text that is cast."
        verb = "converted" if isinstance(error, duckdb.ConversionException) else "computed"
        return UncomputableError(f"a value cannot be {verb}", reason, remedy=remedy)
    if isinstance(error, duckdb.InvalidInputException | duckdb.SyntaxException):  # of a function, or of a file
        return UncomputableError("an input cannot be read", reason, remedy=UNREADABLE)
    if isinstance(error, duckdb.IOException):
        return DataError(f"an input cannot be read: {whole_reason}", remedy=UNREADABLE)
    return None
