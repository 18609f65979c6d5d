"""Random change points and units: matchings and differences are right, or the run says what is wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from fuzz.driver import each_case, fault
from fuzz.inputs import KEY_FORMS, judged, keyed, ran, told, whole_integers, whole_numbers

if TYPE_CHECKING:
    import random
    from pathlib import Path

pytestmark = pytest.mark.fuzz

Point = tuple[int, int]  # series, position


def test_matched_points_are_a_largest_matching(tmp_path: Path) -> None:
    def points(draw: random.Random) -> list[Point]:
        return sorted({(draw.randrange(2), draw.randrange(12)) for _ in range(draw.randrange(9))})

    def judge(draw: random.Random) -> str | None:
        form = draw.choice(KEY_FORMS)
        marked, predicted = points(draw), points(draw)
        scores = [draw.choice((1, 2, 3)) for _ in predicted]
        as_columns = {
            name: {
                "series_id": keyed([series for series, _ in rows], form),
                "position": whole_integers(draw, [position for _, position in rows]),
            }
            for name, rows in (("annotations", marked), ("predictions", predicted))
        }
        frames = as_columns | {"predictions": as_columns["predictions"] | {"score": whole_numbers(draw, scores)}}
        stage: dict[str, Any] = {
            "kind": "change_points",
            "margin": draw.choice((1, 2, 2.5, {"before": 1, "after": 3})),
            "margin_boundary": draw.choice(("<", "<=")),
            "thresholds": [1, 2, 3],
        }
        outcome = ran(draw, tmp_path, frames, stage)
        if outcome.code:
            unfounded = None if not marked or not predicted else "refused without cause"
            return fault(outcome) or (unfounded and f"{unfounded}: {outcome.text}\n{told(frames, stage)}")
        expected = {}
        for threshold in stage["thresholds"]:
            kept = [point for point, score in zip(predicted, scores, strict=True) if score >= threshold]
            expected[threshold] = (len(marked), len(kept), _largest(kept, marked, stage))
        rows = outcome.tables["change_points_curve"].to_dicts()
        seen = {row["threshold"]: (row["n_true"], row["n_predicted"], row["tp"]) for row in rows}
        return judged(outcome, seen, expected, frames, stage)

    each_case(30, judge)


def _largest(predicted: list[Point], marked: list[Point], stage: dict[str, Any]) -> int:
    """Size of a largest one-to-one matching, by trying everything."""
    if not predicted:
        return 0
    (series, position), *others = predicted
    best = _largest(others, marked, stage)
    for index, (there, true) in enumerate(marked):
        if there == series and _fits(position - true, stage):
            best = max(best, 1 + _largest(others, marked[:index] + marked[index + 1 :], stage))
    return best


def _fits(delay: int, stage: dict[str, Any]) -> bool:
    margin = stage["margin"]
    before, after = (margin["before"], margin["after"]) if isinstance(margin, dict) else (margin, margin)
    side = after if delay > 0 else before
    return bool(abs(delay) < side or (abs(delay) == side and stage["margin_boundary"] == "<="))


def test_differences_of_random_units_are_right(tmp_path: Path) -> None:
    def judge(draw: random.Random) -> str | None:
        form = draw.choice(KEY_FORMS)
        n_units = draw.randrange(7)
        cells = [(unit, system) for unit in range(n_units) for system in range(2)]
        values = [draw.choice((0, 1, 2, 5)) for _ in cells]
        units = {
            "unit": keyed([unit for unit, _ in cells], form),
            "system": keyed([system for _, system in cells], form),
            "metric": whole_numbers(draw, values),
        }
        stage = {"kind": "compare", "metrics": ["metric"], "resamples": 99, "tests": ["paired_t", "sign"]}
        frames = {"units": units}
        outcome = ran(draw, tmp_path, frames, stage)
        if outcome.code:
            return (
                fault(outcome) or (n_units and f"refused without cause: {outcome.text}\n{told(frames, stage)}") or None
            )
        a, b = values[::2], values[1::2]
        pairs = list(zip(a, b, strict=True))
        wins = (sum(x > y for x, y in pairs), sum(x == y for x, y in pairs), sum(x < y for x, y in pairs))
        expected = (n_units, math.fsum(a) / n_units, math.fsum(b) / n_units, *wins)
        row = outcome.tables["compare_tests"].row(0, named=True)
        names = ("n_units", "mean_a", "mean_b", "wins_a", "ties", "wins_b")
        seen = tuple(row[name] for name in names)
        near = all(math.isclose(left, right, rel_tol=1e-12) for left, right in zip(seen, expected, strict=True))
        return None if near else judged(outcome, seen, expected, frames, stage)

    each_case(15, judge)
