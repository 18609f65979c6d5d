"""Grouping columns with names that a stage uses itself: they work, or are refused before anything is read."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
import sqlglot.expressions as exp
from running import SWEEP, run_threshold_sweep, stage_config

import pipeline
from pipeline.errors import ConfigError
from pipeline.queries import load, names_beside_groups, query_names
from pipeline.schemas import is_reserved_within
from pipeline.stages import STAGES
from pipeline.stages.threshold_sweep.planning import LIKELIHOOD

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.stages.stage import Stage

USED = (
    "positive_1",
    "all_n_positive",
    "positive_squares",
    "tp_squares",
    "average_precision_degrees",
    "roc_auc_degrees",
)
SCORES = pl.DataFrame({"score": [0.1, 0.4, 0.35, 0.8, 0.6, 0.2], "label": [0, 0, 1, 1, 1, 0]})
MENTIONS = pl.DataFrame({"doc_id": [1, 1, 2], "start": [0, 5, 0], "end": [3, 9, 4]})


def names_of(*stages: str) -> list[str]:
    """Every name of a column in the queries of some stages."""
    trees = [load(name).tree for name in query_names() if name.split("/")[0] in stages]
    columns = {each.name for tree in trees for each in tree.find_all(exp.Column)}
    return sorted(columns | {each.alias for tree in trees for each in tree.find_all(exp.Alias)} - {""})


@pytest.mark.parametrize("method", ["exact", "binned"])
@pytest.mark.parametrize("name", sorted({*names_of(SWEEP, "areas"), *LIKELIHOOD, *USED}))
def test_names_within_threshold_sweep_work_or_are_refused(tmp_path: Path, name: str, method: str) -> None:
    frame = SCORES.with_columns(SCORES["label"].alias(name) if name in SCORES.columns else pl.lit("x").alias(name))
    try:
        run = run_threshold_sweep(tmp_path, frame, by=[name], method=method, thresholds=[0.5])
    except ConfigError as error:
        assert f"by: {name!r} is" in error.message  # noqa: PT017 - either outcome is right
    else:
        curve = pl.read_parquet(run.path / "threshold_sweep_curve" / "threshold_sweep.parquet")
        assert curve[name].drop_nulls().to_list() == ["x"]


@pytest.mark.parametrize(
    "name", [name for name in names_of("entity_recognition") if name not in {*MENTIONS.columns, "text", "type"}]
)
def test_names_within_entity_recognition_work_or_are_refused(tmp_path: Path, name: str) -> None:
    frames = {"gold": MENTIONS, "predicted": MENTIONS.with_columns(pl.lit("x").alias(name))}
    try:
        pipeline.run(stage_config(tmp_path, "entity_recognition", frames, match="span", by=[name]))
    except ConfigError as error:
        assert f"by: {name!r} is" in error.message  # noqa: PT017 - see above


@pytest.mark.parametrize("stage", [entry.load() for entry in STAGES], ids=lambda stage: stage.kind)
def test_plain_names_are_not_refused(stage: Stage) -> None:
    names = {"source", "system", "model", "class", "site", "country", "language", "value", "group", "all_n"}
    assert not {name for name in names if is_reserved_within(stage.kind, name)} | names & names_beside_groups(
        stage.kind
    )
