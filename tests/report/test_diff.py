"""`thresher diff`: what changed between two runs, and the paired tests, held against SciPy and a plain jackknife."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
import scipy
from cli.calls import call
from rich.cells import cell_len
from runs.inputs.workplace import assert_error

from pipeline.report import plain
from pipeline.report.changes import record_changes
from pipeline.report.diff import blocks_of, run_difference
from pipeline.report.key_numbers import columns_of, number_changes
from pipeline.report.published import PublishedRun, PublishedStage, kept_run
from pipeline.report.shared_units import tests_of as paired_tests
from pipeline.stages import STAGES, find_stage

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(3)


def stage_of(kind: str, tables: Mapping[str, pl.DataFrame], **facts: Any) -> PublishedStage:  # noqa: ANN401
    entry = find_stage(kind)
    assert entry is not None
    stage = PublishedStage(
        name="s",
        stage=entry.load(),
        parameters={"name": "s", "confidence": 0.95},
        groupings=((),),
        tables=tables,
        omitted={},
        warnings=(),
        seconds=0.0,
        accounts={},
    )
    return replace(stage, **facts)


def queries(values: np.ndarray, first: int = 0, group: str | None = None) -> pl.DataFrame:
    """A table ranking_queries with three measures."""
    columns = ("average_precision", "r_precision", "reciprocal_rank")
    return pl.DataFrame(
        {
            "grouping": ["system" if group else "all"] * len(values),
            "by:system": [group] * len(values),
            "query_id": range(first, first + len(values)),
            **{name: values[:, number] for number, name in enumerate(columns)},
        },
        schema_overrides={"by:system": pl.String},
    )


def documents(counts: np.ndarray) -> pl.DataFrame:
    """A table entity_recognition_documents."""
    frame = pl.DataFrame(counts, schema=["tp", "fp", "fn"], orient="row").cast(pl.Int64)
    names = pl.Series([f"d{number}" for number in range(len(counts))])
    return frame.select(pl.lit("all").alias("grouping"), names.alias("doc_id"), "tp", "fp", "fn")


# Paired tests --------------------------------------------------------------------------------------------------------


def test_means_are_tested_by_paired_t_on_the_shared_units(rng: np.random.Generator) -> None:
    before, after = rng.random((30, 3)), rng.random((35, 3))
    after[:25] = (after[:25] + before[5:]) / 2
    old, new = queries(before), queries(after, first=5)
    results, untested = paired_tests(
        stage_of("ranking", {"ranking_queries": old}), stage_of("ranking", {"ranking_queries": new})
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
    results, _ = paired_tests(
        stage_of("ranking", {"ranking_queries": old}), stage_of("ranking", {"ranking_queries": new})
    )
    p_values = sorted(result.p_value or 0.0 for result in results)
    holm = np.minimum(np.maximum.accumulate(np.array(p_values) * np.arange(6, 0, -1)), 1)
    assert [result.p_adjusted for result in results] == pytest.approx(list(holm))
    assert [result.is_significant for result in results] == [True] * 3 + [False] * 3
    assert {result.group for result in results[:3]} == {"a"}


def test_pooled_ratios_are_tested_by_the_jackknife_over_units(rng: np.random.Generator) -> None:
    before, after = rng.integers(0, 9, (40, 3)), rng.integers(0, 9, (40, 3))
    name = "entity_recognition_documents"
    results, _ = paired_tests(
        stage_of("entity_recognition", {name: documents(before)}),
        stage_of("entity_recognition", {name: documents(after)}),
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


def test_units_without_a_value_in_a_run_are_left_out_and_types_of_keys_may_differ(rng: np.random.Generator) -> None:
    values = rng.random((10, 3))
    old = queries(values).with_columns(average_precision=pl.Series([None, *values[1:, 0]]))
    new = queries(values + 0.1).with_columns(pl.col("query_id").cast(pl.String))
    results, _ = paired_tests(
        stage_of("ranking", {"ranking_queries": old}), stage_of("ranking", {"ranking_queries": new})
    )
    assert {result.metric: result.n_units for result in results} == {
        "average_precision": 9,
        "r_precision": 10,
        "reciprocal_rank": 10,
    }
    assert all(result.quality == "few_clusters" for result in results if result.lower is not None)


def test_without_shared_units_it_says_why(rng: np.random.Generator) -> None:
    old, new = queries(rng.random((4, 3))), queries(rng.random((4, 3)), first=9)
    stages = [stage_of("ranking", {"ranking_queries": table}) for table in (old, new)]
    assert paired_tests(*stages) == ((), "not tested: no shared units")
    omitted = replace(stages[0], omitted={"ranking_queries": "asked for"})
    assert paired_tests(omitted, stages[1])[1] == "not tested: the first run has no table ranking_queries: asked for"
    sweeps = [stage_of("threshold_sweep", {})] * 2
    assert paired_tests(*sweeps)[1] == "not tested: threshold_sweep has no table of units"


# Key numbers ---------------------------------------------------------------------------------------------------------


def test_key_numbers_follow_from_the_contracts() -> None:
    named = {table.name: columns_of(table) for entry in STAGES for table in entry.load().tables}
    assert {name for name, columns in named.items() if columns} == {
        "before_after_operating_points",
        "threshold_sweep_operating_points",
        "threshold_sweep_areas",
        "ranking_summary",
        "ranking_cutoff_means",
        "entity_recognition_operating_points",
        "geocoding_scores",
        "geocoding_errors",
        "change_points_operating_points",
        "change_points_areas",
        "compare_tests",
        "compare_posteriors",
    }
    assert named["threshold_sweep_areas"] == ("average_precision", "pr_auc", "roc_auc")
    assert named["ranking_cutoff_means"] == ("precision", "recall")
    assert named["change_points_areas"] == ("average_precision", "pr_auc", "pr_auc_roerich", "covering")
    assert named["entity_recognition_operating_points"] == ("threshold", "precision", "recall", "f1")


def means(**changes: float | None) -> pl.DataFrame:
    """A table ranking_cutoff_means of two groups."""
    frame = pl.DataFrame(
        {
            "grouping": ["system"] * 2,
            "by:system": ["a", "b"],
            "k": [1, 1],
            "precision": [0.5, 0.6],
            "precision_lower": [0.4, 0.5],
            "precision_upper": [0.6, 0.7],
            "recall": [0.5, 0.6],
            "recall_lower": [0.49, 0.59],
            "recall_upper": [0.51, 0.61],
        }
    )
    return frame.with_columns(
        pl.when(pl.col("by:system") == "a").then(pl.lit(value)).otherwise(name).alias(name)
        for name, value in changes.items()
    )


def changes_of(before: pl.DataFrame, after: pl.DataFrame) -> Any:  # noqa: ANN401
    stages = [stage_of("ranking", {"ranking_cutoff_means": table}) for table in (before, after)]
    return number_changes(*stages)


def test_numbers_that_moved_most_beside_their_intervals_come_first() -> None:
    numbers = changes_of(means(), means(precision=0.55, recall=0.52))
    assert [change.number.name for change in numbers.changed] == ["recall", "precision"]
    assert [change.difference for change in numbers.changed] == [pytest.approx(0.02), pytest.approx(0.05)]
    assert numbers.n_numbers == 4
    assert changes_of(means(), means()).changed == ()


def test_undefined_numbers_groups_and_columns_that_come_and_go() -> None:
    numbers = changes_of(means(precision=None), means(recall=0.6).drop("recall_lower", "recall_upper"))
    assert {change.number.name: change.difference for change in numbers.changed if change.number.group == "a"} == {
        "precision": None,
        "recall": pytest.approx(0.1),
    }
    numbers = changes_of(means(), means().drop("recall").with_columns(pl.col("by:system").replace("b", "c")))
    assert [(change.number.name, change.after) for change in numbers.changed] == [("recall", None)]
    assert (numbers.groups_added, numbers.groups_gone) == (("system c",), ("system b",))


# Records -------------------------------------------------------------------------------------------------------------


def changed_record(run: PublishedRun, **changes: Any) -> PublishedRun:  # noqa: ANN401
    return replace(run, record=json.loads(json.dumps(run.record)) | changes)


def test_everything_that_differs_in_the_records_is_told(two_runs: Path) -> None:
    run = kept_run(two_runs, "1")
    record = json.loads(json.dumps(run.record))
    files = record["inputs"]
    files[0]["footer_sha256"] = "0" * 64
    files[1]["path"] = "/elsewhere/events.parquet"
    record["accounting"]["before_after"]["pairs"]["used"] += 1
    record["bindings"]["before_after"]["pairs.score"] = {"source": "mapped", "column": "weight"}
    record["versions"]["duckdb"] = "9.9"
    record["code_sha256"] = "f" * 64
    record["results"]["ranking"]["warnings"] = ["something new"]
    record["configuration"]["stages"][0]["window"]["after"] = 48.0
    record["facts"]["ranking"]["ties"] = "expected"
    changes = record_changes(run, replace(run, record=record))
    before_pairs, before_events = changes.inputs
    assert (before_pairs.name, len(before_pairs.replaced), len(before_pairs.rows)) == ("before_after.pairs", 1, 1)
    assert (before_events.added, len(before_events.gone)) == (("/elsewhere/events.parquet",), 1)
    assert [(change.name, change.after) for change in changes.bindings] == [
        ("before_after.pairs.score", "mapped weight")
    ]
    assert [change.name for change in changes.code] == ["duckdb", "hash of the code"]
    assert [(change.name, change.before, change.after) for change in changes.parameters] == [
        ("before_after.window.after", "30.0", "48.0")
    ]
    assert [change.name for change in changes.facts] == ["ranking.ties"]
    assert "ranking: something new" in changes.warnings_added
    assert record_changes(run, run).is_empty


# The command ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def text(two_runs: Path) -> str:
    called = call("diff", two_runs)
    assert (called.code, called.err) == (0, "")
    return called.out


def test_text_names_what_changed_and_fits_80_columns(text: str) -> None:
    joined = " ".join(text.split())
    assert max(map(cell_len, text.splitlines())) <= 80
    assert not set(text) & {"\x1b", "\r"}
    for words in (
        "before: Run 00000001-",
        "Stages that only the second run has turns",
        "geocoding change_points",
        "entity_recognition.predicted: 1 file replaced (",
        "threshold_sweep.boundary: >= → >",
        "Not tested: threshold_sweep has no table of units.",
        "No number changed in before_after, ranking, compare.",
    ):
        assert words in joined


def test_of_very_many_tests_and_numbers_the_first_are_shown_and_the_others_counted(
    two_runs: Path, rng: np.random.Generator
) -> None:
    values = {name: rng.random((3, 3)) for name in map(str, range(40))}
    old = pl.concat([queries(array, group=name) for name, array in values.items()])
    new = pl.concat([queries(array + rng.random((3, 3)), group=name) for name, array in values.items()])
    stages = [stage_of("ranking", {"ranking_queries": table}) for table in (old, new)]
    runs = [
        replace(kept_run(two_runs, name), stages=(replace(stage, name="ranking"),))
        for name, stage in zip("12", stages, strict=True)
    ]
    text = plain.text_of(blocks_of(run_difference(*runs), *runs), 120)
    assert "100 further tests are left out" in text
    assert text.count("0.") > 20 * 3


def test_stages_with_tests_come_first(text: str) -> None:
    lines = text.splitlines()
    assert lines.index("entity_recognition") < lines.index("threshold_sweep")


def test_json_holds_everything(two_runs: Path) -> None:
    record = json.loads(call("diff", two_runs, "1", "2", "--format", "json").out)
    assert record["records"]["stages_added"] == ["turns"]
    stage = record["stages"][0]
    assert stage["name"] == "entity_recognition"
    assert {"p_adjusted", "lower", "n_units"} <= set(stage["tests"][0])
    assert len(stage["numbers"]["changed"]) == 6


def test_markdown_is_escaped(two_runs: Path) -> None:
    out = call("diff", two_runs, "--format", "markdown").out
    assert "<img" not in out
    assert "&lt;img" in out


def test_the_same_run_the_only_run_and_two_folders(two_runs: Path, tmp_path: Path) -> None:
    same = call("diff", two_runs, "2", "00000002")
    assert (same.code, "nothing changed" in same.out) == (0, True)
    only = call("diff", two_runs, "--format", "json", "--with", two_runs)
    assert "nothing_changed" in json.loads(only.out)
    copy = tmp_path / "copy"
    shutil.copytree(two_runs, copy)
    copied = call("diff", two_runs, "--with", copy)
    assert (copied.code, "Nothing changed: inputs, parameters" in copied.out) == (0, True)
    oldest = run_difference(kept_run(two_runs, "2"), kept_run(two_runs, "1"))
    assert oldest.records.stages_gone == ("turns",)
    shutil.rmtree(next((copy / "runs").glob("00000001-*")))
    assert "the only run" in call("diff", copy).out


@pytest.mark.parametrize(
    ("words", "message"),
    [(["9"], "no kept run is called '9'"), (["--format", "xml"], "unknown format 'xml'")],
)
def test_what_is_not_there_is_told(two_runs: Path, words: list[str], message: str) -> None:
    assert_error(call("diff", two_runs, *words), 2, message)
