"""Cells of probabilities: every score lies between the edges of its cell, and cells cross no edge of a bin."""

from __future__ import annotations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot.expressions as exp

from pipeline.base.dialect import render
from pipeline.sources.bins import ProbabilityCells


def hard_scores(bins: int) -> np.ndarray:
    """Spread evenly and over powers of ten from both ends, edges of bins and their neighbours, rounded scores."""
    rng = np.random.default_rng(bins)
    small, edges = 10 ** -rng.uniform(0, 12, 3000), np.arange(bins + 1) / bins
    neighbours = np.concatenate([np.nextafter(edges, 0), np.nextafter(edges, 2)]).clip(0, 1)
    rounded = np.round(rng.uniform(size=3000), 2)
    return np.concatenate([rng.uniform(size=3000), small, 1 - small, edges, neighbours, rounded, [0.0, 5e-324, 1.0]])


@pytest.mark.parametrize(("fineness", "bins"), [(1024, 10), (32, 7), (256, 100), (64, 2)])
def test_scores_lie_in_their_cells_and_cells_in_their_bins(fineness: int, bins: int) -> None:
    cells, scores = ProbabilityCells(fineness, bins), hard_scores(bins)
    with duckdb.connect() as connection:
        connection.register("rows", pa.table({"probability": scores}))
        numbered = connection.sql(render(cells.in_cells(exp.select("*").from_("rows")))).pl()
    number, values = numbered["cell"].to_numpy().astype(np.int64), numbered["probability"].to_numpy()
    lower, upper = cells.edges(number)
    assert ((lower < values) | (values == 0)).all()
    assert (values <= upper).all()
    inner = np.arange(1, bins) / bins
    assert (np.searchsorted(inner, values) == np.searchsorted(inner, upper)).all()
    ends = np.minimum(upper, 1 - lower)
    assert (upper - lower <= 10 * np.maximum(ends, 1e-12) ** (7 / 8) / fineness).all()
    assert len(np.unique(number)) <= cells.count


def test_edges_of_neighbours_meet() -> None:
    cells = ProbabilityCells(32, 10)
    numbers = np.arange(-32, 42)
    lower, upper = cells.edges(numbers)
    assert (lower[1:] == upper[:-1]).all()
    assert (np.diff(upper) >= 0).all()
    assert (lower[0], upper[-1]) == (0.0, 1.0)
    present = upper[upper > lower]
    assert set(np.arange(1, 10) / 10) <= set(present.tolist())
