"""The gates of a run on its page: failures above all else, what passed folded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..text.gates import summary_of_gates
from .markup import Markup, element
from .warning_box import SHOWN

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def gate_box(rows: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Make the box from the rows of the table `gates`; None without any."""
    summary = summary_of_gates(rows)
    if summary is None:
        return None
    passed = element("ul", *(element("li", text) for text in summary.passed))
    if not summary.failed:
        return element("div", _folded(summary.headline, passed), class_="gates")
    failures = [element("li", text) for text in summary.failed]
    n_more = len(failures) - SHOWN
    more = _folded(f"{n_more:,} more", element("ul", *failures[SHOWN:])) if n_more > 0 else None
    folded = _folded("Passed", passed) if summary.passed else None
    shown = element("ul", *failures[:SHOWN])
    return element("div", element("h2", summary.headline), shown, more, folded, class_="failed", role="alert")


def _folded(title: str, content: Markup) -> Markup:
    return element("details", element("summary", title), content)
