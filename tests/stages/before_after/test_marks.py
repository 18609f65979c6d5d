"""Intervals of before_after are marked for both parents of a pair, and where they know one of them alone."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pipeline.metrics.before_after.intervals import MIN_REPLICATES
from pipeline.metrics.uncertainty.replicates import Cube
from pipeline.stages.before_after import groups
from pipeline.stages.before_after.contract import BeforeAfterParameters
from pipeline.stages.before_after.groups import with_design_effects


def counts(replicates: int, *, n_before: int = 50) -> pl.DataFrame:
    """Equal counts of some replicates in a group."""
    rows = {"replicate": range(replicates), "m_before": 4, "m_after": 9, "n_before": n_before, "n_after": 50}
    return pl.DataFrame(rows).with_columns(pl.lit("all").alias("grouping"), pl.lit(0.5).alias("threshold"))


def params(cluster: object = None) -> BeforeAfterParameters:
    keys: dict[str, object] = {
        "kind": "before_after",
        "name": "before_after",
        "pairs": "pairs.parquet",
        "thresholds": [0.5],
    }
    return BeforeAfterParameters.model_validate(keys if cluster is None else keys | {"cluster": cluster})


def cube(*crossed: pl.DataFrame) -> Cube:
    return Cube.of(counts(30), ["grouping"], [0.5], crossed=crossed)


@pytest.mark.parametrize(
    ("crossed", "cluster", "clusters", "quality"),
    [
        ((), "event_id", 30, "good"),
        ((), None, 30, "one_parent"),
        ((counts(20), counts(60)), None, 20, "good"),
        ((counts(20), counts(60)), ["event_id", "day"], 20, "good"),
        ((counts(40), counts(60)), None, 30, "good"),
        ((counts(9), counts(60)), None, 9, "few_clusters"),
        ((counts(20, n_before=0), counts(60)), None, 20, "one_parent"),
        ((counts(MIN_REPLICATES), counts(60)), None, MIN_REPLICATES, "few_clusters"),
    ],
)
def test_marks_know_both_parents(
    crossed: tuple[pl.DataFrame, ...], cluster: object, clusters: int, quality: str
) -> None:
    actual = groups.clusters(cube(*crossed), params(cluster)).row(0, named=True)
    assert actual["n_clusters"] == clusters
    assert actual["_quality_of_clusters"] == quality


def test_a_table_without_a_way_for_two_parents_is_marked_unless_events_are_the_only_one() -> None:
    of_both = cube(counts(20), counts(60))
    alone = groups.clusters(of_both, params(), crossed=False).row(0, named=True)
    assert (alone["n_clusters"], alone["_quality_of_clusters"]) == (30, "one_parent")
    of_events = groups.clusters(cube(), params("event_id"), crossed=False)
    assert of_events["_quality_of_clusters"].to_list() == ["good"]


def test_the_design_effect_is_the_variance_between_events_over_that_of_independent_pairs() -> None:
    rng = np.random.default_rng(1)
    matches, pairs = rng.integers(0, 30, 25), rng.integers(40, 90, 25)
    table = counts(25).with_columns(pl.Series("m_before", matches), pl.Series("n_before", pairs))
    fpr = matches.sum() / pairs.sum()
    points = pl.DataFrame(
        {"grouping": ["all", "all"], "threshold": [0.5, None], "fpr": [fpr, None], "n_before": [pairs.sum(), None]}
    )
    actual = with_design_effects(points, Cube.of(table, ["grouping"], [0.5]), wanted=True)["design_effect"]
    left = [(matches.sum() - m) / (pairs.sum() - n) for m, n in zip(matches, pairs, strict=True)]
    jackknife = 24 / 25 * np.sum((np.array(left) - np.mean(left)) ** 2)
    assert actual.to_list() == [pytest.approx(jackknife / (fpr * (1 - fpr) / pairs.sum()), rel=1e-9), None]
    unwanted = with_design_effects(points, Cube.of(table, ["grouping"], [0.5]), wanted=False)
    assert unwanted["design_effect"].to_list() == [None, None]
