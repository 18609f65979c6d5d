"""What a second run does: nothing when nothing changed, a new generation otherwise, and tidying up after a crash."""

from __future__ import annotations

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

import pipeline
from pipeline.runs import runner
from storage.promises import assert_results_ok, attempts

if TYPE_CHECKING:
    from runs.inputs.workplace import Workplace

READER = """
import sys, duckdb
catalog, seen = sys.argv[1], []
print("reading", flush=True)
while not sys.stdin.closed:
    with duckdb.connect(catalog, read_only=True) as reader:
        run_id, path = reader.execute("SELECT run_id, path FROM runs ORDER BY generation DESC LIMIT 1").fetchone()
        rows, low = reader.execute("SELECT count(*), min(threshold) FROM before_after_estimates").fetchone()
        counts = reader.execute("SELECT count(*) FROM counts_before_after").fetchone()[0]
        history = "SELECT run_id FROM history.before_after_estimates ORDER BY published_at DESC LIMIT 1"
        newest = reader.execute(history).fetchone()
        sums = "SELECT any_value(rows_in) = sum(n_rows) FROM inputs GROUP BY stage, input"
        sums_agree = reader.execute(sums).fetchall()
        views = "SELECT sql FROM duckdb_views() WHERE schema_name = 'main' AND view_name <> 'runs' AND NOT internal"
        assert all(path in text[0] for text in reader.execute(views).fetchall()), "a view shows another run"
        assert newest == (run_id,) and set(sums_agree) == {(True,)} and counts > 0, (newest, run_id, sums_agree, counts)
        assert rows == 4 * low, (rows, low)
        if run_id not in seen:
            seen.append(run_id)
            print(run_id, flush=True)
"""


def test_an_unchanged_rerun_prints_the_standing_run_and_records_the_attempt(place: Workplace) -> None:
    first = place.publish()
    again = place.run()
    assert (again.code, again.out) == (0, f"{first.folder}\n")
    assert assert_results_ok(place.results) == first
    assert [record["status"] for record in attempts(place.results)] == ["published", "unchanged"]
    assert attempts(place.results)[1]["exit"] == 0


