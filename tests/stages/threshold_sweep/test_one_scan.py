"""Binned sweeps of many rows: one scan, whose counts are exact, and whose bounds hold what all rows give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from sklearn.metrics import average_precision_score, brier_score_loss, log_loss, roc_auc_score

import pipeline
from pipeline.base.errors import DataError
from pipeline.base.sql_files import file_of
from pipeline.engines.duckdb import DuckDB
from pipeline.plan import area_work
from pipeline.stages.threshold_sweep import stage

if TYPE_CHECKING:
    from collections.abc import Sequence

EVEN = {"start": 0.0, "stop": 1.0, "count": 21}
BOUNDED = ("average_precision", "roc_auc", "log_likelihood", "brier")
ROUNDING = 1e-12


@pytest.fixture(autouse=True)
def _many(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some dozens of rows are many."""
    monkeypatch.setattr(stage, "MOST_SINGLE", 0)
    monkeypatch.setattr(area_work, "MOST_CELLS", 16)


def swept(frame: pl.DataFrame, **keys: Any) -> Any:  # noqa: ANN401 - a result, whose tables are its attributes
    return pipeline.threshold_sweep(predictions=frame, **{"thresholds": EVEN, "outcomes": False} | keys)


def continuous(rows: int = 3000, seed: int = 1) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    score = rng.beta(0.7, 1.5, rows)
    return pl.DataFrame(
        {"score": score, "label": rng.uniform(size=rows) < score**1.3, "model": rng.choice(["a", "b"], rows)}
    )


def assert_holds(frame: pl.DataFrame, **keys: Any) -> Any:  # noqa: ANN401 - of a stage
    """The counts of both methods are equal, and the bounds of cells hold the exact numbers."""
    exact, binned = (swept(frame, method=method, **keys) for method in ("exact", "binned"))
    assert_frame_equal(binned.curve, exact.curve)
    assert_frame_equal(binned.operating_points, exact.operating_points)
    for name in ("n", "n_positive", "pr_auc", "pr_auc_se", "undefined"):
        assert binned.areas[name].equals(exact.areas[name]), name
    for name in BOUNDED:
        assert binned.areas[name].is_null().equals(exact.areas[name].is_null()), name
        within(binned.areas, exact.areas, name, exact.areas.height)
    return exact, binned


def within(found: pl.DataFrame, exact: pl.DataFrame, name: str, rows: int) -> None:
    low, high, middle = (found[f"{name}{end}"] for end in ("_min", "_max", ""))
    true = exact[name]
    bounded = low.is_not_null()
    for place in range(rows):
        if bounded[place]:
            assert low[place] - ROUNDING <= true[place] <= high[place] + ROUNDING, name
            assert middle[place] == pytest.approx((low[place] + high[place]) / 2, abs=2e-9), name
        elif true[place] is not None:
            assert middle[place] == pytest.approx(true[place], rel=1e-9), name


