"""The rows of an input, wherever they lie: in a file, in a frame, or where an engine reads them itself."""

from __future__ import annotations

import json
from difflib import get_close_matches
from typing import TypeAlias

from .engine_rows import EngineRows
from .frames import FrameRows
from .parquet_files import DataFile
from .predicates import is_expression_of

Rows: TypeAlias = DataFile | FrameRows | EngineRows
TOKENS = ("tokens", "words")  # what lists of them are called
_MOST_NAMES = 12  # a readable line


def is_passed_in(rows: Rows) -> bool:
    """Whether rows came from a frame, so that nothing of them is left when the run has ended."""
    if not isinstance(rows, DataFile):
        return isinstance(rows, FrameRows)
    return bool(rows.label) and rows.origin is None and not rows.is_versioned


def is_partition(rows: Rows, name: str) -> bool:
    """Whether a column comes from the folder names of a file; a column of the file itself comes first."""
    return name in rows.partitions and name not in rows.schema.names


def partition_column(rows: Rows, name: str) -> str:
    """Return the name that a partition's column has in a relation of rows: none of the files, and none of another."""
    in_lower_case = {each.lower() for each in rows.schema.names}
    column = f"folder {list(rows.partitions).index(name)}: {name}"
    while column.lower() in in_lower_case:
        column = f"folder {column}"
    return column


def is_index(rows: Rows, name: str) -> bool:
    """Whether a level of the index of a frame, none of which is read, has a name."""
    return isinstance(rows, FrameRows) and name in rows.index


def columns_in_words(rows: Rows, wanted: str) -> str:
    """List the columns of rows, with the one nearest to a name that they lack."""
    names = [*rows.schema.names, *rows.partitions]
    in_any_case = [name for name in names if name.lower() == wanted.lower()]
    near = in_any_case or get_close_matches(wanted, names, n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    if is_index(rows, wanted):
        hint = f" {wanted!r} is in its index, which is not read: pass frame.reset_index()."
    shown = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
    return f"Its columns are: {shown}.{hint}" if names else f"It has no column.{hint}"


def elements_in_words(rows: Rows, wanted: str, name: str) -> str:
    """Say how elements of lists of structs become rows; empty where rows have no such list.

    Args:
        rows: The rows that lack a column.
        wanted: The name of the column; a list whose elements have a field of that name comes first.
        name: Name of the input.
    """
    fields_of = {
        field.name: [each.name for each in field.type.value_type]
        for field in rows.schema
        if str(field.type).startswith(("list<", "large_list<", "fixed_size_list<"))
        and str(field.type.value_type).startswith("struct<")
    }
    if not fields_of:
        return tags_in_words(rows, name)
    column = next((each for each, fields in fields_of.items() if wanted in fields), next(iter(fields_of)))
    value = json.dumps(column, ensure_ascii=False)
    fields = ", ".join(fields_of[column][:_MOST_NAMES])
    return (
        f" If each element of {column!r} ({fields}) is a row, say so: unnest = {value}, on the command line "
        f"--set '{name}.unnest={value}'."
    )


def tags_in_words(rows: Rows, name: str) -> str:
    """Say how lists of tokens with a tag each are read as mentions; empty where rows have no such lists."""
    tags = lists_of_tags(rows)
    if not tags or not any(field.name.lower() in TOKENS for field in rows.schema):
        return ""
    return f" Tags of tokens make mentions: tags = {json.dumps(tags[0])} beside the path of {name}."


def lists_of_tags(rows: Rows) -> list[str]:
    """The columns of a file that may be lists of tags: texts, or numbers that name classes."""
    lists = (field for field in rows.schema if str(field.type).startswith(("list<", "large_list<")))
    kinds = {field.name: str(field.type.value_type) for field in lists if field.name.lower() not in TOKENS}
    suitable = ("string", "large_string", "string_view", "int")
    return [name for name, kind in kinds.items() if kind.startswith(suitable) and isinstance(rows, DataFile)]


def mapping_of_expression(rows: Rows, wanted: str, name: str = "") -> str:
    """Say how an expression that stands where the name of a column belongs is mapped; empty if it is none of columns.

    Args:
        rows: The rows that lack a column of that name.
        wanted: The text in the place of the name.
        name: What the text was mapped to; empty: nothing, it needs a name.
    """
    if not is_expression_of(wanted, [*rows.schema.names, *rows.partitions]):
        return ""
    mapping = f"columns = {{ {name or 'my_column'} = {{ sql = {json.dumps(wanted, ensure_ascii=False)} }} }}"
    return f"An expression is written {mapping}." if name else f"Give the expression a name: {mapping}."
