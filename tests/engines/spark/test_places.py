"""Inputs that Spark reads itself: tables and views by name, files by address."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from running import run_stages

from engines.spark.both_engines import differences
from pipeline.base.errors import ConfigError, DataError, NoInputError, ThresherError
from pipeline.engines.engine import Resources
from pipeline.runs.config import parse_config
from pipeline.runs.opening import open_inputs
from pipeline.runs.stage_results import input_records

if TYPE_CHECKING:
    from pathlib import Path

    from pyspark.sql import SparkSession

    from pipeline.engines.spark_session import SparkSettings
    from pipeline.sources.inputs import Looks

START = datetime(2026, 11, 1)  # noqa: DTZ001 - a time without a zone
DAYS = pl.DataFrame({"event_id": [1, 2, 3, 4], "n_before": [90] * 4, "n_after": [80] * 4})


@pytest.fixture(scope="module")
def active(spark_settings: SparkSettings) -> SparkSession:
    """The session of a user, in which temporary views are made."""
    from pyspark.sql import SparkSession

    from pipeline.engines.spark_session import started_session

    started_session(spark_settings, Resources())
    of_process = SparkSession.getActiveSession()
    assert of_process is not None
    return of_process


@pytest.fixture(scope="module")
def session(spark_settings: SparkSettings) -> SparkSession:
    """A session of ours."""
    from pipeline.engines.spark_session import started_session

    return started_session(spark_settings, Resources())


@pytest.fixture(scope="module")
def look(session: SparkSession) -> Looks:
    """What looks at tables and addresses, with one session for all tests."""
    from pipeline.engines.spark import described

    return partial(described, session)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Events in two folders that name their country, and pairs."""
    folder = tmp_path_factory.mktemp("data of spark")
    for country, rows in (("a%20b", DAYS[:2]), ("__HIVE_DEFAULT_PARTITION__", DAYS[2:])):
        (folder / "events" / f"country={country}").mkdir(parents=True)
        rows.write_parquet(folder / "events" / f"country={country}" / "part 1+2.parquet")
    n_rows = 40
    hours = [(number * 7) % 60 - 30 + 0.5 for number in range(n_rows)]
    pairs = pl.DataFrame(
        {
            "event_id": [number % 4 + 1 for number in range(n_rows)],
            "article_id": list(range(n_rows)),
            "score": [
                None if number == 5 else float("nan") if number == 6 else number / 40 for number in range(n_rows)
            ],
            "lag_hours": hours,
            "event_time": [START] * n_rows,
            "article_time": [START + timedelta(hours=hour) for hour in hours],
        }
    )
    pairs.write_parquet(folder / "pairs.parquet")
    return folder


def _stage(pairs: Any, events: Any) -> dict[str, Any]:  # noqa: ANN401 - as in a config
    window = {"before": "24h", "after": "24h"}
    stage = {"kind": "before_after", "pairs": pairs, "events": events, "window": window, "by": [["country"]]}
    return stage | {"thresholds": [0.1, 0.5], "uncertainty": "none", "invalid_scores": "drop"}


def test_the_same_rows_give_the_same_numbers_as_files_as_views_and_at_addresses(
    data: Path, tmp_path: Path, active: SparkSession, spark_settings: SparkSettings
) -> None:
    active.read.parquet(str(data / "pairs.parquet")).createOrReplaceTempView("pairs_read")  # a name of ours, too
    files = _stage(str(data / "pairs.parquet"), str(data / "events"))
    document = {"output": str(tmp_path / "duckdb"), "stages": [files]}
    stored = _stage({"table": "pairs_read"}, f"file://{data}/events/country=*")
    on_spark: dict[str, Any] = {"output": str(tmp_path / "spark"), "engine": "spark", "stages": [stored]}
    on_spark["spark"] = spark_settings.model_dump(exclude_none=True)
    runs = [run_stages(parse_config(each, base=tmp_path)) for each in (document, on_spark)]
    assert differences(*runs) == []
    records = input_records(open_inputs(parse_config(on_spark, base=tmp_path), _only(on_spark, tmp_path)))
    pairs, events = records
    assert (pairs["path"], pairs["kind"], pairs["rows"], pairs["footer_sha256"]) == ("pairs_read", "table", 40, None)
    assert (events["read_by"], events["n_files"], events["rows"]) == ("spark", 2, 4)
    assert events["size"] == sum(file.stat().st_size for file in (data / "events").rglob("*.parquet"))


def _only(document: dict[str, Any], base: Path) -> Any:  # noqa: ANN401 - a configured stage
    return parse_config(document, base=base).stages[0]


