"""Configs that are wrong, output that cannot be written, and results that another run holds."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from cli.calls import call, spawn
from filelock import FileLock
from storage.promises import assert_results_ok, attempts

from runs.inputs.workplace import assert_error

if TYPE_CHECKING:
    from runs.inputs.workplace import Workplace


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"tresholds": [1]}, ["unknown key `tresholds`", "Did you mean `thresholds`?"]),
        ({"kind": None}, ["kind is missing"]),
        ({"thresholds": None}, ["thresholds are required"]),
        ({"thresholds": []}, ["thresholds are empty"]),
        ({"thresholds": {"start": 2, "stop": 1, "count": 5}}, ["stop (1.0) must be greater than start (2.0)"]),
        ({"window": {"before": "ten", "after": "1h"}}, ["'ten' is no duration"]),
        ({"pairs": []}, ["at least one path"]),
        ({"by": [["source"], ["source"]]}, ["the same grouping is given twice"]),
    ],
)
def test_a_wrong_key_is_named_with_its_place(workplace: Workplace, keys: dict[str, object], words: list[str]) -> None:
    called = workplace.refuse(78, "c.toml: [[stages]] 1", *words, **keys)
    assert not workplace.results.exists(), called


@pytest.mark.parametrize(
    ("top", "words"),
    [
        ("[resources]\nmemory = 'much'", ["'much' is not a size"]),
        ("[resources]\nthreads = 0", ["threads must be at least 1"]),
        ("a = = b", ["cannot be read as TOML"]),
    ],
)
def test_a_wrong_line_outside_the_stages_is_named(workplace: Workplace, top: str, words: list[str]) -> None:
    assert_error(workplace.run(top=top), 78, "c.toml", *words)


def test_a_config_without_stages_is_refused(workplace: Workplace) -> None:
    config = workplace.folder / "none.toml"
    config.write_text("output = 'x'\n")
    assert_error(call("run", config), 78, "the config has no stage", "thresher init")


def test_an_unlisted_stage_named_by_only(workplace: Workplace) -> None:
    assert_error(workplace.run("--only", "nope"), 78, "no stage is called 'nope'", "before_after")


@pytest.mark.wide
def test_output_below_a_plain_file_cannot_be_made(workplace: Workplace) -> None:
    (workplace.folder / "plain").write_text("")
    called = spawn("run", workplace.config(), "--output", workplace.folder / "plain" / "results")
    assert_error(called, 73, "plain/results cannot be written", "Choose another folder")


def test_output_that_is_a_plain_file(workplace: Workplace) -> None:
    workplace.results.write_text("mine")
    assert_error(workplace.run(), 73, "cannot be written")
    assert workplace.results.read_text() == "mine"


def test_output_on_a_read_only_place(workplace: Workplace) -> None:
    assert_error(call("run", workplace.config(), "--output", "/proc/thresher"), 73, "/proc/thresher")


def test_scratch_that_cannot_be_made(workplace: Workplace) -> None:
    (workplace.folder / "plain").write_text("")
    workplace.refuse(73, "scratch folder", "resources.scratch", top="[resources]\nscratch = 'plain/scratch'")


NO_TEMPORARY_FOLDER = """
import tempfile

def none():
    raise FileNotFoundError(2, "No usable temporary directory found")

tempfile.gettempdir = none
from pipeline.cli.app import app
"""


@pytest.mark.wide
def test_without_a_folder_for_temporary_files_the_config_key_is_named(workplace: Workplace) -> None:
    called = spawn("run", workplace.config(), script=NO_TEMPORARY_FOLDER + "app()")
    assert_error(called, 73, "folder for temporary files", "resources.scratch")
    top = f"[resources]\nscratch = '{workplace.folder / 'scratch'}'"
    assert spawn("run", workplace.config(top=top), script=NO_TEMPORARY_FOLDER + "app()").code == 0


@pytest.mark.wide
def test_a_bug_is_told_where_no_file_can_be_written(workplace: Workplace) -> None:
    bug = "import pipeline.runs.runner\npipeline.runs.runner.run = None\napp()"
    called = spawn("run", workplace.config(), script=NO_TEMPORARY_FOLDER + bug)
    assert_error(called, 70, "TypeError: 'NoneType' object is not callable", "report it", "execute in ", "session.py")


def test_too_little_memory_says_which_limit_to_raise(workplace: Workplace) -> None:
    workplace.publish()
    called = workplace.refuse(71, "[resources]", top="[resources]\nmemory = '1KB'")
    assert "memory" in called.err
    assert "the values of column" not in called.err  # which are small: the limit is at fault


@pytest.mark.wide
def test_a_second_run_at_the_same_time_is_told_to_wait(workplace: Workplace) -> None:
    workplace.publish()
    before = assert_results_ok(workplace.results)
    with FileLock(workplace.results / ".lock"):
        called = spawn("run", workplace.config())
    assert_error(called, 75, "another run is writing", "run again")
    assert assert_results_ok(workplace.results) == before
    assert [record["exit"] for record in attempts(workplace.results)] == [0, 75]


@pytest.mark.wide
def test_the_lock_file_stays(workplace: Workplace) -> None:
    workplace.publish()
    inode = (workplace.results / ".lock").stat().st_ino
    workplace.publish(boundary=">")
    assert (workplace.results / ".lock").stat().st_ino == inode


@pytest.mark.wide
def test_only_one_of_many_runs_publishes_at_a_time(workplace: Workplace) -> None:
    import subprocess
    import sys

    configs = [workplace.config(file=f"{number}.toml", confidence=0.8 + number / 100) for number in range(3)]
    words = [[sys.executable, "-m", "pipeline", "run", str(config)] for config in configs]
    started = [subprocess.Popen(each, stdout=subprocess.PIPE, stderr=subprocess.PIPE) for each in words]
    codes = []
    for process in started:
        process.communicate(timeout=100)
        codes.append(process.returncode)
    assert set(codes) <= {0, 75}
    assert 0 in codes
    assert assert_results_ok(workplace.results).generation == codes.count(0)
    assert sorted(record["exit"] for record in attempts(workplace.results)) == sorted(codes)


def test_an_error_as_json_has_message_remedy_and_code(workplace: Workplace) -> None:
    called = call("--log-format", "json", "run", workplace.config(tresholds=[1]))
    (line,) = called.err.splitlines()
    record = json.loads(line)
    assert (called.code, record["level"], record["exit"]) == (78, "error", 78)
    assert "tresholds" in record["message"]
