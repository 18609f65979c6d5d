"""The table threshold_sweep_bands and the regions in figures, from a few counts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from deriving import DECIMAL, count_table, derived, figures_of, saved_counts
from pydantic import ValidationError

from pipeline.stages.threshold_sweep import areas
from stages.threshold_sweep.test_figures import AREAS, CURVE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deriving import Derived, Groupings, Rows

KIND = "threshold_sweep"
LIMITS = [f"{name}_{side}" for name in ("precision", "recall", "fpr") for side in ("lower", "upper")]
CRITICAL = ["critical_precision", "critical_recall", "critical_fpr"]
LOSSES: dict[str, pl.DataType] = {"n": pl.Int64(), "n_outside": pl.Int64()} | dict.fromkeys(
    ("weights", "squares", "first", "weighted", "second", "squared_errors", "first_open", "squared_errors_open"),
    DECIMAL,
)


def sweep(
    rows: Sequence[Mapping[str, Any]], by: Groupings = ((),), crossed: Mapping[str, Rows] | None = None, **keys: object
) -> Derived:
    of_areas = [f"{name}{end}" for name in ("average_precision", "roc_auc") for end in _ENDS]
    rows = in_bins(rows, keys.get("thresholds"))
    frames = {
        "counts": saved_counts(KIND, rows, by),
        "likelihood": count_table([], LOSSES, by),
        "areas": count_table([], {}, by, dict.fromkeys([*of_areas, "design_effect"], pl.Float64())).drop(
            "replicate", "threshold"
        ),
    }
    for name, of_parent in (crossed or {}).items():
        frames[name] = saved_counts(KIND, in_bins(of_parent, keys.get("thresholds")), by)
    return derived(KIND, frames, {}, **{"by": by, "bands": True} | keys)


_ENDS = ("", "_se", "_degrees", "_skewed", "_low", "_high", "_min", "_max")


def in_bins(rows: Sequence[Mapping[str, Any]], thresholds: object) -> Rows:
    """The rows in the bins of thresholds, if there are any."""
    if not isinstance(thresholds, list):
        return [dict(row) for row in rows]
    return [{**row, "threshold": max((t for t in thresholds if t <= row["threshold"]), default=None)} for row in rows]


def scores(seed: int, number: int, replicates: int = 1, **keys: object) -> Rows:
    """Rows of a count table with one score each."""
    rng = np.random.default_rng(seed)
    label = rng.random(number) < 0.4
    score = np.sort(rng.random(number) + 0.3 * label)
    return [
        {"replicate": int(rng.integers(replicates)), "threshold": float(at), f"n_{side}": 1, **keys}
        for at, side in zip(score, np.where(label, "positive", "negative"), strict=True)
    ]


def test_bands_stand_beside_the_curve_and_are_wider_than_its_limits() -> None:
    result = sweep(scores(1, 80), thresholds=[0.2, 0.5, 0.8])
    both = result["bands"].join(result["curve"], on="threshold", suffix="_single")
    assert both.height == 3
    assert set(both["n_thresholds"]) == {3}
    assert set(both["method"]) == {"sup_t_rows"}
    assert both.select(CRITICAL).n_unique() == 1
    assert both.select(pl.col(CRITICAL).min()).min_horizontal().item() > 1.96
    for name in ("precision", "recall", "fpr"):
        assert both[name].to_list() == both[f"{name}_single"].to_list()
        assert (both[f"{name}_lower"] < both[f"{name}_lower_single"]).all()
        assert (both[f"{name}_upper"] > both[f"{name}_upper_single"]).all()


def test_there_are_no_bands_unless_they_are_asked_for() -> None:
    result = sweep(scores(1, 20), bands=False)
    assert "threshold_sweep_bands" not in result.returned
    with pytest.raises(ValidationError, match="leave one of them out"):
        sweep(scores(1, 20), uncertainty="none")


def test_each_group_has_its_own_band_whatever_others_there_are() -> None:
    groups = [scores(seed, 30, grouping="model", model=model) for seed, model in ((1, "a"), (2, None), (3, "</b>"))]
    every = sweep([row for rows in groups for row in rows], by=[["model"]])
    alone = sweep(groups[1], by=[["model"]])
    assert every["bands"].filter(pl.col("by:model").is_null()).equals(alone["bands"])
    assert every["bands"].group_by("by:model").agg(pl.col("critical_recall").n_unique())[
        "critical_recall"
    ].to_list() == [
        1,
        1,
        1,
    ]


def test_a_single_cluster_and_a_lack_of_negatives_say_why_there_is_no_band() -> None:
    one_cluster = sweep(scores(1, 20), cluster="page", thresholds=[0.5])["bands"]
    assert one_cluster["undefined_interval"].to_list() == ["one_replicate"]
    assert one_cluster.select(*LIMITS, *CRITICAL, "method", "interval_quality").null_count().row(0) == (1,) * 11
    only_true: Rows = [{"threshold": 0.5, "n_positive": 9}]
    row = sweep(only_true, thresholds=[0.5]).row("bands")
    assert (row["undefined_interval"], row["critical_fpr"], row["fpr_lower"]) == ("undefined_ratio", None, None)
    assert row["recall_lower"] > 0
    assert row["critical_recall"] == pytest.approx(1.96, abs=0.001)  # of one limit there is nothing to be shared


def test_few_clusters_are_marked() -> None:
    rows = sweep(scores(1, 80, replicates=5), cluster="page", thresholds=[0.3, 0.6])["bands"]
    assert set(rows["interval_quality"]) == {"few_clusters"}
    assert set(rows["method"]) == {"sup_t_clusters"}


def test_beyond_the_budget_there_is_no_band_but_a_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(areas, "MOST_DRAWN", 1)
    result = sweep(scores(1, 20), thresholds=[0.5, 0.7])
    assert result["bands"]["undefined_interval"].to_list() == ["budget", "budget"]
    assert result["bands"].select(*LIMITS, *CRITICAL, "method").null_count().row(0) == (2,) * 10
    assert any("threshold_sweep_bands" in warning and "budget" in warning for warning in result.warnings)


@pytest.mark.parametrize("boundary", [">=", ">"])
@pytest.mark.parametrize("cluster", [None, "page"])
def test_of_many_thresholds_some_are_chosen_and_counted_as_they_are(
    boundary: str, cluster: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = scores(2, 120, replicates=20)
    keys: dict[str, Any] = {
        "boundary": boundary,
        "cluster": cluster,
        "operating_points": [{"beta": 1}, {"min_recall": 0.7}],
    }
    every = sweep(rows, **keys)["bands"]
    monkeypatch.setattr(areas, "MOST_THRESHOLDS", 40)
    result = sweep(rows, **keys)
    chosen = result["bands"]
    assert every.height == 120
    assert 20 < chosen.height <= 42
    assert set(chosen["n_thresholds"]) == {chosen.height}
    assert set(result["operating_points"]["threshold"]) <= set(chosen["threshold"])
    same = chosen.join(every, on="threshold", suffix="_of_every").filter(pl.col("precision").is_not_null())
    assert (same["critical_recall"] < same["critical_recall_of_every"]).all()  # fewer looks
    # Jeffreys' limits of the same counts at a lower level lie inside, by no more than that
    width = same["precision_upper"] - same["precision_lower"]
    of_every = same["precision_upper_of_every"] - same["precision_lower_of_every"]
    assert (width <= of_every + 1e-12).all()
    assert (width >= 0.8 * of_every).all()


def test_two_parents_weights_and_fixed_sizes_have_bands() -> None:
    users, items = scores(3, 60, replicates=12), scores(3, 60, replicates=9)
    crossed = {"counts_of_second_parent": items, "counts_of_both_parents": scores(3, 60, replicates=50)}
    of_both = sweep(users, crossed=crossed, cluster=["user", "item"], thresholds=[0.4, 0.8])["bands"]
    assert of_both.select(LIMITS).null_count().sum_horizontal().item() == 0
    assert set(of_both["interval_quality"]) == {"few_clusters"}
    heavy = [
        row | {f"n_weighted_{side}": 1, f"weight_{side}": "2.0", f"squares_{side}": "4.0"}
        for row in users
        for side in ("positive", "negative")
        if f"n_{side}" in row
    ]
    weighted, plain, fixed = (
        sweep(rows, thresholds=[0.4, 0.8], class_sizes=sizes)["bands"]
        for rows, sizes in ((heavy, "random"), (users, "random"), (users, "fixed"))
    )
    assert weighted["precision"].to_list() == plain["precision"].to_list()
    assert np.allclose(weighted["recall_lower"], plain["recall_lower"], atol=0.03)  # one unit for all
    assert fixed["critical_precision"][0] != plain["critical_precision"][0]


def test_the_bootstrap_widens_a_band_where_its_limits_lie_farther() -> None:
    rows = scores(4, 90, replicates=16)
    keys: dict[str, Any] = {"cluster": "page", "thresholds": [0.3, 0.6, 0.9]}
    result = sweep(rows, uncertainty="bootstrap", resamples=199, **keys)
    both = result["bands"].join(result["curve"], on="threshold", suffix="_single")
    assert (both["recall_lower"] <= both["recall_lower_single"]).all()
    assert both["critical_recall"].to_list() == sweep(rows, **keys)["bands"]["critical_recall"].to_list()


BOXES: Rows = [
    {
        "threshold": at,
        "recall_lower": recall - 0.1,
        "recall_upper": min(recall + 0.1, 1.0),
        "precision_lower": precision - 0.2,
        "precision_upper": min(precision + 0.1, 1.0),
        "fpr_lower": max(fpr - 0.1, 0.0),
        "fpr_upper": fpr + 0.2,
        "interval_quality": quality,
    }
    for at, recall, precision, fpr, quality in (
        (0.15, 1.0, 0.5, 0.8, "good"),
        (0.25, 0.95, 0.6, 0.55, "few_clusters"),
        (0.65, 0.8, 0.8, 0.2, "good"),
        (0.95, 0.5, 1.0, 0.0, "good"),
    )
]


def test_the_region_of_a_figure_is_the_union_of_boxes_above_each_place() -> None:
    figures = figures_of(KIND, {"curve": CURVE, "areas": AREAS, "bands": BOXES}, confidence=0.9)
    figure = figures["precision_recall"]
    ends = figure.frame.select("recall", "band_lower", "band_upper").rows()
    # at recall 0.95 lie the boxes of 1 and of 0.95, at 0.8 that of 0.8 alone
    assert ends == [
        (1.0, pytest.approx(0.3), pytest.approx(0.7)),
        (0.95, pytest.approx(0.3), pytest.approx(0.7)),
        (0.8, pytest.approx(0.6), pytest.approx(0.9)),
        (0.5, pytest.approx(0.8), 1.0),
    ]
    assert (figure.series[-1].lower, figure.series[0].lower) == ("band_lower", "")
    assert "90% of samples" in figure.caption
    assert set(figure.frame["interval_quality"]) == {"few_clusters"}
    roc = figures["roc"].frame.select("fpr", "band_lower", "band_upper").rows()
    assert roc[1] == (0.55, pytest.approx(0.85), 1.0)
    assert (
        figures["by_threshold"].frame.columns
        == figures_of(KIND, {"curve": CURVE, "areas": AREAS})["by_threshold"].frame.columns
    )


def test_a_group_without_a_band_has_no_region() -> None:
    curve = [row | {"grouping": "model", "model": model} for model in ("a", None) for row in CURVE]
    boxes = [box | {"grouping": "model", "model": None} for box in BOXES]
    frame = figures_of(KIND, {"curve": curve, "bands": boxes}, by=["model"])["precision_recall"].frame
    of_model = {name: rows["band_lower"].null_count() for (name,), rows in frame.group_by("by:model")}
    assert of_model == {"a": 4, None: 0}
    missing = [{"threshold": row["threshold"], "undefined_interval": "budget"} for row in CURVE]
    figure = figures_of(KIND, {"curve": CURVE, "bands": missing})["precision_recall"]
    assert figure.series[-1].lower == ""
    assert "region" not in figure.caption
