"""Columns without a role that speak against independent rows, or against one sample: said, and only where they do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import run_stages, run_threshold_sweep, stage_config
from stage_examples import EXAMPLES

from pipeline.runs.proposing import propose
from pipeline.stages import find_stage

if TYPE_CHECKING:
    from pathlib import Path

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


@pytest.mark.first_cases(1)
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
    text = propose(entry.load(), ["predictions.parquet"], tmp_path)
    assert ('columns = { id = "id" }' in text) == (n_ids == N_ROWS)
    assert ('"id" repeats and is not mapped' in text) == (n_ids < N_ROWS)


POOLED_ELSEWHERE = [("entity_recognition", "predicted"), ("change_points", "predictions"), ("before_after", "pairs")]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("kind", "name"), POOLED_ELSEWHERE)
def test_systems_that_share_a_number_are_said_in_every_stage_that_may_pool_them(
    tmp_path: Path, kind: str, name: str
) -> None:
    (example,) = (each for each in EXAMPLES if each.kind == kind)
    frames = dict(example.frames)
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
