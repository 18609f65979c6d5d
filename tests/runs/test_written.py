"""What a config says to write is never what is read, published, or somebody else's."""

from __future__ import annotations

import os
import socket
import string
from typing import TYPE_CHECKING

import polars as pl
import pytest
from cli.calls import call
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.base.errors import ConfigError
from pipeline.runs.config import parse_config

if TYPE_CHECKING:
    from pathlib import Path

KEYS = ("gates_json", "gates_junit", "lineage.file", "prometheus.file", "output")
INPUTS = ("in/a.parquet", "in/*.parquet", "in/*", "in", "**/*.parquet", "hive", ["in/a.parquet", "in/b.parquet"])
SPELLINGS = ("{}", "x/../{}", "symbolic", "hard", "folder/b.parquet")


def make_folder(folder: Path) -> None:
    for name in ("in/a", "in/b", "hive/day=1/c"):
        path = folder / f"{name}.parquet"
        path.parent.mkdir(parents=True, exist_ok=True)
        pl.DataFrame({"score": [0.1, 0.9], "label": [False, True]}).write_parquet(path)
    (folder / "folder").symlink_to("in")


def document(path: object, **keys: object) -> dict[str, object]:
    stage = {"kind": "threshold_sweep", "predictions": path, "thresholds": [0.5]}
    return {"output": "results", "stages": [stage], **keys}


def keyed(key: str, target: str) -> dict[str, object]:
    table, _, name = key.partition(".")
    return {table: {name: target} if name else target}


def contents(folder: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.sampled_from(KEYS), st.sampled_from(INPUTS), st.sampled_from(SPELLINGS))
def test_no_output_is_an_input_by_any_name(
    tmp_path_factory: pytest.TempPathFactory, key: str, path: object, spelling: str
) -> None:
    folder = tmp_path_factory.mktemp("place")
    make_folder(folder)
    target = "hive/day=1/c.parquet" if path == "hive" else "in/a.parquet"
    ending = ".prom" if key.startswith("prometheus") else ""
    named = spelling.format(target)
    if spelling == "folder/b.parquet" and path in ("hive", "in/a.parquet"):
        named = target
    if ending or spelling in {"symbolic", "hard"}:
        named = f"other{ending}"
        make = os.link if spelling == "hard" else os.symlink
        make(folder / target, folder / named)
    before = contents(folder)
    with pytest.raises(ConfigError, match=key) as raised:
        parse_config(document(path, **keyed(key, named)), base=folder)
    assert (raised.value.exit_code, "is a file of the input predictions" in raised.value.message) == (78, True)
    assert contents(folder) == before


@pytest.mark.parametrize("key", ["gates_json", "gates_junit", "lineage.file"])
@pytest.mark.parametrize(
    ("path", "target"),
    [("in/*", "in/b.xml"), ("in", "in/new.parquet"), ("in", "in/deep/new.PARQUET"), ("in/**", "in/d/x.parquet")],
)
def test_what_an_input_would_find_the_next_time_is_refused(tmp_path: Path, key: str, path: str, target: str) -> None:
    make_folder(tmp_path)
    with pytest.raises(ConfigError, match="would be read as a file of the input predictions the next time"):
        parse_config(document(path, **keyed(key, target)), base=tmp_path)
    parse_config(document("in/*.parquet", **keyed(key, "in/b.xml")), base=tmp_path)


@pytest.mark.parametrize("key", ["gates_json", "gates_junit", "lineage.file"])
@pytest.mark.parametrize(
    "target", ["results/x", "results/CURRENT", "results/runs/x.json", "x/../results/catalog.duckdb"]
)
def test_nothing_is_written_into_the_results(tmp_path: Path, key: str, target: str) -> None:
    make_folder(tmp_path)
    with pytest.raises(ConfigError, match="lies in the results folder"):
        parse_config(document("in", **keyed(key, target)), base=tmp_path)


@pytest.mark.parametrize("key", ["gates_json", "gates_junit", "lineage.file", "prometheus.file"])
def test_a_file_of_somebody_else_stays_and_the_remedy_helps(tmp_path: Path, key: str) -> None:
    make_folder(tmp_path)
    theirs = tmp_path / "theirs.prom"
    theirs.write_text("{} theirs")
    with pytest.raises(ConfigError, match="is there, and thresher did not write it") as raised:
        parse_config(document("in", **keyed(key, "theirs.prom")), base=tmp_path)
    assert raised.value.remedy == f"Choose another file with {key}."
    parse_config(document("in", **keyed(key, "another.prom")), base=tmp_path)
    theirs.write_text("")  # made before by whoever sets permissions
    parse_config(document("in", **keyed(key, "theirs.prom")), base=tmp_path)


@pytest.mark.parametrize("kind", ["a named pipe", "a socket", "a device", "a folder"])
@pytest.mark.parametrize("key", ["gates_json", "lineage.file"])
def test_what_is_no_file_is_told_at_once(tmp_path: Path, key: str, kind: str) -> None:
    make_folder(tmp_path)
    path = special(tmp_path / "special", kind)
    with pytest.raises(ConfigError, match=f"is {kind}, not a file"):
        parse_config(document("in", **keyed(key, str(path))), base=tmp_path)


