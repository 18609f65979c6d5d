"""Measured error rates of chosen thresholds, and coverage of limits at the edge, on simulated data of known truth.

    python studies/coverage_at_the_edge.py [--datasets 1000] [--seed 1]

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

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
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

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

CONFIDENCE = 0.95
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
BINS = 40  # thresholds of clusters


@dataclass(frozen=True)
class Sample:
    """One simulated data set.

    Attributes:
        score: Scores.
        label: Labels.
        weight: Weights; None: every row counts once.
        cluster: Number of the cluster of every row; None: rows are independent.
    """

    score: Floats
    label: NDArray[np.bool_]
    weight: Floats | None = None
    cluster: NDArray[np.int64] | None = None


@dataclass(frozen=True)
class Design:
    """What is simulated.

    Attributes:
        name: What it is called.
        sample: Draws a data set.
        precision: The truth at a threshold.
        recall: Likewise.
        minimum: The minimum precision that is asked for.
    """

    name: str
    sample: Callable[[np.random.Generator], Sample]
    precision: Callable[[float], float]
    recall: Callable[[float], float]
    minimum: float = 0.9


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
            effect * effects[cluster] + rng.standard_normal(len(cluster)) + shift * label, label, None, cluster
        )

    def retrieved(at: float) -> tuple[float, float, float]:
        weight, share = _WEIGHTS / _WEIGHTS.sum(), share_of(_NODES)
        true = float((weight * share * ndtr(shift + effect * _NODES - at)).sum())
        return true, float((weight * (1 - share) * ndtr(effect * _NODES - at)).sum()), float((weight * share).sum())

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
    *(normal(*each) for each in ((20, 180, 4), (200, 1000, 2.5), (100, 100, 1.5, 0.8))),
    *(flat_clusters(*each) for each in ((30, 20), (100, 10))),
    flat_clusters(100, 10, unequal=True),
    normal_clusters(60, 20),
    *(stratified(*each) for each in ((0.1, 30), (0.02, 50))),
)


def thresholds_of(sample: Sample) -> Floats:
    """Every score, or a grid where rows come in clusters."""
    if sample.cluster is None:
        return np.unique(sample.score)
    return np.unique(np.quantile(sample.score, np.linspace(0, 1, BINS, endpoint=False)))


def confusion(sample: Sample, thresholds: Floats, weight: Floats | None) -> Confusion:
    """Counts or weights by cluster, or of all rows in one, at every threshold."""
    cluster = np.zeros(len(sample.score), dtype=np.int64) if sample.cluster is None else sample.cluster
    cell = np.searchsorted(thresholds, sample.score, side="right")
    sides = []
    for mask in (sample.label, ~sample.label):
        table = np.zeros((int(cluster.max()) + 1, len(thresholds) + 1))
        np.add.at(table, (cluster[mask], cell[mask]), 1.0 if weight is None else weight[mask])
        above = table[:, ::-1].cumsum(axis=1)[:, ::-1]
        sides += [above[:, 1:], above[:, :1] - above[:, 1:]]
    return Confusion(sides[0], sides[2], sides[1], sides[3])


def lower_limits(sample: Sample, thresholds: Floats, name: str) -> Callable[[float], Floats]:
    """Lower limits by confidence, as the stages have them."""
    counts = confusion(sample, thresholds, sample.weight)
    if sample.cluster is not None:
        return lambda level: intervals_of_clusters(counts, level, names=[name])[name][0]
    weights = None
    if sample.weight is not None:
        squares = confusion(sample, thresholds, sample.weight**2)
        heaviest = float(sample.weight.max())  # no label gave the weights
        weights = Weights(_first(squares), heaviest, heaviest)
    return lambda level: intervals_of_rows(_first(counts), weights, level, names=[name])[name][0]


def _first(counts: Confusion) -> Confusion:
    return Confusion(counts.tp[0], counts.fp[0], counts.fn[0], counts.tn[0])


def promises(design: Design, datasets: int, rng: np.random.Generator) -> None:
    """One line for precision and one for recall."""
    for name, minimum in (("precision", design.minimum), ("recall", 0.8)):
        truth = design.precision if name == "precision" else design.recall
        tally = np.zeros(4)
        for _ in range(datasets):
            sample = design.sample(rng)
            thresholds = thresholds_of(sample)
            lower = lower_limits(sample, thresholds, name)
            rows = confusion(sample, thresholds, None)
            retrieved = (rows.tp + rows.fp).sum(axis=0)
            counts = confusion(sample, thresholds, sample.weight)
            precision, recall = ratios_of_counts([side.sum(axis=0) for side in (counts.tp, counts.fp, counts.fn)])
            if name == "precision":
                keeps, naive = keeps_precision(lower, retrieved, minimum, CONFIDENCE), precision >= minimum
                best = recall
            else:
                keeps, naive, best = keeps_recall(lower, minimum, CONFIDENCE), recall >= minimum, precision
            for number, eligible in ((0, keeps), (3, naive)):
                if (eligible & ~np.isnan(best)).any():
                    at = float(thresholds[int(np.nanargmax(np.where(eligible, best, np.nan)))])
                    wrong = truth(at) < minimum
                    tally += np.eye(4)[number] * wrong
                    if number == 0:
                        tally += [0, 1, design.recall(at), 0]
        wrong, chosen, recalled, naive_wrong = tally / datasets
        error = np.sqrt(max(wrong, 1 / datasets) * (1 - wrong) / datasets)
        mean = recalled / chosen if chosen else np.nan
        print(f"  {design.name:<58}{name:<11}{wrong:>7.3f} ±{error:.3f}{chosen:>9.3f}{mean:>9.3f}{naive_wrong:>9.3f}")


def best_f1(counts: Sequence[Floats]) -> NDArray[np.int64]:
    """The thresholds with the highest F1, one for each row of counts."""
    f1 = f_beta_of_counts(counts, 1.0)
    return np.asarray(np.nan_to_num(f1, nan=-1.0).argmax(axis=1))


def chosen_and_fitted(design: Design, sample: Sample) -> tuple[Floats, Floats] | None:
    """Errors of F1 and whether limits of precision, recall and F1 hold, in the sample, then cross-fitted."""
    thresholds = thresholds_of(sample)
    counts = confusion(sample, thresholds, None)
    sides = (counts.tp, counts.fp, counts.fn, counts.tn)
    f1 = f_beta_of_counts([side.sum(axis=0) for side in sides], 1.0)
    best = int(np.nanargmax(f1))
    if sample.cluster is None:
        true, positives = split_rows(counts.tp[0].astype(np.int64), int(sample.label.sum()))
        false, negatives = split_rows(counts.fp[0].astype(np.int64), int((~sample.label).sum()), seed=1)
        replicates: Sequence[Floats] = (true, false, positives - true, negatives - false)
    else:
        replicates = sides
    picked: list[NDArray[np.int64]] = []

    def choose(totals: Sequence[Floats]) -> NDArray[np.int64]:
        picked.append(best_f1(totals))
        return picked[-1]

    pooled = cross_fitted([count[None] for count in by_fold(replicates)], choose)
    if np.isnan(pooled[0]).any():
        return None
    of_folds = [at_choices(side, np.concatenate(picked)) for side in replicates]
    at_best = [side[:, [best]] for side in sides]
    totals = [side.sum(axis=0) for side in sides[:3]]
    at_chosen = [total[[best]] for total in totals]
    values = ((*ratios_of_counts(of), f_beta_of_counts(of, 1.0)) for of in (at_chosen, pooled))
    shifts = [float(one[0] - other[0]) for one, other in zip(*values, strict=True)]
    held = []
    precision, recall = design.precision(float(thresholds[best])), design.recall(float(thresholds[best]))
    truth = {"precision": precision, "recall": recall, "f1": 2 * precision * recall / (precision + recall)}
    for outcomes in (at_best, of_folds):
        if sample.cluster is None:
            rows = Confusion(*(side.sum(axis=0) for side in outcomes))
            limits = intervals_of_rows(rows, None, CONFIDENCE, names=list(truth))
        else:
            limits = intervals_of_clusters(Confusion(*outcomes), CONFIDENCE, names=list(truth))
        for (name, value), shift in zip(truth.items(), shifts if outcomes is of_folds else (0.0,) * 3, strict=True):
            lower, upper = (float(limit[0]) for limit in limits[name])
            held.append(float(lower + min(shift, 0.0) <= value <= upper + max(shift, 0.0)))
    fitted = float(f_beta_of_counts(pooled, 1.0)[0])
    return np.array([np.nanmax(f1) - truth["f1"], fitted - truth["f1"]]), np.array(held)


def choices(design: Design, prevalence: float, datasets: int, rng: np.random.Generator) -> None:
    """One line: errors of the best F1 in the sample, and of the cross-fitted one; coverage of P, R and F1 of both."""
    measured = [chosen_and_fitted(design, design.sample(rng)) for _ in range(datasets)]
    gaps, held = (np.array(each) for each in zip(*(pair for pair in measured if pair is not None), strict=True))
    means, errors = 100 * gaps.mean(axis=0), 100 * gaps.std(axis=0) / np.sqrt(len(gaps))
    cells = "".join(f"{mean:>9.2f} ±{error:.2f}" for mean, error in zip(means, errors, strict=True))
    shares = " ".join(f"{share:.3f}" for share in held.mean(axis=0))
    print(f"  {design.name:<58}{prevalence:>9.2f}{cells}   {shares}", flush=True)


@dataclass(frozen=True)
class Documents:
    """Documents with mentions, or series with change points, that are harder or easier as a whole.

    Attributes:
        name: What is printed.
        fewest: True ones that each has at least.
        true: Mean number of the others.
        predicted: Share of the true ones that is predicted with a score.
        false: Mean number of false predictions, of a document of medium difficulty.
    """

    name: str
    fewest: int
    true: float
    predicted: float
    false: float

    def sample(self, number: int, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
        """True positives, false positives and misses by document and threshold."""
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
        return counts[0], counts[1], true[:, None] - counts[0]


def choices_of_documents(design: Documents, number: int, datasets: int, rng: np.random.Generator) -> None:
    """One line as that of `choices`, where documents or series are what is independent."""
    total = [side.sum(axis=0) for side in design.sample(40_000, rng)]
    truth = (*ratios_of_counts(total), f_beta_of_counts(total, 1.0))
    gaps, held, names = [], [], ("precision", "recall", "f1")
    for _ in range(datasets):
        counts = design.sample(number, rng)
        picked: list[NDArray[np.int64]] = []

        def choose(totals: Sequence[Floats], picked: list[NDArray[np.int64]] = picked) -> NDArray[np.int64]:
            picked.append(best_f1(totals))
            return picked[-1]

        best = int(best_f1([side.sum(axis=0, keepdims=True) for side in counts])[0])
        pooled = cross_fitted([side[None] for side in by_fold(counts)], choose)
        sides = [side[:, [best]] for side in counts], [at_choices(side, np.concatenate(picked)) for side in counts]
        sums = [side.sum(axis=0) for side in sides[0]], pooled
        in_sample, fitted = (np.ravel((*ratios_of_counts(each), f_beta_of_counts(each, 1.0))) for each in sums)
        at_best = np.array([values[best] for values in truth])
        gaps.append((in_sample[2] - at_best[2], fitted[2] - at_best[2]))
        covered = []
        for outcomes, shift in zip(sides, (np.zeros(3), in_sample - fitted), strict=True):
            tp, fp, fn = outcomes
            limits = intervals_of_clusters(Confusion(tp, fp, fn, 0 * tp), CONFIDENCE, names=names)
            lower, upper = (np.array([limits[name][end][0] for name in names]) for end in (0, 1))
            covered += [lower + np.minimum(shift, 0) <= at_best, at_best <= upper + np.maximum(shift, 0)]
        held.append(np.concatenate([covered[0] & covered[1], covered[2] & covered[3]]))
    means, errors = 100 * np.mean(gaps, axis=0), 100 * np.std(gaps, axis=0) / np.sqrt(datasets)
    cells = "".join(f"{mean:>9.2f} ±{error:.2f}" for mean, error in zip(means, errors, strict=True))
    shares = " ".join(f"{share:.3f}" for share in np.mean(held, axis=0))
    print(f"  {number:>4} {design.name:<62}{cells}   {shares}", flush=True)


def zero_counts(size: int) -> None:
    """One line: exact coverage."""
    probability = np.concatenate([np.geomspace(1e-6, 0.05, 1000), np.linspace(0.05, 0.5, 1000)])[:, None]
    hits = np.arange(size + 1.0)
    lower, upper = binomial_limits(hits, size - hits, 0.025)
    inside = (lower <= probability) & (probability <= upper)
    coverage = (binom.pmf(hits, size, probability) * inside).sum(axis=1)
    print(f"  {size:>5} rows{coverage.min():>10.4f}{(coverage < 0.93).mean():>10.4f}{coverage.mean():>10.4f}")


def heavy_rows(light_rate: float, heavy_rate: float, datasets: int, rng: np.random.Generator) -> None:
    """One line: coverage of recall of a stratified sample."""
    light, heavy = rng.binomial(1035, light_rate, datasets), rng.binomial(18, heavy_rate, datasets)
    misses, of_misses = 2.0 * light + 50.0 * heavy, 4.0 * light + 2500.0 * heavy
    nothing, hits = np.zeros(datasets), 2970.0 - misses
    weights = Weights(Confusion(49140.0 - of_misses, nothing, of_misses, nothing), 50.0, 1.0)
    lower, upper = intervals_of_rows(Confusion(hits, nothing, misses, nothing), weights, CONFIDENCE)["recall"]
    truth = 1 - (2070 * light_rate + 900 * heavy_rate) / 2970
    _coverage(f"light {light_rate:.3f}, heavy {heavy_rate:.2f}", (lower, upper), truth)


def few_units(number: int, high: float, datasets: int, rng: np.random.Generator) -> None:
    """One line for the limits of means, and one for Student's t."""
    shape = (number, datasets)
    values = np.where(rng.random(shape) < high, rng.beta(12, 1.5, shape), rng.beta(1.2, 15, shape))
    truth = high * 12 / 13.5 + (1 - high) * 1.2 / 16.2
    mean, variance = values.mean(axis=0), values.var(axis=0, ddof=1) / number
    size, half = np.full(datasets, float(number)), t.ppf(0.975, number - 1) * np.sqrt(variance)
    _coverage(
        f"{number} units, {high:.0%} high",
        mean_limits(mean, variance, size, tail(CONFIDENCE, effective_degrees(values))),
        truth,
    )
    _coverage("  Student's t", (np.clip(mean - half, 0, 1), np.clip(mean + half, 0, 1)), truth)


