from __future__ import annotations

import datetime as dt
import time
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
import sqlglot.expressions as exp
from hypothesis import given, settings
from hypothesis import strategies as st
from running import before_after_config, rows_by_status, run_before_after, run_stages

from pipeline.base.dialect import apart, column, render, table
from pipeline.base.errors import ConfigError, DataError
from pipeline.sources.predicates import bind, columns_of, numbers_as_floats, parse_predicate

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ALLOWED = [
    "language = 'nl'",
    "language IN ('nl', 'be') AND NOT draft",
    "day BETWEEN DATE '2024-01-01' AND '2024-02-01'",
    "score > 0.5 OR score IS NULL",
    "title LIKE '%x%' ESCAPE '!'",
    "title ILIKE 'a%'",
    "CASE WHEN a > 1 THEN b ELSE c END",
    "CAST(a AS INTEGER) % 2 = 0",
    "lower(trim(title)) <> upper('x')",
    "coalesce(a, 0) >= abs(-3)",
    "regexp_matches(title, '^a')",
    "starts_with(title, 'a')",
    "year(day) = 2024 AND month(day) < 6",
    '"weird "" name" = 1',
    "a IS DISTINCT FROM b",
    "(a, b) IN ((1, 2), (3, 4))",
    "round(a) + floor(b) * ceil(c) > -1",
    "length(substring(title, 1, 3)) = 3",
    "TRUE",
]
REFUSED = [
    "",
    "score >",
    "1 = 1; DROP TABLE pairs",
    "1 = 1) OR (1 = 1",
    "score > (SELECT max(score) FROM pairs)",
    "EXISTS (SELECT 1)",
    "event_id IN (SELECT event_id FROM read_parquet('x'))",
    "count(*) > 1",
    "max(score) > 1",
    "row_number() OVER () = 1",
    "score > $before_start",
    "score > ?",
    "read_text('x') = ''",
    "getenv('HOME') = ''",
    "nextval('s') > 1",
    "random() > 0.5",
    "now() > day",
    "SELECT 1",
    "TRUE UNION SELECT 1",
    "* = 1",
    "unnest([1]) = 1",
    "list_filter([1], x -> x > 0) = [1]",
    "COLUMNS('a') > 1",
    "current_setting('x') = 'y'",
    "score = ANY (SELECT 1)",
]


@pytest.mark.parametrize("text", ALLOWED)
def test_predicates_of_columns_constants_and_simple_functions_are_allowed(text: str) -> None:
    tree = parse_predicate(text, name="pairs")
    again = render(tree, pretty=False)
    assert render(parse_predicate(again, name="pairs"), pretty=False) == again


@pytest.mark.parametrize("text", REFUSED)
def test_anything_else_is_refused_and_names_the_input(text: str) -> None:
    with pytest.raises(ConfigError, match="input pairs"):
        parse_predicate(text, name="pairs")


def test_columns_are_listed_in_order_of_appearance() -> None:
    tree = parse_predicate('b = 1 AND a = 2 AND (b > 0 OR "C c" IN (a, 1))', name="pairs")
    assert columns_of(tree) == ("b", "a", "C c")


def test_every_column_can_be_replaced() -> None:
    tree = parse_predicate("a = 1 AND lower(b) = 'x'", name="pairs")
    bound = bind(tree, lambda name: column(f"my_{name}"), lambda _: "")
    assert render(bound, pretty=False) == '"my_a" = 1 AND LOWER("my_b") = \'x\''
    assert columns_of(tree) == ("a", "b")


PAIRS = pl.DataFrame(
    {
        "event_id": [1, 1, 2, 2],
        "score": [0.9, 0.2, float("nan"), 0.7],
        "lag_hours": [1.0, -1.0, 2.0, 3.0],
        "language": ["nl", "nl", "be", None],
    }
)


