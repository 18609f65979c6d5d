"""Random rankings: hits, average precision and nDCG are right, or the run says what is wrong."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from fuzz.driver import each_case, fault
from fuzz.inputs import KEY_FORMS, MOST_ROWS, judged, keyed, ran, told, whole_numbers

if TYPE_CHECKING:
    import random
    from pathlib import Path

pytestmark = pytest.mark.fuzz

CUTOFFS = [1, 3, 5]
KEYS: dict[str, Any] = {"cutoffs": CUTOFFS, "measures": ["nDCG@3"]}
Pair = tuple[int, int]
Measured = tuple[int, float | None, float | None, list[int]]


def test_hits_and_average_precision_of_random_rankings_are_right(tmp_path: Path) -> None:
    def judge(draw: random.Random) -> str | None:
        form = draw.choice(KEY_FORMS)
        retrieved = sorted({(draw.randrange(3), draw.randrange(6)) for _ in range(draw.randrange(MOST_ROWS))})
        marked = sorted({(draw.randrange(3), draw.randrange(6)) for _ in range(draw.randrange(MOST_ROWS))})
        grades = [draw.choice((0, 1, 2)) for _ in marked]
        order = draw.sample(range(100), len(retrieved))
        frames = {
            "ranking": {
                "query_id": keyed([query for query, _ in retrieved], form),
                "doc_id": keyed([document for _, document in retrieved], form),
                "score": whole_numbers(draw, order),
            },
            "relevance": {
                "query_id": keyed([query for query, _ in marked], form),
                "doc_id": keyed([document for _, document in marked], form),
                "relevance": whole_numbers(draw, grades),
            },
        }
        stage = {"kind": "ranking", "missing_queries": draw.choice(("zero", "skip")), **KEYS}
        outcome = ran(draw, tmp_path, frames, stage)
        if outcome.code:
            unfounded = None if not retrieved or not marked else "refused without cause"
            return fault(outcome) or (unfounded and f"{unfounded}: {outcome.text}\n{told(frames, stage)}")
        graded = dict(zip(marked, grades, strict=True))
        best_first = [pair for _, pair in sorted(zip(order, retrieved, strict=True), reverse=True)]
        queries = {query for query, _ in retrieved} | {q for q, _ in marked if stage["missing_queries"] == "zero"}
        expected = {keyed([query], form)[0].as_py(): _measured(query, best_first, graded) for query in queries}
        hits: dict[Any, list[int]] = {}
        for row in outcome.tables["ranking_cutoffs"].sort("k").to_dicts():
            hits.setdefault(row["query_id"], []).append(row["hits"])
        seen = {
            row["query_id"]: (row["n_relevant"], row["average_precision"], row["nDCG@3"], hits[row["query_id"]])
            for row in outcome.tables["ranking_queries"].to_dicts()
        }
        return None if _are_alike(seen, expected) else judged(outcome, seen, expected, frames, stage)

    each_case(25, judge)


def _measured(query: int, best_first: list[Pair], graded: dict[Pair, int]) -> Measured:
    gains = [graded.get(pair, 0) for pair in best_first if pair[0] == query]
    best = sorted((grade for pair, grade in graded.items() if pair[0] == query), reverse=True)
    is_hit, n_relevant = [gain >= 1 for gain in gains], sum(grade >= 1 for grade in best)
    precisions = [sum(is_hit[:place]) / place for place, hit in enumerate(is_hit, start=1) if hit]
    average = math.fsum(precisions) / n_relevant if n_relevant else None
    ndcg = _discounted(gains[:3]) / _discounted(best[:3]) if n_relevant else None
    return n_relevant, average, ndcg, [sum(is_hit[:k]) for k in CUTOFFS]


def _discounted(gains: list[int]) -> float:
    return math.fsum(gain / math.log2(1 + rank) for rank, gain in enumerate(gains, start=1))


def _are_alike(seen: dict[Any, Measured], expected: dict[Any, Measured]) -> bool:
    def near(left: float | None, right: float | None) -> bool:
        return left == right or (left is not None and right is not None and math.isclose(left, right, rel_tol=1e-12))

    def same(left: Measured, right: Measured) -> bool:
        return left[0] == right[0] and all(map(near, left[1:3], right[1:3])) and left[3] == right[3]

    return seen.keys() == expected.keys() and all(same(seen[key], expected[key]) for key in seen)
