"""`thresher demo`: generate data with known truth, run every stage on it, and say how close the results are."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from ..errors import UsageError
from ..paths import local_path, read_file
from ..report.page import write_report
from ..report.published import latest_run
from ..runs import runner
from ..runs.config import load_config
from ..stages import STAGES
from ..storage.layout import make_folder, write_whole

if TYPE_CHECKING:
    from .console import Console

CONFIG = "demo.toml"
_TITLE = "# What `thresher demo` ran, on the data beside it:  thresher run demo.toml"


def run_demo(output: Path, console: Console) -> None:
    """Write data and a config, publish a run of it under `<output>/results`, write its report, and print the results.

    Raises:
        CannotCreateError: the folder cannot be written.
        UsageError: something in it would be replaced that is not of a demo.
    """
    root = local_path(output, Path.cwd(), what="--output")
    _refuse_others(root, output)
    make_folder(root, "--output")
    write_whole(root / CONFIG, _TITLE.encode())  # what follows is a demo's, even if this one is killed
    package = __package__.rpartition(".")[0]  # its name may differ from `pipeline`
    simulations = {entry.kind: import_module(f"{package}.simulations.{entry.kind}") for entry in STAGES}
    stages = [simulation.write_demo(root / "data" / kind) for kind, simulation in simulations.items()]
    write_whole(root / CONFIG, _config_text(stages, root).encode())
    config = load_config(root / CONFIG)
    with console.watching() as watcher:
        finished = runner.run(config, watcher)
    console.finished(finished)
    for configured, result in zip(config.stages, finished.stages, strict=True):
        frames = {
            table.name: pl.read_parquet(finished.path / table.name / f"{configured.params.name}.parquet")
            for table in configured.stage.tables
            if table.name not in result.omitted
        }
        error_table = simulations[configured.stage.kind].error_table(root / "data" / configured.stage.kind, frames)
        sys.stdout.write(f"{configured.params.name}: {simulations[configured.stage.kind].HEADING}\n\n{error_table}\n\n")
    page = write_report(latest_run(config.output), config.output)
    sys.stdout.write(
        f"{finished.path}\n\nReport: {page}\nConfig: {root / CONFIG}\n"
        f'Next: thresher query {output / "results"} "FROM before_after_operating_points"\n'
    )


def _refuse_others(root: Path, output: Path) -> None:
    names = (CONFIG, *(f"data/{entry.kind}" for entry in STAGES), "results")
    taken = next((root / name for name in names if (root / name).exists()), None)
    with suppress(OSError):
        if read_file(root / CONFIG, most=len(_TITLE)) == _TITLE.encode():
            return
    if taken is not None:
        message = f"--output {output}: {taken} is there, and is not of a demo"
        raise UsageError(message, remedy="Choose another folder with --output.")


def _config_text(stages: list[dict[str, Any]], root: Path) -> str:
    """The config of the demo as TOML, its paths relative to it, so that the folder can be moved."""
    tables = [
        "\n".join(["[[stages]]", *(f"{key} = {_toml(value, root)}" for key, value in stage.items())])
        for stage in stages
    ]
    return "\n\n".join([_TITLE, 'output = "results"', *tables]) + "\n"


def _toml(value: object, root: Path) -> str:
    """A value as TOML writes it; the stages of the demo have text, numbers, truth values, lists and tables."""
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(item, root)}' for key, item in value.items())} }}"
    if isinstance(value, list):
        return f"[{', '.join(_toml(item, root) for item in value)}]"
    if isinstance(value, str) and Path(value).is_relative_to(root):
        return json.dumps(Path(value).relative_to(root).as_posix())
    return json.dumps(value)
