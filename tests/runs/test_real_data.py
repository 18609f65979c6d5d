"""The before/after estimator on real Dutch news, beside the numbers of the authors' own R code.

The R code takes all pairs after the event for negative, as the source text does: its numbers are the columns
`…_uncorrected`. The corrected ones are compared with exact fractions of the same counts.
"""

from __future__ import annotations

import json
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from reference_estimates import Row, chosen_by, reference_of
from running import run_stages

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

TOLERANCE = 1e-12
WINDOW = {"before": "168h", "after": "72h"}
GRIDS = {"weight": (0.1, 60.0), "cosine": (0.005, 0.7), "wide": (1.0, 700.0)}
MIN_PRECISIONS = {
    "weight": 0.05,
    "weight_recall_precision_threshold_0.01": 0.01,
    "weight_recall_precision_threshold_0.1": 0.1,
    "weight_recall_precision_threshold_0.2": 0.2,
}
RULES = {"lowest": "low", "max": "max"}
EXACT = {"m_after": "M_after", "m_before": "M_before"}
ALWAYS = {"fpr": "FPR", "fp_uncorrected": "FP", "tp_uncorrected": "TP", "precision_uncorrected": "P"}


@pytest.fixture(scope="session")
def dutch(real_data: Path) -> Path:
    return real_data / "before_after_dutch"


