"""A published run read back from its folder: its record, and the tables and summaries of its stages."""

from __future__ import annotations

import json
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ..base.errors import DataError, UsageError
from ..base.paths import read_file
from ..base.records import dataclass
from ..base.visible_text import cleaned
from ..runs.recorded import configured_again, notice_of, recorded_tables
from ..runs.stage_results import StageResult, canonical_stage
from ..runs.variables import near
from ..stages import find_stage
from ..storage.layout import RUN_RECORD, Layout, generation_of
from ..storage.state import read_state, require_latest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from ..stages.figures import Figure
    from ..stages.stage import Stage
    from ..storage.layout import KeptRun


FEWEST_DIGITS = 4  # of a number that may be the start of a run id


@dataclass(frozen=True)
class PublishedStage:
    """A stage of a published run.

    Attributes:
        name: Name of the stage.
        stage: Its task.
        parameters: Its parameters as the run record holds them.
        groupings: The groupings of its tables, each the tuple of its columns; the empty one is the total.
        tables: Its result tables by name, grouping columns under the names that they have inside a run.
        omitted: Result tables that were not made, with the reason.
        warnings: What to know before using the numbers.
        seconds: How long it took.
        accounts: Rows of every input: by status, and `rows_in`.
        carried: Which run its numbers are of, if this one carried its tables forward; else empty.
        notes: What was noticed besides, which changes no decision.
        unrequested: Those of `omitted` that the config does not ask for, with the key that would; empty where the
            config sets that key to something else.
    """

    name: str
    stage: Stage
    parameters: Mapping[str, Any]
    groupings: tuple[tuple[str, ...], ...]
    tables: Mapping[str, pl.DataFrame]
    omitted: Mapping[str, str]
    warnings: tuple[str, ...]
    seconds: float
    accounts: Mapping[str, Mapping[str, int]]
    carried: str = ""
    notes: tuple[str, ...] = ()
    unrequested: Mapping[str, str] = field(default_factory=dict)

    @property
    def n_rows(self) -> int:
        """Number of rows of its inputs."""
        return sum(account["rows_in"] for account in self.accounts.values())

    def result(self) -> StageResult:
        """Return the result of the stage as the run that made it reported it; nothing is counted again."""
        summary = self.stage.summarize(self.tables)
        facts = (self.warnings, self.seconds, self.n_rows, dict(self.omitted), self.unrequested, self.carried)
        return StageResult(self.name, self.stage.kind, summary, *facts, notes=self.notes)

    def figures(self) -> tuple[Figure, ...]:
        """Return what there is to look at; captions name the level of its intervals."""
        return self.stage.figures(self.tables, float(self.parameters["confidence"]))


@dataclass(frozen=True)
class PublishedRun:
    """A published run.

    Attributes:
        folder: Its folder.
        record: Its run record, the content of `run.json`.
        published_at: When it was published, UTC, as ISO text.
        stages: Its stages in the order of the config, those that were carried forward among them.
        absent: A sentence about every stage of the config that has no tables in it, by name.
    """

    folder: Path
    record: Mapping[str, Any]
    published_at: str
    stages: tuple[PublishedStage, ...]
    absent: Mapping[str, str] = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        """Its id."""
        return str(self.record["run_id"])

    @property
    def generation(self) -> int:
        """Its place in the sequence of runs."""
        return int(self.record["generation"])

    @property
    def about(self) -> tuple[str, ...]:
        """The subject of the run, in words: its day and its labels, where it has them."""
        day = self.record.get("ds")
        labels = (cleaned(f"{name} {text}", layout="") for name, text in self.record.get("labels", {}).items())
        return (*((f"day {day}",) if day else ()), *labels)

    def chosen(self, names: Sequence[str]) -> tuple[PublishedStage, ...]:
        """Return the stages of these names in the order of the run; all of them if no name is there.

        Raises:
            UsageError: the run has no stage of that name.
        """
        stage_names = [stage.name for stage in self.stages]
        for name in names:
            if name not in stage_names:
                message = f"the run has no stage {name!r}{near(name, stage_names)}"
                raise UsageError(message, remedy=f"Its stages are: {', '.join(stage_names)}.")
        return tuple(stage for stage in self.stages if not names or stage.name in names)


def latest_run(results: Path) -> PublishedRun:
    """Read back the latest run of a results folder, which is absolute.

    Raises:
        NoInputError: no run was published there.
        DataError: the latest run, or its record, is damaged.
    """
    _, kept, manifest = require_latest(Layout(results))
    return read_run(kept.folder, manifest.published_at)


