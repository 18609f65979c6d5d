"""Metrics of units in whole runs: against scipy, tests by hand, and what must not change a result."""

from __future__ import annotations

import re
import tomllib
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import COMPARE, compared, rows_by_status, run_compare
from scipy import stats

from pipeline.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pathlib import Path

EVERY = ["paired_t", "wilcoxon", "sign", "randomization"]
SYSTEMS = ("bm25", "dense", "hybrid")


def queries(seed: int, units: int = 12, *, digits: int = 1) -> pl.DataFrame:
    """Average precision of three systems on the same queries, rounded so that differences tie and vanish."""
    rng = np.random.default_rng(seed)
    hard = rng.normal(0.5, 0.1, units)
    values = {name: np.round(hard + rng.normal(0.03 * place, 0.1, units), digits) for place, name in enumerate(SYSTEMS)}
    frames = [pl.DataFrame({"query_id": np.arange(units), "model": name, "ap": ap}) for name, ap in values.items()]
    return pl.concat(frames)


KEYS: dict[str, Any] = {"units": {"columns": {"unit": "query_id"}}, "system": "model"}


def values_of(frame: pl.DataFrame, system: str, metric: str = "ap") -> np.ndarray[Any, np.dtype[np.float64]]:
    return frame.filter(pl.col("model") == system).sort("query_id")[metric].to_numpy()


def row_of(tests: pl.DataFrame, a: str, b: str, test: str, **more: object) -> dict[str, Any]:
    chosen = tests.filter(system_a=a, system_b=b, test=test, **more)
    assert chosen.height == 1
    return chosen.row(0, named=True)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[pl.DataFrame, pl.DataFrame]:
    frame = queries(3)
    keys = KEYS | {"tests": EVERY, "confidence": 0.9, "resamples": 20_000}
    return frame, compared(tmp_path_factory.mktemp("compare"), frame, **keys)["tests"]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("a", "b"), list(combinations(SYSTEMS, 2)))
def test_tests_are_those_of_scipy(found: tuple[pl.DataFrame, pl.DataFrame], a: str, b: str) -> None:
    frame, tests = found
    x, y = values_of(frame, a), values_of(frame, b)
    student = stats.ttest_rel(x, y)
    row = row_of(tests, a, b, "paired_t")
    limits = student.confidence_interval(0.9)
    assert [row[name] for name in ("statistic", "p_value", "difference_lower", "difference_upper")] == pytest.approx(
        [student.statistic, student.pvalue, limits.low, limits.high], rel=1e-9
    )
    assert row["effect_size"] == pytest.approx((x - y).mean() / (x - y).std(ddof=1), rel=1e-9)
    gap = np.round(x - y, 6)
    exact = stats.wilcoxon(gap, method=stats.PermutationMethod(n_resamples=np.inf))
    assert row_of(tests, a, b, "wilcoxon")["p_value"] == pytest.approx(exact.pvalue, rel=1e-9)
    wins, losses = int((gap > 0).sum()), int((gap < 0).sum())
    assert row_of(tests, a, b, "sign")["p_value"] == pytest.approx(stats.binomtest(wins, wins + losses).pvalue)
    assert (row["wins_a"], row["ties"], row["wins_b"]) == (wins, len(gap) - wins - losses, losses)
    swapped = stats.permutation_test(
        (x, y), lambda u, v: np.mean(u - v), permutation_type="samples", n_resamples=np.inf, vectorized=False
    )
    p_value = row_of(tests, a, b, "randomization")["p_value"]
    assert p_value == pytest.approx(swapped.pvalue, abs=4 * np.sqrt(swapped.pvalue / 20_000) + 1e-4)
    assert row["minimum_detectable_difference"] > 0


def holm(p_values: list[float]) -> list[float]:
    """Holm (1979), step by step."""
    order = sorted(range(len(p_values)), key=p_values.__getitem__)
    adjusted, highest = [0.0] * len(p_values), 0.0
    for step, place in enumerate(order):
        highest = max(highest, min(1.0, (len(p_values) - step) * p_values[place]))
        adjusted[place] = highest
    return adjusted


