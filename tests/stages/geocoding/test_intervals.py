"""Intervals of geocoding: documents, or another column of gold, are the independent units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import read_table, run_stages, stage_config
from scipy import stats

from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters
from pipeline.stages.simulations import geocoding as simulation

if TYPE_CHECKING:
    from pathlib import Path

KIND = "geocoding"
RATIOS = ("precision", "recall", "f1")
TOLERANCES = [10.0, 161.0, 1000.0]


def tables(folder: Path, *given: pl.DataFrame, **keys: Any) -> tuple[pl.DataFrame, pl.DataFrame]:  # noqa: ANN401
    frames = dict(zip(("gold", "predicted"), given, strict=True))
    run = run_stages(stage_config(folder, KIND, frames, tolerances_km=TOLERANCES, **keys))
    return read_table(run, f"{KIND}_scores", KIND), read_table(run, f"{KIND}_outcomes", KIND)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("cluster", ["doc_id", "country", "mention_id"])
def test_limits_are_those_of_counts_per_cluster(tmp_path: Path, cluster: str) -> None:
    gold, predicted = simulation.simulate(seed=5, documents=40)
    predicted = predicted.filter(system="ranker")
    keys = {} if cluster == "doc_id" else {"cluster": cluster}
    scores, outcomes = tables(tmp_path, gold, predicted, **keys)
    own = gold.select("mention_id", unit=cluster).join(outcomes.select("mention_id", "distance_km"), on="mention_id")
    units = own.group_by("unit").agg(
        *(((pl.col("distance_km") <= each).sum()).alias(f"{each}") for each in TOLERANCES),
        pl.col("distance_km").count().alias("attempted"),
        pl.len().alias("gold"),
    )
    # the tolerances fall, so that a share of 0 or 1 takes its spread from the next wider one, as a lower threshold
    tp = units.select(f"{each}" for each in reversed(TOLERANCES)).to_numpy().astype(np.int64)
    attempted, n_gold = (units[name].to_numpy().astype(np.int64)[:, None] for name in ("attempted", "gold"))
    expected = intervals_of_clusters(Confusion(tp, attempted - tp, n_gold - tp, 0 * tp), 0.95)
    found = scores.sort("tolerance_km", descending=True)
    for name in RATIOS:
        for side, values in zip(("lower", "upper"), expected[name], strict=True):
            assert found[f"{name}_{side}"].to_list() == pytest.approx(values.tolist(), rel=1e-12)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("keys", "reason"),
    [({"uncertainty": "none"}, "none"), ({"gold": {"where": "doc_id = 0"}}, "one_replicate"), ({}, None)],
)
def test_why_a_limit_is_missing(tmp_path: Path, keys: dict[str, Any], reason: str | None) -> None:
    scores, _ = tables(tmp_path, *simulation.simulate(seed=6, documents=20), by=[["system"]], **keys)
    assert scores["undefined_interval"].unique().to_list() == [reason]
    assert (scores["recall_lower"].null_count() == scores.height) == (reason is not None)


@pytest.mark.wide
def test_the_intervals_hold_the_truth_as_often_as_they_say(tmp_path: Path) -> None:
    """200 simulated samples in one run: each is a group of gold mentions."""
    geocoder, samples = simulation.GEOCODERS[0], 200
    parts = []
    for number in range(samples):
        gold, predicted = simulation.simulate(seed=number, documents=60)
        moved = gold.with_columns(pl.col("mention_id", "doc_id") + 1000 * number, sample=number)
        own = predicted.filter(system=geocoder.name).drop("system")
        parts.append((moved, own.with_columns(pl.col("mention_id") + 1000 * number)))
    gold, predicted = (pl.concat(each) for each in zip(*parts, strict=True))
    scores, _ = tables(tmp_path, gold, predicted, by=[["sample"]], replicates=10_000)
    for tolerance in TOLERANCES:
        rows = scores.filter(tolerance_km=tolerance)
        assert rows.height == samples
        for name, true in (("precision", geocoder.precision(tolerance)), ("recall", geocoder.recall(tolerance))):
            held = rows.select(pl.lit(true).is_between(pl.col(f"{name}_lower"), pl.col(f"{name}_upper")).sum()).item()
            assert stats.binomtest(held, samples, 0.95).pvalue > 0.001, (tolerance, name, held)
