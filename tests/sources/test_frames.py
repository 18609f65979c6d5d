"""Frames in the place of paths: the results of a file of the same rows, and one sentence for what is wrong."""

from __future__ import annotations

import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute
import pyarrow.dataset
import pyarrow.parquet
import pytest
from polars.testing import assert_frame_equal
from running import run_stages

import pipeline
from pipeline.base.errors import DataError, NoInputError, ThresherError
from pipeline.sources.frames import Frame, FrameRows, is_frame, labelled, open_frame
from pipeline.sources.inputs import EngineRows
from pipeline.sources.parquet_files import DataFile, open_file
from pipeline.sources.types import plain, plain_schema, refused

if TYPE_CHECKING:
    from collections.abc import Callable

ROWS = 400
TABLES = ("threshold_sweep_curve", "threshold_sweep_areas", "threshold_sweep_operating_points")


def scored(seed: int = 0) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "score": np.round(rng.uniform(size=ROWS), 2),
            "label": rng.uniform(size=ROWS) < 0.4,
            "source": rng.choice(["noon", "dawn"], ROWS),
        }
    )


FRAME = scored()


def swept(folder: Path, predictions: object, **keys: Any) -> dict[str, bytes]:  # noqa: ANN401 - as in a config
    stage = {"kind": "threshold_sweep", "predictions": predictions, "by": ["source"], "thresholds": [0.2, 0.5]} | keys
    run = run_stages({"output": str(folder), "stages": [stage]})
    return {name: (run.path / name / "threshold_sweep.parquet").read_bytes() for name in TABLES}


