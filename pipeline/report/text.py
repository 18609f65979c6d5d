"""Blocks as plain text, Markdown, LaTeX or HTML: texts are shown as they are, and are never markup or commands."""

from __future__ import annotations

import html
import json
import re
from dataclasses import replace
from itertools import groupby, zip_longest
from typing import TYPE_CHECKING, Any, assert_never

from rich.cells import cell_len

from ..base.errors import UsageError
from ..base.visible_text import cleaned
from .summary import Block, Cells, Curve, Heading, Items, Paragraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence


# HTML that is safe by construction: text is escaped unless a function of this module made it.


_VOID = frozenset({"br", "input", "meta", "link"})


class Markup(str):
    """HTML that was made here; any other text is escaped before it stands in a page."""

    __slots__ = ()


Content = str | None


def escaped(text: str) -> Markup:
    """Escape text, and show characters that could steer what shows them."""
    return text if isinstance(text, Markup) else Markup(html.escape(cleaned(text, layout=" "), quote=True))


def joined(*contents: Content) -> Markup:
    """Put pieces one after the other; None is nothing."""
    return Markup("".join(escaped(content) for content in contents if content is not None))


def element(tag: str, *contents: Content, **attributes: str | bool | None) -> Markup:
    """Make an element.

    Args:
        tag: Its name.
        contents: Text, which is escaped, and elements.
        attributes: Its attributes: a trailing `_` is dropped, other `_` are `-`; True is an attribute without a value,
            None and False none.
    """
    values = {
        name.rstrip("_").replace("_", "-"): value for name, value in attributes.items() if value not in (None, False)
    }
    written = (f" {name}" if value is True else f' {name}="{escaped(str(value))}"' for name, value in values.items())
    opening = f"<{tag}{''.join(written)}>"
    return Markup(opening if tag in _VOID else f"{opening}{joined(*contents)}</{tag}>")


def drawing(svg: str) -> Markup:
    """Take over a drawing that `pictures.inert` has gone through."""
    return Markup(svg)


def inert_json(value: Any) -> str:  # noqa: ANN401 - whatever JSON can hold
    """JSON that can stand inside a script element: it holds no character that could end the element."""
    text = json.dumps(value, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


# Blocks as plain text, fitted to a width; nothing is cut, and nothing in it can steer a terminal.


GAP, NARROW_GAP = "  ", " "
UNBROKEN = "\u00a0"  # a blank at which lines are broken only if a table does not fit otherwise
WIDTH_OF_PIPES = 80
CURVE_WIDTH = 60
BLOCKS = " ▁▂▃▄▅▆▇█"


def check_format(format_: str, formats: Iterable[str]) -> None:
    """Refuse an unknown format before anything is read.

    Raises:
        UsageError: it is none of the formats.
    """
    if format_ not in formats:
        message = f"unknown format {format_!r}"
        raise UsageError(message, remedy=f"Choose one of {', '.join(formats)}.")


def plain_text(blocks: Iterable[Block], width: int = WIDTH_OF_PIPES) -> str:
    """Return all blocks as text, an empty line between two.

    A word that is longer than the width is not broken, so that paths can be copied.
    """
    return "\n\n".join("\n".join(lines_of(block, width)) for block in blocks) + "\n"


def lines_of(block: Block, width: int) -> Iterator[str]:
    """Return the lines of one block."""
    match block:
        case Heading():
            yield from wrapped(cleaned(block.text, layout=""), width)
        case Paragraph():
            yield from wrapped(cleaned(block.text, layout=""), width)
        case Items():
            if block.title:
                yield from wrapped(cleaned(block.title, layout=""), width)
            for item in block.items:
                for number, line in enumerate(wrapped(cleaned(item, layout=""), width - 2 * len(GAP))):
                    yield f"{GAP * (1 if number == 0 else 2)}{line}"  # those after the first further in
        case Cells():
            yield from _lines_of_cells(block, width)
        case Curve():
            title = cleaned(block.title, layout="")
            drawn = draw(block.values, min(CURVE_WIDTH, width))
            if cell_len(drawn) + len(GAP) + cell_len(title) <= width:
                yield f"{drawn}{GAP}{title}"
            else:
                yield drawn
                yield from wrapped(title, width)
        case _:
            assert_never(block)


def wrapped(text: str, width: int) -> list[str]:
    """Break a text between words; a word that is wider than the width gets a line of its own."""
    if cell_len(text) <= width:
        return [text]
    lines = [""]
    for word in text.split(" "):
        if lines[-1] and cell_len(lines[-1]) + 1 + cell_len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}" if lines[-1] else word
    return lines


