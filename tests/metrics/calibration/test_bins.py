"""Bins of probabilities: against NumPy's quantiles and scikit-learn's bins."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from sklearn.calibration import calibration_curve

from pipeline.metrics.calibration.bins import bins_of_cells, pooled

EDGES = ("lower", "upper")


def binned(scores: np.ndarray, count: int) -> pl.DataFrame:
    """The bin of every distinct score, with the number of its rows."""
    values, sizes = np.unique(scores, return_counts=True)
    cells = pl.DataFrame({"grouping": "all", "lower": values, "upper": values, "n": sizes})
    bins = bins_of_cells(cells, ["grouping"], EDGES, count)
    return bins.join(cells.drop("grouping", "lower"), on="upper")


@pytest.mark.parametrize("count", [2, 3, 10, 17])
@pytest.mark.parametrize("digits", [1, 2, 9])
def test_bins_are_those_of_scikit_learn(count: int, digits: int) -> None:
    rng = np.random.default_rng(count)
    scores = np.round(rng.beta(0.6, 2.0, 404), digits)
    labels = rng.uniform(size=404) < scores
    table = binned(scores, count)
    for binning, strategy in (("quantile", "quantile"), ("width", "uniform")):
        shares, means = calibration_curve(labels, scores, n_bins=count, strategy=strategy)
        bins = table.filter(pl.col("binning") == binning)
        number = dict(zip(bins["upper"], bins["bin"], strict=True))
        of_rows = np.array([number[score] for score in scores])
        present = np.unique(of_rows)
        assert [scores[of_rows == each].mean() for each in present] == pytest.approx(means)
        assert [labels[of_rows == each].mean() for each in present] == pytest.approx(shares)


def test_bins_by_quantile_have_equal_numbers_of_rows() -> None:
    table = binned(np.random.default_rng(1).permutation(70) / 70, 7).filter(pl.col("binning") == "quantile")
    assert table.group_by("bin").agg(pl.col("n").sum()).sort("bin").rows() == [(number, 10) for number in range(1, 8)]


@pytest.mark.parametrize("number", [1, 2, 7, 11, 21, 40, 41])
@pytest.mark.parametrize("count", [2, 5, 10])
@pytest.mark.parametrize("has_ties", [False, True])
def test_bins_by_quantile_end_at_the_rows_of_whole_ranks(number: int, count: int, *, has_ties: bool) -> None:
    """Ranks in integers: with 11 rows and 10 bins each is whole, and the row of the rank belongs below the edge."""
    scores = np.sort(np.arange(number) // 3 if has_ties else np.arange(number)) / 64
    edges = {scores[step * (number - 1) // count] for step in range(1, count)}
    expected = {score: 1 + sum(bool(edge < score) for edge in edges) for score in scores}
    table = binned(scores, count).filter(pl.col("binning") == "quantile")
    assert dict(table.select("upper", "bin").iter_rows()) == expected


@pytest.mark.parametrize("scores", [[0.3], [0.3, 0.3], [0.0, 1.0], [0.0, 0.0, 0.0, 1.0]])
def test_few_scores_have_few_bins(scores: list[float]) -> None:
    table = binned(np.array(scores), 10).filter(pl.col("binning") == "quantile")
    assert table["bin"].to_list() == list(range(1, len(set(scores)) + 1))


def test_upper_edges_of_equal_widths_belong_to_their_bins() -> None:
    table = binned(np.array([0.0, 0.1, 0.2, 0.3, 0.7, 1.0, np.nextafter(0.3, 1)]), 10)
    width = table.filter(pl.col("binning") == "width").sort("upper")
    assert width["bin"].to_list() == [1, 1, 2, 3, 4, 7, 10]


@pytest.mark.parametrize(("variance", "begins"), [([5.0, 5.0], [0, 1]), ([5.0, 4.9], [0]), ([4.9, 0.1, 5.0], [0, 2])])
def test_a_pool_that_has_just_enough_stands_alone(variance: list[float], begins: list[int]) -> None:
    pools, first = pooled(np.array(variance), np.array([0]))
    assert (pools.tolist(), first.tolist()) == (begins, [0])
