"""Benchmarks of the stage change_points: matching and counting beside reading the columns, and beside a loop.

    python benchmarks/change_points.py [--rows 12000000] [--repeats 5] [--only NAME]… [--data DIR] [--json PATH]

`rows` are predictions, 12 in a series with 10 true points; made_points.py says what is in them. The peer is a loop over
20,000 series with the metric of ruptures, in a process of its own; it needs ruptures, which thresher does not.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import Bench, run_all
from made_points import PREDICTED, PointFiles, points_of
from side_by_side import Line, Took, child, in_turns

from pipeline.config import parse_config
from pipeline.counting import bind, prepare
from pipeline.opening import open_inputs
from pipeline.queries import expand, load
from pipeline.stages.plan import CountQuery

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).resolve().parent
THRESHOLDS = {"start": -3.0, "stop": 5.0, "count": 101}
MARGIN, LOOPED = 10, 20_000


def data_of(bench: Bench) -> PointFiles:
    """Points of as many series as make the rows asked for."""
    return points_of(bench.root, bench.rows // PREDICTED)


def stage(data: PointFiles, **settings: object) -> dict[str, Any]:
    """The config of a stage over the data, of which every series is known to have been annotated and searched."""
    own = {"kind": "change_points", "margin": MARGIN, "thresholds": THRESHOLDS, "duplicates": "keep"}
    files = {"predictions": str(data.predictions.resolve()), "annotations": str(data.annotations.resolve())}
    return own | files | {"area_scores": "thresholds"} | settings


def counts(bench: Bench, data: PointFiles, **settings: object) -> Callable[[], None]:
    """Everything that a run does with rows: runs, matching, counts."""
    config = parse_config({"stages": [stage(data, **settings)]}, base=bench.root.resolve(), origin="benchmark")
    plan = open_inputs(config, config.stages[0]).plan
    engine = bench.engine()

    def work() -> None:
        bind(engine, plan)
        prepare(engine, plan)
        for query in plan.counts:
            if isinstance(query, CountQuery):
                engine.fetch(expand(load(query.name), []), query.params)

    return work


def floor(bench: Bench, data: PointFiles) -> Callable[[], None]:
    """Adding up the columns of both files."""
    predictions = bench.floor(data.predictions, "sum(series_id)", "sum(position)", "sum(score)")
    annotations = bench.floor(data.annotations, "sum(series_id)", "sum(position)")

    def work() -> None:
        predictions()
        annotations()

    return work


def one_to_one(bench: Bench) -> Iterator[Line]:
    """The largest matching of all series at 101 thresholds."""
    data = data_of(bench)
    times = in_turns(counts(bench, data), floor(bench, data), bench.repeats)
    yield times.ratio(f"one_to_one of {data.series:,} series, 101 thresholds")


def whole_run(bench: Bench) -> Iterator[Line]:
    """`thresher run` with intervals, in a process of its own."""
    data = data_of(bench)
    job = counts(bench, data)
    yield from bench.whole_run("thresher run", job, stage(data), at_most=None)


def loop(bench: Bench) -> Iterator[Line]:
    """A loop over series with the metric of ruptures, beside the counts of as many series."""
    name = f"loop with ruptures' metric over {LOOPED:,} series, beside all thresholds"
    if find_spec("ruptures") is None:
        yield Line(f"{name}: ruptures is not installed", "–", "≥ 50 ×", 0.0, None)
        return
    data = points_of(bench.root, LOOPED)
    command: list[str | Path] = [
        sys.executable,
        HERE / "ruptures_peer.py",
        data.annotations,
        data.predictions,
        str(LOOPED),
        str(MARGIN),
    ]

    def peer() -> Took:
        return child(command).took

    yield in_turns(peer, counts(bench, data), bench.repeats).ratio(name, at_least=50)


BENCHMARKS: dict[str, Callable[[Bench], Iterator[Line]]] = {
    "one-to-one": one_to_one,
    "run": whole_run,
    "loop": loop,
}

if __name__ == "__main__":
    run_all(BENCHMARKS, __doc__, rows=12_000_000)
