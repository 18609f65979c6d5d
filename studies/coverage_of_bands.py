"""Coverage of the bands of threshold_sweep: how often a whole curve lies within its limits.

    python studies/coverage_of_bands.py [--datasets 2000] [--draws 499] [--seed 1] [--only TEXT]…

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

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import coverage_of_clusters as clustered
import coverage_of_crossed_rows as crossed
import numpy as np
from harness import Asked, Bools, Floats, Integers, Table, Tally, options, print_error, report
from labelled_rows import nodes, total
from scipy.special import expit, ndtr

from pipeline.metrics.curves.bands import CURVES, RATIOS, Band, Draws, band_of_clusters, band_of_rows, spread_out
from pipeline.metrics.curves.decisions import keeps_precision
from pipeline.metrics.uncertainty.limits import quality_of_sizes
from pipeline.metrics.uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows

if TYPE_CHECKING:
    from pipeline.metrics.uncertainty.jackknife import Limits

Truth: TypeAlias = "dict[str, Floats]"

CONFIDENCE = 0.95
MOST_ROWS, MOST_CLUSTERS = 1000, 300  # thresholds
FINE = np.linspace(-6, 9, 3001)
ROUNDING = 1e-9


@dataclass(frozen=True)
class Sample:
    """What the limits of a data set say, and the truth at its thresholds, rising.

    `between` is the truth just above the next lower threshold, down to which the counts are the same; None: a grid.
    """

    truth: Truth
    single: dict[str, Limits]
    band: Band
    counts: Confusion
    between: Truth | None = None
    quality: str = "good"


@dataclass(frozen=True)
class IndependentRows:
    """Independent rows, of which positives score higher by `shift`.

    Class sizes are means, or `fixed`; scores are tied in steps of `step`, weights log-normal with `sigma`, and
    thresholds so many from -1 to shift + 1.5; 0: there are no ties and no weights, and every score is a threshold.
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

    def prepare(self, _rng: np.random.Generator) -> None:
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
        score, label, cluster = clustered.data_of(population, rng)
        data = crossed.Data(cluster, cluster, label, score)
        return _of_clusterings(data, [cluster], self.truth, draws, quality_of_sizes(population.size))


@dataclass
class TwoParents:
    """Rows of users and items, and the truth on a fine grid of scores."""

    design: crossed.Design
    truth: Truth = field(default_factory=dict)

    def __str__(self) -> str:
        return f"two parents: {self.design}"

    def prepare(self, _rng: np.random.Generator) -> None:
        """Find the truth: that of rows of new users and items, over the logit of being positive."""
        deviation = np.hypot(self.design.user, self.design.item)
        values, weights = nodes(60)
        effect = deviation * values[:, None]
        share = expit(crossed.INTERCEPT + effect)
        spread = np.sqrt(1 + (1 - crossed.TOGETHER**2) * deviation**2 / 4)
        positive, negative = weights[:, None] * share, weights[:, None] * (1 - share)
        above = ((crossed.TOGETHER * effect / 2 + shift - FINE) / spread for shift in (crossed.SHIFT, 0.0))
        tp, fp = ((side * ndtr(of_side)).sum(axis=0) for side, of_side in zip((positive, negative), above, strict=True))
        self.truth = _ratios(float(positive.sum()), tp / positive.sum(), fp / negative.sum())

    def sample(self, rng: np.random.Generator, draws: Draws) -> Sample:
        """Draw a data set."""
        data = crossed.draw(self.design, rng)
        return _of_clusterings(data, data.clusterings("both"), self.truth, draws)


def _of_clusterings(
    data: crossed.Data, clusterings: list[Integers], truth: Truth, draws: Draws, quality: str = "good"
) -> Sample:
    """The limits of a data set by each of its clusterings."""
    every = np.unique(data.score)
    thresholds = every[spread_out(len(every), MOST_CLUSTERS)]
    first, *others = data.counts(clusterings, thresholds)
    single = intervals_of_clusters(first, CONFIDENCE, names=RATIOS, crossed=others)
    band = band_of_clusters(first, CONFIDENCE, single, crossed=others, draws=draws)
    at, below = (
        {name: np.interp(scores, FINE, values) for name, values in truth.items()}
        for scores in (thresholds, np.concatenate([[-np.inf], thresholds[:-1]]))
    )
    return Sample(at, single, band, total(first), below, quality)


Design: TypeAlias = IndependentRows | Clusters | TwoParents

