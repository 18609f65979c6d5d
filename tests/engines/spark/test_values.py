"""Values of every type, and SQL of the user on them, mean on Spark what they mean on DuckDB."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipeline.base.errors import ConfigError, UncomputableError
from pipeline.base.interrupts import StopRequest
from pipeline.engines.duckdb import DuckDB
from pipeline.engines.engine import Resources
from pipeline.engines.expression_types import type_of
from pipeline.engines.spark import Spark
from pipeline.plan.nodes import register
from pipeline.sources.frames import Frame
from pipeline.sources.inputs import Field, Input, InputContract, Kind
from pipeline.sources.source import canonical_relation, open_source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.engines.engine import Engine
    from pipeline.engines.spark_session import SparkSettings

N_ROWS = 8
NAN, INF = float("nan"), float("inf")
TURNS_BACK = dt.datetime.fromisoformat("2026-10-25 02:30")  # comes twice in Amsterdam
LEAPT_OVER = dt.datetime.fromisoformat("2026-03-29 02:30")  # does not come there
SUMMER = dt.datetime.fromisoformat("2026-07-01 12:00:00.000005")
BEFORE_1970 = dt.datetime.fromisoformat("1969-12-31 23:59:59.999999")
VALUES: dict[str, Any] = {
    "key": list(range(N_ROWS)),
    "single": pa.array([0.9, 0.1, NAN, INF, None, -0.0, 1e-30, 16777216.0], pa.float32()),
    "number": [0.9, 1.5, NAN, -INF, None, -0.0, 2.5, -1.5],
    "whole": [1, -7, 3, None, 0, 9007199254740993, 5, 2],
    "text": ["a_b", "a%b", "a\\b", "A é", None, "77", " 7.5", "${x}'\""],
    "digits": ["1", "2.5", "-3", "0", "7", "1.5", "2.4999", "10"],
    "day": [dt.date(2026, 1, 1), dt.date(1969, 12, 31), None, *[dt.date(2026, 3, 29)] * 5],
    "time": pa.array([LEAPT_OVER, TURNS_BACK, BEFORE_1970, None, *[SUMMER] * 4], pa.timestamp("us")),
    "milliseconds": pa.array([LEAPT_OVER] * N_ROWS, pa.timestamp("ms")),
    "instant": pa.array([LEAPT_OVER] * N_ROWS, pa.timestamp("us", tz="Europe/Amsterdam")),
    "nanoseconds": pa.array([1767225845000000999, -1, -1001, None, -500, 500, 499, 1999], pa.timestamp("ns")),
    "flag": [True, False, None, True, False, None, True, True],
    "decimal": pa.array(
        [Decimal("1.25"), Decimal("2.50"), Decimal("-2.50"), None, *map(Decimal, ("0.00", "3.75", "0.50", "1.50"))],
        pa.decimal128(10, 2),
    ),
    "byte": pa.array([255, 0, 1, None, 4, 5, 6, 7], pa.uint8()),
    "unsigned": pa.array([2**63 + 5, 0, 1, None, 4, 5, 6, 7], pa.uint64()),
    "nothing": pa.nulls(N_ROWS),
    'Ünï `q".': list(range(N_ROWS)),
}
PREDICATES = (
    "single >= 0.9",
    "single = 0.1",
    "single > 0.1",
    "single BETWEEN 0.1 AND 0.9",
    "single IN (0.9, 0.1)",
    "number >= 0.9",
    "number > 5",
    "number <> 0",
    "number = -0.0",
    "number IS NULL",
    "whole / 2 > 0",
    "whole / 0 > 1",
    "number / 0 > 1",
    "number / whole > 0.3",
    "whole % 2 = 1",
    "-whole // 2 = -1",
    "text LIKE 'a\\_b'",
    "text LIKE 'a\\b'",
    "text NOT LIKE '%b'",
    "text ILIKE 'A%'",
    "upper(text) = 'A É'",
    "length(text) = 3",
    "text || 'x' = '77x'",
    "substring(text, 1, 1) = 'a'",
    "text < 'Z'",
    "trim(text) = '7.5'",
    "CAST(digits AS DOUBLE) > 2",
    "CAST(CAST(digits AS DOUBLE) AS INT) = 2",
    "CAST(number AS INT) = 2",
    "CAST(decimal AS INT) = 3",
    "CAST(decimal AS INT) = 1",
    "CAST(number AS VARCHAR) = '1.5'",
    "CAST(number AS VARCHAR) = '-0.0'",
    "CAST(single AS VARCHAR) = '16777216.0'",
    "CAST(instant AS VARCHAR) = '2026-03-29 00:30:00+00'",
    "CAST(time AS VARCHAR) LIKE '2026-07-01 12:00:00.000005'",
    "CAST(decimal AS VARCHAR) || CAST(day AS VARCHAR) = '1.252026-01-01'",
    "day = '2026-01-01'",
    "day + INTERVAL 1 DAY > '2026-01-01'",
    "time > '2026-01-01'",
    "time - INTERVAL 3 HOUR < '2026-03-29'",
    "instant >= '2026-03-29 00:30:00+00'",
    "nanoseconds > '2026-01-01'",
    "milliseconds = '2026-03-29 02:30:00'",
    "year(day) = 2026 AND month(time) = 7",
    "flag",
    "NOT flag",
    "decimal = 2.5",
    "decimal * 2 = 5",
    "decimal / 3 > 0.83",
    "byte > 200",
    "unsigned > 9223372036854775808",
    "unsigned = 1",
    "whole IN (1, 3)",
    "coalesce(number, 1) = 1",
    "round(number) = 3",
    "round(decimal) = 3",
    "floor(number) = 1 OR ceil(number) = 3",
    "CASE WHEN whole > 0 THEN number ELSE whole END > 0",
    "WHOLE > 0",
    "nothing IS NULL",
    '"Ünï `q""." > 3',
    "decimal > number",
    "single = number",
    "single + 1 = 1.1",
    "1 - single > 0.05",
    "single / 3 = 0.3",
    "coalesce(single, 0.1) = 0.1",
    "CAST(flag AS INT) = 1",
    "CAST(number / 0.5 AS INT) = 3",
    "CAST(CAST(byte / 2 AS INT) AS VARCHAR) = '2'",
    "CAST(CAST(single AS VARCHAR) AS VARCHAR) = '16777216.0'",
    "epoch_ms(byte * 1000) > TIMESTAMP '1970-01-01 00:00:02'",
    "to_timestamp(byte) > TIMESTAMPTZ '1970-01-01 00:00:02+00'",
    "strptime(CAST(day AS VARCHAR), '%Y-%m-%d') > TIMESTAMP '2026-01-01'",
    "number = '1.5'",
)
FIELDS: tuple[tuple[Kind, str], ...] = (
    *(("number", name) for name in ("single", "number", "decimal", "unsigned", "whole", "byte")),
    *(("key", name) for name in ("whole", "unsigned", "text")),
    *(("instant", name) for name in ("day", "time", "milliseconds", "instant", "nanoseconds")),
    *(("any", name) for name in ("time", "instant", "nanoseconds", "day", "single", "unsigned", "decimal", "flag")),
    ("position", "decimal"),
    ("boolean", "flag"),
    ("integer", "byte"),
)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return pa.table(VALUES)


@pytest.fixture(scope="module")
def file(table: pa.Table, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The values in a file whose name holds all that paths, patterns and addresses take for something else."""
    path = tmp_path_factory.mktemp("values") / "a [b] {c} é%20+,d=1" / "x y.parquet"
    path.parent.mkdir()
    pq.write_table(table, path)
    return path


