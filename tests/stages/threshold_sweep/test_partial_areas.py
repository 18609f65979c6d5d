"""The area under the ROC curve up to a false positive rate, wherever areas are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import swept
from sklearn.metrics import roc_auc_score

import thresher
from pipeline.base.errors import ConfigError
from pipeline.storage.catalog import open_results

if TYPE_CHECKING:
    from pathlib import Path

RNG = np.random.default_rng(5)
TRUE = RNG.random(400) < 0.3
ROWS = pl.DataFrame(
    {
        "id": range(400),
        "label": TRUE,
        "score": np.round(RNG.normal(size=400) + 1.2 * TRUE, 1),
        "doc": np.arange(400) // 5,
        "model": np.where(np.arange(400) % 10 < 5, "a", "b"),
        "weight": RNG.random(400),
    }
)
CLUSTERED: dict[str, dict[str, Any]] = {"rows": {}, "clusters": {"cluster": "id"}}
NAMES = [f"partial_roc_auc{end}" for end in ("", "_se", "_lower", "_upper")]


@pytest.mark.parametrize(
    "keys", [{}, {"cluster": "doc"}, {"cluster": "doc", "uncertainty": "bootstrap"}, {"uncertainty": "none"}]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_every_group_has_it(tmp_path: Path, keys: dict[str, Any], weighted: bool) -> None:  # noqa: FBT001
    rows = ROWS if weighted else ROWS.drop("weight")
    areas = swept(tmp_path, rows, max_fpr=0.2, by=[[], ["model"]], **keys)["areas"]
    for row in areas.iter_rows(named=True):
        group = ROWS if row["model"] is None else ROWS.filter(pl.col("model") == row["model"])
        weight = group["weight"] if weighted else None
        expected = roc_auc_score(group["label"], group["score"], max_fpr=0.2, sample_weight=weight)
        value, se, lower, upper = (row[name] for name in NAMES)
        assert value == pytest.approx(expected)
        if keys.get("uncertainty") == "none":
            assert (lower, upper) == (None, None)
        else:
            assert lower < value < upper
            assert (upper - lower) / (2 * 1.96 * se) == pytest.approx(1, abs=0.25)


def test_clusters_of_single_rows_have_nearly_the_error_of_rows(tmp_path: Path) -> None:
    frames = [
        swept(tmp_path / name, ROWS.drop("weight"), max_fpr=0.1, **keys)["areas"] for name, keys in CLUSTERED.items()
    ]
    alone, single = (frame["partial_roc_auc_se"][0] for frame in frames)
    assert single == pytest.approx(alone, rel=0.01)


def test_without_being_asked_for_it_is_not_there(tmp_path: Path) -> None:
    assert not set(NAMES) & set(swept(tmp_path, ROWS)["areas"].columns)


def test_labels_of_a_sample_estimate_it() -> None:
    predictions = ROWS.select("id", "score")
    labels = ROWS.select("id", "label")
    full = thresher.threshold_sweep(predictions=predictions, labels=labels, sampling="simple", max_fpr=0.2).areas
    assert full["partial_roc_auc"][0] == pytest.approx(roc_auc_score(ROWS["label"], ROWS["score"], max_fpr=0.2))
    sheet = thresher.sample(predictions=predictions, size=200)
    sheet = sheet.drop("label").join(labels, on="id", maintain_order="left")
    (row,) = thresher.threshold_sweep(predictions=predictions, labels=sheet, max_fpr=0.2).areas.to_dicts()
    value, se, lower, upper = (row[name] for name in NAMES)
    assert lower < value < upper
    assert lower < full["partial_roc_auc"][0] < upper
    assert 0 < se < 0.1


def test_it_is_found_wherever_areas_are(tmp_path: Path) -> None:
    result = thresher.threshold_sweep(predictions=ROWS.drop("weight"), max_fpr=0.1)
    result.save(tmp_path / "results")
    (row,) = result.areas.to_dicts()
    assert "up to a false positive rate of 0.1" in str(result.explain("partial_roc_auc"))
    with open_results(tmp_path / "results") as connection:
        comments = dict(connection.execute("SELECT column_name, comment FROM duckdb_columns()").fetchall())
        values = connection.execute("SELECT value, lower FROM metrics WHERE metric = 'partial_roc_auc'").fetchall()
    assert "McClish 1989" in comments["partial_roc_auc"]
    assert values[0] == (row["partial_roc_auc"], row["partial_roc_auc_lower"])
    assert "partial_roc_auc" in str(result.plan(metric="partial_roc_auc", width=0.02))


@pytest.mark.parametrize("max_fpr", [0, 1, -0.1, "few"])
def test_a_rate_that_is_none_is_refused(tmp_path: Path, max_fpr: object) -> None:
    with pytest.raises(ConfigError, match="max_fpr"):
        swept(tmp_path, ROWS, max_fpr=max_fpr)
