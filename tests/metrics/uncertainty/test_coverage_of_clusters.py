"""A slice of `studies/coverage_of_clusters.py` with a fixed seed: intervals between clusters of unequal size."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

if TYPE_CHECKING:
    from types import ModuleType

SOURCE = Path(__file__).parents[3] / "studies" / "coverage_of_clusters.py"
DATASETS = 150


@pytest.fixture(scope="module")
def benchmark() -> ModuleType:
    spec = importlib.util.spec_from_file_location("coverage_of_clusters", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.POPULATION = 40_000  # type: ignore[attr-defined] # a tenth of the clusters is enough here
    return module


@pytest.mark.no_cover
@pytest.mark.parametrize(("words", "lowest"), [("20 equal", 0.90), ("40 lognormal(1)", 0.87)])
def test_the_bootstrap_holds_the_truth_about_as_often_as_the_page_says(
    benchmark: ModuleType, words: str, lowest: float
) -> None:
    """Within three Monte Carlo errors; with equal tails alone 20 equal clusters held average precision in 85%."""
    design = next(design for design in benchmark.DESIGNS if str(design) == words)
    covered = benchmark.coverage(design, DATASETS, 0.95, 3, resamples=199).covered["all"]
    shares = np.concatenate([np.ravel(share) for share in covered.values()])
    assert shares.min() >= lowest, covered
    assert 0.92 <= shares.mean() <= 0.985


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("words", "lowest", "marked"),
    [
        ("40 pareto(1.2)", 0.91, (0.4, 0.8)),
        ("100 pareto(1.3)", 0.91, (0.1, 0.4)),
        ("30 pareto(1.3), quality", 0.82, (0.4, 0.8)),
        ("40 equal", 0.91, (0.0, 0.0)),
        ("100 lognormal(1)", 0.89, (0.0, 0.02)),
    ],
)
def test_intervals_hold_the_truth_about_as_often_as_the_page_says(
    benchmark: ModuleType, words: str, lowest: float, marked: tuple[float, float]
) -> None:
    """Within three Monte Carlo errors; before variances, degrees and skewness knew of sizes, the areas held .88."""
    design = next(design for design in benchmark.DESIGNS if str(design) == words)
    measured = benchmark.coverage(design, DATASETS, 0.95, 3)
    covered = measured.covered["all"]
    assert min(np.min(shares) for shares in covered.values()) >= lowest, covered
    areas = [covered[name] for name in ("average_precision", "roc_auc")]
    assert np.mean(areas) >= 0.92, areas
    assert marked[0] <= measured.marked <= marked[1]


@pytest.mark.no_cover
def test_samples_without_a_rare_broken_cluster_miss_and_the_others_hold(benchmark: ModuleType) -> None:
    design = next(design for design in benchmark.DESIGNS if str(design) == "24 equal, 1 in 12 broken")
    measured = benchmark.coverage(design, 300, 0.95, 3)
    assert measured.marked == 0
    assert 0.82 <= measured.covered["all"]["roc_auc"] <= 0.94
    assert measured.covered["none broken"]["roc_auc"] < 0.75
    assert min(np.min(shares) for shares in measured.covered["all"].values()) == measured.covered["all"]["roc_auc"]
