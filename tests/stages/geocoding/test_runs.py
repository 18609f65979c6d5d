from __future__ import annotations

import math
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from reference_toponyms import tolerance_counts
from running import read_table, rows_by_status, run_stages, stage_config

from pipeline.base.errors import ConfigError, DataError
from pipeline.metrics.geocoding import error_statistics, haversine
from pipeline.metrics.uncertainty.jackknife import log_interval
from pipeline.stages.geocoding import planning

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.runs.stage_results import Run

KIND = "geocoding"
TOLERANCES = [50.0, 500.0, 5000.0]
SYSTEMS = ["x", "y"]


def run_on(folder: Path, *given: pl.DataFrame, **keys: Any) -> Run:  # noqa: ANN401
    return run_stages(stage_config(folder, KIND, dict(zip(("gold", "predicted"), given, strict=True)), **keys))


def table(run: Run, name: str) -> pl.DataFrame:
    return read_table(run, f"{KIND}_{name}", KIND)


def random_places(rng: np.random.Generator, n: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Gold places, and up to several candidates of two systems near them, some without coordinates, some spurious."""
    gold = pl.DataFrame(
        {
            "mention_id": np.arange(n),
            "latitude": rng.uniform(-90, 90, n),
            "longitude": rng.uniform(-180, 180, n),
            "doc_id": [f"d{number}" for number in rng.integers(0, 9, n)],
            "start": 10 * np.arange(n),
            "end": 10 * np.arange(n) + 5,
        }
    )
    row = rng.integers(0, n, 3 * n)
    near = gold[row]
    shift = rng.choice([0.01, 1, 30], 3 * n)
    latitude = np.clip(near["latitude"] + shift * rng.standard_normal(3 * n), -90, 90)
    longitude = (near["longitude"] + shift * rng.standard_normal(3 * n)).clip(-180, 360)
    missing = rng.random(3 * n) < 0.2
    spurious = rng.random(3 * n) < 0.1
    move = pl.Series(1000 * spurious.astype(np.int64))
    predicted = near.with_columns(
        pl.Series("latitude", np.where(missing, np.nan, latitude)),
        pl.Series("longitude", np.where(missing, np.nan, longitude)),
        system=pl.Series([SYSTEMS[number] for number in rng.integers(0, 2, 3 * n)]),
        rank=pl.Series(rng.permutation(3 * n).astype(np.float64)),
        mention_id=pl.col("mention_id") + move,
        start=pl.col("start") + 100_000 * pl.Series(spurious.astype(np.int64)),
    ).with_columns(end=pl.col("start") + 5)
    return gold, predicted


def distances_by_hand(gold: pl.DataFrame, predicted: pl.DataFrame, candidates: str) -> tuple[np.ndarray, int]:
    """Distance of every gold place from the chosen candidate, and the number of located spurious mentions."""
    distances, seen = [], set()
    for place in gold.to_dicts():
        own = predicted.filter(mention_id=place["mention_id"]).sort("rank").to_dicts()
        seen.add(place["mention_id"])
        ours = [np.array([place[name]]) for name in ("latitude", "longitude")]
        theirs = [[np.array([row[name]]) for name in ("latitude", "longitude")] for row in own]
        found = [float(haversine(*ours, *each)[0]) for each in theirs]
        found = found[:1] if candidates == "first" else [each for each in found if not np.isnan(each)]
        distances.append(min(found, default=np.nan))
    others = predicted.filter(~pl.col("mention_id").is_in(sorted(seen))).sort("rank")
    if candidates == "first":
        others = others.unique("mention_id", keep="first", maintain_order=True)
    located = others.filter(pl.col("latitude").is_not_nan())["mention_id"].n_unique()
    return np.array(distances), located


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("match", [None, "span"], ids=["aligned", "matched"])
@pytest.mark.parametrize("candidates", ["first", "closest", "error"])
def test_every_table_against_brute_force(tmp_path: Path, candidates: str, match: str | None) -> None:
    rng = np.random.default_rng(len(candidates))
    gold, predicted = random_places(rng, 60)
    if candidates == "error":
        predicted = predicted.unique(["mention_id", "system"], keep="first", maintain_order=True)
    keys = {} if match is None else {"match": match}
    by = [["system"]]
    run = run_on(tmp_path, gold, predicted, by=by, candidates=candidates, tolerances_km=TOLERANCES, **keys)
    scores, errors = table(run, "scores"), table(run, "errors")
    for system in SYSTEMS:
        distances, n_spurious = distances_by_hand(gold, predicted.filter(system=system), candidates)
        expected, own = tolerance_counts(distances, TOLERANCES), scores.filter(system=system)
        for name in expected.columns:
            assert own[name].to_list() == pytest.approx(expected[name].to_list(), rel=1e-14), name
        end_to_end = tolerance_counts(distances, TOLERANCES, n_spurious=n_spurious)
        assert own["n_spurious"].to_list() == [n_spurious] * 3
        assert own["precision_end_to_end"].to_list() == pytest.approx(end_to_end["precision"].to_list(), rel=1e-14)
        assert own["f1_end_to_end"].to_list() == pytest.approx(end_to_end["f1"].to_list(), rel=1e-14)
        statistics, row = error_statistics(distances), errors.filter(system=system).row(0, named=True)
        assert {name: row[name] for name in statistics} == pytest.approx(statistics, rel=1e-9)
        outcomes = table(run, "outcomes").filter(system=system).sort("mention_id")
        np.testing.assert_allclose(outcomes["distance_km"].to_numpy(), distances, rtol=1e-9, atol=1e-9)
        assert (outcomes["outcome"] == "tp").sum() == expected["tp"][0]
    used = rows_by_status(run, "predicted", KIND)
    number = predicted.unique(["mention_id", "system"]).height
    assert used == {"used": number} | ({"duplicate": predicted.height - number} if candidates != "error" else {})


def test_a_distance_equal_to_the_tolerance(tmp_path: Path) -> None:
    gold, predicted = random_places(np.random.default_rng(1), 20)
    predicted = predicted.filter(system="x").unique("mention_id", keep="first", maintain_order=True)
    first = run_on(tmp_path / "first", gold, predicted)
    equal = table(first, "outcomes")["distance_km"].drop_nulls().sort()
    for boundary, expected in (("<=", 4), ("<", 3)):
        run = run_on(tmp_path / boundary, gold, predicted, tolerances_km=[equal[3]], tolerance_boundary=boundary)
        assert table(run, "scores")["tp"].to_list() == [expected]
        assert (table(run, "outcomes")["outcome"] == "tp").sum() == expected


@pytest.mark.wide
def test_parts_of_the_rows_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gold, predicted = random_places(np.random.default_rng(2), 40)
    keys = {"match": "span", "candidates": "closest", "by": ["system"]}
    whole = run_on(tmp_path / "whole", gold, predicted, **keys)
    monkeypatch.setattr("pipeline.plan.counts.BATCH_ROWS", 11)
    parts = run_on(tmp_path / "parts", gold.reverse(), predicted.reverse(), **keys)
    for name in ("scores", "errors", "outcomes"):
        assert table(parts, name).equals(table(whole, name)), name


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("candidates", ["first", "closest"])
def test_distances_on_the_ellipsoid_go_another_way_to_the_same_tables(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, candidates: str
) -> None:
    """With the sphere in place of the ellipsoid the two ways, SQL and arrays, agree."""
    monkeypatch.setattr(planning, "geodesic", haversine)
    monkeypatch.setattr(planning, "geodesic", haversine)
    gold, predicted = random_places(np.random.default_rng(3), 60)
    keys = {"by": ["system"], "candidates": candidates, "tolerances_km": TOLERANCES}
    sphere = run_on(tmp_path / "sphere", gold, predicted, **keys)
    other = run_on(tmp_path / "other", gold, predicted, distance="geodesic", **keys)
    assert table(sphere, "scores").equals(table(other, "scores"))
    first, second = (table(run, "outcomes") for run in (sphere, other))
    assert first.drop("distance_km").equals(second.drop("distance_km"))
    np.testing.assert_allclose(first["distance_km"], second["distance_km"], rtol=1e-9, atol=1e-9)


def test_distances_on_the_ellipsoid_need_pyproj(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyproj", None)
    gold, predicted = random_places(np.random.default_rng(4), 9)
    with pytest.raises(ConfigError, match="needs the package pyproj") as caught:
        run_on(tmp_path, gold, predicted, distance="geodesic", candidates="closest")
    assert "haversine" in str(caught.value)


def test_groups_of_gold_columns_add_up(tmp_path: Path) -> None:
    gold, predicted = random_places(np.random.default_rng(5), 60)
    gold = gold.with_columns(country=pl.Series(["a", "b", "c"] * 20))
    run = run_on(tmp_path, gold, predicted, by=["country", "system"], candidates="closest", tolerances_km=[500])
    scores = table(run, "scores")
    total, groups = scores.filter(grouping="all"), scores.filter(pl.col("grouping") != "all")
    for name in ("n_gold", "n_attempted", "tp", "fp", "fn", "n_spurious"):
        assert groups[name].sum() == total[name].item(), name
    assert groups.filter(pl.col("country").is_not_null())["n_spurious"].sum() == 0
    assert total["n_gold"].item() == 2 * 60


@pytest.mark.wide
def test_groups_without_gold_mentions_have_errors_that_are_null(tmp_path: Path) -> None:
    gold = pl.DataFrame({"mention_id": ["a", "b"], "latitude": [0.0, 9.0], "longitude": [0.0, 9.0], "land": ["A", "B"]})
    predicted = gold.drop("land").with_columns(system=pl.Series(["x", "y"]), mention_id=pl.Series(["a", "d"]))
    for name, rows, by in (
        ("spurious", gold, ["land"]),
        ("empty", gold.clear(), ["system"]),
        ("none", gold, ["system"]),
    ):
        run = run_on(tmp_path / name, rows, predicted, by=by, tolerances_km=[10])
        errors, keys = table(run, "errors"), ["grouping", *by, "n_gold"]
        assert errors.select(keys).equals(table(run, "scores").select(keys)), name
        without = errors.filter(n_gold=0)
        assert without.height == {"spurious": 1, "empty": 3, "none": 0}[name]
        assert (
            without.select("n_located", "mean_km", "median_km", "log_error_auc").rows()
            == [(0, None, None, None)] * without.height
        )
        assert any("no gold mention" in each for each in run.warnings) == (name == "empty")


def test_a_tolerance_of_zero_is_zero_without_a_sign(tmp_path: Path) -> None:
    run = run_on(tmp_path, GOLD, GOLD, tolerances_km=[0, 10, 161])
    assert [str(each) for each in table(run, "scores")["tolerance_km"]] == ["0.0", "10.0", "161.0"]
    assert table(run, "scores")["tp"].to_list() == [2, 2, 2]


def test_the_mean_error_has_jackknife_limits(tmp_path: Path) -> None:
    """With one mention in each document the jackknife variance of the mean is s² / n."""
    gold, predicted = random_places(np.random.default_rng(6), 50)
    predicted = predicted.filter(system="x").unique("mention_id", keep="first", maintain_order=True)
    row = table(run_on(tmp_path, gold.drop("doc_id"), predicted), "errors").row(0, named=True)
    distances, _ = distances_by_hand(gold, predicted, "closest")
    known = distances[~np.isnan(distances)]
    assert row["mean_km"] == pytest.approx(known.mean(), rel=1e-9)
    error = known.std(ddof=1) / np.sqrt(len(known))
    width = np.log(row["mean_km_upper"] / row["mean_km"])
    quantile = width * known.mean() / error
    assert 1.95 < quantile < 2.8  # t with at least 4 degrees of freedom
    limits = log_interval(known.mean(), error, quantile)
    assert row["mean_km_lower"] == pytest.approx(float(limits[0]), rel=1e-9)


def test_mentions_that_are_not_located_may_have_the_largest_error(tmp_path: Path) -> None:
    gold, predicted = random_places(np.random.default_rng(7), 30)
    run = run_on(tmp_path, gold, predicted, candidates="closest", by=[["system"]], missing_errors="max_error")
    for system in SYSTEMS:
        distances, _ = distances_by_hand(gold, predicted.filter(system=system), "closest")
        row = table(run, "errors").filter(system=system).row(0, named=True)
        assert row["mean_km"] == pytest.approx(error_statistics(distances, missing="max_error")["mean_km"], rel=1e-9)


@pytest.mark.first_cases(2)
@pytest.mark.parametrize("empty", ["gold", "predicted", "both"])
@pytest.mark.parametrize("match", [None, "span"], ids=["aligned", "matched"])
def test_empty_inputs_have_results(tmp_path: Path, empty: str, match: str | None) -> None:
    gold, predicted = random_places(np.random.default_rng(8), 5)
    predicted = predicted.unique("mention_id", keep="first", maintain_order=True)
    gold = gold.clear() if empty != "predicted" else gold
    predicted = predicted.clear() if empty != "gold" else predicted
    keys = {"allow_empty": empty == "both"} | ({} if match is None else {"match": match})
    run = run_on(tmp_path, gold, predicted, tolerances_km=[10], **keys)
    row = table(run, "scores").row(0, named=True)
    assert (row["n_gold"], row["n_attempted"], row["precision"]) == (gold.height, 0, None)
    assert row["recall"] == (0.0 if empty == "predicted" else None)
    assert table(run, "errors")["mean_km"].to_list() == [None]
    assert any("no gold mention" in each or "no located" in each for each in run.warnings)


# Faults --------------------------------------------------------------------------------------------------------------

GOLD = pl.DataFrame({"mention_id": ["a", "b"], "latitude": [52.0, 10.0], "longitude": [5.0, 120.0]})

NO_ID = pl.lit(None, dtype=pl.String).alias("mention_id")


def with_value(name: str, value: float | None) -> pl.DataFrame:
    return GOLD.with_columns(pl.when(mention_id="b").then(pl.lit(value)).otherwise(name).alias(name))


@pytest.mark.first_cases(2)
@pytest.mark.parametrize(
    ("gold", "predicted", "keys", "words"),
    [
        (GOLD, with_value("latitude", 95.0), {}, r"predicted: column 'latitude' is beyond ±90 in 1 row of .*at row 2"),
        (GOLD, with_value("longitude", 361.0), {}, "predicted: column 'longitude' is outside -180 to 360 in 1 row"),
        (with_value("longitude", -181.0), GOLD, {}, "gold: column 'longitude' is outside"),
        (GOLD, with_value("latitude", None), {}, "'latitude' is missing where 'longitude' is not"),
        (GOLD, with_value("longitude", float("nan")), {}, "'longitude' is missing where 'latitude' is not"),
        (
            GOLD,
            with_value("latitude", math.inf),
            {},
            "predicted: column 'latitude' is infinite in 1 row of .*at row 2",
        ),
        (with_value("longitude", -math.inf), GOLD, {}, "gold: column 'longitude' is infinite in 1 row of .*at row 2"),
        (GOLD, GOLD.with_columns(latitude=math.inf, longitude=-math.inf), {}, "'latitude' is infinite in 2 rows"),
        (GOLD.with_columns(latitude=None, longitude=None), GOLD, {}, "gold: column 'latitude' is NULL"),
        (pl.concat([GOLD, GOLD]), GOLD, {}, "gold: mention_id repeats: mention_id = a"),
        (GOLD, pl.concat([GOLD, GOLD]), {}, 'candidates = "first"'),
        (GOLD, GOLD, {"candidates": "first"}, "needs the column rank"),
        (GOLD, GOLD.with_columns(mention_id=1), {}, "mention_id is .*cannot be compared"),
        (GOLD, GOLD.drop("mention_id"), {}, "has no column 'mention_id'"),
        (GOLD.with_columns(NO_ID), GOLD, {}, "gold: column 'mention_id' is NULL"),
        (GOLD, GOLD.with_columns(NO_ID), {}, "'mention_id' is NULL"),
        (GOLD, GOLD, {"match": "span"}, "has no column 'doc_id'"),
        (GOLD, GOLD, {"match": "text", "candidates": "closest"}, "needs start and end"),
        (GOLD, GOLD, {"cluster": "country"}, "has no column 'country'"),
    ],
)
def test_inputs_at_fault_are_refused(
    tmp_path: Path, gold: pl.DataFrame, predicted: pl.DataFrame, keys: dict[str, Any], words: str
) -> None:
    with pytest.raises(DataError, match=words):
        run_on(tmp_path, gold, predicted, **keys)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("match", [None, "span"], ids=["aligned", "matched"])
def test_infinite_coordinates_are_found_in_files_of_folders(tmp_path: Path, match: str | None) -> None:
    """Files of several grouping values are read as several scans."""
    place = {"doc_id": "d", "start": 0, "end": 5}
    gold = GOLD.head(1).with_columns(**{name: pl.lit(value) for name, value in place.items()})
    for name, latitude in (("x", 52.0), ("y", math.inf)):
        (tmp_path / "predicted" / f"system={name}").mkdir(parents=True)
        rows = gold.with_columns(latitude=latitude)
        rows.write_parquet(tmp_path / "predicted" / f"system={name}" / "rows.parquet")
    config = stage_config(
        tmp_path, KIND, {"gold": gold}, by=[["system"]], **({} if match is None else {"match": match})
    )
    config["stages"][0]["predicted"] = {"path": str(tmp_path / "predicted")}
    with pytest.raises(DataError, match=r"'latitude' is infinite in 1 row of .*system=y/rows.parquet, first at row 1"):
        run_stages(config)
    config["stages"][0]["predicted"]["where"] = "system = 'x'"
    assert table(run_stages(config), "scores").select("system", "tp").unique().rows() == [("x", 1)]


def test_exchanged_coordinates_are_named_where_they_cannot_be_meant(tmp_path: Path) -> None:
    exchanged = GOLD.select("mention_id", latitude="longitude", longitude="latitude")
    with pytest.raises(DataError, match="'latitude' and 'longitude' are most likely exchanged"):
        run_on(tmp_path, GOLD, exchanged)


def test_exchanged_coordinates_that_could_be_meant_raise_a_warning(tmp_path: Path) -> None:
    gold = GOLD.with_columns(longitude=pl.Series([5.0, 60.0]))
    exchanged = gold.select("mention_id", latitude="longitude", longitude="latitude")
    run = run_on(tmp_path / "exchanged", gold, exchanged)
    assert any("2 of 2 located mentions would be right with latitude and longitude" in each for each in run.warnings)
    right = run_on(tmp_path / "right", gold, gold).warnings
    assert not any("located mentions would be right" in each for each in right)


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"thresholds": [0.5]}, "geocoding has no thresholds"),
        ({"boundary": ">"}, "tolerance_boundary"),
        ({"duplicates": "keep"}, "candidates"),
        ({"match_type": True}, "match_type goes with match"),
        ({"tolerances_km": []}, "empty"),
        ({"tolerances_km": [10, 5]}, "must rise"),
        ({"tolerances_km": [-1, 5]}, "at least 0"),
        ({"match": "span", "cluster": "country"}, "does not go with match"),
        *(({"by": [[name]]}, f"'{name}' is also a column") for name in ("threshold", "N_predicted", "gold_start")),
    ],
)
def test_keys_that_do_not_fit_are_refused(tmp_path: Path, keys: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        run_on(tmp_path, GOLD, GOLD, **keys)
