"""What is not read does not matter: columns of any type, and without a name, stand beside those that are read."""

from __future__ import annotations

import decimal
import json
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import thresher
from pipeline.base.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path

ROWS = 4
SCORES, LABELS = [0.1, 0.4, 0.6, 0.9], [False, True, False, True]
NUMBERS = pa.array(range(ROWS), pa.int32())
FIRST = pa.array([0] * ROWS, pa.int8())
WIDE = pa.array([decimal.Decimal("1" * 55)] * ROWS, pa.decimal256(60, 2))
EMPTY = pa.array([{}] * ROWS, pa.struct([]))
ODD: dict[str, pa.Array] = {
    "interval": pa.array([pa.MonthDayNano([1, 2, 3])] * ROWS),
    "dense union": pa.UnionArray.from_dense(FIRST, NUMBERS, [NUMBERS]),
    "sparse union": pa.UnionArray.from_sparse(FIRST, [NUMBERS]),
    "run-end encoded": pa.RunEndEncodedArray.from_arrays(pa.array([ROWS], pa.int32()), pa.array([1])),
    "list view": pa.array([[1]] * ROWS, pa.list_view(pa.int64())),
    "large list view": pa.array([[1]] * ROWS, pa.large_list_view(pa.int64())),
    "wide decimals": WIDE,
    "negative scale": pa.array([decimal.Decimal(1500)] * ROWS, pa.decimal128(10, -2)),
    "unknown zone": pa.array([1] * ROWS, pa.timestamp("us", "Mars/Phobos")),
    "zone by offset": pa.array([1] * ROWS, pa.timestamp("us", "+05:30")),
    "empty struct": EMPTY,
    "empty struct in a list": pa.ListArray.from_arrays(pa.array(range(ROWS + 1), pa.int32()), EMPTY),
    "wide decimals in a struct": pa.StructArray.from_arrays([WIDE], ["x"]),
    "no bytes": pa.array([b""] * ROWS, pa.binary(0)),
    "lists of nothing": pa.array([[]] * ROWS, pa.list_(pa.int64(), 0)),
    "dictionary of structs": pa.DictionaryArray.from_arrays(FIRST, pa.array([{"a": 1}])),
    "dictionary of lists": pa.DictionaryArray.from_arrays(FIRST, pa.array([[1]])),
    "dictionary of wide decimals": pa.DictionaryArray.from_arrays(FIRST, WIDE[:1]),
    "halves": pa.array([1.0] * ROWS, pa.float16()),
    "durations": pa.array([1] * ROWS, pa.duration("s")),
    "maps": pa.array([[("a", 1)]] * ROWS, pa.map_(pa.string(), pa.int64())),
    "another library's": pa.ExtensionArray.from_storage(pa.opaque(pa.int64(), "x", "y"), pa.array([1] * ROWS)),
}


def as_arrow_file(table: pa.Table, folder: Path) -> str:
    with pa.ipc.new_file(folder / "rows.arrow", table.schema) as file:
        file.write_table(table)
    return str(folder / "rows.arrow")


FORMS = {
    "table": lambda table, _: table,
    "reader": lambda table, _: table.to_reader(),
    "file": as_arrow_file,
}


def counted(predictions: Any, **keys: Any) -> tuple[int, int, int]:  # noqa: ANN401 - any input
    """The counts at 0.5, after the rows behind them have been shown."""
    result = thresher.threshold_sweep(predictions=predictions, thresholds=[0.5], **keys)
    str(result.explain())
    row = result.curve.row(0, named=True)
    return row["tp"], row["fp"], row["fn"]


@pytest.mark.parametrize("form", FORMS)
def test_columns_of_rare_types_stop_nothing(form: str, tmp_path: Path) -> None:
    table = pa.table({"score": SCORES, **ODD, "label": LABELS})
    assert counted(FORMS[form](table, tmp_path)) == (1, 1, 1)


