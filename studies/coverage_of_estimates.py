"""Measured coverage of the before/after intervals, on simulated counts whose truth is known.

    python studies/coverage_of_estimates.py [--datasets 2000] [--events 10,30,100,300,1000] [--confidence 0.95]
        [--seed 1] [--only marks|references|coverage|power|bias] [--resamples 0]

References, for false positive rates at the recall reference of .01, .30 and .50: how often the actual precision, recall
and F1 lie in their intervals, and how often actual recall lies in that of `recall_uncorrected`; events differ (CV 1) or
do not, and the reference is given, or chosen as the default rule chooses it.

Marks: in how many data sets the stage marks its estimates `assumption_failed`, and how many of the estimates are `good`
and cover precision, where the rate near to the event, and after it, is a multiple of that far before it.

Coverage, for every number of events: events that are all alike or that differ (CV 1 in false positive rate and in
compared pairs), false matches alone or in bursts; 60 % of the events have no coverage, and the others differ in how
much. The thresholds are put in classes by the number of matches before the event that they let be expected. `worst` is
the threshold with the lowest coverage and `most` the one with the highest. `naive` takes every pair as independent.

Covered is the actual precision, recall and F1 at expected counts (superpopulation); for the uncorrected ones what their
formulas converge to, and for `realised` the precision of the data set at hand. `unbounded` counts as [0, 1];
`given` is the share of data sets with an interval, `width` is within [0, 1].
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl
from before_after_counts import Counts, Setting, simulate, truth
from harness import Asked, Floats, Table, Tally, held, options, print_error, report
from scipy.special import expit, logit, ndtri

from pipeline.metrics.before_after.assumption import placebo, placebo_joint, realised_precision_interval
from pipeline.metrics.before_after.estimates import Sums
from pipeline.metrics.before_after.intervals import INTERVAL_NAMES, Choice, intervals
from pipeline.metrics.uncertainty.replicates import Resampling
from pipeline.stages import STAGES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pipeline.metrics.uncertainty.limits import Interval

Kind: TypeAlias = "tuple[int, int, float, bool]"  # events, replicates (0: every event), CV, whether there are bursts

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
RATIOS = (1.0, 1.2, 0.8, 0.41)  # of the rates near to the event and far from it


def data_sets(setting: Setting, count: int, seed: int, groups: int = 0) -> Iterator[Counts]:
    """Simulated data sets one by one; with `groups`, events are put in so many replicates at random."""
    rng = np.random.default_rng(seed)
    at_once = max(1, ROWS_AT_ONCE // setting.events)
    for start in range(0, count, at_once):
        for counts in simulate(setting, min(at_once, count - start), rng):
            if groups:
                member = (np.arange(groups)[:, None] == rng.integers(0, groups, setting.events)).astype(np.float64)
                yield Counts(*(np.rint(member @ values).astype(np.int64) for values in vars(counts).values()))
            else:
                yield counts


def naive(counts: Counts, confidence: float) -> dict[str, tuple[Floats, Floats]]:
    """What one gets from the totals alone, as if every pair were independent: the delta method with Poisson counts."""
    m_before, m_after, n_before, n_after = counts.totals
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


def _limits(interval: Interval) -> tuple[Floats, Floats]:
    anything = interval.reason == "unbounded"
    return np.where(anything, 0.0, interval.lower), np.where(anything, 1.0, interval.upper)


def _judged(name: str, limits: tuple[Floats, Floats], true: Floats) -> dict[str, Floats]:
    """Whether limits hold the truth, and how wide they are; nan: there are none."""
    lower, upper = limits
    width = np.where(np.isnan(lower), np.nan, np.minimum(upper, 1.0) - np.maximum(lower, 0.0))
    return {name: held(limits, true, 1e-9), f"{name} width": width}


def coverage(kind: Kind, asked: Asked) -> Tally:
    """What intervals hold in the data sets of a kind, and what the placebo tests reject."""
    events, groups, variation, bursty = kind
    setting, tally = Setting(events, variation, bursty), Tally()
    true = truth(setting)
    resampling = Resampling(asked.resamples) if asked.resamples else None
    for number, counts in enumerate(data_sets(setting, asked.datasets, asked.seed, groups)):
        actual = intervals([counts.sides], reference=0, confidence=asked.confidence, resampling=resampling)
        for name, interval in actual.items():
            tally.add(_judged(name, _limits(interval), true[name]))
        with np.errstate(divide="ignore", invalid="ignore"):
            for name, limits in naive(counts, asked.confidence).items():
                tally.add(_judged(f"naive {name}", limits, true[name if name == "fpr" else f"{name}_uncorrected"]))
            precision = counts.true_after.sum(axis=0) / counts.totals[1]
        sides, near = counts.sides, (counts.near, counts.n_near)
        four = (sides.m_before, sides.m_after, sides.n_before, sides.n_after)
        realised = realised_precision_interval(*four, *near, confidence=asked.confidence, reference=0)
        tally.add(_judged("realised", (realised.lower, realised.upper), precision))
        tally.add(_placebos(counts, asked.confidence, with_joint=number < JOINT_DATASETS))
    return tally


def _placebos(counts: Counts, confidence: float, *, with_joint: bool) -> dict[str, Floats]:
    """Whether the placebo tests reject; nan: they cannot be made."""
    arguments = counts.far, counts.near, counts.n_far, counts.n_near
    p_values = {"placebo": placebo(*arguments, confidence=confidence).p_value}
    if with_joint:
        p_values["joint"] = np.full(1, placebo_joint(*arguments, flips=FLIPS))
    return {name: np.where(np.isnan(p), np.nan, p <= 1 - confidence) for name, p in p_values.items()}


def _named(kind: Kind) -> str:
    events, groups, variation, bursty = kind
    name = f"{events} events, CV {variation:.0f}, {'bursty' if bursty else 'no bursts'}"
    return f"{name}, in {groups} replicates" if groups else name


def measure(kind: Kind, asked: Asked) -> Table:
    """A row for each class of thresholds and metric."""
    tally, expected = coverage(kind, asked), Setting(kind[0]).m_before
    for low, high, label in CLASSES:
        chosen = np.flatnonzero((expected >= low) & (expected < high))
        for name in SHOWN if len(chosen) else ():
            kept = chosen[chosen > 0] if name.startswith("recall") else chosen  # 1 by definition at the reference
            holds, width = tally[name][:, kept], tally[f"{name} width"][:, kept]
            number = (~np.isnan(holds)).sum(axis=0)
            if number.sum() == 0:
                continue
            shares = np.nansum(holds, axis=0) / np.maximum(number, 1)
            plain = f"naive {name.removesuffix('_uncorrected')}"
            other = float(np.nanmean(tally[plain][:, kept])) if plain in tally else np.nan
            given_share = number.mean() / (~np.isnan(tally["fpr"])).sum(axis=0).max()
            of_all = (float(np.nanmean(holds)), float(shares.min()), float(shares.max()), other)
            yield _named(kind), label, name, *of_all, f"{np.nanmean(width):.2g}", f"{given_share:.2f}"
        if len(chosen):
            yield _named(kind), label, "placebo: rejected", float(np.nanmean(tally["placebo"][:, chosen])), *[""] * 5
    yield _named(kind), "all", "placebo: rejected", float(tally.mean("joint")[0]), *[""] * 5


def power(kind: Kind, asked: Asked) -> Table:
    """How often the placebo finds a false positive rate that is 1.5 times as high near to the event."""
    events, _, variation, bursty = kind
    setting, tally = Setting(events, variation, bursty, near_factor=1.5), Tally()
    counted = data_sets(setting, max(asked.datasets // 5, 1), asked.seed + 1)
    for number, counts in enumerate(counted):
        tally.add(_placebos(counts, asked.confidence, with_joint=number < JOINT_DATASETS))
    rejected = tally.mean("placebo")
    by_matches = "  ".join(f"{m:.3g}: {p:.2f}" for m, p in zip(setting.m_before, rejected, strict=True))
    yield _named(kind), by_matches, f"{tally.mean('joint')[0]:.2f}"


def bias(events: int, asked: Asked) -> Table:
    """Bias of recall and precision where positives are a tenth of all pairs, uncorrected and corrected."""
    setting, tally = Setting(events, positives=MANY), Tally()
    true = truth(setting)
    for counts in data_sets(setting, asked.datasets, asked.seed):
        m_before, m_after, n_before, n_after = counts.totals
        raw, (tp, positives) = m_after - m_before / n_before * n_after, counts.corrected()
        tally.add({"recall uncorrected": raw / raw[0], "recall": tp / positives})
        with np.errstate(divide="ignore", invalid="ignore"):
            tally.add({"precision uncorrected": np.where(m_after > 0, raw / m_after, np.nan)})
            tally.add({"precision": np.where(m_after > 0, tp / m_after, np.nan)})
    for name, mean in tally.means().items():
        errors = mean - true[name.split()[0]]
        yield f"{events} events", name, " ".join(f"{error:+.4f}" for error in errors), f"{np.abs(errors).max():.4f}"


def references(design: tuple[int, float, float, bool], asked: Asked) -> Table:
    """Coverage of actual precision, recall and F1 where the false positive rate at the reference is low or high."""
    events, rate, variation, is_chosen = design
    choice = Choice("lowest", MIN_PRECISION) if is_chosen else None
    setting, tally = Setting(events, variation, positives=MANY, fpr_reference=rate), Tally()
    true = truth(setting)
    for counts in data_sets(setting, asked.datasets, asked.seed):
        reference = _lowest(counts) if is_chosen else 0
        limits = intervals([counts.sides], reference=reference, confidence=asked.confidence, choice=choice)
        for name in HEADLINE:
            judged = _judged(name, _limits(limits[name]), true[name.removesuffix("_uncorrected")])
            beyond = {of: values[1:] for of, values in judged.items()}  # at the reference recall is assumed
            if not np.isnan(beyond[name]).all():
                tally.add({of: float(np.nanmean(values)) for of, values in beyond.items()})
    cells = [f"{tally.mean(name):.3f} ± {tally[name].std() / len(tally[name]) ** 0.5:.3f}" for name in HEADLINE]
    widths = [f"(width {tally.mean(f'{name} width'):.2f})" for name in HEADLINE]
    how = "chosen" if is_chosen else "given"
    yield f"{events} events, FPR {rate:.2f}, CV {variation:.0f}, {how}", *map(" ".join, zip(cells, widths, strict=True))


def _lowest(counts: Counts) -> int | None:
    """Index of the reference by the default rule."""
    totals = Sums.of(None, 1.0, list(counts.totals))
    enough = np.flatnonzero((totals.tp > 0) & (totals.tp >= MIN_PRECISION * totals.m_after))
    return int(enough[0]) if len(enough) else None


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


def measure_marks(ratio: float, asked: Asked) -> Table:
    """A row for a ratio of the rates."""
    yield f"{ratio:.2f}", *marks(ratio, asked.datasets, asked.seed)


def main() -> None:
    """Print all tables."""
    asked = options(__doc__, 2000, events="10,30,100,300,1000", confidence=0.95, resamples=0)
    numbers = [int(number) for number in asked.events.split(",")]
    print_error(asked.datasets)
    report("marks of 60 events", ("near / far", "marked", "good", "precision covered"), measure_marks, RATIOS, asked)
    of_references = list(product(numbers, REFERENCE_RATES, (0.0, 1.0), (False, True)))
    report("references, many positives", ("reference", *HEADLINE), references, of_references, asked)
    kinds = [
        (events, groups, variation, bursty)
        for events in numbers
        for groups in ((0, GROUPS) if events >= 1000 else (0,))
        for variation, bursty in product((0.0, 1.0), (False, True))
    ]
    head = ("data", "expected", "metric", "coverage", "worst", "most", "naive", "width", "given")
    report("coverage", head, measure, kinds, asked)
    of_power = ("data", "by expected matches", "joint")
    report("power at 1.5 × FPR", of_power, power, [kind for kind in kinds if not kind[1]], asked)
    middle = min(numbers, key=lambda number: abs(number - 300))
    report("bias with many positives", ("data", "estimate", "bias", "largest"), bias, [middle], asked)


if __name__ == "__main__":
    main()
