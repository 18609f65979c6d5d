"""Curves and operating points of whole runs, against brute force; and what is refused, dropped or counted."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from running import SWEEP, read_table, rows_by_status, run_stages, run_threshold_sweep, stage_config, swept
from sklearn.metrics import confusion_matrix, f1_score, precision_score, recall_score

from pipeline.base.errors import ConfigError, DataError
from pipeline.engines import duckdb
from pipeline.plan import area_work, counts

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    import pipeline

CELLS = ("tp", "fp", "fn", "tn")
RATIOS = ("precision", "recall", "f1", "fpr")
EVEN = {"start": -2.0, "stop": 3.0, "count": 21}


def predictions(seed: int = 1, rows: int = 400, *, decimals: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    labels = rng.uniform(size=rows) < 0.3
    return pl.DataFrame(
        {
            "id": np.arange(rows),
            "score": np.round(rng.normal(labels * 1.2, 1.0), decimals),
            "label": labels,
            "w": np.round(rng.uniform(0, 4, rows), 2),
            "model": rng.choice(["a", "b", "c"], rows),
            "user": rng.integers(0, 30, rows),
        }
    )


def by_hand(
    frame: pl.DataFrame, thresholds: NDArray[np.float64], boundary: str, weights: str | None = None
) -> list[dict[str, Any]]:
    """Every row of the curve by comparing every score with every threshold."""
    scores, labels = frame["score"].to_numpy(), frame["label"].to_numpy()
    rows = []
    for threshold in thresholds:
        kept = scores >= threshold if boundary == ">=" else scores > threshold
        masks = (kept & labels, kept & ~labels, ~kept & labels, ~kept & ~labels)
        row: dict[str, Any] = {"threshold": threshold} | dict(zip(CELLS, map(int, map(sum, masks)), strict=True))
        sums = [float(frame[weights].to_numpy()[mask].sum()) if weights else float(mask.sum()) for mask in masks]
        row |= {f"{cell}_weight": value if weights else None for cell, value in zip(CELLS, sums, strict=True)}
        tp, fp, fn, tn = sums

        def share(part: float, whole: float) -> float | None:
            return part / whole if whole > 0 else None

        row["precision"], row["recall"] = share(tp, tp + fp), share(tp, tp + fn)
        row["f1"], row["fpr"] = share(2 * tp, 2 * tp + fp + fn), share(fp, fp + tn)
        rows.append(row)
    return rows


def assert_curve(found: pl.DataFrame, wanted: list[dict[str, Any]]) -> None:
    assert found.height == len(wanted)
    for actual, row in zip(found.iter_rows(named=True), wanted, strict=True):
        for name, expected in row.items():
            if expected is None:
                assert actual[name] is None, name
            else:
                assert actual[name] == pytest.approx(expected, rel=1e-12, abs=1e-14), name


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("thresholds", "boundary", "weighted"),
    [
        ("distinct", ">=", False),
        ("distinct", ">", True),
        ([-1.0, 0.5, 0.55, 9.0], ">=", True),
        ([-1.0, 0.5, 0.55, 9.0], ">", False),
        (EVEN, ">=", True),
        (EVEN, ">", False),
    ],
)
def test_the_curve_is_that_of_every_score_compared_with_every_threshold(
    tmp_path: Path,
    thresholds: Any,  # noqa: ANN401 - any form
    boundary: str,
    weighted: bool,  # noqa: FBT001
) -> None:
    frame = predictions()
    columns = {"predictions": {"columns": {"weight": "w"}}} if weighted else {}
    found = swept(tmp_path, frame, thresholds=thresholds, boundary=boundary, **columns)["curve"]
    forms = {"distinct": np.unique(frame["score"].to_numpy())}
    values = forms.get(str(thresholds))
    if values is None:
        values = np.linspace(-2, 3, 21) if thresholds is EVEN else np.array(thresholds)
    assert_curve(found, by_hand(frame, values, boundary, "w" if weighted else None))


def test_counts_and_ratios_are_those_of_scikit_learn(tmp_path: Path) -> None:
    frame = predictions(2)
    columns = {"columns": {"weight": "w"}}
    found = swept(tmp_path, frame, thresholds=[0.0, 0.7], predictions=columns)["curve"]
    truth, weight = frame["label"].to_numpy(), frame["w"].to_numpy()
    for row in found.iter_rows(named=True):
        predicted = frame["score"].to_numpy() >= row["threshold"]
        tn, fp, fn, tp = confusion_matrix(truth, predicted).ravel()
        assert tuple(row[cell] for cell in CELLS) == (tp, fp, fn, tn)
        for name, score in (("precision", precision_score), ("recall", recall_score), ("f1", f1_score)):
            assert row[name] == pytest.approx(score(truth, predicted, sample_weight=weight), rel=1e-12)


def test_0_over_0_is_null_and_says_why(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.1, 0.2], "label": [True, True]})
    rows = swept(tmp_path / "a", frame, thresholds=[0.1, 0.9])["curve"].to_dicts()
    assert [row["undefined"] for row in rows] == ["no_negative", "no_prediction"]
    assert [row["precision"] for row in rows] == [1, None]
    assert [row["fpr"] for row in rows] == [None, None]
    rows = swept(tmp_path / "b", frame.with_columns(label=False), thresholds=[0.1])["curve"].to_dicts()
    assert [rows[0][name] for name in (*RATIOS, "undefined")] == [0, None, 0, 1, "no_positive"]


def test_scores_of_both_zeros_are_one_threshold(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.0, -0.0, -1.0], "label": [True, False, False]})
    curve = swept(tmp_path, frame)["curve"]
    assert curve["threshold"].to_list() == [-1.0, 0.0]
    assert curve.row(1, named=True)["fp"] == 1


def test_labels_may_be_numbers_or_boolean(tmp_path: Path) -> None:
    frame = predictions(3, 50)
    made = [
        swept(tmp_path / str(kind), frame.with_columns(pl.col("label").cast(kind)))["curve"]
        for kind in (pl.Boolean, pl.Int8, pl.UInt32, pl.Int64)
    ]
    assert all(each.equals(made[0]) for each in made)


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    ("column", "value", "words"),
    [
        ("label", None, "'label' is NULL"),
        ("label", 2, "'label' is NULL"),
        ("label", -1, "first at row 8"),
        ("score", None, "score"),
        ("score", math.nan, "score"),
        ("score", math.inf, "score"),
        ("weight", None, "'weight' is NULL or not finite in 1 row"),
        ("weight", math.nan, "'weight' is NULL or not finite in 1 row"),
        ("weight", -0.5, "'weight' is outside 0 to 1e+06 in 1 row"),
        ("weight", 1e6 + 1, "'weight' is outside 0 to 1e+06 in 1 row"),
        ("weight", 1e-9, "'weight' is above 0 but below 1e-06 in 1 row"),
        ("user", None, "'user' is NULL"),
    ],
)
def test_a_value_that_cannot_be_is_refused(tmp_path: Path, column: str, value: Any, words: str) -> None:  # noqa: ANN401
    frame = predictions(4, 20).rename({"w": "weight"}).with_columns(pl.col("label").cast(pl.Int64))
    values = frame[column].to_list()
    frame = frame.with_columns(pl.Series(column, [*values[:7], value, *values[8:]], dtype=frame.schema[column]))
    with pytest.raises(DataError) as caught:
        run_threshold_sweep(tmp_path, frame, cluster="user")
    assert words in str(caught.value)
    assert "predictions" in str(caught.value)


def test_every_input_row_is_accounted_for(tmp_path: Path) -> None:
    frame = predictions(5, 60).with_columns(
        score=pl.Series([None, math.nan, math.inf, -math.inf, *np.linspace(0, 1, 56)], dtype=pl.Float64)
    )
    run = run_threshold_sweep(tmp_path, frame, invalid_scores="drop", predictions={"where": "id < 50"})
    found = rows_by_status(run, "predictions", SWEEP)
    assert found == {"used": 46, "null_score": 1, "nan_score": 1, "infinite_score": 2, "where": 10}
    curve = read_table(run, "threshold_sweep_curve", SWEEP)
    assert curve.select(pl.sum_horizontal(CELLS)).to_series().unique().to_list() == [46]


def test_a_null_label_of_a_dropped_score_is_not_asked_for(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [None, 0.1, 0.9], "label": [True, False, True]})
    run = run_threshold_sweep(tmp_path, frame, invalid_scores="drop")
    assert rows_by_status(run, "predictions", SWEEP) == {"used": 2, "null_score": 1}


def test_rows_that_repeat_an_item_are_refused_unless_they_are_kept(tmp_path: Path) -> None:
    frame = pl.concat([predictions(6, 20), predictions(6, 20)[:3]])
    mapped: dict[str, Any] = {"predictions": {"columns": {"id": "id"}}}
    with pytest.raises(DataError, match=r"id repeats: id = 0 \(2 rows\); id = 1"):
        run_threshold_sweep(tmp_path / "a", frame, **mapped)
    assert sum(swept(tmp_path / "e", frame, thresholds=[0.0])["curve"].select(CELLS).row(0)) == 23, "id is not mapped"
    kept = swept(tmp_path / "b", frame, duplicates="keep", thresholds=[0.0], **mapped)["curve"]
    assert sum(kept.select(CELLS).row(0)) == 23
    other = pl.concat([frame[:20].with_columns(model=pl.lit("x")), frame[:20].with_columns(model=pl.lit("y"))])
    both = swept(tmp_path / "c", other, by=[["model"]], thresholds=[0.0], **mapped)["curve"]
    assert both["model"].to_list() == ["x", "y"]
    with pytest.raises(ConfigError, match="would keep one label of several"):
        run_threshold_sweep(tmp_path / "d", frame, duplicates="max")


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"operating_points": []}, "at least one"),
        ({"operating_points": [{"beta": 1}, {"beta": 1.0}]}, "each criterion once"),
        ({"operating_points": [{"beta": 1, "confidence": 0.95}]}, "confidence goes with"),
        ({"averages": ["macro"]}, "averages need groups"),
        ({"averages": ["macro", "macro"], "by": ["model"]}, "names one twice"),
        ({"average_over": ["model"], "by": ["model"]}, "goes with averages"),
        ({"average_over": ["x"], "by": ["model"], "averages": ["macro"]}, "x, which by lacks"),
        ({"width": 0}, "width"),
        ({"method": "fast"}, "method"),
        ({"averages": ["mean"], "by": ["model"]}, "averages"),
        ({"averages": ["micro"], "by": [["model"]]}, "add [] to by"),
        ({"averages": ["micro"], "by": [["model", "user"]], "average_over": ["user"]}, "add ['model'] to by"),
        (
            {"averages": ["macro"], "by": [["model"], ["user"]], "average_over": ["user", "model"]},
            "no grouping in by has user and model together",
        ),
    ],
)
def test_a_config_that_cannot_be_is_refused(tmp_path: Path, keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        run_threshold_sweep(tmp_path, predictions(7, 20), **keys)
    assert words in str(caught.value)


def test_too_many_distinct_scores_ask_for_a_number_of_thresholds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert counts.MAX_DISTINCT == 100_000
    monkeypatch.setattr(counts, "MAX_DISTINCT", 30)
    frame = predictions(8, 60, decimals=9)
    with pytest.raises(DataError) as caught:
        run_threshold_sweep(tmp_path / "a", frame)
    assert "one group has 60 distinct scores, the limit is 30" in str(caught.value)
    assert "count = 1000" in str(caught.value.remedy)
    assert swept(tmp_path / "b", frame, thresholds=EVEN)["areas"]["n"].to_list() == [60]


CRITERIA: dict[str, dict[str, float]] = {
    "max_f1": {"beta": 1},
    "max_f0.5": {"beta": 0.5},
    "min_precision=0.6": {"min_precision": 0.6},
    "min_recall=0.7": {"min_recall": 0.7},
}


@pytest.mark.parametrize("weighted", [False, True])
def test_operating_points_are_the_best_of_all_thresholds(
    tmp_path: Path,
    weighted: bool,  # noqa: FBT001
) -> None:
    frame = predictions(9)
    columns = {"predictions": {"columns": {"weight": "w"}}} if weighted else {}
    points = swept(tmp_path, frame, operating_points=[*CRITERIA.values()], **columns)["operating_points"]
    rows = by_hand(frame, np.unique(frame["score"].to_numpy()), ">=", "w" if weighted else None)

    def quality(row: dict[str, Any], criterion: dict[str, float]) -> float:
        if "min_precision" in criterion:
            return row["recall"] if row["precision"] >= criterion["min_precision"] else -1.0
        if "min_recall" in criterion:
            return row["precision"] if row["recall"] >= criterion["min_recall"] else -1.0
        square = criterion["beta"] ** 2
        precision, recall = row["precision"], row["recall"]
        return (1 + square) * precision * recall / (square * precision + recall) if recall else 0.0

    assert set(points["criterion"]) == set(CRITERIA)
    for name, criterion in CRITERIA.items():
        best = max(rows, key=lambda row: (round(quality(row, criterion), 12), -row["threshold"]))
        assert_curve(points.filter(criterion=name), [best])


def test_a_criterion_that_no_threshold_meets_has_a_row_of_nulls(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.9, 0.1], "label": [False, True]})
    points = swept(tmp_path, frame, operating_points=[{"min_precision": 0.9}, {"min_recall": 1.0}])["operating_points"]
    rows = {row["criterion"]: row for row in points.iter_rows(named=True)}
    assert rows["min_precision=0.9"]["threshold"] is None
    assert rows["min_precision=0.9"]["undefined"] == "not_reached"
    assert rows["min_recall=1.0"]["precision"] == 0.5


def test_counts_of_groups_add_up_to_the_total_and_are_those_of_the_groups_alone(tmp_path: Path) -> None:
    frame = predictions(10)
    tables = swept(tmp_path / "all", frame, by=["model"], thresholds=EVEN)
    total = tables["curve"].filter(pl.col("grouping") == "all")
    parts = tables["curve"].filter(pl.col("grouping") == "model")
    sums = parts.group_by("threshold").agg(pl.col(CELLS).sum()).sort("threshold")
    assert sums.equals(total.select("threshold", *CELLS))
    for name in ("a", "b", "c"):
        alone = swept(tmp_path / name, frame.filter(pl.col("model") == name), thresholds=EVEN)
        own = {table: tables[table].filter(pl.col("model") == name).drop("model", "grouping") for table in alone}
        assert own["curve"].equals(alone["curve"].drop("grouping"))
        for found, wanted in zip(own["areas"].row(0), alone["areas"].drop("grouping").row(0), strict=True):
            assert found == (pytest.approx(wanted, rel=1e-11) if isinstance(wanted, float) else wanted)


def test_a_null_group_and_floating_groups_of_both_zeros_are_groups(tmp_path: Path) -> None:
    frame = predictions(11, 200).with_columns(site=pl.Series([-0.0, 0.0, 1.5, None, math.nan] * 40, dtype=pl.Float64))
    run = run_threshold_sweep(tmp_path, frame, by=["site"], thresholds=EVEN)
    found = read_table(run, "threshold_sweep_areas", SWEEP)
    sizes = {(row["grouping"], row["site"]): row["n"] for row in found.iter_rows(named=True)}
    assert sizes == {("all", None): 200, ("site", 0.0): 80, ("site", 1.5): 40, ("site", None): 80}
    assert found["average_precision"].null_count() == 0
    outcomes = read_table(run, "threshold_sweep_outcomes", SWEEP)
    for table in (found, outcomes):  # one group, one name: the sign of a row does not decide
        zeros = table.filter(pl.col("site") == 0.0)["site"].to_list()
        assert {math.copysign(1.0, zero) for zero in zeros} == {1.0}
    assert any("floating" in warning for warning in run.notes)
    curve = read_table(run, "threshold_sweep_curve", SWEEP)
    assert_curve(
        curve.filter(pl.col("site") == 0.0), by_hand(frame.filter(pl.col("site") == 0), np.linspace(-2, 3, 21), ">=")
    )


def test_a_single_precision_score_is_compared_as_double_with_a_warning(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": pl.Series([0.1, 0.7], dtype=pl.Float32), "label": [True, False]})
    run = run_threshold_sweep(tmp_path, frame, thresholds=[0.1, 0.7])
    assert any("single precision" in warning for warning in run.notes)
    curve = read_table(run, "threshold_sweep_curve", SWEEP)
    assert curve.select("tp", "fp").rows() == [(1, 1), (0, 0)]  # 0.7f lies below 0.7


def test_whole_numbers_that_are_rounded_are_warned_of(tmp_path: Path) -> None:
    rows = range(60)
    for name, lowest in (("beyond", 2**60), ("within", 2**53 - 59)):
        frame = pl.DataFrame({"score": [lowest + row for row in rows], "label": [row % 3 == 0 for row in rows]})
        run = run_threshold_sweep(tmp_path / name, frame)
        said = [warning for warning in run.warnings if "9,007,199,254,740,992" in warning]
        assert len(said) == (name == "beyond")
        n_thresholds = read_table(run, "threshold_sweep_curve", SWEEP).height
        assert (n_thresholds < 60) == (name == "beyond")


EMPTY = predictions().clear()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("method", ["exact", "binned"])
@pytest.mark.parametrize("cluster", [None, "user"])
def test_an_empty_file_has_counts_of_zero(tmp_path: Path, cluster: str | None, method: str) -> None:
    keys = {"allow_empty": True} | ({"cluster": cluster} if cluster else {})
    tables = swept(
        tmp_path / "a", EMPTY, thresholds=[0.0, 1.0], by=["model"], averages=["macro"], method=method, **keys
    )
    assert tables["curve"].select("grouping", *CELLS, "undefined").rows() == [("all", 0, 0, 0, 0, "no_prediction")] * 2
    area = tables["areas"].row(0, named=True)
    assert (area["n"], area["n_positive"], area["undefined"]) == (0, 0, "no_positive")
    assert [area[name] for name in ("average_precision", "pr_auc", "roc_auc", "log_likelihood", "brier")] == [None] * 5
    assert tables["operating_points"]["threshold"].to_list() == [None]
    assert tables["averages"].is_empty()
    distinct = swept(tmp_path / "b", EMPTY, method=method, **keys)
    assert distinct["curve"].is_empty()
    assert distinct["areas"]["n"].to_list() == [0]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("thresholds", "method", "cluster"),
    [("distinct", "exact", None), ("distinct", "binned", "user"), ([0.5], "exact", "user"), ([0.5], "binned", None)],
)
def test_without_a_total_nothing_has_no_group(
    tmp_path: Path,
    cluster: str | None,
    method: str,
    thresholds: Any,  # noqa: ANN401 - any form
) -> None:
    keys = {"allow_empty": True} | ({"cluster": cluster} if cluster else {})
    for number, (frame, where) in enumerate([(EMPTY, "true"), (predictions(17, 30), "score > 99")]):
        tables = swept(
            tmp_path / str(number),
            frame,
            by=[["model"]],
            thresholds=thresholds,
            averages=["macro"],
            method=method,
            predictions={"where": where},
            **keys,
        )
        assert [table.height for table in tables.values()] == [0] * 4


@pytest.mark.parametrize("label", [True, False])
def test_one_row_has_a_curve(tmp_path: Path, label: bool) -> None:  # noqa: FBT001
    tables = swept(tmp_path, pl.DataFrame({"score": [0.5], "label": [label]}))
    row = tables["curve"].row(0, named=True)
    assert [row[cell] for cell in CELLS] == ([1, 0, 0, 0] if label else [0, 1, 0, 0])
    area = tables["areas"].row(0, named=True)
    assert area["average_precision"] == (1.0 if label else None)
    assert area["roc_auc"] is None
    assert area["brier"] == 0.25
    assert area["log_likelihood"] == pytest.approx(math.log(0.5))
    assert area["undefined"] == ("no_negative" if label else "no_positive")


def test_groups_without_a_class_and_with_few_positives_are_warned_of(tmp_path: Path) -> None:
    frame = predictions(12, 60).with_columns(label=(pl.col("model") != "a") & pl.col("label"))
    run = run_threshold_sweep(tmp_path, frame, by=["model"])
    assert any("1 of 4 groups has no row with a true label" in warning for warning in run.notes)
    assert any("fewer than 20 positives" in warning for warning in run.warnings)


def results(run: pipeline.runs.stage_results.Run) -> dict[str, bytes]:
    """The bytes of every result, without those of the inputs' names."""
    files = sorted(path for path in run.path.rglob("*.parquet") if path.parent.name != "inputs")
    return {path.relative_to(run.path).as_posix(): path.read_bytes() for path in files}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("method", ["exact", "binned"])
