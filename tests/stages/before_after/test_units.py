from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import read_table, run_before_after

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

COUNTS = ("n_before", "n_after", "m_before", "m_after")
WINDOW = {"before": "20h", "after": "10h"}
BEFORE, AFTER = 20, 10
Row = tuple[int, int, int, int]


class Archive:
    """Events and articles in whole hours, every compared pair with a score in tenths, and the events that take part."""

    def __init__(self, seed: int, *, text: bool = False) -> None:
        rng = np.random.default_rng(seed)
        self.start = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
        self.event_hours: list[int] = [*rng.integers(0, 90, 11).tolist(), 45]
        self.article_hours: list[int] = [0, *rng.integers(0, 90, 60).tolist(), 90]
        self.ids = [f"event {number}" if text else number for number in range(len(self.event_hours))]
        self.scores = {
            (event, article): float(rng.integers(0, 11)) / 10
            for event in range(len(self.event_hours) - 1)
            for article in range(len(self.article_hours))
            if -BEFORE <= self.lag(event, article) <= AFTER
        }
        self.scores |= {
            (len(self.ids) - 1, article): 0.0
            for article in range(len(self.article_hours))
            if -BEFORE <= self.lag(len(self.ids) - 1, article) <= AFTER
        }

    def lag(self, event: int, article: int) -> int:
        return self.article_hours[article] - self.event_hours[event]

    def complete(self, event: int) -> bool:
        hour = self.event_hours[event]
        return hour - BEFORE >= min(self.article_hours) and hour + AFTER <= max(self.article_hours)

    def moments(self, hours: list[int]) -> pl.Series:
        return pl.Series([self.start + dt.timedelta(hours=hour) for hour in hours]).cast(pl.Datetime("us", "UTC"))

    def frames(self, compared: str) -> dict[str, pl.DataFrame]:
        """The archive as given numbers, as timelines, or as one row per compared pair."""
        kept = {pair: score for pair, score in self.scores.items() if compared == "pairs" or score > 0}
        pairs = pl.DataFrame(
            {
                "event_id": [self.ids[event] for event, _ in kept],
                "article_id": [article for _, article in kept],
                "score": list(kept.values()),
                "lag_hours": [float(self.lag(*pair)) for pair in kept],
            }
        )
        events = pl.DataFrame({"event_id": self.ids})
        complete = pl.Series("complete_window", [self.complete(event) for event in range(len(self.ids))])
        if compared == "pairs":
            return {"pairs": pairs, "events": events.with_columns(complete)}
        if compared == "timelines":
            articles = {"article_id": range(len(self.article_hours)), "article_time": self.moments(self.article_hours)}
            times = self.moments(self.event_hours).alias("event_time")
            return {"pairs": pairs, "events": events.with_columns(times), "articles": pl.DataFrame(articles)}
        sides = [self.sides(event) for event in range(len(self.ids))]
        numbers = [
            pl.Series("n_before", [len(each[0]) for each in sides]),
            pl.Series("n_after", [len(e[1]) for e in sides]),
        ]
        return {"pairs": pairs, "events": events.with_columns(complete, *numbers)}

    def sides(self, event: int) -> tuple[list[float], list[float]]:
        """Scores before and after an event."""
        own = [(self.lag(*pair), score) for pair, score in self.scores.items() if pair[0] == event]
        return [score for lag, score in own if lag < 0], [score for lag, score in own if lag >= 0]

    def expected(self, threshold: float, boundary: str) -> dict[int | str, Row]:
        def matches(scores: list[float]) -> int:
            return sum(score >= threshold if boundary == ">=" else score > threshold for score in scores)

        found: dict[int | str, Row] = {}
        for event, name in enumerate(self.ids):
            if self.complete(event):
                before, after = self.sides(event)
                found[name] = (len(before), len(after), matches(before), matches(after))
        return found


def rows_of(run: Run) -> dict[int | str, Row]:
    table = read_table(run, "before_after_events")
    assert table["grouping"].unique().to_list() in ([], ["all"])
    return dict(zip(table["event_id"].to_list(), table.select(COUNTS).rows(), strict=True))


def first_point(run: Run) -> dict[str, Any]:
    return read_table(run, "before_after_operating_points").filter(pl.col("grouping") == "all").row(0, named=True)


