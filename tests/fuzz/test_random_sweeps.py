"""Random predictions: every count of threshold_sweep is right, or the run says what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from fuzz.driver import each_case, fault
from fuzz.inputs import MOST_ROWS, is_retrieved, is_valid, judged, keys, labels, ran, rows_of, scores, told

if TYPE_CHECKING:
    import random
    from pathlib import Path

pytestmark = pytest.mark.fuzz

Row = dict[str, Any]


def test_the_counts_of_random_predictions_are_right(tmp_path: Path) -> None:
    def judge(draw: random.Random) -> str | None:
        n = draw.randrange(MOST_ROWS + 1)
        predictions = {
            "score": scores(draw, n, invalid=draw.choice((0, 0, 0.15))),
            "label": labels(draw, n),
            "group": keys(draw, n, 3, missing=0.1),
        }
        stage: dict[str, Any] = {
            "kind": "threshold_sweep",
            "thresholds": draw.choice(("distinct", [0.5, 1.0, 2.0], [-1e308, 0.3, 1e308], [1e-320])),
            "boundary": draw.choice((">=", ">")),
            "invalid_scores": draw.choice(("error", "drop", "missed")),
            "by": draw.choice(([[]], ["group"], [["group"]])),
            "uncertainty": draw.choice(("none", "none", "jackknife")),
            "method": draw.choice(("exact", "exact", "binned")),
            "allow_empty": draw.random() < 0.3,
        }
        frames = {"predictions": predictions}
        outcome = ran(draw, tmp_path, frames, stage)
        rows = rows_of(predictions)
        if outcome.code:
            unfounded = None if _is_faulty(rows, stage) else "refused without cause"
            return fault(outcome) or (unfounded and f"{unfounded}: {outcome.text}\n{told(frames, stage)}")
        if _is_faulty(rows, stage) and not stage["allow_empty"]:
            return f"faulty rows were published\n{told(frames, stage)}"
        seen = {
            (row["grouping"], row.get("group"), row["threshold"]): (row["tp"], row["fp"], row["fn"], row["tn"])
            for row in outcome.tables["threshold_sweep_curve"].to_dicts()
        }
        return judged(outcome, seen, _expected(rows, stage), frames, stage)

    each_case(40, judge)


def _is_faulty(rows: list[Row], stage: dict[str, Any]) -> bool:
    dropped = stage["invalid_scores"] == "drop"
    unlabelled = any(row["label"] not in {0, 1} for row in rows if is_valid(row["score"]) or not dropped)
    unscored = any(not is_valid(row["score"]) for row in rows)
    nothing_left = not any(is_valid(row["score"]) for row in rows)
    return unlabelled or nothing_left or (unscored and stage["invalid_scores"] == "error")


def _expected(rows: list[Row], stage: dict[str, Any]) -> dict[Any, tuple[int, ...]]:
    used = [row for row in rows if is_valid(row["score"]) or stage["invalid_scores"] == "missed"]
    groups: dict[Any, list[Row]] = {} if stage["by"] == [["group"]] else {("all", None): used}
    for row in used if stage["by"] != [[]] else ():
        groups.setdefault(("group", row["group"]), []).append(row)
    table = {}
    for key, members in groups.items():
        every = sorted({float(row["score"]) for row in members if is_valid(row["score"])})
        for threshold in every if stage["thresholds"] == "distinct" else stage["thresholds"]:
            cells = [0, 0, 0, 0]
            for row in members:
                above = is_retrieved(row["score"], threshold, stage["boundary"])
                cells[(0 if row["label"] else 1) if above else (2 if row["label"] else 3)] += 1
            table[*key, threshold] = tuple(cells)
    return table
