"""Statements that create and fill the tables of a catalog, as text; those of equal arguments are made once."""

from __future__ import annotations

from functools import cache

import sqlglot.expressions as exp
from sqlglot import parse_one

from ..queries.dialect import column, data_type, render

MAIN, HISTORY = "main", "history"
FILE_PATH = ",path"  # no grouping column has a comma in its name

ATTEMPTS_NOW = """
CREATE TEMP TABLE attempts AS
SELECT * FROM attempts WHERE NOT list_contains($stale, run_id) UNION ALL BY NAME FROM added ORDER BY started_at, run_id
"""
DROP = {"TABLE": "DROP TABLE target", "VIEW": "DROP VIEW target"}
EMPTY = "DELETE FROM target"
FORGET = "DELETE FROM target WHERE NOT list_contains($run_ids, run_id)"
ADD_ROWS = "INSERT INTO target BY NAME SELECT * FROM added"
ROWS_OF_RUNS = "SELECT run_id, count(*) FROM target GROUP BY run_id"
Columns = tuple[tuple[str, str], ...]  # name and SQL type, in order
View = tuple[str, str]  # schema and name


def table(view: View) -> exp.Table:
    """Return a table of the current database as a tree."""
    schema, name = view
    return exp.table_(name, db=schema, quoted=True)


def text(tree: exp.Expr) -> str:
    """Return a statement on one line."""
    return render(tree, pretty=False, copy=False)


@cache
def on(view: View, statement: str) -> str:
    """Return a statement about a table that its text calls `target`."""
    tree = parse_one(statement, read="duckdb")
    for target in [found for found in tree.find_all(exp.Table) if found.name == "target"]:
        target.replace(table(view))
    return text(tree)


@cache
def create(view: View, columns: Columns) -> str:
    """Create a table."""
    items: list[exp.Expr] = [
        exp.ColumnDef(this=exp.to_identifier(name, quoted=True), kind=_type(sql_type)) for name, sql_type in columns
    ]
    return text(exp.Create(this=exp.Schema(this=table(view), expressions=items), kind="TABLE"))


@cache
def comment(view: View, words: str, *, kind: str = "TABLE", name: str | None = None) -> str:
    """Comment on a table, on a view, or on one of their columns."""
    target: exp.Expr = table(view)
    if name is not None:
        kind = "COLUMN"
        target = exp.column(exp.to_identifier(name, quoted=True), table=view[1], db=view[0], quoted=True)
    return text(exp.Comment(this=target, kind=kind, expression=exp.Literal.string(words)))


@cache
def add_column(view: View, name: str, sql_type: str) -> str:
    """Add a column, which is NULL in the existing rows."""
    added = exp.ColumnDef(this=exp.to_identifier(name, quoted=True), kind=_type(sql_type))
    return text(exp.Alter(this=table(view), kind="TABLE", actions=[added]))


@cache
def make_text(view: View, name: str) -> str:
    """Turn a column into VARCHAR."""
    changed = exp.AlterColumn(this=exp.to_identifier(name, quoted=True), dtype=_type("VARCHAR"))
    return text(exp.Alter(this=table(view), kind="TABLE", actions=[changed]))


@cache
def insert_file(view: View, columns: Columns, names: Columns) -> str:
    """Add the rows of the Parquet file `$path`.

    Args:
        view: The table.
        columns: Its columns.
        names: Name in the file by name in the table.
    """
    select = _row(_cast_items(columns, dict(names))).from_(_read(exp.Placeholder(this="path")), copy=False)
    return text(exp.Insert(this=table(view), expression=select))


@cache
def insert_files(view: View, leading: Columns, columns: Columns, names: Columns) -> str:
    """Add the rows of the Parquet files `$paths` to a table of history.

    Args:
        view: The table.
        leading: What it has in front, in the relation `listed` by path.
        columns: The columns of the files by their names in the table.
        names: As for `insert_file`.
    """
    files = _read(exp.Placeholder(this="paths"), filename=exp.Literal.string(FILE_PATH))
    items = [*(column(name, "listed") for name, _ in leading), *_cast_items(columns, dict(names), "files")]
    listed = exp.EQ(this=column(FILE_PATH, "files"), expression=column("path", "listed"))
    aliased = exp.Table(this=files, alias=exp.TableAlias(this=exp.to_identifier("files")))
    select = _row(items).from_(aliased, copy=False).join("listed", on=listed, copy=False)
    return text(exp.Insert(this=table(view), expression=select, by_name=True))


