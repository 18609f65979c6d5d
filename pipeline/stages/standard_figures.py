"""Figures and key numbers that several stages have."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from ..metrics.curves.operating_points import CRITERION
from ..metrics.uncertainty.interval_quality import DOUBTFUL, INTERVAL_QUALITY
from ..records import dataclass
from ..tables.columns import RATIOS, THRESHOLD, nothing
from ..tables.groupings import TOTAL, group_text, grouping_columns
from ..tables.schemas import GROUPING
from .figures import (
    GAP,
    Axis,
    Figure,
    KeyNumber,
    Rule,
    Series,
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
from .stage import ON_SAME_DATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .figures import Format, Role


# Figures that several stages have: ratios by threshold, precision against recall, histograms, values across groups.


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


# Key numbers of result rows, as several stages show them, and what a chosen threshold gives on other data.


@dataclass(frozen=True)
class Wanted:
    """A column of result rows that is a key number.

    Attributes:
        column: The column; its limits, if it has any, are beside it.
        name: What it is.
        meaning: What it means, in about five words.
        role: Its colour.
        format: How it is written.
        quality: The column that says how far the limits can be trusted.
    """

    column: str
    name: str
    meaning: str
    role: Role = "neutral"
    format: Format = "percent"
    quality: str = INTERVAL_QUALITY


CROSS_FITTED, IN_SAMPLE = "_cross_fitted", "_in_sample"
CHOICE, QUALITY_IN_SAMPLE = "_choice", f"{INTERVAL_QUALITY}{IN_SAMPLE}"
OTHER_DATA, SAME_DATA = "other_data", "same_data"
WORDS = {  # behind a sentence
    OTHER_DATA: " (measured on data that had no part in choosing the threshold)",
    SAME_DATA: " (a little too good, because the threshold was chosen on the same data)",
}


def on_other_data(rows: pl.DataFrame) -> pl.DataFrame:
    """Rows at chosen thresholds, with cross-fitted ratios and limits in the place of those of the same data.

    Args:
        rows: Operating points, or rows of a curve that are the best of it, with cross-fitted columns if there are any.

    Returns:
        The rows; `<ratio>_in_sample` and `interval_quality_in_sample` are what stood there before, and `CHOICE` says
        which data the ratios are of: `OTHER_DATA`; `SAME_DATA`, which `interval_quality` says, too, unless it has worse
        to say; NULL where nothing was chosen, or the criterion has a confidence.
    """
    ends = ("", "_lower", "_upper")
    fitted = [f"{name}{CROSS_FITTED}{end}" for name in RATIOS for end in ends]
    rows = rows.hstack(nothing((name for name in fitted if name not in rows.columns), rows.height))
    criterion = pl.col(CRITERION) if CRITERION in rows.columns else pl.lit("")
    is_free = criterion.str.contains("confidence=|^threshold=|^recall_reference$")
    is_fitted = pl.all_horizontal(pl.col(f"{name}{CROSS_FITTED}").is_not_null() for name in RATIOS)
    is_chosen = pl.col(THRESHOLD).is_not_null() & ~is_free
    choice = pl.when(is_fitted).then(pl.lit(OTHER_DATA)).when(is_chosen).then(pl.lit(SAME_DATA))
    columns = [f"{name}{end}" for name in RATIOS for end in ends if f"{name}{end}" in rows.columns]
    swapped = (
        pl.when(is_fitted).then(f"{name.removesuffix(end)}{CROSS_FITTED}{end}").otherwise(name).alias(name)
        for name, end in ((name, next(end for end in reversed(ends) if name.endswith(end))) for name in columns)
    )
    quality = pl.col(INTERVAL_QUALITY)
    unless_chosen = pl.when(quality == ON_SAME_DATA).then(pl.lit("good")).otherwise(quality)
    if_chosen = pl.when(quality.is_in(DOUBTFUL) | quality.is_null()).then(quality).otherwise(pl.lit(ON_SAME_DATA))
    marked = pl.when(is_fitted).then(unless_chosen).when(is_chosen).then(if_chosen).otherwise(quality)
    return rows.with_columns(
        *swapped,
        *(pl.when(is_fitted).then(name).alias(f"{name}{IN_SAMPLE}") for name in RATIOS),
        quality.alias(QUALITY_IN_SAMPLE),
        marked.alias(INTERVAL_QUALITY),
        choice.alias(CHOICE),
    )


def beside_best(best: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
    """The rows of a curve with its best F1, with the cross-fitted columns of the operating point that chose them.

    Args:
        best: One row per group, or several of which those of this choice have the threshold of the operating point.
        points: The operating points; none was chosen for F1 where the criteria are others.
    """
    keys = [GROUPING.name, *grouping_columns(best.columns), THRESHOLD]
    fitted = [name for name in points.columns if CROSS_FITTED in name]
    of_f1 = points.filter(pl.col(CRITERION) == "max_f1").select(*keys, *fitted)
    return best.join(of_f1, on=keys, how="left", nulls_equal=True, maintain_order="left")


def words_of_choice(row: Mapping[str, object]) -> str:
    """Which data the ratios of a row of `on_other_data` are of, to be put behind a sentence."""
    return WORDS.get(str(row[CHOICE]), "")


def key_numbers_of(table: pl.DataFrame, wanted: Sequence[Wanted]) -> tuple[KeyNumber, ...]:
    """Return the wanted numbers of every row, group by group, the total first.

    Args:
        table: One row per group.
        wanted: What is shown of a row.
    """
    ordered = table.sort(pl.col(GROUPING.name) != TOTAL, maintain_order=True)
    return tuple(_numbers(ordered, wanted))


def _numbers(table: pl.DataFrame, wanted: Sequence[Wanted]) -> Iterator[KeyNumber]:
    for row in table.iter_rows(named=True):
        group = group_text(row)
        for number in wanted:
            lower, upper = (row.get(f"{number.column}_{side}") for side in ("lower", "upper"))
            quality = row.get(number.quality) if lower is not None or upper is not None else None
            yield KeyNumber(
                grouping=row[GROUPING.name],
                group=group,
                name=number.name,
                meaning=number.meaning,
                value=row[number.column],
                lower=lower,
                upper=upper,
                quality=quality or "",
                role=number.role,
                format=number.format,
            )
