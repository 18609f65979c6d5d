"""Small tools of the tests: write Parquet files, run one stage on them, read its tables."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from pipeline.base.interrupts import stop_requests
from pipeline.runs.config import Config, load_config, parse_config
from pipeline.runs.evaluation import evaluate_in_memory, evaluate_stage
from pipeline.runs.opening import open_inputs
from pipeline.runs.stage_results import Run, StageResults, Watcher, texts_once
from pipeline.storage.layout import Layout, new_run_id
from pipeline.storage.publish import Staging, sql_type

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pipeline.runs.evaluation import Evaluation
    from pipeline.storage.state import AnswerCache

KIND = "before_after"
SWEEP = "threshold_sweep"
RANKING = "ranking"
POINTS = "change_points"
COMPARE = "compare"
MAPPED_ONLY = {"predictions": ("weight",), "events": ("complete_window",)}


def nested(depth: int) -> list[Any]:
    """An empty list within `depth` others."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


class UnwrittenRun(Run):
    """A run whose tables are in memory, and written once its folder is asked for."""

    def __init__(self, config: Config, evaluations: Sequence[Evaluation]) -> None:
        staging = Staging(Layout(config.output), new_run_id())
        tables = [table for evaluation in evaluations for table in evaluation.tables]
        super().__init__(staging.folder, staging.run_id, 0, "staged", **_said(evaluations))
        self.__dict__.update(_staging=staging, _tables=tables, _unwritten=tables)

    def frame(self, name: str, stage: str) -> pl.DataFrame:
        """One table of one stage, of types that can be written."""
        frames: list[pl.DataFrame] = [
            frame for table, of, frame, _ in self.__dict__["_tables"] if (table.name, of) == (name, stage)
        ]
        assert all(sql_type(kind) for kind in frames[0].schema.values())
        return frames[0]

    def __getattribute__(self, name: str) -> Any:  # noqa: ANN401 - as of any attribute
        if name == "path":
            for table in self.__dict__.pop("_unwritten", ()):
                self.__dict__["_staging"].write(*table)
        return super().__getattribute__(name)


def _said(evaluations: Sequence[Evaluation]) -> dict[str, Any]:
    results = StageResults(evaluation.result for evaluation in evaluations)
    warnings = texts_once({result.name: result.warnings for result in results})
    notes = texts_once({result.name: result.notes for result in results})
    return {"stages": results, "warnings": warnings, "seconds": 0.0, "notes": notes}


def stage_tables(config: Config, states: AnswerCache | None = None) -> Run:
    """A run whose tables lie in a staging folder, where no reader or later run sees them; the caller removes it.

    Args:
        config: The config.
        states: Where the answers of files are kept; None: all files are read.
    """
    staging = Staging(Layout(config.output), new_run_id())
    evaluations: list[Evaluation] = []
    with stop_requests() as stop:
        first = {each.params.name: open_inputs(config, each) for each in config.stages if not each.upstream}
        for stage in config.stages:
            omitted = {evaluation.result.name: evaluation.result.omitted for evaluation in evaluations}
            opened = first.get(stage.params.name) or open_inputs(config, stage, run=staging.folder, omitted=omitted)
            evaluations.append(evaluate_stage(config, opened, staging.write, Watcher(), stop, states))
    return Run(staging.folder, staging.run_id, 0, "staged", **_said(evaluations))


def run_stages(config: Path | Mapping[str, Any] | Config) -> Run:
    """What `pipeline.run` does of the same config up to the tables of its stages, which lie in the folder of the run.

    Nothing is published, which takes half of the time of a small run: for tests of what stages say and count. They are
    not even written unless a test asks where.
    """
    if not isinstance(config, Config):
        config = load_config(config) if isinstance(config, Path) else parse_config(config, base=Path.cwd())
    if any(stage.upstream for stage in config.stages):
        return stage_tables(config)
    return UnwrittenRun(config, [evaluate_in_memory(replace(config, stages=(stage,))) for stage in config.stages])


