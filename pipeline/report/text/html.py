"""Blocks as HTML for notebooks; texts are shown as they are, and never are markup."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, assert_never

from ..page.markup import Markup, element, joined
from .summary import Block, Cells, Curve, Heading, Items, Paragraph

if TYPE_CHECKING:
    from collections.abc import Iterable

WIDTH, HEIGHT = 160, 24  # of a small curve
STYLES = {
    "warning": "border-left: 4px solid #8a5a00; padding-left: 0.8em",
    "note": "color: #6b7280; margin: 0.4em 0",
    "failure": "border-left: 4px solid #b3261e; padding-left: 0.8em",
}


def markup_of(blocks: Iterable[Block]) -> Markup:
    """Return all blocks as HTML that needs no style sheet."""
    return joined(*map(_markup, blocks))


def _markup(block: Block) -> Markup:
    match block:
        case Heading():
            return element(f"h{block.level + 2}", block.text)
        case Paragraph():
            return element("p", block.text)
        case Items():
            items = element("ul", *(element("li", item) for item in block.items))
            if block.tone == "note":
                return element("details", element("summary", block.title), items, style=STYLES["note"])
            title = element("strong", block.title) if block.title else None
            return element("div", title, items, style=STYLES.get(block.tone))
        case Cells():
            of_headers = ["text-align: right" if flush else "text-align: left" for flush in block.flush_right]
            of_cells = [f"{style}; white-space: nowrap" if "right" in style else style for style in of_headers]
            head = element(
                "tr", *(element("th", text, style=style) for text, style in zip(block.headers, of_headers, strict=True))
            )
            rows = [
                element("tr", *(element("td", text, style=style) for text, style in zip(row, of_cells, strict=True)))
                for row in block.rows
            ]
            return element("table", element("thead", head), element("tbody", *rows))
        case Curve():
            return element("p", _sparkline(block), f" {block.title}")
        case _:
            assert_never(block)


def _sparkline(curve: Curve) -> Markup:
    """A small line from 0 below to 1 above, with gaps where the curve is undefined."""
    step, lines = WIDTH / max(len(curve.values) - 1, 1), []
    for is_gap, piece in groupby(enumerate(curve.values), key=lambda place: place[1] is None):
        points = " ".join(f"{number * step:.1f},{HEIGHT * (1 - (value or 0)):.1f}" for number, value in piece)
        if not is_gap:
            lines.append(element("polyline", points=points, fill="none", stroke="#0068a8", stroke_width="1.5"))
    box = {"viewBox": f"-1 -1 {WIDTH + 2} {HEIGHT + 2}", "width": str(WIDTH), "height": str(HEIGHT), "role": "img"}
    return element("svg", *lines, **box, aria_label=curve.title)
