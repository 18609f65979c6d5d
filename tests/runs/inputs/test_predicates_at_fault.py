"""Predicates that are wrong in themselves, or for some value: whose fault it is, in words of the user."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import TYPE_CHECKING

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from running import rows_by_status, run_change_points, run_stages, run_threshold_sweep, stage_config

from pipeline.base.errors import ConfigError, DataError
from pipeline.engines.duckdb import DuckDB

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FRAME = pl.DataFrame(
    {"score": [0.1, 0.6, 0.9], "label": [False, True, True], "page": [1, 2, 3], "model": ["a", "b", "c"]}
)


def refusal(folder: Path, where: str, kind: type[ConfigError | DataError]) -> str:
    with pytest.raises(kind) as raised:
        run_threshold_sweep(folder, FRAME, predictions={"where": where})
    return str(raised.value)


@pytest.mark.parametrize(
    "where",
    [
        "(" * 200 + "1=1" + ")" * 200,
        "(" * 3000 + "1=1" + ")" * 3000,
        "NOT " * 200 + "TRUE",
        "-" + " -" * 200 + "page < 0",
    ],
)
def test_a_predicate_that_is_nested_too_deeply_is_refused(tmp_path: Path, where: str) -> None:
    message = refusal(tmp_path, where, ConfigError)
    assert "input predictions: where" in message
    assert "is nested too deeply" in message
    assert len(message) < 500


@pytest.mark.wide
def test_a_long_chain_of_one_operator_is_not_nested(tmp_path: Path) -> None:
    where = " OR ".join(f"page = {number}" for number in range(3, 900))
    run = run_threshold_sweep(tmp_path, FRAME.vstack(FRAME), predictions={"where": where})
    assert run.stages[0].n_rows == 6


@pytest.mark.parametrize("where", ["SELECT", "score =", "(", "1=1; DROP TABLE x", "score score"])
def test_what_does_not_parse_is_told_without_names_of_the_parser(tmp_path: Path, where: str) -> None:
    message = refusal(tmp_path, where, ConfigError)
    assert f"where is not an SQL predicate: {where!r}" in message
    assert "class" not in message


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("page % 0 = 1", "Division by zero"),
        ("regexp_matches(model, '(')", "missing )"),
        ("model LIKE 'a' ESCAPE 'ab'", "Invalid escape string"),
        ("page << 63 > 0", "Overflow in left shift"),
    ],
)
def test_a_predicate_that_fails_for_a_value_is_not_blamed_on_the_file(tmp_path: Path, where: str, words: str) -> None:
    message = refusal(tmp_path, where, DataError)
    assert message.startswith(f"input predictions: where ({where}) cannot be computed: ")
    assert words in message
    assert len(message.splitlines()) == 2


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("page + 0.5", r"where = .* is .* in .*\n.*write a comparison"),
        ("model || 'x'", r"where = .* is string in .*\n.*true or false for a row"),
        ("page > model AND label + label", r"where = .* does not fit the columns of "),
        ('model = "b"', r"where reads 'b', which .* lacks\n.*text stands in single quotes: 'b'"),
    ],
)
def test_a_predicate_that_does_not_fit_the_columns_is_refused_before_a_row_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, words: str
) -> None:
    monkeypatch.setattr(DuckDB, "scan", None)
    assert re.match(f"input predictions: {words}", refusal(tmp_path, where, DataError))


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    "where",
    [
        "CAST(coalesce(model, '') AS INTEGER) = 1 OR page = 1",
        "coalesce(page, 'x') = 1",
        "CASE WHEN page IS NULL THEN CAST('x' AS INTEGER) > 3 ELSE page = 1 END",
        "page = 1 AND half > 1 AND wide > 3",
        "page = 1 AND page",
    ],
)
def test_a_predicate_that_fails_for_no_row_of_the_data_is_computed(tmp_path: Path, where: str) -> None:
    values = {"half": pa.array([1.5] * 3, pa.float16()), "wide": pa.array([Decimal("3.5")] * 3, pa.decimal256(40, 2))}
    table = FRAME.with_columns(model=pl.lit("1")).to_arrow()
    for name, column in values.items():
        table = table.append_column(name, column)
    pq.write_table(table, tmp_path / "in.parquet")
    predictions = {"path": str(tmp_path / "in.parquet"), "where": where}
    run = run_stages(stage_config(tmp_path, "threshold_sweep", {}, predictions=predictions, thresholds=[0.5]))
    assert rows_by_status(run, "predictions", "threshold_sweep")["used"] in {1, 3}


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("where", ["label", "NOT label", "NULL", "label IS NOT NULL AND score > '0.5'", "page = '2'"])
def test_a_predicate_that_is_true_or_false_fits(tmp_path: Path, where: str) -> None:
    predictions = {"where": f"({where}) IS NOT TRUE OR page > 0"}
    assert run_threshold_sweep(tmp_path, FRAME, predictions=predictions).stages[0].n_rows == 3


@pytest.mark.parametrize("position", [1e20, -1e300])
def test_positions_beyond_every_integer_are_refused_with_their_input(tmp_path: Path, position: float) -> None:
    frame = pl.DataFrame({"series_id": [1, 1], "position": [0.0, position]})
    with pytest.raises(DataError, match=r"input annotations: column 'position' is outside -1e\+19 to 1e\+19 in 1 row"):
        run_change_points(tmp_path, {"annotations": frame, "predictions": frame}, margin=1e300)


def test_a_null_that_the_footer_denies_is_an_error_of_the_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = DuckDB.stream

    def damaged(self: DuckDB, query: object) -> Iterator[pl.DataFrame]:
        for block in stream(self, query):  # type: ignore[arg-type]
            yield block.with_columns(pl.lit(None, dtype=pl.Boolean).alias("label"))

    monkeypatch.setattr(DuckDB, "stream", damaged)
    with pytest.raises(DataError, match="an input is damaged: label is NULL in a row"):
        run_threshold_sweep(tmp_path, FRAME)