@pytest.fixture(scope="module")
def engines(file: Path, spark_settings: SparkSettings) -> Iterator[tuple[Engine, Engine]]:
    stop = StopRequest()
    with DuckDB(Resources(), {file.parent}, stop) as duckdb, Spark(spark_settings, Resources(), stop) as spark:
        yield duckdb, spark


def rows(
    engine: Engine, spec: dict[str, Any], fields: tuple[Field, ...], *, located: bool = False, name: str = "input"
) -> pl.DataFrame:
    """The canonical rows of an input, as an engine reads them."""
    source = open_source(InputContract(name, fields, "rows"), Input.model_validate(spec), _NOWHERE, type_of)
    query = canonical_relation(source, {field.name: field for field in fields}, located=located)
    for scan in source.scans:
        register(engine, scan, located=located)
    return engine.fetch(query).sort("key")


_NOWHERE = Path()
_KEY = Field("key", "integer", "the row")


@pytest.mark.parametrize("predicate", PREDICATES)
def test_where_keeps_the_same_rows(predicate: str, file: Path, engines: tuple[Engine, Engine]) -> None:
    duckdb, spark = (rows(engine, {"path": str(file), "where": predicate}, (_KEY,)) for engine in engines)
    assert spark.equals(duckdb)
    assert duckdb.height == N_ROWS


