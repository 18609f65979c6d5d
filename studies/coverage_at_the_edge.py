"""Measured error rates of chosen thresholds, and coverage of limits at the edge, on simulated data of known truth.

    python studies/coverage_at_the_edge.py [--datasets 1000] [--seed 1] [--only TEXT]…

- Promises: how often the truth of a threshold that was chosen with confidence .95 is below its minimum (`wrong`), how
  often there is one (`chosen`), its mean recall, and how often the choice without a confidence is wrong. `flat` designs
  have a true precision just below the minimum at every threshold, so that every choice is wrong.
- Choices of the best F1: mean error of the value in the sample and of the cross-fitted one, in hundredths, and how
  often nominal .95 limits of each hold the precision, the recall and the F1 that the chosen threshold has in truth.
- Zero counts: exact coverage of nominal .95 by enumeration over 2,000 probabilities.
- Unseen heavy rows: stratified samples of 1,035 positives of weight 2 and 18 of weight 50, by their miss rates.
- Few units: means of values of two modes, near .9 and near .07; beside Student's t.

`±` is the Monte Carlo standard error.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from harness import Asked, Bools, Floats, Integers, Table, Tally, held, options, report
from labelled_rows import RATIOS, confusion, nodes, total
from scipy.special import expit, ndtr
from scipy.stats import binom, t

from pipeline.metrics.curves.decisions import (
    at_choices,
    by_fold,
    cross_fitted,
    keeps_precision,
    keeps_recall,
    split_rows,
)
from pipeline.metrics.curves.operating_points import f_beta_of_counts, ratios_of_counts
from pipeline.metrics.uncertainty.jackknife import binomial_limits, effective_degrees, tail
from pipeline.metrics.uncertainty.proportions import (
    Confusion,
    Weights,
    intervals_of_clusters,
    intervals_of_rows,
    mean_limits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from harness import Row

    from pipeline.metrics.uncertainty.jackknife import Limits

Outcomes: TypeAlias = "Sequence[Floats]"  # true and false positives, misses and true negatives

CONFIDENCE = 0.95
BINS = 40  # thresholds of clusters


@dataclass(frozen=True)
class Sample:
    """One simulated data set: rows, which may have weights or clusters."""

    score: Floats
    label: Bools
    weight: Floats | None = None
    cluster: Integers | None = None

    def counts(self, thresholds: Floats, weight: Floats | None = None) -> Confusion:
        """Counts, or sums of weights, by cluster, or of all rows in one, at every threshold."""
        return confusion(thresholds, self.score, self.label, self.cluster, weight)

    def thresholds(self) -> Floats:
        """Every score, or a grid where rows come in clusters."""
        if self.cluster is None:
            return np.unique(self.score)
        return np.unique(np.quantile(self.score, np.linspace(0, 1, BINS, endpoint=False)))


@dataclass(frozen=True)
class Design:
    """What is simulated: how a data set is drawn, the truth at a threshold, and the minimum precision asked for."""

    name: str
    sample: Callable[[np.random.Generator], Sample]
    precision: Callable[[float], float]
    recall: Callable[[float], float]
    minimum: float = 0.9

    def truth(self, at: float) -> Floats:
        """Precision, recall and F1 at a threshold."""
        precision, recall = self.precision(at), self.recall(at)
        return np.array([precision, recall, 2 * precision * recall / (precision + recall)])


def flat(size: int, rate: float = 0.895) -> Design:
    """Scores that say nothing, and a precision just below the minimum."""

    def sample(rng: np.random.Generator) -> Sample:
        return Sample(rng.random(size), rng.random(size) < rate)

    return Design(f"flat, {size} rows", sample, lambda _: rate, lambda at: 1 - at)


def normal(positives: int, negatives: int, shift: float, minimum: float = 0.9) -> Design:
    """Normal scores of both classes, whose sizes are random."""
    size = positives + negatives

    def sample(rng: np.random.Generator) -> Sample:
        label = rng.random(size) < positives / size
        return Sample(rng.standard_normal(size) + shift * label, label)

    def precision(at: float) -> float:
        true, false = positives * ndtr(shift - at), negatives * ndtr(-at)
        return float(true / (true + false))

    name = f"normal, {positives} of {size} rows, shift {shift:g}, minimum {minimum:g}"
    return Design(name, sample, precision, lambda at: float(ndtr(shift - at)), minimum)


def flat_clusters(clusters: int, size: int, *, unequal: bool = False) -> Design:
    """Clusters whose precisions differ (beta, correlation .2), .895 on average."""
    rate, alike = 0.895, 0.2

    def sample(rng: np.random.Generator) -> Sample:
        share = rng.beta(rate * (1 / alike - 1), (1 - rate) * (1 / alike - 1), clusters)
        sizes = np.maximum(rng.poisson(rng.gamma(1, size, clusters)), 1) if unequal else np.full(clusters, size)
        cluster = np.repeat(np.arange(clusters), sizes)
        return Sample(rng.random(len(cluster)), rng.random(len(cluster)) < share[cluster], cluster=cluster)

    sizes = f"of {size} rows" if not unequal else f"of unequal size, {size} rows on average"
    return Design(f"flat, {clusters} clusters {sizes}", sample, lambda _: rate, lambda at: 1 - at)


def normal_clusters(clusters: int, size: int) -> Design:
    """Clusters whose effects shift their scores and their share of positives."""
    shift, effect = 2.5, 0.5

    def share_of(effects: Floats) -> Floats:
        return np.asarray(expit(0.7 * effects - 1))

    def sample(rng: np.random.Generator) -> Sample:
        effects = rng.standard_normal(clusters)
        cluster = np.repeat(np.arange(clusters), size)
        label = rng.random(len(cluster)) < share_of(effects)[cluster]
        return Sample(
            effect * effects[cluster] + rng.standard_normal(len(cluster)) + shift * label, label, cluster=cluster
        )

    def retrieved(at: float) -> tuple[float, float, float]:
        values, weight = nodes(60)
        share = share_of(values)
        true = float((weight * share * ndtr(shift + effect * values - at)).sum())
        return true, float((weight * (1 - share) * ndtr(effect * values - at)).sum()), float((weight * share).sum())

    def precision(at: float) -> float:
        true, false, _ = retrieved(at)
        return true / (true + false)

    name = f"normal, {clusters} clusters of {size} rows"
    return Design(name, sample, precision, lambda at: retrieved(at)[0] / retrieved(at)[2])


def stratified(share: float, heavy: float) -> Design:
    """Rows of weight 1 that are true in .99, and few of a high weight that are true in .8; scores say nothing."""
    rate = (share * heavy * 0.8 + (1 - share) * 0.99) / (share * heavy + 1 - share)

    def sample(rng: np.random.Generator) -> Sample:
        is_heavy = rng.random(1000) < share
        return Sample(
            rng.random(1000), rng.random(1000) < np.where(is_heavy, 0.8, 0.99), np.where(is_heavy, heavy, 1.0)
        )

    return Design(f"weights, {share:.0%} of {heavy:g}, others 1", sample, lambda _: rate, lambda at: 1 - at)


DESIGNS = (
    *(flat(size) for size in (200, 1000)),
    *(normal(*numbers) for numbers in ((20, 180, 4), (200, 1000, 2.5), (100, 100, 1.5, 0.8))),
    *(flat_clusters(*numbers) for numbers in ((30, 20), (100, 10))),
    flat_clusters(100, 10, unequal=True),
    normal_clusters(60, 20),
    *(stratified(*numbers) for numbers in ((0.1, 30), (0.02, 50))),
)


def lower_limits(sample: Sample, thresholds: Floats, name: str) -> Callable[[float], Floats]:
    """Lower limits by confidence, as the stages have them."""
    counts = sample.counts(thresholds, sample.weight)
    if sample.cluster is not None:
        return lambda level: intervals_of_clusters(counts, level, names=[name])[name][0]
    weights = None
    if sample.weight is not None:
        heaviest = float(sample.weight.max())  # no label gave the weights
        weights = Weights(total(sample.counts(thresholds, sample.weight**2)), heaviest, heaviest)
    return lambda level: intervals_of_rows(total(counts), weights, level, names=[name])[name][0]


def promises(task: tuple[int, str], asked: Asked) -> Table:
    """A row for precision or for recall of a design."""
    (number, name), tally = task, Tally()
    design, rng = DESIGNS[number], np.random.default_rng([asked.seed, 4, number, name == "recall"])
    truth, minimum = (design.precision, design.minimum) if name == "precision" else (design.recall, 0.8)
    for _ in range(asked.datasets):
        sample = design.sample(rng)
        thresholds = sample.thresholds()
        lower, rows = lower_limits(sample, thresholds, name), total(sample.counts(thresholds))
        counts = total(sample.counts(thresholds, sample.weight))
        precision, recall = ratios_of_counts([counts.tp, counts.fp, counts.fn])
        if name == "precision":
            keeps, best = keeps_precision(lower, rows.tp + rows.fp, minimum, CONFIDENCE), recall
            naive = precision >= minimum
        else:
            keeps, naive, best = keeps_recall(lower, minimum, CONFIDENCE), recall >= minimum, precision
        at, at_naive = (_chosen(thresholds, eligible, best) for eligible in (keeps, naive))
        tally.add({"wrong": at is not None and truth(at) < minimum, "chosen": at is not None})
        tally.add({"recall": np.nan if at is None else design.recall(at)})
        tally.add({"naive": at_naive is not None and truth(at_naive) < minimum})
    wrong, *others = (float(share) for share in tally.means().values())
    error = np.sqrt(max(wrong, 1 / asked.datasets) * (1 - wrong) / asked.datasets)
    yield design.name, name, f"{wrong:.3f} ±{error:.3f}", *others


def _chosen(thresholds: Floats, eligible: Bools, best: Floats) -> float | None:
    """The eligible threshold where a ratio is best."""
    if not (eligible & ~np.isnan(best)).any():
        return None
    return float(thresholds[int(np.nanargmax(np.where(eligible, best, np.nan)))])


def best_f1(counts: Outcomes) -> Integers:
    """The thresholds with the highest F1, one for each row of counts."""
    f1 = f_beta_of_counts(counts, 1.0)
    return np.asarray(np.nan_to_num(f1, nan=-1.0).argmax(axis=1))


def judged_choice(
    sides: Outcomes,
    replicates: Outcomes,
    truth_at: Callable[[int], Floats],
    limits_of: Callable[[Confusion], dict[str, Limits]],
) -> dict[str, Floats]:
    """Errors of F1 and whether limits of precision, recall and F1 hold, in the sample, then cross-fitted."""
    picked: list[Integers] = []

    def choose(totals: Outcomes) -> Integers:
        picked.append(best_f1(totals))
        return picked[-1]

    best = int(best_f1([side.sum(axis=0, keepdims=True) for side in sides])[0])
    pooled = cross_fitted([side[None] for side in by_fold(replicates)], choose)
    if np.isnan(pooled[0]).any():
        return {}
    outcomes = [side[:, [best]] for side in sides], [at_choices(side, np.concatenate(picked)) for side in replicates]
    sums, truth = ([side.sum(axis=0) for side in outcomes[0]], pooled), truth_at(best)
    in_sample, fitted = (np.ravel((*ratios_of_counts(of), f_beta_of_counts(of, 1.0))) for of in sums)
    holds = []
    for of_choice, shift in zip(outcomes, (np.zeros(3), in_sample - fitted), strict=True):
        limits = limits_of(Confusion(*of_choice))
        lower, upper = (np.array([limits[name][end][0] for name in RATIOS]) for end in (0, 1))
        holds.append((lower + np.minimum(shift, 0) <= truth) & (truth <= upper + np.maximum(shift, 0)))
    return {"gaps": np.array([in_sample[2] - truth[2], fitted[2] - truth[2]]), "held": np.concatenate(holds)}


def _of_choices(name: str, tally: Tally) -> Row:
    gaps = 100 * tally["gaps"]
    errors = gaps.std(axis=0) / np.sqrt(len(gaps))
    cells = [f"{mean:.2f} ±{error:.2f}" for mean, error in zip(gaps.mean(axis=0), errors, strict=True)]
    return name, *cells, *tally.mean("held").tolist()


CHOICES = ((normal(20, 180, 1), 0.1), (normal(100, 900, 1), 0.1), (normal_clusters(60, 20), 0.3))


def choices(number: int, asked: Asked) -> Table:
    """Errors of the best F1 in the sample, and of the cross-fitted one; coverage of P, R and F1 of both."""
    (design, positive), rng, tally = CHOICES[number], np.random.default_rng([asked.seed, 2, number]), Tally()
    for _ in range(asked.datasets):
        sample = design.sample(rng)
        thresholds = sample.thresholds()
        counts = sample.counts(thresholds)
        replicates = sides = (counts.tp, counts.fp, counts.fn, counts.tn)
        if sample.cluster is None:
            true, positives = split_rows(counts.tp[0].astype(np.int64), int(sample.label.sum()))
            false, negatives = split_rows(counts.fp[0].astype(np.int64), int((~sample.label).sum()), seed=1)
            replicates = (true, false, positives - true, negatives - false)

        def truth_at(best: int, thresholds: Floats = thresholds) -> Floats:
            return design.truth(float(thresholds[best]))

        tally.add(judged_choice(sides, replicates, truth_at, _limits_of_rows if sample.cluster is None else _limits))
    yield _of_choices(f"{design.name}, {positive:.0%} positive", tally)


def _limits_of_rows(outcomes: Confusion) -> dict[str, Limits]:
    return intervals_of_rows(total(outcomes), None, CONFIDENCE, names=RATIOS)


def _limits(outcomes: Confusion) -> dict[str, Limits]:
    return intervals_of_clusters(outcomes, CONFIDENCE, names=RATIOS)


@dataclass(frozen=True)
class Documents:
    """Documents with mentions, or series with change points, that are harder or easier as a whole.

    Each has at least `fewest` true ones, and others of a mean number; a share is predicted with a score, beside a mean
    number of false ones of a document of medium difficulty.
    """

    name: str
    fewest: int
    true: float
    predicted: float
    false: float

    def __str__(self) -> str:
        return self.name

    def sample(self, number: int, rng: np.random.Generator) -> Outcomes:
        """The outcomes by document and threshold."""
        hard, edges = rng.normal(size=number), np.linspace(-2.0, 4.0, 31)
        true = self.fewest + rng.poisson(self.true, number)
        hits, false = rng.binomial(true, self.predicted), rng.poisson(self.false * np.exp(0.4 * hard))
        counts = []
        for size, mean in ((hits, 1.5 - 0.5 * hard), (false, 0.3 * hard)):
            document = np.repeat(np.arange(number), size)
            bins = np.searchsorted(edges, rng.normal(mean[document]), side="right")
            table = np.zeros((number, len(edges) + 1))
            np.add.at(table, (document, bins), 1)
            counts.append(table[:, ::-1].cumsum(axis=1)[:, -2::-1])
        return counts[0], counts[1], true[:, None] - counts[0], 0 * counts[0]


DOCUMENTS = (Documents("documents", 0, 6, 0.9, 5), Documents("series", 1, 1.5, 0.8, 4))


def choices_of_documents(task: tuple[Documents, int], asked: Asked) -> Table:
    """The same where documents or series are what is independent."""
    design, number = task
    rng, tally = np.random.default_rng([asked.seed, 3, DOCUMENTS.index(design), number]), Tally()
    of_all = [side.sum(axis=0) for side in design.sample(40_000, rng)]
    truth = np.array([*ratios_of_counts(of_all), f_beta_of_counts(of_all, 1.0)])
    for _ in range(asked.datasets):
        counts = design.sample(number, rng)
        tally.add(judged_choice(counts, counts, lambda best: truth[:, best], _limits))
    yield _of_choices(f"{number} {design.name}", tally)


def zero_counts(size: int, _asked: Asked) -> Table:
    """Exact coverage."""
    probability = np.concatenate([np.geomspace(1e-6, 0.05, 1000), np.linspace(0.05, 0.5, 1000)])[:, None]
    hits = np.arange(size + 1.0)
    inside = held(binomial_limits(hits, size - hits, 0.025), probability)
    coverage = (binom.pmf(hits, size, probability) * inside).sum(axis=1)
    yield str(size), *(f"{number:.4f}" for number in (coverage.min(), (coverage < 0.93).mean(), coverage.mean()))


def heavy_rows(design: tuple[float, float], asked: Asked) -> Table:
    """Coverage of recall of a stratified sample."""
    (light_rate, heavy_rate), datasets = design, 20 * asked.datasets
    rng = np.random.default_rng([asked.seed, 0, HEAVY.index(design)])
    light, heavy = rng.binomial(1035, light_rate, datasets), rng.binomial(18, heavy_rate, datasets)
    misses, of_misses = 2.0 * light + 50.0 * heavy, 4.0 * light + 2500.0 * heavy
    nothing, hits = np.zeros(datasets), 2970.0 - misses
    weights = Weights(Confusion(49140.0 - of_misses, nothing, of_misses, nothing), 50.0, 1.0)
    limits = intervals_of_rows(Confusion(hits, nothing, misses, nothing), weights, CONFIDENCE)["recall"]
    truth = 1 - (2070 * light_rate + 900 * heavy_rate) / 2970
    yield f"light {light_rate:.3f}, heavy {heavy_rate:.2f}", *_coverage(limits, truth)


def few_units(design: tuple[int, float], asked: Asked) -> Table:
    """The limits of means, and Student's t."""
    number, high = design
    rng, shape = np.random.default_rng([asked.seed, 1, UNITS.index(design)]), (number, 10 * asked.datasets)
    values = np.where(rng.random(shape) < high, rng.beta(12, 1.5, shape), rng.beta(1.2, 15, shape))
    truth = high * 12 / 13.5 + (1 - high) * 1.2 / 16.2
    mean, variance = values.mean(axis=0), values.var(axis=0, ddof=1) / number
    size, half = np.full(shape[1], float(number)), t.ppf(0.975, number - 1) * np.sqrt(variance)
    limits = mean_limits(mean, variance, size, tail(CONFIDENCE, effective_degrees(values)))
    yield f"{number} units, {high:.0%} high", *_coverage(limits, truth)
    student = np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)
    yield f"{number} units, Student's t", *_coverage(student, truth)


