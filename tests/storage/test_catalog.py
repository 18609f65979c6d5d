"""The catalog: whole in itself, carried from run to run, described in its own words, and what `open_results` adds."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from cli.calls import call
from polars.testing import assert_frame_equal
from runs.inputs.workplace import Workplace, assert_error

import pipeline
from pipeline.base.schemas import DESCRIPTION
from pipeline.storage import catalog, catalog_tables, layout, state
from pipeline.storage.layout import Layout
from pipeline.storage.publish import verify
from pipeline.storage.state import point_to_latest
from storage.promises import assert_results_ok, attempts

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

THRESHOLDS = [2.0, 2.5, 4.0]
HOSTILE = "so/ur~ce\"'</script>"
GROUPS = ("</script><img onerror=x>", "all", "a, 'b' \"c\"\n\x1b[31m", None)


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """Three runs of a job under hostile names; tests only read it."""
    workplace = Workplace(tmp_path_factory.mktemp("nights"))
    values = [GROUPS[index % len(GROUPS)] for index in range(workplace.events.height)]
    events = workplace.events.drop("source").with_columns(pl.Series(HOSTILE, values))
    events.write_parquet(workplace.folder / "events.parquet")
    for confidence in (0.8, 0.9, 0.95):
        publish(workplace, confidence=confidence)
    return workplace


def publish(workplace: Workplace, **keys: object) -> None:
    called = workplace.run(**{"by": [HOSTILE], "thresholds": THRESHOLDS, "uncertainty": "jackknife"} | keys)
    assert called.code == 0, called.err


@pytest.fixture
def copy(nights: Workplace, tmp_path: Path) -> Path:
    """A copy of the results elsewhere."""
    shutil.copytree(nights.results, tmp_path / "copied", symlinks=True)
    return tmp_path / "copied"


def tables(reader: duckdb.DuckDBPyConnection) -> dict[tuple[str, str], pl.DataFrame]:
    names = reader.execute("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
    return {(schema, name): reader.sql(f'FROM "{schema}"."{name}"').pl() for schema, name in names}


def alone(path: Path) -> duckdb.DuckDBPyConnection:
    """A catalog, opened as it is, by somebody who may read no other file."""
    reader = duckdb.connect(str(path), read_only=True)
    reader.execute("SET enable_external_access = false")
    return reader


# Copies --------------------------------------------------------------------------------------------------------------


@pytest.mark.wide
def test_a_catalog_that_was_mailed_is_whole(nights: Workplace, tmp_path: Path) -> None:
    shutil.copy(nights.results / "catalog.duckdb", tmp_path / "mailed.duckdb")
    with alone(tmp_path / "mailed.duckdb") as reader:
        every = tables(reader)
        assert not reader.execute("SELECT count(*) FROM duckdb_views() WHERE NOT internal").fetchall()[0][0]
        assert reader.sql("FROM best_threshold()").pl().height == 1 + len(GROUPS)
    assert every["main", "before_after_estimates"].height == (1 + len(GROUPS)) * len(THRESHOLDS)
    assert every["history", "before_after_estimates"].height == 3 * every["main", "before_after_estimates"].height
    published = pl.read_parquet(nights.results / "latest" / "before_after_estimates" / "before_after.parquet")
    assert every["main", "before_after_estimates"].equals(published)


@pytest.mark.wide
def test_large_tables_are_views_and_say_so(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "HISTORY_ROWS", 60)
    for most_rows in (100, 60):  # a table of the first run that the second makes a view
        monkeypatch.setattr(catalog_tables, "TABLE_ROWS", most_rows)
        workplace.publish(boundary=">=" if not workplace.results.exists() else ">")
    with duckdb.connect(str(workplace.results / "catalog.duckdb"), read_only=True) as reader:
        views = reader.execute("SELECT view_name, comment FROM duckdb_views() WHERE NOT internal").fetchall()
        assert reader.sql("FROM history.before_after_estimates").fetchall() == []
        stored = dict(reader.sql("SELECT result_table, in_history FROM files WHERE stage IS NOT NULL").fetchall())
    assert "a copy of this catalog does not hold them" in dict(views)["before_after_estimates"]
    assert (stored["before_after_estimates"], stored["metrics"]) == (False, True)
    assert call("verify", workplace.results).code == 0
    moved = workplace.folder / "moved"
    workplace.results.rename(moved)
    with pipeline.open_results(moved) as connection:
        assert connection.sql("FROM before_after_estimates").pl().height == 76
        assert connection.execute("SELECT path FROM runs ORDER BY generation").fetchall()[0][0].startswith(str(moved))


# Carried from run to run ---------------------------------------------------------------------------------------------


@pytest.mark.wide
def test_a_catalog_that_was_carried_equals_one_that_is_built(copy: Path) -> None:
    verify(copy, repair=True)  # of its own folder now
    with duckdb.connect(str(copy / "catalog.duckdb"), read_only=True) as reader:
        built = tables(reader)
    with alone(copy / "catalog.duckdb") as reader:
        comments = reader.execute(
            "SELECT schema_name, table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal"
        ).fetchall()
    assert all(comment for *_, comment in comments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipeline.storage.catalog._build", None)
        shutil.rmtree(min((copy / "runs").iterdir()))
        assert "other runs" in verify(copy, repair=True).notes[0]
    with duckdb.connect(str(copy / "catalog.duckdb"), read_only=True) as reader:
        carried = tables(reader)
    assert carried.keys() == built.keys()
    gone = set(built["main", "runs"]["run_id"]) - set(carried["main", "runs"]["run_id"])
    assert len(gone) == 1
    for view, frame in built.items():
        kept = frame.filter(~pl.col("run_id").is_in(gone)) if view[0] == "history" or view[1] == "runs" else frame
        assert_frame_equal(carried[view], kept, check_row_order=False, check_exact=True)


def test_carried_history_equals_the_files_of_every_run(nights: Workplace) -> None:
    with alone(nights.results / "catalog.duckdb") as reader:
        carried = tables(reader)["history", "before_after_estimates"]
        runs = reader.execute("SELECT run_id, path FROM runs ORDER BY generation").fetchall()
    for run_id, path in runs:
        frame = pl.read_parquet(f"{path}/before_after_estimates/before_after.parquet")
        assert carried.filter(run_id=run_id).drop("run_id", "published_at", "ds", "labels").equals(frame)


@pytest.mark.wide
def test_results_open_without_a_catalog(copy: Path) -> None:
    with pipeline.open_results(copy) as connection:
        expected = connection.sql("FROM history.metrics ORDER BY ALL").pl()
    (copy / "catalog.duckdb").write_bytes(b"no catalog")
    with pipeline.open_results(copy) as connection:
        assert connection.sql("FROM history.metrics ORDER BY ALL").pl().equals(expected)
        assert connection.sql("FROM trend('precision')").pl().height == 3 * (1 + len(GROUPS)) * 2


def test_every_run_looks_at_other_runs_until_all_had_their_turn() -> None:
    kept = [f"{generation:08d}-{generation:012x}" for generation in range(1, 98)]
    seen = {name for extra in range(30) for name in state._in_turn([*kept, f"{98 + extra:08d}-{0:012x}"], 5)}
    assert seen >= set(kept)
    assert state._in_turn(kept[:4], 5) == kept[:4]


# What it tells -------------------------------------------------------------------------------------------------------


def test_catalog_and_files_say_the_same_of_every_column(nights: Workplace) -> None:
    with alone(nights.results / "catalog.duckdb") as reader:
        columns = reader.execute(
            "SELECT table_name, column_name, comment FROM duckdb_columns() WHERE schema_name = 'main' AND NOT internal"
        )
        comments = {(table, name): comment for table, name, comment in columns.fetchall()}
        grains = dict(reader.execute("SELECT table_name, comment FROM duckdb_tables()").fetchall())
    assert all(comments.values())
    assert all(grains.values())
    for path in sorted((nights.results / "latest").glob("*/*.parquet")):
        table = f"counts_{path.stem}" if path.parent.name == "counts" else path.parent.name
        described = json.loads(pl.read_parquet_metadata(path)[DESCRIPTION])
        assert grains[table].startswith(described["grain"])
        assert {name: comments[table, name] for name in described["columns"]} == described["columns"]
        assert list(described["columns"]) == list(pl.read_parquet_schema(path))


def test_records_become_tables(nights: Workplace) -> None:
    with alone(nights.results / "catalog.duckdb") as reader:
        told = tables(reader)
    assert told["main", "stages"].select("stage", "kind", "rows_in", "rows_used").rows() == [
        ("before_after", "before_after", 530, 530)
    ]
    parameters = dict(told["main", "parameters"].select("parameter", "value").rows())
    assert (parameters["confidence"], json.loads(parameters["by"])) == ("0.95", [[], [HOSTILE]])
    assert told["history", "parameters"].filter(parameter="confidence")["value"].to_list() == ["0.8", "0.9", "0.95"]
    assert {path.rpartition("/")[2] for path in told["main", "input_files"]["path"]} == {
        "pairs.parquet",
        "events.parquet",
    }
    assert told["main", "warnings"].height == told["main", "stages"]["n_warnings"].sum()
    assert "run.json" in told["main", "files"]["path"]
    assert told["main", "attempts"]["status"].to_list() == ["published"] * 3


@pytest.mark.wide
def test_a_failed_night_is_among_the_attempts_at_once_and_in_the_catalog_from_the_next_run_on(
    workplace: Workplace,
) -> None:
    workplace.publish()
    workplace.refuse(66, "no file", pairs="gone")
    asked = "SELECT status, exit, error IS NULL FROM attempts ORDER BY started_at"
    expected = [("published", 0, True), ("failed", 66, False)]
    with pipeline.open_results(workplace.results) as connection:
        assert connection.sql(asked).fetchall() == expected
    workplace.publish(boundary=">")
    with alone(workplace.results / "catalog.duckdb") as reader:
        assert reader.sql(asked).fetchall() == [*expected, ("published", 0, True)]
    for path in (workplace.results / "attempts").glob("*.json"):
        path.unlink()
    with pipeline.open_results(workplace.results) as connection:
        assert connection.sql(asked).fetchall() == []
    assert attempts(workplace.results) == []


# Macros --------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["catalog", "open_results", "rebuilt"])
def reader(nights: Workplace, request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The same results, opened in every way."""
    if request.param == "catalog":
        opened = alone(nights.results / "catalog.duckdb")
    elif request.param == "open_results":
        opened = pipeline.open_results(nights.results)
    else:
        shutil.copytree(nights.results, tmp_path / "copied", symlinks=True)
        (tmp_path / "copied" / "catalog.duckdb").unlink()
        opened = pipeline.open_results(tmp_path / "copied")
    with opened:
        yield opened


