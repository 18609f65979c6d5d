"""The layout of a results folder.

results/
  catalog.duckdb                        tables of the latest run and of all kept runs; replaced as a whole
  latest                                link to the folder of the latest run, replaced as a whole
  CURRENT                               the last link of the chain once more, for readers without DuckDB
  runs/<generation>-<run_id>/           immutable: manifest.json, run.json, <table>/<stage>.parquet, counts/…
  chain/<generation>-<run_id>.json      the hashes of a published run: its manifest, its record, its parent's manifest
  attempts/<run_id>.json                every attempt, failed ones too
  .staging/                             the only place with unfinished things
  .lock                                 held by the run that may publish; never deleted
"""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FORMAT_VERSION = 1
MANIFEST = "manifest.json"
RUN_RECORD = "run.json"
RUN_NAME = re.compile(r"(?P<generation>\d{8,})-(?P<run_id>[0-9a-f]{12})")


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
        return self.root / "catalog.duckdb"

    @property
    def current(self) -> Path:
        """The pointer to the latest run."""
        return self.root / "CURRENT"

    @property
    def latest(self) -> Path:
        """The link to the folder of the latest run."""
        return self.root / "latest"

    @property
    def runs(self) -> Path:
        """The published runs."""
        return self.root / "runs"

    @property
    def chain(self) -> Path:
        """The hashes of the published runs."""
        return self.root / "chain"

    @property
    def wal(self) -> Path:
        """The file that DuckDB leaves beside a catalog that somebody opened for writing."""
        return self.root / "catalog.duckdb.wal"

    @property
    def attempts(self) -> Path:
        """The records of all attempts."""
        return self.root / "attempts"

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

    def run(self, generation: int, run_id: str) -> Path:
        """Folder of one published run."""
        return self.runs / run_name(generation, run_id)

    def link(self, name: str) -> Path:
        """The link of one published run in the chain."""
        return self.chain / f"{name}.json"

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


def new_run_id() -> str:
    """A fresh run id: 12 hexadecimal digits."""
    return uuid.uuid4().hex[:12]
