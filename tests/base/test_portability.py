"""SQL that runs on DuckDB must mean the same on Spark: its Spark text, read back, gives the same rows."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import duckdb
import numpy as np
import polars as pl
import pytest
import sqlglot.expressions as exp
from spark import through_spark

from pipeline.base.dialect import render
from pipeline.base.sql_files import Query, expand, load, query_names, statement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.random import Generator

ROWS = 200
NAN, INF = float("nan"), float("inf")
SEGMENT = ('we"ird', "plain")
SCORES = np.array([-1.0, -0.0, 0.0, 0.25, 0.5, 1.0, 5e-324, 1e300])
ODD = np.array([NAN, INF, -INF])


def _numbers(rng: Generator, *, odd: bool) -> pl.Series:
    return pl.Series(rng.choice(np.concatenate([SCORES, ODD]) if odd else SCORES, ROWS))


def _texts(rng: Generator, values: list[str | None]) -> pl.Series:
    return pl.Series([values[number] for number in rng.integers(0, len(values), ROWS)], dtype=pl.String)


def _integers(rng: Generator, low: int, high: int) -> pl.Series:
    return pl.Series(rng.integers(low, high, ROWS))


def _flags(rng: Generator) -> pl.Series:
    return pl.Series(rng.integers(0, 2, ROWS).astype(bool))


CLUSTERS = {3: "a", 4: "b"}  # of articles, too
Values = dict[str, "Callable[[Generator, bool], pl.Series]"]
VALUES: Values = {
    "segment": lambda rng, _: _texts(rng, ["x", "y'", None]),
    "id": lambda rng, _: pl.Series([f"row {number}" for number in rng.permutation(ROWS)]),
    "key": lambda rng, _: _texts(rng, ["x", "y'", None]),
    "same_group": lambda rng, _: _flags(rng),
    "stratum": lambda rng, _: _integers(rng, 0, 5),
    "last_digest": lambda rng, _: pl.Series(rng.choice([2.0**62, 2.0**63, 2.0**65], ROWS)),
    "value": lambda rng, odd: _numbers(rng, odd=odd).replace([0.25], [None]),
    "cluster_key": lambda rng, _: pl.Series([f"cluster {number}" for number in rng.permutation(ROWS)]),
    "second_cluster_key": lambda rng, _: pl.Series([f"cluster {number}" for number in rng.permutation(ROWS)]),
    "cluster": lambda rng, _: pl.Series(
        [CLUSTERS.get(number, f"cluster {number}") for number in rng.permutation(ROWS)]
    ),
    "replicate": lambda rng, _: _integers(rng, 0, 4),
    "matcher": lambda rng, _: _integers(rng, 1, 4),
    "_document": lambda rng, _: _integers(rng, 1, 30),
    "_system": lambda rng, _: _integers(rng, 0, 3),
    "start": lambda rng, _: _integers(rng, -5, 30),
    "end": lambda rng, _: _integers(rng, -5, 30),
    "type": lambda rng, _: _texts(rng, ["PER", "LOC", None]),
    "bin": lambda rng, _: _integers(rng, -1, 5),
    "score": lambda rng, odd: _numbers(rng, odd=odd),
    "score_given": lambda rng, odd: _numbers(rng, odd=odd),
    "total": lambda rng, _: _integers(rng, 0, 2),
    "lag_hours": lambda rng, odd: _numbers(rng, odd=odd),
    "lag": lambda rng, odd: _numbers(rng, odd=odd),
    "lag_day": lambda rng, _: _integers(rng, -7, 4),
    "n_obs": lambda rng, _: _integers(rng, 0, 6),
    "query_cluster": lambda rng, _: _texts(rng, ["a", "b", None]),
    "order_value": lambda rng, _: _integers(rng, 0, 50),
    "in_order": lambda rng, _: _integers(rng, 0, 50),
    "weight": lambda rng, _: pl.Series(rng.integers(0, 4_000_000, ROWS) / 1024),
    "label": lambda rng, _: _flags(rng),
    "cell_block": lambda rng, _: _integers(rng, 0, 4),
    "cell": lambda rng, _: _integers(rng, 0, 20),
    "event_stratum": lambda rng, _: _texts(rng, ["", "1:x"]),
    "article_stratum": lambda rng, _: _texts(rng, ["1:0", "1:1-"]),
    "article_day": lambda rng, _: _integers(rng, -3, 9),
    "passes_where": lambda rng, _: _flags(rng),
    "complete": lambda rng, _: _flags(rng),
    "score_state": lambda rng, _: _texts(rng, ["nan_score", "infinite_score", None, None]),
    "event_id": lambda rng, _: _texts(rng, ["1", "2", "3", None]),
    "series_id": lambda rng, _: pl.Series([f"s{number}" if number else None for number in rng.permutation(ROWS)]),
    "annotator_id": lambda rng, _: _texts(rng, ["a", "b"]),
    "by:annotator_id": lambda rng, _: _texts(rng, ["a", "b"]),
    "annotator": lambda rng, _: pl.Series(rng.permutation(ROWS)),
    "position": lambda rng, _: _integers(rng, 0, 9),
    "true_position": lambda rng, _: _integers(rng, 0, 9),
    "delay": lambda rng, _: _integers(rng, -9, 9),
    "run_number": lambda rng, _: pl.Series(rng.permutation(ROWS)),
    "tp": lambda rng, _: _integers(rng, 0, 2),
    "lead": lambda rng, _: pl.Series([(-1.5, 0.0, 2.0, None)[number] for number in rng.integers(0, 4, ROWS)]),
    "status": lambda rng, _: _integers(rng, 0, 4),
    "observed": lambda rng, _: _integers(rng, 0, 90),
    "share": lambda rng, _: _integers(rng, 0, 9),
    "covering": lambda rng, _: _integers(rng, 0, 2),
    "unit": lambda rng, _: _texts(rng, ["1", "2", "3"]),
    "unit_cluster": lambda rng, _: _texts(rng, ["cluster 1", "cluster 2", None]),
    "system": lambda rng, _: _texts(rng, ["a", "b"]),
    "article_id": lambda rng, _: _texts(rng, ["a", "b", None]),
    "query_id": lambda rng, _: _texts(rng, ["q", "r", None]),
    "doc_id": lambda rng, _: pl.Series([f"d{number}" for number in rng.permutation(ROWS)]),
    "rank": lambda rng, odd: _numbers(rng, odd=odd),
    "relevance": lambda rng, _: _integers(rng, -1, 4).cast(pl.Float64),
    "_value": lambda rng, _: _numbers(rng, odd=False),
    "_ranking": lambda rng, _: _integers(rng, 1, 9),
    "_name": lambda rng, _: _texts(rng, ["d", "e", ""]),
    "mention_id": lambda rng, _: pl.Series([f"m{number}" if number else None for number in rng.permutation(ROWS)]),
    "unaligned_id": lambda rng, _: _texts(rng, ["1", "2", None]),
    "latitude": lambda rng, _: pl.Series(rng.uniform(-100, 100, ROWS)),
    "longitude": lambda rng, _: pl.Series(rng.uniform(-190, 370, ROWS)),
    "coordinate": lambda rng, odd: _numbers(rng, odd=odd).replace([0.25], [None]),
    "other": lambda rng, odd: _numbers(rng, odd=odd).replace([0.25], [None]),
    "text": lambda rng, _: _texts(rng, ["Paris", "'", None]),
    "source_file": lambda rng, _: _texts(rng, ["a.parquet", "b.parquet"]),
    "file_row_number": lambda rng, _: pl.Series(rng.permutation(ROWS)),
    "distance_km": lambda rng, _: pl.Series([(0.0, 1.5, 1e4, None)[number] for number in rng.integers(0, 4, ROWS)]),
    "fault": lambda rng, _: _texts(rng, ["null_start", None, None]),
    "is_positive": lambda rng, _: _flags(rng),
    "required": lambda rng, _: _texts(rng, ["1", "2", None]),
    "probability": lambda rng, _: pl.Series(rng.choice([0.0, 5e-324, 0.25, 0.9375, 1.0], ROWS)),
    "used_score": lambda rng, odd: _numbers(rng, odd=odd),
    "event_time": lambda rng, _: _integers(rng, -(10**15), 2 * 10**15),
    "article_time": lambda rng, _: _integers(rng, -(10**15), 2 * 10**15),
    "time": lambda rng, _: _integers(rng, -(10**15), 2 * 10**15),
    "preference": lambda rng, _: pl.Series(rng.choice([0.0, 1.5, 1e4], ROWS)),
    "was_run": lambda rng, _: _flags(rng),
    "time_of_article": lambda rng, _: _integers(rng, -(10**15), 2 * 10**15),
    "first_time": lambda rng, _: _integers(rng, -(10**15), 0),
    "last_time": lambda rng, _: _integers(rng, 0, 2 * 10**15),
    "quartile_of_volume": lambda rng, _: _integers(rng, 1, 5),
    "event_label": lambda rng, _: _texts(rng, ["", "1:x"]),
    "article_label": lambda rng, _: _texts(rng, ["1:0", "1:1-"]),
    "unit_key": lambda rng, _: _texts(rng, ["1", "2", "3"]),
    "place": lambda rng, _: pl.Series(rng.permutation(ROWS)),
    "first_step": lambda _rng, _: pl.Series([0] * ROWS),
    "step": lambda rng, _: pl.Series(rng.permutation(ROWS)),
    "lowest_score": lambda rng, _: _numbers(rng, odd=False),
    "same_id": lambda rng, _: _flags(rng),
    "judged": lambda rng, _: _texts(rng, ["yes", "no", None]),
    "same_row": lambda rng, _: _flags(rng),
    "row_weight": lambda rng, _: pl.Series(rng.choice([0.5, 1.0, 2.25], ROWS)),
    "row_proxy": lambda rng, _: pl.Series(rng.choice([0.0, 0.25, 1.0], ROWS)),
}
WITHOUT_FAULT = {  # nothing is at fault in these data
    "compare/checks/missing_units",
    "compare/checks/one_system",
    "threshold_sweep/checks/no_weight",
    "threshold_sweep/explain/without_score",
}
CONDITIONS = {  # that stand for more than a column
    "threshold_sweep/drawn_rows": {"same_group": exp.true()},
    "threshold_sweep/labels_beside_predictions": {"same_id": exp.true()},
    "inputs/shown_beside": {"same_row": exp.true()},
}
PARAMS: dict[str, float | str] = {
    "baseline": "nobody",
    "least": 1000.0,
    "before_start": -INF,
    "near_start": -0.5,
    "before_end": 0.0,
    "after_start": 0.0,
    "after_end": 0.5,
    "lowest_score": 0.25,
    "first_score": 0.5,
    "last_digest_below": 2.0**62,
    "hash_groups": 64,
    "blocks": 4,
    "farthest": 10,
    "seed": 1,
    "size": 5,
    "relevance_level": 1.0,
    "n_rows_of_file": 100,
    "low": -1.0,
    "high": 1.0,
    "scale": 4.0,
    "last": 9,
    "fineness": 32.0,
    "bins": 10.0,
    "fewer_bins": 9.0,
}


def values_of(column: str) -> Callable[[Generator, bool], pl.Series]:
    """How to fill a column, by its name."""
    if column in VALUES:
        return VALUES[column]
    if column.startswith(("n_", "m_", "influence_")):
        return lambda rng, _: _integers(rng, 0, 10**9)
    if column.endswith(("_latitude", "_longitude")):
        return lambda rng, _: pl.Series(rng.uniform(-90, 90, ROWS))
    if column.endswith(("_start", "_end")):
        return lambda rng, _: _integers(rng, 0, 100)
    if column.endswith(("_text", "_type")):
        return lambda rng, _: _texts(rng, ["Paris", "'", None])
    if column.startswith("is_"):
        return lambda rng, _: _flags(rng)
    message = f"no values are known for the column {column}: add them to VALUES"
    raise KeyError(message)


def relations(query: Query, *, odd: bool) -> dict[str, pl.DataFrame]:
    """Data for the relations and columns that a header names; a new column of a query needs its values above."""
    rng = np.random.default_rng(7)
    relations = {}
    for name, columns in re.findall(r"(\w+) \(([^)]*)\)", query.header["reads"]):
        frame = {}
        for column in (each.strip() for each in columns.split(",")):
            for field in SEGMENT if column == "segment" else (column,):
                frame[field] = values_of(column)(rng, odd)
        relations[name] = pl.DataFrame(frame)
    return relations


def mentions(start: int, first: str) -> pl.DataFrame:
    """Two mentions in each of two documents, each 10 characters behind the other."""
    frame = pl.DataFrame({"doc_id": ["x", "x", "y", "y"], "text": [first, "Rome", "Lyon", "Nice"]})
    with_starts = frame.with_columns(start=pl.Series([start, start + 10] * 2, dtype=pl.Int64), passes_where=True)
    return with_starts.with_columns(pl.col("start").add(5).alias("end"), *(pl.lit("a").alias(name) for name in SEGMENT))


DOCUMENTS = pl.DataFrame({"doc_id": ["x", "y"]})
MATCHING = {  # relations of queries that find something only in rows that fit each other
    "mentions/other_texts": {
        "gold_read": mentions(0, "Paris"),
        "predicted_read": mentions(0, "Bern"),
        "documents": DOCUMENTS,
    },
    "mentions/shifted_texts": {
        "gold_read": mentions(0, "Paris"),
        "predicted_read": mentions(1, "Paris"),
        "documents": DOCUMENTS,
    },
}


def rows(connection: duckdb.DuckDBPyConnection, tree: exp.Expr, params: dict[str, float | str]) -> list[str]:
    """The rows of a query as text, sorted; the text tells -0 from 0 and holds NaN equal to itself."""
    return sorted(str(row) for row in connection.execute(render(tree), params).fetchall())


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """An engine without tables: every test registers all that its query reads."""
    signed = "CAST(CAST(hash({}) AS HUGEINT) - 9223372036854775808 AS BIGINT)"  # so that Spark's digest is the same
    with duckdb.connect(":memory:") as connection:
        connection.execute(f"CREATE MACRO xxhash64 (a) AS {signed.format('a')}, (a, b) AS {signed.format('a, b')}")
        yield connection


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", query_names())
def test_every_query_gives_the_same_rows_through_its_spark_text(
    connection: duckdb.DuckDBPyConnection, name: str
) -> None:
    query = load(name)
    tree = statement(name, SEGMENT, columns=CONDITIONS[name]) if name in CONDITIONS else expand(query, SEGMENT)
    travelled = through_spark(tree)
    for odd in (False, True):
        data = MATCHING.get(name) or relations(query, odd=odd)
        for relation, frame in data.items():
            connection.register(relation, frame.to_arrow())
        for own_limit in (1000, 10) if "own_limit" in query.params else (None,):
            params = {each: (PARAMS | {"own_limit": own_limit or 0}).get(each, 0.25) for each in query.params}
            expected = rows(connection, tree, params)
            assert expected or name in WITHOUT_FAULT or query.header["grain"].startswith("no row"), (odd, own_limit)
            assert rows(connection, travelled, params) == expected, (odd, own_limit)
        for relation in data:
            connection.unregister(relation)


def test_the_finite_barrier_is_the_same_text_on_both_engines() -> None:
    from pipeline.base.dialect import column
    from pipeline.sources.types import finite

    assert render(finite(column("x")), "spark").replace("`", '"') == render(finite(column("x")))
