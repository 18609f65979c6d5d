"""What a night costs: a year of daily files, then one day more, beside a run that reads everything.

    python benchmarks/nights.py [--days 365] [--rows 1000000] [--repeats 3] [--data DIR] [--stage before_after]

With `--stage before_after` the days are pairs, and their events lie in one file, or with `--daily-events` in one a day.
Every run is a process of its own: CPU seconds, seconds, and the share of the input files of which rows are read. The
results of the night must be those of a full run, byte for byte, or the benchmark fails.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

COMMON = """
output = "results"
[[stages]]
name = "nightly"
thresholds = { start = 0, stop = 1, count = 101 }
by = ["language"]
"""
KEYS = {
    "threshold_sweep": """
kind = "threshold_sweep"
predictions = "days"
method = "binned"
""",
    "before_after": """
kind = "before_after"
pairs = "days"
events = "events"
window = { before = "48h", after = "24h" }
duplicates = "keep"
event_counts = false
""",
}
RUN = """
import json, resource, sys, time
started = time.perf_counter()
import thresher
run = thresher.run(sys.argv[1], set={"cache": sys.argv[2] == "cache"})
usage = resource.getrusage(resource.RUSAGE_SELF)
reused = json.loads((run.path / "run.json").read_bytes())["reused"]["nightly"].get(sys.argv[3])
read = 0 if run.status == "unchanged" else reused["files_read"] / reused["files"] if reused else 1
facts = dict(path=str(run.path), cpu=usage.ru_utime + usage.ru_stime, read=read)
print(json.dumps(facts | dict(seconds=time.perf_counter() - started)))
"""
RACY_SECONDS = 2.1


@dataclass(frozen=True)
class Took:
    """What one run took."""

    path: str
    cpu: float
    read: float
    seconds: float


def main() -> None:
    """Run the nights in turns and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--days", type=int, default=365)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of a day")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--stage", choices=KEYS, default="threshold_sweep")
    parser.add_argument("--daily-events", action="store_true", help="the events of every day in a file of their own")
    parser.add_argument("--clusters", action="store_true", help="with clusters, of which every day has its own")
    parser.add_argument("--data", type=Path, default=Path(__file__).parent / "data" / "nights")
    options = parser.parse_args()
    is_sweep = options.stage == "threshold_sweep"
    name = options.stage + ("_daily" if options.daily_events else "")
    folder = options.data / f"{name}_{options.days}x{options.rows}"
    make = _predictions if is_sweep else _pairs
    _make(folder / "days", options.days + 1, lambda day: make(day, options.rows))
    if not is_sweep:
        n_files = options.days + 1 if options.daily_events else 1
        n_events = (options.days + 1) // n_files * _events_of(options.rows)
        _make(folder / "events", n_files, lambda day: _events(day, n_events))
    keys = KEYS[options.stage] + ('cluster = "document"' if options.clusters else "")
    (folder / "nightly.toml").write_text(COMMON + keys)
    runs: dict[str, list[Took]] = {name: [] for name in ("full", "first", "nothing new", "one new day")}
    for _ in range(options.repeats):
        for name, took in _night(folder, options.days, "predictions" if is_sweep else "pairs"):
            runs[name].append(took)
    size = sum(path.stat().st_size for path in (folder / "days").iterdir())
    full, idle = median(each.cpu for each in runs["full"]), runs["nothing new"]
    print(f"{options.days:,} days of {options.rows:,} rows, {size / 1e9:.2f} GB, median of {options.repeats}")
    print("| run | seconds | CPU seconds | beyond nothing new, of the full run's CPU | files read |")
    print("|---|---|---|---|---|")
    for name, repeated in runs.items():
        cpu, seconds = median(each.cpu for each in repeated), median(each.seconds for each in repeated)
        beyond = (cpu - median(each.cpu for each in idle)) / full
        read = median(each.read for each in repeated)
        print(f"| {name} | {seconds:.2f} | {cpu:.2f} | {beyond:.1%} | {read:.2%} |")


def _night(folder: Path, days: int, source: str) -> list[tuple[str, Took]]:
    """A full run, the first with a cache, one with nothing new, and one with a day more."""
    shutil.rmtree(folder / "results", ignore_errors=True)
    last = list(folder.glob(f"*/{days:04}.parquet"))
    for path in last:
        path.rename(path.with_suffix(".last"))
    first, idle = _run(folder, "cache", source), _run(folder, "cache", source)
    for path in last:
        path.with_suffix(".last").rename(path)
    time.sleep(RACY_SECONDS)
    new = _run(folder, "cache", source)
    expected = _hashes(Path(new.path))
    shutil.rmtree(folder / "results")
    full = _run(folder, "no cache", source)
    if _hashes(Path(full.path)) != expected:
        message = "the night differs from a full run"
        raise SystemExit(message)
    return [("full", full), ("first", first), ("nothing new", idle), ("one new day", new)]


def _run(folder: Path, cache: str, source: str) -> Took:
    command = [sys.executable, "-c", RUN, str(folder / "nightly.toml"), cache, source]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Took(**json.loads(answer.stdout))


def _hashes(run: Path) -> dict[str, str]:
    paths = sorted(run.rglob("*.parquet"))
    return {str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _make(folder: Path, days: int, frame: Callable[[int], pl.DataFrame]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for day in range(days):
        path = folder / f"{day:04}.parquet"
        if not path.exists():
            frame(day).write_parquet(path)


def _predictions(day: int, rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(day)
    label = rng.random(rows) < 0.1
    return pl.DataFrame(
        {
            "score": np.clip(rng.normal(0.4 + 0.2 * label, 0.15), 0, 1),
            "label": label,
            "language": rng.choice(["en", "nl", "de"], rows),
            "document": rng.integers(0, rows // 100, rows) + day * (rows // 100),
        }
    )


def _pairs(day: int, rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(day)
    after = rng.random(rows) < 0.4
    lag = np.where(after, rng.uniform(0, 24, rows), rng.uniform(-48, 0, rows))
    n_events = _events_of(rows)
    return pl.DataFrame(
        {
            "event_id": rng.integers(0, n_events, rows) + day * n_events,
            "score": np.clip(rng.normal(0.4 + 0.2 * after, 0.15), 0, 1),
            "lag_hours": lag,
        }
    )


def _events(file: int, n_events: int) -> pl.DataFrame:
    rng = np.random.default_rng(file)
    return pl.DataFrame(
        {
            "event_id": np.arange(n_events) + file * n_events,
            "language": rng.choice(["en", "nl", "de"], n_events),
            "n_before": np.full(n_events, 2000),
            "n_after": np.full(n_events, 1000),
        }
    )


def _events_of(rows: int) -> int:
    return max(rows // 1000, 1)


if __name__ == "__main__":
    main()
