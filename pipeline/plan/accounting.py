"""What became of every row of every input: used, or left out for a reason; and rows that must not be left out."""

from __future__ import annotations

import json
import math
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, ClassVar, Protocol

import polars as pl
import sqlglot.expressions as exp

from ..errors import DataError, NoInputError, Note, ThresherError, together
from ..queries.dialect import column
from ..queries.load import statement
from ..records import dataclass
from ..sources.bindings import is_usual_id, is_usual_name, is_usual_system
from ..sources.frames import FrameRows
from ..sources.parquet_files import DataFile
from ..sources.source import SCORE_STATE
from ..sources.types import as_where, in_expression
from ..tables.columns import THRESHOLD
from ..visible_text import cleaned, percent, rows_in_words, with_edges
from .nodes import Phase, first_place, missing_words, or_map

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pyarrow as pa

    from ..engines.engine import Engine
    from ..sources.bindings import KeyMatch
    from ..sources.source import Source
    from ..tables.schemas import Grouping
    from .counts import Query
    from .nodes import Progress, Statement
    from .plan import Plan
    from .rows import Grouped


USED, WHERE, NOT_LABELLED, NOT_JUDGED = "used", "where", "not_labelled", "not_judged"
FEW_LOST = 0.01  # of the rows, or the positives, below which what a user told to drop is only noted
STATES = {
    "null_score": "NULL",
    "nan_score": "NaN",
    "infinite_score": "infinite",
}


class Options(Protocol):
    """What the parameters of every stage say of counting."""

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
        """What becomes of rows without a valid score: `error`, `drop` or `missed`."""
        ...

    @property
    def allow_empty(self) -> bool:
        """Whether zeros are published where nothing can be evaluated."""
        ...


