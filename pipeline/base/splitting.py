"""Which queries add up over files: each is split into what single files are asked and what puts their answers together.

A query adds up over the files of an input when it aggregates rows that each come from one row of these files:
filtered, computed, and joined with relations that do not read the files themselves. Then its answer is put together
from the counts, sums, lowest and highest values of the files, exactly, in any order. Anything else (an order of all
rows, distinct values of a group, groups of which only some are kept) needs all files at once.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from .dialect import FILE, column, from_clause, render
from .records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping


ANSWERS = "answers_of_files"  # relation of what single files answered
_SUMMED = (exp.Count, exp.CountIf, exp.Sum)
_MERGED = (*_SUMMED, exp.Min, exp.Max)
_INNER = {"", "INNER", "CROSS"}


@dataclass(frozen=True)
class Met:
    """A relation whose rows meet those of the files in a join.

    Attributes:
        relation: It, as a query.
        keys: Column of the relation → the column of the rows of files that it must equal; empty: any of its rows may
            count for any file.
        rows: Query of these columns for the rows of files, each distinct combination once for a file.
    """

    relation: exp.Query
    keys: tuple[tuple[str, str], ...] = ()
    rows: ByFile | None = None


@dataclass(frozen=True)
class ByFile:
    """A query of rows that each come from one file.

    Attributes:
        rows: It, with the column `FILE`.
        met: What else its rows depend on.
        merged_by: How values of several files become one, by column: `sum`, `min` or `max`. Rows with equal other
            columns are of one group.
    """

    rows: exp.Select
    met: tuple[Met, ...]
    merged_by: dict[str, str] = field(default_factory=dict)

    def of_each_scan(self) -> tuple[str, dict[str, str]]:
        """The text that decides the answer of a file: around the scans, and of each scan by its name.

        Scans of files with other columns, or in other folders, are united; they differ in their own part only.
        """
        tree = self.rows.copy()
        scans = [table for table in tree.find_all(exp.Table) if table.meta.get(FILE)]
        names = [table.meta[FILE] for table in scans]
        for table in scans:
            table.set("this", exp.to_identifier("scan"))
        branches = [_branch(table) for table in scans]
        texts = ["" if branch is None else render(branch, pretty=False) for branch in branches]
        if branches[0] is not None:
            _union(branches[0]).replace(exp.select("*").from_(exp.to_table("united_scans")))
        return render(tree, pretty=False), dict(zip(names, texts, strict=True))


def _branch(table: exp.Table) -> exp.Query | None:
    """The query of a scan in a union of several; None if it is the only one."""
    node = table.find_ancestor(exp.Select)
    while node is not None and not isinstance(node.parent, exp.Union):
        node = node.parent_select
    return node


def _union(branch: exp.Expr) -> exp.Expr:
    """The whole union that a query is part of."""
    while isinstance(branch.parent, exp.Union):
        branch = branch.parent
    return branch


class NotAdditiveError(Exception):
    """A query does not add up over files; the text says why."""


@dataclass(frozen=True)
class Split:
    """A query in two.

    Attributes:
        of_files: What is asked of the files: the keys and the aggregates.
        together: What puts the answers together, from the relation `ANSWERS`.
    """

    of_files: ByFile
    together: exp.Select


@dataclass
class Splitter:
    """Splits queries over the files of some scans.

    Attributes:
        views: The queries of named relations.
        scans: Names of the scans whose files answer one by one.
        numbered: Returns the name under which a scan has its files' numbers, as the column `FILE`.
    """

    views: Mapping[str, exp.Query]
    scans: Collection[str]
    numbered: Callable[[str], str]

    def split(self, query: exp.Query) -> Split:
        """Split a query.

        Raises:
            NotAdditiveError: it does not add up over files.
        """
        select = _plain(query)
        met: list[Met] = []
        rows = self._rows_of(select, met)
        keys, aggregates = _keys(select), _aggregates(select)
        if not keys and not aggregates:
            message = "its rows are not aggregated"
            raise NotAdditiveError(message)
        if keys and select.args.get("having") is not None:
            message = "it keeps some of its groups only"
            raise NotAdditiveError(message)
        names = {key: f"key_{number}" for number, key in enumerate(keys)}
        values = {aggregate: f"value_{number}" for number, aggregate in enumerate(aggregates)}
        columns = [exp.alias_(tree.copy(), name) for tree, name in (names | values).items()]
        of_files = rows.select(*columns, _file_of(rows), append=False)
        of_files = of_files.group_by(*(key.copy() for key in keys), _file_of(rows), append=False)
        merged_by = {name: _merged_by(aggregate) for aggregate, name in values.items()}
        return Split(ByFile(of_files, tuple(met), merged_by), _together(select, names, values))

    def by_file(self, query: exp.Query) -> ByFile:
        """The query with its columns as they are, by `FILE`: every row of the answer is of one file.

        Raises:
            NotAdditiveError: it does not add up over files.
        """
        self.split(query)
        select = _plain(query)
        met: list[Met] = []
        rows = self._rows_of(select, met)
        by_file = rows.select(*(each.copy() for each in select.expressions), _file_of(rows), append=False)
        by_file = by_file.group_by(*(key.copy() for key in _keys(select)), _file_of(rows), append=False)
        aggregates = {item.output_name: next(_within(item, _MERGED), None) for item in select.expressions}
        merged_by = {name: _merged_by(each) for name, each in aggregates.items() if each is not None}
        return ByFile(by_file, tuple(met), merged_by)

    def reads(self, tree: exp.Expr) -> bool:
        """Whether a tree reads the files, through relations too."""
        return any(self._leads(table.name) for table in tree.find_all(exp.Table))

    def _leads(self, name: str) -> bool:
        return name in self.scans or (name in self.views and self.reads(self.views[name]))

    def _rows_of(self, select: exp.Select, met: list[Met]) -> exp.Select:
        """The rows that a query aggregates: its FROM, joins and WHERE, with the numbers of the files at hand."""
        rows = select.copy()
        for key in ("distinct", "group", "having", "order", "limit", "offset"):
            rows.set(key, None)
        return self._carried_from(rows, met)

    def _carried(self, query: exp.Query, met: list[Met]) -> exp.Query:
        """A query whose rows each come from one row of the files, with the column `FILE`."""
        if isinstance(query, exp.Union):
            branches = [self._carried(branch, met) for branch in _branches(query)]
            return exp.union(*branches, distinct=False, copy=False)
        select = _plain(query)
        if any(select.args.get(key) is not None for key in ("distinct", "group", "having", "limit", "offset")):
            message = "it reads groups of rows"
            raise NotAdditiveError(message)
        if any(True for item in select.expressions for _ in _within(item, (exp.AggFunc, exp.Window))):
            message = "it reads rows in the light of others"
            raise NotAdditiveError(message)
        carried = self._carried_from(select.copy(), met)
        return carried if _has_star(carried) else carried.select(_file_of(carried), copy=False)

    def _carried_from(self, select: exp.Select, met: list[Met]) -> exp.Select:
        """Replace the one item of FROM and joins that reads the files by one that has their numbers, too."""
        joins = select.args.get("joins") or []
        items = [from_clause(select), *joins]
        reading = [item for item in items if self.reads(item.this)]
        outside = [select.args.get("where"), *select.expressions, *(join.args.get("on") for join in joins)]
        if len(reading) != 1 or any(tree is not None and self.reads(tree) for tree in outside):
            message = "it reads the files more than once"
            raise NotAdditiveError(message)
        if any(join.args.get("using") or join.side not in {"", "LEFT"} or join.kind not in _INNER for join in joins):
            message = "it joins in a way that is not known to add up"
            raise NotAdditiveError(message)
        if reading[0] is not items[0] and reading[0].side:
            message = "rows without a match are kept"
            raise NotAdditiveError(message)
        met_before: list[Met] = []
        item = self._item(reading[0].this, met_before)
        reading[0].set("this", item)
        select.meta[FILE] = item.alias_or_name
        met += met_before
        met += [_met(select, joined, item, tuple(met_before)) for joined in items if joined is not reading[0]]
        elsewhere = (table for tree in outside if tree is not None for table in tree.find_all(exp.Table))
        met += [Met(exp.select("*").from_(exp.to_table(table.name))) for table in elsewhere]
        return select

    def _item(self, item: exp.Expr, met: list[Met]) -> exp.Expr:
        if isinstance(item, exp.Subquery):
            return self._carried(item.this, met).subquery(item.alias, copy=False)
        name = item.name
        if name in self.scans:
            table = exp.to_table(self.numbered(name)).as_(item.alias_or_name)
            table.meta[FILE] = name
            return table
        return self._carried(self.views[name], met).subquery(item.alias_or_name, copy=False)


def _met(select: exp.Select, joined: exp.Expr, item: exp.Expr, met_before: tuple[Met, ...]) -> Met:
    """The effect of a joined relation on the rows of the files that FROM and the joins before it make."""
    relation, alias = joined.this, item.alias_or_name
    query = relation.this if isinstance(relation, exp.Subquery) else exp.select("*").from_(exp.to_table(relation.name))
    keys = _equal_columns(select, joined, alias)
    if not keys:
        return Met(query)
    columns = [exp.alias_(column(name, alias), name, quoted=True) for name in dict.fromkeys(name for _, name in keys)]
    rows = exp.select(*columns, _file_of(select)).from_(item.copy()).distinct()
    return Met(query, keys, ByFile(rows, met_before))


def _plain(query: exp.Expr) -> exp.Select:
    while isinstance(query, exp.Subquery | exp.Paren):
        query = query.this
    if (
        not isinstance(query, exp.Select)
        or query.args.get("with_")
        or query.args.get("with")
        or query.args.get("qualify")
    ):
        message = "it is no plain SELECT"
        raise NotAdditiveError(message)
    if from_clause(query) is None:
        message = "it reads no relation"
        raise NotAdditiveError(message)
    return query


def _branches(query: exp.Query) -> list[exp.Query]:
    """The queries of a UNION ALL."""
    branches = []
    while isinstance(query, exp.Union):
        if query.args.get("distinct"):
            message = "it unites rows without repeating any"
            raise NotAdditiveError(message)
        branches.append(query.right)
        query = query.left
    return [query, *reversed(branches)]


def _file_of(select: exp.Select) -> exp.Column:
    return column(FILE, select.meta[FILE])


def _has_star(select: exp.Select) -> bool:
    """Whether the columns of the item that has the numbers are all selected."""
    alias = select.meta[FILE]
    return any(
        isinstance(item, exp.Star)
        or (isinstance(item, exp.Column) and isinstance(item.this, exp.Star) and item.table == alias)
        for item in select.expressions
    )


def _within(tree: exp.Expr, kinds: tuple[type[exp.Expr], ...]) -> Iterator[exp.Expr]:
    """Nodes of some kinds in an expression, the outermost of each branch, and none within subqueries."""
    if isinstance(tree, kinds):
        yield tree
    elif not isinstance(tree, exp.Query):
        for child in tree.iter_expressions():
            yield from _within(child, kinds)


def _keys(select: exp.Select) -> list[exp.Expr]:
    """The expressions that rows are grouped by; the number of a column means its expression."""
    if select.args.get("distinct"):
        return [item.unalias() for item in select.expressions]
    group = select.args.get("group")
    keys = []
    for key in group.expressions if group is not None else []:
        is_number = isinstance(key, exp.Literal) and not key.is_string
        keys.append(select.expressions[int(key.this) - 1].unalias() if is_number else key)
    return keys


def _aggregates(select: exp.Select) -> list[exp.Expr]:
    """The aggregates of a query, each once."""
    computed = [*select.expressions, *(select.args[key] for key in ("having", "order") if select.args.get(key))]
    nodes = [node for tree in computed for node in _within(tree, (exp.Window, exp.Filter, exp.AggFunc))]
    for node in nodes:
        aggregate = node.this if isinstance(node, exp.Filter) else node
        if not isinstance(aggregate, _MERGED) or isinstance(aggregate.this, exp.Distinct):
            message = f"{aggregate.sql(dialect='duckdb')} does not add up"
            raise NotAdditiveError(message)
    return list(dict.fromkeys(nodes))


def _together(select: exp.Select, keys: Mapping[exp.Expr, str], values: Mapping[exp.Expr, str]) -> exp.Select:
    """The query over what the files answered: their keys and values in the place of what they were made of."""

    def replaced(node: exp.Expr) -> exp.Expr:
        if node in keys:
            return exp.column(keys[node])
        return _merged(node, exp.column(values[node])) if node in values else node

    names = [item.output_name for item in select.expressions]
    if "" in names or len({*names}) < len(names):
        message = "its columns have no names of their own"
        raise NotAdditiveError(message)
    items = [
        exp.alias_(item.unalias().transform(replaced), item.output_name, quoted=True) for item in select.expressions
    ]
    answered = {*keys.values(), *values.values()}
    for item, written in zip(items, select.expressions, strict=True):
        if any(each.name not in answered for each in item.find_all(exp.Column)):
            message = f"{written.sql(dialect='duckdb')} is neither a key nor an aggregate"
            raise NotAdditiveError(message)
    together = exp.select(*items).from_(exp.to_table(ANSWERS))
    if keys:
        together = together.group_by(*(exp.column(name) for name in keys.values()))
    for key in ("having", "order", "limit", "offset"):
        if select.args.get(key) is not None:
            together.set(key, select.args[key].transform(replaced))
    return together


def _merged_by(aggregate: exp.Expr) -> str:
    function = aggregate.this if isinstance(aggregate, exp.Filter) else aggregate
    return "sum" if isinstance(function, _SUMMED) else function.key


def _merged(aggregate: exp.Expr, value: exp.Column) -> exp.Expr:
    """An aggregate of all rows, from its values for the rows of each file."""
    function = aggregate.this if isinstance(aggregate, exp.Filter) else aggregate
    if not isinstance(function, _SUMMED):
        return type(function)(this=value)
    total = exp.Sum(this=value)
    if isinstance(function, exp.Sum):
        return total
    return exp.cast(exp.Coalesce(this=total, expressions=[exp.Literal.number(0)]), "BIGINT")


def _equal_columns(select: exp.Select, item: exp.Expr, alias: str) -> tuple[tuple[str, str], ...]:
    """Columns of a joined relation that must equal columns of the rows of files: by its name, in pairs."""
    condition = item.args.get("on")
    if condition is None:  # the relation stands first, and the files are joined to it
        condition = next(
            (j.args.get("on") for j in select.args.get("joins") or [] if j.this.alias_or_name == alias), None
        )
    terms = list(condition.flatten()) if isinstance(condition, exp.And) else [condition]
    name, pairs = item.this.alias_or_name, []
    for term in terms:
        sides = (term.this, term.expression) if isinstance(term, exp.EQ) else ()
        by_table = {side.table: side.name for side in sides if isinstance(side, exp.Column)}
        if set(by_table) == {name, alias}:
            pairs.append((by_table[name], by_table[alias]))
    return tuple(pairs)