def kept(tmp_path: Path, where: str, pairs: pl.DataFrame = PAIRS) -> dict[str, int]:
    keys = {"thresholds": [0.5], "invalid_scores": "drop", "allow_empty": True}
    return rows_by_status(run_before_after(tmp_path, {"pairs": pairs}, pairs={"where": where}, **keys))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("language = 'nl'", {"used": 2, "where": 2}),
        ("language <> 'nl'", {"nan_score": 1, "used": 0, "where": 3}),
        ("score > 100", {"used": 0, "where": 4}),
        ("NOT score > 100", {"used": 3, "where": 1}),
        ("score > 0.5 -- */ OR TRUE", {"used": 2, "where": 2}),
        ("score > 0.5 /* x */ -- y", {"used": 2, "where": 2}),
        ("FALSE OR language IS NULL", {"used": 1, "where": 3}),
        ("language = 'nl''; DROP TABLE pairs; --'", {"used": 0, "where": 4}),
    ],
)
def test_where_keeps_the_rows_for_which_it_is_true(tmp_path: Path, where: str, expected: dict[str, int]) -> None:
    assert kept(tmp_path, where) == expected


def test_where_reads_columns_of_the_files_and_weird_names_stay_names(tmp_path: Path) -> None:
    weird = 'x" OR 1=1 --'
    pairs = PAIRS.with_columns(pl.Series(weird, [1, 2, 3, 4]))
    assert kept(tmp_path, '"x"" OR 1=1 --" = 1', pairs) == {"used": 1, "where": 3}


def test_where_on_a_column_that_is_not_there_names_it(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"'langage'.*\n.*language"):
        kept(tmp_path, "langage = 'nl'")


@pytest.mark.parametrize("where", ["score", "language", "upper(score) = 'A'", "language > 3", "language + 1 = 2"])
def test_a_predicate_that_does_not_fit_its_columns_is_the_fault_of_the_user(tmp_path: Path, where: str) -> None:
    with pytest.raises((ConfigError, DataError), match="where"):
        kept(tmp_path, where)


@pytest.mark.parametrize(
    "values",
    [
        map(str, range(20_000)),
        (f"'x {number}'" for number in range(20_000)),
        ("'O''Neil'", *map(str, range(20_000)), "NULL", "1.5", "''", "-.5", "2e-3"),
        (f"DATE '{2000 + number % 100}-01-{1 + number % 28:02d}'" for number in range(20_000)),
    ],
    ids=["numbers", "texts", "mixed", "days"],
)
def test_long_lists_are_not_parsed_value_by_value(values: Iterable[str]) -> None:
    text = f"note = 'id IN (1, 2)' AND id NOT IN ({', '.join(values)}) AND \"a IN (1)\" > 1"
    tree = parse_predicate(text, name="pairs")
    assert columns_of(tree) == ("a IN (1)", "note", "id")
    assert len(list(tree.walk())) < 50
    assert tree.sql(dialect="duckdb") == text.replace("id NOT IN", "NOT id IN")