@pytest.mark.parametrize("odd", ["interval", "sparse union", "list view", "empty struct", "dictionary of lists"])
def test_where_it_is_read_one_sentence_names_it_and_its_type(odd: str, tmp_path: Path) -> None:
    table = pa.table({"odd": ODD[odd], "label": LABELS})
    with pytest.raises(DataError, match=r"^input predictions: column 'odd' in .* is .*, not a number\n.*\.$"):
        counted({"path": as_arrow_file(table, tmp_path), "columns": {"score": "odd"}})


@pytest.mark.parametrize("dtype", [pl.Int128(), pl.Struct([]), pl.List(pl.Struct([])), pl.Object()])
@pytest.mark.parametrize("is_lazy", [False, True])
def test_a_column_of_polars_that_no_file_can_hold_stops_nothing(dtype: pl.DataType, is_lazy: bool) -> None:  # noqa: FBT001
    values = [object()] * ROWS if dtype == pl.Object() else [None] * ROWS
    frame = pl.DataFrame({"score": SCORES, "odd": pl.Series(values, dtype=dtype), "label": LABELS})
    assert counted(frame.lazy() if is_lazy else frame) == (1, 1, 1)


JSON = {
    "no keys": ["{}"] * ROWS,
    "no keys in a list": ["[{}]"] * ROWS,
    "numbers and text": ["1", '"a"', "2.5", "null"],
    "truth and numbers": ["true", "1", "2", "3"],
    "numbers and objects": ["1", '{"a": 1}', "[1]", "null"],
    "lists and objects": ["[1]", '{"a": 1}', "[1]", "null"],
    "a wide integer": ["1", str(2**63), "1", "1"],
    "a wider integer": ["1", str(-(10**30)), "1", "1"],
    "deeply nested": ["[" * 300 + "]" * 300, *["null"] * (ROWS - 1)],
    "deeply nested objects": ['{"a":' * 300 + "1" + "}" * 300, *["null"] * (ROWS - 1)],
}


@pytest.mark.parametrize("odd", JSON)
def test_a_column_of_odd_values_in_json_lines_stops_nothing(odd: str, tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = zip(SCORES, LABELS, JSON[odd], strict=True)
    path.write_text(
        "".join(f'{{"score": {score}, "odd": {value}, "label": {json.dumps(label)}}}\n' for score, label, value in rows)
    )
    assert counted(str(path)) == (1, 1, 1)


def test_a_line_that_is_no_object_is_named(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text('{"score": 0.5, "label": true}\n{"score": \n')
    with pytest.raises(DataError, match=r"rows\.jsonl cannot be read as jsonl: line 2 is not JSON"):
        counted(str(tmp_path / "rows.jsonl"))


HEADERS = {
    "as pandas and R write it": [",score,label", "1,.1,0", "2,.4,1", "3,.6,0", "4,.9,1"],
    "several": [",score,label,,", "1,.1,0,a,b", "2,.4,1,a,b", "3,.6,0,a,b", "4,.9,1,a,b"],
    "last": ["score,label,", ".1,0,a", ".4,1,a", ".6,0,a", ".9,1,a"],
}


@pytest.mark.parametrize("header", HEADERS)
def test_columns_without_a_name_stop_nothing(header: str, tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("\n".join(HEADERS[header]) + "\n")
    assert counted(str(tmp_path / "rows.csv")) == (1, 1, 1)


def test_columns_without_a_name_stop_nothing_in_files_with_types(tmp_path: Path) -> None:
    table = pa.table([pa.array(SCORES), pa.array(range(ROWS)), pa.array(LABELS)], names=["score", "", "label"])
    pq.write_table(table, tmp_path / "rows.parquet")
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps({"": 1, "score": s, "label": t}) + "\n" for s, t in zip(SCORES, LABELS, strict=True))
    )
    for form in (table, table.to_pandas(), str(tmp_path / "rows.parquet"), str(tmp_path / "rows.jsonl")):
        assert counted(form) == (1, 1, 1)


def test_a_relation_of_duckdb_may_hold_intervals_and_unions() -> None:
    rows = duckdb.connect().from_arrow(pa.table({"score": SCORES, "label": LABELS}))
    assert counted(rows.project("*, INTERVAL 1 DAY AS span, union_value(a := score) AS either")) == (1, 1, 1)
