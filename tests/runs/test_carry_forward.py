"""Stages that a run leaves out, or that fail, keep their last results, and nobody can take them for new ones."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from cli.calls import call
from storage.promises import assert_results_ok, attempts

import thresher
from pipeline.base.errors import ConfigError, Interrupted, NoInputError
from pipeline.report.drawing import stage_content
from pipeline.report.page import stage_section, warning_box
from pipeline.report.published import latest_run
from pipeline.runs import evaluation, stage_by_stage, stage_results
from pipeline.runs.stage_by_stage import failure_of
from pipeline.storage.layout import Layout
from pipeline.storage.publish import exclusive, heal, verify
from runs.nights import STAGES, Nights, files_of, record_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def first_night(tmp_path_factory: pytest.TempPathFactory) -> Nights:
    nights = Nights(tmp_path_factory.mktemp("nights"))
    nights.run()
    return nights


@pytest.fixture
def nights(first_night: Nights, tmp_path: Path) -> Iterator[Nights]:
    """A first night whose four stages were all published, there again afterwards."""
    shutil.copytree(first_night.results, tmp_path / "kept", symlinks=True)
    yield first_night
    shutil.rmtree(first_night.results)
    (tmp_path / "kept").rename(first_night.results)
    first_night.write_inputs()


def first_id(nights: Nights) -> str:
    return min(path.name for path in (nights.results / "runs").iterdir()).partition("-")[2]


@pytest.mark.wide
def test_only_carries_the_other_stages_forward_and_says_so_everywhere(nights: Nights) -> None:
    (before,) = (nights.results / "runs").iterdir()
    tables = files_of(before, ["a", "queries", "systems"])
    run = nights.run("b", b={"thresholds": [0.5]})
    origin = first_id(nights)
    words = f"carried forward from run 00000001-{origin}, published 20"
    assert (run.status, run.generation, [stage.name for stage in run.stages]) == ("published", 2, list(STAGES))
    assert files_of(run.path, ["a", "queries", "systems"]) == tables
    assert run.stages["b"].curve["threshold"].to_list() == [0.5]
    assert run.stages["a"].curve.height == 2
    assert run.stages["a"].carried.startswith(words)
    assert (run.stages["b"].carried, run.warnings[0][:12]) == ("", "a, queries, ")
    assert nights.stages_table() == [(name, None if name == "b" else origin, None) for name in STAGES]
    carried = record_of(run)["results"]["a"]["carried_from"]
    assert (carried["run_id"], carried["generation"], carried["reason"]) == (origin, 1, "left_out")
    warned = call("query", nights.results, "SELECT warning FROM warnings WHERE stage = 'a'").out
    shown = call("show", nights.results).out
    assert words in warned
    assert shown.count("Not of this run:") == 3
    published = latest_run(nights.results)
    sections = [
        stage_section(replace(stage_content(stage, "s"), figures=()), published, nights.results)
        for stage in published.stages
    ]
    assert ["Not of this run: </strong>carried forward" in section for section in sections] == [True, False, True, True]
    assert_results_ok(nights.results)
    shutil.rmtree(before)
    verify(nights.results)
    assert_results_ok(nights.results, crashed=True)
    assert call("query", nights.results, "SELECT count(*) FROM ranking_queries").out.endswith("\n16\n")


@pytest.mark.wide
def test_carried_again_it_is_still_of_the_run_that_counted(nights: Nights) -> None:
    nights.run("b", b={"thresholds": [0.5]})
    nights.run("b", b={"thresholds": [0.6]})
    run = nights.run("queries", queries={"cutoffs": [2]}, b={"thresholds": [0.6]})
    second_of_b = sorted((nights.results / "runs").iterdir())[2].name
    origins = {name: origin for name, origin, _ in nights.stages_table()}
    assert origins == {"a": first_id(nights), "b": second_of_b[9:], "queries": None, "systems": first_id(nights)}
    assert str(record_of(run)["results"]["a"]["warnings"]).count("carried forward") == 1
    assert any("'queries' has been counted again since" in warning for warning in run.warnings)
    trend = call("query", nights.results, "SELECT stage, count(*) AS n FROM trend('roc_auc') GROUP BY 1 ORDER BY 1").out
    assert trend == "stage,n\na,1\nb,3\n"


@pytest.mark.wide
def test_nothing_new_is_nothing_published(nights: Nights) -> None:
    for only in (("a",), ("queries", "systems"), ("systems",), ()):
        assert (nights.run(*only).status, nights.run(*only).generation) == ("unchanged", 1)
    changed = nights.run("b", b={"thresholds": [0.5]})
    assert nights.run("b", b={"thresholds": [0.5]}).path == changed.path
    everything = nights.run(b={"thresholds": [0.5]})
    assert (everything.generation, "carried" in str(everything.warnings)) == (3, False)
    assert files_of(everything.path) == files_of(changed.path)


def test_that_nothing_is_new_is_known_before_a_plan_is_made(nights: Nights, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(stage_results, "RACY_SECONDS", 0.0)
    nights.run("b", b={"thresholds": [0.5]})
    monkeypatch.setattr(stage_by_stage, "planned", refused)
    assert nights.run("b", b={"thresholds": [0.5]}).status == "unchanged"
    with pytest.raises(AssertionError):
        nights.run("b", b={"thresholds": [0.6]})


@pytest.mark.wide
def test_a_config_that_has_changed_since_is_said(nights: Nights) -> None:
    run = nights.run("b", a={"thresholds": [0.1], "confidence": 0.9}, b={"thresholds": [0.5]})
    (words,) = [warning for warning in run.warnings if "the config has changed" in warning]
    assert set(words.partition("(")[2].partition(")")[0].split(", ")) == {"thresholds", "confidence"}
    assert run.stages["a"].curve.height == 2
    config = nights.config()
    config["stages"][0] = config["stages"][2] | {"name": "a"}
    other = thresher.run(config, only=["b"])
    assert [stage.name for stage in other.stages] == ["b", "queries", "systems"]
    assert "a: the stage was left out of this run (--only), and has no tables here: the last run has it as" in str(
        other.warnings
    )
    gone = thresher.run(config | {"stages": config["stages"][1:2]})
    assert [stage.name for stage in gone.stages] == ["b"]


@pytest.mark.wide
@pytest.mark.parametrize(
    ("then", "now", "reason"),
    [
        ({"region": "nl"}, {"region": "be"}, "the last run is of other labels: region = nl"),
        ({"ds": "2026-11-03"}, {"ds": "2026-11-02"}, "the last run is of a later day, 2026-11-03"),
    ],
)
def test_numbers_of_other_labels_or_of_a_later_day_are_not_carried_forward(
    tmp_path: Path, then: dict[str, str], now: dict[str, str], reason: str
) -> None:
    nights = Nights(tmp_path / "nights")
    labels = {"labels": {"region": "${region}"}} if "region" in then else {}
    config = nights.config() | labels | {"vars": dict(then)}
    thresher.run(config, vars=then)
    nights.write("b", share=3)
    run = thresher.run(config, only=["b"], vars=now)
    assert [stage.name for stage in run.stages] == ["b"]
    assert f": the stage was left out of this run (--only), and has no tables here: {reason}" in run.warnings[0]


@pytest.mark.wide
def test_numbers_of_an_earlier_day_say_so(tmp_path: Path) -> None:
    nights = Nights(tmp_path / "nights")
    config = nights.config()
    thresher.run(config, vars={"ds": "2026-11-01"})
    nights.write("b", share=5)
    again = thresher.run(config, only=["b"], vars={"ds": "2026-11-01"})
    assert "carried forward" in again.stages["a"].carried
    assert "these numbers are those of" not in str(again.warnings)
    for day, share in (("2026-11-02", 3), ("2026-11-03", 4)):
        nights.write("b", share=share)
        run = thresher.run(config, only=["b"], vars={"ds": day})
        assert ": these numbers are those of ds = 2026-11-01" in "; ".join(run.warnings)
        assert record_of(run)["results"]["a"]["carried_from"]["variables"] == {"ds": "2026-11-01"}


@pytest.mark.wide
def test_a_first_run_of_one_stage_publishes_this_stage_with_a_warning(tmp_path: Path) -> None:
    nights = Nights(tmp_path / "new")
    run = nights.run("b")
    assert [stage.name for stage in run.stages] == ["b"]
    assert run.warnings[0].startswith("a, queries, systems: the stage was left out of this run (--only)")
    assert run.warnings[0].endswith("has no tables here: there is no earlier run")
    assert [row[0] for row in nights.stages_table()] == list(STAGES)
    assert "there is no earlier run" in call("show", nights.results).out
    with pytest.raises(ConfigError, match="reads the tables of 'queries', which is left out, and cannot be carried"):
        nights.run("systems")
    verify(nights.results)


def test_a_comparison_reads_tables_that_are_carried_forward(nights: Nights) -> None:
    config = nights.config()
    config["stages"][3] |= {"metrics": ["average_precision"]}
    run = thresher.run(config, only=["systems"])
    assert run.stages["systems"].tests.height > 0
    words = f"systems: it reads tables of 'queries' that were carried forward from run 00000001-{first_id(nights)}"
    assert any(warning.startswith(words) for warning in run.warnings)


def test_a_results_folder_with_one_run_works_elsewhere(first_night: Nights, tmp_path: Path) -> None:
    shutil.copytree(first_night.results, tmp_path / "moved", symlinks=True)
    layout = Layout(tmp_path / "moved")
    with exclusive(layout):
        assert str(heal(layout).notes).endswith("showed another folder or other runs, and was built again',)")
    assert_results_ok(layout.root)


# Failures -------------------------------------------------------------------------------------------------------------


@pytest.mark.wide
def test_a_stage_that_fails_leaves_the_others_published_and_its_last_results_stale(nights: Nights) -> None:
    nights.lose("a")
    nights.write("b", share=3)
    config = nights.folder / "night.toml"
    config.write_text(_toml(nights))
    called = call("run", config)
    assert (called.code, called.err.count("error: ")) == (66, 1)
    assert "error: stage 'a' failed: input predictions: no file matches" in called.err
    run = latest_run(nights.results)
    assert called.out == f"{run.folder}\n"
    assert nights.stages_table() == [("a", first_id(nights), 66), *((name, None, None) for name in STAGES[1:])]
    assert "stale, because the stage failed: input predictions: no file matches" in run.stages[0].carried
    assert (run.record["exit"], attempts(nights.results)[-1]["exit"]) == (66, 66)
    listed = call(
        "query", nights.results, "SELECT status, exit, error FROM attempts ORDER BY started_at DESC LIMIT 1"
    ).out
    assert "published,66,\"stage 'a': input predictions: no file matches" in listed
    again = call("run", config)
    assert (again.code, again.out) == (66, called.out)
    nights.write("a")
    assert call("run", config).code == 0
    assert nights.stages_table() == [(name, None, None) for name in STAGES]


def _toml(nights: Nights) -> str:
    config = nights.config()
    stages = ["\n".join(["[[stages]]", *(f"{key} = {json.dumps(value)}" for key, value in stage.items())])
              for stage in config["stages"]]  # fmt: skip
    return "\n".join([f"output = {json.dumps(config['output'])}", 'on_error = "publish_others"', *stages])


@pytest.mark.wide
def test_stages_that_depend_on_one_that_failed_fail_with_it(tmp_path: Path) -> None:
    nights = Nights(tmp_path / "new")
    nights.lose("queries")
    run = nights.run()
    assert [stage.name for stage in run.stages] == ["a", "b"]
    assert [(failure.stage, failure.fault.code) for failure in run.failures] == [("queries", 66), ("systems", 66)]
    assert run.failures[1].sentence == "it reads the tables of the stage 'queries', which failed"
    assert record_of(run)["absent"]["queries"]["exit"] == 66
    assert nights.stages_table()[2:] == [("queries", None, 66), ("systems", None, 66)]
    assert "queries: the stage failed, and has no tables here" in call("show", nights.results).out
    assert "<strong>queries:</strong> the stage failed" in warning_box([], latest_run(nights.results).absent)
    verify(nights.results)


def test_where_all_stages_fail_nothing_is_published(nights: Nights) -> None:
    for name in ("a", "b", "queries"):
        nights.lose(name)
    before = assert_results_ok(nights.results)
    with pytest.raises(NoInputError, match="3 faults"):
        nights.run()
    with pytest.raises(NoInputError):
        nights.run("b")
    assert assert_results_ok(nights.results) == before
    assert attempts(nights.results)[-1]["status"] == "failed"


def test_by_default_the_first_failure_ends_the_run(nights: Nights) -> None:
    nights.lose("a")
    with pytest.raises(NoInputError):
        nights.run(on_error="stop", b={"thresholds": [0.5]})
    assert latest_run(nights.results).generation == 1


@pytest.mark.wide
@pytest.mark.parametrize("error", [KeyError("bug"), Interrupted(15)])
def test_whatever_stops_a_stage_in_its_midst_the_others_go_on_unless_it_is_a_signal(
    nights: Nights, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate = evaluation.evaluate_stage

    def failing(config: object, opened: object, *more: object) -> object:
        if getattr(opened, "name", "") != "a":
            return evaluate(config, opened, *more)  # type: ignore[arg-type]
        evaluate(config, opened, *more)  # type: ignore[arg-type]
        raise error

    monkeypatch.setattr(stage_by_stage, "evaluate_stage", failing)
    keys = {"a": {"thresholds": [0.1]}, "b": {"thresholds": [0.5]}}
    if isinstance(error, Interrupted):
        with pytest.raises(Interrupted):
            nights.run(**keys)
        assert latest_run(nights.results).generation == 1
        return
    run = nights.run(**keys)
    assert [failure.fault.code for failure in run.failures] == [70]
    assert failure_of("a", "ranking", OSError(28, "full")).fault.code == 74
    assert (run.stages["a"].curve.height, run.stages["b"].curve.height) == (2, 1)
    assert_results_ok(nights.results)
    verify(nights.results)


@pytest.mark.wide
def test_a_damaged_stage_is_not_carried_forward(nights: Nights) -> None:
    (folder,) = (nights.results / "runs").iterdir()
    path = folder / "threshold_sweep_curve" / "a.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    run = nights.run("b", b={"thresholds": [0.5]})
    assert [stage.name for stage in run.stages] == ["b", "queries", "systems"]
    assert "a: the stage was left out of this run (--only), and has no tables here: the last run has no intact" in str(
        run.warnings
    )
