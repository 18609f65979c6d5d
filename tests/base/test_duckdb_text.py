"""Sums of decimals that are written as sums of integers for DuckDB: the same to the last digit."""

from __future__ import annotations

from decimal import Decimal

import duckdb
import numpy as np
import pyarrow as pa
import pytest
import sqlglot
import sqlglot.expressions as exp

from pipeline.base.dialect import mark_sums, render
from pipeline.base.sql_files import expand, load

SUM = "SELECT cell, sum(CAST(value AS DECIMAL({}, 15))) AS total FROM terms GROUP BY cell"


def parsed(text: str) -> exp.Expr:
    return sqlglot.parse_one(text, read="duckdb")


def terms(highest: float) -> pa.Table:
    """Numbers of every size, and halves of the last decimal, which a cast rounds away from zero, on both sides of 0."""
    rng = np.random.default_rng(15)
    small = (rng.integers(0, 10**15, 20_000) + 0.5) / 1e15
    halves = (np.arange(3000) + 0.5) / 1e15
    sizes = 10 ** rng.uniform(-18, np.log10(highest), 20_000)
    positive = np.concatenate([small, halves, sizes, [0.0, 5e-324, highest]])
    values = np.concatenate([positive, -positive])
    return pa.table({"value": values, "cell": rng.permutation(len(values))})


@pytest.mark.parametrize(("digits", "highest"), [(18, 999.9), (19, 9223.0)])
def test_every_term_is_rounded_as_a_cast_to_a_decimal_rounds_it(digits: int, highest: float) -> None:
    written = parsed(SUM.format(digits))
    marked = written.copy()
    mark_sums(marked)
    with duckdb.connect() as connection:
        connection.register("terms", terms(highest))
        tables = [connection.sql(f"{render(tree)} ORDER BY cell").to_arrow_table() for tree in (written, marked)]
    assert render(marked) != render(written)
    as_written = tables[0].column("total").cast(pa.decimal128(38, 15))
    assert tables[1].schema.field("total").type == pa.decimal128(38, 15)
    assert tables[1].column("total") == as_written


def test_sums_beyond_the_range_of_a_bigint_are_exact() -> None:
    tree = parsed("SELECT sum(CAST(value AS DECIMAL(18, 15))) AS total FROM terms")
    mark_sums(tree)
    with duckdb.connect() as connection:
        connection.sql("CREATE TABLE terms AS SELECT CAST('34.5' AS DOUBLE) AS value FROM range(10000000)")
        assert connection.sql(render(tree)).fetchall() == [(Decimal("345000000.000000000000000"),)]


def test_only_marked_sums_of_short_decimals_are_written_otherwise_and_the_tree_stays() -> None:
    user = parsed(SUM.format(18))
    assert "ROUND" not in render(user)
    wide = parsed(SUM.format(38))
    mark_sums(wide)
    assert "ROUND" not in render(wide)
    query = expand(load("threshold_sweep/calibration"), ["group"])
    before = query.copy()
    assert "ROUND" in render(query)
    assert "DECIMAL(18, 15)" not in render(query)
    assert query == before
    assert "ROUND" not in render(query, "spark")
