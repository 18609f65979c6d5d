"""What a person sees on a terminal, and what a scheduler reads in a pipe."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cases.reading import case_folders, prepare
from runs.inputs.workplace import assert_error, write_config
from storage.promises import assert_results_ok, attempts

import pipeline
from cli.calls import at_terminal, at_terminal_of_its_own, call
from pipeline.cli.app import main
from pipeline.cli.session import Console, json_line
from pipeline.engines import spark_session
from pipeline.report.published import read_run
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from runs.inputs.workplace import Workplace


def lines_with(text: str, *words: str) -> list[str]:
    return [line for line in text.splitlines() if all(word in line for word in words)]


def test_closed_streams_do_not_stop_a_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["thresher", "init", "ranking"])
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    with pytest.raises(SystemExit) as stopped:
        main()
    assert not stopped.value.code
    for stream in (sys.stdout, sys.stderr):
        stream.close()


@pytest.mark.wide
def test_the_summary_is_shown_again_for_an_unchanged_run(workplace: Workplace) -> None:
    config = workplace.config()
    time.sleep(2.1)  # younger files are read again, because they may have changed since
    first, second = at_terminal_of_its_own("run", config), at_terminal("run", config)
    assert "Published 00000001" in first
    assert "Report: thresher report /" in first
    assert "Unchanged since 00000001" in second
    rows = table_rows(first)
    assert len(rows) == 4
    assert table_rows(second) == rows
    assert lines_with(second, "Keeping scores of")


def table_rows(text: str) -> list[list[str]]:
    """The cells of the first table, which two blanks or more keep apart."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("──")) + 1
    stop = lines.index("", start)
    return [re.split(r"  +", line) for line in lines[start:stop]]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("kind", [entry.kind for entry in STAGES])
def test_summaries_from_published_tables_are_those_of_the_run(kind: str, tmp_path: Path) -> None:
    folder = next(each for each in case_folders() if each.parent.name == kind)
    run = pipeline.run(prepare(folder, tmp_path))
    again = tuple(stage.result() for stage in read_run(run.path).stages)
    assert again == tuple(replace(stage, seconds=round(stage.seconds, 3)) for stage in run.stages)


@pytest.mark.wide
def test_groups_of_several_groupings_are_shown_with_their_grouping(workplace: Workplace) -> None:
    seen = at_terminal(
        "run", workplace.config(by=[[], ["source"], ["half"], ["half", "source"]], events=events_by_half(workplace))
    )
    assert lines_with(seen, "grouping", "group", "threshold")
    names = [row[:2] for row in table_rows(seen)]
    assert ["source", "noon"] in names
    assert ["half,source", "1, noon"] in names
    one = at_terminal("run", workplace.config(by=["source"]))
    assert not lines_with(one, "grouping", "group")
    assert lines_with(one, "group (source)", "threshold")


def events_by_half(workplace: Workplace) -> str:
    import polars as pl

    half = pl.int_range(pl.len()) % 2
    workplace.events.with_columns(half=half).write_parquet(workplace.folder / "halves.parquet")
    return "halves.parquet"


def test_a_group_without_a_value_is_not_called_by_its_grouping(workplace: Workplace) -> None:
    import polars as pl

    source = pl.when(pl.col("source") != "dawn").then("source")
    workplace.events.with_columns(source).write_parquet(workplace.folder / "events.parquet")
    assert "null" in [row[0] for row in table_rows(at_terminal("run", workplace.config()))]


def test_a_sentence_about_a_group_names_it(workplace: Workplace) -> None:
    assert lines_with(
        at_terminal("run", workplace.config(by=[["source"]]), columns=300), "source ", ": Keeping scores of"
    )


def test_group_values_cannot_steer_a_terminal(workplace: Workplace) -> None:
    import polars as pl

    evil = pl.when(pl.col("source") == "noon").then(pl.lit("\x9b31m\u202enoon")).otherwise("source").alias("source")
    workplace.events.with_columns(evil).write_parquet(workplace.folder / "events.parquet")
    seen = at_terminal("run", workplace.config())
    assert "\\u009b31m\\u202enoon" in seen
    assert not set(seen) & {"\x9b", "\u202e"}


@pytest.mark.wide
def test_a_warning_of_several_stages_is_said_once_with_their_names(workplace: Workplace) -> None:
    config = write_config(workplace.folder / "c.toml", name="first")
    config.write_text(
        config.read_text() + write_config(workplace.folder / "d.toml", name="second", boundary=">").read_text()
    )
    called = call("run", config)
    warnings = [line for line in called.err.splitlines() if line.startswith("warning: ")]
    assert warnings
    assert all(line.startswith("warning: first, second: ") for line in warnings)
    record = json.loads((workplace.results / "runs").glob("*/run.json").__next__().read_bytes())
    assert [len(record["results"][name]["warnings"]) for name in ("first", "second")] == [len(warnings)] * 2


def test_json_log_lines_carry_run_stage_rows_seconds_and_numbers(workplace: Workplace) -> None:
    called = call("--log-format", "json", "run", workplace.config())
    records = [json.loads(line) for line in called.err.splitlines()]
    assert {record["run_id"] for record in records} == {attempts(workplace.results)[-1]["run_id"]}
    begin, start, *bindings, end, last = [record for record in records if record["level"] == "info"]
    assert begin["event"] == "run_started"
    assert (start["event"], start["stage"]) == ("stage_started", "before_after")
    assert {(record["event"], record["stage"]) for record in bindings} == {("bindings", "before_after")}
    assert (end["event"], end["stage"], end["rows"]) == ("stage_finished", "before_after", 530)
    assert end["seconds"] >= 0
    metrics = workplace.table("metrics").drop_nulls("value")
    assert len(end["numbers"]) + end["numbers_left_out"] == metrics.height
    number = end["numbers"][0]
    row = metrics.row(0, named=True)
    assert {**number, "group": json.dumps(number["group"])} == {name: row[name] for name in number}
    assert end["numbers"][-1]["group"] == {"source": "dawn"}
    assert (last["event"], last["status"], last["rows"], last["exit"]) == ("run_published", "published", 530, 0)
    assert last["seconds"] >= end["seconds"]
    again = json.loads(call("--log-format", "json", "run", workplace.config()).err.splitlines()[-1])
    assert again["event"] == "run_unchanged"


