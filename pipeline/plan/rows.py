"""The row relation of a stage: canonical rows with bin, replicate and grouping columns, or in cells of scores."""

from __future__ import annotations

from dataclasses import field
from difflib import get_close_matches
from typing import TYPE_CHECKING

import polars as pl
import sqlglot.expressions as exp

from ..base.columns import IN_TIME
from ..base.dialect import column, is_finite, kept, number_of, parts
from ..base.errors import DataError
from ..base.records import dataclass
from ..base.schemas import cluster_name, users_name
from ..base.sql_files import Query, expand, is_query, load, statement
from ..sources.bins import block_of, cell_in_block, piecewise_cells
from ..sources.inputs import Field, mapping_of_expression
from ..sources.source import canonical_relation
from ..sources.types import as_mapping, as_renaming, in_expression
from .nodes import Frame, Grouped, Relation

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from ..engines.engine import Engine
    from ..metrics.curves.trapezoidal_area import CellGrid
    from ..sources.source import Source


MAX_OWN_REPLICATES = 1000
HASH_REPLICATES = 64
FEW_ROWS = 10_000


def resolve_by(by: Iterable[Sequence[str]], sources: Sequence[Source], *, key: str = "by") -> tuple[Grouped, ...]:
    """Find the input of every grouping column, looked up in the order of the sources.

    Args:
        by: The groupings; names may be written `input.column`.
        sources: The primary input first.
        key: Key of the config that names the columns, for messages.

    Raises:
        DataError: a name is in two inputs and does not say which.
        DataError: no input has it.
    """
    names = dict.fromkeys(name for grouping in by for name in grouping)
    return tuple(_resolve(name, sources, key) for name in names)


def _resolve(name: str, sources: Sequence[Source], key: str) -> Grouped:
    head, _, tail = name.partition(".")
    candidates = [Grouped(name, source.name, name) for source in sources if source.offers(name)]
    candidates += [
        Grouped(name, head, tail) for source in sources if source.name == head and tail and source.offers(tail)
    ]
    if len(candidates) > 1:
        where = " and of ".join(
            each.source if each.column == name else f"{each.source}, called {each.column!r}" for each in candidates
        )
        choices = " or ".join(f"{each.source}.{each.column}" for each in candidates)
        message = f"{key}: {name!r} is a column of {where}"
        plain = f"Write {choices}."
        dotted = f"Give the column with a dot another name: {as_renaming('my_column', name)}."
        raise DataError(message, remedy=dotted if any(each.column != name for each in candidates) else plain)
    if not candidates:
        for source in sources:
            if (role := source.bindings.role_of(name)) is not None:
                message = f"{key}: the column {name!r} of {source.name} is mapped to {role}"
                raise DataError(message, remedy=_of_role(source, name, role, key))
        first_files = [file for source in sources for file in source.files[:1]]
        near = get_close_matches(name, [column_name for file in first_files for column_name in file.schema.names], n=1)
        mappings = filter(None, (mapping_of_expression(file, name) for file in first_files))
        hint = next((f" {mapping}" for mapping in mappings), f" Did you mean {near[0]!r}?" if near else "")
        message = f"{key}: no input has a column {name!r}"
        raise DataError(message, remedy=f"Looked in {', '.join(source.name for source in sources)}.{hint}")
    return candidates[0]


def _of_role(source: Source, name: str, role: str, key: str) -> str:
    """How to group by a column that is mapped: by a copy where it is a field, whose name results may have."""
    if source.contract.field(role) is None:
        return f"Write {role}."
    return f"Map a copy: {as_mapping(f'my_{name}', in_expression(name))}, and write my_{name} in {key}."


@dataclass(frozen=True)
class Units:
    """How rows belong to units (events, documents, queries), and units to clusters.

    Attributes:
        name: Logical relation of the units, for example `events`.
        key: Column that identifies a unit, in the rows too.
        fields: Columns of the unit input that counting needs.
        cluster: Column whose values are independent; default: the unit itself.
        order: Column that orders these in time; None: their order means nothing.
        replicated: Whether counts are split by replicate.
        replicates: Number of replicates; None: own up to 1,000 clusters, else 64 groups.
    """

    name: str
    key: str
    fields: tuple[str, ...] = ()
    cluster: str | None = None
    order: str | None = None
    replicated: bool = True
    replicates: int | None = None

    @property
    def cluster_key(self) -> str:
        """The column that identifies a cluster."""
        return self.cluster or self.key


@dataclass(frozen=True)
class Lookup:
    """A relation in which rows find further columns by a key.

    Attributes:
        relation: Its logical name.
        key: The column that both have.
        alias: Its name in the query.
    """

    relation: str
    key: str
    alias: str


