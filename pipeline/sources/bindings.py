"""Which column of the files is read as which field: a column of a file has one role."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

from ..records import dataclass
from . import predicates
from .inputs import Expression

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from sqlglot import exp

    from .inputs import InputContract, Mapped

Origin = Literal["mapped", "named", "derived", "absent"]


@dataclass(frozen=True)
class Binding:
    """What one field of an input is read from.

    Attributes:
        input: Name of the input.
        field: Canonical name of the field.
        origin: `mapped`: the config says it; `named`: a column has the canonical name and no other role; `derived`:
            the stage computes it from other fields; `absent`: there is nothing to read it from, or nothing needs it.
        column: Name of the column in the files; None where there is no one column.
        sql: The expression that it is mapped to, or how it is derived, in words.
    """

    input: str
    field: str
    origin: Origin
    column: str | None = None
    sql: str | None = None

    @property
    def is_bound(self) -> bool:
        """Whether a column or an expression of the files is read for it."""
        return self.origin in {"mapped", "named"}

    @property
    def words(self) -> str:
        """What it is read from, for messages: name of the column, expression, or the canonical name."""
        return self.column or self.sql or self.field


def bindings_in_words(bindings: Iterable[Binding]) -> Iterator[str]:
    """Yield a line for each input: every field with what it is read from and why, then the absent fields."""
    of_inputs: dict[str, list[Binding]] = {}
    for binding in bindings:
        of_inputs.setdefault(binding.input, []).append(binding)
    for name, fields in of_inputs.items():
        shown = [_in_words(field) for field in fields if field.origin != "absent"]
        absent = [field.field for field in fields if field.origin == "absent"]
        yield f"{name}: {', '.join(shown)}" + (f"; absent: {', '.join(absent)}" if absent else "")


def _in_words(binding: Binding) -> str:
    if binding.origin == "named":
        return f"{binding.field} (named)"
    return f"{binding.field} = {binding.words} ({binding.origin})"


@dataclass(frozen=True)
class Bindings:
    """The bindings of one input: mappings come before names, and no column has two roles.

    Attributes:
        contract: The fields that the stage knows.
        mapping: What the config says: canonical name → column, expression, or False for none.
        columns: The names of all columns in the files and in the names of their folders.
    """

    contract: InputContract
    mapping: Mapping[str, Mapped]
    columns: frozenset[str]

    def of(self, name: str) -> Binding:
        """Return what a field, or a column that only groups rows, is read from."""
        mapped = self.mapping.get(name)
        if isinstance(mapped, str):
            return Binding(self.contract.name, name, "mapped", column=mapped)
        if isinstance(mapped, Expression):
            return Binding(self.contract.name, name, "mapped", sql=mapped.sql)
        field = self.contract.field(name)
        is_free = name in self.columns and name not in self._mapped_columns and name not in self.mapping
        if is_free and not (field is not None and field.mapped_only):
            return Binding(self.contract.name, name, "named", column=name)
        return Binding(self.contract.name, name, "absent")

    def role_of(self, column: str) -> str | None:
        """Canonical name of the field that a column is mapped to, if any."""
        return next((name for name, mapped in self.mapping.items() if mapped == column), None)

    def is_unused_by_rule(self, name: str) -> bool:
        """Whether a column has the name of a field that must be mapped to be bound, and has no other role."""
        field = self.contract.field(name)
        taken = self._mapped_columns | self._computed_from | self.mapping.keys()
        return field is not None and field.mapped_only and name in self.columns and name not in taken

    def tree(self, name: str) -> exp.Expr | None:
        """Return the parsed expression that a field is mapped to, or None if it is not mapped to one.

        Raises:
            ConfigError: it does not parse, or contains something that is not allowed in an expression on columns.
        """
        return self._trees.get(name)

    @property
    def trees(self) -> tuple[exp.Expr, ...]:
        """All parsed expressions that fields are mapped to."""
        return tuple(self._trees.values())

    @cached_property
    def _trees(self) -> dict[str, exp.Expr]:
        return {
            name: predicates.parse_value(
                mapped.sql, name=f"{self.contract.name}: columns: {name}", values=mapped.values()
            )
            for name, mapped in self.mapping.items()
            if isinstance(mapped, Expression)
        }

    @cached_property
    def _mapped_columns(self) -> frozenset[str]:
        return frozenset(mapped for mapped in self.mapping.values() if isinstance(mapped, str))

    @cached_property
    def _computed_from(self) -> frozenset[str]:
        return frozenset(column for tree in self._trees.values() for column in predicates.columns_of(tree))
