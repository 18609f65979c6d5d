"""Small tools of the tests: write Parquet files, run one stage on them, read its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

import pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.runner import Run

KIND = "before_after"


def before_after_config(folder: Path, frames: Mapping[str, pl.DataFrame], **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    """Write each frame to `<folder>/<name>.parquet` and return a config that reads them as the inputs of before_after.

    A key that has the name of an input, a table without `path`, is put beside its path.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stage: dict[str, Any] = {"kind": KIND} | {key: value for key, value in keys.items() if key not in frames}
    for name, frame in frames.items():
        frame.write_parquet(folder / f"{name}.parquet")
        stage[name] = {"path": str(folder / f"{name}.parquet")} | keys.get(name, {})
    return {"output": str(folder / "results"), "stages": [stage]}


def run_before_after(folder: Path, frames: Mapping[str, pl.DataFrame], **keys: Any) -> Run:  # noqa: ANN401
    """Run before_after on some frames; the keys are those of its config."""
    return pipeline.run(before_after_config(folder, frames, **keys))


def read_table(run: Run, name: str, stage: str = KIND) -> pl.DataFrame:
    """One table of one stage of a published run."""
    return pl.read_parquet(run.path / name / f"{stage}.parquet")


def estimates_of(folder: Path, frames: Mapping[str, pl.DataFrame], **keys: Any) -> pl.DataFrame:  # noqa: ANN401
    """The table before_after_estimates of a run on some frames."""
    return read_table(run_before_after(folder, frames, **keys), "before_after_estimates")


def fates(run: Run, name: str = "pairs") -> dict[str, int]:
    """What became of the rows of an input."""
    rows = read_table(run, "inputs").filter(pl.col("input") == name)
    return dict(zip(rows["fate"].to_list(), rows["n_rows"].to_list(), strict=True))
