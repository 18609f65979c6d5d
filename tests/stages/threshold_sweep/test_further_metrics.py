"""Further numbers of the curve, and Youden's J as what a threshold is chosen for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import before_after_config, points_tables, run_stages, swept
from sklearn import metrics as sklearn

import thresher
from pipeline.base.columns import FURTHER, INDEX_OF, Index
from pipeline.base.errors import ConfigError
from pipeline.storage.catalog import open_results

if TYPE_CHECKING:
    from pathlib import Path

NAMES = ("specificity", "npv", "accuracy", "balanced_accuracy", "youden_j", "mcc")
RNG = np.random.default_rng(8)
ROWS = pl.DataFrame({"label": RNG.random(300) < 0.3, "doc": np.arange(300) // 6}).with_columns(
    score=pl.Series(np.round(RNG.normal(size=300), 1)) + pl.col("label") * 1.2, weight=pl.Series(RNG.random(300))
)


@pytest.mark.parametrize("keys", [{}, {"cluster": "doc"}, {"uncertainty": "none"}])
@pytest.mark.parametrize("weighted", [False, True])
def test_every_row_of_the_curve_has_them(tmp_path: Path, keys: dict[str, Any], weighted: bool) -> None:  # noqa: FBT001
    rows = ROWS if weighted else ROWS.drop("weight")
    curve = swept(tmp_path, rows, metrics=NAMES, thresholds=[0.0, 0.5, 1.0], **keys)["curve"]
    truth, weight = ROWS["label"].to_numpy(), ROWS["weight"].to_numpy() if weighted else None
    for row in curve.iter_rows(named=True):
        predicted = (ROWS["score"] >= row["threshold"]).to_numpy()
        expected = {
            "specificity": sklearn.recall_score(~truth, ~predicted, sample_weight=weight),
            "npv": sklearn.precision_score(~truth, ~predicted, sample_weight=weight),
            "accuracy": sklearn.accuracy_score(truth, predicted, sample_weight=weight),
            "balanced_accuracy": sklearn.balanced_accuracy_score(truth, predicted, sample_weight=weight),
            "mcc": sklearn.matthews_corrcoef(truth, predicted, sample_weight=weight),
        }
        expected["youden_j"] = 2 * expected["balanced_accuracy"] - 1
        for name, value in expected.items():
            assert row[name] == pytest.approx(value)
            lower, upper = row[f"{name}_lower"], row[f"{name}_upper"]
            if keys.get("uncertainty") == "none":
                assert (lower, upper) == (None, None)
            else:
                assert lower < value < upper


def test_the_threshold_of_youdens_j_is_the_best_of_all(tmp_path: Path) -> None:
    tables = swept(tmp_path, ROWS.drop("weight"), metrics=["youden_j"], operating_points=[{"youden_j": True}])
    point, truth = tables["operating_points"].row(0, named=True), ROWS["label"]
    of_score = {
        score: (ROWS["score"] >= score).filter(truth).mean() - (ROWS["score"] >= score).filter(~truth).mean()
        for score in ROWS["score"].unique().sort()
    }
    assert point["criterion"] == "max_youden_j"
    assert point["youden_j"] == pytest.approx(max(of_score.values()))
    assert point["threshold"] == min(score for score, j in of_score.items() if j == max(of_score.values()))
    assert point["recall_cross_fitted"] is not None


def test_stages_without_true_negatives_refuse_it(tmp_path: Path) -> None:
    points = pl.DataFrame({"series_id": ["a"], "position": [1]})
    with pytest.raises(ConfigError, match="youden_j needs true negatives, and this stage counts none"):
        points_tables(
            tmp_path, {"annotations": points, "predictions": points}, margin=1, operating_points=[{"youden_j": True}]
        )
    pairs = pl.DataFrame({"event_id": [1], "lag_hours": [1.0], "score": [0.5]})
    config = before_after_config(tmp_path, {"pairs": pairs}, operating_points=[{"youden_j": True}])
    with pytest.raises(ConfigError, match="youden_j needs true negatives, which are not estimated"):
        run_stages(config)
    with pytest.raises(ConfigError, match="metrics has no 'gmean'; there are specificity, npv, accuracy"):
        swept(tmp_path, ROWS, metrics=["gmean"])
    with pytest.raises(ConfigError, match="metrics names one twice"):
        swept(tmp_path, ROWS, metrics=["mcc", "mcc"])


def test_a_metric_that_is_stated_once_is_found_everywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    added = Index("p4", "4 * tp * tn / (4 * tp * tn + (tp + tn) * (fp + fn))", "harmonic mean of four", "never", 0.0)
    monkeypatch.setattr("pipeline.stages.threshold_sweep.contract.FURTHER", (*FURTHER, added))
    monkeypatch.setitem(INDEX_OF, added.name, added)
    frame = ROWS.drop("weight")
    result = thresher.threshold_sweep(predictions=frame, metrics=["p4"], thresholds=[0.5])
    result.save(tmp_path / "results")
    (row,) = result["curve"].to_dicts()
    fp, fn, tn = (row[name] for name in ("fp", "fn", "tn"))
    assert row["p4"] == pytest.approx(4 / (1 / row["precision"] + 1 / row["recall"] + (tn + fp) / tn + (tn + fn) / tn))
    assert row["p4_lower"] < row["p4"] < row["p4_upper"]
    assert {"p4", "p4_lower"} <= set(result["operating_points"].columns)
    assert "harmonic mean of four" in str(result.explain("p4"))
    with open_results(tmp_path / "results") as connection:
        comments = dict(connection.execute("SELECT column_name, comment FROM duckdb_columns()").fetchall())
        values = connection.execute("SELECT value, lower FROM metrics WHERE metric = 'p4'").fetchall()
    assert comments["p4"].startswith("harmonic mean of four: 4 * tp * tn /")
    assert values[0] == (row["p4"], row["p4_lower"])
