"""Rows with two parents, such as a user and an item, from the rows to the limits, against double sums over all rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from reference_areas import average_precision, pr_auc_at, roc_auc, root_of_double_sum, se_of_two_parents
from running import run_threshold_sweep, swept
from scipy.special import expit

from pipeline.base.columns import RATIOS
from pipeline.base.errors import DataError, ThresherError
from pipeline.metrics.uncertainty.clusters import (
    combined_spread,
    implied_skewness,
    spread_of_shifts,
    stretched,
    stretches,
)
from pipeline.metrics.uncertainty.jackknife import binomial_limits, tail

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

BOTH = ["user", "item"]
USERS, ITEMS = 12, 9  # few enough that every intersection has a replicate of its own
THRESHOLDS = [0.3, 0.5, 0.7]
WEIGHTS = {"predictions": {"columns": {"weight": "w"}}}


def predictions(
    seed: int, users: int = USERS, items: int = ITEMS, rows: int = 220, effect: float = 1.0
) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    user, item = rng.integers(0, users, rows), rng.integers(0, items, rows)
    shift = effect * (rng.normal(size=users)[user] + rng.normal(size=items)[item])
    labels = rng.uniform(size=rows) < expit(shift - 0.5)
    scores = np.round(expit(rng.normal(labels * 1.5 - 1 + shift / 2, 1.0)), 2)
    weights = rng.choice([0.25, 1.0, 3.5], rows)
    return pl.DataFrame({"score": scores, "label": labels, "w": weights, "user": user, "item": item})


def arrays(frame: pl.DataFrame, *, weighted: bool) -> tuple[NDArray[Any], ...]:
    weights = frame["w"].to_numpy() if weighted else np.ones(frame.height)
    return (*(frame[name].to_numpy() for name in ("score", "label", "user", "item")), weights)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("seed", "weighted", "method"),
    [(1, False, "exact"), (1, True, "binned"), (2, False, "binned"), (2, True, "exact")],
)
def test_errors_are_double_sums_over_rows_that_share_a_parent(
    tmp_path: Path,
    seed: int,
    weighted: bool,  # noqa: FBT001
    method: str,
) -> None:
    frame = predictions(seed, rows=90)
    keys: dict[str, Any] = {"method": method, "cluster": BOTH} | (WEIGHTS if weighted else {})
    actual = swept(tmp_path, frame, **keys)["areas"].row(0, named=True)
    scores, labels, user, item, weights = arrays(frame, weighted=weighted)
    every = pr_auc_at(np.unique(scores).tolist(), ">=")
    for name, area in (("average_precision", average_precision), ("roc_auc", roc_auc), ("pr_auc", every)):
        expected = se_of_two_parents(area, scores, labels, (user, item), weights)
        assert actual[f"{name}_se"] == pytest.approx(expected, rel=1e-8), name
    loss = np.log(np.where(labels, scores, 1 - scores).clip(1e-15))
    moved = weights * (loss - np.average(loss, weights=weights)) / weights.sum()
    expected = root_of_double_sum(moved, np.zeros(len(loss)), weights, (user, item))
    assert actual["log_likelihood_se"] == pytest.approx(expected, rel=1e-7)


def limits_by_leaving_out(
    hits: NDArray[Any], misses: NDArray[Any], parents: tuple[NDArray[Any], NDArray[Any]]
) -> tuple[float, float]:
    """Limits of a share of rows whose variance is found by leaving the rows of every parent and both out in turn."""
    used = hits | misses
    share = hits[used].mean()
    spreads = []
    for labels in (parents[0], parents[1], parents[0] * 1000 + parents[1]):
        clusters = np.unique(labels)
        left = np.array([hits[used & (labels != cluster)].mean() for cluster in clusters])
        sizes = np.array([(used & (labels == cluster)).sum() for cluster in clusters], dtype=float)
        spreads.append(spread_of_shifts(left.mean() - left, np.asarray(sizes.sum() ** 2 / (sizes**2).sum())))
    variances = [float(spread.variance) for spread in spreads]
    variance = max(variances[0] + variances[1] - variances[2], min(variances[:2]))
    effect = variance * used.sum() / (share * (1 - share))
    degrees = np.minimum(spreads[0].degrees, spreads[1].degrees)
    around = binomial_limits(hits.sum() / effect, misses.sum() / effect, tail(0.95, degrees))
    excess = combined_spread(spreads).skewed - implied_skewness(share, np.asarray(variance), "beta")
    lower, upper = stretched(around, share, stretches(excess, degrees, 0.95))
    return float(lower), float(upper)


@pytest.mark.parametrize("seed", [3, 4])
def test_limits_of_the_curve_are_those_of_both_parents(tmp_path: Path, seed: int) -> None:
    frame = predictions(seed, rows=400)
    curve = swept(tmp_path, frame, cluster=BOTH, thresholds=THRESHOLDS)["curve"]
    scores, labels, user, item, _ = arrays(frame, weighted=False)
    for row in curve.iter_rows(named=True):
        retrieved = scores >= row["threshold"]
        tp, fp, fn = retrieved & labels, retrieved & ~labels, ~retrieved & labels
        for name, misses in (("precision", fp), ("recall", fn)):
            expected = limits_by_leaving_out(tp, misses, (user, item))
            assert (row[f"{name}_lower"], row[f"{name}_upper"]) == pytest.approx(expected, rel=1e-6), name


def test_a_second_parent_of_the_same_rows_changes_nothing(tmp_path: Path) -> None:
    frame = predictions(5).with_columns(same=pl.col("user"))
    keys: dict[str, Any] = {"thresholds": THRESHOLDS}
    once = swept(tmp_path / "once", frame, cluster="user", **keys)
    twice = swept(tmp_path / "twice", frame, cluster=["user", "same"], **keys)
    for name, table in once.items():
        assert_frame_equal(twice[name], table, rel_tol=1e-9)


@pytest.mark.wide
def test_the_order_of_the_parents_means_nothing_but_for_folds(tmp_path: Path) -> None:
    frame = predictions(6, users=9, items=9)
    keys: dict[str, Any] = {"thresholds": THRESHOLDS, "operating_points": [{"min_recall": 0.3, "confidence": 0.9}]}
    tables = swept(tmp_path / "one", frame, cluster=BOTH, **keys)
    turned = swept(tmp_path / "two", frame, cluster=BOTH[::-1], **keys)
    for name, table in tables.items():
        assert_frame_equal(turned[name], table, rel_tol=1e-9)


@pytest.mark.wide
def test_groups_are_those_of_their_own_rows(tmp_path: Path) -> None:
    frames = {model: predictions(seed).with_columns(model=pl.lit(model)) for seed, model in ((7, "a"), (8, "b"))}
    keys: dict[str, Any] = {"cluster": BOTH, "thresholds": THRESHOLDS}
    together = swept(tmp_path / "both", pl.concat(frames.values()), by=[["model"]], **keys)
    for model, frame in frames.items():
        alone = swept(tmp_path / model, frame, **keys)
        for name in ("curve", "areas"):
            rows = together[name].filter(pl.col("model") == model).drop("grouping", "model")
            assert_frame_equal(rows, alone[name].drop("grouping"), rel_tol=1e-9)


@pytest.mark.wide
def test_promises_know_both_parents(tmp_path: Path) -> None:
    frame = predictions(9, users=40, items=6, rows=3000, effect=1.5)
    minima = [{"min_recall": round(0.3 + 0.01 * step, 2), "confidence": 0.95} for step in range(60)]
    keys: dict[str, Any] = {"thresholds": {"start": 0, "stop": 1, "count": 101}, "operating_points": minima}
    promised = {}
    for name, cluster in (("user", "user"), ("both", BOTH)):
        points = swept(tmp_path / name, frame, cluster=cluster, **keys)["operating_points"]
        promised[name] = points.sort("criterion")["threshold"].fill_null(-1).to_numpy()
    assert (promised["both"] <= promised["user"]).all()
    assert (promised["both"] < promised["user"]).sum() > 10


def test_the_clusters_are_those_of_the_parent_with_fewer(tmp_path: Path) -> None:
    tables = swept(tmp_path, predictions(10, users=40, items=6, rows=600), cluster=BOTH, thresholds=THRESHOLDS)
    for name in ("areas", "operating_points"):
        assert tables[name]["n_clusters"].to_list() == [6], name
        assert tables[name]["n_clusters_effective"].item() == pytest.approx(6, rel=0.1)
    assert set(tables["curve"]["interval_quality"]) == {"few_clusters"}
    assert tables["areas"]["interval_quality"].to_list() == ["few_clusters"]


@pytest.mark.parametrize("method", ["exact", "binned"])
def test_one_item_leaves_the_spread_between_items_unknown(tmp_path: Path, method: str) -> None:
    frame = predictions(11).with_columns(item=1)
    tables = swept(tmp_path, frame, cluster=BOTH, thresholds=[0.5], method=method)
    for name in ("curve", "areas"):
        assert tables[name]["undefined_interval"].to_list() == ["one_replicate"], name
    assert tables["areas"]["average_precision_se"].null_count() == 1
    assert tables["areas"]["log_likelihood_se"].null_count() == 1


def test_without_uncertainty_the_numbers_are_the_same_and_have_no_limits(tmp_path: Path) -> None:
    frame = predictions(12)
    none, both = (
        swept(tmp_path / kind, frame, cluster=BOTH, thresholds=THRESHOLDS, uncertainty=kind)
        for kind in ("none", "jackknife")
    )
    for name in RATIOS:
        assert none["curve"][name].to_list() == both["curve"][name].to_list()
        assert none["curve"][f"{name}_lower"].null_count() == len(THRESHOLDS)


def test_rows_without_a_score_count_below_all_others(tmp_path: Path) -> None:
    frame = predictions(13)
    lowest = frame.with_columns(score=pl.when(pl.col("score") < 0.2).then(-1.0).otherwise("score"))
    missed = frame.with_columns(score=pl.when(pl.col("score") >= 0.2).then("score"))
    keys: dict[str, Any] = {"cluster": BOTH, "thresholds": THRESHOLDS}
    areas = [
        swept(tmp_path / name, table, invalid_scores="missed", **keys)["areas"].row(0, named=True)
        for name, table in (("lowest", lowest), ("missed", missed))
    ]
    for name in ("average_precision_se", "roc_auc_se", "pr_auc_se"):
        assert areas[1][name] == pytest.approx(areas[0][name], rel=1e-9)


@pytest.mark.parametrize("name", BOTH)
def test_a_missing_parent_is_a_fault(tmp_path: Path, name: str) -> None:
    frame = predictions(14).with_columns(pl.when(pl.int_range(pl.len()) != 7).then(name).alias(name))
    with pytest.raises(DataError, match=name):
        run_threshold_sweep(tmp_path, frame, cluster=BOTH)


@pytest.mark.parametrize("cluster", [["user", "item", "w"], ["user", "user"]])
def test_other_numbers_of_parents_are_refused(tmp_path: Path, cluster: list[str]) -> None:
    with pytest.raises(ThresherError, match="one column, or two different ones"):
        run_threshold_sweep(tmp_path, predictions(15), cluster=cluster)
