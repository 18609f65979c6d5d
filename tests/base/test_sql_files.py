from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
import sqlglot.expressions as exp
from sqlglot import parse_one

from pipeline.base import sql_files as load_module
from pipeline.base.dialect import render
from pipeline.base.errors import ThresherError
from pipeline.base.sql_files import CHECK_KEYS, HEADER_KEYS, PLAN_KEYS, expand, query_names, resource_folder
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.base.sql_files import Query, Segment

NAMES = query_names()
SEGMENTS = [(), ("source",), ("source", "country"), ('a "b" c', "select; --"), ("segment", "é`x")]
FUNCTIONS = {
    exp.Count: "counts",
    exp.CountIf: "counts, cast to BIGINT",
    exp.Sum: "of integers, cast to BIGINT, or of decimals",
    exp.Min: "certificates of bins",
    exp.Max: "certificates of bins",
    exp.Case: "",
    exp.If: "a branch of CASE",
    exp.Cast: "",
    exp.Coalesce: "",
    exp.Trim: "of blanks alone",
    exp.And: "sqlglot counts connectors among the functions",
    exp.Or: "see And",
    exp.Xor: "see And",
    exp.Rank: "ties share a rank",
    exp.Ntile: "over an order without ties",
    exp.RowNumber: "over an order without ties",
    exp.MD5: "the same digest in every engine",
    exp.StrPosition: "instr",
    exp.Substring: "substr",
    exp.Length: "of text, in characters",
    exp.Lower: "of text that is compared with other text made lower in the same engine",
    exp.Replace: "every occurrence, unlike regexp_replace",
    exp.Floor: "before every cast of a float to an integer",
    exp.Ceil: "see Floor",
    exp.Abs: "",
    exp.Ln: "natural in every engine, unlike log",
    exp.Greatest: "of values that are never NULL",
    exp.Least: "see Greatest",
    exp.Sin: "of distances on the Earth, whose last bits differ between engines; likewise the next three",
    exp.Cos: "see Sin",
    exp.Asin: "see Sin",
    exp.Sqrt: "see Sin",
}
OF_ANY_VALUE = {"hash"}  # whose values differ between engines: for a random order alone
DECIMAL = "DECIMAL(38, 15)"
SHORT_DECIMALS = {"DECIMAL(18, 15)", "DECIMAL(19, 15)"}
EXACT_INTEGERS = re.compile(r"^(n|m|tp|fp|fn|hits|matches|count|influence)(_|$)")


def of_every_query(check: Callable[[Query], None]) -> Callable[[], None]:
    """A test that holds a check to every query; its failure names the query."""

    def test() -> None:
        for name in NAMES:
            try:
                check(load_module.load(name))
            except AssertionError as fault:
                fault.add_note(f"sql/{name}.sql")
                raise

    return test


def test_there_are_queries_and_their_names_are_their_places() -> None:
    assert tuple(sorted(NAMES)) == NAMES
    assert "before_after/matches" in NAMES


@pytest.mark.wide
@of_every_query
def test_every_header_says_grain_reads_params_and_caution(query: Query) -> None:
    assert [key for key in HEADER_KEYS if not query.header.get(key)] == []
    is_check = "/checks/" in f"/{query.name}"
    assert set(query.header) - {*PLAN_KEYS} == {*HEADER_KEYS, *(CHECK_KEYS if is_check else ())}
    assert all(query.header.values())


@of_every_query
def test_every_relation_in_a_header_lists_the_columns_that_are_read(query: Query) -> None:
    """`reads: pairs (score, bin)`: the columns of each relation, which the portability test fills with data."""
    listed = dict(re.findall(r"(\w+) \(([^)]*)\)", query.header["reads"]))
    assert tuple(listed) == query.reads
    listed_columns = {name.strip() for columns in listed.values() for name in columns.split(",")}
    aliases = {alias.alias for alias in query.tree.find_all(exp.Alias)}
    used = {column.name for column in query.tree.find_all(exp.Column)}
    assert used - aliases <= listed_columns


@of_every_query
def test_a_segment_in_a_header_is_an_input_of_the_stage_or_named_by_its_plan(query: Query) -> None:
    stages = [stage for stage in STAGES if stage.kind == query.name.partition("/")[0]]
    inputs = {contract.name for stage in stages or STAGES for contract in stage.load().inputs}
    assert {*query.segments.values()} <= {"by", "systems", "judgements"} | inputs


@of_every_query
def test_no_division_and_no_float_aggregate_runs_in_sql(query: Query) -> None:
    for quotient in query.tree.find_all(exp.Div):
        divisor = quotient.expression.this if isinstance(quotient.expression, exp.Cast) else quotient.expression
        is_constant = isinstance(divisor, exp.Literal | exp.Placeholder)
        assert is_constant, f"{quotient.sql()}: engines differ on a division by zero"
    assert not list(query.tree.find_all(exp.IntDiv, exp.SafeDivide, exp.Avg, exp.Stddev, exp.Variance))
    for total in query.tree.find_all(exp.Sum, exp.CountIf):
        if isinstance(total, exp.Sum) and isinstance(total.this, exp.Cast):
            kind = total.this.to.sql()
            if kind in SHORT_DECIMALS:  # the sum is wider, and by how much differs between engines
                wider = total.find_ancestor(exp.Cast)
                kind = kind if wider is None else wider.to.sql()
            assert kind == DECIMAL, f"{total.sql()}: only decimals add up exactly"
            continue
        if isinstance(total, exp.Sum):
            assert isinstance(total.this, exp.Column), total.sql()
            assert EXACT_INTEGERS.match(total.this.name), total.sql()
        cast = total.find_ancestor(exp.Cast)
        assert cast is not None
        assert cast.to.sql() == "BIGINT", f"{total.sql()}: the type of a sum differs between engines"


