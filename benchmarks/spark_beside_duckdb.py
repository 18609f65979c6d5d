"""Whole stages on Apache Spark beside DuckDB, in one process, in turns; and what they cost by rows.

    python benchmarks/spark_beside_duckdb.py [--rows 50000000] [--repeats 3] [--only NAME]… [--data DIR] [--json PATH]

Needs pyspark and Java. Spark runs on this machine with two threads and is warm; starting it is a line of its own. The
data lie in files of a million rows, so that both engines read them in parallel.
"""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from bench import run_all
from made_data import pairs_of
from side_by_side import Line, in_turns

from pipeline.engines.engine import Resources
from pipeline.engines.spark_session import SparkSettings, started_session
from pipeline.runs.config import parse_config
from pipeline.runs.evaluation import evaluate_in_memory

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from bench import Bench

ROWS_OF_FILE = 1_000_000
OPTIONS: dict[str, str | int | float | bool] = {"spark.driver.memory": "4g", "spark.sql.shuffle.partitions": 4}
CLUSTER_CORES = 100 * 16  # of 100 machines with 16 cores each
FAR = 1e12
PARTITIONS = (1, 8, 50)


def files(bench: Bench, rows: int) -> Path:
    """The pairs in files of a million rows."""
    folder = bench.root / f"pairs-in-files-{rows}"
    if not folder.is_dir():
        unfinished = folder.with_suffix(".unfinished")
        unfinished.mkdir(exist_ok=True)
        batches = pq.ParquetFile(pairs_of(bench.root, rows).pairs).iter_batches(ROWS_OF_FILE)
        for number, batch in enumerate(batches):
            with pq.ParquetWriter(unfinished / f"{number:05}.parquet", batch.schema, compression="zstd") as writer:
                writer.write_batch(batch)
        unfinished.rename(folder)
    return folder


def run_on(
    bench: Bench,
    engine: str,
    rows: int,
    options: Mapping[str, str | int | float | bool] = OPTIONS,
    **keys: Any,  # noqa: ANN401 - of a stage
) -> Callable[[], None]:
    """A before_after with 64 replicates of events, on an engine with two threads."""
    stage = {
        "kind": "before_after",
        "pairs": str(files(bench, rows).resolve()),
        "events": str(pairs_of(bench.root, rows).events.resolve()),
        "thresholds": {"start": 0.1, "stop": 60.0, "count": 200},
        "window": {"before": "168h", "after": "72h"},
        "duplicates": "keep",
        **keys,
    }
    config = parse_config({"stages": [stage], "resources": {"threads": 2}}, base=bench.root.resolve())
    config = replace(config, engine=engine, spark=SparkSettings(master="local[2]", options=dict(options)))

    def work() -> None:
        evaluate_in_memory(config)

    return work


def start(_bench: Bench) -> Iterator[Line]:
    """Starting Spark, until it has answered a query."""
    begun = time.perf_counter()
    started_session(SparkSettings(master="local[2]", options=OPTIONS), Resources()).sql("SELECT 1").collect()
    seconds = time.perf_counter() - begun
    yield Line("starting Spark on this machine", f"{seconds:.1f} s", "", seconds, None)


def beside_duckdb(bench: Bench) -> Iterator[Line]:
    """The whole stage with intervals on both engines."""
    times = in_turns(run_on(bench, "spark", bench.rows), run_on(bench, "duckdb", bench.rows), bench.repeats)
    yield times.ratio(f"before_after, {bench.rows:,} pairs: Spark local[2] beside DuckDB, 2 threads")
    times = in_turns(
        run_on(bench, "spark", bench.rows, by=[["pairs.source"]]),
        run_on(bench, "duckdb", bench.rows, by=[["pairs.source"]]),
        1,
    )
    yield times.ratio("the same by 40 sources")


def by_rows(bench: Bench) -> Iterator[Line]:
    """A tenth of the rows beside all of them: seconds for every further row, and what a trillion would take."""
    times = in_turns(run_on(bench, "spark", bench.rows), run_on(bench, "spark", bench.rows // 10), bench.repeats)
    line = times.ratio("Spark, ten times as many rows", at_most=10)
    yield line
    if line.seconds is not None and line.floor_seconds is not None:
        per_row = (line.seconds - line.floor_seconds) * 2 / (bench.rows - bench.rows // 10)
        nanoseconds = f"{per_row * 1e9:.0f} ns of a core"
        yield Line("every further pair", nanoseconds, "", per_row * 1e9, None)
        hours = per_row * FAR / CLUSTER_CORES / 3600
        yield Line(f"10^12 pairs on {CLUSTER_CORES:,} cores, by that cost", f"{hours:.1f} h", "", hours, None)


def by_partitions(bench: Bench) -> Iterator[Line]:
    """The same pairs read and shuffled in more partitions, beside two: one for each thread."""

    def in_partitions(count: int) -> Callable[[], None]:
        size = sum(file.stat().st_size for file in files(bench, bench.rows).iterdir())
        of_files = {"spark.sql.files.openCostInBytes": 0, "spark.sql.files.maxPartitionBytes": -(-size // count)}
        return run_on(bench, "spark", bench.rows, OPTIONS | of_files | {"spark.sql.shuffle.partitions": count})

    for count in PARTITIONS:
        times = in_turns(in_partitions(count), in_partitions(2), bench.repeats)
        yield times.ratio(f"Spark local[2], {count} partitions beside 2")


BENCHMARKS = {"start": start, "beside_duckdb": beside_duckdb, "by_rows": by_rows, "by_partitions": by_partitions}

if __name__ == "__main__":
    run_all(BENCHMARKS, __doc__)
