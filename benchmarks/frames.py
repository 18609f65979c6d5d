"""What it costs to hand a frame over, beside the file of its rows: time and peak memory, each in a process of its own.

    python benchmarks/frames.py [--rows 10000000] [--repeats 3] [--forms file polars.DataFrame] [--text]

Every form runs `thresher.threshold_sweep` at 101 thresholds, in turns. Seconds are those of the run alone, with the
libraries imported and the frame loaded. The peak of a form that lies in memory is compared with that of a process that
only loads it: what is on top is what the run takes. With `--text` the rows have a text column that groups them and one
that nothing reads. The target of `polars.DataFrame` is at most 1.2 times the CPU seconds of `file`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl
from side_by_side import MEBI, child

SWEEP = "thresher.threshold_sweep(predictions=rows, thresholds={{'start': 0, 'stop': 1, 'count': 101}}, by={by!r})"
TIMED = (
    "cpu, wall = time.process_time(), time.perf_counter(); {sweep}; "
    "cpu, wall = time.process_time() - cpu, time.perf_counter() - wall; "
    "pathlib.Path({took!r}).write_text(json.dumps([cpu, wall]))"
)
IMPORTS = (
    "import json, pathlib, time, duckdb, polars, pyarrow.dataset, pyarrow.parquet, thresher, pipeline.runs.evaluation"
)
FORMS = {
    "file": "rows = path",
    "polars.DataFrame": "rows = polars.read_parquet(path)",
    "pyarrow.Table": "rows = pyarrow.parquet.read_table(path)",
    "polars.LazyFrame": "rows = polars.scan_parquet(path).with_columns(score=polars.col('score') * 1.0)",
    "csv": "rows = path[:-7] + 'csv'",
}


def main() -> None:
    """Measure every form in turns and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS))
    parser.add_argument("--text", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        _write(path, options.rows, text=options.text, csv="csv" in options.forms)
        by: list[object] = ["source"] if options.text else [[]]
        turns = [{form: _run(FORMS[form], path, by) for form in options.forms} for _ in range(options.repeats)]
        print(f"{options.rows:,} rows, median of {options.repeats}")
        print("| form | CPU seconds | of the first's | on the clock | of the first's | peak MiB | without the run |")
        print("|---|---|---|---|---|---|---|")
        floor_cpu, floor_wall, _ = _medians(turns, options.forms[0])
        for form in options.forms:
            cpu, wall, peak = _medians(turns, form)
            loaded = child([sys.executable, "-c", f"{IMPORTS}; path = {str(path)!r}; {FORMS[form]}"]).peak_rss
            times = f"{cpu:.2f} | {cpu / floor_cpu:.2f} | {wall:.2f} | {wall / floor_wall:.2f}"
            print(f"| {form} | {times} | {peak / MEBI:.0f} | {loaded / MEBI:.0f} |", flush=True)


def _write(path: Path, n_rows: int, *, text: bool, csv: bool) -> None:
    rng = np.random.default_rng(0)
    frame = pl.DataFrame({"score": rng.uniform(size=n_rows), "label": rng.uniform(size=n_rows) < 0.1})
    if text:
        number = pl.int_range(pl.len())
        frame = frame.with_columns(
            source=pl.format("newspaper number {}", number % 20), title=pl.format("the title of article {}", number)
        )
    frame.write_parquet(path)
    if csv:
        frame.write_csv(path.with_suffix(".csv"))


def _run(code: str, path: Path, by: list[object]) -> tuple[float, float, int]:
    """CPU seconds and seconds on the clock of a run alone, and the peak of its process in bytes."""
    took = path.with_name("took.json")
    timed = TIMED.format(sweep=SWEEP.format(by=by), took=str(took))
    done = child([sys.executable, "-c", f"{IMPORTS}; path = {str(path)!r}; {code}; {timed}"])
    cpu, wall = json.loads(took.read_text())
    return cpu, wall, done.peak_rss


def _medians(turns: list[dict[str, tuple[float, float, int]]], form: str) -> tuple[float, float, float]:
    cpu, wall, peak = zip(*(turn[form] for turn in turns), strict=True)
    return median(cpu), median(wall), median(peak)


if __name__ == "__main__":
    main()
