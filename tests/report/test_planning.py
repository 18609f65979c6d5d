"""`thresher plan` on published runs: what it reads of them, what it refuses, and what it says."""

from __future__ import annotations

import csv
import io
import json
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from cli.calls import at_terminal, call
from running import stage_config
from stage_examples import EXAMPLES

import thresher
from pipeline.base.errors import ThresherError, UsageError
from pipeline.report.evidence import Wish
from pipeline.report.planned import FORMATS, Goal, written
from pipeline.report.planning import plan_run, plan_stage
from pipeline.report.published import PublishedRun, latest_run
from pipeline.runs import runner
from pipeline.runs.config import parse_config

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.report.planned import SamplePlan

COLUMN, HOSTILE = "<i>s=[c]</i>", "</script><img onerror=x>\n\x1b[31m"
AUDIT = {"threshold": 5.0, "size": 8, "seed": 3}
CLUSTERS, ROWS = 60, 12
STAGES = ("clusters", "rows", *(example.kind for example in EXAMPLES))


def predictions(copies: int = 1) -> pl.DataFrame:
    """Scores of rows of clusters whose rows are alike; every cluster stands there so many times."""
    generator = np.random.default_rng(6)
    effect = np.repeat(generator.normal(0, 0.1, CLUSTERS), ROWS)
    label = generator.random(CLUSTERS * ROWS) < 0.4
    score = generator.normal(0.4 + 0.3 * label, 0.15) + effect
    names = np.where(np.arange(CLUSTERS * ROWS) % 2, HOSTILE, "plain")
    frame = pl.DataFrame({"score": score, "label": label, COLUMN: names, "doc": np.arange(CLUSTERS * ROWS) // ROWS})
    return pl.concat([frame.with_columns(pl.col("doc") + copy * CLUSTERS) for copy in range(copies)])


def publish(folder: Path, **stages: dict[str, Any]) -> PublishedRun:
    runner.run(parse_config({"output": str(folder / "results"), "stages": list(stages.values())}, base=folder))
    return latest_run(folder / "results")


def sweep(folder: Path, name: str, copies: int = 1, **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    settings = {"thresholds": [0.3, 0.5, 0.7], "by": [[], [COLUMN]], "name": name} | keys
    config = stage_config(folder / name, "threshold_sweep", {"predictions": predictions(copies)}, **settings)
    stage: dict[str, Any] = config["stages"][0]
    return stage


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> PublishedRun:
    folder = tmp_path_factory.mktemp("planned")
    stages = {"clusters": sweep(folder, "clusters", cluster="doc"), "rows": sweep(folder, "rows")}
    for example in EXAMPLES:
        keys = example.keys | ({"audit": AUDIT} if example.kind == "before_after" else {})
        config = stage_config(folder / example.kind, example.kind, example.frames, **keys)
        for name, columns in example.mapped_only.items():
            config["stages"][0][name]["columns"] |= {column: column for column in columns}
        stages[example.kind] = config["stages"][0]
    return publish(folder, **stages)


def plan(run: PublishedRun, stage: str, metric: str = "", goal: Goal | None = None, **wish: Any) -> SamplePlan:  # noqa: ANN401
    chosen = run.chosen([stage])[0]
    return plan_stage(run, chosen, Wish(metric, verb="planned", **wish), goal or Goal(width=0.1))


def results_of(run: PublishedRun) -> Path:
    return run.folder.parents[1]


# Numbers -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STAGES)
def test_every_number_of_every_stage_is_planned_or_refused_with_a_reason(run: PublishedRun, name: str) -> None:
    stage = run.chosen([name])[0]
    assert stage.stage.evidence is not None
    planned, refused = [], []
    for measure in stage.stage.evidence.measures:
        for goal in (Goal(width=0.05), Goal(difference=0.02)):
            try:
                planned.append(plan(run, name, measure.name, goal))
            except UsageError as error:
                refused.append(error.message)
    assert planned or name in {"before_after", "ranking"}, refused  # these examples are too small for an interval
    for made in planned:
        first = made.units[0]
        assert made.factor is not None
        assert made.factor_cautious is None or made.factor_cautious >= made.factor
        if first.now is not None and first.needed is not None:
            assert first.needed == pytest.approx(first.now * made.factor, abs=1.001)
        assert f"{made.wanted:.3g}" in made.sentence
    assert all(len(reason) > 20 for reason in refused)


def test_the_pilot_of_independent_rows_is_their_number(run: PublishedRun) -> None:
    row = (
        run.chosen(["rows"])[0].tables["threshold_sweep_curve"].filter(grouping="all", threshold=0.5).row(0, named=True)
    )
    made = plan(run, "rows", "precision", threshold=0.5)
    assert made.design_effect == pytest.approx(1.0, rel=1e-6)
    assert [(unit.unit, unit.now) for unit in made.units] == [
        ("predictions", CLUSTERS * ROWS),
        ("positives", row["tp"] + row["fn"]),
        ("kept predictions", row["tp"] + row["fp"]),
    ]
    assert made.now == pytest.approx(row["precision_upper"] - row["precision_lower"])
    assert made.correlation is None


def test_twice_the_clusters_need_half_as_many_times(run: PublishedRun, tmp_path: Path) -> None:
    """Copies of all clusters are a pilot of twice the size that tells the same, with more degrees of freedom."""
    twice = publish(tmp_path, clusters=sweep(tmp_path, "clusters", 2, cluster="doc"))
    for metric in ("precision", "recall", "f1", "fpr", "roc_auc"):
        once, again = (plan(pilot, "clusters", metric, threshold=0.5) for pilot in (run, twice))
        assert (once.units[0].now, again.units[0].now) == (CLUSTERS, 2 * CLUSTERS)
        assert once.units[0].needed == pytest.approx(again.units[0].needed, rel=0.2)
        assert once.units[0].needed_cautious is not None
        assert again.units[0].needed_cautious is not None
        assert once.units[0].needed_cautious > again.units[0].needed_cautious


def test_rows_of_a_cluster_that_are_alike_are_told_from_more_clusters(run: PublishedRun) -> None:
    made = plan(run, "clusters", "recall", Goal(width=0.02), threshold=0.5)
    assert made.correlation is not None
    assert 0.02 < made.correlation < 0.6
    assert any(note.startswith("more clusters, not more of each") for note in made.notes)
    assert "clusters are the values of doc" in made.notes


def test_the_threshold_is_that_of_a_criterion_or_as_asked(run: PublishedRun) -> None:
    points = run.chosen(["clusters"])[0].tables["threshold_sweep_operating_points"].filter(grouping="all")
    assert plan(run, "clusters", criterion="max_f1").threshold == points["threshold"][0]
    assert plan(run, "clusters", threshold=0.6).threshold == 0.5
    with pytest.raises(UsageError, match=r"no operating point 'max_f2'\. Did you mean `max_f1`"):
        plan(run, "clusters", criterion="max_f2")
    with pytest.raises(UsageError, match="'ranking' has no operating points"):
        plan(run, "ranking", criterion="max_f1")


def test_a_paired_difference_is_planned_from_its_standard_deviation(run: PublishedRun) -> None:
    tests = run.chosen(["compare"])[0].tables["compare_tests"]
    row = tests.filter(metric="precision", test="paired_t").row(0, named=True)
    detectable = row["minimum_detectable_difference"]
    made = plan(run, "compare", "precision", Goal(difference=detectable))
    assert made.now == pytest.approx(detectable, rel=1e-3)
    assert row["n_units"] <= (made.units[0].needed or 0) <= 1.35 * row["n_units"]  # few units leave the variance open
    claims = [
        plan(run, "compare", "precision", Goal(margin=detectable, claim=claim)) for claim in ("not_worse", "equivalent")
    ]
    assert (claims[0].factor or 0) < (claims[1].factor or 0)
    with pytest.raises(UsageError, match="a margin is planned from a stage of compare"):
        plan(run, "clusters", "precision", Goal(margin=0.1))


def test_labels_are_planned_before_and_after_some_are_there(run: PublishedRun) -> None:
    estimates = run.chosen(["before_after"])[0].tables["before_after_estimates"].filter(grouping="all")
    row = estimates.filter(threshold=5.0).row(0, named=True)
    made = plan(run, "before_after", "precision_audited", Goal(width=0.4), threshold=5.0)
    assert (made.units[0].unit, made.units[0].now, made.factor) == ("labels", 0, None)
    assert 1 < (made.units[0].needed or 0) <= row["m_after"]
    assert any("nobody has checked a match" in note for note in made.notes)
    everything = plan(run, "before_after", "precision_audited", Goal(width=1e-6), threshold=5.0)
    assert everything.units[0].needed == row["m_after"]
    with pytest.raises(UsageError, match="planned by the width"):
        plan(run, "before_after", "precision_audited", Goal(difference=0.1))


# What is refused -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "reason"),
    [
        (Goal(), "what is wanted is missing"),
        (Goal(width=0.1, margin=0.1), "--width and --margin are two plans"),
        (Goal(width=0.0), "--width 0 cannot be"),
        (Goal(width=math.nan), "--width nan cannot be"),
        (Goal(difference=0.0), "--difference 0 cannot be"),
        (Goal(margin=0.1, difference=0.1), "no smaller than the margin"),
        (Goal(margin=0.1, claim="better"), "unknown claim 'better'"),
        (Goal(width=0.1, confidence=95), "--confidence 95 cannot be"),
        (Goal(difference=0.1, power=1.0), "--power 1 cannot be"),
    ],
)
def test_what_cannot_be_wanted_is_refused(goal: Goal, reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        goal.checked(lambda name: f"--{name}")


def test_what_cannot_be_planned_is_refused_with_a_reason(run: PublishedRun) -> None:
    with pytest.raises(UsageError, match="covering of stage 'change_points' has no interval"):
        plan(run, "change_points", "covering")
    with pytest.raises(UsageError, match="no number of clusters makes an interval that is 1e-09 wide"):
        plan(run, "clusters", "recall", Goal(width=1e-9))
    with pytest.raises(UsageError, match=r"no recall lies 0\.9 away"):
        plan(run, "clusters", "recall", Goal(difference=0.9), threshold=0.5)
    with pytest.raises(UsageError, match=r"a power of 0\.04 is not above the level"):
        plan(run, "clusters", "recall", Goal(difference=0.1, power=0.04))


def test_stages_that_cannot_be_planned_are_told_beside_those_that_can(run: PublishedRun) -> None:
    plans = plan_run(run, "", Wish("roc_auc"), Goal(width=0.1))
    assert {made.stage for made in plans.plans} == {"clusters", "rows", "threshold_sweep"}
    assert plans.refused["geocoding"] == "stage 'geocoding' has no metric 'roc_auc'. Did you mean `log_error_auc`?"
    assert "Not planned:" in written(plans, "text")
    with pytest.raises(
        UsageError, match=r"has no metric 'roc_auk'.*none of the other \d+ stages can be planned either"
    ):
        plan_run(run, "", Wish("roc_auk"), Goal(width=0.1))


# What is said --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", FORMATS)
def test_hostile_names_are_shown_and_never_steer(run: PublishedRun, format_: str) -> None:
    chosen = Wish("recall", group=(f"{COLUMN}={HOSTILE}",))
    plans = plan_run(run, "clusters", chosen, Goal(width=0.1))
    text = written(plans, format_, 60)
    if format_ in {"csv", "json"}:
        rows = list(csv.DictReader(io.StringIO(text))) if format_ == "csv" else json.loads(text)["plans"]
        assert rows[0]["group"] == f"{COLUMN} = {HOSTILE}"
    else:
        assert "\x1b" not in text
        assert "onerror" in text
    if format_ == "markdown":
        assert "<img" not in text


def test_the_command_answers_in_every_format_and_width(run: PublishedRun) -> None:
    results = results_of(run)
    words = ("plan", results, "--stage", "clusters", "--metric", "recall", "--width", "0.05")
    called = call(*words, "-f", "csv")
    assert called.code == 0
    assert called.out.splitlines()[0] == (
        "stage,metric,group,threshold,unit,now,needed,needed_cautious,factor,factor_cautious,width_now,width_wanted,basis"
    )
    narrow = at_terminal(*words, columns=44)
    assert all(len(line) <= 44 for line in narrow.splitlines())
    assert "clusters are needed" in " ".join(narrow.split())
    plans = json.loads(call(*words, "-f", "json").out)
    assert plans["plans"][0]["units"][0]["unit"] == "clusters"


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--width", "0.1"], 2, "neither a pilot nor anything expected"),
        (["--expected", "0.9"], 2, "what is wanted is missing"),
        (["--expected", "0.9", "--width", "0.1", "--stage", "x"], 2, "--stage chooses among the numbers of a pilot"),
        (["--expected", "1.2", "--width", "0.1"], 2, "--expected 1.2 cannot be"),
        (["--metric", "map", "--expected", "0.3", "--width", "0.1"], 2, "map is no share of rows"),
        (["--metric", "roc_auc", "--expected", "0.8", "--width", "0.1"], 2, "depends on the area and on the share"),
        (["--expected", "0.9", "--width", "1"], 2, "an interval of share is never 1 wide: share lies between 0 and 1"),
        (["--expected", "0.9", "--margin", "0.1"], 2, "needs the spread of the differences"),
        (["--expected", "0.9", "--width", "0.1", "--format", "xml"], 2, "unknown format 'xml'"),
        (["--deviation", "0.1", "--design-effect", "2", "--width", "0.1"], 2, "--design-effect goes with a share"),
        (["no/such/folder", "--width", "0.1"], 66, "holds no published run"),
    ],
)
def test_what_does_not_fit_together_is_an_error(words: list[str], code: int, said: str) -> None:
    called = call("plan", *words)
    assert (called.code, called.out) == (code, "")
    assert said in called.err


def test_without_a_pilot_what_is_expected_is_planned() -> None:
    made = thresher.plan_sample(metric="recall", expected=0.9, width=0.05, share_positive=0.1, design_effect=2.0)
    positives, rows = made.plans[0].units
    assert positives.needed == pytest.approx(2 * 554, abs=2)
    assert rows.needed == 10 * (positives.needed or 0)
    assert "1,110 positives" in repr(made)
    area = thresher.plan_sample(metric="roc_auc", expected=0.85, width=0.05, share_positive=0.1).plans[0]
    assert [unit.unit for unit in area.units] == ["rows", "positives", "negatives"]
    pair = thresher.plan_sample(deviation=0.1, difference=0.05).plans[0]
    assert pair.units[0].needed == 34  # G*Power and statsmodels: d = 0.5
    share = thresher.plan_sample(metric="precision", expected=0.9, difference=0.03).plans[0]
    assert share.units[0].needed == pytest.approx(1772, abs=5)
    assert share.units[0].needed_cautious is None


def test_from_python_a_folder_a_run_and_a_result_are_pilots(run: PublishedRun) -> None:
    from_folder = thresher.plan_sample(results_of(run), stage="clusters", metric="recall", width=0.05)
    assert from_folder.table["unit"][0] == "clusters"
    result = thresher.threshold_sweep(predictions=predictions(), cluster="doc", thresholds=[0.3, 0.5, 0.7])
    from_result = result.plan("recall", width=0.05)
    assert from_result.plans[0].units == from_folder.plans[0].units
    assert "<table>" in from_result._repr_html_()
    with pytest.raises(ThresherError, match="criterion and threshold both choose"):
        thresher.plan_sample(results_of(run), criterion="max_f1", threshold=0.5, width=0.1)
    with pytest.raises(ThresherError, match="expected says what is expected without a pilot"):
        thresher.plan_sample(results_of(run), expected=0.5, width=0.1)
