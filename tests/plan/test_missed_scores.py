"""Rows without a valid score: refused, dropped with a warning, or counted as below every threshold."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from running import (
    RANKING,
    SWEEP,
    points_tables,
    ranked,
    read_table,
    rows_by_status,
    run_before_after,
    run_stages,
    run_threshold_sweep,
    stage_config,
    swept,
)

from pipeline.base.errors import ConfigError, DataError

if TYPE_CHECKING:
    from pathlib import Path

BELOW = -1e9  # a score below all others, which a row without a score is compared with
UNSCORED = (None, math.nan, math.inf, -math.inf)


def predictions(n: int = 300, *, seed: int = 3) -> pl.DataFrame:
    """Labelled predictions, some without a valid score, of two groups, with weights and clusters."""
    rng = np.random.default_rng(seed)
    label = rng.random(n) < 0.4
    score = np.round(rng.beta(2.0, 2.0, n) * 0.6 + 0.4 * label, 2).tolist()
    for place in rng.choice(n, n // 8, replace=False).tolist():
        score[place] = UNSCORED[place % len(UNSCORED)]
    return pl.DataFrame(
        {
            "score": pl.Series(score, dtype=pl.Float64),
            "label": label,
            "importance": np.round(rng.uniform(0.0, 3.0, n), 2),
            "source": rng.choice(["a", "b"], n),
            "page": rng.integers(0, 40, n),
        }
    )


def replaced(frame: pl.DataFrame) -> pl.DataFrame:
    """The same with a score below all others where there is none."""
    finite = pl.col("score").is_finite().fill_null(value=False)
    return frame.with_columns(pl.when(finite).then("score").otherwise(BELOW).alias("score"))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"cluster": "page"},
        {"weighted": True},
        {"weighted": True, "cluster": "page"},
        {"method": "binned"},
        {"method": "binned", "weighted": True},
        {"boundary": ">"},
    ],
    ids=str,
)
def test_missed_rows_count_as_a_score_below_all_others(tmp_path: Path, keys: dict[str, Any]) -> None:
    keys = dict(keys)
    columns = {"columns": {"weight": "importance"}} if keys.pop("weighted", False) else {}
    common = keys | {"predictions": columns, "by": ["source"], "thresholds": [0.2, 0.5, 0.71]}
    frame = predictions()
    missed = swept(tmp_path / "missed", frame, invalid_scores="missed", **common)
    lowest = swept(tmp_path / "lowest", replaced(frame), **common)
    assert_frame_equal(missed["curve"], lowest["curve"])
    own = [name for name in lowest["areas"].columns if name not in {"log_likelihood", "log_likelihood_se", "brier"}]
    own.remove("undefined")
    assert_frame_equal(missed["areas"].select(own), lowest["areas"].select(own))
    assert missed["areas"]["log_likelihood"].null_count() == 3
    assert missed["areas"]["brier"].null_count() == 3
    assert set(missed["areas"]["undefined"]) == {"no_score"}


@pytest.mark.parametrize("cluster", [{}, {"cluster": "page"}], ids=["rows", "clusters"])
def test_distinct_thresholds_leave_missed_rows_below_the_lowest(tmp_path: Path, cluster: dict[str, Any]) -> None:
    frame = predictions()
    tables = swept(tmp_path / "missed", frame, invalid_scores="missed", **cluster)
    other = swept(tmp_path / "lowest", replaced(frame), **cluster)
    assert_frame_equal(tables["curve"], other["curve"].filter(pl.col("threshold") > BELOW))
    areas = ("n", "n_positive", "average_precision", "average_precision_se", "roc_auc", "roc_auc_se")
    assert_frame_equal(tables["areas"].select(areas), other["areas"].select(areas))


def test_average_precision_has_one_tie_of_missed_rows_at_the_bottom(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.9, 0.8, None, math.nan], "label": [True, False, True, False]})
    areas = swept(tmp_path, frame, invalid_scores="missed")["areas"].row(0, named=True)
    assert areas["average_precision"] == pytest.approx(0.5 * 1 + 0.5 * 0.5)
    assert areas["roc_auc"] == pytest.approx((1 + 1 + 0 + 0.5) / 4)


def test_large_inputs_in_cells_have_the_missed_rows_below_the_first_cell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.plan.area_work.MOST_CELLS", 100)
    frame = predictions(4000, seed=5)
    keys: dict[str, Any] = {"method": "binned", "width": 0.02, "thresholds": [0.5]}
    areas = swept(tmp_path / "binned", frame, invalid_scores="missed", **keys)["areas"].row(0, named=True)
    exact = swept(tmp_path / "exact", replaced(frame), thresholds=[0.5])["areas"].row(0, named=True)
    for name in ("average_precision", "roc_auc"):
        assert areas[f"{name}_min"] <= exact[name] <= areas[f"{name}_max"]
        assert areas[f"{name}_max"] - areas[f"{name}_min"] <= 0.02


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("keys", [{}, {"cluster": "page"}, {"method": "binned"}, {"thresholds": [0.5]}], ids=str)
def test_a_group_of_missed_rows_alone_has_areas_and_no_curve_of_its_own(tmp_path: Path, keys: dict[str, Any]) -> None:
    frame = predictions().with_columns(pl.when(pl.col("source") == "a").then("score").alias("score"))
    tables = swept(tmp_path, frame, invalid_scores="missed", by=[["source"]], **keys)
    areas = tables["areas"].filter(pl.col("source") == "b").row(0, named=True)
    assert areas["roc_auc"] == 0.5
    assert areas["average_precision"] == pytest.approx(areas["n_positive"] / areas["n"])
    assert areas["log_likelihood"] is None
    curve = tables["curve"].filter(pl.col("source") == "b")
    assert curve.height == ("thresholds" in keys)
    assert curve["recall"].to_list() == [0.0] * curve.height


def test_missed_rows_are_counted_by_reason_beside_the_used_ones(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.9, 0.8, None, math.nan, math.inf], "label": [True, False, True, False, True]})
    run = run_threshold_sweep(tmp_path, frame, invalid_scores="missed")
    assert rows_by_status(run, "predictions", SWEEP) == {
        "used": 2,
        "null_score": 1,
        "nan_score": 1,
        "infinite_score": 1,
    }
    assert not any("score" in warning for warning in run.warnings)


def test_a_missed_row_needs_its_label(tmp_path: Path) -> None:
    frame = pl.DataFrame({"score": [0.9, 0.8, None], "label": [True, False, None]})
    with pytest.raises(DataError, match=r"column 'label' is NULL.* in 1 row"):
        run_threshold_sweep(tmp_path, frame, invalid_scores="missed")


def test_dropped_positives_are_a_warning_with_their_share(tmp_path: Path) -> None:
    score = [0.9] * 884 + [None] * 23 + [0.1] * 93
    frame = pl.DataFrame({"score": score, "label": [True] * 907 + [False] * 93})
    warnings = run_threshold_sweep(tmp_path, frame, invalid_scores="drop").warnings
    words = (
        "23 of 907 positives (2.5%) have no score and are left out: recall is of the rest; "
        'invalid_scores = "missed" counts them as misses'
    )
    assert any(words in warning for warning in warnings), warnings


def test_dropped_rows_of_inputs_without_labels_are_a_warning_with_their_share(tmp_path: Path) -> None:
    pairs = pl.DataFrame({"event_id": [1, 1, 2, 2], "score": [1.0, 2.0, None, 3.0], "lag_hours": [-1.0, 1.0, 1.0, 2.0]})
    run = run_before_after(tmp_path, {"pairs": pairs}, thresholds=[0.5], invalid_scores="drop")
    assert any("input pairs: 1 of 4 rows (25.0%) have no valid score" in warning for warning in run.warnings)


def pairs_without_some_scores() -> pl.DataFrame:
    rng = np.random.default_rng(1)
    n = 400
    lag = np.round(rng.uniform(-50, 50, n), 1)
    score = np.round(rng.gamma(2.0, 1.0, n) + 2.0 * (lag > 0), 2).tolist()
    for place in range(0, n, 9):
        score[place] = UNSCORED[place % len(UNSCORED)]
    scores = pl.Series(score, dtype=pl.Float64)
    return pl.DataFrame({"event_id": rng.integers(0, 20, n), "score": scores, "lag_hours": lag})


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    "keys",
    [{}, {"uncertainty": "none"}, {"lag_thresholds": [2.0]}, {"strata": ["country"]}, {"thresholds": "distinct"}],
    ids=str,
)
def test_compared_pairs_without_a_score_stay_compared_and_never_match(tmp_path: Path, keys: dict[str, Any]) -> None:
    pairs = pairs_without_some_scores().with_columns((pl.col("event_id") % 3).cast(pl.String).alias("country"))
    common = {"thresholds": [1.0, 2.5, 4.0], "compared": "pairs", "window": {"before": "40h", "after": "30h"}} | keys
    missed = run_before_after(tmp_path / "missed", {"pairs": pairs}, invalid_scores="missed", **common)
    lowest = run_before_after(tmp_path / "lowest", {"pairs": replaced(pairs)}, **common)
    names = [path.name for path in missed.path.iterdir() if path.name.startswith("before_after_")]
    if "thresholds" in keys:
        names = ["before_after_operating_points"]
    assert names
    for name in names:
        table = read_table(lowest, name)
        assert_frame_equal(read_table(missed, name), table)
    accounts = rows_by_status(missed)
    inside = pairs.filter(pl.col("lag_hours") >= -40, pl.col("lag_hours") <= 30)
    assert sum(accounts.values()) == pairs.height
    assert accounts["null_score"] == inside["score"].null_count()
    assert accounts["used"] == inside.filter(pl.col("score").is_finite()).height


def test_pairs_without_a_score_never_match_where_the_compared_pairs_are_given(tmp_path: Path) -> None:
    pairs = pairs_without_some_scores()
    events = pl.DataFrame({"event_id": list(range(20)), "n_before": [40] * 20, "n_after": [40] * 20})
    found = {
        rule: run_before_after(
            tmp_path / rule, {"pairs": pairs, "events": events}, thresholds=[1.0, 3.0], invalid_scores=rule
        )
        for rule in ("drop", "missed")
    }
    estimates = {rule: read_table(run, "before_after_estimates") for rule, run in found.items()}
    assert_frame_equal(estimates["drop"], estimates["missed"])


def test_missed_pairs_do_not_go_with_the_highest_of_duplicates(tmp_path: Path) -> None:
    frames = {"pairs": pairs_without_some_scores()}
    with pytest.raises(ConfigError, match='invalid_scores = "missed" needs "error" or "keep"'):
        run_before_after(tmp_path, frames, thresholds=[1.0], invalid_scores="missed", duplicates="max")


def test_missed_places_are_refused_as_geocoding_has_no_scores(tmp_path: Path) -> None:
    place = pl.DataFrame({"mention_id": [1], "latitude": [1.0], "longitude": [1.0]})
    with pytest.raises(ConfigError, match="there are no scores"):
        run_stages(stage_config(tmp_path, "geocoding", {"gold": place, "predicted": place}, invalid_scores="missed"))


def test_change_points_and_mentions_without_a_score_are_never_predicted(tmp_path: Path) -> None:
    annotations = pl.DataFrame({"series_id": [1, 1], "position": [10, 50]})
    found = pl.DataFrame({"series_id": [1, 1, 1], "position": [10, 50, 90], "score": [0.9, None, 0.4]})
    frames = {"annotations": annotations, "predictions": found}
    curve = points_tables(tmp_path / "points", frames, margin=5, invalid_scores="missed")["curve"]
    assert curve.sort("threshold")["recall"].to_list() == [0.5, 0.5]
    gold = pl.DataFrame({"doc_id": [1, 1], "start": [0, 5], "end": [2, 8]})
    frames = {"gold": gold, "predicted": gold.with_columns(pl.Series("score", [0.5, math.nan]))}
    config = stage_config(tmp_path / "mentions", "entity_recognition", frames, invalid_scores="missed")
    scores = read_table(run_stages(config), "entity_recognition_scores", "entity_recognition")
    micro = scores.filter(pl.col("average") == "micro").row(0, named=True)
    assert (micro["tp"], micro["fp"], micro["fn"]) == (1, 0, 1)


LABELLED = pl.DataFrame(
    {
        "query_id": [1, 1, 1, 1, 2, 2],
        "doc_id": list("abcdab"),
        "score": [0.9, 0.8, None, 0.7, 0.5, math.nan],
        "relevance": [1, 0, 1, 1, 1, 1],
    }
)


def test_relevant_documents_without_a_score_are_known_and_not_retrieved(tmp_path: Path) -> None:
    missed = ranked(tmp_path / "missed", LABELLED, invalid_scores="missed")["queries"]
    retrieved = LABELLED.filter(pl.col("score").is_finite()).drop("relevance")
    apart = ranked(tmp_path / "apart", retrieved, LABELLED.drop("score"))["queries"]
    assert_frame_equal(missed, apart)
    assert missed["n_relevant"].to_list() == [3, 2]
    assert missed["n_relevant_retrieved"].to_list() == [2, 1]


def test_rankings_of_several_systems_have_their_own_documents_without_a_score(tmp_path: Path) -> None:
    other = LABELLED.with_columns(pl.lit("y").alias("system"), pl.col("score").fill_null(0.1).fill_nan(0.2))
    both = pl.concat([LABELLED.with_columns(pl.lit("x").alias("system")), other])
    found = ranked(tmp_path / "both", both, invalid_scores="missed", by=[["system"]])["queries"]
    alone = ranked(tmp_path / "alone", other, by=[["system"]])["queries"]
    assert_frame_equal(found.filter(pl.col("system") == "y"), alone)
    assert found.filter(pl.col("system") == "x")["n_relevant_retrieved"].to_list() == [2, 1]


@pytest.mark.parametrize(("rule", "means"), [("zero", 2), ("skip", 1)])
def test_a_query_whose_documents_all_lack_a_score_is_missing(tmp_path: Path, rule: str, means: int) -> None:
    frame = LABELLED.with_columns(pl.when(pl.col("query_id") == 1).then("score").alias("score"))
    with pytest.raises(DataError, match="no document of query 2"):
        ranked(tmp_path / "error", frame, invalid_scores="missed")
    summary = ranked(tmp_path / rule, frame, invalid_scores="missed", missing_queries=rule)["summary"]
    assert summary["n_queries"].to_list() == [means]


def test_dropped_relevant_documents_are_a_warning(tmp_path: Path) -> None:
    run = run_stages(stage_config(tmp_path, RANKING, {"ranking": LABELLED}, invalid_scores="drop"))
    assert any("2 of 5 positives (40.0%) have no score" in warning for warning in run.warnings), run.warnings
