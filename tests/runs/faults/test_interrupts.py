"""Signals: a run stops at once, says so, and leaves the results as they were."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from storage.promises import assert_results_ok, attempts

if TYPE_CHECKING:
    from runs.inputs.workplace import Workplace

ENDLESS = """
import sys
import pipeline.engines.duckdb as engine
from pipeline.engines.duckdb import DuckDB
from pipeline.cli.app import app

ENDLESS = "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range % 7 = b.range % 3"

def fetch(self, query, params=None):
    def work():
        print("started", flush=True)
        return self._connection.sql(ENDLESS).pl()
    return self._run(work, "an endless query")

DuckDB.fetch = fetch
engine.STOP_SECONDS = 600
app()
"""
DEAF = """
import sys, time
import pipeline.engines.duckdb as engine
from pipeline.engines.duckdb import DuckDB
from pipeline.cli.app import app

def fetch(self, query, params=None):
    def work():
        print("started", flush=True)
        time.sleep(600)
    return self._run(work, "a query that cannot be interrupted")

DuckDB.fetch = fetch
engine.STOP_SECONDS = 600
app()
"""
EARLY = """
import os, sys
from thresher.__main__ import main

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == MODULE:
            os.kill(os.getpid(), NUMBER)

MODULE, NUMBER = sys.argv.pop(1), int(sys.argv.pop(1))
sys.meta_path.insert(0, Finder())
main()
"""
FORKED = """
import os, sys
from thresher.__main__ import main

class Finder:
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            MODULES.remove(name)
            for number in NUMBERS:
                self.stopped(name, number)

    def stopped(self, name, number):
        if child := os.fork():
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.write(1, f"stopped {name} {number} {code}\\n".encode())
            return
        for descriptor, ending in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{FOLDER}/{name}.{number}.{ending}", os.O_CREAT | os.O_WRONLY), descriptor)
        os.kill(os.getpid(), number)

FOLDER = sys.argv.pop(1)
MODULES = sys.argv.pop(1).split(",")
NUMBERS = [int(number) for number in sys.argv.pop(1).split(",")]
sys.meta_path.insert(0, Finder())
main()
"""
LATE = """
import os, signal, sys
from pipeline.storage import catalog
from pipeline.cli.app import app

original = catalog._faults_as_read

def build(*words):
    os.kill(os.getpid(), signal.SIGTERM)
    return original(*words)

