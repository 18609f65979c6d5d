"""Figures that several stages have: ratios by threshold, precision against recall, histograms, values across groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.metrics.uncertainty.qualities import INTERVAL_QUALITY
from pipeline.stages.figures import Axis, Figure, Rule, Series
from pipeline.stages.stage import group_text
from pipeline.tables.columns import nulls
from pipeline.tables.groupings import TOTAL, grouping_columns
from pipeline.tables.schemas import GROUPING
from pipeline.tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.stages.figures import Role

MOST_POINTS = 300  # of a line in one group: more cannot be told apart
MOST_GROUPS = 30  # beside each other in one panel
BINS_OF_SHARES = 20  # between 0 and 1
GROUP, BIN, NUMBER = "group", "bin", "number"
CRITERION = "criterion"
RATIO_ROLES: Mapping[str, Role] = {"f1": "f1", "recall": "recall", "precision": "precision"}  # precision lies on top
RATIO_NAMES = {"precision": "Precision", "recall": "Recall", "f1": "F1"}
GAP = "A line has a gap where its ratio is not defined."


def keys_of(table: pl.DataFrame) -> list[str]:
    """Return the columns that name the group of a row: `grouping` and the grouping columns."""
    return [GROUPING.name, *grouping_columns(table.columns)]


def shown(figures: Iterable[Figure | None]) -> tuple[Figure, ...]:
    """Leave out what has nothing to show: figures that were not made, and those without any value."""
    return tuple(figure for figure in figures if figure is not None and has_values(figure))


def has_values(figure: Figure) -> bool:
    """Whether a series of a figure has any value."""
    return any(figure.frame[series.column].is_not_null().any() for series in figure.series)


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


def intervals(series: Sequence[Series], confidence: float, mark: str = "Bands") -> str:
    """Say what the limits of series are; empty if none has any.

    Args:
        series: The series of a figure.
        confidence: The level of the intervals.
        mark: What shows them: `Bands` behind lines, `Bars` at points.
    """
    return f"{mark} are {level(confidence)} intervals." if any(line.lower for line in series) else ""


def caption(*sentences: str) -> str:
    """Join the sentences that have words."""
    return " ".join(sentence for sentence in sentences if sentence)


def with_limits(table: pl.DataFrame, series: Series, limits_of: str = "") -> Series:
    """Return a series with the columns of its limits if the table has any limit.

    Args:
        table: The table of the series.
        series: The series without limits.
        limits_of: The ratio that the limits are named after; default: the column of the series.
    """
    lower, upper = (f"{limits_of or series.column}_{side}" for side in ("lower", "upper"))
    if lower not in table.columns or not table[lower].is_not_null().any():
        return series
    return Series(series.column, series.name, series.role, series.mark, lower, upper)


def ratio_series(table: pl.DataFrame, mark: str = "line") -> tuple[Series, ...]:
    """Return precision, recall and F1 with their limits, precision on top.

    Args:
        table: A table with these columns.
        mark: `line` or `point`.
    """
    is_line = mark == "line"
    lines = (
        Series(name, RATIO_NAMES[name], role, "line" if is_line else "point") for name, role in RATIO_ROLES.items()
    )
    return tuple(with_limits(table, line) for line in lines)


def drawn(table: pl.DataFrame, x: str, series: Sequence[Series]) -> pl.DataFrame:
    """Return the columns that a figure needs: groups, the horizontal axis, series, limits, and how good these are."""
    columns = [x, *(name for line in series for name in (line.column, line.lower, line.upper) if name)]
    quality = [INTERVAL_QUALITY] if INTERVAL_QUALITY in table.columns and any(line.lower for line in series) else []
    return table.select(list(dict.fromkeys([*keys_of(table), *columns, *quality])))


def thinned(table: pl.DataFrame, points: int = MOST_POINTS) -> pl.DataFrame:
    """Return at most about so many rows of every group, evenly spread over their order, the last among them."""
    keys = keys_of(table)
    if table.is_empty() or table.group_by(keys).len()["len"].max() <= points:  # type: ignore[operator]  # no row is NULL
        return table
    index, size = pl.int_range(pl.len()).over(keys), pl.len().over(keys)
    return table.filter((index % (size / points).ceil().cast(pl.Int64) == 0) | (index == size - 1))


def _of_thinned(table: pl.DataFrame, frame: pl.DataFrame) -> str:
    if table.height == frame.height:
        return ""
    return f"Of {table.height:,} thresholds of all groups, {frame.height:,} are drawn, evenly spread."


def of_points(points: pl.DataFrame | None) -> str:
    """Say which thresholds are marked: the criteria of the operating points."""
    if points is None or points.is_empty():
        return ""
    names = points[CRITERION].unique(maintain_order=True).sort().to_list()
    return f"Marked: the thresholds chosen by {', '.join(names)}."


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


def by_threshold(
    curve: pl.DataFrame,
    points: pl.DataFrame | None,
    confidence: float,
    *,
    name: str = "by_threshold",
    title: str = "Precision, recall and F1 by threshold",
    what: str = "Precision, recall and F1 if everything that scores at least the threshold counts.",
    x_title: str = "Threshold: lowest score that counts",
    below: Sequence[Series] = (),
) -> Figure:
    """Return precision, recall and F1 over the thresholds.

    Args:
        curve: One row per group and threshold with the three ratios and their limits; a row without a threshold is
            left out.
        points: The operating points, if there are any.
        confidence: The level of the intervals.
        name: Name of the figure.
        title: Its title.
        what: The first sentence of its caption.
        x_title: The title of the horizontal axis.
        below: Series that lie below the three.
    """
    rising = curve.filter(pl.col(THRESHOLD).is_not_null()).sort([*keys_of(curve), THRESHOLD])
    series = (*below, *ratio_series(curve))
    frame = drawn(thinned(rising), THRESHOLD, series)
    return Figure(
        name=name,
        title=title,
        caption=caption(what, intervals(series, confidence), GAP, of_points(points), _of_thinned(rising, frame)),
        frame=frame,
        x=Axis(THRESHOLD, x_title),
        y=shares(", ".join(line.name for line in reversed(series))),
        series=series,
        chosen=chosen_rows(points, THRESHOLD, (line.column for line in series)),
    )


def precision_recall(curve: pl.DataFrame, points: pl.DataFrame | None, below: Sequence[Series] = ()) -> Figure:
    """Return precision against recall, in the order of falling thresholds.

    Args:
        curve: One row per group and threshold with both ratios; a row without a threshold is left out.
        points: The operating points, if there are any.
        below: Series that lie below the curve.
    """
    ordered = curve.filter(pl.col(THRESHOLD).is_not_null())
    descending = [False] * len(keys_of(curve)) + [True]
    ordered = thinned(ordered.sort([*keys_of(curve), THRESHOLD], descending=descending))
    series = (*below, Series("precision", "Precision", "precision", "path"))
    words = "Every point of the line is a threshold: lower thresholds find more, mostly at a lower precision."
    return Figure(
        name="precision_recall",
        title="Precision against recall",
        caption=caption(words, "It has a gap where one of the two is not defined.", of_points(points)),
        frame=drawn(ordered, "recall", series),
        x=shares("Recall", "recall"),
        y=shares("Precision"),
        series=series,
        chosen=chosen_rows(points, "recall", (line.column for line in series)),
    )


def histogram(values: pl.DataFrame, column: str, per_unit: float, lowest: int, highest: int) -> pl.DataFrame:
    """Count the values of every group in bins; bins without a value are 0.

    Args:
        values: One row per value; NULL is left out. A group without any value has no row.
        column: The column of the values.
        per_unit: Bins for 1: bin i goes from i / per_unit to (i + 1) / per_unit, the upper end excluded.
        lowest: Number of the lowest bin; lower values fall into it.
        highest: Number of the highest bin, likewise; 1 belongs to the bin below it.

    Returns:
        Columns of the group, `bin`: the middle of the bin, and `number`.
    """
    keys = keys_of(values)
    cell = (pl.col(column) * per_unit).floor().clip(lowest, highest).cast(pl.Int64).alias(BIN)
    counted = (
        values.filter(pl.col(column).is_not_null()).group_by(*keys, cell).agg(pl.len().cast(pl.Int64).alias(NUMBER))
    )
    cells = pl.DataFrame({BIN: range(lowest, highest + 1)}, schema={BIN: pl.Int64})
    every = counted.select(keys).unique().join(cells, how="cross")
    filled = every.join(counted, on=[*keys, BIN], how="left", nulls_equal=True).with_columns(
        pl.col(NUMBER).fill_null(0)
    )
    return filled.sort([*keys, BIN]).with_columns((pl.col(BIN) + 0.5) / per_unit)


def histogram_of_shares(values: pl.DataFrame, column: str, *, name: str, title: str, what: str, unit: str) -> Figure:
    """Return how values between 0 and 1 are spread over units.

    Args:
        values: One row per unit.
        column: The column of the values.
        name: Name of the figure.
        title: Its title.
        what: What a value is: `F1 of a document`.
        unit: What is counted, in the plural: `documents`.
    """
    frame = histogram(values, column, BINS_OF_SHARES, 0, BINS_OF_SHARES - 1)
    undefined = values[column].null_count()
    lacking = f"{undefined:,} rows have none, as it is not defined there, and are left out." if undefined else ""
    width = f"{100 / BINS_OF_SHARES:g}"
    return Figure(
        name=name,
        title=title,
        caption=caption(f"Number of {unit} by {what}, in bins that are {width} percentage points wide.", lacking),
        frame=frame,
        x=shares(f"{what} (bins of {width} percentage points)", BIN),
        y=Axis("", f"Number of {unit}", "integer", includes=(0.0,)),
        series=(Series(NUMBER, unit.capitalize(), "estimate", "bar"),),
    )


def across_groups(
    table: pl.DataFrame,
    series: Sequence[Series],
    size: str,
    *,
    name: str,
    title: str,
    words: str,
    y: Axis,
    rules: tuple[Rule, ...] = (),
) -> Figure:
    """Return values of all groups side by side; of many groups the largest.

    Args:
        table: One row per group.
        series: What is drawn of every group.
        size: The column by which groups are large.
        name: Name of the figure.
        title: Its title.
        words: Its caption, to which the number of groups is added.
        y: The vertical axis.
        rules: Lines that help to read it.
    """
    is_total = pl.col(GROUPING.name) == TOTAL
    largest = table.sort(is_total, pl.col(size), descending=True, nulls_last=True, maintain_order=True).head(
        MOST_GROUPS
    )
    left_out = f"Of {table.height:,} groups the {MOST_GROUPS} largest are drawn." if table.height > MOST_GROUPS else ""
    frame = drawn(largest.with_columns(group_labels(largest)), GROUP, series)
    axis = Axis(GROUP, "Group", "category")
    return Figure(name, title, caption(words, left_out), frame, axis, y, tuple(series), rules, across=True)


def group_labels(table: pl.DataFrame) -> pl.Series:
    """Name every row's group for people, with its grouping where two groupings have a group of that name."""
    texts = pl.Series(GROUP, [group_text(row) for row in table.select(keys_of(table)).iter_rows(named=True)], pl.String)
    repeated = texts.is_duplicated()
    groupings = table[GROUPING.name].to_list()
    labels = zip(texts.to_list(), groupings, repeated.to_list(), strict=True)
    return pl.Series(GROUP, [f"{text} ({by})" if twice else text for text, by, twice in labels], pl.String)
