"""What criteria choose from counts, where they are met exactly or nothing is found."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from pipeline.metrics.curves.operating_points import Candidates, Criterion, Outcomes, f_beta_of_counts, ratios_of_counts
from pipeline.stages.change_points.results import _f_beta_of_mean_recall

TP, FP, FN = (np.array([counts], dtype=np.float64) for counts in ([4, 3, 2, 1], [9, 3, 1, 0], [0, 1, 2, 3]))


@pytest.mark.parametrize(
    ("minimum", "chosen"),
    [
        (Criterion(min_recall=0.5), 2),
        (Criterion(min_recall=0.5000001), 1),
        (Criterion(min_precision=0.5), 1),
        (Criterion(min_precision=0.5000001), 2),
    ],
)
def test_a_minimum_that_is_met_exactly_is_met(minimum: Criterion, chosen: int) -> None:
    group = Candidates(
        rows=pl.DataFrame(),
        lower=None,
        retrieved=(TP + FP)[0],
        counts="none",
        ratios=ratios_of_counts,
        f_beta=f_beta_of_counts,
        outcomes=lambda counts: Outcomes(*counts),
    )
    assert group.chosen(minimum, (TP, FP, FN)).tolist() == [chosen]


def test_f_beta_of_a_mean_recall_is_0_where_nothing_is_found() -> None:
    tp, fp, fn, ignored, recalls, n_series = (np.array([[count]], dtype=np.float64) for count in (0, 5, 3, 0, 0, 2))
    assert _f_beta_of_mean_recall((tp, fp, fn, ignored, recalls, n_series), 1.0).tolist() == [[0.0]]
