"""Every case and every real data set gives the same tables on Spark as on DuckDB."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from cases.reading import case_folders, case_name, prepare
from running import read_table, stage_config

from engines.spark.both_engines import differences, run_on_both
from pipeline.runs.config import parse_config

if TYPE_CHECKING:
    from pathlib import Path

    from pipeline.engines.spark_session import SparkSettings

SYSTEMS = "system IN ('edin', 'geo')"
PLACES = {"latitude": "lat", "longitude": "lon", "text": "toponym"}
SWEPT = {"start": 0.1, "stop": 60, "count": 200}
REAL: dict[str, tuple[str, dict[str, Any]]] = {  # name → folder and stage; a text that names a file becomes its path
    "before_after": (
        "before_after_dutch",
        {
            "kind": "before_after",
            "pairs": {"path": "pairs.parquet", "columns": {"score": "weight", "lag_hours": "hourdiff"}},
            "events": {"path": "events.parquet", "columns": {"complete_window": "complete_window"}},
            "window": {"before": "168h", "after": "72h"},
            "thresholds": SWEPT,
        },
    ),
    "before_after_with_articles": (
        "before_after_dutch",
        {
            "kind": "before_after",
            "pairs": {"path": "pairs.parquet", "columns": {"score": "weight", "lag_hours": "hourdiff"}},
            "events": "events.parquet",
            "articles": "articles.parquet",
            "window": {"before": "168h", "after": "48h"},
            "thresholds": SWEPT,
        },
    ),
    "change_points": (
        "changepoints_tcpd",
        {
            "kind": "change_points",
            "predictions": {"path": "predictions.parquet", "columns": {"position": "change_point"}},
            "annotations": {"path": "annotations.parquet", "columns": {"position": "change_point"}},
            "coders": "annotators.parquet",
            "series": "series.parquet",
            "runs": {"path": "runs.parquet", "where": "status = 'SUCCESS'"},
            "by": [["method"]],
            "margin": 5,
        },
    ),
    "entity_recognition": (
        "ner_geowebnews",
        {
            "kind": "entity_recognition",
            "gold": {"path": "gold.parquet", "where": "is_toponym"},
            "predicted": {"path": "predictions.parquet", "where": "system = 'spacy'"},
            "documents": "documents.parquet",
        },
    ),
    "geocoding": (
        "geocoding_geowebnews",
        {
            "kind": "geocoding",
            "gold": {"path": "gold.parquet", "columns": PLACES | {"mention_id": "toponym_id"}},
            "predicted": {"path": "predictions.parquet", "columns": PLACES, "where": SYSTEMS},
            "by": [["system"]],
            "tolerances_km": [1, 10, 25, 50, 100, 161, 500, 1000],
            "match": "text_near",
            "assignment": "file_order",
        },
    ),
    "geoparsing": (
        "geoparsing_lgl",
        {
            "kind": "geocoding",
            "gold": {"path": "gold.parquet", "columns": PLACES | {"mention_id": "toponym_id"}},
            "predicted": {"path": "predictions.parquet", "columns": PLACES, "where": SYSTEMS},
            "by": [["system"]],
            "tolerances_km": [161],
            "match": "text_near",
        },
    ),
    "ranking": (
        "ranking_trec",
        {
            "kind": "ranking",
            "ranking": {"path": "trec_ranking.parquet", "columns": {"relevance": False}},
            "relevance": "trec_qrels.parquet",
            "cutoffs": [1, 5, 10, 100],
            "no_relevant": "zero",
        },
    ),
    "threshold_sweep": (
        "predictions_real",
        {
            "kind": "threshold_sweep",
            "predictions": {"path": "predictions.parquet", "columns": {"id": "id"}},
            "by": [["model", "group"]],
            "duplicates": "keep",
        },
    ),
    "threshold_sweep_binned": (
        "predictions_real",
        {
            "kind": "threshold_sweep",
            "predictions": {"path": "predictions.parquet", "columns": {"id": "id"}},
            "by": [["model", "group"]],
            "duplicates": "keep",
            "method": "binned",
            "cluster": "id",
        },
    ),
}


@pytest.mark.parametrize("case", case_folders(), ids=case_name)
def test_cases_are_the_same_on_spark(case: Path, spark_settings: SparkSettings, tmp_path: Path) -> None:
    assert differences(*run_on_both(prepare(case, tmp_path), spark_settings)) == []


@pytest.mark.parametrize("name", REAL)
def test_real_data_are_the_same_on_spark(
    name: str, spark_settings: SparkSettings, real_data: Path, tmp_path: Path
) -> None:
    folder, stage = REAL[name]
    config = parse_config({"output": str(tmp_path), "stages": [_with_paths(stage, real_data / folder)]}, base=tmp_path)
    assert differences(*run_on_both(config, spark_settings)) == []


CLUSTERS: dict[str, pl.Series] = {
    "whole numbers as floats": pl.Series([1e7 + number for number in range(1500)]),
    "fractions": pl.Series([number / 8 for number in range(1500)]),
    "instants": pl.Series(range(1500), dtype=pl.Int64).cast(pl.Datetime("us", "UTC")),
    "texts": pl.Series([f"cluster {number}'é" for number in range(1500)]),
    "days": pl.Series(range(1500), dtype=pl.Int32).cast(pl.Date),
}


@pytest.mark.parametrize("kind", CLUSTERS)
def test_clusters_of_every_type_fall_into_the_same_of_64_replicates(
    kind: str, spark_settings: SparkSettings, tmp_path: Path
) -> None:
    scores = pl.Series([number % 97 / 97 for number in range(1500)])
    frame = pl.DataFrame({"score": scores, "label": scores > 0.4, "cluster": CLUSTERS[kind]})
    keys = {"thresholds": [0.2, 0.5], "cluster": "cluster", "outcomes": False}
    document = stage_config(tmp_path, "threshold_sweep", {"predictions": frame}, **keys)
    on_duckdb, on_spark = run_on_both(parse_config(document, base=tmp_path), spark_settings)
    assert differences(on_duckdb, on_spark) == []
    counts = read_table(on_spark, "counts", "threshold_sweep")
    assert counts["replicate"].n_unique() == 64


def _with_paths(value: Any, folder: Path) -> Any:  # noqa: ANN401 - any value of a config
    if isinstance(value, dict):
        return {key: _with_paths(item, folder) for key, item in value.items()}
    return str(folder / value) if isinstance(value, str) and value.endswith(".parquet") else value
