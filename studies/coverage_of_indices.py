"""How often 95% intervals of balanced accuracy, Youden's J and MCC hold the truth, of rows and of clusters.

    python studies/coverage_of_indices.py [DATA_SETS]

Rows are multinomial with the prevalence, recall and false positive rate of a design. Clusters have levels of their own
of the three, normal on the logit scale with the standard deviation σ, and 20 rows each. `events` is the mean number of
the rarest outcome.
"""

from __future__ import annotations

import sys

import numpy as np
from scipy.special import expit, logit

from pipeline.metrics.uncertainty.proportions import Confusion, index_limits_of_clusters, index_limits_of_rows, index_of
from pipeline.tables.columns import INDEX_OF

ROWS = [
    (50, 0.5, 0.8, 0.2),
    (100, 0.1, 0.8, 0.1),
    (300, 0.05, 0.7, 0.02),
    (1000, 0.01, 0.6, 0.01),
    (100, 0.5, 0.5, 0.5),
    (300, 0.3, 0.95, 0.05),
    (100, 0.5, 0.99, 0.01),
]
CLUSTERS = [(15, 0.5), (30, 0.5), (100, 0.5), (30, 1.0), (100, 1.0)]
SIZE = 20
LEVELS = (0.3, 0.8, 0.1)  # of clusters: prevalence, recall, false positive rate


def outcomes(prevalence: np.ndarray, recall: np.ndarray, fpr: np.ndarray) -> np.ndarray:
    """Shares of tp, fp, fn and tn."""
    negative = 1 - prevalence
    return np.stack([prevalence * recall, negative * fpr, prevalence * (1 - recall), negative * (1 - fpr)], axis=-1)


def truth(shares: np.ndarray) -> dict[str, float]:
    """The indices of shares, shape (4,)."""
    counts = Confusion(*(np.array([share]) for share in shares))
    return {name: float(index_of(index, counts)[0]) for name, index in INDEX_OF.items()}


def covered(limits: tuple[np.ndarray, np.ndarray], true: float) -> float:
    """The share of limits that hold the truth, of those that there are."""
    lower, upper = limits
    return float(((lower <= true) & (true <= upper))[~np.isnan(lower)].mean())


def main(data_sets: int) -> None:
    """Print the tables."""
    rng = np.random.default_rng(4)
    print("| rows | prevalence | recall | fpr | events |", " | ".join(INDEX_OF), "|")
    for number, *levels in ROWS:
        shares = outcomes(*np.array(levels))
        counts = Confusion(*rng.multinomial(number, shares, data_sets * 10).T)
        held = [
            covered(index_limits_of_rows(index, counts, None, 0.95), true)
            for index, true in zip(INDEX_OF.values(), truth(shares).values(), strict=True)
        ]
        print(f"| {number} | {' | '.join(f'{level:g}' for level in levels)} | {number * shares.min():.1f} |", end=" ")
        print(" | ".join(f"{share:.3f}" for share in held), "|", flush=True)
    print("| clusters | σ |", " | ".join(INDEX_OF), "|")
    for number, spread in CLUSTERS:

        def drawn(size: int, spread: float = spread) -> np.ndarray:
            return outcomes(*expit(logit(np.array(LEVELS))[:, None] + spread * rng.normal(size=(3, size))))

        true = truth(drawn(1_000_000).mean(axis=0))
        hits = np.zeros((data_sets, len(INDEX_OF)))
        for data_set in range(data_sets):
            drawn_rows = rng.multinomial(SIZE, drawn(number))
            replicates = Confusion(*(drawn_rows[:, at : at + 1] for at in range(4)))
            for column, (name, index) in enumerate(INDEX_OF.items()):
                lower, upper = index_limits_of_clusters(index, replicates, None, 0.95)
                hits[data_set, column] = lower[0] <= true[name] <= upper[0]
        print(f"| {number} | {spread:g} |", " | ".join(f"{share:.3f}" for share in hits.mean(axis=0)), "|", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2000)
