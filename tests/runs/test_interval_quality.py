"""A run on a handful of clusters, documents, series and events says that its intervals rest on few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import pipeline
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.base.schemas import Table

LIMITS = ("_lower", "_upper")
TABLES = {
    "threshold_sweep": "threshold_sweep_areas",
    "entity_recognition": "entity_recognition_scores",
    "change_points": "change_points_curve",
    "before_after": "before_after_estimates",
}


def stages(folder: Path, units: int) -> dict[str, dict[str, Any]]:
    """Stages with so many independent units of 40 rows."""
    rng = np.random.default_rng(1)
    rows = 40 * units
    unit = np.arange(rows) % units
    start = 10 * np.arange(rows)
    lag = rng.integers(-72, 72, rows).astype(np.float64)
    score = rng.random(rows)
    mentions = pl.DataFrame({"doc_id": unit, "start": start, "end": start + 4})
    points = pl.DataFrame({"series_id": unit, "position": start * 5.0})
    frames = {
        "predictions": pl.DataFrame({"score": score, "label": rng.random(rows) < 0.4, "user": unit}),
        "gold": mentions,
        "predicted": mentions[rows // 3 :],
        "annotations": points,
        "predictions_of_points": points[rows // 3 :].with_columns(pl.col("position") + 3),
        "pairs": pl.DataFrame({"event_id": unit, "score": score + 0.3 * (lag > 0), "lag_hours": lag}),
    }
    for name, frame in frames.items():
        frame.write_parquet(folder / f"{name}.parquet")
    path = {name: str(folder / f"{name}.parquet") for name in frames}
    return {
        "threshold_sweep": {"predictions": path["predictions"], "cluster": "user"},
        "entity_recognition": {"gold": path["gold"], "predicted": path["predicted"]},
        "change_points": {
            "annotations": path["annotations"],
            "predictions": path["predictions_of_points"],
            "margin": 10,
        },
        "before_after": {"pairs": path["pairs"], "compared": "pairs", "thresholds": [0.2, 0.5]}
        | {"window": {"before": "72h", "after": "72h"}, "lag_thresholds": [0.3]},
    }


@pytest.mark.wide
@pytest.mark.parametrize(("units", "is_few"), [(3, True), (40, False)])
def test_few_units_are_told_and_marked(tmp_path: Path, units: int, *, is_few: bool) -> None:
    config = [{"kind": kind, **keys} for kind, keys in stages(tmp_path, units).items()]
    run = pipeline.run({"output": str(tmp_path / "results"), "stages": config})
    told = " ".join(words for words in run.warnings if "few_clusters" in words)
    assert all(told.count(f"{kind}: some intervals may be too narrow") == is_few for kind in TABLES), (
        "one warning for each stage"
    )
    assert all(("*" in str(stage.summary.rows)) == bool(stage.summary.legend) for stage in run.stages)
    with pipeline.open_results(str(tmp_path / "results")) as connection:
        for kind, table in TABLES.items():
            qualities = connection.table(table).pl()["interval_quality"].unique().drop_nulls()
            assert ("few_clusters" in qualities) == is_few, (kind, qualities)
            assert (kind in told) == is_few, (kind, run.warnings)
        for entry in STAGES:
            omitted = run.stages[entry.kind].omitted if entry.kind in TABLES else {}
            for result in entry.load().tables if entry.kind in TABLES else ():
                if result.name not in omitted:
                    check_marks(connection.table(result.name).pl())


def check_marks(rows: pl.DataFrame) -> None:
    """A row has a mark if and only if it has an interval; bands over κ are none."""
    limits = [name for name in rows.columns if name.endswith(LIMITS) and "_over_kappa" not in name]
    if limits:
        is_limited = pl.any_horizontal(pl.col(name).is_not_null() for name in limits)
        assert rows.select((is_limited == pl.col("interval_quality").is_not_null()).all()).item(), rows


@pytest.mark.parametrize("table", [table for entry in STAGES for table in entry.load().tables], ids=lambda t: t.name)
def test_every_table_with_intervals_says_how_far_to_trust_them(table: Table) -> None:
    names = {column.name for column in table.columns}
    assert any(name.endswith(LIMITS) for name in names) == ("interval_quality" in names)
