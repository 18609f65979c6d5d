"""Rows to label are drawn on Spark by the same design, and sheets say the same there as on DuckDB."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from running import stage_config
from stages.before_after import test_judged as matches
from stages.entity_recognition import test_judged as documents
from stages.threshold_sweep.test_few_labels import predictions_of

from engines.spark.both_engines import differences, run_on_both
from pipeline.runs.config import parse_config
from pipeline.runs.sampling import Wish, drawn_sheet

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.engines.spark_session import SparkSettings
    from pipeline.runs.config import Config

PREDICTIONS = predictions_of()
CASES: dict[str, tuple[dict[str, pl.DataFrame], dict[str, Any]]] = {
    "threshold_sweep": (
        {"predictions": PREDICTIONS.drop("truth")},
        {"thresholds": [0.1, 0.4], "net_benefit": True, "by": [[], ["lang"]], "calibration": False},
    ),
    "before_after": (
        {name: matches.KEYS[name] for name in ("pairs", "events")},
        {name: key for name, key in matches.KEYS.items() if name not in {"pairs", "events"}},
    ),
    "entity_recognition": (documents.INPUTS, {"thresholds": [0.0, 0.4, 0.7]}),
}
SHEETS = {"threshold_sweep": "labels", "before_after": "audited", "entity_recognition": "judged"}


def configured(folder: Path, kind: str, sheet: pl.DataFrame | None = None) -> Config:
    frames, keys = CASES[kind]
    beside = {} if sheet is None else {SHEETS[kind]: sheet}
    return parse_config(stage_config(folder, kind, frames | beside, **keys), base=folder, origin="test")


def answered(kind: str, sheet: pl.DataFrame) -> pl.DataFrame:
    """The sheet as people fill it in."""
    if kind == "threshold_sweep":
        truth = PREDICTIONS.select("id", label="truth")
        return sheet.drop("label").join(truth, on="id", maintain_order="left")
    return matches.filled(sheet) if kind == "before_after" else sheet.with_columns(judged=pl.lit(value=True))


@pytest.mark.parametrize("kind", CASES)
def test_rows_are_drawn_by_the_same_design_and_their_sheet_says_the_same(
    kind: str, tmp_path: Path, spark_settings: SparkSettings
) -> None:
    config = configured(tmp_path, kind)
    on_spark = replace(config, engine="spark", spark=spark_settings)
    size = 30 if kind == "entity_recognition" else 60
    sheet, other, smaller = (
        drawn_sheet(each, "", Wish(number), lambda _: None)
        for each, number in ((config, size), (on_spark, size), (on_spark, size - 5))
    )
    design = ["stratum", "probability"]
    assert other.schema == sheet.schema
    assert other.select(design).sort(design).equals(sheet.select(design).sort(design))
    keys = sheet.columns[: sheet.columns.index("stratum")]
    assert other.n_unique(keys) == size
    assert smaller.join(other, on=keys, how="anti").height <= 5  # where strata round to one row more
    runs = run_on_both(configured(tmp_path, kind, answered(kind, other)), spark_settings)
    assert not differences(*runs, exact=False)