def hochberg(p_values: list[float]) -> list[float]:
    """Benjamini and Hochberg (1995), by its definition."""
    ranked = sorted(p_values)
    return [
        min(1.0, *(p * len(ranked) / rank for rank, p in enumerate(ranked, start=1) if p >= value))
        for value in p_values
    ]


@pytest.mark.parametrize(("correction", "rule"), [("holm", holm), ("bh", hochberg), ("none", list)])
def test_p_values_are_adjusted_within_group_and_test(tmp_path: Path, correction: str, rule: Any) -> None:  # noqa: ANN401
    frame = queries(5, 30, digits=3).with_columns(
        pl.col("ap").shuffle(seed=1).alias("rr"), (pl.col("query_id") % 2).alias("half")
    )
    tests = compared(tmp_path, frame, **KEYS, tests=EVERY, by=["half"], correction=correction)["tests"]
    parts = tests.partition_by("grouping", "half", "test")
    assert len(parts) == 3 * len(EVERY)
    for part in parts:
        assert part.height == 6
        assert part["p_adjusted"].to_list() == pytest.approx(rule(part["p_value"].to_list()), rel=1e-12)


def test_the_names_of_the_systems_only_turn_the_sign(tmp_path: Path) -> None:
    frame = queries(9).filter(pl.col("model") != "hybrid")
    turned = frame.with_columns(pl.col("model").replace({"bm25": "z"}))
    first = compared(tmp_path / "first", frame, **KEYS, tests=EVERY)["tests"]
    second = compared(tmp_path / "second", turned, **KEYS, tests=EVERY)["tests"]
    for column, other in (("mean_a", "mean_b"), ("wins_a", "wins_b"), ("p_value", "p_value"), ("p_adjusted",) * 2):
        assert first[column].to_list() == pytest.approx(second[other].to_list(), rel=1e-12)
    for column, other in (("difference", "difference"), ("difference_lower", "difference_upper")):
        assert first[column].to_list() == pytest.approx([-value for value in second[other]], rel=1e-9)


def test_the_seed_decides_the_random_swaps(tmp_path: Path) -> None:
    def p_values(name: str, **keys: int) -> list[float]:
        frame = queries(1, 200, digits=4)
        tests = compared(tmp_path / name, frame, **KEYS, tests=["randomization"], **keys)["tests"]
        return tests["p_value"].to_list()

    first = p_values("first", resamples=999)
    assert p_values("again", resamples=999, seed=0) == first
    assert p_values("other", resamples=999, seed=1) != first
    assert all((value * 1000) == pytest.approx(round(value * 1000)) and value >= 0.001 for value in first)


def test_a_system_that_no_column_has_is_answered_with_the_key_that_names_one(tmp_path: Path) -> None:
    frame = queries(3)
    for keys in (KEYS | {"system": "modell"}, {"units": KEYS["units"]}):
        with pytest.raises(DataError, match="the system that the row is about") as caught:
            run_compare(tmp_path, frame, **keys)
        assert 'Write system = "…".' in str(caught.value)
        assert "columns = {" not in str(caught.value)
    mapped = {"units": {"columns": {"unit": "query_id", "system": "modell"}}}
    with pytest.raises(DataError, match=r"Map it with columns = \{ system"):
        run_compare(tmp_path, frame, **mapped)


