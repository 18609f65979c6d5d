"""Digests of the rows of a relation, whatever their order: queries for DuckDB alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from .dialect import column

if TYPE_CHECKING:
    from collections.abc import Sequence

_UPPER, _LOWER = "digest:upper", "digest:lower"


def digest(relation: exp.Query) -> exp.Select:
    """Number and digest of the rows of a relation, whatever their order."""
    return added(numbers_of_rows(relation, ()), "met")


def numbers_of_rows(relation: exp.Query, names: Sequence[str]) -> exp.Select:
    """Some columns of a relation, and two numbers for every row, made before rows are repeated in a join."""
    text = exp.cast(exp.column("met"), "VARCHAR")
    upper, lower = exp.func("md5_number_upper", text), exp.func("md5_number_lower", text.copy())
    wide = exp.cast(lower, exp.DataType.build("HUGEINT", dialect="duckdb"))
    numbers = (exp.alias_(upper, _UPPER, quoted=True), exp.alias_(wide, _LOWER, quoted=True))
    return exp.select(*(column(name, "met") for name in names), *numbers).from_(relation.subquery("met"))


def added(numbers: exp.Select, alias: str) -> exp.Select:
    """How many rows there are, and what their numbers are together."""
    sums = (exp.func("bit_xor", column(_UPPER)), exp.Sum(this=column(_LOWER)))
    return exp.select(exp.Count(this=exp.Star()), *sums).from_(numbers.subquery(alias))
