"""The account of every row of every input: used, left out for a reason, or an error; and the counts of a stage."""

from __future__ import annotations

import math
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

import polars as pl
import sqlglot.expressions as exp

from ..base.columns import THRESHOLD
from ..base.dialect import column
from ..base.errors import DataError, NoInputError, Note, ThresherError, together
from ..base.records import dataclass
from ..base.schemas import COUNT_TABLE
from ..base.sql_files import statement
from ..base.visible_text import percent, rows_in_words, with_edges
from ..sources.source import SCORE_STATE
from ..sources.types import as_where, in_expression
from .count_tables import CountTables, of_first_grouping
from .nodes import Phase, Progress, doubtful, first_place, missing_words, or_map

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..base.schemas import Grouping
    from ..engines.engine import Engine
    from ..sources.bindings import KeyMatch
    from ..sources.source import Source
    from .counts import Query
    from .plan import Plan


USED, WHERE, NOT_LABELLED, NOT_JUDGED = "used", "where", "not_labelled", "not_judged"
FEW_LOST = 0.01  # of the rows, or the positives, below which what a user told to drop is only noted
STATES = {
    "null_score": "NULL",
    "nan_score": "NaN",
    "infinite_score": "infinite",
}


class Options(Protocol):
    """The parameters of every stage that bear on counting."""

    @property
    def groupings(self) -> tuple[Grouping, ...]:
        """The groupings that results are asked for."""
        ...

    @property
    def threshold_values(self) -> tuple[float, ...] | None:
        """The thresholds in rising order; None: every distinct score is one, or there is none."""
        ...

    @property
    def invalid_scores(self) -> str:
        """The treatment of rows without a valid score: `error`, `drop` or `missed`."""
        ...

    @property
    def allow_empty(self) -> bool:
        """Whether zeros are published where nothing can be evaluated."""
        ...


@dataclass(frozen=True)
class InputAccount:
    """The account of the rows of one input.

    Attributes:
        name: The input.
        n_files: Its files.
        rows_in: Rows in them.
        rows_by_status: Numbers of rows: those `used`, and those left out, by reason.
        files_left_out: Files that were not opened, because `where` holds for no row of their partitions; their rows are
            in no other number.
    """

    name: str
    n_files: int
    rows_in: int
    rows_by_status: dict[str, int]
    files_left_out: int = 0

    @property
    def rows_kept(self) -> int:
        """Rows that `where` keeps."""
        return self.rows_in - self.rows_by_status.get(WHERE, 0)


def account(engine: Engine, options: Options, plan: Plan, used: int) -> tuple[InputAccount, ...]:
    """The account of every row of every input; the primary input is asked again only if rows were left out.

    Args:
        engine: Where the relations of the plan are defined.
        options: What the parameters of the stage say of counting.
        plan: What was counted.
        used: Rows of the primary input that the counts hold.

    Raises:
        DataError: rows were left out that may not be.
    """
    row, *others = plan.sources
    rows_by_status = {USED: used}
    if used < row.rows or plan.counts_missed:
        rows_by_status = _rows_by_status(engine, plan)
        faults = row_faults(engine, options, plan, rows_by_status)
        if faults:
            raise together(faults)
        missed = sum(rows_by_status.get(state, 0) for state in STATES) if plan.counts_missed else 0
        repeated = rows_by_status.get(USED, 0) + missed - used
        rows_by_status |= {USED: used - missed} | ({"duplicate": repeated} if repeated else {})
    accounts = [_account_of(row, rows_by_status)]
    accounts += [_account_other(engine, source, plan) for source in others]
    for input_account in accounts:
        n_accounted = sum(input_account.rows_by_status.values())
        if n_accounted != input_account.rows_in:
            n_read = f"{input_account.rows_in:,} rows were read"
            message = f"input {input_account.name}: {n_read}, but {n_accounted:,} are accounted for"
            raise ThresherError(message, remedy="This is a bug of thresher, or a file changed meanwhile; run again.")
    return tuple(accounts)


def _rows_by_status(engine: Engine, plan: Plan) -> dict[str, int]:
    if plan.accounting is None:
        return {USED: 0}
    return _counted(engine, plan.accounting)


def _counted(engine: Engine, query: Query) -> dict[str, int]:
    """Rows by status, of a query that accounts for the rows of an input."""
    frame = engine.fetch(query.tree(()), query.params)
    return {USED: 0} | dict(zip(frame["status"].to_list(), frame["n_rows"].to_list(), strict=True))


