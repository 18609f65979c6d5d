"""Measured coverage of cost per row, net benefit, and precision, F1 and cost at another prevalence, of known truth.

    python studies/coverage_of_decisions.py [--datasets 2000] [--seed 1] [--only TEXT]

Scores are normal with means that lie 1.5 apart; thresholds retrieve the shares of the negatives that are named. Rows
are independent, with weights (log-normal, σ 1) or without, or come in clusters whose effects shift both the share of
positives and the scores; `unequal` clusters have sizes with a standard deviation as large as their mean. Net benefit
and its difference to the better of retrieving all and none are taken where score and threshold probability belong
together; costs are 1 for a false alarm and 20 for a miss, and 5 and 1.

`least` and `most` are the lowest and the highest coverage of nominal .95 over the thresholds of a design, `mean` the
mean. Where the limits of a data set are marked by the sizes of its clusters, it counts as any other. The Monte Carlo
error of a share near .95 is √(.05 / n).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from harness import Asked, Bools, Floats, Integers, Table, Tally, held, options, report
from labelled_rows import confusion, nodes, total
from scipy.special import expit, ndtr, ndtri

from pipeline.metrics.curves.decisions import Cost, Payoffs, Rate, Rates, correlation_of_rates, of_smaller
from pipeline.metrics.uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows

Limits: TypeAlias = "tuple[Floats, Floats]"
Sample: TypeAlias = "tuple[Floats, Bools, Integers, Floats]"  # scores, labels, clusters, weights

CONFIDENCE, SHIFT = 0.95, 1.5
ALARMS = np.array([0.005, 0.02, 0.05, 0.1, 0.3, 0.6])
COSTS = {"cost 1:20": Cost(fp=1, fn=20), "cost 5:1": Cost(fp=5, fn=1)}
PREVALENCES = (0.01, 0.1, 0.5)
PROBABILITIES = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6])


@dataclass(frozen=True)
class Design:
    """Rows of which a share is positive, in so many clusters (0: they are independent), with or without weights.

    `effect` is the standard deviation of the effect of a cluster on its scores.
    """

    rows: int
    share: float
    clusters: int = 0
    unequal: bool = False
    effect: float = 0.5
    weighted: bool = False

    def __str__(self) -> str:
        weights = ", weights" if self.weighted else ""
        if not self.clusters:
            return f"{self.rows} rows, {self.share:.0%} positive{weights}"
        sizes = "unequal" if self.unequal else "equal"
        return f"{self.clusters} {sizes} clusters of {self.rows // self.clusters}, {self.share:.0%} positive{weights}"

    def share_of(self, effects: Floats) -> Floats:
        """Share of positives in clusters with these effects."""
        return np.asarray(expit(np.log(self.share / (1 - self.share)) + effects))

    def truth(self, thresholds: Floats) -> Confusion:
        """Shares of the four outcomes among all rows."""
        values, weights = nodes(60) if self.clusters else (np.zeros(1), np.ones(1))
        shares = self.share_of(values)[:, None] if self.clusters else np.full((1, 1), self.share)
        above = [ndtr(shift + self.effect * values[:, None] - thresholds) for shift in (SHIFT, 0.0)]
        tp, fp = (weights @ (share * retrieved) for share, retrieved in zip((shares, 1 - shares), above, strict=True))
        positives = float(weights @ shares[:, 0])
        return Confusion(tp, fp, positives - tp, 1 - positives - fp)

    def drawn(self, rng: np.random.Generator) -> Sample:
        """Scores, labels, clusters and weights of the rows of a data set."""
        if not self.clusters:
            label = rng.random(self.rows) < self.share
            cluster, moved = np.zeros(self.rows, dtype=np.int64), np.zeros(self.rows)
        else:
            effects, mean = rng.standard_normal(self.clusters), self.rows / self.clusters
            sizes = np.full(self.clusters, round(mean))
            if self.unequal:
                sizes = np.maximum(rng.poisson(rng.gamma(1, mean, self.clusters)), 1)
            cluster = np.repeat(np.arange(self.clusters), sizes)
            label = rng.random(len(cluster)) < self.share_of(effects)[cluster]
            moved = self.effect * effects[cluster]
        weight = rng.lognormal(0, 1, len(label)) if self.weighted else np.ones(len(label))
        return moved + rng.standard_normal(len(label)) + SHIFT * label, label, cluster, weight


DESIGNS = (
    *(Design(*numbers) for numbers in ((200, 0.3), (500, 0.05), (500, 0.3), (2000, 0.05), (2000, 0.3))),
    *(Design(*numbers, weighted=True) for numbers in ((500, 0.3), (2000, 0.1))),
    *(Design(*numbers) for numbers in ((600, 0.3, 30), (1000, 0.1, 100), (2000, 0.3, 100), (2000, 0.1, 200))),
    Design(2000, 0.3, 100, unequal=True),
    Design(1000, 0.3, 50, weighted=True),
)


class Counted:
    """A data set at thresholds, and its limits as the stage has them."""

    def __init__(self, design: Design, sample: Sample, thresholds: Floats) -> None:
        self.counts, self.clustered = confusion(thresholds, *sample), bool(design.clusters)
        self.weights: Weights | None = None
        self.heaviest: tuple[float, float] | None = None
        if design.weighted:  # no label gave the weights
            self.heaviest = (float(sample[3].max(initial=0.0)),) * 2
            self.weights = Weights(total(confusion(thresholds, *sample[:3], sample[3] ** 2)), *self.heaviest)

    def of_payoffs(self, payoffs: Payoffs) -> Limits:
        """Limits of a mean."""
        if self.clustered:
            return payoffs.limits_of_clusters(self.counts, CONFIDENCE, heaviest=self.heaviest)
        return payoffs.limits_of_rows(total(self.counts), self.weights, CONFIDENCE)

    def rates(self) -> Rates:
        """Recall and false positive rate with limits."""
        names, totals = ("recall", "fpr"), total(self.counts)
        if self.clustered:
            limits = intervals_of_clusters(self.counts, CONFIDENCE, heaviest=self.heaviest, names=names)
            correlation = correlation_of_rates([self.counts])
        else:
            limits = intervals_of_rows(totals, self.weights, CONFIDENCE, names=names)
            correlation = np.zeros_like(totals.tp)
        with np.errstate(invalid="ignore"):
            recall, fpr = totals.tp / (totals.tp + totals.fn), totals.fp / (totals.fp + totals.tn)
        return Rates(Rate(recall, *limits["recall"]), Rate(fpr, *limits["fpr"]), correlation)


def judged(design: Design, rng: np.random.Generator) -> dict[str, Floats]:
    """What each interval of a data set does with the truth: 1 it holds it, 0 not, nan it is not defined."""
    sample = design.drawn(rng)
    thresholds = np.sort(-ndtri(ALARMS))
    truth, counted = design.truth(thresholds), Counted(design, sample, thresholds)
    judgements = {}
    for name, cost in COSTS.items():
        payoffs = Payoffs(*cost.by_outcome)
        judgements[name] = held(counted.of_payoffs(payoffs), payoffs.mean(truth))
    recall, fpr = truth.tp / (truth.tp + truth.fn), truth.fp / (truth.fp + truth.tn)
    exact = Rates(Rate(recall, recall, recall), Rate(fpr, fpr, fpr), np.zeros_like(recall))
    estimated, true = (_elsewhere(rates) for rates in (counted.rates(), exact))
    for name, rate in estimated.items():
        judgements[name] = held((np.where(np.isnan(rate.value), np.nan, rate.lower), rate.upper), true[name].value)
    return judgements | _of_net_benefit(design, sample)


def _elsewhere(rates: Rates) -> dict[str, Rate]:
    """What is derived from rates at other prevalences."""
    derived = {}
    for prevalence in PREVALENCES:
        derived[f"precision at {prevalence:g}"] = rates.precision(prevalence)
        derived[f"NPV at {prevalence:g}"] = rates.negative_predictive_value(prevalence)
        derived[f"F1 at {prevalence:g}"] = rates.f1(prevalence)
        derived[f"cost at {prevalence:g}"] = rates.cost_per_row(COSTS["cost 1:20"], prevalence)
    return derived


def _of_net_benefit(design: Design, sample: Sample) -> dict[str, Floats]:
    """Thresholds of the scores that are those of the threshold probabilities."""
    odds = PROBABILITIES / (1 - PROBABILITIES) * (1 - design.share) / design.share
    thresholds = np.log(odds) / SHIFT + SHIFT / 2
    truth, counted = design.truth(thresholds), Counted(design, sample, thresholds)
    model, beyond = Payoffs.of_net_benefit(PROBABILITIES), Payoffs.beyond_all(PROBABILITIES)
    of_model, of_beyond = counted.of_payoffs(model), counted.of_payoffs(beyond)
    difference = held(of_smaller(of_model, of_beyond), np.minimum(model.mean(truth), beyond.mean(truth)))
    return {"net benefit": held(of_model, model.mean(truth)), "difference": difference}


def measure(design: Design, asked: Asked) -> Table:
    """A row for each number."""
    rng, tally = np.random.default_rng((asked.seed, DESIGNS.index(design))), Tally()
    for _ in range(asked.datasets):
        tally.add(judged(design, rng))
    for name, shares in tally.means().items():
        by_threshold = " ".join(f"{share:.3f}" for share in shares)
        yield str(design), name, float(shares.min()), float(shares.mean()), float(shares.max()), by_threshold


def main() -> None:
    """Print the table."""
    asked = options(__doc__, 2000)
    head = ("design", "number", "least", "mean", "most", "by threshold")
    report(f"{asked.datasets} data sets", head, measure, DESIGNS, asked)


if __name__ == "__main__":
    main()
