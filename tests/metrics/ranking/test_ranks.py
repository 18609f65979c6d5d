"""Ranks of selected documents: against sorting every ranking, whatever the order and the blocks of the documents."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.ranking import average_precision
from pipeline.metrics.ranking.average_precision import Documents, RankCounter

if TYPE_CHECKING:
    import pytest

Document = tuple[int, float, str]  # ranking, value, name

DOCUMENTS = st.lists(
    st.tuples(st.integers(3, 6), st.sampled_from([-1.5, 0.0, 0.25, 1e300]), st.sampled_from(["", "9", "10", "é", "z"])),
    min_size=1,
    max_size=40,
)


def in_order(documents: list[Document]) -> list[Document]:
    """By ranking, then best value first, then last name first."""
    by_name = sorted(documents, key=lambda document: document[2].encode(), reverse=True)
    return sorted(by_name, key=lambda document: (document[0], -document[1]))


def as_documents(documents: list[Document], *, names: bool = True) -> Documents:
    return Documents(
        np.array([each[0] for each in documents], dtype=np.int32),
        np.array([each[1] for each in documents], dtype=np.float64),
        pl.Series([each[2] for each in documents], dtype=pl.String) if names else None,
    )


def counted(selected: Documents, documents: list[Document], cuts: list[int], *, names: bool) -> RankCounter:
    counter = RankCounter(selected)
    for start, end in pairwise([0, *sorted(cut % (len(documents) + 1) for cut in cuts), len(documents)]):
        counter.add(as_documents(documents[start:end], names=names))
    return counter


@given(DOCUMENTS, st.data(), st.lists(st.integers(0, 40), max_size=3))
def test_ranks_are_those_of_sorted_rankings(documents: list[Document], data: st.DataObject, cuts: list[int]) -> None:
    chosen = data.draw(st.sets(st.sampled_from(documents), min_size=1))
    selected = [each for each in in_order(documents) if each in chosen]
    counter = counted(as_documents(selected), documents, cuts, names=True)
    ordered = in_order(documents)
    first = {ranking: [each[0] for each in ordered].index(ranking) for ranking, _, _ in ordered}
    truth = [place - first[each[0]] for place, each in enumerate(ordered) if each in chosen]
    assert counter.before().tolist() == truth


@given(DOCUMENTS, st.data(), st.lists(st.integers(0, 40), max_size=3))
def test_ties_count_what_is_above_and_what_is_equal(
    documents: list[Document], data: st.DataObject, cuts: list[int]
) -> None:
    chosen = data.draw(st.sets(st.sampled_from(documents), min_size=1))
    selected = in_order(list({(ranking, value): (ranking, value, "") for ranking, value, _ in chosen}.values()))
    counter = counted(as_documents(selected, names=False), documents, cuts, names=False)
    documents_of_rankings = [[each for each in documents if each[0] == ranking] for ranking, _, _ in selected]
    assert counter.before().tolist() == [
        sum(each[1] > tie[1] for each in rest) for tie, rest in zip(selected, documents_of_rankings, strict=True)
    ]
    assert counter.equal().tolist() == [
        sum(each[1] == tie[1] for each in rest) for tie, rest in zip(selected, documents_of_rankings, strict=True)
    ]


def test_chunks_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    documents = [(int(q), float(v), f"d{n}") for n, (q, v) in enumerate(rng.integers(0, 30, (5_000, 2)))]
    selected = as_documents(in_order(documents[::50]))
    at_once = counted(selected, documents, [], names=True).before()
    monkeypatch.setattr(average_precision, "_CHUNK_ROWS", 7)
    assert counted(selected, documents, [1_000, 1_001], names=True).before().tolist() == at_once.tolist()
    assert at_once.max() > 100


def test_a_long_ranking_beside_short_ones() -> None:
    values = np.arange(100_000, dtype=np.float64)
    documents = Documents(np.where(values < 3, 8, 9).astype(np.int32), values)
    selected = Documents(np.array([8, 9, 9], dtype=np.int32), np.array([1.0, 99_990.0, 3.0]))
    counter = RankCounter(selected)
    counter.add(documents)
    assert counter.before().tolist() == [1, 9, 99_996]
    assert counter.equal().tolist() == [1, 1, 1]
