"""`derive` of compare from a few units: tests, ratios of all counts, posteriors, warnings and words."""

from __future__ import annotations

import math

import polars as pl
import pytest
from comparing import of_counts, of_values, units_compared
from scipy import stats

from pipeline.stages.compare.contract import CompareParameters

UNITS = [("a", 1, 2.0), ("a", 2, 4.0), ("a", 3, 6.0), ("b", 1, 1.0), ("b", 2, 2.0), ("b", 3, 3.0)]  # by 1, 2 and 3
RATIOS = ("precision", "recall", "f1")


def test_tests_of_differences_within_units() -> None:
    result = of_values(UNITS, tests=["paired_t", "wilcoxon", "sign"])
    rows = {row["test"]: row for row in result["tests"].to_dicts()}
    student = rows["paired_t"]
    assert [student[name] for name in ("mean_a", "mean_b", "difference", "n_units")] == [4.0, 2.0, 2.0, 3]
    assert [student[name] for name in ("wins_a", "ties", "wins_b", "effect_size")] == [3, 0, 0, 2.0]
    # differences 1, 2, 3: t = 2 / (1 / √3), and with two degrees of freedom p = 1 − t / √(2 + t²)
    assert student["statistic"] == pytest.approx(math.sqrt(12))
    assert student["p_value"] == pytest.approx(1 - math.sqrt(12 / 14))
    assert (student["difference_lower"] + student["difference_upper"]) / 2 == pytest.approx(2.0)
    assert (rows["wilcoxon"]["statistic"], rows["wilcoxon"]["p_value"]) == (0.0, pytest.approx(2 / 8))
    assert (rows["sign"]["statistic"], rows["sign"]["p_value"]) == (3.0, pytest.approx(2 / 8))


def test_p_values_are_adjusted_for_all_pairs_of_a_test() -> None:
    third = [("c", number, value) for number, value in ((1, 1.0), (2, 2.0), (3, 3.0))]  # as b
    rows = of_values([*UNITS, *third], tests=["sign"])["tests"].to_dicts()
    p_values = {(row["system_a"], row["system_b"]): (row["p_value"], row["p_adjusted"]) for row in rows}
    assert p_values == {("a", "b"): (0.25, 0.75), ("a", "c"): (0.25, 0.75), ("b", "c"): (1.0, 1.0)}
    plain = of_values([*UNITS, *third], tests=["sign"], correction="none")["tests"]
    assert plain["p_adjusted"].to_list() == [0.25, 0.25, 1.0]


@pytest.mark.parametrize("number", [2, 3, 12])
def test_the_value_of_the_best_of_many_systems_is_told_to_be_chosen(number: int) -> None:
    rows = [(f"s{system:02}", unit, float(system * unit % 7)) for system in range(number) for unit in range(25)]
    sentence = of_values(rows, tests=["sign"]).summary.sentence
    told = f"The best of {number} systems was found on these same units, so that its own value is a little too good."
    assert (told in sentence) == (number > 2)
    assert "The best of" not in of_values(rows, tests=["welch_t"], paired=False).summary.sentence


def test_means_are_tested_with_a_test_for_skewed_differences_by_default() -> None:
    wanted = ("paired_t", "bootstrap_t", "randomization", "bayes")
    assert CompareParameters.model_fields["tests"].default == wanted


@pytest.mark.parametrize(
    ("units", "reason", "n_dropped"),
    [
        (UNITS[:1] + UNITS[3:4], "one_unit", 0),
        (UNITS[:1] + UNITS[4:5], "no_unit", 2),
        ([("a", 1, 2.0), ("a", 2, 3.0), ("b", 1, 2.0), ("b", 2, 3.0)], "no_difference", 0),
        ([("a", 1, 2.0), ("a", 2, 3.0), ("b", 1, 1.0), ("b", 2, 2.0)], "constant_difference", 0),
        ([*UNITS[:2], ("a", 3, None), *UNITS[3:]], None, 1),
    ],
)
def test_a_test_that_cannot_be_made_says_why(
    units: list[tuple[str, int, float | None]], reason: str | None, n_dropped: int
) -> None:
    result = of_values(units)
    row = result.row("tests")
    assert (row["undefined"], row["n_dropped"]) == (reason, n_dropped)
    assert (row["difference"] is None) == (reason == "no_unit")
    assert (row["minimum_detectable_difference"] is None) == (reason is not None)
    dropped = "1 of 1 comparisons leave out units for which a system has no value: see n_dropped"
    assert (dropped in result.warnings) == (n_dropped > 0)
    assert "1 of 1 comparisons rest on fewer than 20 units" in result.warnings


