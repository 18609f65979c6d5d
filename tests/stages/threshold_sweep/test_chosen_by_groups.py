"""Thresholds that are chosen for many groups at once are those of each group alone, with the same limits elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import thresher

GROUPS = (12, 40, 41, 90, 0)  # rows of a group; 0: a dozen without a positive


def predictions() -> pl.DataFrame:
    rng = np.random.default_rng(5)
    frames = []
    for number, size in enumerate(GROUPS):
        rows = size or 12
        label = rng.uniform(size=rows) < (0.4 if size else 0)
        score = np.clip(np.round(0.3 * label + rng.normal(0.3, 0.2, rows), 2), 0, 1)
        weight = np.round(rng.uniform(0.5, 2, rows), 3)
        page = rng.integers(0, 15, rows)
        columns = {"score": score, "label": label, "site": [f"s{number}"] * rows, "heavy": weight, "page": page}
        frames.append(pl.DataFrame(columns))
    return pl.concat(frames)


@pytest.mark.wide
@pytest.mark.parametrize("columns", [{}, {"weight": "heavy"}])
@pytest.mark.parametrize("cluster", [None, "page"])
def test_what_many_groups_choose_is_what_each_chooses_alone(columns: dict[str, str], cluster: str | None) -> None:
    rows = predictions()
    keys: dict[str, Any] = {"operating_points": [{"beta": 1}, {"min_precision": 0.6}, {"max_alerts": 5}]}
    keys["cluster"] = cluster

    def points(frame: pl.DataFrame, by: list[list[str]]) -> pl.DataFrame:
        inputs = {"path": frame, "columns": columns}
        table: pl.DataFrame = thresher.threshold_sweep(predictions=inputs, by=by, **keys).operating_points
        return table

    together = points(rows, [["site"]])
    for (site,), alone in rows.partition_by("site", as_dict=True).items():
        of_site = together.filter(site=site).drop("grouping", "site")
        assert_frame_equal(of_site, points(alone, [[]]).drop("grouping"))
