"""SQL trees: quoted names in, text of a dialect out."""

from __future__ import annotations

from sqlglot import ErrorLevel, exp


def column(name: str, table: str | None = None) -> exp.Column:
    """A quoted column reference; whatever the name holds stays a name."""
    return exp.column(exp.to_identifier(name, quoted=True), table=table)


def render(tree: exp.Expr, dialect: str = "duckdb", *, pretty: bool = True, copy: bool = True) -> str:
    """SQL text of a tree in a dialect; what the dialect cannot say is an error, never a silent change.

    Without `copy` the tree may change meanwhile: for trees that were made to be written once.
    """
    if dialect != "duckdb":
        tree = tree.transform(_widened)
    return tree.sql(dialect=dialect, pretty=pretty, copy=copy, comments=False, unsupported_level=ErrorLevel.RAISE)


def _widened(node: exp.Expr) -> exp.Expr:
    """An unsigned type of two bytes, which only DuckDB has, as the next one that holds its numbers."""
    is_narrow = isinstance(node, exp.DataType) and node.this == exp.DataType.Type.USMALLINT
    return exp.DataType(this=exp.DataType.Type.INT) if is_narrow else node


def double(value: float) -> exp.Cast:
    """A DOUBLE literal; through text, because a bare `0.1` is a decimal in DuckDB."""
    return exp.cast(exp.Literal.string(repr(float(value))), "DOUBLE")


def is_finite(value: exp.Expr) -> exp.EQ:
    """Whether a floating value is neither NaN nor infinite; NULL for NULL.

    The form needs no function, so that every engine has it, and no engine answers it from statistics.
    """
    difference = exp.paren(exp.Sub(this=value.copy(), expression=value.copy()))
    return exp.EQ(this=difference, expression=double(0))


def present(value: exp.Expr) -> exp.Expr:
    """That a value is not NULL."""
    return exp.Not(this=exp.Is(this=value, expression=exp.null()))
