"""How often 95% intervals of balanced accuracy, Youden's J and MCC hold the truth, of rows and of clusters.

    python studies/coverage_of_indices.py [--datasets 2000] [--only rows|clusters]

Rows are multinomial with the prevalence, recall and false positive rate of a design, in ten times as many data sets.
Clusters have levels of their own of the three, normal on the logit scale with the standard deviation σ, and 20 rows
each. `events` is the mean number of the rarest outcome.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from harness import Asked, Floats, Table, Tally, held, options, report
from scipy.special import expit, logit

from pipeline.base.columns import INDEX_OF
from pipeline.metrics.uncertainty.proportions import Confusion, index_limits_of_clusters, index_limits_of_rows, index_of

if TYPE_CHECKING:
    from harness import Row

ROWS = (
    (50, 0.5, 0.8, 0.2),
    (100, 0.1, 0.8, 0.1),
    (300, 0.05, 0.7, 0.02),
    (1000, 0.01, 0.6, 0.01),
    (100, 0.5, 0.5, 0.5),
    (300, 0.3, 0.95, 0.05),
    (100, 0.5, 0.99, 0.01),
)
CLUSTERS = ((15, 0.5), (30, 0.5), (100, 0.5), (30, 1.0), (100, 1.0))
SIZE = 20
LEVELS = (0.3, 0.8, 0.1)  # of clusters: prevalence, recall, false positive rate


def outcomes(prevalence: Floats, recall: Floats, fpr: Floats) -> Floats:
    """Shares of tp, fp, fn and tn."""
    negative = 1 - prevalence
    return np.stack([prevalence * recall, negative * fpr, prevalence * (1 - recall), negative * (1 - fpr)], axis=-1)


def truth(shares: Floats) -> dict[str, float]:
    """The indices of shares, shape (4,)."""
    counts = Confusion(*(np.array([share]) for share in shares))
    return {name: float(index_of(index, counts)[0]) for name, index in INDEX_OF.items()}


def of_rows(design: tuple[float, ...], asked: Asked, rng: np.random.Generator) -> Row:
    """A row of the first table."""
    number, *levels = design
    shares = outcomes(*np.array(levels))
    counts, true = Confusion(*rng.multinomial(int(number), shares, asked.datasets * 10).T), truth(shares)
    holds = [
        float(np.nanmean(held(index_limits_of_rows(index, counts, None, 0.95), true[name])))
        for name, index in INDEX_OF.items()
    ]
    return (*(f"{level:g}" for level in design), f"{number * shares.min():.1f}", *holds)


def of_clusters(design: tuple[float, ...], asked: Asked, rng: np.random.Generator) -> Row:
    """A row of the second table."""
    number, spread = int(design[0]), design[1]

    def drawn(size: int) -> Floats:
        return outcomes(*expit(logit(np.array(LEVELS))[:, None] + spread * rng.normal(size=(3, size))))

    true, tally = truth(drawn(1_000_000).mean(axis=0)), Tally()
    for _ in range(asked.datasets):
        rows = rng.multinomial(SIZE, drawn(number))
        replicates = Confusion(*(rows[:, at : at + 1] for at in range(4)))
        for name, index in INDEX_OF.items():
            lower, upper = index_limits_of_clusters(index, replicates, None, 0.95)
            tally.add({name: lower[0] <= true[name] <= upper[0]})
    return (str(number), f"{spread:g}", *(float(share) for share in tally.means().values()))


def measure(title: str, asked: Asked) -> Table:
    """The rows of a table."""
    rng = np.random.default_rng(asked.seed)
    of_design, designs = (of_rows, ROWS) if title == "rows" else (of_clusters, CLUSTERS)
    yield from (of_design(design, asked, rng) for design in designs)


def main() -> None:
    """Print the tables."""
    asked = options(__doc__, 2000, 4)
    report("rows", ("rows", "prevalence", "recall", "fpr", "events", *INDEX_OF), measure, ["rows"], asked)
    report("clusters", ("clusters", "σ", *INDEX_OF), measure, ["clusters"], asked)


if __name__ == "__main__":
    main()
