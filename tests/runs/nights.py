"""A config with two sweeps and a ranking that a comparison reads, as a nightly job has it, and what its runs left."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

import thresher

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from pipeline.runs.stage_results import Run

STAGES = ("a", "b", "queries", "systems")


class Nights:
    """Inputs, config and results in one folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.results = folder / "results"
        self.write_inputs()

    def write_inputs(self) -> None:
        for name in "ab":
            self.write(name)
        cells = [(query, doc, shift) for shift in (0, 1) for query in range(8) for doc in range(5)]
        columns = {
            "query_id": [query for query, _, _ in cells],
            "doc_id": [doc for _, doc, _ in cells],
            "rank": [doc + 1 for _, doc, _ in cells],
            "system": ["xy"[shift] for _, _, shift in cells],
            "relevance": [int((query + doc + shift) % 3 == 0) for query, doc, shift in cells],
        }
        pl.DataFrame(columns).write_parquet(self.folder / "queries.parquet")

    def write(self, name: str, *, share: int = 2) -> None:
        """Write the predictions of a sweep; another share makes other numbers."""
        rows = {"score": [number / 20 for number in range(20)], "label": [number % share == 0 for number in range(20)]}
        pl.DataFrame(rows).write_parquet(self.folder / f"{name}.parquet")

    def lose(self, name: str) -> None:
        (self.folder / f"{name}.parquet").unlink()

    def config(self, *, on_error: str = "publish_others", **keys: Any) -> dict[str, Any]:  # noqa: ANN401 - TOML values
        """The config; keys of a sweep are given by its name."""
        plain = {"kind": "threshold_sweep", "uncertainty": "none", "outcomes": False, "thresholds": [0.25, 0.75]}
        sweeps = [
            plain | {"name": name, "predictions": str(self.folder / f"{name}.parquet")} | keys.get(name, {})
            for name in "ab"
        ]
        ranking = {
            "kind": "ranking",
            "name": "queries",
            "ranking": str(self.folder / "queries.parquet"),
            "by": [["system"]],
        }
        comparison = {"kind": "compare", "name": "systems", "of": "queries", "system": "system", "resamples": 99}
        stages = [*sweeps, ranking | {"cutoffs": [1]} | keys.get("queries", {}), comparison]
        return {"output": str(self.results), "on_error": on_error, "stages": stages}

    def run(self, *only: str, **keys: Any) -> Run:  # noqa: ANN401 - TOML values
        return thresher.run(self.config(**keys), only=only)

    def stages_table(self) -> list[tuple[Any, ...]]:
        """Name, `carried_from` and exit code of every stage."""
        with thresher.open_results(self.results) as connection:
            return connection.sql("SELECT stage, carried_from, exit FROM stages ORDER BY stage").fetchall()


def record_of(run: Run) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((run.path / "run.json").read_bytes())
    return record


def files_of(folder: Path, stages: Sequence[str] = STAGES) -> dict[str, bytes]:
    """The content of the tables of stages, by path."""
    paths = sorted(path for stage in stages for path in folder.glob(f"*/{stage}.parquet"))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}
