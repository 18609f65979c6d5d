"""Benchmarks of the stage threshold_sweep: each job beside the least that could do it, or beside scikit-learn.

    python benchmarks/threshold_sweep.py [--rows 50000000] [--repeats 5] [--only NAME]… [--data DIR] [--json PATH]

README.md says what each line means; made_data.py says what is in the data. The peer reads the same Parquet file with
pyarrow in a process of its own, so that its time and its memory are those of a script that a person would write.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import Bench, run_all
from made_data import items_of, predictions_of
from side_by_side import MEBI, Child, Line, Took, in_process, in_turns

import thresher
from pipeline.base.schemas import Grouping
from pipeline.plan.accounting import count
from pipeline.plan.area_work import Areas, areas
from pipeline.runs.opening import open_inputs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    import polars as pl
    from bench import Benchmarks, Work

HERE = Path(__file__).resolve().parent
THRESHOLDS = {"start": 0.0, "stop": 1.0, "count": 1000}
UNIT_THRESHOLDS = {"start": 0.0, "stop": 1.0, "count": 101}


def stage(bench: Bench, **settings: object) -> dict[str, Any]:
    """The config of a stage over the data."""
    path = predictions_of(bench.root, bench.rows).resolve()
    return {"kind": "threshold_sweep", "predictions": str(path), "thresholds": THRESHOLDS} | settings


def floor(bench: Bench, *columns: str) -> Work:
    """Adding up score and label, and further columns."""
    return bench.floor(predictions_of(bench.root, bench.rows), "sum(score)", "count_if(label)", *columns)


def sweep(bench: Bench) -> Iterator[Line]:
    """1,000 thresholds: two columns."""
    yield in_turns(bench.counts(stage(bench)), floor(bench), bench.repeats).ratio(
        "counts at 1,000 thresholds", at_most=2
    )


def sweep_beside_sklearn(bench: Bench) -> Iterator[Line]:
    """`precision_recall_curve`, which takes every score as threshold, in its own process, beside the counts."""
    peer, _ = _peer(bench, "precision_recall_curve")
    times = in_turns(peer, bench.counts(stage(bench)), min(bench.repeats, 3))
    yield times.ratio("scikit-learn precision_recall_curve, beside these counts", at_least=25)


def replicates(bench: Bench) -> Iterator[Line]:
    """64 replicates, by a join with the clusters."""
    job = bench.counts(stage(bench, cluster="cluster"))
    yield in_turns(job, floor(bench, "sum(cluster)"), bench.repeats).ratio(
        "counts at 1,000 thresholds, 64 replicates of clusters"
    )


def exact(bench: Bench) -> Iterator[Line]:
    """Average precision, ROC AUC and both standard errors by one sort, in a process of its own, beside scikit-learn."""
    peer, peers = _peer(bench, "average_precision_score")
    work, runs = in_process(sys.executable, HERE / "exact_areas.py", predictions_of(bench.root, bench.rows))
    times = in_turns(peer, work, min(bench.repeats, 3))
    yield times.ratio("scikit-learn average_precision_score, beside exact areas with errors", at_least=4)
    peak, peak_of_peer = (max(process.peak_rss for process in processes) for processes in (runs, peers))
    share = peak / peak_of_peer
    name = f"exact areas: peak memory, {peak / MEBI:,.0f} of {peak_of_peer / MEBI:,.0f} MiB"
    yield Line(name, f"{share:.2f} ×", "≤ 0.5 ×", share, share <= 0.5)


def binned(bench: Bench) -> Iterator[Line]:
    """Certified bounds narrower than 1e-5, from cells."""
    job, frames = _areas(bench, method="binned", width=1e-5)
    yield in_turns(job, floor(bench), bench.repeats).ratio("areas by cells, bounds narrower than 1e-5", at_most=5)
    row = frames[-1].row(0, named=True)
    width = row["average_precision_max"] - row["average_precision_min"]
    yield Line("width of the bounds of average precision", f"{width:.1e}", "≤ 1e-05", width, width <= 1e-5)


def whole_run(bench: Bench) -> Iterator[Line]:
    """`thresher run` with exact areas, likelihoods and intervals."""
    yield from bench.whole_run("thresher run", bench.counts(stage(bench)), stage(bench), at_most=None)


def whole_run_beside_floor(bench: Bench) -> Iterator[Line]:
    """`thresher run` with binned areas and likelihoods, without and with calibration, beside what it reads."""
    for name, calibration in (("thresher run, binned", False), ("thresher run, binned, with calibration", "auto")):
        work, _ = bench.run(stage(bench, method="binned", calibration=calibration))
        yield in_turns(work, floor(bench), bench.repeats).ratio(f"{name}, beside its columns", at_most=5)


def whole_run_beside_sklearn(bench: Bench) -> Iterator[Line]:
    """`precision_recall_curve` and `average_precision_score` in one process beside a binned run with its intervals."""
    peer, _ = _peer(bench, "precision_recall_curve", "average_precision_score")
    work, _ = bench.run(stage(bench, method="binned"))
    times = in_turns(peer, work, min(bench.repeats, 3))
    yield times.ratio("scikit-learn curve and average precision, beside thresher run, binned", at_least=15)


def units(bench: Bench) -> Iterator[Line]:
    """`thresher run` with the table of units beside one without it; documents of 500 rows are the units."""
    for name, settings in (("", {}), (", binned areas", {"method": "binned"})):
        keys = {"thresholds": UNIT_THRESHOLDS, "cluster": "document"} | settings
        job, without = (bench.run(stage(bench, units=wanted, **keys))[0] for wanted in (True, False))
        yield in_turns(job, without, bench.repeats).ratio(
            f"thresher run with units{name}, beside one without", at_most=1.3
        )


def sample(bench: Bench) -> Iterator[Line]:
    """`thresher.sample` of a thousand rows, of ids that are numbers and of ids that are texts."""
    path = items_of(bench.root, bench.rows)
    for name, least in (("id", "sum(id)"), ("name", "sum(length(name))")):
        source = {"path": str(path.resolve()), "columns": {"id": name}}

        def job(source: dict[str, Any] = source) -> None:
            thresher.sample(predictions=source, size=1000)

        times = in_turns(job, bench.floor(path, "sum(score)", least), bench.repeats)
        yield times.ratio(f"sample of 1,000 rows by {name}, beside its columns", at_most=2)


def _areas(bench: Bench, **settings: object) -> tuple[Work, list[pl.DataFrame]]:
    """The areas of a stage as a run asks for them, the counts known before."""
    config = bench.config(stage(bench, **settings))
    opened = open_inputs(config, config.stages[0])
    engine = bench.engine()
    counted = count(engine, opened.configured.params, opened.plan)
    asked = next(node for node in opened.plan.nodes if isinstance(node, Areas))
    frames: list[pl.DataFrame] = []

    def work() -> None:
        frames.append(areas(engine, asked, [Grouping(())], [], counted.tables["counts"])[0])

    return work, frames


def _peer(bench: Bench, *names: str) -> tuple[Callable[[], Took], list[Child]]:
    return in_process(sys.executable, HERE / "sklearn_peer.py", predictions_of(bench.root, bench.rows), *names)


BENCHMARKS: Benchmarks = {
    "sweep": sweep,
    "sweep-sklearn": sweep_beside_sklearn,
    "replicates": replicates,
    "exact": exact,
    "binned": binned,
    "run": whole_run,
    "run-floor": whole_run_beside_floor,
    "run-sklearn": whole_run_beside_sklearn,
    "units": units,
    "sample": sample,
}

if __name__ == "__main__":
    run_all(BENCHMARKS, __doc__)
