"""Whatever ends the writer at whatever moment, readers see one whole run, and the next run succeeds."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from runs.inputs.workplace import Workplace

TESTS = Path(__file__).resolve().parents[2]


def drive(workplace: Workplace, *words: str) -> int:
    """Let the driver fail at moment after moment; the number it stopped at."""
    environment = {"PYTHONPATH": f"{TESTS}:{TESTS.parent}", "PATH": "/usr/bin:/bin"}
    done = subprocess.run(
        [sys.executable, "-m", "runs.faults.driver", str(workplace.folder), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("share", [0, 1])
def test_a_kill_at_any_moment_leaves_the_old_run_or_the_new_one(workplace: Workplace, share: int) -> None:
    assert drive(workplace, "kill", str(share), "2") > 70


@pytest.mark.parametrize(("kind", "share"), [("full", 0), ("broken", 2)])
def test_a_disk_that_fails_at_any_moment_leaves_the_results_as_they_were(
    workplace: Workplace, kind: str, share: int
) -> None:
    assert drive(workplace, kind, str(share), "6") > 70


def test_a_limit_on_the_size_of_files_leaves_the_results_as_they_were(workplace: Workplace) -> None:
    assert drive(workplace, "size") >= 1 << 14
