"""Every type of DuckDB comes out of `thresher query` in every format; a terminal gets what fits and cannot steer it."""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

import polars as pl
import pytest

from cli.calls import at_terminal, call, spawn
from pipeline.base.visible_text import cleaned

if TYPE_CHECKING:
    from pathlib import Path

    from runs.inputs.workplace import Workplace

FORMATS = ["table", "csv", "tsv", "json", "jsonl", "parquet", "markdown", "latex"]
VALUES: list[tuple[str, str, object]] = [  # SQL, text in csv, value in JSON
    ("[1, 2]", "[1,2]", [1, 2]),
    ("[[NULL, 'b,\"c']]", '[[null,"b,\\"c"]]', [[None, 'b,"c']]),
    ("{'a': 1, 'b': 'x'}", '{"a":1,"b":"x"}', {"a": 1, "b": "x"}),
    ("MAP {'k': 1.5}", '{"k":1.5}', {"k": 1.5}),
    ("array_value(1, 2)", "[1,2]", [1, 2]),
    ("union_value(k := 1)", '{"k":1}', {"k": 1}),
    ("INTERVAL '1 day 2 hours'", "1 day 02:00:00", "1 day 02:00:00"),
    ("[INTERVAL '1 day']", '["1 day"]', ["1 day"]),
    ("'\\xAA\\x01'::BLOB", "\\xAA\\x01", "\\xAA\\x01"),
    ("'101'::BIT", "101", "101"),
    ("1.50::DECIMAL(10, 2)", "1.50", 1.5),
    ("170141183460469231731687303715884105727::HUGEINT", "170141183460469231731687303715884105727", 2**127 - 1),
    ("340282366920938463463374607431768211455::UHUGEINT", "340282366920938463463374607431768211455", 2**128 - 1),
    ("TIMESTAMPTZ '2024-01-01 12:00:00+02'", "2024-01-01T10:00:00.000000+0000", "2024-01-01 10:00:00+00"),
    ("TIMESTAMP_NS '2024-01-01 00:00:00.123456789'", "2024-01-01T00:00:00.123456789", "2024-01-01 00:00:00.123456789"),
    ("DATE '2024-01-01'", "2024-01-01", "2024-01-01"),
    ("TIME '10:00:00'", "10:00:00.000000000", "10:00:00"),
    ("'12:00:00+01'::TIMETZ", "12:00:00+01", "12:00:00+01"),
    ("'a'::ENUM('a', 'b')", "a", "a"),
    ("'00000000-0000-0000-0000-000000000001'::UUID",) + ("00000000-0000-0000-0000-000000000001",) * 2,
    ("'nan'::DOUBLE", "NaN", None),
    ("['inf'::DOUBLE, '-inf'::DOUBLE]", "[Infinity,-Infinity]", [None, None]),
    ("'NaN, -Infinity \" \\'", 'NaN, -Infinity " \\', 'NaN, -Infinity " \\'),
    ("0.1::DOUBLE", "0.1", 0.1),
    ("true", "true", True),
    ("NULL", "", None),
]


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from runs.inputs.workplace import Workplace

    workplace = Workplace(tmp_path_factory.mktemp("formats"))
    workplace.publish()
    return workplace.results


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("format_", ["markdown", "latex"])
def test_a_table_to_paste_holds_every_row_and_escapes_what_is_markup(results: Path, format_: str) -> None:
    sql = "SELECT '<b>|_$%&' AS \"a_b\", x FROM range(60) AS t(x)"
    lines = query(results, sql, format_).decode().splitlines()
    cells = {
        "markdown": r"| &lt;b&gt;\|\_\$%&amp; | 59 |",
        "latex": r"\textless{}b\textgreater{}\textbar{}\_\$\%\& & 59 \\",
    }
    assert cells[format_] in lines
    assert len(lines) == 60 + {"markdown": 2, "latex": 6}[format_]


def test_tab_separated_values_are_read_back(results: Path) -> None:
    sql = "SELECT 'a' || chr(9) || 'b\"' AS t, [1, 2] AS l, NULL AS n"
    rows = list(csv.DictReader(io.StringIO(query(results, sql, "tsv").decode()), delimiter="\t"))
    assert rows == [{"t": 'a\tb"', "l": "[1,2]", "n": ""}]


def query(results: Path, sql: str, format_: str) -> bytes:
    called = call("query", results, sql, "--format", format_)
    assert (called.code, called.err) == (0, ""), called.err
    return called.raw


