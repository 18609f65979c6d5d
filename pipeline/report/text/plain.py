"""Blocks as plain text, fitted to a width; nothing is cut, and nothing in it can steer a terminal."""

from __future__ import annotations

from dataclasses import replace
from itertools import zip_longest
from typing import TYPE_CHECKING, assert_never

from rich.cells import cell_len

from ...visible_text import cleaned
from .summary import Block, Cells, Curve, Heading, Items, Paragraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

GAP, NARROW_GAP = "  ", " "
UNBROKEN = "\u00a0"  # a blank at which lines are broken only if a table does not fit otherwise
WIDTH_OF_PIPES = 80
CURVE_WIDTH = 60
BLOCKS = " ▁▂▃▄▅▆▇█"


def text_of(blocks: Iterable[Block], width: int = WIDTH_OF_PIPES) -> str:
    """Return all blocks as text, an empty line between two.

    Args:
        blocks: What is said.
        width: Columns of the terminal or page. A word that is longer is not broken, so that paths can be copied.
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
                yield from indented(cleaned(item, layout=""), width)
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


def indented(text: str, width: int) -> Iterator[str]:
    """Return the lines of an item of a list, those after the first two columns further in."""
    for number, line in enumerate(wrapped(text, width - 2 * len(GAP))):
        yield f"{GAP * (1 if number == 0 else 2)}{line}"


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


# Tables --------------------------------------------------------------------------------------------------------------


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

    Args:
        headers: Titles of the columns.
        rows: Cells, as many in each row as there are headers.
        widths: Width of every column.
        flush_right: Of every column, whether its cells stand flush right.
        gap: What stands between two columns.
        ruled: Whether a line is drawn below the headers.
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
