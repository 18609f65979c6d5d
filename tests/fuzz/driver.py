"""Random cases that every machine draws alike, and the rule for what a run may do with them.

A case is told by its seed. `THRESHER_FUZZ_TIMES` multiplies the number of cases and `THRESHER_FUZZ_SEED` shifts their
seeds; the task `search` of dev.py draws ten times as many from a seed of its own. A failure names the seed of its case:
`THRESHER_FUZZ_SEED=<seed> THRESHER_FUZZ_CASES=1` draws that case alone.
"""

from __future__ import annotations

import os
import random
import re
import secrets
import shutil
import traceback
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import polars as pl
from hypothesis import settings
from running import stage_tables

import pipeline
from pipeline.base.errors import ThresherError
from pipeline.runs.config import load_config, parse_config

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SEARCHES = settings.get_current_profile_name() == "search"
TIMES = float(os.environ.get("THRESHER_FUZZ_TIMES", "10" if SEARCHES else "1"))
FIRST_SEED = int(os.environ.get("THRESHER_FUZZ_SEED", secrets.randbelow(10**9) if SEARCHES else "0"))
ONLY = int(os.environ.get("THRESHER_FUZZ_CASES", "0"))

PROMISED = frozenset({65, 66, 71, 74, 77, 78})
OF_A_LIBRARY = re.compile(
    r"pydantic|Input should|validation error|valid (tuple|dictionary|instance)|function-|Traceback|bug of thresher"
    r"|<class |object at 0x|polars\.exceptions|_duckdb|INTERNAL"
)
LONGEST_MESSAGE, MOST_LINES, MOST_SHOWN = 6000, 6, 1500


@dataclass(frozen=True)
class Outcome:
    """What a run did: its exit code, what it said, and its tables by name."""

    code: int
    text: str = ""
    tables: dict[str, pl.DataFrame] = field(default_factory=dict)


def publish(config: dict[str, Any], base: Path) -> Outcome:
    """Run a config to the end, with a published run."""
    return _told(lambda: _published(config, base))


def count(config: dict[str, Any], base: Path) -> Outcome:
    """Run a config up to the tables of its stages, which is quicker than a published run by half."""
    return _told(lambda: _counted(config, base))


def parsed(config: dict[str, Any] | Path, base: Path) -> Outcome:
    """Read a config, from a file or as a dictionary, and run nothing."""

    def read() -> dict[str, pl.DataFrame]:
        parse_config(config, base=base) if isinstance(config, dict) else load_config(config)
        return {}

    return _told(read)


def _told(run: Callable[[], dict[str, pl.DataFrame]]) -> Outcome:
    try:
        return Outcome(0, tables=run())
    except ThresherError as error:
        return Outcome(error.code, str(error))
    except Exception as error:  # noqa: BLE001 - whatever it is, people would see code 70
        return Outcome(70, "".join(traceback.format_exception(error)[-MOST_LINES:]))


def _published(config: dict[str, Any], base: Path) -> dict[str, pl.DataFrame]:
    run = pipeline.run(parse_config(config, base=base))
    return _tables(run.path)


def _counted(config: dict[str, Any], base: Path) -> dict[str, pl.DataFrame]:
    checked = parse_config({"resources": {"threads": 1}} | config, base=base)
    run = stage_tables(checked)
    tables = _tables(run.path)
    shutil.rmtree(run.path)
    return tables


def _tables(folder: Path) -> dict[str, pl.DataFrame]:
    return {path.parent.name: pl.read_parquet(path) for path in sorted(folder.glob("*/*.parquet"))}


def fault(outcome: Outcome) -> str | None:
    """How an outcome breaks the rule: success, or one clear message with a promised code; None: it keeps it."""
    if outcome.code == 0:
        return None
    if outcome.code not in PROMISED:
        return f"code {outcome.code}: {outcome.text}"
    if not outcome.text.strip() or len(outcome.text) > LONGEST_MESSAGE:
        return f"a message of {len(outcome.text)} characters: {outcome.text[:300]}"
    if match := OF_A_LIBRARY.search(outcome.text):
        return f"the words {match[0]!r} of a library: {outcome.text}"
    return None


def each_case(n_cases: int, judge: Callable[[random.Random], str | None]) -> None:
    """Judge cases by their seeds, and fail with all that break the rule.

    Args:
        n_cases: How many are drawn, unless the environment says more.
        judge: Draws a case from a source of randomness and returns how it breaks the rule, or None.
    """
    last = ONLY or round(n_cases * TIMES)
    faults = []
    for seed in range(FIRST_SEED, FIRST_SEED + last):
        fault_text = judge(random.Random(seed))  # noqa: S311 - cases, not secrets
        if fault_text is not None:
            faults.append(f"THRESHER_FUZZ_SEED={seed} THRESHER_FUZZ_CASES=1\n{fault_text[:MOST_SHOWN]}")
    shown = "\n\n".join(faults[:10])
    assert not faults, f"{len(faults)} of {last} cases from seed {FIRST_SEED} break the rule\n\n{shown}"
