"""Nights with gates from end to end: outcomes in every place, exit codes, baselines, and files for CI systems."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

import numpy as np
import polars as pl
import pytest
from cli.calls import Called, call
from storage.promises import assert_results_ok

import pipeline
from pipeline.report.page import gate_box
from pipeline.report.published import latest_run

if TYPE_CHECKING:
    from pathlib import Path

SOURCES = ("noon", "</script><img onerror=x>", 'all, "of" it\n\x1b[31m')
CONFIG = """
output = "results"
gates_json = "ci/gates.json"
[[stages]]
kind = "threshold_sweep"
name = "clf"
predictions = "scores.parquet"
by = ["source"]
thresholds = [0.25, 0.5, 0.75]
[[gates]]
name = "floor"
metric = "precision"
threshold = 0.6
min = 0.3
[[gates]]
name = "fall"
metric = "average_precision"
by = ["source"]
max_drop = 0.02
baseline = "previous"
[[gates]]
name = "noon"
metric = "recall"
group = { source = "noon" }
min = 0.99
min_rows = 10
on_fail = "warn"
[[gates]]
name = "week"
metric = "roc_auc"
max_change = 0.2
baseline = "same_weekday"
"""


def write_scores(folder: Path, seed: int, distance: float, sources: tuple[str, ...] = SOURCES) -> None:
    rng = np.random.default_rng(seed)
    label = np.tile([True, False, False], 400)
    score = 1 / (1 + np.exp(-(rng.normal(size=1200) + distance * (2 * label - 1))))
    source = [sources[number % len(sources)] for number in range(1200)]
    frame = pl.DataFrame({"score": score, "label": label, "source": sorted(source)}).sample(1200, shuffle=True, seed=1)
    frame.write_parquet(folder / "scores.parquet")


class Nights:
    """A results folder after four nights: usual, usual, bad, bad again."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.results = folder, folder / "results"
        (folder / "c.toml").write_text(CONFIG)
        self.called: list[Called] = []
        for seed, distance in ((1, 1.0), (2, 1.0), (3, 0.3)):
            write_scores(folder, seed, distance)
            self.called.append(self.run())
        self.called.append(self.run("--gates-junit", folder / "gates.xml"))

    def run(self, *words: str | Path) -> Called:
        return call("run", self.folder / "c.toml", *words)

    def rows(self, table: str = "gates") -> list[dict[str, Any]]:
        with pipeline.open_results(self.results) as connection:
            answer = connection.execute(f"FROM {table}")  # a text of this file
            names = [column[0] for column in answer.description]
            return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]


