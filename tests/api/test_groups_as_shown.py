"""Groups are asked for by the names that are shown, and by those that other tools write."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import thresher

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.api.functions import Result

HOUR = dt.datetime(2026, 1, 1, 3, tzinfo=dt.UTC)
FRAME = pl.DataFrame(
    {
        "score": [0.9, 0.8, 0.2, 0.1] * 25,
        "label": [True, False, False, True, True] * 20,
        "flag": [True, False] * 50,
        "word": ["True", "true"] * 50,
        "hour": [HOUR.replace(tzinfo=None), HOUR.replace(tzinfo=None) + dt.timedelta(days=1)] * 50,
        "instant": [HOUR, HOUR + dt.timedelta(days=1)] * 50,
        "empty": ["", "x"] * 50,
    }
)
SPELLINGS = (
    *(("flag", text) for text in ("True", "true", "TRUE")),
    *(("word", text) for text in ("True", "true")),
    *(("hour", text) for text in ("2026-01-01 03:00:00", "2026-01-01T03:00:00")),
    *(("instant", text) for text in ("2026-01-01 03:00:00+00:00", "2026-01-01T03:00:00+00:00")),
    *(("empty", text) for text in ("", '""')),
)


@pytest.fixture(scope="module")
def result() -> Result:
    by = [[name] for name in FRAME.columns[2:]]
    return thresher.threshold_sweep(predictions=FRAME, by=by, thresholds=[0.5], uncertainty="none")


@pytest.mark.wide
@pytest.mark.parametrize(("name", "text"), SPELLINGS)
def test_a_group_is_found_by_every_name_that_it_is_known_by(result: Result, name: str, text: str) -> None:
    first = {"word": text, "empty": ""}.get(name, FRAME[name][0])
    retrieved = FRAME.filter((pl.col(name) == first) & (pl.col("score") >= 0.5))
    group: dict[str, Any] = {name: text}
    assert result.explain("precision", **group).explanation.value == retrieved["label"].mean()
    result.plot("by_threshold", **group)


@pytest.mark.wide
@pytest.mark.parametrize(("name", "text"), [pair for pair in SPELLINGS if pair[1] != '""'])
def test_a_gate_finds_a_group_by_every_name_that_it_is_known_by(tmp_path: Path, name: str, text: str) -> None:
    sweep = {"kind": "threshold_sweep", "predictions": FRAME, "by": [[name]], "thresholds": [0.5]}
    gate = {"name": "of_group", "metric": "precision", "min": 0.01, "group": {name: text}}
    run = thresher.run({"output": str(tmp_path), "stages": [sweep], "gates": [gate]})
    assert run.exit_code == 0
