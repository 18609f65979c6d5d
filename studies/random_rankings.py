"""Average precision of random rankings, as Zhang & Su (2012, section III) simulate it, beside the exact values.

    python studies/random_rankings.py [--n 1000] [--m 100] [--datasets 10000] [--seed 1]

n documents, of which m are relevant, are put in random order, 10,000 times as in the paper: mean, variance and the
quantiles of its Table III, beside the exact moments and the ones that the paper prints as theoretical, which are wrong.
"""

from __future__ import annotations

import warnings

import numpy as np
from harness import Floats, Table, options, print_table

from pipeline.metrics.ranking.random_selection import (
    average_precision_moments,
    average_precision_skewness,
    zhang_su_2012_moments,
)

QUANTILES = (0.025, 0.5, 0.975)
PART = 2_000_000


def simulated(n: int, m: int, rankings: int, seed: int) -> Floats:
    """Average precision of random rankings, as many at a time as make arrays of a few million numbers."""
    rng = np.random.default_rng(seed)
    batches, step = [], max(1, PART // n)
    for start in range(0, rankings, step):
        keys = rng.random((min(step, rankings - start), n))
        ranks = np.sort(np.argpartition(keys, m - 1, axis=1)[:, :m] + 1, axis=1)
        batches.append((np.arange(1, m + 1) / ranks).mean(axis=1))
    return np.concatenate(batches)


def rows(n: int, m: int, values: Floats) -> Table:
    """The table of a size, from the average precision of random rankings."""
    exact, number = average_precision_moments(n, m), len(values)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        printed = zhang_su_2012_moments(n, m) if m > 1 else (float("nan"), float("nan"))
    mean, variance = values.mean(), values.var(ddof=1)
    errors = (variance**0.5 / number**0.5, np.std((values - mean) ** 2) / number**0.5)
    for index, (name, moment) in enumerate((("mean", mean), ("variance", variance))):
        yield name, f"{exact[index]:.6g}", f"{moment:.6g}", f"{errors[index]:.1g}", f"{printed[index]:.4g}"
    centred = (values - mean) / variance**0.5
    yield "skewness", f"{average_precision_skewness(n, m):.6g}", f"{(centred**3).mean():.6g}", "", ""
    for level, value in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True):
        yield f"{level:.1%}", "", f"{value:.4f}", "", ""


def main() -> None:
    """Print the table."""
    asked = options(__doc__, 10_000, n=1000, m=100)
    values = simulated(asked.n, asked.m, asked.datasets, asked.seed)
    head = ("", "exact", "simulated", "± SE", "as printed")
    print_table(f"{asked.m} of {asked.n}", head, rows(asked.n, asked.m, values))


if __name__ == "__main__":
    main()
