"""Damaged Parquet files: a result, or one clear message that names the file; the reader neither dies nor hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.calls import spawn

from fuzz import mutants
from fuzz.driver import FIRST_SEED, ONLY, TIMES

pytestmark = pytest.mark.fuzz

N_MUTANTS, N_FOOTERS = 120, 150
SECONDS_EACH = 20.0


def test_a_damaged_file_is_read_or_refused_in_one_message_that_names_it(tmp_path: Path) -> None:
    last = FIRST_SEED + (ONLY or round(N_MUTANTS * TIMES))
    first, faults = FIRST_SEED, []
    while first < last:
        outcomes, end = _run(tmp_path, first, last - first)
        faults += [
            f"THRESHER_FUZZ_SEED={seed} THRESHER_FUZZ_CASES=1: {text}" for seed, text in outcomes.items() if text
        ]
        if end is not None:
            faults.append(f"THRESHER_FUZZ_SEED={first + len(outcomes)} THRESHER_FUZZ_CASES=1: {end}")
        first += len(outcomes) + (end is not None)
    assert not faults, "\n".join(faults[:10])


def test_a_flipped_bit_of_a_footer_is_refused_or_changes_no_number(tmp_path: Path) -> None:
    last = FIRST_SEED + (ONLY or round(N_FOOTERS * TIMES))
    first, faults, deadly = FIRST_SEED, [], []
    while first < last:
        outcomes, end = _run(tmp_path, first, last - first, "footer")
        faults += [text for text in outcomes.values() if text]
        first += len(outcomes)
        if end is not None:
            deadly.append(first)
            first += 1
    config = tmp_path / "config.toml"
    config.write_text('output = "r"\n[[stages]]\nkind = "threshold_sweep"\npredictions = "mutant.parquet"\n')
    for number in deadly:  # pyarrow ends its process, which a command survives
        change, data = mutants.flipped(number, mutants.written(tmp_path))
        (tmp_path / "mutant.parquet").write_bytes(data)
        called = spawn("run", config, cwd=tmp_path)
        if called.code != 65 or "mutant.parquet" not in called.err:
            faults.append(f"{change}: {called.code}: {called.err[-1000:]}")
    assert not faults, "\n".join(faults[:10])


def _run(folder: Path, first: int, n_cases: int, *mode: str) -> tuple[dict[int, str | None], str | None]:
    """Outcomes by seed, and how the process ended where it did not end by itself."""
    words = [sys.executable, mutants.__file__, str(folder), str(first), str(n_cases), *mode]
    roots = [str(Path(mutants.__file__).parents[1]), str(Path(mutants.__file__).parents[2])]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(roots)}
    try:
        limit = 60 + SECONDS_EACH * n_cases
        done = subprocess.run(words, env=environment, capture_output=True, text=True, check=False, timeout=limit)
        written, end = (
            done.stdout,
            f"it ended with {done.returncode}: {done.stderr[-1000:]}" if done.returncode else None,
        )
    except subprocess.TimeoutExpired as error:
        written, end = (error.stdout or b"").decode(), "it hangs"
    lines = [json.loads(line) for line in written.splitlines()]
    return {line["seed"]: line["fault"] for line in lines if "seed" in line}, end
