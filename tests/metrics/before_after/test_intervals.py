from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import pytest
from before_after_counts import Setting, simulate, truth
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.metrics.before_after.assumption import placebo, placebo_joint, realised_precision_interval
from pipeline.metrics.before_after.estimates import Sides, estimates
from pipeline.metrics.before_after.intervals import INTERVAL_NAMES, intervals

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.limits import Interval

    Ints = NDArray[np.int64]
    Four = tuple[Ints, Ints, Ints, Ints]


def simulated(setting: Setting, count: int, seed: int) -> list[tuple[Four, Ints, Ints, Ints]]:
    """The four arguments of `intervals`, matches and pairs near to the event, and true matches after it."""
    batch = simulate(setting, count, np.random.default_rng(seed))
    actual = []
    for i in range(count):
        before, after = batch.far[i] + batch.near[i], batch.false_after[i] + batch.true_after[i]
        four = before, after, batch.n_far[i] + batch.n_near[i], batch.n_after[i]
        actual.append((four, batch.near[i], batch.n_near[i], batch.true_after[i]))
    return actual


def points(four: Four, reference: int | None, recall: float = 1.0) -> dict[str, NDArray[np.float64]]:
    """The estimates themselves, nan where undefined."""
    m_before, m_after, n_before, n_after = (counts.sum(axis=0) for counts in four)
    thresholds = [float(t) for t in range(len(m_before))]
    frame = pl.DataFrame({"g": [0] * len(thresholds), "threshold": thresholds})
    frame = frame.with_columns(
        pl.Series("n_before", np.full(len(thresholds), n_before)),
        pl.Series("n_after", np.full(len(thresholds), n_after)),
        pl.Series("m_before", m_before),
        pl.Series("m_after", m_after),
    )
    at = -1.0 if reference is None else float(reference)
    result = estimates(frame, ["g"], rule="fixed", threshold=at, reference_recall=recall).sort("threshold")
    return {name: result[name].fill_null(np.nan).to_numpy() for name in INTERVAL_NAMES}


@st.composite
def count_tables(draw: st.DrawFn) -> Four:
    """Nested counts of up to eight replicates, many of them 0, sometimes with a huge factor."""
    replicates, thresholds = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    factor = draw(st.sampled_from([1, 1, 1, 10**9]))
    size = replicates * (thresholds + 1)

    def counts() -> tuple[Ints, Ints]:
        cells = np.array(draw(st.lists(st.sampled_from([0, 0, 0, 1, 2, 7, 40]), min_size=size, max_size=size)))
        table = cells.reshape(replicates, thresholds + 1)[:, ::-1].cumsum(axis=1)[:, ::-1].astype(np.int64) * factor
        return table[:, 1:], table[:, 0] * draw(st.integers(1, 5))

    (m_before, n_before), (m_after, n_after) = counts(), counts()
    return m_before, m_after, n_before, n_after


