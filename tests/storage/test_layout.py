"""What a results folder holds, and what `verify` finds in it."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from cli.calls import call, spawn
from runs.inputs.workplace import assert_error

import pipeline
from storage.promises import assert_results_ok, attempts, read_json, sha256

if TYPE_CHECKING:
    from pathlib import Path

    from runs.inputs.workplace import Workplace


def unlock(path: Path) -> None:
    path.chmod(0o644)


@pytest.mark.wide
def test_a_run_lies_where_the_contract_says(workplace: Workplace) -> None:
    seen = workplace.publish(name="dutch_news")
    names = {path.relative_to(seen.folder).as_posix() for path in seen.folder.rglob("*") if path.is_file()}
    assert names >= {
        "manifest.json",
        "run.json",
        "counts/dutch_news.parquet",
        "inputs/dutch_news.parquet",
        "before_after_estimates/dutch_news.parquet",
        "before_after_operating_points/dutch_news.parquet",
    }
    assert seen.folder == workplace.results / "runs" / f"00000001-{seen.run_id}"
    assert (workplace.results / "attempts" / f"{seen.run_id}.json").is_file()


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("umask", "file", "folder"), [(0o022, 0o644, 0o755), (0o027, 0o640, 0o750)])
def test_published_files_follow_the_umask(workplace: Workplace, umask: int, file: int, folder: int) -> None:
    before = os.umask(umask)
    try:
        seen = workplace.publish()
    finally:
        os.umask(before)
    published = [*seen.folder.rglob("*"), workplace.results / "CURRENT"]
    modes = {(path.is_dir(), path.stat().st_mode & 0o777) for path in published}
    assert modes == {(False, file), (True, folder)}
    assert {(workplace.results / name).stat().st_mode & 0o777 for name in ("catalog.duckdb", "CURRENT")} == {file}


def test_the_catalog_has_the_tables_of_the_contract(workplace: Workplace) -> None:
    workplace.publish()
    with duckdb.connect(str(workplace.results / "catalog.duckdb"), read_only=True) as reader:
        names = {
            (schema, name)
            for schema, name in reader.sql("SELECT schema_name, table_name FROM duckdb_tables()").fetchall()
        }
        tables = {"before_after_estimates", "before_after_operating_points", "inputs", "counts_before_after"}
        assert names >= {("main", "runs")} | {(schema, name) for schema in ("main", "history") for name in tables}
        columns = reader.table("before_after_estimates").columns
        assert columns[:8] == ["stage", "grouping", "source", "threshold", "n_before", "n_after", "m_before", "m_after"]


@pytest.mark.wide
def test_columns_keep_their_order_in_every_table_and_in_open_results(workplace: Workplace) -> None:
    workplace.publish()
    seen = workplace.publish(boundary=">")
    order = pl.read_parquet_schema(seen.folder / "before_after_estimates" / "before_after.parquet")
    with duckdb.connect(str(workplace.results / "catalog.duckdb"), read_only=True) as reader:
        assert reader.table("before_after_estimates").columns == list(order)
        assert reader.sql("FROM history.before_after_estimates").columns == [
            "run_id",
            "published_at",
            "ds",
            "labels",
            *order,
        ]
    with pipeline.open_results(workplace.results) as connection:
        assert connection.table("before_after_estimates").columns == list(order)


def test_run_json_tells_versions_inputs_and_accounting(workplace: Workplace) -> None:
    record = read_json(workplace.publish().folder / "run.json")
    assert record["status"] == "published"
    assert record["exit"] == 0
    assert record["accounting"]["before_after"]["pairs"] == {"used": 500, "rows_in": 500}
    assert {each["rows"] for each in record["inputs"]} == {500, 30}
    assert record["versions"]["duckdb"] == duckdb.__version__


@pytest.mark.wide
def test_a_flipped_byte_in_any_file_is_found(workplace: Workplace) -> None:
    seen = workplace.publish()
    for path in sorted(seen.folder.rglob("*.*")):
        if path.name == "manifest.json":
            continue
        content = path.read_bytes()
        unlock(path)
        path.write_bytes(content[:-9] + bytes([content[-9] ^ 1]) + content[-8:])
        assert_error(call("verify", workplace.results), 65, f"{path} has changed since it was published", "restore")
        path.write_bytes(content)
    assert call("verify", workplace.results).out.endswith("all as published\n")


@pytest.mark.wide
def test_a_missing_an_extra_and_a_cut_file_are_found_together(workplace: Workplace) -> None:
    seen = workplace.publish()
    gone, cut = seen.folder / "run.json", seen.folder / "counts" / "before_after.parquet"
    gone.unlink()
    unlock(cut)
    cut.write_bytes(cut.read_bytes()[:-1])
    (seen.folder / "extra.parquet").write_bytes(b"")
    called = spawn("verify", workplace.results)
    assert_error(called, 65, f"{gone} is missing", f"{cut} has changed", "extra.parquet is not in the manifest")


def test_a_broken_manifest_is_found(workplace: Workplace) -> None:
    seen = workplace.publish()
    manifest = seen.folder / "manifest.json"
    unlock(manifest)
    content = manifest.read_text()
    for text in ("{", content.replace('"format_version": 1', '"format_version": 99'), "[]"):
        manifest.write_text(text)
        assert_error(call("verify", workplace.results), 65, str(manifest))


def test_a_changed_manifest_is_found(workplace: Workplace) -> None:
    seen = workplace.publish()
    manifest = seen.folder / "manifest.json"
    unlock(manifest)
    manifest.write_text(manifest.read_text().replace('"rows": 76', '"rows": 77'))
    assert_error(call("verify", workplace.results), 65, str(manifest))


@pytest.mark.wide
def test_older_runs_are_verified_too(workplace: Workplace) -> None:
    first = workplace.publish()
    workplace.publish(boundary=">")
    (first.folder / "run.json").unlink()
    assert_error(call("verify", workplace.results), 65, f"{first.folder / 'run.json'} is missing")


@pytest.mark.parametrize("command", [["verify"], ["query", "SELECT 1"]])
def test_a_folder_without_a_run_is_no_input(tmp_path: Path, command: list[str]) -> None:
    name, *more = command
    assert_error(call(name, tmp_path / "gone", *more), 66, "holds no published run")


def test_the_pointer_names_run_and_manifest(workplace: Workplace) -> None:
    seen = workplace.publish()
    pointer = json.loads((workplace.results / "CURRENT").read_text())
    assert (
        pointer.items()
        >= {
            "generation": 1,
            "run_id": seen.run_id,
            "run": seen.folder.name,
            "manifest_sha256": sha256(seen.folder / "manifest.json"),
            "catalog_sha256": sha256(workplace.results / "catalog.duckdb"),
        }.items()
    )


@pytest.mark.wide
def test_the_pointer_names_the_manifest_of_every_kept_run(workplace: Workplace) -> None:
    seen = workplace.publish(), workplace.publish(boundary=">")
    manifests = {each.folder.name: sha256(each.folder / "manifest.json") for each in seen}
    assert list(read_json(workplace.results / "CURRENT")["manifests"].items()) == list(manifests.items())


def test_the_catalog_opens_with_its_declared_storage_version(workplace: Workplace) -> None:
    workplace.publish()
    with duckdb.connect() as reader:
        reader.execute(f"ATTACH '{workplace.results / 'catalog.duckdb'}' AS c (READ_ONLY)")
        tags = reader.execute("SELECT tags FROM duckdb_databases() WHERE database_name = 'c'").fetchone()
    assert tags is not None
    assert tags[0]["storage_version"].startswith("v1.4.0")


@pytest.mark.wide
def test_moved_results_open_from_their_new_place(workplace: Workplace) -> None:
    workplace.publish()
    expected = workplace.table("before_after_estimates")
    moved = workplace.folder / "moved [1] it's"
    workplace.results.rename(moved)
    with pipeline.open_results(moved) as connection:
        assert connection.sql("FROM before_after_estimates").pl().equals(expected)
    assert call("verify", moved).code == 0


@pytest.mark.wide
@pytest.mark.parametrize("repair", [True, False])
def test_copied_results_go_on_in_their_new_place(workplace: Workplace, *, repair: bool) -> None:
    workplace.publish()
    shutil.copytree(workplace.results, workplace.folder / "copied", symlinks=True)
    config = workplace.config(top='output = "copied"', boundary=">=" if repair else ">")
    called = call("verify", "--repair", workplace.folder / "copied") if repair else call("run", config)
    assert called.code == 0, called.err
    assert assert_results_ok(workplace.folder / "copied").generation == (1 if repair else 2)


@pytest.mark.wide
def test_results_read_with_open_results_can_read_nothing_else(workplace: Workplace) -> None:
    workplace.publish()
    with pipeline.open_results(workplace.results) as connection:
        for sql in (
            f"FROM '{workplace.folder / 'pairs.parquet'}'",
            "FROM read_csv('/etc/passwd')",
            "SET threads = 1",
            "FROM place",
        ):
            with pytest.raises(duckdb.Error):
                connection.sql(sql).fetchall()
        with pytest.raises(duckdb.Error):
            connection.execute(f"COPY (SELECT 1) TO '{workplace.folder / 'out.csv'}'")


def test_an_attempt_tells_when_it_began_and_ended(workplace: Workplace) -> None:
    workplace.publish()
    workplace.refuse(66, "no file", pairs="gone")
    good, bad = attempts(workplace.results)
    assert (good["status"], good["exit"], bad["status"], bad["exit"]) == ("published", 0, "failed", 66)
    assert good["started_at"] < good["ended_at"] <= bad["started_at"] < bad["ended_at"]
    assert "no file matches gone" in bad["error"]


@pytest.mark.wide
def test_the_same_rows_in_two_runs_are_told_apart_in_history(workplace: Workplace) -> None:
    first, second = workplace.publish(), workplace.publish(boundary=">")
    with duckdb.connect(str(workplace.results / "catalog.duckdb"), read_only=True) as reader:
        rows = reader.sql(
            "SELECT run_id, count(*), count(DISTINCT published_at) FROM history.before_after_estimates "
            "GROUP BY run_id ORDER BY min(published_at)"
        ).fetchall()
        listed = reader.sql("SELECT run_id, generation, path FROM runs ORDER BY generation").fetchall()
    assert rows == [(first.run_id, 76, 1), (second.run_id, 76, 1)]
    assert listed == [(first.run_id, 1, str(first.folder)), (second.run_id, 2, str(second.folder))]
    assert_results_ok(workplace.results)
