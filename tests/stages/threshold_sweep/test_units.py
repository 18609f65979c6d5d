"""The table of units: against scikit-learn and the errors of the areas, from rows in order and from cells of scores."""

from __future__ import annotations

import datetime as dt
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from running import run_stages, stage_config
from sklearn.metrics import average_precision_score, roc_auc_score

import thresher
from pipeline.base.errors import ConfigError, DataError
from pipeline.engines import duckdb as engine
from pipeline.plan import units

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ROWS = 480
AREAS = ("average_precision", "pr_auc", "roc_auc")
HOSTILE = "</script><img onerror=x>\n"
KEYS: dict[str, Any] = {"by": ["model"], "cluster": "doc", "duplicates": "keep"}


def predictions(seed: int = 3, decimals: int = 2) -> pl.DataFrame:
    rng = np.random.default_rng(seed)
    label, doc = rng.uniform(size=ROWS) < 0.4, rng.integers(0, 12, ROWS)
    return pl.DataFrame(
        {
            "item": rng.permutation(ROWS),
            "score": np.round(rng.uniform(size=ROWS) + 0.4 * label + 0.02 * doc, decimals),
            "label": label,
            "doc": [f"d{number:02}" for number in doc],
            "other": rng.integers(0, 9, ROWS),
            "model": [(HOSTILE, "b", None)[number] for number in rng.integers(0, 3, ROWS)],
            "mass": rng.choice([0.0, 0.5, 1.0, 3.0], ROWS),
        }
    )


def swept(frame: object, columns: dict[str, Any] | None = None, **keys: Any) -> Any:  # noqa: ANN401 - a result
    source = {"path": frame, "columns": {"id": "item"} if columns is None else columns}
    return thresher.threshold_sweep(predictions=source, **KEYS | keys)


def groups(frame: pl.DataFrame, table: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, pl.DataFrame]]:
    """The rows of every group, and those of a table."""
    yield frame, table.filter(pl.col("grouping") == "all")
    for model in (HOSTILE, "b", None):
        of_model = pl.col("model").eq_missing(pl.lit(model))
        yield frame.filter(of_model), table.filter(of_model, pl.col("grouping") == "model")


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("keys", [{}, {"boundary": ">", "thresholds": [0.2, 0.5, 0.9]}, {"method": "binned"}])
def test_units_count_their_rows_and_add_up_to_the_areas(keys: dict[str, Any]) -> None:
    frame = predictions()
    result = swept(frame, **keys)
    rows_of_areas = groups(frame, result.areas)
    for (rows, table), (_, areas) in zip(groups(frame, result.units), rows_of_areas, strict=True):
        (area,) = areas.to_dicts()
        label, score = rows["label"].to_numpy(), rows["score"].to_numpy()
        expected = {
            "average_precision": average_precision_score(label, score),
            "roc_auc": roc_auc_score(label, score),
            "pr_auc": area["pr_auc"],
        }
        for name in AREAS:
            assert table[name].mean() == pytest.approx(expected[name], abs=1e-13)
            assert table[name].std() / len(table) ** 0.5 == pytest.approx(area[f"{name}_se"], rel=1e-3)
        (threshold,) = table["threshold"].unique()
        retrieved = pl.col("score") > threshold if keys.get("boundary") == ">" else pl.col("score") >= threshold
        counts = rows.group_by(unit="doc").agg(
            n=pl.len(),
            n_positive=pl.col("label").sum(),
            tp=(retrieved & pl.col("label")).sum(),
            fp=(retrieved & ~pl.col("label")).sum(),
            fn=(~retrieved & pl.col("label")).sum(),
            tn=(~retrieved & ~pl.col("label")).sum(),
        )
        actual = table.select(counts.columns).sort("unit")
        assert_frame_equal(actual, counts.sort("unit").cast(actual.schema))


def test_weights_count_in_units_as_in_areas() -> None:
    frame = predictions()
    result = swept(frame, {"weight": "mass", "id": "item"})
    for (rows, table), (_, areas) in zip(groups(frame, result.units), groups(frame, result.areas), strict=True):
        weights = rows["mass"].to_numpy()
        expected = roc_auc_score(rows["label"], rows["score"], sample_weight=weights)
        assert table["roc_auc"].mean() == pytest.approx(expected, abs=1e-13)
        assert table["weight"].sum() == weights.sum()
        assert table["weight_positive"].sum() == weights[rows["label"].to_numpy()].sum()
        cells = [f"{name}_weight" for name in ("tp", "fp", "fn", "tn")]
        assert table.select(pl.sum_horizontal(cells)).to_series().to_list() == table["weight"].to_list()
        assert table["pr_auc"].std() / len(table) ** 0.5 == pytest.approx(areas["pr_auc_se"].item(), rel=1e-3)


