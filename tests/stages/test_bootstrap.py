"""Whole runs with `uncertainty = "bootstrap"`: what it changes, that it does not depend on the order, and refusals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from running import read_table, run_stages, stage_config
from stage_examples import EXAMPLES

from pipeline.base.errors import ConfigError
from pipeline.stages.threshold_sweep import areas

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from stage_examples import Example

LIMITED = {
    "before_after": "before_after_estimates",
    "threshold_sweep": "threshold_sweep_curve",
    "entity_recognition": "entity_recognition_scores",
    "geocoding": "geocoding_scores",
    "ranking": "ranking_summary",
    "change_points": "change_points_curve",
}
KEYS: dict[str, dict[str, Any]] = {"before_after": {"cluster": "event_id"}}
DRAWN: dict[str, Any] = {"uncertainty": "bootstrap", "resamples": 199}


UNITS = {
    "event_id",
    "query_id",
    "doc_id",
    "mention_id",
    "series_id",
    "page",
    "author",
    "id",
}  # what copies must not share
COPIES = 10


def copied(frame: pl.DataFrame) -> pl.DataFrame:
    """Copies of the rows, those of each with units of its own: an example has too few of them to draw from."""
    units = [name for name in frame.columns if name in UNITS]
    if not units:
        return frame
    return pl.concat(
        frame.with_columns(pl.format("{}-{}", pl.col(name), pl.lit(copy)).alias(name) for name in units)
        for copy in range(COPIES)
    )


def tables(folder: Path, example: Example, frames: Mapping[str, pl.DataFrame], **keys: Any) -> dict[str, pl.DataFrame]:  # noqa: ANN401
    """The tables of limits of an example, and the areas of threshold_sweep."""
    inputs = {name: {"columns": example.columns(name)} for name in frames if example.columns(name)}
    keys = example.keys | KEYS.get(example.kind, {}) | inputs | keys
    run = run_stages(stage_config(folder, example.kind, frames, **keys))
    names = [LIMITED[example.kind], *(["threshold_sweep_areas"] if example.kind == "threshold_sweep" else [])]
    return {name: read_table(run, name, example.kind) for name in names}


def without_limits(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.drop(name for name in frame.columns if name.endswith(("_lower", "_upper")))


@pytest.mark.parametrize("kind", LIMITED)
def test_the_bootstrap_changes_limits_alone_and_does_not_depend_on_the_order_of_rows(tmp_path: Path, kind: str) -> None:
    example = next(example for example in EXAMPLES if example.kind == kind)
    frames = {name: copied(frame) for name, frame in example.frames.items()}
    shuffled = {name: frame.sample(fraction=1, shuffle=True, seed=3) for name, frame in frames.items()}
    closed = tables(tmp_path / "closed", example, frames)
    resampled = tables(tmp_path / "resampled", example, frames, **DRAWN)
    again = tables(tmp_path / "again", example, shuffled, **DRAWN)
    other_seed = tables(tmp_path / "seed", example, frames, **DRAWN, seed=1)
    for name, frame in closed.items():
        assert_frame_equal(without_limits(frame), without_limits(resampled[name]))
        assert_frame_equal(resampled[name], again[name], check_exact=True)
        assert not resampled[name].equals(frame)
        assert not resampled[name].equals(other_seed[name])
        limits = [column for column in frame.columns if column.endswith(("_lower", "_upper"))]
        assert_frame_equal(frame.select(pl.col(limits).is_null()), resampled[name].select(pl.col(limits).is_null()))


def test_areas_are_resampled_by_their_shifts_exact_and_binned(tmp_path: Path) -> None:
    """Limits of 120 equal clusters are near to the closed ones, on the logit scale within a tenth of their distance."""
    rng = np.random.default_rng(2)
    page = np.repeat(np.arange(120), 10)
    label = rng.random(1200) < np.repeat(rng.beta(3, 5, 120), 10)
    frame = pl.DataFrame({"score": rng.normal(1.2 * label), "label": label, "page": page})
    for method in ("exact", "binned"):
        keys: dict[str, Any] = {"cluster": "page", "method": method, "thresholds": [0.0, 0.5, 1.0]}
        rows = [
            read_table(
                run_stages(
                    stage_config(tmp_path / method / kind, "threshold_sweep", {"predictions": frame}, **keys, **drawn)
                ),
                "threshold_sweep_areas",
                "threshold_sweep",
            ).row(0, named=True)
            for kind, drawn in (("closed", {}), ("drawn", {"uncertainty": "bootstrap", "resamples": 4999}))
        ]
        for name in areas.AREAS:
            width = rows[0][f"{name}_upper"] - rows[0][f"{name}_lower"]
            for side in ("lower", "upper"):
                limit = f"{name}_{side}"
                assert rows[1][limit] != rows[0][limit]
                assert rows[1][limit] == pytest.approx(rows[0][limit], abs=0.05 * width), (method, limit)


@pytest.mark.parametrize(
    ("kind", "keys", "words"),
    [
        ("threshold_sweep", {"cluster": None}, "without cluster rows are independent"),
        ("threshold_sweep", {"cluster": ["page", "author"]}, 'give one column, for example cluster = "page"'),
        ("before_after", {"cluster": None}, 'cluster = "event_id"'),
        ("before_after", {"cluster": ["event_id", "article_id"]}, 'cluster = "event_id"'),
        ("geocoding", {"resamples": 199, "confidence": 0.999}, "give at least 1999"),
        ("geocoding", {"resamples": 50}, "resamples"),
        ("geocoding", {"seed": -1}, "seed"),
    ],
)
def test_what_cannot_be_resampled_is_refused(tmp_path: Path, kind: str, keys: dict[str, Any], words: str) -> None:
    example = next(example for example in EXAMPLES if example.kind == kind)
    keys = {name: value for name, value in (example.keys | keys).items() if value is not None}
    config = stage_config(tmp_path, kind, example.frames, **keys, uncertainty="bootstrap")
    with pytest.raises(ConfigError) as raised:
        run_stages(config)
    assert words in str(raised.value)
