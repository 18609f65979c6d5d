"""Measured coverage of limits of calibration, error rates of its tests, and bias of its errors, on simulated data.

    python studies/coverage_of_calibration.py [--datasets 2000] [--seed 1] [--only TEXT]…

Scores come from a beta distribution. A label is true with a probability that is a function of its score: the score
itself (calibrated), or one that is nearer to 1/2 (the scores claim too much). Labels of one cluster have a common
normal deviate, which leaves that probability as it is: a label is true if a normal deviate, a share of whose variance
is the cluster's, lies below the quantile of the probability. Weights are log-normal, or those of samples with one in
ten of the false rows.

The first table says, by design and binning, how often limits hold the truth: of the share of true rows in a bin over
all bins, in the worst bin and in those that `interval_quality` calls good (`marked`: the share of the others), of gaps,
of all bins together (bands), and of the gap of all rows; and how often both tests reject at .05. The second table has
the means of the expected calibration error, of what it is if scores are calibrated, of the debiased one, and of
reliability as it is and debiased, beside the truth of these bins, in hundredths and ten-thousandths. The truth is that
of a million scores.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from harness import Asked, Floats, Table, held, options, print_table, report
from scipy.special import expit, logit, ndtri

from pipeline.base.columns import REPLICATE, THRESHOLD
from pipeline.base.schemas import GROUPING
from pipeline.metrics.calibration.bins import BIN, BINNINGS, LOWER, UPPER, calibration_errors
from pipeline.metrics.calibration.estimates import estimates_of_clusters, estimates_of_rows, joined
from pipeline.metrics.uncertainty.clusters import effective_number
from pipeline.metrics.uncertainty.limits import FEWEST_CLUSTERS, FEWEST_EVENTS
from pipeline.stages.threshold_sweep.calibration import EDGES, Binned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pipeline.metrics.calibration.estimates import Estimates

CONFIDENCE, BINS, LEVEL = 0.95, 10, 0.05
KEPT, HEAVY = 0.1, 10.0  # of the false rows where these are sampled, and their weight
ROUNDING = 1e-12
OFTEN = 0.3  # of the data sets that must have a bin, for it to be the worst


@dataclass(frozen=True)
class Design:
    """Rows whose scores have a beta distribution of these shapes.

    `slope` is that of the logit of the probability over that of the score (1: scores are calibrated), `alike` the share
    of the variance of the deviates that is the clusters', which have equal or, `skewed`, Pareto(2) sizes. Rows have
    `items` of a second parent in turn, and weights: `none`, `lognormal`, or `sampled`, 10 for the one in ten false rows
    that is kept.
    """

    name: str
    rows: int
    shapes: tuple[float, float] = (0.5, 2.0)
    slope: float = 1.0
    clusters: int = 0
    alike: float = 0.2
    skewed: bool = False
    items: int = 0
    weights: str = "none"

    def __str__(self) -> str:
        return self.name

    def probability(self, score: Floats) -> Floats:
        """Probability that a row with a score is true."""
        return score if self.slope == 1 else np.asarray(expit(self.slope * logit(score)))


CONFIDENT, ONE_IN_ALL = (0.05, 0.3), (1.0, 1000.0)  # shapes of scores
DESIGNS = (
    Design("200 rows", 200),
    Design("1,000 rows", 1000),
    Design("10,000 rows", 10_000),
    Design("1,000 rows, too extreme", 1000, slope=0.6),
    Design("10,000 rows, too extreme", 10_000, slope=0.6),
    Design("1,000 rows, rare", 1000, shapes=(0.5, 20.0)),
    Design("2,000 rows around 1/2", 2000, shapes=(4.0, 4.0)),
    Design("1,000 rows, log-normal weights", 1000, weights="lognormal"),
    Design("2,000 rows, false ones sampled", 2000, weights="sampled"),
    Design("15 clusters of 40 rows", 600, clusters=15),
    Design("30 clusters of 40 rows", 1200, clusters=30),
    Design("100 clusters of 40 rows", 4000, clusters=100),
    Design("30 clusters of 40, too extreme", 1200, clusters=30, slope=0.6),
    Design("30 clusters of independent rows", 1200, clusters=30, alike=0.0),
    Design("60 clusters of unequal size", 2400, clusters=60, skewed=True),
    Design("60 clusters, false ones sampled", 4800, clusters=60, weights="sampled"),
    Design("40 users × 30 items", 1200, clusters=40, items=30, alike=0.15),
    Design("1,000 rows, confident", 1000, CONFIDENT),
    Design("30 clusters of 40 rows, confident", 1200, CONFIDENT, clusters=30),
    Design("1,000 rows, confident, log-normal weights", 1000, CONFIDENT, weights="lognormal"),
    Design("500 rows, one true or none", 500, ONE_IN_ALL),
    Design("500 rows, one true or none, log-normal weights", 500, ONE_IN_ALL, weights="lognormal"),
    Design("30 clusters of 40 rows, one true or none", 1200, (1.0, 2400.0), clusters=30),
)


@dataclass(frozen=True)
class Truth:
    """Scores in rising order, and running sums of their probabilities and of themselves."""

    score: Floats
    probabilities: Floats
    scores: Floats

    @classmethod
    def of(cls, design: Design) -> Truth:
        """A million scores."""
        score = np.sort(_scores(design, np.random.default_rng(99), 1_000_000))
        return cls(score, np.append(0.0, np.cumsum(design.probability(score))), np.append(0.0, np.cumsum(score)))

    def of_bins(self, lower: Floats, upper: Floats) -> tuple[Floats, Floats, Floats]:
        """Share of true rows, mean score and share of all rows above `lower` up to `upper`."""
        below, upto = (np.searchsorted(self.score, edge, side="right") for edge in (lower, upper))
        size = np.maximum(upto - below, 1)
        shares, means = ((sums[upto] - sums[below]) / size for sums in (self.probabilities, self.scores))
        return shares, means, size / len(self.score)


def _scores(design: Design, rng: np.random.Generator, count: int) -> Floats:
    return rng.beta(*design.shapes, count).clip(1e-9, 1 - 1e-9)


def drawn(design: Design, rng: np.random.Generator) -> pl.DataFrame:
    """Rows with score, label, weight, cluster and item."""
    cluster = np.arange(design.rows) % max(design.clusters, 1)
    if design.skewed:
        sizes = rng.pareto(2.0, design.clusters) + 1
        cluster = rng.choice(design.clusters, design.rows, p=sizes / sizes.sum())
    item = (np.arange(design.rows) // max(design.clusters, 1)) % max(design.items, 1)
    score, deviate, left = _scores(design, rng, design.rows), np.zeros(design.rows), 1.0
    for count, parent in ((design.clusters, cluster), (design.items, item)):
        if count:
            deviate += np.sqrt(design.alike) * rng.normal(size=count)[parent]
            left -= design.alike
    label = deviate + np.sqrt(left) * rng.normal(size=design.rows) < ndtri(design.probability(score))
    weight = np.exp(rng.normal(size=design.rows)) if design.weights == "lognormal" else np.ones(design.rows)
    kept = np.ones(design.rows, dtype=np.bool_)
    if design.weights == "sampled":
        weight, kept = np.where(label, 1.0, HEAVY), label | (rng.uniform(size=design.rows) < KEPT)
    frame = {"score": score, "label": label, "weight": weight, REPLICATE: cluster, "item": item}
    return pl.DataFrame(frame).filter(pl.Series(kept))


def count_tables(design: Design, rows: pl.DataFrame) -> dict[str, pl.DataFrame]:
    """The count tables of calibration, as the queries of sql/ make them, with a cell for every score."""
    score, label, weight = pl.col("score"), pl.col("label"), pl.col("weight")
    error, slope = (label.cast(pl.Float64) - score) ** 2, (1 - 2 * score) ** 2
    sums = {"n_positive": label, "n_negative": ~label, "scores_open": pl.lit(0.0)}
    sums |= {"scores": weight * score, "scores_positive": weight * score * label, "score_squares": weight * score**2}
    if design.weights == "none":
        sums |= {"test_variance": slope * score * (1 - score)}
    else:
        sums |= {"weight_positive": weight * label, "weight_negative": weight * ~label}
        sums |= {"squares_positive": weight**2 * label, "squares_negative": weight**2 * ~label}
        sums |= {"heavy_scores": weight**2 * score, "heavy_scores_positive": weight**2 * score * label}
        sums |= {"heavy_score_squares": weight**2 * score**2, "test_variance": weight**2 * error * slope}
        spread = weight * score * (1 - score) * slope
        sums |= {"test_expected_positive": spread * (1 - score), "test_expected_negative": spread * score}
    terms = rows.select(
        pl.lit("all").alias(GROUPING.name),
        pl.lit(None, dtype=pl.Float64).alias(THRESHOLD),
        *(score.alias(edge) for edge in EDGES),
        pl.col(REPLICATE),
        pl.col("item"),
        *(term.cast(pl.Float64).alias(name) for name, term in sums.items()),
    )
    tables = {"calibration": terms.drop("item")}
    if design.items:
        both = (pl.col(REPLICATE) * design.items + pl.col("item")).alias(REPLICATE)
        tables["calibration_of_second_parent"] = terms.drop(REPLICATE).rename({"item": REPLICATE})
        tables["calibration_of_both_parents"] = terms.with_columns(both).drop("item")
    return tables


def estimated(design: Design, binned: Binned, rows: pl.DataFrame) -> Estimates:
    """Limits, variances and tests of both binnings."""
    label, weight = rows["label"].to_numpy(), rows["weight"].to_numpy()
    heaviest = tuple(float(weight[side].max(initial=0)) for side in (label, ~label))
    weights = None if design.weights == "none" else (heaviest[0] or heaviest[1], heaviest[1] or heaviest[0])
    if design.weights == "lognormal":  # no label gave them
        weights = (max(heaviest), max(heaviest))
    if design.clusters:
        estimates: Estimates = joined([estimates_of_clusters(*group, weights, CONFIDENCE) for group in binned.groups()])
        return estimates
    height = binned.frame.height
    sides = None if weights is None else (np.full(height, weights[0]), np.full(height, weights[1]))
    return estimates_of_rows(binned.sums, binned.starts, sides, CONFIDENCE)


@dataclass(frozen=True)
class Outcome:
    """What one data set says of one binning.

    Of every bin the number, whether its limits of the share and of the gap hold the truth, and whether they are good;
    and one number for each column of the tables beyond these.
    """

    bins: Floats
    numbers: Floats


def outcomes(design: Design, rows: pl.DataFrame, truth: Truth) -> list[Outcome]:
    """What one data set says, by binning."""
    tables = count_tables(design, rows)
    binned = Binned.of(tables, pl.DataFrame({GROUPING.name: ["all"]}), BINS)
    estimates, sums = estimated(design, binned, rows), binned.sums
    errors = calibration_errors(sums, estimates.variances, binned.starts)
    share, mean, size = truth.of_bins(binned.frame[LOWER].to_numpy(), binned.frame[UPPER].to_numpy())
    limits = estimates.bins
    holds = [held(values, true, ROUNDING) for values, true in ((limits.share, share), (limits.gap, share - mean))]
    bins = binned.frame[BIN].to_numpy().astype(np.float64)
    of_bins = np.stack([bins, *holds, _good(design, binned), held(limits.band, share, ROUNDING)])
    gap_of_all = np.asarray((truth.probabilities[-1] - truth.scores[-1]) / len(truth.score))
    together = held(estimates.gap, gap_of_all, ROUNDING)
    results = []
    for number, indices in enumerate(np.split(np.arange(len(share)), binned.starts[1:])):
        weights = size[indices] / size[indices].sum()
        gaps = (share - mean)[indices]
        tested = (estimates.spiegelhalter[1][number] < LEVEL, estimates.hosmer_lemeshow[1][number] < LEVEL)
        names = ("ece", "ece_if_calibrated", "ece_debiased", "reliability", "reliability_debiased")
        measured = [errors[name][number] for name in names]
        band = np.nanmin(of_bins[4, indices])
        truths = [float(weights @ np.abs(gaps)), float(weights @ gaps**2)]
        results.append(Outcome(of_bins[:4, indices], np.array([band, together[number], *tested, *measured, *truths])))
    return results


def _good(design: Design, binned: Binned) -> Floats:
    """Whether limits of bins rest on enough rows of either label and on enough clusters in each."""
    moments = binned.sums.weighted
    events = np.minimum(binned.frame["n_positive"].to_numpy(), binned.frame["n_negative"].to_numpy())
    enough = events >= FEWEST_EVENTS
    if design.clusters:
        effective = np.concatenate([effective_number(clusterings[0].weight) for _, clusterings in binned.groups()])
        enough &= effective >= FEWEST_CLUSTERS
    return np.where(moments.weight > 0, enough, False).astype(np.float64)


def _rate(values: Floats) -> str:
    return "–" if np.isnan(values).all() else f"{np.nanmean(values):.3f}".removeprefix("0")


def _worst(numbers: Floats, held: Floats, datasets: int) -> str:
    """The lowest coverage of a bin that enough data sets have."""
    rates = [
        np.nanmean(held[numbers == number])
        for number in range(1, BINS + 1)
        if (numbers == number).sum() >= OFTEN * datasets
    ]
    return _rate(np.array([min(rates)]))


def measure(design: Design, asked: Asked) -> Table:
    """A row for each binning: its cells in the first table, and then those in the second."""
    truth, rng = Truth.of(design), np.random.default_rng([asked.seed, DESIGNS.index(design) + 1])
    results = [outcomes(design, drawn(design, rng), truth) for _ in range(asked.datasets)]
    for number, binning in enumerate(BINNINGS):
        yield design.name, binning, *_cells([result[number] for result in results])


def _cells(results: Sequence[Outcome]) -> list[str]:
    numbers, share, gap, good = np.concatenate([outcome.bins for outcome in results], axis=1)
    columns = np.stack([outcome.numbers for outcome in results]).T
    rates = [_rate(share), _worst(numbers, share, len(results)), _rate(share[good == 1]), f"{1 - good.mean():.0%}"]
    rates += [_rate(gap), _worst(numbers, gap, len(results)), *(_rate(column) for column in columns[:4])]
    means = columns[4:].mean(axis=1) * (100, 100, 100, 1e4, 1e4, 100, 1e4)
    return rates + [f"{means[index]:.2f}" for index in (5, 0, 1, 2, 6, 3, 4)]


def main() -> None:
    """Print both tables."""
    asked = options(__doc__, 2000)
    head = ("design", "binning", "share", "worst", "good", "marked", "gap", "worst", "band", "all", "z", "HL")
    rows = report("limits and tests", head, measure, DESIGNS, asked)
    errors = ("true ECE", "ECE", "if calibrated", "debiased", "true", "reliability", "debiased")
    print_table("errors", (*head[:2], *errors), [(*row[:2], *row[len(head) :]) for row in rows])


if __name__ == "__main__":
    main()
