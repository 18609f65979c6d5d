"""`derive` of compare for groups with different units, margins, a baseline and contributions: rows, words, figures."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from comparing import of_counts, of_values, units_compared
from deriving import figures_of, stage_of

from pipeline.metrics.comparison.paired import pooled_estimates
from pipeline.stages.compare import planning
from pipeline.stages.compare.contract import UNPAIRED_TESTS, CompareParameters

if TYPE_CHECKING:
    from deriving import Derived

RNG = np.random.default_rng(8)
SIZES = {"f": 40, "m": 60, "x": 3}
OVERLAP = {name: np.round(RNG.beta(4, 3 + (name == "f"), size), 6) for name, size in SIZES.items()}
COUNTS = {name: RNG.poisson([5.0, 1.0, 2.0 + (name == "f")], (size, 3)) for name, size in SIZES.items()}
APART: dict[str, Any] = {"paired": False, "resamples": 199, "tests": UNPAIRED_TESTS}


def of_groups(values: dict[Any, Any], **keys: Any) -> Derived:  # noqa: ANN401
    rows = [(name, unit, float(value)) for name, column in values.items() for unit, value in enumerate(column)]
    return of_values(rows, **APART | keys)


def counts_of_groups(counts: dict[str, Any], **keys: Any) -> Derived:  # noqa: ANN401
    rows: list[Any] = [(name, unit, *map(int, row)) for name, table in counts.items() for unit, row in enumerate(table)]
    return of_counts(rows, **APART | keys)


def test_groups_are_compared_by_their_own_units() -> None:
    result = of_groups(OVERLAP, tests=["welch_t", "bootstrap_t", "permutation"])
    row = result.row("tests", system_a="f", system_b="m", test="welch_t")
    assert [row[name] for name in ("n_units", "n_units_a", "n_units_b", "n_dropped")] == [100, 40, 60, 0]
    f, m = OVERLAP["f"], OVERLAP["m"]
    assert (row["difference"], row["ratio"]) == (pytest.approx(f.mean() - m.mean()), pytest.approx(f.mean() / m.mean()))
    assert row["effect_size"] == pytest.approx(row["difference"] / np.sqrt((f.var(ddof=1) + m.var(ddof=1)) / 2))
    assert (row["wins_a"], row["ties"], row["skewness"], row["interval_quality"]) == (None, None, None, "good")
    assert row["minimum_detectable_difference"] > 0
    by_test = {each["test"]: each for each in result.rows("tests", system_a="f", system_b="m")}
    assert by_test["permutation"]["difference_lower"] == row["difference_lower"]
    assert by_test["bootstrap_t"]["difference_lower"] < row["difference_lower"]
    assert {each["hypothesis"] for each in by_test.values()} == {"equal means", "units exchangeable between systems"}
    assert result.row("tests", system_a="f", system_b="x", test="welch_t")["interval_quality"] == "few_clusters"
    assert "2 of 3 comparisons rest on fewer than 20 units" in result.warnings


def test_pooled_ratios_of_groups_add_their_variances() -> None:
    result = counts_of_groups(COUNTS, metrics=["pooled_recall"])
    row = result.row("tests", system_a="f", system_b="m")
    of_f, of_m = (pooled_estimates(COUNTS[name].astype(float))["recall"] for name in "fm")
    assert (row["test"], row["difference"]) == ("jackknife_t", pytest.approx(of_f.estimate - of_m.estimate))
    assert row["statistic"] == pytest.approx(row["difference"] / np.hypot(of_f.error, of_m.error))
    assert row["ratio_lower"] < row["ratio"] < row["ratio_upper"]
    (posterior, *_) = result.rows("posteriors", system_a="f", system_b="m")
    assert (posterior["n_units"], posterior["n_units_a"]) == (100, 40)
    assert (posterior["probability_a_better"] < 0.5) == (row["difference"] < 0)


def test_the_largest_gap_is_told_with_its_adjusted_p_value() -> None:
    result = of_groups(OVERLAP)
    rows = result.rows("tests")
    largest = max(rows, key=lambda row: abs(row["difference"]))
    assert f"The largest gap in delay among 3 systems is {abs(largest['difference']):.4g}: " in result.summary.sentence
    assert f"(adjusted p = {largest['p_adjusted']:.2g} by welch_t)" in result.summary.sentence
    assert result.summary.headers[3:8] == ("units", "first", "second", "difference", "ratio")
    assert result.summary.rows[0][3] == "40 + 60"
    plain = of_groups(OVERLAP, correction="none").summary.sentence
    assert "(no p-value, as those of the largest difference need a correction)" in plain
    assert "not adjusted for their number" in plain
    shifted = {**OVERLAP, "m": OVERLAP["f"] + 0.2, "x": OVERLAP["f"][:3] - 0.3}
    assert " The clearest is between f and m: -0.2 (adjusted p = " in of_groups(shifted).summary.sentence


def test_a_baseline_is_the_second_of_every_pair() -> None:
    result = of_groups(OVERLAP, baseline="m")
    pairs = [(row["system_a"], row["system_b"]) for row in result.rows("tests")]
    assert pairs == [("f", "m"), ("x", "m")]
    assert [row["p_adjusted"] for row in result.rows("tests")] == pytest.approx(
        sorted_holm([row["p_value"] for row in result.rows("tests")])
    )
    assert "The largest difference in delay from m is " in result.summary.sentence
    numbered = of_groups({2023: OVERLAP["f"], 2024: OVERLAP["m"]}, baseline=2023)
    assert [(row["system_a"], row["system_b"]) for row in numbered.rows("tests")] == [(2024, 2023)]


def sorted_holm(p_values: list[float]) -> list[float]:
    """Holm's adjustment of two p-values."""
    low, high = min(p_values), max(p_values)
    adjusted = {low: min(2 * low, 1.0), high: max(min(2 * low, 1.0), high)}
    return [adjusted[p] for p in p_values]