FEW_AND_MANY = (
    *((5000, 5000, 1.0), (50, 50, 1.0), (100, 100, 0.0), (200, 200, 4.0), (50, 5000, 2.0), (10, 2000, 2.0)),
    (500, 50, 1.0),
)
DESIGNS: tuple[Design, ...] = (
    *(IndependentRows(positives, 10 * positives, 1.5) for positives in (10, 20, 50, 200, 1000)),
    *(IndependentRows(p, n, shift) for p, n, shift in FEW_AND_MANY),
    *(IndependentRows(p, n, shift, fixed=True) for p, n, shift in ((50, 500, 1.5), (500, 500, 1.0))),
    *(IndependentRows(p, n, shift, step=step) for p, n, shift, step in ((200, 2000, 1.5, 0.25), (50, 500, 1.5, 1.0))),
    *(IndependentRows(50, 500, 1.5, grid=grid) for grid in (20, 1)),
    *(IndependentRows(100, 1000, 1.5, sigma=sigma) for sigma in (0.5, 1.0)),
    IndependentRows(300, 300, 1.0, sigma=1.0),
    *(Clusters(clustered.Design(clusters, "equal")) for clusters in (15, 30, 100)),
    Clusters(clustered.Design(100, "equal", alike=False)),
    *(Clusters(clustered.Design(clusters, "lognormal", 0.5)) for clusters in (30, 100)),
    *(Clusters(clustered.Design(clusters, "lognormal", 1.0)) for clusters in (40, 100)),
    *(Clusters(clustered.Design(40, "lognormal", 0.5, along)) for along in ("prevalence", "quality")),
    *(Clusters(clustered.Design(100, "pareto", 1.3, along)) for along in ("", "prevalence")),
    *(TwoParents(crossed.Design(*design)) for design in ((20, 20, 1.0, 0.7, 0.7), (40, 40, 0.5, 0.7, 0.7))),
    *(TwoParents(crossed.Design(*design)) for design in ((100, 30, 0.3, 0.5, 0.7), (40, 40, 0.5, 0.7, 0.0))),
)
CHOICES = (
    *((IndependentRows(positives, 10 * positives, 2.0), 0.7) for positives in (50, 200, 1000)),
    (IndependentRows(200, 200, 1.5), 0.9),
)


def holds(limits: dict[str, Limits], truth: Truth) -> Bools:
    """Whether limits hold each curve everywhere; where a ratio is not defined in the sample, nothing is said."""
    is_held = {
        name: not ((true < limits[name][0] - ROUNDING) | (true > limits[name][1] + ROUNDING)).any()
        for name, true in truth.items()
    }
    return np.array([is_held[first] and is_held[second] for first, second in CURVES])


def measure(design: Design, asked: Asked) -> Table:
    """A row of the first table."""
    design.prepare(np.random.default_rng([asked.seed, 0]))
    rng, tally = np.random.default_rng([asked.seed, 1]), Tally()
    for number in range(asked.datasets):
        sample = design.sample(rng, Draws(asked.draws, number))
        in_band = holds(sample.band.limits, sample.truth)
        tally.add({"single": holds(sample.single, sample.truth), "band": in_band})
        if sample.between is not None:
            tally.add({"between": holds(sample.band.limits, sample.between) & in_band})
        tally.add({"critical": np.array([sample.band.critical.values[name] for name in RATIOS])})
        tally.add({"wider": _width(sample.band.limits) / _width(sample.single), "marked": sample.quality != "good"})
    unmarked = tally["marked"] == 0
    shares = [share for name in ("single", "band") for share in tally.mean(name).tolist()]
    shares += tally.mean("between").tolist() if "between" in tally else [np.nan, np.nan]
    of_unmarked = tally.mean("band", unmarked).tolist() if 20 < unmarked.sum() < asked.datasets else ("", "")
    critical = " ".join(f"{value:.2f}" for value in tally.mean("critical"))
    marked, wider = float(tally.mean("marked")), float(tally.mean("wider"))
    yield str(design), critical, *shares, f"{marked:.0%}", *of_unmarked, f"{wider:.2f}"


def _width(limits: dict[str, Limits]) -> float:
    return float(np.mean([np.nanmean(limits[name][1] - limits[name][0]) for name in RATIOS]))


def choose(choice: tuple[IndependentRows, float], asked: Asked) -> Table:
    """Choose a threshold for a minimum precision in data sets of a design; a row of the second table."""
    design, minimum = choice
    rng, tally = np.random.default_rng([asked.seed, 2]), Tally()
    for number in range(asked.datasets):
        sample = design.sample(rng, Draws(asked.draws, number))
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
            wrong, recall = sample.truth["precision"][lowest] < minimum, sample.truth["recall"][lowest]
            tally.add({name: np.array([1.0, wrong, recall]) if of_way.any() else np.zeros(3)})
    yield str(design), f"{minimum:g}", *(share for means in tally.means().values() for share in means.tolist())


def main() -> None:
    """Print both tables."""
    asked = options(__doc__, 2000, draws=499)  # of a band the stage takes 1,999
    print_error(asked.datasets)
    curves = ("single PR", "ROC", "band PR", "ROC", "between PR", "ROC", "marked", "unmarked PR", "ROC", "wider")
    report("coverage", ("data", "critical", *curves), measure, DESIGNS, asked)
    ways = [f"{way}: {name}" for way in ("sample", "band", "confidence") for name in ("chosen", "wrong", "recall")]
    report("choices", ("data", "minimum", *ways), choose, CHOICES, asked)


if __name__ == "__main__":
    main()
