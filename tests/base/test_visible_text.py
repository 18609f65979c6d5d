"""Shares in words and in percent: none and all are said only where they are exactly that."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.base.visible_text import of_every, percent, percent_limits


@pytest.mark.parametrize(
    ("share", "words", "text", "short"),
    [
        (0.9975, "998 of every 1,000", "99.8%", "99.8%"),
        (0.002, "2 of every 1,000", "0.2%", "0.2%"),
        (6 / 32_241, "2 of every 10,000", "0.02%", "0.02%"),
        (0.99996, "99,996 of every 100,000", "99.996%", "99.996%"),
        (1e-9, "fewer than 1 of every 1,000,000", "< 0.0001%", "< 0.0001%"),
        (1 - 1e-9, "more than 999,999 of every 1,000,000", "> 99.9999%", "> 99.9999%"),
        (1.0, "100 of every 100", "100.0%", "100%"),
        (0.0, "0 of every 100", "0.0%", "0%"),
        (0.905, "90 of every 100", "90.5%", "90%"),
        (-0.4, "-40 of every 100", "-40.0%", "-40%"),
    ],
)
def test_a_share_is_none_or_all_only_where_it_is_exactly_that(share: float, words: str, text: str, short: str) -> None:
    assert of_every(share) == words
    assert (percent(share), percent(share, 0)) == (text, short)


@given(st.floats(0, 1, exclude_min=True, exclude_max=True, allow_subnormal=False))
def test_what_is_neither_never_reads_as_none_or_all(share: float) -> None:
    number, base = re.fullmatch(r"(?:fewer than |more than )?([\d,]+) of every ([\d,]+)", of_every(share)).groups()  # type: ignore[union-attr]
    assert 0 < int(number.replace(",", "")) < int(base.replace(",", ""))
    for decimals in (0, 1):
        assert float(percent(share, decimals).strip("<>% ")) not in {0.0, 100.0}


def test_limits_are_rounded_to_none_or_all_only_away_from_the_share() -> None:
    assert percent_limits(0.88, 0.999) == "88–100"
    assert percent_limits(0.002, 0.04) == "0–4"
    assert percent_limits(0.997, 1.0) == "99.7–100"
    assert percent_limits(0.0, 0.002) == "0–0.2"
