"""What a second run does: nothing when nothing changed, a new generation otherwise, and tidying up after a crash."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import duckdb
import polars as pl
import pytest
from cli.calls import call
from runs.inputs.workplace import assert_error

from pipeline.storage.layout import DamagedError, storage_errors, write_json, write_whole
from storage.promises import assert_results_ok, attempts

if TYPE_CHECKING:
    from pathlib import Path

    from runs.inputs.workplace import Workplace

READER = """
import sys, duckdb
catalog, seen = sys.argv[1], []
print("reading", flush=True)
while not sys.stdin.closed:
    with duckdb.connect(catalog, read_only=True) as reader:
        (run_id,) = reader.execute("SELECT run_id FROM runs ORDER BY generation DESC LIMIT 1").fetchone()
        rows, low = reader.execute("SELECT count(*), min(threshold) FROM before_after_estimates").fetchone()
        counts = reader.execute("SELECT count(*) FROM counts_before_after").fetchone()[0]
        history = "SELECT run_id FROM history.before_after_estimates ORDER BY published_at DESC LIMIT 1"
        newest = reader.execute(history).fetchone()
        sums = "SELECT any_value(rows_in) = sum(n_rows) FROM inputs GROUP BY stage, input"
        sums_agree = reader.execute(sums).fetchall()
        assert newest == (run_id,) and set(sums_agree) == {(True,)} and counts > 0, (newest, run_id, sums_agree, counts)
        assert rows == 4 * low, (rows, low)
        if run_id not in seen:
            seen.append(run_id)
            print(run_id, flush=True)