@of_every_query
def test_only_functions_known_to_be_portable_are_called(query: Query) -> None:
    functions = [node for node in query.tree.find_all(exp.Func) if type(node) not in FUNCTIONS]
    unknown = {node.name or type(node).__name__ for node in functions} - OF_ANY_VALUE
    assert unknown == set(), f"not in the list of portable functions, or unknown to sqlglot: {query.name}"


@of_every_query
def test_a_float_is_rounded_before_it_is_cast_to_an_integer(query: Query) -> None:
    """DuckDB rounds in such a cast, Spark truncates."""
    floats = {"score", "distance_km", "lag_hours", "threshold", "lowest", "highest"}
    for cast in query.tree.find_all(exp.Cast):
        if cast.to.is_type(*exp.DataType.INTEGER_TYPES):
            assert not (isinstance(cast.this, exp.Column) and cast.this.name in floats), cast.sql()


@of_every_query
def test_constructs_without_a_portable_meaning_are_not_used(query: Query) -> None:
    passed_on = [star for star in query.tree.find_all(exp.Star) if not isinstance(star.parent, exp.Count)]
    assert not passed_on or query.name.startswith("bins/"), "only a bin is put beside whatever columns rows have"
    for limit in query.tree.find_all(exp.Limit):
        assert limit.parent is not None
        assert limit.parent.args.get("order"), "which rows come back is left open"
    assert not list(query.tree.find_all(exp.TableSample, exp.Pivot, exp.Unnest, exp.Lateral))
    assert not any(join.method for join in query.tree.find_all(exp.Join)), "ASOF and NATURAL joins differ"
    assert all(isinstance(table.this, exp.Identifier) for table in query.tree.find_all(exp.Table))


@pytest.mark.wide
@of_every_query
def test_every_query_can_be_said_in_every_dialect(query: Query) -> None:
    for segment in SEGMENTS:
        tree = expand(query, segment)
        for dialect in ("duckdb", "spark"):
            text = render(tree, dialect)
            again = parse_one(text, read=dialect).sql(dialect=dialect, pretty=True, comments=False)
            assert again == text, (dialect, segment)


@pytest.mark.wide
@of_every_query
def test_the_grouping_columns_stand_where_the_query_says_segment(query: Query) -> None:
    def columns(tree: exp.Query) -> list[str]:
        return [item.alias_or_name for item in tree.expressions]

    def groups(tree: exp.Query) -> list[str]:
        group = tree.args.get("group")
        return [item.name for item in group.expressions] if group else []

    for segment in SEGMENTS:
        before, after = query.tree, expand(query, segment)
        for names in (columns, groups):
            expected: list[str] = []
            for name in names(before):
                expected += list(segment) if name == "segment" else [name]
            assert names(after) == expected, segment
        assert "segment" in segment or not any(node.name == "segment" for node in after.find_all(exp.Column)), segment


