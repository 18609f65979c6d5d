"""Precision and recall over κ: against planted expectations, the corrected estimates at κ = 1, and fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.before_after.estimates import estimates
from pipeline.metrics.before_after.sensitivity import KAPPAS, ratios_over_kappa, with_bands

ONE = int(np.argmin(np.abs(KAPPAS - 1)))


def expected_counts(kappa: float, recall: float, rate: float) -> list[float]:
    """Expected counts of 1,000 pairs before and 400 after the event, of which 40 are positive."""
    return [1000 * rate, 40 * recall + kappa * rate * 360, 1000, 400]


@pytest.mark.parametrize("number", [0, 10, 30])
def test_the_true_kappa_gives_the_true_precision_and_recall(number: int) -> None:
    kappa = float(KAPPAS[number])
    chosen, reference = expected_counts(kappa, 0.6, 0.01), expected_counts(kappa, 1.0, 0.1)
    precision, recall = ratios_over_kappa(np.array(chosen), np.array(reference))
    assert recall[number] == pytest.approx(0.6)
    assert precision[number] == pytest.approx(24 / chosen[1])
    assert (np.diff(precision) < 0).all()


def test_every_pair_after_the_event_may_be_positive() -> None:
    precision, recall = ratios_over_kappa(np.array([0.0, 5, 10, 8]), np.array([0.0, 8, 10, 8]))
    assert (set(precision), set(recall)) == ({1.0}, {5 / 8})


@given(st.tuples(*[st.integers(0, 60)] * 4))
def test_every_kappa_is_that_of_fractions(matches: tuple[int, ...]) -> None:
    m_before, m_after, more_before, more_after = matches
    reference_before, reference_after = m_before + more_before, m_after + more_after
    rows = ([m_before, m_after, 300, 200], [reference_before, reference_after, 300, 200])
    chosen, reference = (np.array(row, dtype=np.float64) for row in rows)
    precision, recall = ratios_over_kappa(chosen, reference, 0.9)
    for number in (0, 15, 30):
        rate, at_reference = (Fraction(float(KAPPAS[number])) * row[0] / 300 for row in rows)
        gap, hits = Fraction(0.9) - at_reference, reference_after - at_reference * 200
        if min(abs(gap), abs(hits)) < Fraction(1, 10**9):
            continue
        positives = hits / gap if gap > 0 and hits > 0 else None
        if positives is None or positives > 200:
            assert np.isnan(recall[number])
            continue
        tp = m_after - rate * (200 - positives)
        assert recall[number] == pytest.approx(min(max(float(tp / positives), 0.0), 1.0))
        if m_after:
            assert precision[number] == pytest.approx(float(tp / m_after), abs=1e-12)


def test_all_pairs_after_the_event_may_match_at_the_reference() -> None:
    """The positives are then all of them, which doubles exceed by their last digit for some κ."""
    for n_after in range(3, 60):
        chosen, reference = np.array([3.0, 2, 70, n_after]), np.array([7.0, n_after, 70, n_after])
        precision, recall = ratios_over_kappa(chosen, reference)
        assert precision == pytest.approx(np.ones(len(KAPPAS)))
        assert recall == pytest.approx(np.full(len(KAPPAS), 2 / n_after))


def test_bands_hold_the_corrected_estimates_and_are_null_without_a_reference() -> None:
    groups = {"a": [(0.1, 100, 80), (0.5, 10, 30), (0.9, 0, 0)], "b": [(0.1, 100, 0), (0.5, 90, 0), (0.9, 80, 0)]}
    rows = [(name, *row, 1000, 400) for name, of_group in groups.items() for row in of_group]
    names = ["group", "threshold", "m_before", "m_after", "n_before", "n_after"]
    curve = estimates(pl.DataFrame(rows, schema=names, orient="row"), ["group"])
    banded = with_bands(curve, curve, ["group"])
    first, second, third = banded.filter(pl.col("group") == "a").to_dicts()
    for row in (first, second):
        for name in ("precision", "recall"):
            low, high = row[f"{name}_over_kappa_lower"], row[f"{name}_over_kappa_upper"]
            assert low - 1e-12 <= row[name] <= high + 1e-12
    assert second["precision_over_kappa_lower"] < second["precision_over_kappa_upper"]
    assert first["recall_over_kappa_lower"] == pytest.approx(1)
    assert third["precision_over_kappa_lower"] is None
    assert third["recall_over_kappa_upper"] == 0
    without = banded.filter(pl.col("group") == "b")
    assert without.select("precision_over_kappa_lower", "recall_over_kappa_upper").null_count().row(0) == (3, 3)
    assert with_bands(curve.clear(), curve, ["group"]).is_empty()
