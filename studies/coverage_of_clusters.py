"""Measured coverage of intervals between clusters of unequal size, on simulated data whose truth is known.

    python studies/coverage_of_clusters.py [--datasets 1000] [--confidence 0.95] [--seed 1] [--resamples 0]
        [--only TEXT]…

Clusters hold rows with scores and labels. Sizes are 5 × Pareto (shape 1.2 or 1.3, from 1 to 100), 5 × log-normal (σ 1),
or equal. The logit of a cluster's share of positives has the mean -2.2 and the standard deviation 1, a quarter of the
variance of scores lies between clusters, and both go together (correlation 0.5). A positive scores 1.5 higher. With
`prevalence` the logit of the share of positives rises by 0.6 for each unit of the log of the size, with `quality` the
distance of positives by 0.4; with `prevalence falls` and `quality falls` both fall as much. In a broken cluster, of
which there is one in so many, positives score 4 lower than elsewhere. The truth is that of rows drawn from all clusters
there could be.

`Kish` is the mean effective number of clusters, `marked` the share of data sets whose intervals are marked
`few_clusters` or `unequal_clusters`. Then the shares of data sets whose interval holds the truth: of average precision,
ROC AUC, and of precision, recall and F1 at the thresholds 0.5, 1 and 2; `all` of all data sets, `unmarked` of those
that are not marked, `none broken` of those without a broken cluster where there are such, if these are at least 20. The
Monte Carlo error of a share near .95 is √(.05 / n).

With `--resamples`, such as 999, the intervals are those of `uncertainty = "bootstrap"`, of the same data sets.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from harness import Asked, Bools, Floats, Integers, Table, Tally, held, options, print_error, report
from labelled_rows import RATIOS, area_limits, areas, confusion
from scipy.special import expit

from pipeline.metrics.curves.ordered_areas import ROW_AREAS
from pipeline.metrics.uncertainty.clusters import effective_number
from pipeline.metrics.uncertainty.limits import quality_of_sizes
from pipeline.metrics.uncertainty.proportions import intervals_of_clusters
from pipeline.metrics.uncertainty.replicates import Resampling, otherwise
from pipeline.metrics.uncertainty.replicates import area_limits as bootstrap_limits

THRESHOLDS = np.array([0.5, 1.0, 2.0])
SMALLEST, LARGEST = 5, 100
POPULATION = 400_000  # clusters, of which a few rows each stand for all
ROWS_OF_EACH = 5
FEWEST_DATASETS = 20  # for a share to be printed
_OF_BROKEN = -2.5  # distance of positives
_INTERCEPT, _SHIFT, _TOGETHER = -2.2, 1.5, 0.5
_SLOPES = {  # of the logit of the share of positives and of the distance of positives, by the log of the size
    "": (0.0, 0.0),
    "prevalence": (0.6, 0.0),
    "prevalence falls": (-0.6, 0.0),
    "quality": (0.0, 0.4),
    "quality falls": (0.0, -0.4),
}


@dataclass(frozen=True)
class Design:
    """Clusters of a kind.

    Their sizes are `pareto` or `lognormal` of a shape, or `equal`; `along` with them goes a key of `_SLOPES`. Rows of a
    cluster are alike or independent, and one cluster in so many is broken; 0: none is.
    """

    clusters: int
    sizes: str = "pareto"
    shape: float = 1.2
    along: str = ""
    alike: bool = True
    one_broken_in: int = 0

    def __str__(self) -> str:
        sizes = "equal" if self.sizes == "equal" else f"{self.sizes}({self.shape:g})"
        rows = "" if self.alike else ", independent rows"
        broken = f", 1 in {self.one_broken_in} broken" if self.one_broken_in else ""
        return f"{self.clusters} {sizes}{f', {self.along}' if self.along else ''}{rows}{broken}"


DESIGNS = (
    *(Design(clusters, along=along) for clusters in (40, 100) for along in ("", "prevalence", "quality")),
    *(Design(clusters, shape=1.3, along=along) for clusters in (30, 100) for along in ("", "prevalence", "quality")),
    Design(100, alike=False),
    *(Design(60, shape=1.5, along=along) for along in _SLOPES),
    *(Design(clusters, "lognormal", 1.0) for clusters in (40, 100)),
    *(Design(40, "lognormal", 0.5, along) for along in _SLOPES if along),
    *(Design(clusters, "equal") for clusters in (20, 40, 100)),
    Design(100, "equal", alike=False),
    *(Design(clusters, "equal", one_broken_in=12) for clusters in (24, 40, 80)),
    *(Design(100, "lognormal", 1.0, along) for along in _SLOPES if along),
)


@dataclass(frozen=True)
class Population:
    """Clusters: sizes, logits of their shares of positives, and by how much scores of their rows and positives rise."""

    size: Integers
    logit: Floats
    shift: Floats
    distance: Floats
    spread: float
    broken: Bools

    @classmethod
    def of(cls, design: Design, clusters: int, rng: np.random.Generator) -> Population:
        """Clusters of a design."""
        relative = np.full(clusters, 4.0)
        if design.sizes == "pareto":
            relative = np.minimum(1 + rng.pareto(design.shape, clusters), LARGEST)
        elif design.sizes == "lognormal":
            relative = np.exp(design.shape * rng.standard_normal(clusters)) + 0.2
        size = np.ceil(SMALLEST * relative).astype(np.int64)
        between, alone = rng.standard_normal((2, clusters))
        log_size, alike = np.log(size / 10), float(design.alike)
        logit = _INTERCEPT + alike * (_TOGETHER * between + np.sqrt(1 - _TOGETHER**2) * alone)
        of_logit, of_distance = _SLOPES[design.along]
        logit = logit + of_logit * log_size
        distance = _SHIFT + of_distance * (log_size - 0.5)
        broken = np.zeros(clusters, dtype=np.bool_)
        if design.one_broken_in:
            broken = rng.random(clusters) < 1 / design.one_broken_in
        distance = np.where(broken, _OF_BROKEN, distance)
        return cls(size, logit, alike * between / 2, distance, float(np.sqrt(1 - alike / 4)), broken)

    def scores(self, cluster: Integers, label: Floats, rng: np.random.Generator) -> Floats:
        """Scores of rows of these clusters."""
        noise = self.spread * rng.standard_normal(len(cluster))
        return np.asarray(self.shift[cluster] + noise + self.distance[cluster] * label)


def truth(design: Design, rng: np.random.Generator) -> dict[str, Floats | float]:
    """Areas and ratios of all rows that there could be: of many clusters, weighed by their sizes."""
    clusters = Population.of(design, POPULATION, rng)
    cluster = np.repeat(np.arange(POPULATION), ROWS_OF_EACH)
    weight, share = clusters.size[cluster].astype(np.float64), expit(clusters.logit[cluster])
    score = np.concatenate([clusters.scores(cluster, np.full(len(cluster), label), rng) for label in (1.0, 0.0)])
    positive = np.concatenate([weight * share, 0 * weight])
    negative = np.concatenate([0 * weight, weight * (1 - share)])
    order = np.argsort(-score)
    hits, false = np.cumsum(positive[order]), np.cumsum(negative[order])
    steps = positive[order] / hits[-1]
    retrieved = [score >= threshold for threshold in THRESHOLDS]
    tp, fp = (np.array([side[rows].sum() for rows in retrieved]) for side in (positive, negative))
    return {
        "average_precision": float((steps * hits / (hits + false)).sum()),
        "roc_auc": float((steps * (1 - false / false[-1])).sum()),
        "precision": tp / (tp + fp),
        "recall": tp / hits[-1],
        "f1": 2 * tp / (tp + fp + hits[-1]),
    }


def data_of(clusters: Population, rng: np.random.Generator) -> tuple[Floats, Bools, Integers]:
    """Scores, labels and clusters of the rows of clusters."""
    cluster = np.repeat(np.arange(len(clusters.size)), clusters.size)
    label = rng.random(len(cluster)) < expit(clusters.logit[cluster])
    return clusters.scores(cluster, label.astype(np.float64), rng), label, cluster


def limits_of(
    rows: tuple[Floats, Bools, Integers], confidence: float, resampling: Resampling | None = None
) -> dict[str, tuple[Floats, Floats]]:
    """Intervals of a data set; of ratios one for each threshold."""
    estimates = areas(*rows, random_sizes=False)
    limits = area_limits(estimates, confidence, clustered=True)
    if resampling is not None:
        for name, area in estimates.area.items():
            quantiles = estimates.shifts[name].quantiles(area, confidence, resampling)
            limits[name] = otherwise(bootstrap_limits(area, estimates.se[name], quantiles), limits[name])
    of_ratios = intervals_of_clusters(confusion(THRESHOLDS, *rows), confidence, resampling=resampling)
    return limits | {name: of_ratios[name] for name in RATIOS}


@dataclass(frozen=True)
class Coverage:
    """What was measured in one design.

    The mean effective number of clusters, the share of data sets that are marked, and the shares of data sets whose
    intervals hold the truth, by kind of data set and statistic.
    """

    effective: float
    marked: float
    covered: dict[str, dict[str, Floats]]


def coverage(design: Design, datasets: int, confidence: float, seed: int, resamples: int = 0) -> Coverage:
    """Simulate data sets of a design; with resamples, intervals are those of the bootstrap."""
    resampling = Resampling(resamples) if resamples else None
    true = truth(design, np.random.default_rng([seed, 0]))
    rng, tally, of_sets = np.random.default_rng([seed, 1]), Tally(), Tally()
    for _ in range(datasets):
        clusters = Population.of(design, design.clusters, rng)
        limits = limits_of(data_of(clusters, rng), confidence, resampling)
        tally.add({name: held(limits[name], value) for name, value in true.items()})
        is_good, is_unbroken = quality_of_sizes(clusters.size) == "good", not clusters.broken.any()
        of_sets.add({"effective": effective_number(clusters.size), "good": is_good, "unbroken": is_unbroken})
    good = of_sets["good"] > 0
    kinds = {"all": np.ones(datasets, np.bool_)}
    kinds |= {"unmarked": good} if not good.all() else {}
    kinds |= {"none broken": of_sets["unbroken"] > 0} if design.one_broken_in else {}
    enough = min(FEWEST_DATASETS, datasets)
    covered = {kind: tally.means(chosen) for kind, chosen in kinds.items() if chosen.sum() >= enough}
    return Coverage(float(of_sets.mean("effective")), float(1 - good.mean()), covered)


def measure(design: Design, asked: Asked) -> Table:
    """A row for each kind of data sets."""
    measured = coverage(design, asked.datasets, asked.confidence, asked.seed, asked.resamples)
    for kind, shares in measured.covered.items():
        numbers = np.concatenate([np.ravel(shares[name]) for name in (*ROW_AREAS, *RATIOS)])
        yield str(design), f"{measured.effective:.1f}", f"{measured.marked:.2f}", kind, *numbers.tolist()


def main() -> None:
    """Print the table."""
    asked = options(__doc__, 1000, confidence=0.95, resamples=0)
    names = ("AP", "ROC", *(f"{name} {threshold:g}" for name in "PRF" for threshold in THRESHOLDS))
    print_error(asked.datasets)
    report("clusters", ("clusters", "Kish", "marked", "data sets", *names), measure, DESIGNS, asked)


if __name__ == "__main__":
    main()
