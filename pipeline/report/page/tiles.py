"""Tiles of key numbers: a value, its interval in digits and on a fixed scale, and what it means."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..figures.colours import look_of_role
from ..words import doubt_text, headline, limits_text
from .markup import Markup, element

if TYPE_CHECKING:
    from ...stages.figures import KeyNumber
    from .content import StageContent


def tiles(content: StageContent) -> Markup | None:
    """Make the tiles of a stage; None if it has no key number."""
    if content.shown is None or not content.number_names:
        return None
    numbers = content.numbers.get(content.shown, {})
    level = content.published.parameters.get("confidence")
    boxes = [_tile(name, numbers.get(name), content, level) for name in content.number_names]
    return element("div", *boxes, class_="tiles")


def _tile(name: str, number: KeyNumber | None, content: StageContent, level: object) -> Markup:
    """One key number: its value, its interval in digits and on a scale, and what it means."""
    example = number or next(named[name] for named in content.numbers.values() if name in named)
    limits = tile_limits(number, level)
    doubt = doubt_text(number.quality) if number else ""
    value = headline(number) if number else "–"
    is_undefined = number is None or number.value is None
    return element(
        "div",
        element("h3", name),
        element("div", value, class_="number undefined" if is_undefined else "number", style=style_of(example)),
        element("div", limits, class_="limits", hidden=not limits),
        scale(number) if example.format == "percent" else None,
        element("div", example.meaning, class_="meaning"),
        element("div", doubt, class_="doubt", hidden=not doubt),
        class_="tile",
    )


def style_of(number: KeyNumber) -> str:
    """The colour of a key number."""
    return f"color:var(--{look_of_role(number.role).colour.name})"


def tile_limits(number: KeyNumber | None, level: object) -> str:
    """The interval of a tile with its level; empty without one."""
    limits = limits_text(number) if number else ""
    percent = f"{100 * level:.4g}% " if isinstance(level, float) else ""
    return f"{percent}interval {limits}" if limits else ""


def scale(number: KeyNumber | None) -> Markup:
    """The value and its interval on a fixed scale from 0 to 100%."""
    value = None if number is None else number.value
    lower, upper = (None, None) if number is None else (number.lower, number.upper)
    ends = (0.0, 0.0) if lower is None or upper is None else (_within(lower), _within(upper))
    band = f"left:{ends[0]:.1%};width:{ends[1] - ends[0]:.1%}"
    style = None if number is None else style_of(number)
    return element(
        "span",
        element("i", style=band, hidden=lower is None or upper is None),
        element("b", style=f"left:{_within(value or 0.0):.1%}", hidden=value is None),
        class_="scale pale" if number is not None and doubt_text(number.quality) else "scale",
        style=style,
        aria_hidden="true",
    )


def _within(value: float) -> float:
    return min(max(value, 0.0), 1.0)
