"""Published runs by the day that they are about."""

from __future__ import annotations

from datetime import date
from typing import TYPE_CHECKING, Any

import duckdb

from .catalog_fill import attach
from .foreign import foreign_in_catalog, locked_connection
from .layout import run_name_of

if TYPE_CHECKING:
    from .layout import Layout
    from .manifest import KeptRun
    from .state import State


_OF_DAY = "SELECT path FROM catalog.main.runs WHERE ds = CAST($1 AS DATE) ORDER BY generation DESC LIMIT 1"
_SHOWN_AND_LAST = "SELECT max_by(ds, generation), max(ds) FROM catalog.main.runs"


def run_to_repeat(state: State, ds: str | None) -> KeptRun | None:
    """Return the run that a new run may turn out to repeat.

    It is the latest run; for a day before the one that the latest run is about, the last run of that day. A later day
    has to be published even if a run of it is kept: until then readers of the latest run see an earlier day.

    Args:
        state: The healed results folder, whose lock the caller holds.
        ds: The day that the new run is about; None if it has none.
    """
    latest = next(reversed(state.runs), None)
    if latest is None:
        return None
    if ds is None or not (shown := shown_and_last_day(state.layout)[0]) or ds >= shown:
        return latest
    row = _asked(state.layout, _OF_DAY, [ds])
    if row is None:
        return None
    return state.kept_run(run_name_of(row[0]), hashes=True)


def shown_and_last_day(layout: Layout) -> tuple[str, str]:
    """Return the day of the latest run and the last day of all kept runs, ISO; empty where there is none."""
    days = _asked(layout, _SHOWN_AND_LAST, []) or (None, None)
    shown, last = (day.isoformat() if isinstance(day, date) else "" for day in days)
    return shown, last


def _asked(layout: Layout, sql: str, values: list[str]) -> tuple[Any, ...] | None:
    """Return the first row of an answer of the catalog; None if there is none, or no catalog."""
    try:
        with locked_connection(layout.root) as connection:
            attach(connection, layout.catalog, read_only=True, is_used=False)
            if foreign_in_catalog(connection, None):
                return None
            return connection.execute(sql, values).fetchone()
    except duckdb.Error:
        return None
