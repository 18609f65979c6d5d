"""Whatever fails at whatever call, readers see one whole run, people hear why, and the next run succeeds."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from runs.faults import shim

TESTS = Path(__file__).resolve().parents[2]
EVERY_LIBRARY = """
import errno, os, sys
from pathlib import Path
import duckdb, polars, pyarrow, pyarrow.parquet
from runs.faults.shim import Action, Kind, Shim

folder, faults = Path(sys.argv[1]), Shim()
frame = polars.DataFrame({"x": [1, 2, 3]})

def duck():
    with duckdb.connect(str(folder / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x")
        connection.execute("CHECKPOINT")

def arrow():
    pyarrow.parquet.write_table(frame.to_arrow(), folder / "a.parquet", filesystem=pyarrow.fs.LocalFileSystem())

writers = {
    "Python": lambda: (folder / "a.txt").write_text("x"),
    "DuckDB": duck,
    "Arrow": arrow,
    "Polars": lambda: frame.write_parquet(folder / "p.parquet"),
}
for name, write in writers.items():
    with faults.armed(folder, Kind.WRITE, Action.FAIL_ON, number=1, error=errno.ENOSPC):
        try:
            write()
        except Exception as error:
            print(name, faults.fired > 0, os.strerror(errno.ENOSPC) in str(error))
    if name == "DuckDB":
        (folder / "a.duckdb").unlink()
    write()
readers = {
    "DuckDB": lambda: duckdb.sql(f"SELECT sum(x) FROM read_parquet('{folder}/p.parquet')").fetchall(),
    "Arrow": lambda: pyarrow.parquet.read_table(folder / "p.parquet", filesystem=pyarrow.fs.LocalFileSystem()),
    "Polars": lambda: polars.read_parquet_metadata(folder / "p.parquet"),
}
for name, read in readers.items():
    with faults.armed(folder, Kind.READ, Action.FAIL_ON, number=1, error=errno.EIO):
        try:
            read()
        except Exception as error:
            print(name, faults.fired > 0, os.strerror(errno.EIO) in str(error))
with faults.armed(folder, Kind.WRITE, Action.SHORT, number=1):
    (folder / "a.txt").write_text("four")
print("short", faults.fired, (folder / "a.txt").read_text())
"""


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The variables of a process whose calls of the C library can fail."""
    reason = shim.missing_here()
    if reason is not None:
        pytest.skip(reason)
    return os.environ | shim.environment(tmp_path_factory.mktemp("shim")) | {"PYTHONPATH": f"{TESTS}:{TESTS.parent}"}


def printed(environment: dict[str, str], *words: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, *words], env=environment, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def test_faults_reach_the_calls_of_every_library(environment: dict[str, str], tmp_path: Path) -> None:
    lines = printed(environment, "-c", EVERY_LIBRARY, str(tmp_path))
    writers = ["Python", "DuckDB", "Arrow", "Polars"]
    assert lines == [*(f"{name} True True" for name in (*writers, "DuckDB", "Arrow", "Polars")), "short 1 four"]


def test_no_fault_leaves_a_broken_state(environment: dict[str, str]) -> None:
    """A few of the faults that `python3 dev.py faults` injects by the hundred."""
    words = ("--act", "another config", "--kills", "10", "--faults", "3", "--steps", "7")
    last = printed(environment, "-m", "runs.faults.driver", *words)[-1]
    match = re.fullmatch(r"(\d+) faults injected, 0 left a broken state", last)
    assert match, last
    assert int(match[1]) > 12
