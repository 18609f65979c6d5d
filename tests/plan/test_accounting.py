from __future__ import annotations

import datetime as dt
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import before_after_config, read_table, rows_by_status

import pipeline

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pipeline.runs.stage_results import Run

WINDOW = {"before": "20h", "after": "10h", "gap": "2h", "closed": "left"}
BEFORE, AFTER, GAP = 20, 10, 2
START = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
INVALID: dict[float | None, str] = {None: "null_score", float("inf"): "infinite_score", float("-inf"): "infinite_score"}
Row = dict[str, Any]


def in_window(lag: float) -> bool:
    return -BEFORE <= lag < -GAP or 0 <= lag < AFTER


def state(score: float | None) -> str | None:
    """Why a score is no score."""
    return "nan_score" if score is not None and score != score else INVALID.get(score)  # noqa: PLR0124


@dataclass(frozen=True)
class Inputs:
    """Rows of every input, and whether windows are complete by a flag or by the times of the articles."""

    pairs: list[Row]
    events: list[Row]
    articles: list[Row]
    timed: bool

    def frames(self) -> dict[str, pl.DataFrame]:
        events = pl.DataFrame(self.events).with_columns(event_time=hours("hour")).drop("hour")
        articles = pl.DataFrame(self.articles).with_columns(article_time=hours("hour")).drop("hour")
        events = events.drop("complete_window" if self.timed else "event_time")
        pairs = pl.DataFrame(self.pairs, schema_overrides={"score": pl.Float64}, infer_schema_length=None)
        if self.timed:  # the lags are compared with these times, not with those that only tell complete windows
            lag = pl.duration(minutes=pl.col("lag_hours") * 60)
            start = pl.lit(START).dt.cast_time_unit("us")
            pairs = pairs.with_columns(event_time=start, article_time=start + lag)
        return {"pairs": pairs, "events": events, "articles": articles}

    def complete(self) -> dict[int, bool]:
        """The events that `where` keeps, and whether each takes part."""
        kept = [row for row in self.events if row["wanted"]]
        archive = [row["hour"] for row in self.articles if row["wanted"]]
        return {
            row["event_id"]: (
                row["hour"] - BEFORE >= min(archive) and row["hour"] + AFTER <= max(archive)
                if self.timed
                else row["complete_window"]
            )
            for row in kept
        }

    def rows_by_status(self, *, merged: bool, by_articles: bool) -> Counter[str]:
        """One status of every pair, the first reason that applies."""
        complete = self.complete()
        listed = {row["article_id"] for row in self.articles if row["wanted"]}
        found: Counter[str] = Counter()
        best: dict[tuple[int, int], list[Row]] = {}
        for row in self.pairs:
            if not row["wanted"]:
                found["where"] += 1
            elif (reason := state(row["score"])) is not None:
                found[reason] += 1
            elif row["event_id"] not in complete:
                found["unlisted_event"] += 1
            elif not complete[row["event_id"]]:
                found["incomplete_window"] += 1
            elif by_articles and row["article_id"] not in listed:
                found["unlisted_article"] += 1
            else:
                best.setdefault((row["event_id"], row["article_id"]), []).append(row)
        for own in best.values():
            first, *others = sorted(own, key=lambda row: (row["score"], row["lag_hours"]), reverse=True)
            found["used" if in_window(first["lag_hours"]) else "outside_window"] += 1
            for row in others:
                inside = "duplicate" if merged else "used"
                found[inside if in_window(row["lag_hours"]) else "outside_window"] += 1
        return found


def hours(name: str) -> pl.Expr:
    return pl.lit(START).dt.cast_time_unit("us") + pl.duration(hours=pl.col(name))


def random_inputs(seed: int, *, timed: bool) -> Inputs:
    rng = np.random.default_rng(seed)

    def wanted(share: float) -> bool | None:
        return None if rng.random() < 0.05 else bool(rng.random() < share)

    scores = [0.1, 0.2, 0.5, 0.6, 0.9, 0.9, None, float("nan"), float("inf"), float("-inf")]
    pairs = [
        {
            "event_id": int(rng.integers(0, 12)),
            "article_id": int(rng.integers(0, 14)),
            "score": scores[int(rng.integers(0, len(scores)))],
            "lag_hours": float(rng.choice([-21, -20, -5, -2, -1, 0, 3, 9.5, 10, 11])),
            "wanted": wanted(0.9),
        }
        for _ in range(400)
    ]
    events = [
        {
            "event_id": event,
            "hour": int(rng.integers(15, 60)),
            "complete_window": bool(rng.random() < 0.7),
            "wanted": wanted(0.9),
        }
        for event in range(10)
    ]
    articles = [
        {"article_id": article, "hour": int(rng.integers(0, 70)), "medium": "ab"[article % 2], "wanted": wanted(0.8)}
        for article in range(11)
    ]
    return Inputs(pairs, events, articles, timed)


def _published(folder: Path, frames: Mapping[str, pl.DataFrame], **keys: Any) -> Run:  # noqa: ANN401 - as run_inputs
    """A published run, whose record is read."""
    return pipeline.run(before_after_config(folder, frames, **keys))


def run_inputs(folder: Path, inputs: Inputs, **keys: Any) -> Run:  # noqa: ANN401 - keys of a config
    where = {"where": "wanted"}
    flagged = {} if inputs.timed else {"columns": {"complete_window": "complete_window"}}
    return _published(
        folder,
        inputs.frames(),
        thresholds=[0.2, 0.6],
        window=WINDOW,
        compared="pairs",
        invalid_scores="drop",
        pairs=where,
        events=where | flagged,
        articles=where,
        uncertainty="none",
        **keys,
    )


