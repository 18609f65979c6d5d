"""Counts by group, replicate and threshold: against plain loops over exact numbers."""

from __future__ import annotations

import itertools
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from pipeline.base.columns import Boundary
from pipeline.metrics.uncertainty import replicates as cubes
from pipeline.metrics.uncertainty.jackknife import covariance
from pipeline.metrics.uncertainty.replicates import Cube, GroupCounts, jackknifed

KEYS = ["group", "other"]
NAMES = ["hits", "misses"]
SCHEMA: dict[str, Any] = {
    "group": pl.String,
    "other": pl.Int64,
    "replicate": pl.Int16,
    "threshold": pl.Float64,
    "hits": pl.Int64,
    "misses": pl.Int64,
}
THRESHOLDS = (-1.5, 0.0, 0.5, 2.5)
Row = dict[str, Any]
Forms = tuple[tuple[float, ...] | None, Boundary]

count_rows = st.lists(
    st.fixed_dictionaries(
        {
            "group": st.sampled_from(["a", "b", None]),
            "other": st.sampled_from([1, None]),
            "replicate": st.sampled_from([0, 1, 5, 900]),
            "threshold": st.sampled_from([None, *THRESHOLDS]),
            "hits": st.integers(0, 10**12),
            "misses": st.integers(0, 10**12),
        }
    ),
    max_size=30,
)
forms = st.sampled_from([(THRESHOLDS, ">="), (None, ">="), (None, ">")])


def frame_of(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SCHEMA, orient="row")


def cube_of(rows: list[Row], form: Forms) -> Cube:
    return Cube.of(frame_of(rows), KEYS, *form)


def rows_of_groups(rows: list[Row]) -> dict[tuple[Any, ...], list[Row]]:
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault((row["group"], row["other"]), []).append(row)
    return groups


def thresholds_of(rows: list[Row], form: Forms) -> list[float]:
    """The thresholds of one group."""
    return sorted({row["threshold"] for row in rows} - {None}) if form[0] is None else list(form[0])


def sum_of(rows: list[Row], name: str, threshold: float, form: Forms) -> int:
    """What a threshold retrieves, by looking at every row."""
    exclusive = form == (None, ">")
    scored = [row for row in rows if row["threshold"] is not None]
    return sum(
        row[name] for row in scored if row["threshold"] > threshold or (row["threshold"] == threshold and not exclusive)
    )


@given(count_rows, forms)
def test_counts_of_a_group_are_those_of_a_plain_loop(rows: list[Row], form: Forms) -> None:
    groups = rows_of_groups(rows)
    cubes_groups = dict(cube_of(rows, form).groups())
    assert list(cubes_groups) == list(groups)
    for key, group in cubes_groups.items():
        replicates = sorted({row["replicate"] for row in groups[key]})
        assert group.replicates.tolist() == replicates
        assert group.thresholds.tolist() == thresholds_of(groups[key], form)
        for name in NAMES:
            swept, totals, below = group.at_or_above(name), group.totals(name), group.below(name)
            assert swept.shape == (len(replicates), len(group.thresholds))
            for number, replicate in enumerate(replicates):
                in_replicate = [row for row in groups[key] if row["replicate"] == replicate]
                wanted = [sum_of(in_replicate, name, threshold, form) for threshold in group.thresholds.tolist()]
                assert swept[number].tolist() == wanted
                assert totals[number] == sum(row[name] for row in in_replicate)
                assert below[number] == sum(row[name] for row in in_replicate if row["threshold"] is None)


@given(count_rows, forms)
def test_the_frame_is_the_sum_of_the_replicates(rows: list[Row], form: Forms) -> None:
    cube = cube_of(rows, form)
    frame, totals = cube.at_or_above(NAMES), cube.totals(NAMES)
    for key, group in cube.groups():
        of_key = [pl.col(name).eq_missing(value) for name, value in zip(KEYS, key, strict=True)]
        swept = frame.filter(of_key).sort("threshold")
        assert swept["threshold"].to_list() == group.thresholds.tolist()
        for name in NAMES:
            assert swept[name].to_list() == group.at_or_above(name).sum(axis=0).tolist()
            assert totals.filter(of_key)[name].to_list() == [group.totals(name).sum()]


@given(count_rows, forms, st.randoms(use_true_random=False))
def test_the_order_of_rows_does_not_matter(rows: list[Row], form: Forms, random: Any) -> None:  # noqa: ANN401
    shuffled = random.sample(rows, len(rows))
    first, second = dict(cube_of(rows, form).groups()), dict(cube_of(shuffled, form).groups())
    assert set(first) == set(second)
    for key, group in first.items():
        for name in NAMES:
            assert np.array_equal(group.at_or_above(name), second[key].at_or_above(name))
            assert np.array_equal(group.totals(name), second[key].totals(name))
    order = [*KEYS, "threshold"]
    assert_frame_equal(
        cube_of(rows, form).at_or_above(NAMES).sort(order), cube_of(shuffled, form).at_or_above(NAMES).sort(order)
    )


