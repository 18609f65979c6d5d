"""The stage change_points on real series, as whole runs, beside the numbers of the peers' own code."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import POINTS, read_table, run_stages

if TYPE_CHECKING:
    from pathlib import Path

TOLERANCE = 1e-12
MARGINS = (5, 10)
RUNS = 176


@pytest.fixture(scope="session")
def expected(real_data: Path) -> dict[str, Any]:
    """What expected.json has, by method and series, of all runs that did not fail."""
    found = json.loads((real_data / "changepoints_tcpd" / "expected.json").read_text(encoding="utf-8"))
    return {
        f"{method}/{series}": values
        for method, all_series in found["by_method"].items()
        for series, values in all_series.items()
        if "tcpd_margin5" in values
    }


def tables(real_data: Path, folder: Path, predictions: str = "predictions", **keys: Any) -> dict[str, pl.DataFrame]:  # noqa: ANN401
    """The tables of a run over all methods."""
    root = real_data / "changepoints_tcpd"
    renamed = {"position": "change_point"}
    stage = {
        "kind": POINTS,
        "predictions": {"path": str(root / f"{predictions}.parquet"), "columns": renamed},
        "annotations": {"path": str(root / "annotations.parquet"), "columns": renamed},
        "coders": str(root / "annotators.parquet"),
        "series": str(root / "series.parquet"),
        "runs": {"path": str(root / "runs.parquet"), "where": "status = 'SUCCESS'"},
        "by": [["method"]],
        **keys,
    }
    run = run_stages({"output": str(folder), "stages": [stage]})
    return {name: read_table(run, f"{POINTS}_{name}", POINTS) for name in ("curve", "areas", "series", "delays")}


def assert_series(found: pl.DataFrame, expected: dict[str, Any], name: str, columns: dict[str, str]) -> int:
    """Every value that the definition has, for every run; returns how many values were compared."""
    compared = 0
    rows = {f"{row['method']}/{row['series_id']}": row for row in found.iter_rows(named=True)}
    for run, values in expected.items():
        for theirs, mine in columns.items():
            wanted = values.get(name, {}).get(theirs)
            if wanted is not None:
                assert rows[run][mine] == pytest.approx(wanted, rel=0, abs=TOLERANCE), (run, theirs)
                compared += 1
    return compared


@pytest.mark.parametrize("margin", MARGINS)
def test_tcpdbench(real_data: Path, tmp_path: Path, expected: dict[str, Any], margin: int) -> None:
    found = tables(real_data, tmp_path, margin=margin, margin_boundary="<=", annotators="tcpd")["series"]
    assert found.height == RUNS
    ratios = {name: name for name in ("precision", "recall", "f1")}
    assert assert_series(found, expected, f"tcpd_margin{margin}", ratios) == 3 * RUNS
    if margin == MARGINS[0]:
        known = found.filter(pl.col("covering").is_not_null())
        own = {run: expected[run] for run in (known["method"] + "/" + known["series_id"]).to_list()}
        assert assert_series(known, own, "tcpd_margin5", {"cover": "covering"}) == 166
        assert assert_series(known, own, "published_v1_summary", {"cover": "covering", "recall": "recall"}) == 2 * 86
        published = {run: {"v3": {"f1": values.get("published_v3_f1")}} for run, values in expected.items()}
        assert assert_series(found, published, "v3", {"f1": "f1"}) == 128


def test_mean_covering_of_a_method(real_data: Path, tmp_path: Path) -> None:
    found = tables(real_data, tmp_path, margin=5, margin_boundary="<=", annotators="tcpd")
    means = found["series"].group_by("method").agg(pl.col("covering").mean(), n=pl.col("covering").count())
    joined = found["areas"].join(means, on="method", suffix="_of_series")
    assert joined["n_covered"].to_list() == joined["n"].to_list()
    assert joined["covering"].to_list() == pytest.approx(joined["covering_of_series"].to_list(), abs=TOLERANCE)


@pytest.mark.parametrize("margin", MARGINS)
def test_the_source_texts_definition(real_data: Path, tmp_path: Path, expected: dict[str, Any], margin: int) -> None:
    found = tables(real_data, tmp_path, margin=margin, matching="any")["series"]
    columns = {"TP": "tp", "precision": "precision", "recall": "recall"}
    assert assert_series(found, expected, f"seed004_strict_union_M{margin}", columns) == 176 + 116 + 171
    assert found.filter(pl.col("precision").is_null()).height == 176 - 116


@pytest.mark.parametrize("margin", MARGINS)
def test_the_largest_matching(real_data: Path, tmp_path: Path, expected: dict[str, Any], margin: int) -> None:
    found = tables(real_data, tmp_path, margin=margin, margin_boundary="<=")
    found_series = found["series"].with_columns(
        fp=pl.col("n_predicted") - pl.col("tp"), fn=pl.col("n_true") - pl.col("tp")
    )
    columns = {"TP": "tp", "FP": "fp", "FN": "fn"}
    assert assert_series(found_series, expected, f"max_matching_le_union_M{margin}", columns) == 3 * RUNS
    delays = found["delays"]
    assert delays.height == found_series["tp"].sum()
    assert delays["delay"].abs().max() <= margin  # type: ignore[operator]
    assert (delays["position"] - delays["true_position"] == delays["delay"]).all()


@pytest.mark.parametrize("margin", MARGINS)
@pytest.mark.parametrize(("rule", "boundary", "compared"), [("roerich", "<=", 287), ("ruptures", "<", 228)])
def test_the_code_of_roerich_and_of_ruptures(
    real_data: Path, tmp_path: Path, expected: dict[str, Any], margin: int, rule: str, boundary: str, compared: int
) -> None:
    """Where their 0/0 is a number (precision 0, recall 0 or 1), ours is undefined and only theirs has a value."""
    found = tables(real_data, tmp_path, margin=margin, margin_boundary=boundary, matching=rule)["series"]
    name = {"roerich": f"roerich_code_le_union_M{margin}", "ruptures": f"ruptures_code_strict_union_M{margin}"}[rule]
    count = 0
    for ratio, of in (("precision", "n_predicted"), ("recall", "n_true")):
        count += assert_series(found.filter(pl.col(of) > 0), _of(found, of, expected), name, {ratio: ratio})
    assert count == compared


def _of(found: pl.DataFrame, column: str, expected: dict[str, Any]) -> dict[str, Any]:
    some = found.filter(pl.col(column) > 0)
    return {run: expected[run] for run in (some["method"] + "/" + some["series_id"]).to_list()}


def test_curves_of_the_source_text_and_of_roerich(real_data: Path, tmp_path: Path, expected: dict[str, Any]) -> None:
    """One group for every series, which `where` and a grouping column make of the scored predictions."""
    curves = {run.partition("/")[2]: values for run, values in expected.items() if "roerich_pr_curve_M5" in values}
    count = 0
    for series, values in sorted(curves.items()):
        only = f"series_id = '{series}'"
        root = real_data / "changepoints_tcpd"
        renamed = {"position": "change_point"}
        stage = {
            "kind": POINTS,
            "predictions": {"path": str(root / "scored_predictions.parquet"), "columns": renamed, "where": only},
            "annotations": {"path": str(root / "annotations.parquet"), "columns": renamed, "where": only},
            "margin": 5,
            "uncertainty": "none",
        }
        text = {"matching": "any", "name": "text"}
        theirs = {"matching": "roerich", "margin_boundary": "<=", "name": "roerich"}
        run = run_stages({"output": str(tmp_path), "stages": [stage | text, stage | theirs]})
        rows = read_table(run, f"{POINTS}_curve", "text").to_dicts()
        for mine, wanted in zip(rows, values["seed004_pr_curve_M5"], strict=True):
            assert (mine["threshold"], mine["n_predicted"], mine["tp"]) == (
                wanted["threshold"],
                wanted["m"],
                wanted["TP"],
            )
            assert mine["precision"] == pytest.approx(wanted["precision"], rel=0, abs=TOLERANCE)
            assert mine["recall"] == pytest.approx(wanted["recall"], rel=0, abs=TOLERANCE)
        inner = read_table(run, f"{POINTS}_curve", "roerich")
        curve = values["roerich_pr_curve_M5"]
        for name in ("precision", "recall"):
            assert inner[name].to_list() == pytest.approx(curve[name][1:-1], rel=0, abs=TOLERANCE)
        area = read_table(run, f"{POINTS}_areas", "roerich")["pr_auc_roerich"].item()
        assert area == pytest.approx(curve["auc"], rel=0, abs=TOLERANCE)
        count += len(rows)
    assert (len(curves), count) == (15, 111)