def test_an_error_in_a_json_log_names_the_run(workplace: Workplace) -> None:
    called = call("--log-format", "json", "run", workplace.config(pairs="gone.parquet"))
    record = json.loads(called.err.splitlines()[-1])
    assert (record["level"], record["event"], record["exit"]) == ("error", "run_failed", 66)
    assert record["run_id"] == attempts(workplace.results)[-1]["run_id"]


@pytest.mark.parametrize(
    "words",
    [
        ["--log-format", "json", "runn"],
        ["--log-format=json", "run"],
        ["run", "--log-format", "json", "--nope"],
        ["ranking", "--log-format=json", "--set", "a=1"],
        ["--log-format", "json", "verify", "\x1b[31m", "\x9b"],
    ],
)
def test_an_error_of_the_command_line_is_an_object_too(words: list[str]) -> None:
    called = call(*words)
    (line,) = called.err.splitlines()
    record = json.loads(line)
    assert (called.code, called.out, record["exit"], record["event"]) == (2, "", 2, "error")
    assert record["message"]
    assert not set(record["message"]) & {"\x1b", "\x9b"}


def test_warnings_of_libraries_are_objects_too(capsys: pytest.CaptureFixture[str]) -> None:
    with Console(log_format="json").logged_warnings():
        warnings.simplefilter("always")
        warnings.warn("divided by zero", RuntimeWarning, stacklevel=1)
    record = json.loads(capsys.readouterr().err)
    assert (record["level"], record["message"]) == ("warning", "RuntimeWarning: divided by zero")


def test_numbers_that_json_lacks_are_null() -> None:
    line = json_line("info", "x", "a\nb", {"a": math.nan, "b": [math.inf, {"c": -math.inf}], "d": 0.5})
    assert "\n" not in line
    assert json.loads(line)["b"] == [None, {"c": None}]
    assert (json.loads(line)["a"], json.loads(line)["d"]) == (None, 0.5)


@pytest.mark.wide
def test_a_run_is_published_though_nobody_can_be_told(workplace: Workplace) -> None:
    with Path("/dev/full").open("wb") as full:
        words = [sys.executable, "-m", "pipeline", "run", str(workplace.config())]
        assert subprocess.run(words, stdout=full, stderr=full, check=False).returncode == 0
    assert assert_results_ok(workplace.results).generation == 1


@pytest.mark.wide
def test_a_path_that_stdout_does_not_take_is_told_as_a_warning(workplace: Workplace) -> None:
    with Path("/dev/full").open("wb") as full:
        words = [sys.executable, "-m", "pipeline", "run", str(workplace.config()), "--log-format", "json"]
        done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, check=False)
    last = json.loads(done.stderr.splitlines()[-1])
    assert (done.returncode, last["level"]) == (0, "warning")
    assert f"published {assert_results_ok(workplace.results).folder}, but stdout cannot be written" in last["message"]


@pytest.mark.parametrize(
    ("package", "java", "words"),
    [
        (None, None, "needs the package pyspark, which is not installed"),
        (object(), None, "needs Java, and there is none on the PATH"),
        (object(), "/bin/false", "needs Java 17 or newer, and /bin/false cannot be started"),
    ],
    ids=["no package", "no Java", "no Java that starts"],
)
def test_check_says_what_run_says_of_an_engine(
    workplace: Workplace, monkeypatch: pytest.MonkeyPatch, package: object, java: str | None, words: str
) -> None:
    monkeypatch.setattr(spark_session, "find_spec", lambda _name: package)
    monkeypatch.setattr(spark_session, "which", lambda _name: java)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    config = workplace.config(top='engine = "spark"')
    for command in ("check", "run"):
        called = call(command, config)
        assert called.code == 78
        assert words in called.err
        assert "no faults found" not in called.out


@pytest.mark.parametrize("command", ["before_after", "before-after"])
def test_a_stage_is_a_command_by_both_spellings(command: str) -> None:
    called = call(command, "--help")
    assert called.code == 0
    assert "--pairs" in called.out


@pytest.mark.parametrize(
    ("word", "command"), [("threshold_swep", "threshold-sweep"), ("rankin", "ranking"), ("quer", "query")]
)
def test_a_command_that_is_not_there_is_told_with_the_nearest(word: str, command: str) -> None:
    called = call(word)
    assert called.code == 2
    assert f"Did you mean '{command}'?" in " ".join(called.err.replace("│", "").split())


def test_a_key_of_the_only_stage_is_set_without_its_name(workplace: Workplace) -> None:
    assert workplace.run("--set", "thresholds.count=50").code == 0
    assert workplace.table("before_after_estimates")["threshold"].n_unique() == 50
    config = workplace.config(name="first")
    config.write_text(config.read_text() + workplace.config(name="second", file="d.toml").read_text())
    called = call("run", config, "--set", "thresholds.count=50")
    assert_error(called, 78, "which stage is meant", "--set stages.NAME.thresholds.count=", "first, second")
