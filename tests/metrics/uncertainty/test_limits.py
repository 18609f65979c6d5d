"""The writer of limits and reasons."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import numpy as np
import polars as pl
import pytest

from pipeline.metrics.uncertainty import cube as cubes
from pipeline.metrics.uncertainty.cube import Cube, GroupCounts
from pipeline.metrics.uncertainty.limits import (
    Interval,
    intervals_of,
    limit_columns,
    limit_names,
    no_limits,
    with_limits,
)
from pipeline.metrics.uncertainty.reasons import Reason

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
    assert limited.columns == [*curve.columns, *limit_names(NAMES), "undefined_interval"]
    assert limited.is_empty()


def test_reasons_that_the_pages_list_are_those_of_the_program() -> None:
    """Every table of reasons of intervals, in all pages of the stages."""
    tables = re.findall(r"(?m)^\|[^\n]*`undefined_interval` \| when \|\n\|[-|]+\|\n((?:\|[^\n]+\n)+)", _pages())
    listed = {word for table in tables for line in table.splitlines() for word in _reasons_of(line)}
    assert len(tables) == 3
    assert listed - set(get_args(Reason)) == set()


def _pages() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(DOCS.glob("*.md")))


def _reasons_of(line: str) -> list[str]:
    cells = [cell.strip() for cell in line.strip("|").split("|")]
    return [word for cell in cells[:-1] for word in re.findall(r"`(\w+)`", cell)]
