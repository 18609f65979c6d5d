"""Benchmarks of the stage before_after: each job beside the least that could do it, in one run, in turns.

    python benchmarks/before_after.py [--rows 50000000] [--repeats 5] [--only NAME]… [--data DIR] [--json PATH]

The floor of a counting job is a query that only adds up the columns the job has to read, on the same engine with the
same settings. README.md says what each line means; made_data.py says what is in the data.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property, partial
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import sqlglot.expressions as exp
from made_data import Data, pairs_of, timelines_of
from side_by_side import Child, Line, Took, child, in_turns, memory, print_header, print_line, write_json
from sqlglot import parse_one

from pipeline.config import parse_config
from pipeline.counting import bind
from pipeline.engines.duckdb import DuckDB, Resources
from pipeline.interrupts import StopRequest
from pipeline.opening import open_inputs
from pipeline.queries import expand, load
from pipeline.stages.plan import Computed, CountQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl

    from pipeline.stages.plan import Plan

HERE = Path(__file__).resolve().parent
THRESHOLDS = {"start": 0.1, "stop": 60.0, "count": 200}
WINDOW = {"before": "168h", "after": "72h"}
LOOP_ROWS = 5_000_000
GIBI = 1024**3
WIDTH = 74


@dataclass
class Bench:
    """What all benchmarks share.

    Attributes:
        root: Folder of the data.
        rows: Rows of pairs.
        repeats: Number of turns.
        stack: Closes the engines at the end.
    """

    root: Path
    rows: int
    repeats: int
    stack: ExitStack
    _measured: dict[str, float] = field(default_factory=dict)

    @cached_property
    def data(self) -> Data:
        """Pairs and events."""
        return pairs_of(self.root, self.rows)

    def engine(self) -> DuckDB:
        """An engine as a run has it, that may read the data."""
        return self.stack.enter_context(DuckDB(Resources(), [self.root.resolve()], StopRequest()))

    def stage(self, **settings: object) -> dict[str, Any]:
        """The config of a stage over the data."""
        common = {"kind": "before_after", "pairs": str(self.data.pairs.resolve())}
        return common | {"thresholds": THRESHOLDS, "window": WINDOW, "duplicates": "keep"} | settings

    def floor(self, *columns: str) -> Callable[[], None]:
        """Adding up some columns of pairs."""
        engine = self.engine()
        engine.scan("floor_files", [str(self.data.pairs.resolve())])
        query = exp.select("count(*)", *columns, dialect="duckdb").from_("floor_files")

        def work() -> None:
            engine.fetch(query)

        return work

    def bound(self, stage: dict[str, Any]) -> tuple[DuckDB, Plan]:
        """A stage's plan, and an engine that knows its relations."""
        config = parse_config({"stages": [stage]}, base=self.root.resolve(), origin="benchmark")
        plan = open_inputs(config, config.stages[0]).plan
        engine = self.engine()
        bind(engine, plan)
        return engine, plan

    def counts(self, **settings: object) -> Callable[[], None]:
        """The counting query of the stage as a run asks it, its relations bound before."""
        engine, plan = self.bound(self.stage(**settings))
        query = next(each for each in plan.counts if isinstance(each, CountQuery) and each.sweep is not None)
        tree = expand(load(query.name), [each.name for each in plan.by])

        def work() -> None:
            engine.fetch(tree, query.params)

        return work

    def events(self) -> dict[str, object]:
        """The settings that take replicates and compared pairs from events."""
        return {"events": str(self.data.events.resolve())}


def counts(bench: Bench) -> Iterator[Line]:
    """No groups, no replicates: two columns."""
    job = bench.counts(uncertainty="none")
    times = in_turns(job, bench.floor("sum(score)", "sum(lag_hours)"), bench.repeats)
    yield times.ratio("counts", at_most=2.5)


def by_source(bench: Bench) -> Iterator[Line]:
    """By a column of 40 strings."""
    job = bench.counts(uncertainty="none", by=[["source"]])
    floor = bench.floor("sum(score)", "sum(lag_hours)", "sum(strlen(source))")
    yield in_turns(job, floor, bench.repeats).ratio("counts by 40 sources", at_most=3)


def replicates(bench: Bench) -> Iterator[Line]:
    """64 replicates, by a join with the events."""
    job = bench.counts(**bench.events())
    floor = bench.floor("sum(score)", "sum(lag_hours)", "sum(event_id)")
    yield in_turns(job, floor, bench.repeats).ratio("counts, 64 replicates by join with 200,000 events", at_most=2.2)


def whole_run(bench: Bench) -> Iterator[Line]:
    """`thresher run` in a process of its own beside its counting query."""
    yield from _run(bench, "thresher run", bench.counts(**bench.events()), bench.stage(**bench.events()))


