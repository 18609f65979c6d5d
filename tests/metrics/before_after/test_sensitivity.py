from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipeline.metrics.before_after.sensitivity import over_references, overturning_kappa, vanishing_kappa, with_kappas

if TYPE_CHECKING:
    from collections.abc import Sequence

MIN_PRECISIONS = (0.01, 0.05, 0.1, 0.2)
ONE = Fraction(1)
RECALLS = st.sampled_from([ONE, ONE, Fraction("0.9"), Fraction("0.4")])
STEPS = [100 ** (step / 399) for step in range(400)]
Row = tuple[int, int]


@st.composite
def sweeps(draw: st.DrawFn) -> tuple[int, int, list[Row]]:
    """Compared pairs before and after, and nested matches at rising thresholds."""
    n_before, n_after = draw(st.integers(1, 400)), draw(st.integers(1, 400))
    size = draw(st.integers(1, 5))
    befores = sorted(draw(st.lists(st.integers(0, n_before), min_size=size, max_size=size)), reverse=True)
    afters = sorted(draw(st.lists(st.integers(0, n_after), min_size=size, max_size=size)), reverse=True)
    return n_before, n_after, list(zip(befores, afters, strict=True))


def positives_at(reference: Row, pairs: Row, kappa: Fraction, recall: Fraction) -> Fraction | None:
    """TP(reference) / (r0 - FPR(reference)) with κ times the false positives; None where that is no number of pairs."""
    (before, after), (n_before, n_after) = reference, pairs
    rate = kappa * Fraction(before, n_before)
    tp = after - rate * n_after
    if tp <= 0 or rate >= recall or tp / (recall - rate) > n_after:
        return None
    return tp / (recall - rate)


def f1_at(row: Row, reference: Row, pairs: Row, kappa: Fraction, recall: Fraction = ONE) -> Fraction:
    """2 TP / (2 TP + FP + FN) with κ times the false positives; 0 where nothing can be told."""
    positives = positives_at(reference, pairs, kappa, recall)
    if positives is None:
        return Fraction(0)
    fp = kappa * Fraction(row[0], pairs[0]) * (pairs[1] - positives)
    tp = row[1] - fp
    if tp <= 0:
        return Fraction(0)
    fn = max(positives - tp, Fraction(0))
    return 2 * tp / (2 * tp + fp + fn)


def gains(rows: Sequence[Row], reference: int, chosen: int, pairs: Row, recall: Fraction) -> list[Fraction]:
    """By how much the best F1 exceeds the chosen one, at every step of κ."""
    actual = []
    for step in STEPS:
        values = [f1_at(row, rows[reference], pairs, Fraction(step), recall) for row in rows]
        actual.append(max(values) - values[chosen])
    return actual


@settings(max_examples=25)
@given(sweeps(), RECALLS, st.data())
def test_the_overturning_ratio_is_the_first_step_with_a_better_threshold(
    sweep: tuple[int, int, list[Row]], recall: Fraction, data: st.DataObject
) -> None:
    n_before, n_after, rows = sweep
    reference, chosen = (data.draw(st.integers(0, len(rows) - 1)) for _ in range(2))
    evaluated = gains(rows, reference, chosen, (n_before, n_after), recall)
    assume(all(abs(gain - Fraction("0.01")) > Fraction(1, 10**9) for gain in evaluated))
    expected = next((step for step, gain in zip(STEPS, evaluated, strict=True) if gain > Fraction("0.01")), math.nan)
    before, after = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    actual = overturning_kappa(
        before, after, n_before, n_after, reference=reference, chosen=chosen, reference_recall=float(recall)
    )
    assert actual == pytest.approx(expected, rel=1e-12, nan_ok=True)


def test_a_low_threshold_that_is_best_at_equal_rates_is_overturned_when_false_positives_grow() -> None:
    before, after = np.array([50, 5]), np.array([150, 60])
    values = [f1_at(row, (50, 150), (1000, 1000), ONE) for row in ((50, 150), (5, 60))]
    assert values == [Fraction(80, 97), Fraction(211, 314)]
    assert 1 < overturning_kappa(before, after, 1000, 1000, reference=0, chosen=0) < 2


@given(st.integers(0, 10**6), st.integers(1, 10**6), st.integers(0, 10**6), st.integers(0, 10**6))
def test_the_vanishing_ratio_leaves_no_true_positive(m_before: int, n_before: int, m_after: int, n_after: int) -> None:
    fp = m_before * n_after / n_before
    actual = pl.DataFrame({"m_after": [m_after], "fp_uncorrected": [fp]}).select(vanishing_kappa()).item()
    if fp == 0:
        assert actual is None
    else:
        assert m_after - actual * fp == pytest.approx(0, abs=1e-9 * max(m_after, 1))


def precision_of(row: Row, odds: Fraction) -> Fraction | None:
    return 1 - odds * row[0] / row[1] if row[1] else None