def test_types_of_spark_are_types_of_columns(look: Looks, session: SparkSession) -> None:
    types = {
        "CAST('a' AS CHAR(3))": pa.string(),
        "CAST('a' AS VARCHAR(3))": pa.string(),
        "DATE '2026-11-01'": pa.date32(),
        "TIMESTAMP_NTZ '2026-11-01 10:00:00'": pa.timestamp("us"),
        "TIMESTAMP_LTZ '2026-11-01 10:00:00'": pa.timestamp("us", tz="UTC"),
        "CAST(1 AS DECIMAL(10, 2))": pa.decimal128(10, 2),
        "CAST(1 AS TINYINT)": pa.int8(),
        "CAST(1 AS FLOAT)": pa.float32(),
        "INTERVAL '1' YEAR": pa.null(),
    }
    items = [f"{value} AS `column {number}`" for number, value in enumerate(types)]
    session.range(3).selectExpr(*items).createOrReplaceTempView("many_types")
    description = look("table", "many_types", name="pairs")
    assert description.schema.types == list(types.values())
    assert description.unreadable == {"column 8": "interval year"}
    assert (description.rows, description.has_places, description.identity) == (3, False, {})


def test_nanoseconds_are_never_taken_for_whole_numbers(look: Looks, tmp_path: Path) -> None:
    times = pa.table({"n": [1], "x": [0.5], "`odd` name": pa.array([1], pa.timestamp("ns"))})
    pq.write_table(times, tmp_path / "times.parquet")
    description = look("parquet", f"file://{tmp_path}", name="pairs")
    assert description.schema.types == [pa.null(), pa.float64(), pa.null()]
    assert set(description.unreadable) == {"n", "`odd` name"}  # unread, they stop nothing


def test_files_tell_the_places_of_their_rows_and_whether_they_have_changed(look: Looks, tmp_path: Path) -> None:
    for number in (1, 2):
        pl.DataFrame({"n": [1] * number}).write_parquet(tmp_path / f"{number}.parquet")
    address = f"file://{tmp_path}"
    before = look("parquet", address, name="pairs")
    assert (before.rows, before.has_places, before.identity["n_files"], len(before.files)) == (3, True, 2, 2)
    assert datetime.fromisoformat(before.identity["modified_at"]).tzinfo == UTC
    pl.DataFrame({"n": [1, 1]}).write_parquet(tmp_path / "3.parquet")
    assert look("parquet", address, name="pairs").identity != before.identity
    assert look("parquet", f"{address}/[12].parquet", name="pairs").identity == before.identity


@pytest.mark.parametrize(
    ("kind", "target", "error", "words"),
    [
        ("table", "nowhere.pairs", NoInputError, "input pairs: Spark knows no table or view nowhere.pairs"),
        ("table", "many tipes", ConfigError, "input pairs: table = 'many tipes' is not the name of a table"),
        ("parquet", "file:///nowhere/pairs", NoInputError, "input pairs: Spark finds nothing at file:///nowhere/pairs"),
        (
            "parquet",
            "az://bucket/pairs",
            ConfigError,
            "Spark has no file system for az://, which az://bucket/pairs needs",
        ),
        ("parquet", "{data}/drift", DataError, "the files at file:.*/drift have different types: STRUCT<a: .*> and"),
        ("parquet", "{data}/delta", DataError, "file:.*/delta is a table of Delta Lake, whose log decides"),
        ("parquet", "{data}/empty", NoInputError, "Spark finds no Parquet file at file:.*/empty"),
        ("parquet", "{data}/text", DataError, "input pairs: .*/text"),
    ],
)
def test_what_spark_cannot_look_at_is_told_in_one_sentence(
    look: Looks, tmp_path: Path, kind: str, target: str, error: type[ThresherError], words: str
) -> None:
    for name in ("drift", "delta/_delta_log", "empty", "text"):
        (tmp_path / name).mkdir(parents=True)
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "drift" / "1.parquet")
    pl.DataFrame({"a": ["x"]}).write_parquet(tmp_path / "drift" / "2.parquet")
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "delta" / "1.parquet")
    (tmp_path / "delta" / "_delta_log" / "0.json").write_text("{}")
    (tmp_path / "text" / "1.parquet").write_text("no Parquet")
    with pytest.raises(error, match=words) as caught:
        look(kind, target.replace("{data}", f"file://{tmp_path}"), name="pairs")
    assert len(caught.value.message.splitlines()) == 1


def test_columns_of_a_table_are_checked_as_those_of_files(
    active: SparkSession, spark_settings: SparkSettings, tmp_path: Path
) -> None:
    active.sql("SELECT 1 AS event_id, 'x' AS lag_hours, '0.5' AS score").createOrReplaceTempView("texts")
    document: dict[str, Any] = {"engine": "spark", "spark": spark_settings.model_dump(exclude_none=True)}
    document["stages"] = [_stage({"table": "texts"}, {"table": "texts"}) | {"by": [[]]}]
    with pytest.raises(DataError, match="input pairs: column 'score' in texts is string, not a number"):
        open_inputs(parse_config(document, base=tmp_path), _only(document, tmp_path))
