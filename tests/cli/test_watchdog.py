"""What a command does about itself: it is stopped at its limits, and what crashes it is known to the next one."""

from __future__ import annotations

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
from pipeline.base.interrupts import NOTES, NOTHING, CrashNotes, Note, noted, opening, reading
from pipeline.cli.session import pause_until_full, resident_bytes
from pipeline.engines.engine import MIB, ceiling

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["workplace"]

WORKING = """
import hashlib, os, signal, sys, time
from pipeline.cli import session
from pipeline.engines import duckdb
from pipeline.runs import evaluation
from thresher.__main__ import main

class Engine(duckdb.DuckDB):
    def fetch(self, *words, **options):
        {work}
        return super().fetch(*words, **options)

evaluation.DuckDB = Engine
{more}
main()
"""


def working(work: str, more: str = "") -> str:
    """A script that does something where a run waits for its first query."""
    return WORKING.format(work=work, more=more)


def last_attempt(workplace: Workplace) -> dict[str, object]:
    return attempts(workplace.results)[-1]


CRASHING = "from pipeline.sources import parquet_files\nparquet_files._footer = lambda *words, **options: os.abort()"


def test_the_file_at_which_a_library_crashes_is_named_by_the_next_command(workplace: Workplace) -> None:
    words: tuple[str | Path, ...] = ("run", workplace.config())
    crashed = spawn(*words, script=working("pass", CRASHING))
    assert (crashed.code, crashed.out) == (-signal.SIGABRT, "")
    assert last_attempt(workplace)["status"] == "running"
    read = f"crashed or was killed while it read input pairs: {workplace.folder / 'pairs.parquet'}"
    assert f"{read}; if this run ends there, too" in spawn(*words, script=working("pass", CRASHING)).err
    published = spawn(*words)
    assert published.code == 0
    assert published.err.count(read) == 1  # that of the second attempt, said once
    for attempt in attempts(workplace.results)[:2]:
        assert (attempt["status"], attempt["error"]) == ("crashed", f"the process {read}")
    assert list((workplace.results / "attempts").glob(".*")) == []


def test_what_the_engine_reads_is_named_too(workplace: Workplace) -> None:
    before = workplace.publish()
    called = spawn("run", workplace.config(boundary=">"), script=working("os.kill(os.getpid(), signal.SIGKILL)"))
    assert called.code == -signal.SIGKILL
    assert assert_results_ok(workplace.results) == before
    published = call("run", workplace.config(boundary=">"))
    assert published.code == 0
    assert f"crashed or was killed while it read {workplace.folder}" in published.err
    assert ".parquet and 1 more file; if this run" in published.err


def test_a_crash_shows_where_it_happened(workplace: Workplace) -> None:
    called = spawn("run", workplace.config(), script=working("os.abort()"))
    assert called.code == -signal.SIGABRT
    assert "Fatal Python error: Aborted" in called.err


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
    assert workplace.publish(boundary=">").generation == 2


def test_a_disk_that_does_not_answer_ends_the_run(workplace: Workplace) -> None:
    hung = "session.OPENING_SECONDS = 0.5\nfrom pipeline.sources import parquet_files\n"
    hung += "parquet_files._footer = lambda *words, **options: time.sleep(60)"
    called = spawn("check", workplace.config(), script=working("pass", hung))
    assert called.code == 74
    assert f"error: opening {workplace.folder / 'pairs.parquet'} took longer than" in called.err


def test_two_signals_at_once_are_one_request(workplace: Workplace) -> None:
    """As `timeout` sends them: to the process, and to its group."""
    work = "print('at work', flush=True); time.sleep(1)"
    words = [sys.executable, "-c", working(work), "run", str(workplace.config())]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        for _ in range(2):
            process.send_signal(signal.SIGTERM)
            time.sleep(0.05)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 143
    assert err.count("Stopped. Published results are unchanged.  [exit 143]") == 1
    assert last_attempt(workplace)["status"] == "interrupted"


def test_a_process_that_heeds_no_signal_is_ended_after_the_second(workplace: Workplace) -> None:
    deaf = "print('at work', flush=True); hashlib.pbkdf2_hmac('sha256', b'', b'', 1 << 30)"
    words = [sys.executable, "-c", working(deaf), "run", str(workplace.config())]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        for _ in range(2):
            time.sleep(0.4)
            process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 143
    assert "Stopped. Published results are unchanged.  [exit 143]" in err
    assert last_attempt(workplace)["status"] == "interrupted"


def test_values_that_no_memory_could_hold_are_refused_before_they_are_read(workplace: Workplace) -> None:
    texts = [f"{'x' * 4000}{number % 3}" for number in range(30)]
    workplace.events.with_columns(source=pl.Series(texts)).write_parquet(workplace.folder / "events.parquet")
    config = workplace.config(top='[resources]\nmemory = "100KB"\nthreads = 1')
    called = call("check", config)
    assert called.code == 71
    assert "input events: the values of column 'source' in" in called.err
    assert "have about 4 KB each: the engine reads 30 at a time in each of 1 threads, 120 KB together" in called.err
    assert call("check", workplace.config(top='[resources]\nmemory = "200KB"\nthreads = 1')).code == 0


def test_the_note_beside_an_attempt_is_what_is_being_read(tmp_path: Path) -> None:
    notes, attempt = CrashNotes(), tmp_path / "0123456789ab.json"
    notes.put(Note(("before",)))
    notes.keep_beside(attempt)
    assert noted(attempt) == ""
    notes.concealed = lambda text: text.replace("secret", "${env.NAME}")
    for note in (Note(("a" * 4000, "b", "c"), "pairs"), Note(("secret/c",), "pairs", 1.5)):
        notes.put(note)
        assert noted(attempt) == str(note).replace("secret", "${env.NAME}")
    assert noted(attempt) == "it read input pairs: ${env.NAME}/c"
    notes.put(NOTHING)
    assert noted(attempt) == ""
    notes.forget()
    assert list(tmp_path.iterdir()) == []


def test_what_was_read_before_is_noted_again() -> None:
    with reading("a", "pairs"):
        with opening("b"):
            assert (NOTES.note.files, NOTES.note.input, NOTES.note.opened_at > 0) == (("b",), "pairs", True)
        assert (NOTES.note.files, NOTES.note.opened_at) == (("a",), 0.0)
    assert NOTES.note == NOTHING


def test_memory_is_looked_at_more_often_the_nearer_the_ceiling_is() -> None:
    pauses = [pause_until_full(resident, 1 << 30) for resident in (0, 900 * MIB, 1 << 30, 1 << 31)]
    assert pauses == sorted(pauses, reverse=True)
    assert (pauses[0], pauses[-1]) == (0.25, 0.01)
    assert resident_bytes() > 10 * MIB


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
