"""Matching of mentions: against augmenting paths by hand, counted multisets, and cases of the source text."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_mentions import document_counts

from pipeline.metrics.matching import Mentions, match_near, match_overlapping, match_spans, match_texts

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Row: TypeAlias = "tuple[int, int, int, int, float]"

ROW = st.builds(
    lambda document, start, length, code, score: (document, start, start + length, code, score),
    st.integers(0, 2),
    st.integers(0, 9),
    st.integers(0, 5),
    st.integers(0, 1),
    st.sampled_from([0.25, 0.5, 0.75]),
)
ROWS = st.lists(ROW, max_size=9)


def mentions(*rows: tuple[float, ...]) -> Mentions:
    """Mentions from (document, start, end, code) or, with a fifth number, their scores."""
    columns = list(zip(*rows, strict=True)) or [()] * 4
    document, start, end, code = (np.array(column, dtype=np.int64) for column in columns[:4])
    return Mentions(document, start, end, code, np.array(columns[4]) if len(columns) > 4 else None)


def in_document(*spans: tuple[int, int]) -> Mentions:
    return mentions(*((0, start, end, 0) for start, end in spans))


def shares_characters(gold: Row, predicted: Row) -> bool:
    return min(gold[2], predicted[2]) > max(gold[1], predicted[1])


RULES: dict[str, tuple[Callable[[Mentions, Mentions], NDArray[np.int64]], Callable[[Row, Row], bool]]] = {
    "span": (match_spans, lambda gold, predicted: gold[1:3] == predicted[1:3]),
    "text": (match_texts, lambda _gold, _predicted: True),
    "overlap": (match_overlapping, shares_characters),
    "near": (
        lambda gold, predicted: match_near(gold, predicted, max_centre_distance=1.5),
        lambda gold, predicted: abs(sum(gold[1:3]) - sum(predicted[1:3])) / 2 < 1.5,
    ),
}


def allowed(rule: str, gold: Row, predicted: Row) -> bool:
    return (gold[0], gold[3]) == (predicted[0], predicted[3]) and RULES[rule][1](gold, predicted)


def largest(rule: str, gold: list[Row], predicted: list[Row]) -> int:
    """Size of a largest matching by augmenting paths (Kuhn 1955)."""
    owner: dict[int, int] = {}

    def augment(row: int, seen: set[int]) -> bool:
        for other in range(len(predicted)):
            if other not in seen and allowed(rule, gold[row], predicted[other]):
                seen.add(other)
                if other not in owner or augment(owner[other], seen):
                    owner[other] = row
                    return True
        return False

    return sum(augment(row, set()) for row in range(len(gold)))


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("rule", RULES)
@given(gold=ROWS, predicted=ROWS)
def test_a_largest_matching_at_every_threshold(rule: str, gold: list[Row], predicted: list[Row]) -> None:
    matched = RULES[rule][0](mentions(*(row[:4] for row in gold)), mentions(*predicted)).tolist()
    pairs = [(gold[row], predicted[other]) for row, other in enumerate(matched) if other >= 0]
    assert len({other for other in matched if other >= 0}) == len(pairs)
    assert all(allowed(rule, *pair) for pair in pairs)
    for least in (0.25, 0.5, 0.75):
        retrieved = [row for row in predicted if row[4] >= least]
        assert sum(row[4] >= least for _, row in pairs) == largest(rule, gold, retrieved)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("scored", [True, False])
@pytest.mark.parametrize("rule", RULES)
@given(gold=ROWS, predicted=ROWS, data=st.data())
def test_the_order_of_rows_does_not_matter(
    rule: str, *, scored: bool, gold: list[Row], predicted: list[Row], data: st.DataObject
) -> None:
    def pairs(golds: list[Row], predictions: list[Row]) -> Counter[tuple[Row, Row]]:
        others = mentions(*(row if scored else row[:4] for row in predictions))
        actual = RULES[rule][0](mentions(*(row[:4] for row in golds)), others)
        without = (lambda row: row) if scored else (lambda row: (*row[:4], 0.0))
        return Counter(
            ((*golds[row][:4], 0.0), without(predictions[other])) for row, other in enumerate(actual) if other >= 0
        )

    shuffled = data.draw(st.permutations(gold)), data.draw(st.permutations(predicted))
    assert pairs(gold, predicted) == pairs(*shuffled)


def test_repeated_predictions_go_to_gold_mentions_elsewhere_in_the_order_of_their_scores() -> None:
    gold = mentions((0, 0, 0, 1), (0, 5, 5, 1))
    for scores in ([0.25, 0.5], [0.5, 0.25]):
        matched = match_texts(gold, mentions(*((0, 2, 3, 1, score) for score in scores)))
        assert [scores[row] for row in matched] == [0.5, 0.25]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("rule", RULES)
@given(gold=ROWS, predicted=ROWS)
def test_documents_are_independent_and_their_counts_add_up(rule: str, gold: list[Row], predicted: list[Row]) -> None:
    golds, predictions = mentions(*(row[:4] for row in gold)), mentions(*predicted)
    matched = RULES[rule][0](golds, predictions)
    tp, fp, fn = document_counts(golds, predictions, matched, 4)
    assert (tp + fn).tolist() == [sum(row[0] == document for row in gold) for document in range(4)]
    assert (tp + fp).tolist() == [sum(row[0] == document for row in predicted) for document in range(4)]
    for document in range(3):
        rows, others = np.flatnonzero(golds.document == document), np.flatnonzero(predictions.document == document)
        alone = RULES[rule][0](golds.take(rows), predictions.take(others))
        assert [others[other] if other >= 0 else -1 for other in alone] == matched[rows].tolist()


@given(gold=ROWS, predicted=ROWS)
def test_equal_spans_and_texts_are_multisets(gold: list[Row], predicted: list[Row]) -> None:
    golds, predictions = mentions(*(row[:4] for row in gold)), mentions(*(row[:4] for row in predicted))
    spans = Counter(row[:4] for row in gold) & Counter(row[:4] for row in predicted)
    assert (match_spans(golds, predictions) >= 0).sum() == spans.total()
    texts = Counter((row[0], row[3]) for row in gold) & Counter((row[0], row[3]) for row in predicted)
    matched = match_texts(golds, predictions)
    assert (matched >= 0).sum() == texts.total()
    exact = sum(gold[row][1:3] == predicted[other][1:3] for row, other in enumerate(matched) if other >= 0)
    assert exact == spans.total()


@given(gold=ROWS, predicted=ROWS, rule=st.sampled_from(["overlap", "near", "text"]))
def test_the_order_of_file_is_the_loop_of_the_published_scripts(
    gold: list[Row], predicted: list[Row], rule: str
) -> None:
    golds, predictions = mentions(*(row[:4] for row in gold)), mentions(*(row[:4] for row in predicted))
    if rule == "near":
        actual = match_near(golds, predictions, max_centre_distance=1.5, assignment="file_order")
    elif rule == "text":
        actual = match_texts(golds, predictions, assignment="file_order")
    else:
        actual = match_overlapping(golds, predictions, assignment="file_order")
    free, expected = list(range(len(predicted))), []
    for row in gold:
        first = next((other for other in free if allowed(rule, row, predicted[other])), -1)
        expected.append(first)
        free = [other for other in free if other != first]
    assert actual.tolist() == expected


def test_taking_identical_spans_first_is_not_the_largest_matching() -> None:
    gold, predicted = in_document((0, 10), (8, 12)), in_document((0, 10), (0, 3))
    assert match_spans(gold, predicted).tolist() == [0, -1]
    assert match_overlapping(gold, predicted).tolist() == [1, 0]


def test_identical_spans_are_kept_where_that_costs_nothing() -> None:
    gold, predicted = in_document((0, 10), (4, 8), (4, 8)), in_document((4, 8), (0, 10), (5, 6))
    assert match_overlapping(gold, predicted)[[0]].tolist() == [1]
    assert sorted(match_overlapping(gold, predicted).tolist()) == [0, 1, 2]
    crossed = match_overlapping(in_document((0, 5), (0, 9)), in_document((0, 9), (0, 5)))
    assert crossed.tolist() == [1, 0]


def test_of_matchings_with_as_many_identical_spans_the_closest() -> None:
    assert match_overlapping(in_document((0, 10)), in_document((9, 12), (2, 9))).tolist() == [1]
    assert match_overlapping(in_document((0, 10)), in_document((0, 20), (2, 10))).tolist() == [1]
    for spans in ((9, 14), (13, 18)), ((11, 16), (15, 20)), ((15, 20), (11, 16)):
        distances = [abs(start - 12) for start, _ in spans]
        actual = match_near(in_document((12, 17)), in_document(*spans), max_centre_distance=20)
        assert actual.tolist() == [distances.index(min(distances))]
    near = match_near(in_document((10, 14), (20, 24)), in_document((21, 25), (11, 15)), max_centre_distance=20)
    assert near.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("share", "of", "expected"),
    [(0.1, "union", 0), (0.11, "union", -1), (0.3, "gold", 0), (0.31, "gold", -1), (0.0, "union", 0)],
)
def test_minimum_share_is_reached_exactly(share: float, of: str, expected: int) -> None:
    """3 characters in common, 30 in either, 10 in the gold mention; in floats 0.1 · 30 is above 3."""
    gold, predicted = in_document((0, 10)), in_document((7, 30))
    assert match_overlapping(gold, predicted, minimum_share=share, share_of=of).tolist() == [expected]  # type: ignore[arg-type]


def test_touching_and_empty_mentions_do_not_overlap() -> None:
    assert match_overlapping(in_document((0, 4), (6, 6)), in_document((4, 8), (2, 2))).tolist() == [-1, -1]
    assert match_spans(in_document((6, 6)), in_document((6, 6))).tolist() == [0]


@pytest.mark.parametrize(("shift", "expected"), [(9, 0), (10, -1)])
def test_centres_at_the_largest_distance_are_too_far(shift: int, expected: int) -> None:
    for sign in (-1, 1):
        moved = in_document((100 + sign * shift, 105 + sign * shift))
        assert match_near(in_document((100, 105)), moved).tolist() == [expected]
    assert match_near(in_document((100, 105)), in_document((100, 124))).tolist() == [0]
    assert match_near(in_document((100, 105)), in_document((100, 125))).tolist() == [-1]


def test_codes_and_documents_with_large_numbers_are_told_apart() -> None:
    large = 2**40
    gold = mentions((0, 0, 5, large), (large, 3, 9, 1), (large, 3, 9, 2**33))
    predicted = mentions((large, 3, 9, 2**33), (0, 0, 5, large + 1), (0, 0, 5, large))
    assert match_spans(gold, predicted).tolist() == [2, -1, 0]
    assert match_texts(gold, predicted).tolist() == [2, -1, 0]
    assert match_near(gold, predicted).tolist() == [2, -1, 0]
    assert match_overlapping(gold, predicted).tolist() == [2, -1, 0]
    beyond = mentions((2**59, 3, 9, 0))
    with pytest.raises(ValueError, match="number them from 0"):
        match_overlapping(beyond, beyond)


def test_the_worked_table_of_the_source_text() -> None:
    """One caption each; B is taken for X, F and G are not found, H is found with another toponym beside it."""
    names = {name: code for code, name in enumerate("ABCDEFGHXY")}
    gold = mentions(*((caption, 0, 1, names[name]) for caption, name in enumerate("ABCDEFGH")))
    actual = [(0, "A"), (1, "X"), (2, "C"), (3, "D"), (4, "E"), (7, "H"), (7, "Y")]
    predicted = mentions(*((caption, 0, 1, names[name]) for caption, name in actual))
    counts = document_counts(gold, predicted, match_texts(gold, predicted), 8)
    tp, fp, fn = (int(each.sum()) for each in counts)
    assert (tp, fp, fn) == (5, 2, 3)
    assert tp / (tp + fp) == pytest.approx(0.714, abs=5e-4)
    assert tp / (tp + fn) == 0.625
    assert 2 * tp / (2 * tp + fp + fn) == pytest.approx(2 / 3)


def test_a_name_predicted_twice_counts_once() -> None:
    gold, predicted = mentions((0, 3, 8, 1)), mentions((0, 3, 8, 1), (0, 3, 8, 1))
    for rule, _ in RULES.values():
        counts = document_counts(gold, predicted, rule(gold, predicted), 1)
        assert [int(each[0]) for each in counts] == [1, 1, 0]


def test_mentions_that_are_none() -> None:
    row = np.array([1])
    with pytest.raises(ValueError, match="differ in length"):
        Mentions(row, row, row, np.array([1, 2]))
    with pytest.raises(ValueError, match="ends before"):
        Mentions(row, row, row - 1, row)
    for score in (np.array([np.nan]), np.array([1.0, 2.0])):
        with pytest.raises(ValueError, match="finite"):
            Mentions(row, row, row, row, score)
