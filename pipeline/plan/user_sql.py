"""Whose fault it is that an engine could not compute a value: that of SQL of the user, or of a file."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ..errors import DataError, UncomputableError
from ..queries.dialect import column
from ..sources.bound_sql import WHERE, in_words, uncomputable
from ..sources.canonical import canonical_relation
from ..sources.inputs import Expression, Field
from .scans import register

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..engines.engine import Engine
    from ..sources.source import Source
    from .plan import Plan


@contextmanager
def naming_user_sql(engine: Engine, plan: Plan) -> Iterator[None]:
    """Name the input and its `where`, or the expression of a column, when that could not be computed for some row.

    Which one it was is asked for only then: each is computed by itself, and must fail where its columns can be read.

    Raises:
        DataError: names the input, its SQL and what the engine says.
    """
    try:
        yield
    except UncomputableError:
        sources = {each.source.name: each.source for each in plan.relations if each.source is not None}
        for source in sources.values():
            for words, field, reads in _user_sql(source):
                _compute(engine, source, words, field, reads)
        raise


def _user_sql(source: Source) -> Iterator[tuple[str, Field | None, tuple[str, ...]]]:
    """Every piece of SQL of an input, in words, with the field that it is mapped to and the columns that it reads."""
    if source.spec.where is not None:
        yield in_words(WHERE, source.spec.where), None, source.where_columns
    for name, mapped in source.spec.columns.items():
        if isinstance(mapped, Expression):
            field = source.contract.field(name) or Field(name, "any", "a column")
            yield in_words(name, mapped.sql), field, source.columns_read(name)


def _compute(engine: Engine, source: Source, words: str, field: Field | None, reads: tuple[str, ...]) -> None:
    wanted = {} if field is None else {field.name: field}
    for scan in source.scans:
        register(engine, scan)
    rows = canonical_relation(source, wanted).subquery("rows_of_files")
    if field is None:
        query = exp.select(exp.Count(this=exp.Star())).from_(rows).where(column("passes_where"))
    else:
        query = exp.select(exp.Count(this=column(field.name))).from_(rows)
    try:
        engine.fetch(query)
    except UncomputableError as error:
        if not _is_readable(engine, source, reads):
            return
        raise uncomputable(source.name, words, error.reason) from error


def _is_readable(engine: Engine, source: Source, reads: tuple[str, ...]) -> bool:
    for scan, files in zip(source.scans, source.groups, strict=True):
        columns = {name.lower() for name in files[0].schema.names}  # other names are those of folders
        read = [name for name in reads if name.lower() in columns]
        try:
            if read:
                engine.fetch(exp.select(exp.Max(this=engine.bucket(read, 2))).from_(exp.to_table(scan.name)))
        except DataError:
            return False
    return True
