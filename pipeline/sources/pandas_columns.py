"""Pandas frames as Arrow tables, column by column where Arrow does not take them whole."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from .types import MeansSomethingElse

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_KINDS = 3
# what Arrow raises of values that it cannot hold; pandas raises ValueError where a name is there twice
_NOT_TAKEN = (pa.ArrowException, TypeError, ValueError, OverflowError)


def table_of_pandas(content: Any) -> pa.Table:  # noqa: ANN401 - pandas need not be installed
    """Return the rows of a pandas frame, without its index.

    A column that Arrow cannot hold, such as one of values of several types, becomes `MeansSomethingElse`: it may stand
    beside those that are read. Sparse columns are read as what they stand for, and names may be there twice.

    Args:
        content: The frame.
    """
    try:
        return pa.Table.from_pandas(content, preserve_index=False)
    except _NOT_TAKEN:
        columns = [_column(content.iloc[:, [number]]) for number in range(content.shape[1])]
        if not columns:
            raise
    fields = [column.schema.field(0) for column in columns]
    return pa.Table.from_arrays([column.column(0) for column in columns], schema=pa.schema(fields))


def _column(content: Any) -> pa.Table:  # noqa: ANN401 - a pandas frame
    values = content.iloc[:, 0]
    if hasattr(values.dtype, "fill_value") and hasattr(values, "sparse"):
        content = values.sparse.to_dense().to_frame()
    try:
        return pa.Table.from_pandas(content, preserve_index=False)
    except _NOT_TAKEN:
        kind = MeansSomethingElse(_words(values))
        nothing = pa.ExtensionArray.from_storage(kind, pa.nulls(len(values)))
        return pa.table([nothing], schema=pa.schema([pa.field(str(content.columns[0]), kind)]))


def _words(values: Any) -> str:  # noqa: ANN401 - a pandas series
    """Its type, and of objects of several types the first row of each: `object (int from row 1, str from row 7)`."""
    if str(values.dtype) != "object":
        return str(values.dtype)
    firsts = list(islice(_firsts(values), _MOST_KINDS + 1))
    shown = ", ".join(f"{kind} from row {row:,}" for kind, row in firsts[:_MOST_KINDS])
    return f"object ({shown}{', …' if len(firsts) > _MOST_KINDS else ''})"


def _firsts(values: Any) -> Iterator[tuple[str, int]]:  # noqa: ANN401 - a pandas series
    seen = set()
    for row, (value, is_missing) in enumerate(zip(values, values.isna(), strict=True), start=1):
        kind = type(value).__name__
        if not is_missing and kind not in seen:
            seen.add(kind)
            yield kind, row