@pytest.mark.parametrize("system", ["upper(model)", "number", "model's number"])
def test_an_expression_as_system_is_mapped_in_place_of_the_key(tmp_path: Path, system: str) -> None:
    number = pl.col("model").rank("dense").cast(pl.Float64)
    frame = queries(3).with_columns(number.alias("number"), number.alias("model's number"))
    with pytest.raises(DataError, match="Leave the key system out then") as caught:
        run_compare(tmp_path, frame, **KEYS | {"system": system}, metrics=["ap"])
    written = re.search(r"columns = \{ .* \} \}", str(caught.value))
    assert written is not None
    columns = {"unit": "query_id"} | tomllib.loads(written[0])["columns"]
    tests = compared(tmp_path, frame, units={"columns": columns}, metrics=["ap"])["tests"]
    assert tests.get_column("system_a").n_unique() == len(SYSTEMS) - 1
    with pytest.raises(DataError, match="is double") as caught:
        run_compare(tmp_path, frame.drop("model").rename({"number": "system"}), units=KEYS["units"])
    assert "Leave the key" not in str(caught.value)


def test_units_without_a_value_leave_the_tests_of_that_metric(tmp_path: Path) -> None:
    frame = queries(4).with_columns(
        pl.when((pl.col("query_id") == 2) & (pl.col("model") == "bm25"))
        .then(float("nan"))
        .when((pl.col("query_id") == 3) & (pl.col("model") == "dense"))
        .then(None)
        .otherwise(pl.col("ap"))
        .alias("holes")
    )
    tests = compared(tmp_path, frame, **KEYS, tests=["paired_t"])["tests"]
    row = row_of(tests, "bm25", "dense", "paired_t", metric="holes")
    assert (row["n_units"], row["n_dropped"]) == (10, 2)
    kept = frame.filter(~pl.col("query_id").is_in([2, 3]))
    expected = stats.ttest_rel(values_of(kept, "bm25"), values_of(kept, "dense"))
    assert row["p_value"] == pytest.approx(expected.pvalue, rel=1e-9)
    assert row_of(tests, "bm25", "hybrid", "paired_t", metric="holes")["n_dropped"] == 1
    assert row_of(tests, "bm25", "dense", "paired_t", metric="ap")["n_dropped"] == 0


@pytest.mark.parametrize(
    ("a", "b", "reason", "p_value"),
    [
        ([0.5, 0.25], [0.5, 0.25], "no_difference", 1.0),
        ([0.5, 0.75], [0.25, 0.5], "constant_difference", None),
        ([0.5], [0.25], "one_unit", None),
        ([None], [0.25], "no_unit", None),
        ([0.5, 0.75], [0.25, 0.625], None, 0.2048327646991335),
    ],
)
def test_what_cannot_be_tested_is_null_with_a_reason(
    tmp_path: Path, a: list[float | None], b: list[float], reason: str | None, p_value: float | None
) -> None:
    frame = pl.DataFrame(
        {"unit": [*range(len(a)), *range(len(b))], "system": ["a"] * len(a) + ["b"] * len(b), "x": a + b}
    )
    row = compared(tmp_path, frame, tests=["paired_t"])["tests"].row(0, named=True)
    assert row["undefined"] == reason
    assert row["p_value"] == pytest.approx(p_value) if p_value is not None else row["p_value"] is None
    assert (row["difference_lower"] is None) == (reason is not None)


def test_few_units_and_dropped_units_are_told(tmp_path: Path) -> None:
    frame = queries(2).with_columns(pl.when(pl.col("query_id") > 0).then("ap").alias("ap"))
    run = run_compare(tmp_path, frame, **KEYS)
    assert len(run.warnings) == 2
    assert "leave out units" in run.warnings[0]
    assert "fewer than 20 units" in run.warnings[1]
    assert rows_by_status(run, "units", COMPARE) == {"used": frame.height}
    assert len(run.stages[0].summary.rows) == 3


