"""threshold_sweep on the scores of real classifiers, beside scikit-learn's numbers and those of the published area."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import run_stages, tables_made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TOLERANCE = 1e-12
TABLES = ("curve", "areas", "operating_points", "averages")
CELLS = {"tp": "TP", "fp": "FP", "fn": "FN", "tn": "TN"}
AREAS = {
    "n": "n",
    "n_positive": "n_positive",
    "average_precision": "average_precision",
    "roc_auc": "roc_auc",
    "brier": "brier",
    "log_likelihood": "mean_log_likelihood_clipped_1e-15",
}
RECALLS = (0.5, 0.8, 0.9, 0.95, 0.99, 1.0)
FALLING = [round(0.05 * step, 2) for step in range(1, 20)]
DIGITS = "dataset = 'digits'"

Tables = dict[str, pl.DataFrame]
Expected = dict[str, Any]


@pytest.fixture(scope="session")
def folder(real_data: Path) -> Path:
    return real_data / "predictions_real"


@pytest.fixture(scope="session")
def expected(folder: Path) -> Expected:
    found: Expected = json.loads((folder / "expected.json").read_text(encoding="utf-8"))
    return found


@pytest.fixture(scope="session")
def levels(expected: Expected) -> list[float]:
    """The thresholds of the expected counts."""
    return [row["threshold"] for row in next(iter(expected["by_model_group"].values()))["at_thresholds_ge"]]


def run(folder: Path, output: Path, *, where: str | None = None, **keys: Any) -> Tables:  # noqa: ANN401
    source: dict[str, Any] = {"path": str(folder / "predictions.parquet"), "columns": {"id": "id"}}
    source |= {"where": where} if where else {}
    stage = {"kind": "threshold_sweep", "predictions": source, "by": [["model", "group"]], "duplicates": "keep"}
    published = run_stages({"output": str(output), "stages": [stage | keys]})
    return tables_made(published, "threshold_sweep", TABLES)


@pytest.fixture(scope="session")
def distinct(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """Every score as threshold."""
    points = [{"beta": 1}, *({"min_recall": each} for each in RECALLS)]
    return run(folder, tmp_path_factory.mktemp("distinct"), operating_points=points)


def groups(expected: Expected) -> Iterator[tuple[pl.Expr, Expected]]:
    for key, wanted in expected["by_model_group"].items():
        model, group = key.split("|")
        yield (pl.col("model") == model) & (pl.col("group") == group), wanted


def close(value: float | None) -> Any:  # noqa: ANN401 - of pytest
    return None if value is None else pytest.approx(value, rel=TOLERANCE, abs=TOLERANCE)


def assert_counts(curve: pl.DataFrame, wanted: list[Expected]) -> None:
    assert curve.height == len(wanted)
    for found, row in zip(curve.iter_rows(named=True), wanted, strict=True):
        assert found["threshold"] == row["threshold"]
        assert {theirs: found[ours] for ours, theirs in CELLS.items()} == {name: row[name] for name in CELLS.values()}
        for name in ("precision", "recall", "f1"):
            assert found[name] == close(row[name]), name


def test_areas_and_losses_of_every_group(distinct: Tables, expected: Expected) -> None:
    assert distinct["areas"].height == len(expected["by_model_group"]) == 18
    for own, wanted in groups(expected):
        found = distinct["areas"].filter(own).row(0, named=True)
        for ours, theirs in AREAS.items():
            assert found[ours] == close(wanted[theirs]), ours
        assert found["average_precision"] == close(wanted["average_precision_numpy_tie_aware"])
        assert found["n_positive"] / found["n"] == close(wanted["prevalence"])


def test_the_trapezoid_area_of_scikit_learn_differs_by_its_first_step_alone(
    distinct: Tables, expected: Expected
) -> None:
    for own, wanted in groups(expected):
        curve = distinct["curve"].filter(own)
        assert curve.height == wanted["n_distinct_scores"] == wanted["n_curve_points"]
        extremes = curve.filter(pl.col("threshold").is_in([0.0, 1.0]))
        assert (extremes.height > 0) == (wanted["n_scores_exactly_0_or_1"] > 0)
        top = curve.sort("threshold").row(-1, named=True)
        step = top["recall"] * (1 - top["precision"]) / 2
        assert distinct["areas"].filter(own)["pr_auc"][0] + step == close(wanted["pr_auc_trapezoid"])


def test_ties_enter_together_not_in_the_order_of_the_rows(distinct: Tables, expected: Expected) -> None:
    differ = 0
    for own, wanted in groups(expected):
        unaware = wanted["ap_rank_formula_ties_in_row_order_not_tie_aware"]
        differ += abs(distinct["areas"].filter(own)["average_precision"][0] - unaware) > 1e-6
    assert differ >= 6


def test_best_f1_and_precision_at_fixed_recall(distinct: Tables, expected: Expected) -> None:
    for own, wanted in groups(expected):
        points = {row["criterion"]: row for row in distinct["operating_points"].filter(own).iter_rows(named=True)}
        best = points["max_f1"]
        assert best["f1"] == close(wanted["best_f1"]["f1"])
        same = distinct["curve"].filter(own, (pl.col("f1") - wanted["best_f1"]["f1"]).abs() < TOLERANCE)
        assert best["threshold"] == same["threshold"].min()
        theirs = same.filter((pl.col("threshold") - wanted["best_f1"]["threshold"]).abs() < TOLERANCE)
        for name in ("precision", "recall"):
            assert theirs[name][0] == close(wanted["best_f1"][name]), name
        assert {f"min_recall={float(each)!r}" for each in wanted["precision_at_fixed_recall"]} < set(points)
        for recall, precision in wanted["precision_at_fixed_recall"].items():
            assert points[f"min_recall={float(recall)!r}"]["precision"] == close(precision), recall


def test_counts_and_ratios_at_fixed_thresholds(
    folder: Path, expected: Expected, levels: list[float], tmp_path: Path
) -> None:
    tables = run(folder, tmp_path, thresholds=levels)
    for own, wanted in groups(expected):
        assert_counts(tables["curve"].filter(own), wanted["at_thresholds_ge"])


def test_the_published_area_with_its_standard_error(folder: Path, expected: Expected, tmp_path: Path) -> None:
    tables = run(folder, tmp_path, thresholds=FALLING, boundary=">")
    for own, wanted in groups(expected):
        addendum, found = wanted["addendum_auc_thresholds_0.05_to_0.95"], tables["areas"].filter(own).row(0, named=True)
        assert found["pr_auc"] == close(addendum["auc"])
        assert found["pr_auc_se_true_points"] == close(addendum["standard_error_of_mean"])
        assert found["n_positive"] == addendum["n_positive"]
        used = tables["curve"].filter(own, pl.col("tp") + pl.col("fp") > 0).height
        assert used == addendum["thresholds_used"]


@pytest.fixture(scope="session")
def pooled(folder: Path, levels: list[float], tmp_path_factory: pytest.TempPathFactory) -> Tables:
    """The digits by model and by model and digit."""
    return run(
        folder,
        tmp_path_factory.mktemp("pooled"),
        where=DIGITS,
        by=[["model"], ["model", "group"]],
        thresholds=levels,
        averages=["micro", "macro"],
        average_over=["group"],
    )


def test_digits_pooled(pooled: Tables, expected: Expected) -> None:
    wholes = {name: table.filter(pl.col("grouping") == "model") for name, table in pooled.items()}
    for model, wanted in expected["micro_pooled_over_groups"].items():
        own = pl.col("model") == model
        found = wholes["areas"].filter(own).row(0, named=True)
        for ours in ("n", "n_positive", "average_precision", "roc_auc"):
            assert found[ours] == close(wanted[ours]), ours
        assert found["average_precision"] == close(wanted["average_precision_numpy_tie_aware"])
        assert_counts(wholes["curve"].filter(own), wanted["at_thresholds_ge"])
        micro = pooled["averages"].filter(own, pl.col("average") == "micro", pl.col("threshold").is_null())
        assert micro["average_precision"].to_list() == [close(wanted["average_precision"])]


def test_means_over_digits(pooled: Tables, expected: Expected) -> None:
    for model, wanted in expected["macro_mean_over_digit_groups"].items():
        own = (pl.col("model") == model) & (pl.col("average") == "macro") & pl.col("threshold").is_null()
        found = pooled["averages"].filter(own).row(0, named=True)
        assert (found["averaged"], found["n_groups"], found["n_undefined"]) == ("group", 5, 0)
        for name, value in wanted.items():
            assert found[name] == close(value), name


def test_the_difference_of_two_models(distinct: Tables, expected: Expected) -> None:
    paired = expected["paired"]
    rows = distinct["areas"].filter(pl.col("group") == paired["group"])
    areas = dict(zip(rows["model"].to_list(), rows["average_precision"].to_list(), strict=True))
    found = areas["logistic_regression"] - areas["random_forest"]
    assert found == close(paired["difference_in_average_precision_lr_minus_rf"])


def test_certified_bounds_hold_the_areas(
    folder: Path, expected: Expected, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With so few cells that they have to be made finer."""
    from pipeline.plan import area_work

    monkeypatch.setattr(area_work, "MOST_CELLS", 4096)
    found = run(folder, tmp_path, method="binned", width=2e-2, thresholds=[0.5])["areas"]
    for own, wanted in groups(expected):
        row = found.filter(own).row(0, named=True)
        for name in ("average_precision", "roc_auc"):
            assert row[f"{name}_min"] <= wanted[name] <= row[f"{name}_max"]
            assert row[f"{name}_max"] - row[f"{name}_min"] <= 2e-2


def test_items_repeat_over_models_and_groups_only(folder: Path, tmp_path: Path) -> None:
    from pipeline.base.errors import DataError

    keys: dict[str, Any] = {"thresholds": [0.5], "duplicates": "error"}
    assert run(folder, tmp_path / "a", **keys)["areas"].height == 18
    with pytest.raises(DataError, match="repeat"):
        run(folder, tmp_path / "b", by=[["model"]], **keys)
