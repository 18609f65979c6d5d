"""The writer of limits and reasons."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
import pytest

from pipeline.metrics.uncertainty import replicates as cubes
from pipeline.metrics.uncertainty.limits import (
    MEANINGS,
    Interval,
    Quality,
    Reason,
    clusters_of,
    clusters_of_parents,
    intervals_of,
    limit_columns,
    limit_names,
    marked,
    no_limits,
    of_chosen,
    with_limits,
    with_quality,
)
from pipeline.metrics.uncertainty.replicates import Cube, GroupCounts

NAN = float("nan")
NAMES = ("precision", "recall")
DOCS = Path(__file__).parents[3] / "docs"


def interval(*limits: tuple[float, float], reason: Reason = "undefined_ratio") -> Interval:
    lower, upper = (np.array(side) for side in zip(*limits, strict=True))
    return Interval.of((lower, upper), reason)


def test_a_reason_stands_where_a_limit_is_missing() -> None:
    limited = interval((0.1, 0.2), (NAN, 0.2), (0.1, NAN), (NAN, NAN), reason="no_limit")
    assert limited.reason.tolist() == [None, "no_limit", "no_limit", "no_limit"]
    each_row = Interval.of((np.array([0.0, NAN]), np.array([1.0, NAN])), np.array(["one_day", "no_match"]))
    assert each_row.reason.tolist() == [None, "no_match"]
    assert Interval.none(2, "none").reason.tolist() == ["none", "none"]


def test_the_column_gives_the_reason_of_the_first_ratio_that_has_one() -> None:
    intervals = {
        "precision": interval((0.1, 0.2), (NAN, NAN), (NAN, NAN), reason="no_prediction"),
        "recall": interval((0.3, 0.4), (0.5, 0.6), (NAN, NAN), reason="unbounded"),
        "f1": interval((0.1, 0.2), (NAN, NAN), (NAN, NAN), reason="no_reference"),
    }
    frame = pl.DataFrame(list(limit_columns(intervals)))
    assert frame.columns == [*limit_names(["precision", "recall", "f1"]), "undefined_interval"]
    assert frame.row(1) == (None, None, 0.5, 0.6, None, None, "no_prediction")
    assert frame["undefined_interval"].to_list() == [None, "no_prediction", "no_prediction"]
    reversed_order = dict(reversed(intervals.items()))
    reasons = pl.DataFrame(list(limit_columns(reversed_order)))["undefined_interval"]
    assert reasons.to_list() == [None, "no_reference", "no_reference"]


def test_limits_and_no_limits_have_the_same_columns() -> None:
    with_some = pl.DataFrame(list(limit_columns({name: interval((0.1, 0.2)) for name in NAMES})))
    without = pl.DataFrame({"row": [1]}).select(no_limits(NAMES, "budget"))
    assert with_some.schema == without.schema
    assert without.row(0) == (None, None, None, None, "budget")


@pytest.mark.parametrize(
    ("replicates", "reason"), [(0, "undefined_ratio"), (1, "one_replicate"), (2, "undefined_ratio")]
)
def test_one_replicate_is_the_reason_for_all_ratios(replicates: int, reason: str) -> None:
    limits = {name: (np.array([NAN]), np.array([NAN])) for name in NAMES}
    assert [each.reason.tolist() for each in intervals_of(limits, replicates).values()] == [[reason], [reason]]


def curve_and_cube() -> tuple[pl.DataFrame, Cube]:
    counts = pl.DataFrame(
        {
            "group": ["a", "a", "b", "b", "b"],
            "replicate": [0, 1, 0, 0, 3],
            "threshold": [0.5, 0.7, 0.5, None, 0.9],
            "tp": [1, 2, 3, 4, 5],
        }
    )
    cube = Cube.of(counts, ["group"], None)
    return cube.at_or_above(["tp"]), cube


def from_rows(rows: pl.DataFrame, group: GroupCounts) -> dict[str, Interval]:
    """Limits that say which rows and counts they come from."""
    assert rows["threshold"].to_list() == group.thresholds.tolist()
    return {
        "precision": Interval.of((rows["threshold"].to_numpy(), group.at_or_above("tp").sum(axis=0) + 0.0), "no_limit")
    }


def test_a_curve_has_the_limits_of_its_own_groups_and_thresholds() -> None:
    curve, cube = curve_and_cube()
    limited = with_limits(curve, cube, ["precision"], from_rows, wanted=True)
    assert limited.height == curve.height
    assert limited["precision_lower"].to_list() == limited["threshold"].to_list()
    assert limited["precision_upper"].to_list() == limited["tp"].to_list()
    assert limited["undefined_interval"].to_list() == [None] * 4


@pytest.mark.parametrize(("wanted", "budget", "reason"), [(False, 8, "none"), (True, 8, "budget"), (True, 12, None)])
def test_why_a_curve_has_no_limits(
    monkeypatch: pytest.MonkeyPatch, *, wanted: bool, budget: int, reason: str | None
) -> None:
    """Four rows and three replicates are twelve cells."""
    monkeypatch.setattr(cubes, "MOST_CELLS", budget)
    curve, cube = curve_and_cube()
    limited = with_limits(curve, cube, ["precision"], from_rows, wanted=wanted)
    assert limited["undefined_interval"].unique().to_list() == [reason]
    assert limited["precision_lower"].null_count() == (0 if reason is None else 4)


def test_an_empty_curve_keeps_its_columns() -> None:
    curve, cube = curve_and_cube()
    limited = with_limits(curve.clear(), cube, NAMES, from_rows, wanted=True)
    assert limited.columns == [*curve.columns, *limit_names(NAMES), "undefined_interval", "interval_quality"]
    assert limited.is_empty()


def test_reasons_that_the_pages_list_are_those_of_the_program() -> None:
    """Every table of reasons of intervals, in all pages of the stages."""
    tables = re.findall(r"(?m)^\|[^\n]*`undefined_interval` \| when \|\n\|[-|]+\|\n((?:\|[^\n]+\n)+)", _pages())
    listed = {word for table in tables for line in table.splitlines() for word in _reasons_of(line)}
    assert len(tables) == 3
    assert listed - set(get_args(Reason)) == set()


def _pages() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.rglob("*.md")))


def _reasons_of(line: str) -> list[str]:
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    return [word for cell in cells[:-1] for word in re.findall(r"`(\w+)`", cell)]


def clustered(sizes: dict[str, list[float]]) -> pl.DataFrame:
    """Count tables of groups whose clusters have some sizes, half of each in either of two bins."""
    rows = [
        {"group": group, "replicate": number, "threshold": threshold, "n": size / 2}
        for group, in_group in sizes.items()
        for number, size in enumerate(in_group)
        for threshold in (0.1, 0.2)
    ]
    return pl.DataFrame(rows)


def test_clusters_of_a_group_are_those_with_rows_and_their_effective_number() -> None:
    counts = clustered({"equal": [4] * 20, "unequal": [1, 2, 3, 0]}).sample(fraction=1, shuffle=True, seed=1)
    actual = clusters_of(counts, ["group"], ["n"]).sort("group")
    assert actual["n_clusters"].to_list() == [20, 3]
    assert actual["n_clusters_effective"].to_list() == pytest.approx([20, 36 / 14])


SIZES: dict[str, list[float]] = {
    "good": [4] * 20,
    "enough": [4] * 15,
    "few": [1, 1, 1],
    "unequal": [40.0] + [1.0] * 40,
    "spread": [10.0] * 3 + [1.0] * 20,
    "heavy": [12.0, 9.0, 6.0, 5.0, 3.0, 3.0] + [1.0, 2.0] * 20,
}


@pytest.mark.parametrize(
    ("group", "events", "wanted"),
    [
        ("good", (10, 400), "good"),
        ("good", (9, 400), "few_events_of_interest"),
        ("good", (400, 0), "at_edge"),
        ("enough", (400, 400), "good"),
        ("few", (400, 0), "few_clusters"),
        ("spread", (400, 400), "few_clusters"),
        ("unequal", (400, 400), "unequal_clusters"),
        ("heavy", (400, 400), "good"),
        ("heavy", (9, 0), "at_edge"),
        ("elsewhere", (400, 400), "good"),
    ],
)
def test_the_worst_that_holds_is_the_quality(group: str, events: tuple[int, int], wanted: str) -> None:
    row = {"group": group, "tp": events[0], "fp": events[1], "precision_lower": 0.1, "precision_upper": None}
    table = pl.DataFrame([row, row | {"precision_lower": None}], schema_overrides={"precision_upper": pl.Float64})
    clusters = clusters_of(clustered(SIZES), ["group"], ["n"])
    graded = with_quality(table, ["precision"], clusters=clusters, keys=["group"], events=["tp", "fp"])
    assert graded["interval_quality"].to_list() == [wanted, None]
    assert graded.columns == [*table.columns, "interval_quality"]
    alone = with_quality(table, ["precision"], events=["tp", "fp"])["interval_quality"][0]
    assert alone == ("good" if "clusters" in wanted and 0 not in events else alone)
    assert alone in get_args(Quality)


def test_of_two_parents_the_one_with_fewer_effective_clusters_tells() -> None:
    first, second = clustered({"a": [4] * 30, "b": [4] * 20}), clustered({"a": [4] * 18, "b": [4] * 25})
    both = clustered({"a": [4] * 2, "b": [4] * 2})
    cube = Cube.of(first, ["group"], [0.1, 0.2], crossed=[second, both])
    clusters = clusters_of_parents(cube, ["n"]).sort("group")
    assert clusters["n_clusters"].to_list() == [18, 20]
    assert clusters_of_parents(Cube.of(first, ["group"], [0.1]), ["n"]).sort("group")["n_clusters"].to_list() == [
        30,
        20,
    ]


def test_rows_whose_second_parent_is_not_known_are_marked_unless_something_is_worse() -> None:
    clusters = clusters_of(clustered(SIZES), ["group"], ["n"])
    row = {"tp": 40, "fp": 40, "precision_lower": 0.1, "precision_upper": 0.4}
    table = pl.DataFrame([row | {"group": group} for group in ("good", "few", "heavy")])

    def qualities(clusters: pl.DataFrame) -> list[str]:
        graded = with_quality(table, ["precision"], clusters=clusters, keys=["group"], events=["tp", "fp"])
        return graded["interval_quality"].to_list()

    assert qualities(clusters) == ["good", "few_clusters", "good"]
    assert qualities(marked(clusters, "one_parent")) == ["one_parent", "few_clusters", "one_parent"]
    alone = marked(clusters, "one_parent", pl.DataFrame({"group": ["few"]}))
    assert qualities(alone) == ["good", "few_clusters", "good"]


def test_a_chosen_threshold_is_no_longer_good_but_what_is_worse_stays() -> None:
    points = pl.DataFrame({"interval_quality": ["good", "few_clusters", None]})
    assert of_chosen(points)["interval_quality"].to_list() == ["chosen_on_same_data", "few_clusters", None]
    without = pl.DataFrame({"precision": [0.5]})
    assert of_chosen(without) is without


def test_every_quality_has_a_meaning() -> None:
    assert list(MEANINGS) == list(get_args(Quality))
