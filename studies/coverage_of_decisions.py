"""Measured coverage of cost per row, net benefit, and precision, F1 and cost at another prevalence, of known truth.

    python studies/coverage_of_decisions.py [--datasets 2000] [--seed 1]

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

import argparse
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from scipy.special import expit, ndtr, ndtri

from pipeline.metrics.curves.decisions import Cost, Payoffs, Rate, Rates, correlation_of_rates, of_smaller
from pipeline.metrics.uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Limits: TypeAlias = "tuple[Floats, Floats]"
Sample: TypeAlias = "tuple[Floats, NDArray[np.bool_], Floats, NDArray[np.int64]]"  # scores, labels, weights, clusters

CONFIDENCE, SHIFT = 0.95, 1.5
ALARMS = np.array([0.005, 0.02, 0.05, 0.1, 0.3, 0.6])
COSTS = {"cost 1:20": Cost(fp=1, fn=20), "cost 5:1": Cost(fp=5, fn=1)}
PREVALENCES = (0.01, 0.1, 0.5)
PROBABILITIES = np.array([0.02, 0.05, 0.1, 0.2, 0.4, 0.6])
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)


@dataclass(frozen=True)
class Design:
    """What is simulated.

    Attributes:
        rows: Rows, of clusters on average.
        share: Share of positives.
        clusters: How many; 0: rows are independent.
        unequal: Whether their sizes are.
        effect: Standard deviation of the effect of a cluster on its scores.
        weighted: Whether rows have weights.
    """

    rows: int
    share: float
    clusters: int = 0
    unequal: bool = False
    effect: float = 0.5
    weighted: bool = False

    @property
    def name(self) -> str:
        """What it is called."""
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
        nodes, weights = (_NODES, _WEIGHTS / _WEIGHTS.sum()) if self.clusters else (np.zeros(1), np.ones(1))
        shares, effect = self.share_of(nodes)[:, None] if self.clusters else np.full((1, 1), self.share), self.effect
        moved = effect * nodes[:, None] if self.clusters else np.zeros((1, 1))
        above = [ndtr(shift + moved - thresholds) for shift in (SHIFT, 0.0)]
        tp, fp = (weights @ (share * retrieved) for share, retrieved in zip((shares, 1 - shares), above, strict=True))
        positives = float(weights @ shares[:, 0])
        return Confusion(tp, fp, positives - tp, 1 - positives - fp)

    def drawn(self, rng: np.random.Generator) -> Sample:
        """Scores, labels, weights and clusters of the rows of a data set."""
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
        return moved + rng.standard_normal(len(label)) + SHIFT * label, label, weight, cluster


DESIGNS = (
    Design(200, 0.3),
    Design(500, 0.05),
    Design(500, 0.3),
    Design(2000, 0.05),
    Design(2000, 0.3),
    Design(500, 0.3, weighted=True),
    Design(2000, 0.1, weighted=True),
    Design(600, 0.3, clusters=30),
    Design(1000, 0.1, clusters=100),
    Design(2000, 0.3, clusters=100),
    Design(2000, 0.1, clusters=200),
    Design(2000, 0.3, clusters=100, unequal=True),
    Design(1000, 0.3, clusters=50, weighted=True),
)


def confusion(design: Design, sample: Sample, thresholds: Floats, power: int = 1) -> Confusion:
    """Weights to a power by cluster and threshold."""
    score, label, weight, cluster = sample
    sides = []
    for mask in (label, ~label):
        cell = np.searchsorted(thresholds, score[mask], side="right")
        table = np.zeros((max(design.clusters, 1), len(thresholds) + 1))
        np.add.at(table, (cluster[mask], cell), weight[mask] ** power)
        above = table[:, ::-1].cumsum(axis=1)[:, ::-1]
        sides += [above[:, 1:], above[:, :1] - above[:, 1:]]
    return Confusion(sides[0], sides[2], sides[1], sides[3])


@dataclass(frozen=True)
class Counted:
    """A data set at thresholds, and its limits as the stage has them."""

    counts: Confusion
    weights: Weights | None
    heaviest: tuple[float, float] | None
    clustered: bool

    @classmethod
    def of(cls, design: Design, sample: Sample, thresholds: Floats) -> Counted:
        """Count a data set."""
        counts = confusion(design, sample, thresholds)
        if not design.weighted:
            return cls(counts, None, None, bool(design.clusters))
        squares = confusion(design, sample, thresholds, 2)
        heaviest = float(sample[2].max(initial=0.0))  # no label gave the weights
        either = (heaviest, heaviest)
        return cls(counts, Weights(_rows(squares), *either), either, bool(design.clusters))

    def of_payoffs(self, payoffs: Payoffs) -> Limits:
        """Limits of a mean."""
        if self.clustered:
            return payoffs.limits_of_clusters(self.counts, CONFIDENCE, heaviest=self.heaviest)
        return payoffs.limits_of_rows(_rows(self.counts), self.weights, CONFIDENCE)

    def rates(self) -> Rates:
        """Recall and false positive rate with limits."""
        names, totals = ("recall", "fpr"), _rows(self.counts)
        if self.clustered:
            limits = intervals_of_clusters(self.counts, CONFIDENCE, heaviest=self.heaviest, names=names)
            correlation = correlation_of_rates([self.counts])
        else:
            limits = intervals_of_rows(totals, self.weights, CONFIDENCE, names=names)
            correlation = np.zeros_like(totals.tp)
        with np.errstate(invalid="ignore"):
            recall, fpr = totals.tp / (totals.tp + totals.fn), totals.fp / (totals.fp + totals.tn)
        return Rates(Rate(recall, *limits["recall"]), Rate(fpr, *limits["fpr"]), correlation)


def _rows(counts: Confusion) -> Confusion:
    return Confusion(*(side.sum(axis=0) for side in (counts.tp, counts.fp, counts.fn, counts.tn)))


def judged(design: Design, rng: np.random.Generator) -> Iterator[tuple[str, Floats]]:
    """What each interval of a data set does with the truth: 1 it holds it, 0 not, nan it is not defined."""
    sample = design.drawn(rng)
    thresholds = np.sort(-ndtri(ALARMS))
    truth, counted = design.truth(thresholds), Counted.of(design, sample, thresholds)
    for name, cost in COSTS.items():
        payoffs = Payoffs(*cost.by_outcome)
        yield name, _holds(counted.of_payoffs(payoffs), payoffs.mean(truth))
    rates = counted.rates()
    recall, fpr = truth.tp / (truth.tp + truth.fn), truth.fp / (truth.fp + truth.tn)
    exact = Rates(Rate(recall, recall, recall), Rate(fpr, fpr, fpr), np.zeros_like(recall))
    for prevalence in PREVALENCES:
        at = f"at {prevalence:g}"
        yield f"precision {at}", _holds_rate(rates.precision(prevalence), exact.precision(prevalence))
        yield (
            f"NPV {at}",
            _holds_rate(rates.negative_predictive_value(prevalence), exact.negative_predictive_value(prevalence)),
        )
        yield f"F1 {at}", _holds_rate(rates.f1(prevalence), exact.f1(prevalence))
        cost = COSTS["cost 1:20"]
        yield f"cost {at}", _holds_rate(rates.cost_per_row(cost, prevalence), exact.cost_per_row(cost, prevalence))
    yield from _of_net_benefit(design, sample)


def _of_net_benefit(design: Design, sample: Sample) -> Iterator[tuple[str, Floats]]:
    """Thresholds of the scores that are those of the threshold probabilities."""
    odds = PROBABILITIES / (1 - PROBABILITIES) * (1 - design.share) / design.share
    thresholds = np.log(odds) / SHIFT + SHIFT / 2
    truth, counted = design.truth(thresholds), Counted.of(design, sample, thresholds)
    model, beyond = Payoffs.of_net_benefit(PROBABILITIES), Payoffs.beyond_all(PROBABILITIES)
    of_model, of_beyond = counted.of_payoffs(model), counted.of_payoffs(beyond)
    yield "net benefit", _holds(of_model, model.mean(truth))
    yield "difference", _holds(of_smaller(of_model, of_beyond), np.minimum(model.mean(truth), beyond.mean(truth)))


def _holds(limits: Limits, truth: Floats) -> Floats:
    lower, upper = limits
    return np.where(np.isnan(lower), np.nan, (lower <= truth) & (truth <= upper))


def _holds_rate(rate: Rate, truth: Rate) -> Floats:
    return _holds((np.where(np.isnan(rate.value), np.nan, rate.lower), rate.upper), truth.value)


def main() -> None:
    """Parse the arguments and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--designs", type=int, nargs="*", help="numbers of designs; default: all")
    options = parser.parse_args()
    for number, design in enumerate(DESIGNS):
        if options.designs and number not in options.designs:
            continue
        rng = np.random.default_rng((options.seed, number))
        tallies: dict[str, list[Floats]] = {}
        for _ in range(options.datasets):
            for name, held in judged(design, rng):
                tallies.setdefault(name, []).append(held)
        print(f"{number}: {design.name}")
        print(f"  {'':<18}{'least':>8}{'mean':>8}{'most':>8}   by threshold")
        for name, tally in tallies.items():
            shares = np.nanmean(np.array(tally), axis=0)
            cells = " ".join(f"{share:.3f}" for share in shares)
            print(f"  {name:<18}{shares.min():>8.3f}{shares.mean():>8.3f}{shares.max():>8.3f}   {cells}")


if __name__ == "__main__":
    main()
