"""A child that was forked after a run says what it cannot do; other ways to start workers work."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from textwrap import dedent
from typing import TYPE_CHECKING

import polars as pl
import pytest

if TYPE_CHECKING:
    from pathlib import Path

FORKS = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")


def script(folder: Path, text: str) -> str:
    """Output of a script that runs a small job by `run(name)`."""
    pl.DataFrame({"score": [0.1, 0.9, 0.4], "label": [True, False, True]}).write_parquet(folder / "p.parquet")
    start = f"""
        import multiprocessing, os, sys
        import pipeline

        def run(name):
            stage = {{"kind": "threshold_sweep", "predictions": {str(folder / "p.parquet")!r}, "thresholds": [0.5]}}
            try:
                return pipeline.run({{"output": os.path.join({str(folder)!r}, name), "stages": [stage]}}).status
            except pipeline.ThresherError as error:
                return f"{{error.code}} {{error}}"
    """
    path = folder / "job.py"
    path.write_text(
        f"{dedent(start)}\nif __name__ == '__main__':\n"
        + "\n".join(f"    {line}" for line in dedent(text).splitlines())
    )
    done = subprocess.run([sys.executable, path], capture_output=True, text=True, timeout=120, check=False)
    return done.stdout + done.stderr


def test_a_child_forked_after_a_run_is_told_what_to_do_and_workers_that_are_not_forked_run(tmp_path: Path) -> None:
    ways = [way for way in ("fork", "spawn", "forkserver") if way in multiprocessing.get_all_start_methods()]
    text = (
        f'print(run("a"))\nfor way in {ways}:\n    print(way, multiprocessing.get_context(way).Pool(1).map(run, [way]))'
    )
    said = script(tmp_path, text)
    assert said.startswith("published\n")
    for way in ways:
        assert (f"{way} ['published']\n" in said) == (way != "fork")
    if "fork" in ways:
        assert "fork ['71 process " in said
        assert 'get_context("spawn")' in said


@FORKS
def test_a_child_forked_before_the_first_run_runs(tmp_path: Path) -> None:
    said = script(tmp_path, 'print(multiprocessing.get_context("fork").Pool(1).map(run, ["b"])[0])\nprint(run("a"))')
    assert said.splitlines() == ["published", "published"]
