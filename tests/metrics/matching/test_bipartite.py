"""Matchings of many small graphs: against all matchings enumerated, scipy, and the loop of the published scripts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array
from scipy.sparse.csgraph import maximum_bipartite_matching

from pipeline.metrics.matching import Edges, first_come_matching, maximum_matching

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.metrics.matching import Ints

Graph: TypeAlias = "dict[tuple[int, int], float]"

CLOSENESS = st.sampled_from([0.2, 0.5, 0.75, 1.0])
GRAPHS = st.dictionaries(st.tuples(st.integers(0, 4), st.integers(0, 4)), CLOSENESS, max_size=12)


def edges_of(graph: Graph) -> Edges:
    pairs = np.array(list(graph), dtype=np.int64).reshape(-1, 2)
    return Edges(pairs[:, 0], pairs[:, 1], np.array(list(graph.values()), dtype=np.float64))


def largest(gold: Ints, predicted: Ints, shape: tuple[int, int]) -> int:
    """Pairs of a largest matching, by Hopcroft and Karp."""
    indices = gold.astype(np.int32), predicted.astype(np.int32)  # before SciPy 1.14 wider indices are refused
    matched = maximum_bipartite_matching(coo_array((np.ones(len(gold)), indices), shape=shape).tocsr())
    return int((matched >= 0).sum())


def all_matchings(graph: Graph) -> Iterator[Graph]:
    if not graph:
        yield {}
        return
    (pair, closeness), *others = graph.items()
    yield from all_matchings(dict(others))
    free = {other: value for other, value in others if other[0] != pair[0] and other[1] != pair[1]}
    for matching in all_matchings(free):
        yield {pair: closeness, **matching}


def merit(matching: Graph, score: list[float]) -> tuple[float, ...]:
    """What is compared first, second, …: matched at every threshold from above, identical pairs, closeness."""
    counts = [sum(score[predicted] >= least for _, predicted in matching) for least in sorted(set(score), reverse=True)]
    identical = sum(closeness == 1 for closeness in matching.values())
    return (*counts, identical, sum(math.floor(1000 * closeness) for closeness in matching.values()))


@given(graph=GRAPHS, score=st.lists(st.sampled_from([0.1, 0.4, 0.9]), min_size=5, max_size=5))
def test_it_is_the_best_of_all_matchings_at_every_threshold(graph: Graph, score: list[float]) -> None:
    actual = maximum_matching(edges_of(graph), 5, np.array(score))
    matching = {
        (gold, int(predicted)): graph[gold, predicted] for gold, predicted in enumerate(actual) if predicted >= 0
    }
    assert len({predicted for _, predicted in matching}) == len(matching)
    everything = list(all_matchings(graph))
    assert merit(matching, score) == max(merit(each, score) for each in everything)
    for least in score:
        reach = max(sum(score[predicted] >= least for _, predicted in each) for each in everything)
        assert sum(score[predicted] >= least for _, predicted in matching) == reach


@pytest.mark.parametrize("density", [0.5, 1.5, 3.0])
def test_size_is_that_of_hopcroft_and_karp(density: float) -> None:
    rng = np.random.default_rng(1)
    size = 2000
    count = int(size * density)
    keys = np.unique(rng.integers(0, size, count) * size + rng.integers(0, size, count))
    edges = Edges(keys // size, keys % size, rng.random(len(keys)))
    expected = largest(edges.gold, edges.predicted, (size, size))
    for score in (np.zeros(size), rng.random(size), rng.integers(0, 5, size) / 5):
        actual = maximum_matching(edges, size, score)
        chosen = actual[actual >= 0]
        assert len(np.unique(chosen)) == len(chosen) == expected
        assert {(gold, actual[gold]) for gold in np.flatnonzero(actual >= 0)} <= set(
            zip(edges.gold.tolist(), edges.predicted.tolist(), strict=True)
        )


def test_a_component_larger_than_one_call_is_matched_at_every_threshold() -> None:
    rng = np.random.default_rng(2)
    gold, predicted = (each.ravel() for each in np.meshgrid(np.arange(300), np.arange(700), indexing="ij"))
    kept = (gold + predicted) % 7 < 3
    edges = Edges(gold[kept], predicted[kept], rng.random(kept.sum()))
    score = rng.integers(0, 50, 700) / 50
    actual = maximum_matching(edges, 300, score)
    for least in (0.0, 0.5, 0.8, 0.98):
        allowed = score[edges.predicted] >= least
        expected = largest(edges.gold[allowed], edges.predicted[allowed], (300, 700))
        assert (score[actual[actual >= 0]] >= least).sum() == expected


@given(graph=GRAPHS, other=GRAPHS, score=st.lists(st.sampled_from([0.1, 0.4, 0.9]), min_size=5, max_size=5))
def test_what_is_beside_a_component_does_not_change_its_matching(
    graph: Graph, other: Graph, score: list[float]
) -> None:
    moved = {(gold + 5, predicted + 5): closeness for (gold, predicted), closeness in graph.items()}
    alone = maximum_matching(edges_of(graph), 5, np.array(score))
    beside = maximum_matching(edges_of(other | moved), 10, np.array([*score[::-1], *score]))[5:]
    assert np.where(beside >= 0, beside - 5, -1).tolist() == alone.tolist()


@given(graph=GRAPHS)
def test_first_come_is_the_loop_over_both_files(graph: Graph) -> None:
    actual = first_come_matching(edges_of(graph), 5, 5)
    used: set[int] = set()
    expected = []
    for gold in range(5):
        free = [predicted for predicted in range(5) if (gold, predicted) in graph and predicted not in used]
        used |= set(free[:1])
        expected.append(free[0] if free else -1)
    assert actual.tolist() == expected


def test_nothing_to_match() -> None:
    assert maximum_matching(edges_of({}), 2, np.zeros(3)).tolist() == [-1, -1]
    assert maximum_matching(edges_of({}), 0, np.zeros(0)).tolist() == []
    assert first_come_matching(edges_of({}), 2, 0).tolist() == [-1, -1]