def test_a_group_without_a_value_is_a_group() -> None:
    result = of_groups({None: OVERLAP["f"], "m": OVERLAP["m"], "null": OVERLAP["x"]})
    pairs = [(row["system_a"], row["system_b"]) for row in result.rows("tests")]
    assert pairs == [("m", "null"), ("m", None), ("null", None)]
    assert {row[2] for row in result.summary.rows} == {'m – "null"', "m – null", '"null" – null'}


def test_a_group_without_a_positive_is_no_gap() -> None:
    nothing = np.array([[0, 2, 0]] * 30)
    result = counts_of_groups({**COUNTS, "none": nothing, "x": COUNTS["m"][:20] + 1})
    recall = result.row("tests", metric="pooled_recall", system_a="f", system_b="none")
    assert (recall["mean_b"], recall["undefined"]) == (None, "undefined_ratio")
    precision = result.row("tests", metric="pooled_precision", system_a="f", system_b="none")
    assert (precision["mean_b"], precision["ratio"], precision["interval_quality"]) == (0.0, None, "at_edge")
    (warning,) = (text for text in result.warnings if "no positive" in text)
    assert warning.startswith("1 system has no positive (none): recall is NULL")
    assert "in pooled_precision among 3 systems" in result.summary.sentence


def test_three_units_without_a_miss_prove_nothing() -> None:
    result = counts_of_groups({"many": COUNTS["m"], "three": np.array([[1, 0, 0]] * 3)}, metrics=["pooled_recall"])
    row = result.row("tests")
    assert (row["mean_b"], row["interval_quality"]) == (1.0, "few_clusters")
    assert row["p_value"] > 0.2
    few = of_groups({"many": np.arange(200) % 5 > 0, "three": np.ones(3)})
    assert few.row("tests")["p_value"] > 0.3
    hitless = counts_of_groups({"a": np.array([[0, 1, 3]] * 20), "b": COUNTS["m"]}, metrics=["pooled_recall"])
    row = hitless.row("tests")
    assert (row["ratio"], row["ratio_lower"], row["interval_quality"]) == (0.0, 0.0, "at_edge")
    assert 0 < row["ratio_upper"] < 0.5