catalog._faults_as_read = build
app()
"""


AT_ONCE = 60.0  # seconds, on a busy machine: what does not end at once would take ten times as long here


def start(script: str, config: Path) -> subprocess.Popen[str]:
    """A run whose queries are those of the script, up to the moment when the first one works."""
    words = [sys.executable, "-c", script, "run", str(config)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_stops_a_working_query_at_once(workplace: Workplace, number: signal.Signals, code: int) -> None:
    before = workplace.publish()
    with start(ENDLESS, workplace.config(boundary=">", duplicates="keep")) as process:
        began = time.monotonic()
        process.send_signal(number)
        _, err = process.communicate(timeout=300)
    assert time.monotonic() - began < AT_ONCE
    assert process.returncode == code
    assert "Stopped. Published results are unchanged." in err
    assert "Traceback" not in err
    assert assert_results_ok(workplace.results) == before
    last = attempts(workplace.results)[-1]
    assert (last["status"], last["exit"]) == ("interrupted", code)
    assert workplace.publish(boundary=">").generation == 2


LOADED_IN_TURN = (
    "thresher.loading",
    "pipeline",
    "typer",
    "pipeline.cli.app",
    "pipeline.cli.session",
    "pipeline.runs.config",
    "polars",
)


def test_a_signal_while_modules_are_loaded_stops_without_a_traceback(workplace: Workplace) -> None:
    """A command that forks before each of them: the child gets the signal, and would go on as the command does."""
    codes = {signal.SIGTERM: 143, signal.SIGINT: 130}
    stopped, config = workplace.folder / "stopped", workplace.config()
    stopped.mkdir()
    numbers = ",".join(str(int(number)) for number in codes)
    words = [sys.executable, "-c", FORKED, str(stopped), ",".join(LOADED_IN_TURN), numbers, "check", str(config)]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    cases = [(module, number, code) for module in LOADED_IN_TURN for number, code in codes.items()]
    told = [line for line in done.stdout.splitlines() if line.startswith("stopped ")]
    assert sorted(told) == sorted(f"stopped {module} {int(number)} {code}" for module, number, code in cases)
    for module, number, code in cases:
        out, err = ((stopped / f"{module}.{int(number)}.{ending}").read_text("utf-8") for ending in ("out", "err"))
        assert (out, err) == ("", f"error: Stopped. Published results are unchanged.  [exit {code}]\n"), (module, code)
    assert not workplace.results.exists()


@pytest.mark.parametrize(("module", "code"), [("typer", 143), ("polars", 130)])
def test_a_signal_to_the_command_itself_while_modules_are_loaded(workplace: Workplace, module: str, code: int) -> None:
    """One to the process that people start, and one to that which works for it."""
    words = [sys.executable, "-c", EARLY, module, str(code - 128), "run", str(workplace.config())]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stdout) == (code, "")
    assert done.stderr == f"error: Stopped. Published results are unchanged.  [exit {code}]\n"
    assert not workplace.results.exists()


def test_a_signal_that_was_ignored_from_the_start_stays_so(workplace: Workplace) -> None:
    script = f"import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\n{EARLY}"
    words = [
        sys.executable,
        "-c",
        script,
        "pipeline.runs.config",
        str(int(signal.SIGINT)),
        "check",
        str(workplace.config()),
    ]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("module", ["thresher.loading", "polars"])
def test_a_signal_is_an_object_in_a_json_log(workplace: Workplace, module: str) -> None:
    words = [sys.executable, "-c", EARLY, module, str(int(signal.SIGTERM)), "--log-format", "json", "check"]
    done = subprocess.run([*words, str(workplace.config())], capture_output=True, text=True, check=False, timeout=60)
    record = json.loads(done.stderr)
    assert (done.returncode, record["exit"], record["event"]) == (143, 143, "error")
    assert datetime.fromisoformat(record["time"]).utcoffset() == timedelta(0)


def test_a_signal_ends_a_command_whose_stderr_is_full(workplace: Workplace) -> None:
    with Path("/dev/full").open("wb") as full:
        words = [sys.executable, "-c", EARLY, "polars", str(int(signal.SIGTERM)), "check", str(workplace.config())]
        assert subprocess.run(words, stderr=full, check=False, timeout=60).returncode == 143


def test_a_second_signal_ends_a_query_that_cannot_be_interrupted(workplace: Workplace) -> None:
    before = workplace.publish()
    with start(DEAF, workplace.config(boundary=">")) as process:
        process.send_signal(signal.SIGTERM)
        time.sleep(0.4)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=300)
    assert time.monotonic() - began < AT_ONCE
    assert process.returncode == 143
    assert assert_results_ok(workplace.results) == before


def test_a_query_that_cannot_be_interrupted_is_left_behind(workplace: Workplace) -> None:
    workplace.publish()
    script = DEAF.replace("time.sleep(600)", "time.sleep(1)").replace("STOP_SECONDS = 600", "STOP_SECONDS = 0.1")
    with start(script, workplace.config(boundary=">")) as process:
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143, err
    assert attempts(workplace.results)[-1]["status"] == "interrupted"


def test_a_signal_while_results_are_published_comes_too_late(workplace: Workplace) -> None:
    workplace.publish()
    words = [sys.executable, "-c", LATE, "run", str(workplace.config(boundary=">"))]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    seen = assert_results_ok(workplace.results)
    assert (done.returncode, done.stdout) == (0, f"{seen.folder}\n"), done.stderr
    assert seen.generation == 2


def test_a_run_outside_the_main_thread_installs_no_handler(workplace: Workplace) -> None:
    import threading

    import pipeline

    previous = signal.getsignal(signal.SIGTERM)
    runs = []
    thread = threading.Thread(target=lambda: runs.append(pipeline.run(workplace.config())))
    thread.start()
    thread.join()
    assert runs[0].status == "published"
    assert signal.getsignal(signal.SIGTERM) == previous
