"""Sums over rows of which only the cell is known hold the exact ones within what they say is open."""

from __future__ import annotations

from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipeline.metrics.calibration.bins import NEAREST, Cells

probabilities = st.one_of(
    st.floats(0, 1),
    st.sampled_from([0.0, -0.0, 5e-324, 1e-300, 1e-16, 1e-15, 0.1, 0.5, 1 - 1e-15, np.nextafter(1, 0), 1.0]),
    st.integers(0, 100).map(lambda number: number / 100),
)
rows = st.lists(st.tuples(probabilities, st.booleans()), min_size=1, max_size=30)


def cells(cut: list[list[tuple[float, bool]]]) -> Cells:
    positive = [sum(label for _, label in cell) for cell in cut]
    negative = [len(cell) - number for cell, number in zip(cut, positive, strict=True)]
    ends = [[end(score for score, _ in cell) for cell in cut] for end in (min, max)]
    return Cells(*(np.array(values, dtype=np.float64) for values in (positive, negative, *ends)))


def in_cells(labelled: list[tuple[float, bool]], size: int) -> Cells:
    in_order = sorted(labelled)
    return cells([in_order[start : start + size] for start in range(0, len(in_order), size)])


def logarithm(score: float, *, label: bool) -> Fraction:
    """The logarithm of the probability of a label, to forty digits."""
    clipped = min(max(score, NEAREST), 1 - NEAREST)
    with localcontext() as context:
        context.prec = 60
        return Fraction((Decimal(clipped) if label else 1 - Decimal(clipped)).ln())


def total(values: np.ndarray) -> Fraction:
    return sum(map(Fraction, values.tolist()), Fraction(0))


@given(rows, st.integers(1, 40))
@example([(0.0, True), (1.0, False)], 1)
@example([(0.0, True), (1.0, False)], 2)
def test_what_is_open_holds_the_exact_sums(labelled: list[tuple[float, bool]], size: int) -> None:
    counted = in_cells(labelled, size)
    losses, moments = counted.losses(), counted.moments()
    exact = {
        "first": sum(logarithm(score, label=label) for score, label in labelled),
        "squared_errors": sum((Fraction(score) - label) ** 2 for score, label in labelled),
        "scores": sum(Fraction(score) for score, _ in labelled),
    }
    for name, value in exact.items():
        sums = losses | moments
        assert abs(total(sums[name]) - value) <= total(sums[f"{name}_open"]), name


@given(rows)
def test_a_cell_with_one_score_leaves_nothing_open_but_rounding(labelled: list[tuple[float, bool]]) -> None:
    by_score = [[row for row in labelled if row[0] == score] for score in {score for score, _ in labelled}]
    counted = cells(by_score)
    sums = counted.losses() | counted.moments()
    for name in ("first_open", "squared_errors_open", "scores_open"):
        assert sums[name].sum() <= 1e-12 * len(labelled)


@given(rows, st.integers(1, 40))
def test_the_brier_score_of_both_tables_is_one(labelled: list[tuple[float, bool]], size: int) -> None:
    counted = in_cells(labelled, size)
    losses, moments = counted.losses(), counted.moments()
    hits = counted.positive.sum()
    of_moments = hits - 2 * moments["scores_positive"].sum() + moments["score_squares"].sum()
    assert of_moments == pytest.approx(losses["squared_errors"].sum(), abs=1e-12)
