"""Messages of the config that a person can act on, whatever library found the fault."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import run_stages

import pipeline
from pipeline.base.errors import ConfigError
from pipeline.engines import spark_session

if TYPE_CHECKING:
    from pathlib import Path

CASES: list[tuple[dict[str, Any], str]] = [
    ({"by": 5}, 'write a list of columns, for example by = ["source"]'),
    ({"by": ["a", ["b"]]}, "mix no columns with groupings"),
    ({"replicates": 0}, 'write "auto" or a number from 2 to 10,000'),
    ({"replicates": 1.5}, 'write "auto" or a number'),
    ({"thresholds": 5}, "write a list, { start, stop, count } or"),
    ({"thresholds": {"start": 0, "stop": 1}}, "`thresholds.count` is missing"),
    ({"thresholds": {"start": 0, "stop": 1, "cuont": 3}}, "unknown key `thresholds.cuont`. Did you mean `count`?"),
    ({"operating_points": []}, "give each criterion once, and at least one"),
    ({"operating_points": [{"beta": 1}, {"beta": 1.0}]}, "give each criterion once"),
    ({"operating_points": [{"min_recall": 0.5, "confidence": 0.9}]}, "confidence goes with min_precision"),
    ({"thresholds": "distinct", "recall_reference": {"rule": "fixed", "threshold": 1.0}}, "needs thresholds that are"),
    ({"pairs": {"path": "p.parquet", "timezone": "Europe/Amsterdm"}}, "did you mean 'Europe/Amsterdam'?"),
    ({"by": ["run_id"]}, "'run_id' is also a column of the results"),
    ({"by": ["a,b"]}, "cannot be a grouping column"),
]


@pytest.mark.parametrize(("keys", "words"), CASES, ids=[str(number) for number in range(len(CASES))])
def test_a_fault_in_the_config_is_said_in_plain_words(tmp_path: Path, keys: dict[str, Any], words: str) -> None:
    stage = {"kind": "before_after", "pairs": "p.parquet", "thresholds": [0.5]} | keys
    with pytest.raises(ConfigError) as raised:
        run_stages({"output": str(tmp_path / "r"), "stages": [stage]})
    assert words in str(raised.value)
    assert "function-" not in str(raised.value)
    assert raised.value.code == 78


def test_an_engine_that_is_not_installed_is_a_plain_error_and_leaves_its_attempt(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_session, "find_spec", lambda _name: None)
    stage = {"kind": "before_after", "pairs": "p.parquet", "thresholds": [0.5]}
    with pytest.raises(ConfigError, match="needs the package pyspark"):
        pipeline.run({"output": str(tmp_path / "r"), "engine": "spark", "stages": [stage]})
    assert len(list((tmp_path / "r" / "attempts").iterdir())) == 1


def test_floating_groups_are_warned_about(tmp_path: Path) -> None:
    frame = pl.DataFrame({"event_id": [1, 2], "score": [0.6, 0.7], "lag_hours": [-1.0, 1.0], "g": [1.5, float("nan")]})
    frame.write_parquet(tmp_path / "p.parquet")
    stage = {"kind": "before_after", "pairs": str(tmp_path / "p.parquet"), "thresholds": [0.5], "by": ["g"]}
    run = run_stages({"output": str(tmp_path / "r"), "stages": [stage]})
    assert any("'g' is a floating number: NaN and infinite values count as NULL" in text for text in run.notes)