@cache
def remember(name: str, leading: Columns) -> str:
    """Add the rows of the latest run to its table in history.

    Args:
        name: The table.
        leading: What it has in front there, each a parameter of that name.
    """
    values = (named(exp.Cast(this=exp.Placeholder(this=key), to=_type(sql_type)), key) for key, sql_type in leading)
    select = _row([*values, exp.Star()]).from_(table((MAIN, name)), copy=False)
    return text(exp.Insert(this=table((HISTORY, name)), expression=select, by_name=True))


@cache
def count_rows(views: tuple[View, ...], *, of_run: bool) -> str:
    """Count the rows of each table, with its number; with `of_run`, only rows of `$run_id`."""
    selects = []
    for number, view in enumerate(views):
        select = exp.select(exp.Literal.number(number), exp.Count(this=exp.Star())).from_(table(view), copy=False)
        if of_run:
            select = select.where(exp.EQ(this=column("run_id"), expression=exp.Placeholder(this="run_id")), copy=False)
        selects.append(select)
    return text(union(selects))


def view_of_files(view: View, paths: tuple[str, ...], columns: Columns, names: tuple[Columns, ...]) -> str:
    """A view of Parquet files; `names` of each file as in `insert_file`."""
    selects = [
        _row(_cast_items(columns, dict(of_file))).from_(_read(exp.Literal.string(path)), copy=False)
        for path, of_file in zip(paths, names, strict=True)
    ]
    return text(exp.Create(this=table(view), kind="VIEW", expression=union(selects), replace=True))


def show_through(view: View, run_ids: tuple[str, ...] | None) -> str:
    """A view of a table of the attached catalog, without the runs that are not among the given ids."""
    select = exp.select("*").from_(exp.table_(view[1], db=view[0], catalog="catalog", quoted=True), copy=False)
    if run_ids is not None:
        select = select.where(column("run_id").isin(*run_ids), copy=False)
    return text(exp.Create(this=table(view), kind="VIEW", expression=select))


def runs_in_place(run_ids: tuple[str, ...], front: str, columns: Columns) -> str:
    """The view `runs` of the attached catalog, of runs with the given ids; `front` now stands before their names."""
    path = exp.func("replace", column("path"), exp.Literal.string("\\"), exp.Literal.string("/"))
    name = exp.func("list_extract", exp.func("string_split", path, exp.Literal.string("/")), exp.Literal.number(-1))
    moved = named(exp.DPipe(this=exp.Literal.string(front), expression=name), "path")
    items = [moved if name == "path" else column(name) for name, _ in columns]
    select = _row(items).from_(exp.table_("runs", db=MAIN, catalog="catalog", quoted=True), copy=False)
    select = select.where(column("run_id").isin(*run_ids), copy=False)
    return text(exp.Create(this=table((MAIN, "runs")), kind="VIEW", expression=select))


def union(selects: list[exp.Select]) -> exp.Query:
    """All rows of queries."""
    return selects[0] if len(selects) == 1 else exp.union(*selects, distinct=False, copy=False)


def named(value: exp.Expr, name: str) -> exp.Expr:
    """A value under a name."""
    return exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True))


def _read(path: exp.Expr, **options: exp.Expr) -> exp.Expr:
    # hive_partitioning is off so that a folder above the results called `a=b` adds no column
    options = {"hive_partitioning": exp.false(), **options}
    words = [exp.EQ(this=exp.column(name), expression=value) for name, value in options.items()]
    return exp.func("read_parquet", path, *words)


def _cast_items(columns: Columns, names: dict[str, str], files: str | None = None) -> list[exp.Expr]:
    return [
        named(exp.Cast(this=column(names[name], files) if name in names else exp.null(), to=_type(sql_type)), name)
        for name, sql_type in columns
    ]


def _type(sql_type: str) -> exp.DataType:
    return data_type(sql_type).copy()


def _row(items: list[exp.Expr]) -> exp.Select:
    """A SELECT of new items: they are taken as they are, since a copy of every tree costs more than all the rest."""
    return exp.select(*items, copy=False)