IDS = pl.DataFrame(
    {
        "event_id": range(5),
        "name": ["e0", "e60", "E61", None, "e900"],
        "score": [0.9] * 5,
        "lag_hours": [1.0] * 5,
        "number": [0, 60, 61, None, 900],
        "small": pl.Series([0, 60, 61, None, -128], dtype=pl.Int8),
        "large": pl.Series([0, 60, 61, None, 2**64 - 1], dtype=pl.UInt64),
        "real": [0.0, 60.0, 60.5, None, float("nan")],
    }
)
TEXTS = ", ".join(f"'e{number}'" for number in range(100))
NUMBERS = ", ".join(map(str, range(100)))
QUOTED = ", ".join(f"'{number}'" for number in range(100))
MANY = ", ".join(f"'e{number}'" for number in range(100_000))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("where", "used"),
    [
        (f"name IN ({TEXTS})", 2),
        (f"name NOT IN ({TEXTS})", 2),  # neither is true of NULL
        (f"NOT (name IN ({TEXTS}))", 2),
        (f"(name IN ({TEXTS})) IS NULL", 1),
        (f"(name NOT IN ({TEXTS})) IS NOT TRUE", 3),
        (f"name IN ({TEXTS}) OR name IS NULL", 3),
        (f"(name) IN ({TEXTS}) AND number IN ({NUMBERS})", 2),
        (f"lower(name) IN ({TEXTS})", 3),
        (f"CASE WHEN number > 60 THEN upper(name) ELSE name END IN ({TEXTS})", 2),
        (f"CAST(number AS VARCHAR) IN ({QUOTED})", 3),
        (f"number IN ({NUMBERS})", 3),
        (f"number NOT IN ({QUOTED})", 1),
        (f"small IN ({NUMBERS})", 3),
        (f"small NOT IN ({QUOTED})", 1),
        (f"large NOT IN ({NUMBERS})", 1),
        (f"large IN ({NUMBERS}, 18446744073709551615)", 4),
        (f"real IN ({NUMBERS})", 2),
        (f"real NOT IN ({NUMBERS})", 1),
        (f"name IN ({MANY})", 3),
        (f"name NOT IN ({MANY})", 1),
        (f"name IN ({MANY}, 'O''Neil', '')", 3),
        (f"name NOT IN ({MANY}, NULL)", 0),
        (f"real NOT IN ({', '.join(f'{number}.5' for number in range(100_000))})", 2),
    ],
)
@pytest.mark.parametrize("in_memory", [True, False])
def test_long_lists_keep_the_rows_that_short_ones_would(
    tmp_path: Path, where: str, used: int, *, in_memory: bool
) -> None:
    start = time.process_time()
    config = before_after_config(tmp_path, {"pairs": IDS}, thresholds=[0.5], allow_empty=True)
    config["stages"][0]["pairs"] = {"path": IDS if in_memory else tmp_path / "pairs.parquet", "where": where}
    assert rows_by_status(run_stages(config)).get("where", 0) == IDS.height - used
    assert time.process_time() - start < 20  # where each value is part of each statement: minutes


def test_long_lists_leave_files_out_by_their_folders(tmp_path: Path) -> None:
    for name in ("e1", "e200"):
        (tmp_path / f"day={name}").mkdir()
        IDS.write_parquet(tmp_path / f"day={name}" / "pairs.parquet")
    pairs = {"path": str(tmp_path / "day=*" / "*.parquet"), "where": f"day IN ({TEXTS})"}
    assert sum(rows_by_status(run_before_after(tmp_path, {"pairs": IDS}, pairs=pairs, thresholds=[0.5])).values()) == 5


VALUES_OF_TYPES = {
    "string": st.text("ae0'-, ", max_size=3).map(lambda text: "'" + text.replace("'", "''") + "'"),
    "int64": st.integers(-3, 90).map(str),
    "int8": st.integers(-128, 127).map(lambda number: f"'{number}'"),
    "double": st.one_of(st.integers(-3, 90).map(str), st.decimals(-2, 2, places=2).map(str)),
    "float": st.one_of(st.integers(-3, 90).map(str), st.decimals(-2, 2, places=2).map(str)),
    "date32[day]": st.dates(dt.date(2020, 1, 1), dt.date(2020, 3, 1)).map(lambda day: f"DATE '{day}'"),
}


