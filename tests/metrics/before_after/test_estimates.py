from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from reference_estimates import Row, chosen_by, reaches, reference_of

from pipeline.metrics.before_after.estimates import Sums, estimates, f_beta, operating_point, precision_reaches
from pipeline.metrics.curves.decisions import Cost
from pipeline.metrics.curves.operating_points import Criterion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.metrics.before_after.estimates import ReferenceRule

KEYS = ["group"]
NAMES = ("fp", "tp", "precision", "recall", "recall_raw", "f1")
UNCORRECTED = tuple(f"{name}_uncorrected" for name in NAMES)
RATIOS = ("fpr", *NAMES, *UNCORRECTED)
SCHEMA: dict[str, type[pl.DataType]] = {
    "group": pl.String,
    "threshold": pl.Float64,
    "n_before": pl.Int64,
    "n_after": pl.Int64,
    "m_before": pl.Int64,
    "m_after": pl.Int64,
}


def frame_of(rows: Sequence[Row]) -> pl.DataFrame:
    return pl.DataFrame([vars(row) for row in rows], schema=SCHEMA)


def result_of(rows: Sequence[Row], **options: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - options of estimates
    return estimates(frame_of(rows), KEYS, **options).sort("group", "threshold", nulls_last=True).to_dicts()


def one(n_before: int, n_after: int, m_before: int, m_after: int, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    return result_of([Row("a", 1.0, n_before, n_after, m_before, m_after)], **options)[0]


def assert_same(actual: dict[str, Any], expected: dict[str, Fraction | str | bool | None]) -> None:
    for name, value in expected.items():
        if isinstance(value, Fraction):
            assert actual[name] is not None, name
            assert actual[name] == pytest.approx(float(value), rel=1e-14, abs=0), name
        else:
            assert actual[name] == value, name


small = st.integers(0, 6) | st.integers(0, 60)
huge = st.integers(0, 10**12) | st.integers(0, 10**18)  # of which products have more than 127 bits


@st.composite
def groups(draw: st.DrawFn, counts: st.SearchStrategy[int]) -> list[Row]:
    """Rows of one to three groups, one of them NULL, in any order; m is drawn within n, and need not fall."""
    rows = []
    for group in draw(st.lists(st.sampled_from(["a", "b", None]), unique=True, min_size=1, max_size=3)):
        n_before, n_after = draw(counts), draw(counts)
        for threshold in draw(st.lists(st.integers(-3, 9), unique=True, min_size=1, max_size=6)):
            m_before, m_after = draw(st.integers(0, n_before)), draw(st.integers(0, n_after))
            rows.append(Row(group, threshold / 2, n_before, n_after, m_before, m_after))
    return draw(st.permutations(rows))


decimals = st.sampled_from(["0", "0.01", "0.05", "0.1", "0.2", "0.5", "0.333333333", "1"])


recalls = st.sampled_from(["1", "1", "0.9", "0.8", "0.333333333", "0.05"])


@given(
    groups(small) | groups(huge),
    st.sampled_from(["lowest", "max", "fixed"]),
    decimals,
    st.integers(-3, 9).map(lambda number: number / 2),
    recalls,
)
def test_estimates_equal_exact_rationals(
    rows: list[Row], rule: ReferenceRule, min_precision: str, fixed: float, recall: str
) -> None:
    threshold = fixed if rule == "fixed" else None
    options: dict[str, Any] = {"rule": rule, "min_precision": float(min_precision), "threshold": threshold}
    actual = result_of(rows, **options, reference_recall=float(recall))
    assert len(actual) == len(rows)
    by_key = {(row.group, row.threshold): row for row in rows}
    for evaluated in actual:
        row = by_key[evaluated["group"], evaluated["threshold"]]
        rows_of_group = [each for each in rows if each.group == row.group]
        reference = reference_of(rows_of_group, rule, Fraction(min_precision), threshold)
        assert_same(evaluated, row.expected(reference, Fraction(recall)))


@given(groups(small), recalls)
def test_limits_rest_on_doubles_of_the_same_numbers(rows: list[Row], recall: str) -> None:
    """In doubles, signs are left open where the exact number is 0, and ends where it is about as large as they are."""
    estimated = estimates(frame_of(rows), KEYS, reference_recall=float(recall)).sort("group", "threshold")
    for group in estimated.partition_by(KEYS):
        references = np.flatnonzero(group["is_reference"].to_numpy())
        reference = int(references[0]) if len(references) else None
        counts = [group["m_before"], group["m_after"], group["n_before"][:1], group["n_after"][:1]]
        with np.errstate(divide="ignore", invalid="ignore"):
            numbers = Sums.of(reference, float(recall), [count.to_numpy() for count in counts]).numbers
            for name in RATIOS:
                exact = group[name].cast(pl.Float64).fill_null(np.nan).to_numpy()
                values = np.broadcast_to(numbers[name], exact.shape)
                both = np.isfinite(exact) & np.isfinite(values)
                assert values[both] == pytest.approx(exact[both], rel=1e-9, abs=1e-9), name
                open_tp = numbers["tp_uncorrected" if "uncorrected" in name else "tp"]
                is_open = np.broadcast_to(np.abs(np.nan_to_num(open_tp)) < 1e-9, exact.shape)
                assert (both | is_open | (~np.isfinite(exact) & ~np.isfinite(values))).all(), name


def test_without_pairs_before_every_ratio_is_undefined() -> None:
    row = one(0, 50, 0, 20)
    assert [row[name] for name in RATIOS] == [None] * len(RATIOS)
    assert row["undefined"] == "no_before"
    assert not row["is_reference"]


def test_without_pairs_after_fp_and_tp_are_0_and_precision_is_undefined() -> None:
    row = one(50, 0, 10, 0)
    assert (row["fpr"], row["fp_uncorrected"], row["tp_uncorrected"]) == (0.2, 0, 0)
    assert [row[name] for name in RATIOS[1:7]] == [None] * 6
    assert [row[f"{name}_uncorrected"] for name in ("precision", "recall", "f1")] == [None] * 3
    assert row["undefined"] == "no_prediction"


def test_without_matches_before_every_match_after_is_right() -> None:
    row = one(50, 40, 0, 10)
    assert row["fpr"] == 0
    for suffix in ("", "_uncorrected"):
        assert [row[f"{name}{suffix}"] for name in NAMES] == [0, 10, 1, 1, 1, 1]
    assert row["undefined"] is None


def test_matches_before_but_none_after_make_tp_negative_and_precision_undefined() -> None:
    row = one(50, 40, 5, 0)
    assert (row["fpr"], row["fp_uncorrected"], row["tp_uncorrected"]) == (0.1, 4, -4)
    assert [row[f"{name}_uncorrected"] for name in ("precision", "recall", "f1")] == [None] * 3
    assert [row[name] for name in NAMES] == [None] * 6
    assert row["undefined"] == "no_prediction"


def test_negative_tp_and_precision_are_shown_while_recall_and_f1_are_undefined() -> None:
    rows = [Row("a", 1.0, 100, 100, 20, 10), Row("a", 2.0, 100, 100, 0, 5)]
    low, high = result_of(rows)
    assert (low["tp_uncorrected"], low["precision_uncorrected"]) == (-10, -1)
    assert (low["tp"], low["precision"]) == (10 - 0.2 * 95, -0.9), "5 of the 100 pairs after are positive"
    for suffix in ("", "_uncorrected"):
        assert [low[f"{name}{suffix}"] for name in ("recall", "recall_raw", "f1")] == [None] * 3
    assert low["undefined"] == "negative_tp"
    assert high["is_reference"]


def test_the_correction_can_turn_negative_true_positives_into_none_at_all() -> None:
    """u g + M_b w is exactly 0 here; the difference of doubles would be about -1e-16, and recall undefined."""
    rows = [Row("a", 1.0, 49, 49, 7, 6), Row("a", 2.0, 49, 49, 0, 7)]
    low, _ = result_of(rows)
    assert (low["tp_uncorrected"], low["recall_uncorrected"]) == (-1, None)
    assert [low[name] for name in NAMES] == [6, 0, 0, 0, 0, 0]
    assert low["undefined"] is None


def test_more_true_positives_than_at_the_reference_clip_recall_to_1() -> None:
    rows = [Row("a", 1.0, 100, 100, 30, 35), Row("a", 2.0, 100, 100, 10, 30)]
    low, high = result_of(rows)
    assert low["is_reference"]
    assert (high["recall_raw_uncorrected"], high["recall_uncorrected"]) == (4, 1)
    assert high["f1_uncorrected"] == pytest.approx(2 * (20 / 30) / (20 / 30 + 1), rel=1e-15)
    tp, positives = 30 - 0.1 * (100 - 5 / 0.7), 5 / 0.7
    assert (high["recall_raw"], high["recall"]) == (pytest.approx(tp / positives, rel=1e-15), 1)
    assert high["f1"] == pytest.approx(2 * (tp / 30) / (tp / 30 + 1), rel=1e-15)


def test_without_enough_precision_anywhere_recall_and_f1_are_undefined_everywhere() -> None:
    rows = [Row("a", 1.0, 100, 100, 50, 51), Row("a", 2.0, 100, 100, 20, 20)]
    for row in result_of(rows):
        assert [row[name] for name in NAMES] == [None] * 6, "without a reference nothing can be corrected"
        assert [row[f"{name}_uncorrected"] for name in ("recall", "recall_raw", "f1")] == [None] * 3
        assert row["precision_uncorrected"] is not None
        assert (row["is_reference"], row["undefined"]) == (False, "no_reference")


def test_precision_and_recall_of_0_give_an_f1_of_0() -> None:
    rows = [Row("a", 1.0, 100, 100, 10, 50), Row("a", 2.0, 100, 100, 5, 5)]
    high = result_of(rows)[1]
    assert [high[f"{name}_uncorrected"] for name in ("precision", "recall", "f1")] == [0, 0, 0]
    assert high["undefined"] is None


def test_a_threshold_that_no_pair_reaches_has_recall_0_and_no_precision() -> None:
    rows = [Row("a", 1.0, 100, 100, 10, 50), Row("a", 2.0, 100, 100, 0, 0)]
    high = result_of(rows)[1]
    assert high["fpr"] == 0
    for suffix in ("", "_uncorrected"):
        assert [high[f"{name}{suffix}"] for name in NAMES] == [0, 0, None, 0, 0, 0]
    assert high["undefined"] == "no_prediction"


def test_precision_of_exactly_the_minimum_qualifies_although_doubles_fall_short() -> None:
    assert 1 - (57 / 3000 * 300) / 6 < 0.05
    row = one(3000, 300, 57, 6, min_precision=0.05)
    assert row["is_reference"]
    assert row["recall"] == 1


@pytest.mark.parametrize("scale", [1, 10**3, 10**9])
def test_one_match_decides_whether_precision_is_enough(scale: int) -> None:
    n_before, n_after, m_after = 3000 * scale, 300 * scale, 6 * scale
    assert one(n_before, n_after, 57 * scale, m_after)["is_reference"]
    assert not one(n_before, n_after, 57 * scale + 1, m_after)["is_reference"]


def test_the_three_rules_choose_three_references() -> None:
    tps = {1.0: 2, 2.0: 10, 3.0: 30, 4.0: 30, 5.0: 20}
    rows = [Row("a", threshold, 1000, 1000, 0, tp) for threshold, tp in tps.items()]
    rows[0] = Row("a", 1.0, 1000, 1000, 98, 100)

    def chosen(rule: ReferenceRule, threshold: float | None = None) -> list[float]:
        actual = result_of(rows, rule=rule, threshold=threshold)
        return [row["threshold"] for row in actual if row["is_reference"]]

    assert chosen("lowest") == [2.0]
    assert chosen("max") == [3.0], "equal true positives: the lowest threshold"
    assert chosen("fixed", 5.0) == [5.0]
    assert chosen("fixed", 1.0) == [1.0], "a fixed reference needs no minimum precision"
    assert chosen("fixed", 9.0) == []


def test_every_group_has_its_own_reference_and_null_is_a_group() -> None:
    rows = [
        Row("a", 1.0, 10, 10, 0, 4),
        Row("a", 2.0, 10, 10, 0, 2),
        Row(None, 1.0, 10, 10, 10, 10),
        Row(None, 2.0, 10, 10, 0, 5),
    ]
    actual = result_of(rows)
    assert [row["is_reference"] for row in actual] == [True, False, False, True]
    for suffix in ("", "_uncorrected"):
        assert [row[f"recall{suffix}"] for row in actual] == [1, 0.5, 1 if not suffix else 0, 1]


def test_huge_counts_are_exact() -> None:
    n = 10**12
    row = one(n, n, n // 10 - 1, n // 10)
    assert row["tp_uncorrected"] == 1
    assert row["precision_uncorrected"] == pytest.approx(1e-11, rel=1e-15)
    assert row["undefined"] == "no_reference"
    assert one(n, n, n // 10, n // 10)["tp_uncorrected"] == 0
    row = one(n, n, n // 10 - 1, n // 10, min_precision=0.0)
    positives = Fraction(n, n - n // 10 + 1)
    assert row["tp"] == pytest.approx(float(positives), rel=1e-15)
    assert row["precision"] == pytest.approx(float(positives / (n // 10)), rel=1e-15)


planted = st.fixed_dictionaries(
    {
        "positives": st.integers(1, 50).map(lambda number: number * 400),
        "negatives": st.integers(1, 50).map(lambda number: number * 400),
        "n_before": st.integers(1, 50).map(lambda number: number * 400),
        "rates": st.lists(st.tuples(st.integers(0, 19), st.integers(0, 20)), min_size=1, max_size=4),
        "reference_rate": st.integers(0, 15),
    }
)


@given(planted, st.sampled_from([20, 18, 16]))
def test_corrected_columns_recover_planted_truth(truth: dict[str, Any], recall_at_reference: int) -> None:
    """Expected counts of known rates in twentieths: FPR and recall come back, whatever the share of positives."""
    positives, negatives, n_before = truth["positives"], truth["negatives"], truth["n_before"]
    rates = [(truth["reference_rate"], recall_at_reference), *truth["rates"]]
    rows = [
        Row(
            "a",
            float(number),
            n_before,
            positives + negatives,
            n_before * fpr // 20,
            (positives * recall + negatives * fpr) // 20,
        )
        for number, (fpr, recall) in enumerate(rates)
    ]
    actual = result_of(rows, rule="fixed", threshold=0.0, reference_recall=recall_at_reference / 20)
    for row, (fpr, recall) in zip(actual, rates, strict=True):
        right = positives * recall / 20
        assert row["fpr"] == pytest.approx(fpr / 20, rel=1e-12)
        assert row["tp"] == pytest.approx(right, rel=1e-12, abs=1e-9)
        assert row["recall_raw"] == pytest.approx(recall / 20, rel=1e-12, abs=1e-12)
        if row["m_after"]:
            assert row["precision"] == pytest.approx(right / row["m_after"], rel=1e-12, abs=1e-12)
        else:
            assert row["precision"] is None


def test_the_correction_is_the_fixed_point_of_fewer_negatives() -> None:
    rows = [Row("a", 1.0, 4000, 1000, 400, 300), Row("a", 2.0, 4000, 1000, 40, 150)]
    positives = 0.0
    for _ in range(200):
        positives = 300 - 400 / 4000 * (1000 - positives)
    low, high = result_of(rows)
    assert low["recall"] == pytest.approx(1, rel=1e-12)
    assert low["tp"] == pytest.approx(positives, rel=1e-12)
    assert high["tp"] == pytest.approx(150 - 0.01 * (1000 - positives), rel=1e-12)
    assert high["recall_raw"] == pytest.approx(0.01 + 0.9 * high["recall_raw_uncorrected"], rel=1e-12)


def test_without_identification_the_corrected_columns_are_undefined() -> None:
    """False positive rate at the reference as large as the recall there: nothing tells positives from negatives."""
    row = one(10, 100, 8, 90, rule="fixed", threshold=1.0, reference_recall=0.8)
    assert row["is_reference"]
    assert [row[name] for name in NAMES] == [None] * 6
    assert (row["recall_uncorrected"], row["precision_uncorrected"]) == (1, pytest.approx(1 / 9))
    assert row["undefined"] == "unidentified"
    assert one(10, 100, 7, 90, rule="fixed", threshold=1.0, reference_recall=0.8)["undefined"] == "all_positive"


def test_more_positives_than_pairs_are_undefined_and_as_many_are_not() -> None:
    """A = 8 / (r0 - 1/5) of 9 pairs after the event: 10 with r0 = 1, and 9 with 49 pairs that all match."""
    row = one(10, 9, 2, 9, reference_recall=0.9)
    assert [row[name] for name in NAMES] == [None] * 6
    assert row["undefined"] == "all_positive"
    for n_before in range(2, 60):
        row = one(n_before, 49, 1, 49)
        assert [row[name] for name in NAMES] == [0, 49, 1, 1, 1, 1], "whatever the rounding of 1 - 1 / n_before"
        assert row["undefined"] is None


@given(groups(small), recalls, st.sampled_from(["lowest", "max"]))
def test_recall_at_the_reference_is_exactly_what_it_is_believed_to_be(
    rows: list[Row], recall: str, rule: ReferenceRule
) -> None:
    for row in result_of(rows, rule=rule, reference_recall=float(recall)):
        if row["is_reference"] and row["tp"] is not None:
            assert row["recall"] == row["recall_raw"] == float(recall)
            assert row["recall_uncorrected"] == row["recall_raw_uncorrected"] == 1


def test_the_uncorrected_recall_is_no_estimate_of_recall() -> None:
    """Expected counts of FPR .5 and recall 1 at the reference, .1 and .4 above it: off by (f0 R - FPR) / (1 - f0)."""
    rows = [Row("a", 1.0, 1000, 1000, 500, 600), Row("a", 2.0, 1000, 1000, 100, 160)]
    high = result_of(rows)[1]
    assert high["recall"] == pytest.approx(0.4, rel=1e-15)
    assert high["recall_uncorrected"] == pytest.approx(0.4 + (0.5 * 0.4 - 0.1) / (1 - 0.5), rel=1e-15)


def _point(rows: Sequence[Row], criterion: Criterion, recall: float = 1.0, enough: float = 0.05) -> dict[str, Any]:
    curve = estimates(frame_of(rows), KEYS, reference_recall=recall, min_precision=enough)
    return operating_point(curve, KEYS, criterion, recall).to_dicts()[0]


@pytest.mark.wide
@given(groups(small), decimals, decimals.filter(lambda text: text != "0"), recalls)
def test_operating_points_are_the_best_rows_by_exact_rationals(
    rows: list[Row], min_precision: str, min_recall: str, recall: str
) -> None:
    rows_of_group = [row for row in rows if row.group == rows[0].group]
    reference = reference_of(rows_of_group)
    candidates = [(row, row.expected(reference, Fraction(recall))) for row in rows_of_group]
    for criterion, chosen in (
        (Criterion(beta=1), chosen_by(candidates, lambda _: True, "f1")),
        (
            Criterion(min_precision=float(min_precision)),
            chosen_by(candidates, reaches("precision", Fraction(min_precision)), "recall"),
        ),
        (
            Criterion(min_recall=float(min_recall)),
            chosen_by(candidates, reaches("recall", Fraction(min_recall)), "precision"),
        ),
    ):
        actual = _point(rows_of_group, criterion, float(recall))
        if chosen is None:
            assert (actual["threshold"], actual["undefined"]) == (None, "not_reached")
            continue
        assert actual["threshold"] == chosen[0].threshold
        assert actual["m_after"] == chosen[0].m_after


@given(groups(small), recalls, st.sampled_from([(1, 20, 0), (2, 0.5, -1.5)]))
def test_no_threshold_costs_less_by_exact_rationals(
    rows: list[Row], recall: str, costs: tuple[float, float, float]
) -> None:
    rows_of_group = [row for row in rows if row.group == rows[0].group]
    reference, (of_fp, of_fn, of_tp) = reference_of(rows_of_group), map(Fraction, costs)
    exact = {}
    for row in rows_of_group:
        expected = row.expected(reference, Fraction(recall))
        if reference is None or expected["recall"] is None:
            continue
        positives = Fraction(str(reference.positives(Fraction(recall))))
        tp, fp = Fraction(str(expected["tp"])), Fraction(str(expected["fp"]))
        exact[row.threshold] = fp * of_fp + max(positives - tp, Fraction(0)) * of_fn + tp * of_tp
    actual = _point(rows_of_group, Criterion(cost=Cost(fp=costs[0], fn=costs[1], tp=costs[2])), float(recall))
    if not exact:
        assert (actual["threshold"], actual["undefined"], actual["cost"]) == (None, "not_reached", None)
        return
    assert actual["cost"] == pytest.approx(float(exact[actual["threshold"]]), abs=1e-9)
    assert actual["cost"] == pytest.approx(float(min(exact.values())), abs=1e-9)


@pytest.mark.parametrize(
    ("criterion", "threshold"),
    [
        (Criterion(max_alerts=22), 2.0),
        (Criterion(max_alerts=21), 3.0),
        (Criterion(max_alerts=9), None),
        (Criterion(max_alert_share=0.44), 2.0),
        (Criterion(threshold=2.5), 3.0),
        (Criterion(threshold=2), 2.0),
        (Criterion(threshold=3.5), None),
    ],
)
def test_capacities_bound_the_matches_after_the_event(criterion: Criterion, threshold: float | None) -> None:
    rows = [Row("a", 1.0, 100, 50, 10, 25), Row("a", 2.0, 100, 50, 4, 22), Row("a", 3.0, 100, 50, 0, 10)]
    assert _point(rows, criterion)["threshold"] == threshold
    if criterion.threshold == 2.5:  # with `>` the row at 2 retrieves what lies above 2.5, if no score is between
        curve = estimates(frame_of(rows), KEYS)
        assert operating_point(curve, KEYS, criterion, boundary=">")["threshold"].to_list() == [2.0]


@given(groups(small) | groups(huge), decimals, recalls)
def test_whether_precision_is_enough_is_decided_by_exact_rationals(
    rows: list[Row], min_precision: str, recall: str
) -> None:
    curve = estimates(frame_of(rows), KEYS, reference_recall=float(recall))
    reached = precision_reaches(curve, KEYS, float(min_precision), float(recall))
    for row, evaluated in zip(curve.iter_rows(named=True), reached.to_list(), strict=True):
        rows_of_group = [each for each in rows if each.group == row["group"]]
        counted = next(each for each in rows_of_group if each.threshold == row["threshold"])
        exact = counted.expected(reference_of(rows_of_group), Fraction(recall))["precision"]
        if row["precision"] is None:
            assert evaluated is None
        else:
            assert evaluated == (isinstance(exact, Fraction) and exact >= Fraction(min_precision))


@pytest.mark.parametrize("scale", [1, 10**3, 10**9])
def test_a_tie_of_corrected_precision_with_its_minimum_is_decided_exactly(scale: int) -> None:
    """2 positives of 302 pairs after the event: precision is 1 - 57 / 3000 * 300 / 6 = 0.05, and one match decides."""
    reference = Row("a", 1.0, 3000 * scale, 302 * scale, 0, 2 * scale)
    for m_before, is_enough in ((57 * scale, True), (57 * scale + 1, False)):
        rows = [reference, Row("a", 2.0, 3000 * scale, 302 * scale, m_before, 6 * scale)]
        curve = estimates(frame_of(rows), KEYS)
        assert precision_reaches(curve, KEYS, 0.05, 1.0).to_list() == [True, is_enough]


def test_equally_good_thresholds_give_the_lowest() -> None:
    rows = [Row("a", threshold, 10, 10, 0, 5) for threshold in (3.0, 1.0, 2.0)]
    for criterion in (Criterion(beta=1), Criterion(min_precision=1), Criterion(min_recall=1), Criterion(beta=0.5)):
        assert _point(rows, criterion)["threshold"] == 1.0


def test_a_criterion_that_no_row_meets_keeps_its_row_and_says_so() -> None:
    row = _point([Row("a", 1.0, 10, 10, 5, 8)], Criterion(min_precision=0.9))
    assert (row["group"], row["criterion"], row["undefined"]) == ("a", "min_precision=0.9", "not_reached")
    assert all(row[name] is None for name in (*RATIOS, "threshold", "m_after"))


def test_minimum_precision_of_a_point_is_compared_exactly() -> None:
    """A = (60 - 57 / 3000 * 3003) / (1 - 57 / 3000) = 3 positives of 60 matches."""
    rows = [Row("a", 1.0, 3000, 3003, 57, 60)]
    assert _point(rows, Criterion(min_precision=0.05), enough=0.04)["threshold"] == 1.0
    assert _point(rows, Criterion(min_precision=0.050000001), enough=0.04)["threshold"] is None


def test_recall_counts_more_with_a_larger_beta() -> None:
    rows = [Row("a", 1.0, 100, 100, 20, 60), Row("a", 2.0, 100, 100, 0, 20)]
    assert _point(rows, Criterion(beta=4))["threshold"] == 1.0
    assert _point(rows, Criterion(beta=0.25))["threshold"] == 2.0


@given(st.integers(1, 60), st.integers(0, 60), st.sampled_from([0.25, 0.5, 2.0, 3.0]))
def test_f_beta_is_its_definition(m_after: int, m_before: int, beta: float) -> None:
    rows = [Row("a", 1.0, 60, 60, 0, 60), Row("a", 2.0, 60, 60, m_before, m_after)]
    curve = result_of(rows)
    scores = []
    for row in curve:
        precision, recall = row["precision"], row["recall"]
        if precision is None or recall is None:
            continue
        under = beta**2 * precision + recall
        scores.append((1 + beta**2) * precision * recall / under if under else 0.0)
    best = _point(rows, Criterion(beta=beta))
    chosen = scores[[row["threshold"] for row in curve].index(best["threshold"])]
    assert math.isclose(chosen, max(scores), rel_tol=1e-12)


def test_f_beta_of_nothing_right_is_0() -> None:
    nothing = pl.DataFrame({"precision": [0.0, 0.5], "recall": [0.0, 0.5], "f1": [0.0, 0.5]})
    assert nothing.select(f_beta(2.0)).to_series().to_list() == [0.0, 0.5]
