"""Measured coverage of the before/after intervals, on simulated counts whose truth is known.

    python studies/coverage_of_estimates.py [--datasets 2000] [--events 10,30,100,300,1000] [--confidence 0.95]
        [--seed 1] [--only references | marks] [--resamples 0]

First, for false positive rates at the recall reference of .01, .30 and .50: how often the actual precision, recall and
F1 lie in their intervals, and how often actual recall lies in that of `recall_uncorrected`; events differ (CV 1) or do
not, and the reference is given, or chosen as the default rule chooses it. `--only references` stops there.

Marks (`--only marks` prints these alone): in how many data sets the stage marks its estimates `assumption_failed`, and
how many of the estimates are `good` and cover precision, where the rate near to the event, and after it, is a multiple
of that far before it.

Then, for every number of events: events that are all alike or that differ (CV 1 in false positive rate and in compared
pairs), false matches alone or in bursts; 60 % of the events have no coverage, and the others differ in how much. The
thresholds are put in classes by the number of matches before the event that they let be expected. `worst` is the
threshold with the lowest coverage and `most` the one with the highest. `naive` takes every pair as independent.

Covered is the actual precision, recall and F1 at expected counts (superpopulation); for the uncorrected ones what their
formulas converge to, and for `realised` the precision of the data set at hand. `unbounded` counts as [0, 1];
`given` is the share of data sets with an interval, `width` is within [0, 1].
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
from before_after_counts import Setting, simulate, truth
from scipy.special import expit, logit, ndtri

from pipeline.metrics.before_after.assumption import placebo, placebo_joint, realised_precision_interval
from pipeline.metrics.before_after.estimates import Sides, Sums
from pipeline.metrics.before_after.intervals import INTERVAL_NAMES, Choice, intervals
from pipeline.metrics.uncertainty.replicates import Resampling
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from pipeline.metrics.uncertainty.limits import Interval

CLASSES = ((0.0, 1.0, "<1"), (1.0, 10.0, "1-10"), (10.0, 100.0, "10-100"), (100.0, np.inf, ">100"))
GROUPS = 64
ROWS_AT_ONCE = 20_000
FLIPS = 199
JOINT_DATASETS = 1000  # the joint test takes longest
SHOWN = (*INTERVAL_NAMES, "realised")
MANY = 100.0
REFERENCE_RATES, MIN_PRECISION = (0.01, 0.30, 0.50), 0.05
TRUE_IN_BIN = 2  # true matches per event whose score lies between two thresholds
HEADLINE = ("precision", "recall", "f1", "recall_uncorrected")


@dataclass(frozen=True)
class Counts:
    """One data set: matches of shape (G, T) and pairs of shape (G,)."""

    far: NDArray[np.int64]
    near: NDArray[np.int64]
    false_after: NDArray[np.int64]
    true_after: NDArray[np.int64]
    n_far: NDArray[np.int64]
    n_near: NDArray[np.int64]
    n_after: NDArray[np.int64]

    @property
    def four(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Matches before and after the event, and pairs before and after it."""
        return self.far + self.near, self.false_after + self.true_after, self.n_far + self.n_near, self.n_after

    @property
    def sides(self) -> tuple[Sides]:
        """The first argument of `intervals`."""
        return (Sides(*self.four),)


@dataclass
class Tally:
    """Sums over data sets, every array of shape (T,)."""

    with_limits: defaultdict[str, NDArray[np.float64]] = field(default_factory=lambda: defaultdict(lambda: np.zeros(1)))
    covered: defaultdict[str, NDArray[np.float64]] = field(default_factory=lambda: defaultdict(lambda: np.zeros(1)))
    width: defaultdict[str, NDArray[np.float64]] = field(default_factory=lambda: defaultdict(lambda: np.zeros(1)))

    def add(self, name: str, lower: NDArray[np.float64], upper: NDArray[np.float64], true: NDArray[np.float64]) -> None:
        """Count one interval per threshold; nan: none was given."""
        has_limits = ~np.isnan(lower)
        self.with_limits[name] = self.with_limits[name] + has_limits
        self.covered[name] = self.covered[name] + (has_limits & (lower <= true + 1e-9) & (true - 1e-9 <= upper))
        self.width[name] = self.width[name] + np.where(has_limits, np.minimum(upper, 1.0) - np.maximum(lower, 0.0), 0.0)


