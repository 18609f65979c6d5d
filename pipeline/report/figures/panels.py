"""The rows of a figure by group, under the names that every drawing uses, whatever the columns are called.

Columns of a drawing: `x`; `v0`, `l0` and `u0` for value and limits of the first series, and so on; `d`, 1 where the
limits of the row are doubtful. Chosen rows have `x`, `c` (the criterion) and the values.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, cast

import polars as pl

from ...metrics.uncertainty.interval_quality import DOUBTFUL, INTERVAL_QUALITY
from ...records import dataclass
from ...tables.groupings import TOTAL, group_text, users_name
from ...tables.schemas import GROUPING
from ...visible_text import cleaned

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...stages.figures import Axis, Figure, Role, Series


GROUP = "group"


@dataclass(frozen=True)
class Group:
    """One group of a stage.

    Attributes:
        grouping: The grouping, as the tables name it.
        text: The values of its grouping columns as text, or `all`.
        namesake: How many groups of the grouping with the same text come before it.
    """

    grouping: str
    text: str
    namesake: int = 0

    @property
    def is_total(self) -> bool:
        """Whether it is all rows."""
        return self.grouping == TOTAL

    @property
    def label(self) -> str:
        """The group for people."""
        return TOTAL if self.is_total else cleaned(f"{self.grouping} {self.text}", layout="")

    @property
    def short(self) -> str:
        """The group for people where its grouping is said elsewhere."""
        return cleaned(self.text, layout="")


def numbered(names: Iterable[tuple[str, str]]) -> Iterator[Group]:
    """Tell apart groups of the same text, such as `a, b` of one column and of two."""
    seen: dict[tuple[str, str], int] = {}
    for name in names:
        yield Group(*name, seen.get(name, 0))
        seen[name] = seen.get(name, 0) + 1


@dataclass(frozen=True)
class Panels:
    """A figure taken apart: the rows of every group, one after the other.

    Attributes:
        figure: The figure.
        rows: Its rows, with the column `group` that counts the groups.
        spans: Offset and number of rows of every group.
        chosen: The rows of operating points by group.
    """

    figure: Figure
    rows: pl.DataFrame
    spans: dict[Group, tuple[int, int]]
    chosen: dict[Group, pl.DataFrame]

    def rows_of(self, group: Group) -> pl.DataFrame:
        """The rows of one group."""
        return self.rows.slice(*self.spans[group])

    def at_most(self, number_of_rows: int) -> Panels:
        """Keep evenly spaced rows of every group, the last among them; bars, points and names are all kept."""
        if self._is_whole or max(length for _, length in self.spans.values()) <= number_of_rows:
            return self
        index, length = pl.int_range(pl.len()).over(GROUP), pl.len().over(GROUP)
        spaced = (index * number_of_rows // length) != ((index - 1) * number_of_rows // length)
        rows = self.rows.filter((length <= number_of_rows) | spaced | (index == length - 1))
        lengths = dict(rows.group_by(GROUP, maintain_order=True).len().iter_rows())
        return Panels(self.figure, rows, _spans(self.spans, lengths), self.chosen)

    @property
    def first(self) -> Group:
        """The group that is shown before another is chosen: all rows, or else the first."""
        return next((group for group in self.spans if group.is_total), next(iter(self.spans)))

    @cached_property
    def _is_whole(self) -> bool:
        marks = {series.mark for series in self.figure.series}
        return self.figure.x.format == "category" or bool(marks & {"bar", "point"})

    def extent(self, group: Group) -> tuple[float, float]:
        """Ends of the axis of values: all values and what it must reach, and limits unless they lie far beyond.

        Limits reach as far as half the range of the values beyond them, or as far as three quarters of all limits do.
        """
        rows, figure = self.rows_of(group), self.figure
        reached = [*figure.y.includes, *(end for rule in figure.rules if rule.axis == "y" for end in rule.ends)]
        if any(series.mark == "bar" for series in figure.series):
            reached.append(0.0)
        indices = range(len(figure.series))
        lowest, highest = _range([rows[f"v{index}"] for index in indices], reached)
        room = (highest - lowest) / 2
        lower = _limits(rows, [f"l{index}" for index in indices])
        upper = _limits(rows, [f"u{index}" for index in indices])
        if not lower.is_empty() and not upper.is_empty():
            usual = (_quantile(lower, 0.25, "higher"), _quantile(upper, 0.75, "lower"))
            low, high = min(usual[0], lowest - room), max(usual[1], highest + room)
            lowest, highest = min(lowest, max(low, *lower.head(1))), max(highest, min(high, *upper.tail(1)))
        return (lowest, highest) if highest > lowest else (lowest - 0.5, highest + 0.5)


def _limits(rows: pl.DataFrame, names: list[str]) -> pl.Series:
    """All limits of some columns in order."""
    columns = [rows[name].alias("limit") for name in names if name in rows.columns]
    return pl.concat(columns).drop_nulls().sort() if columns else pl.Series("limit", [], pl.Float64)


def _quantile(values: pl.Series, share: float, interpolation: Literal["higher", "lower"]) -> float:
    return cast("float", values.quantile(share, interpolation))


def _range(columns: list[pl.Series], reached: list[float]) -> tuple[float, float]:
    ends = [float(end) for column in columns for end in (column.min(), column.max()) if isinstance(end, (int, float))]
    values = [*ends, *reached]
    return (min(values), max(values)) if values else (0.0, 1.0)


def panels(figure: Figure) -> Panels:
    """Take a figure apart by group."""
    if figure.across:
        return _across(figure)
    keys = _keys(figure.frame)
    beginnings = figure.frame.with_row_index(GROUP).select(pl.col(GROUP).min().over(keys))
    rows = _drawn(figure, figure.frame).with_columns(beginnings)
    rows = rows.sort(GROUP, maintain_order=True).with_columns(pl.col(GROUP).rank("dense").cast(pl.Int64) - 1)
    names = _names(figure.frame.select(keys).unique(maintain_order=True))
    lengths = rows.group_by(GROUP, maintain_order=True).len()["len"]
    spans = _spans(dict.fromkeys(numbered(names), (0, 0)), dict(enumerate(lengths)))
    return Panels(figure, rows, spans, _chosen(figure))


def _across(figure: Figure) -> Panels:
    rows = _drawn(figure, figure.frame).with_columns(pl.lit(0, pl.Int64).alias(GROUP))
    return Panels(figure, rows, {Group(TOTAL, TOTAL): (0, rows.height)}, {})


def _spans(groups: dict[Group, tuple[int, int]], lengths: dict[int, int]) -> dict[Group, tuple[int, int]]:
    spans, offset = {}, 0
    for number, group in enumerate(groups):
        spans[group] = (offset, lengths[number])
        offset += lengths[number]
    return spans


def _keys(frame: pl.DataFrame) -> list[str]:
    return [GROUPING.name, *(name for name in frame.columns if name != users_name(name))]


def _names(groups: pl.DataFrame) -> Iterator[tuple[str, str]]:
    return ((str(row[GROUPING.name]), group_text(row)) for row in groups.iter_rows(named=True))


def _chosen(figure: Figure) -> dict[Group, pl.DataFrame]:
    frame = figure.chosen
    if frame is None or frame.is_empty():
        return {}
    keys = _keys(frame)
    groups = frame.select(keys).unique(maintain_order=True)
    values = [pl.col(series.column).cast(pl.Float64).alias(f"v{index}") for index, series in enumerate(figure.series)]
    rows = frame.select(*keys, _on_axis(figure.x), pl.col("criterion").alias("c"), *values)
    drawn = rows.partition_by(keys, maintain_order=True, include_key=False)
    return dict(zip(numbered(_names(groups)), drawn, strict=True))


def _drawn(figure: Figure, frame: pl.DataFrame) -> pl.DataFrame:
    columns = [_on_axis(figure.x)]
    for index, series in enumerate(figure.series):
        names = {"v": series.column, "l": series.lower, "u": series.upper}
        columns += [_finite(name).alias(f"{letter}{index}") for letter, name in names.items() if name]
    if INTERVAL_QUALITY in frame.columns:
        columns.append(pl.col(INTERVAL_QUALITY).is_in(DOUBTFUL).fill_null(value=False).cast(pl.Int8).alias("d"))
    return frame.select(columns)


def _finite(name: str) -> pl.Expr:
    value = pl.col(name).cast(pl.Float64)
    return pl.when(value.is_finite()).then(value)


def _on_axis(axis: Axis) -> pl.Expr:
    column = pl.col(axis.column)
    if axis.format == "time":
        return column.cast(pl.Datetime("ms")).dt.epoch("ms").alias("x")
    if axis.format == "category":
        text = column.cast(pl.String).fill_null("null")
        return text.map_elements(lambda name: cleaned(name, layout=""), return_dtype=pl.String).alias("x")
    return _finite(axis.column).alias("x")


def as_rows(frame: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows for a drawing, numbers rounded to seven digits."""
    rounded = frame.with_columns(pl.selectors.float().round_sig_figs(7))
    return rounded.with_row_index("i").to_dicts()


