"""What a night costs: a year of daily files, then one day more, beside a run that reads everything.

    python benchmarks/nights.py [--days 365] [--rows 1000000] [--repeats 3] [--data DIR]

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

import numpy as np
import polars as pl

CONFIG = """
output = "results"
[[stages]]
kind = "threshold_sweep"
predictions = "days"
thresholds = {{ start = 0, stop = 1, count = 101 }}
method = "binned"
by = ["language"]
{keys}
"""
RUN = """
import json, resource, sys, time
started = time.perf_counter()
import thresher
run = thresher.run(sys.argv[1], set={"cache": sys.argv[2] == "cache"})
usage = resource.getrusage(resource.RUSAGE_SELF)
reused = json.loads((run.path / "run.json").read_bytes())["reused"]["threshold_sweep"].get("predictions")
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
    parser.add_argument("--clusters", action="store_true", help="with clusters, of which every day has its own")
    parser.add_argument("--data", type=Path, default=Path(__file__).parent / "data" / "nights")
    options = parser.parse_args()
    folder = options.data / f"{options.days}x{options.rows}"
    _make(folder / "days", options.days + 1, options.rows)
    (folder / "nightly.toml").write_text(CONFIG.format(keys='cluster = "document"' if options.clusters else ""))
    runs: dict[str, list[Took]] = {name: [] for name in ("full", "first", "nothing new", "one new day")}
    for _ in range(options.repeats):
        for name, took in _night(folder, options.days):
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


def _night(folder: Path, days: int) -> list[tuple[str, Took]]:
    """A full run, the first with a cache, one with nothing new, and one with a day more."""
    last = folder / "days" / f"{days:04}.parquet"
    shutil.rmtree(folder / "results", ignore_errors=True)
    last.rename(folder / "last")
    first, idle = _run(folder, "cache"), _run(folder, "cache")
    (folder / "last").rename(last)
    time.sleep(RACY_SECONDS)
    new = _run(folder, "cache")
    expected = _hashes(Path(new.path))
    shutil.rmtree(folder / "results")
    full = _run(folder, "no cache")
    if _hashes(Path(full.path)) != expected:
        message = "the night differs from a full run"
        raise SystemExit(message)
    return [("full", full), ("first", first), ("nothing new", idle), ("one new day", new)]


def _run(folder: Path, cache: str) -> Took:
    command = [sys.executable, "-c", RUN, str(folder / "nightly.toml"), cache]
    answer = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    return Took(**json.loads(answer.stdout))


def _hashes(run: Path) -> dict[str, str]:
    paths = sorted(run.rglob("*.parquet"))
    return {str(path.relative_to(run)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def _make(folder: Path, days: int, rows: int) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for day in range(days):
        path = folder / f"{day:04}.parquet"
        if path.exists():
            continue
        rng = np.random.default_rng(day)
        label = rng.random(rows) < 0.1
        frame = pl.DataFrame(
            {
                "score": np.clip(rng.normal(0.4 + 0.2 * label, 0.15), 0, 1),
                "label": label,
                "language": rng.choice(["en", "nl", "de"], rows),
                "document": rng.integers(0, rows // 100, rows) + day * (rows // 100),
            }
        )
        frame.write_parquet(path)


if __name__ == "__main__":
    main()
