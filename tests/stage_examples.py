"""A small example of every stage: frames in which the stage reads every column, and the keys of its config."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass, field
from typing import Any

import polars as pl

HOUR = dt.timedelta(hours=1)
START = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - times without a zone are UTC


@dataclass(frozen=True)
class Example:
    """Inputs of a stage.

    Attributes:
        kind: The stage.
        frames: Its inputs by name.
        keys: The rest of its config.
        mapped_only: Fields of an input that are bound only where they are mapped.
    """

    kind: str
    frames: dict[str, pl.DataFrame]
    keys: dict[str, Any]
    mapped_only: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def columns(self, name: str, other_names: dict[str, str] | None = None) -> dict[str, str]:
        """The mapping of an input: every column under another name, or just those that must be mapped."""
        return other_names or {each: each for each in self.mapped_only.get(name, ())}


def _before_after() -> Example:
    events = pl.DataFrame(
        {
            "event_id": [f"e{number}" for number in range(6)],
            "event_time": [START + 60 * number * HOUR for number in range(6)],
            "n_before": [9] * 6,
            "n_after": [8] * 6,
            "complete_window": [True, True, True, True, True, False],
            "source": ["x", "y"] * 3,
        }
    )
    articles = pl.DataFrame(
        {
            "article_id": list(range(40)),
            "article_time": [START - 30 * HOUR + 10 * number * HOUR for number in range(40)],
        }
    )
    pairs = events.select("event_id", "event_time").join(articles, how="cross")
    hours = (pl.col("article_time") - pl.col("event_time")).dt.total_minutes() / 60
    pairs = pairs.with_columns(lag_hours=hours).filter(pl.col("lag_hours").is_between(-25, 30))
    mixed = (pl.col("article_id") * 7 % 11 + (pl.col("lag_hours") >= 0) * 3).cast(pl.Float64)
    pairs = pairs.select("event_id", "article_id", "lag_hours", score=mixed)
    keys = {
        "thresholds": [2, 5, 8, 11],
        "window": {"before": "25h", "after": "30h"},
        "by": ["source"],
        "lag_thresholds": [5],
    }
    frames = {"pairs": pairs, "events": events, "articles": articles}
    return Example("before_after", frames, keys, {"events": ("complete_window",)})


def _threshold_sweep() -> Example:
    rows = range(60)
    predictions = pl.DataFrame(
        {
            "score": [(7 * row % 23) / 10 for row in rows],
            "label": [row * 5 % 7 < 3 for row in rows],
            "weight": [1.0 + row % 3 for row in rows],
            "id": [f"i{row}" for row in rows],
            "model": [("a", "b")[row % 2] for row in rows],
            "page": [row // 6 for row in rows],
        }
    )
    keys = {"thresholds": [0.5, 1.0, 1.5], "by": ["model"], "cluster": "page"}
    return Example("threshold_sweep", {"predictions": predictions}, keys, {"predictions": ("weight", "id")})


def _ranking() -> Example:
    rows = range(48)
    ranking = pl.DataFrame(
        {
            "query_id": [row // 8 % 3 for row in rows],
            "doc_id": [f"d{row % 8}" for row in rows],
            "score": [float(5 * row % 13) for row in rows],
            "system": [("a", "b")[row // 24] for row in rows],
        }
    )
    relevance = pl.DataFrame(
        {
            "query_id": [row // 8 for row in range(24)],
            "doc_id": [f"d{row % 8}" for row in range(24)],
            "relevance": [row * 3 % 5 == 0 for row in range(24)],
        }
    ).with_columns(pl.col("relevance").cast(pl.Int64))
    keys = {"cutoffs": [1, 3], "by": [["system"]]}
    return Example("ranking", {"ranking": ranking, "relevance": relevance}, keys)


def _entity_recognition() -> Example:
    rows = range(30)
    gold = pl.DataFrame(
        {
            "doc_id": [f"t{row // 5}" for row in rows],
            "start": [10 * (row % 5) for row in rows],
            "end": [10 * (row % 5) + 4 for row in rows],
            "text": [f"name {row % 4}" for row in rows],
        }
    )
    predicted = gold.with_columns(
        start=pl.col("start") + pl.Series([row % 3 == 0 for row in rows]).cast(pl.Int64),
        score=pl.Series([row * 7 % 10 / 10 for row in rows]),
        system=pl.Series([("a", "b")[row % 2] for row in rows]),
    )
    documents = pl.DataFrame({"doc_id": [f"t{row}" for row in range(7)], "author": [row % 3 for row in range(7)]})
    keys = {"match": "span", "thresholds": [0.2, 0.6], "by": [["system"]], "cluster": "author"}
    return Example("entity_recognition", {"gold": gold, "predicted": predicted, "documents": documents}, keys)


def _geocoding() -> Example:
    rows = range(24)
    gold = pl.DataFrame(
        {
            "mention_id": list(rows),
            "latitude": [row * 3.0 - 30 for row in rows],
            "longitude": [row * 5.0 - 60 for row in rows],
            "doc_id": [f"t{row // 4}" for row in rows],
        }
    )
    predicted = gold.select(
        "mention_id",
        latitude=pl.col("latitude") + pl.Series([row % 5 * 0.4 for row in rows]),
        longitude=pl.col("longitude"),
        system=pl.Series([("a", "b")[row % 2] for row in rows]),
    )
    return Example("geocoding", {"gold": gold, "predicted": predicted}, {"by": [["system"]]})


def _change_points() -> Example:
    annotations = pl.DataFrame(
        {
            "series_id": ["s1", "s1", "s2", "s3", "s3", "s3"],
            "position": [10, 40, 25, 5, 50, 80],
            "annotator_id": ["p", "q", "p", "q", "p", "p"],
        }
    )
    predictions = pl.DataFrame(
        {
            "series_id": ["s1", "s1", "s2", "s2", "s3", "s3", "s1", "s2"],
            "position": [12, 60, 24, 70, 52, 7, 11, 26],
            "score": [0.9, 0.3, 0.8, 0.2, 0.6, 0.7, 0.5, 0.4],
            "method": ["m", "m", "m", "m", "m", "m", "n", "n"],
        }
    )
    series = pl.DataFrame({"series_id": ["s1", "s2", "s3"], "n_obs": [100, 90, 120]})
    keys = {"margin": 5, "thresholds": [0.25, 0.5], "by": [["method"]], "annotators": "tcpd"}
    return Example("change_points", {"annotations": annotations, "predictions": predictions, "series": series}, keys)


def _compare() -> Example:
    rows = range(24)
    units = pl.DataFrame(
        {
            "unit": [row // 2 for row in rows],
            "system": [("a", "b")[row % 2] for row in rows],
            "tp": [row * 3 % 5 for row in rows],
            "fp": [row % 3 for row in rows],
            "fn": [row * 2 % 4 for row in rows],
        }
    )
    return Example("compare", {"units": units}, {"resamples": 99, "metrics": ["precision", "recall"]})


EXAMPLES = tuple(
    make()
    for make in (
        _before_after,
        _threshold_sweep,
        _ranking,
        _entity_recognition,
        _geocoding,
        _change_points,
        _compare,
    )
)