"""


@pytest.mark.wide
def test_an_unchanged_rerun_prints_the_standing_run_and_records_the_attempt(workplace: Workplace) -> None:
    first = workplace.publish()
    again = workplace.run()
    assert (again.code, again.out) == (0, f"{first.folder}\n")
    assert assert_results_ok(workplace.results) == first
    assert [record["status"] for record in attempts(workplace.results)] == ["published", "unchanged"]
    assert attempts(workplace.results)[1]["exit"] == 0


def test_old_inputs_are_not_read_again(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.runs.stage_results.RACY_SECONDS", 0.0)
    first = workplace.publish()
    monkeypatch.setattr("pipeline.runs.evaluation._run_stage", None)
    again = workplace.run()
    assert (again.code, again.out) == (0, f"{first.folder}\n")


@pytest.mark.wide
def test_touched_but_equal_inputs_leave_the_run_as_it_is(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.runs.stage_results.RACY_SECONDS", 0.0)
    first = workplace.publish()
    os.utime(workplace.folder / "pairs.parquet")
    assert workplace.run().out == f"{first.folder}\n"
    workplace.pairs.write_parquet(workplace.folder / "pairs.parquet")
    assert workplace.run().out == f"{first.folder}\n"
    assert assert_results_ok(workplace.results) == first
    assert not list((workplace.results / ".staging").rglob("*.parquet"))


@pytest.mark.wide
def test_one_value_changed_in_place_with_its_times_kept_is_noticed(workplace: Workplace) -> None:
    path = workplace.folder / "pairs.parquet"
    workplace.pairs.write_parquet(path, compression="uncompressed", use_pyarrow=False, statistics=False)
    first = workplace.publish()
    stat = path.stat()
    content = bytearray(path.read_bytes())
    scores = workplace.pairs["score"].to_numpy().tobytes()
    start = content.find(scores[:8])
    content[start : start + 8] = pl.Series([99.0]).to_numpy().tobytes()
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert workplace.publish().generation == first.generation + 1


@pytest.mark.wide
def test_limits_and_the_place_of_results_are_no_change(workplace: Workplace) -> None:
    first = workplace.publish()
    assert workplace.run(top="[resources]\nthreads = 1").out == f"{first.folder}\n"


@pytest.mark.wide
def test_a_changed_config_makes_a_new_generation(workplace: Workplace) -> None:
    keys: dict[str, object] = {}
    last = workplace.publish()
    for change in ({"boundary": ">"}, {"by": [["source"]]}, {"name": "other"}, {"confidence": 0.9}):
        keys |= change  # nothing else differs from the run before
        run = workplace.publish(**keys)
        assert (run.generation, run.run_id != last.run_id) == (last.generation + 1, True), change
        with duckdb.connect(str(workplace.results / "catalog.duckdb"), read_only=True) as reader:
            stages = reader.sql("SELECT DISTINCT stage FROM before_after_estimates").fetchall()
            assert stages == [(keys.get("name", "before_after"),)]
        last = run


def test_what_fails_once_readers_see_a_run_is_a_warning(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    def write_record(path: Path, record: dict[str, object]) -> None:
        if record["status"] == "published":
            with storage_errors(f"writing {path}"):
                fail()
        write_json(path, record)

    def write_pointer(path: Path, content: bytes, **keys: Path) -> None:
        fail() if path.name == "CURRENT" else write_whole(path, content, **keys)

    monkeypatch.setattr("pipeline.storage.state.write_json", write_record)
    monkeypatch.setattr("pipeline.storage.publish.write_whole", write_pointer)
    monkeypatch.setattr("pipeline.storage.publish.FileLock.release", fail)
    called = workplace.run()
    seen = assert_results_ok(workplace.results, crashed=True)
    assert (called.code, called.out) == (0, f"{seen.folder}\n"), called.err
    assert called.err.count(os.strerror(errno.EROFS)) == 2


def test_a_table_that_cannot_be_read_back_is_an_error_of_the_disk(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: Path) -> str:
        message = f"{path} cannot be read"
        raise DamagedError(message) from OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr("pipeline.storage.publish.own_sha256", fail)
    assert_error(workplace.run(), 74, os.strerror(errno.EIO), "Check the disk")
    assert not (workplace.results / "catalog.duckdb").exists()


@pytest.mark.wide
def test_a_damaged_run_is_made_again(workplace: Workplace) -> None:
    first = workplace.publish()
    (first.folder / "counts" / "before_after.parquet").unlink()
    assert_error(call("query", workplace.results, "FROM inputs"), 65, "is damaged", "thresher verify")
    called = workplace.run()
    assert called.code == 0, called.err
    assert called.out != f"{first.folder}\n"
    assert call("query", workplace.results, "SELECT count(*) AS n FROM history.inputs").code == 0
    assert_error(call("verify", workplace.results), 65, str(first.folder))


@pytest.mark.wide
def test_a_broken_pointer_is_written_again(workplace: Workplace) -> None:
    workplace.publish()
    for generation, text in enumerate(["", "{}", "[]", '{"generation": 1}'], start=2):
        (workplace.results / "CURRENT").write_text(text)
        assert workplace.publish(confidence=0.9 + generation / 100).generation == generation, text


@pytest.mark.wide
def test_runs_are_kept_when_both_pointers_are_lost(workplace: Workplace) -> None:
    first = workplace.publish()
    (workplace.results / "catalog.duckdb").unlink()
    (workplace.results / "CURRENT").unlink()
    assert workplace.publish(boundary=">").generation == 2
    assert (first.folder / "manifest.json").is_file()


@pytest.mark.wide
def test_a_type_that_changes_between_runs_is_text_in_history(workplace: Workplace) -> None:
    workplace.publish()
    workplace.events.with_columns(source=pl.col("event_id") % 3).write_parquet(workplace.folder / "events.parquet")
    workplace.publish()
    with duckdb.connect(str(workplace.results / "catalog.duckdb"), read_only=True) as reader:
        assert reader.table("before_after_estimates").select("source").types == ["BIGINT"]
        assert reader.sql("SELECT source FROM history.before_after_estimates").types == ["VARCHAR"]
        sources = reader.sql(
            "SELECT DISTINCT source FROM history.before_after_estimates ORDER BY ALL NULLS LAST"
        ).fetchall()
    assert sources == [("0",), ("1",), ("2",), ("dawn",), ("dusk",), ("noon",), (None,)]


@pytest.mark.wide
def test_a_column_that_one_run_lacks_is_null_in_history(workplace: Workplace) -> None:
    workplace.publish(by=None)
    workplace.publish()
    with duckdb.connect(str(workplace.results / "catalog.duckdb"), read_only=True) as reader:
        counts = reader.sql(
            "SELECT grouping, count(source) FROM history.before_after_estimates GROUP BY 1 ORDER BY 1"
        ).fetchall()
    assert counts == [("all", 0), ("source", 57)]


def test_a_failed_attempt_of_a_first_run_leaves_its_record(workplace: Workplace) -> None:
    workplace.refuse(66, "no file", pairs="gone")
    (record,) = attempts(workplace.results)
    assert (record["status"], record["exit"]) == ("failed", 66)
    assert workplace.publish().generation == 1


@pytest.mark.wide
def test_leftovers_of_a_crash_are_removed_by_the_next_run(workplace: Workplace) -> None:
    first = workplace.publish()
    staged = workplace.results / ".staging" / "0123456789ab"
    staged.mkdir(parents=True)
    (staged / "half.parquet").write_bytes(b"PAR1")
    (workplace.results / ".staging" / "0123456789ab.duckdb").write_bytes(b"half")
    orphan = workplace.results / "runs" / "00000002-0123456789ab"
    orphan.mkdir()
    for path in first.folder.iterdir():
        if path.is_file():
            (orphan / path.name).write_bytes(path.read_bytes())
    second = workplace.publish(boundary=">")
    assert second.generation == 2
    assert sorted(path.name for path in (workplace.results / "runs").iterdir()) == [
        first.folder.name,
        second.folder.name,
    ]


@pytest.mark.wide
def test_a_pointer_that_lags_behind_the_catalog_is_put_right(workplace: Workplace) -> None:
    workplace.publish()
    pointer = (workplace.results / "CURRENT").read_bytes()
    workplace.publish(boundary=">")
    (workplace.results / ".staging").mkdir(exist_ok=True)
    (workplace.results / "CURRENT").rename(workplace.results / ".staging" / "CURRENT.next")
    (workplace.results / "CURRENT").write_bytes(pointer)
    assert call("verify", workplace.results).code == 0
    assert call("query", workplace.results, "SELECT count(*) AS n FROM runs").out == "n\n2\n"
    assert workplace.publish().generation == 3


def test_a_staged_run_is_no_run_of_a_reader(workplace: Workplace) -> None:
    workplace.publish()
    orphan = workplace.results / "runs" / "00000009-0123456789ab"
    orphan.mkdir()
    assert call("query", workplace.results, "SELECT count(*) AS n FROM runs").out == "n\n1\n"


@pytest.mark.wide
def test_a_reader_never_sees_a_mix_while_runs_are_published(workplace: Workplace) -> None:
    workplace.publish(thresholds=[1])
    catalog = str(workplace.results / "catalog.duckdb")
    with subprocess.Popen(
        [sys.executable, "-c", READER, catalog], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
        published = []
        for low in range(2, 6):
            thresholds = [low + index / (low * 2) for index in range(low)]
            published.append(workplace.publish(thresholds=thresholds, by=["source"]).run_id)
        while (line := reader.stdout.readline().strip()) != published[-1]:
            assert line, "the reader stopped"
        assert reader.poll() is None
        reader.kill()


@pytest.mark.wide
def test_history_holds_every_run_with_its_moment(workplace: Workplace) -> None:
    seen = [workplace.publish(confidence=level).run_id for level in (0.9, 0.95, 0.99)]
    answer = call(
        "query", workplace.results, "SELECT DISTINCT run_id, published_at FROM history.inputs ORDER BY 2", "-f", "json"
    )
    rows = json.loads(answer.out)
    assert [row["run_id"] for row in rows] == seen
    assert len({row["published_at"] for row in rows}) == 3