@pytest.mark.parametrize(
    ("a", "b", "reason", "p_value"),
    [
        ([0.5], [0.25, 0.5], "one_unit", None),
        ([], [0.25, 0.5], "no_unit", None),
        ([0.5, 0.5], [0.5, 0.5, 0.5], "no_difference", 1.0),
        ([0.5, 0.5], [0.25, 0.25], "constant_difference", None),
    ],
)
def test_what_different_units_cannot_tell_is_null(
    a: list[float], b: list[float], reason: str, p_value: float | None
) -> None:
    columns = {"system": ["a", *["a"] * len(a), *["b"] * len(b)], "unit": range(len(a) + len(b) + 1)}
    result = units_compared(
        {**columns, "metric:x": [None, *a, *b]}, metrics=["x"], margin=0.1, **APART | {"tests": ["welch_t"]}
    )
    row = result.row("tests")
    assert (row["undefined"], row["p_value"], row["difference_lower"], row["n_dropped"]) == (reason, p_value, None, 1)
    assert [claim["holds"] for claim in result.rows("margins")] == [None] * 3


# Margins --------------------------------------------------------------------------------------------------------------


def of_models(gap: float, **keys: Any) -> Derived:  # noqa: ANN401
    rng = np.random.default_rng(3)
    hard, noise = rng.normal(0.6, 0.2, 100), rng.normal(0, 0.02, 100)
    noise -= noise.mean()
    rows = [("new", unit, float(value + gap)) for unit, value in enumerate(hard + noise)]
    return of_values([*rows, *(("old", unit, float(value)) for unit, value in enumerate(hard))], **keys)


def test_claims_are_told_in_plain_words() -> None:
    result = of_models(0.0, margin=0.02)
    row = result.row("margins", claim="equivalent")
    assert (row["holds"], row["margin"], row["interval_confidence"], row["test"]) == (True, 0.02, 0.9, "paired_t")
    assert "In delay, new and old are equivalent within 0.02 (90% interval -0.0" in result.summary.sentence
    assert result.summary.rows[0][7] == "equivalent"
    better = of_models(0.05, margin=0.02)
    assert "In delay, new is not worse than old by more than 0.02 (90% interval 0.0" in better.summary.sentence
    assert better.summary.rows[0][7] == "first not worse"
    less = of_models(0.05, margin={"delay": 0.02}, lower_is_better=["delay"])
    assert "In delay, old is not worse than new by more than 0.02 (" in less.summary.sentence
    unclear = of_models(0.0, margin=0.001)
    assert "Nothing is shown of the pair within the margin, which is no proof" in unclear.summary.sentence
    assert not any(row["holds"] for row in unclear.rows("margins"))


def test_claims_are_adjusted_within_claim_and_test() -> None:
    rng = np.random.default_rng(4)
    rows = [(name, unit, float(rng.normal(0.5, 0.1))) for name in "abc" for unit in range(30)]
    result = of_values(rows, margin=0.03, tests=["paired_t", "bootstrap_t"], resamples=199)
    assert result["margins"].height == 3 * 3 * 2
    for claim in ("a_not_worse", "b_not_worse", "equivalent"):
        claims = result.rows("margins", claim=claim, test="paired_t")
        smallest = min(claims, key=lambda row: row["p_value"])
        assert smallest["p_adjusted"] == pytest.approx(min(3 * smallest["p_value"], 1.0))
    assert all(row["holds"] == (row["p_adjusted"] <= 0.05) for row in result.rows("margins"))


def test_a_margin_needs_no_test_that_gives_an_interval() -> None:
    result = counts_of_groups(
        {"f": COUNTS["f"], "m": COUNTS["m"]}, margin={"pooled_f1": 0.1}, tests=["permutation"], metrics=["pooled_f1"]
    )
    assert {row["test"] for row in result.rows("margins")} == {"jackknife_t"}
    assert of_models(0.0).rows("margins") == []
    wide = of_models(0.0, margin=0.1, confidence=0.5)
    assert wide.row("margins", claim="equivalent")["interval_lower"] is None


# Areas ----------------------------------------------------------------------------------------------------------------


