"""Measured: whether samples of the size that `thresher plan` names have intervals of the wanted width.

    python studies/sample_sizes.py [--pilots 1000] [--seed 1] [--only NAME]…

Pilots are drawn from a law that is known. Each gives a plan: so many times its units for an interval of half the width
of a typical pilot. A sample of the planned size is drawn, and its interval is measured.

`times` is the median of what is needed over the pilot; `width` the median width of the samples over the wanted one,
which should be 1 for the plan that believes its pilot; `reached` the share of samples of the cautious plan that are
narrow enough, and `typical` the share of cautious plans with which a typical sample is, both to be about .8.

`sample_sizes_of_tests.py` measures the power of tests.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from before_after_counts import Setting, simulate

from pipeline.metrics.before_after.estimates import Sides
from pipeline.metrics.before_after.intervals import intervals
from pipeline.metrics.curves.ordered_areas import OrderedAreas, Rows, Totals
from pipeline.metrics.planning.pilot import Pilot, cautious
from pipeline.metrics.uncertainty.clusters import Spread, area_interval, effective_number
from pipeline.metrics.uncertainty.jackknife import tail
from pipeline.metrics.uncertainty.proportions import (
    Confusion,
    intervals_of_clusters,
    intervals_of_rows,
    mean_limits,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"
Counts: TypeAlias = "NDArray[np.int64]"
Draw: TypeAlias = "Callable[[int, np.random.Generator], Pilot | None]"

LEVEL = 0.95
TYPICAL = 199  # samples whose median width is the typical one
CLUSTER_SIZE, SHIFT, ALIKE = 20, 1.5, 0.25


@dataclass(frozen=True)
class Shares:
    """Clusters whose shares have a beta distribution; `size_spread` is the σ of their log-normal sizes.

    Attributes:
        share: Mean share of hits.
        rows: Mean rows of a cluster; 0: rows are independent.
        correlation: Of two rows of a cluster.
        size_spread: 0: clusters are of one size.
        name: `precision`, or `f1`, of which the share is J.
        kept: Share of the rows of a cluster that the ratio is over, at random.
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

    def _of_clusters(self, sizes: Counts, hits: Counts, misses: Counts) -> Pilot | None:
        none = np.zeros((len(hits), 1))
        counts = Confusion(hits[:, None], misses[:, None], none, none)
        lower, upper = intervals_of_clusters(counts, LEVEL, names=[self.name])[self.name]
        rows, effective = float((hits + misses).sum()), float(effective_number(sizes))
        share = float(hits.sum() / rows)
        value, scale = (share, "share") if self.name == "precision" else (2 * share / (1 + share), "jaccard")
        per_cluster = rows / effective + (self.kept < 1)
        return Pilot(
            value,
            float(lower[0]),
            float(upper[0]),
            LEVEL,
            scale,  # type: ignore[arg-type]  # one of two
            len(hits),
            effective,
            rows=rows,
            rows_per_cluster=per_cluster,
        )


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


class _FixedRates(Setting):
    """Events whose false positive rates do not depend on their number."""

    @property
    def fpr(self) -> Floats:
        return np.geomspace(0.05, 5e-4, self.thresholds)


