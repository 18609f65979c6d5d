"""The standardised false positive rate against exact fractions, and its intervals against the plain ones."""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.before_after.estimates import Sides
from pipeline.metrics.before_after.intervals import intervals
from pipeline.metrics.before_after.sensitivity import Stratum, adjusted_intervals, standardise

if TYPE_CHECKING:
    from numpy.typing import NDArray

Counts = list[tuple[int, int, int]]


def stratum(rows: Counts) -> Stratum:
    """One stratum with one threshold; a row for each replicate: matches before, pairs before, pairs after."""
    table = np.array(rows, dtype=np.int64)
    return Stratum(table[:, :1], table[:, 1], table[:, 2])


def exactly(strata: list[Counts], leave: int | None = None) -> Fraction | None:
    """False positives by fractions; None where a stratum is not supported."""
    total = Fraction(0)
    for rows in strata:
        kept = [row for place, row in enumerate(rows) if place != leave]
        matches, before, after = (sum(column) for column in zip(*kept, strict=True))
        if after and not before:
            return None
        total += Fraction(matches * after, before) if before else 0
    return total if leave is None else total * Fraction(len(strata[0]), len(strata[0]) - 1)


cells = st.integers(0, 30).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n), st.integers(0, 20)))
tables = st.integers(2, 5).flatmap(
    lambda replicates: st.lists(st.lists(cells, min_size=replicates, max_size=replicates), min_size=1, max_size=5)
)


@given(tables)
def test_false_positives_are_those_of_exact_fractions(strata: list[Counts]) -> None:
    replicates = len(strata[0])
    actual = standardise([stratum(rows) for rows in strata], replicates, 1)
    expected = exactly(strata)
    if expected is None:
        assert actual.n_unsupported > 0
    else:
        assert actual.n_unsupported == 0
        assert actual.fp[0] == pytest.approx(float(expected), rel=1e-12)
        for leave in range(replicates):
            without = exactly(strata, leave)
            value = actual.fp_jackknifed[leave, 0]
            assert np.isnan(value) if without is None else value == pytest.approx(float(without), rel=1e-12)
    assert actual.n_strata == sum(any(before or after for _, before, after in rows) for rows in strata)
    turned = standardise([stratum(rows) for rows in reversed(strata)], replicates, 1)
    assert turned.fp[0] == pytest.approx(actual.fp[0], rel=1e-12)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.integers(0, 1))
def test_one_stratum_has_the_plain_false_positives_and_intervals(seed: int, reference: int) -> None:
    rng = np.random.default_rng(seed)
    n_before, n_after = rng.integers(20, 90, (2, 12))
    m_before, m_after = (
        np.sort(rng.binomial(n[:, None], p, (12, 2)))[:, ::-1] for n, p in ((n_before, 0.1), (n_after, 0.3))
    )
    actual = standardise([Stratum(m_before, n_before, n_after)], 12, 2)
    assert actual.fp.tolist() == (m_before.sum(axis=0) * n_after.sum() / n_before.sum()).tolist()
    mine = adjusted_intervals(actual, m_after, n_before, n_after, reference=reference, confidence=0.9)
    plain = intervals([Sides(m_before, m_after, n_before, n_after)], reference=reference, confidence=0.9)
    for name in ("fpr", "precision"):
        for side in ("lower", "upper"):
            assert getattr(mine[name], side) == pytest.approx(getattr(plain[name], side), rel=1e-9, abs=1e-12)


def weekdays(seed: int, events: int = 60) -> tuple[list[Stratum], NDArray[np.int64], float]:
    """Two strata: on busy days pairs match by chance four times as often, and more of the pairs after lie there."""
    rng = np.random.default_rng(seed)
    level = rng.gamma(2, 0.5, events)
    strata, expected = [], 0.0
    for rate, before, after in ((0.01, 150, 20), (0.04, 50, 80)):
        n_before, n_after = rng.poisson(before, events), rng.poisson(after, events)
        strata.append(Stratum(rng.binomial(n_before, np.minimum(rate * level, 1))[:, None], n_before, n_after))
        expected += rate * after
    m_after = rng.binomial(100, np.minimum(expected / 100 * level, 1)) + rng.poisson(4, events)
    return strata, m_after[:, None], expected / 100


@pytest.mark.wide
def test_intervals_of_the_adjusted_rate_hold_the_true_one_where_the_plain_rate_is_biased() -> None:
    """The simulation of docs/before_after.md: plain 0.0175 and adjusted 0.034, where the truth is 0.034."""
    adjusted, plain, held, held_plain = [], [], 0, 0
    for seed in range(300):
        strata, m_after, truth = weekdays(seed)
        n_before, n_after = (
            np.sum([getattr(each, name) for each in strata], axis=0) for name in ("n_before", "n_after")
        )
        m_before = np.sum([each.m_before for each in strata], axis=0)
        actual = standardise(strata, len(n_before), 1)
        limits = adjusted_intervals(actual, m_after, n_before, n_after, reference=0, confidence=0.95)["fpr"]
        simple = intervals([Sides(m_before, m_after, n_before, n_after)], reference=0, confidence=0.95)["fpr"]
        held += int(limits.lower[0] <= truth <= limits.upper[0])
        held_plain += int(simple.lower[0] <= truth <= simple.upper[0])
        adjusted.append(actual.fp[0] / n_after.sum())
        plain.append(m_before.sum() / n_before.sum())
    assert np.mean(adjusted) == pytest.approx(0.034, rel=0.02)
    assert np.mean(plain) == pytest.approx(0.0175, rel=0.03)
    assert 0.92 <= held / 300 <= 0.98
    assert held_plain == 0
