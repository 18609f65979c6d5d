"""Whole runs with distances on the WGS84 ellipsoid, beside geographiclib."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from geographiclib.geodesic import Geodesic
from reference_toponyms import tolerance_counts
from running import read_table, run_stages, stage_config

from pipeline.metrics.geocoding import error_statistics

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

KIND = "geocoding"
TOLERANCES = [1.0, 161.0, 20_000.0]
TOLERANCE_KM = 5e-11


def kilometres(rows: pl.DataFrame) -> np.ndarray:
    """Distances of rows by geographiclib; nan where a coordinate is missing."""
    points = rows.select(f"{side}_{name}" for side in ("gold", "predicted") for name in ("latitude", "longitude"))
    return np.array(
        [
            np.nan if None in point else Geodesic.WGS84.Inverse(*point, Geodesic.DISTANCE)["s12"] / 1000
            for point in points.iter_rows()
        ]
    )


def assert_tables_are_theirs(run: Run, outcomes: pl.DataFrame) -> None:
    """Every distance, every count and the statistics of the errors."""
    distances = kilometres(outcomes)
    found = outcomes["distance_km"].fill_null(np.nan).to_numpy()
    np.testing.assert_allclose(found, distances, rtol=0, atol=TOLERANCE_KM)
    scores = read_table(run, "geocoding_scores", KIND)
    expected = tolerance_counts(distances, scores["tolerance_km"].to_list())
    for name in expected.columns:
        assert scores[name].to_list() == pytest.approx(expected[name].to_list(), rel=1e-14), name
    row = read_table(run, "geocoding_errors", KIND).row(0, named=True)
    statistics = error_statistics(distances)
    assert {name: row[name] for name in statistics} == pytest.approx(statistics, rel=1e-12)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("keys", [{}, {"match": "span"}], ids=["aligned", "matched"])
def test_places_far_near_and_opposite(tmp_path: Path, keys: dict[str, Any]) -> None:
    rng = np.random.default_rng(22)
    n = 300
    latitude, longitude = np.degrees(np.arcsin(rng.uniform(-1, 1, n))), rng.uniform(-180, 180, n)
    latitude[:4], longitude[:4] = [90, -90, 0, 52], [0, 10, 180, 13]
    shift = rng.choice([1e-6, 0.1, 30], n) * rng.standard_normal((2, n))
    shift[:, 3] = 0
    opposite = np.arange(n) % 5 == 0
    there = np.clip(np.where(opposite, -latitude, latitude) + shift[0], -90, 90), longitude + shift[1] + 180 * opposite
    missing = np.arange(n) % 7 == 6
    gold = pl.DataFrame(
        {
            "mention_id": np.arange(n),
            "doc_id": np.arange(n) // 10,
            "start": 10 * np.arange(n),
            "end": 10 * np.arange(n) + 5,
            "latitude": latitude,
            "longitude": longitude,
        }
    )
    predicted = gold.with_columns(
        pl.Series("latitude", np.where(missing, np.nan, there[0])),
        pl.Series("longitude", np.where(missing, np.nan, (there[1] + 180) % 360 - 180)),
    )
    inputs = {"gold": gold, "predicted": predicted}
    run = run_stages(
        stage_config(tmp_path, KIND, inputs, distance="geodesic", tolerances_km=TOLERANCES, outcomes=True, **keys)
    )
    outcomes = read_table(run, "geocoding_outcomes", KIND)
    assert outcomes.height == n
    assert outcomes["distance_km"].null_count() == missing.sum()
    assert_tables_are_theirs(run, outcomes)


@pytest.mark.parametrize("name", ["geocoding_geowebnews", "geoparsing_lgl"])
def test_real_places(real_data: Path, tmp_path: Path, name: str) -> None:
    """Distances of one system; those on the sphere, which are published, differ from them by up to 0.56 %."""
    columns = {"latitude": "lat", "longitude": "lon", "text": "toponym"}
    stage = {
        "kind": KIND,
        "gold": {"path": str(real_data / name / "gold.parquet"), "columns": columns | {"mention_id": "toponym_id"}},
        "predicted": {
            "path": str(real_data / name / "predictions.parquet"),
            "columns": columns,
            "where": "system = 'edin'",
        },
        "match": "text_near",
        "assignment": "file_order",
        "tolerances_km": TOLERANCES,
    }
    runs = [
        run_stages({"output": str(tmp_path / distance), "stages": [stage | {"distance": distance}]})
        for distance in ("geodesic", "haversine")
    ]
    ellipsoid, sphere = (read_table(run, "geocoding_outcomes", KIND) for run in runs)
    assert ellipsoid["distance_km"].count() > 500
    assert_tables_are_theirs(runs[0], ellipsoid)
    distances = [each["distance_km"].to_numpy() for each in (ellipsoid, sphere)]
    far = distances[0] > 1
    assert 0.0005 < np.abs(distances[1][far] / distances[0][far] - 1).max() < 0.0057
