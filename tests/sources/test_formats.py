"""Inputs of other formats than Parquet: types come from the fields, and what does not fit is named."""

from __future__ import annotations

import gc
import gzip
import json
import uuid
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import polars as pl
import pyarrow as pa
import pyarrow.compute
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from running import run_stages

import pipeline
import thresher
from pipeline.base.errors import ConfigError, DataError, NoInputError
from pipeline.runs.config import parse_config
from pipeline.sources.finding import Listing
from pipeline.sources.inputs import Field, Input, InputContract, Kind
from pipeline.sources.parquet_files import DataFile
from pipeline.sources.source import open_source

if TYPE_CHECKING:
    from collections.abc import Callable

FRAME = pl.DataFrame(
    {
        "id": ["007", "008", "009", "010"],
        "score": [0.25, 0.5, None, -1e-3],
        "label": [True, False, True, False],
        "source": ["noon", "dawn", "noon", "dawn, late"],
    }
)
CONTRACT = InputContract(
    "predictions",
    (
        Field("id", "key", "a key"),
        Field("score", "number", "a number", required=True),
        Field("label", "boolean", "a label", required=True),
    ),
    "rows",
)


def read(path: object, contract: InputContract = CONTRACT, **keys: Any) -> pl.DataFrame:  # noqa: ANN401 - as in a config
    """The rows as they will be scanned."""
    spec = Input.model_validate({"path": path} | keys)
    (file,) = open_source(contract, spec, Path.cwd()).files
    assert isinstance(file, DataFile)
    return pl.read_parquet(file.path)


def compressed(path: Path) -> None:
    path.write_bytes(gzip.compress(FRAME.write_csv().encode()))


WRITERS: dict[str, Callable[[Path], Any]] = {
    "rows.csv": FRAME.write_csv,
    "rows.CSV.gz": compressed,
    "rows.tsv": lambda path: FRAME.write_csv(path, separator="\t"),
    "rows.jsonl": FRAME.write_ndjson,
    "rows.ndjson": FRAME.write_ndjson,
    "rows.arrow": FRAME.write_ipc,
    "rows.feather": FRAME.write_ipc,
    "rows [1] *.arrow": FRAME.write_ipc,
}


@pytest.mark.parametrize("name", WRITERS)
def test_rows_have_the_types_of_their_fields(name: str, tmp_path: Path) -> None:
    WRITERS[name](tmp_path / name)
    assert read(tmp_path / name).equals(FRAME)


