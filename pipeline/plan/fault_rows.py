"""Rows of inputs become relations of an engine: files are scanned, tables in memory handed over, its own named."""

from __future__ import annotations

from typing import TYPE_CHECKING

import sqlglot.expressions as exp

from ..engines.engine import ReadsPlaces
from ..errors import ThresherError
from ..queries.dialect import column
from ..sources.canonical import canonical_relation
from ..sources.inputs import Field
from ..tables.groupings import users_name

if TYPE_CHECKING:
    from ..engines.engine import Engine
    from ..sources.source import Scan, Source


def register(engine: Engine, scan: Scan, *, located: bool = False) -> None:
    """Make the rows of a scan a relation of an engine.

    Args:
        engine: The engine.
        scan: Files of one schema, a frame, or what the engine reads itself.
        located: Whether to add the columns `source_file` and `file_row_number`.
    """
    if (rows := scan.engine_rows) is not None:
        if not isinstance(engine, ReadsPlaces):
            message = f"the engine {engine.name} does not read {rows.name}"
            raise ThresherError(message)
        engine.scan_place(scan.name, rows, located=located)
    elif scan.frame is None:
        engine.scan(scan.name, scan.files, scan.partitions, located=located)
    else:
        engine.hand_over(scan.name, scan.frame.located() if located else scan.frame.table)


# Where a fault lies: the first file and row, asked for only once something is wrong.


ROWS = "rows_of_files"


def first_place(engine: Engine, source: Source, problem: exp.Expr) -> str:
    """The first file with rows that have a problem, how many it has, and the first of them, in words after a message.

    Args:
        engine: Reads the files of the input again, with the place of every row.
        source: The input.
        problem: A condition on its canonical columns; where it asks for rows of other relations, `ROWS` qualifies them.

    Returns:
        Text that starts with a blank; empty where the condition reads what no file holds, no row satisfies it, or
        rows have no place.
    """
    names = tuple(dict.fromkeys(each.name for each in problem.find_all(exp.Column) if each.table in {"", ROWS}))
    fields = {name: _field(source, name) for name in names}
    score = "score" if "score_state" in fields else None
    if score is not None:
        fields = {"score": source.contract.field("score") or Field("score", "number", "the score")}
    if (
        source.without_places is not None
        or not fields
        or not all(source.offers(field.name) for field in fields.values())
    ):
        return ""
    for scan in source.scans:
        register(engine, scan, located=True)
    query = canonical_relation(source, fields, score=score, located=True)
    numbers = [
        exp.alias_(exp.Min(this=column("file_row_number")), "first"),
        exp.alias_(exp.Count(this=exp.Star()), "n"),
    ]
    faults = exp.select(column("source_file"), *numbers).from_(query.subquery(ROWS))
    faults = (
        faults.where(column("passes_where"), problem).group_by(column("source_file")).order_by(column("source_file"))
    )
    frame = engine.fetch(faults.limit(1))
    if frame.is_empty():
        return ""
    file, first_row, n_rows = frame.row(0)
    return f" ({n_rows:,} in {file}, first at row {first_row + 1:,})"


def _field(source: Source, name: str) -> Field:
    """What a column of the canonical relation is read from; a grouping column is read as it is."""
    field = source.field(name)
    if field is not None:
        return field
    column_name = users_name(name)
    return Field(column_name if source.offers(column_name) else column_name.partition(".")[2], "any", "a column")
