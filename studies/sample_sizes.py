"""Measured: whether samples of the size that `thresher plan` names have the wanted width, or tests the wanted power.

    python studies/sample_sizes.py [--datasets 1000] [--seed 1] [--only width|power|NAME]…

Pilots are drawn from a law that is known. Each gives a plan: so many times its units for an interval of half the width
of a typical pilot. A sample of the planned size is drawn, and its interval is measured.

`times` is the median of what is needed over the pilot; `width` the median width of the samples over the wanted one,
which should be 1 for the plan that believes its pilot; `reached` the share of samples of the cautious plan that are
narrow enough, and `typical` the share of cautious plans with which a typical sample is, both to be about .8.

Then each gives a plan for a test with a power of 0.8. A sample of the planned size is drawn, and tested: by Student's t
of the differences within units, or, of two runs, as gates test them. `power` is the share of samples of the planned
size in which the test shows what it should, to be .8 for the plan that believes its pilot; `cautious` the same of the
cautious plan, and `enough` the share of cautious plans whose true power is at least .8, which should be about .8.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
from before_after_counts import Setting, simulate
from harness import Asked, Floats, Integers, Table, options, report
from labelled_rows import area_limits, areas
from scipy import stats

from pipeline.metrics.before_after.intervals import intervals
from pipeline.metrics.comparison.pooled import Estimates, p_values_of_change
from pipeline.metrics.planning import (
    Claim,
    Pilot,
    Question,
    cautious,
    factor_for_difference,
    inflation_limit,
    other_run,
    power_of,
    units_for,
    variance_degrees,
)
from pipeline.metrics.uncertainty.clusters import effective_number
from pipeline.metrics.uncertainty.jackknife import tail
from pipeline.metrics.uncertainty.proportions import (
    Confusion,
    intervals_of_clusters,
    intervals_of_rows,
    mean_limits,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


Draw: TypeAlias = "Callable[[int, np.random.Generator], Pilot | None]"

POWER = 0.8
LEVEL = 0.95
TYPICAL = 199  # samples whose median width is the typical one
CLUSTER_SIZE, SHIFT, ALIKE = 20, 1.5, 0.25


@dataclass(frozen=True)
class Shares:
    """Clusters whose shares have a beta distribution, or rows if a cluster has none.

    `correlation` is of two rows of a cluster, `size_spread` the σ of log-normal sizes; the ratio, precision or F1, of
    which the share is J, is over a share of the rows that are `kept` at random.
    """

    share: float
    rows: int = 0
    correlation: float = 0.0
    size_spread: float = 0.0
    name: str = "precision"
    kept: float = 1.0

    def __call__(self, units: int, rng: np.random.Generator) -> Pilot | None:
        """A pilot of so many units."""
        if not self.rows:
            right = int(rng.binomial(units, self.share))
            return self._of_rows(right, units - right)
        spread = self.size_spread
        sizes = np.ceil(self.rows * np.exp(spread * rng.standard_normal(units) - spread**2 / 2)).astype(np.int64)
        scale = (1 - self.correlation) / self.correlation
        shares = rng.beta(self.share * scale, (1 - self.share) * scale, units)
        counted = rng.binomial(sizes, self.kept)
        hits = rng.binomial(counted, shares)
        return self._of_clusters(sizes, hits, counted - hits)

    def _of_rows(self, hits: int, misses: int) -> Pilot:
        counts = Confusion(*(np.array([float(number)]) for number in (hits, misses, 0, 0)))
        lower, upper = intervals_of_rows(counts, None, LEVEL, names=["precision"])["precision"]
        rows = hits + misses
        return Pilot(hits / rows, float(lower[0]), float(upper[0]), LEVEL, "share", rows)

    def _of_clusters(self, sizes: Integers, hits: Integers, misses: Integers) -> Pilot | None:
        none = np.zeros((len(hits), 1))
        counts = Confusion(hits[:, None], misses[:, None], none, none)
        lower, upper = intervals_of_clusters(counts, LEVEL, names=[self.name])[self.name]
        rows, effective = float((hits + misses).sum()), float(effective_number(sizes))
        share = float(hits.sum() / rows)
        scale: Literal["share", "jaccard"] = "share" if self.name == "precision" else "jaccard"
        value = share if scale == "share" else 2 * share / (1 + share)
        per_cluster, limits = rows / effective + (self.kept < 1), (float(lower[0]), float(upper[0]))
        return Pilot(value, *limits, LEVEL, scale, len(hits), effective, rows=rows, rows_per_cluster=per_cluster)


@dataclass(frozen=True)
class Means:
    """A mean of values with a beta distribution."""

    mean: float
    concentration: float

    def __call__(self, units: int, rng: np.random.Generator) -> Pilot | None:
        """A pilot of so many units."""
        values = rng.beta(self.mean * self.concentration, (1 - self.mean) * self.concentration, units)
        numbers = np.array([values.mean()]), np.array([values.var(ddof=1) / units]), np.array([float(units)])
        lower, upper = mean_limits(*numbers, tail(LEVEL, np.array([units - 1.0])))
        return Pilot(float(values.mean()), float(lower[0]), float(upper[0]), LEVEL, "mean", units, units, units)


@dataclass(frozen=True)
class Events:
    """Matches before and after events, whose false positive rates do not depend on their number, at a threshold."""

    name: str
    heterogeneity: float
    threshold: int = 6

    def __call__(self, units: int, rng: np.random.Generator) -> Pilot | None:
        """A pilot of so many events."""
        (counts,) = simulate(Setting(units, self.heterogeneity, fpr_reference=0.05, lowest=5e-4), 1, rng)
        interval = intervals((counts.sides,), reference=0, confidence=LEVEL)[self.name]
        lower, upper = (float(limit[self.threshold]) for limit in (interval.lower, interval.upper))
        if math.isnan(lower) or not upper > lower:
            return None
        true, positives = counts.corrected()
        m_before, m_after, *_ = counts.totals
        tp, kept = true[self.threshold], m_after[self.threshold]
        f1 = 2 * tp / (kept + max(tp, positives))
        value = {"precision": tp / kept, "recall": min(tp / positives, 1.0), "f1": f1}[self.name]
        scale: Literal["lack", "plain"] = "lack" if self.name == "precision" else "plain"
        effective = float(effective_number((counts.sides.m_before + counts.sides.m_after)[:, 0].astype(np.float64)))
        rows, limits = float((m_before if scale == "lack" else m_after)[self.threshold]), (lower, upper)
        return Pilot(float(value), *limits, LEVEL, scale, units, effective, rows=rows, bounds=(0.0, 1.0))


@dataclass(frozen=True)
class Areas:
    """Areas of normal scores of positives and negatives: rows, or clusters of 20 that shift them."""

    name: str
    clustered: bool
    share_positive: float = 0.1

    def __call__(self, units: int, rng: np.random.Generator) -> Pilot | None:
        """A pilot of so many rows or clusters."""
        rows = units * CLUSTER_SIZE if self.clustered else units
        label = rng.random(rows) < self.share_positive
        effects = np.repeat(rng.standard_normal(units), CLUSTER_SIZE) if self.clustered else np.zeros(rows)
        alike = ALIKE if self.clustered else 0.0
        score = math.sqrt(alike) * effects + math.sqrt(1 - alike) * rng.standard_normal(rows) + SHIFT * label
        if label.sum() < 2:
            return None
        clusters = [np.arange(rows) // CLUSTER_SIZE] if self.clustered else []
        estimates = areas(score, label, *clusters)
        lower, upper = area_limits(estimates, LEVEL, clustered=self.clustered)[self.name]
        effective, limits = float(units) if self.clustered else math.inf, (float(lower[0]), float(upper[0]))
        area = float(estimates.area[self.name][0])
        return Pilot(area, *limits, LEVEL, "logit", units, effective, rows=float(label.sum()))


DESIGNS: dict[str, tuple[int, Draw]] = {
    "share .80 of 200 rows": (200, Shares(0.8)),
    "share .97 of 300 rows": (300, Shares(0.97)),
    "share .80 of 30 clusters of 20": (30, Shares(0.8, 20, 0.1)),
    "share .95 of 30 clusters of 20": (30, Shares(0.95, 20, 0.1)),
    "share .90 of 60 clusters of 10, σ 0.5": (60, Shares(0.9, 10, 0.2, 0.5)),
    "share .80 of 30 clusters of 20, σ 0.7": (30, Shares(0.8, 20, 0.1, 0.7)),
    "share .97 of 200 clusters of 5": (200, Shares(0.97, 5, 0.1)),
    "share .70 of a tenth of 100 clusters of 20": (100, Shares(0.7, 20, 0.2, kept=0.1)),
    "F1 .75 of 40 clusters of 15": (40, Shares(0.6, 15, 0.1, name="f1")),
    "mean .30 of 50 values": (50, Means(0.3, 3.0)),
    "mean .10 of 60 values": (60, Means(0.1, 2.0)),
    "precision after 100 events": (100, Events("precision", 0.0)),
    "precision after 100 events, CV 1": (100, Events("precision", 1.0)),
    "recall after 100 events, CV 1": (100, Events("recall", 1.0)),
    "F1 after 100 events, CV 1": (100, Events("f1", 1.0)),
    "ROC AUC of 500 rows": (500, Areas("roc_auc", clustered=False)),
    "ROC AUC of 50 clusters": (50, Areas("roc_auc", clustered=True)),
    "AP of 50 clusters": (50, Areas("average_precision", clustered=True)),
}


def widths(name: str, asked: Asked) -> Table:
    """Median factor, median width over the wanted one, and how often the cautious plan reaches it."""
    (units, draw), rng = DESIGNS[name], np.random.default_rng(asked.seed)

    def typical(number: int) -> float:
        drawn = [draw(number, rng) for _ in range(TYPICAL)]
        return float(np.median([pilot.width for pilot in drawn if pilot is not None]))

    wanted = typical(units) / 2
    factors: list[tuple[float, float]] = []
    of_plans: tuple[list[float], list[float]] = ([], [])
    for _ in range(asked.datasets):
        pilot = draw(units, rng)
        if pilot is None:
            continue
        safe_side, inflation = cautious(pilot)
        factor, safe = pilot.factor_for(wanted), safe_side.factor_for(wanted, inflation=inflation)
        if factor is None or safe is None:
            continue
        factors.append((factor, safe))
        for of_plan, times in zip(of_plans, (factor, safe), strict=True):
            sample = draw(math.ceil(units * times), rng)
            if sample is not None:
                of_plan.append(sample.width / wanted)
    enough = _enough(units, typical, wanted)
    times, safe_times = np.array(factors).T
    reached, typical_share = float((np.array(of_plans[1]) <= 1).mean()), float((safe_times >= enough).mean())
    yield name, f"{np.median(times):.2f}", float(np.median(of_plans[0])), reached, typical_share


def _enough(units: int, typical: Callable[[int], float], wanted: float) -> float:
    """The factor with which a typical sample has the wanted width, from widths at several, which a line joins."""
    factors = np.array([2.0, 3.0, 4.0, 5.0, 6.0, 8.0])
    logs = np.log([typical(math.ceil(units * factor)) / wanted for factor in factors])
    slope, intercept = np.polyfit(np.log(factors), logs, 1)
    return float(np.exp(-intercept / slope))


@dataclass(frozen=True)
class Pairs:
    """Differences of two systems within units: normal, or `skewed` as exponential values are."""

    claim: Claim
    units: int
    skewed: bool = False

    def values(self, shift: float, shape: tuple[int, ...], rng: np.random.Generator) -> Floats:
        """Differences with this mean and the standard deviation 1."""
        noise = rng.exponential(1.0, shape) - 1 if self.skewed else rng.standard_normal(shape)
        return np.asarray(noise + shift)

    def question(self) -> Question:
        """Half a standard deviation is to be found, or 0.4 of one to be ruled out."""
        return Question(self.claim, 0.3 if self.claim == "different" else 0.0, 0.4, POWER, 1 - LEVEL)

    def shows(self, sample: Floats, question: Question) -> bool:
        """Whether the test shows the claim in a sample."""
        number = len(sample)
        error = sample.std(ddof=1) / math.sqrt(number)
        if self.claim == "different":
            return bool(abs(sample.mean()) > stats.t.ppf(0.5 + LEVEL / 2, number - 1) * error)
        half = stats.t.ppf(LEVEL, number - 1) * error
        below = sample.mean() - half > -question.margin
        return bool(below if self.claim == "not_worse" else below and sample.mean() + half < question.margin)


PAIRS = {
    "30 units, normal, a difference of 0.3": Pairs("different", 30),
    "60 units, skewed, a difference of 0.3": Pairs("different", 60, skewed=True),
    "30 units, normal, not worse by 0.4": Pairs("not_worse", 30),
    "30 units, normal, equivalent within 0.4": Pairs("equivalent", 30),
}


def pairs_of_systems(name: str, asked: Asked) -> Table:
    """Median factor, power of both plans, and how often the cautious one is enough."""
    pairs, rng = PAIRS[name], np.random.default_rng(asked.seed)
    question, shown, factors, enough = pairs.question(), np.zeros(2), [], 0
    for _ in range(asked.datasets):
        pilot = pairs.values(question.difference, (pairs.units,), rng)
        number, skewness = len(pilot), float(stats.skew(pilot))
        degrees = 2 / (2 / (number - 1) + 1.5 * skewness**2 / number)
        deviation = float(pilot.std(ddof=1))
        safe_deviation = deviation * math.sqrt(inflation_limit(degrees))
        plans = [units_for(question, deviation, degrees) or 2, units_for(question, safe_deviation) or 2]
        shown += [pairs.shows(pairs.values(question.difference, (units,), rng), question) for units in plans]
        factors.append(plans[0] / number)
        enough += power_of(question, 1 / math.sqrt(plans[1]), plans[1] - 1.0) >= POWER
    yield name, f"{np.median(factors):.2f}", *(shown / asked.datasets).tolist(), enough / asked.datasets


TWO_RUNS: dict[str, tuple[int, Draw, Draw, float]] = {
    "share .80 of 300 rows, 0.05 apart": (300, Shares(0.8), Shares(0.75), 0.05),
    "share .80 of 40 clusters of 20, 0.08 apart": (40, Shares(0.8, 20, 0.1), Shares(0.72, 20, 0.1), 0.08),
    "mean .30 of 50 values, 0.08 apart": (50, Means(0.3, 3.0), Means(0.38, 3.0), 0.08),
}


def two_runs(name: str, asked: Asked) -> Table:
    """Median factor, and power of both plans."""
    (units, *draws, difference), rng = TWO_RUNS[name], np.random.default_rng(asked.seed)
    question, shown, factors = Question("different", difference, math.nan, POWER, 1 - LEVEL), np.zeros(2), []
    for _ in range(asked.datasets):
        pilot = draws[0](units, rng)
        other = None if pilot is None else other_run(pilot, difference)
        if pilot is None or other is None:
            continue
        safe_side, inflation = cautious(pilot)
        plans = (
            factor_for_difference(pilot, other, question, degrees=variance_degrees(pilot)) or 1.0,
            factor_for_difference(safe_side, other, question, inflation=inflation) or 1.0,
        )
        shown += [_is_told(math.ceil(units * factor), draws, rng) for factor in plans]
        factors.append(plans[0])
    yield name, f"{np.median(factors):.2f}", *(shown / len(factors)).tolist(), math.nan


def _is_told(units: int, draws: Sequence[Draw], rng: np.random.Generator) -> bool:
    """Whether two runs of so many units are told apart, as gates do it."""
    runs = [draw(units, rng) for draw in draws]
    estimates = []
    for run in filter(None, runs):
        value, lower, upper, degrees = (
            np.array([number]) for number in (run.value, run.lower, run.upper, run.degrees())
        )
        estimates.append(Estimates(value, lower, upper, degrees, LEVEL))
    return len(estimates) > 1 and bool(p_values_of_change(estimates[0], estimates[1], 0.0)[0] < 1 - LEVEL)


def main() -> None:
    """Print all tables."""
    asked = options(__doc__, 1000)
    head = ("interval of half the width", "times", "width", "reached", "typical")
    report("width", head, widths, DESIGNS, asked)
    head = ("test with a power of .8", "times", "power", "cautious", "enough")
    report("power within units", head, pairs_of_systems, PAIRS, asked)
    report("power of two runs", head, two_runs, TWO_RUNS, asked)


if __name__ == "__main__":
    main()
