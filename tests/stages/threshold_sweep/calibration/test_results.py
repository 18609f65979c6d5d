"""Tables of calibration, from rows to limits: against scikit-learn, sums over rows, and the same rows in cells."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from running import SWEEP, read_table, run_stages, run_threshold_sweep, stage_config
from scipy.stats import chi2
from sklearn.calibration import calibration_curve
from sklearn.metrics import brier_score_loss

import pipeline
from pipeline.base.errors import DataError
from pipeline.metrics.calibration.bins import _LEAST
from pipeline.metrics.uncertainty.jackknife import binomial_limits
from pipeline.stages.sections import Measured
from pipeline.stages.threshold_sweep.calibration import calibration_sentences

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SUMS = "pipeline.plan.counts"


def predictions(seed: int = 1, rows: int = 404, power: float = 1.3) -> pl.DataFrame:
    """Rows whose probability of a true label is a power of their score."""
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(0.6, 2.0, rows), 3)
    return pl.DataFrame(
        {
            "score": score,
            "label": rng.uniform(size=rows) < score**power,
            "w": rng.choice([0.25, 1.0, 3.5], rows),
            "user": rng.integers(0, 25, rows),
            "item": rng.integers(0, 18, rows),
            "model": rng.choice(["a", "b"], rows),
        }
    )


def tables(rows: Any, **keys: Any) -> tuple[pl.DataFrame, pl.DataFrame]:  # noqa: ANN401 - a frame, or one with weights
    """The tables of reliability and of calibration."""
    result = pipeline.threshold_sweep(predictions=rows, **{"thresholds": [0.5]} | keys)
    return result.reliability, result.calibration


def weighted(frame: pl.DataFrame) -> dict[str, Any]:
    return {"path": frame, "columns": {"weight": "w"}}


@pytest.fixture(scope="module")
def plain() -> tuple[pl.DataFrame, pl.DataFrame]:
    return tables(predictions())


def test_bins_and_brier_score_are_those_of_scikit_learn(plain: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    bins, errors = plain
    frame = predictions()
    for binning, strategy in (("quantile", "quantile"), ("width", "uniform")):
        shares, means = calibration_curve(frame["label"], frame["score"], n_bins=10, strategy=strategy)
        present = bins.filter(pl.col("binning") == binning, pl.col("n") > 0)
        assert present["share_positive"].to_list() == pytest.approx(shares)
        assert present["mean_score"].to_list() == pytest.approx(means)
        assert present["n"].sum() == frame.height
    brier = brier_score_loss(frame["label"], frame["score"])
    assert errors["brier"].to_list() == pytest.approx([brier, brier])


def test_limits_and_bands_are_those_of_a_binomial_share(plain: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    bins = plain[0].filter(pl.col("n") > 0)
    hits, size = bins["n_positive"].to_numpy().astype(float), bins["n"].to_numpy()
    of_binning = bins["binning"].replace_strict(dict(bins["binning"].value_counts().rows())).to_numpy()
    lower, upper = binomial_limits(hits, size - hits, 0.025)
    assert bins["share_positive_lower"].to_list() == pytest.approx(lower)
    assert bins["share_positive_upper"].to_list() == pytest.approx(upper)
    lower, upper = binomial_limits(hits, size - hits, (1 - 0.95 ** (1 / of_binning)) / 2)
    assert bins["share_positive_band_lower"].to_list() == pytest.approx(lower)
    assert bins["share_positive_band_upper"].to_list() == pytest.approx(upper)
    inside = (bins["gap_lower"] <= bins["gap"]) & (bins["gap"] <= bins["gap_upper"])
    assert inside.all()
    marks = bins.filter(pl.col("n_positive") == 0)["interval_quality"]
    assert set(marks) <= {"at_edge"}


def reference(frame: pl.DataFrame, bins: pl.DataFrame, weights: NDArray[np.float64]) -> dict[str, float]:
    """Numbers of one group and binning by sums over rows."""
    score, label = frame["score"].to_numpy(), frame["label"].to_numpy().astype(float)
    upper = bins["score_upper"].to_numpy()
    number = np.searchsorted(upper, score)
    gaps, sizes, pools = [], [], [[0.0, 0.0]]  # of each pool the surplus and its variance
    for each in np.unique(number):
        of_bin = number == each
        w = weights[of_bin]
        gaps.append(np.average(label[of_bin] - score[of_bin], weights=w))
        sizes.append(w.sum() / weights.sum())
        s = score[of_bin]
        if pools[-1][1] >= _LEAST:
            pools.append([0.0, 0.0])
        pools[-1][0] += (w * (label[of_bin] - s)).sum()
        pools[-1][1] += (s * (1 - s)).sum()
    if pools[-1][1] < _LEAST:
        rest = pools.pop()
        pools[-1] = [pools[-1][0] + rest[0], pools[-1][1] + rest[1]]
    z = weights * (label - score) * (1 - 2 * score)
    variance = (1 - 2 * score) ** 2 * np.where(weights == 1, score * (1 - score), 0)
    return {
        "ece": float(np.dot(sizes, np.abs(gaps))),
        "mce": float(np.max(np.abs(gaps))),
        "reliability": float(np.dot(sizes, np.square(gaps))),
        "gap": float(np.average(label - score, weights=weights)),
        "spiegelhalter_z": float(z.sum() / np.sqrt(variance.sum())) if (weights == 1).all() else float("nan"),
        "hosmer_lemeshow": sum(surplus**2 / variance for surplus, variance in pools),
        "pools": len(pools),
    }


def test_errors_and_tests_are_sums_over_rows(plain: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    bins, errors = plain
    frame = predictions()
    for row in errors.iter_rows(named=True):
        of_binning = bins.filter(pl.col("binning") == row["binning"])
        expected = reference(frame, of_binning, np.ones(frame.height))
        p_value = chi2.sf(row["hosmer_lemeshow"], expected.pop("pools"))
        for name, value in expected.items():
            assert row[name] == pytest.approx(value, rel=1e-9), name
        assert row["hosmer_lemeshow_p_value"] == pytest.approx(p_value, abs=0.05)
    assert_adds_up(errors)


def assert_adds_up(errors: pl.DataFrame) -> None:
    of_bins = errors["reliability"] - errors["resolution"] + errors["uncertainty"]
    total = of_bins + errors["within_bin_variance"] - errors["within_bin_covariance"]
    assert total.to_list() == pytest.approx(errors["brier"].to_list(), rel=1e-12)


def test_weights_of_whole_numbers_are_repeated_rows() -> None:
    frame = predictions(3).with_columns(pl.Series("w", np.random.default_rng(3).integers(0, 4, 404)))
    repeated = frame.select(pl.all().repeat_by("w")).explode(*frame.columns)
    bins, errors = tables(weighted(frame), calibration_bins=5)
    of_repeated, errors_of_repeated = tables(repeated, calibration_bins=5)
    width = [table.filter(pl.col("binning") == "width") for table in (bins, of_repeated)]
    assert width[0]["weight"].to_list() == width[1]["n"].to_list()
    assert width[0]["weight_positive"].to_list() == width[1]["n_positive"].to_list()
    assert width[0]["n"].sum() == (frame["w"] > 0).sum()
    for name in ("mean_score", "share_positive", "gap"):
        assert width[0][name].to_list() == pytest.approx(width[1][name].to_list())
    names = ["ece", "mce", "brier", "reliability", "resolution", "uncertainty", "within_bin_variance"]
    for name in names:
        assert errors[name][1] == pytest.approx(errors_of_repeated[name][1]), name
    assert_adds_up(errors)
    lower = width[0]["share_positive_lower"] < width[1]["share_positive_lower"]  # fewer rows tell less
    assert lower.filter(width[0]["n_positive"] > 0).all()


DESIGNS: list[tuple[Any, bool]] = [(None, True), ("user", False), (["user", "item"], True)]


@pytest.mark.wide
@pytest.mark.parametrize(("cluster", "has_weights"), DESIGNS)
def test_groups_are_evaluated_as_if_alone(cluster: Any, *, has_weights: bool) -> None:  # noqa: ANN401 - of any form
    frame = predictions(4)
    keys = {"cluster": cluster, "calibration_bins": 4}
    together = tables(weighted(frame) if has_weights else frame, by=["model"], **keys)
    for name in ("a", "b"):
        of_model = frame.filter(pl.col("model") == name)
        alone = tables(weighted(of_model) if has_weights else of_model, **keys)
        for table, expected in zip(together, alone, strict=True):
            actual = table.filter(pl.col("model") == name).drop("grouping", "model")
            heavy = expected.drop("grouping")
            assert_frame_equal(actual, heavy, rel_tol=1e-9)


@pytest.mark.wide
@pytest.mark.parametrize(("cluster", "has_weights"), DESIGNS)
def test_cells_give_what_single_scores_give(
    monkeypatch: pytest.MonkeyPatch,
    cluster: Any,  # noqa: ANN401 - of any form
    *,
    has_weights: bool,
) -> None:
    frame = predictions(5)
    rows = weighted(frame) if has_weights else frame
    exact = tables(rows, by=["model"], cluster=cluster)
    monkeypatch.setattr(f"{SUMS}.MOST_SCORES", 0)
    in_cells = tables(rows, by=["model"], cluster=cluster)
    for table, expected in zip(in_cells, exact, strict=True):
        of_width = (each.filter(pl.col("binning") == "width") for each in (table, expected))
        assert_frame_equal(*of_width, rel_tol=1e-9)
    bins = in_cells[0].filter(pl.col("binning") == "quantile", pl.col("grouping") == "all")
    assert bins["n"].sum() == (frame["w"] > 0).sum()
    assert np.ptp(bins["n"].to_numpy()) < 16  # tenths of 404 rows, in cells of which some hold several
    for row in bins.iter_rows(named=True):
        inside = frame.filter(pl.col("score") > row["score_lower"], pl.col("score") <= row["score_upper"])
        assert inside.height == row["n"] or row["bin"] == 1


@pytest.mark.wide
def test_many_groups_have_coarser_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{SUMS}.MOST_SCORES", 0)
    monkeypatch.setattr(f"{SUMS}.MOST_SUMS", 1000)
    bins, errors = tables(predictions(6), by=["model"])
    width = bins.filter(pl.col("binning") == "width")
    expected = tables(predictions(6), by=["model"])[0].filter(pl.col("binning") == "width")
    assert_frame_equal(width, expected, rel_tol=1e-9)
    assert_adds_up(errors)


def test_clusters_of_single_rows_have_the_limits_of_rows() -> None:
    frame = predictions(7, power=1.0).with_row_index("row")
    of_rows, errors = tables(frame, calibration_bins=3)
    of_clusters, errors_of_clusters = tables(frame, calibration_bins=3, cluster="row")
    has_events = (of_rows["n_positive"] >= 10) & (of_rows["n"] - of_rows["n_positive"] >= 10)
    assert has_events.sum() >= 3
    for name in ("share_positive", "share_positive_band", "gap"):
        for side in ("lower", "upper"):
            limits = (table.filter(has_events)[f"{name}_{side}"].to_list() for table in (of_clusters, of_rows))
            assert next(limits) == pytest.approx(next(limits), abs=0.03), name
    for name in ("spiegelhalter_z", "hosmer_lemeshow"):
        assert errors_of_clusters[name].to_list() == pytest.approx(errors[name].to_list(), rel=0.15)
    assert errors_of_clusters["n_clusters"].to_list() == [404, 404]


@pytest.mark.wide
def test_doubled_clusters_have_the_limits_of_their_halves() -> None:
    """Rows that stand twice in their clusters say nothing new."""
    frame = predictions(8)
    single, errors = tables(frame, calibration_bins=3, cluster="user")
    doubled, errors_of_doubled = tables(pl.concat([frame, frame]), calibration_bins=3, cluster="user")
    width = [table.filter(pl.col("binning") == "width") for table in (single, doubled)]
    for column in ("share_positive_band_upper", "gap_lower"):
        assert width[1][column].to_list() == pytest.approx(width[0][column].to_list(), abs=0.03)
    # the error is at least that of independent rows, which that of many rows of the same clusters exceeds
    repeated = [tables(pl.concat([frame] * times), calibration_bins=3, cluster="user")[1] for times in (4, 8)]
    p_values = [table["spiegelhalter_p_value"].to_list() for table in (errors, errors_of_doubled, *repeated)]
    assert p_values[3] == pytest.approx(p_values[2])
    assert p_values[0][0] > p_values[1][0] > p_values[2][0]


def test_a_bin_of_one_cluster_has_no_interval() -> None:
    frame = predictions(9).with_columns(pl.when(pl.col("score") > 0.8).then(1).otherwise("user").alias("user"))
    bins, errors = tables(frame, calibration_bins=5, cluster="user")
    last = bins.filter(pl.col("binning") == "width", pl.col("bin") == 5).row(0, named=True)
    assert (last["gap_lower"], last["undefined_interval"], last["interval_quality"]) == (None, "one_replicate", None)
    assert last["gap"] is not None
    assert errors["ece_debiased"].is_not_null().all()


def test_without_uncertainty_there_are_numbers_alone() -> None:
    bins, errors = tables(predictions(), cluster="user", uncertainty="none")
    assert set(bins["undefined_interval"]) == {"none"}
    row = errors.row(0, named=True)
    assert row["undefined_interval"] == "none"
    assert row["ece"] is not None
    names = ("gap_lower", "ece_debiased", "reliability_debiased", "spiegelhalter_z", "hosmer_lemeshow_p_value")
    assert [row[name] for name in names] == [None] * 5


def test_the_bootstrap_is_near_the_closed_form() -> None:
    frame = predictions(10, rows=2000).with_columns(pl.col("item") + 18 * pl.col("user"))
    closed = tables(frame, calibration_bins=3, cluster="item")[0]
    drawn = tables(frame, calibration_bins=3, cluster="item", uncertainty="bootstrap", resamples=199)[0]
    for column in ("share_positive_lower", "gap_upper"):
        assert drawn[column].to_list() == pytest.approx(closed[column].to_list(), abs=0.03)
    assert not drawn["gap_upper"].equals(closed["gap_upper"])


# What is made, and what is said where it is not -----------------------------------------------------------------------

BOTH = {"threshold_sweep_reliability", "threshold_sweep_calibration"}


def outcome(folder: Path, frame: pl.DataFrame, **keys: Any) -> tuple[Any, dict[str, str], str]:  # noqa: ANN401
    """A run, why tables of calibration were left out, and its warnings and notes."""
    run = run_threshold_sweep(folder, frame, **{"thresholds": [0.5]} | keys)
    result = run.stages[0]
    omitted = {name: reason for name, reason in result.omitted.items() if name in BOTH}
    return run, omitted, " ".join((*result.warnings, *result.notes))


def test_scores_that_are_no_probabilities_are_left_out_in_silence(tmp_path: Path) -> None:
    frame = predictions().with_columns(pl.col("score") * 10 - 3)
    run, omitted, warnings = outcome(tmp_path, frame)
    assert set(omitted) == BOTH
    assert "of 404 rows have others" in omitted["threshold_sweep_calibration"]
    assert "calibration" not in warnings
    assert not (run.path / "threshold_sweep_calibration").exists()


def test_few_scores_outside_are_told(tmp_path: Path) -> None:
    frame = pl.concat([predictions(), predictions()[:3].with_columns(pl.lit(1.01).alias("score"))])
    _, omitted, warnings = outcome(tmp_path, frame)
    assert set(omitted) == BOTH
    assert "calibration is left out: " in warnings
    assert "3 of 407 rows have others; calibration = true names the first" in warnings


def test_rows_of_all_groups_are_told_where_the_largest_has_no_score_outside(tmp_path: Path) -> None:
    frame = predictions().with_columns(model=pl.lit("a"), score=pl.Series([None, *predictions()["score"][1:]]))
    other = predictions()[:20].with_columns(model=pl.lit("b"), score=pl.Series([1.01, *predictions()["score"][1:20]]))
    _, omitted, _ = outcome(tmp_path, pl.concat([frame, other]), by=[["model"]], invalid_scores="missed")
    assert "and 1 of 423 rows has others" in omitted["threshold_sweep_calibration"]


@pytest.mark.parametrize(("times", "told"), [(1, "1 of 404 rows has others"), (9, "")])
def test_few_scores_outside_of_one_group_are_told_and_scores_of_another_kind_are_not(
    tmp_path: Path, times: int, told: str
) -> None:
    """One score of 1.01, or all scores of the model times nine, of which most lie outside."""
    is_b = pl.col("model") == "b"
    score = pl.when(is_b).then(pl.col("score") * times).otherwise("score")
    if told:
        score = pl.when(is_b.cum_sum() == 1, is_b).then(1.01).otherwise(score)
    _, omitted, warnings = outcome(tmp_path, predictions().with_columns(score=score), by=["model"])
    assert omitted == {}
    assert told in warnings
    assert ("calibration" in warnings) == bool(told)


def test_groups_without_probabilities_say_so(tmp_path: Path) -> None:
    shifted = pl.when(pl.col("model") == "b").then(pl.col("score") * 4).otherwise("score").alias("score")
    run, omitted, _ = outcome(tmp_path, predictions().with_columns(shifted), by=["model"])
    assert omitted == {}
    errors = read_table(run, "threshold_sweep_calibration", SWEEP).sort("grouping", "model", "binning")
    assert errors["undefined"].to_list() == ["no_probability"] * 2 + [None] * 2 + ["no_probability"] * 2
    assert errors["n_outside"][0] > 0
    assert errors["ece"].null_count() == 4
    bins = read_table(run, "threshold_sweep_reliability", SWEEP)
    assert set(bins["model"]) == {"a"}


def test_scores_outside_are_an_error_where_calibration_is_asked_for(tmp_path: Path) -> None:
    frame = predictions().with_columns(pl.Series("score", [0.5, 1.5, -0.1, *predictions()["score"][3:]]))
    with pytest.raises(DataError, match=r"'score' .*2 rows.*row") as error:
        outcome(tmp_path, frame, calibration=True)
    assert "[0, 1]" in str(error.value) or "0" in str(error.value)


def test_missing_scores_are_no_probabilities(tmp_path: Path) -> None:
    frame = predictions().with_columns(pl.Series("score", [None, *predictions()["score"][1:]]))
    run, omitted, warnings = outcome(tmp_path / "true", frame, calibration=True, invalid_scores="missed")
    errors = read_table(run, "threshold_sweep_calibration", SWEEP)
    assert set(errors["undefined"]) == {"no_score"}
    assert read_table(run, "threshold_sweep_reliability", SWEEP).is_empty()
    assert omitted == {}
    _, omitted, warnings = outcome(tmp_path / "auto", frame, invalid_scores="missed")
    assert set(omitted) == BOTH
    assert "calibration" not in warnings


def test_methods_tell_the_error_beside_that_of_perfect_scores(plain: tuple[pl.DataFrame, pl.DataFrame]) -> None:
    table = plain[1].with_columns(pl.lit(0.1234).alias("ece"), pl.lit(0.0567).alias("ece_if_calibrated"))
    tested = table.with_columns(spiegelhalter_p_value=pl.lit(1e-9), hosmer_lemeshow_p_value=pl.lit(0.25))

    def told(table: pl.DataFrame, uncertainty: str = "jackknife") -> str:
        parameters = {"calibration_bins": 7, "uncertainty": uncertainty}
        return " ".join(calibration_sentences(Measured(parameters, {}, {}, {}, {"threshold_sweep_calibration": table})))

    assert "in 7 bins by quantile, with bands" in told(tested)
    words = "was 12.3% (5.7% is expected of perfect scores; Spiegelhalter: p < 0.0001; Hosmer and Lemeshow: p = 0.25)."
    assert words in told(tested)
    untested = table.with_columns(pl.lit(None, dtype=pl.Float64).alias("ece_if_calibrated"))
    assert told(untested, "none").endswith("was 12.3%.")
    assert "bands" not in told(untested, "none")
    assert told(table.clear()) == ""
    assert told(table.with_columns(pl.lit(None, dtype=pl.Float64).alias("ece"))) == ""


def test_metrics_have_errors_and_no_bins(tmp_path: Path) -> None:
    run, _, warnings = outcome(tmp_path, predictions(), cluster="user")
    metrics = read_table(run, "metrics", SWEEP)
    of_errors = metrics.filter(pl.col("result_table") == "threshold_sweep_calibration", pl.col("metric") == "ece")
    assert of_errors["criterion"].to_list() == ["binning=quantile", "binning=width"]
    assert "threshold_sweep_reliability" not in set(metrics["result_table"])
    assert "reliability" not in warnings  # bins of few clusters are marked, and no reason for a warning
    marks = set(read_table(run, "threshold_sweep_reliability", SWEEP)["interval_quality"])
    assert "few_clusters" in marks


def test_tables_are_not_made_where_they_are_not_wanted(tmp_path: Path) -> None:
    _, omitted, _ = outcome(tmp_path, predictions(), calibration=False)
    assert omitted == dict.fromkeys(BOTH, "calibration = false; calibration = true makes it")


def test_no_rows_make_empty_tables(tmp_path: Path) -> None:
    run, omitted, _ = outcome(tmp_path, predictions().clear(), allow_empty=True)
    assert omitted == {}
    assert set(read_table(run, "threshold_sweep_calibration", SWEEP)["undefined"]) == {"no_row"}


@pytest.mark.wide
def test_new_files_alone_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cells do not depend on the data, so that sums in them add up over files."""
    monkeypatch.setattr(f"{SUMS}.MOST_SCORES", 0)
    monkeypatch.setattr("pipeline.runs.evaluation.RACY_SECONDS", 0.0)
    folder = tmp_path / "days"
    folder.mkdir()
    keys: dict[str, Any] = {
        "thresholds": [0.5],
        "method": "binned",
        "outcomes": False,
        "units": False,
        "cluster": "user",
    }
    config = stage_config(tmp_path, SWEEP, {"predictions": predictions()}, **keys)
    config["stages"][0]["predictions"]["path"] = str(folder / "*.parquet")
    for day in range(3):
        predictions(day, rows=3000).with_columns(pl.col("score").round(2)).write_parquet(folder / f"{day}.parquet")
        run = pipeline.run(config) if day else None
    assert run is not None
    assert json.loads((run.path / "run.json").read_text())["reused"][SWEEP]["predictions"]["files_read"] == 1
    fresh = run_stages(config | {"output": str(tmp_path / "fresh")})
    for name in BOTH:
        assert_frame_equal(read_table(run, name, SWEEP), read_table(fresh, name, SWEEP))