def stage_config(folder: Path, kind: str, frames: Mapping[str, pl.DataFrame], **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    """Write each frame to `<folder>/<name>.parquet` and return a config that reads them as the inputs of a stage.

    A key that has the name of an input, a table without `path`, is put beside its path. Columns that are bound only
    where they are mapped, `weight` and `complete_window`, are mapped unless that key says otherwise.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stage: dict[str, Any] = {"kind": kind} | {key: value for key, value in keys.items() if key not in frames}
    for name, frame in frames.items():
        frame.write_parquet(folder / f"{name}.parquet")
        mapped = {} if name in keys else {each: each for each in MAPPED_ONLY.get(name, ()) if each in frame.columns}
        stage[name] = {"path": str(folder / f"{name}.parquet"), "columns": mapped} | keys.get(name, {})
    return {"output": str(folder / "results"), "stages": [stage]}


def before_after_config(folder: Path, frames: Mapping[str, pl.DataFrame], **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    """As `stage_config`, of before_after."""
    return stage_config(folder, KIND, frames, **keys)


def run_before_after(folder: Path, frames: Mapping[str, pl.DataFrame], **keys: Any) -> Run:  # noqa: ANN401
    """Run before_after on some frames; the keys are those of its config."""
    return run_stages(before_after_config(folder, frames, **keys))


def run_threshold_sweep(folder: Path, frame: pl.DataFrame, /, **keys: Any) -> Run:  # noqa: ANN401
    """Run threshold_sweep on some predictions; the keys are those of its config."""
    return run_stages(stage_config(folder, SWEEP, {"predictions": frame}, **keys))


def swept(folder: Path, frame: pl.DataFrame, /, **keys: Any) -> dict[str, pl.DataFrame]:  # noqa: ANN401
    """The tables of threshold_sweep by the end of their names: `curve`, `areas`, `operating_points`, `averages`."""
    run = run_threshold_sweep(folder, frame, **keys)
    return tables_made(run, SWEEP, ("curve", "areas", "operating_points", "averages"))


def run_change_points(folder: Path, frames: Mapping[str, pl.DataFrame], **keys: Any) -> Run:  # noqa: ANN401
    """Run change_points on some frames; the keys are those of its config."""
    return run_stages(stage_config(folder, POINTS, frames, **keys))


def points_tables(folder: Path, frames: Mapping[str, pl.DataFrame], **keys: Any) -> dict[str, pl.DataFrame]:  # noqa: ANN401
    """The tables of change_points by the end of their names: `curve`, `areas`, `series`, `delays`."""
    run = run_change_points(folder, frames, **keys)
    return tables_made(run, POINTS, ("curve", "areas", "series", "delays"))


def run_compare(folder: Path, frame: pl.DataFrame, /, **keys: Any) -> Run:  # noqa: ANN401
    """Run compare on some units; the keys are those of its config."""
    return run_stages(stage_config(folder, COMPARE, {"units": frame}, **keys))


def compared(folder: Path, frame: pl.DataFrame, /, **keys: Any) -> dict[str, pl.DataFrame]:  # noqa: ANN401
    """The tables of compare by the end of their names: `tests`, `posteriors`."""
    run = run_compare(folder, frame, **keys)
    return tables_made(run, COMPARE, ("tests", "posteriors"))


def read_table(run: Run, name: str, stage: str = KIND) -> pl.DataFrame:
    """One table of one stage of a run."""
    if isinstance(run, UnwrittenRun):
        return run.frame(name, stage)
    return pl.read_parquet(run.path / name / f"{stage}.parquet")


def tables_made(run: Run, kind: str, names: Iterable[str]) -> dict[str, pl.DataFrame]:
    """Those tables that a stage called after its kind made, by the end of their names."""
    omitted = run.stages[kind].omitted
    full_names = {name: f"{kind}_{name}" for name in names}
    return {name: read_table(run, table, kind) for name, table in full_names.items() if table not in omitted}


def estimates_of(folder: Path, frames: Mapping[str, pl.DataFrame], **keys: Any) -> pl.DataFrame:  # noqa: ANN401
    """The table before_after_estimates of a run on some frames."""
    return read_table(run_before_after(folder, frames, **keys), "before_after_estimates")


def rows_by_status(run: Run, name: str = "pairs", stage: str = KIND) -> dict[str, int]:
    """What became of the rows of an input."""
    rows = read_table(run, "inputs", stage).filter(pl.col("input") == name)
    return dict(zip(rows["status"].to_list(), rows["n_rows"].to_list(), strict=True))


def ranked(
    folder: Path,
    ranking: pl.DataFrame,
    relevance: pl.DataFrame | None = None,
    /,
    **keys: Any,  # noqa: ANN401
) -> dict[str, pl.DataFrame]:
    """The tables of ranking by the end of their names: `queries`, `cutoffs`, `summary`, `cutoff_means`, `measures`."""
    frames = {"ranking": ranking} | ({} if relevance is None else {"relevance": relevance})
    run = run_stages(stage_config(folder, RANKING, frames, **keys))
    return tables_made(run, RANKING, ("queries", "cutoffs", "summary", "cutoff_means", "measures"))
