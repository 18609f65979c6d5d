"""Whether what was counted can be what was meant: unused inputs, keys that do not meet, scales that differ."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from ..errors import DataError
from ..queries.load import statement
from ..tables.sweep import THRESHOLD
from ..visible_text import rows_in_words, with_edges
from .accounting import USED, WHERE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import sqlglot.expressions as exp

    from ..engines.engine import Engine
    from ..sources.keys import KeyMatch
    from .accounting import InputAccount
    from .options import Options
    from .plan import Plan

HALF, NEARLY_ALL = 0.5, 0.99
_REMEDIES = {
    "unlisted": "Both inputs must have the same keys, written the same way.",
    "unjudged": "Both inputs must have the same keys, written the same way.",
    "outside": "Check the unit and the sign of the lag, and the window.",
    "incomplete": "The articles must cover the window of some events: give more of them, or a shorter window.",
    "null": "Check which column is mapped, and that it has values.",
    "nan": "Check which column is mapped, and that it has values.",
    "infinite": "Check which column is mapped, and that it has values.",
}


def implausible(engine: Engine, options: Options, plan: Plan, accounts: Sequence[InputAccount]) -> Iterator[str]:
    """What must be said before anything else: inputs of which at least half of the rows are left out, or match nothing.

    Args:
        engine: Where the relations of the plan are defined.
        options: What the parameters of the stage say of counting.
        plan: What was counted.
        accounts: What became of the rows of every input.

    Raises:
        DataError: an input has rows, and none is used; unless that is allowed.
    """
    for account in accounts:
        left_out = {
            status: n_rows
            for status, n_rows in sorted(account.rows_by_status.items(), key=lambda item: (-item[1], item[0]))
            if status not in {USED, WHERE} and n_rows
        }
        lost = sum(left_out.values()) - (0 if not plan.counts_missed else _missed(left_out))
        if not lost or lost < HALF * account.rows_kept:
            continue
        reasons = ", ".join(f"{status.replace('_', ' ')} {n_rows:,}" for status, n_rows in left_out.items())
        words = f"input {account.name}: {lost:,} of {rows_in_words(account.rows_kept)} left out: {reasons}"
        words += _example(engine, plan, account.name, next(iter(left_out)))
        remedy = _REMEDIES.get(next(iter(left_out)).partition("_")[0], "The view inputs has every reason.")
        if lost == account.rows_kept and not options.allow_empty:
            remedy = plan.remedies.get(next(iter(left_out)), remedy)
            raise DataError(words, remedy=f"{remedy} allow_empty = true publishes results without them.")
        yield f"{words}. {remedy}"
    yield from _unmatched(engine, plan)


def _missed(rows_by_status: Mapping[str, int]) -> int:
    return sum(n_rows for status, n_rows in rows_by_status.items() if status.endswith("_score"))


def _example(engine: Engine, plan: Plan, name: str, status: str) -> str:
    """A key of either input, where rows are left out because an input lacks theirs."""
    match = next(
        (each for each in plan.key_matches if each.source.name == name and each.unmatched_status == status), None
    )
    return "" if match is None else f" ({_keys(match, engine.fetch(_query(match)).row(0, named=True))})"


def _query(match: KeyMatch) -> exp.Query:
    relations = {"input_read": f"{match.source.name}_read", "other_read": f"{match.other.name}_read"}
    return statement("accounting/unmatched_keys", relations=relations, columns={"key": match.key})


def _keys(match: KeyMatch, row: Mapping[str, object]) -> str:
    key = f"{match.source.source_name(match.key)} = {with_edges(row['unmatched_example'])}"
    example = f"{match.source.name} has for example {key}"
    if row["other_example"] is None:
        return f"{example}, {match.other.name} has none"
    return (
        f"{example}, {match.other.name} has {match.other.source_name(match.key)} = {with_edges(row['other_example'])}"
    )


def _unmatched(engine: Engine, plan: Plan) -> Iterator[str]:
    """Inputs that count although not one of their keys is in the other input."""
    for match in plan.key_matches:
        if match.unmatched_status is not None:
            continue
        row = engine.fetch(_query(match)).row(0, named=True)
        if row["n_rows"] and row["n_unmatched"] == row["n_rows"]:
            yield (
                f"no {match.key} of input {match.source.name} is in input {match.other.name} ({_keys(match, row)}): "
                "do they belong together?"
            )


def scales(options: Options, plan: Plan, counts: pl.DataFrame) -> Iterator[str]:
    """Thresholds that lie above all scores, or below nearly all of them: a percentage beside a share has small values.

    Args:
        options: What the parameters of the stage say of counting.
        plan: What was counted.
        counts: The count table.
    """
    values = options.threshold_values
    if values is None or THRESHOLD not in counts.columns:
        return
    rows = counts.with_columns(pl.sum_horizontal(plan.used).alias("rows")).filter(pl.col("rows") > 0)
    retrieved = rows[THRESHOLD].drop_nulls()
    if not rows.is_empty() and retrieved.is_empty():
        reach = _reach(plan)
        yield f"no score reaches the lowest threshold, {values[0]:g}{reach}: are scores and thresholds on one scale?"
    elif len(values) > 1 and not rows.is_empty():
        highest = rows.filter(pl.col(THRESHOLD) == values[-1])
        share = float(highest["rows"].cast(pl.Float64).sum()) / float(rows["rows"].cast(pl.Float64).sum())
        if share >= NEARLY_ALL:
            is_all = highest.height == rows.height
            most = "every score reaches" if is_all else f"{math.floor(1000 * share) / 10:.1f}% of the scores reach"
            reach = _reach(plan)
            yield f"{most} the highest threshold, {values[-1]:g}{reach}: are scores and thresholds on one scale?"


def _reach(plan: Plan) -> str:
    """Where the scores lie according to the footers, which are read for a warning only."""
    span = plan.sources[0].span("score")
    return "" if span is None else f" (scores reach from {span[0]:g} to {span[1]:g})"
