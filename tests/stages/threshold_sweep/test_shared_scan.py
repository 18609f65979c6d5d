"""Counts and likelihood of one scan are those of two."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from running import swept

import thresher
from pipeline.stages.threshold_sweep import stage

if TYPE_CHECKING:
    from pathlib import Path

UNSCORED = [None, float("nan"), float("inf"), float("-inf")]
EDGES = [0.0, 1.0, 5e-16, 1 - 1e-16, 0.1, 0.30000000000000004, 0.7]  # where losses are cut off, and thresholds


def predictions(*, outside: bool) -> pl.DataFrame:
    """Scores on thresholds, beyond what a logarithm is taken of, and missing, in groups."""
    rng = np.random.default_rng(7)
    scores = [*rng.beta(1, 2, 400).tolist(), *EDGES * 6, *UNSCORED * 8, *([1.5, -0.25] if outside else [])]
    label = rng.random(len(scores)) < 0.4
    source = rng.choice(["a", "b"], len(scores))
    return pl.DataFrame({"score": pl.Series(scores, dtype=pl.Float64), "label": label, "source": source})


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("outside", [False, True])
@pytest.mark.parametrize("keys", [{}, {"by": ["source"], "invalid_scores": "missed"}], ids=["dropped", "missed"])
def test_one_scan_has_the_numbers_of_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keys: dict[str, Any], *, outside: bool
) -> None:
    common = {"invalid_scores": "drop", "thresholds": [0.1, 0.2, 0.30000000000000004, 0.7]} | keys
    frame = predictions(outside=outside)
    shared = swept(tmp_path / "shared", frame, **common)
    monkeypatch.setattr(stage, "MOST_BINS_WITH_SUMS", 0)
    apart = swept(tmp_path / "apart", frame, **common)
    for name in ("curve", "areas"):
        assert_frame_equal(shared[name], apart[name], check_exact=True)
    has_likelihood = shared["areas"]["log_likelihood"].is_not_null().all()
    assert has_likelihood == (keys == {} and not outside)


@pytest.mark.parametrize("by", [[], [[], ["site"], ["site", "shift"]]])
def test_counts_of_every_score_stand_for_rows_that_were_passed_in(by: list[list[str]], tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    score = rng.choice([0.0, -0.0, 1.0, 5e-16, 0.1, 1 / 3, *rng.random(40)], 600)
    label = rng.random(600) < 0.5
    frame = pl.DataFrame({"score": score, "label": label, "site": np.arange(600) % 3, "shift": np.arange(600) % 2})
    frame.write_parquet(tmp_path / "rows.parquet")
    passed_in, read = (
        thresher.threshold_sweep(predictions=each, by=by or None) for each in (frame, tmp_path / "rows.parquet")
    )
    for name in ("areas", "calibration", "reliability"):  # of a file the rows themselves are put in order
        assert_frame_equal(passed_in[name], read[name], check_exact=True)
    of_all = read.calibration.filter(grouping="all", binning="quantile").row(0, named=True)
    assert of_all["mean_score"] == pytest.approx(score.mean(), abs=1e-14)
    assert of_all["brier"] == pytest.approx(((score - label) ** 2).mean(), abs=1e-14)
