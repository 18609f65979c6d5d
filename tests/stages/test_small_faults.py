"""Faults of single keys: what is said, and what is to be done."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from running import run_threshold_sweep

from pipeline.base.errors import DataError, UsageError
from pipeline.cli.session import parse_setting
from pipeline.metrics.curves.operating_points import Criterion
from pipeline.metrics.curves.trapezoidal_area import OpenCells, finer, pr_auc

if TYPE_CHECKING:
    from pathlib import Path

FRAME = pl.DataFrame({"score": [0.1, 0.2, 0.3], "label": [True, False, True]})


def test_where_reads_the_names_in_the_files(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"Did you mean 'score'.*names as they are in the files") as caught:
        run_threshold_sweep(tmp_path, FRAME, predictions={"where": "scor > 1"})
    assert "Map it" not in str(caught.value)


def test_criteria_that_differ_have_different_texts() -> None:
    assert Criterion(beta=1).text == "max_f1"
    assert Criterion(beta=0.5).text == "max_f0.5"
    assert Criterion(beta=1.0000001).text == "max_f1.0000001"


def test_a_boundary_must_be_one_of_the_two() -> None:
    with pytest.raises(ValueError, match="boundary is '=>'"):
        pr_auc(np.array([0.1, 0.2]), np.array([0, 1]), None, "=>")  # type: ignore[arg-type]


def test_the_largest_double_may_be_the_highest_score_of_a_grid() -> None:
    grid = finer(OpenCells(np.array([1.0]), sys.float_info.max, np.array([1.0])), 100)
    assert grid.edges[-1] >= sys.float_info.max


def test_a_cluster_that_is_not_there_is_called_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"has no column 'nope' \(the cluster\)"):
        run_threshold_sweep(tmp_path, FRAME, cluster="nope")


@pytest.mark.parametrize("text", ["thresholds=[.5]", "x={a=}", 'x="open'])
def test_a_value_that_is_no_toml_is_called_so(text: str) -> None:
    with pytest.raises(UsageError, match=r"the value is not TOML"):
        parse_setting(text)
    assert parse_setting("cluster=user") == ("cluster", "user")
