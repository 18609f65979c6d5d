"""Grouping columns with the name of a column of the results, and how each can be called otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import ConfigError
from ..sources.inputs import Expression, Input
from ..sources.types import as_mapping, as_renaming, in_expression
from ..stages.stage import counts_table
from ..tables.schemas import result_names

if TYPE_CHECKING:
    from ..stages.parameters import StageParameters
    from ..stages.stage import Stage


def check_names(stage: Stage, params: StageParameters, where: str) -> None:
    """Refuse grouping columns with the name of a column of the results, in upper or lower case.

    Raises:
        ConfigError: there is one; the remedy maps its column under another name.
    """
    taken = result_names((*stage.tables_of(params), counts_table(stage)))
    for name in dict.fromkeys(name for grouping in params.by for name in grouping):
        if name.lower() in taken:
            message = f"{where}: by: {name!r} is also a column of the results"
            raise ConfigError(message, remedy=_under_another_name(stage, params, name))


def _under_another_name(stage: Stage, params: StageParameters, name: str) -> str:
    """A mapping that groups by the same values: of a copy where the column has a role, which it must keep."""
    inputs = (getattr(params, contract.name, None) for contract in stage.inputs)
    mappings = [each.columns for each in inputs if isinstance(each, Input)]
    mapped = next((columns[name] for columns in mappings if columns.get(name)), name)
    other = f"my_{name}"
    fields = {field.name for contract in stage.inputs for field in contract.fields}
    role = next((key for columns in mappings for key, column in columns.items() if column == name), None)
    if role not in fields | {None}:
        return f"Write {role} in by, which is mapped to that column."
    is_field = name in fields
    if isinstance(mapped, Expression):
        mapping = as_mapping(other, mapped.sql)
    elif is_field or role is not None:
        mapping = as_mapping(other, in_expression(str(mapped)))
    else:
        mapping = as_renaming(other, str(mapped))
    in_place_of = "" if is_field or mapped == name else f" in place of {name}"
    return f"Give it another name: {mapping}{in_place_of}, and write {other} in by."
