"""The recall reference in words: said where the answer depends on it, and only there."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from pipeline.stages.before_after.assumption import doubtful, verdict_on_reference

ROW: dict[str, Any] = {
    "grouping": "all",
    "threshold": 2.0,
    "fpr": 0.02,
    "precision": 0.5,
    "precision_uncorrected": 0.45,
    "is_reference": True,
    "undefined": None,
}
POINT = {"grouping": "all", "criterion": "max_f1", "threshold": 5.0, "recall": 0.36, "recall_uncorrected": 0.67}
TYPES = {"precision": pl.Float64, "precision_uncorrected": pl.Float64, "undefined": pl.String}


def tables(points: list[dict[str, Any]] | None = None, **changes: object) -> dict[str, pl.DataFrame]:
    others = [ROW | {"threshold": 1.0, "is_reference": False}, ROW | {"grouping": "source", "fpr": 0.9}]
    types = {"threshold": pl.Float64, "recall": pl.Float64, "recall_uncorrected": pl.Float64}
    return {
        "before_after_estimates": pl.DataFrame([ROW | changes, *others], schema_overrides=TYPES),
        "before_after_operating_points": pl.DataFrame([POINT] if points is None else points, schema_overrides=types),
    }


def test_a_sound_reference_needs_no_words() -> None:
    assert doubtful(tables()) is None
    assert verdict_on_reference(tables()) == ""


@pytest.mark.parametrize(
    ("changes", "is_doubtful"),
    [
        ({"fpr": 0.1}, True),
        ({"fpr": 0.0999}, False),
        ({"precision_uncorrected": 0.1999}, True),
        ({"precision_uncorrected": 0.2}, False),
        ({"grouping": "source", "fpr": 0.5}, True),  # then the total has no reference at all
    ],
)
def test_a_high_rate_or_a_low_precision_at_the_reference_of_the_total_is_told(
    changes: dict[str, Any],
    is_doubtful: bool,  # noqa: FBT001 - a parameter of pytest
) -> None:
    assert (doubtful(tables(**changes)) is not None) == is_doubtful


def test_the_words_name_the_reference_and_both_recalls() -> None:
    words = tables(fpr=0.5, precision=0.14, precision_uncorrected=0.07)
    told = (
        "(at 5 the formula as published, Welbers et al. 2022, gives a recall of 0.67, the corrected one 0.36)",
        "50% of the pairs match",
        "14% of the matches after it are right",
        "the recall reference, 2",
    )
    warning, sentence = doubtful(words), verdict_on_reference(words)
    assert warning is not None
    assert warning.startswith("precision and recall depend on")
    assert "before_after_sensitivity" in warning
    assert sentence == "This depends on the recall reference: see the warnings."
    for text in told:
        assert text in warning


@pytest.mark.parametrize(
    "points",
    [
        [POINT | {"threshold": None, "recall": None, "recall_uncorrected": None}],
        [POINT | {"recall": None}],
        [POINT | {"criterion": "recall_reference"}],
    ],
)
def test_without_a_chosen_threshold_both_recalls_are_left_out(points: list[dict[str, Any]]) -> None:
    words = tables(points, fpr=0.5)
    assert "uncorrected" not in str(doubtful(words))


def test_precision_that_cannot_be_estimated_is_an_unknown_share() -> None:
    assert "an unknown share of the matches" in str(doubtful(tables(fpr=0.5, precision=None)))


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("unidentified", "as many pairs match before the event as are believed to be found after it"),
        ("all_positive", "more positives are estimated at the recall reference than pairs were compared"),
    ],
)
def test_a_reference_that_tells_nothing_is_told(reason: str, words: str) -> None:
    assert words in str(doubtful(tables(undefined=reason)))


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("no_reference", "no threshold has enough precision"),
        ("no_prediction", "no threshold has enough precision"),
        ("no_before", "no pair was compared before the event"),
    ],
)
def test_no_reference_at_all_is_told(reason: str, words: str) -> None:
    without = tables(is_reference=False, undefined=reason)
    assert words in str(doubtful(without))
    assert verdict_on_reference(without) == ""
