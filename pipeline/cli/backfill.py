"""A range of days, `ds=FIRST..LAST`: one run after another, each about one day."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import typer

from ..errors import ThresherError, UsageError
from ..sources.paths import shortened
from ..storage.catalog import shown_and_last_day
from ..storage.layout import Layout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from .console import Console

MOST_DAYS = 3660
_RANGE = ".."
_EXAMPLE = "For example --var ds=2026-11-01..2026-11-20."


def run_days(values: Mapping[str, str], run_once: Callable[[Mapping[str, str]], Path], console: Console) -> None:
    """Run a config once, or once for each day of a range, in order; the first failure ends it, but not a gate's.

    Args:
        values: Values of variables by name.
        run_once: Runs the config with given values, and returns the results folder.
        console: Where progress is reported.

    Raises:
        UsageError: the range has no day, or too many.
        ThresherError: that of the run that failed; of a range it says which day that is, and which are done.
        typer.Exit: that of a run that is published, and yet not a success; which day that is has been logged. Days
            after one of which a gate failed are run all the same.
    """
    from ..runs.stage_results import GATE_FAILED  # noqa: PLC0415 - help needs none of it

    days = _days(values["ds"]) if _RANGE in values.get("ds", "") else ()
    results, days_with_failed_gates = None, list[str]()
    try:
        for number, day in enumerate(days, start=1):
            console.between_runs()
            console.log("info", f"ds {day}: day {number} of {len(days)}", event="day", ds=day)
            try:
                results = run_once({**values, "ds": day})
            except ThresherError as error:
                raise _stopped(error, days, number) from error.__cause__
            except typer.Exit as stop:  # published, and yet not a success
                if stop.exit_code != GATE_FAILED:
                    console.log("error", f"ds {day}: {_done(days, number)}", event="day", ds=day)
                    raise
                days_with_failed_gates.append(day)
        if not days:
            results = run_once(values)
        if days_with_failed_gates:
            failed = ", ".join(days_with_failed_gates)
            console.log("error", f"a gate failed on {failed}", event="day")
            raise typer.Exit(GATE_FAILED)
    finally:
        if results is not None and "ds" in values:
            _tell_what_is_shown(results, console)


def _days(text: str) -> Sequence[str]:
    try:
        first, last = (dt.date.fromisoformat(end) for end in text.split(_RANGE))
    except ValueError as error:
        message = f"--var ds={shortened(text)}: this is no range of days"
        raise UsageError(message, remedy=f"Write FIRST..LAST. {_EXAMPLE}") from error
    n_days = (last - first).days + 1
    if n_days < 1:
        message = f"--var ds={text}: the first day is after the last"
        raise UsageError(message, remedy=f"Days run from the earlier to the later one. {_EXAMPLE}")
    if n_days > MOST_DAYS:
        message = f"--var ds={text}: these are {n_days:,} days, more than {MOST_DAYS:,}"
        raise UsageError(message, remedy="Run them in several ranges.")
    return [(first + dt.timedelta(days=step)).isoformat() for step in range(n_days)]


def _stopped(error: ThresherError, days: Sequence[str], number: int) -> ThresherError:
    """Add to an error which day failed and which days are done."""
    error.message = f"ds {days[number - 1]}: {error.message}"
    error.remedy = "\n".join([*([error.remedy] if error.remedy else []), _done(days, number - 1)])
    error.args = (error.message,)
    return error


def _done(days: Sequence[str], n_done: int) -> str:
    """Say which days are done, and how to go on with the others."""
    done = (
        f"Done is {days[0]}"
        if n_done == 1
        else f"Done are {days[0]} to {days[n_done - 1]}"
        if n_done
        else "None is done"
    )
    if n_done == len(days):
        return f"{done}, all {n_done:,} days."
    missing = days[n_done] if n_done == len(days) - 1 else f"{days[n_done]}{_RANGE}{days[-1]}"
    return f"{done}, of {len(days):,} days; --var ds={missing} goes on from here."


def _tell_what_is_shown(results: Path, console: Console) -> None:
    shown, last = shown_and_last_day(Layout(results))
    if shown and shown < last:
        words = f"the tables of the catalog, and latest, show {shown}, the run that was published last; "
        words += f"history goes up to {last}: to show that day, run it again"
        console.log("warning", words, event="warning")
