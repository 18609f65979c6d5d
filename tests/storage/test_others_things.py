"""What somebody else has put into a results folder: it is never removed, never run, and always told."""

from __future__ import annotations

import faulthandler
import hashlib
import json
import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import duckdb
import pytest
from cli.calls import call
from runs.inputs.workplace import Workplace, assert_error

from pipeline import open_results
from pipeline.base.paths import remove_own
from pipeline.storage.state import CatalogFacts, parse_pointer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

THRESHOLDS = [2.0, 4.0]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """One run, never changed: tests work on a copy in its place."""
    workplace = Workplace(tmp_path_factory.mktemp("published"))
    workplace.publish(thresholds=THRESHOLDS)
    return workplace


@pytest.fixture
def copy(published: Workplace) -> Iterator[Workplace]:
    """The run, put back after the test."""
    aside = published.folder / "aside"
    shutil.copytree(published.results, aside, symlinks=True)
    yield published
    shutil.rmtree(published.results)
    aside.rename(published.results)


@pytest.fixture
def _in_time() -> Iterator[None]:
    """What hangs ends this process, with its traceback."""
    faulthandler.dump_traceback_later(120, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


def others_folder(folder: Path) -> dict[Path, bytes]:
    """A folder of somebody else with files of many names, ours among them; their contents by path."""
    names = ("a/b/c.txt", "d.json", "00/" + "0" * 64 + "/mine", "0123456789ab/x.parquet", ".x.1.tmp", "e.duckdb")
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f'{{"status": "failed", "started_at": "1", "name": "{name}"}}')
    return contents(folder)


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("name", [".staging", "attempts", "runs"])
def test_a_link_in_the_place_of_a_folder_stops_a_run_before_anything_is_touched(
    tmp_path: Path, copy: Workplace, name: str
) -> None:
    theirs = others_folder(tmp_path / "theirs")
    path = copy.results / name
    shutil.rmtree(path, ignore_errors=True)
    path.symlink_to(tmp_path / "theirs")
    assert_error(copy.run(thresholds=[3.0]), 73, f"{path} is a link", f"or move {name} elsewhere")
    for words in (("expire", "--keep", "1"), ("verify", "--repair")):
        call(words[0], copy.results, *words[1:])
        assert contents(tmp_path / "theirs") == theirs
    path.rename(tmp_path / "moved")  # as the remedy says
    called = copy.run(thresholds=[3.0])
    assert called.code == 0, called.err


def test_a_linked_folder_of_answers_is_neither_used_nor_cleaned_up(tmp_path: Path, copy: Workplace) -> None:
    theirs = others_folder(tmp_path / "theirs")
    shutil.rmtree(copy.results / ".cache", ignore_errors=True)
    (copy.results / ".cache").symlink_to(tmp_path / "theirs")
    called = copy.run(top='resources = { cache_limit = "1KB" }', thresholds=[3.0])
    assert (called.code, ".cache is a link" in called.err) == (0, True), called.err
    assert contents(tmp_path / "theirs") == theirs


def test_of_the_folders_of_answers_and_unfinished_things_only_what_has_our_names_goes(copy: Workplace) -> None:
    theirs: dict[Path, bytes] = {}
    for name in (".cache", ".staging"):
        (copy.results / name).mkdir(exist_ok=True)
        (copy.results / name / "mine" / "old").mkdir(parents=True)
        (copy.results / name / "mine" / "old" / "x.txt").write_text("x" * 5000)
        theirs |= contents(copy.results / name / "mine")
    for path in (copy.results / "attempts" / "notes.json", copy.results / "attempts" / ".mine.tmp"):
        path.write_text('{"status": "failed", "started_at": "1"}')
        theirs[path] = path.read_bytes()
    unfinished = copy.results / ".staging" / "0123456789ab"
    unfinished.mkdir()
    called = copy.run(top='resources = { cache_limit = "1KB" }', thresholds=[3.0])
    assert called.code == 0, called.err
    assert call("expire", copy.results, "--keep", "1").code == 0
    assert {path: path.read_bytes() for path in theirs} == theirs
    assert not unfinished.exists()


@pytest.mark.parametrize("content", ["mine", ""])
@pytest.mark.parametrize("name", ["CURRENT", "catalog.duckdb"])
def test_files_with_our_names_in_a_folder_without_a_run_are_left_alone(tmp_path: Path, name: str, content: str) -> None:
    workplace = Workplace(tmp_path)
    workplace.results.mkdir()
    (workplace.results / name).write_text(content)
    assert_error(workplace.run(), 73, f"{name} is not of thresher", f"move {name} elsewhere")
    assert (workplace.results / name).read_text() == content
    (workplace.results / name).rename(tmp_path / "moved")
    assert workplace.run().code == 0