def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files of sql/ that are asked of rows from now on."""
    files: list[str] = []
    fetch = DuckDB.fetch

    def noted(self: DuckDB, query: Any, *rest: Any, **keys: Any) -> pl.DataFrame:  # noqa: ANN401 - as fetch
        files.append(str(file_of(query)))
        return fetch(self, query, *rest, **keys)

    monkeypatch.setattr(DuckDB, "fetch", noted)
    return files


def test_one_query_reads_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    frame = continuous()
    swept(frame, method="binned", uncertainty="none")  # all else is known by now
    files = asked(monkeypatch)
    result = swept(frame, method="binned", uncertainty="none")
    assert files == ["threshold_sweep/counts"]
    assert result.calibration.height == 2
    assert result.areas["log_likelihood_min"].null_count() == 0


def test_bounds_hold_what_scikit_learn_finds() -> None:
    frame = continuous()
    score, label = frame["score"].to_numpy(), frame["label"].to_numpy()
    row = swept(frame, method="binned").areas.row(0, named=True)
    true = {
        "average_precision": average_precision_score(label, score),
        "roc_auc": roc_auc_score(label, score),
        "log_likelihood": -log_loss(label, score),
        "brier": brier_score_loss(label, score),
    }
    for name, value in true.items():
        assert row[f"{name}_min"] <= value <= row[f"{name}_max"], name
        assert row[f"{name}_max"] - row[f"{name}_min"] <= 1e-4, name


def test_calibration_comes_within_its_bounds() -> None:
    exact, binned = assert_holds(continuous(), calibration=True, calibration_bins=7)
    width = [each.reliability.filter(pl.col("binning") == "width") for each in (exact, binned)]
    for name in ("bin", "score_lower", "score_upper", "n", "n_positive", "share_positive"):
        assert width[0][name].equals(width[1][name]), name
    within(width[1], width[0], "mean_score", width[0].height)
    within(binned.calibration, exact.calibration, "mean_score", 2)
    half = (binned.calibration["mean_score_max"] - binned.calibration["mean_score_min"]).max() / 2
    assert 0 < half < 1e-4
    for name in ("ece", "gap"):
        assert binned.calibration[name].to_list() == pytest.approx(exact.calibration[name].to_list(), abs=half), name
    assert binned.calibration["brier"].to_list() == pytest.approx([binned.areas["brier"].item()] * 2, abs=1e-12)
    assert sum(width[1]["n"]) == 3000


def test_exact_tables_have_no_bounds() -> None:
    result = swept(continuous(), method="exact")
    names = [f"{name}_{end}" for name in BOUNDED for end in ("min", "max")]
    assert result.areas.select(names).null_count().row(0) == (1,) * 8
    assert result.reliability["mean_score_min"].null_count() == result.reliability.height
    assert result.calibration["mean_score_max"].null_count() == 2


def test_probabilities_that_crowd_near_0_are_added_up_exactly() -> None:
    """Every tenth row with a score below 1e-7 is true: a cell from 0 on leaves its logarithm open."""
    rng = np.random.default_rng(4)
    score = 10 ** rng.uniform(-12, -7, 2000)
    frame = pl.DataFrame({"score": [*score, 0.9], "label": [*(rng.uniform(size=2000) < 0.1).tolist(), True]})
    exact, binned = assert_holds(frame)
    assert binned.areas["log_likelihood"].equals(exact.areas["log_likelihood"])
    assert binned.areas["log_likelihood_min"].to_list() == [None]
    assert binned.calibration["mean_score_min"].null_count() == 0


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "thresholds", [EVEN, [0.2, 0.5, 0.7312345], [-3.0, 0.1, 7.0], {"start": 0.001, "stop": 0.01, "count": 4}], ids=str
)
@pytest.mark.parametrize("boundary", [">=", ">"])
@pytest.mark.parametrize("decimals", [1, 4])
def test_scores_on_the_edges_of_cells_are_counted_exactly(thresholds: Any, boundary: str, decimals: int) -> None:  # noqa: ANN401 - as in a config
    frame = continuous(400).with_columns(pl.col("score").round(decimals))
    assert_holds(frame, thresholds=thresholds, boundary=boundary, calibration_bins=10)


@pytest.mark.wide
def test_groups_that_are_no_probabilities_have_areas_alone() -> None:
    frame = continuous(600)
    logits = frame.with_columns(score=(pl.col("score") / (1 - pl.col("score"))).log(), model=pl.lit("logits"))
    _, binned = assert_holds(pl.concat([frame, logits]), by=[["model"], []])
    reasons = dict(binned.calibration.select("model", "undefined").rows())
    assert reasons == {"a": None, "b": None, "logits": "no_probability", None: "no_probability"}


def test_many_groups_share_the_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipeline.plan.counts.MOST_OF_GROUPS", 400)
    frame = continuous(900).with_columns(topic=pl.int_range(pl.len()) % 30)
    assert_holds(frame, by=["model", "topic"], width=0.5)


def test_a_score_that_is_nan_is_refused() -> None:
    frame = pl.concat([continuous(100), pl.DataFrame({"score": [float("nan")], "label": [True], "model": ["a"]})])
    with pytest.raises(DataError, match="NaN"):
        swept(frame, method="binned")


@pytest.mark.wide
def test_rows_that_are_left_out_are_in_no_cell() -> None:
    holes = pl.DataFrame({"score": [float("nan"), None, float("inf")], "label": [True, False, True], "model": "a"})
    _, binned = assert_holds(pl.concat([continuous(300), holes]), invalid_scores="drop")
    assert binned.areas["n"].item() == 300


scores = st.one_of(
    st.floats(0, 1),
    st.sampled_from(
        [0.0, -0.0, 5e-324, 1e-15, 0.1, 0.3, 0.7, float(np.nextafter(0.3, 1)), float(np.nextafter(1, 0)), 1.0]
    ),
    st.integers(0, 20).map(lambda number: number / 20),
)
samples = st.lists(st.tuples(scores, st.booleans()), min_size=20, max_size=60)
lists = st.lists(scores, min_size=1, max_size=5).map(lambda values: sorted({value + 0.0 for value in values}))


@pytest.mark.wide
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(samples, st.one_of(st.just(EVEN), lists), st.sampled_from([">=", ">"]), st.integers(2, 12))
@example([(0.5, True)] * 30, EVEN, ">", 2)
def test_any_scores_and_thresholds(
    rows: Sequence[tuple[float, bool]],
    thresholds: Any,  # noqa: ANN401 - as in a config
    boundary: str,
    bins: int,
) -> None:
    frame = pl.DataFrame(rows, schema={"score": pl.Float64, "label": pl.Boolean}, orient="row")
    keys = {"thresholds": thresholds, "boundary": boundary, "calibration_bins": bins}
    exact, binned = assert_holds(frame, **keys)
    for table in ("reliability", "calibration"):
        found, true = (
            getattr(each, table).filter(pl.col("binning") == "width", pl.col("n") > 0) for each in (binned, exact)
        )
        assert found["n"].equals(true["n"])
        within(found, true, "mean_score", true.height)
