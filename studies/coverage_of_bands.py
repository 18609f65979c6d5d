"""Coverage of the bands of threshold_sweep: how often a whole curve lies within its limits.

    python studies/coverage_of_bands.py [--datasets 2000] [--draws 499] [--seed 1] [--designs 0 1 2]

Independent rows: scores of negatives are N(0, 1), those of positives N(shift, 1), rounded where there are ties. Each
row is a positive by chance, or class sizes are fixed; weights are log-normal. Clusters are those of
`coverage_of_clusters.py`, rows with two parents those of `coverage_of_crossed_rows.py`. Every score is a threshold, of
many at most 1,000 (of clusters 300), unless there is a grid.

`critical` are the mean critical values of precision, recall and the false positive rate. Then shares of data sets in
which the limits hold the truth at every threshold, those of single thresholds and those of the band, for precision and
recall (PR) and for recall and the false positive rate (ROC); `between` at all numbers that a threshold could be, for
the band and without ties and grid. `marked` is the share of data sets whose sizes of clusters `interval_quality` marks,
and `unmarked` the coverage of the band in the others. `wider` is the mean width of the band over that of single
thresholds.

The second table chooses a threshold: the highest recall whose precision is at least a minimum, in the sample, by the
lower limit of the band, and by `confidence`. `wrong` is the share of data sets in which its true precision is below.
The Monte Carlo error of a share near .95 is √(.05 / n).
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, TypeAlias

import coverage_of_clusters as clustered
import coverage_of_crossed_rows as crossed
import numpy as np
from scipy.special import expit, ndtr

from pipeline.metrics.curves.bands import CURVES, RATIOS, Band, Draws, band_of_clusters, band_of_rows, spread_out
from pipeline.metrics.curves.decisions import keeps_precision
from pipeline.metrics.uncertainty.limits import quality_of_sizes
from pipeline.metrics.uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.jackknife import Limits

Floats: TypeAlias = "NDArray[np.float64]"
Truth: TypeAlias = "dict[str, Floats]"

CONFIDENCE = 0.95
MOST_ROWS, MOST_CLUSTERS = 1000, 300  # thresholds
FINE = np.linspace(-6, 9, 3001)
NODES, NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
ROUNDING = 1e-9


@dataclass(frozen=True)
class Sample:
    """What the limits of a data set say, and the truth at its thresholds, rising.

    Attributes:
        truth: By ratio.
        single: The limits of single thresholds.
        band: The band.
        counts: Counts of all clusters together.
        between: The truth just above the next lower threshold, down to which the counts are the same; None: a grid.
        quality: What is said of the sizes of its clusters.
    """

    truth: Truth
    single: dict[str, Limits]
    band: Band
    counts: Confusion
    between: Truth | None = None
    quality: str = "good"


class Design(Protocol):
    """Data sets of a kind."""

    def prepare(self, rng: np.random.Generator, /) -> None:
        """Find the truth."""

    def sample(self, rng: np.random.Generator, draws: Draws) -> Sample:
        """Draw a data set."""


@dataclass(frozen=True)
class IndependentRows:
    """Independent rows.

    Attributes:
        positives: Their number, or their mean number.
        negatives: Their number, or their mean number.
        shift: How much higher positives score.
        fixed: Whether class sizes are fixed.
        step: Between scores that occur; 0: there are no ties.
        sigma: Standard deviation of the logarithm of the weights; 0: no weights.
        grid: Number of thresholds from -1 to shift + 1.5; 0: every score.
    """

    positives: int
    negatives: int
    shift: float
    fixed: bool = False
    step: float = 0.0
    sigma: float = 0.0
    grid: int = 0

    def __str__(self) -> str:
        words = [f"{self.positives:,} of {self.positives + self.negatives:,} rows, shift {self.shift:g}"]
        words += ["fixed sizes"] if self.fixed else []
        words += [f"ties in steps of {self.step:g}"] if self.step else []
        words += [f"weights of σ {self.sigma:g}"] if self.sigma else []
        words += [f"{self.grid} thresholds" if self.grid > 1 else "one threshold"] if self.grid else []
        return ", ".join(words)

    def prepare(self, _rng: np.random.Generator, /) -> None:
        """Nothing is to be prepared."""

    def sample(self, rng: np.random.Generator, draws: Draws) -> Sample:
        """Draw a data set."""
        classes = self._classes(rng)
        weights = [np.exp(self.sigma * rng.standard_normal(len(scores))) for scores in classes]
        thresholds = self._thresholds(np.concatenate(classes))
        sums, squares = (_counted(classes, [w**power for w in weights], thresholds) for power in (1, 2))
        heaviest = max(float(w.max(initial=0.0)) for w in weights)  # no label gave the weights
        of_weights = Weights(squares, heaviest, heaviest) if self.sigma else None
        single = intervals_of_rows(sums, of_weights, CONFIDENCE, fixed_sizes=self.fixed, names=RATIOS)
        band = band_of_rows(sums, of_weights, CONFIDENCE, single, fixed_sizes=self.fixed, draws=draws)
        lower = np.concatenate([[-np.inf], thresholds[:-1]])
        between = None if self.step or self.grid else self._truth(lower)
        return Sample(self._truth(thresholds - self.step / 2), single, band, sums, between)

    def _classes(self, rng: np.random.Generator) -> list[Floats]:
        """Scores of positives and of negatives."""
        size, positives = self.positives + self.negatives, self.positives
        if not self.fixed:
            positives = int(rng.binomial(size, positives / size))
        scores = rng.standard_normal(positives) + self.shift, rng.standard_normal(size - positives)
        return [np.round(of_class / self.step) * self.step if self.step else of_class for of_class in scores]

    def _thresholds(self, scores: Floats) -> Floats:
        if self.grid:
            return np.linspace(-1.0, self.shift + 1.5, self.grid + 2)[1:-1]
        every = np.unique(scores)
        return every[spread_out(len(every), MOST_ROWS)]

    def _truth(self, at: Floats) -> Truth:
        share = self.positives / (self.positives + self.negatives)
        return _ratios(share, ndtr(self.shift - at), ndtr(-at))


def _counted(classes: list[Floats], weights: list[Floats], thresholds: Floats) -> Confusion:
    """Sums of weights at or above each threshold, and below."""
    sums = []
    for scores, of_class in zip(classes, weights, strict=True):
        order = np.argsort(scores)
        running = np.concatenate([[0.0], np.cumsum(of_class[order])])
        retrieved = running[-1] - running[np.searchsorted(scores[order], thresholds)]
        sums.append((retrieved, running[-1] - retrieved))
    (tp, fn), (fp, tn) = sums
    return Confusion(tp, fp, fn, tn)


def _ratios(share: float, recall: Floats, fpr: Floats) -> Truth:
    """The three ratios from the share of positives and both rates."""
    retrieved = np.maximum(share * recall + (1 - share) * fpr, np.finfo(float).tiny)
    return {"precision": share * recall / retrieved, "recall": recall, "fpr": fpr}


@dataclass
class Clusters:
    """Clusters, and the truth on a fine grid of scores."""

    design: clustered.Design
    truth: Truth = field(default_factory=dict)

    def __str__(self) -> str:
        return f"clusters: {self.design}"

    def prepare(self, rng: np.random.Generator) -> None:
        """Find the truth: of many clusters, weighed by their sizes."""
        number, rows = clustered.POPULATION, clustered.ROWS_OF_EACH
        population = clustered.Population.of(self.design, number, rng)
        cluster = np.repeat(np.arange(number), rows)
        size, share = population.size[cluster].astype(np.float64), expit(population.logit[cluster])
        scores = [population.scores(cluster, np.full(len(cluster), label), rng) for label in (1.0, 0.0)]
        counts = _counted(scores, [size * share, size * (1 - share)], FINE)
        positives, negatives = counts.tp[0] + counts.fn[0], counts.fp[0] + counts.tn[0]
        self.truth = _ratios(positives / (positives + negatives), counts.tp / positives, counts.fp / negatives)

    def sample(self, rng: np.random.Generator, draws: Draws) -> Sample:
        """Draw a data set."""
        population = clustered.Population.of(self.design, self.design.clusters, rng)
        cluster = np.repeat(np.arange(self.design.clusters), population.size)
        label = rng.random(len(cluster)) < expit(population.logit[cluster])
        data = crossed.Data(cluster, cluster, label, population.scores(cluster, label.astype(np.float64), rng))
        return _of_clusterings(data, [cluster], self.truth, draws, quality_of_sizes(population.size))


@dataclass
class TwoParents:
    """Rows of users and items, and the truth on a fine grid of scores."""

    design: crossed.Design
    truth: Truth = field(default_factory=dict)

    def __str__(self) -> str:
        return f"two parents: {self.design}"

    def prepare(self, _rng: np.random.Generator, /) -> None:
        """Find the truth: that of rows of new users and items, over the logit of being positive."""
        deviation = np.hypot(self.design.user, self.design.item)
        effect = deviation * NODES[:, None]
        share = expit(crossed.INTERCEPT + effect)
        spread = np.sqrt(1 + (1 - crossed.TOGETHER**2) * deviation**2 / 4)
        of_nodes = NODE_WEIGHTS[:, None] / NODE_WEIGHTS.sum()
        positive, negative = of_nodes * share, of_nodes * (1 - share)
        above = ((crossed.TOGETHER * effect / 2 + shift - FINE) / spread for shift in (crossed.SHIFT, 0.0))
        tp, fp = ((side * ndtr(of_side)).sum(axis=0) for side, of_side in zip((positive, negative), above, strict=True))
        self.truth = _ratios(float(positive.sum()), tp / positive.sum(), fp / negative.sum())

    def sample(self, rng: np.random.Generator, draws: Draws) -> Sample:
        """Draw a data set."""
        data = crossed.draw(self.design, rng)
        return _of_clusterings(data, data.clusterings("both"), self.truth, draws)


def _of_clusterings(
    data: crossed.Data, clusterings: list[NDArray[np.int64]], truth: Truth, draws: Draws, quality: str = "good"
) -> Sample:
    """The limits of a data set by each of its clusterings."""
    every = np.unique(data.score)
    thresholds = every[spread_out(len(every), MOST_CLUSTERS)]
    first, *others = crossed.confusion(data, clusterings, thresholds)
    single = intervals_of_clusters(first, CONFIDENCE, names=RATIOS, crossed=others)
    band = band_of_clusters(first, CONFIDENCE, single, crossed=others, draws=draws)
    at, below = (
        {name: np.interp(scores, FINE, values) for name, values in truth.items()}
        for scores in (thresholds, np.concatenate([[-np.inf], thresholds[:-1]]))
    )
    counts = Confusion(*(side.sum(axis=0) for side in vars(first).values()))
    return Sample(at, single, band, counts, below, quality)


DESIGNS: tuple[Design, ...] = (
    *(IndependentRows(positives, 10 * positives, 1.5) for positives in (10, 20, 50, 200, 1000)),
    IndependentRows(5000, 5000, 1.0),
    IndependentRows(50, 50, 1.0),
    IndependentRows(100, 100, 0.0),
    IndependentRows(200, 200, 4.0),
    IndependentRows(50, 5000, 2.0),
    IndependentRows(10, 2000, 2.0),
    IndependentRows(500, 50, 1.0),
    IndependentRows(50, 500, 1.5, fixed=True),
    IndependentRows(500, 500, 1.0, fixed=True),
    IndependentRows(200, 2000, 1.5, step=0.25),
    IndependentRows(50, 500, 1.5, step=1.0),
    IndependentRows(50, 500, 1.5, grid=20),
    IndependentRows(50, 500, 1.5, grid=1),
    IndependentRows(100, 1000, 1.5, sigma=0.5),
    IndependentRows(100, 1000, 1.5, sigma=1.0),
    IndependentRows(300, 300, 1.0, sigma=1.0),
    *(Clusters(clustered.Design(clusters, "equal")) for clusters in (15, 30, 100)),
    Clusters(clustered.Design(100, "equal", alike=False)),
    *(Clusters(clustered.Design(clusters, "lognormal", 0.5)) for clusters in (30, 100)),
    *(Clusters(clustered.Design(clusters, "lognormal", 1.0)) for clusters in (40, 100)),
    *(Clusters(clustered.Design(40, "lognormal", 0.5, along)) for along in ("prevalence", "quality")),
    *(Clusters(clustered.Design(100, "pareto", 1.3, along)) for along in ("", "prevalence")),
    TwoParents(crossed.Design(20, 20, 1.0, 0.7, 0.7)),
    TwoParents(crossed.Design(40, 40, 0.5, 0.7, 0.7)),
    TwoParents(crossed.Design(100, 30, 0.3, 0.5, 0.7)),
    TwoParents(crossed.Design(40, 40, 0.5, 0.7, 0.0)),
)
CHOICES = (
    (IndependentRows(50, 500, 2.0), 0.7),
    (IndependentRows(200, 2000, 2.0), 0.7),
    (IndependentRows(1000, 10000, 2.0), 0.7),
    (IndependentRows(200, 200, 1.5), 0.9),
)


def held(limits: dict[str, Limits], truth: Truth) -> tuple[bool, ...]:
    """Whether limits hold each curve everywhere; where a ratio is not defined in the sample, nothing is said."""
    holds = {}
    for name, true in truth.items():
        lower, upper = limits[name]
        holds[name] = not ((true < lower - ROUNDING) | (true > upper + ROUNDING)).any()
    return tuple(holds[first] and holds[second] for first, second in CURVES)


def measure(design: Design, datasets: int, draws: int, seed: int) -> str:
    """Simulate data sets of a design; a row of the first table."""
    design.prepare(np.random.default_rng([seed, 0]))
    rng = np.random.default_rng([seed, 1])
    holds: dict[str, list[tuple[bool, ...]]] = {"single": [], "band": [], "between": []}
    critical, wider, marked = [], [], []
    for number in range(datasets):
        sample = design.sample(rng, Draws(draws, number))
        holds["single"].append(held(sample.single, sample.truth))
        holds["band"].append(held(sample.band.limits, sample.truth))
        if sample.between is not None:
            above = held(sample.band.limits, sample.between)
            holds["between"].append(tuple(np.logical_and(above, holds["band"][-1]).tolist()))
        critical.append([sample.band.critical.values[name] for name in RATIOS])
        wider.append(_width(sample.band.limits) / _width(sample.single))
        marked.append(sample.quality != "good")
    unmarked = np.array(holds["band"])[~np.array(marked)]
    cells = [" ".join(f"{value:.2f}" for value in np.mean(critical, axis=0))]
    cells += [_shares(holds[name]) for name in ("single", "band", "between")]
    cells += [f"{np.mean(marked):.0%}", _shares(unmarked) if 20 < len(unmarked) < datasets else ""]
    return " | ".join([str(design), *cells, f"{np.mean(wider):.2f}"])


def _width(limits: dict[str, Limits]) -> float:
    return float(np.mean([np.nanmean(limits[name][1] - limits[name][0]) for name in RATIOS]))


def _shares(holds: list[tuple[bool, ...]] | NDArray[np.bool_]) -> str:
    return " | ".join(f"{share:.3f}".lstrip("0") for share in np.mean(holds, axis=0)) if len(holds) else " | "


def choose(design: IndependentRows, minimum: float, datasets: int, draws: int, seed: int) -> str:
    """Choose a threshold for a minimum precision in data sets of a design; a row of the second table."""
    rng = np.random.default_rng([seed, 2])
    chosen: dict[str, list[tuple[bool, bool, float]]] = {"sample": [], "band": [], "confidence": []}
    for number in range(datasets):
        sample = design.sample(rng, Draws(draws, number))
        counts = sample.counts
        retrieved = counts.tp + counts.fp
        with np.errstate(invalid="ignore"):
            precision = counts.tp / retrieved

        def lower(level: float, counts: Confusion = counts) -> Floats:
            return intervals_of_rows(counts, None, level, names=["precision"])["precision"][0]

        passes = {
            "sample": precision >= minimum,
            "band": sample.band.limits["precision"][0] >= minimum,
            "confidence": keeps_precision(lower, retrieved, minimum, CONFIDENCE),
        }
        for name, of_way in passes.items():
            lowest = int(np.argmax(of_way))  # of thresholds that rise the first has the highest recall
            is_found = bool(of_way.any())
            wrong = is_found and sample.truth["precision"][lowest] < minimum
            chosen[name].append((is_found, bool(wrong), sample.truth["recall"][lowest] if is_found else 0.0))
    shares = [f"{share:.3f}".lstrip("0") for name in chosen for share in np.mean(chosen[name], axis=0)]
    return " | ".join([str(design), f"{minimum:g}", *shares])


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=499, help="of a band; the stage takes 1,999")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--designs", type=int, nargs="*", help="numbers of the designs, from 0; default: all, and choices"
    )
    options = parser.parse_args()
    numbers = range(len(DESIGNS)) if options.designs is None else options.designs
    print(f"Monte Carlo error {np.sqrt(0.0475 / options.datasets):.3f}")
    names = ("single PR", "ROC", "band PR", "ROC", "between PR", "ROC", "marked", "unmarked PR", "ROC", "wider")
    print(f"| data | critical | {' | '.join(names)} |\n{'|---' * (2 + len(names))}|")
    for number in numbers:
        print(f"| {measure(DESIGNS[number], options.datasets, options.draws, options.seed)} |", flush=True)
    if options.designs is None:
        ways = " | ".join(f"{way}: chosen | wrong | recall" for way in ("sample", "band", "confidence"))
        print(f"\n| data | minimum | {ways} |\n{'|---' * 11}|")
        for design, minimum in CHOICES:
            print(f"| {choose(design, minimum, options.datasets, options.draws, options.seed)} |", flush=True)


if __name__ == "__main__":
    main()
