"""The key of a chart: what its lines, points and bars are."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..figures.chart_style import key_of
from .markup import Markup, element

if TYPE_CHECKING:
    from ...stages.figures import Figure
    from ..figures.colours import Look


def key(figure: Figure) -> Markup:
    """Make the key of a figure, as text beside small pieces of its lines."""
    return element("ul", *(_key_entry(*entry) for entry in key_of(figure)), class_="key")


def _key_entry(name: str, look: Look, shape: str) -> Markup:
    dashes = " ".join(map(str, look.dash)) or None
    if shape == "line":
        mark = element(
            "line",
            x1="0",
            y1="5",
            x2="26",
            y2="5",
            stroke=look.colour.variable,
            stroke_width="2.5",
            stroke_dasharray=dashes,
        )
    elif shape == "point":
        mark = element("circle", cx="13", cy="5", r="4.5", fill=look.colour.variable)
    else:
        mark = element("rect", x="8", y="0", width="10", height="10", fill=look.colour.variable)
    swatch = element("svg", mark, viewBox="0 0 26 10", aria_hidden="true")
    return element("li", swatch, name)
