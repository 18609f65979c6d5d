"""Apache Spark as an engine: a session of our own that reads the inputs; only small results come back from it."""

from __future__ import annotations

import re
import uuid
from functools import partial
from typing import TYPE_CHECKING, Self, TypeVar

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import sqlglot.expressions as exp
from sqlglot.errors import UnsupportedError

from ..errors import ConfigError, DataError, Interrupted, ThresherError
from ..queries.dialect import column, render
from .duckdb import QueryThread
from .spark_faults import translated
from .spark_places import frame_of, functions_of, is_nanoseconds, made_places, sparkable, struct_of, tells
from .spark_session import SparkSettings, started_session
from .spark_workers import by_key

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import ModuleType, TracebackType

    from pyspark.sql import Column, DataFrame

    from ..interrupts import StopRequest
    from ..queries.partitions import Partition
    from .duckdb import Resources
    from .engine import Function, Place, Settle

T = TypeVar("T")
LOCATION = ("source_file", "file_row_number")
_FOLDER = "folder_"  # what the names of columns begin with that are dropped again
_IN_PATTERNS = re.compile(r"([{}\[\]*?\\,])")


class Spark:
    """A session of Spark for one stage.

    Args:
        settings: Where it runs, and with which options.
        resources: Limits, for a Spark that runs on this machine.
        stop: Checked while a query runs; a request to stop cancels the query.
        targets: What Spark reads itself: it is found before a relation of the stage can take its name.
    """

    name = "spark"
    has_workers = True

    def __init__(
        self, settings: SparkSettings, resources: Resources, stop: StopRequest, targets: Iterable[Place] = ()
    ) -> None:
        self._session = started_session(settings, resources)
        self._tag = f"thresher-{uuid.uuid4()}"
        self._thread = QueryThread(stop, lambda: self._session.interruptTag(self._tag))
        self._run(lambda: self._session.addTag(self._tag), "")
        self._kept: list[DataFrame] = []
        self._files: dict[str, None] = {}
        self.most_in_order: int | None = settings.driver_rows
        self._places: dict[tuple[str, str], str] = {}
        for target in targets:
            self._run(partial(self._find, target), target.target)

    @staticmethod
    def version() -> str:
        """Version of the library."""
        import pyspark  # noqa: PLC0415 - an optional extra

        return str(pyspark.__version__)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give back what was kept; Spark itself goes on for the next stage, and ends with the process."""
        self._thread.close()
        if not self._thread.is_abandoned:
            for frame in self._kept:
                frame.unpersist()

    def scan(
        self, name: str, files: Sequence[str], partitions: Sequence[Partition] = (), *, located: bool = False
    ) -> None:
        """Register files with the same schema as a relation.

        Args:
            name: The relation.
            files: Absolute paths; wildcard characters in them are taken literally.
            partitions: Columns to add, with their values in each file.
            located: Add the columns `source_file` and `file_row_number`.
        """
        self._files |= dict.fromkeys(files)
        schema = pq.read_schema(files[0])
        self._run(lambda: self._read(files, schema, partitions, located=located).createOrReplaceTempView(name), name)

    def _read(
        self, files: Sequence[str], schema: pa.Schema, partitions: Sequence[Partition], *, located: bool
    ) -> DataFrame:
        reader = self._session.read.schema(struct_of(schema)).option("recursiveFileLookup", "true")
        frame = reader.parquet(*[_IN_PATTERNS.sub(r"\\\1", file) for file in files])
        columns = [_timed(frame, field) for field in schema if field.name in frame.columns]
        rows = frame.select(*columns, *(_location(frame) if located or partitions else ()))
        if partitions:
            rows = self._with_partitions(rows, files, partitions)
        return rows if located else rows.drop(*LOCATION)

    def _with_partitions(self, rows: DataFrame, files: Sequence[str], partitions: Sequence[Partition]) -> DataFrame:
        """Add the values of partitions, which are looked up by the path of the file that a row comes from."""
        sql = functions_of(rows)
        texts = {f"{_FOLDER}{number}": pa.array(each.values, pa.string()) for number, each in enumerate(partitions)}
        looked_up = self._session.createDataFrame(pa.table({_FOLDER: list(files)} | texts))
        joined = rows.join(sql.broadcast(looked_up), rows[LOCATION[0]] == looked_up[_FOLDER], "left")
        unknown = sql.raise_error(sql.concat(sql.lit("the folders are not known of "), sql.col(LOCATION[0])))
        is_unknown = looked_up[_FOLDER].isNull()
        with_texts = joined.withColumns(
            {text: sql.when(is_unknown, unknown).otherwise(looked_up[text]) for text in texts}
        )
        typed = [render(each.typed(column(text)), "spark") for each, text in zip(partitions, texts, strict=True)]
        return with_texts.selectExpr("*", *typed).drop(_FOLDER, *texts)

    def _find(self, target: Place) -> None:
        """Name a relation with the columns of a place, and those of the places of its rows."""
        frame, schema = frame_of(self._session, target.kind, target.target), target.schema
        columns = [_timed(frame, field) for field in schema if schema.names.count(field.name) == 1]
        if tells(frame, "file_path", "row_index"):
            columns += _location(frame)
        else:
            columns += made_places(frame, target.target, target.rows)
        name = self._places.setdefault((target.kind, target.target), f"place_{len(self._places)}")
        frame.select(*columns).createOrReplaceTempView(name)

    def scan_place(self, name: str, target: Place, *, located: bool = False) -> None:
        """Register a table, or files at an address, as a relation; arguments as those of `ReadsPlaces.scan_place`."""

        def scan() -> None:
            frame = self._session.table(self._places[target.kind, target.target])
            (frame if located else frame.drop(*LOCATION)).createOrReplaceTempView(name)

        self._run(scan, target.target)

    def hand_over(self, name: str, table: pa.Table) -> None:
        """Register a table that lies in memory as a relation."""
        rows = sparkable(table)
        self._run(lambda: self._session.createDataFrame(rows).createOrReplaceTempView(name), name)

    def define(self, name: str, query: exp.Query, *, keep: bool = False) -> None:
        """Give a query a name; with `keep` its rows are computed once and kept by the workers."""
        text = _text(query)
        self._run(lambda: self._define(name, self._session.sql(text), keep=keep), text)

    def _define(self, name: str, frame: DataFrame, *, keep: bool) -> None:
        if keep:
            self._kept.append(frame.cache())
        frame.createOrReplaceTempView(name)

    def fetch(
        self,
        query: exp.Query,
        params: Mapping[str, float] | None = None,
        *,
        once: bool = False,  # noqa: ARG002 - all engines are called alike
    ) -> pl.DataFrame:
        """Run a query and return its rows.

        Raises:
            DataError: a file cannot be read, or a value cannot be converted.
            ResourceError: memory or disk space is exhausted.
            Interrupted: a signal asked to stop.
        """
        text = _text(query)
        values = {name: params[name] for name in _placeholders(query)} if params else None
        table = self._run(lambda: self._session.sql(text, args=values).toArrow(), text)
        return _with_unsigned(pl.DataFrame(pl.from_arrow(table)))

    def count(
        self,
        query: exp.Query,
        params: Mapping[str, float],
        settle: Settle,
        settled_by: str,  # noqa: ARG002 - all engines are called alike
    ) -> pl.DataFrame:
        """Run a query whose counts are settled: of all files together."""
        return settle(lambda other: self.fetch(other, params), self.fetch(query, params))

    def stream(self, query: exp.Query) -> Iterator[pl.DataFrame]:
        """Run a query and return its rows in order; all of them are brought to this machine, up to a limit.

        Raises:
            DataError: there are more rows.
            ThresherError: the errors of `fetch`.
        """
        without_order = query.copy()
        without_order.set("order", None)
        n_rows = exp.alias_(exp.Count(this=exp.Star()), "n_rows")
        number = self.fetch(exp.select(n_rows).from_(without_order.subquery("rows_in_order"))).item()
        if self.most_in_order is not None and number > self.most_in_order:
            message = (
                f"a step needs {number:,} rows in order, which Spark would have to bring to this machine; the limit is "
                f"{self.most_in_order:,}"
            )
            raise DataError(message, remedy="Raise driver_rows in [spark], or leave out what needs this step.")
        yield self.fetch(query)

    def fill(self, name: str, frames: Iterable[pl.DataFrame]) -> None:
        """Create a relation from at least one frame, all with the same columns."""
        rows = pl.concat(list(frames))
        self.hand_over(name, rows.to_arrow(compat_level=pl.CompatLevel.oldest()))

    def transform(
        self,
        name: str,
        reads: Mapping[str, exp.Query],
        key: Sequence[str],
        function: Function,
        batches: Iterable[pl.DataFrame],  # noqa: ARG002 - all engines are called alike
    ) -> None:
        """Create a relation that a function makes of the rows of each key, on the workers; it is made once."""
        texts = {label: _text(query) for label, query in reads.items()}

        def made() -> None:
            frames = {label: self._session.sql(text) for label, text in texts.items()}
            self._define(name, by_key(frames, key, function, None), keep=True)

        self._run(made, "\n\n".join(texts.values()))

    def bucket(self, keys: Sequence[str], count: int) -> exp.Expr:
        """Return an expression for a number from 0 to count - 1 that is the same for all rows with the same key."""
        digest = exp.func("xxhash64", *(column(key) for key in keys))
        return exp.func("pmod", digest, exp.Literal.number(count))

    def memory(self) -> int:
        """Return how many bytes may be brought to this machine: nothing is put in order here beyond the limit."""
        return 0

    def _run(self, work: Callable[[], T], text: str) -> T:
        try:
            return self._thread.run(work)
        except (ThresherError, Interrupted):
            raise
        except Exception as error:  # pyspark, py4j and grpc have no class of errors in common
            raise translated(error, text) from error


def _text(query: exp.Query) -> str:
    """The text of a query.

    Raises:
        ConfigError: SQL of the user in it has no meaning, or another one, on Spark.
    """
    try:
        return render(query, "spark")
    except UnsupportedError as error:
        remedy = 'Compute the column beforehand, write it otherwise, or use engine = "duckdb".'
        raise ConfigError(str(error), remedy=remedy) from error


def _with_unsigned(frame: pl.DataFrame) -> pl.DataFrame:
    """Give whole numbers back the type that they have in files and Spark lacks: unsigned, of 64 bits."""
    unsigned = [name for name, dtype in frame.schema.items() if dtype == pl.Decimal(20, 0)]
    return frame.with_columns(pl.col(name).cast(pl.UInt64) for name in unsigned if (frame[name].min() or 0) >= 0)  # type: ignore[operator]


def _placeholders(query: exp.Query) -> dict[str, None]:
    return dict.fromkeys(str(node.this) for node in query.find_all(exp.Placeholder))


def _timed(frame: DataFrame, field: pa.Field) -> Column:
    """A column; nanoseconds become microseconds, the finest that Spark has."""
    sql = functions_of(frame)
    name = "`" + field.name.replace("`", "``") + "`"
    if not is_nanoseconds(field.type):
        return frame[name]
    nearest = f"CASE WHEN {name} < 0 THEN -((500 - {name}) DIV 1000) ELSE ({name} + 500) DIV 1000 END"  # as DuckDB
    instant = sql.expr(f"timestamp_micros({nearest})")
    return (instant if field.type.tz else instant.cast("timestamp_ntz")).alias(field.name)


def _location(frame: DataFrame) -> tuple[Column, Column]:
    """The columns `source_file` and `file_row_number` of rows in files."""
    sql = functions_of(frame)
    address, index = sql.col("_metadata.file_path"), sql.col("_metadata.row_index")
    return _path_of(address, sql).alias("source_file"), index.alias("file_row_number")


def _path_of(address: Column, sql: ModuleType) -> Column:
    """The path of a file by its address, in which some characters are written as numbers."""
    no_space = sql.replace(sql.regexp_replace(address, "^file:/+", "/"), sql.lit("+"), sql.lit("%2B"))
    path: Column = sql.url_decode(no_space)
    return path
