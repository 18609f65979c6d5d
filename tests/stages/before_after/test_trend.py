"""The table before_after_trend: counted by a loop over all pairs, from rows and from timelines."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import read_table, run_before_after

from pipeline.metrics.before_after.assumption import trend

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

    from pipeline.runs.stage_results import Run

EVENTS = 24
WINDOW = {"before": "100h", "after": "12h", "gap": "6h"}
DAYS = [-5, -4, -3, -2, -1]
MIDDLES = np.array([-98, -84, -60, -36, -15]) / 24
THRESHOLDS = [0.5, 0.8]


class Archive:
    """Events and articles in whole hours; scores rise towards the event if `rising`."""

    def __init__(self, *, rising: float = 0.0) -> None:
        rng = np.random.default_rng(6)
        start = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
        event_hours, article_hours = rng.integers(110, 400, EVENTS), rng.integers(0, 420, 900)
        article_hours[:2] = 0, 420
        self.lag = article_hours[None, :] - event_hours[:, None]
        event, article = np.nonzero((self.lag >= -110) & (self.lag <= 20))
        lag = self.lag[event, article]
        score = rng.random(len(event)) + rising * lag / 24
        self.pairs = pl.DataFrame({"event_id": event, "article_id": article, "score": score, "lag_hours": lag * 1.0})
        times = [
            pl.Series([start + dt.timedelta(hours=int(hour)) for hour in hours]).cast(pl.Datetime("us", "UTC"))
            for hours in (event_hours, article_hours)
        ]
        self.events = pl.DataFrame({"event_id": range(EVENTS), "event_time": times[0], "kind": ["x", "y"] * 12})
        self.articles = pl.DataFrame({"article_id": range(900), "article_time": times[1]})

    def counted(self, threshold: float, events: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Matches and pairs by event and day, by a loop."""
        matches, pairs = np.zeros((2, EVENTS, len(DAYS)), dtype=np.int64)
        for event, score, lag in self.pairs.select("event_id", "score", "lag_hours").rows():
            if -100 <= lag < -6 and event in events:
                pairs[event, int(lag // 24) + 5] += 1
                matches[event, int(lag // 24) + 5] += score >= threshold
        return matches, pairs

    def frames(self, compared: str) -> dict[str, pl.DataFrame]:
        stored = self.pairs.filter(pl.col("score") > 0.2)
        if compared == "pairs":
            return {"pairs": self.pairs, "events": self.events.drop("event_time")}
        if compared == "timelines":
            return {"pairs": stored, "events": self.events, "articles": self.articles}
        before = ((self.lag >= -100) & (self.lag < -6)).sum(axis=1)
        after = ((self.lag >= 0) & (self.lag <= 12)).sum(axis=1)
        events = self.events.with_columns(n_before=pl.Series(before), n_after=pl.Series(after))
        if compared == "given":
            return {"pairs": stored, "events": events.drop("event_time")}
        return {"pairs": stored, "events": events, "articles": self.articles}


def run(folder: Path, frames: dict[str, pl.DataFrame], **keys: Any) -> Run:  # noqa: ANN401 - keys of a config
    options = {"thresholds": [0.3, 0.6], "window": WINDOW, "lag_thresholds": THRESHOLDS}
    return run_before_after(folder, frames, **(options | keys))


@pytest.mark.wide
@pytest.mark.parametrize("compared", ["pairs", "timelines", "events"])
def test_days_are_counted_as_a_loop_over_all_pairs_does(tmp_path: Path, compared: str) -> None:
    archive = Archive()
    table = read_table(run(tmp_path, archive.frames(compared), by=["kind"], cluster="event_id"), "before_after_trend")
    assert table.select("grouping", "kind").unique().height == 3
    assert table.height == 3 * len(THRESHOLDS)
    for row in table.to_dicts():
        events = [each for each in range(EVENTS) if row["kind"] is None or row["kind"] == "xy"[each % 2]]
        matches, pairs = archive.counted(row["threshold"], events)
        hits = matches.sum(axis=1)[:, None].astype(float)
        expected = trend(hits, (matches @ MIDDLES)[:, None], pairs, MIDDLES, confidence=0.95)
        assert (row["n_days"], row["matches"], row["undefined"]) == (5, matches.sum(), None)
        for name, value in (("slope", expected.slope), ("slope_lower", expected.lower), ("p_value", expected.p_value)):
            assert row[name] == pytest.approx(value[0], rel=1e-6), name
        assert row["slope_lower"] < row["slope"] < row["slope_upper"]


def test_where_the_pairs_of_a_day_are_not_known_there_is_no_slope(tmp_path: Path) -> None:
    archive = Archive()
    table = read_table(run(tmp_path, archive.frames("given")), "before_after_trend")
    matches = [int(archive.counted(threshold, list(range(EVENTS)))[0].sum()) for threshold in THRESHOLDS]
    assert table.select("n_days", "matches", "slope", "p_value", "undefined").rows() == [
        (None, number, None, None, "unknown_pairs") for number in matches
    ]


def test_times_that_contradict_the_given_numbers_give_no_slope(tmp_path: Path) -> None:
    frames = Archive().frames("events")
    frames["events"] = frames["events"].with_columns(n_before=pl.col("n_before") - 1)
    table = read_table(run(tmp_path / "fewer", frames), "before_after_trend")
    assert table["undefined"].to_list() == ["unknown_pairs"] * 2


def test_without_replicates_or_lag_thresholds_there_is_no_test(tmp_path: Path) -> None:
    frames = Archive().frames("pairs")
    table = read_table(run(tmp_path / "none", frames, uncertainty="none"), "before_after_trend")
    assert table.select("n_days", "slope", "undefined").rows() == [(5, None, "none")] * 2
    assert read_table(run(tmp_path / "off", frames, lag_thresholds=[]), "before_after_trend").is_empty()


@pytest.mark.wide
def test_a_rate_that_rises_towards_the_event_raises_a_doubt(tmp_path: Path) -> None:
    flat = run(tmp_path / "flat", Archive().frames("pairs"))
    rising = run(tmp_path / "rising", Archive(rising=0.05).frames("pairs"))
    words = "over the days before the event"
    assert not any(words in warning for warning in flat.warnings)
    assert words not in flat.stages[0].summary.sentence
    row = read_table(rising, "before_after_trend").sort("p_value").row(0, named=True)
    assert row["slope_lower"] > 0
    said = [warning for warning in rising.warnings if words in warning]
    assert len(said) == 1
    assert f"{np.expm1(row['slope']):+.0%} a day" in said[0]
    assert "These numbers may be far off: see the warnings." in rising.stages[0].summary.sentence


def test_an_empty_input_has_rows_without_a_slope(tmp_path: Path) -> None:
    frames = {name: frame.clear() for name, frame in Archive().frames("pairs").items()}
    table = read_table(run(tmp_path, frames, allow_empty=True), "before_after_trend")
    assert table.select("n_days", "matches", "slope", "undefined").rows() == [(0, 0, None, "no_before")] * 2
