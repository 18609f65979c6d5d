"""The sample of single rows against a sort of all rows; order, files and blocks of the rows do not matter."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import thresher
from pipeline.engines import duckdb as engine

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 700
KEYS: dict[str, Any] = {"by": ["source"], "thresholds": [0.1, 0.3, 0.5, 0.7]}


def predictions(seed: int = 3) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "item": rng.permutation(ROWS),
            "score": np.round(rng.uniform(size=ROWS), 2),
            "label": rng.uniform(size=ROWS) < 0.4,
            "source": rng.choice(["noon", "dawn"], ROWS),
        }
    )


def swept(frame: object, **keys: Any) -> Any:  # noqa: ANN401 - a result
    return thresher.threshold_sweep(predictions={"path": frame, "columns": {"id": "item"}}, **KEYS | keys)


def expected(frame: pl.DataFrame, threshold: float, boundary: str) -> dict[str, list[tuple[int, str]]]:
    """Items and outcomes of each sample of one group, from all rows in order."""
    rows = []
    for item, score, label in frame.select("item", "score", "label").rows():
        retrieved = score > threshold or (boundary == ">=" and score == threshold)
        outcome = {(True, True): "tp", (True, False): "fp", (False, True): "fn", (False, False): "tn"}[retrieved, label]
        rows.append((abs(score - threshold), -score, label, item, outcome))
    samples = {
        "nearest": sorted(rows),
        "false_positives": sorted((-far, *more) for far, *more in rows if more[-1] == "fp"),
        "false_negatives": sorted((-far, *more) for far, *more in rows if more[-1] == "fn"),
    }
    return {name: [(row[3], row[4]) for row in chosen[:50]] for name, chosen in samples.items()}


@pytest.mark.parametrize("boundary", [">=", ">"])
def test_the_sample_is_the_beginning_of_all_rows_in_order(boundary: str) -> None:
    frame = predictions()
    result = swept(frame, boundary=boundary)
    for grouping, source, rows in (
        ("all", None, frame),
        *(("source", name, frame.filter(source=name)) for name in ("noon", "dawn")),
    ):
        table = result.outcomes.filter(pl.col("grouping") == grouping, pl.col("source").eq_missing(pl.lit(source)))
        (point,) = result.operating_points.filter(
            pl.col("grouping") == grouping, pl.col("source").eq_missing(pl.lit(source))
        )["threshold"]
        assert set(table["threshold"]) == {point}
        for name, items in expected(rows, point, boundary).items():
            sample = table.filter(sampled_as=name)
            assert sample["sample_rank"].to_list() == list(range(1, len(items) + 1))
            assert sample.select("id", "outcome").rows() == items, (grouping, source, name)


@pytest.mark.wide
def test_neither_order_nor_blocks_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = predictions()
    whole = swept(frame).outcomes
    assert_frame_equal(swept(frame.sample(fraction=1, shuffle=True, seed=4)).outcomes, whole)
    monkeypatch.setattr(engine, "BLOCK_ROWS", 64)
    assert_frame_equal(swept([frame[:300], frame[300:]]).outcomes, whole)


def test_rows_without_a_score_are_misses_without_a_score() -> None:
    frame = predictions().with_columns(score=pl.when(pl.col("item") >= 3).then("score"))
    result = swept(frame, invalid_scores="missed", by=[[]])
    misses = result.outcomes.filter(sampled_as="false_negatives")
    missing = frame.filter(pl.col("score").is_null(), "label")["item"].sort()
    assert misses.filter(pl.col("score").is_null())["id"].to_list() == missing.to_list()
    few = swept(frame.sort("item")[:20], invalid_scores="missed", by=[[]]).outcomes.filter(sampled_as="nearest")
    assert (few.height, few["score"].null_count()) == (17, 0)


@pytest.mark.parametrize("by", [[[]], ["source"]])
def test_the_threshold_is_that_of_the_first_operating_point_that_has_one(by: list[Any]) -> None:
    points = [{"min_precision": 1.0, "confidence": 0.99}, {"min_recall": 0.6}, {"min_recall": 0.85}]
    result = swept(predictions(), operating_points=points, by=by)
    keys = ["source"] if by == ["source"] else []
    chosen = result.operating_points.filter(criterion="min_recall=0.6").select("grouping", *keys, "threshold")
    rivals = result.operating_points.filter(criterion="min_recall=0.85")["threshold"]
    assert rivals.null_count() == 0
    assert (rivals < chosen["threshold"]).all()
    shown = result.outcomes.select("grouping", *keys, "threshold").unique()
    assert shown.sort(pl.all()).equals(chosen.sort(pl.all()))


def test_the_summary_is_about_the_same_threshold() -> None:
    result = swept(predictions(), operating_points=[{"min_recall": 0.6}, {"beta": 1}], by=[[]])
    (threshold,) = result.outcomes["threshold"].unique()
    assert result.operating_points["threshold"].n_unique() == 2
    assert (result.operating_points["criterion"][0], result.operating_points["threshold"][0]) == (
        "min_recall=0.6",
        threshold,
    )
    assert f"{threshold:.4g}" in result.summary.rows[0]


def test_without_an_operating_point_there_is_no_row() -> None:
    result = swept(predictions(), operating_points=[{"min_precision": 1.0, "confidence": 0.99}])
    assert result.operating_points["threshold"].null_count() == result.operating_points.height
    assert result.outcomes.is_empty()


@pytest.mark.wide
def test_the_table_is_asked_for_or_small(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("pipeline.stages.threshold_sweep.stage.MOST_ROWS_FOR_OUTCOMES", ROWS - 1)
    result = swept(predictions())
    assert "at most 699 rows" in result.omitted["threshold_sweep_outcomes"]
    assert result.warnings == ()
    assert swept(predictions(), outcomes=True).outcomes.height
    run = swept(predictions(), outcomes=False).save(tmp_path)
    record = json.loads((run.path / "run.json").read_text())
    assert record["omitted"]["threshold_sweep"]["threshold_sweep_outcomes"].startswith("outcomes = false")


@pytest.mark.wide
def test_without_intervals_rows_are_not_read_once_more_unless_the_sample_is_asked_for() -> None:
    without = swept(predictions(), uncertainty="none")
    reason = without.omitted["threshold_sweep_outcomes"]
    assert reason.startswith('uncertainty="none"')
    assert "outcomes=True makes it" in reason
    assert_frame_equal(swept(predictions(), uncertainty="none", outcomes=True).outcomes, swept(predictions()).outcomes)
