"""A small job of two stages on groups with hostile names, which announces what becomes of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl

import pipeline

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

HOSTILE = ["</script><img onerror=x>", "a\nb", 'q"\\n', "\x1b[31m", None, "all", "a,b", '{x="y"} 1', "\u2028é"]


class Night:
    """A folder with inputs, results, a file of events and one of metrics."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.results, self.events, self.metrics = folder / "results", folder / "events.jsonl", folder / "t.prom"
        (folder / "in" / "day=1").mkdir(parents=True)
        rows = [(score / 10, score % 3 > 0, name) for name in HOSTILE for score in range(1, 10)]
        frame = pl.DataFrame(rows, schema=["their score", "label", "group\nname"], orient="row")
        frame.vstack(frame[:1].with_columns(pl.lit(None, pl.Float64).alias("their score"))).write_parquet(
            folder / "in" / "day=1" / "p.parquet"
        )

    def config(self, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - any value of a config
        stage = {
            "kind": "threshold_sweep",
            "predictions": {"path": str(self.folder / "in" / "*" / "p*.parquet"), "columns": {"score": "their score"}},
            "by": [[], ["group\nname"]],
            "thresholds": [0.25, 0.5],
            "invalid_scores": "drop",
        }
        return {
            "output": str(self.results),
            "lineage": {"file": str(self.events)},
            "prometheus": {"file": str(self.metrics)},
            "stages": [stage, {**stage, "name": "again", "by": [[]]}],
        } | changes

    def run(self, **changes: Any) -> Run:  # noqa: ANN401 - as above
        return pipeline.run(self.config(**changes))

    def sent(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.events.read_bytes().splitlines()]