def test_contributions_to_an_area_have_tests_of_means_alone() -> None:
    rng = np.random.default_rng(5)
    rows = [(name, unit, float(rng.normal(0.8, 0.6))) for name in "ab" for unit in range(50)]
    keys = {"contributions": ["delay"], "resamples": 199}
    result = of_values(rows, tests=["paired_t", "wilcoxon", "sign", "randomization", "bootstrap_t"], **keys)
    assert {row["test"]: row["hypothesis"] for row in result.rows("tests")} == {
        "paired_t": "equal means of contributions",
        "bootstrap_t": "equal means of contributions",
    }
    row = result.row("tests", test="paired_t")
    assert [row[name] for name in ("wins_a", "ties", "wins_b", "effect_size")] == [None] * 4
    assert row["ratio_lower"] < row["ratio"] < row["ratio_upper"]  # of an area, though some values are below 0
    plain = of_values(rows, tests=["paired_t"]).row("tests")
    assert plain["ratio"] is None
    apart = of_values(rows, tests=["welch_t", "permutation"], paired=False, **keys)
    assert [row["test"] for row in apart.rows("tests")] == ["welch_t"]


# Figures and keys -----------------------------------------------------------------------------------------------------


def test_groups_and_margins_have_figures() -> None:
    result = counts_of_groups(COUNTS, margin=0.05)
    figures = {figure.name: figure for figure in stage_of("compare").figures(result.tables, 0.95)}
    assert {"ratios_pooled", "margins_pooled_f1", "margins_pooled_recall"} <= set(figures)
    margin = figures["margins_pooled_f1"]
    assert [rule.ends for rule in margin.rules] == [(0.0,), (-0.05, 0.05)]
    assert (margin.series[0].lower, "90% intervals" in margin.caption) == ("interval_lower", True)
    assert "each on units of its own" in figures["differences_pooled"].caption
    assert "all have the same units" not in figures["means_pooled"].caption
    names = [number.name for number in stage_of("compare").key_numbers(result.tables)]
    assert names == ["Clear differences", "Largest gap", "f − m", "f − x", "m − x", "Within the margin"]
    assert "ratios_pooled" not in figures_of("compare", {"tests": []})


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"tests": ["welch_t"]}, "welch_t, which compares different units: set paired = false"),
        ({"tests": ["sign"], "paired": False}, "sign, which needs the same units for all systems"),
        ({"missing_units": "skip", "paired": False}, "missing_units goes with paired = true"),
        ({"margin": 0}, "write a number above 0, or a table of metrics"),
        ({"margin": {}}, "write a number above 0, or a table of metrics"),
        ({"margin": {"x": "much"}}, "write a number above 0, or a table of metrics"),
        ({"margin": True}, "write a number above 0, or a table of metrics"),
        ({"margin": {"y": 0.1}, "metrics": ["x"]}, "margin names 'y', which is not among the metrics x"),
        ({"lower_is_better": ["y"], "metrics": ["x"]}, "lower_is_better names 'y', which is not among the metrics x"),
        ({"contributions": ["x", "x"]}, "names one twice"),
    ],
)
def test_keys_that_do_not_fit_are_refused(keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        CompareParameters.model_validate({"name": "compare", "units": "units.parquet", **keys})


def test_a_baseline_among_stages_is_one_of_them() -> None:
    with pytest.raises(ValueError, match="baseline is 'c', but the systems are the stages a, b"):
        CompareParameters.model_validate({"name": "compare", "of": ["a", "b"], "baseline": "c"})
    params = CompareParameters.model_validate({"name": "compare", "of": ["a", "b"], "paired": False})
    assert params.tests == ("welch_t", "jackknife_t", "bayes")
    assert not params.are_tests_asked


def test_units_of_groups_are_told_by_their_distance_from_the_mean_of_their_group() -> None:
    rows = {"by:g": ["x"] * 5, "system": ["a", "a", "a", "b", "b"], "unit": [1, 2, 3, 4, 5], "value": [1, 2, 9, 0, 2]}
    asked: Any = SimpleNamespace(by=("by:g",), row={"system_a": "a", "system_b": "b"})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(planning, "_compared", lambda _asked: ("value",))
        pulls = planning._pulls(pl.DataFrame(rows), asked)
    assert pulls.select("system", "unit").rows() == [("a", 3), ("a", 1), ("a", 2), ("b", 4), ("b", 5)]
