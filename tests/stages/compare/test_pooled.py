"""Ratios of all units' counts in whole runs: against enumerated swaps, scipy's beta distributions and leave-one-out."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from comparing import compare_matchers
from running import compared, run_compare
from scipy import stats

from pipeline.base.columns import RATIOS
from pipeline.base.errors import DataError
from pipeline.metrics.comparison.paired import EVENT_COUNTS

if TYPE_CHECKING:
    from pathlib import Path

CELLS = ("tp", "fp", "fn")
POOLED = ("pooled_precision", "pooled_recall", "pooled_f1")
T = 9999
WEIGHTS = {"pooled_precision": [1, 1, 0], "pooled_recall": [1, 0, 1], "pooled_f1": [2, 1, 1]}  # of tp, fp, fn


def documents(seed: int, units: int) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    frames = []
    for system, hits in (("crf", 4.0), ("lstm", 6.0)):
        counts = {name: rng.poisson(mean, units) for name, mean in zip(CELLS, (hits, 2.0, 3.0), strict=True)}
        frames.append(pl.DataFrame({"unit": np.arange(units), "system": system} | counts))
    return pl.concat(frames)


def counts_of(frame: pl.DataFrame, system: str) -> np.ndarray[Any, np.dtype[np.int64]]:
    return frame.filter(pl.col("system") == system).sort("unit").select(CELLS).to_numpy()


def ratio(name: str, totals: np.ndarray[Any, np.dtype[np.int64]]) -> float:
    tp, fp, fn = (int(value) for value in totals)
    return {
        "pooled_precision": tp / (tp + fp),
        "pooled_recall": tp / (tp + fn),
        "pooled_f1": 2 * tp / (2 * tp + fp + fn),
    }[name]


@pytest.mark.parametrize("name", POOLED)
def test_swaps_of_counts_are_those_of_every_enumerated_swap(tmp_path: Path, name: str) -> None:
    frame = documents(1, 9)
    a, b = counts_of(frame, "crf"), counts_of(frame, "lstm")
    observed = ratio(name, a.sum(axis=0)) - ratio(name, b.sum(axis=0))
    extreme = 0
    for swapped in itertools.product((False, True), repeat=len(a)):
        chosen = np.array(swapped)[:, None]
        one, other = np.where(chosen, b, a).sum(axis=0), np.where(chosen, a, b).sum(axis=0)
        extreme += abs(ratio(name, one) - ratio(name, other)) >= abs(observed) - 1e-12
    exact = extreme / 2 ** len(a)
    row = compared(tmp_path, frame, metrics=[name])["tests"].row(0, named=True)
    assert (row["test"], row["n_units"], row["wins_a"]) == ("randomization", 9, None)
    assert row["difference"] == pytest.approx(observed, rel=1e-12)
    assert row["p_value"] == pytest.approx(exact, abs=4 * np.sqrt(exact / T) + 1 / T)


def test_intervals_are_those_of_leaving_one_unit_out(tmp_path: Path) -> None:
    frame = documents(2, 30)
    a, b = counts_of(frame, "crf"), counts_of(frame, "lstm")
    tests = compared(tmp_path, frame, confidence=0.9)["tests"]
    for name in POOLED:
        row = tests.row(by_predicate=pl.col("metric") == name, named=True)
        rest = [
            ratio(name, np.delete(a, unit, axis=0).sum(axis=0)) - ratio(name, np.delete(b, unit, axis=0).sum(axis=0))
            for unit in range(30)
        ]
        error = np.sqrt(29 / 30 * np.sum((np.array(rest) - np.mean(rest)) ** 2))
        squares = (np.array(rest) - np.mean(rest)) ** 2
        degrees = 2 * squares.sum() ** 2 / ((squares**2).sum() - squares.sum() ** 2 / 30)
        sizes = (a + b) @ WEIGHTS[name]
        degrees = min(degrees, 29, sizes.sum() ** 2 / (sizes**2).sum() - 1)
        half = stats.t.ppf(0.95, degrees) * error
        assert row["difference_upper"] - row["difference"] == pytest.approx(half, rel=1e-9)
        assert row["difference"] - row["difference_lower"] == pytest.approx(half, rel=1e-9)
        power = stats.nct.sf(stats.t.ppf(0.95, 29), 29, row["minimum_detectable_difference"] / error)
        assert power == pytest.approx(0.8, abs=1e-6)


def test_posteriors_are_those_of_scipy(tmp_path: Path) -> None:
    frame = documents(3, 40)
    found = compared(tmp_path, frame, prior=1.0, confidence=0.8)["posteriors"]
    assert found["metric"].to_list() == sorted(POOLED)
    for row in found.iter_rows(named=True):
        draws: list[np.ndarray[Any, np.dtype[np.float64]]] = []
        for side, system in (("a", "crf"), ("b", "lstm")):
            tp, fp, fn = (int(value) for value in counts_of(frame, system).sum(axis=0))
            misses = {"pooled_precision": fp, "pooled_recall": fn, "pooled_f1": fp + fn}[row["metric"]]
            effect, added = row[f"design_effect_{side}"], 2 if row["metric"] == "pooled_f1" else 1
            assert effect >= 1
            beta = stats.beta(tp / effect + 1, misses / effect + added)
            limits, drawn = np.array(beta.interval(0.8)), beta.rvs(200_000, random_state=len(draws))
            if row["metric"] == "pooled_f1":
                limits, drawn = 2 * limits / (1 + limits), 2 * drawn / (1 + drawn)
            assert [row[f"mean_{side}_lower"], row[f"mean_{side}_upper"]] == pytest.approx(limits.tolist(), rel=1e-9)
            assert row[f"mean_{side}"] == pytest.approx(drawn.mean(), abs=4 * drawn.std() / np.sqrt(len(drawn)))
            draws.append(drawn)
        share = float((draws[0] > draws[1]).mean())
        assert row["probability_a_better"] == pytest.approx(share, abs=4 * np.sqrt(0.25 / 200_000))


def test_totals_may_stand_for_errors(tmp_path: Path) -> None:
    frame = documents(4, 12)
    totals = frame.select(
        "unit",
        "system",
        "tp",
        (pl.col("tp") + pl.col("fp")).alias("n_predicted"),
        (pl.col("tp") + pl.col("fn")).alias("n_true"),
    )
    first, second = compared(tmp_path / "first", frame), compared(tmp_path / "second", totals)
    for name in ("tests", "posteriors"):
        assert first[name].equals(second[name])


def test_ratios_of_each_unit_are_means(tmp_path: Path) -> None:
    frame = documents(5, 25)
    tests = compared(tmp_path, frame, metrics=["f1", "precision", "pooled_f1"], tests=["paired_t", "randomization"])[
        "tests"
    ]
    values = frame.with_columns(
        (2 * pl.col("tp") / (2 * pl.col("tp") + pl.col("fp") + pl.col("fn"))).fill_nan(None).alias("f1")
    )
    both = values.pivot("system", index="unit", values="f1").drop_nulls()
    row = tests.row(by_predicate=(pl.col("metric") == "f1") & (pl.col("test") == "paired_t"), named=True)
    assert row["p_value"] == pytest.approx(stats.ttest_rel(both["crf"], both["lstm"]).pvalue, rel=1e-9)
    assert row["n_units"] == both.height
    assert tests.filter(metric="pooled_f1")["test"].to_list() == ["randomization"]
    assert tests.filter(metric="precision").height == 2


def test_a_unit_without_counts_is_dropped_from_the_sums(tmp_path: Path) -> None:
    whole = (pl.col("unit") != 3) | (pl.col("system") != "crf")
    frame = documents(6, 10).with_columns(pl.when(whole).then("fp").alias("fp"))
    kept = compared(tmp_path / "kept", documents(6, 10).filter(pl.col("unit") != 3))
    found = compared(tmp_path / "found", frame)
    assert found["tests"]["n_dropped"].to_list() == [1, 1, 1]
    for name in ("tests", "posteriors"):
        assert found[name].drop("n_dropped").equals(kept[name].drop("n_dropped"))


@pytest.mark.parametrize(
    ("counts", "reasons"),
    [
        ([(0, 0, 2), (0, 0, 3)], {"pooled_precision": "undefined_ratio", "pooled_recall": None, "pooled_f1": None}),
        ([(2, 1, 1), (0, 0, 3)], {"pooled_precision": "one_unit_decides", "pooled_recall": None, "pooled_f1": None}),
        ([(2, 1, 1)], dict.fromkeys(POOLED, "one_unit")),
    ],
)
def test_undefined_ratios_are_null_with_a_reason(
    tmp_path: Path, counts: list[tuple[int, ...]], reasons: dict[str, str | None]
) -> None:
    rows = [(unit, "a", *cells) for unit, cells in enumerate(counts)]
    rows += [(unit, "b", 1, 1, 1) for unit in range(len(counts))]
    tests = compared(tmp_path, pl.DataFrame(rows, schema=["unit", "system", *CELLS], orient="row"))["tests"]
    for row in tests.iter_rows(named=True):
        assert row["undefined"] == reasons[row["metric"]]
        assert (row["difference_lower"] is None) == (row["undefined"] is not None)
        assert (row["p_value"] is None) == (row["undefined"] == "undefined_ratio")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tp": -1}, "'tp' is negative in 4 rows"),
        ({"n_predicted": 0, "fp": None}, "tp exceeds n_predicted"),
    ],
)
def test_impossible_counts_are_refused(tmp_path: Path, change: dict[str, int | None], words: str) -> None:
    frame = documents(7, 2).with_columns(pl.lit(2).alias("tp"))
    frame = frame.drop([name for name, value in change.items() if value is None])
    frame = frame.with_columns(pl.lit(value).alias(name) for name, value in change.items() if value is not None)
    with pytest.raises(DataError, match=words):
        run_compare(tmp_path, frame)


def test_what_no_test_fits_is_told(tmp_path: Path) -> None:
    run = run_compare(tmp_path, documents(8, 25), tests=["paired_t"])
    assert [text for text in run.warnings if "no test of tests fits" in text]


# Counts around events -------------------------------------------------------------------------------------------------


def events(seed: int, units: int, noise: float) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    n_before, n_after = rng.integers(200, 300, units), rng.integers(80, 120, units)
    false_before, false_after, true = rng.poisson(4.0, units), rng.poisson(1.5, units), rng.poisson(5.0, units)
    counts = (n_before, n_after, rng.binomial(false_before, noise), rng.binomial(false_after, noise) + true)
    columns = zip(EVENT_COUNTS, (*counts, false_before, false_after + true), strict=True)
    return pl.DataFrame({"event_id": np.arange(units)} | dict(columns))


def test_matchers_are_compared_as_by_compare_matchers(tmp_path: Path) -> None:
    a, b = events(1, 60, 0.3), events(1, 60, 0.8)
    frame = pl.concat([a.with_columns(system=pl.lit("a")), b.with_columns(system=pl.lit("b"))])
    tests = compared(tmp_path, frame, units={"columns": {"unit": "event_id"}}, resamples=999, seed=5)["tests"]
    expected = compare_matchers(a, b, flips=999, seed=5)
    for name in RATIOS:
        row = tests.row(by_predicate=pl.col("metric") == f"pooled_{name}", named=True)
        wanted = expected.row(by_predicate=pl.col("metric") == name, named=True)
        pairs = {"mean_a": "value_a", "mean_b": "value_b", "n_units": "n_events"}
        for column in ("mean_a", "mean_b", "n_units", "difference", "difference_lower", "difference_upper", "p_value"):
            assert row[column] == pytest.approx(wanted[pairs.get(column, column)], rel=1e-9), (name, column)
        assert row["test"] == "randomization"
        assert row["minimum_detectable_difference"] > row["difference_upper"] - row["difference"]


def test_one_event_and_no_match_are_no_comparison(tmp_path: Path) -> None:
    def reasons(name: str, frame: pl.DataFrame) -> set[str | None]:
        both = pl.concat([frame.with_columns(system=pl.lit(system)) for system in "ab"])
        tests = compared(tmp_path / name, both, units={"columns": {"unit": "event_id"}}, resamples=99)["tests"]
        assert tests["p_value"].null_count() == tests.height == 3
        return set(tests["undefined"].to_list())

    assert reasons("one", events(1, 1, 0.5)) == {"one_unit"}
    nothing = events(1, 4, 0.5).with_columns(pl.lit(0).alias(name) for name in EVENT_COUNTS[2:])
    assert reasons("nothing", nothing) == {"undefined_ratio"}
