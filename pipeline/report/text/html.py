"""Blocks as HTML for notebooks; texts are shown as they are, and never are markup."""

from __future__ import annotations

from typing import TYPE_CHECKING, assert_never

from pipeline.report.page.markup import Markup, element, joined
from pipeline.report.text.blocks import Block, Cells, Curve, Heading, Items, Paragraph
from pipeline.report.text.plain import draw

if TYPE_CHECKING:
    from collections.abc import Iterable

STYLES = {
    "warning": "border-left: 4px solid #8a5a00; padding-left: 0.8em",
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
            title = element("strong", block.title) if block.title else None
            return element("div", title, items, style=STYLES.get(block.tone))
        case Cells():
            return _table(block)
        case Curve():
            return element("p", element("code", draw(block.values)), f" {block.title}")
        case _:
            assert_never(block)


def _table(cells: Cells) -> Markup:
    aligned = ["text-align: right" if flush else "text-align: left" for flush in cells.flush_right]
    head = element("tr", *(element("th", text, style=side) for text, side in zip(cells.headers, aligned, strict=True)))
    rows = [
        element("tr", *(element("td", text, style=side) for text, side in zip(row, aligned, strict=True)))
        for row in cells.rows
    ]
    return element("table", element("thead", head), element("tbody", *rows))