@given(count_rows, count_rows)
def test_counts_of_two_tables_add_up(left: list[Row], right: list[Row]) -> None:
    """Of files, of nights, of machines: with given thresholds the counts of both are the sum of the counts of each."""
    form: Forms = (THRESHOLDS, ">=")
    order = [*KEYS, "threshold"]
    both = cube_of(left + right, form).at_or_above(NAMES).sort(order)
    apart = pl.concat([cube_of(rows, form).at_or_above(NAMES) for rows in (left, right)])
    assert_frame_equal(both, apart.group_by(order).agg(pl.col(NAMES).sum()).sort(order))


@given(count_rows)
def test_groups_sum_to_the_total(rows: list[Row]) -> None:
    frame = frame_of(rows)
    of_groups = Cube.of(frame, KEYS, THRESHOLDS).at_or_above(NAMES)
    total = Cube.of(frame.with_columns(pl.lit("all").alias("grouping")), ["grouping"], THRESHOLDS).at_or_above(NAMES)
    wanted = of_groups.group_by("threshold").agg(pl.col(NAMES).sum()).sort("threshold")
    assert_frame_equal(total.drop("grouping").sort("threshold"), wanted)


@given(count_rows, forms, st.integers(1, 9))
def test_blocks_hold_the_groups_with_all_replicates_together(rows: list[Row], form: Forms, cells: int) -> None:
    """Thresholds fall, and every score retrieves itself; a group with fewer scores repeats its lowest."""
    inclusive: Forms = (form[0], ">=")
    groups, seen = rows_of_groups(rows), set()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cubes, "BLOCK_CELLS", cells)
        blocks = list(cube_of(rows, form).blocks(NAMES))
    for block in blocks:
        width = block.at_or_above["hits"].shape[1]
        assert block.groups.height == 1 or block.groups.height * width <= cells
        for number, key in enumerate(block.groups.rows()):
            seen.add(key)
            falling = thresholds_of(groups[key], inclusive)[::-1]
            for name in NAMES:
                wanted = [sum_of(groups[key], name, threshold, inclusive) for threshold in falling] or [0]
                wanted += wanted[-1:] * (width - len(wanted))
                assert block.at_or_above[name][number].tolist() == wanted
                assert block.totals[name][number] == sum(row[name] for row in groups[key])
    assert seen == set(groups)
    assert sum(block.groups.height for block in blocks) == len(groups)


@given(count_rows, forms)
def test_rows_of_a_curve_lie_beside_the_counts_of_their_group(rows: list[Row], form: Forms) -> None:
    cube = cube_of(rows, form)
    curve = cube.curve(["hits"], ["misses"])
    pairs = list(cube.beside(curve))
    assert sum(frame.height for frame, _ in pairs) == curve.height
    for frame, group in pairs:
        assert frame.select(KEYS).n_unique() == 1
        assert frame["threshold"].to_list() == group.thresholds.tolist() == sorted(group.thresholds.tolist())
        assert frame["hits"].to_list() == group.at_or_above("hits").sum(axis=0).tolist()
        assert frame["misses"].to_list() == [group.totals("misses").sum()] * frame.height


def row(replicate: int, threshold: float | None, hits: int, misses: int = 0, group: str | None = "a") -> Row:
    return {
        "group": group,
        "other": 1,
        "replicate": replicate,
        "threshold": threshold,
        "hits": hits,
        "misses": misses,
    }


@pytest.mark.parametrize("form", [(THRESHOLDS, ">="), (None, ">="), (None, ">")])
def test_an_empty_table_has_no_group(form: Forms) -> None:
    cube = cube_of([], form)
    for nothing in (cube.groups(), cube.blocks(NAMES), cube.beside(cube.at_or_above(NAMES))):
        assert list(nothing) == []
    assert cube.at_or_above(NAMES).columns == [*KEYS, "threshold", *NAMES]
    assert cube.at_or_above(NAMES).is_empty()
    assert cube.totals(NAMES).is_empty()


def test_a_group_of_rows_below_all_thresholds_retrieves_nothing() -> None:
    rows = [row(0, None, 3), row(4, None, 2)]
    group = dict(cube_of(rows, ((0.0, 1.0), ">=")).groups())["a", 1]
    assert group.at_or_above("hits").tolist() == [[0, 0], [0, 0]]
    assert group.totals("hits").tolist() == group.below("hits").tolist() == [3, 2]
    without = dict(cube_of(rows, (None, ">=")).groups())["a", 1]
    assert without.at_or_above("hits").shape == (2, 0)


def test_a_row_of_a_curve_without_a_threshold_retrieves_nothing() -> None:
    cube = cube_of([row(0, None, 3), row(4, None, 2)], (None, ">="))
    curve = cube.totals(["misses"]).with_columns(pl.lit(None, dtype=pl.Float64).alias("threshold"))
    [(_, group)] = cube.beside(curve)
    assert np.isnan(group.thresholds).tolist() == [True]
    assert group.at_or_above("hits").tolist() == [[0], [0]]
    assert group.totals("hits").tolist() == [3, 2]