@pytest.mark.wide
@pytest.mark.parametrize("kind", VALUES_OF_TYPES)
@settings(max_examples=25, deadline=None)
@given(st.data())
def test_long_lists_mean_what_the_engine_makes_of_them(kind: str, data: st.DataObject) -> None:
    value = VALUES_OF_TYPES[kind]
    looked_for = [*data.draw(st.lists(value, min_size=1, max_size=8)), "NULL"]
    listed = data.draw(st.lists(value, min_size=51, max_size=60)) + data.draw(st.sampled_from([[], ["NULL"]]))
    sql_type = {"string": "VARCHAR", "int64": "BIGINT", "int8": "TINYINT", "date32[day]": "DATE"}.get(
        kind, kind.upper()
    )
    with duckdb.connect() as connection:
        rows = ", ".join(f"(CAST({each} AS {sql_type}))" for each in looked_for)
        connection.execute(f"CREATE TABLE rows AS SELECT * FROM (VALUES {rows}) AS t(x)")  # noqa: S608 - as below
        for negated in ("", "NOT "):
            text = f"x {negated}IN ({', '.join(listed)})"
            expected = connection.execute(f"SELECT {text} FROM rows").fetchall()  # noqa: S608 - drawn here
            tree = numbers_as_floats(parse_predicate(text, name="pairs"), lambda _: kind == "float")
            query, lists = apart(exp.select(bind(tree, column, lambda _: kind)).from_("rows"))
            for name, node in lists.items():
                connection.register(name, table(node))
            assert connection.execute(render(query)).fetchall() == expected
            assert bool(lists) == (kind != "float")


def test_long_lists_are_read_by_spark_as_they_are_by_duckdb() -> None:
    values = [*TEXTS.split(", "), "'O''Neil'", "''", "'a,b'"]
    tree = bind(parse_predicate(f"name IN ({', '.join(values)})", name="pairs"), column, lambda _: "string")
    short = parse_predicate(f"name IN ({', '.join(values[-3:])})", name="pairs")
    assert render(tree, "spark", pretty=False).endswith("'O\\'Neil', '', 'a,b')")
    assert render(short, "spark", pretty=False).endswith("'O\\'Neil', '', 'a,b')")


CONSTANTS = {  # a text of ten million characters, ten million numbers
    "repeat('a', 10000000) = name",
    "lpad('a', 10000000, 'b') = name",
    "rpad(name, 10000000, 'b') = name",
    "len(range(10000000)) > score",
    "len(generate_series(1, 10000000)) > score",
    "printf('%10000000d', 1) = name",
    "format('{:>10000000}', 'a') = name",
    "list_sum(list_transform(range(10000000), x -> x)) > 1",
    "concat(name, name) = 'a'",
}


@pytest.mark.parametrize("text", sorted(CONSTANTS))
def test_functions_that_make_much_of_constants_are_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"where (may not hold|is not an SQL predicate)"):
        parse_predicate(text, name="pairs")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "where",
    [
        f"regexp_matches('{'a' * 5000}b', '(a+)+$') OR score > 0",
        f"regexp_matches('{'a' * 20_000}', '((a*)*)*b') OR score > 0",
        f"'{'a' * 60}' LIKE '{'%_a' * 12}%b' OR score > 0",
        f"'{'a' * 60}' ILIKE '{'%a' * 20}b' OR score > 0",
        f"'{'a' * 60}' GLOB '{'*?a' * 12}*b' OR score > 0",
        f"'{'a' * 500}' SIMILAR TO '(a+)+b' OR score > 0",
        "2 ** 10000000 > score AND 10 ^ 300 > 1",
    ],
)
def test_patterns_and_powers_of_constants_cost_nothing(tmp_path: Path, where: str) -> None:
    start = time.process_time()
    assert kept(tmp_path, where) == {"used": 3, "where": 1}
    assert time.process_time() - start < 5


def test_text_beside_a_long_list_shows_what_runs_elsewhere() -> None:
    tree = bind(parse_predicate(f"name IN ({TEXTS})", name="pairs"), column, lambda _: "string")
    assert render(tree, pretty=False) == f'"name" IN ({TEXTS})'


@pytest.mark.parametrize("function", ["replace({}, 'a', 'aaaaaaaaaaaaaaaa')", "CAST({} AS VARCHAR)"])
@pytest.mark.parametrize("text", ["'aaaa'", "note"])
def test_texts_that_grow_out_of_hand_are_refused_before_they_are_made(function: str, text: str) -> None:
    for _ in range(9):
        text = function.format(text)
    with pytest.raises(ConfigError, match=r"pairs: where can make texts 1,000,000 times as long"):
        parse_predicate(f"{text} = 'x'", name="pairs")
