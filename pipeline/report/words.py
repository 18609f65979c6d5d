"""Numbers, times and figures in words, as people read them on the page."""

from __future__ import annotations

import json
import math
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl

from ..metrics.uncertainty.interval_quality import DOUBTFUL, MEANINGS
from ..visible_text import cleaned, percent

if TYPE_CHECKING:
    from ..stages.figures import Format, KeyNumber
    from .figures.charts import Group, Panels

UNDEFINED = "not defined"
_SMALL, _LARGE = 1e-3, 1e6
_WIDE = 0.02  # an interval of a ratio that bears no tenth of a percentage point


def value_text(value: object, form: Format) -> str:
    """A value as its axis writes it."""
    if value is None:
        return UNDEFINED
    if form == "time" and isinstance(value, (int, float)):
        return datetime.fromtimestamp(value / 1000, UTC).strftime("%Y-%m-%d %H:%M")
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return cleaned(str(value), layout="")
    if form == "percent":
        return percent(value)
    if form == "integer" or (value == round(value) and abs(value) < _LARGE):
        return f"{value:,.0f}"
    return f"{value:,.4g}" if _SMALL <= abs(value) < _LARGE else f"{value:.3g}"


def headline(number: KeyNumber) -> str:
    """The value of a key number, in as many digits as its interval can bear."""
    if number.value is None:
        return UNDEFINED
    return _rounded(number.value, number)


def limits_text(number: KeyNumber) -> str:
    """The interval of a key number; empty without one."""
    if number.lower is None or number.upper is None:
        return ""
    lower, upper = _rounded(number.lower, number), _rounded(number.upper, number)
    return (
        f"{lower.removesuffix('%')}–{upper}"
        if number.format == "percent" and number.lower >= 0
        else f"{lower} to {upper}"
    )


def _rounded(value: float, number: KeyNumber) -> str:
    """A value or limit with the digits that the width of the interval bears: two of the width, one of a ratio's."""
    has_limits = number.lower is not None and number.upper is not None
    width = number.upper - number.lower if has_limits else 0.0  # type: ignore[operator]  # both are numbers
    if number.format == "percent":
        return _signed(percent(value, 0 if width > _WIDE else 1))
    if number.format != "number" or width <= 0:
        return _signed(value_text(value, number.format))
    return _signed(f"{value:,.{max(0, 1 - math.floor(math.log10(width)))}f}")


def _signed(text: str) -> str:
    return text.replace("-", "−")


def doubt_text(quality: str) -> str:
    """Why limits are doubtful; empty if they are not."""
    if quality == "chosen_on_same_data":
        return "the threshold was chosen on the same data, which makes this a little too good"
    return next((f"doubtful: {MEANINGS[name]}" for name in DOUBTFUL if name == quality), "")


def utc_time(text: str) -> str:
    """A time of a record, which is UTC, for people."""
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return cleaned(text, layout="")
    return f"{time.day} {time:%b %Y, %H:%M} UTC"


def counted(number: int, noun: str) -> str:
    """A number of things: `1 stage`, `2 stages`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def described(panels: Panels, group: Group) -> str:
    """What a chart shows, in numbers, for people who cannot see it."""
    figure, rows = panels.figure, panels.rows_of(group)
    sentences = [figure.title if figure.across else f"{figure.title}, {group.label}"]
    for index, series in reversed(list(enumerate(figure.series))):
        values = rows.select("x", value=pl.col(f"v{index}")).drop_nulls()
        if values.is_empty():
            sentences.append(f"{series.name}: {UNDEFINED}")
            continue
        ends = (values.row(values["value"].arg_min() or 0), values.row(values["value"].arg_max() or 0))
        lowest, highest = (
            f"{value_text(value, figure.y.format)} at {value_text(at, figure.x.format)}" for at, value in ends
        )
        sentences.append(f"{series.name}: lowest {lowest}, highest {highest}")
    return ". ".join(cleaned(sentence, layout="") for sentence in sentences) + "."


def setting(value: object) -> str:
    """Return a value of a config as JSON, without the keys that are not set."""
    return json.dumps(_without_unset(value), ensure_ascii=False)


def _without_unset(value: object) -> object:
    if isinstance(value, list):
        return [_without_unset(item) for item in value]
    if isinstance(value, dict):
        return {key: _without_unset(inner) for key, inner in value.items() if inner is not None}
    return value
