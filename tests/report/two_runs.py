"""Two published runs of every stage in one results folder, the second with other inputs, parameters and stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from stage_examples import EXAMPLES

from pipeline.runs import runner
from pipeline.runs.config import parse_config

if TYPE_CHECKING:
    from pathlib import Path

HOSTILE = "</script><img onerror=x>|_$%&\n\x1b[31m, \"q\" 'all'"
GROUP_COLUMNS = {"source", "model", "system", "method"}


def with_hostile_groups(frame: pl.DataFrame) -> pl.DataFrame:
    """Rename the first group of every grouping column."""
    columns = GROUP_COLUMNS & set(frame.columns)
    return frame.with_columns(
        pl.when(pl.col(name) == frame[name].min()).then(pl.lit(HOSTILE)).otherwise(name).alias(name) for name in columns
    )


def write_stages(folder: Path, *, kinds: set[str]) -> list[dict[str, Any]]:
    """Write the inputs of the examples and return their stages."""
    stages = []
    for example in EXAMPLES:
        if example.kind not in kinds:
            continue
        stage: dict[str, Any] = {"kind": example.kind, **example.keys}
        for name, frame in example.frames.items():
            path = folder / f"{example.kind}_{name}.parquet"
            (frame if example.kind == "compare" else with_hostile_groups(frame)).write_parquet(path)
            stage[name] = {"path": str(path), "columns": example.columns(name)}
        stages.append(stage)
    return stages


def publish(folder: Path, stages: list[dict[str, Any]]) -> None:
    """Run stages and publish their results in the folder `results`."""
    assert runner.run(parse_config({"output": str(folder / "results"), "stages": stages}, base=folder)).status == (
        "published"
    )


def worse_tags(folder: Path) -> None:
    """Replace predictions of entity_recognition so that a group finds less."""
    path = folder / "entity_recognition_predicted.parquet"
    frame = pl.read_parquet(path)
    misses = pl.col("doc_id").str.slice(1).cast(pl.Int64) % 2 == 0
    frame.with_columns(start=pl.when(misses).then(pl.col("start") + 3).otherwise("start")).write_parquet(path)


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results folder."""
    folder = tmp_path_factory.mktemp("two_runs")
    kinds = {example.kind for example in EXAMPLES}
    stages = write_stages(folder, kinds=kinds)
    publish(folder, stages)
    worse_tags(folder)
    later = [stage for stage in stages if stage["kind"] != "geocoding"]
    for stage in later:
        if stage["kind"] == "threshold_sweep":
            stage |= {"boundary": ">", "thresholds": [0.5, 1.0, 2.0]}
        if stage["kind"] == "change_points":
            stage["name"] = "turns"
    publish(folder, later)
    return folder / "results"
