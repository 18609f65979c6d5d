"""The layout of a results folder.

results/
  catalog.duckdb                        tables of the latest run and of all kept runs; replaced as a whole
  latest                                link to the folder of the latest run, replaced as a whole
  CURRENT                               the latest run, the hash of every kept manifest, and that of the catalog
  runs/<generation>-<run_id>/           immutable: manifest.json, run.json, <table>/<stage>.parquet, …
  attempts/<run_id>.json                every attempt, failed ones too
  .staging/                             the only place with unfinished things
    CURRENT.next                        what `CURRENT` will be once the next catalog is in its place
    <run_id>/                           the files of an unfinished run
    <run_id>.finished/<stage>.json      a stage that it has finished: what it was counted from, and its files
  .lock                                 held by the run that may publish; never deleted
  .store                                in the mirror of results on a store: the address where they live
"""

from __future__ import annotations

import os
import re
import uuid
from contextlib import suppress
from typing import TYPE_CHECKING

from ..records import dataclass
from ..safe_files import read_file

if TYPE_CHECKING:
    from pathlib import Path

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
CURRENT, CATALOG, RUNS, ATTEMPTS = "CURRENT", "catalog.duckdb", "runs", "attempts"
RUN_RECORD = "run.json"
FINISHED = ".finished"
RUN_ID = re.compile(r"[0-9a-f]{12}")
RUN_NAME = re.compile(r"(?P<generation>\d{8,})-(?P<run_id>[0-9a-f]{12})")
UNFINISHED_NAME = re.compile(  # of what the program makes in `.staging/`, and of temporary files
    r"(\d{8,}-)?[0-9a-f]{12}(\.finished|\.expired|\.removed|\.duckdb[.\w]*)?|healed\.duckdb[.\w]*"
    r"|latest\.\d+(\.copy)?|\..+\.\d+\.tmp"
)


@dataclass(frozen=True)
class Layout:
    """Paths of one results folder.

    Attributes:
        root: The folder, absolute.
    """

    root: Path

    @property
    def catalog(self) -> Path:
        """The DuckDB catalog."""
        return self.root / CATALOG

    @property
    def current(self) -> Path:
        """The pointer to the latest run."""
        return self.root / CURRENT

    @property
    def pending(self) -> Path:
        """What the pointer will be: it counts from the moment at which the catalog that it names is in its place."""
        return self.staging / f"{CURRENT}.next"

    @property
    def latest(self) -> Path:
        """The link to the folder of the latest run."""
        return self.root / "latest"

    @property
    def runs(self) -> Path:
        """The published runs."""
        return self.root / RUNS

    @property
    def wal(self) -> Path:
        """The file that DuckDB leaves beside a catalog that somebody opened for writing."""
        return self.root / "catalog.duckdb.wal"

    @property
    def attempts(self) -> Path:
        """The records of all attempts."""
        return self.root / ATTEMPTS

    @property
    def staging(self) -> Path:
        """The folder of unfinished files."""
        return self.root / ".staging"

    @property
    def states(self) -> Path:
        """The folder of what single input files answered; it can be removed at any time, at the cost of time."""
        return self.root / ".cache"

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.root / ".lock"

    @property
    def store(self) -> Path:
        """The file that names the store of which the folder is a mirror."""
        return self.root / ".store"

    @property
    def address(self) -> str:
        """Where the results live, if the folder is the mirror of a store; empty if they live in the folder itself."""
        with suppress(OSError, ValueError):
            return read_file(self.store).decode()
        return ""

    def named_folders(self) -> str:
        """What stands in front of the name of a run where the catalog names its folder: the place where it lives."""
        address = self.address
        return f"{address}/{RUNS}/" if address else os.path.join(self.runs, "")  # noqa: PTH118 - the start of a text

    def finished(self, run_id: str) -> Path:
        """The folder that notes which stages an unfinished run has finished."""
        return self.staging / f"{run_id}{FINISHED}"

    def unfinished(self) -> list[str]:
        """Ids of the unfinished runs that have finished a stage, in order of their last one."""
        folders = [path for path in self.staging.glob(f"*{FINISHED}") if path.is_dir() and not path.is_symlink()]
        noted = [(path.stat().st_mtime_ns, path) for path in folders if any(path.glob("*.json"))]
        run_ids = [path.name.removesuffix(FINISHED) for _, path in sorted(noted)]
        return [run_id for run_id in run_ids if RUN_ID.fullmatch(run_id) and (self.staging / run_id).is_dir()]

    def run(self, generation: int, run_id: str) -> Path:
        """Folder of one published run."""
        return self.runs / run_name(generation, run_id)

    def attempt_ids(self) -> list[str]:
        """Ids of all attempts that left a record, sorted."""
        names = os.listdir(self.attempts) if self.attempts.is_dir() else []  # noqa: PTH208 - many, and names suffice
        return sorted(name[:-5] for name in names if name.endswith(".json") and RUN_ID.fullmatch(name[:-5]))

    def attempt(self, run_id: str) -> Path:
        """The record of one attempt."""
        return self.attempts / f"{run_id}.json"


def run_name(generation: int, run_id: str) -> str:
    """Name of a run's folder."""
    return f"{generation:08d}-{run_id}"


def generation_of(name: str) -> int:
    """The generation in the name of a run's folder."""
    return int(name.partition("-")[0])


def run_id_of(name: str) -> str:
    """The id in the name of a run's folder."""
    return name.partition("-")[2]


def run_name_of(folder: str) -> str:
    """The name of a run in the text of its folder, as any system writes it, or in its address."""
    return folder.replace("\\", "/").rpartition("/")[2]


def new_run_id() -> str:
    """A fresh run id: 12 hexadecimal digits."""
    return uuid.uuid4().hex[:12]
