"""Which texts count as equal: against Python's case folding."""

from __future__ import annotations

import unicodedata
from collections import defaultdict

import polars as pl
import pytest

from pipeline.metrics.matching import normalised_text


def normalised(*texts: str | None) -> list[str | None]:
    return (
        pl.DataFrame({"text": texts}, schema={"text": pl.String})
        .select(normalised_text(pl.col("text")))["text"]
        .to_list()
    )


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("New York", "  new\u00a0 YORK\t"),
        ("Straße", "STRASSE"),
        ("STRAẞE", "strasse"),
        ("Θεσσαλονίκης", "ΘΕΣΣΑΛΟΝΊΚΗΣ"),
        ("São Paulo", "Sa\u0303o Paulo"),
        ("İzmir", "i\u0307zmir"),
        ("A\nB", "a b"),
    ],
)
def test_equal_texts(text: str, other: str) -> None:
    first, second = normalised(text, other)
    assert first == second


@pytest.mark.parametrize(
    ("text", "other"), [("Sao", "São"), ("NewYork", "New York"), ("Georgia", "Georgia."), ("", None)]
)
def test_different_texts(text: str, other: str | None) -> None:
    first, second = normalised(text, other)
    assert first != second


def test_letters_are_equal_that_unicode_folds_together_except_the_dotless_i() -> None:
    letters = [chr(code) for code in [*range(0x21, 0x590), *range(0x1E00, 0x2000)] if not chr(code).isspace()]
    letters = [letter for letter in letters if unicodedata.category(letter) != "Cn" and letter not in "Iiı"]
    ours, theirs = defaultdict(set), defaultdict(set)
    for letter, text in zip(letters, normalised(*letters), strict=True):
        ours[text].add(letter)
        theirs[unicodedata.normalize("NFC", unicodedata.normalize("NFC", letter).casefold())].add(letter)
    newer = {"\u019b", "\u0264"}  # their capitals came with Unicode 16
    assert {frozenset(each - newer) for each in ours.values()} == {frozenset(each - newer) for each in theirs.values()}
    assert normalised("I", "ı") == ["i", "i"]
