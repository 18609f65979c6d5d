"""References in texts of a config: `${NAME}` and `${env.NAME}`, and `$${` for a literal `${`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from sqlglot import exp

from ..errors import ConfigError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

MARKED = "${"
ENVIRONMENT = "env."
_REFERENCE = re.compile(r"\$\$\{|\$\{(?P<name>[^{}]*)\}|\$\{")
_ARITHMETIC = (exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Pow, exp.Neg)
_NAME = re.compile(r"(?:env\.)?[A-Za-z_][A-Za-z0-9_]*")


def replaced(text: str, value_of: Callable[[str], str]) -> str:
    """Return a text with every reference replaced.

    Args:
        text: As it is written in the config.
        value_of: Called with the name between the braces.

    Raises:
        ConfigError: a `${` starts no reference; or whatever `value_of` raises.
    """

    def swap(match: re.Match[str]) -> str:
        name = match["name"]
        if match.group() == "$${":
            return MARKED
        if name is None or not _NAME.fullmatch(name):
            message = f"{match.group()!r} is not the name of a variable"
            raise ConfigError(message, remedy="Write ${NAME}, ${env.NAME}, or $${ for the two characters themselves.")
        return value_of(name)

    return _REFERENCE.sub(swap, text)


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Return a text with values in the place of its references.

    Raises:
        ConfigError: a reference has no value.
    """
    return replaced(text, lambda name: _value(name, values))


def _value(name: str, values: Mapping[str, str]) -> str:
    if name not in values:
        kind = "the environment variable" if name.startswith(ENVIRONMENT) else "the variable"
        message = f"{kind} {name.removeprefix(ENVIRONMENT)} is not set, which ${{{name}}} needs"
        raise ConfigError(message, remedy="Set it and run again.")
    return values[name]


class Placeholders:
    """SQL in which a word stands for each reference, so that it is parsed before any value is known.

    Args:
        text: The SQL as it is written in the config.
        values: What the references stand for.

    Attributes:
        text: The SQL to parse.

    Raises:
        ConfigError: a reference has no value.
    """

    def __init__(self, text: str, values: Mapping[str, str]) -> None:
        self._values = values
        self._names: list[str] = []
        self._word = "thresher_variable"
        while any(self._word in taken.lower() for taken in (text, *values.values())):
            self._word += "_"
        self._mark = re.compile(rf"{self._word}_(\d+)_", re.IGNORECASE)
        self.text = replaced(text, self._placeholder)

    def _placeholder(self, name: str) -> str:
        _value(name, self._values)
        self._names.append(name)
        return f"{self._word}_{len(self._names) - 1}_"

    def restored(self, text: str) -> str:
        """Return a text of the parsed SQL with the references as they were written."""
        return self._mark.sub(lambda match: f"${{{self._names[int(match[1])]}}}", text)

    def filled(self, tree: exp.Expr, *, name: str) -> exp.Expr:
        """Return the parsed SQL with values in the place of the placeholders; no value becomes anything but a value.

        Where a reference stands by itself it becomes one literal of text. In a literal, and in a name in double
        quotes, it becomes a piece of that literal or name.

        Args:
            tree: What `text` was parsed to; it is changed.
            name: Name of the input and of the SQL in messages.

        Raises:
            ConfigError: a reference stands elsewhere, such as in the place of a function or of a type, or in a sum.
        """
        replaced_nodes = set()
        for node in list(tree.walk()):
            node.pop_comments()
            if isinstance(node, exp.Column) and len(node.parts) == 1 and self._is_alone(node.this):
                self._check_is_no_operand(node, name)
                replaced_nodes.add(id(node.this))
                literal = exp.Literal.string(self._put(node.name))
                tree = literal if node is tree else tree
                node.replace(literal)
            elif (isinstance(node, exp.Literal) and node.is_string) or (
                isinstance(node, exp.Identifier) and node.quoted
            ):
                node.set("this", self._put(node.name))
            elif id(node) not in replaced_nodes:
                self._check(node, name)
        return tree

    def _is_alone(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Identifier) and not node.quoted and bool(self._mark.fullmatch(node.name))

    def _put(self, text: str) -> str:
        return self._mark.sub(lambda match: self._values[self._names[int(match[1])]], text)

    def _check_is_no_operand(self, node: exp.Expr, name: str) -> None:
        if isinstance(node.parent, _ARITHMETIC):
            reference = self.restored(node.name)
            message = f"input {name}: {reference} is text, and cannot be added or multiplied"
            raise ConfigError(message, remedy=f"Write CAST({reference} AS DOUBLE), or another type.")

    def _check(self, node: exp.Expr, name: str) -> None:
        for text in node.args.values():
            if isinstance(text, str) and (match := self._mark.search(text)):
                reference = self.restored(match.group())
                message = (
                    f"input {name}: {reference} stands for one value, and for no piece of a name, function or type"
                )
                remedy = f"Write it by itself, or in quotes: '… {reference} …' is a text, \"… {reference} …\" a column."
                raise ConfigError(message, remedy=remedy)
