"""What `thresher.run` takes and returns in Python."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import thresher

if TYPE_CHECKING:
    from pathlib import Path

FRAME = pl.DataFrame({"score": [0.9, 0.7, 0.4, 0.2] * 5, "label": [True, False, True, False] * 5})


def config(folder: Path) -> dict[str, Any]:
    stage = {"kind": "threshold_sweep", "predictions": FRAME, "thresholds": {"start": 0.25, "stop": 0.75, "count": 3}}
    return {"output": str(folder), "stages": [stage | {"name": "a"}, stage | {"name": "b", "averages": []}]}


@pytest.mark.wide
def test_tables_of_stages_and_of_the_run(tmp_path: Path) -> None:
    for status in ("published", "unchanged"):
        run = thresher.run(config(tmp_path))
        assert run.status == status
        assert [stage.name for stage in run.stages] == ["a", "b"]
        assert run.stages["b"].curve.height == run.stages[0].curve.height == 3
        assert run.table("threshold_sweep_curve")["stage"].to_list() == ["a"] * 3 + ["b"] * 3
        assert run.stages[:1][0].name == "a"


@pytest.mark.wide
def test_only_and_set_are_those_of_the_command_line(tmp_path: Path) -> None:
    document = config(tmp_path)
    run = thresher.run(document, only=["b"], set={"stages.b.thresholds.count": 5})
    assert [stage.name for stage in run.stages] == ["b"]
    assert run.stages["b"].curve.height == 5
    assert document["stages"][1]["thresholds"]["count"] == 3


@pytest.mark.wide
def test_what_is_not_there_is_told(tmp_path: Path) -> None:
    run = thresher.run(config(tmp_path), set={"stages.a.outcomes": False})
    with pytest.raises(KeyError, match="no stage is called 'c'; the stages are a, b"):
        run.stages["c"]
    with pytest.raises(KeyError, match="no stage of the run made a table 'ranking_queries'"):
        run.table("ranking_queries")
    with pytest.raises(AttributeError, match="the stage 'a' has no table 'curves'"):
        _ = run.stages["a"].curves
    with pytest.raises(AttributeError, match="the table threshold_sweep_outcomes was not made: outcomes = false"):
        _ = run.stages["a"].outcomes
    with pytest.raises(thresher.ThresherError, match="no stage is called 'c'"):
        thresher.run(config(tmp_path), only=["c"])
