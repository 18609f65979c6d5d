"""Pure functions over rows that Spark brings together by a key, on its workers.

Rows of several queries travel as one relation: its key columns, the number of the query, and for every query a struct
of its columns, which is NULL in the rows of the others.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import polars as pl
    import pyarrow as pa
    from pyspark.sql import DataFrame

    Function = Callable[[Mapping[str, pl.DataFrame]], pl.DataFrame]

NUMBER = "number_of_query"


def by_key(
    frames: Mapping[str, DataFrame], key: Sequence[str], function: Function, n_partitions: int | None
) -> DataFrame:
    """Return the rows that a function makes of all rows of each key, as a relation that is made when it is read.

    Args:
        frames: The rows it needs, by name; each has the columns of the key.
        key: Columns; rows with the same values stay together.
        function: As `Engine.transform` has it.
        n_partitions: Into how many parts rows are divided; None: as many as Spark shuffles into.
    """
    import pyarrow as pa  # noqa: PLC0415 - on workers, too, these are loaded where they are needed
    from pyspark.sql.pandas.types import from_arrow_schema  # noqa: PLC0415

    tagged = [_tagged(frame, number, list(frames.values()), key) for number, frame in enumerate(frames.values())]
    rows = tagged[0]
    for other in tagged[1:]:
        rows = rows.unionAll(other)
    keys = [f"key_{number}" for number in range(len(key))]
    rows = rows.repartition(*keys) if n_partitions is None else rows.repartition(n_partitions, *keys)
    made_of_nothing = _made({name: frame.limit(0).toArrow() for name, frame in frames.items()}, function)
    schema = pa.schema([field.with_nullable(True) for field in made_of_nothing.schema])
    struct = from_arrow_schema(schema, prefer_timestamp_ntz=True)
    return rows.mapInArrow(partial(_on_worker, names=tuple(frames), function=function, schema=schema), struct)


def _tagged(frame: DataFrame, number: int, frames: Sequence[DataFrame], key: Sequence[str]) -> DataFrame:
    from pyspark.sql.types import StructType  # noqa: PLC0415 - an optional extra

    from .spark_places import functions_of  # noqa: PLC0415 - loads pyarrow

    sql = functions_of(frame)
    keys = [frame[_quoted(name)].alias(f"key_{position}") for position, name in enumerate(key)]
    structs = [
        sql.struct(*[frame[_quoted(name)] for name in frame.columns]).alias(f"rows_{position}")
        if position == number
        else sql.lit(None).cast(StructType(other.schema.fields)).alias(f"rows_{position}")
        for position, other in enumerate(frames)
    ]
    return frame.select(*keys, sql.lit(number).alias(NUMBER), *structs)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _on_worker(
    batches: Iterator[pa.RecordBatch], *, names: Sequence[str], function: Function, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """Call the function with all rows of one part."""
    import pyarrow as pa  # noqa: PLC0415 - see by_key
    import pyarrow.compute as pc  # noqa: PLC0415

    held = list(batches)
    if not held:
        return
    rows = pa.Table.from_batches(held)
    tables = {}
    for number, name in enumerate(names):
        of_query = rows.filter(pc.equal(rows[NUMBER], number))[f"rows_{number}"].combine_chunks()
        tables[name] = pa.Table.from_struct_array(of_query)
    yield from _made(tables, function).cast(schema).to_batches()


def _made(tables: Mapping[str, pa.Table], function: Function) -> pa.Table:
    import polars as pl  # noqa: PLC0415 - see by_key

    from .spark_places import sparkable  # noqa: PLC0415 - loads pyarrow

    frames = {name: pl.DataFrame(pl.from_arrow(table)) for name, table in tables.items()}
    return sparkable(function(frames).to_arrow(compat_level=pl.CompatLevel.oldest()))
