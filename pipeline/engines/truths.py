"""Whether DuckDB finds that a predicate holds for values that lie in memory, without an input being read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import duckdb
import sqlglot.expressions as exp

from ..queries.dialect import render
from ..queries.value_lists import apart, table
from .expression_types import connected

if TYPE_CHECKING:
    import pyarrow as pa

_VALUES = "values_to_test"


def truths(predicate: exp.Expr, values: pa.Table) -> list[bool | None]:
    """Say of every row of a table whether a predicate holds, as a scan of a file would find it.

    Args:
        predicate: A predicate on the columns of the table.
        values: The table.

    Returns:
        Per row whether the predicate is true; None where it cannot be computed, and everywhere if it does not fit the
        columns.
    """
    holds = exp.Coalesce(this=exp.paren(predicate.copy()), expressions=[exp.false()])
    holds, lists = apart(holds)  # what has a list apart has a subquery, which cannot be tried
    text = render(exp.select(exp.alias_(holds if lists else exp.func("try", holds), "holds")).from_(_VALUES))
    with connected() as connection:
        for name, listed in lists.items():
            connection.register(name, table(listed))
        connection.register(_VALUES, values)
        try:
            return [row[0] for row in connection.sql(text).fetchall()]
        except duckdb.Error:
            return [None] * values.num_rows