# Colours and dashes of what figures show: the same role looks the same in every figure.
#
# The hues follow Okabe and Ito. On their background they have a contrast of at least 4.8, `before` and `chance` of
# 3.1.


@dataclass(frozen=True)
class Colour:
    """A colour with a name in the style sheet of the page.

    Attributes:
        name: Its variable in the style sheet, without `--`.
        light: On white, as hexadecimal digits.
        dark: On the dark background.
    """

    name: str
    light: str
    dark: str

    @property
    def variable(self) -> str:
        """The colour in a page, which follows the style sheet."""
        return f"var(--{self.name},{self.light})"


@dataclass(frozen=True)
class Look:
    """How one series or rule is drawn.

    Attributes:
        colour: Its colour.
        dash: Lengths of dash and gap; empty for a solid line.
    """

    colour: Colour
    dash: tuple[int, ...] = ()


INK = Colour("ink", "#1a1d21", "#e8eaed")
QUIET = Colour("quiet", "#5b626a", "#a2a9b1")
GRID = Colour("grid", "#e6e8eb", "#2b3036")
_PRECISION = Colour("precision", "#0068a8", "#5cb3ea")
_RECALL = Colour("recall", "#c24e00", "#f0913c")
_F1 = Colour("f1", "#00785a", "#3ccf9f")
_BEFORE = Colour("before", "#8b929b", "#7d858f")
_NEUTRAL = Colour("neutral", "#4d5963", "#b4bcc4")
_VIOLET = Colour("violet", "#8a3f86", "#d99bd4")
_OLIVE = Colour("olive", "#6b6200", "#cfc04a")