def expected_reference(rows: Sequence[Row], odds: Fraction, rule: str, least: Fraction) -> int | None:
    """Index of the reference: enough precision and true positives; the lowest, or the one with most of them."""
    enough = []
    for index, row in enumerate(rows):
        precision = precision_of(row, odds)
        if precision is not None and precision > 0 and precision >= least:
            enough.append((row[1] - odds * row[0], index))
    if not enough:
        return None
    return max(enough, key=lambda element: (element[0], -element[1]))[1] if rule == "max" else enough[0][1]


def as_frame(groups: Sequence[tuple[int, int, list[Row]]]) -> pl.DataFrame:
    rows: list[dict[str, Any]] = [
        {
            "group": None if number == 0 else f"g{number}",
            "threshold": float(index),
            "n_before": n_before,
            "n_after": n_after,
            "m_before": before,
            "m_after": after,
        }
        for number, (n_before, n_after, own) in enumerate(groups)
        for index, (before, after) in enumerate(own)
    ]
    return pl.DataFrame(rows, schema_overrides={"group": pl.String})


@pytest.mark.wide
@settings(max_examples=25)
@given(st.lists(sweeps(), min_size=1, max_size=3), RECALLS, st.data())
def test_every_reference_is_found_by_exact_rationals(
    groups: list[tuple[int, int, list[Row]]], recall: Fraction, data: st.DataObject
) -> None:
    frame = as_frame(groups)
    indices = [data.draw(st.none() | st.integers(0, len(rows_of_group) - 1)) for _, _, rows_of_group in groups]
    chosen = pl.DataFrame(
        {
            "group": [None if number == 0 else f"g{number}" for number in range(len(groups))],
            "threshold": [None if index is None else float(index) for index in indices],
        },
        schema={"group": pl.String, "threshold": pl.Float64},
    )
    own_precision = data.draw(st.sampled_from([0.0, 0.05, 0.3]))
    least_ones = {*MIN_PRECISIONS, own_precision}
    actual = over_references(frame, ["group"], chosen, own_precision, float(recall))
    assert actual.height == 2 * len(least_ones) * len(groups)
    for row in actual.to_dicts():
        number = 0 if row["group"] is None else int(row["group"][1:])
        n_before, n_after, rows_of_group = groups[number]
        odds, index = Fraction(n_after, n_before), indices[number]
        least = Fraction(str(row["min_precision"]))
        reference = expected_reference(rows_of_group, odds, row["rule"], least)
        assert row["threshold"] == (None if index is None else float(index))
        if reference is None:
            names = ("reference_threshold", "reference_precision", "reference_tp", "recall", "f1", "best_f1")
            assert [row[name] for name in names] == [None] * 6
            continue
        assert row["reference_threshold"] == float(reference)
        pairs = (n_before, n_after)
        positives = positives_at(rows_of_group[reference], pairs, ONE, recall)
        if positives is None:
            names = ("reference_precision", "reference_tp", "recall", "f1", "best_threshold", "best_f1")
            assert [row[name] for name in names] == [None] * 6
            continue
        tps = [after - Fraction(before, n_before) * (n_after - positives) for before, after in rows_of_group]
        assert row["reference_tp"] == pytest.approx(float(tps[reference]), rel=1e-12)
        assert row["reference_precision"] == pytest.approx(
            float(tps[reference] / rows_of_group[reference][1]), rel=1e-12
        )
        values = [f1_at(each, rows_of_group[reference], pairs, ONE, recall) for each in rows_of_group]
        measured = [value for value, tp in zip(values, tps, strict=True) if tp >= 0]
        assert row["best_f1"] == pytest.approx(float(max(measured)), rel=1e-12)
        assert values[int(row["best_threshold"])] == max(measured)
        if index is None or tps[index] < 0:
            assert (row["recall"], row["f1"]) == (None, None)
        else:
            of_threshold = min(tps[index] / positives, ONE)
            assert row["recall"] == pytest.approx(float(of_threshold), rel=1e-12)
            assert row["f1"] == pytest.approx(float(values[index]), rel=1e-12)
    assert set(actual["min_precision"].to_list()) == least_ones


def test_operating_points_keep_their_order_and_points_without_a_threshold_have_no_ratio() -> None:
    curve = as_frame([(1000, 1000, [(50, 150), (5, 90)]), (1000, 1000, [(50, 150), (5, 90)])])
    reference = (pl.col("threshold") == 0) & pl.col("group").is_null()
    fp = pl.col("m_before") * pl.col("n_after") / pl.col("n_before")
    curve = curve.with_columns(reference.alias("is_reference"), fp.alias("fp_uncorrected"))
    nothing = curve[:1].with_columns(
        pl.lit(None, dtype=curve.schema[name]).alias(name) for name in curve.columns if name != "group"
    )
    points = pl.concat([nothing, curve[2:3], curve[0:1]])
    actual = with_kappas(points, curve, ["group"])
    assert actual.drop("kappa_vanishing", "kappa_overturning").equals(points)
    assert actual["kappa_vanishing"].to_list() == [None, 3.0, 3.0]
    assert actual["kappa_overturning"].is_null().to_list() == [True, True, False]
