"""Costs, capacities and groups put together: against every threshold, in fractions; and what is refused."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from pydantic import ValidationError
from running import read_table, run_threshold_sweep, tables_made

from pipeline.metrics.curves import decisions
from pipeline.stages.threshold_sweep.contract import ThresholdSweepParameters

if TYPE_CHECKING:
    from pathlib import Path

Row = dict[str, Any]
COST = {"fp": 1, "fn": 3.5, "tp": -0.5, "tn": 0.25}
POINTS: list[Row] = [
    {"beta": 1},
    {"cost": COST},
    {"max_alerts": 7},
    {"max_alert_share": 0.25},
    {"threshold": 4.5},
    {"min_precision": 0.95},
]
COST_TEXT = "cost=fp:1,fn:3.5,tp:-0.5,tn:0.25"
HOSTILE = ("a,b", "</script><img onerror=x>", "it's\n\x1b[31m", None)


def predictions(seed: int, rows: int = 90) -> pl.DataFrame:
    """Few distinct scores, groups with hostile names, documents and weights with few digits."""
    rng = np.random.default_rng(seed)
    score = rng.integers(0, 9, rows)
    return pl.DataFrame(
        {
            "score": score.astype(np.float64),
            "label": rng.random(rows) < 0.1 + 0.08 * score,
            "place": [HOSTILE[number] for number in rng.integers(0, 4, rows)],
            "document": rng.integers(0, 20, rows),
            "heft": rng.choice([0.5, 1.0, 2.5], rows),
        }
    )


def tables(folder: Path, frame: pl.DataFrame, **keys: Any) -> dict[str, pl.DataFrame]:  # noqa: ANN401
    if keys.pop("weighted", False):
        keys["predictions"] = {"columns": {"weight": "heft"}}
    run = run_threshold_sweep(folder, frame, **{"by": ["place"], "operating_points": POINTS} | keys)
    names = ("operating_points", "pooled_points", "allocations", "net_benefit", "points_at_prevalence", "at_prevalence")
    return tables_made(run, "threshold_sweep", names)


def counted(frame: pl.DataFrame, threshold: float | None, weight: str | None = None) -> tuple[Fraction, ...]:
    """True positives, false positives, false negatives and true negatives, exactly; without a threshold of nothing."""
    counts = [Fraction(0)] * 4
    for row in frame.iter_rows(named=True):
        retrieved = threshold is not None and row["score"] >= threshold
        counts[(0 if retrieved else 2) if row["label"] else (1 if retrieved else 3)] += Fraction(
            row[weight] if weight else 1
        )
    return tuple(counts)


def cost_of(counts: tuple[Fraction, ...]) -> Fraction:
    tp, fp, fn, tn = counts
    return sum(
        (Fraction(COST[name]) * count for name, count in zip(("tp", "fp", "fn", "tn"), (tp, fp, fn, tn), strict=True)),
        Fraction(0),
    )


def chosen_by_force(frame: pl.DataFrame, criterion: str, weight: str | None = None) -> float | None:
    """The lowest of the best thresholds, from all of them."""
    every = {at: counted(frame, at, weight) for at in sorted(frame["score"].unique())}
    if criterion == COST_TEXT:
        eligible = [min(every, key=lambda at: (cost_of(every[at]), at))]
    elif criterion == "threshold=4.5":
        eligible = [at for at in every if at >= 4.5]
    else:
        most = Fraction(7) if criterion == "max_alerts=7" else sum(next(iter(every.values()))) / 4
        eligible = [at for at, (tp, fp, _, _) in every.items() if tp + fp <= most]
    return float(min(eligible)) if eligible else None


@pytest.fixture(scope="module", params=[None, "heft"], ids=["counts", "weights"])
def derived(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, ...]:
    frame, weight = predictions(1), request.param
    keys = {"weighted": weight is not None, "cluster": "document"}
    return frame, weight, tables(tmp_path_factory.mktemp("deciding"), frame, **keys)


def of_group(frame: pl.DataFrame, row: Row) -> pl.DataFrame:
    is_total = row["grouping"] == "all"
    return frame if is_total else frame.filter(pl.col("place").eq_missing(pl.lit(row["place"])))


CRITERIA = (COST_TEXT, "max_alerts=7", "max_alert_share=0.25", "threshold=4.5")


@pytest.mark.first_cases(1)
def test_no_threshold_does_better_in_fractions(derived: tuple[Any, ...]) -> None:
    frame, weight, results = derived
    rows = [row for row in results["operating_points"].to_dicts() if row["criterion"] in CRITERIA]
    assert len(rows) == 5 * len(CRITERIA)
    for row in rows:
        group = of_group(frame, row)
        assert row["threshold"] == chosen_by_force(group, row["criterion"], weight)
        if row["criterion"] == COST_TEXT:
            assert row["undefined_cross_fitted"] is None
            counts = counted(group, row["threshold"], weight)
            assert row["cost"] == pytest.approx(float(cost_of(counts)))
            assert row["cost_per_row"] == pytest.approx(float(cost_of(counts) / sum(counts)))
            assert row["cost_per_row_lower"] < row["cost_per_row"] < row["cost_per_row_upper"]
            assert row["cost_cross_fitted"] >= row["cost"] - 1e-9  # no fold can be better than its own best choice
        else:
            assert row["cost"] is row["cost_per_row"] is row["cost_per_row_lower"] is None
    as_given = [row for row in rows if row["criterion"] == "threshold=4.5"]
    assert {row["undefined_cross_fitted"] for row in as_given} == {"given"}
    assert "chosen_on_same_data" not in {row["interval_quality"] for row in as_given}


def test_groups_put_together_have_the_sums_of_their_counts(derived: tuple[Any, ...]) -> None:
    frame, weight, results = derived
    points = results["operating_points"]
    assert set(results["pooled_points"]["pooled"]) == {"place"}
    for row in results["pooled_points"].filter(pl.col("thresholds") != "allocated").to_dicts():
        counts = [Fraction(0)] * 4
        for name in HOSTILE:
            group = frame.filter(pl.col("place").eq_missing(pl.lit(name)))
            at = row["threshold"]
            if row["thresholds"] == "own":
                is_group = pl.col("place").eq_missing(pl.lit(name)) & (pl.col("grouping") == "place")
                at = points.filter(is_group, pl.col("criterion") == row["criterion"])["threshold"][0]
            counts = [total + count for total, count in zip(counts, counted(group, at, weight), strict=True)]
        tp, fp, fn, tn = counts
        shown = tuple(row[f"{name}_weight" if weight else name] for name in ("tp", "fp", "fn", "tn"))
        assert shown == tuple(map(float, (tp, fp, fn, tn)))
        if tp + fp == 0:
            assert (row["undefined"], row["n_without_threshold"]) == ("no_prediction", 4)
            continue
        expected = (tp / (tp + fp), tp / (tp + fn), 2 * tp / (2 * tp + fp + fn), fp / (fp + tn))
        for name, value in zip(("precision", "recall", "f1", "fpr"), expected, strict=True):
            assert row[name] == pytest.approx(float(value))
            assert row[f"{name}_lower"] <= row[name] <= row[f"{name}_upper"]
        if row["criterion"] == COST_TEXT:
            assert row["cost"] == pytest.approx(float(cost_of((tp, fp, fn, tn))))
    of_own, of_common = (
        results["pooled_points"].filter(pl.col("thresholds") == name, pl.col("criterion") == COST_TEXT)["cost"][0]
        for name in ("own", "common")
    )
    assert of_own <= of_common


def test_the_common_threshold_is_the_row_of_the_total(derived: tuple[Any, ...]) -> None:
    _, _, results = derived
    total = {
        row["criterion"]: row for row in results["operating_points"].filter(pl.col("grouping") == "all").to_dicts()
    }
    common = results["pooled_points"].filter(pl.col("thresholds") == "common").to_dicts()
    assert {row["criterion"] for row in common} == set(total)
    same = ("threshold", "tp", "fp", "fn", "tn", "precision", "precision_lower", "f1_upper", "interval_quality")
    for row in common:
        theirs = total[row["criterion"]]
        if theirs["threshold"] is None:
            assert (row["tp"], row["fp"], row["n_without_threshold"]) == (0, 0, 4)
            continue
        for name in same:
            assert row[name] == pytest.approx(theirs[name]), (row["criterion"], name)


def test_no_other_allocation_has_more_true_positives(tmp_path: Path) -> None:
    frame = predictions(2, 60)
    results = tables(tmp_path, frame)
    groups = [frame.filter(pl.col("place").eq_missing(pl.lit(name))) for name in HOSTILE]
    every = [[counted(group, at)[:2] for at in (None, *group["score"].unique())] for group in groups]
    for criterion, capacity in (("max_alerts=7", 7), ("max_alert_share=0.25", 15)):
        possible = [tuple(map(sum, zip(*choice, strict=True))) for choice in product(*every)]
        most = max(tp for tp, fp in possible if tp + fp <= capacity)
        rows = results["allocations"].filter(pl.col("criterion") == criterion)
        assert rows.height == 4
        assert rows["n_alerts"].sum() <= capacity
        assert rows["tp"].sum() == most
        pooled = (
            results["pooled_points"]
            .filter(pl.col("criterion") == criterion, pl.col("thresholds") == "allocated")
            .row(0, named=True)
        )
        assert (pooled["tp"], pooled["fp"]) == (most, rows["fp"].sum())


def test_a_search_that_is_too_large_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decisions, "MOST_STEPS", 30)
    run = run_threshold_sweep(tmp_path, predictions(2), by=["place"], operating_points=[{"max_alerts": 7}])
    assert any("max_alerts=7: the alerts are not shared out" in words for words in run.warnings)
    pooled = read_table(run, "threshold_sweep_pooled_points", "threshold_sweep")
    assert pooled["thresholds"].to_list() == ["common"]


def test_weights_are_not_allocated_and_without_the_total_nothing_is_put_together(tmp_path: Path) -> None:
    results = tables(tmp_path / "weights", predictions(3), weighted=True)
    assert "allocations" not in results
    assert set(results["pooled_points"]["thresholds"]) == {"own", "common"}
    results = tables(tmp_path / "apart", predictions(3), by=[["place"]])
    assert not {"pooled_points", "allocations"} & results.keys()


@pytest.mark.wide
def test_net_benefit_of_weights_in_clusters(tmp_path: Path) -> None:
    frame = predictions(4).with_columns(pl.col("score") / 10)
    keys: Row = {"net_benefit": True, "threshold_probabilities": [0.2, 0.45], "weighted": True, "cluster": "document"}
    above = tables(tmp_path / "above", frame, boundary=">", operating_points=[{"beta": 1}], **keys)["net_benefit"]
    grid = tables(tmp_path / "grid", frame, boundary=">", thresholds=[0.3], operating_points=[{"beta": 1}], **keys)
    assert grid["net_benefit"].equals(above)  # counted by a grid or by score
    for row in above.to_dicts():
        group = of_group(frame, row)
        at = 0.2 if row["threshold"] == 0.2 else 0.4  # the scores above 0.45 are those above 0.4
        next_score = 0.3 if at == 0.2 else 0.5
        tp, fp, fn, tn = (float(count) for count in counted(group, next_score - 1e-9, "heft"))
        odds = row["threshold"] / (1 - row["threshold"])
        assert row["net_benefit"] == pytest.approx((tp - fp * odds) / (tp + fp + fn + tn))
        assert row["net_benefit_lower"] < row["net_benefit"] < row["net_benefit_upper"]
        assert row["net_benefit_difference"] == pytest.approx(row["net_benefit"] - max(row["net_benefit_all"], 0))
        assert row["standardized_net_benefit"] == pytest.approx((tp - fp * odds) / (tp + fn))
    assert set(above["n_clusters"]) > {None} or above["n_clusters"].null_count() == 0


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(("boundary", "tp", "fp"), [(">=", 4, 1), (">", 2, 0)])
@pytest.mark.parametrize("thresholds", ["distinct", [0.3, 0.7]])
def test_net_benefit_acts_on_what_the_boundary_retrieves(
    tmp_path: Path, boundary: str, tp: int, fp: int, thresholds: str | list[float]
) -> None:
    """Three scores of six equal the threshold probability, two of them of true rows."""
    frame = pl.DataFrame({"score": [0.2, 0.5, 0.5, 0.5, 0.8, 0.9], "label": [False, True, True, False, True, True]})
    keys: Row = {"net_benefit": True, "threshold_probabilities": [0.5], "thresholds": thresholds, "by": [[]]}
    row = tables(tmp_path, frame, boundary=boundary, **keys)["net_benefit"].row(0, named=True)
    assert (row["tp"], row["fp"]) == (tp, fp)
    assert row["net_benefit"] == pytest.approx((tp - fp) / 6)


def test_scores_that_are_no_probabilities_have_no_net_benefit(tmp_path: Path) -> None:
    frame = predictions(5)
    results = tables(tmp_path, frame, net_benefit=True, threshold_probabilities=[0, 0.5])["net_benefit"]
    assert set(results["undefined"]) == {"no_probability"}
    assert results["net_benefit"].null_count() == results["better"].null_count() == results.height == 10


def test_a_given_threshold_joins_those_of_the_stage(tmp_path: Path) -> None:
    run = run_threshold_sweep(tmp_path, predictions(6), thresholds=[2, 6], operating_points=[{"threshold": 4.5}])
    curve, points = (
        read_table(run, f"threshold_sweep_{name}", "threshold_sweep") for name in ("curve", "operating_points")
    )
    assert curve["threshold"].to_list() == [2, 4.5, 6]
    (row,) = points.to_dicts()
    assert (row["threshold"], row["tp"], row["interval_quality"]) == (4.5, curve["tp"][1], "good")


def test_thresholds_at_a_prevalence_are_the_best_there(tmp_path: Path) -> None:
    results = tables(tmp_path, predictions(7), prevalence=[0.4, 0.02], cluster="document")
    at, points = results["at_prevalence"], results["points_at_prevalence"]
    assert sorted(points["prevalence"].unique()) == [0.02, 0.4]
    assert "max_alerts=7" not in set(points["criterion"])
    for row in points.filter(pl.col("threshold").is_not_null()).to_dicts():
        rows = at.filter(
            pl.col("grouping") == row["grouping"],
            pl.col("place").eq_missing(pl.lit(row["place"])),
            pl.col("prevalence") == row["prevalence"],
        )
        same = rows.filter(pl.col("threshold") == row["threshold"]).row(0, named=True)
        assert (row["precision"], row["f1_upper"]) == (same["precision"], same["f1_upper"])
        share = row["prevalence"]
        if row["criterion"] == "max_f1":
            assert row["f1"] == rows["f1"].max()
        if row["criterion"] == COST_TEXT:
            costs = rows.select(
                cost=3.5 * share * (1 - pl.col("recall"))
                - 0.5 * share * pl.col("recall")
                + (1 - share) * (pl.col("fpr") + 0.25 * (1 - pl.col("fpr")))
            )["cost"]
            assert row["cost_per_row"] == pytest.approx(costs.min())
            assert row["cost_per_row_lower"] <= row["cost_per_row"] <= row["cost_per_row_upper"]


@pytest.mark.parametrize("keys", [{"uncertainty": "none"}, {"uncertainty": "none", "cluster": "document"}])
def test_without_uncertainty_there_are_no_limits(tmp_path: Path, keys: Row) -> None:
    frame = predictions(8).with_columns(pl.col("score") / 10)
    results = tables(tmp_path, frame, net_benefit=True, prevalence=0.1, **keys)
    assert results.pop("allocations").height == 8
    for name, table in results.items():
        limits = [column for column in table.columns if column.endswith(("_lower", "_upper"))]
        assert limits, name
        assert table.select(pl.col(limits).is_null().all()).row(0) == (True,) * len(limits), name
        assert table["interval_quality"].null_count() == table.height


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"threshold_probabilities": [0.1]}, "goes with net_benefit"),
        ({"net_benefit": True, "threshold_probabilities": [0.1, 1.0]}, "from 0 to below 1, not from 0.1 to 1"),
        ({"net_benefit": True, "threshold_probabilities": [0.5, 0.1]}, "must rise"),
        ({"prevalence": 0}, "greater than 0"),
        ({"prevalence": [0.1, 1.5]}, "less than 1"),
        ({"prevalence": [0.1, 0.1]}, "twice"),
        ({"operating_points": [{"cost": {"fp": 1, "fn": 0}}]}, "must cost more"),
        ({"operating_points": [{"threshold": 1}, {"threshold": 1.0}]}, "each criterion once"),
    ],
)
def test_what_cannot_be_is_refused(keys: Row, words: str) -> None:
    with pytest.raises(ValidationError, match=words):
        ThresholdSweepParameters.model_validate({"name": "x", "predictions": "x.parquet", **keys})
