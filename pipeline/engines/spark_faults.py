"""Errors of Spark in our words."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from .. import errors
from ..errors import (
    ConfigError,
    DataError,
    InvalidQueryError,
    NoInputError,
    ResourceError,
    ThresherError,
    UnavailableError,
    UncomputableError,
)
from ..records import dataclass
from .duckdb import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession


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


# What goes wrong when Spark looks at a table or an address, in our words.


_NO_TABLE = ("TABLE_OR_VIEW_NOT_FOUND", "SCHEMA_NOT_FOUND", "CATALOG_NOT_FOUND", "REQUIRES_SINGLE_PART_NAMESPACE")
_NO_NAME = ("PARSE_", "INVALID_IDENTIFIER", "IDENTIFIER_TOO_MANY")
_NO_STORE = re.compile(r'No FileSystem for scheme "(?P<scheme>[^"]+)"|Class (?P<library>[\w.$]+FileSystem) not found')
_NOT_MERGED = re.compile(
    r'Initial schema:\s*"(?P<one>.*?)"\s*Schema that cannot be merged[^"]*"(?P<other>.*?)"', re.DOTALL
)


def fault_of(session: SparkSession, error: Exception, kind: str, target: str, *, name: str) -> ThresherError:
    """Return what went wrong in looking at a table or an address as one of our errors."""
    text = str(error)
    told = _of_table(session, text, kind, target) or _of_address(text, target) or _of_types(text, target)
    if told is None:
        told = translated(error, target)
        if isinstance(told, InvalidQueryError):
            reason = re.sub(r"^\[[A-Z_.]+\]\s*", "", told.reason)
            told = UnavailableError(f"Spark cannot look at {target}: {reason}", remedy="Check that Spark reads it.")
    error_class = DataError if isinstance(told, UncomputableError) else type(told)
    return error_class(f"input {name}: {told.message}", remedy=told.remedy)


def _of_table(session: SparkSession, text: str, kind: str, target: str) -> ThresherError | None:
    if any(f"[{condition}" in text for condition in _NO_TABLE):
        return NoInputError(f"Spark knows no table or view {target}", remedy=_names_near(session, target))
    if kind == "table" and any(f"[{condition}" in text for condition in _NO_NAME):
        remedy = "Write catalog.schema.table, with backquotes around a name that is no word."
        return ConfigError(f"table = {target!r} is not the name of a table", remedy=remedy)
    return None


def _of_address(text: str, target: str) -> ThresherError | None:
    if "[PATH_NOT_FOUND]" in text:
        return NoInputError(f"Spark finds nothing at {target}", remedy="Check the address.")
    if "[UNABLE_TO_INFER_SCHEMA]" in text:
        return NoInputError(f"Spark finds no Parquet file at {target}", remedy="Check the address.")
    store = _NO_STORE.search(text)
    if store is None:
        return None
    lacks = f"no file system for {store['scheme']}://" if store["scheme"] else f"not the class {store['library']}"
    remedy = "Give Spark the package of the store, spark.jars.packages in [spark] options; Hadoop writes s3a://."
    return ConfigError(f"Spark has {lacks}, which {target} needs", remedy=remedy)


def _of_types(text: str, target: str) -> ThresherError | None:
    types = _NOT_MERGED.search(text)
    if types is None:
        return None
    message = f"the files at {target} have different types: {types['one']} and {types['other']}"
    return DataError(message, remedy="Give every column one type everywhere, or name files of one schema.")


def _names_near(session: SparkSession, target: str) -> str:
    """A remedy that tells the nearest name in the same schema, if one is near."""
    *above, last = target.replace("`", "").split(".")
    remedy = "Write catalog.schema.table. A temporary view is known in this process only, on the Spark that it joins."
    try:
        if above:
            tables = session.sql("SHOW TABLES IN IDENTIFIER(:schema)", args={"schema": ".".join(above)})
        else:
            tables = session.sql("SHOW TABLES")
        names = [row["tableName"] for row in tables.collect()]
    except Exception:  # noqa: BLE001 - the hint is left out, whatever the reason
        return remedy
    by_lower_case = {name.lower(): name for name in names}
    near = get_close_matches(last.lower(), by_lower_case, n=1)
    return f"Did you mean {'.'.join([*above, by_lower_case[near[0]]])!r}? {remedy}" if near else remedy