def test_old_inputs_are_not_read_again(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.runs.provenance.RACY_SECONDS", 0.0)
    first = place.publish()
    monkeypatch.setattr("pipeline.runs.runner._run_stage", None)
    again = place.run()
    assert (again.code, again.out) == (0, f"{first.folder}\n")


def test_touched_but_equal_inputs_leave_the_run_as_it_is(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.runs.provenance.RACY_SECONDS", 0.0)
    first = place.publish()
    os.utime(place.folder / "pairs.parquet")
    assert place.run().out == f"{first.folder}\n"
    place.pairs.write_parquet(place.folder / "pairs.parquet")
    assert place.run().out == f"{first.folder}\n"
    assert assert_results_ok(place.results) == first
    assert not list((place.results / ".staging").rglob("*.parquet"))


def test_one_value_changed_in_place_with_its_times_kept_is_noticed(place: Workplace) -> None:
    path = place.folder / "pairs.parquet"
    place.pairs.write_parquet(path, compression="uncompressed", use_pyarrow=False, statistics=False)
    first = place.publish()
    stat = path.stat()
    content = bytearray(path.read_bytes())
    scores = place.pairs["score"].to_numpy().tobytes()
    start = content.find(scores[:8])
    content[start : start + 8] = pl.Series([99.0]).to_numpy().tobytes()
    path.write_bytes(content)
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert place.publish().generation == first.generation + 1


def test_limits_and_the_place_of_results_are_no_change(place: Workplace) -> None:
    first = place.publish()
    assert place.run(top="[resources]\nthreads = 1").out == f"{first.folder}\n"


@pytest.mark.parametrize("keys", [{"boundary": ">"}, {"by": [["source"]]}, {"name": "other"}, {"confidence": 0.9}])
def test_a_changed_config_makes_a_new_generation(place: Workplace, keys: dict[str, object]) -> None:
    first = place.publish()
    second = place.publish(**keys)
    assert (second.generation, second.run_id != first.run_id) == (2, True)
    with duckdb.connect(str(place.results / "catalog.duckdb"), read_only=True) as reader:
        stages = reader.sql("SELECT DISTINCT stage FROM before_after_estimates").fetchall()
        assert stages == [(keys.get("name", "before_after"),)]


def test_a_damaged_run_is_made_again(place: Workplace) -> None:
    first = place.publish()
    (first.folder / "counts" / "before_after.parquet").unlink()
    assert_error(call("query", place.results, "FROM inputs"), 65, "is damaged", "thresher verify")
    called = place.run()
    assert called.code == 0, called.err
    assert called.out != f"{first.folder}\n"
    assert call("query", place.results, "SELECT count(*) AS n FROM history.inputs").code == 0
    assert_error(call("verify", place.results), 65, str(first.folder))


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"generation": 1}'])
def test_a_broken_pointer_is_written_again(place: Workplace, text: str) -> None:
    place.publish()
    (place.results / "CURRENT").write_text(text)
    assert place.publish(boundary=">").generation == 2


def test_runs_are_kept_when_both_pointers_are_lost(place: Workplace) -> None:
    first = place.publish()
    (place.results / "catalog.duckdb").unlink()
    (place.results / "CURRENT").unlink()
    assert place.publish(boundary=">").generation == 2
    assert (first.folder / "manifest.json").is_file()


def test_a_type_that_changes_between_runs_is_text_in_history(place: Workplace) -> None:
    place.publish()
    place.events.with_columns(source=pl.col("event_id") % 3).write_parquet(place.folder / "events.parquet")
    place.publish()
    with duckdb.connect(str(place.results / "catalog.duckdb"), read_only=True) as reader:
        assert reader.table("before_after_estimates").select("source").types == ["BIGINT"]
        assert reader.sql("SELECT source FROM history.before_after_estimates").types == ["VARCHAR"]
        found = reader.sql(
            "SELECT DISTINCT source FROM history.before_after_estimates ORDER BY ALL NULLS LAST"
        ).fetchall()
    assert found == [("0",), ("1",), ("2",), ("dawn",), ("dusk",), ("noon",), (None,)]


def test_a_column_that_one_run_lacks_is_null_in_history(place: Workplace) -> None:
    place.publish(by=None)
    place.publish()
    with duckdb.connect(str(place.results / "catalog.duckdb"), read_only=True) as reader:
        found = reader.sql(
            "SELECT grouping, count(source) FROM history.before_after_estimates GROUP BY 1 ORDER BY 1"
        ).fetchall()
    assert found == [("all", 0), ("source", 57)]


def test_a_run_of_an_earlier_version_shows_the_status_of_rows_under_its_present_name(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    inputs_table = runner._inputs_table
    with monkeypatch.context() as patch:
        patch.setattr(runner, "_inputs_table", lambda *args: inputs_table(*args).rename({"status": "fate"}))
        first = place.publish()
    assert "fate" in pl.read_parquet_schema(first.folder / "inputs" / "before_after.parquet")
    assert call("query", place.results, "SELECT status FROM inputs").code == 0
    second = place.publish(boundary=">")
    for connection in (
        duckdb.connect(str(place.results / "catalog.duckdb"), read_only=True),
        pipeline.open_results(place.results),
    ):
        with connection as reader:
            rows = reader.sql("SELECT run_id, status FROM history.inputs WHERE input = 'pairs' ORDER BY published_at")
            assert rows.fetchall() == [(first.run_id, "used"), (second.run_id, "used")]
            assert reader.sql("FROM history.inputs").columns[2:6] == ["stage", "input", "status", "n_rows"]
    assert call("verify", place.results).code == 0


def test_a_failed_attempt_of_a_first_run_leaves_its_record(place: Workplace) -> None:
    place.refuse(66, "no file", pairs="gone")
    (record,) = attempts(place.results)
    assert (record["status"], record["exit"]) == ("failed", 66)
    assert place.publish().generation == 1


def test_leftovers_of_a_crash_are_removed_by_the_next_run(place: Workplace) -> None:
    first = place.publish()
    staged = place.results / ".staging" / "dead"
    staged.mkdir(parents=True)
    (staged / "half.parquet").write_bytes(b"PAR1")
    (place.results / ".staging" / "dead.duckdb").write_bytes(b"half")
    orphan = place.results / "runs" / "00000002-0123456789ab"
    orphan.mkdir()
    for path in first.folder.iterdir():
        if path.is_file():
            (orphan / path.name).write_bytes(path.read_bytes())
    second = place.publish(boundary=">")
    assert second.generation == 2
    assert sorted(path.name for path in (place.results / "runs").iterdir()) == [first.folder.name, second.folder.name]


def test_a_pointer_that_lags_behind_the_catalog_is_put_right(place: Workplace) -> None:
    place.publish()
    pointer = (place.results / "CURRENT").read_bytes()
    place.publish(boundary=">")
    (place.results / "CURRENT").write_bytes(pointer)
    assert call("verify", place.results).code == 0
    assert call("query", place.results, "SELECT count(*) AS n FROM runs").out == "n\n2\n"
    assert place.publish().generation == 3


def test_a_staged_run_is_no_run_of_a_reader(place: Workplace) -> None:
    place.publish()
    orphan = place.results / "runs" / "00000009-0123456789ab"
    orphan.mkdir()
    assert call("query", place.results, "SELECT count(*) AS n FROM runs").out == "n\n1\n"


def test_a_reader_never_sees_a_mix_while_runs_are_published(place: Workplace) -> None:
    place.publish(thresholds=[1])
    catalog = str(place.results / "catalog.duckdb")
    with subprocess.Popen(
        [sys.executable, "-c", READER, catalog], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "reading\n"
        published = []
        for low in range(2, 8):
            thresholds = [low + index / (low * 2) for index in range(low)]
            published.append(place.publish(thresholds=thresholds, by=["source"]).run_id)
        while (line := reader.stdout.readline().strip()) != published[-1]:
            assert line, "the reader stopped"
        assert reader.poll() is None
        reader.kill()


def test_history_holds_every_run_with_its_moment(place: Workplace) -> None:
    seen = [place.publish(confidence=level).run_id for level in (0.9, 0.95, 0.99)]
    answer = call(
        "query", place.results, "SELECT DISTINCT run_id, published_at FROM history.inputs ORDER BY 2", "-f", "json"
    )
    rows = json.loads(answer.out)
    assert [row["run_id"] for row in rows] == seen
    assert len({row["published_at"] for row in rows}) == 3
