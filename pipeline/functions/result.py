"""What a public function returns: the tables of one stage, in memory."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.runs import runner
from pipeline.sources.paths import local_path

if TYPE_CHECKING:
    import os

    import polars as pl

    from pipeline.runs.config import Config
    from pipeline.runs.evaluation import Evaluation, InMemory
    from pipeline.runs.runner import Run
    from pipeline.stages.stage import Summary


class Result:
    """The result of one stage, in memory.

    Its tables are attributes under their short names: `result.curve` is the table `threshold_sweep_curve` of a
    threshold sweep.

    Attributes:
        name: Name of the stage.
        kind: Its task.
        tables: Its result tables by their full names, as `docs/results.md` describes them; and `counts`, `inputs` and
            `bindings`.
        omitted: Tables that were not made, with the reason.
        warnings: What to know before using the numbers.
        summary: The main result, for people.
    """

    def __init__(self, config: Config, evaluation: Evaluation, tables: InMemory) -> None:
        self._config, self._evaluation, self._in_memory = config, evaluation, tables
        (stage,) = evaluation.results
        self.name: str = stage.name
        self.kind: str = stage.kind
        self.tables: dict[str, pl.DataFrame] = {table: frame for (table, _), (frame, _) in tables.tables.items()}
        self.omitted: dict[str, str] = stage.omitted
        self.warnings: tuple[str, ...] = stage.warnings
        self.summary: Summary = stage.summary

    def __getattr__(self, name: str) -> pl.DataFrame:
        """Return a table by its short name.

        Raises:
            AttributeError: the stage has no such table, or did not make it; the message says which it has, or why.
        """
        if name.startswith("_"):
            raise AttributeError(name)
        full = f"{self.kind}_{name}"
        if full in self.omitted:
            message = f"the table {full} was not made: {self.omitted[full]}"
            raise AttributeError(message)
        if full not in self.tables:
            message = f"{self.kind} has no table {name!r}; it has {', '.join(self._short_names())}"
            raise AttributeError(message)
        return self.tables[full]

    def __dir__(self) -> list[str]:
        """List the attributes, the tables among them, so that editors complete them."""
        return sorted({*super().__dir__(), *self._short_names()})

    def _short_names(self) -> list[str]:
        return [name.removeprefix(f"{self.kind}_") for name in self.tables if name.startswith(f"{self.kind}_")]

    def __repr__(self) -> str:
        """Say what it is, the main result, and what there is to look at."""
        lines = [f"{self.name}: {self.summary.sentence}"]
        lines += [f"warning: {warning}" for warning in self.warnings]
        lines.append(f"tables: {', '.join(self._short_names())}")
        return "\n".join(lines)

    def save(self, folder: str | os.PathLike[str]) -> Run:
        """Publish the result as a run in a results folder; nothing is counted again.

        Args:
            folder: The results folder; it is created if it does not exist.

        Returns:
            The published run, or the existing one if its latest run has the same inputs, config, code and tables.

        Raises:
            ThresherError: the folder cannot be written, or an input has changed since it was read.
        """
        output = local_path(str(folder), Path.cwd(), what="folder").resolve()
        return runner.publish(replace(self._config, output=output), self._evaluation, self._in_memory)
