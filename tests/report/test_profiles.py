"""The number that a profile gives is that of the tool: of scikit-learn itself, of recorded output of the others."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from cli.calls import call
from running import stage_config
from sklearn import metrics

import pipeline
from pipeline.base.errors import UsageError
from pipeline.report.evidence import Wish
from pipeline.report.explaining import Explanation, Shown, explain
from pipeline.report.published import PublishedRun, latest_run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.report.explaining import Compared

RECORDED = Path(__file__).parents[1] / "recorded"
DIGITS = 0.5001e-4  # of what trec_eval prints
THRESHOLD = 0.5
TREC_EVAL = {"map": "map", "bpref": "bpref"}


def recorded(tool: str) -> dict[str, Any]:
    recording: dict[str, Any] = json.loads((RECORDED / f"{tool}.json").read_text("utf-8"))
    return recording


def predictions() -> pl.DataFrame:
    """Scores with one decimal, so that many equal a threshold, two of them not finite."""
    rng = np.random.default_rng(5)
    scores = np.round(rng.uniform(0, 1, 200), 1)
    labels = rng.random(200) < scores
    scores[[3, 50]] = np.nan, np.inf
    return pl.DataFrame({"score": scores, "label": labels, "id": [f"row {row}" for row in range(200)]})


def points(series: Sequence[dict[str, Any]], name: str) -> pl.DataFrame:
    rows = [(number, position) for number, row in enumerate(series) for position in row[name]]
    return pl.DataFrame(rows, schema={"series_id": pl.Int64, "position": pl.Int64}, orient="row")


def mentions(side: str) -> pl.DataFrame:
    rows = [
        (number, mention["start"], mention["end"], mention["label"])
        for number, row in enumerate(recorded("nervaluate")["documents"])
        for mention in row[side]
    ]
    names = {"doc_id": pl.Int64, "start": pl.Int64, "end": pl.Int64, "type": pl.String}
    return pl.DataFrame(rows, schema=names, orient="row")


def rankings() -> dict[str, pl.DataFrame]:
    recording = recorded("trec_eval")
    ranking = [(query, name, score) for query, run in recording["runs"].items() for name, score in run.items()]
    judged = [(query, name, label) for query, marks in recording["judgements"].items() for name, label in marks.items()]
    return {
        "ranking": pl.DataFrame(ranking, schema=["query_id", "doc_id", "score"], orient="row").cast(
            {"score": pl.Float64}
        ),
        "relevance": pl.DataFrame(judged, schema=["query_id", "doc_id", "relevance"], orient="row"),
    }


def benchmark() -> dict[str, pl.DataFrame]:
    """What TCPDBench was given: series with the marks of several annotators, some of whom marked nothing."""
    recording = recorded("tcpdbench")
    series = recording["series"]
    coders = [(number, int(annotator)) for number, row in enumerate(series) for annotator in row["annotations"]]
    marks = [
        (number, annotator, position)
        for number, annotator in coders
        for position in series[number]["annotations"][str(annotator)]
    ]
    names = {"series_id": pl.Int64, "annotator_id": pl.Int64}
    return {
        "predictions": points(series, "predicted"),
        "annotations": pl.DataFrame(marks, schema=names | {"position": pl.Int64}, orient="row"),
        "coders": pl.DataFrame(coders, schema=names, orient="row"),
        "series": pl.DataFrame({"series_id": range(len(series)), "n_obs": recording["length"]}),
    }


def as_published(row: dict[str, Any], n_obs: int, margin: int) -> dict[str, float]:
    """The metrics of one series by Van den Burg and Williams (2020, arXiv:2003.06222), index 0 being on every side.

    A true point is detected if a prediction lies within the margin of it, and a prediction detects one at most.
    """
    predicted = {0, *row["predicted"]}
    annotators = [{0, *marks} for marks in row["annotations"].values()]

    def detected(truth: set[int]) -> int:
        free, count = set(predicted), 0
        for point in sorted(truth):
            near = [prediction for prediction in free if abs(point - prediction) <= margin]
            count += bool(near)
            free -= {min(near, key=lambda prediction: (abs(point - prediction), prediction))} if near else set()
        return count

    def segments(edges: set[int]) -> list[set[int]]:
        bounds = [*sorted(edges), n_obs]
        return [set(range(*pair)) for pair in pairwise(bounds) if pair[0] < pair[1]]

    def covered(truth: set[int]) -> float:
        jaccard = [max(len(a & b) / len(a | b) for b in segments(predicted)) * len(a) for a in segments(truth)]
        return sum(jaccard) / n_obs

    precision = detected(set().union(*annotators)) / len(predicted)
    recall = float(np.mean([detected(truth) / len(truth) for truth in annotators]))
    f1 = 2 * precision * recall / (precision + recall)
    covering = float(np.mean([covered(truth) for truth in annotators]))
    return {"f1": f1, "precision": precision, "recall": recall, "covering": covering}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> PublishedRun:
    """Stages whose conventions are as far as can be from those of the tools."""
    folder = tmp_path_factory.mktemp("profiles")
    sweep: dict[str, Any] = {"thresholds": [0.2, THRESHOLD, 2.0], "boundary": ">", "invalid_scores": "missed"}
    sweep |= {"predictions": {"columns": {"id": "id"}}}
    ranking = {"ties": "expected", "missing_queries": "zero", "relevance_level": 2, "no_relevant": "null"}
    stages = [
        stage_config(folder / "sweep", "threshold_sweep", {"predictions": predictions()}, **sweep),
        stage_config(folder / "ranking", "ranking", rankings(), **ranking),
        stage_config(
            folder / "ner",
            "entity_recognition",
            {side: mentions(side) for side in ("gold", "predicted")},
            match="overlap",
            averages=["micro"],
        ),
    ]
    for tool, boundary in (("ruptures", "<="), ("roerich", "<")):
        series = recorded(tool)["series"]
        frames = {"predictions": points(series, "predicted"), "annotations": points(series, "true")}
        keys = {"margin": 5, "margin_boundary": boundary, "name": tool}
        stages.append(stage_config(folder / tool, "change_points", frames, **keys))
    keys = {"margin": 5, "margin_boundary": "<", "annotators": "union", "name": "tcpdbench"}
    stages.append(stage_config(folder / "tcpdbench", "change_points", benchmark(), **keys))
    uneven = {"margin": {"before": 2, "after": 5}, "name": "uneven"}
    stages.append(stage_config(folder / "uneven", "change_points", frames, **uneven))
    tables = [table for stage in stages for table in stage["stages"]]
    pipeline.run({"output": str(folder / "results"), "stages": tables})
    return latest_run(folder / "results")


def profiled(
    run: PublishedRun, stage: str, profile: str, metric: str = "", threshold: float | None = None
) -> Explanation:
    return explain(run, stage, Wish(metric, threshold), Shown(most_rows=1000, profile=profile))


def compared(explanation: Explanation) -> Compared:
    assert explanation.compared is not None
    return explanation.compared


def assert_effects_lead_there(comparison: Compared) -> None:
    """The effects are what lies between both numbers."""
    assert comparison.ours is not None
    assert comparison.theirs is not None
    total = comparison.ours + sum(effect.effect or 0 for effect in comparison.effects)
    assert total == pytest.approx(comparison.theirs, abs=1e-12)


def finite() -> tuple[np.ndarray, np.ndarray]:
    frame = predictions().filter(pl.col("score").is_finite())
    return frame["label"].to_numpy(), frame["score"].to_numpy()


@pytest.mark.parametrize(("metric", "threshold"), [("precision", 0.2), ("recall", THRESHOLD), ("f1", THRESHOLD)])
def test_ratios_of_scikit_learn(run: PublishedRun, metric: str, threshold: float) -> None:
    explanation = profiled(run, "threshold_sweep", "scikit-learn", metric, threshold)
    labels, scores = finite()
    expected = getattr(metrics, f"{metric}_score")(labels, scores >= threshold)
    assert compared(explanation).theirs == pytest.approx(expected, rel=1e-12)
    assert compared(explanation).theirs != explanation.value
    assert_effects_lead_there(compared(explanation))
    rows = next(section for section in explanation.sections if section.name == "at_threshold").rows
    equal = predictions().filter(pl.col("score") == threshold)
    assert sorted(rows["id"].to_list()) == sorted(equal["id"].to_list())


def test_rows_without_a_score_are_said_to_count(run: PublishedRun) -> None:
    words = explain(run, "threshold_sweep", Wish(), Shown(rows=False)).inputs
    below = "counted as below every threshold: 1 infinite_score, 1 nan_score"
    assert words[0] == f"predictions: 198 of 200 rows used; {below}"
    assert words[1].endswith("/predictions.parquet")


def test_where_nothing_is_retrieved_scikit_learn_has_a_zero(run: PublishedRun) -> None:
    comparison = compared(profiled(run, "threshold_sweep", "scikit-learn", "precision", 2.0))
    labels, scores = finite()
    with pytest.warns(metrics._classification.UndefinedMetricWarning):
        assert comparison.theirs == metrics.precision_score(labels, scores >= 2.0) == 0.0
    assert comparison.ours is None
    assert comparison.effects[-1].words == "0 in place of NULL"


def test_areas_of_scikit_learn(run: PublishedRun) -> None:
    labels, scores = finite()
    precision, recall, _ = metrics.precision_recall_curve(labels, scores)
    expected = {
        "average_precision": metrics.average_precision_score(labels, scores),
        "roc_auc": metrics.roc_auc_score(labels, scores),
        "pr_auc": metrics.auc(recall, precision),
    }
    for metric, value in expected.items():
        comparison = compared(profiled(run, "threshold_sweep", "scikit-learn", metric))
        assert comparison.theirs == pytest.approx(value, rel=1e-12), metric
        assert comparison.theirs != comparison.ours
        assert_effects_lead_there(comparison)


@pytest.mark.parametrize("metric", list(TREC_EVAL))
def test_means_of_trec_eval(run: PublishedRun, metric: str) -> None:
    explanation = profiled(run, "ranking", "trec_eval", metric)
    printed = recorded("trec_eval")["printed"]["10.0"]
    expected = np.mean([values[TREC_EVAL[metric]] for values in printed.values()])
    comparison = compared(explanation)
    assert comparison.theirs == pytest.approx(expected, rel=0, abs=DIGITS)
    assert comparison.ours != comparison.theirs
    if comparison.ours is not None:
        assert_effects_lead_there(comparison)
    units = next(section for section in explanation.sections if section.name == "units").rows
    assert units.height > 10
    for row in units.filter(pl.col("average_precision_tool").is_not_null()).to_dicts():
        assert row["average_precision_tool"] == pytest.approx(printed[row["query_id"]]["map"], rel=0, abs=DIGITS)


@pytest.mark.parametrize("tool", ["ruptures", "roerich"])
def test_series_of_ruptures_and_roerich(run: PublishedRun, tool: str) -> None:
    explanation = profiled(run, tool, tool)
    assert_effects_lead_there(compared(explanation))
    units = {row["series_id"]: row for row in explanation.sections[-1].rows.to_dicts()}
    published = run.chosen([tool])[0].tables["change_points_series"]
    assert 0 < len(units) < published.height
    for row in published.to_dicts():
        expected = recorded(tool)["series"][row["series_id"]]["precision_recall"]["5"]
        unit = units.get(row["series_id"])
        theirs = [row["precision"], row["recall"]] if unit is None else [unit["precision_tool"], unit["recall_tool"]]
        assert theirs == pytest.approx(expected, rel=1e-15)


def test_the_recorded_numbers_of_tcpdbench_are_those_of_its_paper() -> None:
    recording = recorded("tcpdbench")
    for row in recording["series"]:
        expected = as_published(row, recording["length"], 5)
        assert row["f1_precision_recall"]["5"] == pytest.approx(list(expected.values())[:3], rel=1e-12)
        assert row["covering"] == pytest.approx(expected["covering"], rel=1e-12)


@pytest.mark.parametrize("metric", ["f1", "covering"])
def test_series_of_tcpdbench(run: PublishedRun, metric: str) -> None:
    recording = recorded("tcpdbench")
    explanation = profiled(run, "tcpdbench", "tcpdbench", metric)
    comparison = compared(explanation)
    assert comparison.refused == ""
    assert comparison.theirs != comparison.ours
    assert_effects_lead_there(comparison)
    units = explanation.sections[-1].rows.to_dicts()
    assert len(units) == len(recording["series"])  # index 0 changes them all
    for unit in units:
        expected = as_published(recording["series"][unit["series_id"]], recording["length"], 5)
        assert {name: unit[f"{name}_tool"] for name in expected} == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("profile", "schema", "metric", "denominator"),
    [("nervaluate", "strict", "precision", "actual"), ("nervaluate-exact", "exact", "recall", "possible")],
)
def test_counts_of_nervaluate(run: PublishedRun, profile: str, schema: str, metric: str, denominator: str) -> None:
    counts = recorded("nervaluate")["overall"][schema]
    comparison = compared(profiled(run, "entity_recognition", profile, metric))
    assert comparison.theirs == pytest.approx(counts["correct"] / counts[denominator], rel=1e-15)
    assert_effects_lead_there(comparison)


def test_what_a_tool_cannot_have_is_said(run: PublishedRun) -> None:
    assert compared(profiled(run, "uneven", "ruptures")).refused.startswith("it has one margin for both sides")
    comparison = compared(profiled(run, "ruptures", "tcpdbench"))
    assert "annotator_id" in comparison.refused
    assert comparison.theirs is None
    with pytest.raises(UsageError, match="Did you mean `trec_eval`"):
        profiled(run, "ranking", "treceval")
    with pytest.raises(UsageError, match="scikit-learn has no fpr"):
        profiled(run, "threshold_sweep", "scikit-learn", "fpr")


def test_a_section_that_does_not_apply_is_shown_only_when_it_is_asked_for(run: PublishedRun) -> None:
    names = {section.name for section in explain(run, "threshold_sweep", Wish(), Shown()).sections}
    assert names == {"false_positives", "false_negatives", "nearest"}
    section = explain(run, "threshold_sweep", Wish(), Shown(("clusters",))).sections[0]
    assert "the config names no cluster" in section.absent


def test_a_profile_on_the_command_line(run: PublishedRun) -> None:
    results = run.folder.parent.parent
    called = call("explain", results, "threshold_sweep", "--profile", "scikit-learn", "-t", "0.5", "-n", "3")
    assert called.code == 0, called.err
    assert "Compared with scikit-learn" in called.out
    assert 'here boundary = ">"; there is retrieved: ' in " ".join(called.out.split())
    called = call("explain", results, "ranking", "--profile", "trec_eval", "--format", "csv")
    assert called.code == 0, called.err
    assert "average_precision_tool" in pl.read_csv(called.raw).columns