@pytest.mark.first_cases(1)
@pytest.mark.parametrize(
    ("keys", "columns"),
    [
        ({"thresholds": [0.2, 0.5, 0.9], "boundary": ">"}, {"id": "item"}),
        ({"cluster": None, "by": [["model"]]}, {"id": "item", "weight": "mass"}),
        ({"invalid_scores": "missed", "by": [[]]}, {"weight": "mass"}),
    ],
)
def test_cells_of_single_scores_add_up_to_the_same(
    keys: dict[str, Any], columns: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = predictions()
    if "invalid_scores" in keys:
        missing = pl.int_range(pl.len()) % 9 == 0
        frame = frame.with_columns(pl.when(missing).then(float("nan")).otherwise("score").alias("score"))
    in_order = swept(frame, columns, **keys, units=True).units
    monkeypatch.setattr(units, "MOST_ROWS_IN_ORDER", 0)
    assert_frame_equal(swept(frame, columns, **keys, units=True).units, in_order, abs_tol=1e-9)


def test_cells_of_many_scores_are_near(monkeypatch: pytest.MonkeyPatch) -> None:
    """2,000 scores of one binade and as many below it, in 1,000 cells that become finer where that matters."""
    rng = np.random.default_rng(8)
    label, doc = rng.uniform(size=4000) < 0.2, rng.integers(0, 60, 4000)
    score = np.exp(3 * rng.normal(label + 0.1 * (doc % 4)))
    frame = pl.DataFrame({"score": score, "label": label, "doc": doc})
    keys: dict[str, Any] = {"columns": {}, "by": [[]], "thresholds": [0.5, 2.0, 30.0], "units": True}
    exact = swept(frame, **keys)
    monkeypatch.setattr(units, "MOST_ROWS_IN_ORDER", 0)
    monkeypatch.setattr(units, "CELLS", 1000)
    near = swept(frame, **keys)
    for name in AREAS:
        assert near.units[name].mean() == pytest.approx(exact.areas[name].item(), abs=1e-13)
        spread = exact.units[name].std()
        assert (near.units[name] - exact.units[name]).std() < 0.03 * spread
        assert near.units[name].std() == pytest.approx(spread, rel=0.005)
    assert_frame_equal(near.units.drop(AREAS), exact.units.drop(AREAS))


@pytest.mark.wide
def test_neither_order_nor_files_nor_blocks_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    frame, columns = predictions(decimals=9), {"weight": "mass"}
    keys: dict[str, Any] = {"by": [[]], "thresholds": [0.2, 0.5], "units": True}
    for most in (10**6, 0):
        monkeypatch.setattr(units, "MOST_ROWS_IN_ORDER", most)
        whole = swept(frame, columns, **keys).units
        shuffled = frame.sample(fraction=1, shuffle=True, seed=4)
        assert_frame_equal(swept(shuffled, columns, **keys).units, whole, check_exact=True)
        with monkeypatch.context() as patch:
            patch.setattr(engine, "BLOCK_ROWS", 64)
            parts = swept([shuffled[:200], shuffled[200:]], columns, **keys).units
        assert_frame_equal(parts, whole, abs_tol=1e-13)  # areas are added up block by block


@pytest.mark.wide
def test_units_are_the_first_cluster_else_the_items() -> None:
    frame = predictions()
    assert swept(frame, cluster=["doc", "other"], by=[[]]).units["unit"].unique().sort().to_list() == sorted(
        set(frame["doc"])
    )
    items = swept(frame, cluster=None, by=[[]])
    assert items.units["unit"].to_list() == list(range(ROWS))
    for name in AREAS:
        error = items.units[name].std() / ROWS**0.5
        assert error == pytest.approx(items.areas[f"{name}_se"].item(), rel=0.002)
    fixed = swept(frame, cluster=None, by=[[]], class_sizes="fixed")
    for name in AREAS:
        error = fixed.units[name].std() / ROWS**0.5
        assert error == pytest.approx(fixed.areas[f"{name}_se"].item(), rel=1e-9)
    days = frame.with_columns(doc=pl.lit(dt.date(2026, 1, 1)) + pl.duration(days=pl.col("other")))
    assert swept(days, by=[[]]).units["unit"][0] == "2026-01-01"


def test_without_a_threshold_there_are_no_counts_and_without_positives_no_contributions() -> None:
    frame = predictions().with_columns(model=pl.when("label").then(pl.lit("b")).otherwise(pl.lit("none")))
    table = swept(frame, operating_points=[{"min_precision": 0.999, "confidence": 0.95}], by=[[], ["model"]]).units
    assert table.filter(pl.col("grouping") == "all")["tp"].null_count() == 12
    none = table.filter(model="none")
    assert none.select(AREAS).null_count().row(0) == (none.height,) * 3
    assert table.filter(model="b").select("average_precision", "pr_auc").mean().row(0) == (1.0, 1.0)
    assert table.filter(model="b")["roc_auc"].null_count() == 12


# What is left out or refused ------------------------------------------------------------------------------------------


def config(folder: Path, frame: pl.DataFrame, columns: dict[str, str], **keys: Any) -> dict[str, Any]:  # noqa: ANN401
    return stage_config(folder, "threshold_sweep", {"predictions": frame}, predictions={"columns": columns}, **keys)


def test_rows_without_a_unit_have_no_table(tmp_path: Path) -> None:
    frame = predictions()
    run = run_stages(config(tmp_path / "auto", frame, {}))
    assert "give cluster, or map the column that names the item" in run.stages[0].omitted["threshold_sweep_units"]
    (pooled,) = run.warnings
    assert "one number is of all values of 'model'" in pooled
    with pytest.raises(ConfigError, match="nothing tells which rows are of one unit") as refused:
        run_stages(config(tmp_path / "asked", frame, {}, units=True))
    assert "Give cluster, or map" in str(refused.value.remedy)
    run = run_stages(config(tmp_path / "off", frame, {"id": "item"}, units=False))
    assert "units = true makes it" in run.stages[0].omitted["threshold_sweep_units"]


def test_rows_without_an_id_are_no_items(tmp_path: Path) -> None:
    frame = predictions().with_columns(item=pl.when(pl.col("item") > 2).then("item"))
    run = run_stages(config(tmp_path / "auto", frame, {"id": "item"}))
    assert "'item' is NULL or not finite in 3 rows" in run.stages[0].omitted["threshold_sweep_units"]
    with pytest.raises(DataError, match="'item' is NULL or not finite in 3 rows"):
        run_stages(config(tmp_path / "asked", frame, {"id": "item"}, units=True))


COST = {"cost": {"fp": 1, "fn": 4, "tn": 0.5}}


def cost_per_row(rows: pl.DataFrame, threshold: float) -> float:
    retrieved, label, mass = (rows["score"] >= threshold).to_numpy(), rows["label"].to_numpy(), rows["mass"].to_numpy()
    costs = np.where(label, np.where(retrieved, 0.0, 4.0), np.where(retrieved, 1.0, 0.5))
    return float(costs @ mass / mass.sum())


@pytest.mark.first_cases(1)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_contributions_to_the_cost_are_those_of_the_cost_without_each_unit(*, is_weighted: bool) -> None:
    frame = predictions() if is_weighted else predictions().with_columns(mass=1.0)
    columns = {"id": "item"} | ({"weight": "mass"} if is_weighted else {})
    result = swept(frame, columns, operating_points=[COST, {"beta": 1}])
    points = result.operating_points.filter(pl.col("criterion").str.starts_with("cost"))
    of_groups = zip(groups(frame, result.units), groups(frame, points), strict=True)
    for (rows, table), (_, point) in of_groups:
        threshold, expected = point.row(0, named=True)["threshold"], point.row(0, named=True)["cost_per_row"]
        assert cost_per_row(rows, threshold) == pytest.approx(expected)
        without = np.array([cost_per_row(rows.filter(pl.col("doc") != unit), threshold) for unit in table["unit"]])
        pseudo = expected + (len(without) - 1) * (without.mean() - without)
        assert table["cost_per_row"].to_numpy() == pytest.approx(pseudo)
        assert table["cost_per_row"].mean() == pytest.approx(expected)


def test_where_every_row_is_a_unit_its_contribution_is_its_cost_and_without_costs_there_is_none() -> None:
    frame = predictions().head(40)
    result = swept(frame, cluster=None, by=[[]], operating_points=[COST])
    (threshold,) = result.units["threshold"].unique()
    retrieved = frame["score"] >= threshold
    costs = pl.when("label").then(pl.when(retrieved).then(0.0).otherwise(4.0))
    rows = frame.select("item", cost=costs.otherwise(pl.when(retrieved).then(1.0).otherwise(0.5))).sort("item")
    assert result.units.sort("unit")["cost_per_row"].to_list() == pytest.approx(rows["cost"].to_list())
    beside = swept(frame, operating_points=[{"beta": 1}, COST], by=[[]]).units
    assert beside["cost_per_row"].null_count() == beside.height
    assert "cost_per_row" not in swept(frame, by=[[]]).units.columns


def test_compare_tells_which_system_is_cheaper(tmp_path: Path) -> None:
    frame = predictions()
    worse = frame.with_columns(score=pl.col("score") - 0.4 * pl.col("label"))
    stages = []
    for name, rows in (("better", frame), ("worse", worse)):
        keys: dict[str, Any] = {"cluster": "doc", "duplicates": "keep", "operating_points": [COST], "name": name}
        stages += stage_config(tmp_path / name, "threshold_sweep", {"predictions": rows}, **keys)["stages"]
    compare: dict[str, Any] = {"kind": "compare", "of": ["better", "worse"], "metrics": ["cost_per_row"]}
    compare |= {"lower_is_better": ["cost_per_row"], "tests": ["paired_t"], "margin": 0.1}
    run = run_stages({"output": str(tmp_path / "results"), "stages": [*stages, compare]})
    (row,) = pl.read_parquet(run.path / "compare_tests" / "compare.parquet").to_dicts()
    costs = [
        pl.read_parquet(run.path / "threshold_sweep_operating_points" / f"{name}.parquet")["cost_per_row"].item()
        for name in ("better", "worse")
    ]
    assert (row["mean_a"], row["mean_b"]) == pytest.approx(costs)
    assert row["difference_upper"] < 0
    claims = pl.read_parquet(run.path / "compare_margins" / "compare.parquet")
    assert claims["holds"].any()
