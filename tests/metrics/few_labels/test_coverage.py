"""How often limits hold the truth: a small part of studies/few_labels.py, which is always the same."""

from __future__ import annotations

import numpy as np
import pytest

from pipeline.metrics.few_labels.curve import estimated_curve
from pipeline.metrics.few_labels.draws import Labelled, Population, allocation, strata_of_cells, worth_of_cells

ROWS, LABELS, SAMPLES = 5_000, 200, 80


@pytest.mark.wide
def test_limits_hold_the_truth_of_a_population_that_is_sampled_again_and_again() -> None:
    random = np.random.default_rng(11)
    label = random.random(ROWS) < 0.04
    seen = random.standard_normal(ROWS) + 2 * label
    order = np.argsort(seen, kind="stable")
    label, score = label[order], 1 / (1 + np.exp(np.log(24) + 2 - 2 * seen[order]))
    worth = worth_of_cells(score, np.ones(ROWS, np.int64))
    stratum = strata_of_cells(worth, LABELS)
    sizes = np.bincount(stratum)
    numbers = allocation(np.bincount(stratum, worth).astype(np.float64), sizes, LABELS)
    threshold = np.quantile(score[label], 0.4)
    true = {"recall": label[score >= threshold].sum() / label.sum(), "precision": label[score >= threshold].mean()}
    held = dict.fromkeys(true, 0)
    for _ in range(SAMPLES):
        members = [
            random.choice(np.flatnonzero(stratum == index), number, replace=False)
            for index, number in enumerate(numbers)
        ]
        drawn = np.concatenate(members)
        cuts = np.unique(np.append(score[drawn], threshold))[::-1]
        retrieved = np.array(
            [size - np.searchsorted(score[stratum == index], cuts, side="left") for index, size in enumerate(sizes)],
            dtype=np.float64,
        )
        population = Population(cuts, retrieved, sizes.astype(np.float64))
        labelled = Labelled(stratum[drawn], score[drawn], label[drawn], np.ones(LABELS))
        wanted = np.searchsorted(-cuts, [-threshold])
        curve = estimated_curve(population, labelled, wanted=wanted, draws=200)
        for name, value in true.items():
            held[name] += bool(curve.at[name].lower[0] <= value <= curve.at[name].upper[0])
    assert min(held.values()) >= 0.88 * SAMPLES