@pytest.mark.parametrize("cluster", [None, "user"])
def test_order_and_files_of_the_rows_change_no_byte(tmp_path: Path, cluster: str | None, method: str) -> None:
    frame = predictions(13)
    keys: dict[str, Any] = {"by": ["model"], "method": method} | ({"cluster": cluster} if cluster else {})
    columns = {"columns": {"weight": "w"}}
    plain = results(run_threshold_sweep(tmp_path / "plain", frame, predictions=columns, **keys))
    folder = tmp_path / "mixed"
    config = stage_config(folder, SWEEP, {"predictions": frame}, predictions=columns, **keys)
    mixed = frame.sample(fraction=1, shuffle=True, seed=1)
    (folder / "parts").mkdir()
    for number in range(3):
        mixed[number::3].write_parquet(folder / "parts" / f"{number}.parquet")
    config["stages"][0]["predictions"]["path"] = str(folder / "parts")
    assert results(run_stages(config)) == plain


@pytest.mark.wide
def test_blocks_smaller_than_the_data_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    frame = predictions(14)
    keys: dict[str, Any] = {"by": ["model"], "cluster": "user", "predictions": {"columns": {"weight": "w"}}}
    whole = swept(tmp_path / "whole", frame, **keys)
    monkeypatch.setattr(duckdb, "BLOCK_ROWS", 37)
    monkeypatch.setattr(area_work, "PART_ROWS", 5)
    blocks = swept(tmp_path / "blocks", frame, **keys)
    assert blocks["curve"].equals(whole["curve"])
    for name in ("average_precision", "average_precision_se", "roc_auc", "roc_auc_se"):
        assert blocks["areas"][name].to_list() == pytest.approx(whole["areas"][name].to_list(), rel=1e-10)


