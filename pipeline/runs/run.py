"""A published run, as those who made it have it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from ..records import dataclass
from ..storage.layout import RUNS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .stage_by_stage import Failure
    from .stage_results import StageResults


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