@pytest.fixture(scope="module")
def nights(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    return Nights(tmp_path_factory.mktemp("nights"))


def outcomes(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    by_gate: dict[str, list[str]] = {}
    for row in rows:
        by_gate.setdefault(row["gate"], []).append(row["outcome"])
    return by_gate


def test_noise_raises_no_alarm_a_real_fall_does_and_so_does_the_unchanged_night(nights: Nights) -> None:
    assert [called.code for called in nights.called] == [0, 0, 3, 3]
    assert [len(called.out.splitlines()) for called in nights.called] == [1] * 4
    assert nights.called[3].out == nights.called[2].out
    assert "unchanged, but a gate failed  [exit 3]" in nights.called[3].err
    attempts = nights.rows("(SELECT status, exit FROM attempts ORDER BY started_at)")
    assert [tuple(row.values()) for row in attempts[:4]] == [
        ("published", 0),
        ("published", 0),
        ("published", 3),
        ("unchanged", 3),
    ]


def test_the_table_tells_what_was_judged(nights: Nights) -> None:
    history = nights.rows("(SELECT * FROM history.gates JOIN runs USING (run_id) WHERE generation <= 3)")
    by_night = [outcomes([row for row in history if row["generation"] == night]) for night in (1, 2, 3)]
    noon = ["failed", "passed"]
    assert by_night[0] == {"floor": ["passed"], "fall": ["undecided"] * 3, "noon": noon, "week": ["undecided"]}
    assert by_night[1] == {"floor": ["passed"], "fall": ["passed"] * 3, "noon": noon, "week": ["undecided"]}
    assert by_night[2]["fall"] == ["failed"] * 3
    floor = next(row for row in history if row["gate"] == "floor")
    assert (floor["threshold"], floor["criterion"], floor["n_rows"]) == (0.5, None, 1200.0)
    fall = [row for row in history if row["gate"] == "fall" and row["generation"] == 3]
    assert {json.loads(row["group"])["source"] for row in fall} == set(SOURCES)
    assert {row["baseline_run"] for row in fall} == {row["run_id"] for row in history if row["generation"] == 2}
    assert all(row["p_value"] < row["p_adjusted"] <= 0.05 for row in fall[:1])


def test_values_are_those_of_the_metrics(nights: Nights) -> None:
    judged = [row for row in nights.rows() if row["result_table"] == "threshold_sweep_areas"]
    metrics = {
        (row["metric"], row["grouping"], row["group"]): (row["value"], row["lower"], row["upper"], row["quality"])
        for row in nights.rows("metrics")
        if row["result_table"] == "threshold_sweep_areas"
    }
    assert len(judged) == 4
    for row in judged:
        numbers = row["value"], row["lower"], row["upper"], row["quality"]
        assert numbers == metrics[row["metric"], row["grouping"], row["group"]]


def test_what_warns_is_among_the_warnings(nights: Nights) -> None:
    record = json.loads((latest_run(nights.results).folder / "run.json").read_text())
    warnings = record["results"]["clf"]["warnings"]
    assert warnings[0].startswith("gate noon failed: recall of clf at max_f1 for source noon is ")
    assert warnings[1].startswith("gate week is undecided: roc_auc of clf cannot be judged: there is no run of ")
    assert (record["exit"], len(record["gates"])) == (3, 7)


def test_failures_come_first_wherever_people_look(nights: Nights) -> None:
    shown = call("show", nights.results).out
    assert shown.splitlines()[2] == "4 gates: 1 failed, 1 passed, 2 with warnings"
    assert shown.index("fall: average_precision of clf for source noon fell from") < shown.index("2 warnings")
    box = str(gate_box(nights.rows()))
    assert box.startswith('<div class="failed" role="alert"><h2>4 gates: 1 failed, 1 passed, 2 with warnings</h2>')
    assert box.count("<li>") == 5
    assert "<img" not in box
    error = "error: gate fall: average_precision of clf for source noon fell from "
    assert error in nights.called[2].err
    assert "\x1b" not in nights.called[2].err


def test_files_for_ci_are_written_when_unchanged_too(nights: Nights) -> None:
    content = json.loads((nights.folder / "ci" / "gates.json").read_text())
    assert (content["status"], content["exit"], content["failed"], content["undecided"]) == ("unchanged", 3, 4, 1)
    assert content["gates"] == json.loads((latest_run(nights.results).folder / "run.json").read_text())["gates"]
    suites = ET.parse(nights.folder / "gates.xml").getroot()  # noqa: S314 - it was written here
    assert_junit(suites)
    (suite,) = suites
    assert {name: suite.get(name) for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "7",
        "failures": "3",
        "errors": "0",
        "skipped": "2",
    }
    failed = [case for case in suite.iter("testcase") if case.find("failure") is not None]
    assert failed[0].get("name", "").startswith("fall max_drop {")


def assert_junit(suites: ET.Element) -> None:
    """What the schemas of Apache Ant (JUnit.xsd) and of Jenkins (junit-10.xsd) ask for."""
    assert suites.tag == "testsuites"
    for number, suite in enumerate(suites):
        required = {"name", "package", "id", "timestamp", "hostname", "tests", "failures", "errors", "time"}
        assert required <= set(suite.attrib) <= required | {"skipped"}
        assert suite.get("id") == str(number)
        assert len(suite.get("timestamp", "")) == len("2026-11-22T13:28:49")
        tags = [child.tag for child in suite]
        cases = list(suite.iter("testcase"))
        assert tags == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
        assert suite.get("tests") == str(len(cases))
        for case in cases:
            assert set(case.attrib) == {"classname", "name", "time"}
            assert [child.tag for child in case] in ([], ["failure"], ["skipped"])
            for child in case:
                assert set(child.attrib) <= {"message", "type"}
        for name, tag in (("failures", "failure"), ("skipped", "skipped")):
            assert suite.get(name) == str(sum(case.find(tag) is not None for case in cases))


def test_other_gates_on_the_same_night_are_held_against_the_same_baseline(nights: Nights, tmp_path: Path) -> None:
    shutil.copytree(nights.folder, tmp_path / "copy")
    folder = tmp_path / "copy"
    baselines = {row["baseline_run"] for row in nights.rows() if row["gate"] == "fall"}
    (folder / "c.toml").write_text(CONFIG.replace("max_drop = 0.02", "max_drop = 0.03"))
    assert call("run", folder / "c.toml").code == 3
    with pipeline.open_results(folder / "results") as connection:
        query = "SELECT DISTINCT baseline_run, \"limit\" FROM gates WHERE gate = 'fall'"
        assert connection.execute(query).fetchall() == [(*baselines, 0.03)]
    published = assert_results_ok(folder / "results")
    assert (published.generation, call("run", folder / "c.toml").code) == (4, 3)


def test_files_that_cannot_be_written_are_a_warning(nights: Nights) -> None:
    (nights.folder / "file").touch()
    called = nights.run("--gates-json", nights.folder / "file" / "gates.json")
    assert called.code == 3
    assert "warning: the results of the gates could not be written: " in called.err


def test_a_run_that_fails_leaves_no_file_of_the_night_before(tmp_path: Path) -> None:
    (tmp_path / "gates.json").write_text('{\n  "run_id": "0123456789ab",\n  "exit": 0\n}\n')
    (tmp_path / "c.toml").write_text(
        '[[stages]]\nkind = "threshold_sweep"\npredictions = "none.parquet"\n[[gates]]\nmetric = "roc_auc"\nmin = 0.5\n'
    )
    assert call("run", tmp_path / "c.toml", "--gates-json", tmp_path / "gates.json").code == 66
    assert not (tmp_path / "gates.json").exists()
