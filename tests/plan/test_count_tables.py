"""Count tables: what is scanned for, what adds up, and what a total of nothing is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl
import pytest
import sqlglot.expressions as exp

from pipeline.base.errors import DataError
from pipeline.base.schemas import Grouping
from pipeline.plan import counts as count_nodes
from pipeline.plan.count_tables import CountTables

if TYPE_CHECKING:
    from collections.abc import Sequence

TOTAL, A, B, BOTH = (Grouping.of(names) for names in ("", "a", "b", "ab"))
COUNTS = {"replicate": [0, 0, 1], "threshold": [0.5, None, 0.5], "tp": [1, 2, 4], "fp": [8, 16, 32]}


def tables_of(*groupings: Grouping) -> CountTables:
    return CountTables(groupings, list(dict.fromkeys(name for grouping in groupings for name in grouping.columns)))


def counted(groups: dict[str, Sequence[str | None]]) -> pl.DataFrame:
    of_groups = {name: pl.Series(values, dtype=pl.String) for name, values in groups.items()}
    return pl.DataFrame({**of_groups, **COUNTS})


def test_only_groupings_that_are_part_of_no_other_are_scanned_for() -> None:
    tables = tables_of(TOTAL, A, B, BOTH)
    assert tables.segments(additive=True) == [("by:a", "by:b")]
    assert tables.segments(additive=False) == [(), ("by:a",), ("by:b",), ("by:a", "by:b")]
    assert tables_of(TOTAL, A, B).segments(additive=True) == [("by:a",), ("by:b",)]
    assert tables_of(TOTAL).segments(additive=True) == [()]


def test_counts_of_a_group_add_up_to_the_total_in_a_fixed_order() -> None:
    tables = tables_of(TOTAL, A)
    tables.add("counts", ["by:a"], counted({"by:a": ["y", None, "x"]}), (), ("tp", "fp"))
    tables.add("counts", ["by:a"], counted({"by:a": ["y", "y", "y"]})[:1], (), ("tp", "fp"))
    assert tables["counts"].columns == ["grouping", "by:a", "replicate", "threshold", "tp", "fp"]
    assert tables["counts"].rows() == [
        ("a", "x", 1, 0.5, 4, 32),
        ("a", "y", 0, 0.5, 1 + 1, 8 + 8),
        ("a", None, 0, None, 2, 16),
        ("all", None, 0, 0.5, 1 + 1, 8 + 8),
        ("all", None, 0, None, 2, 16),
        ("all", None, 1, 0.5, 4, 32),
    ]


def test_counts_that_do_not_add_up_come_from_their_own_scan() -> None:
    tables = tables_of(TOTAL, A)
    for segment, counts in (((), counted({})[:1]), (("by:a",), counted({"by:a": ["x", "x", "x"]}))):
        tables.add("articles", segment, counts, (), ("tp",))
    rows = tables["articles"].group_by("grouping").agg(pl.col("tp").sum()).sort("grouping").rows()
    assert rows == [("a", 1 + 2 + 4), ("all", 1)]


def test_a_count_that_is_lacking_or_null_is_0_and_a_threshold_that_is_lacking_is_null() -> None:
    tables = tables_of(TOTAL)
    tables.add("counts", (), counted({}).drop("fp", "threshold")[:1], (), ("tp", "fp"))
    tables.add("counts", (), counted({}).with_columns(fp=pl.lit(None, dtype=pl.Int64))[2:], (), ("tp", "fp"))
    assert tables["counts"].rows() == [("all", 0, None, 1, 0), ("all", 1, 0.5, 4, 0)]
    assert tables["counts"].schema["fp"] == pl.Int64()


def test_a_total_of_nothing_is_a_row_of_zeros_unless_the_table_has_keys() -> None:
    tables = tables_of(TOTAL, A)
    nothing = counted({"by:a": ["x", "x", "x"]}).clear()
    tables.add("counts", ["by:a"], nothing, (), ("tp", "fp"))
    tables.add("by system", ["by:a"], nothing.with_columns(system=pl.lit("s")), ("system",), ("tp",))
    assert tables["counts"].rows() == [("all", None, 0, None, 0, 0)]
    assert tables["by system"].is_empty()
    assert tables["by system"].columns == ["grouping", "by:a", "replicate", "threshold", "system", "tp"]
    groups_alone = tables_of(A)
    groups_alone.add("counts", ["by:a"], nothing, (), ("tp",))
    assert groups_alone["counts"].is_empty()


def test_keys_tell_rows_apart_and_tables_come_in_the_order_in_which_they_began() -> None:
    tables = tables_of(TOTAL)
    by_day = counted({}).with_columns(day=pl.Series([1, 2, 1]), replicate=0, threshold=0.5)
    tables.add("lags", (), by_day, ("day",), ("tp",))
    tables.add("counts", (), counted({}), (), ("tp",))
    assert tables["lags"].rows() == [("all", 0, 0.5, 1, 1 + 4), ("all", 0, 0.5, 2, 2)]
    assert list(tables.all()) == ["lags", "counts"]


def test_as_many_distinct_scores_as_are_allowed_are_thresholds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(count_nodes, "MAX_DISTINCT", 3)
    rows = pl.DataFrame({"by:a": ["x"] * 3 + ["y"], "bin": [0.1, 0.2, 0.3, 0.4]})
    assert count_nodes._with_scores_as_thresholds(rows, ["by:a"], missed=False)["threshold"].to_list() == [
        0.1,
        0.2,
        0.3,
        0.4,
    ]
    with pytest.raises(DataError, match="one group has 4 distinct scores, the limit is 3"):
        count_nodes._with_scores_as_thresholds(rows, [], missed=False)


@pytest.mark.parametrize("replicated", [True, False])
def test_an_engine_groups_by_replicates_only_where_there_are_some(*, replicated: bool) -> None:
    sweep = count_nodes.Sweep("predictions", exp.select("*").from_("rows"), "score", None, replicated=replicated)
    tree = count_nodes.Query("threshold_sweep/counts", sweep=sweep).tree(())
    assert ("replicate" in tree.args["group"].sql()) == replicated
    assert "replicate" in [each.alias_or_name for each in tree.selects]
