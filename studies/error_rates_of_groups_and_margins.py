"""Coverage and error rates of what compare says of different units, of ratios, and of margins.

    python studies/error_rates_of_groups_and_margins.py [--datasets 2000] [--seed 1] [--only means]

Five parts, each at the level of 5 %, with the share of intervals that `interval_quality` marks as other than good:

- `means`: two groups of different units with equal means: how often the tests reject, and how often the intervals of
  the difference and of the ratio hold the truth.
- `shares`: the same of pooled precision, recall and F1 of documents, of equal and very unequal size.
- `events`: the same of before_after units of two sets of events.
- `ratios`: intervals of ratios of systems on the same units.
- `margins`: how often a claim is called shown where the true difference is the margin itself, and where there is none.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
from coverage_of_comparisons import events as drawn_events
from coverage_of_comparisons import matcher
from harness import Floats, Table, Tally, print_parts
from scipy.special import ndtr

from pipeline.metrics.comparison.paired import EVENT_COUNTS
from pipeline.stages.compare import pairs
from pipeline.stages.compare.contract import CompareParameters
from pipeline.stages.compare.rows import PairOfSystems, margin_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.random import Generator

    from pipeline.stages.compare.rows import ComparedMetric

    Reaches = tuple[float, float]
    Groups = tuple[int, int]

LEVEL = 0.05
RESAMPLES = 399
POOLED = ("pooled_precision", "pooled_recall", "pooled_f1")
VALUES: dict[str, tuple[Callable[[Generator, int], Floats], float]] = {
    "normal": (lambda rng, n: rng.normal(2.0, 0.5, n), 2.0),
    "normal, twice the spread": (lambda rng, n: rng.normal(2.0, 1.0, n), 2.0),
    "beta(1, 1.5)": (lambda rng, n: rng.beta(1, 1.5, n), 0.4),
    "0 or 1, share 0.8": (lambda rng, n: (rng.random(n) < 0.8).astype(float), 0.8),
    "gamma(4)": (lambda rng, n: rng.gamma(4.0, 0.25, n), 1.0),
    "exponential": (lambda rng, n: rng.exponential(size=n), 1.0),
    "lognormal(1)": (lambda rng, n: rng.lognormal(-0.5, 1.0, n), 1.0),
}
GROUPS = ((3, 100), (15, 15), (30, 30), (20, 200), (100, 100))


def parameters(**keys: object) -> CompareParameters:
    """Parameters of the stage."""
    return CompareParameters.model_validate({"name": "compare", "units": "-", "resamples": RESAMPLES} | keys)


class Rates(Tally):
    """How often intervals hold the truth and tests reject, and how many intervals are marked."""

    def take(self, compared: ComparedMetric, difference: float, ratio: float | None) -> None:
        """Count the rows of one metric of one data set."""
        for row in compared.rows:
            test = row["test"]
            if test != "permutation":
                self.add({f"{test} marked": row["interval_quality"] not in {"good", None}})
                if not np.isnan(difference):
                    self._held(f"{test} covers", row, "difference", difference)
            if row is compared.rows[0] and ratio is not None:
                self._held("ratio covers", row, "ratio", ratio)
            if difference == 0 and not np.isnan(row["p_value"]):
                self.add({f"{test} rejects": row["p_value"] <= LEVEL})

    def _held(self, name: str, row: dict[str, object], column: str, truth: float) -> None:
        lower, upper = (float(str(row[f"{column}_{end}"])) for end in ("lower", "upper"))
        if not np.isnan(lower + upper):
            is_held = lower <= truth <= upper
            self.add({name: is_held})
            if row["interval_quality"] == "good":
                self.add({f"{name}, good": is_held})

    def shown(self, datasets: int) -> str:
        """The rates, with the share of data sets that they are of where it is not all."""
        rates = []
        for name in sorted(self):
            number = len(self[name])
            share = f" (of {number / datasets:.2f})" if number < datasets else ""
            rates.append(f"{name} {self.mean(name):.3f}{share}")
        return "  ".join(rates)


def of_pooled(datasets: int, compare: Callable[[], Iterable[ComparedMetric]], truths: Floats) -> Table:
    """A row for each pooled ratio; of the truths (difference, ratio) of each."""
    rates = [Rates() for _ in POOLED]
    for _ in range(datasets):
        for of_name, compared, (gap, ratio) in zip(rates, compare(), truths, strict=True):
            of_name.take(compared, gap, ratio)
    for name, of_name in zip(POOLED, rates, strict=True):
        yield name, of_name.shown(datasets)


def means(datasets: int, rng: Generator) -> Table:
    """Two groups with equal means."""
    pair = PairOfSystems(parameters(paired=False, tests=["welch_t", "bootstrap_t", "permutation"]), ("a", "b"), 0)
    designs = [(name, name) for name in VALUES if name != "normal, twice the spread"]
    designs += [("normal", "normal, twice the spread"), ("gamma(4)", "exponential")]
    for (of_a, of_b), (n_a, n_b) in product(designs, GROUPS):
        rates = Rates()
        for _ in range(datasets):
            a, b = VALUES[of_a][0](rng, n_a), VALUES[of_b][0](rng, n_b)
            rates.take(pairs.compare_unpaired_values(pair, "x", a, b), 0.0, VALUES[of_a][1] / VALUES[of_b][1])
        yield f"{of_a}, {of_b}", f"{n_a}, {n_b}", rates.shown(datasets)


def documents(rng: Generator, units: int, sizes: str, reach: float) -> Floats:
    """Counts (tp, fp, fn) of documents, each with an effect of its own."""
    size = np.full(units, 1 / 8 if sizes == "one each" else 1.0)
    if sizes == "lognormal":
        size = rng.lognormal(-0.5, 1.0, units)
    mentions = np.ones(units, dtype=int) if sizes == "one each" else rng.poisson(8.0 * size, units)
    hard, clutter = rng.standard_normal(units), rng.gamma(4.0, 0.25, units)
    hits = rng.binomial(mentions, ndtr((reach - np.sqrt(0.4) * hard) / np.sqrt(0.6)))
    false = rng.poisson(2.0 * size * clutter)
    return np.column_stack([hits, false, mentions - hits]).astype(float)


def truth_of(sizes: str, reach: float) -> Floats:
    """Precision, recall and F1 of an infinite number of documents."""
    mentions = 1.0 if sizes == "one each" else 8.0
    hits, false = mentions * float(ndtr(reach)), 0.25 if sizes == "one each" else 2.0
    return np.array([hits / (hits + false), hits / mentions, 2 * hits / (hits + false + mentions)])


def shares(datasets: int, rng: Generator) -> Table:
    """Pooled ratios of two groups of documents, equally good and not."""
    pair = PairOfSystems(parameters(paired=False, tests=["jackknife_t", "permutation"]), ("a", "b"), 0)
    qualities, numbers = ((0.7, 0.7), (2.2, 2.2), (0.2, 0.8)), ((3, 100), (20, 20), (20, 200), (100, 100))
    for sizes, reaches, groups in product(("equal", "lognormal", "one each"), qualities, numbers):
        a, b = (truth_of(sizes, reach) for reach in reaches)

        def compare(
            sizes: str = sizes, reaches: Reaches = reaches, groups: Groups = groups
        ) -> Iterable[ComparedMetric]:
            a, b = (documents(rng, n, sizes, reach) for n, reach in zip(groups, reaches, strict=True))
            return pairs.compare_unpaired_counts(pair, POOLED, a, b, groups)

        for row in of_pooled(datasets, compare, np.column_stack([a - b, a / b])):
            yield f"{sizes} {reaches}", f"{groups[0]}, {groups[1]}", *row


def events(datasets: int, rng: Generator) -> Table:
    """Pooled ratios of matchers on two sets of events, equally good."""
    pair = PairOfSystems(parameters(paired=False), ("a", "b"), 0)
    for variation, groups in product((0.0, 1.0), ((10, 30), (30, 30), (30, 100))):

        def compare(variation: float = variation, groups: Groups = groups) -> Iterable[ComparedMetric]:
            drawn = [matcher(rng, *drawn_events(rng, number, 20.0, variation), 0.05) for number in groups]
            a, b = (frame.select(EVENT_COUNTS).to_numpy().astype(float) for frame in drawn)
            return pairs.compare_unpaired_matchers(pair, POOLED, a, b, groups)

        for row in of_pooled(datasets, compare, np.array([[0.0, 1.0]] * len(POOLED))):
            yield f"CV {variation:g}", f"{groups[0]}, {groups[1]}", *row


def ratios(datasets: int, rng: Generator) -> Table:
    """Ratios of systems on the same units."""
    pair = PairOfSystems(parameters(tests=["paired_t", "jackknife_t"]), ("a", "b"), 0)
    for name, units in product(("beta(1, 1.5)", "exponential", "lognormal(1)"), (15, 30, 100)):
        rates = Rates()
        for _ in range(datasets):
            shared = VALUES[name][0](rng, units)
            noise = rng.normal(1.0, 0.3, (2, units))
            rates.take(pairs.compare_values(pair, "x", 1.2 * shared * noise[0], shared * noise[1]), np.nan, 1.2)
        yield f"means, {name}", str(units), "", rates.shown(datasets)
    for sizes, units in product(("equal", "lognormal"), (20, 100)):

        def compare(sizes: str = sizes, units: int = units) -> Iterable[ComparedMetric]:
            a, b = _on_same(rng, units, sizes, (0.2, 0.8))
            return pairs.compare_counts(pair, POOLED, a, b)

        true = truth_of(sizes, 0.2) / truth_of(sizes, 0.8)
        for row in of_pooled(datasets, compare, np.column_stack([np.full(3, np.nan), true])):
            yield f"{sizes} sizes", str(units), *row


def _on_same(rng: Generator, units: int, sizes: str, reaches: Iterable[float]) -> list[Floats]:
    """Counts of two systems on the same documents, which find the same ones hard."""
    size = 1.0 if sizes == "equal" else rng.lognormal(-0.5, 1.0, units)
    mentions, hard = rng.poisson(8.0 * size, units), rng.standard_normal(units)
    clutter, counts = rng.gamma(4.0, 0.25, units), []
    for reach in reaches:
        hits = rng.binomial(mentions, ndtr((reach - np.sqrt(0.4) * hard) / np.sqrt(0.6)))
        counts.append(np.column_stack([hits, rng.poisson(2.0 * size * clutter), mentions - hits]).astype(float))
    return counts


def margins(datasets: int, rng: Generator) -> Table:
    """Claims where the true difference is a worse by the margin, and where it is 0."""
    margin = 0.2
    same = PairOfSystems(parameters(tests=["paired_t", "bootstrap_t"], margin=margin), ("a", "b"), 0)
    apart = PairOfSystems(parameters(tests=["welch_t", "bootstrap_t"], paired=False, margin=margin), ("a", "b"), 0)
    designs = product(("normal", "beta(1, 1.5)", "exponential", "lognormal(1)"), (15, 30, 100))
    for (name, units), (worse, direction) in product(designs, ((margin, 1.0), (margin, -1.0), (0.0, 1.0))):
        (draw, mean), tally = VALUES[name], Tally()
        for _ in range(datasets):
            a, b = direction * draw(rng, units) - worse, direction * draw(rng, units)
            gap = direction * (draw(rng, units) - mean) - worse
            for kind, params, compared in (
                ("different units", apart.params, pairs.compare_unpaired_values(apart, "x", a, b)),
                ("same units", same.params, pairs.compare_values(same, "x", gap, 0 * gap)),
            ):
                for row in margin_rows(params, compared):
                    if row["claim"] != "b_not_worse":
                        tally.add({f"{kind} {row['test']} {row['claim']}": row["p_value"] <= LEVEL})
        what = f"a worse by {worse:g}, tail {'right' if direction > 0 else 'left'}"
        yield name, str(units), what, "  ".join(f"{key} {tally.mean(key):.3f}" for key in sorted(tally))


HEAD = ("data", "units", "", "rates")
PARTS = {
    "means": (means, ("data", "units", "rates")),
    "shares": (shares, HEAD),
    "events": (events, HEAD),
    "ratios": (ratios, HEAD),
    "margins": (margins, HEAD),
}

if __name__ == "__main__":
    print_parts(__doc__, 2000, PARTS)
