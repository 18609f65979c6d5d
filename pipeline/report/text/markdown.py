"""Blocks as Markdown, as GitHub and most other renderers read it; texts are shown as they are, and never are markup."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

from ...visible_text import cleaned
from .plain import draw
from .summary import Block, Cells, Curve, Heading, Items, Paragraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_MARKUP = re.compile(r"[\\`*_\[\]#|~$!{}]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_FIRST = re.compile(r"^(?:[-+=]|\d+[.)](?= |$))")  # what begins a list or underlines a heading


def text_of(blocks: Iterable[Block]) -> str:
    """Return all blocks as Markdown."""
    return "\n\n".join("\n".join(_lines_of(block)) for block in blocks) + "\n"


def escaped(text: str) -> str:
    """Return a text as Markdown that shows it within a line: no character of it is markup or HTML."""
    marked = _MARKUP.sub(lambda match: f"\\{match[0]}", cleaned(text, layout=""))
    for character, entity in _ENTITIES.items():
        marked = marked.replace(character, entity)
    return marked


def escaped_line(text: str) -> str:
    """Return a text as Markdown that shows it in a line of its own: it does not begin a list, either."""
    return _FIRST.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", escaped(text))


def _lines_of(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"{'#' * (block.level + 1)} {escaped(block.text)}"
        case Paragraph():
            yield escaped_line(block.text)
        case Items():
            if block.title:
                yield f"**{escaped(block.title)}**"
                yield ""
            yield from (f"- {escaped_line(item)}" for item in block.items)
        case Cells():
            yield from table_lines(block.headers, block.rows, block.flush_right)
        case Curve():
            yield f"`{draw(block.values)}` {escaped(block.title)}"
        case _:
            assert_never(block)


def table_lines(headers: Sequence[str], rows: Iterable[Sequence[str]], flush_right: Sequence[bool]) -> Iterator[str]:
    """Return the lines of a table."""
    yield _row(headers)
    yield f"|{'|'.join('---:' if flush else '---' for flush in flush_right)}|"
    yield from map(_row, rows)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(escaped, cells))} |"