def assert_whole(run: Run, frames: dict[str, pl.DataFrame]) -> None:
    """Rows in are the sum of the rows of all statuses, in the view and in the record of the run."""
    table = read_table(run, "inputs")
    record = json.loads((run.path / "run.json").read_bytes())["accounting"]["before_after"]
    assert set(table["input"]) == set(frames) == set(record)
    for name, frame in frames.items():
        rows = table.filter(pl.col("input") == name)
        assert rows["n_rows"].sum() == frame.height
        assert rows["rows_in"].unique().to_list() == [frame.height]
        assert rows["rows_used"].unique().to_list() == rows.filter(pl.col("status") == "used")["n_rows"].to_list()
        assert rows["n_files"].unique().to_list() == [1]
        assert record[name] == rows_by_status(run, name) | {"rows_in": frame.height}


def without_zeros(counts: Counter[str]) -> dict[str, int]:
    return {status: number for status, number in counts.items() if number or status == "used"}


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("seed", "timed", "duplicates", "by"),
    [
        (1, False, "max", [[]]),
        (2, True, "max", ["medium"]),
        (3, True, "keep", [[]]),
        (4, False, "keep", ["medium"]),
    ],
)
def test_every_row_of_every_input_has_one_status_and_each_is_counted(
    tmp_path: Path, seed: int, duplicates: str, by: list[Any], *, timed: bool
) -> None:
    inputs = random_inputs(seed, timed=timed)
    run = run_inputs(tmp_path, inputs, duplicates=duplicates, by=by)
    assert_whole(run, inputs.frames())
    expected = inputs.rows_by_status(merged=duplicates == "max", by_articles=by == ["medium"])
    assert len(expected) >= 7
    assert rows_by_status(run) == without_zeros(expected)
    complete = inputs.complete()
    assert rows_by_status(run, "events") == without_zeros(
        Counter(
            used=sum(complete.values()),
            incomplete_window=len(complete) - sum(complete.values()),
            where=len(inputs.events) - len(complete),
        )
    )
    kept = sum(row["wanted"] is True for row in inputs.articles)
    assert rows_by_status(run, "articles") == without_zeros(Counter(used=kept, where=len(inputs.articles) - kept))
    counts = read_table(run, "counts").filter(pl.col("grouping") == "all")
    assert counts.select(pl.col("m_before").sum() + pl.col("m_after").sum()).item() == expected["used"]


def test_when_every_row_is_used_there_is_no_other_status(tmp_path: Path) -> None:
    pairs = pl.DataFrame({"event_id": [1, 1, 2], "score": [0.1, 0.5, 0.9], "lag_hours": [-1.0, 0.0, 500.0]})
    run = _published(tmp_path, {"pairs": pairs}, thresholds=[0.5])
    assert rows_by_status(run) == {"used": 3}
    assert_whole(run, {"pairs": pairs})


@pytest.mark.wide
def test_nothing_at_all_is_used_nought_times(tmp_path: Path) -> None:
    pairs = pl.DataFrame({"event_id": [1], "score": [0.1], "lag_hours": [-1.0]})
    run = _published(tmp_path / "empty", {"pairs": pairs.clear()}, thresholds=[0.5], allow_empty=True)
    assert rows_by_status(run) == {"used": 0}
    keys = {"thresholds": [0.5], "pairs": {"where": "score > 1"}, "allow_empty": True}
    run = _published(tmp_path / "where", {"pairs": pairs}, **keys)
    assert rows_by_status(run) == {"used": 0, "where": 1}
    assert_whole(run, {"pairs": pairs})


def test_the_better_of_two_rows_counts_even_if_it_lies_outside_the_window(tmp_path: Path) -> None:
    pairs = pl.DataFrame(
        {
            "event_id": [1, 1, 1, 2, 2],
            "article_id": [1, 1, 1, 1, 1],
            "score": [0.9, 0.5, 0.4, 0.7, 0.7],
            "lag_hours": [11.0, 1.0, 12.0, 1.0, 2.0],
        }
    )
    run = _published(tmp_path, {"pairs": pairs}, thresholds=[0.5], window=WINDOW, duplicates="max")
    assert rows_by_status(run) == {"used": 1, "duplicate": 2, "outside_window": 2}


def test_rows_without_an_article_are_no_duplicates_of_each_other(tmp_path: Path) -> None:
    pairs = pl.DataFrame(
        {"event_id": [1, 1, 1], "article_id": [None, None, 3], "score": [0.9, 0.8, 0.7], "lag_hours": [1.0, 2.0, -1.0]}
    )
    run = _published(tmp_path, {"pairs": pairs}, thresholds=[0.5], duplicates="max")
    assert rows_by_status(run) == {"used": 3}


@pytest.mark.wide
def test_articles_may_have_attributes_and_no_time(tmp_path: Path) -> None:
    pairs = pl.DataFrame({"event_id": [1, 1], "article_id": [1, 2], "score": [0.9, 0.8], "lag_hours": [1.0, -1.0]})
    articles = pl.DataFrame({"article_id": [1], "medium": ["print"]})
    run = _published(tmp_path, {"pairs": pairs, "articles": articles}, thresholds=[0.5], by=["medium"])
    assert rows_by_status(run) == {"used": 1, "unlisted_article": 1}
