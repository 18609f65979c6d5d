"""Rows for pure functions, part by part, so that they need not fit into memory together.

A part is a range of a key of whole numbers where it is known how many rows its values have: of files sorted by the key
only the rows of a part are read. Else a part is a bucket of a hash.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from pipeline.plan.nodes import Placed
from pipeline.queries.dialect import column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import polars as pl

    from pipeline.engines.engine import Engine
    from pipeline.plan.nodes import Matched

PART_ROWS = 3_000_000


def fetched(engine: Engine, frames: Mapping[str, exp.Query]) -> dict[str, pl.DataFrame]:
    """The rows of several queries, by name."""
    return {name: engine.fetch(query) for name, query in frames.items()}


def matched_rows(engine: Engine, matched: Matched) -> Iterator[pl.DataFrame]:
    """Rows of a matched relation, part by part, at least one."""
    for chosen in _conditions(engine, matched):
        frames = {name: _within(query, chosen) for name, query in matched.frames.items()}
        yield matched.match(fetched(engine, frames))


def rows_to_fold(engine: Engine, rows: exp.Query | Placed) -> Iterator[pl.DataFrame]:
    """Blocks of rows in order, or rows with their places among others, part by part."""
    if not isinstance(rows, Placed):
        yield from engine.stream(rows)
        return
    for chosen in _ranges(engine, rows.sizes, rows.key):
        own = engine.fetch(_within(rows.rows, chosen))
        if not own.is_empty():
            yield from rows.place(own, engine.stream(_within(rows.among, chosen)))


def _within(query: exp.Query, chosen: exp.Expr | None) -> exp.Query:
    return query if chosen is None else exp.select("*").from_(query.subquery("rows_of_parts")).where(chosen)


def _conditions(engine: Engine, matched: Matched) -> Iterator[exp.Expr | None]:
    """What the rows of every part have in common; None: one part has all."""
    parts = max(1, -(-matched.rows // PART_ROWS))
    if parts == 1:
        yield None
    elif matched.sizes is not None:
        yield from _ranges(engine, matched.sizes, *matched.key)
    else:
        for number in range(parts):
            yield exp.EQ(this=engine.bucket(matched.key, parts), expression=exp.Literal.number(number))


def _ranges(engine: Engine, sizes: exp.Query, name: str) -> Iterator[exp.Expr | None]:
    """Ranges of a key that have about as many rows as a part may have."""
    key = column(name)
    edges = engine.fetch(_starts(sizes, key))["start"].sort().to_list()[1:]
    for start, stop in pairwise([None, *edges, None]):
        sides = ((exp.GTE, start), (exp.LT, stop))
        within = [side(this=key.copy(), expression=exp.convert(edge)) for side, edge in sides if edge is not None]
        yield exp.and_(*within) if within else None


def _starts(sizes: exp.Query, key: exp.Column) -> exp.Query:
    """The first key of every part: keys in order, cut where the rows up to them fill one more part."""
    in_order = exp.Order(expressions=[exp.Ordered(this=key.copy())])
    until = exp.Window(this=exp.Sum(this=column("n_rows")), order=in_order)
    share = exp.Div(this=exp.cast(until, "DOUBLE"), expression=exp.Literal.number(PART_ROWS))
    part = exp.alias_(exp.Ceil(this=share), "part")
    numbered = exp.select(key.copy(), part).from_(sizes.subquery("sizes"))
    start = exp.alias_(exp.Min(this=key.copy()), "start")
    return exp.select(start).from_(numbered.subquery("numbered")).group_by(column("part"))
