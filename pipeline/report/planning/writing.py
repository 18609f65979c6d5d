"""Plans as text, Markdown, LaTeX, CSV, JSON or HTML."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from ...errors import UsageError
from ..text import html, latex, markdown, plain
from ..text.blocks import Block, Cells, Heading, Items, Paragraph
from . import wording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from ..page.markup import Markup
    from .sample_plan import PlannedUnits, Plans, SamplePlan

_NOTHING = "–"


def written(plans: Plans, format_: str, width: int | None = None) -> str:
    """Return plans as text in a format.

    Args:
        plans: The plans.
        format_: `text`, `markdown`, `latex`, `csv` (a row for each thing that is planned) or `json` (everything).
        width: Columns of the terminal, for `text`; None: of a pipe.

    Raises:
        UsageError: the format is unknown.
    """
    check_format(format_)
    return _WRITERS[format_](plans, width)


def check_format(format_: str) -> None:
    """Refuse an unknown format before anything is read.

    Raises:
        UsageError: it is none of the formats.
    """
    if format_ not in _WRITERS:
        message = f"unknown format {format_!r}"
        raise UsageError(message, remedy=f"Choose one of {', '.join(_WRITERS)}.")


def markup_of(plans: Plans) -> Markup:
    """Return plans as HTML that needs no style sheet."""
    return html.markup_of(blocks_of(plans))


def blocks_of(plans: Plans) -> Iterator[Block]:
    """Return plans as blocks: the answer, the table, what must be known."""
    for number, plan in enumerate(plans.plans):
        yield Heading(_title(plan), 1 if number == 0 else 2)
        yield Paragraph(plan.sentence)
        yield _cells(plan)
        if plan.notes:
            yield Items("Notes", plan.notes)
    if plans.refused:
        yield Items("Not planned:", tuple(f"{name}: {reason}" for name, reason in plans.refused.items()))


def _title(plan: SamplePlan) -> str:
    value = "" if plan.value is None else f" = {wording.amount(plan.value)}"
    if not plan.stage:
        return f"Plan: {plan.metric}{value}, as expected"
    if plan.lower is not None and plan.upper is not None:
        value += f" ({wording.amount(plan.lower)} to {wording.amount(plan.upper)})"
    at = "" if plan.threshold is None else f" at {plan.threshold:g}"
    whose = "all groups together" if plan.group == "all" else f"group {plan.group}"
    return f"{plan.stage}: {plan.metric}{value}{at}, {whose}"


def _cells(plan: SamplePlan) -> Cells:
    headers = ("unit", "now", "needed", "cautious", "times", f"{plan.goal} now", f"{plan.goal} wanted", "basis")
    rows = tuple(_row(plan, units, is_first=number == 0) for number, units in enumerate(plan.units))
    flush = (False, True, True, True, True, True, True, False)
    kept = [
        index
        for index in range(len(headers))
        if index in {0, 2} or any(row[index] not in {"", _NOTHING} for row in rows)
    ]
    return Cells(
        tuple(headers[index] for index in kept),
        tuple(tuple(row[index] for index in kept) for row in rows),
        tuple(flush[index] for index in kept),
    )


def _row(plan: SamplePlan, units: PlannedUnits, *, is_first: bool) -> tuple[str, ...]:
    """The cells of a row; what is the same in all of them stands in the first."""
    counts = (_count(units.now), _count(units.needed), _count(units.needed_cautious))
    factor = _NOTHING if plan.factor is None else wording.times(plan.factor)
    now = _NOTHING if plan.now is None else wording.amount(plan.now)
    shared = (factor, now, wording.amount(plan.wanted)) if is_first else ("", "", "")
    return (units.unit, *counts, *shared, units.basis)


def _count(number: int | None) -> str:
    return _NOTHING if number is None else f"{number:,}"


def _text(plans: Plans, width: int | None) -> str:
    return plain.text_of(blocks_of(plans), width or plain.WIDTH_OF_PIPES)


def _json(plans: Plans, _width: int | None) -> str:
    return f"{json.dumps(plans.to_dict(), ensure_ascii=False, default=str, indent=2)}\n"


_WRITERS: dict[str, Callable[[Plans, int | None], str]] = {
    "text": _text,
    "markdown": lambda plans, _width: markdown.text_of(blocks_of(plans)),
    "latex": lambda plans, _width: latex.text_of(blocks_of(plans)),
    "csv": lambda plans, _width: plans.table.write_csv(),
    "json": _json,
}
FORMATS = tuple(_WRITERS)
