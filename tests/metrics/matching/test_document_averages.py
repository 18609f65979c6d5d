"""Averages over documents: by hand, and as means of single documents."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_averages import averages

COUNTS = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 3))


def documents(*counts: tuple[int, int, int]) -> pl.DataFrame:
    return pl.DataFrame(list(counts), schema=dict.fromkeys(("tp", "fp", "fn"), pl.Int64), orient="row")


def only(frame: pl.DataFrame, kind: str) -> dict[str, float | None]:
    return averages(frame, [], [kind]).row(0, named=True)  # type: ignore[list-item]


def test_by_hand() -> None:
    """A good document, one with a false alarm only, one with a miss only, one with nothing at all."""
    frame = documents((3, 1, 0), (0, 1, 0), (0, 0, 2), (0, 0, 0))
    micro = only(frame, "micro")
    assert (micro["precision"], micro["recall"], micro["f1"]) == (3 / 5, 3 / 5, 6 / 10)
    assert [micro[name] for name in ("n_documents", "tp", "fp", "fn")] == [4, 3, 2, 2]
    macro = only(frame, "macro")
    assert macro["precision"] == pytest.approx((3 / 4 + 0) / 2)
    assert macro["recall"] == pytest.approx((1 + 0) / 2)
    assert macro["f1"] == pytest.approx((6 / 7 + 0 + 0) / 3)
    assert [macro[f"{name}_dropped"] for name in ("precision", "recall", "f1")] == [2, 2, 1]
    semeval = only(frame, "semeval")
    precision, recall = (3 / 4 + 0 + 1 + 1) / 4, (1 + 1 + 0 + 1) / 4
    assert [semeval["precision"], semeval["recall"]] == pytest.approx([precision, recall])
    assert semeval["f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert [semeval[f"{name}_dropped"] for name in ("precision", "recall", "f1")] == [0, 0, 0]


@given(counts=st.lists(COUNTS, max_size=6))
def test_as_means_of_single_documents(counts: list[tuple[int, int, int]]) -> None:
    def ratio(numerator: int, denominator: int) -> Fraction | None:
        return Fraction(numerator, denominator) if denominator else None

    def mean(values: list[Fraction]) -> Fraction | None:
        return sum(values, start=Fraction(0)) / len(values) if values else None

    frame = documents(*counts)
    actual = {kind: only(frame, kind) for kind in ("micro", "macro", "semeval")}
    pairs_by_ratio = {
        "precision": [(tp, tp + fp) for tp, fp, _ in counts],
        "recall": [(tp, tp + fn) for tp, _, fn in counts],
        "f1": [(2 * tp, 2 * tp + fp + fn) for tp, fp, fn in counts],
    }
    for name, pairs in pairs_by_ratio.items():
        document_ratios = [ratio(*pair) for pair in pairs]
        defined = [value for value in document_ratios if value is not None]
        assert actual["macro"][name] == approximately(mean(defined))
        assert actual["macro"][f"{name}_dropped"] == len(document_ratios) - len(defined)
        total = ratio(sum(numerator for numerator, _ in pairs), sum(denominator for _, denominator in pairs))
        assert actual["micro"][name] == (None if total is None else float(total))
        if name != "f1":
            assert actual["semeval"][name] == approximately(
                mean([Fraction(1) if value is None else value for value in document_ratios])
            )


def approximately(value: Fraction | None) -> object:
    return None if value is None else pytest.approx(float(value))


# Counts (tp, fp, fn) of documents, with precision, recall and F1, first macro, then micro, as `ToponymEvaluator.py` of
# SemEval-2019 Task 12 (its only version, of 2018) printed them for these counts.
AS_SCORED = [
    ([(1, 0, 0), (0, 0, 1), (0, 1, 0)], (0.6666666666666666,) * 3, (0.5, 0.5, 0.5)),
    ([(0, 0, 0)], (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)),
    ([(0, 0, 2)], (1.0, 0.0, 0.0), (1.0, 0.0, 0.0)),
    ([(0, 3, 0)], (0.0, 1.0, 0.0), (0.0, 1.0, 0.0)),
    ([(0, 1, 1)], (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)),
    ([(0, 0, 1), (0, 1, 0)], (0.5, 0.5, 0.5), (0.0, 0.0, 0.0)),
    ([(0, 0, 0), (0, 0, 0), (0, 2, 3)], (0.6666666666666666,) * 3, (0.0, 0.0, 0.0)),
    ([(3, 1, 0), (0, 1, 0), (0, 0, 2), (0, 0, 0)], (0.6875, 0.75, 0.717391304347826), (0.6, 0.6, 0.6)),
    (
        [(1, 1, 1), (5, 0, 2), (2, 1, 0), (0, 0, 4), (0, 0, 0)],
        (0.8333333333333333, 0.6428571428571429, 0.7258064516129031),
        (0.8, 0.5333333333333333, 0.64),
    ),
]


@pytest.mark.parametrize(("counts", "macro", "micro"), AS_SCORED)
def test_semeval_averages_are_what_the_scorer_of_the_task_prints(
    counts: list[tuple[int, int, int]], macro: tuple[float, ...], micro: tuple[float, ...]
) -> None:
    for kind, printed in (("semeval", macro), ("semeval_micro", micro)):
        actual = only(documents(*counts), kind)
        assert [actual[name] for name in ("precision", "recall", "f1")] == pytest.approx(printed, rel=1e-15)


@given(counts=st.lists(COUNTS, min_size=1, max_size=6))
def test_semeval_averages_follow_the_rules_of_the_scorer(counts: list[tuple[int, int, int]]) -> None:
    """Each 0 / 0 is 1 by itself, F1 is harmonic and 0 if both are 0; micro scores take the corpus as one document."""

    def share(numerator: int, other: int) -> float:
        return numerator / (numerator + other) if numerator + other else 1.0

    def harmonic(precision: float, recall: float) -> float:
        return 2 * precision * recall / (precision + recall) if precision + recall else 0.0

    tp, fp, fn = (sum(column) for column in zip(*counts, strict=True))
    sums = sum(share(hits, false) for hits, false, _ in counts), sum(share(hits, missed) for hits, _, missed in counts)
    expected = {
        "semeval": tuple(total / len(counts) for total in sums),
        "semeval_micro": (share(tp, fp), share(tp, fn)),
    }
    for kind, (precision, recall) in expected.items():
        actual = only(documents(*counts), kind)
        printed = precision, recall, harmonic(precision, recall)
        assert [actual[name] for name in ("precision", "recall", "f1")] == pytest.approx(printed, rel=1e-14)


def test_semeval_averages_of_no_document_are_undefined() -> None:
    for kind in ("semeval", "semeval_micro"):
        assert [only(documents(), kind)[name] for name in ("precision", "recall", "f1")] == [None] * 3


def test_groups_are_apart_and_in_order() -> None:
    frame = documents((1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1)).with_columns(
        system=pl.Series(["b", "a", "b", None]), threshold=pl.Series([0.5, 0.5, 0.7, 0.5])
    )
    actual = averages(frame, ["system", "threshold"], ["micro", "macro"])
    assert actual.select("system", "threshold", "average").rows() == [
        (system, threshold, average)
        for system, threshold in [(None, 0.5), ("a", 0.5), ("b", 0.5), ("b", 0.7)]
        for average in ("micro", "macro")
    ]
    assert actual["precision"].to_list() == [None, None, 0, 0, 1, 1, 0.5, 0.5]
    assert actual["precision_dropped"].to_list() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert actual.schema["n_documents"] == actual.schema["f1_dropped"] == actual.schema["tp"] == pl.Int64
