"""One config run on DuckDB and on Spark: every table of both, compared cell by cell."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl
from running import run_stages

if TYPE_CHECKING:
    from pipeline.engines.spark_session import SparkSettings
    from pipeline.runs.config import Config
    from pipeline.runs.stage_results import Run

TOLERANCE = 1e-12


def run_on_both(config: Config, settings: SparkSettings) -> tuple[Run, Run]:
    """Run a config on DuckDB and on Spark, each into a folder of its own."""
    on_duckdb = run_stages(replace(config, output=config.output / "duckdb"))
    return on_duckdb, run_stages(replace(config, engine="spark", output=config.output / "spark", spark=settings))


def differences(on_duckdb: Run, on_spark: Run, *, exact: bool = True) -> list[str]:
    """What differs between two runs: tables, types, counts, and other numbers by more than the tolerance.

    Decimals must be equal if `exact`; those of a double with more digits than it has are not.
    """
    tables = {path.relative_to(on_duckdb.path): path for path in on_duckdb.path.rglob("*.parquet")}
    assert tables, "a run makes tables"
    names = {path.relative_to(on_spark.path) for path in on_spark.path.rglob("*.parquet")}
    said = [f"only one run has {name}" for name in names.symmetric_difference(tables)]
    for name in sorted(names.intersection(tables)):
        frames = (pl.read_parquet(run.path / name, hive_partitioning=False) for run in (on_duckdb, on_spark))
        said += _between(str(name), *frames, exact=exact)
    warnings = [[stage.warnings for stage in run.stages] for run in (on_duckdb, on_spark)]
    return said if warnings[0] == warnings[1] else [*said, f"warnings {warnings[0]} and {warnings[1]}"]


def _between(name: str, expected: pl.DataFrame, actual: pl.DataFrame, *, exact: bool) -> list[str]:
    if expected.schema != actual.schema or expected.height != actual.height:
        return [f"{name}: {expected.schema} and {actual.schema}, {expected.height} and {actual.height} rows"]
    said = []
    for column in expected.columns:
        wanted, got = expected[column], actual[column]
        if wanted.dtype.is_decimal() and not exact:
            wanted, got = wanted.cast(pl.Float64), got.cast(pl.Float64)
        near = _near(wanted, got) if wanted.dtype.is_float() else wanted.eq_missing(got)
        if not near.all():
            row = int((~near).arg_true()[0])
            said.append(f"{name}, {column}, row {row}: {wanted[row]!r} and {got[row]!r}; {(~near).sum()} rows differ")
    return said


def _near(wanted: pl.Series, got: pl.Series) -> pl.Series:
    both_null = wanted.is_null() & got.is_null()
    both_infinite_alike = (wanted == got).fill_null(value=False)
    near = ((wanted - got).abs() <= TOLERANCE * (1 + wanted.abs())).fill_null(value=False)
    return both_null | both_infinite_alike | near
