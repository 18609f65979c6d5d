"""How a whole run scales: to a billion rows, 100,000 files, 10,000 groups, and rows that do not fit into memory.

    python benchmarks/scale.py [--rows 1000000000] [--files 100000] [--only NAME]… [--data DIR]

Every run is a process of its own with a memory limit. README.md says what each line means. A billion rows are ten
copies of a hundred million, 8 GB on disk.
"""

from __future__ import annotations

import argparse
import math
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from bench import config_text
from side_by_side import MEBI, Child, child

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).resolve().parent
ROWS_OF_A_FILE, FILES_MADE = 10_000_000, 10
EVENTS = 200_000
ROWS_OF_A_SMALL_FILE, SMALL_FILES_MADE = 100, 100
GROUPS, ROWS_IN_GROUPS = 10_000, 10_000_000
ROWS_TO_SPILL = 30_000_000
EXPONENT, OVER_LIMIT = 1.05, 1.25
THRESHOLDS = {"start": 0.1, "stop": 60.0, "count": 200}


@dataclass(frozen=True)
class Job:
    """One run.

    Attributes:
        name: What it is.
        rows: Rows of its big input.
        stage: Its stage.
        memory: Memory limit of its engine in MiB.
    """

    name: str
    rows: int
    stage: dict[str, object]
    memory: int = 1024


def main() -> None:
    """Run the jobs asked for and print a table."""
    options = _options()
    options.data.mkdir(parents=True, exist_ok=True)
    print("| job | rows | seconds | CPU seconds | CPU ns a row | peak MiB | of the limit | scratch left |")
    print("|---|---|---|---|---|---|---|---|")
    for name in options.only or JOBS:
        timed = [(job.rows, _line(options.data, job)) for job in JOBS[name](options)]
        if len(timed) > 1:
            for kind in ("wall", "cpu"):
                print(f"{name}: exponent of {kind} time {_exponent(timed, kind):.3f}, at most {EXPONENT} wanted")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1_000_000_000, help="most rows of `rows` (default: %(default)s)")
    parser.add_argument("--files", type=int, default=100_000, help="files of `files` (default: %(default)s)")
    parser.add_argument("--only", action="append", choices=list(JOBS), help="run only this; may be repeated")
    parser.add_argument("--data", type=Path, default=HERE / "data" / "scale", help="folder of the data")
    return parser.parse_args()


def _line(data: Path, job: Job) -> Child:
    """Run a job and print its line; what lies in its scratch folder afterwards is left over."""
    scratch, output, config = data / "scratch", data / "results", data / "run.toml"
    for folder in (scratch, output):
        shutil.rmtree(folder, ignore_errors=True)
    scratch.mkdir(mode=0o700)
    resources = f'[resources]\nmemory = "{job.memory}MiB"\nscratch = "{scratch.resolve()}"\n\n'
    config.write_text(resources + config_text(job.stage), encoding="utf-8")
    ran = child([sys.executable, "-m", "pipeline", "run", config, "--output", output, "--quiet"])
    left = sum(path.stat().st_size for path in scratch.rglob("*") if path.is_file())
    wall, cpu, peak = ran.took.wall, ran.took.cpu, ran.peak_rss / MEBI
    share = peak / job.memory
    verdict = "met" if share <= OVER_LIMIT else "missed"
    figures = f"{wall:.1f} | {cpu:.1f} | {cpu / job.rows * 1e9:.1f} | {peak:,.0f} | {share:.2f} ({verdict})"
    print(f"| {job.name} | {job.rows:,} | {figures} | {left:,} bytes |", flush=True)
    return ran


def _exponent(timed: list[tuple[int, Child]], kind: str) -> float:
    """Slope of the logarithm of time over that of rows, from the fewest rows to the most."""
    (few_rows, quick), (all_rows, slow) = timed[0], timed[-1]
    return math.log(getattr(slow.took, kind) / getattr(quick.took, kind)) / math.log(all_rows / few_rows)