def published_run(results: Path, run: str | None) -> PublishedRun:
    """Read back a kept run, or the latest where none is named; see `kept_run` and `latest_run`."""
    return latest_run(results) if run is None else kept_run(results, run)


def kept_run(results: Path, run: str) -> PublishedRun:
    """Read back one kept run of a results folder, by what `named_runs` takes.

    Raises:
        NoInputError: no run was published there.
        UsageError: no kept run, or more than one, goes by that name.
        DataError: the run, or its record, is damaged.
    """
    layout = Layout(results)
    require_latest(layout)
    runs = read_state(layout).runs
    matches = named_runs(runs, run)
    if len(matches) != 1:
        message = f"{'several runs are' if matches else 'no kept run is'} called {run!r}"
        names = ", ".join(kept.folder.name for kept in runs[-5:])
        raise UsageError(message, remedy=f"Give a generation or a run id; the latest are {names}.")
    kept = matches[0]
    if kept.manifest is None or not kept.is_readable:
        message = f"the run {kept.folder.name} is damaged: {next(iter(kept.damage.values()))}"
        raise DataError(message, remedy=f"thresher verify {results} lists what is damaged.")
    return read_run(kept.folder, kept.manifest.published_at)


def run_before(results: Path, run: PublishedRun) -> PublishedRun | None:
    """Read back the last kept and readable run before another; None if there is none.

    Raises:
        DataError: its record is damaged.
    """
    for kept in reversed(read_state(Layout(results)).runs):
        if _generation(kept) < run.generation and kept.manifest is not None and kept.is_readable:
            return read_run(kept.folder, kept.manifest.published_at)
    return None


def named_runs(runs: Sequence[KeptRun], name: str) -> list[KeptRun]:
    """Return the runs that go by a generation or the name of a folder, or else by a run id or its start.

    A short number is never the start of an id: once a generation is deleted, its number must not name another run.
    """
    exact = [run for run in runs if name == run.folder.name or (name.isdecimal() and int(name) == _generation(run))]
    is_start = bool(name) and not (name.isdecimal() and len(name) < FEWEST_DIGITS)
    return exact or [run for run in runs if is_start and run.run_id.startswith(name)]


def _generation(run: KeptRun) -> int:
    return generation_of(run.folder.name)


def read_run(folder: Path, published_at: str = "") -> PublishedRun:
    """Read back the run in a folder, which was published when its manifest says.

    Raises:
        DataError: its record is not that of a run.
    """
    path = folder / RUN_RECORD
    try:
        record = json.loads(read_file(path))
        stages = tuple(_stage(folder, record, configured) for configured in record["configuration"]["stages"])
        absent = {name: str(facts["warning"]) for name, facts in record.get("absent", {}).items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"{path} is not the record of a run ({error})"
        raise DataError(message, remedy=f"thresher verify {folder.parent.parent} lists what is damaged.") from error
    return PublishedRun(folder, record, published_at, stages, absent)


def _stage(folder: Path, record: Mapping[str, Any], parameters: Mapping[str, Any]) -> PublishedStage:
    name, entry = parameters["name"], find_stage(parameters["kind"])
    if entry is None:
        message = f"stage {name!r} is of the unknown kind {parameters['kind']!r}"
        raise ValueError(message)
    stage, parameters = _as_now(entry.load(), parameters)
    omitted, result = record["omitted"][name], record["results"][name]
    tables = recorded_tables(folder, stage, parameters, omitted)
    groupings = tuple(tuple(grouping) for grouping in parameters.get("by", [[]]))
    return PublishedStage(
        name=name,
        stage=stage,
        parameters=parameters,
        groupings=groupings,
        tables=tables,
        omitted={**omitted, **tables.lacking},
        unrequested=record.get("unrequested", {}).get(name, {}),
        warnings=tuple(result["warnings"]),
        seconds=result["seconds"],
        accounts=record["accounting"][name],
        carried=notice_of(result),
        notes=tuple(result.get("notes", ())),
    )


def _as_now(stage: Stage, parameters: Mapping[str, Any]) -> tuple[Stage, Mapping[str, Any]]:
    """The stage with the tables of its parameters, and these with the defaults of those that came after the run."""
    try:
        configured = configured_again(parameters)
    except ValueError:  # an earlier version had parameters that this one has not: they are shown as they are
        return stage, parameters
    return stage.as_asked(configured.params), {**canonical_stage(configured), **parameters}