PARTITIONS = (  # folders, and what they are read as
    ("day=2026-11-20/odd key=x y", "2026-11-20/x y"),
    ("day=2025-01-01/odd key=ü+{}", "2025-01-01/ü+{}"),
    ("day=__HIVE_DEFAULT_PARTITION__/odd key=a%2Fb", None),
    ("day=2026-11-20/odd key=a%2Fb", "2026-11-20/a/b"),
    ("day=2026-11-20/odd key=x y", "2026-11-20/x y"),
)


@pytest.mark.parametrize("where", [None, "day IS NULL OR day > '2026' OR n = 3", "n > 1 AND \"odd key\" <> 'x y'"])
@pytest.mark.parametrize("form", ["values", "places"])
def test_values_of_partitions_are_read_the_same(
    where: str | None, form: str, tmp_path: Path, spark_settings: SparkSettings
) -> None:
    for number, (folder, _) in enumerate(PARTITIONS):
        (tmp_path / "in" / folder).mkdir(parents=True, exist_ok=True)
        table = pa.table({"n": [number], "key": [number]})
        pq.write_table(table, tmp_path / "in" / folder / f"{number}.parquet")
    spec = {"path": str(tmp_path / "in"), "columns": {"value": {"sql": "day || '/' || \"odd key\""}}}
    spec |= {"where": where} if where else {}
    fields = (_KEY, Field("value", "key", "a value"), Field("day", "key", "the day"))
    stop = StopRequest()
    with DuckDB(Resources(), {tmp_path}, stop) as duckdb, Spark(spark_settings, Resources(), stop) as spark:
        expected, actual = (rows(engine, spec, fields, located=form == "places") for engine in (duckdb, spark))
    assert actual.cast(expected.schema).equals(expected)
    assert expected["value"].to_list() == [value for _, value in PARTITIONS]


@pytest.mark.parametrize("zone", [None, "Europe/Amsterdam", "America/New_York", "Australia/Lord_Howe"])
@pytest.mark.parametrize("form", ["file", "frame"])
def test_values_are_read_the_same(
    zone: str | None, form: str, file: Path, table: pa.Table, engines: tuple[Engine, Engine]
) -> None:
    for kind, name in FIELDS if zone is None else [pair for pair in FIELDS if pair[0] == "instant"]:
        spec = {"path": Frame(table) if form == "frame" else str(file), "columns": {"value": name}}
        spec |= {"timezone": zone} if zone else {}
        fields = (_KEY, Field("value", kind, "a value"))
        frames = [rows(engine, spec, fields, located=True, name=form) for engine in engines]
        expected, actual = (frame.with_columns(pl.col("value").cast(pl.String)) for frame in frames)
        assert actual.cast(expected.schema).equals(expected), (kind, name)


@pytest.mark.parametrize(
    "predicate",
    [
        "TRY_CAST(text AS INT) = 77",
        "regexp_matches(text, 'b', 'i')",
        "text LIKE 'a#_b' ESCAPE '#'",
        "substring(text, 0, 2) = 'a'",
        "round(number, 1) = 1.5",
    ],
)
def test_what_means_something_else_on_spark_is_refused(
    predicate: str, file: Path, engines: tuple[Engine, Engine]
) -> None:
    duckdb, spark = engines
    assert rows(duckdb, {"path": str(file), "where": predicate}, (_KEY,)).height == N_ROWS
    with pytest.raises(ConfigError, match="means something else on Spark"):
        rows(spark, {"path": str(file), "where": predicate}, (_KEY,))


@pytest.mark.parametrize("predicate", ["whole % 0 = 1", "CAST(text AS INT) > 1"])
def test_what_cannot_be_computed_is_said_on_both(predicate: str, file: Path, engines: tuple[Engine, Engine]) -> None:
    for engine in engines:
        with pytest.raises(UncomputableError):
            rows(engine, {"path": str(file), "where": predicate}, (_KEY,))