def test_intervals_hold_the_ratio_and_can_be_left_out(tmp_path: Path) -> None:
    frame = predictions(15)
    for folder, keys in (("rows", {}), ("clusters", {"cluster": "user"})):
        curve = swept(tmp_path / folder, frame, **keys)["curve"]
        for name in RATIOS:
            known = curve.filter(pl.col(name).is_not_null() & pl.col(f"{name}_lower").is_not_null())
            assert known.height > 40
            assert (known[f"{name}_lower"] <= known[name]).all()
            assert (known[name] <= known[f"{name}_upper"]).all()
    none = swept(tmp_path / "none", frame, uncertainty="none", cluster="user")
    assert none["curve"].select(pl.col("^.*_(lower|upper)$").is_not_null().any()).row(0) == (False,) * 8
    assert none["curve"]["undefined_interval"].unique().to_list() == ["none"]
    assert none["areas"]["undefined_interval"].to_list() == ["none"]


def test_one_cluster_has_no_interval_and_says_so(tmp_path: Path) -> None:
    tables = swept(tmp_path, predictions(16).with_columns(user=1), cluster="user", thresholds=[0.0])
    assert tables["curve"]["undefined_interval"].to_list() == ["one_replicate"]
    assert tables["curve"]["precision_lower"].to_list() == [None]
    assert tables["areas"]["average_precision_se"].to_list() == [None]
    assert tables["areas"]["undefined_interval"].to_list() != [None]


