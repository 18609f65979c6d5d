"""The audit sample and what its labels say: against a draw in Python, a loop over the labels, and the metric."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from running import read_table, rows_by_status, run_before_after
from scipy import stats

from pipeline.base.errors import ConfigError, DataError
from pipeline.metrics.before_after.estimates import audited_precision
from pipeline.metrics.before_after.sensitivity import DOUBT

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

WINDOW = {"before": "48h", "after": "12h", "near": "12h"}
THRESHOLDS = [0.3, 0.5, 0.6, 0.8, 0.99]
AUDIT = {"threshold": 0.5, "size": 40, "seed": 7}


def frames(seed: int = 1) -> dict[str, pl.DataFrame]:
    """Every compared pair of 40 events, by the hour; a fifth from the event on are right and score high."""
    rng = np.random.default_rng(seed)
    event = np.repeat(np.arange(40), 60)
    lag = np.tile(np.arange(-48.0, 12.0), 40)
    right = (lag >= 0) & (rng.random(len(event)) < 0.2)
    score = np.where(right, rng.integers(45, 100, len(event)), rng.integers(0, 60, len(event))) / 100
    pairs = pl.DataFrame({"event_id": event, "article_id": range(len(event)), "score": score, "lag_hours": lag})
    kinds = pl.DataFrame({"event_id": range(40), "kind": ["x", "y"] * 20})
    return {"pairs": pairs.with_columns(right=pl.Series(right)), "events": kinds}


def drawn(pairs: pl.DataFrame, audit: dict[str, Any], *, above: bool = False) -> list[tuple[int, int]]:
    """The sample by its definition: the lowest digests of seed and keys."""
    matches = pairs.filter(pl.col("lag_hours").is_between(0, 12), pl.col("score") >= audit["threshold"])
    matches = matches.filter(pl.col("score") > audit["threshold"]) if above else matches
    rows = matches.select("event_id", "article_id").rows()

    def digest(row: tuple[int, int]) -> str:
        return hashlib.md5(f"{audit['seed']}:{row[0]}:{row[1]}".encode(), usedforsecurity=False).hexdigest()

    return sorted(rows, key=digest)[: audit["size"]]


def labels(pairs: pl.DataFrame, sample: list[tuple[int, int]]) -> pl.DataFrame:
    chosen = pl.DataFrame(sample, schema=["event_id", "article_id"], orient="row")
    return chosen.join(pairs, on=["event_id", "article_id"]).select("event_id", "article_id", is_match="right")


def run(folder: Path, inputs: dict[str, pl.DataFrame], **keys: Any) -> Run:  # noqa: ANN401 - keys of a config
    options = {"thresholds": THRESHOLDS, "window": WINDOW, "compared": "pairs", "audit": AUDIT}
    return run_before_after(folder, inputs, **(options | keys))


@pytest.mark.wide
@pytest.mark.parametrize("boundary", [">=", ">"])
def test_the_sample_has_the_lowest_digests_whatever_the_order_of_rows(tmp_path: Path, boundary: str) -> None:
    inputs = frames()
    expected = drawn(inputs["pairs"], AUDIT, above=boundary == ">")
    mixed = inputs | {"pairs": inputs["pairs"].sample(fraction=1, shuffle=True, seed=2)}
    for name, each in (("a", inputs), ("b", mixed)):
        sample = read_table(run(tmp_path / name, each, boundary=boundary), "before_after_audit_sample")
        assert sample["draw"].to_list() == list(range(1, 41))
        assert sample.select("event_id", "article_id").rows() == expected
    joined = sample.join(inputs["pairs"], on=["event_id", "article_id"])
    assert joined.filter(pl.col("score") != pl.col("score_right")).is_empty()
    assert joined.filter((pl.col("lag_hours") - pl.col("lag_hours_right")).abs() > 1 / 3.6e9).is_empty()


@pytest.mark.wide
def test_another_seed_draws_another_sample_and_a_smaller_size_draws_its_beginning(tmp_path: Path) -> None:
    first = read_table(run(tmp_path / "a", frames()), "before_after_audit_sample")
    smaller = read_table(run(tmp_path / "b", frames(), audit=AUDIT | {"size": 10}), "before_after_audit_sample")
    other = read_table(run(tmp_path / "c", frames(), audit=AUDIT | {"seed": 8}), "before_after_audit_sample")
    assert smaller.equals(first.head(10))
    assert not other.equals(first)
    everything = read_table(run(tmp_path / "d", frames(), audit=AUDIT | {"size": 10**6}), "before_after_audit_sample")
    assert everything.height == len(drawn(frames()["pairs"], AUDIT | {"size": 10**6}))


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("thresholds", [THRESHOLDS, "distinct"])
@pytest.mark.parametrize("boundary", [">=", ">"])
def test_labels_count_at_every_threshold_from_that_of_the_audit_on(
    tmp_path: Path, thresholds: list[float] | str, boundary: str
) -> None:
    inputs = frames()
    audited = labels(inputs["pairs"], drawn(inputs["pairs"], AUDIT, above=boundary == ">"))
    result = run(
        tmp_path, inputs | {"audited": audited}, by=["kind"], thresholds=thresholds, boundary=boundary, confidence=0.9
    )
    assert rows_by_status(result, "audited") == {"used": 40}
    table = read_table(result, "before_after_audit")
    assert (table["threshold"] >= 0.5).all()
    plain = read_table(result, "before_after_estimates").filter(pl.col("threshold") >= 0.5)
    both = audited.join(inputs["pairs"], on=["event_id", "article_id"]).join(inputs["events"], on="event_id")
    assert table.height == plain.height
    for row, other in zip(table.to_dicts(), plain.to_dicts(), strict=True):
        above = both["score"] >= row["threshold"] if boundary == ">=" else both["score"] > row["threshold"]
        kept = both.filter(above, pl.col("kind").is_in(["x", "y"] if row["kind"] is None else [row["kind"]]))
        n, k = kept.height, int(kept["is_match"].sum())
        assert (row["threshold"], row["n_audited"], row["n_right"]) == (other["threshold"], n, k)
        assert row["precision"] == other["precision"]
        expected = audited_precision(np.array([other["m_after"]]), np.array([n]), np.array([k]), confidence=0.9)
        if n == 0:
            assert (row["precision_audited"], row["precision_combined"], row["undefined"]) == (None, None, "no_audit")
            continue
        assert row["precision_audited"] == k / n
        assert row["precision_audited_lower"] == pytest.approx(expected.lower[0])
        assert row["precision_audited_upper"] == pytest.approx(expected.upper[0])
        assert row["undefined"] is None
        limits = [row[f"precision_combined{side}"] for side in ("_lower", "", "_upper")]
        assert limits == sorted(limits)
        assert row["kappa_lower"] <= 0.6
        assert row["kappa_upper"] >= 1.5
        assert 0 <= row["p_value"] <= 1


def test_labels_make_the_interval_narrower_where_they_agree(tmp_path: Path) -> None:
    inputs = frames()
    audited = labels(inputs["pairs"], drawn(inputs["pairs"], AUDIT))
    row = read_table(run(tmp_path, inputs | {"audited": audited}), "before_after_audit").row(0, named=True)
    truth = inputs["pairs"].filter(pl.col("lag_hours").is_between(0, 12), pl.col("score") >= 0.5)["right"].mean()
    assert row["p_value"] > 0.05
    assert row["precision_combined_lower"] <= truth <= row["precision_combined_upper"]
    widths = [row[f"{name}_upper"] - row[f"{name}_lower"] for name in ("precision_combined", "precision_audited")]
    assert widths[0] < widths[1]


def test_labels_that_contradict_the_estimate_raise_a_warning(tmp_path: Path) -> None:
    inputs = frames()
    audited = labels(inputs["pairs"], drawn(inputs["pairs"], AUDIT))
    wrong = run(tmp_path, inputs | {"audited": audited.with_columns(is_match=pl.lit(value=False))})
    said = [warning for warning in wrong.warnings if "checked matches" in warning]
    assert len(said) == 1
    assert "contradicts" in said[0]


@pytest.mark.wide
def test_where_the_prediction_is_not_known_only_the_sample_speaks(tmp_path: Path) -> None:
    inputs = frames()
    audited = labels(inputs["pairs"], drawn(inputs["pairs"], AUDIT))
    for name, keys, reason in (("a", {"uncertainty": "none"}, "none"), ("b", {"window": None}, "no_near")):
        options = {key: value for key, value in ({"window": WINDOW} | keys).items() if value is not None}
        given = {"thresholds": THRESHOLDS, "compared": "pairs", "audit": AUDIT} | options
        result = run_before_after(tmp_path / name, inputs | {"audited": audited}, **given)
        row = read_table(result, "before_after_audit").row(0, named=True)
        assert row["precision_audited"] is not None
        assert (row["precision_combined"], row["p_value"], row["undefined"]) == (None, None, reason)
        assert (row["kappa_lower"], row["kappa_upper"]) == (None, None)


def test_without_labels_there_is_a_sample_and_without_audit_there_is_none(tmp_path: Path) -> None:
    result = run(tmp_path / "a", frames())
    assert read_table(result, "before_after_audit").is_empty()
    plain = run_before_after(tmp_path / "b", frames(), thresholds=THRESHOLDS, window=WINDOW, compared="pairs")
    assert read_table(plain, "before_after_audit_sample").is_empty()


def test_pairs_that_the_sample_cannot_hold_are_refused(tmp_path: Path) -> None:
    inputs = frames()
    pairs = inputs["pairs"]
    outside = {
        "low": pairs.filter(pl.col("score") < 0.5, pl.col("lag_hours") >= 0),
        "early": pairs.filter(pl.col("score") >= 0.5, pl.col("lag_hours") < 0),
        "unknown": pairs.with_columns(article_id=pl.col("article_id") + 10**6),
    }
    for name, each in outside.items():
        audited = each.head(2).select("event_id", "article_id", is_match="right")
        with pytest.raises(DataError, match=r"2 pairs are no match after their event with a score from 0\.5 on"):
            run(tmp_path / name, inputs | {"audited": audited})


def test_matches_that_were_not_drawn_are_told(tmp_path: Path) -> None:
    inputs = frames()
    sample = drawn(inputs["pairs"], AUDIT | {"seed": 99})
    result = run(tmp_path, inputs | {"audited": labels(inputs["pairs"], sample)})
    missing = len(set(sample) - set(drawn(inputs["pairs"], AUDIT)))
    assert any(f"{missing} of 40 audited pairs are not in the sample" in warning for warning in result.warnings)


def test_labels_that_are_missing_or_repeat_are_refused(tmp_path: Path) -> None:
    inputs = frames()
    audited = labels(inputs["pairs"], drawn(inputs["pairs"], AUDIT))
    missing = audited.with_columns(is_match=pl.when(pl.int_range(pl.len()) > 0).then("is_match"))
    with pytest.raises(DataError, match="'is_match' is NULL"):
        run(tmp_path / "a", inputs | {"audited": missing})
    with pytest.raises(DataError, match="repeat"):
        run(tmp_path / "b", inputs | {"audited": pl.concat([audited, audited[:1]])})


def test_parameters_that_do_not_fit_are_refused(tmp_path: Path) -> None:
    inputs = frames()
    audited = labels(inputs["pairs"], drawn(inputs["pairs"], AUDIT))
    keys: dict[str, Any] = {"thresholds": THRESHOLDS, "compared": "pairs"}
    with pytest.raises(ConfigError, match="audited goes with audit"):
        run_before_after(tmp_path, inputs | {"audited": audited}, **keys)
    with pytest.raises(ConfigError, match="does not go with duplicates"):
        run_before_after(tmp_path, inputs, audit=AUDIT, duplicates="keep", **keys)
    with pytest.raises(DataError, match="audit needs article_id"):
        run_before_after(tmp_path, inputs | {"pairs": inputs["pairs"].drop("article_id")}, audit=AUDIT, **keys)
    with pytest.raises(ConfigError, match="size"):
        run_before_after(tmp_path, inputs, audit=AUDIT | {"size": 0}, **keys)


@pytest.mark.wide
def test_a_trend_before_the_event_widens_the_range_of_kappa(tmp_path: Path) -> None:
    """Matches rise day by day before the event: the trend tells by how much they would until after."""
    inputs = frames()
    rng = np.random.default_rng(3)
    keep = rng.random(inputs["pairs"].height) < np.exp(inputs["pairs"]["lag_hours"].to_numpy().clip(None, 0) / 24)
    rising = inputs["pairs"].with_columns(score=pl.when(pl.Series(keep)).then("score").otherwise(0.0))
    inputs = inputs | {"pairs": rising}
    audited = labels(rising, drawn(rising, AUDIT))
    result = run(tmp_path, inputs | {"audited": audited}, lag_thresholds=[0.3])
    slope = read_table(result, "before_after_trend").row(0, named=True)
    drift = slope["slope"] * 30 / 24
    error = (slope["slope_upper"] - slope["slope_lower"]) / 2 / stats.norm.ppf(0.975) * 30 / 24
    variance = DOUBT**2 + drift**2 - error**2
    plain = read_table(run(tmp_path / "plain", inputs | {"audited": audited}), "before_after_audit").row(0, named=True)
    row = read_table(result, "before_after_audit").row(0, named=True)
    assert row["kappa_upper"] == pytest.approx(stats.gamma(1 / variance, scale=variance).ppf(0.975))
    assert row["kappa_upper"] > plain["kappa_upper"]
    widths = [each["precision_combined_upper"] - each["precision_combined_lower"] for each in (row, plain)]
    assert widths[0] >= widths[1]
