"""Keys of mentions of every type, names that need quotes, and groups from several inputs, in both stages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import read_table, run_stages, stage_config

from pipeline.metrics.geocoding import haversine
from pipeline.stages.geocoding import planning

if TYPE_CHECKING:
    from pathlib import Path

GOLD = pl.DataFrame({"doc_id": [1, 1, 2], "start": [0, 5, 0], "end": [3, 9, 4], "text": ["Ohm", "Oslo", "Bonn"]})
PLACES = {"latitude": [1.0, 2.0, 3.0], "longitude": [4.0, 5.0, 6.0]}


def scores(folder: Path, kind: str, frames: dict[str, pl.DataFrame], **keys: Any) -> pl.DataFrame:  # noqa: ANN401
    return read_table(run_stages(stage_config(folder, kind, frames, **keys)), f"{kind}_scores", kind)


KEY_TYPES: list[tuple[Any, Any]] = [
    (pl.Int32, pl.Int64),
    (pl.UInt64, pl.UInt64),
    (pl.UInt64, pl.Int64),
    (pl.String, pl.String),
    (pl.UInt8, pl.UInt64),
]


def keyed(gold_type: pl.DataType, predicted_type: pl.DataType) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Gold mentions with places, and all but the first of them as predictions, with keys of these types."""
    gold = GOLD.with_columns(pl.col("doc_id").cast(gold_type), **{name: pl.Series(v) for name, v in PLACES.items()})
    return gold, gold.with_columns(pl.col("doc_id").cast(predicted_type))[1:]


MATCHES = ("span", "text", "overlap", "text_near")
KINDS = ("entity_recognition", "geocoding")


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("kind", range(len(KINDS)))
@pytest.mark.parametrize("types", range(len(KEY_TYPES)))
def test_documents_of_any_key_type(tmp_path: Path, types: int, kind: int) -> None:
    """Every two types in both kinds of stage, and every way to match in both: keys are joined before they matter."""
    gold, predicted = keyed(*KEY_TYPES[types])
    match = MATCHES[(types + 2 * kind) % len(MATCHES)]
    table = scores(tmp_path, KINDS[kind], {"gold": gold, "predicted": predicted}, match=match)
    assert table.row(0, named=True)["tp"] == 2


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("gold_type", "predicted_type"), KEY_TYPES)
def test_mentions_of_any_key_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gold_type: pl.DataType, predicted_type: pl.DataType
) -> None:
    for module in (planning, planning):
        monkeypatch.setattr(module, "geodesic", haversine)
    gold, predicted = keyed(gold_type, predicted_type)
    inputs = {
        "gold": gold.rename({"doc_id": "mention_id"})[1:],
        "predicted": predicted.rename({"doc_id": "mention_id"}),
    }
    for distance in ("haversine", "geodesic"):
        found = scores(tmp_path / distance, "geocoding", inputs, distance=distance)
        assert found.row(0, named=True)["tp"] == 2


def test_texts_and_types_may_be_numbers(tmp_path: Path) -> None:
    gold = GOLD.with_columns(text=pl.Series([7, 8, 9]), type=pl.Series([1, 1, 2]))
    found = scores(
        tmp_path, "entity_recognition", {"gold": gold, "predicted": gold}, match="text", match_type=True, by=["type"]
    )
    assert found.filter(average="micro").select("type", "tp").rows() == [(None, 3), (1, 2), (2, 1)]


NAME = 'sys"tem; --'


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("kind", ["entity_recognition", "geocoding"])
def test_names_that_need_quotes_and_groups_of_two_inputs(tmp_path: Path, kind: str) -> None:
    gold = GOLD.with_columns(pl.Series(name, values) for name, values in PLACES.items())
    predicted = gold.with_columns(pl.Series(NAME, ["x", "y", None]))
    frames = {"gold": gold, "predicted": predicted}
    if kind == "entity_recognition":
        frames["documents"] = pl.DataFrame({"doc_id": [1, 2], "land é": ["a", "b"]})
    else:
        frames["gold"] = gold.with_columns(pl.Series("land é", ["a", "a", "b"]))
    by = [["land é", NAME]]
    found = scores(tmp_path, kind, frames, match="span", by=by).group_by("land é", NAME).first().sort("land é", NAME)
    assert found.select("land é", NAME, "tp", "fn").sort("land é", NAME, nulls_last=True).rows() == [
        ("a", "x", 1, 1),
        ("a", "y", 1, 1),
        ("a", None, 0, 2),
        ("b", "x", 0, 1),
        ("b", "y", 0, 1),
        ("b", None, 1, 0),
    ]


@pytest.mark.wide
def test_columns_of_both_inputs_are_told_apart_by_their_input(tmp_path: Path) -> None:
    gold = GOLD.with_columns(pl.lit("g").alias("type"), *(pl.Series(name, values) for name, values in PLACES.items()))
    predicted = gold.with_columns(pl.lit("p").alias("type"))
    frames = {"gold": gold, "predicted": predicted}
    for match in ({"match": "span"}, {}):
        inputs = frames if match else {n: f.with_row_index("mention_id") for n, f in frames.items()}
        for name, value in (("gold.type", "g"), ("predicted.type", "p")):
            found = scores(tmp_path / f"{name}{len(match)}", "geocoding", inputs, by=[[name]], **match)
            assert found.select(name, "tp").unique().rows() == [(value, 3)]
