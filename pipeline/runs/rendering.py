"""What a run would execute, as text: no row of an input is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..engines.duckdb import Resources
from ..engines.expression_types import DuckDBWithoutRows
from ..engines.spark_session import SETTINGS_OF_SESSIONS
from ..interrupts import StopRequest
from ..plan.count_tables import begin
from ..plan.plan import render_stage, schemas_of_transforms

if TYPE_CHECKING:
    from .opening import OpenedStage


def session_settings(dialect: str) -> str:
    """Return the settings that the SQL of a dialect relies on, as SQL; nothing where there are none."""
    settings = SETTINGS_OF_SESSIONS if dialect == "spark" else {}
    lines = [f"SET {name} = {value};" for name, value in settings.items()]
    return "\n".join(["-- settings of the session", *lines, ""]) if lines else ""


def render_opened(opened: OpenedStage, *, dialect: str) -> str:
    """Return the SQL of a stage in a dialect: it runs from top to bottom as it is, but for values of the environment.

    Args:
        opened: The stage, its inputs found.
        dialect: `duckdb` or `spark`.
    """
    with DuckDBWithoutRows(Resources(), opened.folders, StopRequest()) as engine:
        progress = begin(opened.configured.params, opened.plan)
        schemas = schemas_of_transforms(engine, opened.plan, progress)
    return opened.variables.concealed(render_stage(opened.name, opened.plan, schemas, dialect=dialect))
