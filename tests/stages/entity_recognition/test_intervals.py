"""Intervals of recognition: documents are the independent units."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from reference_mentions import RULES, counts_by_hand, random_mentions
from running import read_table, run_stages, stage_config
from scipy import optimize, stats
from scipy.special import expit, logit

from pipeline.metrics.uncertainty.jackknife import effective_degrees, tail
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters, mean_limits

if TYPE_CHECKING:
    from pathlib import Path

KIND = "entity_recognition"
DOCUMENTS = 30
RATIOS = ("precision", "recall", "f1")


def scores_of(folder: Path, *frames: pl.DataFrame, **keys: Any) -> pl.DataFrame:  # noqa: ANN401
    names = ("gold", "predicted", "documents")
    run = run_stages(stage_config(folder, KIND, dict(zip(names, frames, strict=False)), **keys))
    return read_table(run, "entity_recognition_scores", KIND)


@pytest.fixture
def data() -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]:
    rng = np.random.default_rng(11)
    gold = random_mentions(rng, 200, documents=DOCUMENTS)
    predicted = random_mentions(rng, 300, predicted=True, documents=DOCUMENTS).drop("score")
    listed = [f"d{number}" for number in range(DOCUMENTS)]
    sources = [number % 7 for number in range(DOCUMENTS)]
    return gold, predicted, pl.DataFrame({"doc_id": listed, "source": sources})


Data = tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame]


def test_limits_of_micro_averages_are_those_of_counts_per_document(tmp_path: Path, data: Data) -> None:
    row = scores_of(tmp_path, *data, match="overlap", averages=["micro"]).row(0, named=True)
    counts = counts_by_hand(*data[:2], data[2]["doc_id"].to_list(), RULES["overlap"])
    tp, fp, fn = (counts[name].to_numpy()[:, None] for name in ("tp", "fp", "fn"))
    expected = intervals_of_clusters(Confusion(tp, fp, fn, 0 * tp), 0.95)
    for name in RATIOS:
        limits = [row[f"{name}_lower"], row[f"{name}_upper"]]
        assert limits == pytest.approx([float(each[0]) for each in expected[name]], rel=1e-12)


def test_limits_of_macro_averages_are_beta_limits_of_the_effective_number(tmp_path: Path, data: Data) -> None:
    """For a mean over documents the jackknife variance is s² / n, so the effective number is m (1 - m) n / s²."""
    row = scores_of(tmp_path, *data, match="overlap", averages=["macro"]).row(0, named=True)
    counts = counts_by_hand(*data[:2], data[2]["doc_id"].to_list(), RULES["overlap"])
    ratio = (counts["tp"] / (counts["tp"] + counts["fp"])).to_numpy()
    assert np.isfinite(ratio).all()
    mean, number = ratio.mean(), len(ratio)
    assert row["precision"] == pytest.approx(mean, rel=1e-14)
    without = (ratio.sum() - ratio) / (number - 1)
    degrees = effective_degrees(without)
    variance, size = np.asarray(ratio.var(ddof=1) / number), np.asarray(float(number))
    lower, upper = (
        float(limit) for limit in mean_limits(np.asarray(mean), variance, size, np.asarray(tail(0.95, degrees)))
    )
    # on the side of the long tail, the quantile that Hall's (1992) transformation takes to that of t, if farther out
    binomial = (1 - 2 * mean) / np.sqrt(mean * (1 - mean)) * np.sqrt(variance / (mean * (1 - mean)))
    gamma = stats.skew(ratio) / np.sqrt(number) - binomial
    assert 0 < gamma < 0.4
    quantile = stats.t.ppf(0.975, degrees)
    hall = optimize.brentq(lambda t: t + gamma / 3 * t**2 + gamma**2 / 27 * t**3 + gamma / 6 + quantile, -99, 0)
    upper = expit(logit(mean) + (logit(upper) - logit(mean)) * -hall / quantile)
    assert -hall > quantile
    assert [row["precision_lower"], row["precision_upper"]] == pytest.approx([lower, upper], rel=1e-6)


def test_clusters_of_documents_are_the_units_if_they_are_given(tmp_path: Path, data: Data) -> None:
    row = scores_of(tmp_path, *data, averages=["micro"], cluster="source").row(0, named=True)
    counts = counts_by_hand(*data[:2], data[2]["doc_id"].to_list(), RULES["span"])
    of_sources = counts.join(data[2], on="doc_id").group_by("source").agg(pl.col("tp", "fp", "fn").sum())
    tp, fp, fn = (of_sources[name].to_numpy()[:, None] for name in ("tp", "fp", "fn"))
    expected = intervals_of_clusters(Confusion(tp, fp, fn, 0 * tp), 0.95)["recall"]
    assert [row["recall_lower"], row["recall_upper"]] == pytest.approx([float(each[0]) for each in expected])


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("keys", "average", "reason"),
    [
        ({"uncertainty": "none"}, "micro", "none"),
        ({"averages": ["semeval"]}, "semeval", "harmonic_mean"),
        (
            {"averages": ["semeval_micro"], "predicted": {"where": "false"}, "allow_empty": True},
            "semeval_micro",
            "undefined_ratio",
        ),
        ({"gold": {"where": "doc_id = 'd0'"}, "predicted": {"where": "doc_id = 'd0'"}}, "micro", "one_replicate"),
        ({"predicted": {"where": "false"}, "allow_empty": True}, "macro", "undefined_ratio"),
    ],
)
def test_why_a_limit_is_missing(tmp_path: Path, data: Data, keys: dict[str, Any], average: str, reason: str) -> None:
    found = scores_of(tmp_path, *data[:2], **keys).filter(average=average).row(0, named=True)
    assert found["undefined_interval"] == reason
    assert (found["precision_lower"] is None) == (reason != "harmonic_mean")


@pytest.mark.wide
def test_the_intervals_hold_the_truth_as_often_as_they_say(tmp_path: Path) -> None:
    """200 simulated samples in one run: each is a group of documents with its own mentions."""
    from pipeline.stages.simulations import entity_recognition as simulation

    system, samples = simulation.MENTION_SYSTEMS[0], 200
    parts = []
    for number in range(samples):
        gold, predicted, documents = simulation.simulate(seed=number, documents=60)
        own = predicted.filter(system=system.name).drop("score", "type", "system")
        parts.append(
            tuple(each.with_columns(pl.col("doc_id") + number * 1000) for each in (gold.drop("type"), own, documents))
        )
    gold, predicted, documents = (pl.concat(each) for each in zip(*parts, strict=True))
    documents = documents.with_columns(sample=pl.col("doc_id") // 1000)
    scores = scores_of(
        tmp_path, gold, predicted, documents, by=[["sample"]], averages=["micro", "macro"], replicates=10_000
    )
    micro = scores.filter(average="micro")
    assert micro.height == samples
    for name, true in (("precision", system.precision(0.0)), ("recall", system.recall(0.0))):
        held = micro.select(pl.lit(true).is_between(pl.col(f"{name}_lower"), pl.col(f"{name}_upper")).sum()).item()
        assert stats.binomtest(held, samples, 0.95).pvalue > 0.001, (name, held)
