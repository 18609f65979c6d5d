"""Clusters that follow each other in time, in the stages beside threshold_sweep: marked, and with wider limits."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from running import RANKING, read_table, run_stages, stage_config

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Frames: TypeAlias = Mapping[str, pl.DataFrame]

DAYS = 60


def shares(rho: float, seed: int, spread: float = 1.5) -> tuple[np.random.Generator, Any]:
    """A share of every day, whose level goes along with that of the day before."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=DAYS)
    for day in range(1, DAYS):
        level[day] = rho * level[day - 1] + np.sqrt(1 - rho**2) * level[day]
    return rng, 1 / (1 + np.exp(-spread * level))


def date(day: int) -> dt.date:
    return dt.date(2026, 1, 1) + dt.timedelta(day)


def rankings(rho: float, seed: int) -> Frames:
    """Days of six queries with eight documents, of which a share is relevant."""
    rng, share = shares(rho, seed)
    queries, documents = range(DAYS * 6), range(8)
    relevance = rng.random((len(queries), 8)) < share[np.array(queries) // 6][:, None]
    rows = [(f"q{q}", f"d{d}", 8.0 - d, int(relevance[q, d]), date(q // 6)) for q in queries for d in documents]
    return {"ranking": pl.DataFrame(rows, schema=["query_id", "doc_id", "score", "relevance", "day"], orient="row")}


def mentions(rho: float, seed: int) -> Frames:
    """Days of four documents with six mentions, of which a share is found, beside others that are wrong."""
    rng, share = shares(rho, seed)
    documents = pl.DataFrame([(f"d{d}", date(d // 4)) for d in range(DAYS * 4)], schema=["doc_id", "day"], orient="row")
    gold = [(f"d{d}", 10 * m, 10 * m + 5) for d in range(DAYS * 4) for m in range(6)]
    found = rng.random(len(gold)) < np.repeat(share, 24)
    places = [
        (doc, start if is_found else start + 1, end) for (doc, start, end), is_found in zip(gold, found, strict=True)
    ]
    schema = ["doc_id", "start", "end"]
    predicted = pl.DataFrame(places, schema=schema, orient="row").with_columns(score=rng.random(len(places)).round(2))
    return {"gold": pl.DataFrame(gold, schema=schema, orient="row"), "predicted": predicted, "documents": documents}


def points(rho: float, seed: int) -> Frames:
    """Days of 15 series with a true point, of which a share is found, beside alarms that are false."""
    rng, share = shares(rho, seed)
    series = pl.DataFrame(
        [(f"s{s}", 100, date(s // 15)) for s in range(DAYS * 15)], schema=["series_id", "n_obs", "day"], orient="row"
    )
    found = rng.random(series.height) < np.repeat(share, 15)
    position = np.where(found, 50, 80)
    predicted = series.select("series_id").with_columns(position=position, score=rng.random(series.height).round(2))
    return {"predictions": predicted, "annotations": series.select("series_id", position=50), "series": series}


def toponyms(rho: float, seed: int) -> Frames:
    """Days of 15 places, of which a share is located well."""
    rng, share = shares(rho, seed)
    names = ["mention_id", "latitude", "longitude", "day"]
    gold = pl.DataFrame([(m, 10.0, 20.0, date(m // 15)) for m in range(DAYS * 15)], schema=names, orient="row")
    degrees = np.where(rng.random(gold.height) < np.repeat(share, 15), 0.5, 3.0)
    return {"gold": gold, "predicted": gold.drop("day").with_columns(latitude=10.0 + degrees)}


STAGES: dict[str, tuple[str, Callable[[float, int], Frames], str, dict[str, Any], dict[str, tuple[str, ...]]]] = {
    RANKING: (
        "ranking",
        rankings,
        "ranking",
        {"cutoffs": [3], "measures": ["nDCG@5"], "no_relevant": "zero"},
        {
            "ranking_summary": ("map", "reciprocal_rank"),
            "ranking_cutoff_means": ("precision",),
            "ranking_measures": ("mean",),
        },
    ),
    "change_points": (
        "change_points",
        points,
        "series",
        {"margin": 2, "thresholds": [0.0, 0.4]},
        {"change_points_curve": ("precision", "recall", "f1")},
    ),
    "geocoding": (
        "geocoding",
        toponyms,
        "gold",
        {"tolerances_km": [100.0]},
        {"geocoding_scores": ("recall",), "geocoding_errors": ("mean_km",)},
    ),
    "alarms of change_points": (
        "change_points",
        points,
        "series",
        {"margin": 2, "thresholds": [0.0, 0.4], "per": 100},
        {"change_points_curve": ("recall",), "change_points_alarms": ("false_alarm_rate",)},
    ),
    "entity_recognition": (
        "entity_recognition",
        mentions,
        "documents",
        {"match": "span", "thresholds": [0.0, 0.4]},
        {"entity_recognition_scores": ("precision", "recall", "f1")},
    ),
    "entity_recognition without scores": (
        "entity_recognition",
        lambda rho, seed: {name: table.drop("score", strict=False) for name, table in mentions(rho, seed).items()},
        "documents",
        {"match": "span"},
        {"entity_recognition_scores": ("precision", "recall", "f1")},
    ),
}


def without_names_in_order(frames: Frames, source: str) -> Frames:
    """The same with clusters whose names are in no order, and the time in which they start beside them."""
    name = pl.format("d{}", pl.col("day").dt.ordinal_day() * 7919 % 1000).alias("session")
    start = pl.col("day").cast(pl.Datetime("us")).alias("start_of_day")
    return {**frames, source: frames[source].with_columns(name, start).drop("day")}


def tables(folder: Path, stage: str, frames: Frames, **keys: Any) -> dict[str, pl.DataFrame]:  # noqa: ANN401
    kind, _, _, settings, limited = STAGES[stage]
    run = run_stages(stage_config(folder, kind, frames, **settings, **keys))
    return {name: read_table(run, name, kind) for name in limited}


def width(table: pl.DataFrame, name: str) -> Any:  # noqa: ANN401
    return (table[f"{name}_upper"] - table[f"{name}_lower"]).to_numpy()


@pytest.mark.parametrize("stage", STAGES)
def test_days_that_are_alike_are_marked_and_widen_limits(tmp_path: Path, stage: str) -> None:
    _, frames_of, source, _, limited = STAGES[stage]
    frames = frames_of(0.7, 1)
    sessions = without_names_in_order(frames, source)
    dates = tables(tmp_path / "dates", stage, frames, cluster="day")
    ordered = tables(tmp_path / "ordered", stage, sessions, cluster="session", cluster_order="start_of_day")
    plain = tables(tmp_path / "plain", stage, sessions, cluster="session")
    for table, names in limited.items():
        assert_frame_equal(dates[table], ordered[table], rel_tol=1e-9)
        assert set(dates[table]["interval_quality"]) == {"correlated_days"}, table
        assert set(plain[table]["interval_quality"]) == {"good"}, table
        for name in names:
            assert (width(dates[table], name) > 1.1 * width(plain[table], name)).all(), (table, name)


@pytest.mark.parametrize("stage", STAGES)
def test_independent_days_are_mostly_not_marked_and_keep_their_limits_nearly(tmp_path: Path, stage: str) -> None:
    _, frames_of, source, _, limited = STAGES[stage]
    marks, ratios = [], []
    for seed in range(5):
        frames = frames_of(0.0, 10 + seed)
        sessions = without_names_in_order(frames, source)
        dates = tables(tmp_path / f"dates{seed}", stage, frames, cluster="day")
        plain = tables(tmp_path / f"plain{seed}", stage, sessions, cluster="session")
        for table, names in limited.items():
            marks += (dates[table]["interval_quality"] == "correlated_days").to_list()
            ratios += [width(dates[table], name) / width(plain[table], name) for name in names]
    assert np.mean(marks) <= 0.25
    assert np.median(np.concatenate(ratios)) <= 1.3  # 1.14 of 60 days in the mean
