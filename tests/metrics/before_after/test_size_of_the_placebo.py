"""A slice of `studies/coverage_of_two_parents.py` with a fixed seed: how often the placebo test is wrong."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from pipeline.metrics.before_after.assumption import placebo

if TYPE_CHECKING:
    from types import ModuleType

SOURCE = Path(__file__).parents[3] / "studies" / "coverage_of_two_parents.py"
DATASETS = 200


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_of_two_parents", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.no_cover
@pytest.mark.parametrize("name", ["independent pairs", "events differ", "days differ, events on 20 days"])
def test_true_nulls_are_rejected_about_as_often_as_the_level_says(benchmark: ModuleType, name: str) -> None:
    """Within three Monte Carlo errors of .03 and .07; it was .01, .01 and .02 before residuals were centred."""
    design = next(design for design in benchmark.DESIGNS if design.name == name)
    rng, rejected = np.random.default_rng(4), []
    for _ in range(DATASETS):
        pairs = benchmark.draw(design, 30, rng)
        (_, events), *crossed = benchmark.clusterings(pairs)["events and days"]
        sides = (events.m_far, events.m_near, events.n_far, events.n_near)
        tests = placebo(*sides, confidence=0.95, crossed=[periods for _, periods in crossed])
        rejected.append(tests.p_value[:2] < 0.05)
    assert 0.015 < np.mean(rejected) < 0.1
