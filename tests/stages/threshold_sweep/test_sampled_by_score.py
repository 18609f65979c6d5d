"""Rows that were sampled by their score, or by their label, with weights: how heavy a row may be that was not drawn."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import swept

from pipeline.metrics.uncertainty.proportions import (
    PROPORTIONS,
    Confusion,
    Weights,
    intervals_of_clusters,
    intervals_of_rows,
)

if TYPE_CHECKING:
    from pathlib import Path

SIZES, RATES, WEIGHTS = (300, 400, 200), (0.6, 0.08, 0.005), (1.0, 5.0, 100.0)
EDGES = (1.0, 0.5, 0.2, 0.0)  # of the scores of the strata, from the highest
TRUE = np.array([size * rate * weight for size, rate, weight in zip(SIZES, RATES, WEIGHTS, strict=True)])
SAMPLES = 200


def sample(rng: np.random.Generator, number: int) -> pl.DataFrame:
    """All high scores, one in five of the middle ones, one in a hundred of the low ones."""
    score = np.concatenate([rng.uniform(EDGES[at + 1], EDGES[at], SIZES[at]) for at in range(3)])
    label = rng.uniform(size=len(score)) < np.repeat(RATES, SIZES)
    return pl.DataFrame({"sample": number, "score": score, "label": label, "weight": np.repeat(WEIGHTS, SIZES)})


def true_recall(threshold: float) -> float:
    shares = [(top - threshold) / (top - low) for top, low in pairwise(EDGES)]
    return float(TRUE @ np.clip(shares, 0, 1) / TRUE.sum())


@pytest.fixture(scope="module")
def samples() -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.concat([sample(rng, number) for number in range(SAMPLES)])


def test_recall_and_its_promises_hold_although_no_heavy_positive_was_drawn(
    tmp_path: Path, samples: pl.DataFrame
) -> None:
    heaviest = samples.filter("label").group_by("sample").agg(pl.col("weight").max())
    assert 50 < heaviest.filter(pl.col("weight") < 100).height < 100
    points = [{"min_recall": 0.5, "confidence": 0.95}]
    thresholds = [round(0.02 * step, 2) for step in range(50)]
    tables = swept(tmp_path, samples, by=[["sample"]], thresholds=thresholds, operating_points=points)
    for threshold in (0.2, 0.5):
        at = tables["curve"].filter(pl.col("threshold") == threshold)
        held = at.select(pl.lit(true_recall(threshold)).is_between("recall_lower", "recall_upper")).to_series()
        assert np.mean(held.to_numpy()) >= 0.92, threshold
    chosen = tables["operating_points"]["threshold"].drop_nulls().to_list()
    assert len(chosen) > SAMPLES / 3
    assert sum(true_recall(threshold) < 0.5 for threshold in chosen) <= 0.05 * SAMPLES


def test_areas_are_marked_where_no_positive_is_nearly_as_heavy_as_a_negative_or_one_of_few_is(
    tmp_path: Path, samples: pl.DataFrame
) -> None:
    """A few heavy positives decide where there are any: then all of them count as fewer than 20 of equal weight."""
    areas = swept(tmp_path, samples, by=[["sample"]], thresholds=[0.5])["areas"]
    weight = pl.col("weight")
    positives = samples.filter("label").group_by("sample", maintain_order=True)
    of_samples = positives.agg(weight.max().alias("heaviest"), (weight.sum() ** 2 / (weight**2).sum()).alias("rows"))
    is_few = (pl.col("heaviest") * 10 < 100) | (pl.col("rows") < 20)
    wanted = of_samples.select(pl.when(is_few).then(pl.lit("few_events_of_interest")).otherwise(pl.lit("good")))
    assert areas.sort("sample")["interval_quality"].to_list() == wanted.to_series().to_list()
    assert of_samples.filter(is_few, pl.col("heaviest") == 100).height > 0


def varied(seed: int, weights: tuple[float, ...], rows: int = 120) -> pl.DataFrame:
    """Rows of two classes, the positives with the first weight and the negatives with any."""
    rng = np.random.default_rng(seed)
    score = rng.integers(0, 6, rows)
    label = rng.uniform(size=rows) < 0.1 + 0.12 * score
    weight = np.where(label, weights[0], rng.choice(weights, rows))
    return pl.DataFrame({"score": score.astype(float), "label": label, "weight": weight, "page": np.arange(rows) // 3})


def outcomes(frame: pl.DataFrame, thresholds: list[float], power: int = 1) -> Confusion:
    """Sums of weights, or of their powers, by page and threshold."""
    score, label, weight, page = (frame[name].to_numpy() for name in ("score", "label", "weight", "page"))
    above, own = score >= np.array(thresholds)[:, None], page == np.unique(page)[:, None, None]
    cells = ((above, label), (above, ~label), (~above, label), (~above, ~label))
    return Confusion(*(np.where(own & kept & side, weight**power, 0.0).sum(axis=-1) for kept, side in cells))


def of_rows(pages: Confusion) -> Confusion:
    return Confusion(*(side.sum(axis=0) for side in (pages.tp, pages.fp, pages.fn, pages.tn)))


@pytest.mark.parametrize("cluster", [None, "page"])
def test_where_weights_vary_within_a_label_a_row_may_be_as_heavy_as_any(tmp_path: Path, cluster: str | None) -> None:
    frame, thresholds = varied(1, (1.0, 4.0, 40.0)), [1.0, 3.0, 5.0]
    keys: dict[str, Any] = {"cluster": cluster} if cluster else {}
    curve = swept(tmp_path, frame, thresholds=thresholds, **keys)["curve"]
    pages, squares = outcomes(frame, thresholds), of_rows(outcomes(frame, thresholds, 2))
    if cluster:
        wanted = intervals_of_clusters(pages, 0.95, heaviest=(40.0, 40.0))
    else:
        wanted = intervals_of_rows(of_rows(pages), Weights(squares, 40.0, 40.0), 0.95)
    for name in PROPORTIONS:
        for side, limit in enumerate(("lower", "upper")):
            assert curve[f"{name}_{limit}"].to_numpy() == pytest.approx(wanted[name][side], abs=1e-9), (name, limit)


def test_rates_of_rows_sampled_by_their_label_are_those_without_weights(tmp_path: Path) -> None:
    """One in forty of the negatives was drawn: a positive that was not weighs 1, as every positive does."""
    frame = varied(2, (1.0,)).with_columns(weight=pl.when("label").then(1.0).otherwise(40.0))
    weighted, plain = with_and_without(tmp_path, frame)
    for name in ("recall_lower", "recall_upper", "fpr_lower", "fpr_upper"):
        assert weighted["curve"][name].to_list() == pytest.approx(plain["curve"][name].to_list(), rel=1e-9), name
    assert weighted["areas"]["interval_quality"].to_list() == plain["areas"]["interval_quality"].to_list() == ["good"]


def test_one_weight_for_every_row_changes_no_limit(tmp_path: Path) -> None:
    weighted, plain = with_and_without(tmp_path, varied(3, (2.5,)))
    for name in (f"{ratio}_{limit}" for ratio in PROPORTIONS for limit in ("lower", "upper")):
        assert weighted["curve"][name].to_list() == pytest.approx(plain["curve"][name].to_list(), rel=1e-9), name


def with_and_without(folder: Path, frame: pl.DataFrame) -> tuple[dict[str, pl.DataFrame], dict[str, pl.DataFrame]]:
    """The tables of the same rows with their weights, and without."""
    thresholds = [1.0, 3.0, 5.0]
    weighted = swept(folder / "weighted", frame, thresholds=thresholds)
    return weighted, swept(folder / "plain", frame.drop("weight"), thresholds=thresholds)
