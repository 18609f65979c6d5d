"""Random pairs: every count and ratio of before_after is right, or the run says what is wrong."""

from __future__ import annotations

from collections import Counter, defaultdict
from fractions import Fraction
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from reference_estimates import Row as Counted
from reference_estimates import reference_of

from fuzz.driver import each_case, fault
from fuzz.inputs import MOST_ROWS, is_retrieved, is_valid, judged, keys, numbers, ran, rows_of, scores, told

if TYPE_CHECKING:
    import random
    from pathlib import Path

pytestmark = pytest.mark.fuzz

LAGS = (-30.0, -24.0, -1e-9, -0.0, 0.0, 5.0, 24.0, 24.000001)
REFERENCES = (
    {"rule": "lowest", "recall": 1.0},
    {"rule": "max", "recall": 0.8},
    {"rule": "fixed", "recall": 0.9, "threshold": 0.5},
)
COUNTS = ("m_before", "m_after", "n_before", "n_after")
Row = dict[str, Any]


def test_the_counts_of_random_pairs_are_right(tmp_path: Path) -> None:
    def judge(draw: random.Random) -> str | None:
        n = draw.randrange(MOST_ROWS + 1)
        pairs = {
            "event_id": keys(draw, n, 4, missing=draw.choice((0, 0, 0.1))),
            "score": scores(draw, n, invalid=draw.choice((0, 0.15))),
            "lag_hours": numbers(draw, n, LAGS, spoilt=draw.choice((0, 0, 0.1))),
            "group": keys(draw, n, 3, missing=0.1),
        }
        stage: dict[str, Any] = {
            "kind": "before_after",
            "compared": "pairs",
            "thresholds": [0.3, 0.5, 2.0],
            "boundary": draw.choice((">=", ">")),
            "invalid_scores": draw.choice(("drop", "missed")),
            "by": draw.choice(([[]], [[], ["group"]])),
            "window": {"before": "24h", "after": "24h", "closed": draw.choice(("both", "left"))},
            "allow_empty": draw.random() < 0.3,
            "uncertainty": draw.choice(("none", "jackknife")),
            "recall_reference": draw.choice(REFERENCES),
        }
        frames = {"pairs": pairs}
        outcome = ran(draw, tmp_path, frames, stage)
        rows = rows_of(pairs)
        if outcome.code:
            unfounded = None if _is_faulty(rows, stage) else "refused without cause"
            return fault(outcome) or (unfounded and f"{unfounded}: {outcome.text}\n{told(frames, stage)}")
        estimates = {
            (row["grouping"], row.get("group"), row["threshold"]): row
            for row in outcome.tables["before_after_estimates"].to_dicts()
        }
        seen = {key: tuple(row[name] for name in COUNTS) for key, row in estimates.items()}
        counts = _expected(rows, stage)
        wrong = judged(outcome, seen, counts, frames, stage) or _wrong_ratio(estimates, counts, stage)
        return wrong and f"{wrong}\n{told(frames, stage)}"

    each_case(25, judge)


def _wrong_ratio(estimates: dict[Any, Row], counts: dict[Any, tuple[int, ...]], stage: dict[str, Any]) -> str | None:
    """The first ratio that is not the exact fraction of the counts."""
    reference, groups = stage["recall_reference"], defaultdict(list)
    for (grouping, group, threshold), (m_before, m_after, n_before, n_after) in counts.items():
        groups[grouping, group].append(Counted(group, threshold, n_before, n_after, m_before, m_after))
    for (grouping, group), members in groups.items():
        at = reference_of(members, reference["rule"], threshold=reference.get("threshold"))
        for counted in members:
            row = estimates[grouping, group, counted.threshold]
            for name, value in counted.expected(at, Fraction(str(reference["recall"]))).items():
                exact = float(value) if isinstance(value, Fraction) else value
                is_right = row[name] == exact or (
                    isinstance(exact, float) and row[name] is not None and abs(row[name] - exact) <= 1e-14 * abs(exact)
                )
                if not is_right:
                    return f"{name} at {counted.threshold} of {grouping} {group}: {row[name]}, exactly {value}"
    return None


def _is_faulty(rows: list[Row], stage: dict[str, Any]) -> bool:
    if any(not is_valid(row["lag_hours"]) or row["event_id"] is None for row in rows):
        return True
    return not any(_in_window(row, stage) and is_valid(row["score"]) for row in rows)


def _in_window(row: Row, stage: dict[str, Any]) -> bool:
    lag = row["lag_hours"]
    return bool(-24 <= lag < 24 or (lag == 24 and stage["window"]["closed"] == "both"))


def _expected(rows: list[Row], stage: dict[str, Any]) -> dict[Any, tuple[int, ...]]:
    keeps_unscored = stage["invalid_scores"] == "missed"
    scored = [row for row in rows if is_valid(row["score"]) or keeps_unscored]
    groups: dict[Any, list[Row]] = {("all", None): scored}
    for row in scored if len(stage["by"]) > 1 else ():
        groups.setdefault(("group", row["group"]), []).append(row)
    table = {}
    for (key, members), threshold in product(groups.items(), stage["thresholds"]):
        cells = Counter[str]()
        for row in (row for row in members if _in_window(row, stage)):
            side = "after" if row["lag_hours"] >= 0 else "before"
            matches = is_retrieved(row["score"], threshold, stage["boundary"])
            cells.update([f"n_{side}", *([f"m_{side}"] if matches else [])])
        table[*key, threshold] = tuple(cells[name] for name in COUNTS)
    return table
