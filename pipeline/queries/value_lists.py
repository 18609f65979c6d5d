"""Long lists in SQL of the user, as relations: of the text of a statement DuckDB takes 0.3 ms a value, again and again.

A list stays in its tree as it was written, so that whatever shows, compares or translates the tree has its values.
"""

from __future__ import annotations

import re
import sys
from datetime import date
from hashlib import sha256
from typing import TYPE_CHECKING, TypeVar

import sqlglot.expressions as exp

from .dialect import column
from .kept import number_of

if TYPE_CHECKING:
    from collections.abc import Callable

    import pyarrow as pa

Tree = TypeVar("Tree", bound="exp.Expr")

_VALUE = "value"
_TYPE = "type_of_values"  # key of the meta data of an IN whose list may be a relation
_WRITTEN = re.compile(r"\s*(?:(DATE)\s*)?(?:'((?:[^']|'')*+)'|([^\s,']++))\s*(?:,|$)", re.IGNORECASE)
_WHOLE = re.compile(r"-?[0-9]{1,20}")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_INTEGER = re.compile(r"(u?)int(8|16|32|64)")
_LONGS = range(-(2**63), 2**63)
_without: set[int] = set()  # numbers of kept trees without such a list


def mark(node: exp.In, kind: str) -> None:
    """Note that a list may be a relation, if its values mean the same there.

    DuckDB gives texts in a list the type of what is looked for, and both sides the wider one of two types of numbers.

    Args:
        node: The IN, whose values are one text.
        kind: Name of the Arrow type of what is looked for: text, integers, numbers of double precision, or days.
    """
    values = [each for each in _WRITTEN.findall(_text(node)) if each[2].upper() != "NULL"]
    are_days, are_numbers = ({bool(each[place]) for each in values} for place in (0, 2))
    if len(are_days) != 1 or len(are_numbers) != 1:  # values of several kinds: the engine finds a type for all
        return
    texts = [text or number for _, text, number in values]
    if are_numbers == are_days == {False} and kind == "string":
        node.meta[_TYPE] = "string"
    elif are_numbers == {False} and kind == "date32[day]" and all(map(_is_day, texts)):
        node.meta[_TYPE] = "date32"
    elif are_days == {False} and _are_whole(texts, kind, quoted=are_numbers == {False}):
        node.meta[_TYPE] = "int64"
    elif are_numbers == {True} and kind == "double" and _are_exact(texts):
        node.meta[_TYPE] = "double"


def _is_day(text: str) -> bool:
    try:
        return bool(_DAY.fullmatch(text) and date.fromisoformat(text))
    except ValueError:
        return False


def _are_whole(texts: list[str], kind: str, *, quoted: bool) -> bool:
    """Whether texts are whole numbers that the type of what is looked for, if they are quoted, and BIGINT hold."""
    held = _held(kind) if quoted else _LONGS if kind == "double" or _INTEGER.fullmatch(kind) else range(0)
    return all(_WHOLE.fullmatch(text) and int(text) in held and int(text) in _LONGS for text in texts)


def _are_exact(texts: list[str]) -> bool:
    """Whether decimals are the same DOUBLE by way of the type that holds all of them, with at most 15 digits."""
    digits = [text.lstrip("-").partition(".") for text in texts]
    if not all(whole.isdigit() or not whole for whole, _, _ in digits):
        return False
    behind = [part for _, _, part in digits]
    most = max(len(whole) for whole, _, _ in digits) + max(map(len, behind))
    return most <= sys.float_info.dig and all(part.isdigit() or not part for part in behind)


def _held(kind: str) -> range:
    """The numbers that a type of integers holds; none for other types."""
    match = _INTEGER.fullmatch(kind)
    if match is None:
        return range(0)
    bits = int(match[2])
    return range(2**bits) if match[1] else range(-(2 ** (bits - 1)), 2 ** (bits - 1))


def _text(node: exp.In) -> str:
    return str(node.expressions[0].name)


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

    types: dict[str, tuple[pl.DataType, Callable[[str], object]]] = {
        "string": (pl.String(), lambda text: text.replace("''", "'")),
        "int64": (pl.Int64(), int),
        "double": (pl.Float64(), float),
        "date32": (pl.Date(), date.fromisoformat),
    }
    kind, value_of = types[node.meta[_TYPE]]
    written = _WRITTEN.findall(_text(node))
    values = [None if number.upper() == "NULL" else value_of(text or number) for _, text, number in written]
    return pl.DataFrame({_VALUE: values}, schema={_VALUE: kind}).to_arrow()
