"""The way of a query through Spark: its text in that dialect, read back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot.expressions as exp
from sqlglot import parse_one

from pipeline.base.dialect import ROUNDS, render

if TYPE_CHECKING:
    Question = tuple[str, tuple[bool, ...]]

_read_back: dict[Question, exp.Expr] = {}


def through_spark(tree: exp.Expr) -> exp.Expr:
    """The tree, written for Spark and read back; that of an equal tree is remembered."""
    question = render(tree, pretty=False), tuple(ROUNDS in cast.meta for cast in tree.find_all(exp.Cast))
    if question not in _read_back:
        _read_back[question] = parse_one(render(tree, "spark"), read="spark")
    return _read_back[question].copy()