def _coverage(limits: Limits, truth: float) -> Row:
    lower, upper = limits
    share = float(held(limits, truth).mean())
    return f"{share:.3f} ±{np.sqrt(share * (1 - share) / len(lower)):.3f}", float((upper - lower).mean())


HEAVY = (*((0.0, rate) for rate in (0.02, 0.05, 0.1, 0.15)), (0.01, 0.1), (0.05, 0.05), (0.05, 0.2), (0.3, 0.3))
UNITS = ((5, 0.2), (5, 0.4), (10, 0.1), (10, 0.2), (10, 0.4), (20, 0.1), (20, 0.4), (50, 0.2))


def main() -> None:
    """Print all tables."""
    asked = options(__doc__, 1000)
    zero = f"zero counts: exact coverage of nominal {CONFIDENCE}"
    report(zero, ("rows", "least", "< .93", "mean"), zero_counts, (10, 40, 100, 400), asked)
    report("unseen heavy rows, by miss rates", ("rates", "coverage", "width"), heavy_rows, HEAVY, asked)
    report("means of few units", ("units", "coverage", "width"), few_units, UNITS, asked)
    ratios = (f"{name}, {way}" for way in ("in sample", "fitted") for name in RATIOS)
    head = ("design", "in sample", "cross-fitted", *ratios)
    report("best F1, error in hundredths", head, choices, range(len(CHOICES)), asked)
    tasks = list(product(DOCUMENTS, (20, 40, 100)))
    report("best F1 of documents, error in hundredths", head, choices_of_documents, tasks, asked)
    head = ("design", "of", "wrong", "chosen", "recall", "naive")
    tasks_of_promises = list(product(range(len(DESIGNS)), ("precision", "recall")))
    report(f"promises with confidence {CONFIDENCE}", head, promises, tasks_of_promises, asked)


if __name__ == "__main__":
    main()