@pytest.mark.first_cases(1)
def test_macros_answer_under_hostile_names(reader: duckdb.DuckDBPyConnection) -> None:
    at = reader.sql("FROM at_threshold('before_after_estimates', 3.99)").pl()
    assert at["threshold"].to_list() == [2.5] * (1 + len(GROUPS))
    assert sorted(map(str, at[HOSTILE])) == sorted(map(str, [None, *GROUPS]))
    assert reader.sql("FROM at_threshold('before_after_estimates', 1.99)").fetchall() == []
    best = reader.sql("FROM best_threshold('before_after')").pl()
    points = reader.sql("FROM before_after_operating_points WHERE criterion = 'max_f1'").pl()
    assert sorted(best["precision"]) == sorted(points["precision"])
    assert {json.loads(group).get(HOSTILE) for group in best["group"]} == set(GROUPS)
    trend = reader.sql("FROM trend('f1', of_criterion := 'max_f1')").pl()
    assert trend.group_by("group").len()["len"].to_list() == [3] * (1 + len(GROUPS))
    assert trend.filter(pl.col("change").is_not_null())["change"].abs().max() == 0.0
    compared = reader.sql("FROM compare_runs()").pl()
    both = compared.filter(pl.col("lower_a").is_not_null() & pl.col("lower_b").is_not_null())
    assert both.height
    assert (both["upper_b"] - both["lower_b"] >= both["upper_a"] - both["lower_a"]).all()  # 95% after 90%
    assert not both["apart"].any()


