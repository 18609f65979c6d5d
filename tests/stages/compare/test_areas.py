"""Systems of threshold_sweep and of geocoding compared on their units: what unpaired intervals hide is found."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import read_table, run_stages
from scipy.stats import norm
from sklearn.metrics import average_precision_score, roc_auc_score

import thresher
from pipeline.base.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

SYSTEMS = ("base", 'new, "quoted"</script>')
DOCUMENTS, ROWS = 60, 10


@pytest.fixture(scope="module")
def predictions() -> pl.DataFrame:
    """Two systems that see mostly the same of the rows; the second is a little better."""
    rng = np.random.default_rng(5)
    document = np.repeat(np.arange(DOCUMENTS), ROWS)
    label = rng.random(len(document)) < 1 / (1 + np.exp(1.5 - rng.normal(0, 1.0, DOCUMENTS)[document]))
    shared = 0.9 * rng.normal(size=len(document))
    frames = [
        pl.DataFrame(
            {
                "item": np.arange(len(document)),
                "document": document,
                "model": [name] * len(document),
                "score": np.round(shift * label + shared + 0.25 * rng.normal(size=len(document)), 3),
                "label": label,
            }
        )
        for name, shift in zip(SYSTEMS, (1.1, 1.35), strict=True)
    ]
    return pl.concat(frames)


@pytest.fixture(scope="module")
def run(predictions: pl.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = tmp_path_factory.mktemp("areas")
    predictions.write_parquet(folder / "predictions.parquet")
    sweep: dict[str, Any] = {"kind": "threshold_sweep", "predictions": str(folder / "predictions.parquet")}
    sweep |= {"by": [["model"]], "cluster": "document", "thresholds": {"start": -2, "stop": 4, "count": 31}}
    compare = {"kind": "compare", "of": "threshold_sweep", "system": "model"}
    return run_stages({"output": str(folder / "results"), "stages": [sweep, compare]})


def test_a_difference_is_found_where_the_intervals_of_both_overlap(run: Run, predictions: pl.DataFrame) -> None:
    areas = {row["model"]: row for row in read_table(run, "threshold_sweep_areas", "threshold_sweep").to_dicts()}
    tests = read_table(run, "compare_tests", "compare")
    base, new = (areas[name] for name in SYSTEMS)
    for name, reference in (("average_precision", average_precision_score), ("roc_auc", roc_auc_score)):
        assert new[f"{name}_lower"] < base[f"{name}_upper"]
        unpaired = np.hypot(base[f"{name}_se"], new[f"{name}_se"])
        assert 2 * norm.sf((new[name] - base[name]) / unpaired) > 0.05
        (row,) = tests.filter(metric=name, test="paired_t").to_dicts()
        assert (row["test"], row["hypothesis"]) == ("paired_t", "equal means of contributions")
        expected = [reference(*predictions.filter(model=model).select("label", "score")) for model in SYSTEMS]
        assert [row["mean_a"], row["mean_b"]] == pytest.approx(expected)
        assert row["p_adjusted"] < 0.01
        assert row["difference_upper"] - row["difference_lower"] < 2 * 1.96 * unpaired * 0.8
    assert set(tests["metric"]) == {
        "average_precision",
        "pr_auc",
        "roc_auc",
        "pooled_precision",
        "pooled_recall",
        "pooled_f1",
    }


def test_pooled_ratios_are_those_of_the_operating_points(run: Run) -> None:
    points = {
        row["model"]: row for row in read_table(run, "threshold_sweep_operating_points", "threshold_sweep").to_dicts()
    }
    tests = read_table(run, "compare_tests", "compare")
    for ratio in ("precision", "recall", "f1"):
        row = tests.filter(metric=f"pooled_{ratio}").row(0, named=True)
        assert [row["mean_a"], row["mean_b"]] == pytest.approx([points[name][ratio] for name in SYSTEMS])


def test_frames_of_units_are_compared_in_a_notebook(run: Run, predictions: pl.DataFrame) -> None:
    source = {"path": predictions, "columns": {"id": "item"}}
    thresholds = {"start": -2, "stop": 4, "count": 31}
    units = thresher.threshold_sweep(
        predictions=source, by=[["model"]], cluster="document", thresholds=thresholds
    ).units
    compared = thresher.compare(units=units, system="model", metrics=["roc_auc"], contributions=["roc_auc"])
    expected = read_table(run, "compare_tests", "compare").filter(metric="roc_auc")["p_value"]
    assert compared.tests["p_value"].to_list() == expected.to_list()


def test_a_sweep_without_units_says_what_to_map(predictions: pl.DataFrame, tmp_path: Path) -> None:
    predictions.write_parquet(tmp_path / "predictions.parquet")
    sweep: dict[str, Any] = {"kind": "threshold_sweep", "predictions": str(tmp_path / "predictions.parquet")}
    compare = {"kind": "compare", "of": "threshold_sweep", "system": "model"}
    with pytest.raises(DataError, match="did not make the table threshold_sweep_units") as refused:
        run_stages({"output": str(tmp_path / "results"), "stages": [sweep | {"by": [["model"]]}, compare]})
    assert "give cluster, or map the column that names the item" in str(refused.value.remedy)
