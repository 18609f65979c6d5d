"""The key numbers of the kept runs, one figure for each stage: how they moved from run to run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.errors import ThresherError
from pipeline.report.figures.panels import Panels, panels
from pipeline.report.page.content import numbers_by_group
from pipeline.report.published import PublishedRun, read_run
from pipeline.stages.figures import Axis, Figure, Rule, Series
from pipeline.storage.layout import Layout, generation_of
from pipeline.storage.state import read_state
from pipeline.tables.groupings import TOTAL
from pipeline.tables.schemas import GROUPING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from pipeline.report.published import PublishedStage
    from pipeline.stages.figures import KeyNumber

MOST_RUNS = 20
MOST_CHANGES = 1
RUN = "run"


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

    Args:
        runs: The runs, the oldest first; the stages are those of the last.
    """
    figures = (_figure(runs, stage.name, number) for number, stage in enumerate(runs[-1].stages))
    return tuple(panels(figure) for figure in figures if figure is not None)


def _figure(runs: Sequence[PublishedRun], stage: str, number: int) -> Figure | None:
    numbers = list(_numbers(runs, stage))[::-1]
    if len(numbers) < 2:  # noqa: PLR2004 - a history
        return None
    names = [name for name, number in numbers[-1][1].items() if number.format == numbers[-1][2].format][::-1]
    rows = [_row(generation, named, names) for generation, named, _ in numbers]
    last = numbers[-1][2]
    columns = {f"{letter}{index}": pl.Float64 for index in range(len(names)) for letter in ("value", "lower", "upper")}
    frame = pl.DataFrame(rows, schema={GROUPING.name: pl.String, RUN: pl.Int64, **columns})
    series = [
        Series(f"value{index}", name, numbers[-1][1][name].role, "line", f"lower{index}", f"upper{index}")
        for index, name in enumerate(names)
    ]
    changes = _changes([run for run in runs if any(entry.name == stage for entry in run.stages)], stage)
    whose = "" if last.grouping == TOTAL else f" of {last.grouping} {last.group}"
    return Figure(
        name=f"history_{number}",
        title=f"{stage}: the last {len(rows)} runs",
        caption=f"Key numbers{whose} from run to run, with their intervals as bands."
        + (" The line marks the last run before which the config or the code changed." if changes else ""),
        frame=frame,
        x=Axis(RUN, "run", "integer"),
        y=Axis("", "", last.format),
        series=tuple(series),
        rules=tuple(Rule("config or code changed", float(generation)) for generation in changes[-MOST_CHANGES:]),
        across=True,
    )


def _numbers(runs: Sequence[PublishedRun], stage: str) -> Iterator[tuple[int, dict[str, KeyNumber], KeyNumber]]:
    """Generation, key numbers by name, and the first of them, of every run that counted the stage.

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
                    yield run.generation, named, next(iter(named.values()))
                    break


def _origin(run: PublishedRun, stage: PublishedStage) -> str:
    """Id of the run whose numbers were carried forward; empty if there is none."""
    return str((run.record["results"][stage.name].get("carried_from") or {}).get("run_id", ""))


def _row(generation: int, named: dict[str, KeyNumber], names: Sequence[str]) -> dict[str, Any]:
    row: dict[str, Any] = {GROUPING.name: TOTAL, RUN: generation}
    for index, name in enumerate(names):
        number = named.get(name)
        if number is not None:
            row |= {f"value{index}": number.value, f"lower{index}": number.lower, f"upper{index}": number.upper}
    return row


def _changes(runs: Sequence[PublishedRun], stage: str) -> list[int]:
    """Generations of runs whose code, or whose parameters of the stage, differ from those of the run before."""
    marks = [(run.record.get("code_sha256"), _parameters(run, stage)) for run in runs]
    pairs = zip(runs[1:], marks[1:], marks, strict=False)
    return [run.generation for run, mark, before in pairs if mark != before]


def _parameters(run: PublishedRun, stage: str) -> object:
    return next(dict(entry.parameters) for entry in run.stages if entry.name == stage)
