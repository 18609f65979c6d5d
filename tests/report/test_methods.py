"""Paragraphs for a methods section: true numbers, true choices, and citations that the pages have."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from cli.calls import call

from pipeline.report.published import PublishedRun, kept_run, latest_run
from pipeline.report.summary import paragraph_of
from pipeline.stages import STAGES, sections
from pipeline.stages.mentions import rule_in_words
from pipeline.stages.sections import Measured

if TYPE_CHECKING:
    from collections.abc import Mapping

pytest_plugins = ("report.two_runs",)

ROOT = Path(__file__).parents[2]
CITED = re.compile(
    r"((?:van den )?[A-Z][\w\u2013-]+(?:(?:, | and )[A-Z][\w\u2013-]+)*(?: et al\.)?) \(?((?:19|20)\d\d)\)?"
)
KINDS = [entry.kind for entry in STAGES]


@pytest.fixture(scope="module")
def run(two_runs: Path) -> PublishedRun:
    return kept_run(two_runs, "1")


def paragraph(run: PublishedRun, kind: str, **parameters: Any) -> str:  # noqa: ANN401
    """The paragraph of a stage, its parameters changed in the record."""
    stage = next(stage for stage in run.stages if stage.stage.kind == kind)
    return paragraph_of(run, replace(stage, parameters={**stage.parameters, **parameters}))


VARIANTS: dict[str, list[Mapping[str, Any]]] = {
    "before_after": [{"uncertainty": "bootstrap"}, {"window": None}],
    "threshold_sweep": [{"uncertainty": "bootstrap"}, {"method": "binned"}],
    "ranking": [{"ties": "expected"}, {"missing_queries": "zero"}],
    "entity_recognition": [{"match": "text_near"}, {"averages": ["micro", "semeval", "semeval_micro"]}],
    "geocoding": [{"distance": "geodesic", "candidates": "closest"}],
    "change_points": [{"annotators": "separate"}, {"uncertainty": "bootstrap"}],
    "compare": [{"correction": "bh"}, {"missing_units": "skip"}],
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_citation_is_among_the_sources(run: PublishedRun, kind: str) -> None:
    text = " ".join((ROOT / "docs" / "methods" / "sources.md").read_text("utf-8").split())
    cited = {
        match
        for variant in [{}, *VARIANTS[kind]]
        for match in CITED.findall(paragraph(run, kind, **variant))
        if match[0] not in {"Task", "Taken"}
    }
    for names, year in cited:
        surname = re.split(r",| and | et al", names)[0]
        assert re.search(rf"{re.escape(surname)}.{{0,400}}{year}", text), (surname, year)
    assert cited or kind == "geocoding"


@pytest.mark.parametrize("kind", KINDS)
def test_a_paragraph_is_sentences_with_the_version(run: PublishedRun, kind: str) -> None:
    for variant in [{}, *VARIANTS[kind]]:
        text = paragraph(run, kind, **variant)
        assert text.endswith(f"All numbers were computed with thresher {run.record['versions']['thresher']}.")
        sentences = re.split(r"(?<=\.) (?=[A-Z\d])", text)
        assert all(sentence[0].isupper() or sentence[0].isdigit() for sentence in sentences)
        assert not re.search(r"\{|\}|None|nan|  | \.|\.\.", text), text


def test_numbers_are_those_of_the_tables(run: PublishedRun) -> None:
    stage = next(stage for stage in run.stages if stage.stage.kind == "threshold_sweep")
    text = paragraph(run, "threshold_sweep")
    area = stage.tables["threshold_sweep_areas"].filter(pl.col("grouping") == "all").row(0, named=True)
    lower, upper = (f"{100 * area[f'roc_auc_{side}']:.1f}" for side in ("lower", "upper"))
    assert f"the ROC area was {100 * area['roc_auc']:.1f}% (95% CI {lower}\u2013{upper}%)" in text
    assert f"{area['n_positive']} of {area['n']} predictions are positive." in text
    assert "60 weighted, scored and labelled predictions were computed at the thresholds 0.5, 1 and 1.5;" in text
    assert "by the jackknife over values of page" in text
    assert "further groups" not in text
    assert "These limits are doubtful: the effective number of clusters" in text


def test_groups_are_named_where_there_is_no_total(run: PublishedRun) -> None:
    text = paragraph(run, "ranking")
    assert "For system b, mean average precision was" in text
    assert "There are 3 queries of system b." in text


def test_what_was_left_out_is_told_with_the_reason(run: PublishedRun) -> None:
    text = paragraph(run, "before_after")
    assert re.search(r"Left out were \d+ of \d+ pairs \(.*incomplete window.*\) and 1 of 6 events", text)
    assert "The window runs from 25 hours before an event to 30 hours after it, its end included." in text


@pytest.mark.parametrize(("p_value", "verdict"), [(0.5, "does not contradict equal"), (0.01, "contradicts equal")])
def test_the_verdict_of_the_placebo_test_is_that_of_its_p_value(
    run: PublishedRun, p_value: float, verdict: str
) -> None:
    stage = next(stage for stage in run.stages if stage.stage.kind == "before_after")
    tested = pl.DataFrame(
        {"grouping": "all", "threshold": [None], "p_value": p_value}, schema_overrides={"threshold": pl.Float64}
    )
    text = paragraph_of(run, replace(stage, tables={**stage.tables, "before_after_placebo": tested}))
    assert f"{verdict} false positive rates (p = {p_value:.2g}, " in text


def test_a_comparison_names_metrics_and_tests_in_words(run: PublishedRun) -> None:
    text = paragraph(run, "compare")
    assert "adjusted p = 0.0003 by the paired t test)" in text
    stage = next(stage for stage in run.stages if stage.stage.kind == "compare")
    pooled = stage.tables["compare_tests"].with_columns(metric=pl.lit("pooled_f1"), test=pl.lit("randomization"))
    text = paragraph_of(run, replace(stage, tables={**stage.tables, "compare_tests": pooled}))
    assert re.search(r"In pooled F1, a had .* by the randomization test\)", text)


def test_no_intervals_are_said_to_be_none(run: PublishedRun) -> None:
    assert "No intervals were computed." in paragraph(run, "geocoding", uncertainty="none")


# Sentences that stages share -----------------------------------------------------------------------------------------


def measured(**parameters: Any) -> Measured:  # noqa: ANN401
    return Measured({"boundary": ">=", "confidence": 0.95, **parameters}, {}, {}, {}, {})


@pytest.mark.parametrize(
    ("thresholds", "words"),
    [
        ({"start": 0.0, "stop": 1.0, "count": 101}, "at 101 evenly spaced thresholds from 0 to 1"),
        ([0.5], "at the threshold 0.5"),
        ([1.0, 2.5], "at the thresholds 1 and 2.5"),
        ([float(number) for number in range(1200)], "at 1,200 thresholds from 0 to 1199"),
        ("distinct", "at every distinct score"),
    ],
)
def test_thresholds_in_words(thresholds: object, words: str) -> None:
    assert sections.thresholds(measured(thresholds=thresholds)) == words


def test_criteria_in_words() -> None:
    none = {"beta": None, "min_precision": None, "min_recall": None, "confidence": None}
    points = [{**none, "beta": 0.5}, {**none, "min_precision": 0.9, "confidence": 0.95}, {**none, "min_recall": 0.8}]
    words = sections.criteria(measured(operating_points=points))
    assert "the one with the highest F0.5, " in words
    assert "recall at a precision of at least 0.9, which holds on new data with 95% confidence" in words
    assert "and the one with the highest precision at a recall of at least 0.8;" in words


def test_costs_capacities_and_given_thresholds_in_words() -> None:
    cost = {"fp": 1.0, "fn": 20.0, "tp": -2.5, "tn": 0.0}
    asked: list[dict[str, Any]] = [{"cost": cost}, {"max_alerts": 5000}, {"max_alert_share": 0.01}, {"threshold": 6.54}]
    none = {"beta": None, "min_precision": None, "min_recall": None, "confidence": None}
    words = sections.criteria(measured(operating_points=[{**none, **point} for point in asked]))
    assert "the lowest cost, 1 for a false positive, 20 for a false negative and -2.5 for a true positive" in words
    assert "the lowest one that retrieves at most 5,000" in words
    assert "the lowest one that retrieves at most 1% of all;" in words
    assert words.endswith("A threshold of 6.54 was given beforehand.")
    alone = sections.criteria(measured(operating_points=[{**none, "threshold": at} for at in (1.0, 2.0)]))
    assert alone == "Thresholds of 1 and 2 were given beforehand."


def test_only_the_first_groups_are_given_and_the_others_counted() -> None:
    rows = pl.DataFrame(
        {
            "grouping": ["g"] * 6,
            "by:g": [f"<{number}>" for number in range(6)],
            "precision": [0.5, None, 0.5, 0.5, 0.5, 0.5],
            "precision_lower": [0.4, None, None, None, None, None],
            "precision_upper": [0.6, None, None, None, None, None],
            "interval_quality": ["good"] * 5 + ["few_clusters"],
        }
    )
    sentences = list(sections.results(rows, {"precision": "precision"}, "90%"))
    assert sentences == [
        "for g <0>, precision was 50.0% (90% CI 40.0\u201360.0%).",
        "for g <1>, no precision is defined.",
        "for g <2>, precision was 50.0%.",
        "for g <3>, precision was 50.0%.",
        "Numbers of 2 further groups are in the tables.",
    ]


def test_rules_of_matching_in_words() -> None:
    rule = {"match": "overlap", "minimum_overlap": 0.5, "overlap_of": "gold", "match_type": True}
    rule |= {"assignment": "file_order", "max_centre_distance": 10.0}
    words = rule_in_words(rule)
    assert "that have at least 0.5 of the characters in the gold mention in common, and whose types are equal" in words
    assert words.endswith("taking the first prediction that is free")


# The command ---------------------------------------------------------------------------------------------------------


def test_the_command_gives_a_paragraph_to_paste(two_runs: Path) -> None:
    one = call("show", two_runs, "ranking", "--methods")
    assert one.code == 0
    assert one.out.startswith("Rankings of 48 retrieved documents")
    assert one.out.count("\n\n") == 0
    several = call("show", two_runs, "--methods", "--format", "latex").out
    stages = [stage.name.replace("_", r"\_") for stage in latest_run(two_runs).stages]
    assert re.findall(r"\\subsection\*\{(.*)\}", several) == stages
    assert re.search(r"\d\\% \(95\\% CI \d+\.\d--\d+\.\d\\%\)", several)
    assert "<img" not in several