def by_rows(options: argparse.Namespace) -> Iterator[Job]:
    """The main job on ever more rows."""
    paths = [_pairs(options.data / "made" / f"{number}.parquet", number) for number in range(FILES_MADE)]
    rows = ROWS_OF_A_FILE
    while rows <= options.rows:
        folder = options.data / f"pairs_{rows}"
        stage = _before_after(*_copied_pairs(folder, paths, rows // ROWS_OF_A_FILE))
        yield Job("before_after, 64 replicates, 200 thresholds", rows, stage)
        rows *= 10


def by_files(options: argparse.Namespace) -> Iterator[Job]:
    """A sweep over as many files as a year of hours on a dozen machines has."""
    paths = [
        _predictions(options.data / "made_small" / f"{number}.parquet", ROWS_OF_A_SMALL_FILE, number, groups=3)
        for number in range(SMALL_FILES_MADE)
    ]
    folder = _copied(options.data / f"files_{options.files}", paths, options.files)
    name, rows = f"threshold_sweep, {options.files:,} files", options.files * ROWS_OF_A_SMALL_FILE
    yield Job(name, rows, _sweep(folder), memory=1536)  # each file takes some 13 KB beside its rows


def by_groups(options: argparse.Namespace) -> Iterator[Job]:
    """A sweep by a column of many values."""
    path = _predictions(options.data / "grouped" / "0.parquet", ROWS_IN_GROUPS, 0, groups=GROUPS)
    stage = _sweep(path.parent) | {"by": ["group"], "thresholds": {"start": 0, "stop": 1, "count": 21}}
    yield Job(f"threshold_sweep by {GROUPS:,} groups", ROWS_IN_GROUPS, stage, memory=2048)


def beyond_memory(options: argparse.Namespace) -> Iterator[Job]:
    """The check that no pair stands twice, on rows that do not fit into memory."""
    paths = [_pairs(options.data / "made" / f"{number}.parquet", number) for number in range(3)]
    stage = _before_after(*_copied_pairs(options.data / "spilled", paths, 3)) | {"duplicates": "error"}
    yield Job("before_after, pairs checked for duplicates", ROWS_TO_SPILL, stage, memory=512)


def _before_after(folder: Path, events: Path) -> dict[str, object]:
    return {
        "kind": "before_after",
        "pairs": str(folder.resolve()),
        "events": str(events.resolve()),
        "thresholds": THRESHOLDS,
        "window": {"before": "168h", "after": "72h"},
        "duplicates": "keep",
    }


def _sweep(folder: Path) -> dict[str, object]:
    return {
        "kind": "threshold_sweep",
        "predictions": str(folder.resolve()),
        "thresholds": {"start": 0, "stop": 1, "count": 101},
        "method": "binned",
        "outcomes": False,
    }


def _pairs(path: Path, seed: int) -> Path:
    """Scored pairs in small columns: ids of four bytes, scores of two decimals, whole hours."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        rng, rows = np.random.default_rng([1, seed]), ROWS_OF_A_FILE
        lag = rng.integers(-168, 72, rows, dtype=np.int16)
        score = rng.gamma(2.0, 3.0, rows) + 20.0 * ((lag >= 0) & (rng.random(rows) < 0.02))
        columns = {
            "event_id": rng.integers(0, EVENTS, rows, dtype=np.int32),
            "article_id": np.arange(rows, dtype=np.int32) + seed * rows,
            "score": np.round(score, 2).astype(np.float32),
            "lag_hours": lag,
        }
        pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=1_000_000)
    return path


def _copied_pairs(folder: Path, paths: list[Path], files: int) -> tuple[Path, Path]:
    """A folder of copies of pairs, and their events with the numbers of compared articles."""
    events = folder.with_name(f"{folder.name}_events.parquet")
    if not events.exists():
        counts = np.zeros((2, EVENTS), dtype=np.int64)
        for number, path in enumerate(paths):
            pairs, times = pq.read_table(path, columns=["event_id", "lag_hours"]), len(range(number, files, len(paths)))
            event, lag = (pairs[name].to_numpy() for name in ("event_id", "lag_hours"))
            counts += times * np.array([np.bincount(event[side], minlength=EVENTS) for side in (lag < 0, lag >= 0)])
        columns = {"event_id": np.arange(EVENTS, dtype=np.int32), "n_before": counts[0], "n_after": counts[1]}
        pq.write_table(pa.table(columns), events)
    return _copied(folder, paths, files), events


def _predictions(path: Path, rows: int, seed: int, *, groups: int) -> Path:
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        rng = np.random.default_rng([2, seed])
        label = rng.random(rows) < 0.2
        columns = {
            "score": np.clip(rng.normal(0.4 + 0.2 * label, 0.15), 0, 1),
            "label": label,
            "group": rng.integers(0, groups, rows, dtype=np.int32),
        }
        pq.write_table(pa.table(columns), path, compression="zstd", row_group_size=1_000_000)
    return path


def _copied(folder: Path, paths: list[Path], files: int) -> Path:
    """A folder of so many files, all of them copies of those made, in turn; links are refused as one file."""
    if not folder.exists():
        folder.mkdir(parents=True)
        for number in range(files):
            shutil.copyfile(paths[number % len(paths)], folder / f"{number:06}.parquet")
    return folder


JOBS: dict[str, Callable[[argparse.Namespace], Iterator[Job]]] = {
    "rows": by_rows,
    "files": by_files,
    "groups": by_groups,
    "memory": beyond_memory,
}

if __name__ == "__main__":
    main()