def test_ratios_of_weights_are_rounded_once(tmp_path: Path) -> None:
    tenths = list(itertools.product([1, 2, 3, 6, 7, 9, 29, 37], [0, 1, 2, 4, 11, 31, 39]))
    rows = [
        {"score": 0.9, "label": label, "w": weight / 10, "model": f"{tp} {fp}"}
        for tp, fp in tenths
        for label, weight in ((True, tp), (False, fp))
    ]
    uneven = {"score": 0.9, "label": True, "w": 1 / 3, "model": "1 0"}
    weights = {"columns": {"weight": "w"}}
    frame = pl.DataFrame([*rows, uneven])
    found = swept(tmp_path, frame, by=[["model"]], thresholds=[0.5], predictions=weights)["curve"]
    for row in found.iter_rows(named=True):
        tp, fp = map(int, row["model"].split())
        assert row["precision"] == tp / (tp + fp), row["model"]
        assert row["f1"] == 2 * tp / (2 * tp + fp), row["model"]
    assert found.height == len(tenths)


def test_ratios_of_sums_of_many_digits_are_rounded_once(tmp_path: Path) -> None:
    sizes = {f"{n}": n for n in range(3001, 3012)}
    parts = [
        pl.DataFrame({"score": 0.9, "label": label, "w": weight, "model": model}).select(
            pl.all().repeat_by(n).explode()
        )
        for model, n in sizes.items()
        for label, weight in ((True, 3.0000001), (False, 1.0000003))
    ]
    weights = {"columns": {"weight": "w"}}
    found = swept(tmp_path, pl.concat(parts), by=[["model"]], thresholds=[0.5], predictions=weights)["curve"]
    wanted = Fraction(30000001, 40000004)
    assert found["precision"].to_list() == [float(wanted)] * len(sizes)
    assert found["f1"].to_list() == [float(2 * wanted / (1 + wanted))] * len(sizes)