def _coverage(name: str, limits: tuple[Floats, Floats], truth: float) -> None:
    lower, upper = limits
    inside = (lower <= truth) & (truth <= upper)
    error = np.sqrt(inside.mean() * (1 - inside.mean()) / len(inside))
    print(f"  {name:<30}{inside.mean():>8.3f} ±{error:.3f}{(upper - lower).mean():>9.3f}")


def main() -> None:
    """Parse the arguments and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rng = np.random.default_rng(options.seed)
    print(f"Zero counts: exact coverage of nominal {CONFIDENCE}\n  {'':<10}{'least':>10}{'< .93':>10}{'mean':>10}")
    for size in (10, 40, 100, 400):
        zero_counts(size)
    print(f"Unseen heavy rows, by miss rates\n  {'':<30}{'coverage':>15}{'width':>9}")
    for light, heavy in (
        (0.0, 0.02),
        (0.0, 0.05),
        (0.0, 0.1),
        (0.0, 0.15),
        (0.01, 0.1),
        (0.05, 0.05),
        (0.05, 0.2),
        (0.3, 0.3),
    ):
        heavy_rows(light, heavy, 20 * options.datasets, rng)
    print(f"Means of few units\n  {'':<30}{'coverage':>15}{'width':>9}")
    for number, high in ((5, 0.2), (5, 0.4), (10, 0.1), (10, 0.2), (10, 0.4), (20, 0.1), (20, 0.4), (50, 0.2)):
        few_units(number, high, 10 * options.datasets, rng)
    print(f"Best F1, error in hundredths\n  {'':<58}{'positive':>9}{'in sample':>15}{'cross-fitted':>15}")
    for design, prevalence in ((normal(20, 180, 1), 0.1), (normal(100, 900, 1), 0.1), (normal_clusters(60, 20), 0.3)):
        choices(design, prevalence, options.datasets, rng)
    for documents in (Documents("documents", 0, 6, 0.9, 5), Documents("series", 1, 1.5, 0.8, 4)):
        for number in (20, 40, 100):
            choices_of_documents(documents, number, options.datasets, rng)
    titles = f"{'wrong':>14}{'chosen':>9}{'recall':>9}{'naive':>9}"
    print(f"Promises with confidence {CONFIDENCE}\n  {'':<69}{titles}")
    for design in DESIGNS:
        promises(design, options.datasets, rng)


if __name__ == "__main__":
    main()
