"""The files for CI systems over nights: none is left by a run that fails, whatever it fails of, and one by each day."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polars as pl
import pytest
from cli.calls import call

import pipeline
from pipeline.base.errors import ConfigError, UnavailableError
from pipeline.sources import stores as remote
from pipeline.storage.layout import Layout
from pipeline.storage.publish import exclusive

if TYPE_CHECKING:
    from pathlib import Path

STAGE = """
[[stages]]
kind = "threshold_sweep"
name = "clf"
predictions = "scores${ds}.parquet"
thresholds = [0.5]
outcomes = false
units = false
[[gates]]
metric = "precision"
threshold = 0.5
min = 0.6
"""
HEAD = """
vars = { ds = "2026-11-01" }
output = "results"
gates_json = "ci/gates.json"
gates_junit = "ci/gates${ds}.xml"
"""
XML = "gates2026-11-01.xml"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with scores and a config, and the files of the night before."""
    write_scores(tmp_path / "scores2026-11-01.parquet")
    (tmp_path / "c.toml").write_text(HEAD + STAGE)
    (tmp_path / "ci").mkdir()
    for name in ("gates.json", "other.json"):
        (tmp_path / "ci" / name).write_text('{\n  "run_id": "0123456789ab",\n  "exit": 0\n}\n')
    (tmp_path / "ci" / XML).write_text('<?xml version="1.0" encoding="UTF-8"?>\n<testsuites name="thresher gates" />')
    return tmp_path


def write_scores(path: Path, *, precision: float = 0.9) -> None:
    labels = [number < 1000 * precision for number in range(1000)]
    pl.DataFrame({"score": [0.9] * 1000 + [0.1] * 1000, "label": labels + [False] * 1000}).write_parquet(path)


def left(folder: Path) -> set[str]:
    return {path.name for path in (folder / "ci").iterdir()} - {"other.json"}


@pytest.mark.parametrize(
    ("change", "words", "code"),
    [
        (("scores${ds}", "none"), [], 66),
        (('output = "results"', 'output = "c.toml/results"'), [], 73),
        (('metric = "precision"', 'metric = "precisoin"'), [], 78),
        (("thresholds", "treshold"), [], 78),
        (("vars", "variables"), [], 78),
        (("", ""), ["--only", "nothing"], 78),
        (("", ""), ["--set", "stages.nothing.by=1"], 78),
    ],
)
def test_a_run_that_fails_leaves_none(folder: Path, change: tuple[str, str], words: list[str], code: int) -> None:
    (folder / "c.toml").write_text((HEAD + STAGE).replace(*change))
    called = call("run", folder / "c.toml", *words)
    assert (called.code, left(folder)) == (code, set() if change[0] != "vars" else {XML}), called.err


def test_of_a_config_that_cannot_be_read_those_that_options_name_are_removed(folder: Path) -> None:
    (folder / "c.toml").write_text(f"{HEAD}{STAGE}\n[[")
    assert call("run", folder / "c.toml").code == 78
    assert left(folder) == {"gates.json", XML}  # nothing tells where they are
    assert call("run", folder / "c.toml", "--gates-json", folder / "ci" / "gates.json").code == 78
    assert left(folder) == {XML}
    assert call("run", folder / "none.toml", "--gates-junit", folder / "ci" / XML).code == 66
    assert left(folder) == set()


def test_a_run_beside_another_one_leaves_those_of_that_one(folder: Path) -> None:
    with exclusive(Layout(folder / "results")):
        assert call("run", folder / "c.toml").code == 75
    assert left(folder) == {"gates.json", XML}


def test_a_store_that_is_down_leaves_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "XDG_CACHE_HOME": str(folder / "caches"),
        "AWS_ACCESS_KEY_ID": "KEY",
        "AWS_SECRET_ACCESS_KEY": "canary",
        "AWS_REGION": "us-east-1",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(remote, "FIRST_PAUSE", remote.FIRST_PAUSE / 200)
    monkeypatch.setattr(remote, "LONGEST_PAUSE", remote.FIRST_PAUSE)
    with pytest.raises(UnavailableError):
        pipeline.run(folder / "c.toml", set={"output": "s3://bucket/results"})
    assert left(folder) == set()


def test_python_leaves_none_either(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with pytest.raises(ConfigError, match="unknown key `gate`"):
        pipeline.run({"gates_json": "ci/gates.json", "gate": []})
    assert left(folder) == {XML}
    with pytest.raises(ConfigError, match="no stage is called 'nothing'"):
        pipeline.run(pipeline.runs.config.load_config(folder / "c.toml"), only=["nothing"])
    assert left(folder) == set()
    with pytest.raises(ConfigError, match="neither a path nor a dictionary"):
        pipeline.run(7)  # type: ignore[arg-type]


def test_other_commands_leave_them(folder: Path) -> None:
    (folder / "c.toml").write_text((HEAD + STAGE).replace("thresholds", "treshold"))
    assert call("check", folder / "c.toml").code == 78
    assert left(folder) == {"gates.json", XML}


def verdict(path: Path) -> tuple[str, int, int]:
    judged = json.loads(path.read_text())
    return judged["status"], judged["exit"], judged["failed"]


def test_a_range_leaves_those_of_its_last_day_and_of_each_whose_path_has_the_day(folder: Path) -> None:
    for day, precision in (("2026-11-01", 0.5), ("2026-11-02", 0.9)):
        write_scores(folder / f"scores{day}.parquet", precision=precision)
    called = call("run", folder / "c.toml", "--var", "ds=2026-11-01..2026-11-02")
    assert (called.code, verdict(folder / "ci" / "gates.json")) == (3, ("published", 0, 0)), called.err
    assert left(folder) == {"gates.json", XML, "gates2026-11-02.xml"}
    path_with_day = folder / "ci" / "each${ds}.json"
    days = "ds=2026-11-01..2026-11-03"
    assert (
        call("run", folder / "c.toml", "--var", days, "--gates-json", path_with_day).code == 66
    )  # not the 3 of the first day
    assert verdict(folder / "ci" / "each2026-11-01.json") == ("unchanged", 3, 1)
    assert verdict(folder / "ci" / "each2026-11-02.json") == ("unchanged", 0, 0)
    assert not (folder / "ci" / "each2026-11-03.json").exists()


def test_the_exit_code_is_that_of_the_run_where_a_stage_failed(folder: Path) -> None:
    other = STAGE[: STAGE.index("[[gates]]")].replace("clf", "other").replace("scores${ds}", "none")
    (folder / "c.toml").write_text(
        f'on_error = "publish_others"\n{HEAD}{STAGE}{other}'.replace("[[gates]]", '[[gates]]\nstage = "clf"')
    )
    for status in ("published", "unchanged"):
        assert call("run", folder / "c.toml").code == 66
        assert verdict(folder / "ci" / "gates.json") == (status, 66, 0)
