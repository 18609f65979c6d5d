"""What a stage shows of its results: figures and key numbers as data, which `report` draws."""

from __future__ import annotations

from dataclasses import field, replace
from functools import wraps
from typing import TYPE_CHECKING, Literal, Protocol

import polars as pl

from ..metrics.uncertainty.interval_quality import INTERVAL_QUALITY
from ..metrics.uncertainty.limits import of_chosen
from ..records import dataclass
from ..tables.columns import THRESHOLD, nulls
from ..tables.groupings import grouping_columns
from ..tables.schemas import GROUPING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence


Format = Literal["percent", "number", "integer", "time", "category"]
Role = Literal["precision", "recall", "f1", "before", "after", "estimate", "gold", "chance", "neutral"]
Mark = Literal["line", "path", "step", "bar", "point"]


@dataclass(frozen=True)
class Axis:
    """One axis of a figure.

    Attributes:
        column: The column of the frame that lies on it; for the vertical axis of several series the columns are theirs
            and this is empty.
        title: What it measures, with its unit.
        format: How its values are written: `percent` of ratios between 0 and 1, `category` of names.
        logarithmic: Whether its scale is logarithmic; values are positive then.
        includes: Values that it must reach, such as 0 and 1.
    """

    column: str
    title: str
    format: Format = "number"
    logarithmic: bool = False
    includes: tuple[float, ...] = ()


@dataclass(frozen=True)
class Series:
    """One line, row of points or row of bars of a figure.

    Attributes:
        column: Its values; NULL where undefined, which is a gap.
        name: What the key of the figure calls it.
        role: What it stands for: decides its colour and dashes, the same in all figures.
        mark: `line` in the order of the horizontal axis, `path` in the order of the rows, `step`, `bar` or `point`.
        lower: Column of lower limits, if it has limits; of a `path` the lower end of the region that holds it, above
            each place of the horizontal axis.
        upper: Column of upper limits, or the upper end of the region.
    """

    column: str
    name: str
    role: Role
    mark: Mark = "line"
    lower: str = ""
    upper: str = ""


@dataclass(frozen=True)
class Rule:
    """A straight line, or a band between two of them, that helps to read a figure.

    Attributes:
        name: What it is.
        value: Where it crosses its axis.
        axis: The axis that it crosses; `diagonal` is the line y = x, and then the value means nothing.
        until: The other end of a band that begins at the value; None: it is a line.
    """

    name: str
    value: float = 0.0
    axis: Literal["x", "y", "diagonal"] = "x"
    until: float | None = None

    @property
    def ends(self) -> tuple[float, ...]:
        """Where it crosses its axis: one value, or both ends of a band."""
        return (self.value,) if self.until is None else (self.value, self.until)


@dataclass(frozen=True)
class Figure:
    """A figure of a stage, not yet drawn: one panel for each group, or one panel across all groups.

    Attributes:
        name: Its name, the same in files and commands: lower-case letters, digits and `_`.
        title: What it shows.
        caption: How to read it, in plain English: what lines and bands are, what a gap means.
        frame: Its rows: `grouping`, the grouping columns under their internal names, the columns of axes and series in
            the order in which they are drawn, and `interval_quality` where series have limits.
        x: The horizontal axis.
        y: The vertical axis.
        series: What is drawn, the most important last: it lies on top, and is told first.
        rules: Lines that help to read it, the same for all groups.
        chosen: Rows of operating points: grouping columns, the column of the horizontal axis, `criterion`, and a column
            for each series; None if there are none.
        across: Whether its horizontal axis holds the groups themselves: then all rows belong in one panel, the same
            whichever group is looked at.
    """

    name: str
    title: str
    caption: str
    frame: pl.DataFrame
    x: Axis
    y: Axis
    series: tuple[Series, ...]
    rules: tuple[Rule, ...] = ()
    chosen: pl.DataFrame | None = field(default=None, compare=False)
    across: bool = False


