"""Whose fault it is that an engine could not compute a value: that of a predicate of the user, or of a file."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.dialect import column
from pipeline.errors import DataError, UncomputableError
from pipeline.paths import shortened
from pipeline.sources.predicates import columns_of, parse_predicate

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.engines.engine import Engine
    from pipeline.sources.source import Source
    from pipeline.stages.plan import Plan


@contextmanager
def naming_where(engine: Engine, plan: Plan) -> Iterator[None]:
    """Name the input and its `where` when that is what could not be computed for some row.

    Which predicate it was is asked for only then: each is computed by itself, and must fail where its columns can be
    read.

    Raises:
        DataError: names the input, its predicate and what the engine says.
    """
    try:
        yield
    except UncomputableError:
        sources = {each.source.name: each.source for each in plan.relations if each.source is not None}
        for source in sources.values():
            _compute(engine, source)
        raise


def _compute(engine: Engine, source: Source) -> None:
    where = source.spec.where
    if where is None:
        return
    for scan in source.scans(()):
        engine.scan(scan.name, scan.files)
    total = exp.select(exp.Count(this=exp.Star()))
    try:
        engine.fetch(total.from_(source.relation({}).subquery("rows_of_files")).where(column("kept")))
    except UncomputableError as error:
        if not _is_readable(engine, source, where):
            return
        message = f"input {source.name}: where ({shortened(where)}) cannot be computed: {error.reason}"
        remedy = "It must have a value for every row: CAST to a wider type, or leave such rows out with CASE."
        raise DataError(message, remedy=remedy) from error


def _is_readable(engine: Engine, source: Source, where: str) -> bool:
    names = columns_of(parse_predicate(where, name=source.name))
    columns = {str(file.path): {name.lower() for name in file.schema.names} for file in source.files}
    for scan in source.scans(()):  # its files have one schema; other names are those of folders
        read = [name for name in names if name.lower() in columns[scan.files[0]]]
        try:
            if read:
                engine.fetch(exp.select(exp.Max(this=engine.bucket(read, 2))).from_(exp.to_table(scan.name)))
        except DataError:
            return False
    return True
