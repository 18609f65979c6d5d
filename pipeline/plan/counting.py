"""Counts of one stage: bind the inputs, check them, count every bin exactly, account for every row."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from pipeline.errors import DataError, InvalidQueryError, together
from pipeline.plan.accounting import InputAccount, account, emptiness, kept_rows, refuse_nothing, row_faults, unscored
from pipeline.plan.areas import areas
from pipeline.plan.batches import fetched, matched_rows, rows_to_fold
from pipeline.plan.fault_rows import first_place
from pipeline.plan.nodes import BIN, REPLICATE, Computed, CountQuery
from pipeline.plan.plausibility import implausible, scales
from pipeline.queries.load import expand, load
from pipeline.tables.schemas import COUNTS, GROUPING
from pipeline.tables.sweep import THRESHOLD, add_up

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.engines.engine import Engine
    from pipeline.plan.nodes import Options, Plan, Sweep
    from pipeline.tables.groupings import Grouping

AREAS = "areas"
MAX_DISTINCT = 100_000


@dataclass(frozen=True)
class Counted:
    """The counts of one stage.

    Attributes:
        tables: Count tables by name, each with the columns `grouping`, the `by` columns, `replicate`, `threshold`, its
            own keys and its counts; `counts` is the one that is saved. Beside them the rows that the plan fetches.
        inputs: What became of the rows of every input.
        alarms: What must be said before all other warnings: rows, keys and scales that cannot be what was meant.
        warnings: What was left out, and what second opinions on given numbers found.
        omitted: Result tables that are not made, with the reason.
    """

    tables: dict[str, pl.DataFrame]
    inputs: tuple[InputAccount, ...]
    alarms: tuple[str, ...]
    warnings: tuple[str, ...]
    omitted: dict[str, str]


def count(engine: Engine, options: Options, plan: Plan) -> Counted:
    """Run everything that reads data for one stage.

    Raises:
        DataError: the data break the contract of an input.
    """
    bind(engine, plan)
    check(engine, options, plan)
    prepare(engine, plan)
    compared = [each.compare(fetched(engine, each.frames)) for each in plan.comparisons]
    tables, by = {}, [each.name for each in plan.by]
    for name in dict.fromkeys(each.into for each in plan.counts):
        parts = [each for each in plan.counts if each.into == name]
        finest = {
            segment: pl.concat([_counted(engine, each, segment, parts[0].columns) for each in parts])
            for segment in _segments(options.groupings, parts)
        }
        if name == COUNTS:
            used = int(next(iter(finest.values())).select(pl.sum_horizontal(pl.col(plan.used).sum())).item())
            accounts = account(engine, options, plan, used)
            refuse_nothing(options, plan, accounts)
            alarms = [*implausible(engine, options, plan, accounts)]
        tables[name] = _grouped(finest, options.groupings, by, parts[0])
    if plan.areas is not None:
        tables[AREAS] = areas(engine, plan.areas, options.groupings, by, tables[COUNTS])
    for folded in plan.folded:
        tables[folded.table] = folded.fold(rows_to_fold(engine, folded.rows), fetched(engine, folded.frames))
    tables |= fetched(engine, plan.fetched)
    omitted = omitted_tables(engine, plan)
    warnings = [*emptiness(accounts), *unscored(engine, options, plan, accounts)]
    warnings += [*chain.from_iterable(compared), *_omission_warnings(plan, omitted)]
    alarms += scales(options, plan, tables[COUNTS])
    return Counted(tables, accounts, tuple(alarms), tuple(warnings), omitted)


def omitted_tables(engine: Engine, plan: Plan) -> dict[str, str]:
    """The optional tables that are not made, with the reason; rows are counted only where `where` may leave few."""
    omitted = {}
    for table in plan.optional:
        rows = kept_rows(engine, table.sources) if table.is_open else table.rows
        if not table.is_possible or (table.is_open and not table.is_small(rows)):
            omitted[table.table] = table.reason(rows)
    return omitted


def _omission_warnings(plan: Plan, omitted: Mapping[str, str]) -> list[str]:
    """A table that the config rules out itself is nothing to warn of."""
    asked = {table.table: table.asked for table in plan.optional}
    return [f"table {name} is not made: {reason}" for name, reason in omitted.items() if asked[name] == "auto"]


def follow_up(engine: Engine, plan: Plan, tables: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The tables that need the rows once more, after the others are known."""
    made = {}
    for each in plan.follow_ups:
        params, tree = each.params(tables), expand(load(each.query), each.segment)
        engine.define(each.sweep.name, each.sweep.rows)
        if params is None:  # nothing to ask, but the columns have their types
            params = dict.fromkeys(load(each.query).params, 0.0)
            tree = exp.select("*").from_(tree.subquery("nothing")).limit(0)
        frame = each.finish(engine.fetch(tree, params), fetched(engine, each.frames))
        known = tables[each.table].schema
        missing = [name for name in known if name not in frame.columns]
        made[each.table] = frame.with_columns(pl.lit(None, dtype=known[name]).alias(name) for name in missing)
    return made


