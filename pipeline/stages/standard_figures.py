"""Figures that several stages have: ratios by threshold, precision against recall, histograms, values across groups."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from ..tables.groupings import TOTAL, group_text
from ..tables.schemas import GROUPING
from ..tables.sweep import THRESHOLD
from .figure_blocks import (
    GAP,
    caption,
    chosen_rows,
    drawn,
    has_single_rows,
    intervals,
    keys_of,
    of_points,
    of_thinned,
    ratio_series,
    shares,
    thinned,
    visible,
)
from .figures import Axis, Figure, Rule, Series

if TYPE_CHECKING:
    from collections.abc import Sequence

MOST_GROUPS = 30  # beside each other in one panel
BINS_OF_SHARES = 20  # between 0 and 1
GROUP, BIN, NUMBER = "group", "bin", "number"


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
        curve: One row per group and threshold with the three ratios and their limits, as `rising` orders them.
        points: The operating points, if there are any.
        confidence: The level of the intervals.
        name: Name of the figure.
        title: Its title.
        what: The first sentence of its caption.
        x_title: The title of the horizontal axis.
        below: Series that lie below the three.
    """
    series = (*(visible(curve, line) for line in below), *ratio_series(curve))
    frame = drawn(thinned(curve, THRESHOLD), THRESHOLD, series)
    return Figure(
        name=name,
        title=title,
        caption=caption(what, intervals(series, confidence), GAP, of_points(points), of_thinned(curve, frame)),
        frame=frame,
        x=Axis(THRESHOLD, x_title),
        y=shares("Precision, recall, F1" if not below else f"Precision, recall, F1, {below[0].name.lower()}"),
        series=series,
        chosen=chosen_rows(points, THRESHOLD, (line.column for line in series)),
    )


def precision_recall(curve: pl.DataFrame, points: pl.DataFrame | None, below: Sequence[Series] = ()) -> Figure | None:
    """Return precision against recall, in the order of the thresholds; None where no group has two of them.

    Args:
        curve: One row per group and threshold with both ratios, as `rising` orders them.
        points: The operating points, if there are any.
        below: Series that lie below the curve.
    """
    return path_of_thresholds(
        curve,
        points,
        name="precision_recall",
        title="Precision against recall",
        words="Every point of the line is a threshold: lower thresholds find more, mostly at a lower precision.",
        axes=(shares("Recall", "recall"), shares("Precision")),
        series=(*below, Series("precision", "Precision", "precision", "path")),
    )


def path_of_thresholds(
    curve: pl.DataFrame,
    points: pl.DataFrame | None,
    *,
    name: str,
    title: str,
    words: str,
    axes: tuple[Axis, Axis],
    series: tuple[Series, ...],
    rules: tuple[Rule, ...] = (),
) -> Figure | None:
    """Return one ratio against another, in the order of the thresholds; None where no group has two of them.

    Args:
        curve: One row per group and threshold with the ratios, as `rising` orders them.
        points: The operating points, if there are any.
        name: Name of the figure.
        title: Its title.
        words: What a caption says of the line.
        axes: The axes x and y.
        series: What is drawn.
        rules: Lines to compare with.
    """
    if has_single_rows(curve):
        return None
    x, y = axes
    return Figure(
        name=name,
        title=title,
        caption=caption(words, "It has a gap where one of the two is not defined.", of_points(points)),
        frame=drawn(thinned(curve, x.column), x.column, series),
        x=x,
        y=y,
        series=series,
        rules=rules,
        chosen=chosen_rows(points, x.column, (line.column for line in series)),
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
    counts = f"{undefined:,} of {values.height:,} in all groups together"
    lacking = f"Left out, because it is not defined there: {counts}." if undefined else ""
    width = f"{100 / BINS_OF_SHARES:g}"
    return Figure(
        name=name,
        title=title,
        caption=caption(f"Number of {unit} by {what}, in bins that are {width} percentage points wide.", lacking),
        frame=frame,
        x=shares(f"{what[0].upper()}{what[1:]} (bins of {width} percentage points)", BIN),
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


def ratios_of_groups(best: pl.DataFrame, size: str, confidence: float, at: str) -> Figure | None:
    """Return precision, recall and F1 of all groups side by side; None of a single group.

    Args:
        best: One row per group with the three ratios and their limits.
        size: The column by which groups are large.
        confidence: The level of the intervals.
        at: Where the ratios are taken: `at the threshold that max_f1 chose`.
    """
    if best.height < 2:  # noqa: PLR2004 - a single group has none beside it
        return None
    series = ratio_series(best, "point")
    return across_groups(
        best,
        series,
        size,
        name="groups",
        title="Precision, recall and F1 by group",
        words=caption(f"The ratios of every group {at}.", intervals(series, confidence)),
        y=shares("Precision, recall, F1"),
    )


def group_labels(table: pl.DataFrame) -> pl.Series:
    """Name every row's group for people so that no two names are the same.

    A name that groups of two groupings have is followed by the grouping, and one that they still have by a number, as
    NULL and the text `null` of one column.
    """
    keys = table.select(keys_of(table))
    texts = [group_text(row) for row in keys.iter_rows(named=True)]
    of_text, seen, labels = Counter(texts), Counter[str](), []
    for text, grouping in zip(texts, table[GROUPING.name], strict=True):
        label = text if of_text[text] == 1 or grouping == TOTAL else f"{text} ({grouping})"
        seen[label] += 1
        labels.append(label if seen[label] == 1 else f"{label} {seen[label]}")
    return pl.Series(GROUP, labels, dtype=pl.String)