def read(
    source: Source,
    wanted: Iterable[str],
    by: Iterable[Grouped],
    derived: Mapping[str, exp.Expr],
    *,
    lookups: Sequence[Lookup] = (),
    located: bool = False,
) -> Relation:
    """The relation `<input>_read`: every row of an input, with canonical and derived columns.

    Args:
        source: The input.
        wanted: Our names of the columns, and the internal name of the cluster.
        by: Grouping columns; those of this input get their internal names.
        derived: Further columns computed from the wanted ones, called `canonical`, and from those of the lookups.
        lookups: Relations of one row per key in which the rows find further columns, or NULL.
        located: Whether to add `source_file` and `file_row_number`, the order of the rows in the files; an input with
            columns that are only shown has them in any case.
    """
    located = located or source.shown is not None
    fields = fields_of(source, wanted, by)
    score = "score" if "score" in fields and source.field("score") is not None else None
    canonical = canonical_relation(source, fields, score=score, located=located)
    number = number_of(canonical)
    key = None if number is None else ("read", number, parts(derived), tuple(lookups))
    query = kept(key, lambda: _with_derived(canonical, derived, lookups))
    reads = tuple(dict.fromkeys(field.name for field in fields.values()))
    name, scans = f"{source.name}_read", source.scans
    keep = _is_small(source)
    return Relation(name, query, keep, scans, source=source, located=located, reads=reads)


def _is_small(source: Source) -> bool:
    """Whether it takes less time to keep the columns that are read of an input than to plan them in every statement.

    SQL of the user is computed where it is needed, and for rows that pass `where`.
    """
    return not source.has_user_sql and source.rows <= FEW_ROWS and all(scan.frame for scan in source.scans)


def _with_derived(query: exp.Query, derived: Mapping[str, exp.Expr], lookups: Sequence[Lookup]) -> exp.Query:
    computed = [exp.alias_(value, name, quoted=True) for name, value in derived.items()]
    if computed:
        every = exp.Column(this=exp.Star(), table=exp.to_identifier("canonical"))
        query = exp.select(every, *computed).from_(query.subquery("canonical"))
        for lookup in lookups:
            is_match = column(lookup.key, "canonical").eq(column(lookup.key, lookup.alias))
            query = query.join(exp.to_table(lookup.relation).as_(lookup.alias), on=is_match, join_type="left")
    return query


def fields_of(source: Source, wanted: Iterable[str], by: Iterable[Grouped]) -> dict[str, Field]:
    """The columns to read of an input, by their names in the relation: the wanted ones and its grouping columns.

    A column that is both wanted and a grouping column is read twice.
    """
    fields = {
        name: source.field(name) or source.contract.field(name) or Field(users_name(name), "any", "the cluster")
        for name in wanted
    }
    return fields | {each.name: each.field for each in by if each.source == source.name}


def check_keys(sources: Iterable[Source], key: str) -> None:
    """Inputs find each other's rows by a key, so it must have one type in all of them.

    Raises:
        DataError: it is a number in one input and text in another.
    """
    by_type: dict[str, Source] = {}
    for source in sources:
        field = source.contract.field(key)
        if field is not None and source.has(key) and (sql_type := source.known_type(key, field)) is not None:
            by_type.setdefault(sql_type, source)
    if len(by_type) > 1 and not set(by_type) <= {"BIGINT", "UBIGINT"}:  # integers of either kind compare exactly
        kinds = " but ".join(f"{sql_type} in {source.name}" for sql_type, source in sorted(by_type.items()))
        message = f"column {key} is {kinds}: the two cannot be compared"
        raise DataError(
            message, remedy=f'Make both text: columns = {{ {key} = {{ sql = "CAST({key} AS VARCHAR)" }} }}.'
        )


def order_of_clusters(source: Source, cluster: str, order: str | None) -> str | None:
    """The column that orders clusters in time, as rows are read; None: their order means nothing.

    Args:
        source: The input that has the clusters.
        cluster: The column of the clusters.
        order: The column that the config names; None: clusters of a column of dates have an order.
    """
    if order is not None:
        return cluster_name(order)
    is_date = source.types(cluster, Field(cluster, "any", "the cluster")) == "DATE"
    return cluster_name(cluster) if is_date else None


def clusters_in_time(read: str, cluster: str, order: str) -> Relation:
    """The relation `clusters` of clusters that follow each other in time; arguments as for `replicate_relations`."""
    columns = {"value": cluster, "order_value": order}
    return Relation(
        "clusters", statement("replicates/clusters_in_time", relations={"input_read": read}, columns=columns)
    )


def frame_in_time(order: str | None) -> tuple[Frame, ...]:
    """A frame that marks replicates as ordered in time, if they are."""
    return () if order is None else (Frame(IN_TIME, statement("replicates/in_time")),)