@dataclass(frozen=True)
class InputAccount:
    """What became of the rows of one input.

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
    """What became of every row of every input; the primary input is asked again only if rows were left out.

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
    """What must be said before anything else: at least half of the rows of an input are left out, or match nothing.

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


# Columns without a role that should have one: ids that repeat, names of systems, and what looks like a cluster.
#
# Rows are taken as independent, and those of all systems as one sample, unless the config says otherwise. The first
# rows of the files tell, at the cost of these rows alone, where that looks wrong. They do not tell of what comes
# later in the files, of values that lie farther apart than they reach, or of columns that an expression reads.


MOST_ROWS = 20_000
MOST_SYSTEMS, MOST_NAMED = 100, 4
FEWEST_CLUSTERS, FEWEST_ROWS = 10, 100
ALIKE, LIKELY = 0.3, 1e-6  # share of the variance between clusters, and how likely that is by chance


class _Look:
    """A look at the first rows of an input, whose words are warnings."""

    phase: ClassVar[Phase] = Phase.CROSS_CHECKS
    into: ClassVar[str] = "warnings"

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:  # noqa: ARG002 - all nodes are called alike
        """It asks the engine nothing."""
        return iter(())


@dataclass(frozen=True)
class Roles(_Look):
    """A look at the first rows of the primary input, whose words are warnings.

    Attributes:
        source: The input.
        by: The grouping columns.
        read: Its fields that are read.
        clusters: The columns of the clusters; none: rows are taken as independent.
        values: Numbers in which rows of one cluster would be alike, such as the score and the label; none: rows are not
            taken as independent, whatever their columns are.
    """

    source: Source
    by: Sequence[Grouped]
    read: Sequence[str]
    clusters: Sequence[str]
    values: Sequence[str]

    def run(self, engine: Engine, progress: Progress) -> None:  # noqa: ARG002 - all nodes are called alike
        """Look at the rows and add what is odd to the warnings."""
        grouped = _grouping(self.source, self.by)
        columns = columns_in_no_role(self.source, (*self.read, *grouped, *self.clusters))
        if not self.values:  # what tells systems apart is all there is to find
            columns = tuple(filter(is_usual_system, columns))
        if not columns:
            return
        groups = _telling_apart(self.source, grouped)
        values = _in_files(self.source, self.values)
        rows = first_rows(self.source, list(dict.fromkeys((*columns, *groups, *values))), MOST_ROWS)
        progress.warnings += doubts(rows, columns, groups, [] if self.clusters else values)


def pooled_systems(source: Source, by: Sequence[Grouped]) -> Roles:
    """A look at an input whose rows are not independent anyway, for systems or data sets that share one number."""
    return Roles(source, by, _bound(source), (), ())


@dataclass(frozen=True)
class UnmappedId(_Look):
    """A look at the first rows of an input whose rows have no id, for a column that is called like it and repeats.

    Attributes:
        source: The input.
        by: The grouping columns.
        field: The field that is not bound.
        beside: Our names of the columns with which it should not repeat.
        consequence: What follows for the rows that repeat it.
    """

    source: Source
    by: Sequence[Grouped]
    field: str
    beside: Sequence[str]
    consequence: str

    def run(self, engine: Engine, progress: Progress) -> None:  # noqa: ARG002 - all nodes are called alike
        """Look at the rows and add what is odd to the warnings."""
        grouped = _grouping(self.source, self.by)
        unread = columns_in_no_role(self.source, (*_bound(self.source), *grouped))
        columns = [name for name in unread if is_usual_name(self.field, name)]
        groups = _telling_apart(self.source, (*self.beside, *grouped))
        if not columns:
            return
        rows = first_rows(self.source, list(dict.fromkeys((*columns, *groups))), MOST_ROWS)
        for name, n_repeat in islice(_repeating(rows, columns, groups), 1):
            beside = f" with the same {' and '.join(map(self.source.source_name, self.beside))}" if self.beside else ""
            progress.warnings.append(
                f"input {self.source.name}: {name!r} has no role and repeats{beside} in {n_repeat:,} of the first "
                f"{rows.height:,} rows, {self.consequence}: if it is the {self.field}, map it, columns = "
                f"{{ {self.field} = {_toml(name)} }}"
            )


def _bound(source: Source) -> list[str]:
    return [field.name for field in source.contract.fields if source.has(field.name)]


def _grouping(source: Source, by: Sequence[Grouped]) -> list[str]:
    return [each.column for each in by if each.source == source.name]


def _in_files(source: Source, names: Sequence[str]) -> list[str]:
    """Those columns that are read as they are in the files, by their names there."""
    return [source.source_name(name) for name in names if source.binding(name).column is not None]


def _telling_apart(source: Source, names: Sequence[str]) -> list[str]:
    """Columns of the files within which ids should not repeat: some that are read, and all in `where`."""
    return list(dict.fromkeys([*_in_files(source, names), *columns_in_where(source)]))


def doubts(rows: pl.DataFrame, columns: Sequence[str], groups: Sequence[str], values: Sequence[str]) -> tuple[str, ...]:
    """What the first rows say of columns without a role; at most one warning of each kind.

    Args:
        rows: The rows.
        columns: Their columns without a role.
        groups: Their columns that group the results.
        values: Their numbers that would be alike in a cluster; none: clusters are named, so that ids may repeat.
    """
    pooled = _pooled(rows, [name for name in columns if is_usual_system(name)], groups)
    words = list(_pooled_in_words(pooled))
    repeating = (
        next(_repeating(rows, [name for name in columns if is_usual_id(name)], groups), None) if values else None
    )
    if repeating is not None:
        name, n_repeat = repeating
        words.append(
            f"{name!r} has no role and repeats in {n_repeat:,} of the first {rows.height:,} rows, which count as "
            f"independent: if it names what is predicted, map it, columns = {{ id = {_toml(name)} }}, or group by what "
            f"tells its rows apart; if its rows belong together, cluster = {_toml(name)}"
        )
    elif values and (cluster := _cluster(rows, [name for name in columns if name not in pooled], groups, values)):
        n_values = rows[cluster].n_unique()
        words.append(
            f"rows with the same {cluster!r} are alike ({n_values:,} values in the first {rows.height:,} rows), and "
            "all rows count as independent, so that intervals may be too narrow: if they belong together, cluster = "
            f"{_toml(cluster)}"
        )
    return tuple(words)


def _toml(name: str) -> str:
    return json.dumps(name, ensure_ascii=False)


def _pooled(rows: pl.DataFrame, columns: Sequence[str], groups: Sequence[str]) -> dict[str, list[object]]:
    """Columns of systems or data sets with several values in one group, with the values."""
    found = {}
    for name in columns:
        values = rows[name].drop_nulls().unique().sort()
        most = rows.group_by(groups).agg(pl.col(name).n_unique())[name].max() if groups else len(values)
        if 1 < len(values) <= MOST_SYSTEMS and isinstance(most, int) and most > 1:
            found[name] = values.to_list()
    return found


def _pooled_in_words(pooled: dict[str, list[object]]) -> Iterator[str]:
    if pooled:
        shown = [f"{name!r} ({_listed(values)})" for name, values in pooled.items()]
        yield (
            f"one number is of all values of {' and '.join(shown)} together: by = [[{', '.join(map(_toml, pooled))}]] "
            "gives results for each"
        )


def _listed(values: Sequence[object]) -> str:
    more = f" and {len(values) - MOST_NAMED:,} more" if len(values) > MOST_NAMED else ""
    return ", ".join(with_edges(cleaned(str(value), layout="")) for value in values[:MOST_NAMED]) + more


def _repeating(rows: pl.DataFrame, columns: Sequence[str], groups: Sequence[str]) -> Iterator[tuple[str, int]]:
    """Columns of ids that repeat in a group, and in how many rows beyond the first of each."""
    for name in columns:
        known = rows.drop_nulls(name)
        n_repeat = known.height - known.select(*groups, name).n_unique()
        if n_repeat:
            yield name, n_repeat


def _cluster(rows: pl.DataFrame, columns: Sequence[str], groups: Sequence[str], values: Sequence[str]) -> str | None:
    """The column whose values make rows most alike in every number, far beyond chance; None: there is none."""
    alike = {}
    numbers = rows.select(*(_deviation(name, groups) for name in values))
    for name in columns:
        kind = rows.schema[name]
        n_values = rows[name].n_unique()
        few = FEWEST_CLUSTERS <= n_values <= rows.height / 2 and rows.height >= FEWEST_ROWS
        if few and (kind.is_integer() or kind in (pl.String, pl.Categorical, pl.Date)):
            shares = [_share_between(numbers[each], rows[name]) for each in values]
            if None not in shares:
                alike[name] = min(share for share in shares if share is not None)
    best = max(alike, key=lambda name: alike[name], default=None)
    return best if best is not None and alike[best] >= ALIKE else None


def _deviation(name: str, groups: Sequence[str]) -> pl.Expr:
    """A number less its mean in the group."""
    number = pl.col(name).cast(pl.Float64, strict=False).fill_nan(None)
    mean = number.mean().over(groups) if groups else number.mean()
    return (number - mean).alias(name)


def _share_between(numbers: pl.Series, cluster: pl.Series) -> float | None:
    """The intraclass correlation of numbers in clusters (Fisher's, by analysis of variance); None: it may be chance."""
    from scipy import special  # noqa: PLC0415 - only where rows are looked at

    frame = pl.DataFrame({"number": numbers, "cluster": cluster}).drop_nulls()
    sizes = frame.group_by("cluster").agg(pl.len().alias("n"), pl.col("number").mean().alias("mean"))
    n_rows, n_clusters = frame.height, sizes.height
    total = frame["number"].mean()
    if n_clusters < FEWEST_CLUSTERS or n_rows <= n_clusters or not isinstance(total, float):
        return None
    n, means = sizes["n"].to_numpy().astype(float), sizes["mean"].to_numpy()
    between = float((n * (means - total) ** 2).sum()) / (n_clusters - 1)
    everything = float(((frame["number"].to_numpy() - total) ** 2).sum())
    within = max(everything - between * (n_clusters - 1), 0.0) / (n_rows - n_clusters)
    by_chance = special.fdtrc(n_clusters - 1, n_rows - n_clusters, between / within) if within > 0 else 0.0
    if everything == 0 or by_chance > LIKELY:
        return None
    size = (n_rows - float((n**2).sum()) / n_rows) / (n_clusters - 1)
    return (between - within) / (between + (size - 1) * within)


# The first rows of an input with all their columns, those without a role among them: a look, never a count.


MOST_FILES = 16


def columns_in_no_role(source: Source, taken: Iterable[str]) -> tuple[str, ...]:
    """Columns of whole numbers, texts and dates that nothing reads, not even `where`.

    Args:
        source: The input.
        taken: Our names of the columns that are read.
    """
    read = {name for each in taken for name in source.columns_read(each)} | set(columns_in_where(source))
    kinds = {field.name: field.type for file in source.files[:1] for field in file.schema}
    told = (name for name in _names(source) if name not in kinds or _tells_rows_apart(kinds[name]))
    return tuple(name for name in told if name not in read)


def columns_in_where(source: Source) -> tuple[str, ...]:
    """Columns of plain values whose name stands in `where`: rows that differ in them may not be there together."""
    where = source.spec.where or ""
    odd = {field.name for file in source.files[:1] for field in file.schema if not _is_plain(field.type)}
    return tuple(name for name in _names(source) if name in where and name not in odd)


def _names(source: Source) -> list[str]:
    """The columns of the first file and of its folders."""
    return list(dict.fromkeys(name for file in source.files[:1] for name in (*file.schema.names, *file.partitions)))


def _is_plain(kind: pa.DataType) -> bool:
    """Whether values of a type can be looked at whatever library reads them."""
    import pyarrow as pa  # noqa: PLC0415 - only where files are looked at

    return _tells_rows_apart(kind) or (pa.types.is_primitive(kind) and not pa.types.is_float16(kind))


def _tells_rows_apart(kind: pa.DataType) -> bool:
    """Whether values of a type name or number things."""
    import pyarrow as pa  # noqa: PLC0415 - only where files are looked at

    if pa.types.is_dictionary(kind):
        return _tells_rows_apart(kind.value_type)
    is_text = str(kind) in {"string", "large_string", "string_view"}
    return bool(is_text or pa.types.is_integer(kind) or pa.types.is_date(kind))


def first_rows(source: Source, columns: Sequence[str], most_rows: int) -> pl.DataFrame:
    """The first rows of up to 16 files, evenly among all, as many of each; without a row where they are not here.

    Files that cannot be read are passed over: the engine, which reads all of them, tells why.

    Args:
        source: The input.
        columns: Columns of the files and folders.
        most_rows: How many rows of all files together.
    """
    files = [file for file in source.files if isinstance(file, DataFile | FrameRows) and file.rows]
    files = [file for file in files if isinstance(file, FrameRows) or file.fetch is None]
    chosen = files[:: -(-len(files) // MOST_FILES)] if files else []
    frames = []
    for file in chosen:
        with suppress(OSError, ValueError, NotImplementedError):  # as Arrow calls what it cannot read
            frames.append(_of_file(file, columns, -(-most_rows // len(chosen))))
    return pl.concat(frames, how="diagonal_relaxed") if frames else pl.DataFrame(schema=dict.fromkeys(columns, pl.Null))


def _of_file(file: DataFile | FrameRows, columns: Sequence[str], most_rows: int) -> pl.DataFrame:
    named = [name for name in columns if name in file.schema.names]
    table: pa.Table
    if isinstance(file, FrameRows):
        table = file.table.select(named).slice(0, most_rows)
    else:
        import pyarrow as pa  # noqa: PLC0415 - only where files are looked at
        import pyarrow.parquet as pq  # noqa: PLC0415

        with pq.ParquetFile(file.path) as parquet:
            batch = next(parquet.iter_batches(batch_size=most_rows, columns=named))
        table = pa.Table.from_batches([batch])
    folders = [pl.lit(file.partitions[name]).alias(name) for name in columns if name in file.partitions]
    return pl.DataFrame(table).with_columns(folders)
