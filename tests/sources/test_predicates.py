from __future__ import annotations

import time
from typing import TYPE_CHECKING

import polars as pl
import pytest
from running import before_after_config, rows_by_status, run_before_after, run_stages

from pipeline.errors import ConfigError, DataError
from pipeline.queries.dialect import column, render
from pipeline.sources.predicates import bind, columns_of, parse_predicate

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


@pytest.mark.parametrize("values", [map(str, range(20_000)), (f"'x {number}'" for number in range(20_000))])
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
