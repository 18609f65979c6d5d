"""Gold and predictions that count characters of other texts, or in another way, are told before anything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import thresher

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

Mention = tuple[str, int, int, str]
SCHEMA = {"doc_id": pl.String, "start": pl.Int64, "end": pl.Int64, "text": pl.String}
TEXT = "🙂 London é🙂 Париж ok Rome 🙂🙂 London and Москва"
WORDS = ("London", "Париж", "Rome", "London", "Москва")


def warned(gold: Sequence[Mention], predicted: Sequence[Mention], **parameters: Any) -> tuple[str, ...]:  # noqa: ANN401 - of the stage
    frames = [pl.DataFrame(rows, schema=SCHEMA, orient="row") for rows in (gold, predicted)]
    result = thresher.entity_recognition(gold=frames[0], predicted=frames[1], uncertainty="none", **parameters)
    return tuple(result.warnings)


def test_another_text_at_the_same_place_is_the_first_warning() -> None:
    gold = [("a", 0, 6, "London"), ("b", 3, 8, "Paris"), ("b", 10, 18, "New  York")]
    predicted = [("a", 0, 6, "ondon "), ("b", 3, 8, "in Pa"), ("b", 10, 18, "new york"), ("c", 0, 6, "London")]
    warnings = warned(gold, predicted, documents=pl.DataFrame({"doc_id": ["a", "b"]}))
    assert warnings[0] == (
        "2 places have another text in predicted than in gold (first: document a, 0 to 6: gold 'London', predicted "
        "'ondon '): do both count the characters of the same texts?"
    )


def positions(coding: str | None) -> list[Mention]:
    """The words of the text with their places in code points, or in units of a coding."""
    mentions, at = [], 0
    for word in WORDS:
        at = TEXT.index(word, at)
        start, end = at, at + len(word)
        if coding is not None:
            size = 2 if coding == "utf-16-le" else 1
            start, end = (len(TEXT[:place].encode(coding)) // size for place in (start, end))
        mentions.append(("d", start, end, word))
        at += len(word)
    return mentions


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("coding", ["utf-16-le", "utf-8"])
@pytest.mark.parametrize("match", ["span", "overlap", "text_near", "text"])
def test_other_units_of_text_are_the_first_warning(coding: str, match: str) -> None:
    warnings = warned(positions(None), positions(coding), match=match)
    start = positions(coding)[0][1]
    words = f"(first: document d: gold 'London' at 2 to 8, predicted 'London' at {start} to {start + 6})"
    assert "stand at another place in predicted than in gold" in warnings[0]
    assert words in warnings[0]
    assert "stand at another place" in warned(positions(coding), positions(None), match=match)[0]


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("shift", "widening", "is_told"), [(0, 0, False), (1, 0, True), (40, 0, True), (-2, 0, True), (0, -1, True)]
)
def test_a_shift_by_a_constant_is_told(shift: int, widening: int, *, is_told: bool) -> None:
    gold = [("d", 10, 16, "London"), ("d", 30, 35, "Paris")]
    moved = [(doc, start + shift, end + shift + widening, text) for doc, start, end, text in gold]
    warnings = warned(gold, moved)
    assert any("2 texts stand at another place" in warning for warning in warnings[:1]) == is_told


@pytest.mark.first_cases(3)
@pytest.mark.parametrize(
    "predicted",
    [
        [("d", 2, 6, "haha")],
        [("d", 40, 46, "London"), ("d", 30, 35, "Paris")],
        [("d", 40, 46, "London")],
        [("d", 14, 16, "on")],
        [("d", 6, 16, "London")],
    ],
    ids=["a text that repeats itself", "one of two", "another mention", "another text", "a name without its article"],
)
def test_places_that_may_be_right_are_not_told(predicted: list[Mention]) -> None:
    gold = [("d", 0, 4, "haha"), ("d", 10, 16, "London"), ("d", 30, 35, "Paris")]
    assert not [text for text in warned(gold, predicted) if "in predicted than in gold" in text]


def test_the_same_holds_for_systems_and_in_geocoding(tmp_path: Path) -> None:
    place = {"latitude": pl.lit(51.5), "longitude": pl.lit(0.0)}
    gold = pl.DataFrame([("d", 10, 16, "London")], schema=SCHEMA, orient="row").with_columns(**place)
    right, shifted = gold.with_columns(system=pl.lit("a")), gold.with_columns(pl.col("start", "end") + 1)
    gold.write_parquet(tmp_path / "gold.parquet")
    pl.concat([right, shifted.with_columns(system=pl.lit("b"))]).write_parquet(tmp_path / "predicted.parquet")
    inputs: dict[str, Any] = {"gold": tmp_path / "gold.parquet", "predicted": tmp_path / "predicted.parquet"}
    for result in (
        thresher.entity_recognition(**inputs, by=[["system"]]),
        thresher.geocoding(**inputs, by=[["system"]], match="span"),
    ):
        assert result.warnings[0].startswith(
            "1 text stands at another place in predicted than in gold (first: document d"
        )


@pytest.mark.wide
@settings(max_examples=25)
@given(st.text("a🙂é", max_size=8), st.text("b🙂é", max_size=8))
def test_one_emoji_before_a_mention_is_enough(before: str, between: str) -> None:
    text = f"{before} London {between} Paris"
    rows: dict[str, list[Mention]] = {"utf-32-le": [], "utf-16-le": []}
    for coding, mentions in rows.items():
        for word in ("London", "Paris"):
            start = len(text[: text.index(word)].encode(coding)) // (int(coding[4:6]) // 8)
            mentions.append(("d", start, start + len(word), word))
    told = [warning for warning in warned(rows["utf-32-le"], rows["utf-16-le"])[:1] if "another place" in warning]
    n_emoji = [before.count("🙂"), (before + between).count("🙂")]
    certain = 0 < n_emoji[0] < len("London") or 0 < n_emoji[1] < len("Paris") or n_emoji[0] == n_emoji[1] > 0
    assert bool(told) == certain
