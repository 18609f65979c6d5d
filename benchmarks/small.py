"""What small jobs cost: CPU of calls on a thousand rows, of first calls, and of whole commands.

    python benchmarks/small.py [--repeats 9] [--json PATH]

Everything is measured in turns in one run, beside scikit-learn's curve, average precision and area on the same rows,
and beside a process that imports polars, duckdb and typer. The ratios count, not the seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import numpy as np
import polars as pl
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score
from stage_examples import EXAMPLES

import thresher

if TYPE_CHECKING:
    from collections.abc import Callable

ROOT = Path(__file__).resolve().parent.parent
N_ROWS = 1_000
PUBLISHED_ROWS = 2_000
BARE = "import polars, duckdb, typer"
SKLEARN = "scikit-learn: curve, AP and AUC of 1,000 rows"
CALL = "threshold_sweep of 1,000 rows"


def made_rows(n: int) -> dict[str, object]:
    """Scores near their labels, with a group of two and of a hundred."""
    draw = np.random.default_rng(1)
    label = draw.random(n) < 0.3
    score = np.clip(np.round(draw.normal(0.3 + 0.3 * label, 0.2), 4), 0, 1)
    return {"score": score, "label": label, "two": np.arange(n) % 2, "hundred": np.arange(n) % 100}


def calls() -> dict[str, Callable[[], object]]:
    """What is called again and again in one process."""
    rows = pl.DataFrame(made_rows(N_ROWS))
    score, label = rows["score"].to_numpy(), rows["label"].to_numpy()

    def peers() -> None:
        precision_recall_curve(label, score)
        average_precision_score(label, score)
        roc_auc_score(label, score)

    def sweep(**keys: Any) -> Callable[[], object]:  # noqa: ANN401
        return lambda: thresher.threshold_sweep(predictions=rows, **keys)

    work: dict[str, Callable[[], object]] = {
        SKLEARN: peers,
        CALL: sweep(),
        f"{CALL}, uncertainty none": sweep(uncertainty="none"),
        f"{CALL}, and no calibration": sweep(uncertainty="none", calibration=False),
        f"{CALL}, by two groups": sweep(by=["two"]),
        f"{CALL}, by a hundred groups": sweep(by=["hundred"]),
    }
    for example in EXAMPLES:
        if example.kind != "threshold_sweep":
            inputs = {name: {"path": frame, "columns": example.columns(name)} for name, frame in example.frames.items()}
            function = getattr(thresher, example.kind)
            work[f"{example.kind} of a few rows"] = partial(function, **inputs, **example.keys)
    return work


def commands(folder: Path) -> dict[str, list[str]]:
    """What is started anew each time; the rows are new in every turn, so that the first run publishes."""
    config = folder / "sweep.toml"
    config.write_text('output = "results"\n[[stages]]\nkind = "threshold_sweep"\npredictions = "rows.parquet"\n')
    program = [sys.executable, "-m", "pipeline"]
    pl.DataFrame(made_rows(N_ROWS)).write_parquet(folder / "thousand.parquet")
    call = "import polars, thresher; thresher.threshold_sweep(predictions=polars.read_parquet('thousand.parquet'))"
    return {
        BARE: [sys.executable, "-c", BARE],
        "import thresher and a first call": [sys.executable, "-c", call],
        "thresher --help": [*program, "--help"],
        "a Typer program with two commands: --help": [
            sys.executable,
            str(ROOT / "benchmarks/bare_program.py"),
            "--help",
        ],
        "run that publishes 2,000 rows": [*program, "run", str(config)],
        "run that finds nothing new": [*program, "run", str(config)],
    }


def cpu_of(command: list[str], folder: Path) -> float:
    """CPU seconds of a process and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPATH"] = str(ROOT)
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def measured(repeats: int) -> dict[str, list[float]]:
    """CPU seconds by job, measured in turns after one warm-up of each."""
    seconds: dict[str, list[float]] = {}
    work = calls()
    for turn in range(repeats + 1):
        for name, call in work.items():
            started = time.process_time()
            call()
            if turn:
                seconds.setdefault(name, []).append(time.process_time() - started)
    with tempfile.TemporaryDirectory() as name_of_folder:
        folder = Path(name_of_folder)
        for turn in range(repeats + 1):
            rows = pl.DataFrame(made_rows(PUBLISHED_ROWS)).with_columns(turn=pl.lit(turn))
            rows.write_parquet(folder / "rows.parquet")
            for name, command in commands(folder).items():
                taken = cpu_of(command, folder)
                if turn:
                    seconds.setdefault(name, []).append(taken)
    return seconds


def main() -> None:
    """Print a table of medians, minima and ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    seconds = measured(options.repeats)
    bare, peers = median(seconds[BARE]), median(seconds[SKLEARN])
    print(f"{'job':50} {'median s':>9} {'lowest':>9} {'× scikit-learn':>15} {'× bare import':>14}")
    for name, values in seconds.items():
        of_peers, of_bare = median(values) / peers, median(values) / bare
        print(f"{name:50} {median(values):9.3f} {min(values):9.3f} {of_peers:15.1f} {of_bare:14.2f}")
    if options.json:
        options.json.write_text(json.dumps(seconds, indent=1))


if __name__ == "__main__":
    main()
