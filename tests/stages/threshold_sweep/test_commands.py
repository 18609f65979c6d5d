"""The commands on threshold_sweep: run, check, render, its own command, and the queries of its results."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import sqlglot
from cli.calls import call

import pipeline

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    labels = rng.uniform(size=200) < 0.4
    frame = pl.DataFrame(
        {"p": expit_like(rng.normal(labels * 1.0, 1.0)), "is_true": labels.astype(np.int8), "model": ["m", "n"] * 100}
    )
    frame.write_parquet(tmp_path / "predictions.parquet")
    return tmp_path


def expit_like(values: Any) -> Any:  # noqa: ANN401 - arrays
    return 1 / (1 + np.exp(-values))


def config(place: Path, more: str = "") -> Path:
    path = place / "config.toml"
    path.write_text(
        'output = "results"\n[[stages]]\nkind = "threshold_sweep"\nthresholds = [0.25, 0.5]\nby = ["model"]\n'
        'predictions = { path = "predictions.parquet", columns = { score = "p", label = "is_true" } }\n' + more
    )
    return path


@pytest.mark.wide
def test_run_publishes_four_tables_that_can_be_queried(place: Path) -> None:
    called = call("run", config(place, 'averages = ["macro"]\n'))
    assert called.code == 0, called.err
    asked = call(
        "query",
        place / "results",
        "SELECT count(*) FILTER (tp IS NOT NULL) AS n FROM threshold_sweep_curve",
        "--format",
        "json",
    )
    assert json.loads(asked.out) == [{"n": 6}]
    with pipeline.open_results(place / "results") as connection:
        for name, rows in {"areas": 3, "operating_points": 3, "averages": 3}.items():
            assert len(connection.table(f"threshold_sweep_{name}").fetchall()) == rows, name
    assert call("verify", place / "results").code == 0


def test_check_reads_no_row_and_names_a_missing_column(place: Path) -> None:
    assert call("check", config(place)).code == 0
    called = call("check", config(place, 'cluster = "user"\n'))
    assert called.code == 65
    assert "'user'" in called.err


@pytest.mark.parametrize("method", ["exact", "binned"])
@pytest.mark.parametrize("engine", ["duckdb", "spark"])
def test_render_shows_every_statement_as_sql(place: Path, engine: str, method: str) -> None:
    called = call("render", config(place, f'method = "{method}"\n'), "--engine", engine)
    assert called.code == 0, called.err
    assert "threshold_sweep/counts" in called.out
    assert "threshold_sweep/counts_and_likelihood" in called.out
    assert "scored" in called.out
    texts = re.sub(r"(?m)^--.*$", "", called.out)
    statements = [each for each in sqlglot.parse(texts, read=engine) if each is not None]
    assert len(statements) > 5


def test_the_command_of_the_stage_runs_it_without_a_config(place: Path) -> None:
    called = call(
        "threshold-sweep",
        "--predictions",
        place / "predictions.parquet",
        "--map",
        "predictions.score=p",
        "--map",
        "predictions.label=is_true",
        "--where",
        "predictions=model = 'm'",
        "--set",
        'method="binned"',
        "--output",
        place / "out",
    )
    assert called.code == 0, called.err
    areas = pl.read_parquet(next((place / "out").rglob("threshold_sweep_areas/*.parquet")))
    assert areas.select("n", "method").rows() == [(100, "binned")]


@pytest.mark.wide
def test_the_summary_says_precision_and_recall_in_words(place: Path) -> None:
    from pipeline.base.schemas import internal_name
    from pipeline.stages.threshold_sweep.stage import STAGE

    run = pipeline.run(config(place))
    tables = {
        name: pl.read_parquet(run.path / name / "threshold_sweep.parquet").rename({"model": internal_name("model")})
        for name in (f"threshold_sweep_{each}" for each in ("curve", "areas", "operating_points"))
    }
    shown = STAGE.summarize(tables)
    assert [row[0] for row in shown.rows] == ["all", "m", "n"]
    point = tables["threshold_sweep_operating_points"].row(0, named=True)
    assert f"{point['precision'] * 100:.0f} of every 100 predicted rows are true" in shown.sentence
    assert shown.curve is not None
    nothing = STAGE.summarize({name: table.clear() for name, table in tables.items()})
    assert nothing.sentence == "No group has any prediction."
