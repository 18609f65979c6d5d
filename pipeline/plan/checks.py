"""Faults that only a scan shows, as queries whose rows are the fault; the same for every stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.plan.nodes import Check
from pipeline.queries.dialect import column, double
from pipeline.sources.keys import count_where, is_missing, repeated_keys
from pipeline.tables.groupings import users_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.plan.rows import Grouped
    from pipeline.sources.source import Source

Faults = list[dict[str, object]]


def rows_in_words(number: object) -> str:
    """A number of rows for people."""
    return "1 row" if number == 1 else f"{number:,} rows"


def shown_name(source: Source, name: str) -> str:
    """What people call a column of the canonical relation of an input: the name it has in the files."""
    return source.theirs(users_name(name))


def doubtful_groups(sources: Sequence[Source], by: Sequence[Grouped]) -> Iterator[str]:
    """Floating numbers as grouping columns."""
    named = {source.name: source for source in sources}
    for each in by:
        if named[each.source].types(each.column, each.field) == "DOUBLE":
            yield f"grouping column {each.label!r} is a floating number: NaN and infinite values count as NULL"


def rows_check(source: Source, problem: exp.Expr, words: str, remedy: str) -> Check:
    """Kept rows of an input that satisfy a condition; the message says how many, and where the first is.

    Args:
        source: The input.
        problem: A condition on its canonical columns.
        words: What is wrong, for example `column 'weight' is negative`.
        remedy: What the user can do.
    """

    def explain(faults: Faults) -> tuple[str, str]:
        return f"input {source.name}: {words} in {rows_in_words(faults[0]['n_rows'])}", remedy

    query = count_where(f"{source.name}_read", problem)
    return Check(query, explain, source, lambda _: problem.copy())


def missing_check(source: Source, name: str) -> Check:
    """A required column that is NULL or not finite."""
    words = f"column {shown_name(source, name)!r} is {missing_words(source, name)}"
    remedy = "It is required in every row: fill it in, or leave the rows out with where."
    return rows_check(source, is_missing(name), words, remedy)


def missing_words(source: Source, name: str) -> str:
    """What a required column is where it is NULL for us."""
    field = source.contract.field(name)
    return "NULL, or neither 0 nor 1," if field is not None and field.kind == "boolean" else "NULL or not finite"


def negative_check(source: Source, name: str) -> Check:
    """A count below zero."""
    negative = exp.LT(this=column(name), expression=exp.Literal.number(0))
    words = f"column {source.theirs(name)!r} is negative"
    return rows_check(source, negative, words, "It is a number of rows or pairs, so it cannot be below 0.")


def outside_check(source: Source, name: str, low: float, high: float) -> Check:
    """A number below or above its range."""
    below = exp.LT(this=column(name), expression=double(low))
    above = exp.GT(this=column(name), expression=double(high))
    words = f"column {source.theirs(name)!r} is outside {low:g} to {high:g}"
    return rows_check(source, exp.or_(below, above), words, "Correct these rows, or leave them out with where.")


def duplicate_check(source: Source, keys: Sequence[str], *, remedy: str) -> Check:
    """Rows that repeat a key; the message names two of them, how many more there are, and where the first is."""

    def explain(faults: Faults) -> tuple[str, str]:
        examples = "; ".join(
            ", ".join(f"{shown_name(source, key)} = {fault[key]}" for key in keys)
            + f" ({rows_in_words(fault['n_rows'])})"
            for fault in faults
        )
        more = int(str(faults[0]["_n_keys"])) - len(faults)
        others = f"; and {more:,} more" if more else ""
        names = " and ".join(shown_name(source, key) for key in keys)
        verb = "repeats" if len(keys) == 1 else "repeat"
        return f"input {source.name}: {names} {verb}: {examples}{others}", remedy

    query = repeated_keys(f"{source.name}_read", keys)
    return Check(query, explain, source, lambda faults: _with_key(faults[0], keys))


def one_cluster_check(source: Source, relation: str, key: str, cluster: str) -> Check:
    """A unit that lies in two clusters; its rows would count twice."""

    def explain(faults: Faults) -> tuple[str, str]:
        name, fault = source.theirs(key), faults[0]
        lies = f"lies in {fault['n_rows']} values of cluster {users_name(cluster)!r}"
        message = f"input {source.name}: {name} = {fault[key]} {lies}"
        return message, f"Every {name} must lie in one cluster: choose a column that groups whole units."

    query = repeated_keys(relation, (key,), everything=True)
    return Check(query, explain, source, lambda faults: _with_key(faults[0], (key,)))


def _with_key(fault: Mapping[str, object], keys: Sequence[str]) -> exp.Expr:
    """The rows that have the key of a fault; none where a part of it is no number or text, which SQL could not say."""
    if not all(isinstance(fault[key], int | str) for key in keys):
        return exp.false()
    return exp.and_(*(exp.EQ(this=column(key), expression=exp.convert(fault[key])) for key in keys))
