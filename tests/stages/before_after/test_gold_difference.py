"""Estimated minus gold precision: by leaving out each event by hand, and where the truth is known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import run_stages
from scipy.stats import t as student

from pipeline.stages.simulations.before_after import write_demo

if TYPE_CHECKING:
    from pathlib import Path

THRESHOLDS = [0.2, 0.5, 0.8]


def archive(seed: int) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    """Pairs of nine events, their numbers of compared pairs, and the gold pairs."""
    rng = np.random.default_rng(seed)
    size = 400
    pairs = pl.DataFrame(
        {
            "event_id": rng.integers(0, 9, size),
            "article_id": np.arange(size),
            "score": rng.uniform(size=size),
            "lag_hours": rng.uniform(-168, 72, size),
        }
    )
    events = pl.DataFrame({"event_id": range(9), "n_before": [200] * 9, "n_after": [50] * 9})
    after = pairs.filter(pl.col("lag_hours") >= 0)
    gold = after.filter(pl.Series(rng.uniform(size=after.height) < after["score"].to_numpy()))
    return pairs, events, gold.select("event_id", "article_id")


def difference(pairs: pl.DataFrame, events: pl.DataFrame, gold: pl.DataFrame, threshold: float) -> float:
    retrieved = pairs.filter(pl.col("score") >= threshold)
    before, after = retrieved.filter(pl.col("lag_hours") < 0).height, retrieved.filter(pl.col("lag_hours") >= 0)
    n_before, n_after = (int(events[name].to_numpy().sum()) for name in ("n_before", "n_after"))
    lowest = pairs.filter(pl.col("score") >= THRESHOLDS[0])  # the recall reference
    fpr = lowest.filter(pl.col("lag_hours") < 0).height / n_before
    positives = (lowest.filter(pl.col("lag_hours") >= 0).height - fpr * n_after) / (1 - fpr)
    estimated = 1 - before / n_before * (n_after - positives) / after.height
    return float(estimated - after.join(gold, on=["event_id", "article_id"], how="semi").height / after.height)


def run(tmp_path: Path, frames: dict[str, pl.DataFrame], **keys: Any) -> pl.DataFrame:  # noqa: ANN401 - config values
    for name, frame in frames.items():
        frame.write_parquet(tmp_path / f"{name}.parquet")
    stage = {"kind": "before_after", **{name: str(tmp_path / f"{name}.parquet") for name in frames}, **keys}
    done = run_stages({"output": str(tmp_path / "r"), "stages": [stage]})
    return pl.read_parquet(done.path / "before_after_gold" / "before_after.parquet")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("seed", [1, 2])
def test_difference_and_interval_are_those_of_leaving_out_each_event(tmp_path: Path, seed: int) -> None:
    pairs, events, gold = archive(seed)
    frames = {"pairs": pairs, "events": events, "gold": gold, "gold_articles": pairs.select("article_id")}
    found = run(tmp_path, frames, thresholds=THRESHOLDS)
    matches = found.filter(pl.col("level") == "match").sort("threshold")
    for row in matches.iter_rows(named=True):
        full = difference(pairs, events, gold, row["threshold"])
        rest = []
        for event in range(9):
            kept = pl.col("event_id") != event
            rest.append(difference(pairs.filter(kept), events.filter(kept), gold.filter(kept), row["threshold"]))
        spread = np.sqrt(8 / 9 * ((np.array(rest) - np.mean(rest)) ** 2).sum())
        half = student.ppf(0.975, 8) * spread
        assert row["precision_difference"] == pytest.approx(full, abs=1e-12)
        assert row["precision_difference_lower"] == pytest.approx(full - half, abs=1e-12)
        assert row["precision_difference_upper"] == pytest.approx(full + half, abs=1e-12)
    articles = found.filter(pl.col("level") == "article")
    assert articles["precision_difference"].null_count() == articles.height == 3


def test_without_replicates_there_is_no_difference(tmp_path: Path) -> None:
    pairs, events, gold = archive(3)
    found = run(tmp_path, {"pairs": pairs, "events": events, "gold": gold}, thresholds=[0.5], uncertainty="none")
    assert found["precision_difference"].null_count() == found.height


@pytest.mark.wide
def test_where_the_truth_is_known_the_interval_holds_no_difference(tmp_path: Path) -> None:
    stage = write_demo(tmp_path / "data") | {"by": [[]], "thresholds": [8.0, 12.0, 16.0]}
    truth = pl.read_parquet(tmp_path / "data" / "truth.parquet").select("event_id", "article_id")
    truth.write_parquet(tmp_path / "gold.parquet")
    stage |= {"gold": str(tmp_path / "gold.parquet"), "gold_articles": stage["articles"]}
    done = run_stages({"output": str(tmp_path / "r"), "stages": [stage]})
    found = pl.read_parquet(done.path / "before_after_gold" / "before_after.parquet")
    for row in found.filter(pl.col("level") == "match").iter_rows(named=True):
        assert row["precision_difference_lower"] < 0 < row["precision_difference_upper"]
        assert abs(row["precision_difference"]) < 0.04
