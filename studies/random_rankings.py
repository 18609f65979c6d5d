"""Average precision of random rankings, as Zhang & Su (2012, section III) simulate it, beside the exact values.

    python studies/random_rankings.py N M [--rankings 10000] [--seed 1]

N documents with M relevant ones are put in random order, 10,000 times as in the paper: mean, variance and the quantiles
of its Table III, beside the exact moments and the ones that the paper prints as theoretical, which are wrong.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np

from pipeline.metrics.ranking.random_selection import (
    average_precision_moments,
    average_precision_skewness,
    zhang_su_2012_moments,
)

QUANTILES = (0.025, 0.5, 0.975)
PART = 2_000_000


def simulated(n: int, m: int, rankings: int, seed: int) -> np.ndarray:
    """Average precision of random rankings, as many at a time as make arrays of a few million numbers."""
    rng = np.random.default_rng(seed)
    batches, step = [], max(1, PART // n)
    for start in range(0, rankings, step):
        keys = rng.random((min(step, rankings - start), n))
        ranks = np.sort(np.argpartition(keys, m - 1, axis=1)[:, :m] + 1, axis=1)
        batches.append((np.arange(1, m + 1) / ranks).mean(axis=1))
    return np.concatenate(batches)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("n", type=int, help="documents")
    parser.add_argument("m", type=int, help="relevant ones among them")
    parser.add_argument("--rankings", type=int, default=10_000, help="random rankings (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, help="default: %(default)s")
    options = parser.parse_args()
    n, m = options.n, options.m
    if not 1 <= m <= n or options.rankings < 2:
        parser.error("M must lie in 1 … N, and there must be at least 2 rankings")
    values = simulated(n, m, options.rankings, options.seed)
    exact = average_precision_moments(n, m)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        printed = zhang_su_2012_moments(n, m) if m > 1 else (float("nan"), float("nan"))
    simulated_moments = values.mean(), values.var(ddof=1)
    error = (
        simulated_moments[1] ** 0.5 / options.rankings**0.5,
        np.std((values - simulated_moments[0]) ** 2) / options.rankings**0.5,
    )
    print(f"{'':<10}{'exact':>14}{'simulated':>14}{'± SE':>12}{'as printed':>14}")
    for index, name in enumerate(("mean", "variance")):
        print(
            f"{name:<10}{exact[index]:>14.6g}{simulated_moments[index]:>14.6g}{error[index]:>12.1g}{printed[index]:>14.4g}"
        )
    centred = (values - simulated_moments[0]) / simulated_moments[1] ** 0.5
    print(f"{'skewness':<10}{average_precision_skewness(n, m):>14.6g}{(centred**3).mean():>14.6g}")
    for level, value in zip(QUANTILES, np.quantile(values, QUANTILES), strict=True):
        print(f"{f'{level:.1%}':<10}{'':>14}{value:>14.4f}")


if __name__ == "__main__":
    main()
