"""Blocks as LaTeX that needs no package; texts are shown as they are, and never are commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, assert_never

from ...visible_text import cleaned
from .plain import CURVE_WIDTH, thinned
from .summary import Block, Cells, Curve, Heading, Items, Paragraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_WRITTEN = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\symbol{34}",
    "`": r"\symbol{96}",
    "[": "{[}",  # after the end of a row it would begin an option
    "]": "{]}",
    "*": "{*}",  # likewise
    "\u00a0": "~",
    "\u2013": "--",
    "\u2014": "---",
    "\u2212": "$-$",
    "\u00d7": r"$\times$",
    "\u2265": r"$\ge$",
    "\u2264": r"$\le$",
    "\u03ba": r"$\kappa$",
    "\u2026": r"\ldots{}",
    "\u2192": r"$\to$",
    "\u2018": "{`}",
    "\u2019": "{'}",
    "\u201c": "``",
    "\u201d": "''",
}
_MINUS = "(?<![\\w.-])-(?=\\d)"  # in front of a number
_SPECIAL = re.compile(f"{_MINUS}|--+|,,+|''+|[{re.escape(''.join(_WRITTEN))}]")
_SECTIONS = {1: "section", 2: "subsection"}
_HEIGHT = 2.5  # of a curve, in units of the height of a letter x


def text_of(blocks: Iterable[Block]) -> str:
    """Return all blocks as LaTeX."""
    return "\n\n".join("\n".join(_lines_of(block)) for block in blocks) + "\n"


def escaped(text: str) -> str:
    """Return a text as LaTeX that shows it: no character of it is a command, and none are joined into another."""
    return _SPECIAL.sub(_write, cleaned(text, layout=""))


def _write(match: re.Match[str]) -> str:
    """Return one special character as it is written, or a run that LaTeX would join with its characters apart."""
    return "$-$" if match[0] == "-" else _WRITTEN.get(match[0]) or "{}".join(match[0])


def _lines_of(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"\\{_SECTIONS[block.level]}*{{{escaped(block.text)}}}"
        case Paragraph():
            yield escaped(block.text)
        case Items():
            if block.title:
                yield f"\\paragraph{{{escaped(block.title)}}}"
            yield r"\begin{itemize}"
            yield from (f"\\item {escaped(item)}" for item in block.items)
            yield r"\end{itemize}"
        case Cells():
            yield from table_lines(block.headers, block.rows, block.flush_right)
        case Curve():
            yield f"{_drawn(block.values)} {escaped(block.title)}"
        case _:
            assert_never(block)


def table_lines(headers: Sequence[str], rows: Iterable[Sequence[str]], flush_right: Sequence[bool]) -> Iterator[str]:
    """Return the lines of a table."""
    yield f"\\begin{{tabular}}{{{''.join('r' if flush else 'l' for flush in flush_right)}}}"
    yield r"\hline"
    yield _row(headers)
    yield r"\hline"
    yield from map(_row, rows)
    yield r"\hline"
    yield r"\end{tabular}"


def _row(cells: Sequence[str]) -> str:
    return " & ".join(map(escaped, cells)) + r" \\"


def _drawn(values: Sequence[float | None]) -> str:
    """Return a curve as bars, with a gap where a value is undefined."""
    bars = (
        r"\hspace*{0.5ex}"
        if value is None
        else f"\\rule{{0.5ex}}{{{max(_HEIGHT * min(max(value, 0.0), 1.0), 0.05):.2f}ex}}"
        for value in thinned(values, CURVE_WIDTH)
    )
    return "%\n".join(bars)