def test_a_lock_that_is_a_link_or_has_a_content_is_not_emptied(tmp_path: Path, copy: Workplace) -> None:
    lock = copy.results / ".lock"
    lock.write_text("theirs")
    assert_error(copy.run(), 73, f"{lock} has a content")
    lock.rename(tmp_path / "theirs")
    lock.symlink_to(tmp_path / "theirs")
    assert_error(copy.run(), 73, f"{lock} is a link")
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_another_device_is_told_before_anything_is_counted(copy: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.storage.publish._device", lambda status: status.st_ino)
    assert_error(copy.run(thresholds=[3.0]), 73, "lies on another device")


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(tmp_path: Path) -> None:
    theirs = others_folder(tmp_path / "theirs")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / ".staging").symlink_to(tmp_path / "theirs")
    inside = tmp_path / "results" / ".staging" / "0123456789ab"
    with pytest.raises(OSError, match=r"directory|symbolic"):
        remove_own(inside, tmp_path / "results")
    remove_own(inside, tmp_path / "results", as_far_as_possible=True)
    remove_own(tmp_path / "results" / ".staging" / "gone" / "x", tmp_path / "results", as_far_as_possible=True)
    assert contents(tmp_path / "theirs") == theirs
    remove_own(tmp_path / "results" / ".staging", tmp_path / "results")
    assert contents(tmp_path / "theirs") == theirs
    assert not (tmp_path / "results" / ".staging").is_symlink()


NEVER_ENDS = "WITH RECURSIVE t AS (SELECT 1::BIGINT AS n UNION ALL SELECT n + 1 FROM t) SELECT n FROM t"
FORGERIES = {
    "runs reads a file": "DROP TABLE runs; CREATE VIEW runs AS SELECT content AS path, 1 AS generation "
    "FROM read_text('{secret}')",
    "runs never ends": "DROP TABLE runs; CREATE VIEW runs AS SELECT n::VARCHAR AS path, n AS generation "
    "FROM ({endless})",
    "attempts never ends": "DROP TABLE attempts; CREATE VIEW attempts AS SELECT n::VARCHAR AS run_id, 'x' AS status "
    "FROM ({endless})",
    "a further view": "CREATE VIEW more AS SELECT content FROM read_text('{secret}')",
    "a further view of history": "CREATE VIEW history.more AS {endless}",
    "a macro in the place of a function": "CREATE MACRO list_contains(a, b) AS (SELECT max(n) FROM ({endless}))",
    "a macro in the place of a table function": "CREATE MACRO duckdb_tables() AS TABLE {endless}",
    "a macro of ours, changed": "CREATE OR REPLACE MACRO best_threshold() AS TABLE {endless}",
    "a computed column": "CREATE TABLE more(a INTEGER, b INTEGER GENERATED ALWAYS AS (a + 1))",
}


def forge(results: Path, forgery: str, secret: Path | None = None) -> None:
    """Change the catalog, and write the pointer so that it names it: whoever makes a folder can do so."""
    catalog = results / "catalog.duckdb"
    catalog.chmod(0o600)
    with duckdb.connect(str(catalog)) as connection:
        for statement in FORGERIES[forgery].split("; "):
            connection.execute(statement.replace("{endless}", NEVER_ENDS).replace("{secret}", str(secret)))
    status, path = catalog.stat(), results / "CURRENT"
    pointer = parse_pointer(path.read_bytes(), path)
    sha256, identity = hashlib.sha256(catalog.read_bytes()).hexdigest(), f"{status.st_size}:{status.st_mtime_ns}"
    path.write_bytes(replace(pointer, catalog=CatalogFacts(sha256, pointer.catalog.shows, identity)).to_bytes())


@pytest.mark.usefixtures("_in_time")
@pytest.mark.parametrize("forgery", FORGERIES)
def test_a_catalog_of_somebody_else_is_read_from_the_run_folders(tmp_path: Path, copy: Workplace, forgery: str) -> None:
    (tmp_path / "secret").write_text("canary")
    honest = call("query", copy.results, "FROM before_after_estimates")
    forge(copy.results, forgery, tmp_path / "secret")
    for words in (("query", "FROM before_after_estimates"), ("query", "FROM runs"), ("query", "FROM attempts")):
        called = call(words[0], copy.results, *words[1:])
        assert (called.code, "canary" in called.out + called.err) == (0, False), called.err
    assert call("query", copy.results, "FROM before_after_estimates").out == honest.out
    for command in (("show",), ("report",), ("plot", "--list"), ("expire", "--keep", "3", "--dry-run")):
        called = call(command[0], copy.results, *command[1:])
        assert called.code == 0, called.err
    with open_results(copy.results) as connection:
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(1,)]
    assert_error(call("verify", copy.results), 65, "catalog.duckdb", "--repair")
    assert call("verify", copy.results, "--repair").code == 0
    assert call("verify", copy.results).code == 0


@pytest.mark.parametrize("forgery", ["runs never ends", "a macro in the place of a function", "a further view"])
def test_the_next_run_builds_a_catalog_of_somebody_else_again(copy: Workplace, forgery: str) -> None:
    forge(copy.results, forgery)
    copy.publish(thresholds=[3.0])
    assert call("verify", copy.results).code == 0


@pytest.mark.usefixtures("_in_time")
@pytest.mark.parametrize(
    "name", ["run.json", "manifest.json", "CURRENT", "catalog.duckdb", ".store", ".staging/CURRENT.next"]
)
def test_a_named_pipe_among_results_hangs_nothing(copy: Workplace, name: str) -> None:
    run = next((copy.results / "runs").iterdir())
    path = (run if name in {"run.json", "manifest.json"} else copy.results) / name
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for command in ("show", "verify", "report"):
        called = call(command, copy.results)
        assert called.code in {0, 65, 66}, called.err
    assert call("query", copy.results, "FROM runs").code in {0, 65}
    assert json.loads(call("query", copy.results, "SELECT 1 AS a", "--format", "json").out or "[]") in ([{"a": 1}], [])
