"""Predictions that are compared with themselves are said to be."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import thresher

if TYPE_CHECKING:
    from pathlib import Path

MENTIONS = pl.DataFrame(
    {"doc_id": ["a", "a", "b"], "start": [0, 5, 9], "end": [3, 8, 12], "type": ["x", "y", "x"], "gt": ["x", "x", "y"]}
)
PLACES = MENTIONS.with_columns(
    pl.lit(4.0).alias("longitude"), latitude=pl.Series([1.0, 2.0, 3.0]), mention_id=pl.Series([1, 2, 3])
)
POINTS = pl.DataFrame({"series_id": ["a", "a", "b"], "position": [4, 9, 12]})
RETRIEVED = pl.DataFrame({"query_id": ["q", "q", "r"], "doc_id": ["a", "b", "a"], "score": [0.1, 0.2, 0.3]})
JUDGED = RETRIEVED.with_columns(relevance=pl.Series([0, 1, 1]))
SCORES = pl.DataFrame({"score": [0.1, 0.4, 0.6, 0.9] * 5, "label": [0, 0, 1, 0] * 5, "copy": [0.0, 0.0, 1.0, 0.0] * 5})
PAIRS = pl.DataFrame(
    {
        "event_id": [1, 1, 2, 2],
        "article_id": [1, 2, 3, 4],
        "score": [0.9, 0.8, 0.7, 0.2],
        "lag_days": [1, 2, 1, -3],
    }
)
EVENTS = pl.DataFrame({"event_id": [1, 2], "n_before": [10, 10], "n_after": [10, 10]})
HALVES = {"windows": {"before": "7d", "after": "7d"}}


def said(name: str, **arguments: object) -> list[str]:
    """The warnings of a call that speak of what is compared with itself."""
    return [each for each in getattr(thresher, name)(**arguments).warnings if "so the scores say nothing" in each]


@pytest.mark.parametrize(
    ("name", "judged", "truth", "frame"),
    [
        ("entity_recognition", "predicted", "gold", MENTIONS),
        ("geocoding", "predicted", "gold", PLACES),
        ("change_points", "predictions", "annotations", POINTS),
    ],
)
def test_same_rows_on_both_sides_are_said(
    name: str, judged: str, truth: str, frame: pl.DataFrame, tmp_path: Path
) -> None:
    """As one frame, as one file, as a copy of it; other rows of the same size are not."""
    options = {"margin": 1} if name == "change_points" else {}
    path, copy, other = tmp_path / "a.parquet", tmp_path / "b.parquet", tmp_path / "c.parquet"
    frame.write_parquet(path)
    frame.write_parquet(copy)
    frame.reverse().write_parquet(other)
    same = {"entity_recognition": (frame, frame), "geocoding": (path, path), "change_points": (path, copy)}
    (warning,) = said(name, **dict(zip((judged, truth), same[name], strict=True)), **options)
    assert warning.startswith(f"input {truth} and input {judged} hold the same rows (")
    assert not said(name, **{judged: path, truth: other}, **options)


def test_rows_read_otherwise_are_not_the_same() -> None:
    """Other columns of one frame, or a part of its rows, are another side."""
    assert not said("entity_recognition", predicted=MENTIONS, gold={"path": MENTIONS, "columns": {"type": "gt"}})
    assert not said("entity_recognition", predicted=MENTIONS, gold={"path": MENTIONS, "where": "start < 9"})


def test_tags_of_tokens(tmp_path: Path) -> None:
    """The same column of tags is the same side; two columns of one file are two."""
    path, copy = tmp_path / "a.conll", tmp_path / "b.conll"
    path.write_text("Ann B-PER B-PER\nis O O\n\nRio B-LOC B-ORG\n")
    copy.write_text(path.read_text())
    assert said("entity_recognition", predicted={"path": path, "tags": 3}, gold={"path": path, "tags": 3})
    assert said("entity_recognition", predicted={"path": path, "tags": 3}, gold={"path": copy, "tags": 3})
    assert not said("entity_recognition", predicted={"path": path, "tags": 3}, gold={"path": path, "tags": 2})


def test_pairs_as_their_own_gold() -> None:
    """The pairs are true, and all of them, if they are their own gold."""
    arguments = {"pairs": PAIRS, "events": EVENTS, "thresholds": [0.5]}
    assert said("before_after", **arguments, gold=PAIRS)
    assert not said("before_after", **arguments, gold=PAIRS.head(2))


@pytest.mark.parametrize(
    "columns",
    [
        {"label": {"sql": "score > 0.5"}},
        {"score": "label"},
        {"score": {"sql": "1.0 * label"}},
        {"score": "copy", "label": {"sql": "copy = 1"}},
    ],
)
def test_label_made_of_the_score(columns: dict[str, Any]) -> None:
    """A label that is computed from the column of the score alone says nothing."""
    (warning,) = said("threshold_sweep", predictions={"path": SCORES, "columns": columns})
    assert "label and score are both read from '" in warning


def test_label_of_two_columns() -> None:
    """A label that the score has a share in may be one."""
    assert not said("threshold_sweep", predictions=SCORES)
    columns = {"label": {"sql": "label = 1 AND score > 0"}}
    assert not said("threshold_sweep", predictions={"path": SCORES, "columns": columns})


def test_relevance_made_of_the_score() -> None:
    """A relevance that is computed from the score is no judgement."""
    columns = {"relevance": {"sql": "CAST(score > 0.15 AS INTEGER)"}}
    assert said("ranking", ranking={"path": RETRIEVED, "columns": columns})
    assert not said("ranking", ranking=JUDGED)
