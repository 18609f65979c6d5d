"""What `thresher render` prints runs as it is, and most of it stands in files."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest
import sqlglot.expressions as exp
from cases.reading import case_folders, case_name, prepare
from sqlglot import parse

from pipeline.base.sql_files import file_of, resource_folder
from pipeline.plan.plan import TYPES
from pipeline.runs.config import load_config
from pipeline.runs.evaluation import render_opened
from pipeline.runs.opening import open_inputs
from pipeline.stages.simulations import (
    before_after,
    change_points,
    compare,
    entity_recognition,
    geocoding,
    ranking,
    threshold_sweep,
)

if TYPE_CHECKING:
    from collections.abc import Generator

    from pipeline.runs.opening import OpenedStage

SIMULATIONS = {
    module.__name__.rpartition(".")[2]: module
    for module in (before_after, change_points, compare, entity_recognition, geocoding, ranking, threshold_sweep)
}
LEAST_SHARE_OF_FILES = 0.8


@pytest.fixture(scope="module")
def starters(tmp_path_factory: pytest.TempPathFactory) -> dict[str, OpenedStage]:
    """The stages of the starter configs beside the data of the demo, opened."""
    folder = tmp_path_factory.mktemp("starters")
    opened = {}
    for kind, simulation in SIMULATIONS.items():
        simulation.write_demo(folder / "demo" / "data" / kind)
        path = Path(shutil.copy(resource_folder("configs") / f"{kind}.toml", folder))
        config = load_config(path)
        opened[kind] = open_inputs(config, config.stages[0])
    return opened


@pytest.fixture(scope="module")
def database() -> Generator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as connection:
        yield connection


def run_in_duckdb(text: str, database: duckdb.DuckDBPyConnection) -> list[str]:
    """Run a text from top to bottom in a session of its own; return what its relations are called."""
    with database.cursor() as connection:
        connection.execute("SET TimeZone = 'UTC'")
        for statement in connection.extract_statements(text):
            connection.execute(statement).fetchall()
        return [
            name for (name,) in connection.execute("SELECT view_name FROM duckdb_views() WHERE temporary").fetchall()
        ]


@pytest.mark.parametrize("kind", SIMULATIONS)
def test_the_starters_run_as_they_are_printed(
    kind: str, starters: dict[str, OpenedStage], database: duckdb.DuckDBPyConnection
) -> None:
    relations = run_in_duckdb(render_opened(starters[kind], dialect="duckdb"), database)
    assert any(name.endswith("_read") for name in relations)


@pytest.mark.parametrize("folder", case_folders(), ids=case_name)
def test_the_cases_run_as_they_are_printed(folder: Path, tmp_path: Path, database: duckdb.DuckDBPyConnection) -> None:
    config = prepare(folder, tmp_path)
    for configured in config.stages:
        if not configured.upstream:
            run_in_duckdb(render_opened(open_inputs(config, configured), dialect="duckdb"), database)


@pytest.mark.parametrize("kind", SIMULATIONS)
def test_every_printed_statement_parses_as_spark_sql(kind: str, starters: dict[str, OpenedStage]) -> None:
    statements = parse(render_opened(starters[kind], dialect="spark"), read="spark")
    trees = [statement for statement in statements if statement is not None]
    assert trees
    assert not [node for tree in trees for node in tree.find_all(exp.Placeholder, exp.Command)]


def test_most_statements_of_the_starters_come_from_files(starters: dict[str, OpenedStage]) -> None:
    trees = [
        (kind, statement.title, file_of(statement.query))
        for kind, opened in starters.items()
        for node in opened.plan.nodes
        for statement in node.statements([grouped.name for grouped in opened.plan.by])
        if statement.query is not None
    ]
    built = [(kind, title) for kind, title, file in trees if file is None]
    assert len(trees) - len(built) >= LEAST_SHARE_OF_FILES * len(trees), built


def test_a_relation_of_a_pure_function_is_empty_and_has_its_types(starters: dict[str, OpenedStage]) -> None:
    text = render_opened(starters["entity_recognition"], dialect="duckdb")
    title, _, after_title = text.partition("made by ")[2].partition("\n")
    assert title.startswith("pipeline.stages.entity_recognition.")
    view = after_title.partition(";")[0]
    assert view.startswith("CREATE OR REPLACE TEMPORARY VIEW mentions AS")
    with duckdb.connect() as connection:
        connection.execute(view)
        columns = connection.execute("DESCRIBE mentions").fetchall()
        assert connection.execute("SELECT count(*) FROM mentions").fetchone() == (0,)
    types = {name: sql_type for name, sql_type, *_ in columns}
    assert types["score"] == "DOUBLE"
    assert types["is_gold"] == "BOOLEAN"
    assert set(types.values()) <= {"VARCHAR", *TYPES.values()}
