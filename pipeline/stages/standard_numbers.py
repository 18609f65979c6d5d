"""Key numbers of result rows, as several stages show them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import polars as pl

from pipeline.metrics.uncertainty.qualities import INTERVAL_QUALITY
from pipeline.stages.figures import KeyNumber
from pipeline.tables.groupings import TOTAL, group_text
from pipeline.tables.schemas import GROUPING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.stages.figures import Format, Role


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
