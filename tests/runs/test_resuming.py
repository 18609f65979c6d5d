"""What an attempt has finished before it failed need not be counted again, and is the same to the byte."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from storage.promises import assert_results_ok, assert_tidy

import pipeline
from pipeline.base.errors import StorageError
from pipeline.runs import evaluation, stage_by_stage
from pipeline.runs.stage_by_stage import finished_stages
from pipeline.storage.layout import Layout
from pipeline.storage.publish import Staging, exclusive, heal
from runs.nights import STAGES, Nights, files_of, record_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pipeline.runs.stage_results import Run

KILLED = """
import json, os, signal, sys
from pathlib import Path
from pipeline.runs import runner, stage_results
from pipeline.runs.config import parse_config
from pipeline.runs.stage_results import Watcher
stage_results.RACY_SECONDS = 0.0
kill = lambda name: os.kill(os.getpid(), signal.SIGKILL) if name == sys.argv[2] else None
runner.run(parse_config(json.loads(sys.argv[1]), base=Path.cwd()), Watcher(on_stage=kill))
"""


class Counted(list[str]):
    """Names of the stages that were counted; one of them can be made to fail."""

    failing = ""


@pytest.fixture(autouse=True)
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    """What is counted; files are trusted however young they are."""
    names = Counted()
    evaluate = evaluation.evaluate_stage

    def noting(config: Any, opened: Any, *more: Any) -> Any:  # noqa: ANN401 - as it is called
        if opened.name == names.failing:
            message = "in its midst"
            raise StorageError(message)
        names.append(opened.name)
        return evaluate(config, opened, *more)

    monkeypatch.setattr(stage_by_stage, "evaluate_stage", noting)
    monkeypatch.setattr("pipeline.runs.stage_results.RACY_SECONDS", 0.0)
    return names


@pytest.fixture
def nights(tmp_path: Path) -> Nights:
    return Nights(tmp_path / "nights")


def fail_in_the_midst(nights: Nights, counted: Counted, before: Sequence[str] = ("a", "b")) -> None:
    """An attempt that has counted the sweeps when the ranking fails."""
    counted.failing = "queries"
    with pytest.raises(StorageError):
        nights.run(on_error="stop")
    assert counted == list(before)
    counted.failing = ""
    counted.clear()


def from_scratch(nights: Nights, folder: Path) -> dict[str, bytes]:
    """The tables of the same config, counted at once in a folder without any results."""
    config = nights.config() | {"output": str(folder)}
    return files_of(pipeline.run(config).path)


def taken_over(run: Run) -> dict[str, str]:
    results = record_of(run)["results"]
    return {name: result["taken_over_from"] for name, result in results.items() if "taken_over_from" in result}


def test_a_retry_counts_what_the_attempt_before_had_not_finished(
    nights: Nights, counted: Counted, tmp_path: Path
) -> None:
    fail_in_the_midst(nights, counted)
    (attempt,) = [path.stem for path in (nights.results / "attempts").iterdir()]
    run = nights.run()
    assert (counted, taken_over(run)) == (["queries", "systems"], {"a": attempt, "b": attempt})
    assert [stage.name for stage in run.stages] == list(STAGES)
    assert_results_ok(nights.results)
    assert_tidy(nights.results)
    assert files_of(run.path) == from_scratch(nights, tmp_path / "scratch")
    counted.clear()
    assert (nights.run().status, counted) == ("unchanged", [])
    later = nights.run(b={"thresholds": [0.5]})
    assert (counted, taken_over(later)) == (["b"], {"a": attempt} | dict.fromkeys(STAGES[2:], run.run_id))


def test_only_what_is_the_same_is_taken_over(
    nights: Nights, counted: Counted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail_in_the_midst(nights, counted)
    shutil.copytree(nights.results, tmp_path / "kept", symlinks=True)
    layout = Layout(nights.results)
    (run_id,) = layout.unfinished()
    table = layout.staging / run_id / "threshold_sweep_curve" / "a.parquet"
    note = layout.finished(run_id) / "a.json"
    assert usable(layout) == ["a", "b"]
    with monkeypatch.context() as patch:  # a file system without links
        patch.setattr("os.link", _refuse)
        assert usable(layout) == ["a", "b"]
    spoiled: dict[str, Callable[[], object]] = {
        "a table with a changed byte": lambda: table.write_bytes(table.read_bytes()[:-1] + b"x"),
        "a table that is gone": table.unlink,
        "a link in the place of a table": lambda: _replace_by_link(table),
        "a note cut short": lambda: note.write_text("{"),
        "a note of another stage's files": lambda: note.write_text(
            note.read_text().replace('"stage": "a"', '"stage": "b"')
        ),
        "a note that leads out of the folder": lambda: note.write_text(
            note.read_text().replace('"path": "', '"path": "../')
        ),
    }
    for how, spoil in spoiled.items():
        spoil()
        assert usable(layout) == ["b"], how
        shutil.rmtree(nights.results)
        shutil.copytree(tmp_path / "kept", nights.results, symlinks=True)
    os.utime(nights.folder / "a.parquet")
    run = nights.run("a", "b")
    assert (counted, [*taken_over(run)]) == (["a"], ["b"])
    assert_results_ok(nights.results)


def usable(layout: Layout) -> list[str]:
    """Names of the finished stages of a failed attempt whose files can be taken over."""
    staging = Staging(layout, "0123456789ab")
    finished = [(each.stage, each.folder) for each in finished_stages(layout, None)]
    names = [stage.name for stage, folder in finished if not staging.take(stage.name, stage.files, folder)]
    staging.discard()
    return names


def _refuse(*_: object, **_options: object) -> None:
    raise OSError(errno.EMLINK, "Too many links")


def _replace_by_link(path: Path) -> None:
    path.rename(path.with_suffix(".aside"))
    path.symlink_to(path.with_suffix(".aside"))


def test_a_killed_attempt_is_resumed_and_one_attempt_is_kept_at_most(nights: Nights, counted: Counted) -> None:
    words = [sys.executable, "-c", KILLED, json.dumps(nights.config()), "b"]
    environment = {**os.environ, "PYTHONPATH": str(Path(pipeline.__file__).parents[1])}
    done = subprocess.run(words, env=environment, capture_output=True, check=False, timeout=120)
    assert done.returncode == -signal.SIGKILL, done.stderr
    fail_in_the_midst(nights, counted, ["b"])
    with exclusive(Layout(nights.results)):
        heal(Layout(nights.results))
    assert len(list((nights.results / ".staging").iterdir())) == 2  # the files of the second attempt, and its notes
    run = nights.run()
    assert counted == ["queries", "systems"]
    assert len(set(taken_over(run).values())) == 2
    assert_results_ok(nights.results)


def test_a_young_input_is_counted_again(nights: Nights, counted: Counted, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.runs.stage_results.RACY_SECONDS", 3600.0)
    fail_in_the_midst(nights, counted)
    assert not list((nights.results / ".staging").glob("*.finished"))
    nights.run("a", "b")
    assert counted == ["a", "b"]
