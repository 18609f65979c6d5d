"""What became of every row of every input: used, or left out for a reason; and rows that must not be left out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.dialect import column
from pipeline.errors import DataError, ThresherError
from pipeline.fault_places import first_place
from pipeline.queries import expand, load
from pipeline.stages.checks import missing_words, rows_in_words

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.config import ConfiguredStage
    from pipeline.engines.engine import Engine
    from pipeline.sources.source import Source
    from pipeline.stages.plan import Plan

USED = "used"
FAULTS = {
    "null_score": "NULL",
    "nan_score": "NaN",
    "infinite_score": "infinite",
}


@dataclass(frozen=True)
class InputAccount:
    """What became of the rows of one input.

    Attributes:
        name: The input.
        n_files: Its files.
        rows_in: Rows in them.
        fates: Rows by fate: `used`, or the reason why they were left out.
    """

    name: str
    n_files: int
    rows_in: int
    fates: dict[str, int]


def account(engine: Engine, configured: ConfiguredStage, plan: Plan, used: int) -> tuple[InputAccount, ...]:
    """What became of every row of every input; the row input is asked again only if rows were left out."""
    row, *others = plan.sources
    fates = {USED: used}
    if used < row.rows:
        found = engine.fetch(expand(load(plan.accounting.name), ()), plan.accounting.params)
        fates |= dict(zip(found["fate"].to_list(), found["n_rows"].to_list(), strict=True))
        _refuse(engine, configured, row, fates)
        repeated = fates.get(USED, 0) - used
        fates |= {USED: used} | ({"duplicate": repeated} if repeated else {})
    accounts = [InputAccount(row.name, len(row.files), row.rows, fates)]
    accounts += [_account_other(engine, source, plan) for source in others]
    for each in accounts:
        if sum(each.fates.values()) != each.rows_in:
            known = sum(each.fates.values())
            message = f"input {each.name}: {each.rows_in:,} rows were read, but {known:,} are accounted for"
            raise ThresherError(message, remedy="This is a bug of thresher, or a file changed meanwhile; run again.")
    return tuple(accounts)


def _account_other(engine: Engine, source: Source, plan: Plan) -> InputAccount:
    """Rows of an input that rows look up: left out by `where`, or as units that do not take part."""
    query = plan.other_accounting.get(source.name)
    if query is not None:
        found = engine.fetch(expand(load(query.name), ()), query.params)
        known = dict(zip(found["fate"].to_list(), found["n_rows"].to_list(), strict=True))
        return InputAccount(source.name, len(source.files), source.rows, {USED: 0} | known)
    total = exp.alias_(exp.cast(exp.Count(this=exp.Star()), "BIGINT"), "n_rows")
    rows = engine.fetch(exp.select(total).from_(exp.to_table(f"{source.name}_read")).where(column("kept"))).item()
    used = rows
    if source.name == plan.units:
        used = engine.fetch(exp.select(total.copy()).from_(exp.to_table(source.name)).where(column("complete"))).item()
    fates = {USED: used, "incomplete_window": rows - used, "where": source.rows - rows}
    kept = {key: n for key, n in fates.items() if n or key == USED}
    return InputAccount(source.name, len(source.files), source.rows, kept)


def _refuse(engine: Engine, configured: ConfiguredStage, row: Source, fates: Mapping[str, int]) -> None:
    """Stop when rows were left out that may not be.

    Raises:
        DataError: names the file and its first such row.
    """
    for fate, words in FAULTS.items():
        if configured.params.invalid_scores == "error" and fates.get(fate):
            problem: exp.Expr = exp.EQ(this=column("score_state"), expression=exp.Literal.string(fate))
            remedy = 'Set invalid_scores = "drop" to leave them out.'
            message = f"input {row.name}: {fates[fate]:,} scores are {words}{first_place(engine, row, problem)}"
            raise DataError(message, remedy=remedy)
    for fate, n_rows in fates.items():
        if fate.startswith("null_") and fate not in FAULTS:
            names = _named(row, fate)
            words = (
                f"{' or '.join(map(row.theirs, names))} is {missing_words(row, names[0])} in {rows_in_words(n_rows)}"
            )
            problem = exp.or_(*(exp.Is(this=column(name), expression=exp.null()) for name in names))
            message = f"input {row.name}: {words}{first_place(engine, row, problem)}"
            raise DataError(message, remedy="It is required in every row: fill it in, or use where.")


def _named(row: Source, fate: str) -> list[str]:
    """Columns that a fate `null_<column>` is about: lag_hours or lag_days for `null_lag`, else the two times."""
    stem, fields = fate.removeprefix("null_"), row.contract.fields
    found = [field.name for field in fields if field.name.startswith(stem) and row.has(field.name)]
    return found[:1] or [field.name for field in fields if field.kind == "instant" and row.has(field.name)]
