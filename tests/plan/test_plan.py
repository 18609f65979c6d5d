"""Plans add up: phases keep their order, sweeps stand once, and only one of two may say what is said once."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING

import pytest
import sqlglot.expressions as exp

from pipeline.plan.counts import Query, Sweep
from pipeline.plan.nodes import After, Check, CrossCheck, Frame, Phase, Relation
from pipeline.plan.plan import Plan

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl

ROWS = exp.select("*").from_("rows")


def nothing_differs(_: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    return ()


def unchanged(rows: pl.DataFrame, _: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
    return rows


def no_fault(_: list[dict[str, object]]) -> tuple[str, str]:
    return "", ""


def after(table: str) -> After:
    return After(table, None, ROWS, {}, {}, unchanged)


def sweep_of(name: str, *, missed: bool = False) -> Sweep:
    return Sweep(name, ROWS, "score", None, missed=missed)


def names(plan: Plan) -> list[str]:
    return [node.into for node in plan.nodes]


def test_nodes_run_in_the_order_of_phases_and_within_one_in_that_of_the_plan() -> None:
    nodes = (
        after("last"),
        Frame("frame", ROWS),
        Query("a/b", into="second counts"),
        CrossCheck({}, nothing_differs),
        Query("a/b", into="first counts"),
        Check(ROWS, no_fault),
        Relation("second", ROWS),
        Relation("first", ROWS),
    )
    plan = Plan(nodes)
    assert names(plan) == ["second", "first", "", "warnings", "second counts", "first counts", "frame", "last"]
    assert [node.phase for node in plan.nodes] == sorted(node.phase for node in nodes)
    assert [relation.into for relation in plan.relations] == ["second", "first"]


def test_the_nodes_of_a_sum_come_by_phase_the_left_ones_first() -> None:
    left = Plan((Query("a/b", into="left counts"), Relation("left", ROWS)))
    right = Plan((after("right table"), Query("a/b", into="right counts"), Relation("right", ROWS)))
    assert names(left + right) == ["left", "right", "left counts", "right counts", "right table"]
    assert left + Plan() == Plan() + left == left


def test_the_sweep_of_a_query_is_defined_before_it_and_once() -> None:
    shared = sweep_of("predictions")
    first, second = (Query(f"a/{name}", into=name, sweep=shared) for name in ("first", "second"))
    other = Query("a/other", into="other", sweep=sweep_of("gold"))
    plan = Plan((Relation("read", ROWS), first, second, other))
    assert names(plan) == ["read", "predictions", "gold", "first", "second", "other"]
    assert [node.phase for node in plan.nodes][1:3] == [Phase.TRANSFORMS] * 2


def test_a_sweep_that_both_plans_of_a_sum_read_is_defined_once() -> None:
    shared = sweep_of("predictions")
    first, second = (Plan((Query(f"a/{name}", into=name, sweep=shared),)) for name in ("first", "second"))
    assert names(first + second) == ["predictions", "first", "second"]


def test_rows_without_a_score_count_if_a_sweep_says_so() -> None:
    queries = {missed: Query("a/b", sweep=sweep_of("rows", missed=missed)) for missed in (False, True)}
    assert not Plan((queries[False],)).counts_missed
    assert Plan((queries[True],)).counts_missed
    assert not Plan((Query("a/b"),)).counts_missed


def test_lists_and_words_add_up_in_order() -> None:
    left = Plan(warnings=("l",), used=("n",), facts={"x": "1", "y": "1"}, remedies={"a": "b"})
    right = Plan(warnings=("r",), used=("m",), facts={"y": "2"}, derived={"c": "d"})
    both = left + right
    assert (both.warnings, both.used) == (("l", "r"), ("n", "m"))
    assert both.facts == {"x": "1", "y": "2"}  # of two words on one thing the last counts
    assert (both.remedies, both.derived) == ({"a": "b"}, {"c": "d"})
    assert left.facts == {"x": "1", "y": "1"}


@pytest.mark.parametrize(
    ("name", "value"), [("accounting", Query("a/b")), ("units", "events"), ("positive", exp.column("label"))]
)
def test_what_only_one_plan_may_say_the_other_leaves_open(name: str, value: object) -> None:
    says, silent = Plan(**{name: value}), Plan()  # type: ignore[arg-type]
    assert getattr(says + silent, name) is getattr(silent + says, name) is value
    with pytest.raises(ValueError, match="only one of two plans that are added may say this"):
        says + says
    assert name in {field.name for field in fields(Plan) if field.default is None}


def test_a_plan_without_a_table_lacks_the_node_that_makes_it_afterwards() -> None:
    plan = Plan((Query("a/b", into="events"), after("events"), after("delays")), facts={"x": "y"})
    assert names(plan.without({"events"})) == ["events", "delays"]
    assert [node.phase for node in plan.without({"events"}).nodes] == [Phase.COUNTS, Phase.AFTER_RESULTS]
    assert plan.without({"events"}).facts == {"x": "y"}
    assert plan.without(()) == plan


def test_two_sweeps_of_one_name_are_refused() -> None:
    first = Query("a/first", into="first", sweep=sweep_of("predictions"))
    other = Query("a/second", into="second", sweep=replace(sweep_of("predictions"), exact=True))
    with pytest.raises(ValueError, match="two sweeps are called 'predictions'"):
        Plan((first, other))
