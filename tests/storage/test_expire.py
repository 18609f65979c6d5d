"""Old runs are removed whole, and whatever ends the removal at whatever moment, the results are as they should be."""

from __future__ import annotations

import json
import os
import shutil
import sys
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest
from cli.calls import call
from filelock import FileLock
from runs.inputs.workplace import assert_error

import thresher
from pipeline.storage.layout import Layout
from pipeline.storage.publish import Keeping, expire, verify
from storage.promises import assert_results_ok, attempts

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FRAME = pl.DataFrame({"score": [0.9, 0.7, 0.4, 0.2], "label": [True, False, True, False]})
WRITES = {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.symlink", "os.unlink"}
_watching: list[Callable[[], None]] = []
_watched: list[str] = []


@pytest.fixture(scope="module")
def four_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results with four runs, an attempt that failed after the first, and one after the third."""
    results = tmp_path_factory.mktemp("four") / "results"
    stage = {"kind": "threshold_sweep", "predictions": FRAME, "uncertainty": "none", "outcomes": False}
    for number in range(1, 5):
        thresher.run({"output": str(results), "stages": [stage | {"thresholds": [number / 10]}]})
        if number in {1, 3}:
            with pytest.raises(thresher.ThresherError):
                thresher.run({"output": str(results), "stages": [stage | {"predictions": "gone.parquet"}]})
    return results


@pytest.fixture
def results(four_runs: Path, tmp_path: Path) -> Iterator[Path]:
    """The same four runs, where they were made, and there again afterwards."""
    shutil.copytree(four_runs, tmp_path / "kept", symlinks=True)
    yield four_runs
    shutil.rmtree(four_runs)
    (tmp_path / "kept").rename(four_runs)


def generations(results: Path) -> list[int]:
    names = [path.name for path in sorted((results / "runs").iterdir())]
    assert list(json.loads((results / "CURRENT").read_bytes())["manifests"]) == names
    with thresher.open_results(results) as connection:
        shown = [row[0] for row in connection.sql("SELECT generation FROM runs ORDER BY 1").fetchall()]
        in_history = connection.sql("SELECT DISTINCT run_id FROM history.threshold_sweep_curve").fetchall()
    assert len(in_history) == len(shown)
    return shown


def age(results: Path, days: dict[int, float]) -> None:
    """Make runs older; pointer and catalog are made again from their manifests."""
    for folder in (results / "runs").iterdir():
        manifest = json.loads((folder / "manifest.json").read_bytes())
        moment = datetime.now(UTC).replace(tzinfo=None) - timedelta(days=days[manifest["generation"]])
        manifest["published_at"] = moment.isoformat()
        (folder / "manifest.json").write_text(json.dumps(manifest))
        path = Layout(results).attempt(manifest["run_id"])
        path.write_text(json.dumps(json.loads(path.read_bytes()) | {"started_at": moment.isoformat()}))
    (results / "CURRENT").unlink()
    (results / "catalog.duckdb").unlink()
    verify(results, repair=True)


def test_the_last_runs_stay_with_their_attempts(results: Path) -> None:
    told = call("expire", results, "--keep", "2", "--dry-run")
    assert (told.code, generations(results)) == (0, [1, 2, 3, 4])
    called = call("expire", results, "--keep", "2")
    assert called.out == told.out.replace("would remove", "removed").replace("would be ", "").replace("would ", "")
    assert called.out.splitlines()[2] == "2 runs and 3 records of attempts removed"
    assert called.out.splitlines()[3].startswith("2 runs stay: 00000003-")
    assert generations(results) == [3, 4]
    assert [record["status"] for record in attempts(results)] == ["published", "failed", "published"]
    verify(results)
    assert_results_ok(results)
    assert call("expire", results, "--keep", "2").out.startswith(
        "0 runs and 0 records of attempts removed\n2 runs stay"
    )


def test_a_run_stays_that_is_young_or_among_the_last(results: Path) -> None:
    age(results, {1: 40, 2: 30.5, 3: 10, 4: 5})
    assert call("expire", results, "--keep", "1", "--keep-days", "31").code == 0
    assert generations(results) == [2, 3, 4]
    assert call("expire", results, "--keep", "2", "--keep-days", "1").code == 0
    assert generations(results) == [3, 4]
    assert call("expire", results, "--keep-days", "1").out.splitlines()[-1].startswith("1 run stays: 00000004-")
    assert generations(results) == [4]
    verify(results)


def test_a_run_whose_manifest_is_lost_goes_with_the_others(results: Path) -> None:
    (folder,) = (results / "runs").glob("00000002-*")
    (folder / "manifest.json").unlink()
    assert expire(results, Keeping(2, None)).removed[1] == folder.name
    assert generations(results) == [3, 4]


@pytest.mark.parametrize("words", [[], ["--keep", "0"], ["--keep-days", "-1"], ["--keep-days", "nan"], ["--keep", "x"]])
def test_bad_arguments_are_a_usage_error(four_runs: Path, words: list[str]) -> None:
    assert call("expire", four_runs, *words).code == 2
    assert generations(four_runs) == [1, 2, 3, 4]


def test_a_folder_without_results_or_at_work_is_left_alone(four_runs: Path, tmp_path: Path) -> None:
    assert_error(call("expire", tmp_path / "none", "--keep", "1"), 66, "holds no published run")
    assert not (tmp_path / "none").exists()
    assert_error(call("expire", tmp_path, "--keep", "1", "--dry-run"), 66, "holds no published run")
    with FileLock(four_runs / ".lock"):
        assert_error(call("expire", four_runs, "--keep", "1"), 75, "another run is writing")
    assert generations(four_runs) == [1, 2, 3, 4]


def test_a_kill_at_any_moment_leaves_what_the_next_one_completes(results: Path, tmp_path: Path) -> None:
    moments = copies_at_every_moment(results, tmp_path)
    assert len(moments) > 20
    for number, moment in enumerate(moments[::3]):
        shutil.rmtree(results)
        moment.rename(results)
        verify(results)
        assert assert_results_ok(results, crashed=True).generation == 4
        if number % 4 == 0:
            expire(results, Keeping(2, None))
            assert generations(results) == [3, 4]
            assert_results_ok(results)


def copies_at_every_moment(results: Path, folder: Path) -> list[Path]:
    """What a kill would leave at each moment of an expiry, in order."""
    copies: list[Path] = []

    def copy() -> None:
        copies.append(folder / f"moment-{len(copies)}")
        shutil.copytree(results, copies[-1], symlinks=True)

    if not _watched:
        sys.addaudithook(_notice)
    _watched[:], _watching[:] = [str(results)], [copy]
    try:
        expire(results, Keeping(2, None))
    finally:
        _watched.clear()
    return copies


def _path_of(event: str, words: tuple[object, ...]) -> str:
    """The path that an event is about, which may be relative to an open folder."""
    path, folder = str(words[0]), words[-1]
    if event != "open" and isinstance(folder, int) and folder >= 0 and not path.startswith("/"):
        with suppress(OSError):  # where the system does not tell the names of open folders
            return f"{Path(f'/proc/self/fd/{folder}').readlink()}/{path}"
    return path


def _notice(event: str, words: tuple[object, ...]) -> None:
    if _watched and event in WRITES and _path_of(event, words).startswith(_watched[0]):
        writes = event != "open" or bool(int(str(words[2])) & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))
        if writes:
            root = _watched.pop()
            _watching[0]()
            _watched.append(root)