def draw(values: Sequence[float | None], width: int = CURVE_WIDTH) -> str:
    """Draw values between 0 and 1 as block characters, with a gap where a value is undefined."""
    if not values:
        return ""
    top = len(BLOCKS) - 1
    shown = thinned(values, width)
    return "".join(" " if value is None else BLOCKS[max(1, round(min(max(value, 0.0), 1.0) * top))] for value in shown)


def thinned(values: Sequence[float | None], most: int) -> list[float | None]:
    """Return evenly spaced ones of the values, at most so many."""
    step = max(1.0, len(values) / most)
    return [values[int(index * step)] for index in range(min(most, len(values)))]


def _lines_of_cells(table: Cells, width: int) -> Iterator[str]:
    table = cleaned_cells(table)
    headers, rows = table.headers, table.rows
    broken = [[cell.replace(UNBROKEN, " ") for cell in row] for row in rows]
    for cells, gap in ((rows, GAP), (rows, NARROW_GAP), (broken, GAP), (broken, NARROW_GAP)):
        if widths := fitted_widths(headers, cells, width, gap):
            yield from table_lines(headers, cells, widths, table.flush_right, gap)
            return
    yield from record_lines(headers, rows, width, table.record_words)


def cleaned_cells(table: Cells) -> Cells:
    """Return a table whose texts stay on one line and cannot steer a terminal."""
    headers, *rows = (tuple(cleaned(text, layout="") for text in row) for row in (table.headers, *table.rows))
    return replace(table, headers=headers, rows=tuple(rows))


