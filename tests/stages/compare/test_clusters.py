"""Units that lie in clusters, such as queries of one family: tests and intervals of what is independent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from comparing import units_compared
from running import COMPARE, RANKING, SWEEP, read_table, run_stages, stage_config
from scipy import stats

from pipeline.base.errors import ConfigError, DataError
from pipeline.metrics.uncertainty.clusters import over_time

if TYPE_CHECKING:
    from pathlib import Path

    from deriving import Derived

FAMILIES = 20
COPIES = 5


def of_families(values: pl.DataFrame, **keys: Any) -> Derived:  # noqa: ANN401
    columns = {"system": values["system"], "unit": values["unit"], "cluster:family": values["family"]}
    return units_compared(columns | {"metric:m": values["m"]}, metrics=["m"], cluster="family", **keys)


def copies(seed: int, sizes: np.ndarray[Any, np.dtype[np.int64]] | None = None) -> pl.DataFrame:
    """Two systems of equal quality on families of queries, whose members are nearly copies of each other."""
    rng = np.random.default_rng(seed)
    family = np.repeat(np.arange(FAMILIES), COPIES if sizes is None else sizes)
    base = rng.normal(size=FAMILIES)[family]
    frames = []
    for system in ("a", "b"):
        m = 0.5 + 0.1 * (base + rng.normal(size=FAMILIES)[family] + 0.3 * rng.normal(size=len(family)))
        unit = np.arange(len(family))
        frames.append(pl.DataFrame({"system": [system] * len(family), "unit": unit, "family": family, "m": m}))
    return pl.concat(frames)


def test_clusters_of_one_size_are_compared_by_their_means() -> None:
    values = copies(1)
    means = values.group_by("system", "family").agg(pl.col("m").mean(), pl.len()).sort("family")
    first, second = (means.filter(pl.col("system") == name)["m"].to_numpy() for name in ("a", "b"))
    rows = {
        row["test"]: row
        for row in of_families(values, tests=["paired_t", "wilcoxon", "sign", "randomization"])["tests"].to_dicts()
    }
    expected = stats.ttest_rel(first, second)
    interval = expected.confidence_interval()
    row = rows["paired_t"]
    assert (row["n_units"], row["n_clusters"]) == (FAMILIES * COPIES, FAMILIES)
    assert row["p_value"] == pytest.approx(expected.pvalue)
    assert (row["difference_lower"], row["difference_upper"]) == pytest.approx((interval.low, interval.high))
    assert rows["wilcoxon"]["p_value"] == pytest.approx(stats.wilcoxon(first, second).pvalue)
    wins = int((first > second).sum())
    assert rows["sign"]["p_value"] == pytest.approx(stats.binomtest(wins, FAMILIES).pvalue)
    assert rows["randomization"]["p_value"] == pytest.approx(expected.pvalue, abs=0.03)
    assert rows["randomization"]["hypothesis"] == "systems exchangeable within clusters"


def test_clusters_of_unequal_sizes_leave_out_each_in_turn() -> None:
    sizes = np.random.default_rng(2).integers(1, 4, FAMILIES)
    values = copies(3, sizes)
    pairs = values.pivot("system", index=["unit", "family"], values="m")
    gap = (pairs["a"] - pairs["b"]).to_numpy()
    family = pairs["family"].to_numpy()
    without = np.array([gap[family != each].mean() for each in range(FAMILIES)])
    error = np.sqrt((FAMILIES - 1) / FAMILIES * ((without - without.mean()) ** 2).sum())
    degrees = sizes.sum() ** 2 / (sizes**2).sum() - 1
    half = stats.t.ppf(0.975, degrees) * error
    row = of_families(values).row("tests")
    assert row["difference"] == pytest.approx(gap.mean())
    assert (row["difference_upper"] - row["difference_lower"]) / 2 == pytest.approx(half)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(gap.mean()) / error, degrees))


def test_counts_are_added_up_within_clusters() -> None:
    rng = np.random.default_rng(4)
    names = ("tp", "fp", "fn")
    units = [(name, unit, unit // 3, *rng.integers(1, 9, 3).tolist()) for name in ("a", "b") for unit in range(60)]
    schema = ["system", "unit", "cluster:family", *(f"count:{name}" for name in names)]
    frame = pl.DataFrame(units, schema=schema, orient="row")
    summed = frame.group_by("system", pl.col("cluster:family").alias("unit")).agg(pl.col("^count:.*$").sum())
    keys: dict[str, Any] = {"tests": ["jackknife_t", "randomization", "bayes"], "resamples": 999}
    for paired in (True, False):
        keys |= {"paired": paired, "tests": ["jackknife_t", "bayes"]}
        of_units = units_compared(frame.to_dict(), cluster="family", metrics=["pooled_f1"], **keys)
        of_sums = units_compared(summed.sort("system", "unit").to_dict(), metrics=["pooled_f1"], **keys)
        for table, columns in (
            ("tests", ("difference_lower", "ratio_upper", "p_value", "minimum_detectable_difference")),
            ("posteriors", ("mean_a_lower", "design_effect_b", "probability_a_better")),
        ):
            for name in columns:
                assert of_units.row(table)[name] == pytest.approx(of_sums.row(table)[name])
        assert of_units.row("tests")["n_units"] == (60 if paired else 120)
        assert of_units.row("tests")["n_clusters"] == (20 if paired else 40)


@pytest.mark.wide
def test_equal_systems_on_copies_differ_as_rarely_as_is_said() -> None:
    tests = ["paired_t", "wilcoxon", "randomization"]
    rejected = dict.fromkeys(tests, 0)
    covered, number = 0, 200
    for seed in range(number):
        rows = of_families(copies(seed), tests=tests, resamples=199)["tests"].to_dicts()
        for row in rows:
            rejected[row["test"]] += row["p_value"] <= 0.05
        covered += rows[0]["difference_lower"] <= 0 <= rows[0]["difference_upper"]
    assert max(rejected.values()) <= 0.08 * number  # by unit it is 0.4 of them
    assert covered >= 0.92 * number


def ranked_frame() -> pl.DataFrame:
    rng = np.random.default_rng(6)
    rows = [
        (system, f"q{query}", f"d{doc}", float(rng.random()), int(doc < 3), f"f{query // 3}")
        for system in ("x", "y")
        for query in range(48)
        for doc in range(8)
    ]
    return pl.DataFrame(rows, schema=["system", "query_id", "doc_id", "score", "relevance", "family"], orient="row")


def test_the_clusters_of_a_stage_are_those_of_its_comparison(tmp_path: Path) -> None:
    config = stage_config(tmp_path, "ranking", {"ranking": ranked_frame()}, by=[["system"]], cluster="family")
    compare: dict[str, Any] = {"kind": "compare", "of": "ranking", "system": "system", "tests": ["paired_t"]}
    config["stages"] += [
        compare,
        compare | {"name": "named", "cluster": "family"},
        compare | {"name": "queries", "cluster": "query_id"},
    ]
    run = run_stages(config)
    queries = read_table(run, "ranking_queries", RANKING)
    assert queries["cluster"].n_unique() == 16
    rows = {
        name: read_table(run, "compare_tests", name).filter(pl.col("metric") == "average_precision").row(0, named=True)
        for name in (COMPARE, "named", "queries")
    }
    assert rows[COMPARE]["n_clusters"] == rows["named"]["n_clusters"] == 16
    assert rows[COMPARE]["p_value"] == rows["named"]["p_value"]
    assert "n_clusters" not in rows["queries"]
    config["stages"][1] = compare | {"cluster": "system_id"}
    with pytest.raises(ConfigError, match="stage 'ranking' has clusters of 'family'"):
        run_stages(config)


def test_a_unit_lies_in_one_cluster(tmp_path: Path) -> None:
    units = copies(7)
    moved = units.with_columns(
        pl.when((pl.col("unit") == 3) & (pl.col("system") == "b")).then(99).otherwise("family").alias("family")
    )
    with pytest.raises(DataError, match="unit = 3 lies in 2 values of cluster 'family'"):
        run_stages(stage_config(tmp_path / "moved", COMPARE, {"units": moved}, cluster="family"))
    unknown = units.with_columns(pl.when(pl.col("unit") != 3).then("family").alias("family"))
    with pytest.raises(DataError, match="family"):
        run_stages(stage_config(tmp_path / "unknown", COMPARE, {"units": unknown}, cluster="family"))
    run = run_stages(stage_config(tmp_path / "good", COMPARE, {"units": units}, cluster="family", tests=["paired_t"]))
    row = read_table(run, "compare_tests", COMPARE).row(0, named=True)
    assert (row["metric"], row["n_clusters"], row["interval_quality"]) == ("m", FAMILIES, "good")


# Days in a row -------------------------------------------------------------------------------------------------------


def of_days(seed: int, days: int, rho: float, per_day: int = 1) -> pl.DataFrame:
    """Two systems of equal quality on days whose differences follow an autoregression."""
    rng = np.random.default_rng(seed)
    level = rng.normal(size=days)
    for now in range(1, days):
        level[now] = rho * level[now - 1] + np.sqrt(1 - rho**2) * level[now]
    day = np.repeat(np.arange(days), per_day)
    gap = 0.1 * level[day] + 0.05 * rng.normal(size=len(day))
    tp = rng.binomial(20, 0.6, size=len(day))
    frames = []
    for system, sign in (("a", 1), ("b", -1)):
        right = rng.binomial(20, 1 / (1 + np.exp(-0.5 - 4 * sign * gap)))
        columns = {"unit": np.arange(len(day)), "day": day, "m": 0.5 + sign * gap / 2, "tp": right}
        frames.append(pl.DataFrame({"system": [system] * len(day), **columns, "fp": 20 - right, "fn": tp}))
    dates = pl.date(2026, 1, 1) + pl.duration(days=pl.col("day"))
    text = dates.cast(pl.String)
    named = (dates.alias("date"), text.alias("iso"), text.str.replace_all("-", "").alias("text"))
    return pl.concat(frames).with_columns(named)


def compared_days(folder: Path, frame: pl.DataFrame, **keys: Any) -> dict[tuple[str, str], dict[str, Any]]:  # noqa: ANN401
    """Rows of the tests by metric and test, rows of the units being in no order."""
    shuffled = frame.sample(fraction=1.0, shuffle=True, seed=1)
    run = run_stages(stage_config(folder, COMPARE, {"units": shuffled}, metrics=["m", "pooled_f1"], **keys))
    rows = read_table(run, "compare_tests", COMPARE).to_dicts()
    return {(row["metric"], row["test"]): row for row in rows}


IN_TIME = {
    "clusters of dates": ({"cluster": "date"}, 3),
    "an order of clusters": ({"cluster": "text", "cluster_order": "day"}, 3),
    "units that are dates": ({"units": {"columns": {"unit": "iso"}}}, 1),
    "an order of units": ({"cluster": "unit", "cluster_order": "day"}, 1),
}


@pytest.mark.parametrize(("keys", "per_day"), IN_TIME.values(), ids=IN_TIME)
def test_days_in_a_row_have_the_covariances_of_neighbours(tmp_path: Path, keys: dict[str, Any], per_day: int) -> None:
    units = of_days(3, 120, 0.8, per_day)
    keys |= {"tests": ["paired_t", "bootstrap_t", "randomization", "jackknife_t"]}
    rows = compared_days(tmp_path / "in_time", units, **keys)
    means = units.group_by("system", "day").agg(pl.col("m").mean()).pivot("system", index="day", values="m").sort("day")
    gaps = (means["a"] - means["b"]).to_numpy()
    nearby = over_time(gaps)
    error = np.sqrt(gaps.var(ddof=1) / len(gaps) * nearby.factor)
    assert nearby.factor > 2
    row = rows["m", "paired_t"]
    half = stats.t.ppf(0.975, nearby.degrees(len(gaps) - 1.0)) * error
    assert (row["difference_upper"] - row["difference_lower"]) / 2 == pytest.approx(half)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(gaps.mean()) / error, nearby.degrees(len(gaps) - 1.0)))
    without: dict[str, Any] = {"tests": keys["tests"], "cluster": "day"} if per_day > 1 else {"tests": keys["tests"]}
    independent = compared_days(tmp_path / "plain", units, **without)
    for name in (("m", "paired_t"), ("m", "bootstrap_t"), ("pooled_f1", "jackknife_t")):
        widths = [each[name]["difference_upper"] - each[name]["difference_lower"] for each in (rows, independent)]
        assert widths[0] > 1.4 * widths[1]
        assert rows[name]["interval_quality"] == "correlated_days"
        assert independent[name]["interval_quality"] == "good"
    for name in (("m", "randomization"), ("pooled_f1", "randomization")):
        assert rows[name]["interval_quality"] == "correlated_days"
        assert rows[name]["p_value"] > independent[name]["p_value"]


def test_groups_of_days_in_a_row_have_the_covariances_of_neighbours(tmp_path: Path) -> None:
    units = of_days(4, 120, 0.8)
    keys: dict[str, Any] = {"paired": False, "tests": ["welch_t", "bootstrap_t", "permutation", "jackknife_t", "bayes"]}
    rows = compared_days(tmp_path / "in_time", units, units={"columns": {"unit": "iso"}}, **keys)
    plain = compared_days(tmp_path / "plain", units, **keys)
    for name, row in rows.items():
        assert row["interval_quality"] == "correlated_days", name
        assert row["p_value"] > plain[name]["p_value"]
        assert plain[name]["interval_quality"] == "good"


def test_ranks_of_days_in_a_row_are_warned_of(tmp_path: Path) -> None:
    units = of_days(5, 120, 0.8)
    config = stage_config(tmp_path, COMPARE, {"units": units}, cluster="date", metrics=["m"], tests=["sign"])
    assert "neighbouring days may be alike in 1 tests by wilcoxon or sign" in " ".join(run_stages(config).warnings)


@pytest.mark.parametrize(("cluster", "order"), [("date", None), ("iso", "date"), ("name", "date"), ("name", None)])
def test_days_of_a_stage_follow_each_other_in_its_comparison(tmp_path: Path, cluster: str, order: str | None) -> None:
    """Days as dates or as text are known by their values; by other names a mark says that their order is not known."""
    rng = np.random.default_rng(8)
    level = np.repeat(of_days(9, 100, 0.9)["m"].to_numpy()[:100] - 0.5, 20) * 6
    days = np.repeat(np.arange(100), 20)
    label = rng.random(2000) < 0.5
    frames = [
        pl.DataFrame({"model": [name] * 2000, "day": days, "label": label, "score": rng.normal(label + sign * level)})
        for name, sign in (("x", 1.0), ("y", -1.0))
    ]
    date = pl.date(2026, 1, 1) + pl.duration(days=pl.col("day"))
    named = (
        date.alias("date"),
        date.cast(pl.String).alias("iso"),
        pl.format("d{}", pl.col("day") * 37 % 100).alias("name"),
    )
    keys: dict[str, Any] = {"cluster": cluster, "by": [["model"]], "thresholds": [0.5]}
    keys |= {} if order is None else {"cluster_order": order}
    config = stage_config(tmp_path, SWEEP, {"predictions": pl.concat(frames).with_columns(named)}, **keys)
    config["stages"].append({"kind": COMPARE, "of": SWEEP, "system": "model", "metrics": ["pooled_recall"]})
    rows = read_table(run_stages(config), "compare_tests", COMPARE)
    expected = {"good"} if (cluster, order) == ("name", None) else {"correlated_days"}
    assert set(rows["interval_quality"]) == expected


@pytest.mark.parametrize("kind", ["entity_recognition", "change_points"])
def test_documents_and_series_lie_in_the_clusters_of_their_stage(tmp_path: Path, kind: str) -> None:
    """Each is three near copies: by unit the interval is too narrow, and equal systems differ too often."""
    rng = np.random.default_rng(12)
    unit, of_unit = ("doc_id", "documents") if kind == "entity_recognition" else ("series_id", "series")
    listed = pl.DataFrame({unit: np.arange(60), "author": [f"a{each // 3}" for each in range(60)]})
    places = pl.DataFrame({unit: np.repeat(np.arange(60), 10), "start": np.tile(np.arange(10) * 100, 60)})
    found = {name: np.repeat(rng.random((20, 10)) < 0.7, 3, axis=0).ravel() for name in ("x", "y")}
    predicted = pl.concat(
        [places.filter(pl.Series(hit)).with_columns(system=pl.lit(name)) for name, hit in found.items()]
    )
    if kind == "entity_recognition":
        end = (pl.col("start") + 5).alias("end")
        frames = {"gold": places.with_columns(end), "predicted": predicted.with_columns(end), of_unit: listed}
        keys: dict[str, Any] = {"match": "span"}
    else:
        columns = {"start": "position"}
        frames = {"annotations": places.rename(columns), "predictions": predicted.rename(columns), of_unit: listed}
        keys = {"margin": 3, "series_counts": True}
    config = stage_config(tmp_path, kind, frames, by=[["system"]], cluster="author", **keys)
    compare: dict[str, Any] = {"kind": COMPARE, "of": kind, "system": "system", "metrics": ["pooled_recall"]}
    config["stages"] += [compare, compare | {"name": "alone", "cluster": unit}]
    run = run_stages(config)
    clustered, alone = (read_table(run, "compare_tests", name).row(0, named=True) for name in (COMPARE, "alone"))
    assert clustered["n_clusters"] == 20
    assert clustered["difference"] == pytest.approx(alone["difference"])
    width, of_units = (each["difference_upper"] - each["difference_lower"] for each in (clustered, alone))
    assert width > 1.4 * of_units


@pytest.mark.parametrize(("cluster", "listed"), [("story", True), (["story", "day"], False)])
def test_events_lie_in_the_clusters_of_their_stage(tmp_path: Path, cluster: str | list[str], listed: bool) -> None:  # noqa: FBT001
    """Each event is one of three near copies: by event the interval is too narrow."""
    rng = np.random.default_rng(5)
    stories, lags = 40, np.arange(-10, 10)
    shape = (stories, len(lags))
    right, of_lag = rng.random(shape) < 0.5, np.tile(lags, (stories, 1))
    score = np.where((of_lag >= 0) & right, rng.normal(2.0, 1.0, shape), rng.normal(0.0, 1.0, shape))
    pairs = pl.DataFrame(
        {
            "event_id": np.repeat(np.arange(stories * 3), len(lags)),
            "story": [f"s{each}" for each in np.repeat(np.arange(stories), 3 * len(lags))],
            "article_time": np.datetime64("2026-03-01T12:00:00", "us")
            + np.repeat(score, 3, axis=0).ravel().argsort() % 40 * np.timedelta64(86_400_000_000, "us"),
            "lag_hours": np.repeat(of_lag * 24.0 + 12, 3, axis=0).ravel(),
            "score": np.repeat(score, 3, axis=0).ravel(),
        }
    )
    frames = {"pairs": pairs}
    if listed:
        frames = {"pairs": pairs.drop("story"), "events": pairs.select("event_id", "story").unique()}
    window = {"before": "240h", "after": "240h"}
    keys: dict[str, Any] = {"thresholds": {"start": 0.0, "stop": 1.5, "count": 4}, "window": window}
    config = stage_config(tmp_path, "before_after", frames, cluster=cluster, **keys)
    shared = config["stages"][0]
    low, high = (
        {"name": name, "operating_points": [{"min_recall": least}]} for name, least in (("low", 0.99), ("high", 0.5))
    )
    compare: dict[str, Any] = {"kind": COMPARE, "of": ["low", "high"], "metrics": ["pooled_precision"]}
    config["stages"] = [shared | low, shared | high, compare, compare | {"name": "alone", "cluster": "event_id"}]
    run = run_stages(config)
    assert read_table(run, "before_after_events", "low")["cluster"].n_unique() == stories
    clustered, alone = (read_table(run, "compare_tests", name).row(0, named=True) for name in (COMPARE, "alone"))
    assert clustered["n_clusters"] == stories
    assert clustered["difference"] == pytest.approx(alone["difference"])
    width, of_events = (each["difference_upper"] - each["difference_lower"] for each in (clustered, alone))
    assert width > 1.4 * of_events
