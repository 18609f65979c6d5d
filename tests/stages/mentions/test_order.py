"""Which of mentions that a rule cannot tell apart are taken: the order of the rows says it only if it is asked to."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from reference_mentions import TEXTS
from running import read_table, run_stages, stage_config

from pipeline.base.errors import DataError
from pipeline.stages.geocoding.contract import GeocodingParameters
from pipeline.stages.geocoding.planning import by_matching

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

RULES = ["span", "text", "overlap", "text_near"]
PARIS, TEXAS = (48.8, 2.3), (33.6, -95.5)


def parameters(**keys: Any) -> GeocodingParameters:  # noqa: ANN401 - any values
    inputs = {name: {"path": f"{name}.parquet"} for name in ("gold", "predicted")}
    return GeocodingParameters.model_validate({"name": "geocoding"} | inputs | keys)


def random_frames(rng: np.random.Generator, *, placed: bool, ranked: bool) -> dict[str, pl.DataFrame]:
    """Mentions with few texts, spans, places and ranks, some unknown, so that very many are alike in some of them."""
    frames = {}
    for name, n in (("gold", 25), ("predicted", 30)):
        columns: dict[str, Any] = {
            "_document": rng.integers(0, 2, n),
            "text": rng.choice(TEXTS, n),
            "type": rng.choice(["x", "y"], n),
            "latitude": rng.choice([1.0, 2.0, 3.0], n),
            "longitude": rng.choice([1.0, 2.0], n),
            "replicate": np.zeros(n, dtype=np.int64),
        }
        if placed:
            columns["start"] = rng.integers(0, 3, n)
            columns["end"] = columns["start"] + rng.integers(1, 4, n)
        if name == "gold":
            columns["mention_id"] = rng.integers(0, 5, n)
            columns["country"] = rng.choice(["a", "b"], n)
        elif ranked:
            columns["rank"] = rng.choice([1.0, 2.0], n)
        frame = pl.DataFrame(columns)
        unknown = [name for name in ("mention_id", "rank") if name in columns]
        some = pl.Series(rng.random(n) < 0.3)
        frame = frame.with_columns(pl.when(some).then(None).otherwise(name).alias(name) for name in unknown)
        frames[name] = frame.with_columns(doc_id="_document")
    return frames


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("match", "candidates", "placed"),
    [*product(RULES, ["error", "first", "closest"], [True]), ("text", "error", False)],
)
def test_places_do_not_depend_on_the_order_of_the_rows(
    match: str,
    candidates: str,
    placed: bool,  # noqa: FBT001 - parametrized
) -> None:
    rng = np.random.default_rng(len(match) + 10 * len(candidates))
    for number in range(6):
        frames = random_frames(rng, placed=placed, ranked=candidates == "first" or number % 2 == 0)
        if candidates == "error" and placed:
            spans = pl.struct("_document", "start", "end")
            frames["predicted"] = frames["predicted"].filter(spans.is_first_distinct())
        made = by_matching(parameters(match=match, candidates=candidates, match_type=number % 3 == 0), [], ["country"])
        found = [made(frames)]
        for seed in range(2):
            shuffled = {name: frame.sample(fraction=1, shuffle=True, seed=seed) for name, frame in frames.items()}
            found += [made(shuffled)]
        first, *others = (each.sort(each.columns, nulls_last=True) for each in found)
        assert all(each.equals(first) for each in others)
        assert first["is_gold"].sum() == frames["gold"].height


def places(*rows: tuple[Any, ...], names: Sequence[str] = ("text", "start", "end")) -> pl.DataFrame:
    """Rows of some columns and a place on Earth, in one document."""
    flat = [(*row[:-1], *row[-1]) for row in rows]
    return pl.DataFrame(flat, schema=[*names, "latitude", "longitude"], orient="row").with_columns(doc_id=pl.lit("d"))


def run_on(folder: Path, gold: pl.DataFrame, predicted: pl.DataFrame, **keys: Any) -> pl.DataFrame:  # noqa: ANN401
    run = run_stages(stage_config(folder, "geocoding", {"gold": gold, "predicted": predicted}, **keys))
    return read_table(run, "geocoding_outcomes", "geocoding")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("reverse", [False, True])
def test_the_lower_rank_is_taken_and_then_the_lower_latitude(tmp_path: Path, reverse: bool) -> None:  # noqa: FBT001
    gold = places(("Paris", PARIS), names=["text"])
    ranked = places(("Paris", 1, PARIS), ("PARIS", 2, TEXAS), names=["text", "rank"])
    for name, predicted, outcome in (("ranked", ranked, "tp"), ("not", ranked.drop("rank"), "fp")):
        rows = predicted.reverse() if reverse else predicted
        assert run_on(tmp_path / name, gold, rows, match="text")["outcome"].to_list() == [outcome], name


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("reverse", [False, True])
def test_of_gold_mentions_on_one_span_the_one_with_the_lower_id_is_matched(tmp_path: Path, reverse: bool) -> None:  # noqa: FBT001
    gold = places((7, 0, 5, PARIS), (9, 0, 5, TEXAS), names=["mention_id", "start", "end"])
    gold = gold.reverse() if reverse else gold
    found = run_on(tmp_path, gold, places(("Paris", 0, 5, PARIS)), match="span")
    assert found.select("mention_id", "outcome").rows() == [(7, "tp"), (9, "fn")]


@pytest.mark.wide
@pytest.mark.parametrize("reverse", [False, True])
def test_the_order_of_the_file_decides_for_texts_if_it_is_asked_to(tmp_path: Path, reverse: bool) -> None:  # noqa: FBT001
    gold = places(("Paris", 20, 25, PARIS))
    predicted = places(("Paris", 40, 45, PARIS), ("Paris", 20, 25, TEXAS))
    rows = predicted.reverse() if reverse else predicted
    found = run_on(tmp_path, gold, rows, match="text", assignment="file_order")
    assert found["outcome"].to_list() == ["fp" if reverse else "tp"]
    largest = run_on(tmp_path / "largest", gold, rows, match="text")
    assert largest["outcome"].to_list() == ["fp"]


@pytest.mark.wide
@pytest.mark.parametrize("texts", [("Paris", "Paris"), ("Paris", "PARIS ")], ids=["equal", "alike"])
@pytest.mark.parametrize("match", ["text", "text_near"])
def test_candidates_of_one_text_and_span_are_no_other_mentions(
    tmp_path: Path, match: str, texts: tuple[str, str]
) -> None:
    """A candidate must not go to another mention of the same text."""
    gold = places(("Paris", 0, 5, PARIS), ("Paris", 20, 25, PARIS))
    predicted = places((texts[0], 0, 5, TEXAS), (texts[1], 0, 5, PARIS)).with_columns(rank=pl.Series([1, 2]))
    with pytest.raises(DataError, match=r"predicted: .*(Paris \(2 rows\)|2 rows with the same normalised text)"):
        run_on(tmp_path / "error", gold, predicted, match=match)
    first = run_on(tmp_path / "first", gold, predicted, match=match, candidates="first")
    assert first.select("start", "outcome").rows() == [(0, "fp"), (20, "fn")]
    closest = run_on(tmp_path / "closest", gold, predicted.reverse(), match=match, candidates="closest")
    assert closest.select("start", "outcome").rows() == [(0, "tp"), (20, "fn")]


def test_messages_name_the_columns_of_the_files(tmp_path: Path) -> None:
    gold = places(("Paris", 0, 5, PARIS))
    predicted = places(("Paris", 0, 5, TEXAS), ("paris", 0, 5, PARIS)).rename({"start": "begin"})
    config = stage_config(tmp_path, "geocoding", {"gold": gold, "predicted": predicted}, match="text")
    config["stages"][0]["predicted"]["columns"] = {"start": "begin"}
    with pytest.raises(DataError, match=r"doc_id = d, begin = 0, end = 5 has 2 rows .*: 'Paris', 'paris'"):
        run_stages(config)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("match", RULES)
def test_rows_of_single_mentions_do_not_depend_on_the_order_of_the_rows(tmp_path: Path, match: str) -> None:
    """Mentions alike in all that the rule sees may differ in what people see."""
    gold = pl.DataFrame({"doc_id": ["d"], "start": [0], "end": [5], "text": ["Paris"], "type": ["place"]})
    others = pl.DataFrame({"text": ["paris", "PARIS", "PARIS"], "type": ["x", "place", "person"]})
    predicted = pl.concat([gold] * 3).with_columns(others)
    tables = []
    for number, rows in enumerate((predicted, predicted.reverse())):
        frames = {"gold": gold, "predicted": rows}
        run = run_stages(stage_config(tmp_path / f"{number}", "entity_recognition", frames, match=match))
        tables.append(read_table(run, "entity_recognition_outcomes", "entity_recognition"))
    assert tables[0].equals(tables[1])
    assert tables[0].filter(outcome="tp").select("predicted_text", "predicted_type").rows() == [("PARIS", "person")]


@pytest.mark.wide
def test_equal_sizes_need_no_warning_of_the_order_of_the_file(tmp_path: Path) -> None:
    gold = pl.DataFrame({"doc_id": ["d"], "text": ["Paris"], "start": [0], "end": [5]})
    frames = {"gold": gold, "predicted": gold.with_columns(score=0.5)}
    for match in RULES:
        keys = {"match": match, "assignment": "file_order"}
        run = run_stages(stage_config(tmp_path / match, "entity_recognition", frames, **keys))
        assert any("pairs all predictions at once" in each for each in run.notes) == (match in {"overlap", "text_near"})
