"""Messages about rows: file, column, number of rows, and the first of them."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import run_stages, run_threshold_sweep, stage_config

from pipeline.base.errors import DataError
from pipeline.engines.duckdb import DuckDB

if TYPE_CHECKING:
    from pathlib import Path

    import sqlglot.expressions as exp

SCORES = {"score": [0.1, 0.2, 0.3], "label": [True, False, True]}
PLACES = {"mention_id": ["a", "b'", "c"], "latitude": [1.0, 2.0, 3.0], "longitude": [1.0, 2.0, 3.0]}
MENTIONS = {"doc_id": [1, 1, 2], "start": [0, 5, 0], "end": [3, 9, 4]}
AT_2 = r"\(1 in .*predictions.parquet, first at row 2\)\n"


@pytest.mark.parametrize(
    ("more", "keys", "words"),
    [
        ({"weight": [1.0, -1.0, 1.0]}, {}, rf"column 'weight' is outside 0 to 1e\+06 in 1 row {AT_2}"),
        ({"weight": [1.0, None, 1.0]}, {}, f"column 'weight' is NULL or not finite in 1 row {AT_2}"),
        ({"weight": [1.0, 1e-9, 1.0]}, {}, f"column 'weight' is above 0 but below 1e-06 in 1 row {AT_2}"),
        (
            {"c": ["x", None, None]},
            {"cluster": "c"},
            r"column 'c' is NULL or not finite in 2 rows \(2 in .*first at row 2\)\n",
        ),
        (
            {"item": [7, 8, 8]},
            {"predictions": {"columns": {"id": "item"}}},
            r"item repeats: item = 8 \(2 rows\) \(2 in .*first at row 2\)\n",
        ),
    ],
)
def test_faults_of_predictions(tmp_path: Path, more: dict[str, Any], keys: dict[str, Any], words: str) -> None:
    with pytest.raises(DataError, match=words):
        run_threshold_sweep(tmp_path, pl.DataFrame(SCORES | more), **keys)


@pytest.mark.parametrize(
    ("kind", "base", "change", "words"),
    [
        ("entity_recognition", MENTIONS, {"start": [0, None, 0]}, r"'start' is NULL .* 1 row \(1 in .* at row 2\)"),
        ("entity_recognition", MENTIONS, {"end": [3, 4, 4]}, r"'end' is before 'start', .* 1 row \(1 in .* at row 2\)"),
        (
            "geocoding",
            PLACES,
            {name: [1.0, 2.0, None] for name in ("latitude", "longitude")},
            r"'latitude' is NULL .* 1 row \(1 in .* at row 3\)",
        ),
        ("geocoding", PLACES, {"mention_id": ["a", "b'", "b'"]}, r"mention_id = b' \(2 rows\) \(2 in .* at row 2\)"),
    ],
)
def test_faults_of_gold(tmp_path: Path, kind: str, base: dict[str, Any], change: dict[str, Any], words: str) -> None:
    frames = {"gold": pl.DataFrame(base | change), "predicted": pl.DataFrame(base)}
    keys = {"match": "span"} if kind == "entity_recognition" else {}
    with pytest.raises(DataError, match=f"input gold: .*{words}"):
        run_stages(stage_config(tmp_path, kind, frames, **keys))


def test_checks_of_one_relation_are_asked_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    fetch = DuckDB.fetch

    def noted(engine: DuckDB, query: exp.Query, *more: Any) -> pl.DataFrame:  # noqa: ANN401 - as `fetch`
        asked.append(query.sql())
        return fetch(engine, query, *more)

    monkeypatch.setattr(DuckDB, "fetch", noted)
    gold = pl.DataFrame(MENTIONS | {"start": [0, None, 0], "end": [3, 9, -4]})
    frames = {"gold": gold, "predicted": pl.DataFrame(MENTIONS)}
    with pytest.raises(DataError) as caught:
        run_stages(stage_config(tmp_path, "entity_recognition", frames, match="span"))
    assert [words in str(caught.value) for words in ("'start' is NULL", "'end' is before 'start'")] == [True, True]
    checks = [text for text in asked if "gold_read" in text and "passes_where" in text]
    of_all, *single = (text for text in checks if "COUNT" in text)
    assert [of_all.count("COUNT_IF"), of_all.count("IS NULL")] == [
        4,
        3,
    ]  # a document, where it starts and ends, its place
    assert len([text for text in single if "HAVING" in text]) == 2


def test_what_where_leaves_out_is_not_computed_for_checks(tmp_path: Path) -> None:
    gold = pl.DataFrame(MENTIONS | {"start": ["0", "none", "0"]})
    columns = {"start": {"sql": "CAST(start AS BIGINT)"}}
    inputs = {"gold": {"columns": columns, "where": "start <> 'none'"}}
    frames = {"gold": gold, "predicted": pl.DataFrame(MENTIONS)}
    assert run_stages(stage_config(tmp_path, "entity_recognition", frames, match="span", **inputs))


def test_repeated_keys_are_counted_even_where_only_two_are_named(tmp_path: Path) -> None:
    rows = pl.concat([pl.DataFrame(SCORES)] * 2)
    frame = rows.with_columns(item=pl.Series([1, 2, 3] * 2))
    with pytest.raises(DataError, match=r"item = 1 \(2 rows\); item = 2 \(2 rows\); and 1 more \(2 in .* row 1\)"):
        run_threshold_sweep(tmp_path, frame, predictions={"columns": {"id": "item"}})


def test_the_first_file_with_a_fault_is_named(tmp_path: Path) -> None:
    folder = tmp_path / "predictions"
    folder.mkdir()
    frame = pl.DataFrame(SCORES | {"w": [1.0, 1.0, 1.0]})
    frame.write_parquet(folder / "1.parquet")
    frame.with_columns(w=-1.0).write_parquet(folder / "2.parquet")
    predictions = {"path": str(folder), "columns": {"weight": "w"}, "where": "score > 0.15"}
    stage = {"kind": "threshold_sweep", "predictions": predictions}
    with pytest.raises(DataError, match=r"column 'w' is outside .* in 2 rows \(2 in .*2.parquet, first at row 2\)"):
        run_stages({"output": str(tmp_path / "results"), "stages": [stage]})


def test_a_key_with_a_date_has_no_place(tmp_path: Path) -> None:
    frame = pl.DataFrame(SCORES | {"item": [1, 1, 2], "day": [dt.date(2026, 1, 1)] * 3})
    with pytest.raises(DataError, match=r"item = 1, day = 2026-01-01 \(2 rows\)\n"):
        run_threshold_sweep(tmp_path, frame, by=["day"], predictions={"columns": {"id": "item"}})
