"""A grouping column of pairs names the matcher: each matcher has the same compared pairs, as in a run of its own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import read_table, rows_by_status, run_before_after

from pipeline.base.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

N_EVENTS, N_ARTICLES = 12, 400
MATCHERS = ("bert", "tfidf", None)
HOUR = 3_600_000_000
KEYS: dict[str, Any] = {
    "thresholds": [0.2, 0.4, 0.6, 0.8],
    "window": {"before": "96h", "after": "48h"},
    "lag_thresholds": [0.3, 0.6],
    "duplicates": "error",
}
TABLES = (
    *("counts", "before_after_estimates", "before_after_operating_points", "before_after_sensitivity"),
    *("before_after_lags", "before_after_trend", "before_after_placebo", "before_after_adjusted", "before_after_gold"),
)


def timelines() -> dict[str, pl.DataFrame]:
    """Events and articles, pairs of three matchers, and gold; one matcher has no match of the last events."""
    draw = np.random.default_rng(20)
    moments = {"event": np.sort(draw.integers(200, 800, N_EVENTS)), "article": draw.integers(0, 1000, N_ARTICLES)}
    times = {name: pl.Series(values * HOUR).cast(pl.Datetime("us")) for name, values in moments.items()}
    lags = moments["article"][None, :] - moments["event"][:, None]
    frames = []
    for matcher in MATCHERS:
        chance = np.where(lags < 0, 0.15, 0.6)
        event, article = np.nonzero((draw.random(lags.shape) < chance) & (lags >= -96) & (lags <= 48))
        frame = pl.DataFrame(
            {"event_id": event, "article_id": article, "lag_hours": lags[event, article].astype(float)}
        )
        score = pl.Series("score", draw.integers(1, 10, frame.height) / 10)
        frames.append(frame.with_columns(score, pl.lit(matcher, dtype=pl.String).alias("method")))
    frames[0] = frames[0].filter(pl.col("event_id") < N_EVENTS - 3)
    pairs = pl.concat(frames)
    numbers = {
        "n_before": ((lags >= -96) & (lags < 0)).sum(axis=1),
        "n_after": ((lags >= 0) & (lags <= 48)).sum(axis=1),
    }
    events = pl.DataFrame({"event_id": range(N_EVENTS), "event_time": times["event"], **numbers})
    gold = pairs.filter(pl.col("lag_hours") >= 0).select("event_id", "article_id").unique().sort(pl.all())
    return {
        "pairs": pairs,
        "events": events.with_columns(pl.Series("source", ["a", "b", None] * (N_EVENTS // 3))),
        "articles": pl.DataFrame({"article_id": range(N_ARTICLES), "article_time": times["article"]}),
        "gold": gold.gather_every(2),
    }


def without_group(frame: pl.DataFrame) -> pl.DataFrame:
    """The rows of a group; without their quality, since verdicts of several groups are adjusted for their number."""
    return frame.drop("method", "grouping", "interval_quality", strict=False).sort(pl.all())


@pytest.mark.wide
@pytest.mark.parametrize(("compared", "alone"), [("events", MATCHERS), ("timelines", MATCHERS[:1])])
def test_each_matcher_has_the_tables_of_a_run_of_its_own(
    tmp_path: Path, compared: str, alone: tuple[str | None, ...]
) -> None:
    frames, keys = timelines(), KEYS | {"compared": compared, "strata": ["source"]}
    by = [[], ["method"], ["source", "method"]]
    together = run_before_after(tmp_path / "together", frames, by=by, **keys)
    assert sum(rows_by_status(together).values()) == frames["pairs"].height
    for matcher in alone:
        of_matcher = pl.col("method").eq_missing(pl.lit(matcher, dtype=pl.String))
        own = frames | {"pairs": frames["pairs"].filter(of_matcher).drop("method")}
        by_itself = run_before_after(tmp_path / str(matcher), own, by=[[], ["source"]], **keys)
        for table in TABLES:
            expected = read_table(by_itself, table)
            found = read_table(together, table).filter(pl.col("grouping") != "all", of_matcher)
            assert found.height, table
            assert without_group(found).equals(without_group(expected)), f"{table} of {matcher}"


@pytest.mark.wide
@pytest.mark.parametrize("compared", ["events", "timelines"])
def test_the_total_and_its_events_hold_the_compared_pairs_of_every_matcher(tmp_path: Path, compared: str) -> None:
    frames = timelines()
    run = run_before_after(tmp_path, frames, by=["method"], **KEYS, compared=compared)
    estimates, events = (read_table(run, f"before_after_{name}") for name in ("estimates", "events"))
    total = estimates.filter(pl.col("grouping") == "all").row(0, named=True)
    assert total["n_before"] == len(MATCHERS) * frames["events"]["n_before"].sum()
    points = read_table(run, "before_after_operating_points").filter(pl.col("grouping") == "all", criterion="max_f1")
    names = ("n_before", "n_after", "m_before", "m_after")
    assert events.select(pl.col(names).sum()).row(0) == points.select(names).row(0)


@pytest.mark.wide
def test_a_matcher_whose_pairs_are_all_left_out_has_all_compared_pairs(tmp_path: Path) -> None:
    frames = timelines()
    late = frames["pairs"].head(1).with_columns(method=pl.lit("late"), lag_hours=pl.lit(1e6))
    run = run_before_after(tmp_path, frames | {"pairs": pl.concat([frames["pairs"], late])}, by=["method"], **KEYS)
    rows = read_table(run, "before_after_estimates").filter(method="late")
    assert rows["n_before"].to_list() == [frames["events"]["n_before"].sum()] * 4
    assert rows["m_after"].to_list() == [0] * 4


@pytest.mark.wide
def test_a_pair_may_occur_once_for_each_matcher(tmp_path: Path) -> None:
    frames = timelines()
    again = frames["pairs"].filter(method="bert").head(3).with_columns(pl.col("score") / 2)
    twice = frames | {"pairs": pl.concat([frames["pairs"], again])}
    with pytest.raises(DataError, match="event_id, article_id and method repeat"):
        run_before_after(tmp_path / "error", twice, by=["method"], **KEYS)
    merged = run_before_after(tmp_path / "max", twice, by=["method"], **KEYS | {"duplicates": "max"})
    once = run_before_after(tmp_path / "once", frames, by=["method"], **KEYS)
    assert read_table(merged, "before_after_estimates").equals(read_table(once, "before_after_estimates"))
    assert rows_by_status(merged)["duplicate"] == again.height


@pytest.mark.wide
def test_a_run_says_what_a_column_of_pairs_is_taken_for(tmp_path: Path) -> None:
    run = run_before_after(tmp_path, timelines(), by=["method"], **KEYS)
    assert any("by: method of pairs names the matcher" in warning for warning in run.warnings)


def test_an_audit_of_several_matchers_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="audit does not go with a grouping column of pairs") as refused:
        run_before_after(tmp_path, timelines(), by=["method"], **KEYS, audit={"threshold": 0.4})
    assert refused.value.code == 65