def row_faults(
    engine: Engine,
    options: Options,
    plan: Plan,
    rows_by_status: Mapping[str, int] | None = None,
    *,
    beside_others: bool = False,
) -> list[DataError]:
    """Rows of the primary input that must not be left out: one fault for each kind, each with its first file and row.

    Args:
        engine: Where the relations of the plan are defined.
        options: What the parameters of the stage say of counting.
        plan: The plan.
        rows_by_status: Numbers of rows, as `InputAccount` has them, where they have been counted already.
        beside_others: Whether checks of other inputs found faults: what these lack may be why rows are left out here,
            and is then not said twice.
    """
    row = plan.sources[0]
    rows_by_status = _rows_by_status(engine, plan) if rows_by_status is None else rows_by_status
    faults = []
    for state, words in STATES.items():
        if options.invalid_scores == "error" and rows_by_status.get(state):
            problem: exp.Expr = column(SCORE_STATE).eq(state)
            remedy = plan.remedies.get(state, _SCORE_REMEDY)
            faults.append(_fault(engine, row, problem, f"column {row.source_name('score')!r} is {words}", remedy))
    for status, n_rows in rows_by_status.items():
        if n_rows and status.startswith("null_") and status not in STATES:
            names = _named(row, status)
            shown = " or ".join(repr(row.source_name(name)) for name in names)
            problem = exp.or_(*(column(name).is_(exp.null()) for name in names))
            words = f"column {shown} is {missing_words(row, names[0])}"
            if not beside_others or _count(engine, row, problem):
                faults.append(_fault(engine, row, problem, words, _how_to_fill(row, names)))
    return faults


_SCORE_REMEDY = 'Set invalid_scores = "drop" to leave them out, or "missed" to count them as below every threshold.'


def _how_to_fill(row: Source, names: Sequence[str]) -> str:
    """Say what can be done about columns that every row must have."""
    columns = [in_expression(column) for column in (row.binding(name).column for name in names) if column is not None]
    condition = " AND ".join(f"{column} IS NOT NULL" for column in columns)
    leave_out = f"leave those rows out: {as_where(condition)}" if len(columns) == len(names) else "use where"
    field = row.contract.field(names[0])
    elsewhere = (
        ""
        if field is None or not field.given_by
        else f" If only a sample has it, name that as {field.given_by}, with id."
    )
    return f"It is required in every row: fill it in, or {leave_out}.{elsewhere}{or_map(row, names[0])}"


def _count(engine: Engine, row: Source, problem: exp.Expr) -> int:
    relations = {"input_read": f"{row.name}_read"}
    query = statement("accounting/faulty_rows", relations=relations, columns={"is_faulty": problem})
    return int(engine.fetch(query).item())


def _fault(engine: Engine, row: Source, problem: exp.Expr, words: str, remedy: str) -> DataError:
    shown = f"{rows_in_words(_count(engine, row, problem))}{first_place(engine, row, problem)}"
    return DataError(f"input {row.name}: {words} in {shown}", remedy=remedy)


def refuse_nothing(options: Options, plan: Plan, accounts: Sequence[InputAccount]) -> None:
    """Stop where no input has a row that could be evaluated, or a `where` matches nothing, unless that is allowed.

    The contract of an input says whether it can be evaluated by itself. A primary input whose files have no row is a
    result beside others; one of which no row passes `where` is a partition that is late, or a mistake. Rows that were
    there and were all left out for another reason than `where` are not considered here.

    Args:
        options: What the parameters of the stage say of counting.
        plan: What was counted.
        accounts: What became of the rows of every input, the primary input first.

    Raises:
        NoInputError: names these inputs, and whether they are empty or `where` leaves nothing of them.
    """
    evaluated = {source.name for source in plan.sources if source.contract.evaluated}
    evaluated_inputs = [each for each in accounts if each.name in evaluated]
    primary = accounts[0]
    unmatched = (primary.rows_in > 0 or primary.files_left_out > 0) and primary.rows_kept == 0
    if options.allow_empty or (any(each.rows_kept for each in evaluated_inputs) and not unmatched):
        return
    message = "nothing is left to evaluate: " + "; ".join(emptiness([primary] if unmatched else evaluated_inputs))
    remedy = "Check path and where; allow_empty = true publishes zeros, with a warning."
    raise NoInputError(message, remedy=remedy)


def emptiness(accounts: Sequence[InputAccount]) -> Iterator[str]:
    """Inputs without a row, in words."""
    for input_account in accounts:
        left_out = input_account.files_left_out
        noun = "file" if left_out == 1 else "files"
        files = f", and leaves out {left_out:,} more {noun} by their partitions" if left_out else ""
        if input_account.rows_in == 0 and not left_out:
            yield f"input {input_account.name} has no rows"
        elif input_account.rows_kept == 0:
            yield f"input {input_account.name}: where keeps none of {rows_in_words(input_account.rows_in)}{files}"


