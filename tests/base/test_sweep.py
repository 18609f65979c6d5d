from __future__ import annotations

import math
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.base.columns import add_up, add_up_in_order, among, at_or_above, beside, runs
from pipeline.base.schemas import in_order

KEYS = ["group", "other"]
VALUES = ["m_before", "m_after"]
SCHEMA: dict[str, type[pl.DataType]] = {
    "group": pl.String,
    "other": pl.Int64,
    "replicate": pl.Int64,
    "threshold": pl.Float64,
    "m_before": pl.Int64,
    "m_after": pl.Int64,
}
THRESHOLDS = [0.0, 0.5, 1.0, 2.5]

count_rows = st.lists(
    st.fixed_dictionaries(
        {
            "group": st.sampled_from(["a", "b", None]),
            "other": st.sampled_from([1, None]),
            "replicate": st.integers(0, 3),
            "threshold": st.sampled_from([None, *THRESHOLDS]),
            "m_before": st.integers(0, 10**12),
            "m_after": st.integers(0, 10**12),
        }
    ),
    max_size=30,
)
Rows = list[dict[str, Any]]


def brute_force(rows: Rows, thresholds: list[float] | None) -> dict[tuple[Any, ...], tuple[int, int]]:
    """Counts at or above each threshold by looking at every row for every threshold."""
    groups = {(row["group"], row["other"]) for row in rows}
    expected = {}
    for group in groups:
        group_rows = [row for row in rows if (row["group"], row["other"]) == group]
        bins = {row["threshold"] for row in group_rows if row["threshold"] is not None}
        for threshold in bins if thresholds is None else thresholds:
            above = [row for row in group_rows if row["threshold"] is not None and row["threshold"] >= threshold]
            expected[*group, threshold] = (sum(row["m_before"] for row in above), sum(row["m_after"] for row in above))
    return expected


def swept(rows: Rows, thresholds: list[float] | None) -> dict[tuple[Any, ...], tuple[int, int]]:
    frame = at_or_above(pl.DataFrame(rows, schema=SCHEMA), KEYS, VALUES, thresholds)
    assert frame.columns == [*KEYS, "threshold", *VALUES]
    assert not frame.select(*KEYS, "threshold").is_duplicated().any()
    return {tuple(row[:3]): (row[3], row[4]) for row in frame.iter_rows()}


@given(count_rows)
def test_counts_at_or_above_given_thresholds_equal_brute_force(rows: Rows) -> None:
    assert swept(rows, THRESHOLDS) == brute_force(rows, THRESHOLDS)


@given(count_rows)
def test_counts_at_or_above_own_bins_equal_brute_force(rows: Rows) -> None:
    assert swept(rows, None) == brute_force(rows, None)


@given(count_rows, count_rows)
def test_counts_of_two_parts_add_up_to_the_counts_of_both(left: Rows, right: Rows) -> None:
    keys = [*KEYS, "threshold"]

    def counts(rows: Rows) -> pl.DataFrame:
        return add_up(pl.DataFrame(rows, schema=SCHEMA), keys, VALUES)

    together = counts(left + right).sort(keys)
    assert add_up(pl.concat([counts(left), counts(right)]), keys, VALUES).sort(keys).equals(together)


def test_without_keys_the_total_is_one_row() -> None:
    rows = [{"group": "a", "other": 1, "replicate": 0, "threshold": 1.0, "m_before": 2, "m_after": 3}] * 2
    assert add_up(pl.DataFrame(rows, schema=SCHEMA), [], VALUES).rows() == [(4, 6)]


def test_rows_below_all_thresholds_keep_their_group() -> None:
    rows = [{"group": "a", "other": 1, "replicate": 0, "threshold": None, "m_before": 2, "m_after": 3}]
    assert swept(rows, [1.0]) == {("a", 1, 1.0): (0, 0)}


few_rows = st.lists(
    st.fixed_dictionaries({"group": st.sampled_from(["a", "b", None]), "other": st.sampled_from([1, None])}), max_size=4
)


@given(few_rows, few_rows)
def test_what_is_known_of_groups_stands_beside_their_rows_as_a_join_puts_it(rows: Rows, others: Rows) -> None:
    types: dict[str, Any] = {name: SCHEMA[name] for name in KEYS}
    table = pl.DataFrame(rows, schema=types).with_row_index("row")
    groups = pl.DataFrame(others, schema=types).unique(maintain_order=True).with_row_index("place")[[*KEYS, "place"]]
    joined = table.join(groups, on=KEYS, how="left", nulls_equal=True, maintain_order="left")
    assert beside(table, groups, KEYS).equals(joined)
    assert among(table, groups, KEYS).equals(table.join(groups, on=KEYS, how="semi", nulls_equal=True))


@given(count_rows)
def test_rows_are_in_the_order_of_their_key_and_one_that_repeats_is_told(rows: Rows) -> None:
    frame = pl.DataFrame(rows, schema=SCHEMA).with_row_index("row")
    for key in (KEYS, ["threshold"], [*KEYS, "threshold"], ["group", "replicate"]):
        ordered, repeats = in_order(frame, key)
        assert ordered.equals(frame.sort(key, nulls_last=True, maintain_order=True))
        assert repeats == frame[key].is_duplicated().any()
        numbers = frame.select(pl.struct(key).rle_id()).to_series().to_list()
        assert runs(frame, key).tolist() == numbers


@pytest.mark.parametrize("key", [("group", "other", "threshold"), ("threshold", "group"), ("threshold",)])
def test_many_rows_of_few_values_are_in_the_same_order(key: tuple[str, ...]) -> None:
    thresholds = [None, -math.inf, -0.0, 0.0, 0.5, math.inf, math.nan]
    rows = pl.DataFrame(
        {
            "group": ["b", None, "ä", "a", "B"] * 12_000,
            "other": [None, 3, -1] * 20_000,
            "threshold": [thresholds[(7 * row // 5) % 7] for row in range(60_000)],
            "m_before": range(60_000),
        },
        schema_overrides={"threshold": pl.Float64},
    )
    ordered, repeats = in_order(rows, key)
    expected = rows.sort(key, nulls_last=True, maintain_order=True)
    assert ordered.equals(expected)
    assert repeats
    sums = expected.group_by(key, maintain_order=True).agg(pl.col("m_before").sum())
    assert add_up_in_order(rows, key, ["m_before"]).equals(sums)


def test_many_rows_of_a_key_whose_places_no_whole_number_holds_are_in_the_same_order() -> None:
    draw = np.random.default_rng(7)
    key = [f"k{number}" for number in range(6)]
    values = {name: draw.integers(0, 3_700, 60_000) for name in key[1:]} | {"k0": draw.integers(0, 3_000, 60_000)}
    rows = pl.DataFrame(values).select(key)
    ordered, repeats = in_order(rows, key)
    assert ordered.equals(rows.sort(key))
    assert not repeats
