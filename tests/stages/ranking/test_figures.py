"""Figures of ranking from a few rows of its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from deriving import figures_of, result_tables, stage_of

if TYPE_CHECKING:
    from deriving import Rows

KIND = "ranking"


def test_the_mean_stands_beside_chance_with_its_spread() -> None:
    summary = [
        {"grouping": "system", "system": "a", "n_queries": 2, "map": 0.5, "map_expected": 0.1, "map_variance": 0.01},
        {"grouping": "system", "system": "b", "n_queries": 9, "map": None, "map_expected": None},
    ]
    figure = figures_of(KIND, {"summary": summary}, ["system"], confidence=0.9)["map"]
    assert figure.across
    assert figure.frame["group"].to_list() == ["b", "a"]
    assert figure.frame["map"].to_list() == [None, 0.5]
    assert figure.frame["map_expected_lower"].to_list() == [None, 0.0]  # an average precision is never below 0
    assert figure.frame["map_expected_upper"].to_list() == [None, pytest.approx(0.1 + 1.6448536 * 0.1)]
    assert "hold 90% of random orders" in figure.caption


def test_chance_at_a_cutoff_is_the_mean_over_all_queries_or_unknown() -> None:
    means = [{"k": k, "precision": 0.5, "recall": 0.4} for k in (5, 1)]
    cutoffs: Rows = [
        {"query_id": 1, "k": 1, "precision": 1.0, "precision_expected": 0.2},
        {"query_id": 2, "k": 1, "precision": 0.0, "precision_expected": 0.4},
        {"query_id": 3, "k": 1, "precision": None, "precision_expected": 0.9},
        {"query_id": 1, "k": 5, "precision": 1.0, "precision_expected": 0.2},
        {"query_id": 2, "k": 5, "precision": 0.0, "precision_expected": None},
    ]
    figures = figures_of(KIND, {"cutoff_means": means, "cutoffs": cutoffs})
    frame = figures["precision_at_k"].frame
    assert frame.select("k", "precision").rows() == [(1, 0.5), (5, 0.5)]
    assert frame["precision_expected"].to_list() == [pytest.approx(0.3), None]
    assert figures["recall_at_k"].x.logarithmic


def test_queries_are_counted_by_their_average_precision() -> None:
    queries = [{"query_id": index, "average_precision": value} for index, value in enumerate((0.0, 0.05, 1.0, None))]
    figure = figures_of(KIND, {"queries": queries})["average_precision_of_queries"]
    counted = {round(middle, 3): number for middle, number in figure.frame.select("bin", "number").rows()}
    assert (counted[0.025], counted[0.075], counted[0.975], sum(counted.values())) == (1, 1, 1, 3)
    assert "it is not defined there: 1 of 4 in all" in figure.caption


def test_key_numbers_of_a_group_have_chance_beside_the_mean() -> None:
    summary = [{"n_queries": 2, "map": 0.5, "map_lower": 0.4, "map_expected": 0.1, "interval_quality": "few_clusters"}]
    numbers = stage_of(KIND).key_numbers(result_tables(KIND, {"summary": summary}))
    assert [(number.value, number.quality) for number in numbers] == [
        (0.5, "few_clusters"),
        (None, ""),
        (None, ""),
        (0.1, ""),
    ]