@dataclass(frozen=True)
class Events:
    """Matches before and after events, of which `threshold` numbers the threshold."""

    name: str
    heterogeneity: float
    threshold: int = 6

    def __call__(self, units: int, rng: np.random.Generator) -> Pilot | None:
        """A pilot of so many events."""
        batch = simulate(_FixedRates(units, self.heterogeneity), 1, rng)
        far, near, false_after, true_after, n_far, n_near, n_after = (values[0] for values in vars(batch).values())
        sides = Sides(far + near, false_after + true_after, n_far + n_near, n_after)
        interval = intervals((sides,), reference=0, confidence=LEVEL)[self.name]
        lower, upper = (float(limit[self.threshold]) for limit in (interval.lower, interval.upper))
        matches = (far + near + false_after + true_after)[:, 0].astype(np.float64)
        value = self._value(
            *(side.sum(axis=0) for side in (far + near, false_after + true_after, n_far + n_near, n_after))
        )
        if math.isnan(lower) or not upper > lower:
            return None
        scale = "lack" if self.name == "precision" else "plain"
        effective = float(effective_number(matches))
        rows = float((far + near if self.name == "precision" else false_after + true_after)[:, self.threshold].sum())
        return Pilot(
            value,
            lower,
            upper,
            LEVEL,
            scale,  # type: ignore[arg-type]  # one of two
            units,
            effective,
            rows=rows,
            bounds=(0.0, 1.0),
        )

    def _value(self, m_before: Floats, m_after: Floats, n_before: float, n_after: float) -> float:
        rates = m_before / n_before
        raw = m_after - rates * n_after
        positives = raw[0] / (1 - rates[0])
        tp, kept = (raw + rates * positives)[self.threshold], m_after[self.threshold]
        values = {
            "precision": tp / kept,
            "recall": min(tp / positives, 1.0),
            "f1": 2 * tp / (kept + max(tp, positives)),
        }
        return float(values[self.name])


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
        order = np.argsort(score)
        hit = label[order].astype(np.float64)
        positives, negatives = np.array([hit.sum()]), np.array([rows - hit.sum()])
        replicate = order // CLUSTER_SIZE if self.clustered else None
        areas = OrderedAreas(Totals(positives, negatives, positives, negatives), units if self.clustered else 0)
        areas.add(Rows(np.zeros(rows, dtype=np.int64), score[order], hit, 1 - hit, replicate=replicate))
        estimates = areas.finish(random_sizes=True)
        area, error, degrees, skewed = (
            getattr(estimates, key)[self.name] for key in ("area", "se", "degrees", "skewed")
        )
        lower, upper = area_interval(area, Spread(error**2, degrees, skewed), LEVEL, clustered=self.clustered)
        effective = float(units) if self.clustered else math.inf
        limits = float(lower[0]), float(upper[0])
        return Pilot(float(area[0]), *limits, LEVEL, "logit", units, effective, rows=float(positives[0]))


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


def measure_widths(units: int, draw: Draw, pilots: int, rng: np.random.Generator) -> tuple[float, ...]:
    """Median factor, median width over the wanted one, and how often the cautious plan reaches it."""

    def typical(number: int) -> float:
        drawn = [draw(number, rng) for _ in range(TYPICAL)]
        return float(np.median([pilot.width for pilot in drawn if pilot is not None]))

    wanted = typical(units) / 2
    factors, widths, safe_factors, safe_widths = [], [], [], []
    for _ in range(pilots):
        pilot = draw(units, rng)
        if pilot is None:
            continue
        safe_side, inflation = cautious(pilot)
        factor, safe = pilot.factor_for(wanted), safe_side.factor_for(wanted, inflation=inflation)
        if factor is None or safe is None:
            continue
        samples = [draw(math.ceil(units * times), rng) for times in (factor, safe)]
        factors.append(factor)
        safe_factors.append(safe)
        widths += [samples[0].width / wanted] if samples[0] is not None else []
        safe_widths += [samples[1].width / wanted] if samples[1] is not None else []
    enough = _enough(units, typical, wanted)
    reached = float((np.array(safe_widths) <= 1).mean())
    return (
        float(np.median(factors)),
        float(np.median(widths)),
        reached,
        float((np.array(safe_factors) >= enough).mean()),
    )


def _enough(units: int, typical: Callable[[int], float], wanted: float) -> float:
    """The factor with which a typical sample has the wanted width, from widths at several, which a line joins."""
    factors = np.array([2.0, 3.0, 4.0, 5.0, 6.0, 8.0])
    logs = np.log([typical(math.ceil(units * factor)) / wanted for factor in factors])
    slope, intercept = np.polyfit(np.log(factors), logs, 1)
    return float(np.exp(-intercept / slope))


def main() -> None:
    """Parse the arguments and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pilots", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", action="append", default=[], help="designs whose name has this in it")
    options = parser.parse_args()
    print(f"{'interval of half the width':<48}{'times':>7}{'width':>8}{'reached':>9}{'typical':>9}")
    for name, (units, draw) in DESIGNS.items():
        if not options.only or any(word in name for word in options.only):
            numbers = measure_widths(units, draw, options.pilots, np.random.default_rng(options.seed))
            print(f"{name:<48}{numbers[0]:7.2f}{numbers[1]:8.3f}{numbers[2]:9.3f}{numbers[3]:9.3f}", flush=True)


if __name__ == "__main__":
    main()
