"""Columns of the files that have no role and are only shown: titles, links, whatever tells people what a row is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ..queries.dialect import column
from ..tables.groupings import shown_name
from .plain_types import refused
from .rows import is_partition, partition_column

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from .bindings import Binding
    from .rows import Rows
    from .source import Source

_PLAIN = ("int", "uint", "double", "float", "bool", "date", "timestamp")


def columns_without_role(source: Source, bindings: Iterable[Binding]) -> tuple[str, ...]:
    """Return the columns of the files that are read as nothing, in the order of the files.

    Args:
        source: The input.
        bindings: What every field of the stage, and every other column that it reads, is read from.
    """
    taken = {binding.column for binding in bindings if binding.input == source.name}
    return tuple(name for name in shown_columns(source) if name not in taken)


def shown_columns(source: Source) -> tuple[str, ...]:
    """Return the columns that can be shown: those of files and folder names that no other name equals but for case.

    Columns without a name, and those whose values mean something else than they store, are left out.
    """
    names = dict.fromkeys(name for file in source.files for name in (*file.schema.names, *file.partitions) if name)
    in_lower_case = [name.lower() for name in names]
    repeated = {name for file in source.files for name in file.schema.names if file.schema.names.count(name) > 1}
    odd = {field.name for file in source.files for field in file.schema if refused(field.type) is not None}
    return tuple(name for name in names if in_lower_case.count(name.lower()) == 1 and name not in repeated | odd)


def shown_items(source: Source, file: Rows) -> Iterator[exp.Expr]:
    """Yield the select items of the columns that rows of a file carry along, under their internal names.

    A column is text unless it has one plain type in all files; where a file lacks it, it is NULL.
    """
    for name in source.shown or ():
        yield exp.alias_(_shown(source, file, name), shown_name(name), quoted=True)


def _shown(source: Source, file: Rows, name: str) -> exp.Expr:
    if is_partition(file, name):
        return exp.cast(column(partition_column(file, name)), "VARCHAR")
    types = {_type_in(each, name) for each in source.files}
    if name not in file.schema.names:
        return exp.null() if len(types - {None}) == 1 and _is_plain(types) else exp.cast(exp.null(), "VARCHAR")
    return column(name) if _is_plain(types) else exp.cast(column(name), "VARCHAR")


def _type_in(file: Rows, name: str) -> str | None:
    return str(file.schema.field(name).type) if name in file.schema.names else None


def _is_plain(types: set[str | None]) -> bool:
    """Whether a column has one type in all files that have it, and that type needs no text."""
    return len(types - {None}) == 1 and all(each is None or each.startswith(_PLAIN) for each in types)
