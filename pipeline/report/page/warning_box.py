"""The warnings of all stages, above every number: each in a line that opens, the worst first, many folded."""

from __future__ import annotations

import re
from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from ...runs.stage_results import texts_once
from ..text.summary import notes_in_words
from ..words import counted
from .markup import Markup, element, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .content import StageContent

SHOWN = 3
LONGEST_LEAD = 110
_LEAD = re.compile(r"(?:input [^:]+: )?.*?: ")


def warning_box(contents: list[StageContent], absent: Mapping[str, str]) -> Markup:
    """Make the box: the first warning of every stage comes before the second of any, as stages begin with the worst.

    Args:
        contents: The stages.
        absent: A sentence about every stage that has no tables, by name: these come before all others.
    """
    warned = [[(content, warning) for warning in content.published.warnings] for content in contents]
    ordered = [pair for pair in chain.from_iterable(zip_longest(*warned)) if pair is not None]
    if not ordered and not absent:
        return element("p", "No warnings.", class_="calm")
    several = len(contents) > 1
    entries = [element("li", element("strong", f"{name}:"), f" {sentence}") for name, sentence in absent.items()]
    entries += [_entry(content, warning, several=several) for content, warning in ordered]
    folded = None
    if len(entries) > SHOWN:
        summary = element("summary", f"{len(entries) - SHOWN:,} more")
        folded = element("details", summary, element("ul", *entries[SHOWN:]))
    heading = element("h2", f"{counted(len(entries), 'warning')} before you use these numbers")
    return element("div", heading, element("ul", *entries[:SHOWN]), folded, class_="warnings", role="note")


def notes_box(contents: list[StageContent]) -> Markup | None:
    """Make the folded list of what changes no decision; None without any."""
    notes = texts_once({content.published.name: content.published.notes for content in contents})
    if not notes:
        return None
    listed = element("ul", *(element("li", text) for text in notes))
    return element("details", element("summary", notes_in_words(notes)), listed, class_="notes")


def _entry(content: StageContent, warning: str, *, several: bool) -> Markup:
    """One warning: what is wrong, and below it, once opened, what follows and what to do."""
    lead, consequence = _parted(warning)
    link = joined(element("a", content.published.name, href=f"#{content.anchor}"), ": ") if several else None
    if not consequence:
        return element("li", link, lead)
    opened = element("details", element("summary", element("strong", lead)), consequence, class_="warning", open=True)
    return element("li", link, opened)


def _parted(warning: str) -> tuple[str, str]:
    """What is wrong, in few words, and the rest; a warning whose first words are many is cut after some of them."""
    match = _LEAD.match(warning)
    lead = match[0] if match and match[0].count("(") == match[0].count(")") else ""
    if 0 < len(lead) <= LONGEST_LEAD:
        return lead.rstrip(), warning[len(lead) :]
    if len(warning) <= LONGEST_LEAD:
        return warning, ""
    cut = warning[:LONGEST_LEAD].rsplit(" ", 1)[0]
    return f"{cut} …", f"… {warning[len(cut) :].lstrip()}"
