"""Long lists in SQL of the user, as relations: of the text of a statement DuckDB takes 0.3 ms a value, again and again.

A list stays in its tree as it was written, so that whatever shows, compares or translates the tree has its values.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

import sqlglot.expressions as exp

from pipeline.queries.dialect import column
from pipeline.queries.kept import number_of

if TYPE_CHECKING:
    import pyarrow as pa

Tree = TypeVar("Tree", bound="exp.Expr")

_VALUE = "value"
_TYPE = "type_of_values"  # key of the meta data of an IN whose list may be a relation
_TEXT = re.compile(r"'([^']*)'")
_NUMBER = re.compile(r"-?[0-9]{1,20}")
_INTEGER = re.compile(r"(u?)int(8|16|32|64)")
_LONGS = range(-(2**63), 2**63)
_without: set[int] = set()  # numbers of kept trees without such a list


def mark(node: exp.In, kind: str) -> None:
    """Note that a list may be a relation, if its values mean the same there.

    DuckDB gives texts in a list the type of what is looked for, and both sides the wider one of two types of numbers.

    Args:
        node: The IN, whose values are one text.
        kind: Name of the Arrow type of what is looked for: text, integers, or numbers of double precision.
    """
    texts = _TEXT.findall(_text(node))
    if len(texts) not in {0, _TEXT.sub("", _text(node)).count(",") + 1}:
        return
    if kind == "string":
        if texts:
            node.meta[_TYPE] = "string"
        return
    held = _held(kind) if texts else _LONGS if kind == "double" or _INTEGER.fullmatch(kind) else range(0)
    if all(_NUMBER.fullmatch(value) and int(value) in held and int(value) in _LONGS for value in _written(node)):
        node.meta[_TYPE] = "int64"


def _held(kind: str) -> range:
    """The numbers that a type of integers holds; none for other types."""
    match = _INTEGER.fullmatch(kind)
    if match is None:
        return range(0)
    bits = int(match[2])
    return range(2**bits) if match[1] else range(-(2 ** (bits - 1)), 2 ** (bits - 1))


def _text(node: exp.In) -> str:
    return str(node.expressions[0].name)


def _written(node: exp.In) -> list[str]:
    """The values, texts without their quotes."""
    return _TEXT.findall(_text(node)) or [value.strip() for value in _text(node).split(",")]


def apart(tree: Tree) -> tuple[Tree, dict[str, exp.In]]:
    """Return a tree that reads its long lists from relations, and the lists by the names of these relations."""
    number = number_of(tree)
    if number in _without:
        return tree, {}
    if not any(_TYPE in node.meta for node in tree.find_all(exp.In)):
        if number is not None:
            _without.add(number)
        return tree, {}
    lists: dict[str, exp.In] = {}
    tree = tree.copy()
    for node in [node for node in tree.find_all(exp.In) if _TYPE in node.meta]:
        written = f"{node.meta[_TYPE]} {_text(node)}"
        name = f"values_{sha256(written.encode()).hexdigest()[:32]}"
        lists[name] = node.copy()
        node.set("expressions", None)
        node.set("query", exp.select(column(_VALUE)).from_(name).subquery())
    return tree, lists


def table(node: exp.In) -> pa.Table:
    """Return the values of a list, as `apart` returns it, as a table of one column."""
    import polars as pl  # noqa: PLC0415 - only those who have a long list need it here; pyarrow would load pandas

    is_text = node.meta[_TYPE] == "string"
    values = _written(node) if is_text else [int(value) for value in _written(node)]
    return pl.DataFrame({_VALUE: values}, schema={_VALUE: pl.String if is_text else pl.Int64}).to_arrow()
