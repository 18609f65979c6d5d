"""What it costs to hand a frame over, beside the file of its rows: time and peak memory, each in a process of its own.

    python benchmarks/frames.py [--rows 5000000] [--repeats 3]

Every form runs `thresher.threshold_sweep` at 101 thresholds. The peak of a form that lies in memory is compared with
that of a process that only loads it: what is on top is what the run takes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import median

import numpy as np
import polars as pl
from side_by_side import MEBI, child

SWEEP = "thresher.threshold_sweep(predictions=rows, thresholds={'start': 0, 'stop': 1, 'count': 101})"
FORMS = {
    "file": "rows = path",
    "polars.DataFrame": "import polars; rows = polars.read_parquet(path)",
    "pyarrow.Table": "import pyarrow.parquet; rows = pyarrow.parquet.read_table(path)",
    "polars.LazyFrame": "import polars; rows = polars.scan_parquet(path).with_columns(score=polars.col('score') * 1.0)",
    "csv": "rows = path[:-7] + 'csv'",
}


def main() -> None:
    """Measure every form in turns and print a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        rng = np.random.default_rng(0)
        frame = pl.DataFrame({"score": rng.uniform(size=options.rows), "label": rng.uniform(size=options.rows) < 0.1})
        frame.write_parquet(path)
        frame.write_csv(path.with_suffix(".csv"))
        del frame
        print(f"{options.rows:,} rows, median of {options.repeats}")
        print("| form | CPU seconds | of the file's | peak MiB | without the run |")
        print("|---|---|---|---|---|")
        measured = {form: [_measure(code, path) for _ in range(options.repeats)] for form, code in FORMS.items()}
        floor = median(cpu for cpu, _ in measured["file"])
        for form, runs in measured.items():
            cpu, peak = median(cpu for cpu, _ in runs), median(peak for _, peak in runs)
            _, loaded = _measure(FORMS[form], path, run=False)
            print(f"| {form} | {cpu:.2f} | {cpu / floor:.2f} | {peak / MEBI:.0f} | {loaded / MEBI:.0f} |")


def _measure(code: str, path: Path, *, run: bool = True) -> tuple[float, int]:
    text = f"import thresher; path = {str(path)!r}; {code}; {SWEEP if run else 'pass'}"
    done = child([sys.executable, "-c", text])
    return done.took.cpu, done.peak_rss


if __name__ == "__main__":
    main()
