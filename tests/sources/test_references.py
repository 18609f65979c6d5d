from __future__ import annotations

from typing import Any

import duckdb
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp, parse_one

from pipeline.base.errors import ConfigError
from pipeline.sources.predicates import columns_of, expanded, parse_predicate, parse_value

HOSTILE = (
    "nl",
    "",
    "nl' OR '1'='1",
    "nl'; DROP TABLE pairs; --",
    '" OR 1=1 --',
    "\\' OR 1=1 --",
    "*/ OR TRUE /*",
    "$$ OR TRUE $$",
    "${x}",
    "thresher_variable_0_",
    "x\ny",
    "%",
    "漢字",
    "NULL",
    "1) OR (1=1",
)
TEMPLATES = (
    "lang = ${x}",
    "lang = '${x}'",
    "lang IN (${x}, 'a${x}b') AND NOT n > 5",
    "n BETWEEN 1 AND ${x} OR lang LIKE '%${x}%'",
    "CAST(${x} AS VARCHAR) = lang /* ${x} */",
    '"col ${x}" = 1 AND coalesce(lang, ${x}) = ${x}',
    "CASE WHEN lang = ${x} THEN TRUE ELSE regexp_matches(lang, ${x}) END",
)


def structure(tree: exp.Expr) -> Any:  # noqa: ANN401 - a nested tuple
    """Everything of a tree but the text of its literals and of its names in double quotes."""
    is_text = (isinstance(tree, exp.Literal) and tree.is_string) or (isinstance(tree, exp.Identifier) and tree.quoted)
    words = [(key, text) for key, text in sorted(tree.args.items()) if isinstance(text, str | bool) and not is_text]
    return type(tree).__name__, words, [structure(child) for child in tree.iter_expressions()]


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("template", TEMPLATES)
@given(value=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0")))
@example(value="nl' OR '1'='1")
@example(value="\\")
@example(value="*/ OR TRUE /*")
def test_no_value_changes_the_structure_of_a_predicate(template: str, value: str) -> None:
    tree, plain = (parse_predicate(template, name="pairs", values={"x": text}) for text in (value, "plain"))
    assert structure(tree) == structure(plain)
    if value:  # a name without a character cannot be read back
        for dialect in ("duckdb", "spark"):
            printed, expected = (parse_one(node.sql(dialect=dialect), read=dialect) for node in (tree, plain))
            assert structure(printed) == structure(expected)
            literals = [[node.this for node in sql.find_all(exp.Literal)] for sql in (printed, tree)]
            assert literals[0] == literals[1]


@pytest.mark.first_cases(11)
@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("template", ["lang = ${x}", "lang = '${x}'", "lang IN (${x})", "lang = ${x} OR FALSE"])
def test_an_engine_takes_a_value_for_one_text(template: str, value: str) -> None:
    predicate = parse_predicate(template, name="pairs", values={"x": value})
    query = exp.select("lang").from_("texts").where(predicate).sql(dialect="duckdb")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE texts AS SELECT unnest($1) AS lang", [list(HOSTILE)])
        assert connection.execute(query).fetchall() == [(value,)]


@pytest.mark.parametrize(
    ("predicate", "value", "kept"),
    [
        ("n >= ${x}", "2", [2, 3]),
        ("n IN (${x}, 3)", "1", [1, 3]),
        ("n BETWEEN ${x} AND 2", "1", [1, 2]),
        ("n * CAST(${x} AS DOUBLE) = 4", "2", [2]),
        ("day > ${x}", "2026-11-01", [2, 3]),
        ("day = DATE '${x}'", "2026-11-02", [2]),
        ("day > CAST(${x} AS DATE) + INTERVAL 1 DAY", "2026-11-01", [3]),
        ("score < ${x}", "0.25", [1, 2]),
        ("CAST(n AS VARCHAR) = ${x}", "3", [3]),
    ],
)
def test_text_is_compared_as_what_it_meets(predicate: str, value: str, kept: list[int]) -> None:
    tree = parse_predicate(predicate, name="pairs", values={"x": value})
    rows = "SELECT n, DATE '2026-10-31' + CAST(n AS INTEGER) AS day, n / 10 AS score FROM range(1, 4) AS r (n)"
    query = exp.select("n").from_("numbers").where(tree).sql(dialect="duckdb")
    with duckdb.connect() as connection:
        connection.execute("CREATE TABLE numbers AS " + rows)
        assert [row[0] for row in connection.execute(query).fetchall()] == kept


@pytest.mark.parametrize(
    ("predicate", "words"),
    [
        ("${x}(lang) = 'a'", "input pairs: where may not hold '${x}(lang)'"),
        ("lang_${x} = 'a'", "input pairs: where: ${x} stands for one value, and for no piece of a name"),
        ("n * ${x} = 4", "where: ${x} is text, and cannot be added or multiplied"),
        ("t.${x} = 1", "stands for one value"),
        ("${x}.n = 1", "stands for one value"),
        ("CAST(n AS ${x}) = 1", "${x}"),
        ("lang = ${x", "'${' is not the name of a variable"),
        ("lang = ${x y}", "'${x y}' is not the name of a variable"),
        ("lang = ${x} AND (SELECT 1)", "may not hold '(SELECT 1)'"),
        ("lang = = ${x}", "'lang = = ${x}'"),
    ],
)
def test_a_value_stands_for_nothing_but_a_value(predicate: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse_predicate(predicate, name="pairs", values={"x": "secret"})
    assert words in caught.value.message
    assert "secret" not in str(caught.value)
    assert "thresher_variable" not in str(caught.value)


def test_an_expression_reads_the_column_that_a_value_names() -> None:
    tree = parse_value('"score ${x}" * CAST(${y} AS DOUBLE)', name="p: columns: score", values={"x": 'v"7', "y": "2"})
    assert columns_of(tree) == ('score v"7',)
    assert tree.sql(dialect="duckdb") == '"score v""7" * CAST(\'2\' AS DOUBLE)'
    with pytest.raises(ConfigError, match="reads no column"):
        parse_value("${x}", name="p: columns: score", values={"x": "score"})


def test_two_dollars_are_the_characters_themselves() -> None:
    assert expanded("$${x}/${x}/$x$$", {"x": "1"}) == "${x}/1/$x$$"
    tree = parse_predicate("lang = '$${x}'", name="pairs")
    assert tree.sql() == "lang = '${x}'"


def test_a_reference_without_a_value_is_named() -> None:
    with pytest.raises(ConfigError, match=r"the environment variable DATA is not set, which \$\{env\.DATA\} needs"):
        expanded("${env.DATA}/x", {})
