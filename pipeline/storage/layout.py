"""Where things lie in a results folder.

results/
  catalog.duckdb                        views on the latest run and on all kept runs; replaced as a whole
  CURRENT                               the latest run, as JSON, for readers without DuckDB
  runs/<generation>-<run_id>/           immutable: manifest.json, run.json, <table>/<stage>.parquet, counts/…
  attempts/<run_id>.json                every attempt, failed ones too
  .staging/                             the only place with unfinished things
  .lock                                 held by the run that may publish; never deleted
"""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

FORMAT_VERSION = 1
COUNTS = "counts"
MANIFEST = "manifest.json"
RUN_RECORD = "run.json"


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
    def runs(self) -> Path:
        """The published runs."""
        return self.root / "runs"

    @property
    def attempts(self) -> Path:
        """The records of all attempts."""
        return self.root / "attempts"

    @property
    def staging(self) -> Path:
        """The unfinished things."""
        return self.root / ".staging"

    @property
    def lock(self) -> Path:
        """The lock file."""
        return self.root / ".lock"

    def run(self, generation: int, run_id: str) -> Path:
        """Folder of one published run."""
        return self.runs / f"{generation:08d}-{run_id}"


def new_run_id() -> str:
    """A fresh run id: 12 hexadecimal digits."""
    return uuid.uuid4().hex[:12]
