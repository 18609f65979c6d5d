"""What a run brings: the results of its stages, their records, and the run as it was published."""

from __future__ import annotations

from dataclasses import asdict, field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from ..records import dataclass
from ..storage.layout import RUNS
from ..storage.manifest import PublishedFile, published_file
from .provenance import canonical_stage, input_records, left_out_records, settings, skipped_records, table_records

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from ..stages.stage import Summary
    from .config import ConfiguredStage
    from .evaluation import Evaluation
    from .opening import OpenedStage
    from .provenance import Fingerprints
    from .stage_by_stage import Failure


# A published run, as those who made it have it.


GATE_FAILED = 3  # exit code of a run that is published although a gate failed


def exit_code(failures: Sequence[Failure], gates: Sequence[Mapping[str, Any]]) -> int:
    """Return the exit code of a published run: the code of the first stage that failed, 3 if a gate failed, else 0.

    Args:
        failures: The stages that failed.
        gates: The rows of the table `gates`.
    """
    return failures[0].fault.code if failures else GATE_FAILED if any(map(is_failure, gates)) else 0


def is_failure(row: Mapping[str, Any]) -> bool:
    """Whether a row of the table `gates` makes the run exit with 3."""
    return bool(row["outcome"] == "failed" and row["on_fail"] == "fail")


@dataclass(frozen=True)
class Run:
    """A published run.

    Attributes:
        path: Its folder; of a run on a store its copy in the mirror here.
        run_id: Its id.
        generation: Its place in the sequence of runs.
        status: `published`, or `unchanged` if these results existed already; `staged` if nothing was published.
        stages: Results of the stages, those that were carried forward among them; empty for an unchanged run that did
            not need to count.
        warnings: All warnings, each once, with the names of its stages.
        seconds: How long the run took.
        failures: The stages that failed, with `on_error = "publish_others"`; their earlier tables are carried forward.
        gates: The rows of the table `gates`, as docs/results.md describes them.
        address: Where it lives on a store; empty: in the folder `path`.
        notes: What was noticed besides the warnings and changes no decision, likewise.
    """

    path: Path
    run_id: str
    generation: int
    status: str
    stages: StageResults
    warnings: tuple[str, ...]
    seconds: float
    failures: tuple[Failure, ...] = ()
    gates: tuple[Mapping[str, Any], ...] = ()
    address: str = ""
    notes: tuple[str, ...] = ()

    @property
    def place(self) -> str:
        """Where it lives, its folder or its address, as it is printed."""
        return self.address or str(self.path)

    @property
    def results(self) -> str:
        """The place of its results folder."""
        return self.address.removesuffix(f"/{RUNS}/{self.path.name}") or str(self.path.parent.parent)

    @property
    def exit_code(self) -> int:
        """Exit code of the command that made it."""
        return exit_code(self.failures, self.gates)

    def table(self, name: str) -> pl.DataFrame:
        """Read a table of all its stages, one below the other in their order.

        Args:
            name: The table, as docs/results.md calls it.

        Raises:
            KeyError: no stage of the run made it.
        """
        folder = self.path / name
        files = [folder / f"{stage.name}.parquet" for stage in self.stages]
        frames = [pl.read_parquet(file) for file in files if file.is_file()]
        if not frames:
            message = f"no stage of the run made a table {name!r}"
            raise KeyError(message)
        return pl.concat(frames, how="diagonal_relaxed")


# Results of stages, and callbacks that follow their progress.


