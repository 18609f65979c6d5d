from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.metrics.before_after.estimates import estimates, operating_point
from pipeline.metrics.curves.operating_points import Criterion

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.metrics.before_after.estimates import ReferenceRule

KEYS = ["group"]
RATIOS = ("fpr", "fp", "tp", "precision", "recall", "recall_raw", "f1")
SCHEMA: dict[str, type[pl.DataType]] = {
    "group": pl.String,
    "threshold": pl.Float64,
    "n_before": pl.Int64,
    "n_after": pl.Int64,
    "m_before": pl.Int64,
    "m_after": pl.Int64,
}


@dataclass(frozen=True)
class Row:
    """Counts at one threshold of one group, and its ratios as exact rationals from their definitions."""

    group: str | None
    threshold: float
    n_before: int
    n_after: int
    m_before: int
    m_after: int

    @property
    def fpr(self) -> Fraction | None:
        return Fraction(self.m_before, self.n_before) if self.n_before else None

    @property
    def tp(self) -> Fraction | None:
        return None if self.fpr is None else self.m_after - self.fpr * self.n_after

    @property
    def precision(self) -> Fraction | None:
        return self.tp / self.m_after if self.tp is not None and self.m_after else None

    def expected(self, reference: Row | None) -> dict[str, Fraction | str | bool | None]:
        fp = None if self.fpr is None else self.fpr * self.n_after
        reference_tp = None if reference is None else reference.tp
        raw = None
        if self.tp is not None and self.tp >= 0 and reference_tp is not None:
            raw = self.tp / reference_tp
        recall = None if raw is None else min(raw, Fraction(1))
        return {
            "fpr": self.fpr,
            "fp": fp,
            "tp": self.tp,
            "precision": self.precision,
            "recall": recall,
            "recall_raw": raw,
            "f1": _f1(self.precision, recall),
            "is_reference": self == reference,
            "undefined": self.reason(reference),
        }

    def reason(self, reference: Row | None) -> str | None:
        if self.tp is None:
            return "no_before"
        if self.m_after == 0:
            return "no_prediction"
        if self.tp < 0:
            return "negative_tp"
        return "no_reference" if reference is None else None


def _f1(precision: Fraction | None, recall: Fraction | None) -> Fraction | None:
    """Harmonic mean; 0 where nothing right is retrieved; None without a recall."""
    if recall is None:
        return None
    return 2 * precision * recall / (precision + recall) if precision else Fraction(0)


def reference_of(
    rows: Sequence[Row], rule: ReferenceRule, min_precision: Fraction, threshold: float | None
) -> Row | None:
    """The reference of one group, by definition; recall divides by its true positives, so there must be some."""
    positive = sorted((row for row in rows if row.tp is not None and row.tp > 0), key=lambda row: row.threshold)
    if rule == "fixed":
        return next((row for row in positive if row.threshold == threshold), None)
    enough = [row for row in positive if row.precision is not None and row.precision >= min_precision]
    if rule == "lowest" or not enough:
        return enough[0] if enough else None
    most = max(row.tp for row in enough if row.tp is not None)
    return next(row for row in enough if row.tp == most)


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
huge = st.integers(0, 10**12)


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


@given(
    groups(small) | groups(huge),
    st.sampled_from(["lowest", "max", "fixed"]),
    decimals,
    st.integers(-3, 9).map(lambda number: number / 2),
)
def test_estimates_equal_exact_rationals(
    rows: list[Row], rule: ReferenceRule, min_precision: str, fixed: float
) -> None:
    threshold = fixed if rule == "fixed" else None
    actual = result_of(rows, rule=rule, min_precision=float(min_precision), threshold=threshold)
    assert len(actual) == len(rows)
    by_key = {(row.group, row.threshold): row for row in rows}
    for evaluated in actual:
        row = by_key[evaluated["group"], evaluated["threshold"]]
        rows_of_group = [each for each in rows if each.group == row.group]
        reference = reference_of(rows_of_group, rule, Fraction(min_precision), threshold)
        assert_same(evaluated, row.expected(reference))


