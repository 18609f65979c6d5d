"""An explanation as JSON: everything in it, numbers at full precision."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any

import polars as pl

from ...errors import UsageError
from ...visible_text import cleaned
from ..page.markup import Markup, element, joined
from ..text import html, markdown, plain
from ..text.blocks import Heading, Items, cells_of
from .wording import blocks_of, cell_text, facts_of, title_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from .evidence import ShownSection
    from .explaining import Explanation
    from .profiles import Compared


_AS_THEY_ARE = (
    "run",
    "published_at",
    "stage",
    "kind",
    "metric",
    "group",
    "threshold",
    "value",
    "lower",
    "upper",
    "meaning",
)


def json_of(explanation: Explanation) -> str:
    """Return an explanation as one JSON object."""
    steps = [{"name": step.name, "formula": step.formula, "value": step.value} for step in explanation.steps]
    facts = {name: getattr(explanation, name) for name in _AS_THEY_ARE}
    facts |= {"undefined": explanation.undefined or None, "interval": explanation.interval or None, "steps": steps}
    facts |= {"parameters": dict(explanation.parameters), "inputs": list(explanation.inputs)}
    facts |= {"bindings": dict(explanation.bindings), "notes": list(explanation.notes)}
    facts |= {"warnings": list(explanation.warnings), "sections": list(map(_section, explanation.sections))}
    facts |= {"sql": explanation.sql} if explanation.sql else {}
    facts |= {"profile": _compared(explanation.compared)} if explanation.compared is not None else {}
    return f"{json.dumps(facts, ensure_ascii=False, default=str, indent=2)}\n"


def _section(section: ShownSection) -> dict[str, Any]:
    return {
        "name": section.name,
        "title": section.title,
        "sentence": section.sentence,
        "absent": section.absent or None,
        "n_rows": section.n_rows,
        "rows": section.rows.with_columns(_finite(section.rows)).to_dicts(),
    }


def _finite(rows: pl.DataFrame) -> list[pl.Expr]:
    """The columns of floating numbers without NaN and infinity, which JSON does not know: they are null."""
    columns = (pl.col(name) for name, dtype in rows.schema.items() if dtype.is_float())
    return [pl.when(column.is_finite()).then(column) for column in columns]


def _compared(compared: Compared) -> dict[str, Any]:
    """The number of a tool."""
    names = ("tool", "name", "ours", "theirs", "exactly")
    effects = [dataclasses.asdict(effect) for effect in compared.effects]
    return {name: getattr(compared, name) for name in names} | {
        "refused": compared.refused or None,
        "conventions": effects,
    }


# An explanation as text, Markdown, CSV, JSON or HTML.


WIDTH_OF_PIPES = 100
_FENCE = "```"


def written(explanation: Explanation, format_: str, width: int | None = None, *, brief: bool = False) -> str:
    """Return an explanation as text in a format.

    Args:
        explanation: What is to be written.
        format_: `text`, `markdown`, `csv` (the rows of one section) or `json` (all of it).
        width: Columns of the terminal, for `text`: a table that is wider becomes one record below the other. None:
            tables are as wide as their rows, and sentences are broken at 100.
        brief: Whether the number and the rows behind it are enough, in text and Markdown.

    Raises:
        UsageError: the format is unknown, or CSV is asked of several sections.
    """
    if format_ not in _WRITERS:
        message = f"unknown format {format_!r}"
        raise UsageError(message, remedy=f"Choose one of {', '.join(_WRITERS)}.")
    return _WRITERS[format_](explanation, width, brief)


def markup_of(explanation: Explanation) -> Markup:
    """Return an explanation as HTML that needs no style sheet."""
    lines = [content for line in explanation.sql.splitlines() for content in (line, element("br"))]
    return joined(html.markup_of(blocks_of(explanation)), element("pre", *lines) if lines else None)


def _text(explanation: Explanation, width: int | None, brief: bool) -> str:  # noqa: FBT001 - as all writers
    return "".join(f"{line}\n" for line in _lines(explanation, width, brief=brief)) + _sql(explanation)


def _lines(explanation: Explanation, width: int | None, *, brief: bool) -> Iterator[str]:
    for facts in facts_of(explanation, brief=brief):
        yield from plain.lines_of(facts, width or WIDTH_OF_PIPES)
        yield ""
    for section in explanation.sections:
        about = Items(title_of(section), (section.absent or section.sentence,))
        yield from plain.lines_of(about, width or WIDTH_OF_PIPES)
        yield from (f"{plain.GAP}{line}".rstrip() for line in _table(section.rows, width))
        yield ""


def _table(rows: pl.DataFrame, width: int | None) -> Iterator[str]:
    """An aligned table below a title, or, if it is too wide, one record below the other."""
    if rows.is_empty():
        return
    cells = plain.cleaned_cells(cells_of(rows, cell_text))
    widths = plain.natural_widths(cells.headers, cells.rows)
    room = None if width is None else width - len(plain.GAP)
    if room is None or plain.total_width(widths) <= room:
        yield from plain.table_lines(cells.headers, cells.rows, widths, cells.flush_right, ruled=False)
    else:
        yield from plain.record_lines(cells.headers, cells.rows, room)


def _sql(explanation: Explanation) -> str:
    return f"SQL\n\n{cleaned(explanation.sql)}" if explanation.sql else ""


def _markdown(explanation: Explanation, _width: int | None, brief: bool) -> str:  # noqa: FBT001 - see _text
    text = f"{markdown.text_of(blocks_of(explanation, brief=brief))}\n"
    if not explanation.sql:
        return text
    heading = markdown.text_of([Heading("SQL", 2)])
    fence = max((_FENCE, *(f"{run}`" for run in re.findall("`{3,}", explanation.sql))), key=len)
    return f"{text}{heading}\n{fence}sql\n{cleaned(explanation.sql)}{fence}\n"


def _csv(explanation: Explanation, _width: int | None, _brief: bool) -> str:  # noqa: FBT001 - see _text
    names = [section.name for section in explanation.sections]
    if len(names) != 1:
        message = "CSV has the rows of one section"
        raise UsageError(message, remedy=f"Add --show with one of {', '.join(names) or 'the sections of the stage'}.")
    section = explanation.sections[0]
    if section.absent:
        message = f"there is no section {section.name} here: {section.absent}"
        raise UsageError(message)
    return section.rows.write_csv()


def _json(explanation: Explanation, _width: int | None, _brief: bool) -> str:  # noqa: FBT001 - see _text
    return json_of(explanation)


_WRITERS: dict[str, Callable[[Explanation, int | None, bool], str]] = {
    "text": _text,
    "markdown": _markdown,
    "csv": _csv,
    "json": _json,
}
