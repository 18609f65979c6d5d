"""The guard gap: the placebo table says what precision would be with one, before anybody sets it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from running import run_stages

from pipeline.stages.simulations.before_after import write_demo

if TYPE_CHECKING:
    from pathlib import Path


def table(tmp_path: Path, name: str, window: dict[str, str], result: str) -> pl.DataFrame:
    stage = write_demo(tmp_path / "data") | {"window": window, "compared": "timelines", "thresholds": [3, 8, 13, 25]}
    stage["recall_reference"] = {"rule": "fixed", "threshold": 3}  # the same, whatever the false positive rate
    run = run_stages({"output": str(tmp_path / name), "stages": [stage]})
    frame = pl.read_parquet(run.path / result / "before_after.parquet")
    return frame.filter(pl.col("threshold").is_not_null()).sort("grouping", "source", "threshold")


@pytest.fixture(scope="module")
def placebo(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    window = {"before": "168h", "after": "72h", "near": "48h"}
    return table(tmp_path_factory.mktemp("plain"), "plain", window, "before_after_placebo")


@pytest.fixture(scope="module")
def shorter(tmp_path_factory: pytest.TempPathFactory) -> pl.DataFrame:
    window = {"before": "48h", "after": "72h"}
    return table(tmp_path_factory.mktemp("shorter"), "shorter", window, "before_after_estimates")


@pytest.mark.wide
def test_precision_of_the_far_part_is_that_of_a_run_with_the_near_part_as_gap(
    tmp_path: Path, placebo: pl.DataFrame, shorter: pl.DataFrame
) -> None:
    gapped = table(tmp_path, "gapped", {"before": "168h", "after": "72h", "gap": "48h"}, "before_after_estimates")
    assert placebo["m_far"].to_list() == gapped["m_before"].to_list()
    assert placebo["precision_far"].to_list() == pytest.approx(gapped["precision"].to_list(), abs=1e-12)
    assert gapped["precision"].to_list() != pytest.approx(shorter["precision"].to_list(), abs=1e-6)


def test_precision_of_the_near_part_is_that_of_a_run_with_the_near_part_alone(
    placebo: pl.DataFrame, shorter: pl.DataFrame
) -> None:
    assert placebo["m_near"].to_list() == shorter["m_before"].to_list()
    assert placebo["precision_near"].to_list() == pytest.approx(shorter["precision"].to_list(), abs=1e-12)
