"""Queries in two: what single files are asked, put together, is what the whole query returns."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
import sqlglot.expressions as exp
from hypothesis import given, settings
from hypothesis import strategies as st
from sqlglot import parse_one

from pipeline.base.dialect import FILE, render
from pipeline.base.splitting import ANSWERS, NotAdditiveError, Split, Splitter

if TYPE_CHECKING:
    from collections.abc import Mapping

ADDITIVE = (
    "SELECT count(*) AS n FROM kept",
    "SELECT g, CAST(count(*) AS BIGINT) AS n, sum(x) AS total FROM kept GROUP BY g ORDER BY g",
    "SELECT g, min(x) AS low, max(x) AS high, count_if(x > 2) AS n FROM kept GROUP BY g",
    "SELECT CASE WHEN x > 2 THEN 'high' ELSE g END AS kind, count(*) AS n FROM rows_of_files GROUP BY 1 ORDER BY 1",
    "SELECT count(*) FILTER (WHERE x > 1) AS n, coalesce(sum(x), 0) + 1 AS total FROM kept HAVING count(*) > 0",
    "SELECT DISTINCT g, x FROM kept WHERE x > 0",
    "SELECT o.name, count(*) AS n FROM kept AS k INNER JOIN others AS o ON k.g = o.g GROUP BY o.name",
    "SELECT o.name, sum(x) AS n FROM others AS o INNER JOIN kept AS k ON k.g = o.g AND o.name <> 'q' GROUP BY o.name",
    "SELECT o.name, count(*) AS n FROM (SELECT g FROM kept) AS k LEFT JOIN others AS o ON k.g = o.g GROUP BY 1",
    "SELECT count(*) AS n, max(x) AS high FROM kept WHERE g IN (SELECT g FROM others)",
    "SELECT g, count(*) AS n FROM united GROUP BY g",
    "SELECT g, count(*) AS n FROM kept GROUP BY g ORDER BY count(*) DESC, g LIMIT 1",
)
NOT_ADDITIVE = {
    "SELECT g, count(DISTINCT x) AS n FROM kept GROUP BY g": "does not add up",
    "SELECT avg(x) AS mean FROM kept": "does not add up",
    "SELECT g, count(*) AS n FROM kept GROUP BY g HAVING count(*) > 1": "some of its groups",
    "SELECT g, x FROM kept": "not aggregated",
    "SELECT count(*) AS n FROM (SELECT DISTINCT g FROM kept) AS d": "groups of rows",
    "SELECT count(*) AS n FROM (SELECT row_number() OVER (ORDER BY x) AS r FROM kept) AS d": "in the light of others",
    "SELECT count(*) AS n FROM (SELECT g FROM kept LIMIT 3) AS d": "groups of rows",
    "SELECT count(*) AS n FROM kept AS a INNER JOIN kept AS b ON a.g = b.g": "more than once",
    "SELECT count(*) AS n FROM kept WHERE x = (SELECT max(x) FROM kept)": "more than once",
    "SELECT count(*) AS n FROM others LEFT JOIN kept ON others.g = kept.g": "without a match",
    "SELECT count(*) AS n FROM kept FULL JOIN others ON others.g = kept.g": "not known",
    "SELECT count(*) AS n FROM (SELECT g FROM kept UNION SELECT g FROM rows_of_files) AS d": "without repeating",
    "WITH a AS (SELECT * FROM kept) SELECT count(*) AS n FROM a": "no plain SELECT",
    "SELECT g, x + count(*) AS n FROM kept GROUP BY g": "neither a key nor an aggregate",
    "SELECT max(x) FROM kept": "no names",
    "SELECT min(x) AS x, max(x) AS x FROM kept": "no names",
}
VIEWS = {
    "kept": "SELECT g, x FROM rows_of_files WHERE x IS NOT NULL",
    "united": "SELECT g FROM rows_of_files UNION ALL SELECT g FROM other_files WHERE x > 0",
}
ROWS = st.lists(st.tuples(st.sampled_from("abc"), st.one_of(st.none(), st.integers(-3, 5))), max_size=6)


def select(text: str) -> exp.Query:
    tree = parse_one(text, read="duckdb")
    assert isinstance(tree, exp.Query)
    return tree


def split(text: str) -> Split:
    views = {name: select(view) for name, view in VIEWS.items()}
    return Splitter(views, {"rows_of_files", "other_files"}, lambda name: f"{name}_numbered").split(select(text))


def relation(rows: list[tuple[str, int | None]], file: int | None = None) -> pl.DataFrame:
    frame = pl.DataFrame(rows, schema={"g": pl.String, "x": pl.Int64}, orient="row")
    return frame if file is None else frame.with_columns(pl.lit(file, pl.Int32).alias(FILE))


@cache
def connection() -> duckdb.DuckDBPyConnection:
    return duckdb.connect()


def rows_of(text: str, relations: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    for name, frame in relations.items():
        connection().register(name, frame.to_arrow())
    if "rows_of_files" in relations:
        for name, view in VIEWS.items():
            connection().execute(f"CREATE OR REPLACE TEMP VIEW {name} AS {view}")
    rows: pl.DataFrame = connection().sql(text).pl()
    return rows


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("text", ADDITIVE)
@settings(max_examples=15)
@given(files=st.lists(ROWS, min_size=1, max_size=3), other=ROWS)
def test_answers_of_files_put_together_are_the_answer(
    text: str, files: list[list[tuple[str, int | None]]], other: list[tuple[str, int | None]]
) -> None:
    others = pl.DataFrame({"g": ["a", "b", "b"], "name": ["p", "q", "r"]})
    every = {"rows_of_files": relation([row for rows in files for row in rows]), "other_files": relation(other)}
    halves = split(text)
    numbered = {
        "rows_of_files_numbered": pl.concat([relation(rows, number) for number, rows in enumerate(files)]),
        "other_files_numbered": relation(other, len(files)),
    }
    answers = rows_of(render(halves.of_files.rows), numbered | {"others": others})
    together = rows_of(render(halves.together), {ANSWERS: answers})
    expected = rows_of(text, every | {"others": others})
    assert sorted(together.rows(), key=repr) == sorted(expected.rows(), key=repr)


@pytest.mark.parametrize("text", NOT_ADDITIVE)
def test_other_queries_need_all_files_and_say_why(text: str) -> None:
    with pytest.raises(NotAdditiveError, match=NOT_ADDITIVE[text]):
        split(text)


def test_what_rows_meet_is_told_by_the_columns_that_must_be_equal() -> None:
    met = split("SELECT count(*) AS n FROM kept AS k INNER JOIN others AS o ON k.g = o.g AND k.x > 1").of_files.met
    assert [(each.relation.sql(), each.keys) for each in met] == [("SELECT * FROM others", (("g", "g"),))]
    assert met[0].rows is not None
    assert met[0].rows.rows.named_selects == ["g", FILE]


def test_relations_that_a_condition_reads_are_met() -> None:
    met = split("SELECT count(*) AS n FROM kept WHERE EXISTS (SELECT 1 FROM others WHERE name = 'q')").of_files.met
    assert [each.relation.sql() for each in met] == ["SELECT * FROM others"]


def test_a_relation_that_any_row_may_meet_has_no_keys() -> None:
    met = split("SELECT count(*) AS n FROM kept AS k INNER JOIN others AS o ON k.g < o.g").of_files.met
    assert [each.keys for each in met] == [()]


def test_scans_that_are_united_differ_in_their_own_text_only() -> None:
    of_files = split("SELECT g, count(*) AS n FROM united GROUP BY g").of_files
    around, texts = of_files.of_each_scan()
    assert "united_scans" in around
    assert list(texts) == ["rows_of_files", "other_files"]
    assert texts["rows_of_files"] != texts["other_files"]
