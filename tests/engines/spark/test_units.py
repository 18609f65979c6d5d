"""Units of threshold_sweep whose rows the engine adds up are the same on Spark as on DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from running import stage_config

from engines.spark.both_engines import differences, run_on_both
from pipeline.plan import units
from pipeline.runs.config import parse_config

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.engines.spark_session import SparkSettings


@pytest.mark.parametrize("weighted", [False, True])
def test_units_from_cells_are_the_same(
    weighted: bool,  # noqa: FBT001
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    spark_settings: SparkSettings,
) -> None:
    monkeypatch.setattr(units, "MOST_ROWS_IN_ORDER", 0)
    rows = range(300)
    frame = pl.DataFrame(
        {
            "score": [row * 37 % 101 / 100 for row in rows],
            "label": [row * 5 % 7 < 3 for row in rows],
            "weight": [1.0 + row % 3 for row in rows],
            "doc": [row // 20 for row in rows],
            "model": [("a", "'b", None)[row % 3] for row in rows],
            "day": pl.Series([row % 2 for row in rows]).cast(pl.UInt64),
        }
    )
    columns = {"weight": "weight"} if weighted else {}
    keys = {"by": [[], ["model", "day"]], "cluster": "doc", "units": True, "thresholds": [0.2, 0.5]}
    config = stage_config(tmp_path, "threshold_sweep", {"predictions": frame}, predictions={"columns": columns}, **keys)
    assert not differences(*run_on_both(parse_config(config, base=tmp_path, origin="test"), spark_settings))
