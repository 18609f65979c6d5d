from __future__ import annotations

import numpy as np
import pytest

from pipeline.metrics.ranking.random_selection import average_precision_moments
from pipeline.stages.simulations.ranking import (
    DOCUMENTS_PER_QUERY,
    RANKING_SYSTEMS,
    RELEVANT_PER_QUERY,
    System,
    simulate,
)


@pytest.mark.parametrize("m", RELEVANT_PER_QUERY)
def test_a_system_that_knows_nothing_is_random_selection(m: int) -> None:
    assert System("", 0.0).average_precision(DOCUMENTS_PER_QUERY, m) == pytest.approx(
        average_precision_moments(DOCUMENTS_PER_QUERY, m)[0]
    )


def test_true_average_precision_is_the_mean_of_many_rankings() -> None:
    rng = np.random.default_rng(1)
    score = rng.standard_normal((20_000, 50)) + 1.5 * (np.arange(50) < 4)
    ranks = np.sort(np.argsort(np.argsort(-score, axis=1), axis=1)[:, :4] + 1, axis=1)
    values = (np.arange(1, 5) / ranks).mean(axis=1)
    error = values.std() / np.sqrt(len(values))
    assert System("", 1.5).average_precision(50, 4) == pytest.approx(values.mean(), abs=4 * error)


def test_all_systems_rank_the_same_documents() -> None:
    ranking, relevance = simulate(seed=1, queries=4)
    assert ranking.height == len(RANKING_SYSTEMS) * relevance.height == len(RANKING_SYSTEMS) * 4 * DOCUMENTS_PER_QUERY
    sums = relevance.group_by("query_id", maintain_order=True).sum()["relevance"].to_list()
    assert sums == [*RELEVANT_PER_QUERY, RELEVANT_PER_QUERY[0]]
