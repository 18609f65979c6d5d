"""What the record of a run says of one stage, so that it can pass with the stage's files from one run to another."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

from ..records import dataclass
from ..storage.manifest import PublishedFile, published_file
from .provenance import (
    canonical_stage,
    input_records,
    left_out_records,
    settings,
    skipped_records,
    table_records,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .config import ConfiguredStage
    from .opening import OpenedStage
    from .provenance import Fingerprints
    from .stage_results import StageResult

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
        """Its entry under `results`: warnings, seconds, fingerprints, and of which run it is."""
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
    opened: OpenedStage,
    counted: tuple[StageResult, Mapping[str, Any], Mapping[str, Any]],
    fingerprints: Fingerprints,
    files: Iterable[PublishedFile],
) -> StageRecord:
    """Return the record of a stage that was counted.

    Args:
        configured: The stage, as the config has it.
        opened: The same with its inputs.
        counted: Its result, the account of its rows, and how many files were read.
        fingerprints: What decided its result.
        files: What has been written.
    """
    result, account, reused = counted
    entries = {
        "configuration": canonical_stage(configured),
        "accounting": account,
        "reused": reused,
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
    """Return what `to_json` returned; errors are those of `recorded_stages`."""
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
