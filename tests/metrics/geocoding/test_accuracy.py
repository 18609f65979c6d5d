"""Accuracy within a tolerance and statistics of errors: by hand, by loops, and by numpy's trapezoid."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_toponyms import tolerance_counts

from pipeline.metrics.geocoding import error_statistics, log_error_auc

ERRORS = st.lists(st.one_of(st.just(math.nan), st.sampled_from([0.0, 10.0, 161.0]), st.floats(0, 20037)), max_size=12)
TOLERANCES = [161.0, 10.0, 0.0]


@pytest.mark.parametrize("boundary", ["<=", "<"])
@given(errors=ERRORS)
def test_counts_are_those_of_the_rules_one_by_one(errors: list[float], boundary: Literal["<=", "<"]) -> None:
    frame = tolerance_counts(np.array(errors, dtype=np.float64), TOLERANCES, boundary=boundary)
    assert frame["tolerance_km"].to_list() == TOLERANCES
    for row in frame.iter_rows(named=True):
        tolerance, tp, fp, fn = row["tolerance_km"], 0, 0, 0
        for error in errors:
            if math.isnan(error):
                fn += 1
            elif error < tolerance or (boundary == "<=" and error == tolerance):
                tp += 1
            else:
                fp, fn = fp + 1, fn + 1
        assert (row["tp"], row["fp"], row["fn"]) == (tp, fp, fn)
        assert row["n_gold"] == tp + fn == len(errors)
        assert row["n_attempted"] == tp + fp
        assert row["precision"] == (tp / (tp + fp) if tp + fp else None)
        assert row["recall"] == (tp / (tp + fn) if tp + fn else None)
        assert row["f1"] == (2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None)


def test_columns_are_counts_and_ratios() -> None:
    schema = tolerance_counts(np.array([1.0]), [1]).schema
    integers = {"n_gold", "n_attempted", "tp", "fp", "fn"}
    assert {name for name, kind in schema.items() if kind == pl.Int64} == integers
    assert {name for name, kind in schema.items() if kind == pl.Float64} == set(schema) - integers


def test_ratios_of_the_worked_table_of_the_source_text() -> None:
    row = tolerance_counts(np.array([0.0] * 5 + [999.0] * 2 + [np.nan]), [1]).to_dicts()[0]
    assert (row["fp"], row["fn"]) == (2, 3)
    assert (row["precision"], row["recall"]) == (pytest.approx(0.714, abs=5e-4), 0.625)
    assert row["f1"] == pytest.approx(2 / 3)


def test_spurious_predictions_lower_precision_only() -> None:
    errors = np.array([0.0, 5000.0])
    source, semeval = (tolerance_counts(errors, [10.0], n_spurious=count).to_dicts()[0] for count in (0, 2))
    assert (source["precision"], semeval["precision"]) == (1 / 2, 1 / 4)
    assert source["recall"] == semeval["recall"] == 1 / 2
    assert (semeval["tp"], semeval["fp"], semeval["fn"], semeval["n_attempted"]) == (1, 3, 1, 4)


@given(errors=st.lists(st.floats(0, 20037), min_size=2, max_size=30), data=st.data())
def test_area_is_the_trapezoid_of_sorted_log_errors(errors: list[float], data: st.DataObject) -> None:
    logs = np.sort(np.log(np.array(errors) + 1))
    expected = np.trapezoid(logs) / (np.log(20039) * (len(logs) - 1))
    actual = log_error_auc(np.array(errors))
    assert actual == pytest.approx(expected, abs=1e-12)
    assert 0 <= actual <= 1
    assert log_error_auc(np.array(data.draw(st.permutations(errors)))) == actual


def test_area_at_its_ends() -> None:
    assert log_error_auc(np.zeros(5)) == 0
    assert log_error_auc(np.full(5, 20038.0)) == pytest.approx(1)
    assert log_error_auc(np.array([0.0, 20038.0])) == pytest.approx(0.5)
    assert math.isnan(log_error_auc(np.array([3.0])))


def test_statistics_of_errors() -> None:
    errors = np.array([4.0, np.nan, 0.0, 1.0, np.nan, 7.0])
    actual = error_statistics(errors)
    assert (actual["n_gold"], actual["n_located"]) == (6, 4)
    assert (actual["mean_km"], actual["median_km"]) == (3.0, 2.5)
    assert actual["log_error_auc"] == log_error_auc(np.array([0.0, 1.0, 4.0, 7.0]))
    worst = error_statistics(errors, missing="max_error")
    assert (worst["n_gold"], worst["n_located"]) == (6, 4)
    assert worst["median_km"] == 5.5
    assert worst["mean_km"] == pytest.approx((12 + 2 * 20038) / 6)
    assert worst["log_error_auc"] > actual["log_error_auc"]


@pytest.mark.parametrize("size", [0, 3])
def test_nothing_located_has_no_error_instead_of_none(size: int) -> None:
    actual = error_statistics(np.full(size, np.nan))
    assert (actual["n_gold"], actual["n_located"]) == (size, 0)
    assert all(math.isnan(actual[name]) for name in ("mean_km", "median_km", "log_error_auc"))
    row = tolerance_counts(np.full(size, np.nan), [10.0]).to_dicts()[0]
    assert row["precision"] is None
    assert row["recall"] == (0.0 if size else None)