def units_relations(
    row: Source,
    units: Units,
    source: Source | None,
    by: Sequence[Grouped],
    *,
    complete: str | None = None,
    file: str = "units/of_input",
    values: Mapping[str, float | str] | None = None,
) -> tuple[Relation, ...]:
    """The unit relation: one row per unit with its replicate, its flag `complete` and its grouping columns.

    Without an input of units they are the distinct keys of the rows.

    Args:
        row: The primary input.
        units: The units.
        source: The input of units, if there is one.
        by: The grouping columns.
        complete: Column of `source` that says whether a unit takes part; default: every unit does.
        file: The query of the units of `source`; that without replicates has `_together` behind its name.
        values: Values of its parameters.
    """
    read = f"{(source or row).name}_read"
    columns = [units.key, *units.fields, *(each.name for each in by if source and each.source == source.name)]
    file = file if source else "units/of_rows"
    query = statement(
        file if units.replicated else f"{file}_together",
        tuple(dict.fromkeys(columns)),
        relations={"units_read": read, "rows_read": read},
        columns={"unit": units.key, "unit_cluster": units.cluster_key, "complete": complete or exp.true()},
        values=values,
    )
    replicates: tuple[Relation, ...] = ()
    if units.replicated:
        replicates = replicate_relations(read, units.cluster_key, units.replicates, order=units.order)
    return (*replicates, Relation(units.name, query, keep=source is not None or units.replicated))


def replicate_relations(
    read: str,
    cluster: str,
    count: int | None,
    *,
    of: str | None = None,
    together: bool = False,
    order: str | None = None,
) -> tuple[Relation, Relation]:
    """The relation `replicates`: which replicate every cluster of a relation falls into.

    Args:
        read: A relation with the columns `passes_where` and `cluster`.
        cluster: Its column whose values are independent.
        count: Number of replicates; None: own up to 1,000 clusters, else 64 groups, or blocks of clusters in a row.
        of: Whose replicates they are, where rows have several: the relation is then `replicates_of_<of>`.
        together: Whether all are in one, because no intervals are wanted.
        order: Column of the relation by whose least value clusters, and so replicates, follow each other in time; None:
            they have no order.
    """
    suffix = "" if of is None else f"_of_{of}"
    clusters = statement("replicates/clusters", relations={"input_read": read}, columns={"value": cluster})
    if together:
        return Relation("clusters", clusters), Relation("replicates", statement("replicates/one_replicate"))
    if order is not None:
        limits = {"own_limit": count or MAX_OWN_REPLICATES, "blocks": count or HASH_REPLICATES}
        replicates = statement("replicates/of_clusters_in_time", values=limits)
        return clusters_in_time(read, cluster, order), Relation("replicates", replicates, keep=True)
    limits = {"own_limit": count or MAX_OWN_REPLICATES, "hash_groups": count or HASH_REPLICATES}
    replicates = statement("replicates/of_clusters", relations={"clusters": f"clusters{suffix}"}, values=limits)
    return Relation(f"clusters{suffix}", clusters), Relation(f"replicates{suffix}", replicates, keep=True)


# The relations of a stage, as the headers of its files tell them.


@dataclass(frozen=True)
class From:
    """The file that makes a relation, where that has another name, or where other names stand in it.

    Attributes:
        file: Its name in the folder of the stage, or with another folder before it.
        relations: The relation to read, by the name that the file gives it.
        columns: The column or condition to read, likewise.
    """

    file: str
    relations: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, str | exp.Expr] = field(default_factory=dict)

    def path(self, folder: str) -> str:
        """Its name with its folder."""
        return self.file if "/" in self.file else f"{folder}/{self.file}"


