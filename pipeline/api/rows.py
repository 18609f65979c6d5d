"""What an input of a public function can be."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import duckdb
import polars as pl
import pyarrow.dataset


class ArrowStream(Protocol):
    """Anything that exports its rows as an Arrow stream: Polars, pandas and Arrow tables, readers, relations."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export the rows."""
        ...


Rows: TypeAlias = (
    str | os.PathLike[str] | ArrowStream | pl.LazyFrame | pyarrow.dataset.Dataset | duckdb.DuckDBPyRelation
)
InputRows: TypeAlias = Rows | Sequence[Rows] | Mapping[str, Any]
