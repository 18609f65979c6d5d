"""What gates compare a run with: an earlier run of the same results folder, or another stage of the same run."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import field
from datetime import date, timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from ...records import dataclass
from ...storage.durable import DamagedError, own_sha256
from ...storage.kept import KeptRun, read_kept_run
from ...storage.layout import RUN_RECORD, Layout, run_id_of
from ...storage.records import read_record
from .settings import PREVIOUS, SAME_WEEKDAY

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

DAY, WEEK = timedelta(days=1), timedelta(days=7)


@dataclass(frozen=True)
class EarlierRun:
    """A kept run that numbers are compared with.

    Attributes:
        kept: The run.
        record: Its record.
    """

    kept: KeptRun
    record: Mapping[str, Any]

    @property
    def name(self) -> str:
        """Name of its folder."""
        return self.kept.folder.name

    @property
    def day(self) -> date:
        """Its logical date."""
        return day_of(self.record, "" if self.kept.manifest is None else self.kept.manifest.published_at)

    def confidence(self, stage: str) -> float | None:
        """Return the confidence of the intervals of a stage; None if the run did not have it."""
        with suppress(KeyError, TypeError, ValueError):
            for parameters in self.record["configuration"]["stages"]:
                if parameters["name"] == stage:
                    return float(parameters["confidence"])
        return None

    def reader(self, stage: str) -> Callable[[str], pl.DataFrame | None]:
        """Return what reads a table of a stage; it gives None for a table that is missing or damaged."""
        files = {} if self.kept.manifest is None else self.kept.manifest.results

        def read(table: str) -> pl.DataFrame | None:
            path = f"{table}/{stage}.parquet"
            with suppress(DamagedError):
                if path in files and own_sha256(self.kept.folder / path) == files[path]:
                    return pl.read_parquet(self.kept.folder / path)
            return None

        return read


@dataclass(frozen=True)
class History:
    """The kept runs of a results folder, as a run sees them that is about to be published.

    Attributes:
        layout: The results folder.
        names: Names of the folders of the kept runs, oldest first.
        inputs: The input records of this run.
        day: Its logical date.
        is_dated: Whether the run was given that date, so that earlier runs are those of earlier dates; else they are
            those that were published before.
        values: Values of the variables that paths and SQL of the config refer to, by name.
    """

    layout: Layout
    names: Sequence[str]
    inputs: Sequence[Mapping[str, Any]]
    day: date
    is_dated: bool = False
    values: Mapping[str, str] = field(default_factory=dict)

    def find(self, baseline: str, stages: frozenset[str]) -> tuple[EarlierRun | None, str]:
        """Return the run that a baseline means, and why there is none, empty if there is.

        The previous run is the last one, by logical date if this run has one, in which the stages read other data:
        other files, or files through variables that had other values. A night that is run again, because its run was
        damaged or because gates, config or code changed, is held against the night before.

        Args:
            baseline: `previous`, `same_weekday` or a run.
            stages: The stages whose files decide: the judged one, or those whose tables it reads.
        """
        if baseline == PREVIOUS:
            return self._previous(stages), "there is no earlier run of other data yet"
        if baseline == SAME_WEEKDAY:
            wanted = self.day - WEEK
            return next((run for run in self._backwards() if run.day == wanted), None), f"there is no run of {wanted}"
        for name in reversed(self.names):
            if baseline in {name, run_id_of(name)}:
                return self._opened(name), f"the run {name} is damaged"
        return None, f"the run {baseline} is not kept"

    def _previous(self, stages: frozenset[str]) -> EarlierRun | None:
        now, previous = _files(self.inputs, stages), None
        for run in self._backwards():
            files = _files(run.record.get("inputs", ()), stages)
            is_same = files == now and not self._had_other_values(run, stages)
            if not files or is_same or (self.is_dated and run.day >= self.day):
                continue
            if previous is None or run.day > previous.day:
                previous = run
            if not self.is_dated or previous.day == self.day - DAY:
                break
        return previous

    def _had_other_values(self, run: EarlierRun, stages: frozenset[str]) -> bool:
        """Whether the stages, as a run had them, refer to variables that have other values now."""
        with suppress(KeyError, TypeError, AttributeError):
            text = json.dumps([each for each in run.record["configuration"]["stages"] if each["name"] in stages])
            values = run.record.get("vars", {}).items()
            return any(f"${{{name}}}" in text and self.values.get(name) != value for name, value in values)
        return False

    def _backwards(self) -> Iterator[EarlierRun]:
        """Yield the intact runs, the latest first."""
        runs = (self._opened(name) for name in reversed(self.names))
        return (run for run in runs if run is not None)

    def _opened(self, name: str) -> EarlierRun | None:
        if name not in self._read:
            kept = read_kept_run(self.layout, name, set(), None, hashes=False)
            record = read_record(kept.folder / RUN_RECORD)
            self._read[name] = EarlierRun(kept, record) if kept.is_readable and record is not None else None
        return self._read[name]

    @cached_property
    def _read(self) -> dict[str, EarlierRun | None]:
        return {}


def _files(records: Sequence[Mapping[str, Any]], stages: frozenset[str]) -> list[str]:
    """Return what identifies the content of the files that some stages read, wherever they lie."""
    names = ("stage", "input", "rows", "footer_sha256")
    return sorted(str([record.get(name) for name in names]) for record in records if record.get("stage") in stages)


def day_of(record: Mapping[str, Any], published_at: str) -> date:
    """Return the logical date of a run: `ds` of its record, or the day on which it was published, UTC."""
    with suppress(ValueError):
        return date.fromisoformat(str(record.get("ds"))[:10])
    return date.fromisoformat(published_at[:10])


def reader_of_folder(folder: Path, stage: str) -> Callable[[str], pl.DataFrame | None]:
    """Return what reads a table of a stage in the folder of a run that is being made; None if it was not made."""

    def read(table: str) -> pl.DataFrame | None:
        path = folder / table / f"{stage}.parquet"
        return pl.read_parquet(path) if path.is_file() else None

    return read
