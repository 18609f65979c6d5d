"""A placebo or trend test that fails marks every number that rests on equal false positive rates; advice that helps."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import read_table, run_before_after

from pipeline.stages.before_after.assumption import failed_groups

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

    from pipeline.runs.stage_results import Run

SOURCE = Path(__file__).parents[3] / "studies" / "coverage_of_estimates.py"
MARK = "assumption_failed"
RESTING = ("before_after_estimates", "before_after_operating_points", "before_after_adjusted")
KEYS: dict[str, Any] = {"thresholds": [0.5, 0.7], "cluster": "event_id"}
LEVEL = (0.1, 0.1, 0.1, 0.1)  # false positive rates of the four days before the event
RISES_NEAR, RISES_FAR = (0.1, 0.1, 0.1, 0.3), (0.3, 0.3, 0.1, 0.1)


def pairs_of(rates: Sequence[float], source: str = "x", first: int = 0, seed: int = 12) -> pl.DataFrame:
    """Every compared pair of 60 events: 40 on each of four days before the event, by their rate, and 40 after it."""
    rng = np.random.default_rng(seed)
    lag = np.concatenate([np.linspace(-96, 0, 160, endpoint=False), np.linspace(0, 24, 40)])
    rate = np.concatenate([np.repeat(rates, 40), np.full(40, 0.4)])
    event, which = (each.ravel() for each in np.meshgrid(np.arange(60), np.arange(200), indexing="ij"))
    score = np.where(rng.random(len(event)) < rate[which], 0.5 + rng.random(len(event)) / 2, rng.random(len(event)) / 2)
    columns = {"event_id": event + first, "score": score, "lag_hours": lag[which], "source": source}
    return pl.DataFrame(columns)


def run_of(folder: Path, pairs: pl.DataFrame, window: dict[str, str] | None = None, **keys: object) -> Run:
    asked = {"before": "96h", "after": "24h"} if window is None else window
    return run_before_after(folder, {"pairs": pairs}, window=asked, **KEYS | keys)


def qualities(run: Run, name: str = "before_after_operating_points") -> set[str]:
    return set(read_table(run, name)["interval_quality"].drop_nulls())


def doubts(run: Run) -> list[str]:
    return [warning for warning in run.warnings if "doubtful whether wrong matches" in warning]


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("rates", "advice", "other", "window"),
    [
        (RISES_NEAR, "a `gap` in the window", "shorter `before`", {"before": "96h", "after": "24h", "gap": "24h"}),
        (RISES_FAR, "give a shorter `before`", "`gap` in the window", {"before": "48h", "after": "24h"}),
    ],
    ids=["near", "far"],
)
def test_the_advice_fits_the_side_that_is_higher_and_following_it_helps(
    tmp_path: Path, rates: Sequence[float], advice: str, other: str, window: dict[str, str]
) -> None:
    failed, mended = (
        run_of(tmp_path / name, pairs_of(rates), span) for name, span in (("failed", None), ("mended", window))
    )
    (warning,) = doubts(failed)
    assert advice in warning
    assert other not in warning
    assert doubts(mended) == []
    assert "does not contradict" in mended.stages[0].summary.sentence
    assert MARK not in qualities(mended)


def test_a_failed_test_marks_every_number_that_rests_on_the_assumption(tmp_path: Path) -> None:
    pairs = pairs_of(RISES_FAR).with_columns((pl.col("event_id") % 2).alias("kind"))
    run = run_of(tmp_path, pairs, lag_thresholds=[0.5], strata=["kind"], uncertainty="jackknife")
    for name in RESTING:
        assert qualities(run, name) == {MARK}
    assert MARK not in qualities(run, "before_after_placebo") | qualities(run, "before_after_trend")
    metrics = read_table(run, "metrics").filter(pl.col("result_table").is_in(RESTING), pl.col("lower").is_not_null())
    assert set(metrics["quality"]) == {MARK}
    assert any(cell.endswith(")*") for row in run.stages[0].summary.rows for cell in row)
    assert "may be far off" in run.stages[0].summary.sentence


def test_every_group_has_its_own_test(tmp_path: Path) -> None:
    pairs = pl.concat([pairs_of(LEVEL), pairs_of(RISES_FAR, "y", 60), pairs_of(LEVEL, "z", 120, seed=3)])
    run = run_of(tmp_path, pairs, by=[["source"]])
    points = read_table(run, "before_after_operating_points")
    marked = points.filter(pl.col("interval_quality") == MARK)
    assert set(marked["source"]) == {"y"}
    assert marked.height == points.filter(pl.col("source") == "y").height
    (warning,) = doubts(run)
    assert "in 1 of 3 groups:" in warning


def tables_of(
    p_values: dict[str, float | None], trends: dict[str, float | None] | None = None
) -> dict[str, pl.DataFrame]:
    """Tables of groups, `all` being the total, by their p-values of the joint placebo test and of trends."""

    def labelled(values: dict[str, float | None]) -> pl.DataFrame:
        rows = {
            "grouping": ["all" if name == "all" else "source" for name in values],
            "by:source": [None if name == "all" else name for name in values],
            "threshold": None,
            "p_value": list(values.values()),
        }
        return pl.DataFrame(
            rows, schema_overrides={"by:source": pl.String, "threshold": pl.Float64, "p_value": pl.Float64}
        )

    estimates = labelled(p_values).drop("p_value", "threshold")
    tables = {"before_after_estimates": estimates, "before_after_placebo": labelled(p_values)}
    return tables if trends is None else tables | {"before_after_trend": labelled(trends)}


def failing(tables: dict[str, pl.DataFrame]) -> set[str]:
    return set(failed_groups(tables)["by:source"].fill_null("all"))


def test_several_tests_of_a_group_are_one_at_five_percent() -> None:
    assert failing(tables_of({"all": 0.04})) == {"all"}
    assert failing(tables_of({"all": 0.04}, {"all": 0.5})) == set()
    assert failing(tables_of({"all": 0.9}, {"all": 0.02})) == {"all"}
    assert failing(tables_of({"all": None}, {"all": 0.04})) == {"all"}
    assert failing(tables_of({"all": None}, {"all": None})) == set()


def test_many_groups_are_not_marked_by_chance_and_those_that_fail_are() -> None:
    by_chance = {f"s{number}": (number + 0.5) / 100 for number in range(100)}
    assert failing(tables_of({"all": 0.5, **by_chance})) == set()
    sure = {f"t{number}": 0.001 for number in range(3)}
    assert failing(tables_of({"all": 0.5, **by_chance, **sure})) == set(sure)


def test_a_group_without_a_test_shares_the_verdict_on_the_total() -> None:
    assert failing(tables_of({"all": 0.001, "x": None, "y": 0.6})) == {"all", "x"}
    assert failing(tables_of({"all": 0.6, "x": None, "y": 0.6})) == set()


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_of_estimates", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.wide
@pytest.mark.no_cover
def test_true_nulls_are_marked_in_about_one_of_twenty_data_sets_and_a_strong_failure_in_all(
    benchmark: ModuleType,
) -> None:
    marked, good, covered = benchmark.marks(1.0, 120, 5)
    assert marked < 0.05 + 3 * (0.05 * 0.95 / 120) ** 0.5
    assert good > 0.85
    assert covered > 0.9
    marked, good, covered = benchmark.marks(0.41, 15, 6)
    assert (marked, good) == (1.0, 0.0)
    assert covered < 0.5  # what good limits would have hidden
