"""What `thresher render --engine spark` prints of the starter configs runs on Spark from top to bottom, as it is."""

from __future__ import annotations

import re
import shutil
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from pipeline.base.sql_files import resource_folder
from pipeline.cli.app import app
from pipeline.engines.engine import Resources
from pipeline.engines.spark_session import SparkSettings, started_session
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALLER = {  # than the demo: what runs on few rows runs on all
    "before_after": {"n_events": 12, "n_articles": 200},
    "change_points": {"series": 6},
    "compare": {"documents": 12},
    "entity_recognition": {"documents": 12},
    "geocoding": {"documents": 12},
    "ranking": {"queries": 6},
    "threshold_sweep": {"documents": 12},
}
END_OF_STATEMENT = re.compile(r";\s*$", re.MULTILINE)


@pytest.fixture
def session(spark_settings: SparkSettings) -> SparkSession:
    return started_session(spark_settings, Resources())


@pytest.mark.parametrize("kind", [entry.kind for entry in STAGES])
def test_every_statement_runs_as_printed(
    kind: str, session: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    simulation = import_module(f"pipeline.stages.simulations.{kind}")
    monkeypatch.setattr(simulation, "simulate", partial(simulation.simulate, **SMALLER[kind]))
    simulation.write_demo(Path("demo", "data", kind))
    shutil.copy(resource_folder("configs") / f"{kind}.toml", tmp_path)
    printed = CliRunner().invoke(app, ["render", f"{kind}.toml", "--engine", "spark"])
    assert printed.exit_code == 0, printed.output
    statements = [text for text in END_OF_STATEMENT.split(printed.stdout) if text.strip()]
    assert len(statements) > 5, "a stage has relations and counts"
    for text in statements:
        session.sql(text).collect()