def special(path: Path, kind: str) -> Path:
    if kind == "a named pipe":
        os.mkfifo(path)
    elif kind == "a socket":
        here = os.open(path.parent, os.O_RDONLY)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(f"/proc/self/fd/{here}/{path.name}")  # a name of a socket must be short
        os.close(here)
    elif kind == "a device":
        path.symlink_to("/dev/null")
    else:
        path.mkdir()
    return path


def write_config(folder: Path, *lines: str, path: str = "in") -> Path:
    stage = f'[[stages]]\nkind = "threshold_sweep"\npredictions = "{path}"\nthresholds = [0.5]\n'
    (folder / "c.toml").write_text("\n".join((*lines, stage)))
    return folder / "c.toml"


def test_the_config_itself_and_one_file_for_two_are_refused(tmp_path: Path) -> None:
    make_folder(tmp_path)
    config = write_config(tmp_path, 'gates_json = "./x/../c.toml"')
    before = config.read_bytes()
    called = call("run", config)
    assert (called.code, "is the config itself" in called.err, config.read_bytes()) == (78, True, before)
    called = call("run", write_config(tmp_path, 'gates_json = "g"', 'gates_junit = "g"'))
    assert (called.code, "is the file of gates_json, too" in called.err) == (78, True)


def test_an_option_that_names_an_input_is_an_error_of_the_command_line(tmp_path: Path) -> None:
    make_folder(tmp_path)
    before = contents(tmp_path / "in")
    called = call("run", write_config(tmp_path), "--gates-junit", tmp_path / "in" / "b.parquet")
    assert (called.code, "Choose another file with --gates-junit." in called.err) == (2, True), called.err
    assert contents(tmp_path / "in") == before


@pytest.mark.wide
def test_results_inside_the_folder_of_an_input_are_left_out_with_a_notice_every_night(tmp_path: Path) -> None:
    make_folder(tmp_path)
    config = write_config(tmp_path, 'output = "in/results"')
    first = call("run", config)
    assert call("run", config).code == 0
    later = call("run", config, "--set", "confidence=0.9")
    for called in (first, later):
        notice = f"what thresher publishes in {tmp_path / 'in' / 'results'} is not read"
        assert (called.code, notice in called.err) == (0, True), called.err
    counted = call("query", tmp_path / "in" / "results", "SELECT count(*) AS n FROM input_files")
    assert counted.out == "n\n2\n", counted.err
    report = tmp_path / "in" / "results" / "report.html"
    for target, code in (
        (report, 0),
        (tmp_path / "in" / "a.parquet", 2),
        (config, 2),
        (report.with_name("CURRENT"), 2),
    ):
        before = target.read_bytes() if target.exists() else b""
        called = call("report", report.parent, "--output", target)
        assert called.code == code, called.err
        assert not code or target.read_bytes() == before


@pytest.mark.parametrize("kind", ["a named pipe", "a socket", "a device"])
@pytest.mark.parametrize("path", ["in", "in/*.parquet", "in/z.parquet", "**/*.parquet"])
def test_what_is_no_file_among_the_inputs_is_told(tmp_path: Path, kind: str, path: str) -> None:
    make_folder(tmp_path)
    special(tmp_path / "in" / "z.parquet", kind)
    called = call("run", write_config(tmp_path, path=path))
    assert (called.code, f"z.parquet is {kind}, and only files are read" in called.err) == (65, True), called.err
    (tmp_path / "in" / "z.parquet").rename(tmp_path / "z")  # as the remedy says
    assert call("check", write_config(tmp_path, path="in")).code == 0


def test_an_encrypted_file_is_called_so(tmp_path: Path) -> None:
    make_folder(tmp_path)
    content = (tmp_path / "in" / "a.parquet").read_bytes()
    (tmp_path / "in" / "a.parquet").write_bytes(b"PARE" + content[4:-4] + b"PARE")
    called = call("check", write_config(tmp_path))
    assert (called.code, "a.parquet is encrypted" in called.err) == (65, True), called.err


def test_a_config_or_sheet_that_is_a_named_pipe_hangs_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for command in ("run", "check", "render"):
        called = call(command, tmp_path / "pipe")
        assert (called.code, "is a named pipe, not a config file" in called.err) == (66, True), called.err


def test_a_backslash_in_the_output_is_told_before_anything_is_read(tmp_path: Path) -> None:
    called = call("run", write_config(tmp_path, "output = 'a\\b'"))
    assert (called.code, "has a '\\' in its path" in called.err) == (73, True), called.err


def test_a_demo_replaces_nothing_of_others(tmp_path: Path) -> None:
    (tmp_path / "demo.toml").write_text(string.ascii_letters)
    called = call("demo", "--output", tmp_path)
    assert (called.code, "is not of a demo" in called.err) == (2, True), called.err
    assert (tmp_path / "demo.toml").read_text() == string.ascii_letters
