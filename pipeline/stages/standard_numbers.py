"""Key numbers of result rows, as several stages show them, and what a chosen threshold gives on other data."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ..metrics.curves.operating_points import CRITERION
from ..metrics.uncertainty.qualities import DOUBTFUL, INTERVAL_QUALITY
from ..records import dataclass
from ..tables.columns import nulls
from ..tables.groupings import TOTAL, group_text, grouping_columns
from ..tables.ratios import RATIOS
from ..tables.schemas import GROUPING
from ..tables.sweep import THRESHOLD
from .figures import KeyNumber
from .stage import ON_SAME_DATA

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from .figures import Format, Role


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
    rows = rows.with_columns(nulls(name for name in fitted if name not in rows.columns))
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
