"""Days in a row that match alike: wider limits, a mark and a warning, unless days are not known."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import before_after_config, read_table, run_stages, stage_config
from stage_examples import EXAMPLES

from pipeline.metrics.uncertainty.clusters import Cycle
from pipeline.stages.before_after.contract import BeforeAfterParameters
from pipeline.stages.before_after.groups import CROSSED
from pipeline.stages.before_after.stage import cube_of

if TYPE_CHECKING:
    from pathlib import Path

DAYS, EVENTS, PER_DAY = 100, 120, 12
START = dt.datetime(2026, 1, 1)  # noqa: DTZ001 - a time without a zone, as many files have
RATIOS = ("fpr", "precision")


def pairs(persistent: float, seed: int = 3) -> pl.DataFrame:
    """Every compared pair; the rate of false matches is an autoregression over days with a spread of 0.7 in the log."""
    rng = np.random.default_rng(seed)
    log_rate = np.zeros(DAYS)
    for day, normal in enumerate(rng.normal(size=DAYS)):
        log_rate[day] = persistent * log_rate[day - 1] + np.sqrt(1 - persistent**2) * normal
    articles = np.sort(rng.uniform(0, DAYS, PER_DAY * DAYS))
    frames = []
    for event, time in enumerate(rng.uniform(8, DAYS - 4, EVENTS)):
        (inside,) = np.nonzero((articles >= time - 7) & (articles < time + 3))
        lag = articles[inside] - time
        matches = rng.random(len(inside)) < 0.1 * np.exp(0.7 * log_rate[articles[inside].astype(int)] - 0.25)
        matches |= (lag >= 0) & (rng.random(len(inside)) < 0.1)
        times = [START + dt.timedelta(days=float(articles[article])) for article in inside]
        columns = {"event_id": event, "article_id": inside, "lag_hours": lag * 24, "score": matches * 1.0}
        frames.append(pl.DataFrame(columns).with_columns(pl.Series("article_time", times)))
    return pl.concat(frames)


def estimated(folder: Path, rows: pl.DataFrame, **keys: Any) -> tuple[dict[str, Any], tuple[str, ...]]:  # noqa: ANN401
    """The row of the threshold 1 of the total, and the warnings of the run."""
    folder.mkdir()
    window = {"before": "168h", "after": "72h"}
    config = before_after_config(
        folder, {"pairs": rows}, thresholds=[0.0, 1.0], window=window, compared="pairs", duplicates="keep", **keys
    )
    run = run_stages(config)
    table = read_table(run, "before_after_estimates").filter(pl.col("threshold") == 1, pl.col("grouping") == "all")
    return table.row(0, named=True), run.warnings


def width(row: dict[str, Any], ratio: str) -> float:
    return float(row[f"{ratio}_upper"] - row[f"{ratio}_lower"])


def test_days_that_go_together_are_marked_and_make_limits_wider(tmp_path: Path) -> None:
    rows = pairs(0.9)
    together, warnings = estimated(tmp_path / "together", rows)
    assert together["interval_quality"] == "correlated_days"
    assert ['strata = "weekday"' in text for text in warnings if "correlated_days" in text] == [True]
    # the same pairs, whose days are put in another order: what they contribute is the same, their neighbours are not
    rng = np.random.default_rng(1)
    moved = {day: int(other) for day, other in zip(range(DAYS), rng.permutation(DAYS), strict=True)}
    day = (pl.col("article_time") - pl.lit(START)).dt.total_days()
    shift = pl.duration(days=day.replace_strict(moved) - day)
    apart, warnings = estimated(tmp_path / "apart", rows.with_columns(pl.col("article_time") + shift))
    assert apart["interval_quality"] == "chosen_on_same_data" or apart["interval_quality"] == "good"
    assert not any("correlated_days" in text for text in warnings)
    for ratio in RATIOS:
        assert together[ratio] == pytest.approx(apart[ratio], rel=1e-12)
        assert width(together, ratio) > 1.3 * width(apart, ratio)


def test_independent_days_are_not_marked(tmp_path: Path) -> None:
    row, warnings = estimated(tmp_path / "run", pairs(0.0))
    assert row["interval_quality"] == "good"
    assert not any("correlated_days" in text for text in warnings)


@pytest.mark.parametrize("cluster", ["event_id", ["event_id", "article_id"]])
def test_without_days_as_parents_nothing_is_known_of_their_order(tmp_path: Path, cluster: object) -> None:
    row, warnings = estimated(tmp_path / "run", pairs(0.9), cluster=cluster)
    assert row["interval_quality"] == "good"
    assert not any("correlated_days" in text for text in warnings)


@pytest.mark.wide
def test_a_time_that_is_not_known_and_the_names_of_events_change_nothing_of_the_order_of_days(tmp_path: Path) -> None:
    rows = pairs(0.9)
    named, _ = estimated(tmp_path / "named", rows.with_columns("e" + pl.col("event_id").cast(pl.String)))
    unknown = pl.when(pl.int_range(pl.len()) == 0).then(None).otherwise(pl.col("article_time"))
    lacking, _ = estimated(tmp_path / "lacking", rows.with_columns(unknown.alias("article_time")))
    whole, _ = estimated(tmp_path / "whole", rows)
    assert {row["interval_quality"] for row in (named, lacking, whole)} == {"correlated_days"}
    assert width(named, "fpr") == pytest.approx(width(whole, "fpr"), rel=0.1)
    assert width(lacking, "fpr") == pytest.approx(width(whole, "fpr"), rel=0.1)


def test_a_paper_that_appears_once_a_week_has_no_days_in_a_row(tmp_path: Path) -> None:
    day = (pl.col("article_time") - pl.lit(START)).dt.total_days()
    row, warnings = estimated(tmp_path / "run", pairs(0.9).filter(day % 7 == 0))
    assert row["interval_quality"] != "correlated_days"
    assert not any("correlated_days" in text for text in warnings)


def test_a_group_of_one_event_has_no_days_to_compare(tmp_path: Path) -> None:
    rows = pairs(0.9)
    kind = pl.when(pl.col("event_id") == 0).then(pl.lit("one")).otherwise(pl.lit("many"))
    config = before_after_config(
        tmp_path,
        {"pairs": rows.with_columns(kind.alias("kind"))},
        thresholds=[0.0, 1.0],
        window={"before": "168h", "after": "72h"},
        compared="pairs",
        duplicates="keep",
        by=[["kind"]],
    )
    table = read_table(run_stages(config), "before_after_estimates").filter(pl.col("threshold") == 1)
    marks = dict(table.select("kind", "interval_quality").iter_rows())
    assert marks == {"one": None, "many": "correlated_days"}
    alone, _ = estimated(tmp_path / "alone", rows.filter(pl.col("event_id") == 0))
    assert (alone["fpr_lower"], alone["undefined_interval"]) == (None, "one_replicate")


@pytest.mark.parametrize(("window", "span"), [({"before": "96h", "after": "24h"}, 4), (None, 2), ({"before": "1h"}, 2)])
def test_an_event_lasts_for_the_days_of_the_window_before_it(window: dict[str, str] | None, span: float) -> None:
    keys = {"kind": "before_after", "name": "b", "pairs": "p.parquet", "thresholds": [1.0]}
    params = BeforeAfterParameters.model_validate(
        keys | ({} if window is None else {"window": {"after": "1h"} | window})
    )
    empty = {name: pl.DataFrame({"replicate": [0]}) for name in ("counts", *CROSSED["day"])}
    assert cube_of(params, empty, []).cycle == Cycle(64, span)
    without = {name: pl.DataFrame({"replicate": [0]}) for name in ("counts", *CROSSED["article_id"])}
    assert cube_of(params, without, []).cycle is None


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("holder", ["pairs", "articles"])
@pytest.mark.parametrize("n_unknown", [0, 1, 3])
def test_articles_of_unknown_time_are_said_where_lags_are_given(tmp_path: Path, holder: str, n_unknown: int) -> None:
    (example,) = (each for each in EXAMPLES if each.kind == "before_after")
    pairs, articles = example.frames["pairs"], example.frames["articles"]
    times = articles.with_columns(
        article_time=pl.when(pl.int_range(pl.len()) < n_unknown).then(None).otherwise("article_time")
    )
    frames = {"pairs": pairs, "articles": times}
    if holder == "pairs":
        frames = {"pairs": pairs.join(times, on="article_id", how="left", maintain_order="left")}
    keys = {"compared": "pairs", "thresholds": [2, 5, 8], "window": {"before": "25h", "after": "30h"}}
    said = [
        words
        for words in run_stages(stage_config(tmp_path, "before_after", frames, **keys)).warnings
        if "'article_time' is NULL" in words
    ]
    n_rows = frames[holder]["article_time"].null_count()
    assert len(said) == bool(n_rows)
    assert all(f"input {holder}: column 'article_time' is NULL in {n_rows} row" in words for words in said)