# The stable path -----------------------------------------------------------------------------------------------------


@pytest.mark.wide
def test_latest_leads_to_the_latest_run_and_is_put_right(copy: Path) -> None:
    newest = max((copy / "runs").iterdir())
    assert (copy / "latest").resolve() == newest
    verify(copy, repair=True)
    (copy / "latest").unlink()
    (copy / "latest").symlink_to("runs/00000009-0123456789ab")
    assert_error(call("verify", copy), 65, "latest leads to", "missing")
    verify(copy, repair=True)
    assert (copy / "latest").resolve() == newest
    (copy / "latest").unlink()
    assert call("verify", copy).code == 0  # as a crash leaves it
    verify(copy, repair=True)
    assert (copy / "latest").resolve() == newest
    assert assert_results_ok(copy).folder == newest


@pytest.mark.wide
def test_a_folder_in_the_place_of_latest_gives_way_only_if_it_is_a_copy_of_a_run(copy: Path) -> None:
    verify(copy, repair=True)
    (copy / "latest").unlink()
    shutil.copytree(min((copy / "runs").iterdir()), copy / "latest")
    assert "copy of a run" in call("verify", copy).err
    (copy / "latest" / "mine.txt").touch()
    assert_error(call("verify", copy), 65, "latest is not a link to a published run")
    (note,) = point_to_latest(Layout(copy), max((copy / "runs").iterdir()).name)
    assert "move it away" in note
    assert (copy / "latest" / "mine.txt").exists()
    (copy / "latest" / "mine.txt").unlink()
    verify(copy, repair=True)
    assert (copy / "latest").is_symlink()


@pytest.mark.wide
def test_a_catalog_of_another_version_is_not_read_and_is_built_again(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(catalog, "CATALOG_VERSION", 2)
        catalog._version.cache_clear()
        workplace.publish()
    catalog._version.cache_clear()
    monkeypatch.setattr("pipeline.storage.catalog._attached", None)
    with pipeline.open_results(workplace.results) as connection:
        assert connection.sql("FROM before_after_estimates").pl().height == 76
    assert "was made by another version of thresher, and was built again" in workplace.run(boundary=">").err
