from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import estimates_of, read_table, rows_by_status, run_before_after

from pipeline.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pathlib import Path

PAIRS = pl.DataFrame(
    {
        "event_id": [1, 1, 2, 2],
        "article_id": [1, 2, 3, 4],
        "score": [0.9, 0.2, 0.7, 0.8],
        "lag_hours": [1.0, -1.0, 2.0, -3.0],
    }
)
EVENTS = pl.DataFrame({"event_id": [1, 2], "n_before": [50, 50], "n_after": [50, 50]})
WINDOW = {"before": "168h", "after": "72h"}
COUNTS = ["n_before", "n_after", "m_before", "m_after"]


def refused(tmp_path: Path, frames: dict[str, pl.DataFrame], **keys: Any) -> str:  # noqa: ANN401 - keys of a config
    with pytest.raises(DataError) as caught:
        run_before_after(tmp_path, frames, **({"thresholds": [0.5]} | keys))
    return str(caught.value)


def test_pairs_without_any_lag_are_refused(tmp_path: Path) -> None:
    assert "lag_hours" in refused(tmp_path, {"pairs": PAIRS.drop("lag_hours")})


def test_lags_in_days_put_the_day_of_the_event_after_it(tmp_path: Path) -> None:
    pairs = PAIRS.drop("lag_hours").with_columns(lag_days=pl.Series([0, -1, 3, 4]))
    run = run_before_after(tmp_path, {"pairs": pairs}, thresholds=[0.5], window=WINDOW)
    assert read_table(run, "before_after_estimates").select(COUNTS).rows() == [(1, 2, 0, 2)]
    assert rows_by_status(run) == {"used": 3, "outside_window": 1}
    assert any("days" in warning for warning in run.warnings)


@pytest.mark.parametrize(
    ("column", "values", "words"),
    [
        ("n_before", [50, -1], "'n_before' is negative in 1 row"),
        ("n_after", [None, 50], "'n_after' is NULL or not finite in 1 row"),
        ("event_id", [1, None], "'event_id' is NULL or not finite in 1 row"),
        ("complete_window", [True, None], "'complete_window' is NULL, or neither 0 nor 1, in 1 row"),
    ],
)
def test_values_of_events_that_cannot_be_are_refused(
    tmp_path: Path, column: str, values: list[Any], words: str
) -> None:
    assert words in refused(tmp_path, {"pairs": PAIRS, "events": EVENTS.with_columns(pl.Series(column, values))})


@pytest.mark.parametrize(("column", "value"), [("lag_hours", None), ("lag_hours", float("nan")), ("event_id", None)])
def test_required_values_of_pairs_may_not_be_missing_even_when_invalid_scores_are_dropped(
    tmp_path: Path, column: str, value: float | None
) -> None:
    values = PAIRS[column].to_list()
    pairs = PAIRS.with_columns(pl.Series(column, [*values[:2], value, *values[3:]]))
    words = refused(tmp_path, {"pairs": pairs}, invalid_scores="drop")
    assert f"column {column!r} is NULL or not finite in 1 row" in words
    assert "first at row 3" in words


def test_an_event_without_a_time_is_a_fault_of_the_events_alone(tmp_path: Path) -> None:
    """Its pairs have no lag then, and were told of as `'article_time' is NULL in 0 rows`."""
    hours = pl.Series([1, -1, 2, -3]) * dt.timedelta(hours=1)
    pairs = PAIRS.drop("lag_hours").with_columns(article_time=pl.lit(dt.datetime(2026, 3, 1)) + hours)  # noqa: DTZ001
    events = EVENTS.with_columns(event_time=pl.Series([dt.datetime(2026, 3, 1), None]))  # noqa: DTZ001
    words = refused(tmp_path, {"pairs": pairs, "events": events}, window=WINDOW)
    assert "column 'event_time' is NULL or not finite in 1 row" in words
    assert "input pairs" not in words


def test_given_counts_that_are_asked_for_but_not_there_are_refused(tmp_path: Path) -> None:
    assert "n_before and n_after" in refused(tmp_path, {"pairs": PAIRS}, compared="events")


