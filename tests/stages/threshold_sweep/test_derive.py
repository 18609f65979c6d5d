"""`derive` of threshold_sweep from a few counts: curve, operating points, averages, areas, warnings and words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from deriving import DECIMAL, count_table, derived, saved_counts, stage_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deriving import Derived, Groupings, Rows

KIND = "threshold_sweep"
LOSSES = {"n": pl.Int64(), "n_outside": pl.Int64()} | dict.fromkeys(
    ("weights", "squares", "first", "weighted", "second", "squared_errors", "first_open", "squared_errors_open"),
    DECIMAL,
)
OF_AREAS = (
    *(
        f"{name}{end}"
        for name in ("average_precision", "roc_auc")
        for end in ("", "_se", "_degrees", "_skewed", "_low", "_high", "_min", "_max")
    ),
    "design_effect",
)
FOUR: Rows = [  # 7 positives and 7 negatives; one of each kind more has no bin
    {"threshold": 0.2, "n_positive": 1, "n_negative": 2},
    {"threshold": 0.5, "n_positive": 2, "n_negative": 1},
    {"threshold": 0.8, "n_positive": 3},
    {"n_positive": 1, "n_negative": 4},
]


def sweep(
    rows: Sequence[Mapping[str, Any]],
    by: Groupings = ((),),
    areas: Sequence[Mapping[str, Any]] = (),
    losses: Sequence[Mapping[str, Any]] = (),
    **keys: object,
) -> Derived:
    frames = {
        "counts": saved_counts(KIND, rows, by),
        "likelihood": count_table(losses, LOSSES, by),
        "areas": count_table(areas, {}, by, dict.fromkeys(OF_AREAS, pl.Float64())).drop("replicate", "threshold"),
    }
    return derived(KIND, frames, {}, **{"thresholds": [0.2, 0.5, 0.8], "by": by} | keys)


def ratios(row: Mapping[str, Any]) -> tuple[float | None, ...]:
    return tuple(row[name] for name in ("precision", "recall", "f1", "fpr"))


def test_every_threshold_retrieves_its_bin_and_those_above() -> None:
    curve = sweep(FOUR)["curve"]
    assert curve.select("threshold", "tp", "fp", "fn", "tn").rows() == [
        (0.2, 6, 3, 1, 4),
        (0.5, 5, 1, 2, 6),
        (0.8, 3, 0, 4, 7),
    ]
    assert [ratios(row) for row in curve.to_dicts()] == [
        (6 / 9, 6 / 7, 12 / 16, 3 / 7),
        (5 / 6, 5 / 7, 10 / 13, 1 / 7),
        (1.0, 3 / 7, 6 / 10, 0.0),
    ]
    assert curve["undefined"].to_list() == curve["tp_weight"].to_list() == [None] * 3


def test_a_ratio_of_nothing_is_null_and_says_why() -> None:
    rows: Rows = [
        {"grouping": "model", "model": "silent", "n_positive": 2, "n_negative": 3},
        {"grouping": "model", "model": "only false", "threshold": 0.5, "n_negative": 3},
        {"grouping": "model", "model": "only true", "threshold": 0.8, "n_positive": 3},
    ]
    result = sweep(rows, by=[["model"]])
    curve = {(row["by:model"], row["threshold"]): row for row in result["curve"].to_dicts()}
    reasons = {key: (*ratios(row), row["undefined"]) for key, row in curve.items()}
    assert reasons["silent", 0.2] == (None, 0.0, 0.0, 0.0, "no_prediction")
    assert reasons["only false", 0.5] == (0.0, None, 0.0, 1.0, "no_positive")
    assert reasons["only false", 0.8] == (None, None, None, 0.0, "no_prediction")
    assert reasons["only true", 0.8] == (1.0, 1.0, 1.0, None, "no_negative")
    assert curve["silent", 0.2]["undefined_interval"] == "undefined_ratio"


def test_groups_keep_apart_also_where_their_name_is_null() -> None:
    rows: Rows = [
        {"threshold": 0.5, "n_positive": 3, "n_negative": 1},
        {"grouping": "model", "model": "a", "threshold": 0.5, "n_positive": 1},
        {"grouping": "model", "model": None, "threshold": 0.5, "n_positive": 2, "n_negative": 1},
    ]
    result = sweep(rows, by=[[], ["model"]])
    at_half = {(row["grouping"], row["by:model"]): row for row in result.rows("curve", threshold=0.5)}
    cells = {group: tuple(row[name] for name in ("tp", "fp", "fn", "tn")) for group, row in at_half.items()}
    assert cells == {("all", None): (3, 1, 0, 0), ("model", "a"): (1, 0, 0, 0), ("model", None): (2, 1, 0, 0)}
    assert result["areas"].select("n", "n_positive").sum().row(0) == (2 * 4, 2 * 3)
    assert set(result["areas"]["undefined"]) == {"no_positive"}  # no area is known here


def test_weights_are_divided_exactly() -> None:
    weighted = {"n_weighted_positive": 1, "weight_positive": "0.3", "squares_positive": "0.09"}
    rows: Rows = [
        {"threshold": 0.8, "n_positive": 1, **weighted},
        {"threshold": 0.8, "n_negative": 1, "n_weighted_negative": 1, "weight_negative": "0.1"},
    ]
    row = sweep(rows).row("curve", threshold=0.8)
    assert (row["tp"], row["fp"], row["tp_weight"], row["fp_weight"]) == (1, 1, 0.3, 0.1)
    assert row["precision"] == 0.75  # 0.3 / 0.4 in doubles is less


def test_intervals_need_a_second_replicate_of_clusters() -> None:
    two: Rows = [*FOUR, {"replicate": 1, "threshold": 0.8, "n_positive": 1, "n_negative": 1}]
    one_cluster, two_clusters = (sweep(rows, cluster="page")["curve"] for rows in (FOUR, two))
    assert set(one_cluster["undefined_interval"]) == {"one_replicate"}
    assert one_cluster["precision_lower"].null_count() == one_cluster.height
    assert set(two_clusters["undefined_interval"]) == {None}
    assert two_clusters.select(((pl.col("f1_lower") < pl.col("f1")) & (pl.col("f1") < pl.col("f1_upper"))).all()).item()
    rows_alone = sweep(FOUR)["curve"]  # rows are independent without clusters
    assert set(rows_alone["undefined_interval"]) == {None}
    # 3 of 3: the limit is (α / 2) ^ (1 / 3) (Clopper & Pearson)
    lower, upper = rows_alone.row(2, named=True)["precision_lower"], rows_alone.row(2, named=True)["precision_upper"]
    assert lower == pytest.approx(0.025 ** (1 / 3))
    assert upper == 1.0
    assert set(sweep(FOUR, uncertainty="none")["curve"]["undefined_interval"]) == {"none"}


def test_of_equally_good_thresholds_the_lowest_is_chosen() -> None:
    tied: Rows = [{"threshold": 0.2, "n_positive": 1}, {"threshold": 0.8, "n_positive": 3}, {"n_positive": 1}]
    points: Rows = [{"beta": 1}, {"min_precision": 0.9}, {"min_recall": 0.6}, {"min_recall": 0.9}]
    result = sweep(tied, operating_points=points)
    chosen = {row["criterion"]: row for row in result["operating_points"].to_dicts()}
    assert chosen["max_f1"]["threshold"] == chosen["min_precision=0.9"]["threshold"] == 0.2
    # recall 4/5, 3/5, 3/5 with precision 1 throughout: the lowest of three equal ones
    assert chosen["min_recall=0.6"]["threshold"] == 0.2
    missed = chosen["min_recall=0.9"]
    assert (missed["threshold"], missed["tp"], missed["undefined"]) == (None, None, "not_reached")


def clustered(precision: float, rows: int) -> Rows:
    """40 clusters with rows at three scores; the share of positives of the two higher ones."""
    return [
        {
            "replicate": cluster,
            "threshold": threshold,
            "n_positive": round(rows * share),
            "n_negative": rows - round(rows * share),
        }
        for cluster in range(40)
        for threshold, share in ((0.2, 0.1), (0.5, precision), (0.8, precision))
    ]


def test_a_minimum_with_confidence_is_kept_only_by_what_the_data_can_promise() -> None:
    points: Rows = [
        {"min_precision": 0.9},
        {"min_precision": 0.9, "confidence": 0.95},
        {"min_recall": 0.8, "confidence": 0.95},
    ]
    for precision, rows, chosen in ((1.0, 10, 0.5), (0.9, 10, None), (1.0, 0, None)):
        result = sweep(clustered(precision, rows), cluster="page", operating_points=points)
        threshold = {row["criterion"]: row["threshold"] for row in result["operating_points"].to_dicts()}
        assert threshold["min_precision=0.9"] == (0.5 if rows else None)
        assert threshold["min_precision=0.9,confidence=0.95"] == chosen
        assert threshold["min_recall=0.8,confidence=0.95"] == (0.5 if rows else None)
    undefined = dict(result["operating_points"].select("criterion", "undefined").iter_rows())
    assert undefined["min_precision=0.9"] == "not_reached"
    assert undefined["min_precision=0.9,confidence=0.95"] == "not_promised"
    none = sweep(clustered(1.0, 10), cluster="page", operating_points=points, uncertainty="none")["operating_points"]
    assert none["undefined"].to_list() == [None, "not_promised", "not_promised"]


def test_a_choice_is_shown_as_it_does_on_other_clusters() -> None:
    points: Rows = [{"beta": 1}, {"min_precision": 0.95}, {"min_precision": 0.5, "confidence": 0.9}]
    names = [f"{name}_cross_fitted" for name in ("precision", "recall", "f1")]
    # cluster 0 alone has a positive at .8: without it that threshold is worth nothing
    rows: Rows = [
        {"replicate": 0, "threshold": 0.8, "n_positive": 3},
        *({"replicate": g, "threshold": 0.2, "n_positive": 1, "n_negative": 1} for g in range(5)),
    ]
    result = sweep(rows, cluster="page", operating_points=points)
    row = {row["criterion"]: row for row in result["operating_points"].to_dicts()}
    assert [row["max_f1"][name] for name in names] == pytest.approx([8 / 13, 1.0, 16 / 21])
    assert row["max_f1"]["undefined_cross_fitted"] is None
    assert row["min_precision=0.95"]["precision"] == 1.0
    assert row["min_precision=0.95"]["undefined_cross_fitted"] == "not_reached"
    assert row["min_precision=0.5,confidence=0.9"]["undefined_cross_fitted"] == "confidence"
    one = sweep(FOUR, cluster="page")["operating_points"].row(0, named=True)
    assert (one["undefined_cross_fitted"], one[names[0]]) == ("one_replicate", None)
    none = sweep(FOUR, cluster="page", uncertainty="none")["operating_points"].row(0, named=True)
    assert none["undefined_cross_fitted"] == "none"
    of_rows = sweep([{"threshold": 0.5, "n_positive": 300, "n_negative": 100}, {"n_negative": 50}])
    point = of_rows["operating_points"].row(0, named=True)
    assert [point[name] for name in names] == [point["precision"], point["recall"], point["f1"]]


def normal_scores(shift: float, positives: int, negatives: int, clusters: int = 1) -> Rows:
    """Rows of two classes in bins of a tenth, in clusters that differ."""
    rng = np.random.default_rng(7)
    rows: Rows = []
    for label, size, mean in (("n_positive", positives, shift), ("n_negative", negatives, 0.0)):
        scores = np.floor((rng.standard_normal(size) + mean) * 10) / 10
        rows += [{"replicate": int(n % clusters), "threshold": float(s), label: 1} for n, s in enumerate(scores)]
    return rows


@pytest.mark.parametrize("keys", [{}, {"cluster": "page"}], ids=["rows", "clusters"])
def test_the_headline_is_of_data_that_did_not_choose_the_threshold(keys: dict[str, Any]) -> None:
    result = sweep(normal_scores(1.0, 60, 540, clusters=30), thresholds="distinct", **keys)
    point = result["operating_points"].row(0, named=True)
    for name in ("precision", "recall", "f1"):
        assert point[f"{name}_cross_fitted_lower"] < point[f"{name}_cross_fitted"] < point[f"{name}_cross_fitted_upper"]
    assert point["f1_cross_fitted"] < point["f1"]
    assert point["interval_quality"] == "chosen_on_same_data"
    row = result.summary.rows[0]
    cells = dict(zip(result.summary.headers, row, strict=True))
    assert cells["precision"].startswith(f"{point['precision_cross_fitted']:.1%} (")
    assert not cells["precision"].endswith("*")
    assert (
        f"{point['recall_cross_fitted'] * 100:.0f} of every 100 true rows are found (measured on data that had no part"
        in (result.summary.sentence)
    )
    tiles = {number.name: number for number in stage_of("threshold_sweep").key_numbers(result.tables)}
    assert tiles["Precision"].value == point["precision_cross_fitted"]
    assert tiles["Recall"].lower == point["recall_cross_fitted_lower"]
    assert tiles["Recall"].quality == "good"


def test_without_folds_the_headline_has_a_star_and_says_why() -> None:
    summary = sweep(normal_scores(1.0, 60, 540), cluster="page").summary
    assert "a little too good, because the threshold was chosen on the same data" in summary.sentence
    given = sweep(normal_scores(1.0, 60, 540), operating_points=[{"threshold": 0.5}]).summary
    assert "(" not in given.sentence


def test_limits_of_weighted_rows_are_those_of_their_folds() -> None:
    weighted: Rows = [
        {**row, "weight_positive": 2 * row.get("n_positive", 0), "weight_negative": 2 * row.get("n_negative", 0)}
        | {"squares_positive": 4 * row.get("n_positive", 0), "squares_negative": 4 * row.get("n_negative", 0)}
        for row in normal_scores(1.0, 60, 540)
    ]
    plain, heavy = (
        sweep(rows, thresholds="distinct")["operating_points"].row(0, named=True)
        for rows in (normal_scores(1.0, 60, 540), weighted)
    )
    for name in ("precision_cross_fitted_lower", "recall_cross_fitted_upper", "f1_cross_fitted"):
        assert heavy[name] == pytest.approx(plain[name], abs=0.01)


def test_averages_are_taken_over_the_groups_that_have_a_ratio() -> None:
    groups: Rows = [
        {"model": "a", "threshold": 0.5, "n_positive": 1, "n_negative": 1},  # precision 1/2, recall 1
        {"model": "b", "threshold": 0.5, "n_positive": 3},  # precision 1, recall 3/4
        {"model": "b", "n_positive": 1},
        {"model": "c", "n_positive": 3, "n_negative": 1},  # nothing retrieved: recall 0
    ]
    total: Rows = [
        {"threshold": 0.5, "n_positive": 4, "n_negative": 1},
        {"n_positive": 4, "n_negative": 1},
    ]
    rows: Rows = [*total, *({"grouping": "model", **row} for row in groups)]
    result = sweep(rows, by=[[], ["model"]], thresholds=[0.5], averages=["micro", "macro", "weighted"])
    averages = {row["average"]: row for row in result.rows("averages", threshold=0.5)}
    assert (averages["micro"]["precision"], averages["micro"]["recall"]) == (4 / 5, 4 / 8)
    assert (averages["macro"]["precision"], averages["macro"]["recall"]) == ((1 / 2 + 1) / 2, (1 + 3 / 4 + 0) / 3)
    assert averages["weighted"]["precision"] == pytest.approx((1 * 1 / 2 + 4 * 1) / 5)
    assert averages["weighted"]["recall"] == pytest.approx((1 * 1 + 4 * 3 / 4 + 3 * 0) / 8)
    assert [averages[name]["n_groups"] for name in ("micro", "macro")] == [3, 3]
    assert averages["macro"]["n_undefined"] == 2  # b has no negative, c no prediction
    assert sweep(FOUR)["averages"].is_empty()


@pytest.mark.parametrize(("boundary", "tp"), [(">=", [3, 2]), (">", [2, 0])])
def test_distinct_scores_are_the_thresholds_of_their_group(boundary: str, tp: list[int]) -> None:
    rows: Rows = [{"threshold": 0.9, "n_positive": 2}, {"threshold": 0.3, "n_positive": 1, "n_negative": 1}]
    curve = sweep(rows, thresholds="distinct", boundary=boundary)["curve"]
    assert curve.select("threshold", "tp").rows() == [(0.3, tp[0]), (0.9, tp[1])]


def test_areas_warn_of_few_positives_and_say_what_is_missing() -> None:
    areas: Rows = [{"average_precision": 0.75, "roc_auc": 0.5}]
    # two rows with scores 1/2: log-likelihood 2 ln(1/2) / 2, Brier score 1/4
    losses: Rows = [{"n": 2, "weights": 2, "squares": 2, "first": "-1.4", "weighted": "-1.4", "second": "0.98"}]
    losses[0]["squared_errors"] = "0.5"
    rows: Rows = [{"threshold": 0.5, "n_positive": 1, "n_negative": 1}]
    result = sweep(rows, areas=areas, losses=losses)
    row = result.row("areas")
    assert (row["n"], row["n_positive"], row["average_precision"], row["undefined"]) == (2, 1, 0.75, None)
    assert (row["log_likelihood"], row["brier"]) == (-0.7, 0.25)
    assert row["undefined_interval"] == "few_positives"
    assert result.warnings == ("there are fewer than 20 positives: areas are very uncertain",)
    outside = sweep(rows, areas=areas, losses=[losses[0] | {"n_outside": 1}]).row("areas")
    assert (outside["brier"], outside["undefined"]) == (None, "no_probability")


def test_no_group_gives_empty_tables_of_the_contract() -> None:
    result = sweep([], by=[["model"]], averages=["macro"])
    assert all(table.is_empty() for table in result.tables.values())
    assert result.warnings == ()
    assert result.summary.sentence == "No group has any prediction."
    assert sweep(FOUR).summary.rows[0][:3] == ("all", "14", "7")
