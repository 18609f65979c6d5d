"""Benchmarks of the stage entity_recognition: each job beside the least that could do it, or beside nervaluate.

    python benchmarks/toponyms.py [--rows 10000000] [--repeats 5] [--only NAME]… [--data DIR] [--json PATH]

`--rows` counts gold and predicted mentions together, ten in a document; made_mentions.py says what is in them. The peer
reads the same Parquet files in a process of its own, as many mentions as it can do in about a minute.
"""

from __future__ import annotations

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow.parquet as pq
from bench import GIBI, Bench, in_order, run_all
from made_mentions import mentions_of
from side_by_side import Line, Times, Took, child, in_turns, memory

from pipeline.plan.accounting import count
from pipeline.runs.opening import open_inputs

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench import Benchmarks, Work

HERE = Path(__file__).resolve().parent
PROBE_ROWS = 1_000_000
MINUTE = 60
ROUND_TO = 100_000
COUNTS = "nervaluate.json"
THRESHOLDS = {"start": 0.0, "stop": 0.99, "count": 100}


def stage(bench: Bench, rows: int, **settings: object) -> dict[str, Any]:
    """The config of a stage over the data."""
    folder = mentions_of(bench.root, rows).resolve()
    inputs = {name: str(folder / f"{name}.parquet") for name in ("gold", "predicted")}
    return {
        "kind": "entity_recognition",
        **inputs,
        "averages": ["micro"],
        "outcomes": False,
        "thresholds": THRESHOLDS,
    } | settings


def floor(bench: Bench, *columns: str) -> Work:
    """Adding up the columns of both files."""
    folder = mentions_of(bench.root, bench.rows)
    return in_order(*(bench.floor(folder / f"{name}.parquet", *columns) for name in ("gold", "predicted")))


def counted(bench: Bench, **settings: object) -> Work:
    """Binding, checks, matching and all counts of a stage, as a run asks for them."""
    config = bench.config(stage(bench, bench.rows, **settings))

    def work() -> None:
        opened = open_inputs(config, config.stages[0])
        count(bench.engine(), opened.configured.params, opened.plan)

    return work


def spans(bench: Bench) -> Iterator[Line]:
    """Identical spans, 100 thresholds, counts of every document."""
    least = floor(bench, "sum(doc_id)", "sum(start)", 'sum("end")')
    job = counted(bench, thresholds=THRESHOLDS)
    yield in_turns(job, least, bench.repeats).ratio("identical spans matched and counted")


def overlap(bench: Bench) -> Iterator[Line]:
    """Overlapping spans by maximum matching, likewise."""
    least = floor(bench, "sum(doc_id)", "sum(start)", 'sum("end")')
    job = counted(bench, thresholds=THRESHOLDS, match="overlap")
    yield in_turns(job, least, bench.repeats).ratio("overlapping spans matched and counted")


def whole_run(bench: Bench) -> Iterator[Line]:
    """`thresher run` with intervals and macro averages at 100 thresholds."""
    least = floor(bench, "sum(doc_id)", "sum(start)", 'sum("end")')
    settings = stage(bench, bench.rows, thresholds=THRESHOLDS)
    for averages in (["micro"], ["micro", "macro"]):
        work, runs = bench.run(settings | {"averages": averages})
        name = f"thresher run, {' and '.join(averages)}"
        yield in_turns(work, least, bench.repeats).ratio(name)
        yield memory(name, runs, at_most=4 * GIBI)


def nervaluate(bench: Bench) -> Iterator[Line]:
    """A whole run beside nervaluate on as many mentions as it can do in a minute; both count the same strict matches.

    It works on one core, so that its processor time says how many that are, however busy the machine is. It runs once;
    the short runs before and after it are warmed up. It gives no intervals, so that its job is a run without them.
    """
    if find_spec("nervaluate") is None:
        yield Line("nervaluate is not installed, so it is not compared", "", "", 0.0, None)
        return
    probe = _evaluate(bench, PROBE_ROWS).cpu
    rows = int(PROBE_ROWS * MINUTE / probe) // ROUND_TO * ROUND_TO
    name = f"nervaluate on {rows:,} mentions, beside thresher run"
    run, _ = bench.run(stage(bench, rows, match_type=True, uncertainty="none"))
    run()
    before = [run() for _ in range(bench.repeats)]
    peer = _evaluate(bench, rows)
    times = Times((peer,), (*before, *(run() for _ in range(bench.repeats))))
    yield times.ratio(f"{name} without intervals", at_least=20)
    run, runs = bench.run(stage(bench, rows, match_type=True))
    yield Times((peer,), tuple(run() for _ in range(bench.repeats))).ratio(f"{name} with intervals")
    assert _counts_of_run(bench) == json.loads((bench.root / COUNTS).read_text(encoding="utf-8"))
    yield memory("thresher run on as many", runs, at_most=4 * GIBI)


def _evaluate(bench: Bench, rows: int) -> Took:
    folder = mentions_of(bench.root, rows)
    return child([sys.executable, HERE / "nervaluate_peer.py", folder, bench.root / COUNTS]).took


def _counts_of_run(bench: Bench) -> dict[str, int]:
    """Counts at the lowest threshold, which retrieves every prediction."""
    name = "entity_recognition_scores/entity_recognition.parquet"
    (path,) = (bench.root / "results").glob(f"runs/*/{name}")
    table = pq.read_table(path, columns=["threshold", "tp", "fp", "fn"], filters=[("threshold", "=", 0.0)])
    row: dict[str, int] = table.drop_columns("threshold").to_pylist()[0]
    return row


BENCHMARKS: Benchmarks = {
    "spans": spans,
    "overlap": overlap,
    "run": whole_run,
    "nervaluate": nervaluate,
}

if __name__ == "__main__":
    run_all(BENCHMARKS, __doc__)
