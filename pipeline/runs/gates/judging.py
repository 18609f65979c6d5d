"""One gate judged: the numbers of its groups, a test of each, p-values adjusted over all of them, outcomes."""

from __future__ import annotations

import math
from dataclasses import field, replace
from itertools import islice
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from ...metrics.comparison.one_sided import (
    Estimates,
    p_values_above,
    p_values_below,
    p_values_of_change,
    p_values_of_drop,
    p_values_of_rise,
)
from ...metrics.comparison.significance import adjust_p_values
from ...records import dataclass
from ...tables.groupings import written_groups
from .rows import group_of
from .settings import OF_DIFFERENCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ...metrics.uncertainty.qualities import Quality
    from .rows import Group, JudgedRow
    from .settings import Condition, Gate

Outcome: TypeAlias = Literal["passed", "failed", "undecided"]
DEFAULT_LEVEL = 0.95  # of intervals, where a run does not tell
UNFOUNDED: Quality = "assumption_failed"  # limits that cannot show that a number is good enough
WITHOUT_ASSUMPTION = "the data contradict the assumption that its interval rests on (assumption_failed)"
_TESTS = {"min": p_values_below, "max": p_values_above}
_TESTS_OF_DIFFERENCES = {"max_drop": p_values_of_drop, "max_rise": p_values_of_rise, "max_change": p_values_of_change}


@dataclass(frozen=True)
class Numbers:
    """The rows that a gate judges, or compares with.

    Attributes:
        rows: By group.
        missing: Why there is none; empty if there are.
        confidence: Level of their intervals.
        run: The run that they come from, for a baseline that is an earlier run; else empty.
        words: What they are called in sentences, for a baseline.
    """

    rows: Mapping[Group, JudgedRow] = field(default_factory=dict)
    missing: str = ""
    confidence: float = DEFAULT_LEVEL
    run: str = ""
    words: str = ""


@dataclass(frozen=True)
class Verdict:
    """What is said of one limit of a gate in one group.

    Attributes:
        gate: The gate.
        condition: The limit.
        row: The number; None where the group, or the number, is not there.
        before: The number of the baseline; None without one.
        outcome: `undecided` where the data cannot tell.
        reason: Why it is undecided, or failed without a test; else empty.
        p_value: One-sided, two-sided for `max_change`; nan without a test.
        p_adjusted: The same adjusted by Holm over all tests of the gate.
        baseline: The baseline.
    """

    gate: Gate
    condition: Condition
    row: JudgedRow | None
    before: JudgedRow | None
    outcome: Outcome
    reason: str = ""
    p_value: float = math.nan
    p_adjusted: float = math.nan
    baseline: Numbers = field(default_factory=Numbers)


def judge(gate: Gate, now: Numbers, baseline: Numbers) -> list[Verdict]:
    """Judge a gate.

    Args:
        gate: The gate.
        now: The numbers of the run.
        baseline: What they are compared with; empty for a gate that compares nothing.

    Returns:
        A verdict for each of its limits and groups, in the order of the tables.
    """
    wanted = _wanted(gate, now)
    if not wanted:
        return [_absent(gate, condition, now) for condition in gate.conditions]
    verdicts = [verdict for condition in gate.conditions for verdict in _tried(gate, condition, wanted, now, baseline)]
    adjusted = adjust_p_values([verdict.p_value for verdict in verdicts], "holm")
    return [
        *(_decided(verdict, float(p_adjusted)) for verdict, p_adjusted in zip(verdicts, adjusted, strict=True)),
        *_gone(gate, now, baseline),
    ]


def _wanted(gate: Gate, now: Numbers) -> list[Group]:
    if gate.by is not None:
        return list(now.rows)
    texts = {name: str(value) for name, value in group_of(gate.group or {})}
    groups = (group_of(written) for written in written_groups(texts))
    return list(islice((group for group in groups if group in now.rows), 1))


def _absent(gate: Gate, condition: Condition, now: Numbers) -> Verdict:
    """Return the verdict on numbers that are not there: a group that was named and has no row fails."""
    if now.missing:
        return Verdict(gate, condition, None, None, "undecided", now.missing)
    return Verdict(gate, condition, None, None, "failed", "the group has no rows" if gate.group else "it has no row")