def test_systems_may_be_numbers_and_metrics_of_any_numeric_type(tmp_path: Path) -> None:
    frame = queries(6).with_columns(
        pl.col("model").replace_strict({"bm25": 10, "dense": 9, "hybrid": 11}, return_dtype=pl.Int32),
        pl.col("ap").cast(pl.Decimal(10, 3)).alias("exact"),
        (pl.col("ap") > 0.5).cast(pl.Int8).alias("hit"),
    )
    tests = compared(tmp_path, frame, **KEYS, metrics=["exact", "hit", "ap"], tests=["sign"])["tests"]
    assert tests["system_a"].unique().sort().to_list() == [9, 10]
    by_metric = {name: tests.filter(metric=name)["wins_a"].to_list() for name in ("exact", "ap")}
    assert by_metric["exact"] == by_metric["ap"]
    assert all(0 < value < 1 for value in tests.filter(metric="hit")["mean_a"].to_list())


# What is refused ------------------------------------------------------------------------------------------------------

FRAME = queries(0)
REFUSED: list[tuple[pl.DataFrame, dict[str, Any], type[Exception], str]] = [
    (pl.concat([FRAME, FRAME[:1]]), {}, DataError, r"rows repeat: query_id = 0, model = bm25 \(2 rows\)"),
    (FRAME[1:], {}, DataError, r"not every system has every unit, for example query_id = 0 \(2 of 3 systems\)"),
    (FRAME.filter(pl.col("model") == "bm25"), {}, DataError, "'model' has one value only: 'bm25'"),
    (FRAME.with_columns(pl.lit(None, pl.String).alias("model")), {}, DataError, "'model' is NULL"),
    (FRAME.with_columns(pl.lit(None, pl.Int64).alias("query_id")), {}, DataError, "'query_id' is NULL"),
    (FRAME, {"system": "modle"}, DataError, "has no column 'modle'(?s:.*)Did you mean 'model'"),
    (FRAME, {"metrics": ["map"]}, DataError, "has no column 'map'(?s:.*)Did you mean 'ap'"),
    (FRAME, {"metrics": ["model"]}, DataError, "'model' in .* is (large_)?string, not a number"),
    (FRAME, {"metrics": ["unit"]}, DataError, "'unit', which is no metric"),
    (FRAME, {"metrics": ["pooled_f1"]}, DataError, "lacks the counts that pooled_f1 is made of"),
    (FRAME, {"tests": ["bayes"]}, DataError, '"bayes" needs the counts tp, fp and fn'),
    (FRAME.drop("ap"), {}, DataError, "neither counts nor a column of floating numbers"),
    (FRAME, {"by": ["language"]}, DataError, "no input has a column 'language'"),
    (FRAME, {"tests": ["dirichlet"]}, ConfigError, "give the items as units"),
    (FRAME, {"tests": []}, ConfigError, "tests is empty"),
    (FRAME, {"tests": ["sign", "sign"]}, ConfigError, "names one twice"),
    (FRAME, {"tests": ["t"]}, ConfigError, 'tests.0: "t" is not allowed: write "paired_t"'),
    (FRAME, {"correction": "bonferroni"}, ConfigError, 'correction: "bonferroni" is not allowed: write "holm"'),
    (FRAME, {"resamples": 10}, ConfigError, "resamples: 10 must be at least 99"),
    (FRAME, {"prior": 0}, ConfigError, "prior: 0 must be greater than 0"),
    (FRAME, {"by": ["unit"]}, ConfigError, "by names 'unit'"),
    (FRAME, {"by": ["model"]}, ConfigError, "by names 'model'"),
    (FRAME, {"results": "elsewhere"}, ConfigError, "results goes with of"),
    *(
        (FRAME, {key: value}, ConfigError, f"`{key}` means nothing to this stage")
        for key, value in {
            "thresholds": [1],
            "boundary": ">",
            "invalid_scores": "drop",
            "duplicates": "keep",
            "replicates": 10,
            "uncertainty": "none",
        }.items()
    ),
]


@pytest.mark.parametrize(("frame", "keys", "kind", "words"), REFUSED, ids=[words[:40] for *_, words in REFUSED])
def test_wrong_units_and_keys_are_refused(
    tmp_path: Path, frame: pl.DataFrame, keys: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        run_compare(tmp_path, frame, **KEYS | keys)
