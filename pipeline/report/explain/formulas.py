"""Formulas of counts with the numbers filled in, and what they give."""

from __future__ import annotations

import ast
import math
import operator
import re
from typing import TYPE_CHECKING, Any

from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...stages.evidence import Form

_NAME = re.compile(r"[a-z_][a-z0-9_]*")
_CLOSE = 1e-6
_OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_FUNCTIONS: dict[str, Callable[..., float]] = {"min": min, "max": max}


@dataclass(frozen=True)
class Step:
    """A quantity on the way to a number.

    Attributes:
        name: What it is.
        formula: Its formula, in names.
        filled: The formula with the numbers in their places.
        value: What it gives.
    """

    name: str
    formula: str
    filled: str
    value: float

    @property
    def text(self) -> str:
        """The step as one line."""
        return f"{self.name} = {self.formula} = {self.filled} = {figure(self.value)}"


def first_fitting(forms: Sequence[Form], values: Mapping[str, Any]) -> tuple[Step, ...]:
    """Return the steps of the first form that the values fill, and that gives the published numbers; else nothing.

    Args:
        forms: Ways to a number.
        values: Quantities by name: those of the published row, and what goes with it.
    """
    for form in forms:
        steps = _filled(form, values)
        if steps:
            return steps
    return ()


def _filled(form: Form, values: Mapping[str, Any]) -> tuple[Step, ...]:
    """Return the steps of a form; nothing where a quantity is missing, or another than the published number results."""
    numbers = {name: value for name, value in values.items() if isinstance(value, int | float)}
    steps: list[Step] = []
    for name, formula in form:
        tree = ast.parse(formula, mode="eval")
        if any(word not in numbers for word in _words(tree)):
            return ()
        try:
            value = _value(tree.body, numbers)
        except ZeroDivisionError:
            return ()
        if name in values and not _is_close(value, values[name]):
            return ()
        steps.append(Step(name, formula, _with_numbers(formula, numbers), value))
        numbers.setdefault(name, value)
    return tuple(steps)


def _words(tree: ast.Expression) -> list[str]:
    return [node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id not in _FUNCTIONS]


def _value(node: ast.expr, numbers: Mapping[str, float]) -> float:
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left, numbers), _value(node.right, numbers))
    if isinstance(node, ast.Name):
        return numbers[node.id]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _FUNCTIONS[node.func.id](*(_value(argument, numbers) for argument in node.args))
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value
    message = f"no formula of counts: {ast.unparse(node)}"
    raise ValueError(message)


def _is_close(value: float, published: object) -> bool:
    if not isinstance(published, int | float):
        return False
    return math.isclose(value, published, rel_tol=_CLOSE, abs_tol=_CLOSE)


def _with_numbers(formula: str, numbers: Mapping[str, float]) -> str:
    def number_of(match: re.Match[str]) -> str:
        return figure(numbers[match[0]]) if match[0] in numbers and match[0] not in _FUNCTIONS else match[0]

    return _NAME.sub(number_of, formula)


def figure(value: object) -> str:
    """A number for people: counts with separators, other numbers with six digits; `null` where there is none."""
    if value is None:
        return "null"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value).lower() if isinstance(value, bool) else str(value)
    return f"{value:,}" if isinstance(value, int) else f"{value:.6g}"
