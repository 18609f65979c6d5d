"""Columns of result tables from arrays: an undefined number is NULL, never NaN."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from .schemas import polars_types

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import numpy as np
    from numpy.typing import NDArray


def doubles(name: str, values: NDArray[np.float64]) -> pl.Series:
    """A DOUBLE column; nan becomes NULL."""
    return pl.Series(name, values, dtype=pl.Float64, nan_to_null=True)


def texts(name: str, values: Iterable[object]) -> pl.Series:
    """A VARCHAR column; None and the empty text become NULL."""
    return pl.Series(name, [str(value) if value else None for value in values], dtype=pl.String)


def nulls(names: Iterable[str], kind: type[pl.DataType] = pl.Float64) -> list[pl.Expr]:
    """Columns of one type that are NULL in every row."""
    return [pl.lit(None, dtype=kind).alias(name) for name in names]


def by_group(frame: pl.DataFrame, keys: Sequence[str]) -> dict[tuple[object, ...], pl.DataFrame]:
    """The rows of every group by the values of its keys, groups and rows in the order of the frame."""
    frames = frame.partition_by(list(keys), maintain_order=True)
    return {tuple(rows.get_column(name)[0] for name in keys): rows for rows in frames if rows.height}


def as_key(values: pl.Series) -> pl.Series:
    """Return keys as a table may hold them: integers and text as they are, others (dates, flags) as text."""
    return values if values.dtype in polars_types("KEY") else values.cast(pl.String)