def bind(engine: Engine, plan: Plan) -> None:
    """Define the relations that read the inputs."""
    for relation in plan.relations:
        for scan in relation.scans:
            engine.scan(scan.name, scan.files, located=relation.located)
        try:
            engine.define(relation.name, relation.query, keep=relation.keep)
        except InvalidQueryError as error:
            if relation.source is None or relation.source.spec.where is None:
                raise
            message = f"input {relation.source.name}: where does not fit its columns: {error.reason}"
            raise DataError(
                message, remedy="It must be true or false for a row; check the types of its columns."
            ) from error


def prepare(engine: Engine, plan: Plan) -> None:
    """Make the matched relations, and define what counting queries read."""
    for each in plan.matched:
        engine.fill(each.name, matched_rows(engine, each))
    for sweep in plan.sweeps:
        engine.define(sweep.name, sweep.by_cell())


def check(engine: Engine, options: Options, plan: Plan) -> None:
    """Run all checks of a plan; if one finds a fault, rows that may not be left out are looked for, too.

    Raises:
        DataError: checks found faults; it lists all of them.
    """
    faults = []
    for each in plan.checks:
        rows = engine.fetch(each.query).to_dicts()
        if rows:
            message, remedy = each.explain(rows)
            if each.source is not None and each.problem is not None:
                message += first_place(engine, each.source, each.problem(rows))
            faults.append(DataError(message, remedy=remedy))
    if faults:
        raise together([*faults, *row_faults(engine, options, plan)])


def _segments(groupings: Sequence[Grouping], parts: Sequence[CountQuery | Computed]) -> Sequence[tuple[str, ...]]:
    """The groupings that are part of no other: only these are scanned for, the others are sums of them."""
    columns = [each.columns for each in groupings]
    if any(isinstance(part, CountQuery) and not part.additive for part in parts):
        return columns
    return [each for each in columns if not any(set(each) < set(other) for other in columns)]


def _counted(
    engine: Engine, part: CountQuery | Computed, segment: Sequence[str], columns: Sequence[str]
) -> pl.DataFrame:
    """Counts of one part for one grouping, its finest rows; counts that the part lacks are 0."""
    if isinstance(part, Computed):
        frame = part.compute(fetched(engine, part.frames), segment)
    else:
        frame = engine.fetch(part.tree(segment), part.params)
    if isinstance(part, CountQuery) and part.sweep is not None:
        frame = _exact_bins(engine, part, part.sweep, segment, frame)
    else:
        frame = frame.with_columns(pl.lit(None, dtype=pl.Float64).alias(THRESHOLD))
    missing = [pl.lit(0, dtype=pl.Int64).alias(name) for name in columns if name not in frame.columns]
    return frame.with_columns(*missing, pl.col(REPLICATE).cast(pl.Int64)).select(
        *segment, REPLICATE, THRESHOLD, *part.keys, *(pl.col(name).fill_null(0) for name in columns)
    )