def test_without_pairs_before_every_ratio_is_undefined() -> None:
    row = one(0, 50, 0, 20)
    assert [row[name] for name in RATIOS] == [None] * len(RATIOS)
    assert row["undefined"] == "no_before"
    assert not row["is_reference"]


def test_without_pairs_after_fp_and_tp_are_0_and_precision_is_undefined() -> None:
    row = one(50, 0, 10, 0)
    assert (row["fpr"], row["fp"], row["tp"]) == (0.2, 0, 0)
    assert (row["precision"], row["recall"], row["f1"]) == (None, None, None)
    assert row["undefined"] == "no_prediction"


def test_without_matches_before_every_match_after_is_right() -> None:
    row = one(50, 40, 0, 10)
    assert (row["fpr"], row["fp"], row["tp"], row["precision"], row["recall"], row["f1"]) == (0, 0, 10, 1, 1, 1)
    assert row["undefined"] is None


def test_matches_before_but_none_after_make_tp_negative_and_precision_undefined() -> None:
    row = one(50, 40, 5, 0)
    assert (row["fpr"], row["fp"], row["tp"]) == (0.1, 4, -4)
    assert (row["precision"], row["recall"], row["f1"]) == (None, None, None)
    assert row["undefined"] == "no_prediction"


def test_negative_tp_and_precision_are_shown_while_recall_and_f1_are_undefined() -> None:
    rows = [Row("a", 1.0, 100, 100, 20, 10), Row("a", 2.0, 100, 100, 1, 9)]
    low, high = result_of(rows)
    assert (low["tp"], low["precision"]) == (-10, -1)
    assert (low["recall"], low["recall_raw"], low["f1"]) == (None, None, None)
    assert low["undefined"] == "negative_tp"
    assert high["is_reference"]


def test_more_true_positives_than_at_the_reference_clip_recall_to_1() -> None:
    rows = [Row("a", 1.0, 100, 100, 30, 35), Row("a", 2.0, 100, 100, 10, 30)]
    low, high = result_of(rows)
    assert low["is_reference"]
    assert (high["recall_raw"], high["recall"]) == (4, 1)
    assert high["f1"] == pytest.approx(2 * (20 / 30) / (20 / 30 + 1), rel=1e-15)


def test_without_enough_precision_anywhere_recall_and_f1_are_undefined_everywhere() -> None:
    rows = [Row("a", 1.0, 100, 100, 50, 51), Row("a", 2.0, 100, 100, 20, 20)]
    for row in result_of(rows):
        assert (row["recall"], row["recall_raw"], row["f1"], row["is_reference"]) == (None, None, None, False)
        assert row["undefined"] == "no_reference"


def test_precision_and_recall_of_0_give_an_f1_of_0() -> None:
    rows = [Row("a", 1.0, 100, 100, 10, 50), Row("a", 2.0, 100, 100, 5, 5)]
    high = result_of(rows)[1]
    assert (high["precision"], high["recall"], high["f1"], high["undefined"]) == (0, 0, 0, None)


def test_a_threshold_that_no_pair_reaches_has_recall_0_and_no_precision() -> None:
    rows = [Row("a", 1.0, 100, 100, 10, 50), Row("a", 2.0, 100, 100, 0, 0)]
    high = result_of(rows)[1]
    assert (high["fpr"], high["fp"], high["tp"], high["recall"], high["f1"]) == (0, 0, 0, 0, 0)
    assert (high["precision"], high["undefined"]) == (None, "no_prediction")


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
    assert [row["recall"] for row in actual] == [1, 0.5, 0, 1]


