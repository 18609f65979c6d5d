"""Pairs with two parents, from the rows to the limits, against loops over all pairs."""

from __future__ import annotations

import datetime as dt
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import before_after_config, read_table, run_stages

from pipeline.base.errors import ConfigError, DataError
from pipeline.metrics.before_after.assumption import NearAndFar, placebo
from pipeline.metrics.before_after.estimates import Sides
from pipeline.metrics.before_after.intervals import intervals

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

WINDOW = {"before": "72h", "after": "24h"}
BEFORE, AFTER = 72, 24
THRESHOLDS = [0.3, 0.5, 0.7, 0.9]
START = dt.datetime(2024, 5, 1, 12, tzinfo=dt.UTC)  # days begin in the middle of it
Pair = tuple[int, int, int, float]  # event, article, lag in hours, score


class Archive:
    """Events and articles at whole hours; busy days match more often, and true matches score high."""

    def __init__(self, seed: int = 1, n_events: int = 24, n_articles: int = 150) -> None:
        rng = np.random.default_rng(seed)
        self.event_hours = rng.integers(80, 230, n_events)
        self.article_hours = np.concatenate([[0], rng.integers(0, 270, n_articles), [270]])
        busy = rng.random(13)
        self.pairs: list[Pair] = []
        for event, hour in enumerate(self.event_hours):
            for article, when in enumerate(self.article_hours):
                lag = int(when - hour)
                if -BEFORE <= lag <= AFTER:
                    high = lag >= 0 and rng.random() < 0.3
                    score = rng.uniform(0.6, 1.0) if high else rng.uniform(0, 0.4 + 0.6 * busy[self.day(article)])
                    self.pairs.append((event, article, lag, round(float(score), 3)))

    def day(self, article: int) -> int:
        """Number of the UTC day of an article."""
        return int((self.article_hours[article] + START.hour) // 24)

    def frames(self, compared: str) -> dict[str, pl.DataFrame]:
        """One row per compared pair, or timelines, or given numbers with timelines."""
        pairs = pl.DataFrame(self.pairs, schema=["event_id", "article_id", "lag_hours", "score"], orient="row")
        pairs = pairs.with_columns(pl.col("lag_hours").cast(pl.Float64))
        events = pl.DataFrame({"event_id": range(len(self.event_hours)), "event_time": _times(self.event_hours)})
        articles = pl.DataFrame(
            {"article_id": range(len(self.article_hours)), "article_time": _times(self.article_hours)}
        )
        if compared == "pairs":
            return {"pairs": pairs, "events": events}
        stored = pairs.filter(pl.col("score") >= 0.25)
        if compared == "events":
            before, after = (Counter(pair[0] for pair in self.pairs if (pair[2] < 0) == side) for side in (True, False))
            numbers = {"n_before": before, "n_after": after}
            events = events.with_columns(
                pl.Series(name, [count[event] for event in events["event_id"]]) for name, count in numbers.items()
            )
        return {"pairs": stored, "events": events, "articles": articles}

    def counts(self, parent: Callable[[Pair], Hashable]) -> tuple[Sides, NearAndFar]:
        """Counts by a parent, from a loop over all pairs."""
        numbers: dict[Hashable, int] = {}
        for pair in self.pairs:
            numbers.setdefault(parent(pair), len(numbers))
        names = ("m_before", "m_after", "m_near")
        matches = {name: np.zeros((len(numbers), len(THRESHOLDS)), dtype=np.int64) for name in names}
        pairs = {name: np.zeros(len(numbers), dtype=np.int64) for name in ("before", "after", "near")}
        for pair in self.pairs:
            row, hits = numbers[parent(pair)], np.array(THRESHOLDS) <= pair[3]
            for side in ("before" if pair[2] < 0 else "after", *(["near"] if -AFTER <= pair[2] < 0 else [])):
                matches[f"m_{side}"][row] += hits
                pairs[side][row] += 1
        far = matches["m_before"] - matches["m_near"], pairs["before"] - pairs["near"]
        sides = Sides(matches["m_before"], matches["m_after"], pairs["before"], pairs["after"])
        return sides, NearAndFar(far[0], matches["m_near"], far[1], pairs["near"])


def _times(hours: NDArray[np.int64]) -> pl.Series:
    return pl.Series([START + dt.timedelta(hours=int(hour)) for hour in hours], dtype=pl.Datetime("us", "UTC"))


def _estimates(folder: Path, frames: Mapping[str, pl.DataFrame], **keys: Any) -> pl.DataFrame:  # noqa: ANN401
    config = before_after_config(folder, frames, thresholds=THRESHOLDS, window=WINDOW, **keys)
    return read_table(run_stages(config), "before_after_estimates")


def _cell(pair: Pair, second: int) -> int:
    return (pair[0] * 16 + second) % 251


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("compared", ["pairs", "timelines", "events"])
def test_intervals_and_placebo_are_those_of_events_days_and_both(tmp_path: Path, compared: str) -> None:
    archive = Archive()
    parents = (lambda p: p[0], lambda p: archive.day(p[1]), lambda p: _cell(p, archive.day(p[1]) + _first_day()))
    counted = [archive.counts(parent) for parent in parents]
    config = before_after_config(
        tmp_path, archive.frames(compared), thresholds=THRESHOLDS, window=WINDOW, compared=compared
    )
    run = run_stages(config)
    table = read_table(run, "before_after_estimates").sort("threshold")
    reference = table["is_reference"].arg_max()
    expected = intervals([sides for sides, _ in counted], reference=reference, confidence=0.95)
    for name in ("fpr", "precision_uncorrected", "recall_uncorrected"):
        for side in ("lower", "upper"):
            is_given = np.array([reason is None for reason in expected[name].reason])
            limits = np.where(is_given, getattr(expected[name], side), np.nan)
            assert table[f"{name}_{side}"].fill_null(np.nan).to_numpy() == pytest.approx(limits, rel=1e-9, nan_ok=True)
    tests = read_table(run, "before_after_placebo").drop_nulls("threshold").sort("threshold")
    (_, events), (_, days), (_, both) = counted
    placebos = placebo(events.m_far, events.m_near, events.n_far, events.n_near, confidence=0.95, crossed=(days, both))
    assert tests["p_value"].fill_null(np.nan).to_numpy() == pytest.approx(placebos.p_value, rel=1e-9, nan_ok=True)


def _first_day() -> int:
    """Days since 1970 of the first day of the archive, as replicates count them."""
    return (START.date() - dt.date(1970, 1, 1)).days % 64


@pytest.mark.wide
def test_articles_are_a_parent_where_asked_for(tmp_path: Path) -> None:
    archive = Archive(2, n_articles=50)  # no more than there are replicates
    compared_articles = sorted({pair[1] for pair in archive.pairs})
    for compared, listed in (("pairs", compared_articles), ("timelines", range(len(archive.article_hours)))):
        number = {article: place for place, article in enumerate(listed)}
        parents = (lambda p: p[0], lambda p: p[1], lambda p, number=number: _cell(p, number[p[1]]))
        counted = [archive.counts(parent)[0] for parent in parents]
        expected = intervals(counted, reference=None, confidence=0.95)["fpr"]
        frames = archive.frames(compared)
        table = _estimates(tmp_path / compared, frames, cluster=["event_id", "article_id"], compared=compared)
        assert table.sort("threshold")["fpr_lower"].to_numpy() == pytest.approx(expected.lower, rel=1e-9)


def test_a_second_parent_changes_limits_alone_and_busy_days_widen_them(tmp_path: Path) -> None:
    frames = Archive(3).frames("timelines")
    alone = _estimates(tmp_path / "one", frames, cluster="event_id").sort("threshold")
    both = _estimates(tmp_path / "two", frames).sort("threshold")
    assert alone.drop("^.*(lower|upper)$", "^.*interval.*$").equals(both.drop("^.*(lower|upper)$", "^.*interval.*$"))
    assert (both["fpr_upper"] > alone["fpr_upper"]).all()


def test_without_timelines_given_numbers_know_events_alone_and_say_so(tmp_path: Path) -> None:
    frames = Archive().frames("events")
    frames = {"pairs": frames["pairs"], "events": frames["events"].drop("event_time")}
    config = before_after_config(tmp_path, frames, thresholds=THRESHOLDS, window=WINDOW)
    run = run_stages(config)
    assert any("one article or one day are, because it is not known" in words for words in (*run.warnings, *run.notes))
    config["stages"][0]["cluster"] = "event_id"
    silent = run_stages(config)
    assert not any("one article" in words for words in (*silent.warnings, *silent.notes))
    config["stages"][0]["cluster"] = ["event_id", "day"]
    with pytest.raises(DataError, match="compared pairs of every day are not known"):
        run_stages(config)


@pytest.mark.wide
@pytest.mark.parametrize(
    ("compared", "dropped", "keys", "words"),
    [
        ("events", (), {}, "Give the window, or every compared pair with its times;"),
        ("events", ("articles",), {"window": WINDOW}, "Give articles with article_time, or every compared pair"),
        ("events", ("event_time",), {"window": WINDOW}, "Give events with event_time, or every compared pair"),
        (
            "events",
            ("event_time", "articles"),
            {},
            "Give the window, events with event_time and articles with article_time, or every compared pair",
        ),
        ("pairs", ("article_id", "events"), {}, "Give article_time in pairs, or article_id in pairs;"),
    ],
)
def test_what_would_tell_of_the_second_parent_is_what_the_run_lacks(
    tmp_path: Path, compared: str, dropped: tuple[str, ...], keys: dict[str, Any], words: str
) -> None:
    given = Archive().frames(compared)
    frames = {name: frame.drop(dropped, strict=False) for name, frame in given.items() if name not in dropped}
    warnings = run_stages(before_after_config(tmp_path / "run", frames, thresholds=THRESHOLDS, **keys)).warnings
    (told,) = [text for text in warnings if "one_parent" in text]
    assert words in told
    whole = before_after_config(tmp_path / "whole", given, thresholds=THRESHOLDS, window=WINDOW)
    assert not any("one_parent" in text for text in run_stages(whole).warnings)


@pytest.mark.wide
def test_a_lag_in_days_takes_the_day_from_the_listed_article_and_else_knows_none(tmp_path: Path) -> None:
    """A rounded lag would put most articles on a day beside their own, which makes limits too narrow."""
    frames = Archive(5).frames("timelines")
    in_days = pl.col("lag_hours").floordiv(24).cast(pl.Int64).alias("lag_days")
    by_days = frames | {"pairs": frames["pairs"].with_columns(in_days).drop("lag_hours")}
    limits = ["threshold", "fpr_lower", "fpr_upper", "interval_quality"]
    expected = _estimates(tmp_path / "hours", frames).select(limits)
    assert _estimates(tmp_path / "days", by_days).select(limits).equals(expected)
    every_row = Archive(5).frames("pairs")
    every_row["pairs"] = every_row["pairs"].with_columns(in_days).drop("lag_hours")
    of_articles = _estimates(tmp_path / "articles", every_row, cluster=["event_id", "article_id"])
    assert _estimates(tmp_path / "default", every_row).equals(of_articles)
    config = before_after_config(tmp_path / "asked", every_row, thresholds=THRESHOLDS, cluster=["event_id", "day"])
    with pytest.raises(DataError, match="compared pairs of every day are not known"):
        run_stages(config)


@pytest.mark.parametrize(
    ("cluster", "words"),
    [
        (["event_id", "weekday"], "second parent of a pair"),
        (["event_id", "day", "article_id"], "one column, or two"),
        (["day", "day"], "one column, or two different"),
    ],
)
def test_other_second_parents_are_refused(tmp_path: Path, cluster: list[str], words: str) -> None:
    config = before_after_config(tmp_path, Archive().frames("pairs"), thresholds=THRESHOLDS, cluster=cluster)
    with pytest.raises(ConfigError, match=words):
        run_stages(config)


@pytest.mark.wide
def test_counts_of_both_parents_add_up_in_any_order_of_rows_and_files(tmp_path: Path) -> None:
    frames = Archive(4).frames("timelines")
    table = _estimates(tmp_path / "rows", frames, lag_thresholds=[0.5])
    shuffled = {name: frame.sample(fraction=1.0, shuffle=True, seed=7) for name, frame in frames.items()}
    assert _estimates(tmp_path / "shuffled", shuffled, lag_thresholds=[0.5]).equals(table)