def test_where_every_pair_matches_nothing_tells_how_much_the_uncorrected_f1_varies() -> None:
    """Its limits were 0 and 0, and those of precision reach further."""
    n_before, n_after = np.full(8, 12), np.full(8, 13)
    m_before, m_after = np.stack([n_before, n_before // 2], axis=1), np.stack([n_after, n_after - 5], axis=1)
    m_before[::2, 1] += 2
    actual = intervals([Sides(m_before, m_after, n_before, n_after)], reference=1, confidence=0.95)
    assert actual["precision_uncorrected"].upper[0] > 0
    f1 = actual["f1_uncorrected"]
    assert np.isnan([f1.lower[0], f1.upper[0]]).all()
    assert f1.lower[1] < f1.upper[1]
    assert f1.reason.tolist() == ["no_limit", None]


@pytest.mark.wide
@settings(max_examples=300, deadline=None)
@given(four=count_tables(), reference=st.none() | st.integers(0, 4), recall=st.sampled_from([1.0, 0.8, 0.05]))
def test_every_interval_holds_its_estimate_or_says_why_not(four: Four, reference: int | None, recall: float) -> None:
    if reference is not None:
        reference = min(reference, four[0].shape[1] - 1)
    actual, expected = (
        intervals([Sides(*four)], reference=reference, confidence=0.95, reference_recalls=[recall]),
        points(four, reference, recall),
    )
    for name, interval in actual.items():
        given_ = np.array([reason is None for reason in interval.reason])
        assert (np.isnan(interval.lower) == ~given_).all(), name
        assert (np.isnan(interval.upper) == ~given_).all(), name
        estimate, lower, upper = expected[name][given_], interval.lower[given_], interval.upper[given_]
        assert not np.isnan(estimate).any(), name
        assert (lower <= estimate + 1e-9 * (1 + np.abs(estimate))).all(), name
        assert (upper >= estimate - 1e-9 * (1 + np.abs(estimate))).all(), name
        assert (upper <= 1).all(), name


def test_more_confidence_is_wider_and_nested() -> None:
    four = simulated(Setting(60, 1.0, bursty=True), 1, 4)[0][0]
    narrow, wide = (intervals([Sides(*four)], reference=0, confidence=c) for c in (0.8, 0.99))
    for name in INTERVAL_NAMES:
        both = ~np.isnan(narrow[name].lower) & ~np.isnan(wide[name].lower)
        assert (wide[name].lower[both] <= narrow[name].lower[both] + 1e-12).all(), name
        assert (wide[name].upper[both] >= narrow[name].upper[both] - 1e-12).all(), name


def test_empty_replicates_and_their_order_change_nothing() -> None:
    four = simulated(Setting(40), 1, 5)[0][0]
    order = np.random.default_rng(0).permutation(40)
    mixed = tuple(np.concatenate([counts[order], np.zeros_like(counts[:7])]) for counts in four)
    plain, other = (
        intervals([Sides(*arrays)], reference=0, confidence=0.95)
        for arrays in (four, (mixed[0], mixed[1], mixed[2], mixed[3]))
    )
    for name in INTERVAL_NAMES:
        np.testing.assert_allclose(plain[name].lower, other[name].lower, rtol=1e-6, err_msg=name)
        np.testing.assert_allclose(plain[name].upper, other[name].upper, rtol=1e-6, err_msg=name)


def table(*rows: list[int]) -> Ints:
    return np.array(rows, dtype=np.int64)


def reasons(interval: Interval) -> list[str | None]:
    return list(interval.reason)


def test_reasons_for_no_interval() -> None:
    m_before, m_after = table([4, 1], [3, 0], [5, 1]), table([40, 0], [30, 0], [20, 0])
    n_before, n_after = np.array([100, 90, 120]), np.array([200, 210, 190])
    actual = intervals([Sides(m_before, m_after, n_before, n_after)], reference=0, confidence=0.95)
    assert reasons(actual["fpr"]) == [None, None]
    assert reasons(actual["precision"]) == [None, "no_prediction"]
    assert reasons(actual["recall"]) == [None, "negative_tp"]
    assert reasons(actual["precision_uncorrected"]) == [None, "no_prediction"]
    assert reasons(actual["recall_uncorrected"]) == [None, "negative_tp"]
    actual = intervals([Sides(m_before, m_after, n_before, n_after)], reference=None, confidence=0.95)
    assert reasons(actual["precision_uncorrected"])[0] is None
    for name in ("precision", "recall", "f1", "recall_uncorrected", "f1_uncorrected"):
        assert reasons(actual[name])[0] == "no_reference"
    alone = intervals([Sides(m_before[:1], m_after[:1], n_before[:1], n_after[:1])], reference=0, confidence=0.95)
    nothing = intervals([Sides(m_before * 0, m_after, n_before * 0, n_after)], reference=None, confidence=0.95)
    after = intervals([Sides(m_before, m_after * 0, n_before, n_after * 0)], reference=None, confidence=0.95)
    assert {reason for name in INTERVAL_NAMES for reason in reasons(alone[name])} == {"one_replicate"}
    assert {reason for name in INTERVAL_NAMES for reason in reasons(nothing[name])} == {"no_before"}
    assert reasons(after["precision"]) == ["no_prediction"] * 2
    assert reasons(after["fpr"]) == [None, None]


def test_recall_is_one_at_the_reference_and_unknown_without_signal() -> None:
    four = simulated(Setting(300), 1, 6)[0][0]
    actual = intervals([Sides(*four)], reference=0, confidence=0.95)
    for name in ("recall", "recall_uncorrected"):
        assert (actual[name].lower[0], actual[name].upper[0]) == (1.0, 1.0)
        assert (actual[name].lower[1:] > 0).all()
    m_after = table([30, 2], [0, 3], [1, 0], [0, 1])
    same = np.full(4, 100)
    weak = intervals([Sides(table([3, 0], [4, 0], [6, 1], [5, 0]), m_after, same, same)], reference=0, confidence=0.95)
    assert reasons(weak["recall"]) == reasons(weak["recall_uncorrected"]) == [None, "unbounded"]


def test_no_match_before_still_bounds_the_false_positive_rate() -> None:
    events = 50
    m_before, m_after = np.zeros((events, 1), dtype=np.int64), np.full((events, 1), 3)
    pairs = np.full(events, 1000)
    actual = intervals([Sides(m_before, m_after, pairs, pairs)], reference=0, confidence=0.95)
    assert actual["fpr"].lower[0] == 0.0
    assert actual["fpr"].upper[0] == pytest.approx(-np.log(0.025) / (events * 1000), rel=1e-3)
    for name in ("precision", "precision_uncorrected"):
        assert actual[name].upper[0] == 1.0
        assert actual[name].lower[0] == pytest.approx(1 - 3.689 / 150, abs=2e-3)


def test_negative_precision_is_its_own_lower_limit() -> None:
    m_before, m_after = np.full((30, 1), 10), np.full((30, 1), 2)
    pairs = np.full(30, 100)
    actual = intervals([Sides(m_before, m_after, pairs, pairs)], reference=None, confidence=0.95)[
        "precision_uncorrected"
    ]
    assert actual.lower[0] == pytest.approx(-4.0)
    assert -4.0 < actual.upper[0] < 0


@pytest.mark.wide
@pytest.mark.parametrize(("heterogeneity", "bursty"), [(0.0, False), (1.0, True)])
def test_coverage_on_simulated_counts(heterogeneity: float, bursty: bool) -> None:  # noqa: FBT001 - a parameter of pytest
    setting = Setting(100, heterogeneity, bursty)
    true, sets = truth(setting), simulated(setting, 200, 7)
    covered = dict.fromkeys([*INTERVAL_NAMES, "realised"], 0.0)
    for four, near, n_near, true_after in sets:
        for name, interval in intervals([Sides(*four)], reference=0, confidence=0.95).items():
            lower = np.nan_to_num(interval.lower, nan=0.0)
            upper = np.nan_to_num(interval.upper, nan=1.0)
            covered[name] += float(np.mean((lower <= true[name] + 1e-9) & (true[name] <= upper + 1e-9))) / len(sets)
        realised = realised_precision_interval(*four, near, n_near, confidence=0.95, reference=0)
        precision = true_after.sum(axis=0) / four[1].sum(axis=0)
        covered["realised"] += float(np.mean((realised.lower <= precision) & (precision <= realised.upper))) / len(sets)
    assert min(covered.values()) > 0.92, covered


def test_correction_removes_the_bias_of_recall() -> None:
    setting = Setting(300, positives=100.0)
    sets = simulated(setting, 60, 8)
    errors = np.zeros((2, setting.thresholds))
    for four, *_ in sets:
        actual = points(four, 0)
        errors += np.array([actual["recall_uncorrected"], actual["recall"]]) - setting.recall
    plain, corrected = np.abs(errors[:, 1:] / len(sets)).max(axis=1)
    assert corrected < plain / 5


def test_realised_precision_without_a_near_part() -> None:
    four, near, n_near, _ = simulated(Setting(20), 1, 9)[0]
    assert set(reasons(realised_precision_interval(*four, near * 0, n_near * 0, confidence=0.95))) == {"no_before"}
    m_before, m_after, n_before, n_after = four
    nothing = realised_precision_interval(m_before, m_after * 0, n_before, n_after, near, n_near, confidence=0.95)
    assert set(reasons(nothing)) == {"no_prediction"}


def test_realised_precision_holds_the_estimate_it_is_about() -> None:
    for four, near, n_near, _ in simulated(Setting(40, 1.0, bursty=True), 20, 10):
        expected = points(four, 0)
        for reference, name in ((None, "precision_uncorrected"), (0, "precision")):
            actual = realised_precision_interval(*four, near, n_near, confidence=0.95, reference=reference)
            defined = ~np.isnan(actual.lower) & ~np.isnan(expected[name])
            assert (actual.lower[defined] <= expected[name][defined] + 1e-9).all()
            assert (actual.upper[defined] >= np.minimum(expected[name][defined], 1.0) - 1e-9).all()


def parts(near_factor: float, count: int) -> list[tuple[Ints, Ints, Ints, Ints]]:
    batch = simulate(Setting(100, 1.0, near_factor=near_factor), count, np.random.default_rng(11))
    return [(batch.far[i], batch.near[i], batch.n_far[i], batch.n_near[i]) for i in range(count)]


def test_placebo_interval_and_p_value_agree() -> None:
    for arguments in parts(1.5, 10):
        actual = placebo(*arguments, confidence=0.95)
        defined = ~np.isnan(actual.log_rate_ratio)
        assert (actual.lower[defined] <= actual.log_rate_ratio[defined]).all()
        assert (actual.upper[defined] >= actual.log_rate_ratio[defined]).all()
        outside = (actual.lower > 0) | (actual.upper < 0)
        assert outside.tolist() == (actual.p_value < 0.05).tolist()


@pytest.mark.wide
def test_placebo_has_its_size_and_power() -> None:
    equal, higher = (
        np.array([placebo(*arguments, confidence=0.95).p_value < 0.05 for arguments in parts(factor, 300)])
        for factor in (1.0, 1.5)
    )
    assert equal.mean(axis=0).max() < 0.08
    assert 0.03 < equal[:, :4].mean() < 0.07  # thresholds with a hundred matches and more
    assert higher.mean(axis=0)[:3].min() > 0.9


@pytest.mark.wide
def test_joint_placebo_is_seeded_and_sees_what_all_thresholds_share() -> None:
    arguments = parts(1.5, 1)[0]
    assert placebo_joint(*arguments, seed=3) == placebo_joint(*arguments, seed=3)
    assert placebo_joint(*arguments) < 0.01
    rejected = np.mean([placebo_joint(*equal, flips=199) <= 0.05 for equal in parts(1.0, 200)])
    assert rejected < 0.1


def test_placebo_without_one_part_or_matches() -> None:
    m, n = np.ones((5, 2), dtype=np.int64), np.full(5, 10)
    empty = placebo(m, m, n, n * 0, confidence=0.95)
    assert np.isnan([empty.log_rate_ratio, empty.lower, empty.upper, empty.p_value]).all()
    assert np.isnan(placebo_joint(m, m, n, n * 0))
    assert np.isnan(placebo_joint(m, m * 0, n, n))
    one_sided = placebo(m * 8, m * 0, n * 10, n * 10, confidence=0.95)
    assert np.isnan(one_sided.lower).all()
    assert np.isnan(one_sided.log_rate_ratio).all()
    assert (one_sided.upper < 0).all()
    assert (one_sided.p_value < 0.01).all()
    assert placebo(m * 0, m * 0, n, n, confidence=0.95).p_value.tolist() == [1.0, 1.0]
    two = np.ones((2, 1), dtype=np.int64)  # of one degree of freedom no limit is within the doubles
    unlimited = placebo(two, two, two[:, 0] * 2, two[:, 0] * 2, confidence=0.999)
    assert unlimited.log_rate_ratio[0] == 0
    assert np.isnan([unlimited.lower, unlimited.upper]).all()
