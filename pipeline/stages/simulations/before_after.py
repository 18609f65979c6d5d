"""Events, articles and scored pairs whose true matches are known."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from ...base.records import dataclass
from ...base.visible_text import percent
from . import written

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

_SOURCES = ("north", "south", "wire")
_BEFORE_HOURS, _AFTER_HOURS = 168.0, 72.0
_FEWEST_MATCHES = 30

HEADING = "estimated without labels, beside the truth"


@dataclass(frozen=True)
class Simulated:
    """One simulated data set.

    Attributes:
        events: event_id, event_time (UTC), source, n_before, n_after, complete_window.
        articles: article_id, article_time (UTC).
        pairs: every compared pair: event_id, article_id, score, lag_hours, is_match (the truth).
    """

    events: pl.DataFrame
    articles: pl.DataFrame
    pairs: pl.DataFrame


def simulate(
    *, seed: int, n_events: int = 400, n_articles: int = 6000, days: int = 80, coverage: float = 6.0
) -> Simulated:
    """Simulate a news archive.

    Articles come in daily bursts. An event is covered by a Poisson number of articles with mean `coverage`, soon after
    it. Chance similarity differs between events, because common words make some events similar to everything.

    Args:
        seed: The same seed gives the same data.
        n_events: Number of events; the complete window of every event lies inside the archive.
        n_articles: Number of articles that cover no event.
        days: Length of the archive.
        coverage: Mean number of articles that cover an event.
    """
    rng = np.random.default_rng(seed)
    event_hours = rng.uniform(_BEFORE_HOURS, days * 24 - _AFTER_HOURS, n_events)
    covering = np.repeat(np.arange(n_events), rng.poisson(coverage, n_events))
    covering_hours = event_hours[covering] + np.minimum(rng.exponential(18.0, len(covering)), _AFTER_HOURS)
    article_hours = np.concatenate([_bursty_hours(rng, n_articles, days), covering_hours])
    covers = np.concatenate([np.full(n_articles, -1), covering])
    lag = article_hours[None, :] - event_hours[:, None]
    event, article = np.nonzero((lag >= -_BEFORE_HOURS) & (lag <= _AFTER_HOURS))
    is_match = covers[article] == event
    noise = rng.gamma(2.0, 1.2 * rng.lognormal(0.0, 0.25, n_events)[event])
    score = noise + np.where(is_match, rng.gamma(9.0, 2.0, len(event)), 0.0)
    pairs = pl.DataFrame(
        {
            "event_id": event,
            "article_id": article,
            "score": np.round(score, 6),
            "lag_hours": lag[event, article],
            "is_match": is_match,
        }
    )
    return Simulated(
        _events(rng, event_hours, lag),
        pl.DataFrame({"article_id": np.arange(len(article_hours)), "article_time": _times(article_hours)}),
        pairs,
    )


def _bursty_hours(rng: np.random.Generator, n_articles: int, days: int) -> NDArray[np.float64]:
    weight = rng.lognormal(0.0, 0.5, days)
    day = rng.choice(days, n_articles, p=weight / weight.sum())
    return np.asarray(day * 24.0 + np.clip(rng.normal(13.0, 4.0, n_articles), 0.0, 23.99), dtype=np.float64)


def _events(rng: np.random.Generator, hours: NDArray[np.float64], lag: NDArray[np.float64]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "event_id": np.arange(len(hours)),
            "event_time": _times(hours),
            "source": rng.choice(_SOURCES, len(hours), p=(0.5, 0.3, 0.2)),
            "n_before": ((lag >= -_BEFORE_HOURS) & (lag < 0)).sum(axis=1),
            "n_after": ((lag >= 0) & (lag <= _AFTER_HOURS)).sum(axis=1),
            "complete_window": np.full(len(hours), fill_value=True),
        }
    )


def _times(hours: NDArray[np.float64]) -> pl.Series:
    microseconds = pl.Series((hours * 3.6e9).astype(np.int64)) + 1_704_067_200_000_000  # 1 January 2024, UTC
    return microseconds.cast(pl.Datetime("us", "UTC"))


def write_demo(folder: Path) -> dict[str, Any]:
    """Write the data of the demo and return the config of its stage.

    Pairs below a minimum score are not stored, as in a real matcher: the events hold the numbers of compared pairs. The
    truth is written to a separate file that the stage never reads.
    """
    simulated = simulate(seed=20240101)
    stored = simulated.pairs.filter(pl.col("score") >= 1.0).drop("is_match")
    frames = {"events": simulated.events, "articles": simulated.articles, "pairs": stored}
    paths = written(folder, frames | {"truth": simulated.pairs.filter("is_match")})
    return {
        "kind": "before_after",
        "pairs": paths["pairs"],
        "events": {"path": paths["events"], "columns": {"complete_window": "complete_window"}},
        "articles": paths["articles"],
        "by": ["source"],
        "window": {"before": "168h", "after": "72h"},
        "thresholds": {"start": 1.0, "stop": 40.0, "count": 200},
        "lag_thresholds": [5.0, 10.0, 15.0],
        "recall_reference": {"min_precision": 0.5},
    }


def error_table(folder: Path, tables: Mapping[str, pl.DataFrame]) -> str:
    """Estimated and true precision and recall side by side, as text for people."""
    truth = pl.read_parquet(folder / "truth.parquet").join(
        pl.read_parquet(folder / "events.parquet").select("event_id", "source"), on="event_id"
    )
    points = tables["before_after_operating_points"].filter(pl.col("criterion") == "max_f1").sort("grouping", "source")
    lines = [
        "            threshold   precision             recall",
        "                        estimated    true   estimated    true",
    ]
    for row in points.iter_rows(named=True):
        precision, recall = _truth(truth, row["source"], row["threshold"], row["m_after"])
        label = row["source"] or "all"
        lines.append(
            f"{label:<12}{row['threshold']:9.2f}{row['precision']:12.1%}{precision:8.1%}{row['recall']:12.1%}{recall:8.1%}"
        )
    gaps = [
        abs(row["precision"] - _truth(truth, None, row["threshold"], row["m_after"])[0])
        for row in tables["before_after_estimates"].filter(pl.col("grouping") == "all").iter_rows(named=True)
        if row["m_after"] >= _FEWEST_MATCHES
    ]
    typical = float(np.median(gaps))
    lines.append(
        f"Over {len(gaps)} thresholds precision is off by {percent(typical)} at the median and {percent(max(gaps))} at "
        "most."
    )
    return "\n".join(lines)


def _truth(truth: pl.DataFrame, source: str | None, threshold: float, m_after: int) -> tuple[float, float]:
    """True precision and recall of a group at a threshold; every true match lies after its event."""
    matches = truth if source is None else truth.filter(pl.col("source") == source)
    hits = matches.filter(pl.col("score") >= threshold).height
    return hits / m_after, hits / matches.height
