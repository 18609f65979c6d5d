"""The commands: help, what stdout and stderr carry, and what each of them prints."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import pytest
import sqlglot
from filelock import FileLock
from runs.inputs.workplace import assert_error
from storage.promises import assert_results_ok

from cli.calls import call, spawn
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from pathlib import Path

    from runs.inputs.workplace import Workplace

STAGE_COMMANDS = [entry.kind.replace("_", "-") for entry in STAGES]
LOADED = """
import atexit, sys
sys.argv = ["thresher", "--help"]
atexit.register(lambda: print("loaded:", {"duckdb", "polars", "scipy", "pyarrow"} & set(sys.modules)))
from pipeline.cli.app import main
main()
"""
ENDING = """
import atexit, sys, threading, time
from types import SimpleNamespace
from thresher.__main__ import command

class Kept:
    def __del__(self):
        print("memory was tidied up", flush=True)

def work():
    threading.Thread(target=lambda: (time.sleep(0.2), print("thread"))).start()
    atexit.register(lambda: print("registered"))
    raise SystemExit(CODE)

kept = Kept()
kept.itself = kept
sys.modules["thresher.loading"] = SimpleNamespace(module=lambda name: SimpleNamespace(main=work))
command()
"""
COMMANDS = ["run", "check", "render", "query", "verify", "report", "plot", "demo", "init", *STAGE_COMMANDS]


@pytest.mark.parametrize("command", COMMANDS)
def test_help_has_an_example_that_begins_with_the_command(command: str) -> None:
    called = call(command, "--help")
    assert called.code == 0
    assert re.search(rf"Example:\s+thresher {command} ", called.out), called.out


def test_help_lists_every_command(tmp_path: Path) -> None:
    called = spawn("--help", cwd=tmp_path)
    assert called.code == 0
    for command in COMMANDS:
        assert f" {command} " in called.out


def test_help_loads_no_engine() -> None:
    assert spawn(script=LOADED).out.endswith("loaded: set()\n")


@pytest.mark.parametrize(("ends_with", "code"), [("None", 0), ("0", 0), ("66", 66)])
def test_a_process_ends_when_its_threads_and_what_is_registered_have_but_tidies_no_memory(
    ends_with: str, code: int
) -> None:
    called = spawn(script=ENDING.replace("CODE", ends_with))
    assert (called.code, called.out) == (code, "thread\nregistered\n")


def test_a_process_that_fails_ends_as_python_ends_it() -> None:
    called = spawn(script=ENDING.replace("SystemExit(CODE)", "ValueError('a bug')"))
    assert (called.code, called.out) == (1, "thread\nregistered\nmemory was tidied up\n")
    assert "ValueError: a bug" in called.err


def test_version_is_one_line() -> None:
    called = spawn("--version")
    assert (called.code, called.err) == (0, "")
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*\n", called.out)


def test_no_command_shows_the_help() -> None:
    called = call()
    assert called.code == 2
    assert "Usage" in called.out + called.err


def test_a_misspelt_command_is_a_usage_error_with_a_hint() -> None:
    called = call("rnu")
    assert called.code == 2
    assert "Did you mean 'run'?" in called.err


@pytest.mark.wide
def test_run_prints_the_path_alone_on_stdout(workplace: Workplace) -> None:
    called = spawn("run", workplace.config())
    seen = assert_results_ok(workplace.results)
    assert (called.code, called.out) == (0, f"{seen.folder}\n")
    assert "published" in called.err
    assert "\x1b" not in called.err


@pytest.mark.wide
def test_quiet_says_nothing_but_the_path(workplace: Workplace) -> None:
    called = workplace.run("--quiet")
    assert called.err == ""
    assert called.out == f"{assert_results_ok(workplace.results).folder}\n"


def test_every_log_line_as_json_parses(workplace: Workplace) -> None:
    called = call("--log-format", "json", "run", workplace.config())
    records = [json.loads(line) for line in called.err.splitlines()]
    assert all(record["time"] and record["level"] in {"info", "warning"} for record in records)
    assert records[-1]["status"] == "published"
    assert records[-1]["path"] == called.out.strip()


def test_an_unknown_log_format_is_a_usage_error(workplace: Workplace) -> None:
    assert call("--log-format", "xml", "run", workplace.config()).code == 2


@pytest.mark.wide
def test_only_runs_the_named_stages(workplace: Workplace) -> None:
    config = workplace.config(name="first")
    config.write_text(config.read_text() + workplace.config(name="second", file="d.toml").read_text())
    assert call("run", config, "--only", "second").code == 0
    assert set(workplace.table("before_after_estimates", "second")["stage"]) == {"second"}
    assert not (assert_results_ok(workplace.results).folder / "counts" / "first.parquet").exists()


@pytest.mark.wide
def test_two_stages_share_one_run(workplace: Workplace) -> None:
    config = workplace.config(name="first")
    config.write_text(config.read_text() + workplace.config(name="second", by=None, file="d.toml").read_text())
    assert call("run", config).code == 0
    answer = call(
        "query", workplace.results, "SELECT stage, count(*) AS n FROM before_after_estimates GROUP BY 1 ORDER BY 1"
    )
    assert answer.out == "stage,n\nfirst,76\nsecond,19\n"


@pytest.mark.wide
def test_set_overrides_keys_by_stage_name_kind_or_number(workplace: Workplace) -> None:
    for stage in ("before_after", "1"):
        called = workplace.run("--set", f"stages.{stage}.thresholds=[3, 4]", "--set", "resources.threads=1")
        assert called.code == 0, called.err
        assert workplace.table("before_after_estimates")["threshold"].unique().sort().to_list() == [3.0, 4.0]
    workplace.run("--set", "stages.1.boundary='>'", "--set", "stages.1.by=[['source']]")
    assert set(workplace.table("before_after_estimates")["grouping"]) == {"source"}


@pytest.mark.parametrize(
    ("setting", "code", "words"),
    [
        ("boundary", 2, "write KEY=VALUE"),
        ("=1", 2, "write KEY=VALUE"),
        ("stages.nope.by=[]", 78, "names the stage 'nope'"),
        ("stages.1.nope=1", 78, "unknown key `nope`"),
        ("output.x=1", 78, "output: "),
        ("stages=1", 78, "stages"),
    ],
)
def test_a_wrong_setting_is_named(workplace: Workplace, setting: str, code: int, words: str) -> None:
    assert_error(workplace.run("--set", setting), code, words)


def test_output_of_the_command_line_is_relative_to_the_working_folder(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert workplace.run("--output", "mine").code == 0
    assert_results_ok(tmp_path / "elsewhere" / "mine")


def test_an_unknown_engine_is_a_config_error(workplace: Workplace) -> None:
    assert_error(workplace.run("--engine", "oracle"), 78, "engine")


def test_check_reads_footers_and_writes_nothing(workplace: Workplace) -> None:
    called = call("check", workplace.config())
    assert called.code == 0
    assert "pairs: 1 file, 500 rows" in called.out
    assert called.out.endswith("no faults found\n")
    assert not workplace.results.exists()


@pytest.mark.parametrize(("keys", "code"), [({"pairs": "gone"}, 66), ({"boundary": "x"}, 78), ({"by": ["nope"]}, 65)])
def test_check_finds_what_run_would_find_in_footers(workplace: Workplace, keys: dict[str, Any], code: int) -> None:
    assert_error(call("check", workplace.config(**keys)), code)


@pytest.mark.parametrize("dialect", ["duckdb", "spark"])
def test_rendered_sql_parses_in_its_dialect(workplace: Workplace, dialect: str) -> None:
    called = call("render", workplace.config(window={"before": "72h", "after": "72h"}), "--engine", dialect)
    assert called.code == 0, called.err
    statements = [tree for tree in sqlglot.parse(called.out, read=dialect) if tree is not None]
    assert len(statements) > 5
    assert all(isinstance(tree, sqlglot.exp.Query | sqlglot.exp.Create | sqlglot.exp.Set) for tree in statements)


def test_init_writes_a_config_that_is_valid_once_its_paths_exist(tmp_path: Path) -> None:
    import tomllib

    from pipeline.runs.config import parse_config

    for entry in STAGES:
        called = call("init", entry.kind)
        assert called.code == 0, called.err
        assert "#" in called.out
        config = parse_config(tomllib.loads(called.out), base=tmp_path)
        assert {each.stage.kind for each in config.stages} == {entry.kind}
    assert call("init", STAGES[0].kind.replace("_", "-")).out == call("init", STAGES[0].kind).out


def test_init_of_an_unknown_stage_lists_the_known_ones() -> None:
    assert_error(call("init", "nope"), 2, "no stage is called 'nope'", "before_after")


@pytest.mark.wide
def test_a_stage_command_equals_the_config(workplace: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    workplace.pairs.rename({"score": "weight"}).write_parquet(workplace.folder / "pairs.parquet")
    expected = workplace.publish(
        pairs={"path": "pairs.parquet", "columns": {"score": "weight"}, "where": "weight > 1"},
        window={"before": "72h", "after": "72h"},
    )
    monkeypatch.chdir(workplace.folder)
    words = ["--pairs", "pairs.parquet", "--events", "events.parquet", "--map", "pairs.score=weight"]
    words += ["--where", "pairs=weight > 1", "--output", "flags", "--set", 'by=["source"]', "--set", "uncertainty=none"]
    words += ["--set", "thresholds={start=1, stop=10, count=19}", "--set", 'window.before="72h"']
    called = call("before-after", *words, "--set", 'window.after="72h"')
    assert called.code == 0, called.err
    assert assert_results_ok(workplace.folder / "flags").hashes == expected.hashes


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        ([], 2, "--pairs"),
        (["--pairs", "p", "--map", "score"], 2, "write INPUT.NAME=COLUMN"),
        (["--pairs", "p", "--map", "nope.score=x"], 2, "no input 'nope' is given"),
        (["--pairs", "p", "--where", "score"], 2, "write INPUT=SQL"),
        (["--pairs", "p", "--where", "events=x"], 2, "no input 'events' is given"),
        (["--pairs", "p"], 78, "thresholds are required"),
        (["--pairs", "p", "--set", "tresholds=[1]"], 78, "Did you mean `thresholds`?"),
        (["--pairs", "gone", "--set", "thresholds=[1]"], 66, "no file matches gone"),
        (["--pairs", "p", "--set", "pairs.x.y=1"], 78, "pairs"),
        (["--pairs", "p", "--set", "name.x=1", "--set", "name.x.y=1"], 2, "--set name.x.y: x is not a table"),
    ],
)
def test_wrong_flags_of_a_stage_command_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str], code: int, text: str
) -> None:
    monkeypatch.chdir(tmp_path)
    called = call("before-after", *words)
    assert called.code == code, called.err
    assert text in called.err


def test_what_nobody_foresaw_is_told_with_a_place_of_its_traceback(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("pipeline.runs.runner.run", broken)
    called = workplace.run()
    assert_error(called, 70, "ZeroDivisionError", "please report it")
    (path,) = tmp_path.glob("thresher-*.txt")
    assert str(path) in called.err
    assert "broken" in path.read_text()


@pytest.mark.wide
def test_the_demo_publishes_and_says_how_close_it_came(demo_as_made: Path) -> None:
    printed = (demo_as_made / "printed.txt").read_text()
    assert_results_ok(demo_as_made / "results")
    assert "precision is off by" in printed
    assert str(demo_as_made / "results") in printed
    assert "thresher query" in printed
    assert f"Report: {demo_as_made / 'results' / 'report.html'}\n" in printed
    with FileLock(demo_as_made.with_suffix(".lock")):
        assert call("run", demo_as_made / "demo.toml").err.splitlines()[-1].startswith("info: unchanged")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        ("thresher ru", {"run"}),
        ("thresher run --o", {"--only", "--output"}),
        ("thresher threshold-sweep --pred", {"--predictions"}),
    ],
)
def test_words_are_completed_by_the_shell(typed: str, expected: set[str]) -> None:
    words = typed.split()
    env = {"_THRESHER_COMPLETE": "complete_bash", "COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1)}
    script = "import sys; sys.argv = ['thresher']; from thresher.__main__ import main; main()"
    completed = set(spawn(script=script, env=env).out.split())
    assert completed >= expected


def test_tables_are_fitted_to_the_columns_that_a_pipe_asks_for(workplace: Workplace) -> None:
    workplace.publish(thresholds=[0.5])
    for columns in (60, 120):
        lines = call("show", workplace.results, columns=columns).out.splitlines()
        assert columns - 30 < max(map(len, lines)) <= columns


@pytest.mark.wide
def test_a_section_is_shown_alone_and_the_files_are_named(workplace: Workplace) -> None:
    workplace.publish(thresholds=[0.5])
    explained = call("explain", workplace.results, "before_after").out
    assert f"pairs: {workplace.folder}" in explained
    alone = call("explain", workplace.results, "before_after", "--show", "certain_false_positives").out
    assert alone.splitlines()[0] == explained.splitlines()[0]
    assert "Definition" in explained
    assert "Definition" not in alone
    assert "Inputs" not in alone
