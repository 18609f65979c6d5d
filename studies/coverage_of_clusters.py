"""Measured coverage of intervals between clusters of unequal size, on simulated data whose truth is known.

    python studies/coverage_of_clusters.py [--datasets 1000] [--confidence 0.95] [--seed 1]
        [--resamples 0] [--designs 0 1 2]

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

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import expit

from pipeline.metrics.curves.ordered_areas import ROW_AREAS, OrderedAreas, Rows, Totals
from pipeline.metrics.uncertainty.clusters import Spread, area_interval, effective_number
from pipeline.metrics.uncertainty.limits import quality_of_sizes
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters
from pipeline.metrics.uncertainty.replicates import Resampling, area_limits, otherwise

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Limits: TypeAlias = "dict[str, tuple[float, float]]"

THRESHOLDS = (0.5, 1.0, 2.0)
RATIOS = ("precision", "recall", "f1")
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

    Attributes:
        clusters: Their number.
        sizes: `pareto`, `lognormal` or `equal`.
        shape: Of the Pareto distribution, or σ.
        along: What goes along with size: nothing, or a key of `_SLOPES`.
        alike: Whether rows of a cluster are alike; else they are independent.
        one_broken_in: Of so many clusters one is broken; 0: none is.
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

    size: NDArray[np.int64]
    logit: Floats
    shift: Floats
    distance: Floats
    spread: float
    broken: NDArray[np.bool_]

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

    def scores(self, cluster: NDArray[np.int64], label: Floats, rng: np.random.Generator) -> Floats:
        """Scores of rows of these clusters."""
        noise = self.spread * rng.standard_normal(len(cluster))
        return np.asarray(self.shift[cluster] + noise + self.distance[cluster] * label)


def truth(design: Design, rng: np.random.Generator) -> dict[str, float]:
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
    values = {
        "average_precision": float((steps * hits / (hits + false)).sum()),
        "roc_auc": float((steps * (1 - false / false[-1])).sum()),
    }
    for threshold in THRESHOLDS:
        tp, fp = positive[score >= threshold].sum(), negative[score >= threshold].sum()
        ratios = (tp / (tp + fp), tp / hits[-1], 2 * tp / (tp + fp + hits[-1]))
        values |= {f"{name} {threshold:g}": float(ratio) for name, ratio in zip(RATIOS, ratios, strict=True)}
    return values


def limits_of_data(
    design: Design, confidence: float, rng: np.random.Generator, resampling: Resampling | None = None
) -> tuple[Limits, Population]:
    """Intervals of a data set, and its clusters."""
    clusters = Population.of(design, design.clusters, rng)
    cluster = np.repeat(np.arange(design.clusters), clusters.size)
    label = rng.random(len(cluster)) < expit(clusters.logit[cluster])
    score = clusters.scores(cluster, label.astype(np.float64), rng)
    limits = _of_areas(design.clusters, cluster, label, score, confidence, resampling)

    def counted(rows: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.bincount(cluster[rows], minlength=design.clusters)

    tp, fp = (np.stack([counted(side & (score >= t)) for t in THRESHOLDS], axis=1) for side in (label, ~label))
    counts = Confusion(tp, fp, counted(label)[:, None] - tp, counted(~label)[:, None] - fp)
    for name, (lower, upper) in intervals_of_clusters(counts, confidence, resampling=resampling).items():
        if name in RATIOS:
            limits |= {f"{name} {t:g}": (lower[i], upper[i]) for i, t in enumerate(THRESHOLDS)}
    return limits, clusters


def _of_areas(
    clusters: int,
    cluster: NDArray[np.int64],
    label: NDArray[np.bool_],
    score: Floats,
    confidence: float,
    resampling: Resampling | None,
) -> Limits:
    order = np.argsort(score)
    positive = label[order].astype(np.float64)
    sizes = np.array([positive.sum()]), np.array([len(positive) - positive.sum()])
    collected = OrderedAreas(Totals(*sizes, *sizes), clusters)
    group = np.zeros(len(order), dtype=np.int64)
    collected.add(Rows(group, score[order], positive, 1 - positive, replicate=cluster[order]))
    estimates, limits = collected.finish(), {}
    for name in ROW_AREAS:
        spread = Spread(estimates.se[name] ** 2, estimates.degrees[name], estimates.skewed[name])
        lower, upper = area_interval(estimates.area[name], spread, confidence, clustered=True)
        if resampling is not None:
            quantiles = estimates.shifts[name].quantiles(estimates.area[name], confidence, resampling)
            lower, upper = otherwise(area_limits(estimates.area[name], estimates.se[name], quantiles), (lower, upper))
        limits[name] = (float(lower[0]), float(upper[0]))
    return limits


@dataclass(frozen=True)
class Coverage:
    """What was measured in one design.

    Attributes:
        effective: Mean effective number of clusters.
        marked: Share of the data sets that are marked.
        covered: Shares of data sets by statistic, for data sets of some kind.
    """

    effective: float
    marked: float
    covered: dict[str, dict[str, float]]


def coverage(design: Design, datasets: int, confidence: float, seed: int, resamples: int = 0) -> Coverage:
    """Simulate data sets of a design; with resamples, intervals are those of the bootstrap."""
    resampling = Resampling(resamples) if resamples else None
    true = truth(design, np.random.default_rng([seed, 0]))
    rng = np.random.default_rng([seed, 1])
    held: dict[str, list[bool]] = {name: [] for name in true}
    effective, good, unbroken = np.zeros(datasets), np.zeros(datasets, np.bool_), np.zeros(datasets, np.bool_)
    for number in range(datasets):
        limits, clusters = limits_of_data(design, confidence, rng, resampling)
        effective[number] = effective_number(clusters.size)
        good[number], unbroken[number] = quality_of_sizes(clusters.size) == "good", not clusters.broken.any()
        for name, (lower, upper) in limits.items():
            held[name].append(bool(lower <= true[name] <= upper))
    kinds = {"all": np.ones(datasets, np.bool_)}
    kinds |= {"unmarked": good} if not good.all() else {}
    kinds |= {"none broken": unbroken} if design.one_broken_in else {}
    covered = {
        kind: {name: float(np.mean(np.array(values)[chosen])) for name, values in held.items()}
        for kind, chosen in kinds.items()
        if chosen.sum() >= min(FEWEST_DATASETS, datasets)
    }
    return Coverage(float(effective.mean()), float(1 - good.mean()), covered)


def main() -> None:
    """Parse the arguments and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=1000)
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--resamples", type=int, default=0, help="of the bootstrap; 0: intervals of the closed forms")
    parser.add_argument("--designs", type=int, nargs="*", help="numbers of the designs, from 0; default: all")
    options = parser.parse_args()
    names = ("AP", "ROC", *(f"{name} {t:g}" for name in "PRF" for t in THRESHOLDS))
    print(f"Monte Carlo error {np.sqrt(0.0475 / options.datasets):.3f} in `all`")
    print("| clusters | Kish | marked | data sets | " + " | ".join(names) + " |")
    print("|---" * (4 + len(names)) + "|")
    for design in DESIGNS if options.designs is None else [DESIGNS[number] for number in options.designs]:
        measured = coverage(design, options.datasets, options.confidence, options.seed, options.resamples)
        order = ("average_precision", "roc_auc", *(f"{name} {t:g}" for name in RATIOS for t in THRESHOLDS))
        for kind, shares in measured.covered.items():
            start = f"| {design} | {measured.effective:.1f} | {measured.marked:.2f} | {kind} | "
            print(start + " | ".join(f"{shares[name]:.3f}".lstrip("0") for name in order) + " |", flush=True)


if __name__ == "__main__":
    main()