@pytest.fixture(scope="session")
def expected(dutch: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((dutch / "expected.json").read_text(encoding="utf-8"))
    return record


def grid(thresholds: list[float]) -> dict[str, float]:
    """The first and last of 200 even thresholds."""
    return {"start": thresholds[0], "stop": thresholds[-1], "count": len(thresholds)}


def run(dutch: Path, output: Path, score: str = "weight", *, complete: bool = True, **keys: Any) -> Run:  # noqa: ANN401
    columns = {"complete_window": "complete_window" if complete else "everything"}
    events: dict[str, Any] = {"path": str(dutch / "events.parquet"), "columns": columns}
    if not complete:
        frame = pl.read_parquet(dutch / "events.parquet").with_columns(everything=True)
        frame.write_parquet(output / "events.parquet")
        events["path"] = str(output / "events.parquet")
    stage = {
        "kind": "before_after",
        "pairs": {"path": str(dutch / "pairs.parquet"), "columns": {"score": score, "lag_hours": "hourdiff"}},
        "events": events,
        "window": WINDOW,
    }
    return run_stages({"output": str(output / "results"), "stages": [stage | keys]})


def table(published: Run, name: str = "before_after_estimates") -> pl.DataFrame:
    return pl.read_parquet(published.path / name / "before_after.parquet")


def assert_column(actual: pl.Series, wanted: list[float | None], name: str) -> None:
    assert [value is None for value in actual.to_list()] == [value is None for value in wanted], name
    for number, value in zip(actual.to_list(), wanted, strict=True):
        assert number == pytest.approx(value, rel=TOLERANCE, abs=TOLERANCE), name


def assert_table(actual: pl.DataFrame, wanted: dict[str, list[float | None]], rule: str) -> None:
    """Every column that the expected table has."""
    assert_column(actual["threshold"], wanted["threshold"], "threshold")
    for ours, theirs in EXACT.items():
        if theirs in wanted:
            assert actual[ours].to_list() == wanted[theirs], theirs
    for ours, theirs in ALWAYS.items():
        if theirs in wanted:
            assert_column(actual[ours], wanted[theirs], theirs)
    suffix = RULES[rule]
    if f"R_{suffix}" in wanted:
        recall = "recall_raw_uncorrected" if rule == "lowest" else "recall_uncorrected"
        assert_column(actual[recall], wanted[f"R_{suffix}"], f"R_{suffix}")
    if f"F1_{suffix}" in wanted and rule == "max":
        assert_column(actual["f1_uncorrected"], wanted[f"F1_{suffix}"], f"F1_{suffix}")


def assert_best(published: Run, wanted: dict[str, float]) -> None:
    """The threshold with the best uncorrected F1, the lowest of equal ones."""
    best = table(published).sort("f1_uncorrected", "threshold", descending=[True, False], nulls_last=True).to_dicts()[0]
    assert best["threshold"] == pytest.approx(wanted["threshold"], rel=TOLERANCE)
    for ours, theirs in {"precision": "P", "recall": "R", "f1": "F1"}.items():
        assert best[f"{ours}_uncorrected"] == pytest.approx(wanted[theirs], rel=TOLERANCE), theirs


@pytest.mark.parametrize(("rule", "recall"), [("lowest", 1.0), ("lowest", [0.8, 1.0]), ("max", 0.9)])
def test_the_corrected_columns_are_exact_fractions_of_the_counts(
    dutch: Path, expected: dict[str, Any], tmp_path: Path, rule: str, recall: float | list[float]
) -> None:
    thresholds = expected["weight"]["table"]["threshold"]
    published = run(
        dutch, tmp_path, thresholds=thresholds, recall_reference={"rule": rule, "recall": recall}, uncertainty="none"
    )
    curve = table(published).to_dicts()
    names = ("threshold", "n_before", "n_after", "m_before", "m_after")
    rows = [Row(None, *(row[name] for name in names)) for row in curve]
    middle = Fraction("0.9") if recall != 1.0 else Fraction(1)
    ratios = [row.expected(reference_of(rows, rule), middle) for row in rows]
    for row, exact in zip(curve, ratios, strict=True):
        for name, value in exact.items():
            if isinstance(value, Fraction):
                assert row[name] == pytest.approx(float(value), rel=1e-14), name
            else:
                assert row[name] == value, name
    best = chosen_by(list(zip(rows, ratios, strict=True)), lambda _: True, "f1")
    point = table(published, "before_after_operating_points").row(0, named=True)
    assert best is not None
    assert (point["criterion"], point["threshold"]) == ("max_f1", best[0].threshold)


def test_the_sentence_speaks_of_recall_that_is_recall(dutch: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    published = run(dutch, tmp_path, thresholds=expected["weight"]["table"]["threshold"])
    point = table(published, "before_after_operating_points").row(0, named=True)
    reference = table(published).row(by_predicate=pl.col("is_reference"), named=True)
    sentence = published.stages[0].summary.sentence
    assert f"about {point['recall'] * 100:.0f} of every 100 true matches are kept" in sentence
    assert "This depends on the recall reference: see the warnings." in sentence
    (warning,) = [text for text in published.warnings if "precision and recall depend on the recall reference" in text]
    assert f"{reference['fpr']:.0%} of the pairs match there even before the event" in warning
    assert f"Welbers et al. 2022, gives a recall of {point['recall_uncorrected']:.2f}" in warning
    assert point["recall_upper"] < point["recall_uncorrected"], "they differ by more than chance"


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("score", ["weight", "cosine"])
def test_every_cell_of_the_published_table(
    dutch: Path, expected: dict[str, Any], tmp_path: Path, score: str, rule: str
) -> None:
    wanted = expected[score]
    thresholds = wanted["table"]["threshold"]
    published = run(dutch, tmp_path, score, thresholds=thresholds, recall_reference={"rule": rule})
    curve = table(published)
    assert curve["n_before"].unique().to_list() == [wanted["N_before"]]
    assert curve["n_after"].unique().to_list() == [wanted["N_after"]]
    assert_table(curve, wanted["table"], rule)
    anchor = "anchor_lowest" if rule == "lowest" else "anchor_max_tp"
    reference = curve.filter("is_reference").to_dicts()[0]
    assert reference["threshold"] == pytest.approx(wanted["anchor"][f"{anchor}_threshold"], rel=TOLERANCE)
    if rule == "max":
        assert_best(published, wanted["best_F1_max_tp_anchor"])


@pytest.mark.parametrize("score", ["weight", "cosine"])
def test_an_even_grid_gives_the_same_as_the_list_of_thresholds(
    dutch: Path, expected: dict[str, Any], tmp_path: Path, score: str
) -> None:
    thresholds = expected[score]["table"]["threshold"]
    published = run(dutch, tmp_path, score, thresholds=grid(thresholds))
    assert_table(table(published), expected[score]["table"], "lowest")


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("variant", MIN_PRECISIONS)
def test_every_minimum_precision_of_the_reference(
    dutch: Path, expected: dict[str, Any], tmp_path: Path, variant: str, rule: str
) -> None:
    wanted = expected[variant]
    reference = {"rule": rule, "min_precision": MIN_PRECISIONS[variant]}
    published = run(dutch, tmp_path, thresholds=wanted["table"]["threshold"], recall_reference=reference)
    curve = table(published)
    assert_table(curve, wanted["table"], rule)
    reference = curve.filter("is_reference").to_dicts()[0]
    anchor = "anchor_lowest" if rule == "lowest" else "anchor_max_tp"
    assert reference["threshold"] == pytest.approx(wanted["anchor"][f"{anchor}_threshold"], rel=TOLERANCE)
    assert reference["tp_uncorrected"] == pytest.approx(
        wanted["anchor"]["anchor_lowest_tp" if rule == "lowest" else "anchor_max_tp"]
    )


@pytest.mark.parametrize("rule", RULES)
def test_thresholds_beyond_the_largest_weight_have_no_precision(
    dutch: Path, expected: dict[str, Any], tmp_path: Path, rule: str
) -> None:
    """The R code stops at the first threshold without a match; here every threshold has its row."""
    wanted = expected["weight_wide_range_1_700"]
    published = run(
        dutch, tmp_path, thresholds={"start": 1.0, "stop": 700.0, "count": 200}, recall_reference={"rule": rule}
    )
    curve = table(published)
    returned = wanted["n_thresholds_returned"]
    assert curve.height == 200
    assert_table(curve[:returned], wanted["table"], rule)
    beyond = curve[returned:]
    assert beyond["m_before"].sum() == beyond["m_after"].sum() == 0
    assert beyond["precision"].null_count() == beyond["precision_uncorrected"].null_count() == 200 - returned
    assert beyond.height == 200 - returned
    assert beyond["undefined"].unique().to_list() == ["no_prediction"]
    if rule == "max":
        assert_best(published, wanted["best_F1_max_tp_anchor"])


def test_thresholds_above_a_minimum_weight_move_the_reference(
    dutch: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    wanted = expected["weight_min_weight_5"]
    published = run(dutch, tmp_path, thresholds=wanted["table"]["threshold"], recall_reference={"rule": "max"})
    assert_table(table(published), wanted["table"], "max")
    assert_best(published, wanted["best_F1_max_tp_anchor"])


def test_f1_of_the_lowest_reference_uses_the_clipped_recall(
    dutch: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    """The expected F1 takes recall as it is, also above 1; ours takes it clipped: they agree up to 1."""
    for score in ("weight", "cosine"):
        wanted = expected[score]["table"]
        folder = tmp_path / score
        folder.mkdir()
        curve = table(run(dutch, folder, score, thresholds=wanted["threshold"]))
        for row, recall, f1 in zip(curve.to_dicts(), wanted["R_low"], wanted["F1_low"], strict=True):
            if recall <= 1:
                assert row["f1_uncorrected"] == pytest.approx(f1, rel=TOLERANCE)
            else:
                precision = row["precision_uncorrected"]
                assert row["recall_uncorrected"] == 1
                assert row["f1_uncorrected"] == pytest.approx(2 * precision / (precision + 1), rel=TOLERANCE)


def test_the_best_f1_of_the_lowest_reference(dutch: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    best = expected["weight"]["best_F1_lowest_threshold_anchor"]
    assert best["R"] <= 1
    assert_best(run(dutch, tmp_path, thresholds=expected["weight"]["table"]["threshold"]), best)


def test_events_without_a_complete_window_are_left_out_by_default(
    dutch: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    wrong, right = expected["weight_if_incomplete_events_are_kept"], expected["weight"]
    published = run(dutch, tmp_path, thresholds=right["table"]["threshold"])
    curve = table(published)
    assert curve["n_before"][0] == right["N_before"] != wrong["N_before"]
    assert np.abs(curve["precision_uncorrected"].to_numpy() - np.array(wrong["table"]["P"])).max() > 0.01
    inputs = pl.read_parquet(published.path / "inputs" / "before_after.parquet")
    used = {row["input"]: row["n_rows"] for row in inputs.to_dicts() if row["status"] == "used"}
    assert used == {"pairs": right["rows_used"], "events": right["n_events"]}


def test_keeping_incomplete_events_gives_the_numbers_that_are_known_to_be_wrong(
    dutch: Path, expected: dict[str, Any], tmp_path: Path
) -> None:
    wrong = expected["weight_if_incomplete_events_are_kept"]
    published = run(
        dutch, tmp_path, complete=False, thresholds=wrong["table"]["threshold"], recall_reference={"rule": "max"}
    )
    curve = table(published)
    assert (curve["n_before"][0], curve["n_after"][0]) == (wrong["N_before"], wrong["N_after"])
    assert_table(curve, wrong["table"], "max")


def test_groups_of_articles_add_up_to_the_total(dutch: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    stage = {
        "kind": "before_after",
        "pairs": {"path": str(dutch / "pairs.parquet"), "columns": {"score": "weight", "lag_hours": "hourdiff"}},
        "events": str(dutch / "events.parquet"),
        "articles": {"path": str(dutch / "articles.parquet")},
        "window": WINDOW,
        "compared": "timelines",
        "thresholds": expected["weight"]["table"]["threshold"],
        "by": [[], ["articles.sourcetype"]],
        "recall_reference": {"rule": "max"},
    }
    curve = table(run_stages({"output": str(tmp_path / "results"), "stages": [stage]}))
    total = curve.filter(pl.col("grouping") == "all")
    assert_table(total, expected["weight"]["table"], "max")
    names = ["n_before", "n_after", "m_before", "m_after"]
    sums = curve.filter(pl.col("grouping") != "all").group_by("threshold").agg(pl.col(names).sum())
    assert sums.sort("threshold").equals(total.select("threshold", *names))


WINDOWS = {"-72h..48h": ("72h", "48h"), "-168h..24h": ("168h", "24h"), "-24h..24h": ("24h", "24h")}


@pytest.mark.parametrize("name", WINDOWS)
def test_other_windows_from_timestamps_alone(dutch: Path, expected: dict[str, Any], tmp_path: Path, name: str) -> None:
    wanted = expected["other_windows_from_timestamps_duckdb"][name]
    before, after = WINDOWS[name]
    pl.read_parquet(dutch / "events.parquet").drop("complete_window", "n_before", "n_after").write_parquet(
        tmp_path / "events.parquet"
    )
    stage = {
        "kind": "before_after",
        "pairs": {"path": str(dutch / "pairs.parquet"), "columns": {"score": "weight", "lag_hours": "hourdiff"}},
        "events": str(tmp_path / "events.parquet"),
        "articles": str(dutch / "articles.parquet"),
        "window": {"before": before, "after": after},
        "thresholds": [row["threshold"] for row in wanted["estimates"]],
    }
    published = run_stages({"output": str(tmp_path / "results"), "stages": [stage]})
    curve = table(published)
    assert (curve["n_before"][0], curve["n_after"][0]) == (wanted["N_before"], wanted["N_after"])
    columns = {key: [row[key] for row in wanted["estimates"]] for key in wanted["estimates"][0]}
    assert_table(curve, columns, "lowest")
    inputs = pl.read_parquet(published.path / "inputs" / "before_after.parquet")
    events = inputs.filter(pl.col("input") == "events", pl.col("status") == "used")
    assert events["n_rows"].to_list() == [wanted["n_complete_events"]]


def test_matches_per_day(dutch: Path, expected: dict[str, Any], tmp_path: Path) -> None:
    wanted = expected["match_counts_by_daydiff_floor_hourdiff_over_24"]
    thresholds = sorted(float(threshold) for threshold in wanted)
    published = run(dutch, tmp_path, thresholds=[1.0], lag_thresholds=thresholds)
    lags = table(published, "before_after_lags").filter(pl.col("matches") > 0)
    for threshold, days in wanted.items():
        matches = lags.filter(pl.col("threshold") == float(threshold))
        actual = dict(zip(matches["lag_days"].to_list(), matches["matches"].to_list(), strict=True))
        assert actual == {int(day): matches for day, matches in days.items() if matches}


def test_the_match_rate_rises_over_the_days_before_the_event(dutch: Path, tmp_path: Path) -> None:
    published = run(
        dutch,
        tmp_path,
        articles=str(dutch / "articles.parquet"),
        compared="timelines",
        thresholds=[1.0],
        lag_thresholds=[10.0],
    )
    row = table(published, "before_after_trend").row(0, named=True)
    assert row["n_days"] == 7
    assert 0.05 < row["slope_lower"] < row["slope"] < row["slope_upper"] < 0.35
    assert row["p_value"] < 0.01
    assert any("over the days before the event" in warning for warning in published.warnings)


def test_false_positives_by_weekday_are_those_of_every_pair(dutch: Path, tmp_path: Path) -> None:
    """Events times articles in Polars: compared pairs by weekday of the article, and matches among the stored ones."""
    threshold = 20.0
    published = run(
        dutch,
        tmp_path,
        articles=str(dutch / "articles.parquet"),
        compared="timelines",
        thresholds=[threshold],
        strata=["weekday"],
    )
    row = table(published, "before_after_adjusted").row(0, named=True)
    articles = pl.read_parquet(dutch / "articles.parquet").select("article_id", "article_time")
    events = pl.read_parquet(dutch / "events.parquet").filter("complete_window").select("event_id", "event_time")
    hours = (pl.col("article_time") - pl.col("event_time")).dt.total_microseconds() / 3.6e9
    weekday = pl.col("article_time").dt.weekday().alias("weekday")
    every = events.join(articles, how="cross").with_columns(hours.alias("lag"), weekday)
    before, after = pl.col("lag").is_between(-168, 0, closed="left"), pl.col("lag").is_between(0, 72)
    compared = every.group_by("weekday").agg(before.sum().alias("n_before"), after.sum().alias("n_after"))
    stored = pl.read_parquet(dutch / "pairs.parquet").filter(pl.col("weight") >= threshold)
    false = stored.join(events, on="event_id").join(articles, on="article_id").with_columns(weekday)
    false = false.filter(pl.col("hourdiff").is_between(-168, 0, closed="left"))
    weekdays = compared.join(false.group_by("weekday").agg(pl.len().alias("m_before")), on="weekday")
    assert row["n_strata"] == weekdays.height == 7
    fp = (weekdays["m_before"] / weekdays["n_before"] * weekdays["n_after"]).sum()
    assert row["fpr_adjusted"] == pytest.approx(fp / int(weekdays["n_after"].to_numpy().sum()), rel=1e-12)
