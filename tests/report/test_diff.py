"""`thresher diff`: what changed between two runs."""

from __future__ import annotations

import datetime as dt
import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from cli.calls import call
from rich.cells import cell_len
from runs.inputs.workplace import assert_error

from pipeline.report.diff import blocks_of, record_changes, run_difference
from pipeline.report.diff_tests import SharedUnits, differences_of
from pipeline.report.published import PublishedRun, kept_run
from pipeline.report.text import plain_text
from pipeline.stages.compare.pairs import are_times
from pipeline.stages.stage import UnitTable
from report.made_stages import queries, stage_of

if TYPE_CHECKING:
    from pathlib import Path

pytest_plugins = ("report.two_runs",)


# Records -------------------------------------------------------------------------------------------------------------


MEASURES = ("average_precision", "r_precision", "reciprocal_rank")


def changed_record(run: PublishedRun, **changes: Any) -> PublishedRun:  # noqa: ANN401
    return replace(run, record=json.loads(json.dumps(run.record)) | changes)


@pytest.mark.wide
def test_everything_that_differs_in_the_records_is_told(two_runs: Path) -> None:
    run = kept_run(two_runs, "1")
    record = json.loads(json.dumps(run.record))
    files = record["inputs"]
    files[0]["footer_sha256"] = "0" * 64
    files[1]["path"] = "/elsewhere/events.parquet"
    record["accounting"]["before_after"]["pairs"]["used"] += 1
    record["bindings"]["before_after"]["pairs.score"] = {"source": "mapped", "column": "weight"}
    record["versions"]["duckdb"] = "9.9"
    record["code_sha256"] = "f" * 64
    record["results"]["ranking"]["warnings"] = ["something new"]
    record["configuration"]["stages"][0]["window"]["after"] = 48.0
    record["facts"]["ranking"]["ties"] = "expected"
    changes = record_changes(run, replace(run, record=record))
    before_pairs, before_events = changes.inputs
    assert (before_pairs.name, len(before_pairs.replaced), len(before_pairs.rows)) == ("before_after.pairs", 1, 1)
    assert (before_events.added, len(before_events.gone)) == (("/elsewhere/events.parquet",), 1)
    assert [(change.name, change.after) for change in changes.bindings] == [
        ("before_after.pairs.score", "mapped weight")
    ]
    assert [change.name for change in changes.code] == ["duckdb", "hash of the code"]
    assert [(change.name, change.before, change.after) for change in changes.parameters] == [
        ("before_after.window.after", "30.0", "48.0")
    ]
    assert [change.name for change in changes.facts] == ["ranking.ties"]
    assert "ranking: something new" in changes.warnings_added
    few_clusters = "2 of 2 groups have fewer than 15 queries: means"
    assert any(warning.startswith(f"ranking: {few_clusters}") for warning in changes.warnings_gone)
    record["results"]["ranking"]["warnings"] = [
        warning.replace("2 of 2", "1,002 of 1,003") for warning in run.record["results"]["ranking"]["warnings"]
    ]
    changes = record_changes(run, replace(run, record=record))
    assert [len(changes.warnings_added), len(changes.warnings_gone)] == [0, 0]
    assert any("1,002 of 1,003" in warning for warning in changes.warnings_changed)
    assert record_changes(run, run).is_empty


# The command ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text(two_runs: Path) -> str:
    called = call("diff", two_runs)
    assert (called.code, called.err) == (0, "")
    return called.out


def test_text_names_what_changed_and_fits_80_columns(text: str) -> None:
    joined = " ".join(text.split())
    wide = [line for line in text.splitlines() if cell_len(line) > 80]
    assert all(len(line.split()) == 1 for line in wide)  # a path is never broken
    assert not set(text) & {"\x1b", "\r"}
    for words in (
        "before: Run 00000001-",
        "Stages that only the second run has turns",
        "geocoding change_points",
        "entity_recognition.predicted: 1 file replaced (",
        "threshold_sweep.boundary: >= → >",
        "tested pr_auc units 10",
        "threshold_sweep Its parameters or bindings changed, see below",
        "entity_recognition ── difference 1 ──",
        "No number changed in before_after, ranking, compare.",
    ):
        assert words in joined