@dataclass(frozen=True)
class Graph:
    """The relations of a stage: the file of its name makes each, and its header says what it reads and whether to keep.

    Attributes:
        folder: The folder of the files.
        by: The grouping columns.
        made: What makes a relation, where there is a choice: a file, or nodes that are made elsewhere, in order.
        values: Parameters of the relations.
        segments: Columns that `segment` can stand for in headers, beside those of an input and those of all, `by`.
    """

    folder: str
    by: Sequence[Grouped]
    made: Mapping[str, From | Sequence[Relation]]
    values: Mapping[str, float | str] = field(default_factory=dict)
    segments: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def relations(self, *wanted: str) -> Iterator[Relation]:
        """The wanted relations in their order, each after those that it reads; a name that nothing makes is left out.

        A name that nothing makes is that of files, or of a relation that a pure function makes later.
        """
        defined: set[str] = set()
        for name in wanted:
            yield from self._with_reads(name, defined)

    def _with_reads(self, name: str, defined: set[str]) -> Iterator[Relation]:
        source = self.made.get(name, From(name))
        if name in defined or (isinstance(source, From) and not is_query(source.path(self.folder))):
            return
        defined.add(name)
        if not isinstance(source, From):
            yield from source
            return
        query = load(source.path(self.folder))
        for each in query.reads:
            yield from self._with_reads(source.relations.get(each, each), defined)
        yield Relation(name, self.query(source), keep=query.is_kept)

    def query(self, source: str | From) -> exp.Query:
        """The statement of a file; parameters that the graph does not know stay open."""
        source = From(source) if isinstance(source, str) else source
        query = load(source.path(self.folder))
        segment = {alias: self._columns_of(name) for alias, name in query.segments.items()}
        values = self.values if query.params and {*query.params} <= self.values.keys() else None
        return statement(query.name, segment, relations=source.relations, columns=source.columns, values=values)

    def _columns_of(self, name: str) -> Sequence[str]:
        """The columns that `segment` stands for behind a name of the header."""
        if name in self.segments:
            return self.segments[name]
        return [each.name for each in self.by if name in {"by", each.source}]


# Scores in cells: the relation of the rows, and what is asked once of the first cells for all groupings.


SCORED, IN_CELLS = "scored", "scored_cells"  # the relations of the rows
CELL = ("cell_block", "cell")
_MERGED = {"lowest": pl.Expr.min, "highest": pl.Expr.max}


@dataclass
class FirstCells:
    """Answers about the first cells, which do not depend on the grouping.

    Attributes:
        engine: Where the relation of the cells is defined.
    """

    engine: Engine
    _fetched: dict[tuple[str, CellGrid, tuple[str, ...]], pl.DataFrame] = field(default_factory=dict)

    def fetch(self, query: Query, names: tuple[str, ...], grid: CellGrid) -> pl.DataFrame:
        """Counts or extremes by group and cell, in the order of groups and cells.

        Those of a coarser grouping are put together from those of a finer one, if that was asked for before.

        Args:
            query: What is asked of the cells, with `segment` for the grouping columns.
            names: The grouping columns.
            grid: The grid in which the relation has its cells now.
        """
        for (asked, grid_of_rows, fine), rows in self._fetched.items():
            if asked == query.name and grid_of_rows == grid and set(names) < set(fine):
                # what the cells of finer groups have together in each group
                keys = [*names, *CELL]
                values = [name for name in rows.columns if name not in {*fine, *CELL}]
                merged = rows.group_by(keys).agg(_MERGED.get(name, pl.Expr.sum)(pl.col(name)) for name in values)
                return merged.sort(keys, nulls_last=True).select(*keys, *values)
        rows = self.engine.fetch(expand(query, names))
        self._fetched[query.name, grid, names] = rows
        return rows


def rows_in_cells(grid: CellGrid | None, *, missed: bool, rows: str = SCORED) -> exp.Select:
    """The rows with their cell in a grid; None: with their score as cell.

    Args:
        grid: The grid.
        missed: Whether rows may have the score minus infinity: they have the first cell, below those of the grid.
        rows: The relation of the rows.
    """
    score = column("score")
    if grid is None:
        block, cell = exp.cast(exp.Literal.number(0), exp.DataType.Type.UTINYINT), score
        return exp.select("*", exp.alias_(block, CELL[0]), exp.alias_(cell, CELL[1])).from_(rows)
    number, count = piecewise_cells(score, grid.edges, grid.sizes), grid.cells
    if missed:
        above = exp.Add(this=exp.paren(number), expression=exp.Literal.number(1))
        number, count = exp.Coalesce(this=above, expressions=[exp.Literal.number(0)]), count + 1
    value, whole_cell = exp.alias_(number, "whole_cell", copy=False), column("whole_cell")
    split = (block_of(whole_cell, count), cell_in_block(whole_cell))
    columns = (exp.alias_(each, name) for each, name in zip(split, CELL, strict=True))
    numbered = exp.select("*", value, copy=False).from_(rows, copy=False).subquery("scored_in_cells", copy=False)
    return exp.select("*", *columns, copy=False).from_(numbered, copy=False)


def span_of_scores(engine: Engine, relation: str, *, once: bool = False) -> tuple[float, float]:
    """Return the lowest and the highest finite score of a relation, 0 and 0 if it has none; `once` as for `fetch`."""
    ends = (exp.alias_(exp.Min(this=column("score")), "low"), exp.alias_(exp.Max(this=column("score")), "high"))
    query = exp.select(*ends).from_(relation).where(is_finite(column("score")))
    low, high = engine.fetch(query, once=once).row(0)
    return (0.0, 0.0) if low is None else (float(low), float(high))
