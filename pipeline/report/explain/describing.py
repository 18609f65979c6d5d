"""What is said of a number, as blocks: its value, definition, inputs and parameters, and the rows behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..text.blocks import Block, Heading, Items, Paragraph, cells_of
from ..text.summary import time_of
from ..words import setting
from .formulas import figure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .evidence import ShownSection
    from .explaining import Explanation
    from .profiles import Compared, Effect


def blocks_of(explanation: Explanation, *, brief: bool = False) -> Iterator[Block]:
    """Return an explanation as blocks under headings, without its SQL; brief: the number and the rows behind it."""
    for number, facts in enumerate(facts_of(explanation, brief=brief)):
        yield Heading(facts.title, 1 if number == 0 else 2)
        yield Items("", facts.items)
    for section in explanation.sections:
        yield Heading(title_of(section), 2)
        yield Paragraph(section.absent or section.sentence)
        if not section.rows.is_empty():
            yield cells_of(section.rows, cell_text)


def facts_of(explanation: Explanation, *, brief: bool = False) -> Iterator[Items]:
    """Return what is said before the rows, one list for each topic; brief: the number alone."""
    yield _number(explanation)
    if brief:
        return
    if explanation.warnings:
        yield Items("Warnings of the run", explanation.warnings)
    definition = f"{explanation.metric}: {explanation.meaning}"
    yield Items("Definition", (definition, *(step.text for step in explanation.steps)))
    if explanation.compared is not None:
        yield _beside(explanation.compared)
    if explanation.interval:
        yield Items("Interval", (explanation.interval,))
    bindings = (f"{name} reads {fields}" for name, fields in explanation.bindings.items())
    yield Items("Inputs", (*explanation.inputs, *bindings))
    yield Items("Parameters", tuple(f"{key} = {setting(value)}" for key, value in explanation.parameters.items()))


def _number(explanation: Explanation) -> Items:
    whose = f"group {explanation.group}" if explanation.group != "all" else "all groups together"
    at = "" if explanation.threshold is None else f" at {explanation.threshold:g}"
    value = f"{explanation.metric} = {figure(explanation.value)}"
    if explanation.lower is not None and explanation.upper is not None:
        value += f" ({figure(explanation.lower)} to {figure(explanation.upper)})"
    undefined = (explanation.undefined,) if explanation.undefined else ()
    run = (f"run {explanation.run}, published {time_of(explanation.published_at)}",) if explanation.run else ()
    title = f"{explanation.stage}: {explanation.metric}{at}, {whose}"
    return Items(title, (value, *undefined, *explanation.notes, *run))


def _beside(compared: Compared) -> Items:
    """The number of a tool, with an item for every convention."""
    title = f"Compared with {compared.tool}: {compared.name}"
    if compared.refused:
        return Items(title, (f"its number cannot be computed: {compared.refused}",))
    same = compared.ours == compared.theirs
    values = f"{figure(compared.ours)} here, {figure(compared.theirs)} there{': equal' if same else ''}"
    return Items(title, (f"{values} ({compared.exactly})", *map(_of_effect, compared.effects)))


def _of_effect(effect: Effect) -> str:
    change = effect.words or (f"{effect.effect:+.6g}" if effect.effect is not None else "undefined")
    return f"{effect.topic}: here {effect.ours}; there {effect.tool}: {change}"


def title_of(section: ShownSection) -> str:
    """Return the title of a section with how many rows there are, and how many are shown."""
    if section.absent:
        return section.title
    shown = section.rows.height
    number = f"{section.n_rows:,}" if shown == section.n_rows else f"{shown:,} of {section.n_rows:,}"
    return f"{section.title} ({number})"


def cell_text(value: object) -> str:
    """Return a value of a row as text; whole numbers are as they are, as many of them are ids."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else figure(value)
