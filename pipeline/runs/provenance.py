"""What made a run: inputs, config, code and libraries; stored with it, and compared to see whether anything changed."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
import time
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..queries.load import resource_folder
from ..records import dataclass
from ..sources.rows import EngineRows, is_passed_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .config import Config, ConfiguredStage
    from .opening import FoundInputs, OpenedStage

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
    """What decides the results of a stage, as hashes: equal hashes, equal results.

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
    tells but its rows.

    Args:
        config: The whole config.
        configured: The stage.
        opened: The same with its inputs; None if these are tables of upstream stages.
        upstream: Hashes of the tables of its upstream stages, by stage and path.
    """
    common: dict[str, Any] = {"engine": config.engine, "stage": canonical_stage(configured), "upstream": upstream}
    common |= {"code": code_sha256(), "versions": versions(config.engine)} | config.variables.identity()
    common["files_left_out"] = [] if opened is None else left_out_records([opened])
    files = [] if opened is None else [file for source in opened.sources.values() for file in source.files]
    content = [[file.name, file.rows, file.digest] for file in files]
    skipped_files = [] if opened is None else skipped_records([opened])
    skipped = [str(file["path"]) for file in skipped_files if file["is_parquet"]]  # decide a warning
    stat = [file.identity for file in files]
    youngest = max((file.identity.get("ctime_ns", 0) for file in files), default=0)
    racy = time.time() - youngest / 1e9 < RACY_SECONDS or any(isinstance(file, EngineRows) for file in files)
    unique = [os.urandom(16).hex()] if racy else []
    return Fingerprints(_hash([common, content, skipped, stat, unique]), _hash([common, content, skipped]), not racy)


def together(stages: Sequence[tuple[str, str]]) -> str:
    """Return one hash of the hashes of all stages of a run, each with the name of its stage."""
    return _hash(stages)


def _hash(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
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


def input_records(opened: Sequence[FoundInputs]) -> list[dict[str, Any]]:
    """Return every file and frame that is read, with its rows, the hash of its footer or rows, and its identity.

    A file that another stage of the run made is identified by its path in the run alone.
    """
    return [
        {
            "stage": each.name,
            "input": source.name,
            "path": file.name if each.run is None else Path(file.name).relative_to(each.run).as_posix(),
            "rows": file.rows,
            "footer_sha256": None if isinstance(file, EngineRows) else file.digest,
            **({"read_by": "spark", "kind": file.kind} if isinstance(file, EngineRows) else {}),
            **({"is_frame": True} if is_passed_in(file) else {}),
            **(file.identity if each.run is None else {}),
        }
        for each in opened
        for source in each.sources.values()
        for file in source.files
    ]


def skipped_records(opened: Sequence[FoundInputs]) -> list[dict[str, Any]]:
    """Return every file in an input folder that is not read because of its name, and whether it contains Parquet."""
    return [
        {
            "stage": each.name,
            "input": source.name,
            "path": each.variables.concealed(str(file.path)),
            "is_parquet": file.is_parquet,
        }
        for each in opened
        for source in each.sources.values()
        for file in source.skipped
    ]


def left_out_records(opened: Sequence[FoundInputs]) -> list[dict[str, Any]]:
    """Return the number of files of every input that were not opened, since `where` leaves their partitions out."""
    return [
        {"stage": each.name, "input": source.name, "files": source.files_left_out}
        for each in opened
        for source in each.sources.values()
        if source.files_left_out
    ]


def table_records(opened: Sequence[FoundInputs]) -> list[dict[str, Any]]:
    """Return the version of every table of a table format that is read."""
    return [
        {"stage": each.name, "input": source.name, **table.record()}
        for each in opened
        for source in each.sources.values()
        for table in source.tables
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
