"""What all benchmark scripts share: engines as a run has them, floors, whole runs, the table and the options."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlglot.expressions as exp
from side_by_side import Child, Line, Took, in_process, in_turns, memory, print_header, print_line, write_json

from pipeline.base.interrupts import StopRequest
from pipeline.engines.duckdb import DuckDB
from pipeline.engines.engine import Resources
from pipeline.plan.accounting import begin, run_nodes
from pipeline.plan.counts import Query
from pipeline.plan.nodes import Phase
from pipeline.runs.config import parse_config
from pipeline.runs.opening import open_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pipeline.plan.plan import Plan
    from pipeline.runs.config import Config

    Work = Callable[[], None]
    Benchmarks = Mapping[str, Callable[["Bench"], Iterator[Line]]]

HERE = Path(__file__).resolve().parent
GIBI = 1024**3
WIDTH = 74


@dataclass
class Bench:
    """What all benchmarks share.

    Attributes:
        root: Folder of the data.
        rows: Rows of the big input.
        repeats: Number of turns.
        stack: Closes the engines at the end.
    """

    root: Path
    rows: int
    repeats: int
    stack: ExitStack

    def engine(self) -> DuckDB:
        """An engine as a run has it, that may read the data."""
        return self.stack.enter_context(DuckDB(Resources(), [self.root.resolve()], StopRequest()))

    def floor(self, path: Path, *columns: str) -> Work:
        """Adding up some columns of a file."""
        engine = self.engine()
        engine.scan("floor_files", [str(path.resolve())])
        query = exp.select("count(*)", *columns, dialect="duckdb").from_("floor_files")

        def work() -> None:
            engine.fetch(query)

        return work

    def config(self, stage: dict[str, Any]) -> Config:
        """The config of a stage."""
        return parse_config({"stages": [stage]}, base=self.root.resolve(), origin="benchmark")

    def bound(self, stage: dict[str, Any]) -> tuple[DuckDB, Plan]:
        """A stage's plan, and an engine that knows its relations."""
        config = self.config(stage)
        params, plan = config.stages[0].params, open_inputs(config, config.stages[0]).plan
        engine = self.engine()
        run_nodes(engine, params, plan, begin(params, plan), Phase.RELATIONS, Phase.TRANSFORMS)
        return engine, plan

    def counts(self, stage: dict[str, Any]) -> Work:
        """The counting query of a stage as a run asks it, its relations bound before."""
        engine, plan = self.bound(stage)
        query = next(each for each in plan.nodes if isinstance(each, Query) and each.sweep is not None)
        tree = query.tree([each.name for each in plan.by])

        def work() -> None:
            engine.fetch(tree, query.params)

        return work

    def whole_run(
        self, name: str, counting: Work, stage: dict[str, Any], *, at_most: float | None = 1.5
    ) -> Iterator[Line]:
        """`thresher run` in a process of its own beside its counting query."""
        work, runs = self.run(stage)
        yield in_turns(work, counting, self.repeats).difference(f"{name} beside its counting query", at_most=at_most)
        yield memory(name, runs, at_most=GIBI)

    def run(self, stage: dict[str, Any], head: str = "") -> tuple[Callable[[], Took], list[Child]]:
        """`thresher run` in a process of its own, from start to published results; and what its runs took."""
        config, output = self.root / "run.toml", self.root / "results"

        def before() -> None:
            config.write_text(head + config_text(stage), encoding="utf-8")
            shutil.rmtree(output, ignore_errors=True)

        command: list[str | Path] = [sys.executable, "-m", "pipeline", "run", config, "--output", output, "--quiet"]
        return in_process(*command, before=before)


def in_order(*works: Work) -> Work:
    """One work after the other."""

    def work() -> None:
        for step in works:
            step()

    return work


def config_text(stage: dict[str, Any]) -> str:
    """A config of one stage as TOML."""
    return "[[stages]]\n" + "".join(f"{key} = {_value(value)}\n" for key, value in stage.items())


def _value(value: object) -> str:
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {_value(each)}" for key, each in value.items()) + " }"
    return str(value).lower() if isinstance(value, bool) else repr(value)


def run_all(benchmarks: Benchmarks, description: str | None, *, rows: int = 50_000_000) -> None:
    """Run the benchmarks asked for on the command line, by default on so many rows, and print their table."""
    options = _options(list(benchmarks), description, rows)
    lines: list[Line] = []
    facts = _facts(options)
    print(", ".join(f"{name} {value}" for name, value in facts.items()))
    with ExitStack() as stack:
        options.data.mkdir(parents=True, exist_ok=True)
        bench = Bench(options.data, options.rows, options.repeats, stack)
        print_header(WIDTH)
        for name in options.only or benchmarks:
            for line in benchmarks[name](bench):
                lines.append(line)
                print_line(line, WIDTH)
    if options.json is not None:
        write_json(options.json, lines, facts)


def _options(names: list[str], description: str | None, rows: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=rows, help="rows of the big input (default: %(default)s)")
    parser.add_argument("--repeats", type=int, default=5, help="turns, after a warm-up (default: %(default)s)")
    parser.add_argument("--data", type=Path, default=HERE / "data", help="folder of the data (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=names, help="run only this; may be repeated")
    parser.add_argument("--json", type=Path, help="also write every time to this file")
    return parser.parse_args()


def _facts(options: argparse.Namespace) -> dict[str, object]:
    return {
        "rows": options.rows,
        "repeats": options.repeats,
        "cores": os.cpu_count(),
        "python": platform.python_version(),
    } | {name: version(name) for name in ("duckdb", "polars")}