def data_sets(setting: Setting, count: int, seed: int, groups: int | None = None) -> Iterator[Counts]:
    """Simulated data sets one by one; with `groups`, events are put in so many replicates at random."""
    rng = np.random.default_rng(seed)
    at_once = max(1, ROWS_AT_ONCE // setting.events)
    for start in range(0, count, at_once):
        batch = simulate(setting, min(at_once, count - start), rng)
        for index in range(len(batch.n_far)):
            arrays = [values[index] for values in vars(batch).values()]
            if groups is not None:
                member = np.arange(groups)[:, None] == rng.integers(0, groups, setting.events)
                arrays = [np.rint(member.astype(np.float64) @ values).astype(np.int64) for values in arrays]
            yield Counts(*arrays)


def naive(counts: Counts, confidence: float) -> dict[str, tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """What one gets from the totals alone, as if every pair were independent: the delta method with Poisson counts."""
    m_before, m_after, n_before, n_after = (values.sum(axis=0).astype(np.float64) for values in counts.four)
    z, c = -ndtri((1 - confidence) / 2), n_after / n_before
    tp = m_after - c * m_before
    variance, ratio = m_after + c**2 * m_before, tp / tp[0]
    precision = tp / m_after
    log_width = z * np.sqrt(1 / m_before)
    logit_width = z * np.sqrt(1 / m_before + 1 / m_after) / precision
    recall_width = z * np.sqrt(np.maximum(variance * (1 - 2 * ratio) + ratio**2 * variance[0], 0.0)) / tp[0]
    union = m_after + tp[0]
    f1 = 2 * tp / union
    top = 4 * variance + f1**2 * (m_after + variance[0] + 2 * variance) - 4 * f1 * (m_after + variance)
    f1_width = z * np.sqrt(np.maximum(top, 0.0)) / union
    inside = np.where((precision > 0) & (precision < 1), precision, np.nan)
    fpr = np.where(m_before > 0, m_before / n_before, np.nan)
    return {
        "fpr": (fpr * np.exp(-log_width), fpr * np.exp(log_width)),
        "precision": (expit(logit(inside) - logit_width), expit(logit(inside) + logit_width)),
        "recall": (ratio - recall_width, ratio + recall_width),
        "f1": (f1 - f1_width, f1 + f1_width),
    }


def _limits(interval: Interval) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    anything = interval.reason == "unbounded"
    return np.where(anything, 0.0, interval.lower), np.where(anything, 1.0, interval.upper)


def coverage(
    setting: Setting,
    datasets: int,
    confidence: float,
    seed: int,
    groups: int | None,
    resampling: Resampling | None = None,
) -> Tally:
    """Coverage of all intervals, and the placebo's rejections as "coverage" of nothing: 1 - rejected."""
    tally, true = Tally(), truth(setting)
    zeros = np.zeros(setting.thresholds)
    for counts in data_sets(setting, datasets, seed, groups):
        actual = intervals(counts.sides, reference=0, confidence=confidence, resampling=resampling)
        for name, interval in actual.items():
            tally.add(name, *_limits(interval), true[name])
        with np.errstate(divide="ignore", invalid="ignore"):
            for name, limits in naive(counts, confidence).items():
                tally.add(f"naive {name}", *limits, true[name if name == "fpr" else f"{name}_uncorrected"])
            precision = counts.true_after.sum(axis=0) / counts.four[1].sum(axis=0)
        realised = realised_precision_interval(
            *counts.four, counts.near, counts.n_near, confidence=confidence, reference=0
        )
        tally.add("realised", realised.lower, realised.upper, precision)
        _add_placebo(tally, counts, confidence, zeros)
    return tally


def _add_placebo(tally: Tally, counts: Counts, confidence: float, zeros: NDArray[np.float64]) -> None:
    arguments = counts.far, counts.near, counts.n_far, counts.n_near
    values = {"placebo": placebo(*arguments, confidence=confidence).p_value}
    if tally.with_limits["joint"][0] < JOINT_DATASETS:
        values["joint"] = np.full(1, placebo_joint(*arguments, flips=FLIPS))
    for name, value in values.items():
        accepted = np.where(np.isnan(value), np.nan, np.where(value > 1 - confidence, 0.0, 1.0))
        tally.add(name, accepted, accepted, zeros[: len(value)])


def print_coverage(setting: Setting, tally: Tally, confidence: float) -> None:
    """One line per class of thresholds and metric."""
    print(
        f"  {'expected':>8} {'metric':<20}{'coverage':>9}{'worst':>7}{'most':>7}{'naive':>7}{'width':>10}{'given':>7}"
    )
    for low, high, label in CLASSES:
        chosen = np.flatnonzero((setting.m_before >= low) & (setting.m_before < high))
        for name in SHOWN if len(chosen) else ():
            kept = chosen[chosen > 0] if name.startswith("recall") else chosen  # 1 by definition at the reference
            n_intervals, covered = tally.with_limits[name][kept], tally.covered[name][kept]
            if n_intervals.sum() == 0:
                continue
            share = covered / np.maximum(n_intervals, 1)
            plain = f"naive {name.removesuffix('_uncorrected')}"
            other = np.nan
            if plain in tally.with_limits:
                other = tally.covered[plain][kept].sum() / tally.with_limits[plain][kept].sum()
            width = tally.width[name][kept].sum() / n_intervals.sum()
            share_given = n_intervals.mean() / tally.with_limits["fpr"].max()
            mean_coverage = covered.sum() / n_intervals.sum()
            numbers = f"{mean_coverage:9.3f}{share.min():7.3f}{share.max():7.3f}{other:7.3f}{width:10.2g}"
            print(f"  {label:>8} {name:<20}{numbers}{share_given:7.2f}")
        if len(chosen):
            size = 1 - tally.covered["placebo"][chosen].sum() / tally.with_limits["placebo"][chosen].sum()
            print(f"  {label:>8} {'placebo: rejected':<20}{size:9.3f}")
    size = 1 - tally.covered["joint"][0] / max(tally.with_limits["joint"][0], 1)
    print(f"  {'all':>8} {'placebo: rejected':<20}{size:9.3f}   (nominal {1 - confidence:.2f})")


def print_power(setting: Setting, datasets: int, confidence: float, seed: int) -> None:
    """How often the placebo finds a false positive rate that is 1.5 times as high near to the event."""
    tally, zeros = Tally(), np.zeros(setting.thresholds)
    setting = replace(setting, near_factor=1.5)
    for counts in data_sets(setting, datasets, seed):
        _add_placebo(tally, counts, confidence, zeros)
    power = {name: 1 - tally.covered[name] / np.maximum(tally.with_limits[name], 1) for name in ("placebo", "joint")}
    numbers = "  ".join(f"{m:.3g}: {p:.2f}" for m, p in zip(setting.m_before, power["placebo"], strict=True))
    print(f"  power at 1.5 × FPR, by expected matches:  {numbers}  joint: {power['joint'][0]:.2f}")


def print_bias(events: int, datasets: int, seed: int) -> None:
    """Bias of recall and precision where positives are a tenth of all pairs, uncorrected and corrected."""
    setting = Setting(events, positives=MANY)
    true, estimates = truth(setting), defaultdict(list)
    for counts in data_sets(setting, datasets, seed):
        m_before, m_after, n_before, n_after = (values.sum(axis=0) for values in counts.four)
        fpr = m_before / n_before
        tp = m_after - fpr * n_after
        positives = tp[0] / (1 - fpr[0])
        estimates["recall uncorrected"].append(tp / tp[0])
        estimates["recall"].append((tp + fpr * positives) / positives)
        with np.errstate(divide="ignore", invalid="ignore"):
            estimates["precision uncorrected"].append(np.where(m_after > 0, tp / m_after, np.nan))
            estimates["precision"].append(np.where(m_after > 0, (tp + fpr * positives) / m_after, np.nan))
    print(f"\nBias with many positives, {events} events; true recall {true['recall'].round(2)}")
    for name, values in estimates.items():
        bias = np.nanmean(values, axis=0) - true[name.split()[0]]
        print(f"  {name:<22}{' '.join(f'{b:+.4f}' for b in bias)}   largest {np.abs(bias).max():.4f}")


def print_references(events: int, datasets: int, confidence: float, seed: int) -> None:
    """Coverage of actual precision, recall and F1 where the false positive rate at the reference is low or high."""
    for rate, variation, choice in product(REFERENCE_RATES, (0.0, 1.0), (None, Choice("lowest", MIN_PRECISION))):
        setting = Setting(events, variation, positives=MANY, fpr_reference=rate)
        true, shares = truth(setting), defaultdict(list)
        for counts in data_sets(setting, datasets, seed):
            reference = 0 if choice is None else _lowest(counts)
            limits = intervals(counts.sides, reference=reference, confidence=confidence, choice=choice)
            for name in HEADLINE:
                lower, upper = _limits(limits[name])
                value = true[name.removesuffix("_uncorrected")]
                used = ~np.isnan(lower) & (np.arange(setting.thresholds) > 0)  # at the reference recall is assumed
                if used.any():
                    shares[name].append(((lower <= value + 1e-9) & (value - 1e-9 <= upper))[used].mean())
                    shares[f"{name} width"].append((np.minimum(upper, 1.0) - np.maximum(lower, 0.0))[used].mean())
        how = "given" if choice is None else "chosen"
        cells = [
            f"{name} {np.mean(shares[name]):.3f} ± {np.std(shares[name]) / len(shares[name]) ** 0.5:.3f}"
            f" (width {np.mean(shares[f'{name} width']):.2f})"
            for name in HEADLINE
        ]
        print(f"  FPR {rate:.2f}, CV {variation:.0f}, {how:<6}  {'  '.join(cells)}", flush=True)


def drawn(near_over_far: float, rng: np.random.Generator, events: int = 60) -> pl.DataFrame:
    """The count table of one data set whose rate near to the event, and after it, is a multiple of that far from it."""
    level, shape = 0.1 * rng.gamma(4, 0.25, (events, 1)), (events, 3)
    share = level * np.array([1.0, 0.5, 0.2])  # of the pairs that match at or above each of three thresholds
    in_bin = np.diff(share[:, ::-1], axis=1, prepend=0)[:, ::-1]
    far, near, after = (rng.poisson(50 * in_bin * ratio) for ratio in (1.0, near_over_far, near_over_far))
    after = after + rng.poisson(TRUE_IN_BIN, shape)
    m = {"m_before": far + near, "m_after": after, "m_near": near}
    n = {"n_before": 100, "n_after": 50 + 3 * TRUE_IN_BIN, "n_near": 50}
    bins = {"replicate": np.repeat(np.arange(events), 3), "threshold": np.tile([1.0, 2.0, 3.0], events)}
    matches = pl.DataFrame(bins | {name: counts.ravel() for name, counts in m.items()})
    pairs = pl.DataFrame({"replicate": np.arange(events)}).with_columns(pl.lit(n[name]).alias(name) for name in n)
    table = pl.concat([pairs, matches], how="diagonal").with_columns(pl.lit("all").alias("grouping"))
    counts = [pl.col(name).fill_null(0).cast(pl.Int64) for name in (*n, *m)]
    return table.select("grouping", pl.col("replicate").cast(pl.Int64), "threshold", *counts)


def marks(near_over_far: float, datasets: int, seed: int) -> tuple[float, float, float]:
    """Shares: of data sets that are marked, of estimates that are `good`, and of limits that hold precision."""
    rng, stage = np.random.default_rng(seed), next(entry for entry in STAGES if entry.kind == "before_after").load()
    window = {"before": "100h", "after": "50h"}
    keys = {"name": "marks", "pairs": "-", "thresholds": [1, 2, 3], "window": window, "cluster": "event_id"}
    params, measured = stage.parameters.model_validate(keys), []
    false = 50 * 0.1 * near_over_far * np.array([1.0, 0.5, 0.2])
    true = TRUE_IN_BIN * np.array([3, 2, 1])
    for _ in range(datasets):
        estimates = stage.derive(params, {"counts": drawn(near_over_far, rng)})["before_after_estimates"]
        quality, lower, upper = (
            estimates[name].to_numpy() for name in ("interval_quality", "precision_lower", "precision_upper")
        )
        precision = true / (true + false)
        covered = (lower <= precision) & (precision <= upper)
        measured.append(((quality == "assumption_failed").all(), (quality == "good").mean(), covered.mean()))
    marked, good, covered = np.mean(measured, axis=0).tolist()
    return marked, good, covered


def print_marks(datasets: int, seed: int) -> None:
    """One line for each ratio of the rates."""
    print(f"\n60 events: near / far, marked, good, precision covered ({datasets} data sets)")
    for ratio in (1.0, 1.2, 0.8, 0.41):
        print(f"  {ratio:.2f}" + "".join(f"{share:>8.3f}" for share in marks(ratio, datasets, seed)), flush=True)


def _lowest(counts: Counts) -> int | None:
    """Index of the reference by the default rule."""
    totals = Sums.of(None, 1.0, [values.sum(axis=0) for values in counts.sides[0].columns])
    enough = np.flatnonzero((totals.tp > 0) & (totals.tp >= MIN_PRECISION * totals.m_after))
    return int(enough[0]) if len(enough) else None


def main() -> None:
    """Parse the arguments and print everything."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--datasets", type=int, default=2000)
    parser.add_argument("--events", default="10,30,100,300,1000")
    parser.add_argument("--confidence", type=float, default=0.95)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=["references", "marks"])
    parser.add_argument("--resamples", type=int, default=0, help="of the bootstrap; 0: intervals of the closed forms")
    options = parser.parse_args()
    events = [int(number) for number in options.events.split(",")]
    resampling = Resampling(options.resamples) if options.resamples else None
    if options.only != "references":
        print_marks(options.datasets, options.seed)
    if options.only == "marks":
        return
    for number in events:
        print(f"\n{number} events, many positives ({options.datasets} data sets)")
        print_references(number, options.datasets, options.confidence, options.seed)
    if options.only:
        return
    for number in events:
        for groups in (None, GROUPS) if number >= 1000 else (None,):
            for variation, bursty in ((0.0, False), (0.0, True), (1.0, False), (1.0, True)):
                started, setting = time.perf_counter(), Setting(number, variation, bursty)
                tally = coverage(setting, options.datasets, options.confidence, options.seed, groups, resampling)
                kind = f"{number} events, CV {variation:.0f}, {'bursty' if bursty else 'no bursts'}"
                print(f"\n{kind}{f', in {groups} replicates' if groups else ''}", end="")
                print(f"   ({options.datasets} data sets, {time.perf_counter() - started:.0f} s)")
                print_coverage(setting, tally, options.confidence)
                if groups is None:
                    print_power(setting, max(options.datasets // 5, 1), options.confidence, options.seed + 1)
    print_bias(min(events, key=lambda number: abs(number - 300)), options.datasets, options.seed)


if __name__ == "__main__":
    main()