def test_huge_counts_are_exact() -> None:
    n = 10**12
    row = one(n, n, n // 10 - 1, n // 10)
    assert row["tp"] == 1
    assert row["precision"] == pytest.approx(1e-11, rel=1e-15)
    assert row["undefined"] == "no_reference"
    assert one(n, n, n // 10, n // 10)["tp"] == 0


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
        assert row["tp_corrected"] == pytest.approx(right, rel=1e-12, abs=1e-9)
        assert row["recall_corrected"] == pytest.approx(recall / 20, rel=1e-12, abs=1e-12)
        if row["m_after"]:
            assert row["precision_corrected"] == pytest.approx(right / row["m_after"], rel=1e-12, abs=1e-12)
        else:
            assert row["precision_corrected"] is None


def test_the_correction_is_the_fixed_point_of_fewer_negatives() -> None:
    rows = [Row("a", 1.0, 4000, 1000, 400, 300), Row("a", 2.0, 4000, 1000, 40, 150)]
    positives = 0.0
    for _ in range(200):
        positives = 300 - 400 / 4000 * (1000 - positives)
    low, high = result_of(rows)
    assert low["recall_corrected"] == pytest.approx(1, rel=1e-12)
    assert low["tp_corrected"] == pytest.approx(positives, rel=1e-12)
    assert high["tp_corrected"] == pytest.approx(150 - 0.01 * (1000 - positives), rel=1e-12)
    assert high["recall_corrected"] == pytest.approx(0.01 + 0.9 * high["recall_raw"], rel=1e-12)


def test_without_identification_the_corrected_columns_are_undefined() -> None:
    """False positive rate at the reference as large as the recall there: nothing tells positives from negatives."""
    row = one(10, 100, 8, 90, rule="fixed", threshold=1.0, reference_recall=0.8)
    assert row["is_reference"]
    assert (row["tp_corrected"], row["precision_corrected"], row["recall_corrected"]) == (None, None, None)


def _point(rows: Sequence[Row], criterion: Criterion, **options: Any) -> dict[str, Any]:  # noqa: ANN401
    curve = estimates(frame_of(rows), KEYS, **options)
    return operating_point(curve, KEYS, criterion).to_dicts()[0]


@given(groups(small), decimals, decimals.filter(lambda text: text != "0"))
def test_operating_points_are_the_best_rows_by_exact_rationals(
    rows: list[Row], min_precision: str, min_recall: str
) -> None:
    rows_of_group = [row for row in rows if row.group == rows[0].group]
    reference = reference_of(rows_of_group, "lowest", Fraction("0.05"), None)
    candidates = [(row, row.expected(reference)) for row in sorted(rows_of_group, key=lambda row: row.threshold)]
    for criterion, eligible, value in (
        (Criterion(beta=1), lambda _: True, "f1"),
        (
            Criterion(min_precision=float(min_precision)),
            lambda element: element["precision"] is not None and element["precision"] >= Fraction(min_precision),
            "recall",
        ),
        (
            Criterion(min_recall=float(min_recall)),
            lambda element: element["recall"] is not None and element["recall"] >= Fraction(min_recall),
            "precision",
        ),
    ):
        evaluated = [
            (row, ratios[value]) for row, ratios in candidates if eligible(ratios) and ratios[value] is not None
        ]
        actual = _point(rows_of_group, criterion)
        if not evaluated:
            assert (actual["threshold"], actual["undefined"]) == (None, "not_reached")
            continue
        best = max(element for _, element in evaluated if isinstance(element, Fraction))
        chosen = next(row for row, element in evaluated if element == best)
        assert actual["threshold"] == chosen.threshold
        assert actual["m_after"] == chosen.m_after


def test_equally_good_thresholds_give_the_lowest() -> None:
    rows = [Row("a", threshold, 10, 10, 0, 5) for threshold in (3.0, 1.0, 2.0)]
    for criterion in (Criterion(beta=1), Criterion(min_precision=1), Criterion(min_recall=1), Criterion(beta=0.5)):
        assert _point(rows, criterion)["threshold"] == 1.0


def test_a_criterion_that_no_row_meets_keeps_its_row_and_says_so() -> None:
    row = _point([Row("a", 1.0, 10, 10, 5, 8)], Criterion(min_precision=0.9))
    assert (row["group"], row["criterion"], row["undefined"]) == ("a", "min_precision=0.9", "not_reached")
    assert all(row[name] is None for name in (*RATIOS, "threshold", "m_after"))


def test_minimum_precision_of_a_point_is_compared_exactly() -> None:
    row = _point([Row("a", 1.0, 3000, 300, 57, 6)], Criterion(min_precision=0.05))
    assert row["threshold"] == 1.0


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
