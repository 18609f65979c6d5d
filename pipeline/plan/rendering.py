"""`thresher render`: the SQL of a stage as text, in the order in which it would run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pipeline.queries.dialect import render
from pipeline.queries.load import file_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.plan.nodes import Statement
    from pipeline.plan.plan import Plan


def render_stage(stage: str, plan: Plan, *, dialect: str) -> str:
    """Every statement of a stage with its title, in a dialect."""
    by = [grouped.name for grouped in plan.by]
    shown = (_shown(stage, statement, dialect) for node in plan.nodes for statement in node.statements(by))
    return "\n\n".join(shown) + "\n"


def _shown(stage: str, statement: Statement, dialect: str) -> str:
    return "\n".join(_lines(stage, statement, dialect))


def _lines(stage: str, statement: Statement, dialect: str) -> Iterator[str]:
    for scan in statement.scans:
        more = f" and {len(scan.files) - 1} more" if len(scan.files) > 1 else ""
        yield f"-- {stage}: relation {scan.name} is {scan.files[0]}{more}"
    file = file_of(statement.query) if statement.query is not None else None
    origin = "" if file is None else f", from sql/{file}.sql"
    function = "" if statement.function is None else f", by {_name(statement.function)}"
    params = ", ".join(f"${name} = {value!r}" for name, value in statement.params.items())
    settings = f", parameters: {params}" if params else ""
    yield f"-- {stage}: {statement.title}{origin}{function}{settings}"
    if statement.query is not None:
        yield f"{render(statement.query, dialect)};"


def _name(function: object) -> str:
    return str(getattr(function, "__qualname__", type(function).__qualname__))
