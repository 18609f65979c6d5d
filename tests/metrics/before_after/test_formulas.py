"""The page of before_after can be read from top to bottom, and says of every number where it is undefined."""

from __future__ import annotations

import pytest

from pipeline.base.columns import names_in
from pipeline.metrics.before_after.formulas import PAGE, SHOWN, Estimate, Numbers, steps

KNOWN = {"m_before", "n_before", "m_after", "n_after", "recall_at_reference"}


@pytest.mark.parametrize("number", range(len(PAGE)))
def test_a_formula_is_of_counts_and_of_numbers_above_it(number: int) -> None:
    stated, above = PAGE[number], {each.name for each in PAGE[:number]}
    assert names_in(stated.formula) <= KNOWN | above
    assert stated.name not in KNOWN | above
    if stated.only:
        left, sign, right = stated.only.split()
        assert sign in {">=", ">", "<="}
        assert names_in(left) | names_in(right) <= KNOWN | above


@pytest.mark.parametrize("estimate", SHOWN, ids=lambda estimate: estimate.name)
def test_a_column_says_when_it_is_null_and_follows_from_what_a_row_and_its_reference_tell(estimate: Estimate) -> None:
    assert estimate.column.when_null == estimate.null != ""
    at_reference = {"tp_at_reference", "fpr_at_reference"}
    met: set[str] = set()
    for name, formula in steps(estimate.name):
        assert names_in(formula) <= KNOWN | at_reference | met
        met.add(name)
    assert estimate.name in met


def test_the_numbers_of_a_textbook_case_follow_one_after_the_other() -> None:
    """20 of 200 pairs match before the event, and 60 of 150 after it; at the reference 40 and 90 of the same pairs."""
    values = {"n_before": 200.0, "n_after": 150.0, "recall_at_reference": 1.0}

    def numbers(m_before: float, m_after: float, **at_reference: float) -> Numbers:
        counts = values | {"m_before": m_before, "m_after": m_after} | at_reference
        return Numbers(counts, {"min": min, "max": max}, lambda value, *_condition: value)

    reference = numbers(40, 90)
    page = numbers(20, 60, tp_at_reference=reference["tp_uncorrected"], fpr_at_reference=reference["fpr"])
    assert [page[name] for name in ("fpr", "fp_uncorrected", "tp_uncorrected")] == pytest.approx([0.1, 15, 45])
    assert page["precision_uncorrected"] == pytest.approx(45 / 60)
    assert (page["tp_at_reference"], page["fpr_at_reference"]) == pytest.approx((60, 0.2))
    assert page["recall_raw_uncorrected"] == pytest.approx(45 / 60)
    assert page["positives"] == pytest.approx(75)  # 60 / (1 - 0.2)
    assert [page[name] for name in ("fp", "tp", "precision")] == pytest.approx([7.5, 52.5, 0.875])
    assert [page[name] for name in ("recall_raw", "recall")] == pytest.approx([0.7, 0.7])
    assert page["f1"] == pytest.approx(2 * 0.875 * 0.7 / (0.875 + 0.7))