@dataclass(frozen=True)
class StageResult:
    """Result of one stage.

    Attributes:
        name: Name of the stage.
        kind: Its task.
        summary: A summary for people.
        warnings: What to know before using the numbers.
        seconds: How long it took.
        n_rows: Number of rows of its inputs.
        omitted: Result tables that were not made, with the reason.
        unrequested: Those of them that the config does not ask for, with the key that would; empty where the
            config sets that key to something else.
        carried: Which run its numbers are of, if this one did not count it but carried its tables forward; else empty.
        folder: Folder of its run, once that is published: then its tables are attributes under their short names,
            `curve` for `threshold_sweep_curve`, as Polars frames.
        key_figures: Its rows of the table `metrics`; None for a stage that was read back.
        reused: Which files were not read again, and why others were, in words.
        notes: What was noticed besides, which changes no decision.
    """

    name: str
    kind: str
    summary: Summary
    warnings: tuple[str, ...]
    seconds: float
    n_rows: int
    omitted: dict[str, str]
    unrequested: Mapping[str, str] = field(default_factory=dict)
    carried: str = ""
    folder: Path | None = field(default=None, compare=False, repr=False)
    key_figures: pl.DataFrame | None = field(default=None, compare=False, repr=False)
    reused: tuple[str, ...] = field(default=(), compare=False)
    notes: tuple[str, ...] = ()

    def __getattr__(self, name: str) -> pl.DataFrame:
        """Read a table by its short name.

        Raises:
            AttributeError: the stage has no such table, or did not make it.
        """
        if name.startswith("_") or self.folder is None:
            raise AttributeError(name)
        table = f"{self.kind}_{name}"
        if table in self.omitted:
            message = f"the table {table} was not made: {self.omitted[table]}"
            raise AttributeError(message)
        path = self.folder / table / f"{self.name}.parquet"
        if not path.is_file():
            message = f"the stage {self.name!r} has no table {name!r}"
            raise AttributeError(message)
        return pl.read_parquet(path)


