"""One gate judged over its groups: outcomes, reasons and sentences, from numbers alone."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import pytest

from pipeline.runs.gate_outcomes import sentence, sentences_of_warnings
from pipeline.runs.gates import Gate, JudgedRow, Numbers, Verdict, group_of, judge

if TYPE_CHECKING:
    from collections.abc import Sequence

Z = 1.959963984540054


def row(source: str | None, value: float | None, size: int = 1000, **facts: Any) -> JudgedRow:  # noqa: ANN401
    """A share with the limits of so many rows, of the total or of a source."""
    half = None if value is None else Z * math.sqrt(max(value * (1 - value), 1e-4) / size)
    limits = (None, None) if value is None or half is None else (max(value - half, 0.0), min(value + half, 1.0))
    keys: dict[str, Any] = {
        "grouping": "all" if source is None else "source",
        "columns": {} if source is None else {"source": source},
        "table": "threshold_sweep_operating_points",
        "criterion": "max_f1",
        "threshold": 0.5,
        "value": value,
        "lower": limits[0],
        "upper": limits[1],
        "degrees": math.inf,
        "quality": "good",
        "missing": "",
        "n_rows": float(size),
        "is_share": True,
    }
    return JudgedRow(**keys | facts)


def numbers(rows: Sequence[JudgedRow], words: str = "") -> Numbers:
    return Numbers({group_of(each.columns): each for each in rows}, words=words)


def gate(**keys: Any) -> Gate:  # noqa: ANN401 - as in a config
    return Gate.model_validate({"name": "g", "stage": "clf", "metric": "precision"} | keys)


def judged(rows: Sequence[JudgedRow], before: Numbers | None = None, **keys: Any) -> list[Verdict]:  # noqa: ANN401
    return judge(gate(**keys), numbers(rows), before or Numbers())


@pytest.mark.parametrize(
    ("value", "outcome", "words"),
    [
        (0.9, "passed", "precision of clf at max_f1 is 90.0% (88.1–91.9), at least 80%"),
        (0.79, "passed", "is 79.0% (76.5–81.5), below the minimum of 80%, but not beyond sampling error (p = 0.2"),
        (0.7, "failed", "is 70.0% (67.2–72.8), below the minimum of 80% (p < 0.0001)"),
    ],
)
def test_a_minimum_fails_only_beyond_sampling_error(value: float, outcome: str, words: str) -> None:
    (verdict,) = judged([row(None, value)], min=0.8)
    assert verdict.outcome == outcome
    assert words in sentence(verdict)


def test_a_maximum_mirrors_a_minimum() -> None:
    outcomes = [judged([row(None, value)], max=0.2)[0].outcome for value in (0.1, 0.21, 0.3)]
    assert outcomes == ["passed", "passed", "failed"]


def test_p_values_are_adjusted_over_the_groups_of_a_gate() -> None:
    sources = [row(f"s{number}", 0.775) for number in range(10)]
    (alone,) = judge(gate(min=0.8, group={"source": "s3"}), numbers(sources), Numbers())
    together = judged(sources, min=0.8, by=["source"])
    assert alone.outcome == "failed"
    assert {verdict.outcome for verdict in together} == {"passed"}
    assert together[0].p_adjusted == pytest.approx(10 * together[0].p_value)
    assert together[0].p_value == alone.p_value
    assert "adjusted p = " in sentence(together[0])


@pytest.mark.wide
def test_a_fall_is_held_against_the_errors_of_both() -> None:
    before = numbers([row(None, 0.9)], "run 1")
    outcomes = [
        judged([row(None, value)], before, max_drop=0.02, baseline="previous")[0].outcome
        for value in (0.95, 0.88, 0.865, 0.82)
    ]
    assert outcomes == ["passed", "passed", "passed", "failed"]
    (fallen,) = judged([row(None, 0.82)], before, max_drop=0.02, baseline="previous")
    assert "fell from 90.0% (88.1–91.9) in run 1 to 82.0% (79.6–84.4), by more than 2 percentage points" in sentence(
        fallen
    )
    noisy = numbers([row(None, 0.9, size=30)], "run 1")
    assert judged([row(None, 0.82)], noisy, max_drop=0.02, baseline="previous")[0].outcome == "passed"


@pytest.mark.wide
def test_a_change_is_one_in_either_direction() -> None:
    before = numbers([row(None, 0.5)], "run 1")
    for value, drop, rise, change in ((0.4, "failed", "passed", "failed"), (0.6, "passed", "failed", "failed")):
        keys = {"max_drop": 0.01, "max_rise": 0.01, "max_change": 0.01, "baseline": "previous"}
        outcomes = {each.condition: each.outcome for each in judged([row(None, value)], before, **keys)}
        assert outcomes == {"max_drop": drop, "max_rise": rise, "max_change": change}


def test_only_shares_are_written_in_percent() -> None:
    cost = row(None, 0.4, is_share=False)
    (verdict,) = judged([cost], metric="cost_per_row", max=0.2)
    assert sentence(verdict).startswith(
        "cost_per_row of clf at max_f1 is 0.4 (0.3696 to 0.4304), above the maximum of 0.2"
    )
    before = numbers([row(None, 0.1, is_share=False)], "run 1")
    (risen,) = judged([cost], before, metric="cost_per_row", max_rise=0.05, baseline="previous")
    assert "to 0.4 (0.3696 to 0.4304), by more than 0.05 beyond" in sentence(risen)


def test_a_named_group_without_rows_fails() -> None:
    (verdict,) = judged([row("noon", 0.9)], min=0.8, group={"source": "dusk"})
    assert (verdict.outcome, sentence(verdict)) == (
        "failed",
        "precision of clf for source dusk fails: the group has no rows",
    )


def test_values_of_groups_are_compared_as_text() -> None:
    year = row(None, 0.9, grouping="year", columns={"year": 2026})
    assert judged([year], min=0.8, group={"year": 2026})[0].outcome == "passed"
    assert judged([year], min=0.8, group={"year": "2026"})[0].outcome == "passed"


@pytest.mark.parametrize(
    ("now", "before", "reason"),
    [
        ([row(None, None, missing="no_prediction")], None, "it is not defined (no_prediction)"),
        ([row(None, 0.9, lower=None, upper=None, missing="budget")], None, "it has no interval (budget)"),
        ([row(None, 0.9)], Numbers(missing="there is no earlier run yet"), "there is no earlier run yet"),
        ([row(None, 0.9)], numbers([row("noon", 0.9)], "run 1"), "run 1 has no such group"),
        (
            [row(None, 0.9)],
            numbers([row(None, None, missing="no_prediction")], "run 1"),
            "it is not defined in run 1 (no_prediction)",
        ),
    ],
)
def test_what_cannot_be_judged_is_undecided(now: list[JudgedRow], before: Numbers | None, reason: str) -> None:
    keys = {"min": 0.8} if before is None else {"max_drop": 0.1, "baseline": "previous"}
    (verdict,) = judged(now, before, **keys)
    assert (verdict.outcome, verdict.reason) == ("undecided", reason)
    (warning,) = sentences_of_warnings([verdict])
    assert warning.startswith("gate g is undecided: precision of clf")
    assert reason in warning


def test_too_few_rows_fail_whatever_the_interval() -> None:
    verdicts = judged([row(None, 0.9, size=20, lower=None, upper=None)], min=0.8, min_rows=50)
    assert [(each.condition, each.outcome) for each in verdicts] == [("min", "undecided"), ("min_rows", "failed")]
    assert sentence(verdicts[1]) == "precision of clf at max_f1 rests on 20 rows, fewer than 50"
    assert judged([row(None, 0.9, n_rows=None)], min_rows=1)[0].outcome == "undecided"


def test_a_group_that_has_gone_since_the_baseline_is_told() -> None:
    before = numbers([row("noon", 0.9), row("dusk", 0.9)], "run 1")
    verdicts = judged([row("noon", 0.9)], before, max_drop=0.1, baseline="previous", by=["source"])
    assert [each.outcome for each in verdicts] == ["passed", "undecided"]
    assert sentence(verdicts[1]).endswith("for source dusk cannot be judged: the group has no rows; it had in run 1")


def test_groups_with_one_reason_share_a_warning_and_long_lists_end() -> None:
    sources = [row(f"s{number}", None) for number in range(20)]
    assert list(sentences_of_warnings(judged(sources, min=0.8, by=["source"]))) == [
        "gate g is undecided in 20 groups: it is not defined"
    ]
    bad = [row(f"s{number}", 0.1) for number in range(20)]
    warnings = list(sentences_of_warnings(judged(bad, min=0.8, by=["source"], on_fail="warn")))
    assert len(warnings) == 6
    assert warnings[-1] == "gate g failed in 15 more groups: see the table gates"


def test_doubtful_intervals_are_judged_and_named() -> None:
    (verdict,) = judged([row(None, 0.7, quality="few_clusters")], min=0.8)
    assert verdict.outcome == "failed"
    assert sentence(verdict).endswith("; its interval is doubtful: few_clusters")


def test_few_clusters_need_more_evidence() -> None:
    p_values = [judged([row(None, 0.74, degrees=degrees)], min=0.8)[0].p_value for degrees in (5.0, math.inf)]
    assert p_values[0] > 5 * p_values[1]


def test_hostile_groups_steer_no_terminal() -> None:
    (verdict,) = judged([row("\x1b[31mred\n\u202e", 0.7)], min=0.8, by=["source"])
    assert "\x1b" not in sentence(verdict)
    assert "\n" not in sentence(verdict)


@pytest.mark.parametrize(
    ("value", "outcome"), [(0.9, "undecided"), (0.79, "undecided"), (0.7, "failed")], ids=["above", "near", "below"]
)
def test_a_number_without_its_assumption_passes_no_gate(value: float, outcome: str) -> None:
    (verdict,) = judged([row(None, value, quality="assumption_failed")], min=0.8)
    assert verdict.outcome == outcome
    assert "assumption_failed" in sentence(verdict)
    assert verdict.p_adjusted == pytest.approx(verdict.p_value)


def test_no_fall_is_seen_where_a_night_lacks_its_assumption() -> None:
    before = numbers([row(None, 0.9, quality="assumption_failed")], "run 1")
    (verdict,) = judged([row(None, 0.9)], before, max_drop=0.02, baseline="previous")
    assert verdict.outcome == "undecided"
    (warning,) = sentences_of_warnings([verdict])
    assert "contradict the assumption" in warning


def test_the_number_of_rows_needs_no_assumption() -> None:
    (verdict,) = judged([row(None, 0.9, quality="assumption_failed")], min_rows=10)
    assert verdict.outcome == "passed"
