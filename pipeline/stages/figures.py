"""What a stage shows of its results: figures and key numbers as data, which `report` draws."""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal, Protocol

from ..records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

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
