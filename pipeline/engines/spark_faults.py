"""Errors of Spark in our words."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .. import errors
from ..errors import (
    DataError,
    InvalidQueryError,
    ResourceError,
    ThresherError,
    UnavailableError,
    UncomputableError,
)
from ..records import dataclass
from .faults import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

_CONDITION = re.compile(r"\[(?P<name>[A-Z][A-Z0-9_.]+)\]\s*(?P<reason>.*?) SQLSTATE: (?P<state>\w{5})", re.DOTALL)
_OF_VALUES, _OF_SQL = "22", "42"  # classes of SQLSTATE (ISO/IEC 9075): data exception; syntax error or access rule
_OF_FILES = ("FAILED_READ_FILE", "CANNOT_READ_FILE", "PATH_NOT_FOUND", "PARQUET_", "UNABLE_TO_INFER", "FILE_NOT_EXIST")
_OF_MEMORY = ("OutOfMemoryError", "MemoryError", "maxResultSize")
_OURS = re.compile(
    r"^pipeline\.errors\.(?P<kind>\w+): (?P<text>.*?)(?=^\s*SQLSTATE|^\s+at |\Z)", re.MULTILINE | re.DOTALL
)
_RAISED = re.compile(r"^[\w.]+(Error|Exception|Interrupt): .+$", re.MULTILINE)


def translated(error: Exception, text: str) -> ThresherError:
    """Return an error that Spark raised for a query as one of ours: it says what is at fault, and what to do."""
    message = str(error)
    if "from the Python worker" in message:
        return _of_worker(message)
    conditions = list(_conditions(message))
    return _of_conditions(conditions, text) or _of_process(error, message) or InvalidQueryError(message.strip(), text)


@dataclass(frozen=True)
class _Condition:
    """A named condition of an error: what is said of it, and its SQLSTATE."""

    name: str
    reason: str
    state: str


def _conditions(message: str) -> Iterator[_Condition]:
    for match in _CONDITION.finditer(message):
        yield _Condition(match["name"], " ".join(match["reason"].split()), match["state"])


def _of_conditions(conditions: list[_Condition], text: str) -> ThresherError | None:
    """Values are at fault before files, and files before SQL: a broken value is told as a file that cannot be read."""
    for condition in conditions:
        if condition.state.startswith(_OF_VALUES):
            remedy = "Check the types of the columns that `where` compares, and the values of text that is cast."
            reason = condition.reason.partition(" Use `")[0].partition(" If necessary set ")[0]
            return UncomputableError("a value cannot be computed", reason, remedy=remedy)
    for condition in conditions:
        if condition.name.startswith(_OF_FILES):
            return DataError(f"an input cannot be read: {condition.reason}", remedy=UNREADABLE)
        if condition.state.startswith(_OF_SQL):
            return InvalidQueryError(condition.reason, text)
    return None


def _of_process(error: Exception, message: str) -> ThresherError | None:
    if any(word in message for word in _OF_MEMORY):
        remedy = "Raise memory in [resources], or spark.driver.memory and spark.executor.memory in [spark] options."
        return ResourceError(f"Spark ran out of memory: {_first_line(message)}", remedy=remedy)
    if "No space left on device" in message:
        return ResourceError("Spark ran out of disk space for its scratch data", remedy="Free space, or set scratch.")
    if type(error).__module__.startswith(("py4j", "grpc")) or "Connection refused" in message:
        return UnavailableError(f"Spark does not answer: {_first_line(message)}", remedy="Run again.")
    return None


def _of_worker(message: str) -> ThresherError:
    """Return the error of a pure function on a worker: one of ours as it is, another as a fault of the worker."""
    if (ours := _OURS.search(message)) is not None:
        kind: type[ThresherError] = getattr(errors, ours["kind"], DataError)
        text, _, remedy = ours["text"].strip().partition("\n")
        return kind(text, remedy=remedy or None)
    reason = next((match[0] for match in reversed(list(_RAISED.finditer(message)))), "no reason is given")
    remedy = "thresher and what it needs must be installed in the Python of the workers."
    return UnavailableError(f"a worker of Spark failed: {reason}", remedy=remedy)


def _first_line(message: str) -> str:
    return next((line.strip() for line in message.splitlines() if line.strip()), "no reason is given")