def _exact_bins(
    engine: Engine, query: CountQuery, sweep: Sweep, segment: Sequence[str], frame: pl.DataFrame
) -> pl.DataFrame:
    """Counts per cell → counts per bin; rows without a score count below all thresholds, if they count at all."""
    binned = _of_cells(engine, query, sweep, segment, frame.filter(pl.col(BIN).is_not_null()))
    if not sweep.missed:
        return binned
    below = frame.filter(pl.col(BIN).is_null()).with_columns(pl.lit(None, dtype=pl.Float64).alias(THRESHOLD))
    return pl.concat([binned, below.select(binned.columns).cast(binned.schema)])


def _of_cells(
    engine: Engine, query: CountQuery, sweep: Sweep, segment: Sequence[str], frame: pl.DataFrame
) -> pl.DataFrame:
    """Counts per cell → counts per bin; cells that a threshold cuts through are counted again by comparisons."""
    grid = sweep.grid
    if grid is None:
        return _distinct(frame, segment)
    edges = pl.Series(THRESHOLD, [None, *grid.thresholds], dtype=pl.Float64)
    if sweep.exact:
        return frame.with_columns(edges.gather(frame[BIN]).alias(THRESHOLD))
    bins = grid.bins(frame["lowest"].to_numpy())
    cut = frame.filter(pl.Series(grid.bins(frame["highest"].to_numpy()) != bins, dtype=pl.Boolean))
    cells = sorted(set(cut[BIN].to_list()))
    whole = frame.with_columns(pl.Series("_exact", bins, dtype=pl.Int64)).filter(~pl.col(BIN).is_in(cells))
    whole = whole.drop(BIN).rename({"_exact": BIN})
    if cells:
        again = f"{sweep.name}_again"
        engine.define(again, sweep.exactly(cells))
        tree = _reading(query.tree(segment), sweep.name, again)
        recounted = engine.fetch(tree, query.params).with_columns(pl.col(BIN).cast(pl.Int64))
        whole = whole.vstack(recounted.select(whole.columns))
    return whole.with_columns(edges.gather(whole[BIN]).alias(THRESHOLD))


def _reading(tree: exp.Query, name: str, other: str) -> exp.Query:
    """The same query over another relation of the same columns."""
    for table in tree.find_all(exp.Table):
        if table.name == name:
            table.replace(exp.to_table(other).as_(name))
    return tree


def _zero(counts: pl.DataFrame) -> pl.DataFrame:
    """The total of nothing: one row of zeros, so that empty inputs have results like any other."""
    zeros = [pl.lit(None if name == THRESHOLD else 0, dtype=kind).alias(name) for name, kind in counts.schema.items()]
    return pl.select(*zeros)


def _distinct(frame: pl.DataFrame, segment: Sequence[str]) -> pl.DataFrame:
    values = (
        frame.group_by(segment).agg(pl.col(BIN).n_unique().alias("n"))
        if segment
        else frame.select(pl.col(BIN).n_unique().alias("n"))
    )
    most = values["n"].max() if not values.is_empty() else 0
    if isinstance(most, int) and most > MAX_DISTINCT:
        message = f'thresholds = "distinct": one group has {most:,} distinct scores, the limit is {MAX_DISTINCT:,}'
        raise DataError(message, remedy="Give thresholds = { start = …, stop = …, count = 1000 }.")
    return frame.with_columns(pl.col(BIN).cast(pl.Float64).alias(THRESHOLD))


def _grouped(
    finest: Mapping[tuple[str, ...], pl.DataFrame],
    groupings: Sequence[Grouping],
    by: Sequence[str],
    part: CountQuery | Computed,
) -> pl.DataFrame:
    """The count table of all groupings: sums of the finest counts, in a fixed order."""
    keys = [REPLICATE, THRESHOLD, *part.keys]
    parts = []
    for grouping in groupings:
        frame = finest[min((segment for segment in finest if set(grouping.columns) <= set(segment)), key=len)]
        summed = add_up(frame, [*grouping.columns, *keys], part.columns)
        if not grouping.columns and summed.is_empty() and keys == [REPLICATE, THRESHOLD]:
            summed = _zero(summed)
        parts.append(summed.select(pl.lit(grouping.label).alias(GROUPING.name), pl.all()))
    counts = pl.concat(parts, how="diagonal").select(GROUPING.name, *by, *keys, *part.columns)
    return counts.sort([GROUPING.name, *by, *keys], nulls_last=True)
