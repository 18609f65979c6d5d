"""Areas and likelihoods of whole runs: against scikit-learn, derivatives by weights, and exact against binned."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from reference_areas import (
    Area,
    average_precision,
    degrees_of_rows,
    pr_auc_at,
    roc_auc,
    se_of_clusters,
    se_of_rows,
    value,
)
from running import SWEEP, read_table, run_threshold_sweep, swept
from scipy.special import expit, logit
from scipy.stats import t as student
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

from pipeline.base.errors import DataError
from pipeline.metrics.curves.ordered_areas import PackedScores, SizesDifferError
from pipeline.metrics.curves.trapezoidal_area import finer, pr_auc
from pipeline.plan import area_work as areas
from pipeline.plan.area_work import rows_in_order

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import sqlglot.expressions as exp
    from numpy.typing import NDArray

NAMES = ("average_precision", "pr_auc", "roc_auc")
WEIGHTS = {"predictions": {"columns": {"weight": "w"}}}


def predictions(seed: int = 1, rows: int = 300, *, decimals: int = 2, power: float = 1.0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    labels = rng.uniform(size=rows) < 0.3
    scores = expit(rng.normal(labels * 1.5 - 1, 1.0)) ** power
    return pl.DataFrame(
        {
            "score": np.round(scores, decimals) if decimals else scores,
            "label": labels,
            "w": rng.choice([0.25, 1.0, 3.5], rows),
            "model": rng.choice(["a", "b", "c"], rows),
            "user": rng.integers(0, 25, rows),
        }
    )


def arrays(frame: pl.DataFrame, *, weighted: bool = False) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    weights = frame["w"].to_numpy() if weighted else np.ones(frame.height)
    return frame["score"].to_numpy(), frame["label"].to_numpy(), weights


def definitions(frame: pl.DataFrame) -> Mapping[str, Area]:
    every = np.unique(frame["score"].to_numpy())
    return {"average_precision": average_precision, "pr_auc": pr_auc_at(every.tolist(), ">="), "roc_auc": roc_auc}


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("decimals", "weighted", "method"),
    [(1, False, "exact"), (1, True, "binned"), (0, False, "binned"), (0, True, "exact")],
)
def test_areas_and_losses_are_those_of_scikit_learn(
    tmp_path: Path,
    decimals: int,
    weighted: bool,  # noqa: FBT001
    method: str,
) -> None:
    frame = predictions(2, decimals=decimals)
    found = swept(tmp_path, frame, method=method, **(WEIGHTS if weighted else {}))["areas"].row(0, named=True)
    scores, labels, weights = arrays(frame, weighted=weighted)
    wanted = {
        "average_precision": average_precision_score(labels, scores, sample_weight=weights),
        "roc_auc": roc_auc_score(labels, scores, sample_weight=weights),
        "brier": brier_score_loss(labels, scores, sample_weight=weights),
        "log_likelihood": -log_loss(labels, np.clip(scores, 1e-15, 1 - 1e-15), sample_weight=weights),
    }
    for name, number in wanted.items():
        assert found[name] == pytest.approx(number, rel=1e-11), name
    assert (found["n"], found["n_positive"], found["method"]) == (300, labels.sum(), method)
    if not weighted:
        assert found["pr_auc"] == pytest.approx(pr_auc(scores, labels).auc, abs=1e-13)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("class_sizes", ["fixed", "random"])
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_and_intervals_of_rows_are_those_of_derivatives_by_weights(
    tmp_path: Path,
    weighted: bool,  # noqa: FBT001
    class_sizes: str,
) -> None:
    frame = predictions(3, 60, decimals=1)
    keys = WEIGHTS if weighted else {}
    found = swept(tmp_path, frame, class_sizes=class_sizes, confidence=0.9, **keys)["areas"].row(0, named=True)
    scores, labels, weights = arrays(frame, weighted=weighted)
    for name, area in definitions(frame).items():
        se = se_of_rows(area, scores, labels, weights, random_sizes=class_sizes == "random")
        middle = value(area, scores, labels, weights)
        assert found[name] == pytest.approx(middle, abs=1e-13), name
        assert found[f"{name}_se"] == pytest.approx(se, rel=1e-9), name
        degrees = degrees_of_rows(area, scores, labels, weights, se**2)
        error = max(se, found["average_precision_se"]) if name == "pr_auc" else se
        half = student.ppf(0.95, degrees) * error / (middle * (1 - middle))
        limits = expit(logit(middle) - half), expit(logit(middle) + half)
        assert (found[f"{name}_lower"], found[f"{name}_upper"]) == pytest.approx(limits, rel=1e-9), name


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", ["exact", "binned"])
def test_errors_of_clusters_are_those_of_derivatives_by_weights(
    tmp_path: Path,
    method: str,
    weighted: bool,  # noqa: FBT001
) -> None:
    frame = predictions(4, 60, decimals=1)
    keys = WEIGHTS if weighted else {}
    found = swept(tmp_path, frame, cluster="user", method=method, **keys)["areas"].row(0, named=True)
    scores, labels, weights = arrays(frame, weighted=weighted)
    clusters = frame["user"].to_numpy()
    for name, area in definitions(frame).items():
        wanted = se_of_clusters(area, scores, labels, clusters, weights)
        assert found[f"{name}_se"] == pytest.approx(wanted, rel=1e-9), name
    loss = np.where(labels, np.log(np.clip(scores, 1e-15, 1)), np.log(np.clip(1 - scores, 1e-15, 1)))
    mean = np.average(loss, weights=weights)
    left = weights.sum() - np.bincount(clusters, weights)  # the weight without each cluster
    shifts = np.bincount(clusters, weights * (loss - mean)) / left
    count = len(np.unique(clusters))
    assert found["log_likelihood"] == pytest.approx(mean, rel=1e-11)
    assert found["log_likelihood_se"] == pytest.approx(np.sqrt((count - 1) / count * (shifts**2).sum()), rel=1e-9)


def test_the_error_of_the_mean_log_likelihood_of_rows_is_that_of_a_mean(tmp_path: Path) -> None:
    frame = predictions(5, decimals=0)
    found = swept(tmp_path, frame, thresholds=[0.5])["areas"].row(0, named=True)
    scores, labels, _ = arrays(frame)
    loss = np.where(labels, np.log(scores), np.log(1 - scores))
    assert found["log_likelihood_se"] == pytest.approx(loss.std(ddof=1) / np.sqrt(300), rel=1e-9)


def test_probabilities_of_0_and_1_are_clipped_and_others_have_no_likelihood(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.0, 1.0, 0.5, 0.5], "label": [True, False, True, False]})
    found = swept(tmp_path / "a", frame)["areas"].row(0, named=True)
    assert found["log_likelihood"] == pytest.approx((2 * np.log(1e-15) + 2 * np.log(0.5)) / 4, rel=1e-2)
    assert found["brier"] == pytest.approx(2.5 / 4)
    for number, odd in enumerate((1.0000001, -1e-9)):
        other = pl.concat([frame, pl.DataFrame({"score": [odd], "label": [True]})])
        row = swept(tmp_path / str(number), other)["areas"].row(0, named=True)
        assert [row[name] for name in ("log_likelihood", "log_likelihood_se", "brier")] == [None] * 3
        assert row["undefined"] == "no_probability"
        assert row["roc_auc"] is not None


@pytest.mark.wide
def test_the_true_point_area_follows_the_thresholds_and_the_boundary_and_the_others_do_not(tmp_path: Path) -> None:
    frame = predictions(6)
    scores, labels, _ = arrays(frame)
    made = {}
    for boundary in (">=", ">"):
        keys = {"thresholds": [0.1, 0.3, 0.31, 0.7], "boundary": boundary, "class_sizes": "fixed"}
        row = swept(tmp_path / f"b{len(boundary)}", frame, **keys)
        made[boundary] = row["areas"].row(0, named=True)
        wanted = pr_auc(scores, labels, [0.1, 0.3, 0.31, 0.7], boundary)
        found = [made[boundary][name] for name in ("pr_auc", "pr_auc_se_true_points", "pr_auc_se")]
        assert found == pytest.approx([wanted.auc, wanted.se_true_points, wanted.se], rel=1e-11)
    assert made[">"]["pr_auc"] != made[">="]["pr_auc"]
    assert made[">"]["average_precision"] == made[">="]["average_precision"]
    distinct = swept(tmp_path / "distinct", frame, boundary=">")["areas"].row(0, named=True)
    assert distinct["pr_auc"] == pytest.approx(pr_auc(scores, labels).auc, rel=1e-12)


def test_no_usable_threshold_gives_the_true_point_area_zero(tmp_path: Path) -> None:
    found = swept(tmp_path, predictions(7), thresholds=[7.0, 8.0])["areas"].row(0, named=True)
    assert found["pr_auc"] == 0
    assert found["average_precision"] > 0


@pytest.mark.parametrize("method", ["exact", "binned"])
def test_constant_scores_have_the_prevalence_and_one_half(tmp_path: Path, method: str) -> None:
    frame = predictions(8).with_columns(score=0.5)
    found = swept(tmp_path, frame, method=method, class_sizes="fixed")["areas"].row(0, named=True)
    prevalence = frame["label"].mean()
    assert found["average_precision"] == pytest.approx(prevalence, rel=1e-12)
    assert found["pr_auc"] == pytest.approx(prevalence, rel=1e-12)
    assert found["roc_auc"] == pytest.approx(0.5, rel=1e-12)
    assert found["average_precision_se"] == pytest.approx(0, abs=1e-9)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("method", ["exact", "binned"])
@pytest.mark.parametrize("cluster", [{}, {"cluster": "user"}], ids=["rows", "clusters"])
def test_one_class_has_no_roc_area(tmp_path: Path, cluster: dict[str, str], method: str) -> None:
    for label, wanted, why in ((True, 1.0, "no_negative"), (False, None, "no_positive")):
        frame = predictions(9).with_columns(label=pl.lit(label))
        row = swept(tmp_path / str(label), frame, method=method, **cluster)["areas"].row(0, named=True)
        assert row["average_precision"] == (wanted and pytest.approx(wanted, abs=1e-14))
        assert row["pr_auc"] == wanted
        assert [row[name] for name in ("roc_auc", "roc_auc_se", "roc_auc_lower", "roc_auc_max")] == [None] * 4
        assert row["undefined"] == why


@pytest.mark.wide
def test_weights_of_one_change_nothing_and_weights_of_two_are_copies_for_the_values(tmp_path: Path) -> None:
    frame = predictions(10)
    plain = swept(tmp_path / "plain", frame)["areas"]
    ones = swept(tmp_path / "ones", frame.with_columns(w=1.0), **WEIGHTS)["areas"]
    of_others = ("_min", "_max", "_effective", "design_effect")  # bounds of cells, and what only clusters have
    own = [name for name in plain.columns if plain.schema[name] == pl.Float64 and not name.endswith(of_others)]
    assert ones.select(own).row(0) == pytest.approx(plain.select(own).row(0), rel=1e-9)
    some = frame.with_columns(w=1.0 + (pl.int_range(pl.len()) % 3 == 0).cast(pl.Float64))
    doubled = swept(tmp_path / "double", some, **WEIGHTS)["areas"].row(0, named=True)
    copies = swept(tmp_path / "copies", pl.concat([frame, frame[::3]]))["areas"].row(0, named=True)
    for name in (*NAMES, "log_likelihood", "brier"):
        assert doubled[name] == pytest.approx(copies[name], rel=1e-11), name


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("factor", [2.0**-10, 2.0**10])
def test_the_unit_of_the_weights_changes_nothing(tmp_path: Path, factor: float) -> None:
    frame = predictions(18)
    plain = swept(tmp_path / "plain", frame, **WEIGHTS)
    scaled = swept(tmp_path / "scaled", frame.with_columns(pl.col("w") * factor), **WEIGHTS)
    for table in ("areas", "curve"):
        own = [name for name, kind in plain[table].schema.items() if kind == pl.Float64 and "weight" not in name]
        found, wanted = (each[table].select(own).to_numpy() for each in (scaled, plain))
        assert found == pytest.approx(wanted, rel=1e-7, nan_ok=True), table


def test_weights_that_are_all_zero_are_refused_but_a_group_of_them_has_no_areas(tmp_path: Path) -> None:
    frame = predictions(10, 60)
    with pytest.raises(DataError, match="'w' is 0 in every row"):
        swept(tmp_path / "all", frame.with_columns(w=0.0), **WEIGHTS)
    some = frame.with_columns(w=pl.when(pl.col("model") == "a").then(0.0).otherwise(pl.col("w")))
    tables = swept(tmp_path / "some", some, by=["model"], thresholds=[0.1], **WEIGHTS)
    curve, area = (tables[name].filter(pl.col("model") == "a").row(0, named=True) for name in ("curve", "areas"))
    assert area["n"] > 5
    assert [area[name] for name in (*NAMES, "log_likelihood", "brier")] == [None] * 5
    assert [curve[name] for name in ("precision", "recall", "f1", "fpr")] == [None] * 4


@pytest.mark.wide
@pytest.mark.parametrize("method", ["exact", "binned"])
def test_copies_of_rows_within_their_cluster_leave_the_errors_as_they_are(tmp_path: Path, method: str) -> None:
    frame = predictions(11)
    rows = frame.with_row_index("row")
    once = swept(tmp_path / "once", rows, cluster="row", method=method)["areas"].row(0, named=True)
    copied = pl.concat([rows] * 3)
    often = swept(tmp_path / "often", copied, cluster="row", method=method)["areas"].row(0, named=True)
    independent = swept(tmp_path / "rows", copied, method=method)["areas"].row(0, named=True)
    for name in NAMES:
        assert often[name] == pytest.approx(once[name], rel=1e-12), name
        assert often[f"{name}_se"] == pytest.approx(once[f"{name}_se"], rel=1e-9), name
        assert 1.5 < often[f"{name}_se"] / independent[f"{name}_se"] < 2.0, name
    assert often["log_likelihood_se"] == pytest.approx(once["log_likelihood_se"], rel=1e-9)


def test_rows_that_are_clusters_have_the_errors_of_rows_with_random_class_sizes(tmp_path: Path) -> None:
    frame = predictions(12, 900).with_row_index("row")
    clusters = swept(tmp_path / "clusters", frame, cluster="row")["areas"].row(0, named=True)
    rows = swept(tmp_path / "rows", frame, class_sizes="random")["areas"].row(0, named=True)
    for name in NAMES:
        assert clusters[f"{name}_se"] == pytest.approx(rows[f"{name}_se"], rel=0.005), name


def test_few_positives_and_areas_of_one_have_no_interval_and_say_why(tmp_path: Path) -> None:
    one = pl.DataFrame({"score": [0.1, 0.5, 0.9], "label": [False, True, False]})
    row = swept(tmp_path / "one", one)["areas"].row(0, named=True)
    assert (row["average_precision_lower"], row["undefined_interval"]) == (None, "few_positives")
    perfect = pl.DataFrame({"score": [0.1, 0.2, 0.8, 0.9], "label": [False, False, True, True]})
    row = swept(tmp_path / "perfect", perfect)["areas"].row(0, named=True)
    assert (row["average_precision"], row["roc_auc"]) == (1, 1)
    assert (row["average_precision_lower"], row["undefined_interval"]) == (None, "at_limit")


def test_few_negatives_are_warned_of_as_few_positives_are(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [row / 60 for row in range(60)], "label": [row % 30 != 0 for row in range(60)]})
    run = run_threshold_sweep(tmp_path, frame)
    assert [warning for warning in run.warnings if "negatives" in warning] == [
        "threshold_sweep: there are fewer than 20 negatives: ROC AUC is very uncertain"
    ]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("keys", [{}, {"cluster": "user"}, {"method": "binned"}], ids=["rows", "clusters", "binned"])
def test_an_area_without_spread_has_no_interval_and_says_why(keys: dict[str, str], tmp_path: Path) -> None:
    row = swept(tmp_path, predictions(8).with_columns(score=0.5), **keys)["areas"].row(0, named=True)
    assert row["roc_auc"] == pytest.approx(0.5, rel=1e-12)
    assert (row["roc_auc_lower"], row["roc_auc_upper"], row["undefined_interval"]) == (None, None, "no_spread")
    assert row["average_precision_lower"] < row["average_precision"] < row["average_precision_upper"]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("cluster", [{}, {"cluster": "user"}], ids=["rows", "clusters"])
def test_few_rows_have_a_cell_for_every_score_so_that_binned_is_exact(
    tmp_path: Path,
    cluster: dict[str, str],
    weighted: bool,  # noqa: FBT001
) -> None:
    frame = predictions(13)
    keys: dict[str, Any] = {"by": ["model"], **cluster} | (WEIGHTS if weighted else {})
    exact, binned = (swept(tmp_path / method, frame, method=method, **keys)["areas"] for method in ("exact", "binned"))
    assert exact["average_precision_min"].null_count() == exact.height == 4
    for name in ("average_precision", "roc_auc"):
        for column in (name, f"{name}_se"):
            assert binned[column].to_list() == pytest.approx(exact[column].to_list(), rel=1e-9), column
        assert (binned[f"{name}_min"] <= exact[name]).all()
        assert (binned[f"{name}_max"] >= exact[name]).all()
        assert (binned[f"{name}_max"] - binned[f"{name}_min"] < 1e-12).all()


SHAPES = {
    "even": {"decimals": 0},
    "near 0": {"decimals": 0, "power": 12.0},
    "near 0 and ties": {"decimals": 4, "power": 6.0},
}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("shape", "weighted", "cluster"),
    [
        ("even", False, {}),
        ("even", True, {"cluster": "user"}),
        ("near 0", True, {}),
        ("near 0", False, {"cluster": "user"}),
        ("near 0 and ties", True, {}),
        ("near 0 and ties", False, {"cluster": "user"}),
    ],
)
def test_cells_that_are_made_finer_hold_the_exact_areas_within_the_width(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    shape: str,
    weighted: bool,  # noqa: FBT001
    cluster: dict[str, str],
) -> None:
    frame = predictions(14, 1500, **SHAPES[shape])  # type: ignore[arg-type]
    keys: dict[str, Any] = {"by": ["model"], "thresholds": [0.1, 0.5], **cluster} | (WEIGHTS if weighted else {})
    exact = swept(tmp_path / "exact", frame, **keys)["areas"]
    monkeypatch.setattr(areas, "MOST_CELLS", 256)
    rounds = []

    def counted(*parts: Any) -> Any:  # noqa: ANN401 - as finer
        rounds.append(1)
        return finer(*parts)

    monkeypatch.setattr("pipeline.plan.area_work.finer", counted)
    width = 0.05
    binned = swept(tmp_path / "binned", frame, method="binned", width=width, **keys)["areas"]
    assert rounds or shape == "even"
    for name in ("average_precision", "roc_auc"):
        lowest, highest, middle = (binned[f"{name}{end}"] for end in ("_min", "_max", ""))
        assert (lowest <= exact[name]).all(), name
        assert (highest >= exact[name]).all(), name
        assert (highest - lowest <= width).all(), name
        assert middle.to_list() == pytest.approx(((lowest + highest) / 2).to_list(), rel=1e-12)
        assert binned[f"{name}_se"].to_list() == pytest.approx(exact[f"{name}_se"].to_list(), rel=0.1), name
    for name in ("n", "n_positive", "pr_auc", "pr_auc_se", "log_likelihood", "brier"):
        assert binned[name].equals(exact[name]), name


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("kind", ["constant", "a few floating numbers apart", "enormous"])
@pytest.mark.parametrize("cluster", [{}, {"cluster": "user"}], ids=["rows", "clusters"])
def test_scores_that_cells_can_hardly_part_have_bounds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster: dict[str, str], kind: str
) -> None:
    frame, rng = predictions(15, 1500), np.random.default_rng(15)
    scores = {
        "constant": np.full(1500, 0.5),
        "a few floating numbers apart": 0.5 + 2.0**-53 * rng.integers(0, 40, 1500),
        "enormous": rng.uniform(-0.8e308, 0.8e308, 1500) * 2,
    }[kind]
    frame = frame.with_columns(score=scores)
    monkeypatch.setattr(areas, "MOST_CELLS", 256)
    found = swept(tmp_path, frame, method="binned", width=0.1, thresholds=[0.5], **cluster)["areas"].row(0, named=True)
    ranks = np.unique(scores, return_inverse=True)[1]  # the order is all that matters, and their sum is finite
    wanted = average_precision_score(frame["label"], ranks)
    assert found["average_precision_min"] <= wanted <= found["average_precision_max"]
    assert found["average_precision_max"] - found["average_precision_min"] <= 0.1


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("method", ["exact", "binned"])
def test_wrong_or_missing_statistics_of_the_files_change_only_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    from pipeline.sources.source import Source

    frame = predictions(16, 1200, decimals=0)
    monkeypatch.setattr(areas, "MOST_CELLS", 256)
    made = []
    for number, span in enumerate([None, (0.4, 0.5), (-5.0, 900.0)]):
        monkeypatch.setattr(Source, "span", lambda *_, span=span: span)
        made.append(swept(tmp_path / str(number), frame, method=method, thresholds=[0.5], width=0.02)["areas"])
    wanted = average_precision_score(frame["label"], frame["score"])
    for found in made:
        row = found.row(0, named=True)
        if method == "exact":
            assert row["average_precision"] == pytest.approx(wanted, rel=1e-12)
        else:
            assert row["average_precision_min"] <= wanted <= row["average_precision_max"]
            assert row["average_precision_max"] - row["average_precision_min"] <= 0.02


def test_many_clusters_share_replicates(tmp_path: Path) -> None:
    frame = predictions(17, 2500).with_row_index("row")
    run = run_threshold_sweep(tmp_path / "many", frame, cluster="row", thresholds=[0.3])
    counts = read_table(run, "counts", SWEEP)
    assert counts["replicate"].n_unique() == 64
    row = read_table(run, "threshold_sweep_areas", SWEEP).row(0, named=True)
    rows = swept(tmp_path / "rows", frame, class_sizes="random", thresholds=[0.3])["areas"].row(0, named=True)
    assert row["average_precision_se"] == pytest.approx(rows["average_precision_se"], rel=0.4)


@pytest.mark.wide
@pytest.mark.parametrize("thresholds", ["distinct", [0.1, 0.4, 0.8]], ids=["distinct", "list"])
def test_groups_that_are_taken_a_few_at_a_time_have_the_areas_of_all_at_once(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    thresholds: Any,  # noqa: ANN401 - any form
) -> None:
    frame = predictions(19, 400).with_columns(
        model=pl.when(pl.col("user") < 4).then(None).otherwise(pl.col("user") % 7)
    )
    keys: dict[str, Any] = {"by": ["model"], "thresholds": thresholds} | WEIGHTS
    whole = swept(tmp_path / "whole", frame, **keys)["areas"]
    monkeypatch.setattr("pipeline.metrics.uncertainty.replicates.BLOCK_CELLS", 1)
    assert_frame_equal(swept(tmp_path / "parts", frame, **keys)["areas"], whole, rel_tol=1e-11, abs_tol=1e-14)
    for row in whole.filter(pl.col("grouping") == "model").iter_rows(named=True):
        own = frame.filter(pl.col("model").eq_missing(row["model"]))
        scores, labels, weights = arrays(own, weighted=True)
        levels = np.unique(scores).tolist() if thresholds == "distinct" else thresholds
        assert row["pr_auc"] == pytest.approx(value(pr_auc_at(levels, ">="), scores, labels, weights), abs=1e-13)


def test_bounds_that_cells_do_not_narrow_come_from_the_rows_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(8)
    frame = predictions(18, 4000).with_columns(
        score=np.where(rng.uniform(size=4000) < 0.5, 0.7 + 1e-13 * rng.uniform(size=4000), rng.uniform(size=4000))
    )
    monkeypatch.setattr(areas, "MOST_CELLS", 256)
    found = swept(tmp_path, frame, method="binned", width=1e-6, thresholds=[0.5])["areas"].row(0, named=True)
    for name, score in (("average_precision", average_precision_score), ("roc_auc", roc_auc_score)):
        wanted = score(frame["label"], frame["score"])
        assert found[f"{name}_min"] <= wanted <= found[f"{name}_max"]
        assert found[f"{name}_max"] - found[f"{name}_min"] <= 1e-6
        assert found[name] == pytest.approx(wanted, rel=1e-12)


def test_without_uncertainty_clusters_have_no_standard_errors(tmp_path: Path) -> None:
    frame = predictions(19, 500).with_columns(c=pl.int_range(500) % 20)
    found = swept(tmp_path, frame, cluster="c", uncertainty="none", thresholds=[0.5])["areas"].row(0, named=True)
    assert {found[f"{name}_se"] for name in ("average_precision", "pr_auc", "roc_auc", "log_likelihood")} == {None}
    assert isinstance(found["average_precision"], float)


@pytest.mark.wide
def test_rows_put_in_order_in_memory_and_by_the_engine_give_the_same_bits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = predictions(20, 3000, decimals=3).with_columns(
        score=pl.when(pl.col("user") < 9).then(-pl.col("score")).otherwise(pl.col("score")),
        model=pl.when(pl.col("user") % 5 == 0)
        .then(None)
        .otherwise(pl.col("user") % 3 + pl.int_range(3000) % 50 * 10.0),
    )
    monkeypatch.setattr(areas, "PART_ROWS", 70)
    in_memory = swept(tmp_path / "memory", frame, by=[[], ["model"]])["areas"]
    monkeypatch.setattr(areas, "SHARE_OF_MEMORY", 0.0)
    streamed = swept(tmp_path / "engine", frame, by=[[], ["model"]])["areas"]
    assert_frame_equal(in_memory, streamed, check_exact=True)
    assert in_memory.height == 1 + frame["model"].n_unique() > 100


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("share", "further", "in_memory"),
    [
        (1.0, {}, True),
        (1.0, {"by": ["model"]}, True),
        (0.0, {}, False),
        (1.0, WEIGHTS, False),
        (1.0, {"cluster": "user"}, False),
        (1.0, {"by": ["user"]}, False),
    ],
    ids=["bare", "few groups", "no memory", "weights", "clusters", "many groups"],
)
def test_only_bare_rows_of_few_groups_that_fit_into_a_share_of_the_memory_are_put_in_order_in_memory(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    share: float,
    further: dict[str, Any],
    in_memory: bool,  # noqa: FBT001
) -> None:
    asked = []

    def noted(*given: Any) -> exp.Select:  # noqa: ANN401 - whatever it takes
        asked.append(given)
        return rows_in_order(*given)

    monkeypatch.setattr(areas, "SHARE_OF_MEMORY", share)
    monkeypatch.setattr(areas, "PART_ROWS", 100)
    monkeypatch.setattr(areas, "MOST_GROUPS", 3)
    monkeypatch.setattr(areas, "rows_in_order", noted)
    swept(tmp_path, predictions(21), thresholds=[0.5], **further)
    assert in_memory == (not asked)


def test_rows_that_change_while_they_are_read_end_in_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def changed(_: object, *_given: object) -> None:
        message = "a group has more rows than its size"
        raise SizesDifferError(message)

    monkeypatch.setattr(PackedScores, "add", changed)
    with pytest.raises(DataError, match="changed while it was read"):
        swept(tmp_path, predictions(22), thresholds=[0.5])


@pytest.mark.wide
def test_own_bounds_of_weighted_rows_leave_what_rounding_of_light_positives_can_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(9)
    frame = predictions(23, 4000).with_columns(score=0.7 + 1e-13 * rng.uniform(size=4000))
    frame = frame.with_columns(w=pl.when("label").then(0.001).otherwise(3.0))
    monkeypatch.setattr(areas, "MOST_CELLS", 256)
    found = swept(tmp_path, frame, method="binned", width=1e-9, thresholds=[0.5], **WEIGHTS)["areas"].row(0, named=True)
    scores, labels, weights = arrays(frame, weighted=True)
    slack = 4e-16 * (1 + np.sqrt(4000)) * weights.sum() / weights[labels].sum()
    for name, score in (("average_precision", average_precision_score), ("roc_auc", roc_auc_score)):
        wanted = score(labels, scores, sample_weight=weights)
        assert found[f"{name}_min"] <= wanted <= found[f"{name}_max"]
    assert found["roc_auc_max"] - found["roc_auc_min"] == pytest.approx(2 * slack, rel=1e-3)


def test_areas_are_those_of_the_weights_as_they_are_counted(tmp_path: Path) -> None:
    rng = np.random.default_rng(10)
    frame = predictions(24, 2000, decimals=0).with_columns(w=pl.Series(1e-6 + 4e-16 * rng.uniform(0.5, 1.2, 2000)))
    found = swept(tmp_path, frame, thresholds=[0.5], **WEIGHTS)["areas"].row(0, named=True)
    scores, labels, weights = arrays(frame, weighted=True)
    counted = np.rint(weights * 1e15)
    assert len(set(counted.tolist())) == 1
    for name, score in (("average_precision", average_precision_score), ("roc_auc", roc_auc_score)):
        assert found[name] == pytest.approx(score(labels, scores, sample_weight=counted), rel=2e-14)


def rows_of_classes(positives: int, negatives: int, weight: float = 1.0) -> pl.DataFrame:
    """Rows of overlapping scores; the first positive has the weight."""
    rng = np.random.default_rng(positives + negatives)
    label = np.arange(positives + negatives) < positives
    heavy = np.where(np.arange(len(label)) == 0, weight, 1.0)
    return pl.DataFrame({"score": rng.standard_normal(len(label)) + label, "label": label, "weight": heavy})


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    ("positives", "negatives", "weight", "wanted"),
    [
        (19, 300, None, "few_events_of_interest"),
        (20, 300, None, "good"),
        (300, 19, None, "few_events_of_interest"),
        (300, 20, None, "good"),
        (20, 300, 1.0, "good"),
        (25, 300, 9.0, "few_events_of_interest"),
        (60, 300, 3.0, "good"),
    ],
)
def test_areas_of_few_rows_of_a_class_are_marked(
    tmp_path: Path, positives: int, negatives: int, weight: float | None, wanted: str
) -> None:
    """25 positives of which one weighs 9 count as (33)² / 105 = 10.4."""
    frame = rows_of_classes(positives, negatives, weight or 1.0)
    frame = frame if weight else frame.drop("weight")
    assert swept(tmp_path, frame)["areas"]["interval_quality"].to_list() == [wanted]


def test_areas_of_clusters_with_few_positives_are_marked_unless_something_is_worse(tmp_path: Path) -> None:
    for clusters, wanted in ((30, "few_events_of_interest"), (8, "few_clusters")):
        frame = rows_of_classes(15, 345).drop("weight").with_columns(user=pl.int_range(360) % clusters)
        areas = swept(tmp_path / str(clusters), frame, cluster="user")["areas"]
        assert areas["interval_quality"].to_list() == [wanted]