def natural_widths(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide every column is if nothing is wrapped."""
    return [max(map(cell_len, column)) for column in zip(headers, *rows, strict=True)]


def total_width(widths: Sequence[int], gap: str = GAP) -> int:
    """Return the width of a table with columns of these widths."""
    return sum(widths) + len(gap) * (len(widths) - 1)


def fitted_widths(
    headers: Sequence[str], rows: Sequence[Sequence[str]], width: int, gap: str = GAP
) -> list[int] | None:
    """Return widths of columns with which a table fits, headers and then cells being wrapped; None if none do.

    As many columns as possible keep their cells in one line: those that need least are widened first.
    """
    natural = natural_widths(headers, rows)
    if total_width(natural, gap) <= width:
        return natural
    columns = list(zip(headers, *rows, strict=True))
    widths = [max(map(_longest_word, column)) for column in columns]
    with_whole_cells = [max(_longest_word(header), *map(cell_len, cells), 0) for header, *cells in columns]
    room = width - total_width(widths, gap)
    if room < 0:
        return None
    for target in (with_whole_cells, natural):
        for column in sorted(range(len(widths)), key=lambda index: target[index] - widths[index]):
            needed = target[column] - widths[column]
            if 0 < needed <= room:
                widths[column] += needed
                room -= needed
    return _shared_out(widths, with_whole_cells, room)


def _shared_out(widths: list[int], wanted: Sequence[int], room: int) -> list[int]:
    """Widen the columns whose cells are wrapped, by one in turn, until nothing of the room is left."""
    while narrow := [column for column, width in enumerate(widths) if width < wanted[column]][:room]:
        for column in narrow:
            widths[column] += 1
        room -= len(narrow)
    return widths


def _longest_word(text: str) -> int:
    return max(map(cell_len, text.split(" ")))


def table_lines(
    headers: Sequence[str],
    rows: Sequence[Sequence[str]],
    widths: Sequence[int],
    flush_right: Sequence[bool],
    gap: str = GAP,
    *,
    ruled: bool = True,
) -> Iterator[str]:
    """Return the lines of a table; a cell that is wider than its column takes several lines.

    `flush_right` says of every column whether its cells are, and `ruled` whether a line is drawn below the headers.
    """
    for number, row in enumerate((headers, *rows)):
        lines_of_cells = [wrapped(cell, width) for cell, width in zip(row, widths, strict=True)]
        for line in zip_longest(*lines_of_cells, fillvalue=""):
            padded = (_padded(*cell) for cell in zip(line, widths, flush_right, strict=True))
            yield gap.join(padded).rstrip()
        if number == 0 and ruled:
            yield gap.join("─" * width for width in widths)


def _padded(text: str, width: int, flush_right: bool) -> str:  # noqa: FBT001 - one of three facts of a cell
    blanks = " " * (width - cell_len(text))
    return f"{blanks}{text}" if flush_right else f"{text}{blanks}"


def record_lines(
    headers: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, words: str = "row"
) -> Iterator[str]:
    """Return every row as a list of its fields, one below the other."""
    names_width = max(map(cell_len, headers))
    for number, row in enumerate(rows, start=1):
        yield f"── {words} {number} ──"
        for name, cell in zip(headers, row, strict=True):
            head = _padded(name, names_width, flush_right=False)
            room = None if width is None else max(width - names_width - len(GAP), 1)
            lines = [cell] if room is None else wrapped(cell, room)
            yield f"{head}{GAP}{lines[0]}".rstrip()
            yield from (f"{' ' * names_width}{GAP}{line}" for line in lines[1:])


# Blocks as Markdown, as GitHub and most other renderers read it; texts are shown as they are, and never are markup.


_MARKUP = re.compile(r"[\\`*_\[\]#|~$!{}]")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "@": "&#64;"}
_FIRST = re.compile(r"^(?:[-+=]|\d+[.)](?= |$))")  # what begins a list or underlines a heading


def markdown_text(blocks: Iterable[Block]) -> str:
    """Return all blocks as Markdown."""
    return "\n\n".join("\n".join(_markdown_lines(block)) for block in blocks) + "\n"


def in_markdown(text: str) -> str:
    """Return a text as Markdown that shows it within a line: no character of it is markup or HTML."""
    marked = _MARKUP.sub(lambda match: f"\\{match[0]}", cleaned(text, layout=""))
    for character, entity in _ENTITIES.items():
        marked = marked.replace(character, entity)
    return marked


def escaped_line(text: str) -> str:
    """Return a text as Markdown that shows it in a line of its own: it does not begin a list, either."""
    return _FIRST.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", in_markdown(text))


def _markdown_lines(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"{'#' * (block.level + 1)} {in_markdown(block.text)}"
        case Paragraph():
            yield escaped_line(block.text)
        case Items():
            if block.title:
                yield f"**{in_markdown(block.title)}**"
                yield ""
            yield from (f"- {escaped_line(item)}" for item in block.items)
        case Cells():
            yield from markdown_table(block.headers, block.rows, block.flush_right)
        case Curve():
            yield f"`{draw(block.values)}` {in_markdown(block.title)}"
        case _:
            assert_never(block)


def markdown_table(headers: Sequence[str], rows: Iterable[Sequence[str]], flush_right: Sequence[bool]) -> Iterator[str]:
    """Return the lines of a table."""
    yield _markdown_row(headers)
    yield f"|{'|'.join('---:' if flush else '---' for flush in flush_right)}|"
    yield from map(_markdown_row, rows)


def _markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(map(in_markdown, cells))} |"


# Blocks as LaTeX that needs no package; texts are shown as they are, and never are commands.


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


def latex_text(blocks: Iterable[Block]) -> str:
    """Return all blocks as LaTeX."""
    return "\n\n".join("\n".join(_latex_lines(block)) for block in blocks) + "\n"


def in_latex(text: str) -> str:
    """Return a text as LaTeX that shows it: no character of it is a command, and none are joined into another."""
    return _SPECIAL.sub(_write, cleaned(text, layout=""))


def _write(match: re.Match[str]) -> str:
    """Return one special character as it is written, or a run that LaTeX would join with its characters apart."""
    return "$-$" if match[0] == "-" else _WRITTEN.get(match[0]) or "{}".join(match[0])


def _latex_lines(block: Block) -> Iterator[str]:
    match block:
        case Heading():
            yield f"\\{_SECTIONS[block.level]}*{{{in_latex(block.text)}}}"
        case Paragraph():
            yield in_latex(block.text)
        case Items():
            if block.title:
                yield f"\\paragraph{{{in_latex(block.title)}}}"
            yield r"\begin{itemize}"
            yield from (f"\\item {in_latex(item)}" for item in block.items)
            yield r"\end{itemize}"
        case Cells():
            yield from latex_table(block.headers, block.rows, block.flush_right)
        case Curve():
            yield f"{_drawn(block.values)} {in_latex(block.title)}"
        case _:
            assert_never(block)


def latex_table(headers: Sequence[str], rows: Iterable[Sequence[str]], flush_right: Sequence[bool]) -> Iterator[str]:
    """Return the lines of a table."""
    yield f"\\begin{{tabular}}{{{''.join('r' if flush else 'l' for flush in flush_right)}}}"
    yield r"\hline"
    yield _latex_row(headers)
    yield r"\hline"
    yield from map(_latex_row, rows)
    yield r"\hline"
    yield r"\end{tabular}"


def _latex_row(cells: Sequence[str]) -> str:
    return " & ".join(map(in_latex, cells)) + r" \\"


def _drawn(values: Sequence[float | None]) -> str:
    """Return a curve as bars, with a gap where a value is undefined."""
    bars = (
        r"\hspace*{0.5ex}"
        if value is None
        else f"\\rule{{0.5ex}}{{{max(_HEIGHT * min(max(value, 0.0), 1.0), 0.05):.2f}ex}}"
        for value in thinned(values, CURVE_WIDTH)
    )
    return "%\n".join(bars)


# Blocks as HTML for notebooks; texts are shown as they are, and never are markup.


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
