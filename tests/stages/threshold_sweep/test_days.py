"""Clusters of threshold_sweep that follow each other in time: how they are told, marked, and put into blocks."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from running import SWEEP, read_table, run_threshold_sweep, swept

from pipeline.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pathlib import Path

FIRST = dt.date(2026, 1, 1)
GRID = [0.0, 0.5, 1.0, 1.5]
LIMITS = ("precision_lower", "precision_upper", "fpr_lower", "fpr_upper")


def predictions(days: int, rho: float, seed: int, rows: int = 30) -> pl.DataFrame:
    """Rows of days whose levels go together with those of their neighbours."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=(days, 2))
    for number in range(1, days):
        level[number] = rho * level[number - 1] + np.sqrt(1 - rho**2) * level[number]
    of_row = np.repeat(np.arange(days), rows)
    label = rng.random(len(of_row)) < 1 / (1 + np.exp(1 - 0.8 * level[of_row, 0]))
    score = rng.normal(size=len(of_row)) + 1.3 * label + 0.6 * level[of_row, 1]
    day = [FIRST + dt.timedelta(int(each)) for each in of_row]
    frame = pl.DataFrame({"score": score.round(3), "label": label, "day": day})
    return frame.sample(fraction=1, shuffle=True, seed=seed)


@pytest.mark.wide
def test_days_are_dates_or_what_another_column_puts_in_order(tmp_path: Path) -> None:
    frame = predictions(60, 0.8, 1)
    name = pl.format("d{}", pl.col("day").dt.ordinal_day() * 7919 % 1000).alias(
        "session"
    )  # whose names are in no order
    sessions = frame.select("score", "label", name, pl.col("day").cast(pl.Datetime("us")).alias("start"))
    dates = swept(tmp_path / "dates", frame, cluster="day", thresholds=GRID)
    ordered = swept(tmp_path / "ordered", sessions, cluster="session", cluster_order="start", thresholds=GRID)
    plain = swept(tmp_path / "plain", sessions, cluster="session", thresholds=GRID)
    for table in ("curve", "areas"):
        assert_frame_equal(dates[table], ordered[table], rel_tol=1e-9)
        assert set(dates[table]["interval_quality"]) == {"correlated_days"}
        assert set(plain[table]["interval_quality"]) == {"good"}
    wider = [dates["curve"][upper] - dates["curve"][lower] for lower, upper in (LIMITS[:2], LIMITS[2:])]
    usual = [plain["curve"][upper] - plain["curve"][lower] for lower, upper in (LIMITS[:2], LIMITS[2:])]
    ratios = np.array([(ours / theirs).to_numpy() for ours, theirs in zip(wider, usual, strict=True)])
    assert ratios.min() >= 1
    assert ratios.max() > 1.2
    for error in ("average_precision_se", "pr_auc_se", "roc_auc_se"):
        assert dates["areas"][error].item() >= plain["areas"][error].item()


def test_independent_days_keep_their_limits_nearly(tmp_path: Path) -> None:
    frame = predictions(60, 0.0, 2)
    names = frame.with_columns(pl.col("day").cast(pl.String))
    dates, plain = (
        swept(tmp_path / str(number), each, cluster="day", thresholds=GRID)
        for number, each in enumerate((frame, names))
    )
    assert set(dates["curve"]["interval_quality"]) == {"good"}
    for limit in LIMITS:
        assert dates["curve"][limit].to_numpy() == pytest.approx(plain["curve"][limit].to_numpy(), abs=0.03)


@pytest.mark.wide
def test_net_benefit_and_chosen_thresholds_on_other_data_know_the_order(tmp_path: Path) -> None:
    frame = predictions(60, 0.8, 1).with_columns(score=(1 / (1 + (-pl.col("score")).exp())).round(3))
    names = frame.with_columns(pl.col("day").cast(pl.String))
    runs = [
        run_threshold_sweep(tmp_path / str(number), each, cluster="day", thresholds=[0.3, 0.5, 0.7], net_benefit=True)
        for number, each in enumerate((frame, names))
    ]
    for table, limits in (("net_benefit", "net_benefit"), ("operating_points", "precision_cross_fitted")):
        dates, plain = (read_table(run, f"threshold_sweep_{table}", "threshold_sweep") for run in runs)
        wider, usual = (each[f"{limits}_upper"] - each[f"{limits}_lower"] for each in (dates, plain))
        assert (wider / usual).to_numpy().max() > 1.1, table
        assert "correlated_days" in dates["interval_quality"].to_list(), table


def test_many_days_are_blocks_in_a_row(tmp_path: Path) -> None:
    frame = predictions(1_200, 0.98, 3, rows=4)
    table = swept(tmp_path, frame, cluster="day", thresholds=GRID)["areas"].row(0, named=True)
    assert (table["n_clusters"], table["interval_quality"]) == (64, "correlated_days")
    assert table["n_clusters_effective"] == pytest.approx(64, abs=0.1)  # blocks of 18 and 19 days


def test_the_order_must_be_known_and_have_clusters(tmp_path: Path) -> None:
    frame = predictions(20, 0.0, 4)
    with pytest.raises(ConfigError, match="cluster_order goes with cluster"):
        swept(tmp_path / "alone", frame, cluster_order="day", thresholds=GRID)
    lacking = frame.with_columns(start=pl.when(pl.int_range(pl.len()) > 0).then("day"))
    with pytest.raises(DataError, match="start"):
        swept(tmp_path / "lacking", lacking, cluster="day", cluster_order="start", thresholds=GRID)


def test_calibration_of_days_has_the_covariances_of_neighbours(tmp_path: Path) -> None:
    frame = predictions(80, 0.9, 5).with_columns(score=(1 / (1 + (1.2 - pl.col("score")).exp())).round(3))
    names = frame.with_columns(pl.col("day").cast(pl.String))
    runs = [
        run_threshold_sweep(tmp_path / str(number), each, cluster="day", thresholds=[0.5], calibration_bins=5)
        for number, each in enumerate((frame, names))
    ]
    for table in ("threshold_sweep_reliability", "threshold_sweep_calibration"):
        dates, plain = (read_table(run, table, SWEEP).drop_nulls("gap_lower") for run in runs)
        assert set(dates["interval_quality"]) == {"correlated_days"}
        assert "correlated_days" not in set(plain["interval_quality"])
        ours, usual = ((each["gap_upper"] - each["gap_lower"]).to_numpy() for each in (dates, plain))
        assert (ours > usual).all()
        assert np.median(ours / usual) > 1.2
    for test, statistic in (("spiegelhalter", "spiegelhalter_z"), ("hosmer_lemeshow", "hosmer_lemeshow")):
        assert (dates[f"{test}_p_value"].to_numpy() > plain[f"{test}_p_value"].to_numpy()).all()
        assert (dates[statistic].abs().to_numpy() < plain[statistic].abs().to_numpy()).all()
    assert (dates["ece_if_calibrated"] > plain["ece_if_calibrated"]).all()
