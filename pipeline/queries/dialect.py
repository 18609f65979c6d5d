"""SQL trees: quoted names in, text of a dialect out."""

from __future__ import annotations

from functools import cache

from sqlglot import ErrorLevel, exp

from . import kept
from .duckdb_text import for_duckdb
from .spark_text import for_spark


def column(name: str, table: str | None = None) -> exp.Column:
    """Return a quoted reference to a column; whatever characters the name has, it stays a name."""
    return exp.column(exp.to_identifier(name, quoted=True), table=table)


def render(tree: exp.Expr, dialect: str = "duckdb", *, pretty: bool = True, copy: bool = True) -> str:
    """Return the SQL text of a tree in a dialect; raise an error for anything that the dialect cannot express.

    Without `copy` the tree may change meanwhile: for trees that were made to be written once.
    """
    number = kept.number_of(tree)
    key = None if number is None else (number, dialect, pretty)
    return kept.text(key, lambda: _rendered(tree, dialect, pretty=pretty, copy=copy or number is not None))


def _rendered(tree: exp.Expr, dialect: str, *, pretty: bool, copy: bool) -> str:
    tree = for_duckdb(tree, copy=copy) if dialect == "duckdb" else for_spark(tree)
    return tree.sql(dialect=dialect, pretty=pretty, copy=copy, comments=False, unsupported_level=ErrorLevel.RAISE)


@cache
def data_type(sql_type: str) -> exp.DataType:
    """Return a type of DuckDB as a tree, to be copied, never changed: reading its text takes longer than all else."""
    return exp.DataType.build(sql_type, dialect="duckdb")


def double(value: float) -> exp.Cast:
    """Return a DOUBLE literal, made from text because a bare `0.1` is a decimal in DuckDB."""
    return exp.cast(exp.Literal.string(repr(float(value))), data_type("DOUBLE"))


def is_finite(value: exp.Expr) -> exp.EQ:
    """Test whether a floating-point value is neither NaN nor infinite; NULL for NULL.

    The test needs no function, so every engine can run it, and none answers it from statistics.
    """
    difference = exp.paren(exp.Sub(this=value.copy(), expression=value.copy()))
    return exp.EQ(this=difference, expression=double(0))
