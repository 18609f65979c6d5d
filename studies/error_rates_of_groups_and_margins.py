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

import argparse
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from coverage_of_comparisons import matcher
from scipy.special import ndtr

from pipeline.metrics.comparison.paired import EVENT_COUNTS
from pipeline.stages.compare import pairs
from pipeline.stages.compare.contract import CompareParameters
from pipeline.stages.compare.rows import PairOfSystems, margin_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.random import Generator
    from numpy.typing import NDArray

    from pipeline.stages.compare.rows import ComparedMetric

    Floats = NDArray[np.float64]

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


class Rates:
    """How often intervals hold the truth and tests reject, and how many intervals are marked."""

    def __init__(self) -> None:
        self.outcomes: dict[str, list[bool]] = defaultdict(list)

    def add(self, compared: ComparedMetric, difference: float, ratio: float | None) -> None:
        """Count the rows of one metric of one data set."""
        for row in compared.rows:
            test = row["test"]
            self.outcomes[f"{test} marked"].append(row["interval_quality"] not in {"good", None})
            if test != "permutation" and not np.isnan(difference):
                self._held(f"{test} covers", row, "difference", difference)
            if row is compared.rows[0] and ratio is not None:
                self._held("ratio covers", row, "ratio", ratio)
            if difference == 0 and not np.isnan(row["p_value"]):
                self.outcomes[f"{test} rejects"].append(row["p_value"] <= LEVEL)

    def _held(self, name: str, row: dict[str, object], column: str, truth: float) -> None:
        lower, upper = (float(str(row[f"{column}_{end}"])) for end in ("lower", "upper"))
        if not np.isnan(lower + upper):
            is_held = lower <= truth <= upper
            self.outcomes[name].append(is_held)
            if row["interval_quality"] == "good":
                self.outcomes[f"{name}, good"].append(is_held)

    def shown(self, datasets: int) -> str:
        """The rates, with the share of data sets that they are of where it is not all."""
        return "  ".join(
            f"{name} {np.mean(values):.3f}" + (f" (of {len(values) / datasets:.2f})" if len(values) < datasets else "")
            for name, values in sorted(self.outcomes.items())
            if name != "permutation marked"
        )


def means(datasets: int, rng: Generator) -> None:
    """Two groups with equal means."""
    pair = PairOfSystems(parameters(paired=False, tests=["welch_t", "bootstrap_t", "permutation"]), ("a", "b"), 0)
    designs = [(name, name) for name in VALUES if name != "normal, twice the spread"]
    designs += [("normal", "normal, twice the spread"), ("gamma(4)", "exponential")]
    for of_a, of_b in designs:
        for n_a, n_b in GROUPS:
            rates = Rates()
            for _ in range(datasets):
                a, b = VALUES[of_a][0](rng, n_a), VALUES[of_b][0](rng, n_b)
                rates.add(pairs.compare_unpaired_values(pair, "x", a, b), 0.0, VALUES[of_a][1] / VALUES[of_b][1])
            print(f"{of_a} | {of_b:<24}{n_a:>5}{n_b:>5}  {rates.shown(datasets)}", flush=True)


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


def shares(datasets: int, rng: Generator) -> None:
    """Pooled ratios of two groups of documents, equally good and not."""
    pair = PairOfSystems(parameters(paired=False, tests=["jackknife_t", "permutation"]), ("a", "b"), 0)
    for sizes in ("equal", "lognormal", "one each"):
        for reaches in ((0.7, 0.7), (2.2, 2.2), (0.2, 0.8)):
            for n_a, n_b in ((3, 100), (20, 20), (20, 200), (100, 100)):
                rates = [Rates() for _ in POOLED]
                true = truth_of(sizes, reaches[0]), truth_of(sizes, reaches[1])
                for _ in range(datasets):
                    a, b = documents(rng, n_a, sizes, reaches[0]), documents(rng, n_b, sizes, reaches[1])
                    for number, compared in enumerate(pairs.compare_unpaired_counts(pair, POOLED, a, b, (n_a, n_b))):
                        gap = float(true[0][number] - true[1][number])
                        rates[number].add(compared, gap, true[0][number] / true[1][number])
                for name, of_name in zip(POOLED, rates, strict=True):
                    print(f"{sizes} {reaches} {n_a:>4}{n_b:>4} {name:<17}{of_name.shown(datasets)}", flush=True)


def events(datasets: int, rng: Generator) -> None:
    """Pooled ratios of matchers on two sets of events, equally good."""
    pair = PairOfSystems(parameters(paired=False), ("a", "b"), 0)
    for variation in (0.0, 1.0):
        for n_a, n_b in ((10, 30), (30, 30), (30, 100)):
            rates = [Rates() for _ in POOLED]
            for _ in range(datasets):
                sides = [_events(rng, number, variation) for number in (n_a, n_b)]
                both = pairs.compare_unpaired_matchers(pair, POOLED, sides[0], sides[1], (n_a, n_b))
                for number, compared in enumerate(both):
                    rates[number].add(compared, 0.0, 1.0)
            for name, of_name in zip(POOLED, rates, strict=True):
                print(f"CV {variation:g} {n_a:>4}{n_b:>4} {name:<17}{of_name.shown(datasets)}", flush=True)


