"""A folder of news as the examples have it: a config, its data, and the command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from pathlib import Path

CONFIG = """
output = "results"

[[stages]]
kind = "threshold_sweep"
predictions = "predictions.parquet"
"""


@pytest.fixture
def news(tmp_path: Path) -> Path:
    rows = {"score": [number / 40 for number in range(40)], "label": [number % 3 > 0 for number in range(40)]}
    pl.DataFrame(rows).write_parquet(tmp_path / "predictions.parquet")
    (tmp_path / "nightly.toml").write_text(CONFIG)
    return tmp_path
