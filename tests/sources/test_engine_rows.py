"""Inputs that the engine reads itself: what is asked of it, what is recorded, and what is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from pipeline.base.errors import ConfigError, DataError, NoInputError
from pipeline.runs import opening
from pipeline.runs.config import parse_config
from pipeline.runs.evaluation import render_opened
from pipeline.runs.opening import open_inputs
from pipeline.runs.recorded import open_recorded
from pipeline.runs.stage_results import input_records, stage_fingerprints
from pipeline.sources.inputs import Input, is_address

if TYPE_CHECKING:
    from pipeline.runs.opening import OpenedStage

COLUMNS = {"id": pa.int64(), "score": pa.float64(), "label": pa.bool_(), "odd": pa.null()}


@dataclass
class Described:
    """What an engine would tell."""

    schema: pa.Schema
    rows: int = 7
    unreadable: dict[str, str] = field(default_factory=lambda: {"odd": "interval year"})
    has_places: bool = False
    identity: dict[str, Any] = field(default_factory=dict)
    files: tuple[str, ...] = ()


@dataclass
class Fake:
    """An engine that describes every place alike, but for what is set here."""

    changes: dict[str, Any] = field(default_factory=dict)
    asked: list[tuple[str, str]] = field(default_factory=list)

    def __call__(self, kind: str, target: str, *, name: str) -> Described:
        assert name == "predictions"
        self.asked.append((kind, target))
        return Described(pa.schema(COLUMNS), **self.changes)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Fake:
    fake = Fake()
    monkeypatch.setattr(opening, "looks_of", lambda _config: fake)
    return fake


def _opened(predictions: Any, **keys: Any) -> OpenedStage:  # noqa: ANN401 - as in a config
    stage = {"kind": "threshold_sweep", "predictions": predictions, "thresholds": [0.5]}
    config = parse_config({"engine": "spark", "stages": [stage | keys.pop("stage", {})], **keys}, base=Path("/base"))
    return open_inputs(config, config.stages[0])


def test_tables_and_addresses_are_asked_of_the_engine_and_files_are_not(engine: Fake, tmp_path: Path) -> None:
    opened = _opened({"table": "lake.${schema}.scores"}, vars={"schema": "daily"})
    assert engine.asked == [("table", "lake.daily.scores")]
    source = opened.sources["predictions"]
    assert (source.rows, source.n_files, source.without_places) == (7, 1, "lake.daily.scores")
    engine.asked.clear()
    addresses = ["s3a://bucket/a", "dbfs:/a", "hdfs://host/a", "abfss://a@b/c", "file:///a", "s3://b/a"]
    _opened(addresses)
    assert engine.asked == [("parquet", address) for address in addresses]
    with pytest.raises(NoInputError, match="no file matches"):
        _opened(str(tmp_path / "nothing.parquet"))
    assert not is_address("C:/data")


def test_what_is_recorded_says_that_nothing_tells_the_content(engine: Fake) -> None:
    engine.changes = {"identity": {"n_files": 3, "files_sha256": "ab", "size": 12}}
    opened = _opened("s3a://bucket/scores")
    (record,) = input_records(opened)
    expected = {"path": "s3a://bucket/scores", "kind": "parquet", "read_by": "spark", "rows": 7, "footer_sha256": None}
    assert expected.items() <= record.items()
    assert (record["n_files"], record["files_sha256"], record["size"]) == (3, "ab", 12)
    config = parse_config({"stages": [{"kind": "threshold_sweep", "predictions": "a", "thresholds": [1]}]}, base=Path())
    twice = [stage_fingerprints(config, opened.configured, opened, {}) for _ in range(2)]
    assert twice[0].fingerprint != twice[1].fingerprint, "an unchanged run would not read the table again"
    assert twice[0].identity == twice[1].identity
    assert not twice[0].is_lasting


def test_other_files_at_an_address_are_noticed(engine: Fake) -> None:
    engine.changes = {"identity": {"files_sha256": "ab"}}
    (rows,) = _opened("s3a://bucket/scores").sources["predictions"].files
    assert not rows.has_changed()
    engine.changes = {"identity": {"files_sha256": "cd"}}
    assert rows.has_changed()
    engine.changes = {}
    (rows,) = _opened({"table": "a view"}).sources["predictions"].files
    engine.asked.clear()
    assert not rows.has_changed()
    assert engine.asked == [], "its rows would be counted again"


@pytest.mark.parametrize(
    ("predictions", "keys", "words"),
    [
        ({"table": "t"}, {"verify_inputs": "crc"}, 'verify_inputs = "crc" cannot verify t .*, which spark reads'),
        ({"table": "t", "version": 3}, {}, "input predictions: version has no effect on table = 't'"),
        (
            {"table": "t", "format": "csv"},
            {},
            "format has no effect on table = 't': Spark reads Parquet files and tables",
        ),
        ({"path": "hdfs://a/b", "delimiter": ";"}, {}, "delimiter has no effect on hdfs://a/b"),
        ({"path": "hdfs://a/b.csv"}, {}, "hdfs://a/b.csv is csv"),
        ({"path": "a", "table": "t"}, {}, "path and table are two ways to name an input"),
        ({"table": ""}, {}, "table"),
        ({"columns": {}}, {}, "an input needs at least one path"),
        ([], {}, "an input needs at least one path"),
    ],
)
@pytest.mark.usefixtures("engine")
def test_keys_that_mean_nothing_there_are_refused(predictions: Any, keys: dict[str, Any], words: str) -> None:  # noqa: ANN401
    with pytest.raises(ConfigError, match=words):
        _opened(predictions, **keys)


def test_a_table_needs_spark() -> None:
    with pytest.raises(ConfigError, match=r"table = 'lake\.scores' names a table of Spark, and the engine is duckdb"):
        _opened({"table": "lake.scores"}, engine="duckdb")


def test_a_file_that_two_places_have_would_count_twice(engine: Fake) -> None:
    engine.changes = {"files": ("s3a://bucket/a/1.parquet",)}
    with pytest.raises(DataError, match=r"1\.parquet belongs to s3a://bucket/a and to s3a://bucket/a/\*"):
        _opened(["s3a://bucket/a", "s3a://bucket/a/*"])


def test_columns_that_cannot_be_read_may_stand_beside(engine: Fake) -> None:
    del engine
    with pytest.raises(DataError, match="column 'odd' in t is interval year, not a number"):
        _opened({"table": "t", "columns": {"score": "odd"}})


def test_rows_without_a_place_have_no_order(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = pa.schema({"doc_id": pa.string(), "start": pa.int64(), "end": pa.int64()})
    monkeypatch.setattr(opening, "looks_of", lambda _config: lambda _kind, _place, **_: Described(schema))
    stage = {"kind": "entity_recognition", "predicted": {"table": "a"}, "gold": {"table": "b"}, "match": "overlap"}
    config = parse_config({"engine": "spark", "stages": [stage | {"assignment": "file_order"}]}, base=Path())
    message = 'input predicted: assignment = "file_order" needs the order of rows, which a has not'
    with pytest.raises(DataError, match=message):
        open_inputs(config, config.stages[0])


def test_rendered_sql_names_tables_and_addresses(engine: Fake) -> None:
    assert "FROM lake.daily.scores" in render_opened(_opened({"table": "lake.daily.scores"}), dialect="spark")
    engine.changes = {"has_places": True}
    text = render_opened(_opened("s3a://bucket/a b"), dialect="spark")
    assert "FROM parquet.`s3a://bucket/a b`" in text


def test_rows_of_spark_are_not_shown_again() -> None:
    record = {"inputs": [{"stage": "a", "path": "lake.scores", "read_by": "spark"}]}
    with pytest.raises(NoInputError, match=r"the run read lake\.scores through Spark"):
        open_recorded(record, Path(), "a")


def test_an_input_is_written_and_read_back_with_its_table() -> None:
    spec = Input.model_validate({"table": "lake.scores"})
    assert Input.model_validate(json.loads(spec.model_dump_json())) == spec
