"""The gates of a run on its page: failures above all else, what passed folded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pipeline.report.page.markup import Markup, element
from pipeline.report.text.gates import summary_of_gates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def gate_box(rows: Sequence[Mapping[str, Any]]) -> Markup | None:
    """Make the box from the rows of the table `gates`; None without any."""
    summary = summary_of_gates(rows)
    if summary is None:
        return None
    passed = element("ul", *(element("li", text) for text in summary.passed))
    if not summary.failed:
        return element("details", element("summary", summary.headline), passed, class_="gates")
    failures = element("ul", *(element("li", text) for text in summary.failed))
    folded = element("details", element("summary", "Passed"), passed) if summary.passed else None
    return element("div", element("h2", summary.headline), failures, folded, class_="failed", role="alert")