def test_identifiers_of_an_arrow_file_are_text(tmp_path: Path) -> None:
    numbers = [uuid.UUID(int=number) for number in (1, 2)]
    keys = pa.array([number.bytes for number in numbers], pa.binary(16))
    named = {"ARROW:extension:name": "arrow.uuid", "ARROW:extension:metadata": ""}
    table = pa.table([keys], schema=pa.schema([pa.field("x", keys.type, metadata=named)]))
    with pa.ipc.new_file(str(tmp_path / "rows.arrow"), table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    contract = InputContract("rows", (Field("x", "key", "an identifier", required=True),), "rows")
    assert read(tmp_path / "rows.arrow", contract)["x"].to_list() == [str(number) for number in numbers]


def column(values: list[str], kind: Kind, folder: Path, **keys: Any) -> pl.Series:  # noqa: ANN401 - as in a config
    contract = InputContract("rows", (Field("x", kind, "a value", required=True),), "rows")
    (folder / "rows.csv").write_text("\n".join(["x;y", *(f"{value};0" for value in values)]) + "\n", encoding="utf-8")
    return read(folder / "rows.csv", contract, delimiter=";", **keys)["x"]


READINGS: list[tuple[Kind, list[str], pl.DataType]] = [
    ("number", ["1", " 2.5", "-3e5", ""], pl.Float64()),
    ("integer", ["1", "-2", ""], pl.Int64()),
    ("boolean", ["true", "FALSE", "1", "0"], pl.Boolean()),
    ("key", ["01", "1.0"], pl.String()),
    ("instant", ["2026-11-20", "2026-11-21"], pl.Date()),
    ("instant", ["2026-11-20 09:30:00", "2026-11-20T09:30:00.25"], pl.Datetime("us")),
    ("instant", ["2026-11-20T09:30", "2026-11-20 10:30"], pl.Datetime("us")),
    ("instant", ["2026-11-20T09:30:00Z", "2026-11-20T09:30:00+02:00"], pl.Datetime("us", "UTC")),
    ("position", ["1", "2"], pl.Int64()),
    ("position", ["1", "2.5"], pl.Float64()),
    ("position", ["2026-11-20", "2026-11-21"], pl.Date()),
    ("any", ["1", "2"], pl.String()),
]


@pytest.mark.parametrize(("kind", "values", "dtype"), READINGS)
def test_text_is_read_as_its_field_expects(kind: Kind, values: list[str], dtype: pl.DataType, tmp_path: Path) -> None:
    series = column(values, kind, tmp_path)
    assert series.dtype == dtype
    assert series.null_count() == sum(not value for value in values)


def test_times_keep_their_zone(tmp_path: Path) -> None:
    zoned = column(["2026-11-20T09:30:00Z", "2026-11-20T09:30:00+02:00"], "instant", tmp_path)
    assert zoned.dt.hour().to_list() == [9, 7]
    assert column(["2026-11-20 09:30+02:00"], "instant", tmp_path).dt.hour().to_list() == [7]


def test_decimal_commas_and_words_for_nothing_are_declared(tmp_path: Path) -> None:
    assert column(["0,5", "n/a", "1"], "number", tmp_path, decimal=",", null_values=["n/a"]).to_list() == [0.5, None, 1]


MISFITS: list[tuple[Kind, list[str], str]] = [
    ("number", ["1", "x", "2,5"], "is not a number in 2 rows"),
    ("number", ["0,5"], 'decimal = "," for decimal commas'),
    ("integer", ["1", "2.0"], "is not an integer in 1 row of"),
    ("boolean", ["1", "2", "yes"], "is not true, false, 1 or 0 in 2 rows"),
    ("instant", ["2026-11-20", "20-11-2026"], "is not a date or time as in 2026-11-20"),
    ("instant", ["1763600000"], "to_timestamp(CAST("),
    ("position", ["1", "2026-11-20"], "is not a number, or a date or time"),
]


@pytest.mark.parametrize(("kind", "values", "words"), MISFITS)
def test_a_value_that_does_not_fit_is_named(kind: Kind, values: list[str], words: str, tmp_path: Path) -> None:
    with pytest.raises(DataError) as caught:
        column(values, kind, tmp_path)
    text = str(caught.value)
    assert words in text
    assert str(tmp_path / "rows.csv") in text
    assert "first at row" in text


def badly_encoded() -> bytes:
    options = pyarrow.compute.CastOptions(target_type=pa.string(), allow_invalid_utf8=True)
    table = pa.table({"s": pyarrow.compute.cast(pa.array([b"ok", b"caf\xe9"]), options=options)})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=1)
    return bytes(sink.getvalue())