def assert_adds_up(run: Run) -> None:
    table, point = read_table(run, "before_after_events"), first_point(run)
    assert {name: table[name].sum() for name in COUNTS} == {name: point[name] for name in COUNTS}


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    ("compared", "boundary", "text"),
    [
        ("events", ">=", True),
        ("timelines", ">=", False),
        ("pairs", ">=", False),
        ("events", ">", False),
        ("timelines", ">", True),
        ("pairs", ">", True),
    ],
)
def test_every_event_that_takes_part_has_its_own_counts_at_the_chosen_threshold(
    tmp_path: Path, compared: str, boundary: str, *, text: bool
) -> None:
    archive = Archive(5, text=text)
    keys = {"thresholds": [0.3, 0.6, 0.7], "boundary": boundary, "window": WINDOW}
    points = [{"min_recall": 0.01}, {"beta": 1}]
    run = run_before_after(
        tmp_path,
        archive.frames(compared),
        operating_points=points,
        recall_reference={"rule": "fixed", "threshold": 0.3},
        **keys,
    )
    chosen = first_point(run)["threshold"]
    if chosen is None:
        pytest.fail("the data reach no criterion")
    expected = archive.expected(chosen, boundary)
    assert 0 < len(expected) < len(archive.ids)
    assert rows_of(run) == expected
    assert expected[archive.ids[-1]][2:] == (0, 0), "an event without any match keeps its row"
    assert_adds_up(run)
    kind = read_table(run, "before_after_events").schema["event_id"]
    assert kind == (pl.String() if text else pl.Int64())


PAIRS = pl.DataFrame(
    {
        "event_id": [1, 1, 2, 2],
        "article_id": [1, 2, 3, 4],
        "score": [0.9, 0.2, 0.5, 0.8],
        "lag_hours": [1.0, -1.0, 2.0, 3.0],
        "source": ["x", "x", None, "y"],
    }
)


def test_events_are_those_of_pairs_when_no_other_input_names_them(tmp_path: Path) -> None:
    run = run_before_after(tmp_path, {"pairs": PAIRS}, thresholds=[0.5], by=["source"], uncertainty="none")
    assert rows_of(run) == {1: (1, 1, 0, 1), 2: (0, 2, 0, 2)}
    assert read_table(run, "before_after_events")["source"].to_list() == [None, None]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "keys",
    [
        {"thresholds": [0.5], "by": [["source"]]},
        {"thresholds": [0.99]},
        {"thresholds": [0.1], "operating_points": [{"min_precision": 1}, {"beta": 1}]},
    ],
)
def test_without_a_total_or_a_chosen_threshold_there_is_no_row(tmp_path: Path, keys: dict[str, Any]) -> None:
    pairs = PAIRS.with_columns(lag_hours=pl.Series([-1.0, 1.0, 2.0, -3.0]))
    run = run_before_after(tmp_path, {"pairs": pairs}, **keys)
    table = read_table(run, "before_after_events")
    assert (table.height, table.schema["event_id"]) == (0, pl.Int64())


def test_merged_duplicates_count_once(tmp_path: Path) -> None:
    pairs = pl.concat([PAIRS, PAIRS.with_columns(score=pl.col("score") - 0.1)])
    run = run_before_after(tmp_path, {"pairs": pairs}, thresholds=[0.35], duplicates="max")
    assert rows_of(run) == {1: (1, 1, 0, 1), 2: (0, 2, 0, 2)}
    assert_adds_up(run)


def test_scores_that_are_thresholds_themselves_choose_one_of_them(tmp_path: Path) -> None:
    run = run_before_after(tmp_path, {"pairs": PAIRS}, thresholds="distinct")
    assert first_point(run)["threshold"] == 0.2, "all 3 pairs after are positive, so that none can be a false positive"
    assert rows_of(run) == {1: (1, 1, 1, 1), 2: (0, 2, 0, 2)}
    assert_adds_up(run)


def test_distinct_thresholds_and_boundary_above_mean_the_same_for_events_and_for_the_operating_point(
    tmp_path: Path,
) -> None:
    assert_adds_up(run_before_after(tmp_path, {"pairs": PAIRS}, thresholds="distinct", boundary=">"))


def test_compared_pairs_of_events_leave_out_dropped_scores_as_the_estimates_do(tmp_path: Path) -> None:
    pairs = PAIRS.with_columns(score=pl.Series([0.9, float("nan"), None, 0.8]), lag_hours=pl.Series([1.0, -1, -2, -3]))
    run = run_before_after(tmp_path, {"pairs": pairs}, thresholds=[0.85], invalid_scores="drop", compared="pairs")
    assert_adds_up(run)