class StageResults(tuple[StageResult, ...]):
    """The results of the stages of a run in their order; one is found by its name, too: `stages["nightly"]`."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:  # noqa: ANN401 - an index, a slice or a name
        """Return the result of a stage by name, by index, or several by a slice.

        Raises:
            KeyError: the run has no stage of that name.
        """
        if not isinstance(key, str):
            return super().__getitem__(key)
        for stage in self:
            if stage.name == key:
                return stage
        message = f"no stage is called {key!r}; the stages are {', '.join(stage.name for stage in self)}"
        raise KeyError(message)


def texts_once(texts_of_stages: Mapping[str, Sequence[str]]) -> tuple[str, ...]:
    """List the warnings, or the notes, of all stages; one that several stages give appears once, with their names."""
    stages_of: dict[str, list[str]] = {}
    for stage, texts in texts_of_stages.items():
        for text in dict.fromkeys(texts):
            stages_of.setdefault(text, []).append(stage)
    return tuple(f"{', '.join(stages)}: {text}" for text, stages in stages_of.items())


@dataclass
class Watcher:
    """Callbacks that follow the progress of a run.

    Attributes:
        on_run: Called with the id of the attempt.
        on_crash: Called with what an earlier attempt was reading when it ended without a word; None: it is a warning of
            the run.
        on_stage: Called with the name of the stage that begins.
        on_opened: Called with the stage when its inputs have been found, before they are read.
        on_result: Called with the result of the stage that ends.
        on_taken_over: Called with the name of a stage that an earlier attempt had counted, and the id of that attempt.
        on_progress: Called with the percentage read while its inputs are read; None if nobody watches.
    """

    on_run: Callable[[str], None] = field(default=lambda _run_id: None)
    on_crash: Callable[[str], None] | None = None
    on_stage: Callable[[str], None] = field(default=lambda _name: None)
    on_opened: Callable[[OpenedStage], None] = field(default=lambda _opened: None)
    on_result: Callable[[StageResult], None] = field(default=lambda _result: None)
    on_taken_over: Callable[[str, str], None] = field(default=lambda _name, _attempt: None)
    on_progress: Callable[[float], None] | None = None


# What the record of a run says of one stage, so that it can pass with the stage's files from one run to another.


_BY_STAGE = ("accounting", "reused", "bindings", "facts", "omitted", "unrequested", "results")
_LISTED = ("inputs", "skipped", "files_left_out", "tables")
_OF_EVERY_RUN = {"gates"}  # tables that each run makes anew of all its stages, whoever counted them
CARRIED, TAKEN_OVER, ABOUT_RUN = "carried_from", "taken_over_from", "about_run"


@dataclass(frozen=True)
class StageRecord:
    """One stage in the record of a run.

    Attributes:
        name: Its name.
        entries: Its entry under each key of the record.
        files: Its files.
    """

    name: str
    entries: dict[str, Any]
    files: tuple[PublishedFile, ...]

    @property
    def result(self) -> dict[str, Any]:
        """Its entry under `results`: warnings, seconds, fingerprints, and the run that counted it."""
        return dict(self.entries["results"])

    @property
    def hashes(self) -> dict[str, str]:
        """Hashes of its files by path."""
        return {file.path: file.sha256 for file in self.files}

    @property
    def own_warnings(self) -> list[str]:
        """Its warnings without those that are about the run that it was part of."""
        notes = self.result.get(ABOUT_RUN, [])
        return [warning for warning in self.result["warnings"] if warning not in notes]

    def in_another_run(self, notes: Sequence[str], **facts: Any) -> StageRecord:  # noqa: ANN401 - whatever JSON can hold
        """Return the record as another run holds it.

        Args:
            notes: Warnings about its place in that run, which come first.
            facts: Of which run it is.
        """
        kept = {key: value for key, value in self.result.items() if key not in {CARRIED, TAKEN_OVER, ABOUT_RUN}}
        result = kept | facts | {"warnings": [*notes, *self.own_warnings]} | ({ABOUT_RUN: [*notes]} if notes else {})
        return replace(self, entries=self.entries | {"results": result})

    def with_notes(self, notes: Sequence[str]) -> StageRecord:
        """Return the record with further warnings about the run that it is part of, which come first."""
        result = self.result
        texts = {ABOUT_RUN: [*notes, *result.get(ABOUT_RUN, [])], "warnings": [*notes, *result["warnings"]]}
        return replace(self, entries=self.entries | {"results": result | texts}) if notes else self

    def to_json(self) -> dict[str, Any]:
        """As it is written beside an unfinished run."""
        return {"name": self.name, "entries": self.entries, "files": [asdict(file) for file in self.files]}


def stage_record(
    configured: ConfiguredStage,
    evaluation: Evaluation,
    fingerprints: Fingerprints,
    files: Iterable[PublishedFile],
) -> StageRecord:
    """Return the record of a stage that was counted.

    Args:
        configured: The stage, as the config has it.
        evaluation: The same, counted.
        fingerprints: What decided its result.
        files: What has been written.
    """
    opened, result = evaluation.opened, evaluation.result
    entries = {
        "configuration": canonical_stage(configured),
        "accounting": evaluation.account,
        "reused": evaluation.reused,
        "bindings": settings(opened)["bindings"],
        "facts": opened.plan.facts,
        "omitted": result.omitted,
        "unrequested": dict(result.unrequested),
        "results": {
            "warnings": list(result.warnings),
            "notes": list(result.notes),
            "seconds": round(result.seconds, 3),
            "fingerprint": fingerprints.fingerprint,
            "identity": fingerprints.identity,
        },
        "inputs": input_records([opened]),
        "skipped": skipped_records([opened]),
        "files_left_out": left_out_records([opened]),
        "tables": table_records([opened]),
    }
    return StageRecord(opened.name, entries, tuple(file for file in files if file.stage == opened.name))


def recorded_stages(record: Mapping[str, Any], files: Sequence[PublishedFile]) -> dict[str, StageRecord]:
    """Return the stages of a run by name, from its record and the files of its manifest.

    Raises:
        ValueError: it is not the record of a run (or KeyError, TypeError, AttributeError).
    """
    stages = {}
    for configuration in record["configuration"]["stages"]:
        name = configuration["name"]
        entries: dict[str, Any] = {"configuration": configuration}
        entries |= {key: record.get(key, {}).get(name, {}) for key in _BY_STAGE}  # earlier versions lack some
        entries |= {key: [entry for entry in record.get(key, []) if entry["stage"] == name] for key in _LISTED}
        entries["results"] = {**entries["results"], "warnings": [*entries["results"]["warnings"]]}
        of_stage = (file for file in files if file.stage == name and file.table not in _OF_EVERY_RUN)
        stages[name] = StageRecord(name, entries, tuple(of_stage))
    return stages


def parse_stage_record(content: Mapping[str, Any]) -> StageRecord:
    """Return what `to_json` returned; raises the errors of `recorded_stages`."""
    files = tuple(published_file(file) for file in content["files"])
    if any(file.stage != content["name"] for file in files):
        message = f"a file is not of the stage {content['name']!r}"
        raise ValueError(message)
    return StageRecord(content["name"], dict(content["entries"]), files)


def joined(stages: Iterable[StageRecord]) -> dict[str, Any]:
    """Return the keys of a run record that stages make, without `configuration`."""
    records = list(stages)
    by_stage = {key: {record.name: record.entries.get(key, {}) for record in records} for key in _BY_STAGE}
    return by_stage | {key: [entry for record in records for entry in record.entries[key]] for key in _LISTED}
