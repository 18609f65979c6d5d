"""What formulas in words give: over numbers, arrays or expressions."""

from __future__ import annotations

import ast
import operator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@cache
def parsed(formula: str) -> ast.expr:
    """The tree of a formula."""
    return ast.parse(formula, mode="eval").body


def value_of(formula: str, values: Mapping[str, Any], functions: Mapping[str, Callable[..., Any]]) -> Any:  # noqa: ANN401 - as the values are
    """What a formula gives.

    Args:
        formula: Of names, whole numbers, `+ - * /` and calls of functions.
        values: What its names stand for.
        functions: The functions by name.

    Raises:
        ValueError: it holds something else.
        KeyError: it holds another name or function.
    """

    def of(node: ast.expr) -> Any:  # noqa: ANN401 - as the values are
        match node:
            case ast.BinOp(left=left, op=sign, right=right):
                return _OPERATORS[type(sign)](of(left), of(right))
            case ast.Name(id=name):
                return values[name]
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return functions[name](*map(of, arguments))
            case ast.Constant(value=int() | float() as number):
                return number
        message = f"no formula of counts: {ast.unparse(node)}"
        raise ValueError(message)

    return of(parsed(formula))


def names_in(formula: str) -> frozenset[str]:
    """The names in a formula, but for those of functions."""
    nodes = list(ast.walk(parsed(formula)))
    functions = {id(node.func) for node in nodes if isinstance(node, ast.Call)}
    return frozenset(node.id for node in nodes if isinstance(node, ast.Name) and id(node) not in functions)
