"""Bins of probabilities from counts in cells: by quantile, or of equal width."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

import numpy as np
import polars as pl

from ...tables.sweep import add_up

if TYPE_CHECKING:
    from collections.abc import Sequence

Binning: TypeAlias = Literal["quantile", "width"]
BINNINGS: tuple[Binning, ...] = get_args(Binning)
BINNING, BIN = "binning", "bin"
LOWER, UPPER = "score_lower", "score_upper"


def bins_of_cells(cells: pl.DataFrame, keys: Sequence[str], edges: tuple[str, str], count: int) -> pl.DataFrame:
    """Which bin every cell of every group lies in, by either binning.

    By width, bin k of K holds the scores above (k - 1) / K up to k / K, the first also 0 (Guo et al. 2017). By
    quantile, the upper edge of bin k is the upper edge of the cell of the row with the rank ⌊k (n - 1) / K⌋, counted
    from 0, so that rows of one cell stay together; where two edges fall into one cell there is one bin fewer. With a
    cell for every score these are the edges of NumPy's lower quantiles, and the bins those of scikit-learn's
    `calibration_curve`.

    Args:
        cells: One row per group and cell, with `n`, the number of its rows.
        keys: Columns that identify a group.
        edges: Columns of the lower and the upper edge of a cell; a cell holds its upper edge.
        count: K.

    Returns:
        Columns `keys`, `edges`, `binning` and `bin`, which counts from 1: a row for each cell and binning.
    """
    lower, upper = edges
    in_order = cells.filter(pl.col("n") > 0).sort([*keys, upper, lower])
    inner = [number / count for number in range(1, count)]
    by_width = pl.Series(np.searchsorted(inner, in_order[upper].to_numpy()) + 1, dtype=pl.Int64)
    of_cells = [
        in_order.select(*keys, *edges, pl.lit(binning).alias(BINNING), pl.lit(bins).alias(BIN))
        for binning, bins in (("quantile", _by_quantile(in_order, keys, count)), ("width", by_width))
    ]
    return pl.concat(of_cells)


def _by_quantile(in_order: pl.DataFrame, keys: Sequence[str], count: int) -> pl.Series:
    """The bin of every cell, of cells in order: one more than the cells below it that hold an upper edge."""
    upto = pl.col("n").cum_sum().over(keys)
    gaps = pl.max_horizontal(pl.col("n").sum().over(keys) - 1, 1)

    def edges_among(rows: pl.Expr) -> pl.Expr:
        """How many of the ranks ⌊k gaps / K⌋, k from 1 to K - 1, are among the lowest rows of a group."""
        return pl.min_horizontal(pl.max_horizontal((count * rows - 1) // gaps, 0), count - 1)

    is_edge = (edges_among(upto) > edges_among(upto - pl.col("n"))).cast(pl.Int64).alias("is_edge")
    with_edges = in_order.select(*keys, is_edge)  # a step of its own: old Polars refuses windows over windows
    below = (pl.col("is_edge").cum_sum() - pl.col("is_edge")).over(keys)
    return with_edges.select(below + 1).to_series()


def summed(sums: pl.DataFrame, bins: pl.DataFrame, by: Sequence[str], edges: tuple[str, str]) -> pl.DataFrame:
    """Sums by bin of what is known by cell; decimals are added exactly.

    Args:
        sums: One row per group, cell and perhaps replicate: columns of keys, `edges`, and sums.
        bins: As from `bins_of_cells`.
        by: Columns that rows are summed by, beside binning and bin; those of the keys among them.
        edges: Columns of the edges of a cell.
    """
    keys = [name for name in bins.columns if name not in {*edges, BINNING, BIN}]
    values = [name for name in sums.columns if name not in {*by, *keys, *edges}]
    joined = bins.join(sums, on=[*keys, *edges], how="inner", nulls_equal=True)
    return add_up(joined, [*by, BINNING, BIN], values)