def test_compared_pairs_are_rows_when_asked_for_although_counts_are_given(tmp_path: Path) -> None:
    frames = {"pairs": PAIRS, "events": EVENTS}
    assert estimates_of(tmp_path / "a", frames, thresholds=[0.5]).select(COUNTS).rows() == [(100, 100, 1, 2)]
    table = estimates_of(tmp_path / "b", frames, thresholds=[0.5], compared="pairs")
    assert table.select(COUNTS).rows() == [(2, 2, 1, 2)]


def test_a_window_without_knowledge_of_complete_events_warns(tmp_path: Path) -> None:
    run = run_before_after(tmp_path, {"pairs": PAIRS, "events": EVENTS}, thresholds=[0.5], window=WINDOW)
    assert any("complete_window" in warning for warning in run.warnings)


def test_an_uncertain_reference_warns_and_none_at_all_does_too(tmp_path: Path) -> None:
    events = EVENTS.with_columns(n_before=pl.Series([1, 1]), n_after=pl.Series([1, 2]))
    low = run_before_after(
        tmp_path / "low", {"pairs": PAIRS, "events": events}, thresholds=[0.1], recall_reference={"min_precision": 0}
    )
    assert any("precision" in warning for warning in low.warnings)
    none = run_before_after(tmp_path / "none", {"pairs": PAIRS}, thresholds=[99])
    assert any("recall and F1 are undefined" in warning for warning in none.warnings)


def simulated(rows: int = 400) -> pl.DataFrame:
    rng = np.random.default_rng(3)
    return pl.DataFrame(
        {
            "event_id": rng.integers(0, 12, rows),
            "article_id": range(rows),
            "score": rng.integers(0, 40, rows) / 10,
            "lag_hours": rng.uniform(-200, 100, rows),
        }
    )


def moments(hours: list[float]) -> pl.Series:
    start = dt.datetime(2024, 3, 1, tzinfo=dt.UTC)
    return pl.Series([start + dt.timedelta(hours=each) for each in hours]).cast(pl.Datetime("us", "UTC"))


def test_timelines_give_the_counts_that_every_pair_would(tmp_path: Path) -> None:
    """The same archive as given counts, as timelines, and as one row per compared pair."""
    rng = np.random.default_rng(11)
    event_hours = np.sort(rng.integers(0, 600, 15)).astype(float)
    article_hours = np.concatenate([rng.integers(0, 600, 150).astype(float), [0.0, 599.0]])
    lag = article_hours[None, :] - event_hours[:, None]
    event, article = np.nonzero((lag >= -168) & (lag <= 72))
    score = rng.integers(0, 30, len(event)) / 10
    pairs = pl.DataFrame({"event_id": event, "article_id": article, "score": score, "lag_hours": lag[event, article]})
    complete = (event_hours - 168 >= article_hours.min()) & (event_hours + 72 <= article_hours.max())
    assert 0 < complete.sum() < len(complete)
    events = pl.DataFrame({"event_id": range(15), "event_time": moments(event_hours.tolist())})
    articles = pl.DataFrame({"article_id": range(152), "article_time": moments(article_hours.tolist())})
    given = events.drop("event_time").with_columns(
        n_before=pl.Series(((lag >= -168) & (lag < 0)).sum(axis=1)),
        n_after=pl.Series(((lag >= 0) & (lag <= 72)).sum(axis=1)),
        complete_window=pl.Series(complete),
    )
    keys: dict[str, Any] = {"thresholds": [0.5, 1.5, 2.5], "window": WINDOW, "cluster": "event_id"}
    stored = pairs.filter(pl.col("score") > 0)
    timed = {"pairs": stored, "events": events, "articles": articles}
    by_timelines = estimates_of(tmp_path / "timelines", timed, **keys)
    by_given = estimates_of(tmp_path / "given", {"pairs": stored, "events": given}, **keys)
    flagged = given.select("event_id", "complete_window")
    by_pairs = estimates_of(tmp_path / "pairs", {"pairs": pairs, "events": flagged}, **keys)
    of_near = ["precision_realised_lower", "precision_realised_upper", "undefined_interval"]
    assert by_given.drop(of_near).equals(by_timelines.drop(of_near))
    assert by_pairs.equals(by_timelines)
    times = pairs.join(events, on="event_id").join(articles, on="article_id").drop("lag_hours")
    frames = {"pairs": times, "events": flagged}
    assert estimates_of(tmp_path / "times", frames, **keys).equals(by_timelines)