def test_rows_of_weight_0_leave_everything_but_the_numbers_of_rows_as_it_is(tmp_path: Path) -> None:
    probability = 1 / (1 + (-pl.col("score")).exp())
    frame = predictions(11, 200).with_columns(score=probability)
    nothing = predictions(12, 300).with_columns(score=probability, w=pl.lit(0.0))
    keys: dict[str, Any] = {"predictions": {"columns": {"weight": "w"}}, "thresholds": [0.3, 0.6]}
    plain, padded = (swept(tmp_path / str(each.height), each, **keys) for each in (frame, pl.concat([frame, nothing])))
    assert padded["areas"]["n"].to_list() == [500]
    assert plain["areas"]["log_likelihood_se"][0] > 0
    for name in ("areas", "curve"):
        numbers = [column for column in plain[name].columns if column not in {"n", "n_positive", *CELLS}]
        assert_frame_equal(padded[name].select(numbers), plain[name].select(numbers), rel_tol=1e-12)


def test_one_positive_with_a_weight_has_areas_but_no_interval(tmp_path: Path) -> None:
    labels = [True] * 5 + [False] * 20
    frame = pl.DataFrame({"score": np.linspace(0, 1, 25), "label": labels, "w": [1.0] + [0.0] * 4 + [1.0] * 20})
    row = swept(tmp_path, frame, predictions={"columns": {"weight": "w"}}, thresholds=[0.5])["areas"].row(0, named=True)
    assert (row["n_positive"], row["average_precision_lower"], row["undefined_interval"]) == (5, None, "few_positives")
