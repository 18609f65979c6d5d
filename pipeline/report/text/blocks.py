"""What is said of results, as data: blocks that are written as text, Markdown or LaTeX."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable

    import polars as pl


@dataclass(frozen=True)
class Heading:
    """A heading.

    Attributes:
        text: What stands below it.
        level: 1 for the whole, 2 for one of its stages.
    """

    text: str
    level: int = 1


@dataclass(frozen=True)
class Paragraph:
    """Running text in one paragraph."""

    text: str


@dataclass(frozen=True)
class Items:
    """A list.

    Attributes:
        title: What its items are; may be empty.
        items: Texts of one paragraph.
        tone: `warning` where a reader must not miss them, `failure` where they say that a gate failed, `note` where a
            reader may pass them over.
    """

    title: str
    items: tuple[str, ...]
    tone: Literal["plain", "warning", "failure", "note"] = "plain"


@dataclass(frozen=True)
class Cells:
    """A table for people.

    Attributes:
        headers: Titles of the columns.
        rows: Cells as text, as many in each row as there are headers.
        flush_right: Of every column, whether its cells are numbers, which stand flush right.
        record_words: What a row is called where the table is too wide, and each row becomes a list of its fields.
    """

    headers: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    flush_right: tuple[bool, ...]
    record_words: str = "row"


def cells_of(frame: pl.DataFrame, text_of: Callable[[object], str]) -> Cells:
    """Return the rows of a frame as a table for people; numbers stand flush right.

    Args:
        frame: The rows.
        text_of: How a value is written.
    """
    rows = tuple(tuple(map(text_of, row)) for row in frame.iter_rows())
    return Cells(tuple(frame.columns), rows, tuple(dtype.is_numeric() for dtype in frame.dtypes))


@dataclass(frozen=True)
class Curve:
    """A small curve.

    Attributes:
        values: Between 0 and 1, None where undefined: a gap.
        title: What it shows, from where to where.
    """

    values: tuple[float | None, ...]
    title: str


Block: TypeAlias = Heading | Paragraph | Items | Cells | Curve
