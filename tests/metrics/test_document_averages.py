"""Averages over documents: by hand, and as means of single documents."""

from __future__ import annotations

from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.document_averages import averages

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
    precision, recall = (3 / 4 + 0 + 0 + 1) / 4, (1 + 0 + 0 + 1) / 4
    assert [semeval["precision"], semeval["recall"]] == pytest.approx([precision, recall])
    assert semeval["f1"] == pytest.approx(2 * precision * recall / (precision + recall))
    assert [semeval[f"{name}_dropped"] for name in ("precision", "recall", "f1")] == [0, 0, 0]


@given(counts=st.lists(COUNTS, max_size=6))
def test_as_means_of_single_documents(counts: list[tuple[int, int, int]]) -> None:
    def ratio(part: int, whole: int) -> Fraction | None:
        return Fraction(part, whole) if whole else None

    def mean(values: list[Fraction]) -> Fraction | None:
        return sum(values, start=Fraction(0)) / len(values) if values else None

    frame = documents(*counts)
    found = {kind: only(frame, kind) for kind in ("micro", "macro", "semeval")}
    parts = {
        "precision": [(tp, tp + fp) for tp, fp, _ in counts],
        "recall": [(tp, tp + fn) for tp, _, fn in counts],
        "f1": [(2 * tp, 2 * tp + fp + fn) for tp, fp, fn in counts],
    }
    for name, pairs in parts.items():
        each = [ratio(*pair) for pair in pairs]
        known = [value for value in each if value is not None]
        assert found["macro"][name] == approximately(mean(known))
        assert found["macro"][f"{name}_dropped"] == len(each) - len(known)
        total = ratio(sum(part for part, _ in pairs), sum(whole for _, whole in pairs))
        assert found["micro"][name] == (None if total is None else float(total))
        if name != "f1":
            filled = [
                Fraction(int(not sum(count))) if value is None else value
                for value, count in zip(each, counts, strict=True)
            ]
            assert found["semeval"][name] == approximately(mean(filled))


def approximately(value: Fraction | None) -> object:
    return None if value is None else pytest.approx(float(value))


def test_semeval_f1_of_documents_without_any_hit_is_zero() -> None:
    assert only(documents((0, 1, 1)), "semeval")["f1"] == 0
    assert only(documents((0, 0, 0)), "semeval")["f1"] == 1
    assert only(documents(), "semeval")["f1"] is None


def test_groups_are_apart_and_in_order() -> None:
    frame = documents((1, 0, 0), (0, 1, 0), (1, 1, 0), (0, 0, 1)).with_columns(
        system=pl.Series(["b", "a", "b", None]), threshold=pl.Series([0.5, 0.5, 0.7, 0.5])
    )
    found = averages(frame, ["system", "threshold"], ["micro", "macro"])
    assert found.select("system", "threshold", "average").rows() == [
        (system, threshold, average)
        for system, threshold in [(None, 0.5), ("a", 0.5), ("b", 0.5), ("b", 0.7)]
        for average in ("micro", "macro")
    ]
    assert found["precision"].to_list() == [None, None, 0, 0, 1, 1, 0.5, 0.5]
    assert found["precision_dropped"].to_list() == [0, 1, 0, 0, 0, 0, 0, 0]
    assert found.schema["n_documents"] == found.schema["f1_dropped"] == found.schema["tp"] == pl.Int64
