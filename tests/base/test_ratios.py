from __future__ import annotations

import polars as pl

from pipeline.base.columns import ratios


def test_ratios_are_rounded_once_even_beside_columns_that_repeat_one_value() -> None:
    counts = pl.DataFrame({"tp": [3, 2, 0, 0]}).with_columns(n=pl.lit(5))
    tp = pl.col("tp")
    table = counts.select(ratios(tp, pl.col("n") - tp, pl.col("n") - 5))
    assert table["precision"].to_list() == [3 / 5, 2 / 5, 0, 0]
    assert table["recall"].to_list() == [1, 1, None, None]
    assert table["f1"].to_list() == [6 / 8, 4 / 7, 0, 0]


def test_nothing_over_nothing_is_null() -> None:
    zeros = pl.DataFrame({"tp": [0], "fp": [0], "fn": [0]})
    assert zeros.select(ratios(*(pl.col(name) for name in zeros.columns))).row(0) == (None, None, None)