@dataclass(frozen=True)
class KeyNumber:
    """A number for which people open a report, of one group.

    Attributes:
        grouping: The grouping, as the tables name it.
        group: The values of the grouping columns as text, or `all`.
        name: What it is: `Precision`.
        meaning: What it means, in about five words.
        value: The number; None where undefined.
        lower: Its lower limit, if it has limits.
        upper: Its upper limit.
        quality: How far the limits can be trusted, as `interval_quality` says; empty without limits.
        role: Its colour.
        format: How it is written.
    """

    grouping: str
    group: str
    name: str
    meaning: str
    value: float | None
    lower: float | None = None
    upper: float | None = None
    quality: str = ""
    role: Role = "neutral"
    format: Format = "percent"


class MakesFigures(Protocol):
    """What makes the figures of a stage."""

    def __call__(self, tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> tuple[Figure, ...]:
        """Return what there is to look at; a figure without a value is left out.

        Args:
            tables: The result tables of the stage by name; those that were not made are missing or have no row.
            confidence: The level of the intervals in the tables, which captions name.
        """
        ...


# Building blocks of figures: axes, series with limits, captions, rows in order and not too many of them.


MOST_POINTS = 300  # of a line in one group: more cannot be told apart
CRITERION = "criterion"
RATIO_ROLES: Mapping[str, Role] = {"f1": "f1", "recall": "recall", "precision": "precision"}  # the most important last
RATIO_NAMES = {"precision": "Precision", "recall": "Recall", "f1": "F1"}
GAP = "A line has a gap where its ratio is not defined."


def keys_of(table: pl.DataFrame) -> list[str]:
    """Return the columns that name the group of a row: `grouping` and the grouping columns."""
    return [GROUPING.name, *grouping_columns(table.columns)]


def shown(make: Callable[[Mapping[str, pl.DataFrame], float], Iterable[Figure | None]]) -> MakesFigures:
    """Make a function that yields figures return them, without None and without those that have no value anywhere."""

    @wraps(make)
    def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> tuple[Figure, ...]:
        return tuple(
            figure for figure in make(tables, confidence) if figure is not None and not figure.frame.is_empty()
        )

    return figures


def shares(title: str, column: str = "") -> Axis:
    """Return an axis of ratios that reaches 0 and 1.

    Args:
        title: What they are.
        column: Their column where the axis is the horizontal one.
    """
    return Axis(column, title, "percent", includes=(0.0, 1.0))


def level(confidence: float) -> str:
    """Return the level of intervals for people: `95%`."""
    return f"{100 * confidence:.10g}%"


def intervals(series: Sequence[Series], confidence: float) -> str:
    """Say what the limits of series are, bands behind lines or bars at points; empty if none has any.

    Args:
        series: The series of a figure.
        confidence: The level of the intervals.
    """
    marks = {line.mark for line in series if line.lower}
    return f"{'Bars' if marks == {'point'} else 'Bands'} are {level(confidence)} intervals." if marks else ""


def caption(*sentences: str) -> str:
    """Join the sentences that have words."""
    return " ".join(sentence for sentence in sentences if sentence)


def visible(table: pl.DataFrame, series: Series) -> Series:
    """Return a series that can be seen: points in place of a line where no group has two rows.

    Args:
        table: The table of the series.
        series: The series.
    """
    is_seen = series.mark in {"point", "bar"} or not has_single_rows(table)
    return series if is_seen else replace(series, mark="point")


def has_single_rows(table: pl.DataFrame) -> bool:
    """Whether no group has two rows, so that there is no line to draw."""
    return not table.select(keys_of(table)).is_duplicated().any()


def with_limits(table: pl.DataFrame, series: Series, limits_of: str = "") -> Series:
    """Return a `visible` series with the columns of its limits if the table has any limit.

    Args:
        table: The table of the series.
        series: The series without limits.
        limits_of: The ratio that the limits are named after; default: the column of the series.
    """
    seen = visible(table, series)
    lower, upper = (f"{limits_of or series.column}_{side}" for side in ("lower", "upper"))
    has_limits = lower in table.columns and bool(table[lower].is_not_null().any())
    return replace(seen, lower=lower, upper=upper) if has_limits else seen


def ratio_series(table: pl.DataFrame, mark: Mark = "line") -> tuple[Series, ...]:
    """Return precision, recall and F1 with their limits, precision last.

    Args:
        table: A table with these columns.
        mark: What stands for a value.
    """
    return tuple(with_limits(table, Series(name, RATIO_NAMES[name], role, mark)) for name, role in RATIO_ROLES.items())


def drawn(table: pl.DataFrame, x: str, series: Sequence[Series]) -> pl.DataFrame:
    """Return the columns that a figure needs: groups, the horizontal axis, series, limits, and how good these are."""
    columns = [x, *(name for line in series for name in (line.column, line.lower, line.upper) if name)]
    quality = [INTERVAL_QUALITY] if INTERVAL_QUALITY in table.columns and any(line.lower for line in series) else []
    return table.select(list(dict.fromkeys([*keys_of(table), *columns, *quality])))


def rising(curve: pl.DataFrame) -> pl.DataFrame:
    """Return the rows with a threshold, group by group, in the order of the thresholds: what lines are drawn from."""
    return curve.filter(pl.col(THRESHOLD).is_not_null()).sort([*keys_of(curve), THRESHOLD])


def thinned(table: pl.DataFrame, x: str, points: int = MOST_POINTS) -> pl.DataFrame:
    """Return at most about so many rows of every group: evenly spread over their order, and over the horizontal axis.

    Args:
        table: The rows in the order in which they are drawn; the last of every group is kept.
        x: The column of the horizontal axis.
        points: How many.
    """
    keys = keys_of(table)
    if table.is_empty() or table.group_by(keys).len()["len"].to_numpy().max() <= points:
        return table
    index, size, place = pl.int_range(pl.len()).over(keys), pl.len().over(keys), pl.col(x)
    lowest, highest = place.min().over(keys), place.max().over(keys)
    cells = ((index * points) // (2 * size), ((place - lowest) / (highest - lowest) * (points / 2)).floor())
    is_new = (cell.ne_missing(cell.shift()) for cell in cells)
    return table.filter(pl.any_horizontal(*is_new, index == 0, index == size - 1) | (size <= points))


def of_best(best: pl.DataFrame) -> pl.DataFrame:
    """Mark the limits of rows whose threshold was chosen as the best on the same data; without thresholds none was.

    Args:
        best: Rows of a curve, chosen by what they hold.
    """
    chosen = of_chosen(best)[INTERVAL_QUALITY]
    had_choice = pl.col(THRESHOLD).is_not_null()
    return best.with_columns(pl.when(had_choice).then(chosen).otherwise(INTERVAL_QUALITY).alias(INTERVAL_QUALITY))


def of_thinned(table: pl.DataFrame, frame: pl.DataFrame) -> str:
    """Say how many rows are drawn if these are not all; empty if they are."""
    if table.height == frame.height:
        return ""
    return f"Of {table.height:,} thresholds of all groups, {frame.height:,} are drawn."


def of_points(points: pl.DataFrame | None) -> str:
    """Say which thresholds are marked: the criteria of the operating points."""
    if points is None or points.is_empty():
        return ""
    names = points[CRITERION].unique(maintain_order=True).sort().to_list()
    mark = "; " if any("," in name for name in names) else ", "
    return f"Marked: the thresholds chosen by {mark.join(names)}."


def chosen_rows(points: pl.DataFrame | None, x: str, columns: Iterable[str]) -> pl.DataFrame | None:
    """Return the operating points that a figure marks: those with a threshold; None without any.

    Args:
        points: The table of operating points, if there is one.
        x: The column of the horizontal axis.
        columns: Those of the series; NULL where the operating points do not have them, as nothing is marked there.
    """
    if points is None:
        return None
    marked = points.filter(pl.col(THRESHOLD).is_not_null())
    values = list(dict.fromkeys([x, CRITERION, *columns]))
    absent = nulls(name for name in values if name not in points.columns)
    return marked.with_columns(*absent).select(*keys_of(points), *values) if marked.height else None
