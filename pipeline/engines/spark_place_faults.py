"""What goes wrong when Spark looks at a table or an address, in our words."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

from ..errors import (
    ConfigError,
    DataError,
    InvalidQueryError,
    NoInputError,
    ThresherError,
    UnavailableError,
    UncomputableError,
)
from .spark_faults import translated

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

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
