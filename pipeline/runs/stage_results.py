"""The results of a run: of its stages, their records, and the run as it was published."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from dataclasses import asdict, field, replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..base.records import dataclass
from ..base.sql_files import resource_folder
from ..sources.inputs import EngineRows, is_passed_in
from ..storage.layout import RUNS, PublishedFile, published_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from ..stages.stage import Summary
    from .config import Config, ConfiguredStage
    from .evaluation import Evaluation
    from .opening import FoundInputs, OpenedStage
    from .stage_by_stage import Failure


GATE_FAILED = 3  # exit code of a run that is published although a gate failed


def exit_code(failures: Sequence[Failure], gates: Sequence[Mapping[str, Any]]) -> int:
    """Return the exit code of a published run: that of the first stage that failed, 3 if a gate failed, else 0."""
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
        status: `published`, or `unchanged` if these results existed already.
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
        """Read a table of all its stages by its name in docs/results.md, one below the other in their order.

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
        """Read a table by its short name, if the stage has it and made it."""
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
        """Return the result of a stage by name, by index, or several by a slice."""
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
    """One stage in the record of a run: its entry under each key of that, and its files."""

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

    def in_another_run(self, notes: Sequence[str], **facts: Any) -> StageRecord:  # noqa: ANN401 - whatever JSON can hold
        """Return the record as another run holds it, with warnings about its place there, and which run it is of."""
        of_place = self.result.get(ABOUT_RUN, [])
        lasting = [warning for warning in self.result["warnings"] if warning not in of_place]
        kept = {key: value for key, value in self.result.items() if key not in {CARRIED, TAKEN_OVER, ABOUT_RUN}}
        result = kept | facts | {"warnings": [*notes, *lasting]} | ({ABOUT_RUN: [*notes]} if notes else {})
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
    configured: ConfiguredStage, evaluation: Evaluation, fingerprints: Fingerprints, files: Iterable[PublishedFile]
) -> StageRecord:
    """Return the record of a stage that was counted, of which `files` have been written, of others perhaps, too."""
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
        "inputs": input_records(opened),
        "skipped": _skipped(opened),
        "files_left_out": _left_out(opened),
        "tables": [
            {"stage": opened.name, "input": source.name, **table.record()}
            for source in opened.sources.values()
            for table in source.tables
        ],
    }
    return StageRecord(opened.name, entries, tuple(file for file in files if file.stage == opened.name))


def recorded_stages(record: Mapping[str, Any], files: Sequence[PublishedFile]) -> dict[str, StageRecord]:
    """Return the stages of a run by name, from its record and the files of its manifest.

    A ValueError, KeyError, TypeError or AttributeError says that it is not the record of a run.
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


# What made a run: inputs, config, code and libraries; stored with it, and compared to see whether anything changed.


RACY_SECONDS = 2.0
LIBRARIES = ("thresher", "duckdb", "polars", "pyarrow", "sqlglot", "numpy")
LIBRARIES_OF_ENGINES = {"spark": ("pyspark",)}  # beside these


def settings(opened: OpenedStage) -> dict[str, Any]:
    """Return the choices that change a number, and what it was read from, to be stored next to the number."""
    params, inputs = opened.configured.params, opened.configured.stage.inputs
    shown = params.model_dump(mode="json", exclude={*params.inapplicable, *(each.name for each in inputs)})
    bindings = {}
    for binding in opened.bindings:
        record = {"source": binding.origin, "column": binding.column, "sql": binding.sql}
        bindings[f"{binding.input}.{binding.field}"] = {
            key: value for key, value in record.items() if value is not None
        }
    stored = {"parameters": shown, "facts": opened.plan.facts, "bindings": bindings, "version": versions()["thresher"]}
    return stored | opened.variables.record()


def canonical(config: Config) -> dict[str, Any]:
    """Return the part of the config that decides the results: not its place, the results folder or the limits."""
    stages = [canonical_stage(each) for each in config.stages]
    gates = [gate.model_dump(mode="json", exclude_none=True) for gate in config.gates]
    return {"engine": config.engine, "stages": stages, "gates": gates}


def canonical_stage(configured: ConfiguredStage) -> dict[str, Any]:
    """Return the parameters of a stage that decide its results, and its task."""
    params = configured.params
    return params.model_dump(mode="json", exclude=set(params.inapplicable)) | {"kind": configured.stage.kind}


@dataclass(frozen=True)
class Fingerprints:
    """Hashes of everything that decides the results of a stage: equal hashes, equal results.

    Attributes:
        fingerprint: Hash of its parameters, the code, the libraries and the identity of its inputs.
        identity: The same without the facts that change when a file is only touched.
        is_lasting: Whether a later run may trust the fingerprint.
    """

    fingerprint: str
    identity: str
    is_lasting: bool


def stage_fingerprints(
    config: Config, configured: ConfiguredStage, opened: FoundInputs | None, upstream: Mapping[str, Any]
) -> Fingerprints:
    """Return the fingerprints of a stage.

    A file that changed less than two seconds ago may change again within the resolution of its clock: then the
    fingerprint is unique, so that no later run trusts it. So it is for what the engine reads, whose content nothing
    tells but its rows. Inputs may be tables of upstream stages in their place, whose hashes come by stage and path.
    """
    common: dict[str, Any] = {"engine": config.engine, "stage": canonical_stage(configured), "upstream": upstream}
    common |= {"code": code_sha256(), "versions": versions(config.engine)} | config.variables.identity()
    common["files_left_out"] = [] if opened is None else _left_out(opened)
    files = [] if opened is None else [file for source in opened.sources.values() for file in source.files]
    content = [[file.name, file.rows, file.digest] for file in files]
    skipped_files = [] if opened is None else _skipped(opened)
    skipped = [str(file["path"]) for file in skipped_files if file["is_parquet"]]  # decide a warning
    stat = [file.identity for file in files]
    youngest = max((file.identity.get("ctime_ns", 0) for file in files), default=0)
    racy = time.time() - youngest / 1e9 < RACY_SECONDS or any(isinstance(file, EngineRows) for file in files)
    unique, identity = [os.urandom(16).hex()] if racy else [], [common, content, skipped]
    return Fingerprints(hash_of([*identity, stat, unique]), hash_of(identity), not racy)


def hash_of(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """Return the hash of something as JSON, whatever the order of its keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode()).hexdigest()


