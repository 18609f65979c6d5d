from __future__ import annotations

import datetime as dt
import hashlib
import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import read_table, run_before_after, run_stages

from pipeline.stages.before_after.assumption import UNTESTED, verdict, warnings

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from pipeline.runs.stage_results import Run

RATIOS = ("fpr", "precision", "recall", "f1", "precision_uncorrected", "recall_uncorrected", "f1_uncorrected")
COUNTS = ["n_before", "n_after", "m_before", "m_after"]
WINDOW = {"before": "48h", "after": "12h", "gap": "2h", "near": "10h"}
BEFORE, AFTER, GAP, NEAR = 48, 12, 2, 10
THRESHOLDS = [0.2, 0.5, 0.7, 0.9]


class Archive:
    """Events and articles in whole hours with scores in hundredths; true matches after the event score high."""

    def __init__(self, seed: int, n_events: int = 30) -> None:
        rng = np.random.default_rng(seed)
        start = dt.datetime(2024, 5, 1, tzinfo=dt.UTC)
        event_hours = rng.integers(50, 250, n_events)
        article_hours = np.concatenate([[0], rng.integers(0, 280, 400), [280]])
        self.lag = article_hours[None, :] - event_hours[:, None]
        event, article = np.nonzero((self.lag >= -BEFORE - 5) & (self.lag <= AFTER + 5))
        lag = self.lag[event, article]
        score = rng.integers(0, 80, len(event)) / 100
        score = np.where((lag >= 0) & (rng.random(len(event)) < 0.3), rng.integers(60, 101, len(event)) / 100, score)
        self.pairs = pl.DataFrame(
            {"event_id": event, "article_id": article, "score": score, "lag_hours": lag.astype(float)}
        )
        moments = [start + dt.timedelta(hours=int(hour)) for hour in event_hours]
        times = [start + dt.timedelta(hours=int(hour)) for hour in article_hours]
        self.events = pl.DataFrame(
            {"event_id": range(n_events), "event_time": moments, "source": ["x", "y", None] * (n_events // 3)},
            schema_overrides={"event_time": pl.Datetime("us", "UTC")},
        )
        self.articles = pl.DataFrame(
            {"article_id": range(len(times)), "article_time": times},
            schema_overrides={"article_time": pl.Datetime("us", "UTC")},
        )

    def frames(self, compared: str) -> dict[str, pl.DataFrame]:
        """The archive as one row per compared pair, as timelines, or as given numbers, with times or without."""
        if compared == "pairs":
            return {"pairs": self.pairs, "events": self.events.select("event_id", "source")}
        stored = self.pairs.filter(pl.col("score") > 0.1)
        if compared == "timelines":
            return {"pairs": stored, "events": self.events, "articles": self.articles}
        before = ((self.lag >= -BEFORE) & (self.lag < -GAP)).sum(axis=1)
        after = ((self.lag >= 0) & (self.lag <= AFTER)).sum(axis=1)
        events = self.events.with_columns(n_before=pl.Series(before), n_after=pl.Series(after))
        if compared == "given":
            return {"pairs": stored, "events": events.drop("event_time")}
        return {"pairs": stored, "events": events, "articles": self.articles}

    def placebo(self, threshold: float, near: int, sources: tuple[str | None, ...]) -> dict[str, int]:
        """Pairs and matches in the far and near part of the time before the event, by a loop over all pairs."""
        found = dict.fromkeys(("n_far", "n_near", "m_far", "m_near"), 0)
        labels = self.events["source"].to_list()
        for event, lag, score in self.pairs.select("event_id", "lag_hours", "score").rows():
            if -BEFORE <= lag < -GAP and labels[event] in sources:
                part = "near" if lag >= -GAP - near else "far"
                found[f"n_{part}"] += 1
                found[f"m_{part}"] += score >= threshold
        return found


def run_archive(folder: Path, archive: Archive, compared: str = "timelines", **keys: Any) -> Run:  # noqa: ANN401
    return run_before_after(folder, archive.frames(compared), **({"thresholds": THRESHOLDS, "window": WINDOW} | keys))


@pytest.mark.wide
@pytest.mark.parametrize("confidence", [0.5, 0.99])
def test_every_interval_holds_its_estimate_and_a_missing_one_has_a_reason(tmp_path: Path, confidence: float) -> None:
    run = run_archive(tmp_path, Archive(1), by=["source"], confidence=confidence, thresholds=[*THRESHOLDS, 0.99, 1.5])
    estimates = read_table(run, "before_after_estimates")
    given = 0
    for row in estimates.to_dicts():
        limits = {name: (row[f"{name}_lower"], row[f"{name}_upper"]) for name in (*RATIOS, "precision_realised")}
        realised = row["precision"]
        row["precision_realised"] = row["precision_uncorrected"] if realised is None else realised
        for name, (lower, upper) in limits.items():
            assert (lower is None) == (upper is None), name
            if lower is not None and row[name] is not None:
                assert lower - 1e-12 <= row[name] <= upper + 1e-12, name
                given += 1
        assert (row["undefined_interval"] is None) == all(limits[name][0] is not None for name in RATIOS)
        if row["is_reference"]:
            assert limits["recall_uncorrected"] == (1, 1)
            assert limits["recall"][1] in {None, 1}
    assert given > 60
    fixed = run_archive(tmp_path / "fixed", Archive(1), recall_reference={"rule": "fixed", "threshold": 0.5})
    row = read_table(fixed, "before_after_estimates").row(by_predicate=pl.col("is_reference"), named=True)
    assert (row["recall_lower"], row["recall"], row["recall_upper"]) == (1, 1, 1), "a given reference is not in doubt"
    points = read_table(run, "before_after_operating_points")
    joined = points.drop_nulls("threshold").join(
        estimates, on=["grouping", "source", "threshold"], how="left", nulls_equal=True
    )
    for name in ("fpr_lower", "precision_upper", "f1_lower", "precision_realised_upper"):
        assert joined[name].equals(joined[f"{name}_right"], null_equal=True)


def test_a_higher_confidence_gives_wider_intervals_and_the_same_estimates(tmp_path: Path) -> None:
    archive = Archive(1)
    narrow, wide = (
        read_table(run_archive(tmp_path / str(level), archive, confidence=level), "before_after_estimates")
        for level in (0.6, 0.95)
    )
    for name in RATIOS:
        assert narrow[name].equals(wide[name], null_equal=True)
    assert (wide["fpr_lower"] <= narrow["fpr_lower"]).all()
    assert (wide["fpr_upper"] > narrow["fpr_upper"]).all()


@pytest.mark.wide
def test_replicates_change_the_counts_table_but_no_sum_and_no_estimate(tmp_path: Path) -> None:
    archive = Archive(2)
    options: dict[str, dict[str, Any]] = {"own": {}, "eight": {"replicates": 8}, "none": {"uncertainty": "none"}}
    runs = {name: run_archive(tmp_path / name, archive, by=["source"], **keys) for name, keys in options.items()}
    counts = {name: read_table(run, "counts") for name, run in runs.items()}
    assert {name: each["replicate"].n_unique() for name, each in counts.items()} == {"own": 30, "eight": 8, "none": 1}
    assert counts["none"]["replicate"].unique().to_list() == [0]
    keys = ["grouping", "source", "threshold"]
    values = [*COUNTS, "n_near", "m_near"]
    sums = [each.group_by(keys).agg(pl.col(values).sum()).sort(keys, nulls_last=True) for each in counts.values()]
    assert sums[0].equals(sums[1])
    assert sums[0].equals(sums[2])
    columns = [*keys, *COUNTS, "fp", "tp", "recall_raw", "tp_uncorrected", "is_reference", "undefined", *RATIOS]
    tables = {name: read_table(run, "before_after_estimates") for name, run in runs.items()}
    for each in tables.values():
        assert each.select(columns).equals(tables["own"].select(columns))
    assert not tables["own"]["fpr_lower"].equals(tables["eight"]["fpr_lower"])
    limits = [name for name in tables["none"].columns if name.endswith(("_lower", "_upper"))]
    assert len(limits) == 16
    assert tables["none"].select(pl.col(limits).is_null().all()).row(0) == (True,) * 16
    assert tables["none"]["undefined_interval"].unique().to_list() == ["none"]
    assert read_table(runs["none"], "before_after_placebo").is_empty()


def test_with_more_clusters_than_replicates_a_hash_of_the_cluster_decides(tmp_path: Path) -> None:
    archive = Archive(2)
    frames = archive.frames("given")
    run = run_before_after(tmp_path, frames, thresholds=[0.5], window=WINDOW, replicates=7)
    expected: dict[int, int] = {}
    for event, number in frames["events"].select("event_id", "n_before").rows():
        digest = hashlib.md5(str(event).encode(), usedforsecurity=False).hexdigest()
        replicate = int(digest[:4], 16) % 7
        expected[replicate] = expected.get(replicate, 0) + number
    found = read_table(run, "counts").group_by("replicate").agg(pl.col("n_before").sum())
    assert dict(found.rows()) == expected
    own = run_before_after(tmp_path / "own", frames, thresholds=[0.5], window=WINDOW, replicates=30)
    assert read_table(own, "counts")["replicate"].n_unique() == 30, "as many clusters as replicates have one each"


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("column", ["event_id", "source"])
def test_one_cluster_gives_no_interval_but_a_reason(tmp_path: Path, column: str) -> None:
    archive = Archive(3)
    frames = archive.frames("pairs")
    if column == "event_id":
        frames = {name: frame.filter(pl.col("event_id") == 4) for name, frame in frames.items()}
    frames["events"] = frames["events"].with_columns(source=pl.lit("x"))
    run = run_before_after(tmp_path, frames, thresholds=[0.5], window=WINDOW, cluster=column)
    row = read_table(run, "before_after_estimates").row(0, named=True)
    assert row["fpr"] is not None
    assert all(row[f"{name}_{side}"] is None for name in RATIOS for side in ("lower", "upper"))
    assert row["undefined_interval"] == "one_replicate"
    placebo = read_table(run, "before_after_placebo").select("p_value", "undefined")
    assert placebo.rows() == [(None, "one_replicate")] * 2
    assert [("only one event, or cluster" in warning) for warning in about_rates(run)] == [True]


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("lags", "reason"),
    [
        ([1.0, 2.0], "no_before"),
        ([-40.0, 1.0], "unknown_pairs"),
        ([-1.0, 1.0], "no_far"),
        ([-40.0, -1.0], "few_matches"),
    ],
)
def test_why_the_placebo_test_could_not_be_made(tmp_path: Path, lags: list[float], reason: str) -> None:
    """Two events with every compared pair as a row, all of them matches."""
    pairs = pl.DataFrame({"event_id": [1, 1, 2, 2], "lag_hours": lags * 2, "score": [0.9] * 4})
    keys: dict[str, Any] = {"thresholds": [0.5], "window": {"before": "48h", "after": "12h"}}
    run = run_before_after(tmp_path, {"pairs": pairs}, **keys)
    joint = read_table(run, "before_after_placebo").filter(pl.col("threshold").is_null())
    assert joint.select("p_value", "undefined").rows() == [(None, reason)]
    assert [warning.endswith(UNTESTED[reason]) for warning in about_rates(run)] == [True]
    assert "equal-FPR" not in run.stages[0].summary.sentence


def test_a_group_without_pairs_near_the_event_says_so_beside_others_that_have_some(tmp_path: Path) -> None:
    lags = [-40.0, -1.0, 1.0, -40.0, -39.0, 1.0]
    pairs = pl.DataFrame({"event_id": [1, 1, 1, 2, 2, 2], "lag_hours": lags, "score": [0.9] * 6})
    pairs = pairs.with_columns(source=pl.when(pl.col("event_id") == 1).then(pl.lit("x")).otherwise(pl.lit("y")))
    window = {"before": "48h", "after": "12h"}
    run = run_before_after(tmp_path, {"pairs": pairs}, thresholds=[0.5], window=window, by=[["source"]])
    joint = read_table(run, "before_after_placebo").filter(pl.col("threshold").is_null())
    assert joint.select("source", "undefined").rows() == [("x", "one_replicate"), ("y", "no_near")]


def spread(folder: Path, frames: dict[str, pl.DataFrame], cut: Callable[[pl.DataFrame], list[pl.DataFrame]]) -> Run:
    """Run on inputs of two files each."""
    stage: dict[str, Any] = {"kind": "before_after", "thresholds": "distinct", "window": WINDOW, "by": ["source"]}
    stage |= {"duplicates": "max", "replicates": 5, "lag_thresholds": [0.5], "strata": ["weekday"]}
    for name, frame in frames.items():
        (folder / name).mkdir(parents=True)
        for number, part in enumerate(cut(frame)):
            part.write_parquet(folder / name / f"{number}.parquet")
        stage[name] = {"path": str(folder / name)}
    return run_stages({"output": str(folder / "results"), "stages": [stage]})


@pytest.mark.wide
def test_the_order_of_rows_and_files_changes_no_byte_of_the_results(tmp_path: Path) -> None:
    archive = Archive(4)
    frames = archive.frames("timelines")
    frames["pairs"] = pl.concat([frames["pairs"], frames["pairs"].with_columns(lag_hours=pl.col("lag_hours") - 1)])
    frames["gold"] = archive.pairs.filter(pl.col("score") > 0.9).select("event_id", "article_id")

    def in_order(frame: pl.DataFrame) -> list[pl.DataFrame]:
        return [frame[:10], frame[10:]]

    def shuffled(frame: pl.DataFrame) -> list[pl.DataFrame]:
        mixed = frame.sample(fraction=1, shuffle=True, seed=8)
        return [mixed[frame.height // 2 :], mixed[: frame.height // 2]]

    runs = [spread(tmp_path / str(number), dict(frames), cut) for number, cut in enumerate((in_order, shuffled))]
    names = [sorted(str(path.relative_to(run.path)) for path in run.path.rglob("*.parquet")) for run in runs]
    assert names[0] == names[1]
    assert len(names[0]) == 15
    for name in names[0]:
        assert (runs[0].path / name).read_bytes() == (runs[1].path / name).read_bytes(), name
    assert runs[0].warnings == runs[1].warnings


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(("compared", "near"), [("pairs", 10), ("timelines", 10), ("events", 10), ("timelines", None)])
def test_placebo_counts_equal_a_loop_over_all_pairs(tmp_path: Path, compared: str, near: int | None) -> None:
    archive = Archive(5)
    window = {key: value for key, value in WINDOW.items() if key != "near" or near is not None}
    run = run_archive(tmp_path, archive, compared, window=window, by=["source"])
    table = read_table(run, "before_after_placebo")
    joint = table.filter(pl.col("threshold").is_null())
    assert sorted(joint.select("grouping", "source").rows(), key=str) == [
        ("all", None),
        ("source", "x"),
        ("source", "y"),
        ("source", None),
    ]
    assert table.height == joint.height * (1 + len(THRESHOLDS))
    for row in table.to_dicts():
        sources = ("x", "y", None) if row["grouping"] == "all" else (row["source"],)
        threshold = row["threshold"]
        expected = archive.placebo(math.inf if threshold is None else threshold, near or AFTER, sources)
        assert (row["n_far"], row["n_near"]) == (expected["n_far"], expected["n_near"])
        if threshold is None:
            assert (row["m_far"], row["m_near"], row["log_rate_ratio"]) == (None, None, None)
            continue
        assert (row["m_far"], row["m_near"]) == (expected["m_far"], expected["m_near"])
        if row["m_far"] and row["m_near"]:
            ratio = (row["m_near"] / row["n_near"]) / (row["m_far"] / row["n_far"])
            assert row["log_rate_ratio"] == pytest.approx(math.log(ratio), abs=1e-12)
            assert row["log_rate_ratio_lower"] <= row["log_rate_ratio"] <= row["log_rate_ratio_upper"]
            assert 0 < row["p_value"] <= 1
        else:
            assert row["log_rate_ratio"] is None
    assert table.filter(pl.col("threshold") == 0.2)["log_rate_ratio"].null_count() == 0


def test_without_times_the_near_part_of_given_numbers_is_unknown_and_the_table_says_so(tmp_path: Path) -> None:
    run = run_archive(tmp_path, Archive(6), "given")
    assert read_table(run, "before_after_placebo").select("threshold", "undefined").rows() == [(None, "unknown_pairs")]
    estimates = read_table(run, "before_after_estimates")
    assert estimates["precision_realised_lower"].null_count() == estimates.height
    assert estimates["fpr_lower"].null_count() == 0
    counts = read_table(run, "counts")
    assert (counts["n_near"].sum(), counts["m_near"].sum() > 0) == (0, True)
    assert [("give the times of events and articles" in warning) for warning in about_rates(run)] == [True]


def test_without_a_window_there_is_no_near_part(tmp_path: Path) -> None:
    run = run_before_after(tmp_path, Archive(6).frames("pairs"), thresholds=[0.5])
    assert read_table(run, "before_after_placebo").select("threshold", "undefined").rows() == [(None, "no_window")]
    assert [("give `window`" in warning) for warning in about_rates(run)] == [True]
    counts = read_table(run, "counts")
    assert (counts["n_near"].sum(), counts["m_near"].sum()) == (0, 0)


def about_rates(run: Run) -> list[str]:
    """The warnings about equal false positive rates."""
    return [warning for warning in run.warnings if "equal-FPR" in warning]


def two_rates(near_rate: float) -> dict[str, pl.DataFrame]:
    """Every compared pair of 60 events; scores reach 0.5 with rate 0.1 far before the event, `near_rate` near it."""
    rng = np.random.default_rng(12)
    lag = np.concatenate(
        [np.linspace(-48, -12, 80, endpoint=False), np.linspace(-12, -0.1, 40), np.linspace(0, 12, 40)]
    )
    rate = np.concatenate([np.full(80, 0.1), np.full(40, near_rate), np.full(40, 0.4)])
    event, which = (each.ravel() for each in np.meshgrid(np.arange(60), np.arange(160), indexing="ij"))
    score = np.where(rng.random(len(event)) < rate[which], 0.5 + rng.random(len(event)) / 2, rng.random(len(event)) / 2)
    return {"pairs": pl.DataFrame({"event_id": event, "score": score, "lag_hours": lag[which]})}


def test_twice_the_rate_near_the_event_raises_a_doubt_and_equal_rates_raise_none(tmp_path: Path) -> None:
    window = {"before": "48h", "after": "12h"}
    keys: dict[str, Any] = {"thresholds": [0.5, 0.7], "window": window}
    unequal = run_before_after(tmp_path / "unequal", two_rates(0.2), **keys)
    equal = run_before_after(tmp_path / "equal", two_rates(0.1), **keys)
    doubts = about_rates(unequal)
    assert len(doubts) == 1
    assert "is doubtful" in doubts[0]
    assert about_rates(equal) == []
    assert "These numbers may be far off" in unequal.stages[0].summary.sentence
    assert "does not contradict the equal-FPR assumption" in equal.stages[0].summary.sentence
    table = read_table(unequal, "before_after_placebo")
    row = table.filter(pl.col("threshold") == 0.5).row(0, named=True)
    assert row["log_rate_ratio_lower"] < math.log(2) < row["log_rate_ratio_upper"]
    assert row["p_value"] < 0.001
    numbers = [math.exp(row[f"log_rate_ratio{side}"]) for side in ("", "_lower", "_upper")]
    assert "{:.2f} ({:.2f}–{:.2f}) times as frequent".format(*numbers) in doubts[0]
    assert (read_table(equal, "before_after_placebo")["p_value"] > 0.05).all()
    without = run_before_after(tmp_path / "without", two_rates(0.2), uncertainty="none", **keys)
    assert not any("doubtful" in warning for warning in without.warnings)


@pytest.mark.parametrize("p_value", [0.001, 0.5])
@pytest.mark.parametrize(("chosen", "words"), [(None, "no threshold was chosen"), (0.7, "0.7, they are too few")])
def test_the_verdict_without_a_ratio_speaks_of_the_joint_test(chosen: float | None, words: str, p_value: float) -> None:
    placebo = {"grouping": ["all"] * 2, "threshold": [0.7, None], "p_value": [None, p_value], "undefined": [None] * 2}
    unknown = pl.lit(None, dtype=pl.Float64)
    ratios = [unknown.alias(f"log_rate_ratio{side}") for side in ("", "_lower", "_upper")]
    points = {"grouping": ["all"], "criterion": ["max_f1"], "threshold": pl.Series([chosen], dtype=pl.Float64)}
    trend = {"grouping": pl.Series([], dtype=pl.String), "p_value": pl.Series([], dtype=pl.Float64)}
    tables = {
        "before_after_estimates": pl.DataFrame({"grouping": ["all"]}),
        "before_after_placebo": pl.DataFrame(placebo).with_columns(ratios),
        "before_after_operating_points": pl.DataFrame(points),
        "before_after_trend": pl.DataFrame(trend),
    }
    doubtful = p_value < 0.05
    said = "differ by more than chance" if doubtful else "do not differ by more than chance"
    (sentence,) = warnings(tables) if doubtful else [verdict(tables)]
    assert f"near to it and far from it {said}, all thresholds together; " in sentence
    assert words in sentence
    assert ("doubtful" in sentence) == doubtful
    assert verdict(tables).startswith(
        "These numbers may be far off" if doubtful else "The placebo test does not contradict"
    )


def test_a_doubt_without_a_chosen_threshold_is_still_told(tmp_path: Path) -> None:
    frames = two_rates(0.2)
    keys: dict[str, Any] = {"thresholds": [0.5, 0.7], "window": {"before": "48h", "after": "12h"}}
    run = run_before_after(tmp_path, frames, operating_points=[{"min_precision": 1}], **keys)
    assert [("is doubtful" in warning) for warning in about_rates(run)] == [True]