def _events(rng: Generator, number: int, variation: float) -> Floats:
    true = rng.poisson(np.where(rng.random(number) < 0.4, rng.gamma(1.0, 20.0, number), 0.0))
    false = rng.gamma(variation**-2, variation**2, number) if variation else np.ones(number)
    return matcher(rng, true, false, 0.05).select(EVENT_COUNTS).to_numpy().astype(float)


def ratios(datasets: int, rng: Generator) -> None:
    """Ratios of systems on the same units."""
    pair = PairOfSystems(parameters(tests=["paired_t", "jackknife_t"]), ("a", "b"), 0)
    for name in ("beta(1, 1.5)", "exponential", "lognormal(1)"):
        for units in (15, 30, 100):
            rates = Rates()
            for _ in range(datasets):
                shared = VALUES[name][0](rng, units)
                noise = rng.normal(1.0, 0.3, (2, units))
                rates.add(pairs.compare_values(pair, "x", 1.2 * shared * noise[0], shared * noise[1]), np.nan, 1.2)
            print(f"means, {name:<20}{units:>5}  {rates.shown(datasets)}", flush=True)
    for sizes in ("equal", "lognormal"):
        for units in (20, 100):
            of_each = [Rates() for _ in POOLED]
            true = truth_of(sizes, 0.2) / truth_of(sizes, 0.8)
            for _ in range(datasets):
                a, b = _on_same(rng, units, sizes, (0.2, 0.8))
                for number, compared in enumerate(pairs.compare_counts(pair, POOLED, a, b)):
                    of_each[number].add(compared, np.nan, float(true[number]))
            for name, of_name in zip(POOLED, of_each, strict=True):
                print(f"{sizes} sizes {units:>4} {name:<17}{of_name.shown(datasets)}", flush=True)


def _on_same(rng: Generator, units: int, sizes: str, reaches: Iterable[float]) -> list[Floats]:
    """Counts of two systems on the same documents, which find the same ones hard."""
    size = 1.0 if sizes == "equal" else rng.lognormal(-0.5, 1.0, units)
    mentions, hard = rng.poisson(8.0 * size, units), rng.standard_normal(units)
    clutter, counts = rng.gamma(4.0, 0.25, units), []
    for reach in reaches:
        hits = rng.binomial(mentions, ndtr((reach - np.sqrt(0.4) * hard) / np.sqrt(0.6)))
        counts.append(np.column_stack([hits, rng.poisson(2.0 * size * clutter), mentions - hits]).astype(float))
    return counts


def margins(datasets: int, rng: Generator) -> None:
    """Claims where the true difference is a worse by the margin, and where it is 0."""
    margin = 0.2
    same = PairOfSystems(parameters(tests=["paired_t", "bootstrap_t"], margin=margin), ("a", "b"), 0)
    apart = PairOfSystems(parameters(tests=["welch_t", "bootstrap_t"], paired=False, margin=margin), ("a", "b"), 0)
    for name in ("normal", "beta(1, 1.5)", "exponential", "lognormal(1)"):
        draw = VALUES[name][0]
        for units in (15, 30, 100):
            for worse, direction in ((margin, 1.0), (margin, -1.0), (0.0, 1.0)):
                held: dict[str, list[bool]] = defaultdict(list)
                for _ in range(datasets):
                    a, b = direction * draw(rng, units) - worse, direction * draw(rng, units)
                    gap = direction * (draw(rng, units) - VALUES[name][1]) - worse
                    for kind, compared in (
                        ("different units", pairs.compare_unpaired_values(apart, "x", a, b)),
                        ("same units", pairs.compare_values(same, "x", gap, 0 * gap)),
                    ):
                        for row in margin_rows(compared_params(kind, same, apart), compared):
                            if row["claim"] != "b_not_worse":
                                held[f"{kind} {row['test']} {row['claim']}"].append(row["p_value"] <= LEVEL)
                what = f"a worse by {worse:g}, tail {'right' if direction > 0 else 'left'}"
                shown = "  ".join(f"{key} {np.mean(values):.3f}" for key, values in sorted(held.items()))
                print(f"{name:<14}{units:>5} {what:<28}{shown}", flush=True)


def compared_params(kind: str, same: PairOfSystems, apart: PairOfSystems) -> CompareParameters:
    """The parameters of a kind of comparison."""
    return same.params if kind == "same units" else apart.params


PARTS = {"means": means, "shares": shares, "events": events, "ratios": ratios, "margins": margins}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=list(PARTS))
    asked = parser.parse_args()
    print(f"{asked.datasets} data sets; Monte Carlo error of 5 %: {np.sqrt(0.05 * 0.95 / asked.datasets):.3f}")
    for number, (name, measure) in enumerate(PARTS.items()):
        if asked.only in {None, name}:
            print(f"\n{name}", flush=True)
            measure(asked.datasets, np.random.default_rng([asked.seed, number]))


if __name__ == "__main__":
    main()
