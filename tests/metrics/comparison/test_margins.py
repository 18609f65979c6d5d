"""Claims within a margin, against scipy's one-sided tests and the intervals that they agree with."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pipeline.metrics.comparison.paired import means_of, paired_t
from pipeline.metrics.comparison.pooled import Inference, Student, difference_of
from pipeline.metrics.comparison.significance import (
    bootstrap_of_groups,
    bootstrap_of_pairs,
    claims_within,
    level_of_claims,
)

RNG = np.random.default_rng(5)
A, B = RNG.normal(0.52, 0.2, 25), RNG.normal(0.5, 0.1, 25)
SKEWED = RNG.lognormal(-1, 1, 30)
MARGIN = 0.05


def inferences() -> dict[str, Inference]:
    return {
        "paired": paired_t(A, B).student,
        "welch": difference_of(*means_of(A, SKEWED)),
        "bootstrap of pairs": bootstrap_of_pairs(A, B + 0.1 * SKEWED[:25], resamples=999),
        "bootstrap of groups": bootstrap_of_groups(A, SKEWED, resamples=999),
    }


@pytest.mark.parametrize("kind", ["same units", "different units"])
def test_one_sided_tests_are_those_of_scipy(kind: str) -> None:
    if kind == "same units":
        inference = paired_t(A, B).student
        above = stats.ttest_1samp(A - B, -MARGIN, alternative="greater")
        below = stats.ttest_1samp(A - B, MARGIN, alternative="less")
    else:
        inference = difference_of(*means_of(A, SKEWED))
        above = stats.ttest_ind(A + MARGIN, SKEWED, equal_var=False, alternative="greater")
        below = stats.ttest_ind(A - MARGIN, SKEWED, equal_var=False, alternative="less")
    a, b, both = claims_within(inference, MARGIN)
    assert [a.claim, b.claim, both.claim] == ["a_not_worse", "b_not_worse", "equivalent"]
    assert [a.statistic, a.p_value] == pytest.approx([above.statistic, above.pvalue])
    assert [b.statistic, b.p_value] == pytest.approx([-below.statistic, below.pvalue])
    assert (both.statistic, both.p_value) == (min(a.statistic, b.statistic), max(a.p_value, b.p_value))


@pytest.mark.parametrize("name", list(inferences()))
@pytest.mark.parametrize("confidence", [0.95, 0.9, 0.8])
def test_a_claim_holds_exactly_where_the_interval_lies_within_the_margin(name: str, confidence: float) -> None:
    inference = inferences()[name]
    lower, upper = inference.limits(level_of_claims(confidence))
    for margin in (0.9 * abs(lower), 1.1 * abs(lower), 0.9 * abs(upper), 1.1 * abs(upper)):
        held = {claim.claim: claim.p_value <= 1 - confidence for claim in claims_within(inference, margin)}
        expected = {"a_not_worse": lower > -margin, "b_not_worse": upper < margin}
        assert held == {**expected, "equivalent": all(expected.values())}


def test_where_less_is_better_the_claims_change_sides() -> None:
    inference = Student(0.03, 0.02, 24.0)
    plain = {claim.claim: claim.p_value for claim in claims_within(inference, MARGIN)}
    turned = {claim.claim: claim.p_value for claim in claims_within(inference, MARGIN, higher_is_better=False)}
    assert turned == {**plain, "a_not_worse": plain["b_not_worse"], "b_not_worse": plain["a_not_worse"]}
    assert plain["a_not_worse"] < plain["b_not_worse"]


def test_nothing_is_claimed_without_a_spread_or_a_margin() -> None:
    assert all(np.isnan(claim.p_value) for claim in claims_within(paired_t([1.0], [1.0]).student, MARGIN))
    assert all(np.isnan(claim.p_value) for claim in claims_within(paired_t([1, 2], [1, 2]).student, MARGIN))
    with pytest.raises(ValueError, match="above 0"):
        claims_within(Student(0.0, 1.0, 5.0), 0.0)


def test_p_values_of_the_bootstrap_on_both_sides_belong_together() -> None:
    bootstrapped = bootstrap_of_groups(A, SKEWED, resamples=999)
    lower, upper = bootstrapped.limits(0.9)
    assert bootstrapped.p_value_above(lower - 1e-9) <= 0.05 < bootstrapped.p_value_above(lower + 1e-3)
    assert bootstrapped.p_value_below(upper + 1e-9) <= 0.05 < bootstrapped.p_value_below(upper - 1e-3)
    assert min(bootstrapped.p_value_above(0.0), bootstrapped.p_value_below(0.0)) <= bootstrapped.p_value() / 2 + 1e-12
