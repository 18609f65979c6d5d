"""Paired tests of two runs, held against SciPy and a plain jackknife."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import scipy
from comparing import compare_matchers

from pipeline.report.diff_tests import paired_differences
from report.made_stages import documents, queries, stage_of


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def test_means_are_tested_by_paired_t_on_the_shared_units(rng: np.random.Generator) -> None:
    before, after = rng.random((30, 3)), rng.random((35, 3))
    after[:25] = (after[:25] + before[5:]) / 2
    old, new = queries(before), queries(after, first=5)
    results, untested = paired_differences(
        stage_of("ranking", {"ranking_queries": old}), stage_of("ranking", {"ranking_queries": new}), ""
    )
    assert untested == ""
    assert len(results) == 3
    for result in results:
        number = ("average_precision", "r_precision", "reciprocal_rank").index(result.metric)
        expected = scipy.stats.ttest_rel(after[:25, number], before[5:, number])
        limits = expected.confidence_interval(0.95)
        assert (result.n_units, result.n_before, result.n_after, result.test) == (25, 30, 35, "paired t")
        assert result.p_value == pytest.approx(expected.pvalue)
        assert [result.lower, result.upper] == pytest.approx([limits.low, limits.high])
        assert result.difference == pytest.approx((after[:25, number] - before[5:, number]).mean())


def test_p_values_are_adjusted_over_groups_and_metrics_of_a_stage(rng: np.random.Generator) -> None:
    values = rng.random((20, 3))
    shifts = {"a": 0.2, "b": 0.0}
    old = pl.concat([queries(values, group=group) for group in shifts])
    signs = np.where(np.arange(20) % 2, 1, -1)[:, None]  # no difference on average
    noise = {group: 0.1 * signs * (1 + np.arange(20) // 2 % 3)[:, None] for group in shifts}
    new = pl.concat([queries(values + shift + noise[group], group=group) for group, shift in shifts.items()])
    results, _ = paired_differences(
        stage_of("ranking", {"ranking_queries": old}), stage_of("ranking", {"ranking_queries": new}), ""
    )
    p_values = sorted(result.p_value or 0.0 for result in results)
    holm = np.minimum(np.maximum.accumulate(np.array(p_values) * np.arange(6, 0, -1)), 1)
    assert [result.p_adjusted for result in results] == pytest.approx(list(holm))
    assert [result.is_significant for result in results] == [True] * 3 + [False] * 3
    assert {result.group for result in results[:3]} == {"a"}


def test_pooled_ratios_are_tested_by_the_jackknife_over_units(rng: np.random.Generator) -> None:
    before, after = rng.integers(0, 9, (40, 3)), rng.integers(0, 9, (40, 3))
    name = "entity_recognition_documents"
    results, _ = paired_differences(
        stage_of("entity_recognition", {name: documents(before)}),
        stage_of("entity_recognition", {name: documents(after)}),
        "doc_id",
    )
    precision = next(result for result in results if result.metric == "pooled precision")

    def difference(units: list[int]) -> float:
        (tp, fp), (tp_before, fp_before) = (counts[units, :2].sum(axis=0) for counts in (after, before))
        return float(tp / (tp + fp) - tp_before / (tp_before + fp_before))

    everything = list(range(40))
    left_out = np.array([difference([unit for unit in everything if unit != gone]) for gone in everything])
    error = np.sqrt(39 / 40 * ((left_out - left_out.mean()) ** 2).sum())
    assert precision.difference == pytest.approx(difference(everything))
    assert precision.lower is not None
    half = precision.difference - precision.lower  # type: ignore[operator]
    assert scipy.stats.t.ppf(0.975, 39) * error <= half <= scipy.stats.t.ppf(0.975, 15) * error


def test_totals_take_the_place_of_errors_and_misses(rng: np.random.Generator) -> None:
    """Series hold n_predicted and n_true; the same counts as tp, fp and fn give the same tests."""
    frames = [rng.integers(0, 9, (20, 3)) for _ in range(2)]
    series = [
        documents(counts)
        .rename({"doc_id": "series_id"})
        .with_columns(n_predicted=pl.col("tp") + pl.col("fp"), n_true=pl.col("tp") + pl.col("fn"))
        .drop("fp", "fn")
        for counts in frames
    ]
    of_series = [stage_of("change_points", {"change_points_series": frame}) for frame in series]
    of_documents = [
        stage_of("entity_recognition", {"entity_recognition_documents": documents(counts)}) for counts in frames
    ]
    assert paired_differences(of_series[0], of_series[1], "series_id") == paired_differences(
        of_documents[0], of_documents[1], "doc_id"
    )


def test_events_are_compared_as_two_matchers_are(rng: np.random.Generator) -> None:
    frames = []
    for _ in range(2):
        before = rng.integers(0, 4, 30)
        frames.append(
            pl.DataFrame(
                {
                    "grouping": "all",
                    "event_id": range(30),
                    "n_before": 60,
                    "n_after": 50,
                    "m_before": before,
                    "m_after": 5 + before,
                    "m_before_reference": before + 6,
                    "m_after_reference": before + 14,
                }
            )
        )
    stages = [stage_of("before_after", {"before_after_events": frame}) for frame in frames]
    results, untested = paired_differences(stages[0], stages[1], "event_id")
    expected = {row["metric"]: row for row in compare_matchers(frames[1], frames[0], flips=99).to_dicts()}
    assert untested == ""
    assert {result.metric for result in results} == {f"pooled {name}" for name in expected}
    for result in results:
        row = expected[result.metric.removeprefix("pooled ")]
        assert [result.after, result.before] == pytest.approx([row["value_a"], row["value_b"]])
        assert [result.difference, result.lower, result.upper] == pytest.approx(
            [row["difference"], row["difference_lower"], row["difference_upper"]]
        )
        assert result.n_units == 30
    for number in (0, 1):
        marks = [["assumption_failed", None] if each == number else ["good", None] for each in (0, 1)]
        estimates = [pl.DataFrame({"grouping": ["all", "all"], "interval_quality": each}) for each in marks]
        old, new = [
            stage_of("before_after", {"before_after_events": frame, "before_after_estimates": table})
            for frame, table in zip(frames, estimates, strict=True)
        ]
        assert {each.quality for each in paired_differences(old, new, "event_id")[0]} == {"assumption_failed"}
    one_event = [stage_of("before_after", {"before_after_events": frame.head(1)}) for frame in frames]
    assert paired_differences(one_event[0], one_event[1], "event_id") == ((), "not tested: no shared units")


def test_skewed_differences_are_marked(rng: np.random.Generator) -> None:
    values = rng.random((40, 3))
    moved = values.copy()
    moved[0] += 0.9  # one query moves far, the others hardly
    moved[1:] += rng.normal(0, 0.001, (39, 3))
    old, new = (stage_of("ranking", {"ranking_queries": queries(array)}) for array in (values, moved))
    assert {result.quality for result in paired_differences(old, new, "query_id")[0]} == {"skewed"}
    same = paired_differences(old, old, "query_id")[0]
    assert {(result.p_value, result.quality, result.is_significant) for result in same} == {(1.0, None, False)}


def test_units_without_a_value_in_a_run_are_left_out_and_types_of_keys_may_differ(rng: np.random.Generator) -> None:
    values = rng.random((10, 3))
    old = queries(values).with_columns(average_precision=pl.Series([None, *values[1:, 0]]))
    new = queries(values + 0.1).with_columns(pl.col("query_id").cast(pl.String))
    results, _ = paired_differences(
        stage_of("ranking", {"ranking_queries": old}), stage_of("ranking", {"ranking_queries": new}), ""
    )
    assert {result.metric: result.n_units for result in results} == {
        "average_precision": 9,
        "r_precision": 10,
        "reciprocal_rank": 10,
    }
    assert all(result.quality == "few_clusters" for result in results if result.lower is not None)


def test_units_that_are_not_independent_are_marked(rng: np.random.Generator) -> None:
    values = rng.random((40, 3))
    old, new = queries(values), queries(values + rng.normal(0.1, 0.1, (40, 3)))
    stages = [stage_of("ranking", {"ranking_queries": table}) for table in (old, new)]
    assert {test.quality for test in paired_differences(stages[0], stages[1], "query_id")[0]} == {"good"}
    assert {test.quality for test in paired_differences(stages[0], stages[1], "author")[0]} == {"one_parent"}


def test_without_shared_units_it_says_why(rng: np.random.Generator) -> None:
    old, new = queries(rng.random((4, 3))), queries(rng.random((4, 3)), first=9)
    stages = [stage_of("ranking", {"ranking_queries": table}) for table in (old, new)]
    assert paired_differences(stages[0], stages[1], "") == ((), "not tested: no shared units")
    omitted = replace(stages[0], omitted={"ranking_queries": "asked for"})
    assert (
        paired_differences(omitted, stages[1], "")[1]
        == "not tested: the first run has no table ranking_queries: asked for"
    )
    compared = [stage_of("compare", {})] * 2
    assert paired_differences(compared[0], compared[1], "")[1] == "not tested: compare has no table of units"


def test_contributions_are_tested_as_means_and_counts_beside_them(rng: np.random.Generator) -> None:
    counts = rng.integers(0, 9, (2, 30, 3))
    values = rng.random((2, 30, 3))
    stages = []
    for of_run, cells in zip(values, counts, strict=True):
        contributed = dict(zip(("average_precision", "pr_auc", "roc_auc"), of_run.T, strict=True))
        counted = dict(zip(("tp", "fp", "fn"), cells.T, strict=True))
        table = pl.DataFrame({"grouping": ["all"] * 30, "unit": range(30), **contributed, **counted})
        stages.append(stage_of("threshold_sweep", {"threshold_sweep_units": table}))
    tested = {test.metric: test for test in paired_differences(stages[0], stages[1], "")[0]}
    ratios = ("pooled precision", "pooled recall", "pooled f1")
    assert set(tested) == {"average_precision", "pr_auc", "roc_auc", *ratios}
    assert tested["roc_auc"].p_value == pytest.approx(scipy.stats.ttest_rel(values[1, :, 2], values[0, :, 2]).pvalue)
    assert tested["pooled recall"].after == pytest.approx(counts[1, :, 0].sum() / counts[1, :, [0, 2]].sum())
