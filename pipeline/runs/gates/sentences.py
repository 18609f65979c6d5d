"""What gates found, in sentences for people."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...metrics.uncertainty.interval_quality import DOUBTFUL
from ...tables.groupings import TOTAL, values_text
from ...visible_text import cleaned, percent, rows_in_words
from .settings import OF_DIFFERENCES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .judging import JudgedRow, Verdict
    from .settings import Gate

MOST_SENTENCES = 5  # of one gate among the warnings
_SMALLEST_P = 0.0001
_VERBS = {"max_drop": "fell", "max_rise": "rose", "max_change": "changed"}
_NOUNS = {"max_drop": "fall", "max_rise": "rise", "max_change": "change"}


def sentence(verdict: Verdict) -> str:
    """Return what a verdict says, with the number that it is about."""
    return cleaned(f"{_subject(verdict)} {_predicate(verdict)}{_doubt(verdict)}", layout="")


def sentences_of_warnings(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """Yield what is to be known of one gate before its numbers are used: what it could not judge, or only warns of.

    Groups that share a reason are told together.
    """
    gate = f"gate {verdicts[0].gate.name}" if verdicts else ""
    failed = [verdict for verdict in verdicts if verdict.outcome == "failed" and verdict.gate.on_fail == "warn"]
    for verdict in failed[:MOST_SENTENCES]:
        yield f"{gate} failed: {sentence(verdict)}"
    if len(failed) > MOST_SENTENCES:
        yield f"{gate} failed in {len(failed) - MOST_SENTENCES:,} more groups: see the table gates"
    by_reason: dict[str, list[Verdict]] = {}
    for verdict in verdicts:
        if verdict.outcome == "undecided":
            by_reason.setdefault(verdict.reason, []).append(verdict)
    for reason, undecided in by_reason.items():
        if len(undecided) == 1:
            yield f"gate {undecided[0].gate.name} is undecided: {sentence(undecided[0])}"
        else:
            yield f"{gate} is undecided in {len(undecided):,} groups: {cleaned(reason, layout='')}"


def _subject(verdict: Verdict) -> str:
    gate, row = verdict.gate, verdict.row or verdict.before
    words = [f"{gate.metric or 'rows'} of {gate.stage}"]
    if row is not None and gate.threshold is not None and row.threshold is not None:
        words.append(f"at the threshold {row.threshold:.4g}")
    elif gate.criterion is not None or (row is not None and row.criterion is not None):
        words.append(f"at {gate.criterion or (row.criterion if row is not None else '')}")
    if group := _group(gate, row):
        words.append(f"for {group}")
    return " ".join(words)


def _group(gate: Gate, row: JudgedRow | None) -> str:
    if row is not None:
        return "" if row.grouping == TOTAL else f"{row.grouping} {row.group_text}"
    return f"{','.join(gate.group)} {values_text(list(gate.group.values()))}" if gate.group else ""


def _predicate(verdict: Verdict) -> str:
    row, condition = verdict.row, verdict.condition
    if verdict.reason:
        verb = "fails" if verdict.outcome == "failed" else "cannot be judged"
        return f"{verb}: {verdict.reason}"
    if row is None:
        return "is missing"
    limit = verdict.gate.limit(condition)
    if condition == "min_rows":
        relation = "fewer than" if verdict.outcome == "failed" else "at least"
        return f"rests on {rows_in_words(round(row.n_rows or 0))}, {relation} {limit:,.0f}"
    if condition in OF_DIFFERENCES:
        return _of_difference(verdict, row, limit)
    return _of_limit(verdict, row, limit)


def _of_limit(verdict: Verdict, row: JudgedRow, limit: float) -> str:
    side, extreme = ("below", "minimum") if verdict.condition == "min" else ("above", "maximum")
    bound = _number(limit, is_share=row.is_share)
    if verdict.outcome == "failed":
        return f"is {_value(row)}, {side} the {extreme} of {bound} ({_p(verdict)})"
    value = row.value or 0.0
    if value < limit if side == "below" else value > limit:
        return f"is {_value(row)}, {side} the {extreme} of {bound}, but not beyond sampling error ({_p(verdict)})"
    return f"is {_value(row)}, {'at least' if side == 'below' else 'at most'} {bound}"


def _of_difference(verdict: Verdict, row: JudgedRow, limit: float) -> str:
    condition, words = verdict.condition, verdict.baseline.words
    points = f"{100 * limit:.4g}"
    unit = "percentage point" if points == "1" else "percentage points"
    allowed = f"{points} {unit}" if row.is_share else f"{limit:.4g}"
    before = f"{_value(verdict.before)} in {words}" if verdict.before is not None else words
    if verdict.outcome == "failed":
        more = f" by more than {allowed}" if limit else ""
        return (
            f"{_VERBS[condition]} from {before} to {_value(row)},{more} beyond sampling error ({_p(verdict)})".replace(
                ", beyond", " beyond"
            )
        )
    more = f" of more than {allowed}" if limit else ""
    return f"is {_value(row)} after {before}: no {_NOUNS[condition]}{more} beyond sampling error ({_p(verdict)})"


def _value(row: JudgedRow) -> str:
    value, lower, upper = row.value, row.lower, row.upper
    is_share = row.is_share
    if value is None or lower is None or upper is None:
        return "undefined" if value is None else _number(value, is_share=is_share)
    if is_share:
        return f"{percent(value)} ({100 * lower:.3g}–{100 * upper:.3g})"
    return f"{value:.4g} ({lower:.4g} to {upper:.4g})"


def _number(value: float, *, is_share: bool) -> str:
    return f"{100 * value:.4g}%" if is_share else f"{value:.4g}"


def _p(verdict: Verdict) -> str:
    p_value = verdict.p_adjusted
    shown = f"< {_SMALLEST_P:.4f}" if p_value < _SMALLEST_P else f"= {p_value:.2g}"
    adjusted = "adjusted p" if verdict.p_adjusted != verdict.p_value else "p"
    return f"{adjusted} {shown}"


def _doubt(verdict: Verdict) -> str:
    marks = [row.quality for row in (verdict.row, verdict.before) if row is not None and row.quality in DOUBTFUL]
    return f"; its interval is doubtful: {marks[0]}" if marks and not verdict.reason else ""