def whole_run_by_source(bench: Bench) -> Iterator[Line]:
    """The same, by the 40 sources of the events."""
    settings = bench.events() | {"by": ["events.source"]}
    yield from _run(bench, "thresher run by 40 sources", bench.counts(**settings), bench.stage(**settings))


def whole_run_checked(bench: Bench) -> Iterator[Line]:
    """The same, with the check that no pair stands twice, as it is done unless a config says otherwise."""
    checked = bench.stage(**bench.events(), duplicates="error")
    name = "thresher run, pairs checked for duplicates"
    yield from _run(bench, name, bench.counts(**bench.events()), checked, at_most=None)


def _run(
    bench: Bench, name: str, counting: Callable[[], None], stage: dict[str, Any], *, at_most: float | None = 1.5
) -> Iterator[Line]:
    config, output = bench.root / "run.toml", bench.root / "results"
    config.write_text(_toml(stage), encoding="utf-8")
    runs: list[Child] = []

    def work() -> Took:
        shutil.rmtree(output, ignore_errors=True)
        runs.append(child([sys.executable, "-m", "pipeline", "run", config, "--output", output, "--quiet"]))
        return runs[-1].took

    yield in_turns(work, counting, bench.repeats).difference(f"{name} beside its counting query", at_most=at_most)
    yield memory(f"{name}: peak memory", max(each.peak_rss for each in runs), at_most=GIBI)


def _toml(stage: dict[str, Any]) -> str:
    return "[[stages]]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in stage.items())


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    return repr(value)


def loop(bench: Bench) -> Iterator[Line]:
    """The loop over thresholds of the R function, in numpy on arrays in memory, per row beside the counting query."""
    rows = min(bench.rows, LOOP_ROWS)
    table = next(pq.ParquetFile(bench.data.pairs).iter_batches(rows, columns=["score", "lag_hours"]))
    weight, hourdiff = table["score"].to_numpy(), table["lag_hours"].to_numpy()
    thresholds = np.linspace(THRESHOLDS["start"], THRESHOLDS["stop"], int(THRESHOLDS["count"]))
    query = bench.counts(uncertainty="none")

    def work() -> None:
        for threshold in thresholds:
            np.sum((weight >= threshold) & (hourdiff >= 0))
            np.sum((weight >= threshold) & (hourdiff < 0))

    times = in_turns(work, query, min(bench.repeats, 3))
    name = f"loop over thresholds in numpy, {len(weight):,} rows in memory"
    yield times.ratio(f"{name}, beside counts", at_least=50, share=len(weight) / bench.rows)


def help_text(bench: Bench) -> Iterator[Line]:
    """`thresher --help` beside a Typer program with nothing behind it."""

    def took(command: list[str | Path]) -> Took:
        return child([sys.executable, *command, "--help"]).took

    job, floor = partial(took, ["-m", "pipeline"]), partial(took, [HERE / "bare_program.py"])
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
    data = timelines_of(bench.root, n_events, n_articles)
    inputs = {"events": str(data.events.resolve()), "articles": str(data.articles.resolve())}
    engine, plan = bench.bound(bench.stage(**inputs, compared="timelines"))
    counted = next(each for each in plan.counts if isinstance(each, Computed))

    def compute() -> pl.DataFrame:
        return counted.compute({name: engine.fetch(query) for name, query in counted.frames.items()}, ())

    return engine, compute


BENCHMARKS: dict[str, Callable[[Bench], Iterator[Line]]] = {
    "counts": counts,
    "by-source": by_source,
    "replicates": replicates,
    "run": whole_run,
    "run-by-source": whole_run_by_source,
    "run-checked": whole_run_checked,
    "loop": loop,
    "timelines": timelines,
    "pair-join": pair_join,
    "help": help_text,
}


def main() -> None:
    """Run the benchmarks asked for and print their table."""
    options = _options()
    lines: list[Line] = []
    facts = _facts(options)
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    with ExitStack() as stack:
        options.data.mkdir(parents=True, exist_ok=True)
        bench = Bench(options.data, options.rows, options.repeats, stack)
        print_header(WIDTH)
        for name in options.only or BENCHMARKS:
            for line in BENCHMARKS[name](bench):
                lines.append(line)
                print_line(line, WIDTH)
    if options.json is not None:
        write_json(options.json, lines, facts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of pairs (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="turns, after a warm-up (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="folder of the data (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=list(BENCHMARKS), help="run only this; may be repeated")
    parser.add_argument("--json", type=Path, help="also write every time to this file")
    return parser.parse_args()


def _facts(options: argparse.Namespace) -> dict[str, object]:
    return {
        "rows": options.rows,
        "repeats": options.repeats,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    } | {name: version(name) for name in ("duckdb", "polars")}


if __name__ == "__main__":
    main()
