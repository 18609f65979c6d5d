"""The warnings of all stages, above every number: three are shown, the others folded."""

from __future__ import annotations

from itertools import chain, zip_longest
from typing import TYPE_CHECKING

from ..words import counted
from .markup import Markup, element, joined

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .content import StageContent

SHOWN = 3
LONGEST_LEAD = 110


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


def _entry(content: StageContent, warning: str, *, several: bool) -> Markup:
    lead, colon, consequence = warning.partition(": ")
    is_short = bool(colon) and len(lead) <= LONGEST_LEAD and lead.count("(") == lead.count(")")
    words = joined(element("strong", f"{lead}:"), f" {consequence}") if is_short else joined(warning)
    link = joined(element("a", content.published.name, href=f"#{content.anchor}"), ": ") if several else None
    return element("li", link, words)
