"""Columns without a role that speak against independent rows, or against one sample: said, and only where they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import run_stages, run_threshold_sweep, stage_config
from stage_examples import EXAMPLES

from pipeline.base.errors import DataError
from pipeline.runs.proposing import propose
from pipeline.stages import find_stage

if TYPE_CHECKING:
    from pathlib import Path

    from stage_examples import Example

N_ROWS, N_CLUSTERS = 2_000, 200
REPEATS, POOLED, ALIKE = "has no role and repeats", "one number is of all values", "are alike"


def predictions(*, of_clusters: bool) -> pl.DataFrame:
    """Scored rows, independent or ten near copies of each of 200."""
    rng = np.random.default_rng(4)
    cluster = np.repeat(np.arange(N_CLUSTERS), N_ROWS // N_CLUSTERS)
    base = rng.normal(size=N_CLUSTERS)[cluster] if of_clusters else rng.normal(size=N_ROWS)
    draw = rng.random(N_CLUSTERS)[cluster] if of_clusters else rng.random(N_ROWS)
    return pl.DataFrame(
        {
            "score": base + rng.normal(scale=0.1, size=N_ROWS),
            "label": draw < 1 / (1 + np.exp(-base)),
            "family": [f"f{number}" for number in cluster],
            "age": rng.integers(18, 90, N_ROWS),
            "country": rng.choice(list("abcdefghijklmno"), N_ROWS),
            "comment": [f"row {number}" for number in range(N_ROWS)],
        }
    )


def said(folder: Path, frame: pl.DataFrame, **keys: Any) -> list[str]:  # noqa: ANN401
    """The warnings of the look at the rows."""
    run = run_threshold_sweep(folder, frame, thresholds=[-1.0, 0.0, 1.0], **keys)
    return [words for words in run.warnings if any(part in words for part in (REPEATS, POOLED, ALIKE))]


@pytest.mark.wide
@pytest.mark.parametrize("name", ["id", "item_id", "UUID", "doc-id", "key"])
def test_an_id_without_a_role_that_repeats_is_said_with_what_to_do(tmp_path: Path, name: str) -> None:
    frame = predictions(of_clusters=False).with_columns(pl.Series(name, [row % 1500 for row in range(N_ROWS)]))
    (words,) = said(tmp_path / "said", frame)
    assert f"{name!r} has no role and repeats in 500 of the first 2,000 rows" in words
    assert said(tmp_path / "cluster", frame, cluster=name) == []
    assert said(tmp_path / "none", frame, uncertainty="none") == []
    assert said(tmp_path / "once", frame.with_columns(pl.int_range(pl.len()).alias(name))) == []
    grouped = frame.with_columns(pl.Series("part", [row // 1500 for row in range(N_ROWS)]))
    assert said(tmp_path / "by", grouped, by=[["part"]]) == []


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", ["model", "System", "dataset"])
def test_systems_in_one_number_are_said_with_their_values(tmp_path: Path, name: str) -> None:
    frame = predictions(of_clusters=False).with_columns(pl.Series(name, ["x", "y"] * (N_ROWS // 2)))
    (words,) = said(tmp_path / "said", frame)
    assert words.endswith(f"""of {name!r} (x, y) together: by = [["{name}"]] gives results for each""")
    assert said(tmp_path / "by", frame, by=[[name]]) == []
    assert said(tmp_path / "one", frame.with_columns(pl.lit("x").alias(name))) == []
    assert said(tmp_path / "where", frame, predictions={"where": f"\"{name}\" = 'x'", "columns": {}}) == []


def test_rows_that_are_alike_are_said_once_and_independent_ones_are_not(tmp_path: Path) -> None:
    (words,) = said(tmp_path / "copies", predictions(of_clusters=True))
    assert "rows with the same 'family' are alike (200 values in the first 2,000 rows)" in words
    assert words.endswith('cluster = "family"')
    assert said(tmp_path / "named", predictions(of_clusters=True), cluster="family") == []
    assert said(tmp_path / "independent", predictions(of_clusters=False)) == []


def test_a_feature_that_tells_the_label_is_no_cluster(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    age = rng.integers(18, 90, N_ROWS)
    label = rng.random(N_ROWS) < (age - 18) / 72
    frame = pl.DataFrame({"score": rng.normal(size=N_ROWS) + (age - 50) / 40, "label": label, "age": age})
    assert said(tmp_path, frame) == []


@pytest.mark.parametrize("n_ids", [N_ROWS, N_ROWS - 1])
def test_an_id_is_mapped_by_init_unless_it_repeats(tmp_path: Path, n_ids: int) -> None:
    frame = predictions(of_clusters=False).with_columns(id=pl.int_range(pl.len()) % n_ids)
    frame.write_parquet(tmp_path / "predictions.parquet")
    entry = find_stage("threshold_sweep")
    assert entry is not None
    text = propose([entry.load()], ["predictions.parquet"], tmp_path)
    assert ('columns = { id = "id" }' in text) == (n_ids == N_ROWS)
    assert ('"id" repeats and is not mapped' in text) == (n_ids < N_ROWS)


def test_ids_that_repeat_only_in_rows_that_where_leaves_out_are_not_said(tmp_path: Path) -> None:
    row = pl.int_range(pl.len())
    part = pl.when(row < N_ROWS // 2).then(pl.lit("a")).otherwise(pl.lit("b"))
    frame = predictions(of_clusters=False).with_columns(id=row % (N_ROWS // 2), part=part)
    assert len(said(tmp_path / "all", frame)) == 1
    assert said(tmp_path / "one", frame, predictions={"where": "part = 'a'", "columns": {}}) == []
    assert said(tmp_path / "by", frame, by=[["part"]], predictions={"where": "part = 'a'", "columns": {}}) == []
    again = pl.concat([frame, frame])
    assert len(said(tmp_path / "twice", again, predictions={"where": "part = 'a'", "columns": {}})) == 1


POOLED_ELSEWHERE = [
    ("entity_recognition", "predicted"),
    ("change_points", "predictions"),
    ("before_after", "pairs"),
    ("geocoding", "predicted"),
    ("ranking", "ranking"),
]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("kind", "name"), POOLED_ELSEWHERE)
def test_systems_that_share_a_number_are_said_in_every_stage_that_may_pool_them(
    tmp_path: Path, kind: str, name: str
) -> None:
    (example,) = (each for each in EXAMPLES if each.kind == kind)
    frames = dict(example.frames)
    if kind == "ranking":  # a document of both systems is refused; here each has its own
        frames[name] = frames[name].unique(["query_id", "doc_id"], keep="first", maintain_order=True)
    frames[name] = (
        frames[name]
        .drop("system", "method", strict=False)
        .with_columns(matcher=pl.Series([("a", "b")[row % 2] for row in range(frames[name].height)]))
    )
    keys = {key: value for key, value in example.keys.items() if key != "by"}
    for by, n_said in ((None, 1), ([["matcher"]], 0)):
        config = stage_config(tmp_path / str(by), kind, frames, **keys, **({} if by is None else {"by": by}))
        words = [text for text in run_stages(config).warnings if POOLED in text]
        assert len(words) == n_said, words
        assert all("'matcher' (a, b)" in text and 'by = [["matcher"]]' in text for text in words)


def example_of(kind: str) -> Example:
    (found,) = (each for each in EXAMPLES if each.kind == kind)
    return found


def warnings_of(folder: Path, kind: str, frames: dict[str, pl.DataFrame], **keys: Any) -> list[str]:  # noqa: ANN401
    config = stage_config(folder, kind, frames, **{**example_of(kind).keys, **keys})
    return [words for words in run_stages(config).warnings if " repeat" in words]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", ["gold", "predicted"])
@pytest.mark.parametrize("match", ["span", "overlap", "text", "text_near"])
def test_mentions_that_stand_twice_at_one_place_are_said(tmp_path: Path, name: str, match: str) -> None:
    frames = dict(example_of("entity_recognition").frames)
    frames["predicted"] = frames["predicted"].with_columns(end=pl.col("end") + 1)
    keys = {"match": match}
    assert warnings_of(tmp_path / "once", "entity_recognition", frames, **keys) == []
    frames[name] = pl.concat([frames[name], frames[name][4:7]])
    (words,) = warnings_of(tmp_path / "said", "entity_recognition", frames, **keys)
    assert f"input {name}: doc_id" in words
    assert " repeat: doc_id = t0, " in words
    assert "and 1 more. Each counts as a mention of its own: keep one row per mention" in words
    assert warnings_of(tmp_path / "kept", "entity_recognition", frames, **keys, duplicates="keep") == []
    frames[name] = frames[name].unique(maintain_order=True)
    assert warnings_of(tmp_path / "mended", "entity_recognition", frames, **keys) == []


def test_the_same_text_at_two_places_does_not_repeat(tmp_path: Path) -> None:
    frames = dict(example_of("entity_recognition").frames)
    twice = {
        name: pl.concat([frames[name], frames[name].with_columns(pl.col("start", "end") + 100)])
        for name in ("gold", "predicted")
    }
    assert warnings_of(tmp_path / "places", "entity_recognition", frames | twice, match="text") == []
    unplaced = {name: frame.drop("start", "end") for name, frame in twice.items()}
    assert warnings_of(tmp_path / "texts", "entity_recognition", frames | unplaced, match="text") == []


def test_mentions_of_two_types_at_one_place_repeat_only_where_types_do_not_count(tmp_path: Path) -> None:
    frames = dict(example_of("entity_recognition").frames)
    for name in ("gold", "predicted"):
        frames[name] = pl.concat([frames[name].with_columns(type=pl.lit(kind)) for kind in ("PER", "LOC")])
    assert warnings_of(tmp_path / "typed", "entity_recognition", frames, match_type=True) == []
    words = warnings_of(tmp_path / "untyped", "entity_recognition", frames)
    assert len(words) == 2
    assert all("(of different types: match_type = true)" in each for each in words)


def test_gold_places_that_stand_twice_are_said_where_mentions_are_matched(tmp_path: Path) -> None:
    gold = pl.DataFrame(
        {"doc_id": ["t", "t"], "start": [0, 9], "end": [4, 12], "latitude": [1.0, 2.0], "longitude": [3.0, 4.0]}
    )
    keys = {"match": "span", "by": [[]]}
    frames = {"gold": pl.concat([gold, gold[:1]]), "predicted": gold}
    (words,) = warnings_of(tmp_path / "said", "geocoding", frames, **keys)
    assert "input gold: doc_id, start and end repeat: doc_id = t, start = 0, end = 4 (2 rows). " in words
    assert words.endswith("keep one row per mention")
    assert warnings_of(tmp_path / "once", "geocoding", {"gold": gold, "predicted": gold}, **keys) == []


@pytest.mark.wide
@pytest.mark.parametrize("name", ["document", "docno", "Document-ID"])
def test_documents_without_a_role_are_said_where_places_count_as_independent(tmp_path: Path, name: str) -> None:
    frames = dict(example_of("geocoding").frames)
    frames["gold"] = frames["gold"].rename({"doc_id": name})
    (words,) = warnings_of(tmp_path / "said", "geocoding", frames)
    assert f"input gold: {name!r} has no role and repeats in 18 of the first 24 rows, which count as ind" in words
    assert words.endswith(f'map it, columns = {{ doc_id = "{name}" }}')
    assert warnings_of(tmp_path / "mapped", "geocoding", frames, gold={"columns": {"doc_id": name}}) == []
    assert warnings_of(tmp_path / "cluster", "geocoding", frames, cluster=name) == []
    assert warnings_of(tmp_path / "none", "geocoding", frames, uncertainty="none") == []
    frames["gold"] = frames["gold"].with_columns(pl.int_range(pl.len()).alias(name))
    assert warnings_of(tmp_path / "once", "geocoding", frames) == []


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("name", ["article", "to_id", "doc_id"])
def test_pairs_that_repeat_an_article_without_a_role_are_said(tmp_path: Path, name: str) -> None:
    pairs = example_of("before_after").frames["pairs"].rename({"article_id": name})
    keys = {"by": [[]], "lag_thresholds": [], "compared": "pairs"}
    assert warnings_of(tmp_path / "once", "before_after", {"pairs": pairs}, **keys) == []
    frames = {"pairs": pl.concat([pairs, pairs[:3]])}
    (words,) = warnings_of(tmp_path / "said", "before_after", frames, **keys)
    assert f"{name!r} has no role and repeats with the same event_id in 3 of the first {len(pairs) + 3} rows" in words
    assert words.endswith(
        f'each of which counts as a pair: if it is the article_id, map it, columns = {{ article_id = "{name}" }}'
    )
    assert warnings_of(tmp_path / "kept", "before_after", frames, **keys, duplicates="keep") == []
    mapped = {"pairs": {"columns": {"article_id": name}}}
    with pytest.raises(DataError, match="repeat"):
        warnings_of(tmp_path / "mapped", "before_after", frames, **keys, **mapped)
