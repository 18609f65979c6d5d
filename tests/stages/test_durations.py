from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from pipeline.metrics.before_after.timelines import MICROSECONDS_PER_HOUR
from pipeline.stages.change_points.contract import MarginSides, in_positions
from pipeline.stages.parameters import Window, microseconds, parse_hours, parse_microseconds

SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}


@pytest.mark.parametrize(
    ("text", "hours"),
    [("168h", 168), ("7d", 168), ("4w", 672), ("90m", 1.5), ("1m", 1 / 60), ("36s", 0.01), ("1.5d", 36), ("0h", 0)],
)
def test_a_duration_is_a_number_and_a_unit(text: str, hours: float) -> None:
    assert parse_hours(text) == hours


@pytest.mark.parametrize(
    "value", ["", "7", "h", "-7d", "7 d", "7D", "1e3h", "7dd", "1d12h", "infh", "nanh", 168, None, True]
)
def test_anything_else_is_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match="is no duration"):
        parse_hours(value)


@pytest.mark.parametrize(
    "alike", [("7.3m", "438s"), ("1.1d", "26.4h", "1584m"), ("0.7h", "42m", "2520s"), ("0.3w", "2.1d", "50.4h")]
)
def test_a_duration_is_the_same_however_it_is_written(alike: tuple[str, ...]) -> None:
    assert len({parse_microseconds(text) for text in alike}) == 1
    for keys in ({"before": _h("9w")}, {"before": _h("9w"), "near": _h("0.1s")}):
        assert len({str(Window(**keys, after=_h(text), gap=_h(text)).bounds()) for text in alike}) == 1
    assert len({in_positions(text) for text in alike}) == 1
    assert len({str(MarginSides.model_validate(text).closed(closed=True)) for text in alike}) == 1


@given(
    st.integers(0, 36525 * 86400).map(str),
    st.sampled_from(["", ".", ".5", ".000001", ".0000005", ".123456789"]),
    st.sampled_from(list(SECONDS)),
)
def test_a_duration_is_rounded_to_whole_microseconds(whole: str, rest: str, unit: str) -> None:
    text = whole + rest.rstrip(".")
    exact = Fraction(text) * SECONDS[unit] * 1_000_000
    if exact <= 36525 * 24 * MICROSECONDS_PER_HOUR:
        assert parse_microseconds(text + unit) == round(exact)
        assert microseconds(parse_hours(text + unit)) == round(exact)


@pytest.mark.parametrize("value", ["36526d", "99999999d", "9" * 300 + "h", "9" * 400 + "s"])
def test_a_duration_is_at_most_a_century(value: str) -> None:
    assert parse_hours("36525d") == 36525 * 24
    with pytest.raises(ValueError, match=r"is longer than a century \(36525d\)"):
        parse_hours(value)


def test_a_window_is_closed_at_both_ends_unless_told_otherwise() -> None:
    bounds = Window(before=_h("7d"), after=_h("3d")).bounds()
    assert [bounds[name] for name in ("before_start", "before_end", "after_start", "after_end")] == [
        -168 * MICROSECONDS_PER_HOUR,
        0,
        0,
        72 * MICROSECONDS_PER_HOUR,
    ]


def test_a_half_open_window_ends_just_before_its_end() -> None:
    end = Window(before=_h("7d"), after=_h("3d"), closed="left").bounds()["after_end"]
    assert end == 72 * MICROSECONDS_PER_HOUR - 1


def test_a_gap_ends_the_part_before_the_event_earlier() -> None:
    assert Window(before=_h("7d"), after=_h("3d"), gap=_h("6h")).bounds()["before_end"] == -6 * MICROSECONDS_PER_HOUR


@pytest.mark.parametrize(
    "keys",
    [
        {"before": "7d"},
        {"after": "7d"},
        {"before": "6h", "after": "7d", "gap": "6h"},
        {"before": "0h", "after": "7d"},
        {"before": "7d", "after": "7d", "closed": "right"},
        {"before": "7d", "after": "7d", "width": "1d"},
    ],
)
def test_a_window_without_room_or_with_odd_keys_is_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Window.model_validate(keys)


def _h(text: str) -> Any:  # noqa: ANN401 - as it stands in a config
    return text
