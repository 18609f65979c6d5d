"""Damage of every kind: `verify` names it, runs and `--repair` heal what can be rebuilt, the rest stops nothing."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
from typing import TYPE_CHECKING

import duckdb
import pytest
from cli.calls import call, spawn
from runs.inputs.workplace import Workplace, assert_error

from pipeline.base.errors import DataError
from pipeline.storage.publish import verify
from pipeline.storage.state import process_facts
from storage.promises import assert_results_ok, attempts, read_json, sha256

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

THRESHOLDS = [2.0, 4.0]


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """Three runs, never changed: tests work on copies, or put back what they change."""
    workplace = Workplace(tmp_path_factory.mktemp("published"))
    for confidence in (0.8, 0.9, 0.95):
        workplace.publish(confidence=confidence, thresholds=THRESHOLDS)
    return workplace


@pytest.fixture
def copy(published: Workplace) -> Iterator[Workplace]:
    """The same three runs, put back after the test."""
    aside = published.folder / "aside"
    shutil.copytree(published.results, aside)
    yield published
    shutil.rmtree(published.results)
    aside.rename(published.results)


def again(workplace: Workplace, **keys: object) -> str:
    """What the latest job says when it runs once more, without a change of its own."""
    called = workplace.run(**{"confidence": 0.95, "thresholds": THRESHOLDS} | keys)
    assert called.code == 0, called.err
    return called.err


def folders(workplace: Workplace) -> list[Path]:
    return sorted((workplace.results / "runs").iterdir())


def flips(path: Path, *, count: int) -> Iterator[None]:
    """Flip one bit of a file after another, as many, all over the file; it is put back each time."""
    content = path.read_bytes()
    for number in range(count):
        position = number * (len(content) - 1) // max(count - 1, 1)
        changed = bytearray(content)
        changed[position] ^= 1 << number % 8
        path.write_bytes(changed)
        try:
            yield
        finally:
            path.write_bytes(content)


NAMED = ("catalog.duckdb", "CURRENT", "runs/*/manifest.json", "runs/*/run.json")


@pytest.mark.parametrize("pattern", NAMED)
def test_a_flipped_bit_anywhere_is_damage(published: Workplace, pattern: str) -> None:
    paths = sorted(published.results.glob(pattern))
    assert paths
    for path in paths:
        for _ in flips(path, count=12 // len(paths)):
            with pytest.raises(DataError) as caught:
                verify(published.results)
            assert path.name in caught.value.message
    assert not verify(published.results).notes


def missing(path: Path) -> None:
    path.unlink()


def empty(path: Path) -> None:
    path.write_bytes(b"")


def foreign(path: Path) -> None:
    path.unlink()
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE runs AS SELECT 3 AS generation, 'abc' AS run_id")


def link(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


@pytest.mark.parametrize("harm", [missing, empty, foreign, link])
@pytest.mark.parametrize("by", ["a run", "--repair"])
def test_a_catalog_that_is_lost_is_found_and_built_again(
    copy: Workplace, harm: Callable[[Path], None], by: str
) -> None:
    harm(copy.results / "catalog.duckdb")
    assert_error(call("verify", copy.results), 65, "catalog.duckdb", "--repair")
    if by == "--repair":
        called = call("verify", copy.results, "--repair")
        assert (called.code, "built again" in called.err) == (0, True)
    else:
        assert "built again" in again(copy)
    (copy.results / "elsewhere").unlink(missing_ok=True)
    assert assert_results_ok(copy.results).generation == 3
    assert call("verify", copy.results).code == 0


def test_a_log_beside_the_catalog_is_damage_and_is_removed(copy: Workplace) -> None:
    wal = copy.results / "catalog.duckdb.wal"
    wal.write_bytes(b"stale")
    assert_error(call("verify", copy.results), 65, str(wal))
    assert "opened for writing" in again(copy)
    assert not wal.exists()
    assert verify(copy.results).runs == 3


@pytest.mark.parametrize("harm", [missing, empty, link])
def test_a_pointer_that_is_lost_is_found_and_written_again(copy: Workplace, harm: Callable[[Path], None]) -> None:
    harm(copy.results / "CURRENT")
    assert_error(call("verify", copy.results), 65, "CURRENT", "--repair")
    assert "CURRENT was missing or damaged" in again(copy)
    (copy.results / "elsewhere").unlink(missing_ok=True)
    assert assert_results_ok(copy.results).generation == 3


def test_a_pointer_of_another_folder_removes_nothing(copy: Workplace, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Workplace(tmp_path / "other")
    other.publish()
    before = folders(copy)
    for _ in range(3):
        other.publish(confidence=0.5 + len(folders(other)) / 10)
    shutil.copy(other.results / "CURRENT", copy.results / "CURRENT")
    assert_error(call("verify", copy.results), 65, "CURRENT names a run of another folder")
    again(copy)
    assert folders(copy) == before
    assert verify(copy.results).runs == 3


def test_pointer_and_catalog_of_an_earlier_day_remove_no_published_run(copy: Workplace) -> None:
    early = {name: (copy.results / name).read_bytes() for name in ("CURRENT", "catalog.duckdb")}
    again(copy, boundary=">")
    for name, content in early.items():
        (copy.results / name).write_bytes(content)
    assert_error(call("verify", copy.results), 65, "CURRENT names", "catalog.duckdb is not the one")
    again(copy, boundary=">")
    assert assert_results_ok(copy.results).generation == 4


def test_all_that_is_not_a_run_can_be_lost_at_once(copy: Workplace) -> None:
    for name in ("CURRENT", "catalog.duckdb"):
        (copy.results / name).unlink()
    shutil.rmtree(copy.results / "attempts")
    assert call("verify", copy.results).code == 65
    assert call("verify", copy.results, "--repair").code == 0
    assert assert_results_ok(copy.results).generation == 3
    assert verify(copy.results).runs == 3


def test_what_a_manifest_was_is_remembered_while_it_is_damaged(copy: Workplace) -> None:
    manifest = folders(copy)[0] / "manifest.json"
    content = manifest.read_bytes()
    manifest.write_bytes(content.replace(b'"rows": 2,', b'"rows": 3,', 1))
    assert_error(call("verify", copy.results, "--repair"), 65, f"{manifest} has changed")
    manifest.write_bytes(content)
    assert call("verify", copy.results, "--repair").code == 0


def rename_key(path: Path) -> None:
    record = json.loads(path.read_bytes())
    record["moment"] = record.pop("published_at")
    path.write_text(json.dumps(record))


def change_type(path: Path) -> None:
    record = json.loads(path.read_bytes())
    record["files"][0]["schema"] = ["a"]
    path.write_text(json.dumps(record))


def no_json(path: Path) -> None:
    path.write_bytes(b"\xff\x00{")


def folder_instead(path: Path) -> None:
    path.unlink()
    path.mkdir()


@pytest.mark.parametrize(
    ("harm", "pointer"),
    [(harm, "kept") for harm in (missing, link, rename_key, folder_instead)]
    + [(harm, "lost") for harm in (rename_key, change_type, no_json)],
)
def test_an_old_manifest_that_is_damaged_stops_nothing_but_its_own_rows(
    copy: Workplace, harm: Callable[[Path], None], pointer: str
) -> None:
    first, second, third = folders(copy)
    if pointer == "lost":
        (copy.results / "CURRENT").unlink()
    harm(second / "manifest.json")
    assert_error(call("verify", copy.results), 65, f"{second / 'manifest.json'}")
    told = again(copy)
    assert f"a published run is damaged: {second / 'manifest.json'}" in told
    assert told.count("history leaves it out") == 1
    answer = call("query", copy.results, "SELECT DISTINCT run_id FROM history.inputs")
    assert set(answer.out.split()) == {"run_id", first.name[9:], third.name[9:]}
    with duckdb.connect(str(copy.results / "catalog.duckdb"), read_only=True) as reader:
        shown = {row[0] for row in reader.sql("SELECT DISTINCT run_id FROM history.inputs").fetchall()}
    assert shown == set(answer.out.split()) - {"run_id"}
    assert "history leaves it out" in again(copy, boundary=">")
    assert second.is_dir()
    assert_error(call("verify", copy.results, "--repair"), 65, str(second / "manifest.json"), "delete the folder")
    shutil.rmtree(second)
    assert call("verify", copy.results, "--repair").code == 0


def test_a_damaged_manifest_that_is_not_looked_at_in_this_run_hinders_no_new_catalog(
    copy: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.storage.publish.OLDER_RUNS", 0)
    no_json(folders(copy)[1] / "manifest.json")
    (copy.results / "catalog.duckdb").unlink()
    assert "was missing, and was built again" in again(copy)
    assert call("query", copy.results, "SELECT count(DISTINCT run_id) AS n FROM history.inputs").out == "n\n2\n"
    assert "built again" not in again(copy)


def test_an_old_run_that_was_deleted_breaks_nothing_but_its_rows(copy: Workplace) -> None:
    first, second, third = folders(copy)
    shutil.rmtree(second)
    called = call("verify", copy.results)
    assert (called.code, "deleted runs" in called.err) == (0, True)
    assert call("query", copy.results, "SELECT count(*) AS n FROM runs").out == "n\n2\n"
    again(copy)
    assert assert_results_ok(copy.results).generation == 3
    with duckdb.connect(str(copy.results / "catalog.duckdb"), read_only=True) as reader:
        shown = reader.sql("SELECT DISTINCT run_id FROM history.before_after_estimates ORDER BY 1").fetchall()
    assert shown == sorted((folder.name[9:],) for folder in (first, third))
    assert not verify(copy.results).notes


def test_a_result_file_of_an_old_run_that_is_damaged_is_left_out_of_history_until_it_is_restored(
    copy: Workplace,
) -> None:
    """A flip keeps the size, so only `verify` sees it: what it found with --repair is remembered."""
    path = folders(copy)[1] / "before_after_estimates" / "before_after.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
    assert_error(call("verify", copy.results, "--repair"), 65, f"{path} has changed since it was published")
    assert f"damaged: {path} has changed" in again(copy)
    count = "SELECT count(DISTINCT run_id) AS n FROM history.before_after_estimates"
    assert call("query", copy.results, count).out == "n\n2\n"
    path.write_bytes(content)
    assert call("verify", copy.results, "--repair").code == 0
    assert call("query", copy.results, count).out == "n\n3\n"


@pytest.mark.parametrize("name", ["manifest.json", "inputs/before_after.parquet", "."])
def test_a_damaged_latest_run_is_refused_and_made_again(copy: Workplace, name: str) -> None:
    latest = folders(copy)[-1]
    path = latest / name
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert_error(call("query", copy.results, "FROM inputs"), 65, f"{path} is missing", "Run the job again")
    assert_error(call("verify", copy.results), 65, f"{path} is missing", "Run the job again")
    told = again(copy)
    assert "this run is made again" in told
    assert f"published {4:08d}-" in told
    assert call("query", copy.results, "SELECT count(*) AS n FROM inputs").code == 0


def test_a_flip_in_the_latest_run_is_remembered_when_it_is_made_again(copy: Workplace) -> None:
    path = folders(copy)[-1] / "inputs" / "before_after.parquet"
    content = path.read_bytes()
    path.write_bytes(content[:20] + bytes([content[20] ^ 1]) + content[21:])
    assert "this run is made again" in again(copy)
    assert "history leaves it out" in again(copy)
    answer = call("query", copy.results, "SELECT count(DISTINCT run_id) AS n FROM history.inputs")
    assert answer.out == "n\n3\n"


@pytest.mark.parametrize("what", ["file", "run", "table"])
def test_a_link_in_the_place_of_a_file_or_folder_does_not_verify(copy: Workplace, what: str) -> None:
    run = folders(copy)[0]
    path = {"run": run, "table": run / "inputs", "file": run / "inputs" / "before_after.parquet"}[what]
    aside = copy.folder / "linked"
    path.rename(aside)
    path.symlink_to(aside)
    assert_error(call("verify", copy.results), 65, str(run))
    assert "history leaves it out" in again(copy)
    assert aside.exists()
    shutil.rmtree(aside) if aside.is_dir() else aside.unlink()


def test_a_hard_link_to_other_content_does_not_verify(copy: Workplace) -> None:
    path = folders(copy)[0] / "inputs" / "before_after.parquet"
    path.unlink()
    os.link(folders(copy)[0] / "run.json", path)
    assert_error(call("verify", copy.results), 65, f"{path} has changed")


def test_a_folder_that_was_copied_gets_a_catalog_of_its_own_from_an_unchanged_run(
    published: Workplace, tmp_path: Path
) -> None:
    shutil.copytree(published.results, tmp_path / "copied")
    assert "another folder" in call("verify", tmp_path / "copied").err
    called = published.run("--output", str(tmp_path / "copied"), confidence=0.95, thresholds=THRESHOLDS)
    assert "showed another folder" in called.err
    assert "unchanged" in called.err
    with duckdb.connect(str(tmp_path / "copied" / "catalog.duckdb"), read_only=True) as reader:
        paths = [row[0] for row in reader.sql("SELECT path FROM runs").fetchall()]
    assert all(path.startswith(str(tmp_path)) for path in paths)


def test_results_of_another_version_are_not_rewritten(copy: Workplace) -> None:
    path = copy.results / "CURRENT"
    record = read_json(path)
    del record["sha256"]
    record["format_version"] = 2
    content = (json.dumps(record, indent=2, ensure_ascii=False) + "\n").encode()
    record["sha256"] = hashlib.sha256(content).hexdigest()
    path.write_text(json.dumps(record, indent=2, ensure_ascii=False) + "\n")
    before = sha256(path)
    called = copy.run(confidence=0.95, thresholds=THRESHOLDS)
    assert_error(called, 65, "written by another version of thresher")
    assert sha256(path) == before


# Attempts ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "facts",
    [
        {"pid": 2**22 + 1},
        {"pid": "?"},
        {"boot_id": "another"},
        {"process_start": "1"},
        {"host": "elsewhere", "started_at": "2026-01-01T00:00:00.000000"},
    ],
    ids=["gone", "no number", "machine started again", "number used again", "another host, long ago"],
)
def test_an_attempt_whose_process_is_gone_has_crashed(copy: Workplace, facts: dict[str, object]) -> None:
    path = copy.results / "attempts" / "0123456789ab.json"
    started = "2026-11-20T00:00:00.000000"
    record = {"run_id": "0123456789ab", "status": "running", "started_at": started, **process_facts()}
    path.write_text(json.dumps(record | facts, indent=2))
    if "host" not in facts:
        assert f"{path} says `running`" in call("verify", copy.results).err
    again(copy)
    assert read_json(path)["status"] == "crashed"
    assert "crashed" not in call("verify", copy.results).err


def test_an_attempt_at_work_is_left_alone(copy: Workplace) -> None:
    path = copy.results / "attempts" / "0123456789ab.json"
    record = {"run_id": "0123456789ab", "status": "running", "started_at": "2026-11-20", **process_facts()}
    path.write_text(json.dumps(record, indent=2))
    again(copy)
    assert read_json(path) == record


def test_a_kill_right_after_publishing_is_no_crash_of_the_attempt(copy: Workplace) -> None:
    latest = folders(copy)[-1]
    path = copy.results / "attempts" / f"{latest.name[9:]}.json"
    path.write_text(json.dumps(read_json(path) | {"status": "running", "pid": 2**22 + 1}, indent=2))
    again(copy)
    assert read_json(path) == read_json(latest / "run.json")


def test_a_folder_that_nobody_has_seen_is_removed_by_one_rename(
    copy: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object, ignore_errors: bool = False, **_more: object) -> None:
        if not ignore_errors:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    unseen = copy.results / "runs" / "00000004-0123456789ab"
    shutil.copytree(folders(copy)[-1], unseen)
    with monkeypatch.context() as patch:
        patch.setattr("pipeline.base.paths.shutil.rmtree", stop)
        assert_error(copy.run(), 74, os.strerror(errno.EIO))
    assert not unseen.exists()
    again(copy)
    assert assert_results_ok(copy.results).generation == 3


def as_after_a_kill_before_the_pointer(workplace: Workplace) -> None:
    """Publish a run, and leave everything as if its process had been killed right after readers could see it."""
    before = (workplace.results / "CURRENT").read_bytes()
    again(workplace, boundary=">")
    (workplace.results / ".staging").mkdir(exist_ok=True)
    (workplace.results / "CURRENT").rename(workplace.results / ".staging" / "CURRENT.next")
    (workplace.results / "CURRENT").write_bytes(before)
    path = workplace.results / "attempts" / f"{folders(workplace)[-1].name[9:]}.json"
    path.write_text(json.dumps(read_json(path) | {"status": "running", "pid": 2**22 + 1}, indent=2))


@pytest.mark.parametrize("lost", ["", "catalog.duckdb", "CURRENT"])
def test_a_run_that_readers_saw_stays_even_if_a_kill_and_damage_come_together(copy: Workplace, lost: str) -> None:
    """Killed between catalog and pointer: the next pointer lies in `.staging` and shows that the run was complete."""
    as_after_a_kill_before_the_pointer(copy)
    latest = folders(copy)[-1]
    if lost:
        (copy.results / lost).write_bytes((copy.results / lost).read_bytes()[:-1])
    else:
        assert call("verify", copy.results).code == 0
    assert call("query", copy.results, "SELECT max(generation) AS n FROM runs").out == "n\n4\n"
    assert "unchanged" in again(copy, boundary=">")
    assert folders(copy)[-1] == latest
    assert assert_results_ok(copy.results).generation == 4
    assert not (copy.results / ".staging" / "CURRENT.next").exists()


def test_a_next_pointer_whose_catalog_was_never_in_its_place_is_removed(copy: Workplace) -> None:
    before = (copy.results / "catalog.duckdb").read_bytes()
    as_after_a_kill_before_the_pointer(copy)
    (copy.results / "catalog.duckdb").write_bytes(before)
    assert call("query", copy.results, "SELECT max(generation) AS n FROM runs").out == "n\n3\n"
    assert call("verify", copy.results).code == 0
    again(copy)
    assert assert_results_ok(copy.results).generation == 3
    assert not (copy.results / ".staging" / "CURRENT.next").exists()


def test_a_killed_first_run_leaves_nothing_that_looks_published(workplace: Workplace) -> None:
    """The folder of a run lies in its place before readers see it; until then its attempt says so."""
    script = (
        "import os, signal\nfrom pipeline.storage import publish\nfrom pipeline.cli.app import app\n"
        "publish.stage_catalog = lambda *words, **named: os.kill(os.getpid(), signal.SIGKILL)\napp()"
    )
    assert spawn("run", workplace.config(), script=script).code == -9
    (orphan,) = folders(workplace)
    assert_error(call("verify", workplace.results), 66, "holds no published run")
    seen = workplace.publish()
    assert (seen.generation, orphan.exists()) == (1, False)
    assert [record["status"] for record in attempts(workplace.results)] == ["crashed", "published"]
