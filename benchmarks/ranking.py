"""Benchmarks of the stage ranking: every measure of every query, beside reading the columns and beside ranx.

    python benchmarks/ranking.py [--rows 100000000] [--repeats 3] [--only NAME]… [--data DIR] [--json PATH]

A million rows are a thousand queries of a thousand documents. made_data.py says what is in the data. The peer, if it is
installed (`pip install ranx`), reads the same Parquet files in a process of its own, of a size that it does in about a
minute; both must find the same average precision of every query without equal scores.
"""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from bench import GIBI, Bench, run_all
from made_data import rankings_of
from side_by_side import Line, Took, in_process, in_turns, memory

from pipeline.metrics.ranking.random_selection import average_precision_moments_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bench import Benchmarks, Work

HERE = Path(__file__).resolve().parent
SIZES = 10_000_000
PEER_ROWS = 20_000_000
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
    work, runs = bench.run(stage(bench, **settings), LIMITS)
    yield in_turns(work, floor(bench), bench.repeats).ratio(name)
    yield memory(name, runs, at_most=5 * GIBI)


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
    """An established library on the same files: without and with its start, of whose time numba takes the most."""
    if find_spec("ranx") is None:
        yield Line("ranx is not installed, so it is not compared", "", "", float("nan"), None)
        return
    small = replace(bench, rows=min(bench.rows, PEER_ROWS))
    work, runs = small.run(stage(small), LIMITS)
    peer, peers = in_process(sys.executable, HERE / "ranx_peer.py", *rankings_of(small.root, small.rows), small.root)

    def without_start() -> Took:
        peer()
        return Took(**json.loads((small.root / "ranx.json").read_text(encoding="utf-8")))

    times = in_turns(without_start, work, min(bench.repeats, 2))
    _check_values(small)
    name = f"ranx on {small.rows:,} rows, beside thresher run"
    yield times.ratio(name, at_least=5)
    with_start = tuple(run.took for run in peers[-len(times.job) :])
    yield replace(times, job=with_start).ratio(f"{name}, start of ranx included")
    yield memory("thresher run", runs, at_most=GIBI)
    yield memory("ranx", peers, at_most=12 * GIBI)


def _check_values(bench: Bench) -> None:
    """Both give the same average precision where no two documents have one score."""
    path = next((bench.root / "results" / "runs").glob("*/ranking_queries/*.parquet"))
    measured = pl.read_parquet(path).select("query_id", "average_precision")
    ranking = pl.scan_parquet(rankings_of(bench.root, bench.rows)[0])
    clear = ranking.group_by("query_id").agg(clear=pl.col("score").is_unique().all()).filter("clear").collect()
    both = measured.join(clear, on="query_id").join(
        pl.read_parquet(bench.root / "ranx.parquet"), on="query_id", how="left"
    )
    assert both.height > measured.height // 3, "hardly a query without equal scores"
    assert np.allclose(both["average_precision"], both["map"], rtol=0, atol=1e-12), "ranx finds other values"


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


BENCHMARKS: Benchmarks = {
    "run": whole_run,
    "expected": expected,
    "checked": checked,
    "ranx": beside_ranx,
    "moments": moments,
}

if __name__ == "__main__":
    run_all(BENCHMARKS, __doc__)