@cache
def code_sha256() -> str:
    """Return the hash of the package's code and queries."""
    digest = hashlib.sha256()
    package = Path(__file__).parent.parent
    for path in sorted([*package.rglob("*.py"), *resource_folder("sql").rglob("*.sql")]):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()


@cache
def versions(engine: str = "duckdb") -> dict[str, str]:
    """Return the versions of Python and of the libraries that decide the results of an engine."""
    names = (*LIBRARIES, *LIBRARIES_OF_ENGINES.get(engine, ()))
    return {"python": platform.python_version()} | {name: version(name) for name in names}


def input_records(opened: FoundInputs) -> list[dict[str, Any]]:
    """Return every file and frame that is read, with its rows, the hash of its footer or rows, and its identity.

    A file that another stage of the run made is identified by its path in the run alone.
    """
    return [
        {
            "stage": opened.name,
            "input": source.name,
            "path": file.name if opened.run is None else Path(file.name).relative_to(opened.run).as_posix(),
            "rows": file.rows,
            "footer_sha256": None if isinstance(file, EngineRows) else file.digest,
            **({"read_by": "spark", "kind": file.kind} if isinstance(file, EngineRows) else {}),
            **({"is_frame": True} if is_passed_in(file) else {}),
            **(file.identity if opened.run is None else {}),
        }
        for source in opened.sources.values()
        for file in source.files
    ]


def _skipped(opened: FoundInputs) -> list[dict[str, Any]]:
    """Return every file in an input folder that is not read because of its name, and whether it contains Parquet."""
    return [
        {
            "stage": opened.name,
            "input": source.name,
            "path": opened.variables.concealed(str(file.path)),
            "is_parquet": file.is_parquet,
        }
        for source in opened.sources.values()
        for file in source.skipped
    ]


def _left_out(opened: FoundInputs) -> list[dict[str, Any]]:
    """Return the number of files of every input that were not opened, since `where` leaves their partitions out."""
    return [
        {"stage": opened.name, "input": source.name, "files": source.files_left_out}
        for source in opened.sources.values()
        if source.files_left_out
    ]


def peak_rss() -> int | None:
    """Return the peak resident memory of this process in bytes; None if the system does not tell.

    On Linux `getrusage` of a child includes the peak of its parent, so the kernel's own figure is read there.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        peak = next((line for line in status.read_text().splitlines() if line.startswith("VmHWM:")), None)
        return int(peak.split()[1]) * 1024 if peak is not None else None
    try:
        import resource  # noqa: PLC0415 - not on Windows
    except ImportError:
        return None
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
