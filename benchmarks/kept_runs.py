"""What publishing and opening cost beside 1,000 kept runs, compared with 10: `python benchmarks/kept_runs.py`.

One small run is made and published as it always is. Copies of its folder with other ids then stand for earlier runs, as
many as asked for, and `verify --repair` makes their catalog. Every further publication counts the small input
again with another parameter. Both results folders take turns, so that a busy machine slows both alike.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.runs.config import parse_config
from pipeline.runs.runner import run
from pipeline.storage.catalog import open_results
from pipeline.storage.layout import MANIFEST, RUN_RECORD, Layout, new_run_id, parse_manifest, run_name
from pipeline.storage.publish import verify

if TYPE_CHECKING:
    from collections.abc import Callable

N_EVENTS, N_PAIRS, SOURCES = 60, 4_000, 5


def write_inputs(folder: Path) -> None:
    """Write pairs and events of a small job."""
    rng = np.random.default_rng(1)
    lag = np.round(rng.uniform(-100.0, 100.0, N_PAIRS), 1)
    score = np.round(rng.gamma(2.0, 1.5, N_PAIRS) + np.where((lag >= 0) & (rng.random(N_PAIRS) < 0.5), 5.0, 0.0), 2)
    events = np.arange(N_EVENTS)
    pairs = {"event_id": rng.integers(0, N_EVENTS, N_PAIRS), "article_id": np.arange(N_PAIRS)}
    pl.DataFrame(pairs | {"score": score, "lag_hours": lag}).write_parquet(folder / "pairs.parquet")
    totals = {"event_id": events, "n_before": events * 0 + 60, "n_after": events * 0 + 60}
    pl.DataFrame(totals | {"source": [f"s{event % SOURCES}" for event in events]}).write_parquet(
        folder / "events.parquet"
    )


def publish(base: Path, results: Path, confidence: float) -> None:
    """Run the job once."""
    stage = {
        "kind": "before_after",
        "pairs": str(base / "pairs.parquet"),
        "events": str(base / "events.parquet"),
        "by": ["source"],
        "thresholds": {"start": 1.0, "stop": 10.0, "count": 46},
        "confidence": confidence,
        "duplicates": "keep",
    }
    run(parse_config({"output": str(results), "stages": [stage]}, base=base, origin="benchmark"))


def add_copies(layout: Layout, count: int) -> None:
    """Put copies of the first run behind it, each with an id of its own."""
    (folder,) = layout.runs.iterdir()
    manifest = parse_manifest((folder / MANIFEST).read_bytes(), folder / MANIFEST)
    layout.current.unlink()
    layout.catalog.unlink()
    for generation in range(2, count + 1):
        copied = replace(manifest, run_id=new_run_id(), generation=generation)
        target = layout.runs / run_name(generation, copied.run_id)
        shutil.copytree(folder, target)
        (target / MANIFEST).write_text(json.dumps(copied.to_json(), indent=2, ensure_ascii=False) + "\n")
        attempt = json.loads((folder / RUN_RECORD).read_bytes()) | {"run_id": copied.run_id}
        layout.attempt(copied.run_id).write_text(json.dumps(attempt, indent=2))


def timed(work: Callable[..., object], *words: object, **options: object) -> tuple[float, float]:
    """Return the seconds that work takes: on the clock, and of all threads."""
    wall, cpu = time.perf_counter(), time.process_time()
    work(*words, **options)
    return time.perf_counter() - wall, time.process_time() - cpu


def open_and_read(results: Path) -> None:
    """Open results and read one number."""
    with open_results(results) as connection:
        connection.execute("SELECT max(precision) FROM before_after_estimates").fetchall()


def main() -> None:
    """Time both folders in turns and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, nargs=2, default=[10, 1000], help="numbers of kept runs")
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        base = Path(temporary)
        write_inputs(base)
        folders = [base / f"results{count}" for count in options.runs]
        for folder, count in zip(folders, options.runs, strict=True):
            publish(base, folder, 0.5)
            add_copies(Layout(folder), count)
            seconds, _ = timed(verify, folder, repair=True)
            size = (folder / "catalog.duckdb").stat().st_size / 1e6
            print(f"{count:>5} runs: catalog of {size:.1f} MB, built and verified in {seconds:.1f} s")
        times: dict[tuple[str, Path], list[tuple[float, float]]] = {}
        for turn in range(options.repeats + 1):
            for folder in folders:
                publishing = timed(publish, base, folder, 0.6 + turn / 100)
                opening = timed(open_and_read, folder)
                if turn:  # the first is a warm-up
                    times.setdefault(("publish", folder), []).append(publishing)
                    times.setdefault(("open", folder), []).append(opening)
        for job in ("publish", "open"):
            beside_fewer, beside_more = (
                [median(column) for column in zip(*times[job, folder], strict=True)] for folder in folders
            )
            ratios = " and ".join(f"{b / a:.2f}" for a, b in zip(beside_fewer, beside_more, strict=True))
            wall = f"{beside_fewer[0] * 1e3:.0f} → {beside_more[0] * 1e3:.0f} ms"
            cpu = f"{beside_fewer[1] * 1e3:.0f} → {beside_more[1] * 1e3:.0f} ms of CPU"
            print(f"{job:>8}: {ratios} × ({wall}; {cpu}); target 1.5 ×")


if __name__ == "__main__":
    main()
