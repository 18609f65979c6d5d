"""Lines of the log as JSON: one object a line, the same fields everywhere, nothing that JSON cannot hold."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl

LOG_FORMATS = ("text", "json")
OPTION = "--log-format"
MOST_NUMBERS = 20
_FIELDS = ("grouping", "group", "criterion", "metric", "value", "lower", "upper")


def asks_for_json(words: Sequence[str]) -> bool:
    """Whether the words of a command line choose lines of JSON, also where the rest of them cannot be parsed."""
    return f"{OPTION}=json" in words or (OPTION, "json") in pairwise(words)


def json_line(level: str, event: str, message: str, facts: Mapping[str, Any]) -> str:
    """Return one line of the log, an object without a line break.

    Args:
        level: `info`, `warning` or `error`.
        event: What happened; docs/operations.md lists the events.
        message: The same for people.
        facts: Further fields; numbers that are not finite become null.
    """
    time = datetime.now(UTC).isoformat(timespec="milliseconds")
    line = {"time": time, "level": level, "event": event, "message": message, **facts}
    return json.dumps(_finite(line), default=str, allow_nan=False)


def _finite(value: Any) -> Any:  # noqa: ANN401 - whatever JSON can hold
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def numbers_of(key_figures: pl.DataFrame) -> dict[str, Any]:
    """Return the first numbers of a stage that are defined, those of the total before those of groups.

    Args:
        key_figures: Its rows of the table `metrics`.
    """
    defined = [row for row in key_figures.iter_rows(named=True) if row["value"] is not None]
    in_order = sorted(defined, key=lambda row: row["grouping"] != "all")
    numbers = [{name: row[name] for name in _FIELDS} for row in in_order[:MOST_NUMBERS]]
    for number in numbers:
        number["group"] = json.loads(number["group"])
    return {"numbers": numbers, "numbers_left_out": len(in_order) - len(numbers)}