BADLY_ENCODED = badly_encoded()
FAULTS: dict[str, tuple[str, bytes, str]] = {
    "another delimiter": ("a.csv", b"score;label\n1;0\n", "delimiter = ';'"),
    "too many values": (
        "a.csv",
        b"score,label\n1,0\n1,0,1\n",
        "1 row without 2 values, as its header has (first: line 3, which has 3",
    ),
    "too few values": (
        "a.csv",
        b'score,label,s\n1,0,"a\nb"\n1,0\n1\n',
        "2 rows without 3 values, as its header has (first: line 4, which has 2 values)",
    ),
    "too few values, tabs": ("a.tsv", b"score\tlabel\n1\t0\n1\n", "read as tsv: 1 row without 2 values, as its header"),
    "too few values, compressed": (
        "a.csv.gz",
        gzip.compress(b"score,label\n1,0\n1"),
        "(first: line 3, which has 1 value)",
    ),
    "nothing": ("a.csv", b"", "cannot be read as csv"),
    "no UTF-8": (
        "a.csv",
        b"score,label,s\n1,0,caf\xe9\n",
        "holds text that is not UTF-8 (first in line 2: b'caf\\xe9')\nWrite it as UTF-8, for example with: iconv",
    ),
    "no UTF-8, compressed": ("a.csv.gz", gzip.compress(b"score,label,s\n1,0,caf\xe9\n"), "column 's' of "),
    "no UTF-8 in JSON": ("a.jsonl", b'{"score": 1, "s": ["caf\xe9"]}\n', "column 's' of "),
    "no UTF-8 in Arrow": ("a.arrow", BADLY_ENCODED, "column 's' holds text that is not UTF-8 (first at row 2: b'"),
    "no UTF-8 without columns": ("a.qrels", b"q 0 d 1\nq 0 d\xe9 1\n", "(first in line 2: b'q 0 d\\xe9 1')"),
    "UTF-16": ("a.csv", "score,label\n1,0\n".encode("utf-16"), "is text in UTF-16, not UTF-8"),
    "half a line": ("a.jsonl", b'{"score": 1, "label": true}\n{"score": ', "cannot be read as jsonl"),
    "no Arrow file": ("a.arrow", b"score", "cannot be read as arrow"),
    "a spreadsheet": ("a.xlsx", b"PK", "polars.read_excel('a.xlsx').write_parquet('a.parquet')"),
    "no such column": ("a.csv", b"score\n1\n", "has no column 'label'"),
    "a name twice": ("a.csv", b"score,label,score\n1,0,2\n", "several columns named 'score'"),
    "NaN in JSON": ("a.jsonl", b'{"score": NaN, "label": true}\n', "null for NaN and Infinity"),
    "text in JSON": ("a.jsonl", b'{"score": "1", "label": true}\n', "is large_string, not a number"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_file_that_cannot_be_read_is_named(fault: str, tmp_path: Path) -> None:
    name, content, words = FAULTS[fault]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read(tmp_path / name)
    assert words in str(caught.value)
    assert str(tmp_path / name) in str(caught.value)


def test_a_folder_is_searched_for_the_declared_format(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "a.csv")
    (tmp_path / "notes.txt").write_text("x")
    with pytest.raises(NoInputError, match='format = "csv"'):
        read(tmp_path)
    assert read(tmp_path, format="csv").equals(FRAME)


def test_folder_names_are_columns_of_text_files_too(tmp_path: Path) -> None:
    (tmp_path / "source=noon").mkdir()
    FRAME.drop("source").write_csv(tmp_path / "source=noon" / "a.csv")
    spec = Input.model_validate({"path": tmp_path, "format": "csv"})
    (file,) = open_source(CONTRACT, spec, tmp_path).files
    assert file.partitions == {"source": "noon"}


def test_a_text_file_that_changes_is_noticed(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "a.csv")
    (file,) = open_source(CONTRACT, Input(path=(str(tmp_path / "a.csv"),)), tmp_path).files
    assert file.name == str(tmp_path / "a.csv")
    assert not file.has_changed()
    FRAME[:2].write_csv(tmp_path / "a.csv")
    assert file.has_changed()


@pytest.mark.wide
def test_a_run_reads_csv_with_expressions(tmp_path: Path) -> None:
    (tmp_path / "events.csv").write_text("event_id,day\n1,20-11-2026\n2,21-11-2026\n", encoding="utf-8")
    rows = "event_id,score,t\n1,2.5,1795219200\n2,1.5,1795132800\n1,0.5,1795132800\n2,3.5,1795305600\n"
    (tmp_path / "pairs.csv").write_text(rows, encoding="utf-8")
    stage = {
        "kind": "before_after",
        "pairs": {"path": "pairs.csv", "columns": {"article_time": {"sql": "to_timestamp(CAST(t AS BIGINT))"}}},
        "events": {
            "path": "events.csv",
            "columns": {"event_time": {"sql": "strptime(day, '%d-%m-%Y')"}},
            "timezone": "UTC",
        },
        "compared": "pairs",
        "thresholds": [1.0, 2.0],
    }
    run = pipeline.run(parse_config({"output": "out", "stages": [stage]}, base=tmp_path))
    table = pl.read_parquet(run.path / "before_after_estimates" / "before_after.parquet")
    assert table.select("m_before", "m_after").rows() == [(1, 2), (0, 2)]


@pytest.mark.wide
def test_rows_in_the_order_of_files_do_not_depend_on_where_they_are_converted(tmp_path: Path) -> None:
    rows = {"doc_id": ["d"], "text": ["x"]}
    pl.DataFrame({**rows, "start": [3], "end": [9]}).write_parquet(tmp_path / "gold.parquet")
    for number in range(11):
        frame = pl.DataFrame({**rows, "start": [number], "end": [number + 4]})
        frame.write_csv(tmp_path / f"{number:02}.csv")
        frame.write_parquet(tmp_path / f"of_{number:02}.parquet")

    def outcomes(predicted: Any) -> pl.DataFrame:  # noqa: ANN401 - any rows
        gold = str(tmp_path / "gold.parquet")
        result = thresher.entity_recognition(
            gold=gold, predicted=predicted, match="overlap", assignment="file_order", uncertainty="none"
        )
        return result.outcomes

    expected = outcomes(str(tmp_path / "of_*.parquet"))
    frames = [pl.read_parquet(tmp_path / f"of_{number:02}.parquet") for number in range(11)]
    for predicted in (str(tmp_path / "*.csv"), frames, [frame.lazy() for frame in frames]):
        assert_frame_equal(outcomes(predicted), expected)


def test_a_fault_of_a_row_names_the_file_that_it_came_from(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("score,label\n0.5,1\nnan,0\n")
    with pytest.raises(DataError, match=r"\(1 in .*/a\.csv, first at row 2\)"):
        thresher.threshold_sweep(predictions=str(tmp_path / "a.csv"))


def test_what_a_short_row_is_told_to_have_makes_it_whole(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,score,label,system\nq,0.5,1,a\nq,0.4,0\n")
    with pytest.raises(DataError, match="an empty value is nothing between two separators"):
        read(str(tmp_path / "a.csv"))
    (tmp_path / "a.csv").write_text("id,score,label,system\nq,0.5,1,a\nq,0.4,0,\n")
    assert read(str(tmp_path / "a.csv"))["system"].to_list() == ["a", None]


@pytest.mark.parametrize("end", ["\n", "\n\n\r\n", "\n  \n", "\n,,\n,\n", ""])
def test_blank_lines_at_the_end_are_no_rows(end: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"score,label,s\n1,0,\n0.5,1,x{end}")
    assert read(str(tmp_path / "a.csv")).rows() == [(1.0, False, None), (0.5, True, "x")]


def test_a_blank_line_of_one_column_is_nothing_that_is_known(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("score\n1\n\n2\n")
    (file,) = Listing(Input(path=(str(tmp_path / "a.csv"),)), tmp_path, name="rows").opened().files
    assert isinstance(file, DataFile)
    assert pl.read_parquet(file.path)["score"].to_list() == ["1", None, "2"]


def test_lines_without_a_value_are_no_rows(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,score,label\n1,0.5,1\n\n,,\nNA,NA,NA\n\n")
    frame = read(str(tmp_path / "a.csv"), null_values=["NA"])
    assert frame.rows() == [("1", 0.5, True), (None, None, None)]


def test_a_damaged_archive_is_a_fault_of_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"score,label\n" + b"0.9,1\n" * 9000)[:-20])
    with pytest.raises(DataError, match=r"a\.csv\.gz cannot be read as csv"):
        read(str(tmp_path / "a.csv.gz"))


def test_the_folder_for_temporary_data_is_made(tmp_path: Path) -> None:
    FRAME.write_csv(tmp_path / "rows.csv")
    (file,) = Listing(Input(path=("rows.csv",)), tmp_path, tmp_path / "new" / "scratch", name="rows").opened().files
    assert isinstance(file, DataFile)
    assert file.path.is_relative_to(tmp_path / "new" / "scratch")


def test_what_is_written_for_a_time_goes_with_the_last_that_refers_to_it(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    FRAME.write_csv(tmp_path / "rows.csv")
    request.addfinalizer(gc.enable)
    gc.disable()
    listing = Listing(Input(path=("rows.csv",)), tmp_path, tmp_path / "scratch", name="rows").opened()
    assert len(list((tmp_path / "scratch").iterdir())) == 1
    del listing
    assert not list((tmp_path / "scratch").iterdir())


RUN_LINES = "q1 Q0 d1 1 3.5 bm25\nq1 Q0 d2 2 2.5e0 bm25\n"
QRELS_LINES = "q1 0 d1 0\nq1 0 d2 1\n"


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("run", "qrels"), [("bm25.txt", "judged.txt"), ("bm25", "judged"), ("a.b.trec", "q.rel.gz")])
def test_text_of_any_name_is_told_its_format(run: str, qrels: str, tmp_path: Path) -> None:
    for name, lines in ((run, RUN_LINES), (qrels, QRELS_LINES)):
        content = lines.encode()
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    inputs: dict[str, Any] = {"ranking": {"path": tmp_path / run}, "relevance": {"path": tmp_path / qrels}}
    for name, kind in (("ranking", "trec_run"), ("relevance", "trec_qrels")):
        with pytest.raises(DataError) as caught:
            thresher.ranking(**inputs)
        text = str(caught.value)
        assert f"input {name}: {inputs[name]['path']} is text, not Parquet; its lines look like {kind}" in text
        assert f'in the config {name}={{"path": …, "format": "{kind}"}}' in text
        assert f"on the command line --set '{name}.format=\"{kind}\"'" in text
        assert "whole" not in text
        inputs[name]["format"] = kind
    assert thresher.ranking(**inputs).queries["average_precision"].to_list() == [0.5]


LOOKS = {
    "rows.txt": ("score;label\n0,5;1\n", 'format = "csv", delimiter = ";", decimal = ","'),
    "rows.dat": ("score\tlabel\n1\t0\n", 'format = "csv", delimiter = "\\t"'),
    "rows": ('{"score": 1, "label": true}\n', 'format = "jsonl"'),
    "rows.parquet": ("score,label\n1,0\n", 'format = "csv"'),
    "gold.txt": ("# sent_id = 1\n1-2\tdel\t_\t_\n1\tde\t_\tO\n2\tRio\t_\tB-LOC\n", 'format = "conll"'),
    "gold.iob2": ("EU B-ORG\nsays O\n", 'format = "conll"'),
    "doc.a2": ("T1\tLocation 0 6\tLondon\n", 'format = "brat"'),
    "notes.txt": (
        "hello\nworld\n",
        'format = "…" }, on the command line --set \'predictions.format="…"\': csv, tsv, jsonl, trec_run',
    ),
}


@pytest.mark.parametrize("name", LOOKS)
def test_text_is_told_what_its_lines_look_like(name: str, tmp_path: Path) -> None:
    content, words = LOOKS[name]
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as caught:
        read(str(tmp_path / name))
    assert words in str(caught.value)
    assert "remove" not in str(caught.value)
    assert "again" not in str(caught.value)


DOCUMENTS = pl.DataFrame(
    {
        "doc_id": ["a", "b", "c", "d"],
        "id": [1, 2, 3, 4],
        "ents": [
            [{"start": 0, "end": 4, "label": "LOC", "id": "x"}],
            [],
            [{"start": 1, "end": 2, "label": "PER", "id": "y"}, {"start": 5, "end": 9, "label": "LOC", "id": None}],
            None,
        ],
        "words": [["Rome"], [], ["I", "Oslo"], None],
    }
)
LISTS = """{"doc_id": "a", "label": [[0, 4, "LOC"]]}
{"doc_id": "b", "label": []}
{"doc_id": "c", "label": [[1, 2, "PER"], [5, 9, "LOC"]]}
"""
MENTIONS = InputContract(
    "gold",
    (
        Field("doc_id", "key", "a key", required=True),
        Field("start", "position", "a place", required=True),
        Field("end", "position", "a place", required=True),
        Field("type", "key", "a type"),
    ),
    "rows",
)
OF_LISTS = {"unnest": "label", "columns": {"start": "label.1", "end": "label.2", "type": "label.3"}}


@pytest.mark.parametrize("form", ["jsonl", "parquet", "frame", "lazy", "arrow"])
def test_the_elements_of_a_list_are_rows(tmp_path: Path, form: str) -> None:
    DOCUMENTS.write_ndjson(tmp_path / "rows.jsonl")
    DOCUMENTS.write_parquet(tmp_path / "rows.parquet")
    in_memory = {"frame": lambda: DOCUMENTS, "lazy": DOCUMENTS.lazy, "arrow": DOCUMENTS.to_arrow}
    path = in_memory[form]() if form in in_memory else tmp_path / f"rows.{form}"
    (file,) = open_source(MENTIONS, Input.model_validate({"path": path, "unnest": "ents"}), Path.cwd()).files
    assert isinstance(file, DataFile)
    assert not file.has_changed()
    rows = pl.read_parquet(file.path)
    assert rows.drop("words", "id").to_dict(as_series=False) == {
        "doc_id": ["a", "c", "c"],
        "start": [0, 1, 5],
        "end": [4, 2, 9],
        "label": ["LOC", "PER", "LOC"],
        "ents.id": ["x", "y", None],
    }
    assert rows["id"].to_list() == [1, 3, 3]
    words = read(in_memory[form]() if form in in_memory else path, InputContract("gold", (), "rows"), unnest="words")
    assert words["words"].to_list() == ["Rome", "I", "Oslo"]


def test_the_values_of_lists_in_lists_are_read_as_what_their_fields_expect(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(LISTS)
    rows = read(tmp_path / "rows.jsonl", MENTIONS, **OF_LISTS)
    assert rows.rows() == [("a", 0, 4, "LOC"), ("c", 1, 2, "PER"), ("c", 5, 9, "LOC")]
    (tmp_path / "rows.jsonl").write_text(LISTS.replace("[5, 9", '["five", 9'))
    with pytest.raises(DataError, match=r"'label\.1' is not a number.*1 row of .*rows\.jsonl \(first at row 3: 'five'"):
        read(tmp_path / "rows.jsonl", MENTIONS, **OF_LISTS)
    DOCUMENTS.clear().select("doc_id", label=pl.lit([[1]])).write_parquet(tmp_path / "none.parquet")
    rows = read(tmp_path / "none.parquet", MENTIONS, **OF_LISTS)  # nothing tells of fields where there is no element
    assert rows.schema == {"doc_id": pl.String} | dict.fromkeys(("label.1", "label.2", "label.3"), pl.Null)


EMPTY = {
    "no_values.jsonl": '{"doc_id": "a", "ents": []}\n{"doc_id": "b", "ents": []}\n',
    "null.jsonl": '{"doc_id": "a", "ents": null}\n',
    "partly.jsonl": '{"doc_id": "a", "ents": null}\n{"doc_id": "b", "ents": []}\n',
}


def counts_of_lists(folder: Path, gold: Any, predicted: Any, **keys: Any) -> list[tuple[int, ...]]:  # noqa: ANN401
    """tp, fp and fn of mentions in lists."""
    named = {"unnest": "ents", "columns": {"type": "label"}}
    stage = {"kind": "entity_recognition", "match_type": True, "averages": ["micro"]} | keys
    inputs = {"gold": {"path": gold} | named, "predicted": {"path": predicted} | named}
    run = run_stages({"output": str(folder / "results"), "stages": [stage | inputs]})
    scores = pl.read_parquet(run.path / "entity_recognition_scores" / "entity_recognition.parquet")
    return scores.select("tp", "fp", "fn").rows()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", [*EMPTY, "null.parquet", "lists.parquet", "structs.parquet"])
@pytest.mark.parametrize(
    ("empty", "keys"),
    [("gold", {"thresholds": [0.5]}), ("predicted", {}), ("predicted", {"match": "text", "match_type": False})],
)
def test_lists_that_are_all_empty_are_no_rows(tmp_path: Path, name: str, empty: str, keys: dict[str, Any]) -> None:
    fields = {"start": pl.Int64, "end": pl.Int64, "label": pl.String, "text": pl.String, "score": pl.Float64}
    structs = pl.List(pl.Struct(fields))
    kinds = {"null.parquet": pl.Null(), "lists.parquet": pl.List(pl.Null), "structs.parquet": structs}
    if name in EMPTY:
        (tmp_path / name).write_text(EMPTY[name])
    else:
        values: list[int] | None = None if name == "null.parquet" else []
        frame = pl.DataFrame({"doc_id": ["a"], "ents": pl.Series([values], dtype=kinds[name])})
        frame.write_parquet(tmp_path / name)
    mention = '{"start": 0, "end": 4, "label": "LOC", "text": "Rome", "score": 0.5}'
    (tmp_path / "full.jsonl").write_text(f'{{"doc_id": "a", "ents": [{mention}]}}\n')
    of_side = {side: str(tmp_path / (name if side == empty else "full.jsonl")) for side in ("gold", "predicted")}
    assert counts_of_lists(tmp_path, **of_side, **keys)[-1] == ((0, 1, 0) if empty == "gold" else (0, 0, 1))


@pytest.mark.wide
@settings(max_examples=12, deadline=None)
@given(
    st.lists(
        st.lists(st.lists(st.integers(0, 3), max_size=3, unique=True), min_size=1, max_size=3), min_size=1, max_size=4
    )
)
def test_files_with_and_without_elements_are_rows_together(starts: list[list[list[int]]]) -> None:
    with TemporaryDirectory() as folder:
        number, flat = 0, 0
        for day, documents in enumerate(starts):
            lines = []
            for of_document in documents:
                ents = [{"start": start, "end": start + 1, "label": "LOC"} for start in of_document]
                lines.append(json.dumps({"doc_id": f"d{number}", "ents": ents}))
                number, flat = number + 1, flat + len(ents)
            (Path(folder) / f"{day}.jsonl").write_text("\n".join(lines) + "\n")
        pattern = str(Path(folder) / "*.jsonl")
        assert counts_of_lists(Path(folder), pattern, pattern, allow_empty=True)[-1] == (flat, 0, 0)


@pytest.mark.wide
def test_mentions_in_lists_are_evaluated_and_accounted_for(tmp_path: Path) -> None:
    (tmp_path / "predicted.jsonl").write_text(LISTS)
    DOCUMENTS.write_ndjson(tmp_path / "gold.jsonl")
    gold = {"path": str(tmp_path / "gold.jsonl"), "unnest": "ents", "columns": {"type": "label"}}
    predicted = {"path": str(tmp_path / "predicted.jsonl"), **OF_LISTS}
    stage = {"kind": "entity_recognition", "gold": gold | {"where": "label = 'LOC'"}, "predicted": predicted}
    run = pipeline.run({"output": str(tmp_path / "results"), "stages": [stage | {"match_type": True}]})
    scores = pl.read_parquet(run.path / "entity_recognition_scores" / "entity_recognition.parquet")
    assert scores.select("tp", "fp", "fn").row(0) == (2, 1, 0)
    rows = pl.read_parquet(run.path / "inputs" / "entity_recognition.parquet")
    assert dict(rows.group_by("input").agg(pl.col("n_rows").sum()).rows()) == {"gold": 3, "predicted": 3}
    assert (
        pipeline.run({"output": str(tmp_path / "results"), "stages": [stage | {"match_type": True}]}).status
        == "unchanged"
    )
    (tmp_path / "predicted.jsonl").write_text(LISTS.replace("PER", "LOC"))
    again = pipeline.run({"output": str(tmp_path / "results"), "stages": [stage | {"match_type": True}]})
    assert again.status == "published"


def test_a_missing_column_that_elements_of_a_list_have_says_how_to_read_them(tmp_path: Path) -> None:
    DOCUMENTS.write_ndjson(tmp_path / "rows.jsonl")
    with pytest.raises(DataError) as raised:
        read(tmp_path / "rows.jsonl", MENTIONS)
    advice = "each element of 'ents' (start, end, label, id) is a row, say so: unnest = \"ents\", on the command line"
    assert str(raised.value).count(advice) == 2  # start, end
    assert read(tmp_path / "rows.jsonl", MENTIONS, unnest="ents").height == 3
    with pytest.raises(DataError, match=r"rows\.jsonl has no column 'entz', which unnest names[\s\S]*'ents'\?"):
        read(tmp_path / "rows.jsonl", MENTIONS, unnest="entz")
    with pytest.raises(DataError, match=r"unnest names 'doc_id', which is .*string in .*rows\.jsonl, not a list"):
        read(tmp_path / "rows.jsonl", MENTIONS, unnest="doc_id")


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"database": "m.duckdb", "table": "p", "delimiter": ";"}, "delimiter has no effect on duckdb"),
        ({"path": "m.duckdb", "delimiter": ";"}, "delimiter has no effect on duckdb"),
        ({"path": ["a.parquet", "b.jsonl"], "null_values": ["NA"]}, "null_values has no effect on jsonl and parquet"),
        ({"path": "a.parquet", "decimal": ","}, "decimal has no effect on parquet"),
        ({"path": "in/*.txt", "format": "trec_run", "delimiter": ";"}, "delimiter has no effect on trec_run"),
        ({"path": "a.csv", "tags": 4}, "tags has no effect on csv"),
    ],
)
def test_keys_of_texts_beside_other_files_are_refused_in_the_config_alone(spec: dict[str, Any], words: str) -> None:
    stages = [{"kind": "threshold_sweep", "predictions": spec}]
    with pytest.raises(ConfigError, match=words):
        parse_config({"stages": stages}, base=Path.cwd())


def test_keys_of_texts_are_taken_where_one_file_may_be_text() -> None:
    for spec in ({"path": ["a.parquet", "b.csv"]}, {"path": "folder"}, {"path": "rows.txt", "format": "csv"}):
        assert Input.model_validate(spec | {"delimiter": ";", "decimal": ",", "null_values": ["NA"]}).delimiter == ";"
