"""Benchmarks of the stage before_after: each job beside the least that could do it, in one run, in turns.

    python benchmarks/before_after.py [--rows 50000000] [--repeats 5] [--only NAME]… [--data DIR] [--json PATH]

The floor of a counting job is a query that only adds up the columns the job has to read, on the same engine with the
same settings. README.md says what each line means; made_data.py says what is in the data.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import sqlglot.expressions as exp
from bench import Bench, run_all
from made_data import PairFiles, pairs_of, timelines_of
from side_by_side import Line, in_process, in_turns
from sqlglot import parse_one

from pipeline.plan.counts import CountFunction

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl
    from bench import Benchmarks

    from pipeline.engines.duckdb import DuckDB

HERE = Path(__file__).resolve().parent
THRESHOLDS = {"start": 0.1, "stop": 60.0, "count": 200}
WINDOW = {"before": "168h", "after": "72h"}
LOOP_ROWS = 5_000_000


def pairs(bench: Bench) -> PairFiles:
    """Pairs and events."""
    return pairs_of(bench.root, bench.rows)


def stage(bench: Bench, **settings: object) -> dict[str, Any]:
    """The config of a stage over the data."""
    common = {"kind": "before_after", "pairs": str(pairs(bench).pairs.resolve())}
    return common | {"thresholds": THRESHOLDS, "window": WINDOW, "duplicates": "keep"} | settings


def events(bench: Bench) -> dict[str, object]:
    """The settings that take replicates and compared pairs from events."""
    return {"events": str(pairs(bench).events.resolve())}


def counts(bench: Bench) -> Iterator[Line]:
    """No groups, no replicates: two columns."""
    job = bench.counts(stage(bench, uncertainty="none"))
    times = in_turns(job, bench.floor(pairs(bench).pairs, "sum(score)", "sum(lag_hours)"), bench.repeats)
    yield times.ratio("counts", at_most=2.5)


def by_source(bench: Bench) -> Iterator[Line]:
    """By a column of 40 strings."""
    job = bench.counts(stage(bench, uncertainty="none", by=[["source"]]))
    floor = bench.floor(pairs(bench).pairs, "sum(score)", "sum(lag_hours)", "sum(strlen(source))")
    yield in_turns(job, floor, bench.repeats).ratio("counts by 40 sources", at_most=3)


def replicates(bench: Bench) -> Iterator[Line]:
    """64 replicates, by a join with the events."""
    job = bench.counts(stage(bench, **events(bench)))
    floor = bench.floor(pairs(bench).pairs, "sum(score)", "sum(lag_hours)", "sum(event_id)")
    yield in_turns(job, floor, bench.repeats).ratio("counts, 64 replicates by join with 200,000 events", at_most=2.2)


def whole_run(bench: Bench) -> Iterator[Line]:
    """`thresher run` in a process of its own beside its counting query."""
    yield from bench.whole_run(
        "thresher run", bench.counts(stage(bench, **events(bench))), stage(bench, **events(bench))
    )


def whole_run_by_source(bench: Bench) -> Iterator[Line]:
    """The same, by the 40 sources of the events."""
    settings = events(bench) | {"by": ["events.source"]}
    yield from bench.whole_run(
        "thresher run by 40 sources", bench.counts(stage(bench, **settings)), stage(bench, **settings)
    )


def whole_run_beside_floor(bench: Bench) -> Iterator[Line]:
    """`thresher run` with intervals, also by the 40 sources, beside adding up the columns that it reads."""
    columns = ["sum(score)", "sum(lag_hours)", "sum(event_id)"]
    floor = bench.floor(pairs(bench).pairs, *columns)
    work, _ = bench.run(stage(bench, **events(bench)))
    yield in_turns(work, floor, bench.repeats).ratio("thresher run beside its columns", at_most=3)
    floor = bench.floor(pairs(bench).pairs, *columns, "sum(strlen(source))")
    work, _ = bench.run(stage(bench, **events(bench), by=["events.source"]))
    yield in_turns(work, floor, bench.repeats).ratio("thresher run by 40 sources beside its columns", at_most=5)


def whole_run_checked(bench: Bench) -> Iterator[Line]:
    """The same, with the check that no pair stands twice, as it is done unless a config says otherwise."""
    checked = stage(bench, **events(bench), duplicates="error")
    name = "thresher run, pairs checked for duplicates"
    yield from bench.whole_run(name, bench.counts(stage(bench, **events(bench))), checked, at_most=None)


def loop(bench: Bench) -> Iterator[Line]:
    """The loop over thresholds of the R function, in numpy on arrays in memory, per row beside the counting query."""
    rows = min(bench.rows, LOOP_ROWS)
    table = next(pq.ParquetFile(pairs(bench).pairs).iter_batches(rows, columns=["score", "lag_hours"]))
    weight, hourdiff = table["score"].to_numpy(), table["lag_hours"].to_numpy()
    thresholds = np.linspace(THRESHOLDS["start"], THRESHOLDS["stop"], int(THRESHOLDS["count"]))
    query = bench.counts(stage(bench, uncertainty="none"))

    def work() -> None:
        for threshold in thresholds:
            np.sum((weight >= threshold) & (hourdiff >= 0))
            np.sum((weight >= threshold) & (hourdiff < 0))

    times = in_turns(work, query, min(bench.repeats, 3))
    name = f"loop over thresholds in numpy, {len(weight):,} rows in memory"
    yield times.ratio(f"{name}, beside counts", at_least=50, share=len(weight) / bench.rows)


def help_text(bench: Bench) -> Iterator[Line]:
    """`thresher --help` beside a Typer program with nothing behind it."""
    job, _ = in_process(sys.executable, "-m", "pipeline", "--help")
    floor, _ = in_process(sys.executable, HERE / "bare_program.py", "--help")
    yield in_turns(job, floor, 2 * bench.repeats).ratio("thresher --help beside a bare Typer program", at_most=1.5)


def timelines(bench: Bench) -> Iterator[Line]:
    """Compared articles of a million events from ten million moments, beside reading them."""
    engine, compute = _timelines(bench, 1_000_000, 10_000_000)
    floor = [exp.select("count(*)", f"sum({name}_time)").from_(f"{name}s") for name in ("event", "article")]

    def work() -> None:
        compute()

    def reading() -> None:
        for query in floor:
            engine.fetch(query)

    yield in_turns(work, reading, bench.repeats).ratio("timelines, 1 M events × 10 M articles, beside reading them")


def pair_join(bench: Bench) -> Iterator[Line]:
    """The same numbers by an SQL join that makes every pair, on a size at which that can be done."""
    engine, compute = _timelines(bench, 10_000, 500_000)
    join = parse_one(PAIR_JOIN, read="duckdb", into=exp.Select)
    assert isinstance(join, exp.Select)
    counted = compute().select("replicate", "n_before", "n_after").sort("replicate")
    assert engine.fetch(join).rows() == counted.rows()

    def work() -> None:
        engine.fetch(join)

    def ours() -> None:
        compute()

    times = in_turns(work, ours, min(bench.repeats, 3))
    yield times.ratio("SQL pair join, 10,000 events × 500,000 articles, beside timelines", at_least=10)


PAIR_JOIN = """
SELECT
  replicate,
  CAST(count(*) FILTER (WHERE article_time < event_time) AS BIGINT) AS n_before,
  CAST(count(*) FILTER (WHERE article_time >= event_time) AS BIGINT) AS n_after
