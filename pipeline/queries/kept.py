"""Trees of SQL and their text, kept in this process by what they were built from: building takes longer than running.

A kept tree is shared, so nobody may change it. It has a number that is never given again: a key made of numbers names
what it was made of, also after everything was dropped.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, TypeVar, cast

from sqlglot import exp

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

T = TypeVar("T", bound="exp.Expr")

MOST = 2000
_numbers = count()
_trees: dict[Hashable, exp.Expr] = {}
_by_id: dict[int, tuple[exp.Expr, int]] = {}
_texts: dict[Hashable, str] = {}


def kept(key: Hashable | None, build: Callable[[], T]) -> T:
    """Return the tree of a key, built the first time it is asked for; None as key: it is built, and not kept."""
    if key is None:
        return build()
    tree = cast("T | None", _trees.get(key))
    if tree is None:
        if len(_trees) >= MOST:
            _trees.clear()
            _by_id.clear()
            _texts.clear()
        tree = build()
        if id(tree) not in _by_id:
            _by_id[id(tree)] = tree, next(_numbers)
        _trees[key] = tree
    return tree


def number_of(tree: exp.Expr) -> int | None:
    """Return the number of a kept tree; None: it is not kept."""
    numbered, number = _by_id.get(id(tree), (None, None))
    return number if numbered is tree else None


def part(value: object) -> Hashable:
    """Return what stands for a part of a key: the number of a kept tree, the text of another, the value itself."""
    if isinstance(value, exp.Expression):
        number = number_of(value)
        return ("tree", number) if number is not None else ("text", value.sql("duckdb", comments=False))
    return value


def parts(values: Mapping[str, object] | None) -> Hashable:
    """Return what stands for a mapping in a key; its order counts."""
    return None if values is None else tuple((name, part(value)) for name, value in values.items())


def text(key: Hashable | None, make: Callable[[], str]) -> str:
    """Return the text of a key, made the first time it is asked for."""
    if key is None:
        return make()
    if key not in _texts:
        _texts[key] = make()
    return _texts[key]