def test_ratios_of_units_and_of_all_counts() -> None:
    units = [("a", 1, 3, 1, 0), ("a", 2, 1, 0, 2), ("b", 1, 2, 2, 1), ("b", 2, 0, 0, 3)]
    metrics = ["precision", "recall", "pooled_precision", "pooled_recall", "pooled_f1"]
    result = of_counts(units, metrics=metrics, tests=["randomization", "bayes"], resamples=99)
    means = {row["metric"]: (row["mean_a"], row["mean_b"], row["n_units"]) for row in result["tests"].to_dicts()}
    assert means == {
        "precision": (3 / 4, 2 / 4, 1),  # b has no prediction in the second unit
        "recall": ((3 / 3 + 1 / 3) / 2, (2 / 3 + 0) / 2, 2),
        "pooled_precision": (4 / 5, 2 / 4, 2),
        "pooled_recall": (4 / 6, 2 / 6, 2),
        "pooled_f1": (8 / 11, 4 / 10, 2),
    }
    posteriors = {row["metric"]: row for row in result["posteriors"].to_dicts()}
    # Without the first or the second unit the precision of a is 1 or 3/4, of variance 1/64 with one degree of freedom.
    wider = (stats.t.ppf(0.975, 1) / stats.norm.ppf(0.975)) ** 2
    effect = wider / 64 / (4 / 5 * 1 / 5 / 5)
    precision = posteriors["pooled_precision"]  # beta, with 1/2 added to both counts
    assert (precision["design_effect_a"], precision["counts_a"]) == (pytest.approx(effect), "design_effect")
    assert precision["mean_a"] == pytest.approx((4 / effect + 0.5) / (5 / effect + 1))
    # b has its predictions in one unit: four counts, worth one
    assert (precision["design_effect_b"], precision["counts_b"]) == (4.0, "one_per_unit")
    assert precision["mean_b"] == pytest.approx((2 / 4 + 0.5) / 2)
    assert precision["probability_a_better"] > 0.5


def test_equal_systems_are_as_likely_better() -> None:
    units = [(system, number, 3, 1, 1) for system in "ab" for number in (1, 2)]
    result = of_counts(units, metrics=["pooled_recall"], tests=["bayes", "randomization"], resamples=99)
    assert result.row("posteriors")["probability_a_better"] == pytest.approx(0.5)
    row = result.row("tests")
    assert (row["difference"], row["p_value"]) == (0.0, 1.0)
    assert of_counts(units, metrics=["pooled_recall"])["posteriors"].is_empty()


def test_groups_are_compared_apart_and_adjusted_apart() -> None:
    systems, numbers, values = zip(*UNITS, *UNITS, strict=True)
    columns = {"system": systems, "unit": numbers, "metric:delay": values, "day": ["mon"] * 6 + [None] * 6}
    result = units_compared(columns, by=[[], ["day"]], metrics=["delay"], tests=["sign"])
    rows = {(row["grouping"], row["by:day"]): row for row in result["tests"].to_dicts()}
    assert {group: row["n_units"] for group, row in rows.items()} == {
        ("all", None): 6,
        ("day", "mon"): 3,
        ("day", None): 3,
    }
    assert rows["day", None]["p_adjusted"] == 2 / 8
    assert rows["all", None]["p_adjusted"] == 2 / 64
    assert result.summary.sentence == (
        "1 of 3 comparisons shows a difference beyond chance, at the 5% level adjusted for their number."
    )