def test_a_group_with_one_replicate_has_one_row() -> None:
    group = GroupCounts.of(frame_of([row(7, 0.5, 3), row(7, 1.5, 2), row(7, None, 9)]))
    assert group.replicates.tolist() == [7]
    assert group.at_or_above("hits").tolist() == [[5, 2]]
    assert group.totals("hits").tolist() == [14]


def test_replicates_without_a_row_count_if_they_are_named() -> None:
    """Documents without any mention are replicates all the same."""
    group = GroupCounts.of(frame_of([row(7, 0.5, 3)]), [0.5], replicates=np.array([9, 2, 7]))
    assert group.replicates.tolist() == [2, 7, 9]
    assert group.at_or_above("hits").tolist() == [[0], [3], [0]]


def test_bins_between_thresholds_count_for_those_below_them() -> None:
    """Other counts of a group have scores that its thresholds lack: gold pairs beside estimates."""
    group = GroupCounts.of(frame_of([row(0, 1.0, 1), row(1, 2.0, 1)]))
    others = group.with_counts(frame_of([row(1, 0.5, 10), row(1, 1.5, 100), row(0, 9.0, 1000)]))
    assert others.at_or_above("hits").tolist() == [[1000, 1000], [100, 0]]
    assert others.below("hits").tolist() == [0, 10]


def test_decimals_are_added_up_exactly_in_frames_and_as_doubles_in_arrays() -> None:
    tenths = frame_of([row(0, 0.5, 1), row(1, 0.5, 2)]).with_columns(
        pl.Series("hits", ["0.1", "0.2"]).str.to_decimal(scale=15).cast(pl.Decimal(38, 15))
    )
    cube = Cube.of(tenths, KEYS, None)
    assert Fraction(cube.at_or_above(["hits"])["hits"][0]) == Fraction(3, 10)
    [block] = cube.blocks(["hits"])
    assert block.at_or_above["hits"].tolist() == [[0.3]]
    [(_, group)] = cube.groups()
    assert group.at_or_above("hits").dtype == np.float64
    assert group.totals("hits").tolist() == [0.1, 0.2]


def test_counts_beyond_doubles_stay_whole_numbers() -> None:
    large = 2**53
    group = GroupCounts.of(frame_of([row(0, 0.5, large), row(0, 1.5, 1)]))
    assert group.at_or_above("hits").tolist() == [[large + 1, 1]]


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=2, max_size=9))
def test_a_jackknifed_statistic_is_that_of_the_totals_without_each_replicate(counts: list[tuple[int, int]]) -> None:
    hits, misses = (np.array(column)[:, None] for column in zip(*counts, strict=True))
    with np.errstate(invalid="ignore"):
        share, without_each = jackknifed(lambda hit, miss: hit / (hit + miss), hits, misses)

    def exact(rows: list[tuple[int, int]]) -> float:
        hit, total = sum(row[0] for row in rows), sum(sum(row) for row in rows)
        return float(Fraction(hit, total)) if total else float("nan")

    assert share.tolist() == pytest.approx([exact(counts)], rel=1e-14, nan_ok=True)
    left_out = [exact(counts[:number] + counts[number + 1 :]) for number in range(len(counts))]
    assert without_each[:, 0].tolist() == pytest.approx(left_out, rel=1e-14, nan_ok=True)


def test_the_jackknife_variance_of_a_total_is_that_of_the_sum_of_independent_replicates() -> None:
    values = np.array([[3.0], [5.0], [10.0], [2.0]])
    _, without_each = jackknifed(lambda total: total, values)
    assert covariance(without_each)[0] == pytest.approx(4 * values.var(ddof=1), rel=1e-14)


def test_the_budget_is_that_of_thresholds_times_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [row(number, threshold, 1) for number, threshold in itertools.product(range(3), THRESHOLDS)]
    cube = cube_of(rows, (None, ">="))
    [(_, group)] = cube.groups()
    monkeypatch.setattr(cubes, "MOST_CELLS", 12)
    assert cube.within_budget(4)
    assert group.within_budget()
    monkeypatch.setattr(cubes, "MOST_CELLS", 11)
    assert not cube.within_budget(4)
    assert not group.within_budget()


def test_the_groups_of_a_count_table_are_told_by_its_columns_before_replicate() -> None:
    counts = frame_of([row(0, 0.5, 3), row(0, 0.5, 2, group=None)])
    cube = Cube.of(counts, None, THRESHOLDS, ">")
    assert (cube.keys, cube.thresholds, cube.boundary, cube.crossed) == (tuple(KEYS), tuple(THRESHOLDS), ">", ())
    assert cube.counts.equals(counts)
    assert cube.totals(["hits"]).sort("group", nulls_last=True)["hits"].to_list() == [3, 2]