def test_every_type_comes_out_of_csv_and_json(results: Path) -> None:
    sql = f"SELECT {', '.join(f'{text} AS v{number}' for number, (text, _, _) in enumerate(VALUES))}"
    (row,) = list(csv.DictReader(io.StringIO(query(results, sql, "csv").decode())))
    assert list(row.values()) == [text for _, text, _ in VALUES]
    expected = {f"v{number}": value for number, (_, _, value) in enumerate(VALUES)}
    assert json.loads(query(results, sql, "json")) == [expected]
    assert json.loads(query(results, sql, "jsonl")) == expected


@pytest.mark.first_cases(4)
@pytest.mark.parametrize("format_", FORMATS)
def test_every_type_comes_out_of_every_format_also_without_a_value(results: Path, format_: str) -> None:
    values, nothing = ", ".join(sql for sql, _, _ in VALUES), ", ".join(["NULL"] * len(VALUES))
    assert query(results, f"SELECT {values} UNION ALL SELECT {nothing}", format_)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("sql", ["SHOW ALL TABLES", "DESCRIBE inputs"])
def test_what_describes_the_results_comes_out_of_every_format(results: Path, sql: str, format_: str) -> None:
    assert query(results, sql, format_)


def test_parquet_keeps_the_types_that_it_knows(results: Path) -> None:
    sql = "SELECT [1, 2] AS l, {'a': 1} AS s, INTERVAL '1 day' AS i, 'x' AS v, 1.5::DECIMAL(9, 2) AS d"
    frame = pl.read_parquet(io.BytesIO(query(results, sql, "parquet")))
    assert frame.row(0, named=True)["l"] == [1, 2]
    assert frame.row(0, named=True)["s"] == {"a": 1}
    assert frame["i"].to_list() == ["1 day"]
    assert frame.schema["d"] == pl.Decimal(9, 2)


@pytest.mark.first_cases(4)
@pytest.mark.parametrize("format_", FORMATS)
def test_columns_of_one_name_are_numbered(results: Path, format_: str) -> None:
    assert b"a_1" in query(results, "SELECT 1 AS a, 2 AS a", format_).replace(b"\\_", b"_")


def test_json_lines_without_a_row_are_empty(results: Path) -> None:
    assert query(results, "SELECT 1 AS a WHERE false", "jsonl") == b""


def test_a_terminal_that_is_too_narrow_gets_records(results: Path) -> None:
    words = ["query", str(results), "FROM before_after_operating_points"]
    narrow, wide = at_terminal(*words, columns=80), at_terminal(*words, columns=2000)
    assert "── row 1 ──" in narrow
    assert any(line.split() == ["grouping", "all"] for line in narrow.splitlines())
    assert "── row" not in wide
    assert wide.splitlines()[0].split()[:3] == ["stage", "grouping", "source"]


@pytest.mark.parametrize("format_", ["table", "csv", "jsonl", "markdown"])
def test_no_value_can_steer_a_terminal(results: Path, format_: str) -> None:
    sql = "SELECT chr(27) || ']0;owned' || chr(7) || chr(155) || chr(8238) AS \"a\x1b[31m\""
    seen = at_terminal("query", results, sql, "--format", format_)
    assert not set(seen) & {"\x1b", "\x07", "\x9b", "\u202e"}
    assert "u202e" in seen


@pytest.mark.wide
def test_characters_that_the_encoding_lacks_are_written_as_escapes(results: Path) -> None:
    called = spawn("query", results, "SELECT 'Größe' AS a", "--format", "table", env={"PYTHONIOENCODING": "ascii"})
    assert (called.code, called.err) == (0, "")
    assert "Gr\\xf6\\xdfe" in called.out


def test_values_are_as_they_are_in_a_pipe(results: Path) -> None:
    assert query(results, "SELECT chr(27) || chr(8238) AS a", "csv").decode() == "a\n\x1b\u202e\n"


def test_parquet_is_not_written_to_a_terminal(results: Path) -> None:
    assert "Parquet is not for a terminal" in at_terminal("query", results, "SELECT 1", "-f", "parquet")


def test_names_of_files_in_messages_cannot_steer_a_terminal(workplace: Workplace) -> None:
    called = workplace.run(pairs="gone\x1b]0;owned\x07\u202e.parquet")
    assert called.code == 66
    assert not set(called.err) & {"\x1b", "\x07", "\u202e"}
    assert "gone\\u001b]0;owned\\u0007\\u202e.parquet" in called.err
    unknown = call("run", "c.toml", "a\x1b]0;owned\x07")
    assert unknown.code == 2
    assert "\x1b" not in unknown.err


def test_text_that_cannot_steer_stays_as_it_is() -> None:
    assert cleaned("Größe 中文 – e\u0301 👩\u200d🔬\tx\n") == "Größe 中文 – e\u0301 👩\u200d🔬\tx\n"
    assert cleaned("a\nb", layout="") == "a\\u000ab"
    assert cleaned("\ud800\U000e0041") == "\\ud800\\U000e0041"
