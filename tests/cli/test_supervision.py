"""Commands work in a child process: however it ends, the parent says what happened, and readers see the last run."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import polars as pl
import pytest
from runs.inputs.workplace import Workplace, workplace
from storage.promises import assert_results_ok, attempts

from cli.calls import call, spawn
from pipeline import breadcrumbs
from pipeline.breadcrumbs import OPENING, Trail
from pipeline.cli.supervision.memory_use import pause_until_full, resident_bytes
from pipeline.engines.memory import MIB, ceiling

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["workplace"]

# score (double), label and a group of four rows; a flipped bit of the footer gives one column chunk another type, for
# which pyarrow 26 ends the process
FLIPPED = """
UEFSMRUAFUwVVCwVCBUAFQYVBhw2ACgIzczMzMzM7D8YCJqZmZmZmbk/AAAAKLUv/SAmDQEAuAIAAAAIAZqZuT/JPzPTP83MzMzMzOw/AwA4MVYGB4AL
FQoZJQAGGRgFc2NvcmUVDBYIFp4BFqYBJgg8NgAoCM3MzMzMzOw/GAiamZmZmZm5PwAAFQAVDhUgLBUIFQAVBhUGHDYAKAEBGAEAAAAAKLUv/SAHOQAA
AgAAAAgBDRUAGSUABhkYBWxhYmVsFQwWCBZEFlYmlAI8NgAoAQEYAQAAABUEFRQVJkwVBBUAAAAotS/9IApRAAABAAAAYQEAAABiFQAVEhUkLBUIFRAV
BhUGHDYAKAFiGAFhAAAAKLUv/SAJSQAAAgAAAAgBAQMKFQwZNQAGEBkYAWcVDBYIFnYWmgEm8gMmsgMcNgAoAWIYAWEAABkRAhkYCJqZmZmZmbk/GRgI
zczMzMzM7D8VABkWAAAZEQIZGAEAGRgBARUAGRYAABkRAhkYAWEZGAFiFQAZFgAAGRwWCBWmARYAAAAZHBaUAhVWFgAAABkcFvIDFVoWAAAAFQIZTEgE
cm9vdBUGABUIJQIYBXNjb3JlABUAJQIYBWxhYmVsABUMJQIYAWclAEwcAAAAFggZHBk8Jq4BHBUKGSUABhkYBXNjb3JlFQwWCBaeARamASYIPDYAKAjN
zMzMzMzsPxgImpmZmZmZuT8AABaYBhUWFpYFFT4AJuoCHBUAGSUABhkYBWxhYmVsFQwWCBZEFlYmlAI8NgAoAQEYAQAAABauBhUWFtQFFSIAJowFHBUM
GTUABhAZGAFnFQwWCBZ2FpoBJvIDJrIDHDYAKAFiGAFhAAAWxAYVFhb2BRUiABbYAhYIJggWlgMUAAAZHBgMQVJST1c6c2NoZW1hGJgCLy8vLy84b0FB
QUFFQUFBQTh2Ly8veFFBQUFBRUFBRUFBQUFLQUFzQUNBQUtBQVFBK1AvLy93d0FBQUFJQUFnQUFBQUVBQU1BQUFCY0FBQUFMQUFBQUFRQUFBQ2MvLy8v
R0FBQUFCQUFBQUFJQUFBQUFSUUFBQUFBQUFEWS8vLy9BUUFBQUdjQUFBREEvLy8vSEFBQUFCQUFBQUFJQUFBQUFRWUFBQUFBQUFEOC8vLy9CQUFFQUFV
QUFBQnNZV0psYkFBQUFPei8vLzh3QUFBQUlBQUFBQmdBQUFBQkF3QUFFQUFTQUFRQUVBQVJBQWdBQUFBTUFBQUFBQUQ2Ly8vL0FnQUdBQVlBQkFBRkFB
QUFjMk52Y21VQQAYTlBvbGFycyAocHl0aG9uKSB2ZXJzaW9uIDIuMS4wIChidWlsZCA3ZjkwMmJkM2ZmZDI3ZmY4MmQxNDI3OGEwOWEyOTVmZjJmN2Fl
ZDkyKRk8HAAAHAAAHAAAAHcCAABQQVIx
"""
WORKING = """
import os, signal, sys, time
from pipeline.cli.supervision import child
from pipeline.engines import duckdb, file_rows
from pipeline.runs import stage_by_stage
from thresher.__main__ import main

class Engine(duckdb.DuckDB):
    def fetch(self, *words, **options):
        {work}
        return super().fetch(*words, **options)