def _gone(gate: Gate, now: Numbers, baseline: Numbers) -> Iterator[Verdict]:
    """Yield a verdict for each group that the baseline has, and the run has not."""
    conditions = [condition for condition in gate.conditions if condition in OF_DIFFERENCES]
    if gate.by is not None and conditions:
        for group, before in baseline.rows.items():
            if group not in now.rows:
                reason = f"the group has no rows; it had in {baseline.words}"
                yield Verdict(gate, conditions[0], None, before, "undecided", reason, baseline=baseline)


def _tried(
    gate: Gate, condition: Condition, groups: Sequence[Group], now: Numbers, baseline: Numbers
) -> Iterator[Verdict]:
    """Yield a verdict for every group, `passed` until its p-value is adjusted and found small."""
    rows = [now.rows[group] for group in groups]
    if condition == "min_rows":
        yield from (_of_size(gate, row) for row in rows)
        return
    estimates = _estimates(rows, now.confidence)
    if condition not in OF_DIFFERENCES:
        p_values = _TESTS[condition](estimates, gate.limit(condition))
        for row, p_value in zip(rows, p_values, strict=True):
            yield Verdict(gate, condition, row, None, "passed", p_value=float(p_value))
        return
    earlier = [baseline.rows.get(group) for group in groups]
    before = _estimates(earlier, baseline.confidence)
    p_values = _TESTS_OF_DIFFERENCES[condition](before, estimates, gate.limit(condition))
    for row, of_baseline, p_value in zip(rows, earlier, p_values, strict=True):
        yield Verdict(gate, condition, row, of_baseline, "passed", p_value=float(p_value), baseline=baseline)


def _estimates(rows: Sequence[JudgedRow | None], confidence: float) -> Estimates:
    columns = [
        (row.value, row.lower, row.upper, row.degrees) if row is not None else (None, None, None, math.inf)
        for row in rows
    ]
    value, lower, upper, degrees = (np.array(column, dtype=np.float64) for column in zip(*columns, strict=True))
    return Estimates(value, lower, upper, degrees, confidence)


def _of_size(gate: Gate, row: JudgedRow) -> Verdict:
    if row.n_rows is None:
        return Verdict(gate, "min_rows", row, None, "undecided", "its table does not tell the number of rows")
    return Verdict(gate, "min_rows", row, None, "failed" if row.n_rows < gate.limit("min_rows") else "passed")


def _decided(verdict: Verdict, p_adjusted: float) -> Verdict:
    """Return a verdict with its adjusted p-value: it fails where that is small, and is undecided where it is nan."""
    row = verdict.row
    if verdict.gate.threshold is not None and row is not None and row.threshold is None:
        return replace(verdict, outcome="failed", reason=row.missing)  # as where the group has no rows
    if verdict.condition == "min_rows":
        return verdict
    if math.isnan(p_adjusted):
        return replace(verdict, outcome="undecided", reason=_why_undecided(verdict))
    if p_adjusted <= 1 - verdict.gate.level:
        return replace(verdict, p_adjusted=p_adjusted, outcome="failed")
    if any(number is not None and number.quality == UNFOUNDED for number in (row, verdict.before)):
        return replace(verdict, p_adjusted=p_adjusted, outcome="undecided", reason=WITHOUT_ASSUMPTION)
    return replace(verdict, p_adjusted=p_adjusted)


def _why_undecided(verdict: Verdict) -> str:
    numbers = [(verdict.row, "")]
    if verdict.condition in OF_DIFFERENCES:
        if verdict.baseline.missing:
            return verdict.baseline.missing
        if verdict.before is None:
            return f"{verdict.baseline.words} has no such group"
        numbers.append((verdict.before, f" in {verdict.baseline.words}"))
    for row, words in numbers:
        if row is None or row.value is None:
            return f"it is not defined{words}{_in_brackets(row)}"
        if row.lower is None or row.upper is None:
            return f"it has no interval{words}{_in_brackets(row)}"
    return "it has no p-value"


def _in_brackets(row: JudgedRow | None) -> str:
    return f" ({row.missing})" if row is not None and row.missing else ""
