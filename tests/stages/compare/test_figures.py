"""Figures of compare from a few rows of its tables."""

from __future__ import annotations

from typing import Any

import pytest
from deriving import figures_of, result_tables, stage_of

from pipeline.stages.compare.stage import names_of_metrics

KIND = "compare"
LIMITS = {"difference_lower": -0.2, "difference_upper": 0.1, "interval_quality": "good"}


def pair(metric: str, a: str | None, b: str, means: tuple[float, float], **values: Any) -> dict[str, Any]:  # noqa: ANN401
    systems = {"metric": metric, "system_a": a, "system_b": b, "mean_a": means[0], "mean_b": means[1]}
    return systems | {"difference": means[0] - means[1], "test": "paired_t"} | values


def posterior(metric: str, probability: float) -> dict[str, Any]:
    limits = {f"mean_{side}_{end}": 0.5 for side in "ab" for end in ("lower", "upper")}
    row = pair(metric, "a", "b", (0.6, 0.4)) | limits | {"probability_a_better": probability}
    return {name: value for name, value in row.items() if name not in {"difference", "test"}}


def test_a_metric_has_means_of_systems_and_differences_of_pairs() -> None:
    tests = [
        pair("overlap", "a", "b", (0.6, 0.4), **LIMITS),
        pair("overlap", "a", "b", (0.6, 0.4), test="wilcoxon"),
        pair("overlap", "a", "c", (0.6, 0.7), **LIMITS),
        pair("overlap", "b", "c", (0.4, 0.7), **LIMITS),
    ]
    figures = figures_of(KIND, {"tests": tests})
    assert figures["means_overlap"].frame.select("system", "mean").rows() == [("a", 0.6), ("b", 0.4), ("c", 0.7)]
    differences = figures["differences_overlap"]
    assert differences.frame["pair"].to_list() == ["a − b", "a − c", "b − c"]
    assert differences.frame["difference"].to_list() == pytest.approx([0.2, -0.1, -0.3])
    assert [(rule.value, rule.axis) for rule in differences.rules] == [(0.0, "y")]


def test_a_mean_that_differs_by_the_system_beside_it_says_so() -> None:
    tests = [pair("overlap", None, "b", (0.6, 0.4)), pair("overlap", None, "c", (0.5, 0.7))]
    frame = figures_of(KIND, {"tests": tests})["means_overlap"].frame
    assert frame.select("system", "mean").rows() == [
        ("b", 0.4),
        ("c", 0.7),
        ("null (beside b)", 0.6),
        ("null (beside c)", 0.5),
    ]


def test_pooled_ratios_stand_side_by_side_with_the_worst_quality() -> None:
    tests = [
        pair("pooled_f1", "a", "b", (0.6, 0.4), **LIMITS),
        pair("pooled_recall", "a", "b", (0.8, 0.4), **(LIMITS | {"interval_quality": "few_clusters"})),
    ]
    figures = figures_of(KIND, {"tests": tests})
    assert list(figures) == ["means_pooled", "differences_pooled"]
    frame = figures["differences_pooled"].frame
    assert frame.select("pair", "pooled_recall_lower", "interval_quality").rows() == [("a − b", -0.2, "few_clusters")]
    assert [line.role for line in figures["differences_pooled"].series] == ["f1", "recall"]
    assert figures["means_pooled"].frame["pooled_f1"].to_list() == [0.6, 0.4]


def test_posteriors_give_the_means_their_limits() -> None:
    figures = figures_of(KIND, {"posteriors": [posterior("pooled_f1", 0.9)]}, confidence=0.9)
    assert figures["means_pooled"].series[0].lower == "pooled_f1_lower"
    assert "probability of 90%" in figures["means_pooled"].caption
    assert figures["probabilities"].frame["pooled_f1"].to_list() == [0.9]


def test_names_of_metrics_are_plain_and_differ() -> None:
    names = names_of_metrics(["F1", "f1", "</script>", "§", "pooled", "f1_1"])
    assert names == {"F1": "f1", "f1": "f1_1", "</script>": "script", "§": "1", "pooled": "pooled_1", "f1_1": "f1_1_1"}


def test_key_numbers_count_clear_differences_and_name_pairs() -> None:
    tests = [
        pair("ap", "a", "b", (0.6, 0.4), p_adjusted=0.01),
        pair("pooled_f1", "a", "b", (0.6, 0.4), p_adjusted=0.2, **LIMITS),
    ]
    numbers = stage_of(KIND).key_numbers(result_tables(KIND, {"tests": tests}))
    assert [(number.name, number.meaning, number.value, number.quality) for number in numbers] == [
        ("Clear differences", "of 2 comparisons, at 5%", 1.0, ""),
        ("a − b", "difference in pooled_f1", pytest.approx(0.2), "good"),
    ]


def test_without_tests_probabilities_are_the_key() -> None:
    numbers = stage_of(KIND).key_numbers(result_tables(KIND, {"posteriors": [posterior("pooled_recall", 0.9)]}))
    assert [(number.name, number.meaning, number.value) for number in numbers] == [
        ("a − b", "probability of a higher pooled_recall", 0.9)
    ]
