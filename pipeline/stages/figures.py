"""Figures and key numbers as data, which `report` draws: what stages show of their results, and what many have."""

from __future__ import annotations

from collections import Counter
from dataclasses import field, replace
from functools import wraps
from typing import TYPE_CHECKING, Literal, TypeAlias

import polars as pl

from ..base.columns import RATIOS, THRESHOLD, nothing, nulls
from ..base.records import dataclass
from ..base.schemas import GROUPING, TOTAL, group_text, grouping_columns
from ..metrics.curves.operating_points import CRITERION
from ..metrics.uncertainty.limits import DOUBTFUL, INTERVAL_QUALITY, ON_SAME_DATA, of_chosen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence


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


# Building blocks of figures: axes, series with limits, captions, rows in order and not too many of them.


MOST_POINTS = 300  # of a line in one group: more cannot be told apart
RATIO_ROLES: Mapping[str, Role] = {"f1": "f1", "recall": "recall", "precision": "precision"}  # the most important last
RATIO_NAMES = {"precision": "Precision", "recall": "Recall", "f1": "F1"}
GAP = "A line has a gap where its ratio is not defined."


def keys_of(table: pl.DataFrame) -> list[str]:
    """Return the columns that name the group of a row: `grouping` and the grouping columns."""
    return [GROUPING.name, *grouping_columns(table.columns)]


# What makes the figures of a stage from its result tables and the level of their intervals, 0.95 unless it is given.
MakesFigures: TypeAlias = "Callable[..., tuple[Figure, ...]]"


def shown(make: Callable[[Mapping[str, pl.DataFrame], float], Iterable[Figure | None]]) -> MakesFigures:
    """Make a function that yields figures return them, without None and without those that have no value anywhere."""

    @wraps(make)
    def figures(tables: Mapping[str, pl.DataFrame], confidence: float = 0.95, /) -> tuple[Figure, ...]:
        return tuple(
            figure for figure in make(tables, confidence) if figure is not None and not figure.frame.is_empty()
        )

    return figures


def shares(title: str, column: str = "") -> Axis:
    """Return an axis of ratios that reaches 0 and 1."""
    return Axis(column, title, "percent", includes=(0.0, 1.0))


def level(confidence: float) -> str:
    """Return the level of intervals for people: `95%`."""
    return f"{100 * confidence:.10g}%"


def intervals(series: Sequence[Series], confidence: float) -> str:
    """Say what the limits of series are, bands behind lines or bars at points; empty if none has any."""
    marks = {line.mark for line in series if line.lower}
    return f"{'Bars' if marks == {'point'} else 'Bands'} are {level(confidence)} intervals." if marks else ""


def caption(*sentences: str) -> str:
    """Join the sentences that have words."""
    return " ".join(sentence for sentence in sentences if sentence)


def visible(table: pl.DataFrame, series: Series) -> Series:
    """Return a series that can be seen: points in place of a line where no group has two rows."""
    is_seen = series.mark in {"point", "bar"} or not has_single_rows(table)
    return series if is_seen else replace(series, mark="point")


def has_single_rows(table: pl.DataFrame) -> bool:
    """Whether no group has two rows, so that there is no line to draw."""
    return not table.select(keys_of(table)).is_duplicated().any()


def with_limits(table: pl.DataFrame, series: Series, limits_of: str = "") -> Series:
    """Return a `visible` series with the columns of its limits, if the table has any, that `limits_of` or it names."""
    seen = visible(table, series)
    lower, upper = (f"{limits_of or series.column}_{side}" for side in ("lower", "upper"))
    has_limits = lower in table.columns and bool(table[lower].is_not_null().any())
    return replace(seen, lower=lower, upper=upper) if has_limits else seen


