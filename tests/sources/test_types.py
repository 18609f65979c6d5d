from __future__ import annotations

import re
import tomllib
from datetime import datetime
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pyarrow as pa
import pytest

from pipeline.base.dialect import column, double, render
from pipeline.base.errors import DataError
from pipeline.sources.inputs import Field, Input, InputContract
from pipeline.sources.predicates import parse_value
from pipeline.sources.source import open_source
from pipeline.sources.types import ACCEPTS, as_mapping, canonical_type, finite, how_to_cast, typed

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.sources.inputs import Kind

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32()]
FLOATS = [pa.float16(), pa.float32(), pa.float64()]
TEXTS = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
TEXTS += [getattr(pa, name)() for name in ("string_view",) if hasattr(pa, name)]  # pyarrow 15 has none
DATES = [pa.date32(), pa.date64()]
LOCAL = [pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")]
ZONED = [pa.timestamp(unit, "Europe/Amsterdam") for unit in ("s", "ms", "us", "ns")]
NEVER = [pa.binary(), pa.list_(pa.int64()), pa.struct([("a", pa.int64())]), pa.time64("us")]
KINDS: dict[Kind, dict[str, list[pa.DataType]]] = {
    "number": {"DOUBLE": [*INTEGERS, pa.uint64(), *FLOATS, pa.decimal128(10, 2)]},
    "integer": {"BIGINT": [*INTEGERS, pa.uint64()]},
    "boolean": {"BOOLEAN": [pa.bool_(), *INTEGERS, pa.uint64()]},
    "key": {"BIGINT": INTEGERS, "UBIGINT": [pa.uint64()], "VARCHAR": TEXTS},
    "instant": {"DATE": DATES, "TIMESTAMP": LOCAL, "TIMESTAMPTZ": ZONED},
    "position": {
        "BIGINT": [*INTEGERS, pa.uint64()],
        "DOUBLE": [*FLOATS, pa.decimal128(10, 2)],
        "DATE": DATES,
        "TIMESTAMP": LOCAL,
        "TIMESTAMPTZ": ZONED,
    },
    "any": {
        "DOUBLE": FLOATS,
        "BIGINT": INTEGERS,
        "UBIGINT": [pa.uint64()],
        "DECIMAL(10, 2)": [pa.decimal128(10, 2)],
        "VARCHAR": TEXTS,
        "BOOLEAN": [pa.bool_()],
        "DATE": DATES,
        "TIMESTAMP": LOCAL,
        "TIMESTAMPTZ": ZONED,
    },
}
ALL = [*INTEGERS, pa.uint64(), *FLOATS, *TEXTS, *DATES, *LOCAL, *ZONED, *NEVER, pa.bool_(), pa.decimal128(10, 2)]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_accepts_exactly_its_lossless_types(kind: Kind) -> None:
    expected = {str(arrow): sql_type for sql_type, types in KINDS[kind].items() for arrow in types}
    accepted = {str(arrow): canonical_type(arrow, kind) for arrow in ALL}
    assert accepted == {str(arrow): expected.get(str(arrow)) for arrow in ALL}


@pytest.mark.parametrize("kind", KINDS)
def test_a_column_that_is_null_throughout_fits_every_kind(kind: Kind) -> None:
    assert canonical_type(pa.null(), kind) == "NULL"


@pytest.mark.parametrize("value", [0.1, -0.0, 5e-324, 1.7976931348623157e308, 1 / 3])
def test_a_double_literal_is_written_so_that_it_reads_back_exactly(value: float) -> None:
    text = render(double(value))
    assert text == f"CAST('{value!r}' AS DOUBLE)"


def test_floating_columns_pass_the_finite_barrier_and_others_do_not() -> None:
    barrier = render(finite(typed(column("x"), pa.string(), "VARCHAR")), pretty=False)
    assert "x" in barrier
    assert " - " in render(typed(column("x"), pa.float32(), "DOUBLE"), pretty=False)
    assert render(typed(column("x"), pa.int32(), "DOUBLE"), pretty=False) == 'CAST("x" AS DOUBLE)'


VALUES = [
    pa.array([1, 0]),
    pa.array([1.0, 0.0]),
    pa.array([1, 0], pa.decimal128(10, 2)),
    pa.array([True, False]),
    pa.array([1, 2], pa.date32()),
    pa.array([1, 2], pa.timestamp("us")),
    pa.array([1, 2], pa.timestamp("us", "UTC")),
    pa.array([1, 2], pa.time64("us")),
    pa.array([1, 2], pa.duration("us")),
    pa.array([b"1", b"0"]),
    pa.array([[1], [2]]),
]


def sql_of(remedy: str) -> str:
    """The expression that a remedy maps the field to."""
    line = re.search(r"columns = \{.*? \} \}", remedy)
    assert line is not None
    return str(tomllib.loads(line[0])["columns"]["field"]["sql"])


@pytest.mark.first_cases(50)
@pytest.mark.parametrize("values", VALUES, ids=lambda values: str(values.type))
@pytest.mark.parametrize("kind", ACCEPTS)
def test_the_line_that_casts_a_column_runs_and_gives_what_the_field_accepts(values: pa.Array, kind: Kind) -> None:
    if canonical_type(values.type, kind) is not None:
        return
    remedy = how_to_cast(values.type, kind, field="field", column="it")
    if "columns = " not in remedy:
        assert remedy == "Convert it before it is read; nothing is cast silently."
        return
    table = pa.table({"it": values})
    connection = duckdb.connect()
    connection.register("rows", table)
    converted = connection.sql(f"SELECT {sql_of(remedy)} AS made FROM rows").to_arrow_table()  # noqa: S608
    assert canonical_type(converted.schema.field("made").type, kind) is not None
    assert converted.num_rows == len(values)


WRITTEN: list[tuple[Kind, dict[str, object]]] = [
    ("number", {"57%": 0.57, "5.5 %": 0.055, "0,57": 0.57}),
    ("position", {"57%": 0.57, "0,57": 0.57}),
    ("integer", {"1,234": 1234, "1,234,567": 1234567}),
    ("instant", {"31-12-2026": datetime(2026, 12, 31), "01-02-2026": datetime(2026, 2, 1)}),  # noqa: DTZ001
]


def values_of(expression: str, name: str, text: str) -> list[object]:
    """The value of an expression on a row of text; none where it cannot be computed."""
    connection = duckdb.connect()
    connection.register("rows", pa.table({name: [text]}))
    try:
        return [value for (value,) in connection.sql(f"SELECT {expression} FROM rows").fetchall()]  # noqa: S608
    except duckdb.ConversionException:
        return []


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(("kind", "read"), WRITTEN)
@pytest.mark.parametrize("name", ["score", 'it\'s a "score"'])
def test_text_that_a_cast_cannot_read_is_read_by_one_of_the_expressions_beside_it(
    kind: Kind, read: dict[str, object], name: str
) -> None:
    remedy = how_to_cast(pa.string(), kind, field="field", column=name)
    _, _, others = remedy.partition(" Of text such as ")
    expressions = re.split(r"write |, of '[^']*' ", others.removesuffix("."))[1:]
    for text, value in read.items():
        assert values_of(sql_of(remedy), name, text) == []
        computed = [each for expression in expressions for each in values_of(expression, name, text)]
        assert computed == [pytest.approx(value) if isinstance(value, float) else value]
    assert "Of text" not in how_to_cast(pa.float64(), "key", field="field", column=name)


@pytest.mark.parametrize(("field", "expression"), [("score", "a = 'x'"), ("my field", '"it\'s"'), ("a", '"\\"\t"')])
def test_a_mapping_is_a_line_of_toml(field: str, expression: str) -> None:
    assert tomllib.loads(as_mapping(field, expression)) == {"columns": {field: {"sql": expression}}}


def test_what_is_advised_of_numbers_as_keys_keeps_them_apart(tmp_path: Path) -> None:
    numbers = [0.0, 0.5, 0.7, 7.0, 1e20, 2.0**63, 2.0**63 + 2048]
    rows = pl.DataFrame({"score": [0.1 * number for number in range(7)], "id": numbers, "label": [True] * 7})
    contract = InputContract("rows", (Field("id", "key", "a key", required=True),), "rows")
    for keys in (rows, rows.with_columns(pl.col("id").cast(pl.Decimal(38, 2)))):
        keys.write_parquet(tmp_path / "rows.parquet")
        with pytest.raises(DataError) as caught:
            open_source(contract, Input.model_validate(str(tmp_path / "rows.parquet")), tmp_path)
        line = str(caught.value).partition("has it: ")[2].partition("; nothing")[0]
        advised = tomllib.loads(line)["columns"]["id"]["sql"]
        assert parse_value(advised, name="rows: id")
        query = f"SELECT {advised} AS key FROM '{tmp_path}/rows.parquet'"  # noqa: S608 - the advice itself
        texts = [key for (key,) in duckdb.execute(query).fetchall()]
        assert len(set(texts)) == len(numbers)
        assert texts[3] == "7"