def test_one_system_or_no_unit_gives_empty_tables_of_the_contract() -> None:
    alone, both = of_values(UNITS[:3]), of_values(UNITS)
    assert not both["tests"].is_empty()
    assert all(table.is_empty() for table in alone.tables.values())
    assert (alone.warnings, alone.summary.sentence) == ((), "No two systems were tested.")
    types = {"system": pl.String(), "unit": pl.Int64(), "metric:delay": pl.Float64()}
    result = units_compared({name: pl.Series([], dtype=kind) for name, kind in types.items()}, metrics=["delay"])
    assert all(table.is_empty() for table in result.tables.values())
    assert result["tests"].schema["system_a"] == pl.String()


def skewed(units: int) -> list[tuple[str, int, float | None]]:
    """Equal means of differences with a long tail: e^z of evenly spread z."""
    tail = [math.exp(1.5 * stats.norm.ppf((number + 0.5) / units)) for number in range(units)]
    mean = sum(tail) / units
    rows: list[tuple[str, int, float | None]] = [("b", number, 0.0) for number in range(units)]
    return rows + [("a", number, value - mean) for number, value in enumerate(tail)]


def test_every_test_says_what_it_tests_and_warns_where_skewness_makes_it_another_question() -> None:
    tests = ["paired_t", "bootstrap_t", "wilcoxon", "sign", "randomization"]
    result = of_values(skewed(40), tests=tests, resamples=999)
    rows = {row["test"]: row for row in result["tests"].to_dicts()}
    assert {test: row["hypothesis"] for test, row in rows.items()} == {
        "paired_t": "equal means",
        "bootstrap_t": "equal means",
        "wilcoxon": "differences symmetric about 0",
        "sign": "median difference 0",
        "randomization": "systems exchangeable within units",
    }
    assert max(rows[test]["p_value"] for test in ("wilcoxon", "sign")) < 0.05 < rows["bootstrap_t"]["p_value"]
    assert rows["bootstrap_t"]["difference_lower"] < rows["paired_t"]["difference_lower"] < 0
    assert rows["bootstrap_t"]["difference_upper"] > rows["paired_t"]["difference_upper"] > 0
    assert {row["skewness"] for row in rows.values()} == {rows["sign"]["skewness"]}
    assert rows["sign"]["skewness"] > 2
    ranks, student = result.warnings
    assert ranks.startswith(
        "differences between units are skewed in 2 tests by wilcoxon or sign: these do not test mea"
    )
    assert student.startswith(
        "differences between units are too skewed for their number in 2 tests by paired_t or rand"
    )


@pytest.mark.parametrize(("tests", "count"), [(["bootstrap_t"], 0), (["wilcoxon"], 1), (["paired_t"], 1)])
def test_a_warning_is_about_tests_that_were_made(tests: list[str], count: int) -> None:
    assert len(of_values(skewed(40), tests=tests, resamples=999).warnings) == count


def test_symmetric_differences_give_no_warning() -> None:
    units = [(system, number, (number - 19.5) * (system == "a")) for number in range(40) for system in "ab"]
    result = of_values(units, tests=["paired_t", "wilcoxon", "sign"])
    assert result.warnings == ()
    assert result["tests"]["skewness"].to_list() == pytest.approx([0, 0, 0], abs=1e-12)


def test_ratios_of_all_counts_are_tested_by_swaps_and_by_the_jackknife() -> None:
    units = [("a", n, 5 + n % 3, n % 2, 2) for n in range(12)] + [("b", n, 4 + n % 4, 1, 1 + n % 3) for n in range(12)]
    tests = ["jackknife_t", "randomization"]
    rows = of_counts(units, metrics=["pooled_f1"], tests=tests, resamples=99)["tests"].to_dicts()
    assert [row["hypothesis"] for row in rows] == ["equal ratios of all counts", "systems exchangeable within units"]
    student, swaps = rows
    assert student["difference_lower"] == swaps["difference_lower"]
    assert (student["p_value"] < 0.05) == (not student["difference_lower"] <= 0 <= student["difference_upper"])