def test_of_very_many_tests_and_numbers_the_first_are_shown_and_the_others_counted(two_runs: Path) -> None:
    rng = np.random.default_rng(3)
    values = {name: rng.random((3, 3)) for name in map(str, range(40))}
    old = pl.concat([queries(array, group=name) for name, array in values.items()])
    new = pl.concat([queries(array + rng.random((3, 3)), group=name) for name, array in values.items()])
    stages = [stage_of("ranking", {"ranking_queries": table}) for table in (old, new)]
    runs = [
        replace(kept_run(two_runs, name), stages=(replace(stage, name="ranking"),))
        for name, stage in zip("12", stages, strict=True)
    ]
    text = plain_text(blocks_of(run_difference(*runs), *runs), 120)
    assert "100 further tests are left out" in text
    assert text.count("0.") > 20 * 3


def test_tests_that_could_not_be_made_are_not_counted(two_runs: Path) -> None:
    rng = np.random.default_rng(4)
    values = rng.random((9, 3))
    old = pl.concat([queries(values, group="shared"), queries(values, group="others")])
    moved = values + rng.uniform(0.09, 0.11, (9, 3))
    undefined = queries(values, group="others").with_columns(pl.lit(None, pl.Float64).alias(name) for name in MEASURES)
    new = pl.concat([queries(moved, group="shared"), undefined])
    stages = [stage_of("ranking", {"ranking_queries": table}) for table in (old, new)]
    runs = [
        replace(kept_run(two_runs, name), stages=(replace(stage, name="ranking"),))
        for name, stage in zip("12", stages, strict=True)
    ]
    text = plain_text(blocks_of(run_difference(*runs), *runs), 200)
    assert "3 of 3 differences that were tested on shared units are significant" in text


def test_stages_with_tests_come_first(text: str) -> None:
    lines = text.splitlines()
    assert lines.index("entity_recognition") < lines.index("threshold_sweep")


def test_json_holds_everything(two_runs: Path) -> None:
    record = json.loads(call("diff", two_runs, "1", "2", "--format", "json").out)
    assert record["records"]["stages_added"] == ["turns"]
    stage = record["stages"][0]
    assert stage["name"] == "entity_recognition"
    assert {"p_adjusted", "lower", "n_units"} <= set(stage["tests"][0])
    assert len(stage["metrics"]["changed"]) == 12  # of two groups, those of other data among them


def test_markdown_is_escaped(two_runs: Path) -> None:
    out = call("diff", two_runs, "--format", "markdown").out
    assert "<img" not in out
    assert "&lt;img" in out


def test_the_same_run_the_only_run_and_two_folders(two_runs: Path, tmp_path: Path) -> None:
    same = call("diff", two_runs, "2", "00000002")
    assert (same.code, "nothing changed" in same.out) == (0, True)
    only = call("diff", two_runs, "--format", "json", "--with", two_runs)
    assert "nothing_changed" in json.loads(only.out)
    copy = tmp_path / "copy"
    shutil.copytree(two_runs, copy)
    copied = call("diff", two_runs, "--with", copy)
    assert (copied.code, "Nothing changed: inputs, parameters" in copied.out) == (0, True)
    oldest = run_difference(kept_run(two_runs, "2"), kept_run(two_runs, "1"))
    assert oldest.records.stages_gone == ("turns",)
    shutil.rmtree(next((copy / "runs").glob("00000001-*")))
    assert "No run before" in call("diff", copy).out


@pytest.mark.parametrize(
    ("words", "message"),
    [(["9"], "no kept run is called '9'"), (["--format", "xml"], "unknown format 'xml'")],
)
def test_what_is_not_there_is_told(two_runs: Path, words: list[str], message: str) -> None:
    assert_error(call("diff", two_runs, *words), 2, message)


@pytest.mark.parametrize(("first", "marked"), [("2026-01-01", True), ("unit", False)], ids=["days", "other names"])
def test_units_that_are_days_in_a_row_are_marked(first: str, marked: bool) -> None:  # noqa: FBT001 - a parameter of pytest
    """Differences that drift over 80 days are no 80 independent ones; under other names nobody can know."""
    drift = np.sin(np.arange(80) / 12)
    start = dt.date(2026, 1, 1)
    names = [str(start + dt.timedelta(days=day)) if marked else f"{first} {day:02}" for day in range(80)]
    shared = pl.DataFrame({"day": names, "value": np.zeros(80), "value after": drift + np.tile([0.01, -0.01], 40)})
    assert are_times(shared["day"]) == marked
    units = UnitTable("units", "day", metrics=("value",))
    group = SharedUnits("all", "all", shared, 80, 80, are_times(shared["day"]))
    (tested,) = differences_of(group, units, 0.95)
    assert tested.quality == ("correlated_days" if marked else "good")