from pipeline.runs import starting
starting.DuckDB = Engine
{more}
main()
"""


def working(work: str, more: str = "") -> str:
    """A script that does something where a run waits for its first query."""
    return WORKING.format(work=work, more=more)


def last_attempt(workplace: Workplace) -> dict[str, object]:
    return attempts(workplace.results)[-1]


def test_a_library_that_crashes_on_a_footer_is_a_fault_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "damaged.parquet"
    file.write_bytes(base64.b64decode(FLIPPED))
    words = ["threshold-sweep", "--predictions", str(file), "-o", str(tmp_path / "results"), "--log-format", "json"]
    called = spawn(*words)
    assert (called.code, called.out) == (65, "")
    told = [json.loads(line) for line in called.err.splitlines()]
    assert (told[-1]["event"], told[-1]["exit"]) == ("run_failed", 65)
    assert str(file) in told[-1]["message"]
    attempt = attempts(tmp_path / "results")[-1]
    assert (attempt["status"], attempt["exit"], attempt["run_id"]) == ("failed", 65, told[-1]["run_id"])
    assert str(file) in attempt["error"]


def test_a_file_at_which_the_engine_crashes_is_looked_for(workplace: Workplace) -> None:
    before = workplace.publish()
    probe = "read = lambda file: os.abort() if 'events' in file else None\nfile_rows.read_every_value = read"
    called = spawn("run", workplace.config(boundary=">"), script=working("os.kill(os.getpid(), signal.SIGSEGV)", probe))
    assert called.code == 65
    crashed = "cannot be read: the library that reads it crashed (SIGSEGV)"
    assert f"error: {workplace.folder / 'events.parquet'} {crashed}\n" in called.err
    assert assert_results_ok(workplace.results) == before
    assert (last_attempt(workplace)["status"], last_attempt(workplace)["exit"]) == ("failed", 65)
    assert workplace.publish(boundary=">").generation == 2


def test_a_crash_that_no_file_repeats_is_a_bug(workplace: Workplace) -> None:
    called = spawn("run", workplace.config(), script=working("os.abort()"))
    assert called.code == 70
    assert f"error: the process crashed while it read {workplace.folder}" in called.err
    assert ".parquet and 1 more file: SIGABRT\n" in called.err
    assert "report it.  [exit 70]" in called.err


def test_a_process_that_holds_more_than_its_limit_is_stopped(workplace: Workplace) -> None:
    before = workplace.publish()
    config = workplace.config(boundary=">", top='[resources]\nmemory = "100MB"')
    grow = "held = [bytearray(os.urandom(1 << 20) * 8) for _ in iter(int, 1)]"
    called = spawn("run", config, script=working(grow))
    assert called.code == 71
    assert "of memory while it read" in called.err
    assert "more than 503 MB: the limit of the engine, 100 MB, and a margin for Python" in called.err
    assert assert_results_ok(workplace.results) == before
    assert (last_attempt(workplace)["status"], last_attempt(workplace)["exit"]) == ("failed", 71)


def test_a_process_that_is_killed_says_so(workplace: Workplace) -> None:
    called = spawn("run", workplace.config(), script=working("os.kill(os.getpid(), signal.SIGKILL)"))
    assert called.code == 137
    assert "error: the process was ended from outside by SIGKILL\n" in called.err
    assert (last_attempt(workplace)["status"], last_attempt(workplace)["exit"]) == ("crashed", 137)
    assert workplace.publish().generation == 1


def test_a_disk_that_does_not_answer_ends_the_run(workplace: Workplace) -> None:
    hung = "child.OPENING_SECONDS = 0.5\nfrom pipeline.sources import parquet_files\n"
    hung += "parquet_files._footer = lambda *words, **options: time.sleep(60)"
    called = spawn("check", workplace.config(), script=working("pass", hung))
    assert called.code == 74
    assert f"error: opening {workplace.folder / 'pairs.parquet'} took longer than" in called.err


def start(workplace: Workplace, work: str) -> subprocess.Popen[str]:
    """A run up to the moment when it works; its first line is the number of the process that works."""
    script = working(f"print(os.getpid(), flush=True); {work}")
    words = [sys.executable, "-c", script, "run", str(workplace.config())]
    return subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )  # of a group of its own, to which a signal can be sent


def process_at_work(process: subprocess.Popen[str]) -> int:
    assert process.stdout is not None
    return int(process.stdout.readline())


def test_a_signal_to_both_processes_is_one_request(workplace: Workplace) -> None:
    with start(workplace, "self._run(lambda: time.sleep(0.5), '')") as process:
        process_at_work(process)
        os.killpg(process.pid, signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert err.count("Stopped. Published results are unchanged.  [exit 143]") == 1
    assert last_attempt(workplace)["status"] == "interrupted"


def test_a_process_that_heeds_no_signal_is_ended_after_the_second(workplace: Workplace) -> None:
    with start(workplace, "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)") as process:
        process_at_work(process)
        for _ in range(2):
            time.sleep(0.4)
            process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 143
    assert "Stopped. Published results are unchanged.  [exit 143]" in err
    assert last_attempt(workplace)["status"] == "interrupted"


def test_the_process_that_works_dies_with_its_parent(workplace: Workplace) -> None:
    with start(workplace, "time.sleep(60)") as process:
        worker = process_at_work(process)
        process.kill()
        process.communicate(timeout=30)  # ends when the worker has closed its end, too
    ends = time.monotonic() + 10
    while is_alive(worker) and time.monotonic() < ends:
        time.sleep(0.05)
    assert not is_alive(worker)


def is_alive(number: int) -> bool:
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def test_what_libraries_write_by_themselves_is_an_object_in_a_json_log(workplace: Workplace) -> None:
    noise = working("os.write(2, b'a library speaks\\n')")
    called = spawn("run", workplace.config(), "--log-format", "json", script=noise)
    messages = [json.loads(line)["message"] for line in called.err.splitlines()]
    assert (called.code, messages.count("a library speaks")) == (0, messages.count("a library speaks"))
    assert "a library speaks" in messages


def test_one_process_is_enough_where_that_is_asked_for(workplace: Workplace) -> None:
    script = working("print(os.getpid() == PROCESS, flush=True)", "PROCESS = os.getpid()")
    alone = spawn("run", workplace.config(), script=script, env={"THRESHER_ONE_PROCESS": "1"})
    assert set(alone.out.splitlines()[:-1]) == {"True"}


def test_values_that_no_memory_could_hold_are_refused_before_they_are_read(workplace: Workplace) -> None:
    texts = [f"{'x' * 4000}{number % 3}" for number in range(30)]
    workplace.events.with_columns(source=pl.Series(texts)).write_parquet(workplace.folder / "events.parquet")
    config = workplace.config(top='[resources]\nmemory = "100KB"\nthreads = 1')
    called = call("check", config)
    assert called.code == 71
    assert "input events: the values of column 'source' in" in called.err
    assert "have about 4 KB each: the engine reads 30 at a time in each of 1 threads, 120 KB together" in called.err
    assert call("check", workplace.config(top='[resources]\nmemory = "200KB"\nthreads = 1')).code == 0


def test_the_latest_note_is_read_whatever_its_length() -> None:
    trail = Trail()
    assert (trail.read(), trail.watched()) == ({}, (0, 0.0))
    trail.note(ceiling=7, files=["f" * 1000] * 20_000, activity="")  # more than there is room for
    assert (len(trail.read()["files"]), trail.watched()) == (1000, (7, 0.0))
    trail.note(files=["a"], activity=OPENING, since=1.5)
    assert (trail.read()["files"], trail.watched()) == (["a"], (7, 1.5))


def test_what_was_read_before_is_noted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    trail = Trail()
    monkeypatch.setattr(breadcrumbs, "_trails", [trail])
    breadcrumbs.begin(breadcrumbs.SCANNING, ["a", "b"], "pairs")
    with breadcrumbs.reading("c"):
        assert (trail.read()["files"], trail.read()["activity"]) == (["c"], breadcrumbs.READING)
    assert (trail.read()["files"], trail.read()["activity"]) == (["a", "b"], breadcrumbs.SCANNING)


def test_memory_is_looked_at_more_often_the_nearer_the_ceiling_is() -> None:
    pauses = [pause_until_full(resident, 1 << 30) for resident in (0, 900 * MIB, 1 << 30, 1 << 31)]
    assert pauses == sorted(pauses, reverse=True)
    assert (pauses[0], pauses[-1]) == (0.25, 0.01)
    assert resident_bytes(os.getpid()) > 10 * MIB
    assert resident_bytes((1 << 22) + 1) == 0


@pytest.mark.parametrize(
    ("limit", "available", "expected"),
    [
        (4000 * MIB, 100_000 * MIB, 5000 * MIB),
        (500 * MIB, 100_000 * MIB, 884 * MIB),
        (900 * MIB, 1000 * MIB, 950 * MIB),
    ],
)
def test_the_ceiling_is_the_limit_and_a_margin_within_what_there_is(limit: int, available: int, expected: int) -> None:
    assert ceiling(limit, available) == expected
