"""The way of a query through Spark: its text in that dialect, read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import parse_one

from pipeline.queries.dialect import render

if TYPE_CHECKING:
    import sqlglot.expressions as exp


def through_spark(tree: exp.Expr) -> exp.Expr:
    """The tree, written for Spark and read back."""
    return parse_one(render(tree, "spark"), read="spark")
