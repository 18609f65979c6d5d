"""Counts of one stage: run the nodes of its plan, and account for every row."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import polars as pl

from ..errors import Note, together
from ..records import dataclass
from ..tables.schemas import COUNT_TABLE, GROUPING
from .accounting import InputAccount, account, emptiness, kept_rows, refuse_nothing, row_faults, unscored
from .count_tables import CountTables
from .nodes import Phase, Progress
from .plausibility import implausible, scales

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..engines.engine import Engine
    from .options import Options
    from .plan import Plan


@dataclass(frozen=True)
class Counted:
    """The counts of one stage.

    Attributes:
        tables: Count tables by name, each with the columns `grouping`, the `by` columns, `replicate`, `threshold`, its
            own keys and its counts; `counts` is the one that is saved. Beside them frames of rows.
        inputs: What became of the rows of every input.
        alarms: What must be said before all other warnings: rows, keys and scales that cannot be what was meant.
        warnings: What was left out, and what cross-checks of user-supplied counts found; notes among them.
        omitted: Result tables that are not made, with the reason.
        unrequested: Those of them that the config does not ask for, with the key that would.
    """

    tables: dict[str, pl.DataFrame]
    inputs: tuple[InputAccount, ...]
    alarms: tuple[str, ...]
    warnings: tuple[str, ...]
    omitted: dict[str, str]
    unrequested: dict[str, str]


def count(engine: Engine, options: Options, plan: Plan) -> Counted:
    """Run everything that reads data for one stage, except the nodes that need its results.

    Raises:
        DataError: the data break the contract of an input.
        NoInputError: there is nothing to evaluate.
    """
    progress = begin(options, plan)
    run_nodes(engine, options, plan, progress, Phase.RELATIONS, Phase.COUNTS)
    counts = progress.counts[COUNT_TABLE]
    accounts = account(engine, options, plan, _rows_counted(plan, counts))
    refuse_nothing(options, plan, accounts)
    alarms = [*progress.alarms, *implausible(engine, options, plan, accounts)]
    run_nodes(engine, options, plan, progress, Phase.AREAS, Phase.FRAMES)
    omitted = omitted_tables(engine, plan, progress.counts)
    warnings = [*emptiness(accounts), *unscored(engine, options, plan, accounts)]
    warnings += [*progress.warnings, *_omission_warnings(plan, omitted)]
    alarms += scales(options, plan, counts)
    unrequested = {table.table: table.key for table in plan.optional if table.asked is False}
    tables = progress.counts.all() | progress.tables
    return Counted(tables, accounts, tuple(alarms), tuple(warnings), omitted, unrequested)


def begin(options: Options, plan: Plan) -> Progress:
    """Where the nodes of a plan put what comes out, still empty."""
    return Progress(CountTables(options.groupings, [grouped.name for grouped in plan.by]))


def after_results(
    engine: Engine, options: Options, plan: Plan, tables: Mapping[str, pl.DataFrame]
) -> dict[str, pl.DataFrame]:
    """The result tables with those that need the rows once more, which had no row so far."""
    progress = Progress(CountTables((), ()), dict(tables))
    run_nodes(engine, options, plan, progress, Phase.AFTER_RESULTS, Phase.AFTER_RESULTS)
    return progress.tables


def run_nodes(engine: Engine, options: Options, plan: Plan, progress: Progress, first: Phase, last: Phase) -> None:
    """Run the nodes of some phases; what all checks find is said together.

    Raises:
        DataError: checks found faults; rows that must not be left out are then looked for, too.
    """
    for phase, nodes in groupby(plan.nodes, key=lambda node: node.phase):
        if first <= phase <= last:
            for node in nodes:
                node.run(engine, progress)
            if progress.faults:
                raise together([*progress.faults, *row_faults(engine, options, plan, beside_others=True)])


def _rows_counted(plan: Plan, counts: pl.DataFrame) -> int:
    """Rows of the primary input that the counts hold: every grouping has each of them once."""
    if counts.is_empty():
        return 0
    rows = counts.filter(pl.col(GROUPING.name) == counts[GROUPING.name][0]).select(
        pl.sum_horizontal(pl.col(plan.used).sum())
    )
    return int(rows.item())


def omitted_tables(engine: Engine, plan: Plan, counts: CountTables) -> dict[str, str]:
    """The optional tables that are not made, with the reason; rows are counted only where `where` may leave few."""
    omitted = {}
    for table in plan.optional:
        rows = kept_rows(engine, table.sources) if table.is_open else table.rows
        if not table.is_possible or (table.is_open and not table.is_small(rows)):
            omitted[table.table] = table.reason(rows)
        elif (why := table.why_unfit(counts)) is not None:
            omitted[table.table] = why
        elif table.check is not None and (fault_rows := engine.fetch(table.check.query).to_dicts()):
            omitted[table.table] = table.check.explain(fault_rows)[0]
    return omitted


def _omission_warnings(plan: Plan, omitted: Mapping[str, str]) -> list[str]:
    """Notes on tables that could not be made; of those that the config rules out itself nothing is said."""
    told = {table.table for table in plan.optional if table.asked == "auto" and table.told}
    return [Note(f"table {name} is not made: {reason}") for name, reason in omitted.items() if name in told]
