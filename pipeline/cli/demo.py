"""`thresher demo`: generate data with known truth, run every stage on it, and say how close the results are."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from pipeline.runs import runner
from pipeline.runs.config import parse_config
from pipeline.sources.paths import local_path
from pipeline.stages import STAGES
from pipeline.storage.durable import make_folder

if TYPE_CHECKING:
    from pipeline.cli.console import Console


def run_demo(output: Path, console: Console) -> None:
    """Write data under `<output>/data`, publish a run under `<output>/results`, and print the results.

    Raises:
        CannotCreateError: the folder cannot be written.
    """
    root = local_path(output, Path.cwd(), what="--output")
    make_folder(root)
    package = __package__.rpartition(".")[0]  # its name may differ from `pipeline`
    simulations = {entry.kind: import_module(f"{package}.simulations.{entry.kind}") for entry in STAGES}
    stages = [simulation.write_demo(root / "data" / kind) for kind, simulation in simulations.items()]
    config = parse_config({"output": str(root / "results"), "stages": stages}, base=root, origin="demo")
    with console.watching() as watcher:
        finished = runner.run(config, watcher)
    console.finished(finished)
    for configured in config.stages:
        frames = {
            table.name: pl.read_parquet(finished.path / table.name / f"{configured.params.name}.parquet")
            for table in configured.stage.tables
        }
        error_table = simulations[configured.stage.kind].error_table(root / "data" / configured.stage.kind, frames)
        sys.stdout.write(f"{configured.params.name}: {simulations[configured.stage.kind].HEADING}\n\n{error_table}\n\n")
    sys.stdout.write(
        f'{finished.path}\n\nNext: thresher query {output / "results"} "FROM before_after_operating_points"\n'
    )