FROM events
INNER JOIN articles
  ON article_time >= event_time - 604800000000 AND article_time <= event_time + 259200000000
WHERE complete
GROUP BY replicate
ORDER BY replicate
"""


def _timelines(bench: Bench, n_events: int, n_articles: int) -> tuple[DuckDB, Callable[[], pl.DataFrame]]:
    """An engine that knows two timelines, and the stage's way to count compared articles from them."""
    files = timelines_of(bench.root, n_events, n_articles)
    inputs = {"events": str(files.events.resolve()), "articles": str(files.articles.resolve())}
    engine, plan = bench.bound(stage(bench, **inputs, compared="timelines"))
    counted = next(each for each in plan.nodes if isinstance(each, CountFunction))

    def compute() -> pl.DataFrame:
        return counted.function({name: engine.fetch(query) for name, query in counted.reads.items()}, ())

    return engine, compute


BENCHMARKS: Benchmarks = {
    "counts": counts,
    "by-source": by_source,
    "replicates": replicates,
    "run": whole_run,
    "run-by-source": whole_run_by_source,
    "run-checked": whole_run_checked,
    "run-floor": whole_run_beside_floor,
    "loop": loop,
    "timelines": timelines,
    "pair-join": pair_join,
    "help": help_text,
}


if __name__ == "__main__":
    run_all(BENCHMARKS, __doc__)
