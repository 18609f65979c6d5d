"""The key numbers of the kept runs, one figure for each stage: how they moved from run to run."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import polars as pl

from ...errors import ThresherError
from ...stages.figures import Axis, Figure, Rule, Series
from ...storage.layout import Layout, generation_of
from ...storage.state import read_state
from ...tables.groupings import TOTAL
from ...tables.schemas import GROUPING
from ..figures.panels import Panels, panels
from ..published import PublishedRun, read_run
from .content import numbers_by_group

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from ...stages.figures import KeyNumber
    from ..published import PublishedStage

MOST_RUNS = 20
MOST_CHANGES = 1
RUN, DAY = "run", "day"


def kept_runs(results: Path, run: PublishedRun) -> tuple[PublishedRun, ...]:
    """Read back the last kept runs up to one of them, the oldest first; those that are damaged are left out."""
    kept = [entry for entry in read_state(Layout(results)).runs if generation_of(entry.folder.name) < run.generation]
    earlier = []
    for entry in kept[-(MOST_RUNS - 1) :]:
        if entry.manifest is None or not entry.is_readable:
            continue
        try:
            earlier.append(read_run(entry.folder, entry.manifest.published_at))
        except ThresherError:  # a record of another format: the numbers of other runs are worth showing
            continue
    return (*earlier, run)


def history(runs: Sequence[PublishedRun]) -> tuple[Panels, ...]:
    """Draw the key numbers of all rows, or of the first group, of every stage that earlier runs have too.

    Where all runs have a day, they lie at their days, of each day the run that was published last.

    Args:
        runs: The runs, the oldest first; the stages are those of the last.
    """
    stages = runs[-1].stages
    if all(_day(run) for run in runs):
        last_of_day = {_day(run): run for run in runs}
        runs = [last_of_day[day] for day in sorted(last_of_day)]
    figures = (_figure(runs, stage.name, number) for number, stage in enumerate(stages))
    return tuple(panels(figure) for figure in figures if figure is not None)


def _day(run: PublishedRun) -> str:
    """The day that a run is about, ISO; empty if it has none."""
    return str(run.record.get("ds") or "")


def _figure(runs: Sequence[PublishedRun], stage: str, number: int) -> Figure | None:
    numbers = list(_numbers(runs, stage))[::-1]
    if len(numbers) < 2:  # noqa: PLR2004 - a history
        return None
    names = [name for name, number in numbers[-1][1].items() if number.format == numbers[-1][2].format][::-1]
    rows = [_row(run, named, names) for run, named, _ in numbers]
    are_days = all(_day(run) for run in runs)
    last = numbers[-1][2]
    columns = {f"{letter}{index}": pl.Float64 for index in range(len(names)) for letter in ("value", "lower", "upper")}
    frame = pl.DataFrame(rows, schema={GROUPING.name: pl.String, RUN: pl.Int64, DAY: pl.String, **columns})
    series = [
        Series(f"value{index}", name, numbers[-1][1][name].role, "line", f"lower{index}", f"upper{index}")
        for index, name in enumerate(names)
    ]
    changes = _changes([run for run in runs if any(entry.name == stage for entry in run.stages)], stage)
    whose = "" if last.grouping == TOTAL else f" of {last.grouping} {last.group}"
    return Figure(
        name=f"history_{number}",
        title=f"{stage}: {len(rows)} days" if are_days else f"{stage}: the last {len(rows)} runs",
        caption=f"Key numbers{whose} from {'day to day' if are_days else 'run to run'}, with their intervals as bands."
        + (" The line marks the last run before which the config or the code changed." if changes else ""),
        frame=frame.with_columns(pl.col(DAY).str.to_date(strict=False)),
        x=Axis(DAY, "day", "time") if are_days else Axis(RUN, "run", "integer"),
        y=Axis("", "", last.format),
        series=tuple(series),
        rules=tuple(
            Rule("config or code changed", _position(run, are_days=are_days)) for run in changes[-MOST_CHANGES:]
        ),
        across=True,
    )


def _position(run: PublishedRun, *, are_days: bool) -> float:
    """Where a run lies on the axis: milliseconds of its day, or its generation."""
    if not are_days:
        return float(run.generation)
    return datetime.fromisoformat(_day(run)).replace(tzinfo=UTC).timestamp() * 1000


def _numbers(
    runs: Sequence[PublishedRun], stage: str
) -> Iterator[tuple[PublishedRun, dict[str, KeyNumber], KeyNumber]]:
    """Key numbers by name, and the first of them, of every run that counted the stage, the last run first.

    Numbers that were carried forward stand for the run that counted them, unless that is gone.
    """
    wanted: tuple[str, str] | None = None
    run_ids = {run.run_id for run in runs}
    for run in reversed(runs):
        for published in run.stages:
            if published.name != stage or _origin(run, published) in run_ids:
                continue
            for group, named in numbers_by_group(published).items():
                if wanted is None:
                    wanted = (group.grouping, group.text)
                if (group.grouping, group.text) == wanted:
                    yield run, named, next(iter(named.values()))
                    break


def _origin(run: PublishedRun, stage: PublishedStage) -> str:
    """Id of the run whose numbers were carried forward; empty if there is none."""
    return str((run.record["results"][stage.name].get("carried_from") or {}).get("run_id", ""))


def _row(run: PublishedRun, named: dict[str, KeyNumber], names: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {GROUPING.name: TOTAL, RUN: run.generation, DAY: _day(run) or None}
    for index, name in enumerate(names):
        number = named.get(name)
        if number is not None:
            row |= {f"value{index}": number.value, f"lower{index}": number.lower, f"upper{index}": number.upper}
    return row


def _changes(runs: Sequence[PublishedRun], stage: str) -> list[PublishedRun]:
    """Runs whose code, or whose parameters of the stage, differ from those of the run before."""
    marks = [(run.record.get("code_sha256"), _parameters(run, stage)) for run in runs]
    pairs = zip(runs[1:], marks[1:], marks, strict=False)
    return [run for run, mark, before in pairs if mark != before]


def _parameters(run: PublishedRun, stage: str) -> object:
    return next(dict(entry.parameters) for entry in run.stages if entry.name == stage)
