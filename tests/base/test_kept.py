"""Trees that are kept in the process: one for each key, under numbers that are never given again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
from kept_trees import changed_trees
from sqlglot import exp, parse_one
from stage_examples import EXAMPLES

import thresher
from pipeline.base import dialect
from pipeline.base.dialect import render
from pipeline.base.sql_files import expand, load, statement

if TYPE_CHECKING:
    from collections.abc import Generator

    from stage_examples import Example


@pytest.fixture(autouse=True)
def _nothing_kept_before(monkeypatch: pytest.MonkeyPatch) -> Generator[None]:
    for name in ("_trees", "_by_id", "_texts"):
        monkeypatch.setattr(dialect, name, {})
    load.cache_clear()
    yield
    load.cache_clear()


def test_a_tree_is_built_once_for_its_key_and_never_without_one() -> None:
    built = [dialect.kept(key, lambda: exp.select("a")) for key in ("one", "one", "two", None, None)]
    assert built[0] is built[1]
    assert len({id(tree) for tree in built}) == 4
    assert [dialect.number_of(tree) is None for tree in built] == [False, False, False, True, True]


def test_numbers_are_never_given_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dialect, "MOST", 3)
    numbers = [dialect.number_of(dialect.kept(number, lambda: exp.select("a"))) for number in range(10)]
    assert len(set(numbers)) == 10
    assert None not in numbers


def test_a_key_tells_trees_apart_that_are_written_otherwise() -> None:
    small, large = parse_one("SELECT a"), parse_one("SELECT A")
    assert dialect.part(small) != dialect.part(large)
    assert dialect.parts({"a": small, "b": large}) != dialect.parts({"b": large, "a": small})


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_the_text_of_a_kept_tree_is_that_of_its_copy(dialect: str) -> None:
    tree = statement("replicates/of_clusters", values={"own_limit": 1000, "hash_groups": 64})
    texts = [render(tree, dialect), render(tree, dialect), render(tree.copy(), dialect)]
    assert len(set(texts)) == 1


def test_other_columns_names_or_values_are_another_statement() -> None:
    query = load("threshold_sweep/counts")
    assert expand(query, ("a",)) is expand(query, ("a",))
    assert expand(query, ("a",)) is not expand(query, ("b",))
    assert render(expand(query, ("a",))) != render(expand(query, ("b",)))


def test_a_kept_tree_that_is_changed_is_found() -> None:
    trees = [
        statement("replicates/of_clusters", values={"own_limit": number, "hash_groups": 64}) for number in range(9)
    ]
    for tree in trees:
        render(tree)
    assert list(changed_trees()) == []
    limit = next(node for node in trees[4].find_all(exp.Literal) if node.name == "4")
    limit.set("this", "5")
    ((before, now),) = changed_trees()
    assert before != now == render(trees[5])
    assert list(changed_trees(seconds=0)) in ([], [(before, now)])


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.kind)
def test_a_second_call_of_a_stage_writes_its_sql_no_more(example: Example, monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = {name: {"path": frame, "columns": example.columns(name)} for name, frame in example.frames.items()}
    function = getattr(thresher, example.kind)
    first, written = function(**inputs, **example.keys), []
    plainly = dialect._rendered

    def noted(tree: exp.Expr, name: str, *, pretty: bool, copy: bool) -> str:
        written.append(plainly(tree, name, pretty=pretty, copy=copy))
        return written[-1]

    monkeypatch.setattr(dialect, "_rendered", noted)
    second = function(**inputs, **example.keys)
    assert len(written) <= 1, "\n\n".join(written)  # ranges of values that rows lie between are those of the rows
    assert all(table.equals(second.tables[name]) for name, table in first.tables.items())


def test_what_another_input_tells_of_a_column_without_values_is_part_of_the_key() -> None:
    nothing = pl.DataFrame({"query_id": [None], "doc_id": [None], "score": [0.5]})

    def of(document: object) -> pl.DataFrame:
        relevance = pl.DataFrame({"query_id": [1], "doc_id": [document], "relevance": [1]})
        table: pl.DataFrame = thresher.ranking(ranking=nothing[:0], relevance=relevance, missing_queries="zero").tables[
            "ranking_queries"
        ]
        return table

    assert [of(document).height for document in ("d", 7, "d")] == [1, 1, 1]
