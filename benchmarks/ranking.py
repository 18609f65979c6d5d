"""Benchmarks of the stage ranking: every measure of every query, beside reading the columns and beside ranx.

    python benchmarks/ranking.py [--rows 100000000] [--repeats 3] [--only NAME]… [--data DIR] [--json PATH]

A million rows are a thousand queries of a thousand documents. made_data.py says what is in the data. The peer reads the
same Parquet files in a process of its own, if it is installed: `pip install ranx`.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from bench import GIBI, Bench, config_text, run_all
from made_data import rankings_of
from side_by_side import Child, Line, Took, child, in_turns, memory

from pipeline.metrics.ranking import average_precision_moments_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Work = Callable[[], None]

HERE = Path(__file__).resolve().parent
SIZES = 10_000_000
LIMITS = '[resources]\nmemory = "4GB"\n'


def stage(bench: Bench, **settings: object) -> dict[str, Any]:
    """The config of a stage over the data; the pool is larger than the rankings, as documents outside are relevant."""
    ranking, relevance = (str(path.resolve()) for path in rankings_of(bench.root, bench.rows))
    inputs = {"kind": "ranking", "ranking": ranking, "relevance": relevance}
    return inputs | {"n_candidates": 10_000, "duplicates": "keep"} | settings


def floor(bench: Bench) -> Work:
    """Adding up the three columns of the ranking."""
    return bench.floor(
        rankings_of(bench.root, bench.rows)[0], "sum(score)", "sum(strlen(query_id))", "sum(strlen(doc_id))"
    )


def _run(bench: Bench, name: str, **settings: object) -> Iterator[Line]:
    runs: list[Child] = []
    work = _own(bench, runs, **settings)
    yield in_turns(work, floor(bench), bench.repeats).ratio(name)
    yield memory(f"{name}: peak memory", max(each.peak_rss for each in runs), at_most=5 * GIBI)


def _own(bench: Bench, runs: list[Child], **settings: object) -> Callable[[], Took]:
    config, output = bench.root / "ranking.toml", bench.root / "ranking_results"
    config.write_text(LIMITS + config_text(stage(bench, **settings)), encoding="utf-8")

    def work() -> Took:
        output_of_turn = output / str(len(runs))
        runs.append(child([sys.executable, "-m", "pipeline", "run", config, "--output", output_of_turn, "--quiet"]))
        return runs[-1].took

    return work


def whole_run(bench: Bench) -> Iterator[Line]:
    """`thresher run` from start to published results, ties by name."""
    yield from _run(bench, "thresher run, every measure of every query")


def expected(bench: Bench) -> Iterator[Line]:
    """The same with every measure as its mean over the orders of ties."""
    yield from _run(bench, "thresher run, ties expected", ties="expected")


def checked(bench: Bench) -> Iterator[Line]:
    """The same with the check, the default, that no document repeats."""
    yield from _run(bench, "thresher run, duplicates checked", duplicates="error")


def beside_ranx(bench: Bench) -> Iterator[Line]:
    """An established library on the same files."""
    if find_spec("ranx") is None:
        yield Line("ranx, beside thresher run: ranx is not installed", "–", "≥ 5 ×", float("nan"), None)
        return
    runs: list[Child] = []

    def peer() -> Took:
        return child([sys.executable, HERE / "ranx_peer.py", *rankings_of(bench.root, bench.rows)]).took

    times = in_turns(peer, _own(bench, runs), min(bench.repeats, 3))
    yield times.ratio("ranx, beside thresher run", at_least=5)


def moments(bench: Bench) -> Iterator[Line]:
    """Exact moments of ten million different sizes in one call."""
    rng = np.random.default_rng(1)
    n = rng.integers(4, 10**9, SIZES)
    m = (rng.random(SIZES) * n).astype(np.int64) + 1

    def work() -> None:
        average_precision_moments_of(n, m)

    def add_up() -> None:
        np.log(n).sum()

    yield in_turns(work, add_up, bench.repeats).difference("exact moments of 10 million sizes", at_most=10)


BENCHMARKS: dict[str, Callable[[Bench], Iterator[Line]]] = {
    "run": whole_run,
    "expected": expected,
    "checked": checked,
    "ranx": beside_ranx,
    "moments": moments,
}

if __name__ == "__main__":
    run_all(BENCHMARKS, __doc__)
