"""A slice of `studies/coverage_of_crossed_rows.py` with a fixed seed: intervals of rows with two parents."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from types import ModuleType

SOURCE = Path(__file__).parents[3] / "studies" / "coverage_of_crossed_rows.py"
DATASETS = 150


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_of_crossed_rows", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.ROWS_OF_TRUTH = 300_000  # type: ignore[attr-defined] # a seventh of the rows is enough here
    return module


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("words", "of_one"), [("60 × 60, 100%, both differ", 0.93), ("40 × 40, 50%, neither differ", 0.99)]
)
def test_intervals_that_know_both_parents_hold_the_truth(benchmark: ModuleType, words: str, of_one: float) -> None:
    """Mean coverage of areas and ratios is near .95 with both parents, and below that of one parent if both differ."""
    design = next(design for design in benchmark.DESIGNS if str(design) == words)
    measured = benchmark.coverage(design, DATASETS, 5)
    means = {way: np.mean(np.concatenate(list(shares.values()))) for way, shares in measured.items()}
    assert 0.93 <= means["both"] <= 0.985, means
    assert max(means["users"], means["items"]) <= of_one, means
    assert means["both"] > max(means["users"], means["items"]), means
    assert np.concatenate(list(measured["both"].values())).min() >= 0.90, measured["both"]
