"""Faults that only a scan shows, as queries whose rows are the fault; the same for every stage."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.dialect import column, double
from pipeline.sources import rows
from pipeline.stages.plan import Check

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.sources.source import Source

Faults = list[dict[str, object]]


def missing_check(source: Source, name: str) -> Check:
    """A required column that is NULL or not finite."""

    def explain(faults: Faults) -> tuple[str, str]:
        count = faults[0]["n_rows"]
        return (
            f"input {source.name}: column {source.theirs(name)!r} is {missing_words(source, name)} in {count:,} rows",
            "It is required in every row: fill it in, or leave the rows out with where.",
        )

    return Check(rows.count_where(f"{source.name}_read", rows.is_missing(name)), explain)


def missing_words(source: Source, name: str) -> str:
    """What a required column is where it is NULL for us."""
    field = source.contract.field(name)
    return "NULL, or neither 0 nor 1," if field is not None and field.kind == "boolean" else "NULL or not finite"


def negative_check(source: Source, name: str) -> Check:
    """A count below zero."""

    def explain(faults: Faults) -> tuple[str, str]:
        return (
            f"input {source.name}: column {source.theirs(name)!r} is negative in {faults[0]['n_rows']:,} rows",
            "It is a number of rows or pairs, so it cannot be below 0.",
        )

    negative = exp.LT(this=column(name), expression=exp.Literal.number(0))
    return Check(rows.count_where(f"{source.name}_read", negative), explain)


def outside_check(source: Source, name: str, low: float, high: float) -> Check:
    """A number below or above its range."""

    def explain(faults: Faults) -> tuple[str, str]:
        where = f"input {source.name}: column {source.theirs(name)!r}"
        message = f"{where} is outside {low:g} to {high:g} in {faults[0]['n_rows']:,} rows"
        return message, "Correct these rows, or leave them out with where."

    below = exp.LT(this=column(name), expression=double(low))
    above = exp.GT(this=column(name), expression=double(high))
    return Check(rows.count_where(f"{source.name}_read", exp.or_(below, above)), explain)


def duplicate_check(source: Source, keys: Sequence[str], *, remedy: str) -> Check:
    """Rows that repeat a key; the message names two of them."""

    def explain(faults: Faults) -> tuple[str, str]:
        examples = "; ".join(
            ", ".join(f"{source.theirs(key)} = {fault[key]}" for key in keys) + f" ({fault['n_rows']} rows)"
            for fault in faults
        )
        return f"input {source.name}: {' and '.join(source.theirs(key) for key in keys)} repeat: {examples}", remedy

    return Check(rows.repeated_keys(f"{source.name}_read", keys), explain)


def one_cluster_check(source: Source, relation: str, key: str, cluster: str) -> Check:
    """A unit that lies in two clusters; its rows would count twice."""

    def explain(faults: Faults) -> tuple[str, str]:
        name, fault = source.theirs(key), faults[0]
        message = f"input {source.name}: {name} = {fault[key]} lies in {fault['n_rows']} values of cluster {cluster!r}"
        return message, f"Every {name} must lie in one cluster: choose a column that groups whole units."

    return Check(rows.repeated_keys(relation, (key,), everything=True), explain)