def test_timelines_count_for_every_attribute_of_articles(tmp_path: Path) -> None:
    events = pl.DataFrame({"event_id": [1, 2], "event_time": moments([200, 210]), "source": ["x", None]})
    hours = [0.0, 100.0, 150.0, 205.0, 220.0, 400.0]
    media = ["print", "print", None, "online", "online", "print"]
    articles = pl.DataFrame({"article_id": range(6), "article_time": moments(hours), "medium": media})
    pairs = pl.DataFrame({"event_id": [1, 2], "article_id": [3, 1], "score": [0.9, 0.9], "lag_hours": [5.0, -110.0]})
    table = estimates_of(
        tmp_path,
        {"pairs": pairs, "events": events, "articles": articles},
        by=[["source", "medium"], []],
        thresholds=[0.5],
        window={"before": "200h", "after": "24h"},
    )
    found = {
        (row["source"], row["medium"], row["grouping"]): tuple(row[name] for name in COUNTS) for row in table.to_dicts()
    }
    both = "source,medium"
    assert found == {
        (None, None, "all"): (6, 3, 1, 1),
        ("x", "print", both): (2, 0, 0, 0),
        ("x", "online", both): (0, 2, 0, 1),
        ("x", None, both): (1, 0, 0, 0),
        (None, "print", both): (1, 0, 1, 0),
        (None, "online", both): (1, 1, 0, 0),
        (None, None, both): (1, 0, 0, 0),
    }


def test_articles_of_no_kind_at_all_leave_counts_of_0(tmp_path: Path) -> None:
    events = pl.DataFrame({"event_id": [1], "event_time": moments([200])})
    articles = pl.DataFrame({"article_id": [1], "article_time": moments([0]), "medium": ["x"]}).clear()
    run = run_before_after(
        tmp_path,
        {"pairs": PAIRS.clear(), "events": events, "articles": articles},
        by=["medium"],
        thresholds=[0.5],
        window=WINDOW,
        allow_empty=True,
    )
    table = read_table(run, "before_after_estimates").filter(pl.col("grouping") == "all")
    assert table.select(COUNTS).rows() == [(0, 0, 0, 0)]


def test_timelines_need_a_window(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="window"):
        run_before_after(tmp_path, {"pairs": PAIRS}, thresholds=[0.5], compared="timelines")


def test_matches_are_counted_per_day_rounded_down(tmp_path: Path) -> None:
    pairs = pl.DataFrame(
        {
            "event_id": [1] * 7,
            "score": [5.0, 5.0, 3.0, 5.0, 1.0, 5.0, 9.0],
            "lag_hours": [-24.0, -0.5, -23.9, 0.0, 1.0, 24.0, 100.0],
        }
    )
    run = run_before_after(tmp_path, {"pairs": pairs}, thresholds=[2], lag_thresholds=[2, 4], window=WINDOW)
    table = read_table(run, "before_after_lags").filter(pl.col("matches") > 0)
    expected = [(2, -1, 3), (2, 0, 1), (2, 1, 1), (4, -1, 2), (4, 0, 1), (4, 1, 1)]
    assert table.select("threshold", "lag_days", "matches").rows() == expected


@pytest.mark.parametrize("lags", [[-1.0, 2.0], [2.0, -1.0]])
def test_of_repeated_pairs_with_one_score_the_latest_counts(tmp_path: Path, lags: list[float]) -> None:
    pairs = pl.DataFrame({"event_id": [1, 1], "article_id": [1, 1], "score": [0.9, 0.9], "lag_hours": lags})
    table = estimates_of(tmp_path, {"pairs": pairs}, thresholds=[0.5], duplicates="max")
    assert table.select(COUNTS).rows() == [(0, 1, 0, 1)]