@of_every_query
def test_expansion_leaves_the_loaded_query_as_it_was(query: Query) -> None:
    before = query.tree.sql()
    expand(query, ("a", "b"))
    assert query.tree.sql() == before


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of query files of its own."""
    monkeypatch.setattr(load_module, "resource_folder", lambda _: tmp_path)
    monkeypatch.setattr(load_module, "load", load_module.load.__wrapped__)
    return tmp_path


HEADER = "-- grain: one row per segment\n-- reads: t (x, segment)\n-- params: $p\n-- caution: none\n"


def expanded(folder: Path, sql: str, segment: tuple[str, ...], zero: tuple[str, ...] = ()) -> str:
    (folder / "q.sql").write_text(HEADER + sql, encoding="utf-8")
    return render(expand(load_module.load("q"), segment, zero=zero), pretty=False).rpartition("*/ ")[2]


def test_the_segment_is_expanded_in_lists_groups_windows_and_orders(written: Path) -> None:
    sql = (
        "SELECT t.segment, x, row_number() OVER (PARTITION BY t.segment ORDER BY x) AS r FROM t WHERE x > $p "
        "GROUP BY t.segment, x ORDER BY segment DESC, x"
    )
    both = expanded(written, sql, ("a", 'b"c'))
    assert both.startswith('SELECT t."a", t."b""c", x, ROW_NUMBER() OVER (PARTITION BY t."a", t."b""c" ORDER BY x)')
    assert 'GROUP BY t."a", t."b""c", x' in both
    assert expanded(written, sql, ()).startswith("SELECT x, ROW_NUMBER() OVER (ORDER BY x) AS r FROM t")


def test_a_column_that_is_zero_everywhere_is_written_and_not_grouped_by(written: Path) -> None:
    sql = "SELECT segment, r, b, count(x) AS n FROM t WHERE x > $p GROUP BY segment, r, b"
    alone = expanded(written, sql, (), ("r",))
    assert alone == "SELECT CAST(0 AS BIGINT) AS r, b, COUNT(x) AS n FROM t WHERE x > $p GROUP BY b"
    both = expanded(written, sql, ("s",), ("r", "b"))
    assert both.endswith('COUNT(x) AS n FROM t WHERE x > $p GROUP BY "s"')


def test_a_group_of_nothing_but_the_segment_disappears_with_it(written: Path) -> None:
    sql = "SELECT segment, count(x) AS n FROM t WHERE x > $p GROUP BY segment"
    assert expanded(written, sql, ()) == "SELECT COUNT(x) AS n FROM t WHERE x > $p"
    assert expanded(written, sql, ("s",)) == 'SELECT "s", COUNT(x) AS n FROM t WHERE x > $p GROUP BY "s"'


def loaded(folder: Path, sql: str, segment: Segment, **options: Any) -> str:  # noqa: ANN401 - as statement
    (folder / "q.sql").write_text(HEADER + sql, encoding="utf-8")
    return render(load_module.statement("q", segment, **options), pretty=False).rpartition("*/ ")[2]


def test_a_condition_on_the_segment_is_about_one_of_the_columns(written: Path) -> None:
    sql = "SELECT x FROM t WHERE x > $p AND segment IS NOT NULL AND (x = 1 OR segment IS NULL)"
    assert loaded(written, sql, ("a", "b")).endswith(
        'WHERE x > $p AND NOT ("a" IS NULL OR "b" IS NULL) AND (x = 1 OR ("a" IS NULL OR "b" IS NULL))'
    )
    assert loaded(written, sql, ("segment",)).endswith('NOT "segment" IS NULL AND (x = 1 OR "segment" IS NULL)')
    assert loaded(written, sql, ()).endswith("WHERE x > $p AND NOT FALSE AND (x = 1 OR FALSE)")
    with pytest.raises(ThresherError, match="neither in a list nor in a condition"):
        loaded(written, "SELECT min(segment) + $p AS y FROM t", ("a",))


def test_each_relation_may_have_its_own_columns_and_rows_meet_on_those_that_both_have(written: Path) -> None:
    header = HEADER.replace("t (x, segment)", "t (x, segment), u (segment)")
    sql = "SELECT segment, u.segment FROM t INNER JOIN u ON t.segment IS NOT DISTINCT FROM u.segment WHERE x > $p"
    (written / "q.sql").write_text(header + sql, encoding="utf-8")
    tree = load_module.statement("q", {"t": ["a", "b"], "u": ["b", "c"]})
    assert render(tree, pretty=False).rpartition("*/ ")[2] == (
        'SELECT "a", "b", "c", u."b", u."c" FROM t INNER JOIN u ON t."b" IS NOT DISTINCT FROM u."b" WHERE x > $p'
    )


def test_a_statement_reads_other_relations_columns_and_conditions(written: Path) -> None:
    options = {"relations": {"t": "actual"}, "columns": {"x": "y"}, "values": {"p": 0.5}}
    text = loaded(written, "SELECT t.x FROM t WHERE x > $p", (), **options)
    assert text == """SELECT t."y" FROM actual AS t WHERE "y" > CAST('0.5' AS DOUBLE)"""
    condition = {"x": parse_one("a = 1 OR b = 2")}
    assert loaded(written, "SELECT $p FROM t WHERE x AND x", ("s",), columns=condition).endswith(
        "WHERE (a = 1 OR b = 2) AND (a = 1 OR b = 2)"
    )


@pytest.mark.parametrize(
    ("header", "sql", "words"),
    [
        (HEADER.replace("-- caution: none\n", ""), "SELECT x FROM t WHERE x > $p", "lacks caution"),
        (HEADER + "-- message: {input} is odd\n", "SELECT x FROM t WHERE x > $p", "lacks remedy"),
        (HEADER, "SELECT x FROM other WHERE x > $p", "differ in what they read"),
        (HEADER, "SELECT x FROM t", "or in their parameters"),
        (HEADER + "-- segment: t of pairs\n", "SELECT segment, x FROM t WHERE x > $p", "segment of the header"),
        (HEADER, "SELECT x FROM t WHERE x > $p; SELECT 1", "one SELECT"),
        (HEADER, "DELETE FROM t WHERE x > $p", "one SELECT"),
    ],
)
def test_a_file_that_breaks_its_form_is_refused(written: Path, header: str, sql: str, words: str) -> None:
    (written / "q.sql").write_text(header + sql, encoding="utf-8")
    with pytest.raises(ThresherError, match=words):
        load_module.load("q")


def test_no_query_file_is_longer_than_a_page() -> None:
    for name in NAMES:
        assert len((resource_folder("sql") / f"{name}.sql").read_text(encoding="utf-8").splitlines()) <= 100, name