def ratio_series(table: pl.DataFrame, mark: Mark = "line") -> tuple[Series, ...]:
    """Return precision, recall and F1 with their limits, precision last."""
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

    Rows are in the order in which they are drawn; the last of every group is kept.
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
    """Mark the limits of rows whose threshold was chosen as the best on the same data; without thresholds none was."""
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

    Columns of its series that the operating points lack are NULL, as nothing is marked there.
    """
    if points is None:
        return None
    marked = points.filter(pl.col(THRESHOLD).is_not_null())
    values = list(dict.fromkeys([x, CRITERION, *columns]))
    absent = nulls(name for name in values if name not in points.columns)
    return marked.with_columns(*absent).select(*keys_of(points), *values) if marked.height else None


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
    y = shares("Precision, recall, F1" if not below else f"Precision, recall, F1, {below[0].name.lower()}")
    return lines_by_threshold(
        curve, points, confidence, series, name=name, title=title, what=what, x_title=x_title, y=y
    )


def lines_by_threshold(
    curve: pl.DataFrame,
    points: pl.DataFrame | None,
    confidence: float,
    series: tuple[Series, ...],
    *,
    name: str,
    title: str,
    what: str,
    x_title: str,
    y: Axis,
) -> Figure:
    """Return any series over the thresholds; arguments are as for `by_threshold`."""
    frame = drawn(thinned(curve, THRESHOLD), THRESHOLD, series)
    return Figure(
        name=name,
        title=title,
        caption=caption(what, intervals(series, confidence), GAP, of_points(points), of_thinned(curve, frame)),
        frame=frame,
        x=Axis(THRESHOLD, x_title),
        y=y,
        series=series,
        chosen=chosen_rows(points, THRESHOLD, (line.column for line in series)),
    )


def precision_recall(curve: pl.DataFrame, points: pl.DataFrame | None, below: Sequence[Series] = ()) -> Figure | None:
    """Return precision against recall, in the order of the thresholds; None where no group has two of them."""
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

    The curve has one row per group and threshold, as `rising` orders them; `words` are what a caption says of the line.
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
    """Return how shares are spread over units, one a row: `what` is `F1 of a document`, `unit` is `documents`."""
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
    """Return values of all groups, one a row, side by side; of many groups those with the largest `size`."""
    is_total = pl.col(GROUPING.name) == TOTAL
    largest = table.sort(is_total, pl.col(size), descending=True, nulls_last=True, maintain_order=True).head(
        MOST_GROUPS
    )
    left_out = f"Of {table.height:,} groups the {MOST_GROUPS} largest are drawn." if table.height > MOST_GROUPS else ""
    frame = drawn(largest.with_columns(group_labels(largest)), GROUP, series)
    axis = Axis(GROUP, "Group", "category")
    return Figure(name, title, caption(words, left_out), frame, axis, y, tuple(series), rules, across=True)


def ratios_of_groups(best: pl.DataFrame, size: str, confidence: float, at: str) -> Figure | None:
    """Return the ratios of all groups, one a row, side by side, `at` saying where; None of a single group."""
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
    """Rows at chosen thresholds, with cross-fitted ratios and limits in place of those on the same data.

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
    return rows.with_columns_seq(
        *swapped,
        *(pl.when(is_fitted).then(name).alias(f"{name}{IN_SAMPLE}") for name in RATIOS),
        quality.alias(QUALITY_IN_SAMPLE),
        marked.alias(INTERVAL_QUALITY),
        choice.alias(CHOICE),
    )


def beside_best(best: pl.DataFrame, points: pl.DataFrame) -> pl.DataFrame:
    """The rows of a curve with its best F1, with the cross-fitted columns of the operating point that chose them.

    A group has one row, or several of which those of this choice have the threshold of the operating point.
    """
    keys = [GROUPING.name, *grouping_columns(best.columns), THRESHOLD]
    fitted = [name for name in points.columns if CROSS_FITTED in name]
    of_f1 = points.filter(pl.col(CRITERION) == "max_f1").select(*keys, *fitted)
    return best.join(of_f1, on=keys, how="left", nulls_equal=True, maintain_order="left")


def words_of_choice(row: Mapping[str, object]) -> str:
    """Which data the ratios of a row of `on_other_data` are of, to be put behind a sentence."""
    return WORDS.get(str(row[CHOICE]), "")


def key_numbers_of(table: pl.DataFrame, wanted: Sequence[Wanted]) -> tuple[KeyNumber, ...]:
    """Return the wanted numbers of every row, group by group, the total first."""
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
