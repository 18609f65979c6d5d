"""Benchmarks of the stage change_points: matching and counting beside reading the columns, and beside a loop.

    python benchmarks/change_points.py [--rows 12000000] [--repeats 5] [--only NAME]… [--data DIR] [--json PATH]

`rows` are predictions, 12 in a series with 10 true points; made_points.py says what is in them. The peers are loops
over series with the metric of ruptures, which thresher does not need (ruptures_peer.py). Both sides start at the files
in one process that has imported everything: once without scores, which is what that metric does, and at 101 thresholds.
"""

from __future__ import annotations

from collections import deque
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow.parquet as pq
import ruptures_peer
from bench import Bench, in_order, run_all
from made_points import PREDICTED, PointFiles, points_of
from side_by_side import Line, in_turns

from pipeline.base.sql_files import expand, load
from pipeline.plan.accounting import after_results, begin, count, run_nodes
from pipeline.plan.counts import Query
from pipeline.plan.nodes import Phase
from pipeline.runs.opening import open_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from bench import Benchmarks, Work

THRESHOLDS = {"start": -3.0, "stop": 5.0, "count": 101}
MARGIN, AT_ONCE, CURVE = 10, 200_000, 40_000
WITHOUT_SERIES = {"series_counts": False, "delays": False}


def data_of(bench: Bench) -> PointFiles:
    """Points of as many series as make the rows asked for."""
    return points_of(bench.root, bench.rows // PREDICTED)


def stage(files: PointFiles, **settings: object) -> dict[str, Any]:
    """The config of a stage over the data, of which every series is known to have been annotated and searched."""
    defaults = {"kind": "change_points", "margin": MARGIN, "thresholds": THRESHOLDS, "duplicates": "keep"}
    paths = {"predictions": str(files.predictions.resolve()), "annotations": str(files.annotations.resolve())}
    return defaults | paths | {"area_scores": "thresholds"} | settings


def counts(bench: Bench, files: PointFiles, **settings: object) -> Work:
    """Everything that a run does with rows: runs, matching, counts."""
    config = bench.config(stage(files, **settings))
    params, plan = config.stages[0].params, open_inputs(config, config.stages[0]).plan
    engine = bench.engine()

    def work() -> None:
        run_nodes(engine, params, plan, begin(params, plan), Phase.RELATIONS, Phase.TRANSFORMS)
        for query in plan.nodes:
            if isinstance(query, Query):
                engine.fetch(expand(load(query.name), []), query.params)

    return work


def floor(bench: Bench, files: PointFiles) -> Work:
    """Adding up the columns of both files."""
    predictions = bench.floor(files.predictions, "sum(series_id)", "sum(position)", "sum(score)")
    return in_order(predictions, bench.floor(files.annotations, "sum(series_id)", "sum(position)"))


def one_to_one(bench: Bench) -> Iterator[Line]:
    """The largest matching of all series at 101 thresholds."""
    files = data_of(bench)
    times = in_turns(counts(bench, files), floor(bench, files), bench.repeats)
    yield times.ratio(f"one_to_one of {files.series:,} series, 101 thresholds")


def whole_run(bench: Bench) -> Iterator[Line]:
    """`thresher run` with intervals, in a process of its own."""
    files = data_of(bench)
    job = counts(bench, files)
    yield from bench.whole_run("thresher run", job, stage(files), at_most=None)


def results(bench: Bench, settings: dict[str, Any]) -> Work:
    """From the files to the result tables, as a run makes them."""
    config = bench.config(settings)
    configured = config.stages[0]
    engine = bench.engine()

    def work() -> None:
        plan = open_inputs(config, configured).plan
        tables = count(engine, configured.params, plan).tables
        after_results(engine, configured.params, plan, configured.stage.derive(configured.params, tables))

    return work


def without_scores(files: PointFiles) -> Path:
    """The predictions of a size without their scores."""
    path = files.folder / "unscored.parquet"
    if not path.is_file():
        pq.write_table(pq.read_table(files.predictions, columns=["series_id", "position"]), path, compression="zstd")
    return path


def at_once(bench: Bench) -> Iterator[Line]:
    """One pass with the metric of ruptures, beside our results without scores and intervals: the job both do."""
    name = f"ruptures' metric once over {AT_ONCE:,} series, beside ours without scores"
    if find_spec("ruptures") is None:
        yield Line(f"{name}: ruptures is not installed", "–", "", 0.0, None)
        return
    files = points_of(bench.root, AT_ONCE)
    unscored = without_scores(files)
    settings = {"predictions": str(unscored.resolve()), "thresholds": "distinct", "uncertainty": "none"}

    def peer() -> None:
        ruptures_peer.at_once(files.annotations, unscored, MARGIN)

    yield in_turns(peer, results(bench, stage(files) | settings | WITHOUT_SERIES), bench.repeats).ratio(name)


def curve(bench: Bench) -> Iterator[Line]:
    """The metric of ruptures at 101 thresholds, one after the other, beside our whole curve with its intervals."""
    name = f"ruptures' metric at 101 thresholds over {CURVE:,} series, beside our curve"
    if find_spec("ruptures") is None:
        yield Line(f"{name}: ruptures is not installed", "–", "≥ 50 ×", 0.0, None)
        return
    files = points_of(bench.root, CURVE)
    grid = np.linspace(THRESHOLDS["start"], THRESHOLDS["stop"], int(THRESHOLDS["count"])).tolist()

    def peer() -> None:
        deque(ruptures_peer.curve(files.annotations, files.predictions, MARGIN, grid), maxlen=0)

    yield in_turns(peer, results(bench, stage(files) | WITHOUT_SERIES), bench.repeats).ratio(name, at_least=50)


BENCHMARKS: Benchmarks = {
    "one-to-one": one_to_one,
    "run": whole_run,
    "at-once": at_once,
    "curve": curve,
}

if __name__ == "__main__":
    run_all(BENCHMARKS, __doc__, rows=12_000_000)