def unscored(engine: Engine, options: Options, plan: Plan, accounts: Sequence[InputAccount]) -> Iterator[str]:
    """Warnings, or notes where they are few, of rows that are dropped for lack of a score, and of positives among them.

    Args:
        engine: Where the relations of the plan are defined.
        options: What the parameters of the stage say of counting.
        plan: The plan.
        accounts: What became of the rows of every input, the primary input first.
    """
    dropped = sum(accounts[0].rows_by_status.get(state, 0) for state in STATES)
    if options.invalid_scores != "drop" or not dropped:
        return
    shown = _share(dropped, accounts[0].rows_kept, "rows")
    instead = 'invalid_scores = "missed" counts them as below every threshold'
    words = f"input {accounts[0].name}: {shown} have no valid score and are left out; {instead}"
    yield words if dropped >= FEW_LOST * accounts[0].rows_kept else Note(words)
    if plan.positive is not None:
        # positives of the primary input in all, and those without a valid score
        relations = {"input_read": f"{plan.sources[0].name}_read"}
        query = statement("accounting/unscored_positives", relations=relations, columns={"is_positive": plan.positive})
        n_positive, n_lost = engine.fetch(query).row(0)
        positives, lost = int(n_positive), int(n_lost)
        if lost:
            shown = _share(lost, positives, "positives")
            instead = 'invalid_scores = "missed" counts them as misses'
            words = f"{shown} have no score and are left out: recall is of the rest; {instead}"
            yield words if lost >= FEW_LOST * positives else Note(words)


def _share(count: int, total: int, noun: str) -> str:
    return f"{count:,} of {total:,} {noun} ({percent(count / total)})"


def kept_rows(engine: Engine, sources: Sequence[Source]) -> int:
    """Rows of some inputs together that `where` keeps."""
    queries = (_number_of_rows(source) for source in sources)
    return sum(int(engine.fetch(query).item()) for query in queries)


def _number_of_rows(source: Source) -> exp.Query:
    return statement("accounting/number_of_rows", relations={"input_read": f"{source.name}_read"})


def _account_other(engine: Engine, source: Source, plan: Plan) -> InputAccount:
    """Rows of an input that rows look up: left out by `where`, or as units that do not take part."""
    query = plan.other_accounting.get(source.name)
    if query is not None:
        return _account_of(source, _counted(engine, query))
    rows = engine.fetch(_number_of_rows(source)).item()
    used = rows
    if source.name == plan.units:
        complete = statement("accounting/complete_units", relations={"units": source.name})
        used = engine.fetch(complete).item()
    rows_by_status = {USED: used, "incomplete_window": rows - used, WHERE: source.rows - rows}
    rows_by_status = {status: n for status, n in rows_by_status.items() if n or status == USED}
    return _account_of(source, rows_by_status)


def _account_of(source: Source, rows_by_status: dict[str, int]) -> InputAccount:
    return InputAccount(source.name, source.n_files, source.rows, rows_by_status, source.files_left_out)


def _named(row: Source, status: str) -> list[str]:
    """Columns that a status `null_<column>` names: lag_hours or lag_days for `null_lag`, else the two times."""
    stem, fields = status.removeprefix("null_"), row.contract.fields
    names = [field.name for field in fields if field.name.startswith(stem) and row.has(field.name)]
    return names[:1] or [field.name for field in fields if field.kind == "instant" and row.has(field.name)]


# Whether what was counted can be what was meant: unused inputs, keys that do not meet, scales that differ.


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
    """Alarms, to be said first: at least half of the rows of an input are left out, or match nothing.

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
        lost = sum(left_out.values()) - (
            0
            if not plan.counts_missed
            else sum(n_rows for status, n_rows in left_out.items() if status.endswith("_score"))
        )
        of_sample = (left_out.get(status, 0) for status in (NOT_LABELLED, NOT_JUDGED))
        lost -= sum(of_sample) if account.rows_by_status[USED] else 0  # as is meant
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
    # inputs that count although not one of their keys is in the other input
    for match in plan.key_matches:
        if match.unmatched_status is not None:
            continue
        row = engine.fetch(_query(match)).row(0, named=True)
        if row["n_rows"] and row["n_unmatched"] == row["n_rows"]:
            yield (
                f"no {match.key} of input {match.source.name} is in input {match.other.name} ({_keys(match, row)}): "
                "do they belong together?"
            )


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


def scales(options: Options, plan: Plan, counts: pl.DataFrame) -> Iterator[str]:
    """Thresholds above all scores, or below nearly all of them: a percentage beside a share has small values."""
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


# Counts of one stage: run the nodes of its plan, and account for every row.


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
            for node in doubtful(engine, nodes) if phase == Phase.CHECKS else nodes:
                node.run(engine, progress)
            if progress.faults:
                raise together([*progress.faults, *row_faults(engine, options, plan, beside_others=True)])


def _rows_counted(plan: Plan, counts: pl.DataFrame) -> int:
    """Rows of the primary input that the counts hold: every grouping has each of them once."""
    if counts.is_empty():
        return 0
    rows = of_first_grouping(counts)
    return int(sum(rows[name].sum() for name in plan.used))


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
