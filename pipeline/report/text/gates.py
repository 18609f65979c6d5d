"""What the gates of a run found, for people: failures first, then what passed; the rest is among the warnings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...records import dataclass
from ...runs.gates.failing import is_failure
from ..words import counted
from .blocks import Items

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from .blocks import Block

    Row = Mapping[str, Any]

MOST_GROUPS = 10  # of one gate that are told one by one


@dataclass(frozen=True)
class GateSummary:
    """The gates of a run in words.

    Attributes:
        failed: What failed and makes the run exit with 3.
        passed: What passed.
        headline: How many gates there are, and how they went.
    """

    failed: tuple[str, ...]
    passed: tuple[str, ...]
    headline: str


def summary_of_gates(rows: Sequence[Row]) -> GateSummary | None:
    """Return what there is to say of rows of the table `gates`; None without any."""
    if not rows:
        return None
    by_gate: dict[str, list[Row]] = {}
    for row in rows:
        by_gate.setdefault(row["gate"], []).append(row)
    failed = {gate: [row for row in of_gate if is_failure(row)] for gate, of_gate in by_gate.items()}
    passed = {gate: [row for row in of_gate if row["outcome"] == "passed"] for gate, of_gate in by_gate.items()}
    n_failed, n_passed = sum(map(bool, failed.values())), sum(map(_all_passed, by_gate.values()))
    numbers = {"failed": n_failed, "passed": n_passed, "with warnings": len(by_gate) - n_failed - n_passed}
    outcomes = ", ".join(f"{number:,} {word}" for word, number in numbers.items() if number)
    return GateSummary(
        failed=tuple(_lines(failed, by_gate)),
        passed=tuple(_lines(passed, by_gate)),
        headline=f"{counted(len(by_gate), 'gate')}: {outcomes}",
    )


def blocks_of_gates(rows: Sequence[Row], stages: Collection[str] | None = None) -> Iterator[Block]:
    """Return what there is to say of rows of the table `gates`, failures first.

    Args:
        rows: The rows.
        stages: The stages that are wanted; None: all.
    """
    summary = summary_of_gates([row for row in rows if stages is None or row["stage"] in stages])
    if summary is not None:
        yield Items(summary.headline, summary.failed, tone="failure" if summary.failed else "plain")
        if summary.passed:
            yield Items("Passed:", summary.passed)


def _all_passed(rows: Sequence[Row]) -> bool:
    return all(row["outcome"] == "passed" for row in rows)


def _lines(chosen: Mapping[str, Sequence[Row]], by_gate: Mapping[str, Sequence[Row]]) -> Iterator[str]:
    """Yield a line for each row, and one for all those of a gate that are too many."""
    for gate, rows in chosen.items():
        shown = rows if len(rows) <= MOST_GROUPS else rows[: MOST_GROUPS // 2 if is_failure(rows[0]) else 0]
        yield from (f"{gate}: {row['sentence']}" for row in shown)
        if len(shown) < len(rows):
            word = "fail" if is_failure(rows[0]) else "pass"
            yield f"{gate}: {len(rows):,} of {len(by_gate[gate]):,} groups {word}; the table gates has all"