_DASHED, _DOTTED, _LONG = (6, 3), (2, 2), (10, 4)
_LOOKS: dict[Role, Look] = {
    "precision": Look(_PRECISION),
    "recall": Look(_RECALL, _DASHED),
    "f1": Look(_F1, _DOTTED),
    "before": Look(_BEFORE),
    "after": Look(_PRECISION),
    "estimate": Look(_PRECISION),
    "gold": Look(INK, _LONG),
    "chance": Look(_NEUTRAL, _DASHED),
    "neutral": Look(_NEUTRAL),
}
_FURTHER = (Look(_VIOLET, _DASHED), Look(_OLIVE, _DOTTED), Look(_F1, _LONG), Look(_RECALL), Look(_NEUTRAL, _DOTTED))
PALETTE = (INK, QUIET, GRID, _PRECISION, _RECALL, _F1, _BEFORE, _NEUTRAL, _VIOLET, _OLIVE)


def look_of_role(role: Role) -> Look:
    """Return how a role is drawn."""
    return _LOOKS[role]


def looks(series: tuple[Series, ...]) -> tuple[Look, ...]:
    """Return how every series of a figure is drawn: as its role, or otherwise if an earlier one looks like that."""
    chosen: list[Look] = []
    for entry in series:
        look = _LOOKS[entry.role]
        if any(look.colour == taken.colour for taken in chosen):
            free = (further for further in _FURTHER if all(further.colour != taken.colour for taken in chosen))
            look = next(free, _FURTHER[len(chosen) % len(_FURTHER)])
        chosen.append(look)
    return tuple(chosen)


def in_hex(text: str) -> str:
    """Put hexadecimal digits where a drawing names a variable of the style sheet."""
    for colour in PALETTE:
        text = text.replace(colour.variable, colour.light)
    return text