@pytest.fixture(scope="module")
def from_a_file(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("file")
    FRAME.write_parquet(folder / "rows.parquet")
    return swept(folder / "results", str(folder / "rows.parquet"))


class Stream:
    """What only knows the Arrow protocol."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return FRAME.to_arrow().__arrow_c_stream__(requested_schema)


def relation() -> duckdb.DuckDBPyRelation:
    connection = duckdb.connect()
    connection.register("scored", FRAME.to_arrow())
    return connection.sql("FROM scored")


FORMS: dict[str, Callable[[], object]] = {
    "polars": lambda: FRAME,
    "polars, categories": lambda: FRAME.with_columns(pl.col("source").cast(pl.Categorical)),
    "lazy": FRAME.lazy,
    "pandas": FRAME.to_pandas,
    "pandas, nullable": lambda: FRAME.to_pandas().convert_dtypes(),
    "pandas, categories": lambda: FRAME.to_pandas().astype({"source": "category"}),
    "arrow": FRAME.to_arrow,
    "batch": lambda: FRAME.to_arrow().combine_chunks().to_batches()[0],
    "reader": lambda: FRAME.to_arrow().to_reader(),
    "dataset": lambda: pyarrow.dataset.dataset(FRAME.to_arrow()),
    "relation": relation,
    "stream": Stream,
    "in two": lambda: [FRAME[:150], FRAME[150:].lazy()],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_frame_gives_the_bytes_that_a_file_of_its_rows_gives(
    form: str, from_a_file: dict[str, bytes], tmp_path: Path
) -> None:
    assert swept(tmp_path / "results", FORMS[form]()) == from_a_file


def test_paths_and_frames_mix(from_a_file: dict[str, bytes], tmp_path: Path) -> None:
    FRAME[:100].write_parquet(tmp_path / "a.parquet")
    mixed = [tmp_path / "a.parquet", FRAME[100:300], str(tmp_path / "b.parquet")]
    FRAME[300:].write_parquet(tmp_path / "b.parquet")
    assert swept(tmp_path / "results", mixed) == from_a_file


def test_columns_and_where_apply_to_frames(from_a_file: dict[str, bytes], tmp_path: Path) -> None:
    renamed = pl.concat([FRAME, FRAME.with_columns(score=0.99)]).rename({"score": "p"})
    renamed = renamed.with_columns(wanted=pl.int_range(pl.len()) < ROWS)
    spec = {"path": renamed, "columns": {"score": {"sql": "p * 1.0"}}, "where": "wanted"}
    for name, table in swept(tmp_path / "results", spec).items():
        assert_frame_equal(pl.read_parquet(table), pl.read_parquet(from_a_file[name]))


def test_the_record_says_that_rows_came_from_a_frame(tmp_path: Path) -> None:
    run = pipeline.run(
        {"output": str(tmp_path), "stages": [{"kind": "threshold_sweep", "predictions": FRAME, "thresholds": [0.5]}]}
    )
    record = (run.path / "run.json").read_text()
    assert '"path":"the polars.DataFrame"' in record.replace('": "', '":"')
    assert "<polars.DataFrame>" in record


def test_the_same_frame_again_is_no_new_run(tmp_path: Path) -> None:
    config = {"output": str(tmp_path), "stages": [{"kind": "threshold_sweep", "predictions": FRAME.clone()}]}
    assert [pipeline.run(config).status for _ in range(2)] == ["published", "unchanged"]
    other = {"output": str(tmp_path), "stages": [{"kind": "threshold_sweep", "predictions": scored(1)}]}
    assert pipeline.run(other).status == "published"


TWICE = FRAME.to_pandas()
DAYS = pd.period_range("2026-01-01", periods=ROWS, freq="D")


def badly_encoded() -> pa.Table:
    values = [b"noon", "café".encode("latin-1")] * (ROWS // 2)
    options = pyarrow.compute.CastOptions(target_type=pa.string(), allow_invalid_utf8=True)
    return (
        FRAME.drop("source").to_arrow().append_column("source", pyarrow.compute.cast(pa.array(values), options=options))
    )


FAULTS: dict[str, tuple[object, str]] = {
    "no such column": (FRAME.drop("label"), "the polars.DataFrame has no column 'label'"),
    "no column": (pl.DataFrame(), "It has no column."),
    "a column in the index": (
        FRAME.to_pandas().set_index(["label", "score"]),
        "'score' is in its index, which is not read: pass frame.reset_index().",
    ),
    "twice the same name, pandas": (
        pd.concat([TWICE, TWICE[["score"]]], axis=1),
        "the pandas.DataFrame has 2 columns named 'score' (in upper or lower case)\nRename all but one of them.",
    ),
    "twice the same name, arrow": (
        pa.table([FRAME["score"].to_arrow()] * 2, names=["score", "score"]),
        "the pyarrow.Table has 2 columns named 'score'",
    ),
    "nested": (FRAME.with_columns(score=pl.concat_list("score")), "is large_list"),
    "values of two types": (
        TWICE.assign(score=pd.Series([1, "a"] * (ROWS // 2), dtype=object)),
        "column 'score' in the pandas.DataFrame is object (int from row 1, str from row 2), not a number\nConvert it",
    ),
    "a plan that fails": (FRAME.lazy().select("absent"), "the rows of the polars.LazyFrame cannot be read"),
    "a plan that reads no file": (
        pl.scan_parquet("absent.parquet"),
        "the rows of the polars.LazyFrame cannot be read: No such file or directory (os error 2): absent.parquet",
    ),
    "labels as text": (
        FRAME.with_columns(pl.col("label").cast(pl.String)),
        "Say which text is true: columns = { label = { sql = \"label = 'yes'\" } }; nothing is cast silently.",
    ),
    "a cast that fails": (FRAME.lazy().with_columns(pl.col("source").cast(pl.Float64)), "conversion from `str`"),
    "a series": (FRAME["score"], "the rows of the polars.Series cannot be read: it is a column, not a table"),
    "a series of pandas": (pd.Series([0.5]), "the pandas.Series cannot be read: it is a column, not a table"),
    "a plan whose own code fails": (
        FRAME.lazy().map_batches(lambda frame: frame.item(row=ROWS, column="absent")),
        "the rows of the polars.LazyFrame cannot be read",
    ),
    "wide integers": (
        FRAME.with_columns(score=pl.lit(1, pl.Int128)),
        "column 'score' in the polars.DataFrame is Int128, not a number\nCast it to Int64 before it is read.",
    ),
    "wide integers of a plan": (
        FRAME.lazy().with_columns(score=pl.lit(1, pl.Int128)),
        "column 'score' in the polars.LazyFrame is Int128, not a number",
    ),
    "periods": (
        {"path": TWICE.assign(day=DAYS), "columns": {"score": "day"}},
        "column 'day' in the pandas.DataFrame is period[D], not a number\nConvert it to dates or text before",
    ),
    "periods of a stream": (
        {"path": pa.Table.from_pandas(TWICE.assign(day=DAYS)).to_reader(), "columns": {"score": "day"}},
        "column 'day' in the pyarrow.RecordBatchReader is period[D], not a number",
    ),
    "periods in an expression": (
        {"path": TWICE.assign(day=DAYS), "columns": {"score": {"sql": "day / 2"}}},
        "score is computed from 'day', which is period[D] in the pandas.DataFrame\nConvert it to dates or text",
    ),
    "periods in where": (
        {"path": TWICE.assign(day=DAYS), "where": "day > 3"},
        "where reads 'day', which is period[D] in the pandas.DataFrame",
    ),
    "bins": (
        {"path": TWICE.assign(bin=pd.cut(TWICE["score"], 3)), "columns": {"score": "bin"}},
        "column 'bin' in the pandas.DataFrame is interval[double, right], not a number\nConvert it to text",
    ),
    "text in another encoding": (
        badly_encoded(),
        "column 'source' holds text that is not UTF-8 (first at row 2: b'caf\\xe9')\nDecode its values",
    ),
    "a stream in another encoding": (
        badly_encoded().to_reader(max_chunksize=1),
        "the pyarrow.RecordBatchReader cannot be read: column 'source' holds text that is not UTF-8 (first at row 2",
    ),
    "complex numbers": (
        TWICE.assign(score=TWICE["score"] + 1j),
        "column 'score' in the pandas.DataFrame is complex128",
    ),
    "intervals of a relation": (
        {"path": relation().project("* REPLACE (INTERVAL 1 DAY AS score)")},
        "column 'score' in the duckdb.DuckDBPyRelation is month_day_nano_interval, not a number",
    ),
    "unions of a relation": (
        {"path": relation().project("* REPLACE (union_value(a := score) AS score)")},
        "column 'score' in the duckdb.DuckDBPyRelation is sparse_union",
    ),
    "the same frame twice": ([FRAME, FRAME], "the polars.DataFrame (2 of 2) is passed twice"),
    "a score that is not a number": (FRAME.with_columns(score=float("nan")), "NaN in 400 rows (400 in the polars.Data"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_a_frame_is_one_sentence_that_names_it(fault: str, tmp_path: Path) -> None:
    predictions, words = FAULTS[fault]
    with pytest.raises(DataError) as caught:
        swept(tmp_path, predictions, by=[[]])
    assert words in str(caught.value)
    assert "input predictions: " in str(caught.value)


def test_a_closed_connection_is_told(tmp_path: Path) -> None:
    connection = duckdb.connect()
    connection.register("scored", FRAME.to_arrow())
    rows = connection.sql("FROM scored")
    connection.close()
    with pytest.raises(DataError, match=r"the rows of the duckdb\.DuckDBPyRelation cannot be read: Connection Error"):
        swept(tmp_path, rows)


def test_an_empty_frame_leaves_nothing_to_evaluate(tmp_path: Path) -> None:
    for empty in (FRAME.clear(), pl.DataFrame({"score": [], "label": []})):
        with pytest.raises(NoInputError, match="input predictions has no rows"):
            swept(tmp_path, empty, by=[[]])


@pytest.mark.parametrize("value", [3, None, np.zeros((2, 2)), {"score": [0.5]}])
def test_what_is_no_frame_is_refused(value: object, tmp_path: Path) -> None:
    with pytest.raises(ThresherError) as caught:
        swept(tmp_path, value)
    assert caught.value.code == 78


def test_a_reader_is_read_once(tmp_path: Path) -> None:
    reader = FRAME.to_arrow().to_reader()
    stages = [{"kind": "threshold_sweep", "name": name, "predictions": reader} for name in ("a", "b")]
    with pytest.raises(DataError, match=r"the pyarrow\.RecordBatchReader has been read already"):
        pipeline.run({"output": str(tmp_path), "stages": stages})


def test_numbers_that_the_engine_takes_from_files_only_are_converted() -> None:
    table = pa.table(
        {"half": pa.array(np.array([0.5, 0.25], np.float16)), "wide": pa.array([1, None], pa.decimal256(40, 2))}
    )
    rows = open_frame(Frame(table), "the table", None, name="rows")
    assert isinstance(rows, FrameRows)
    assert rows.schema.types == [pa.float32(), pa.float64()]
    assert rows.table["half"].to_pylist() == [0.5, 0.25]


def test_a_frame_that_its_owner_changes_is_noticed() -> None:
    frame = FRAME.to_pandas()
    rows = open_frame(Frame(frame), "the pandas.DataFrame", None, name="predictions")
    assert isinstance(rows, FrameRows)
    assert not rows.has_changed()
    frame.loc[7, "score"] = 0.123
    assert rows.has_changed()


def test_rows_that_stream_lie_in_a_file_as_long_as_they_are_referred_to(tmp_path: Path) -> None:
    rows = open_frame(Frame(FRAME.lazy()), "the polars.LazyFrame", tmp_path, name="predictions")
    assert isinstance(rows, DataFile)
    path = rows.path
    assert tmp_path in path.parents
    assert (rows.name, rows.rows) == ("the polars.LazyFrame", ROWS)
    del rows
    assert not path.exists()


def test_types_that_mean_something_else_are_harmless_where_they_are_not_read(
    from_a_file: dict[str, bytes], tmp_path: Path
) -> None:
    odd = FRAME.to_pandas().assign(day=DAYS, bin=pd.cut(TWICE["score"], 3))
    assert swept(tmp_path / "frame", odd) == from_a_file
    odd.drop(columns="bin").to_parquet(tmp_path / "odd.parquet")
    assert swept(tmp_path / "results", str(tmp_path / "odd.parquet")) == from_a_file
    with pytest.raises(DataError, match=r"column 'day' in .*odd\.parquet is period\[D\], not a number"):
        swept(tmp_path, {"path": str(tmp_path / "odd.parquet"), "columns": {"score": "day"}})


def test_columns_that_nothing_reads_may_hold_anything(from_a_file: dict[str, bytes], tmp_path: Path) -> None:
    mixed, anything = [1, "a", None, float("nan")] * (ROWS // 4), [object()] * ROWS
    odd = TWICE.assign(mixed=mixed, anything=anything, lists=[[1], ["b"]] * (ROWS // 2), turned=1j)
    odd = pd.concat([odd, odd[["mixed"]]], axis=1)
    assert swept(tmp_path / "pandas", odd) == from_a_file
    unused = relation().project("*, INTERVAL 1 DAY AS span, union_value(a := score) AS either")
    assert swept(tmp_path / "relation", unused) == from_a_file


def test_sparse_columns_are_read_as_what_they_stand_for(from_a_file: dict[str, bytes], tmp_path: Path) -> None:
    sparse = TWICE.assign(score=pd.arrays.SparseArray(TWICE["score"], fill_value=0.5), odd=[1, "a"] * (ROWS // 2))
    assert swept(tmp_path, sparse) == from_a_file


def test_a_relation_that_cannot_be_read_leaves_its_connection_free(tmp_path: Path) -> None:
    connection = duckdb.connect()
    rows = connection.sql(
        "SELECT CASE WHEN range < 90000 THEN 0.5 ELSE error('no more') END AS score FROM range(99999)"
    )
    with pytest.raises(
        DataError, match=r"Relation cannot be read: .*no more"
    ) as caught:  # what is caught refers to the frames that read it
        swept(tmp_path, rows, by=[[]])
    assert connection.sql("SELECT 7").fetchall() == [(7,)]
    assert caught.value.code == 65


@pytest.mark.skipif(not hasattr(pa, "json_"), reason="this version of Arrow does not know the types")
def test_types_with_an_evident_meaning_are_read_as_that(tmp_path: Path) -> None:
    key = uuid.UUID(int=7)
    table = pa.table(
        {
            "key": pa.array([key.bytes, None], pa.uuid()),
            "note": pa.array(["{}", None], pa.json_()),
            "flag": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([2, 0], pa.int8())),
        }
    )
    pyarrow.parquet.write_table(table, tmp_path / "rows.parquet")
    for form in (table, table.to_reader()):
        rows = open_frame(Frame(form), "the rows", None, name="rows")
        assert not isinstance(rows, EngineRows)
        read = rows.table if isinstance(rows, FrameRows) else pyarrow.parquet.read_table(rows.path)
        assert rows.schema.types == [pa.string(), pa.string(), pa.bool_()]
        assert read.to_pylist() == [
            {"key": str(key), "note": "{}", "flag": True},
            dict.fromkeys(table.column_names) | {"flag": False},
        ]
    file = open_file(tmp_path / "rows.parquet", tmp_path, name="rows")
    assert file.schema.types == [pa.string(), pa.string(), pa.bool_()]


def test_extension_types_that_arrow_does_not_know_are_told_by_their_metadata() -> None:
    def field(name: str, kind: pa.DataType, extension: str, details: str = "") -> pa.Field:
        marks = {"ARROW:extension:name": extension, "ARROW:extension:metadata": details}
        return pa.field(name, kind, metadata=marks)

    key = uuid.UUID(int=7)
    fields = [
        field("key", pa.binary(16), "arrow.uuid"),
        field("place", pa.binary(), "geoarrow.wkb", "{}"),
        field("day", pa.int64(), "pandas.period", '{"freq": "M"}'),
        field("note", pa.string(), "of.someone"),
    ]
    columns = [[key.bytes, None], [b"p", b"q"], [3, 4], ["a", "b"]]
    table = pa.table(
        [pa.array(values, each.type) for values, each in zip(columns, fields, strict=True)], pa.schema(fields)
    )
    rows = plain(table)
    assert rows.drop_columns(["place", "day"]).to_pylist() == [
        {"key": str(key), "note": "a"},
        {"key": None, "note": "b"},
    ]
    words = [told[0] if (told := refused(kind)) else None for kind in rows.schema.types]
    assert words == [None, "geoarrow.wkb", "period[M]", None]
    assert plain_schema(table.schema).types == rows.schema.types
    assert plain(rows).equals(rows)


def test_a_table_in_memory_is_not_copied() -> None:
    table = FRAME.select("score").to_arrow()
    rows = open_frame(Frame(table), "the pyarrow.Table", None, name="predictions")
    assert isinstance(rows, FrameRows)
    assert rows.table["score"].chunk(0).buffers()[1].address == table["score"].chunk(0).buffers()[1].address
    assert rows.bounds("score") == (FRAME["score"].min(), FRAME["score"].max())
    assert rows.located().column_names == ["score", "source_file", "file_row_number"]


def test_bounds_and_nulls_of_other_columns() -> None:
    table = pa.table(
        {"exact": pa.array([1, 2], pa.decimal128(4, 2)), "text": ["a", None], "none": pa.nulls(2, pa.int64())}
    )
    rows = open_frame(Frame(table), "the pyarrow.Table", None, name="predictions")
    assert [rows.bounds(name) for name in ("exact", "text", "none", "absent")] == [(1.0, 2.0), None, None, None]
    assert [rows.null_free(name) for name in ("exact", "text", "absent")] == [True, False, False]


def test_each_of_several_frames_has_a_name() -> None:
    frames = (Frame(FRAME), "rows.parquet", Frame(FRAME.lazy()))
    assert [label for _, label in labelled(frames, name="pairs")] == [
        "the polars.DataFrame (1 of 2)",
        "the polars.LazyFrame (2 of 2)",
    ]
    assert not is_frame("rows.parquet")
    assert not is_frame(Path("rows.parquet"))


def test_the_elements_of_a_list_in_a_frame_of_pandas_are_rows() -> None:
    frame = pd.DataFrame({"doc": ["a", "b"], "marks": [[{"score": 0.1, "label": 0}, {"score": 0.9, "label": 1}], []]})
    result = pipeline.threshold_sweep(predictions={"path": frame, "unnest": "marks"})
    assert result.tables["inputs"].filter(status="used")["n_rows"].to_list() == [2]
