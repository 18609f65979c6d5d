"""Two systems on different units: the rows of one pair in the result tables."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ...metrics.comparison.bootstrap_t import bootstrap_of_groups
from ...metrics.comparison.paired import ratios_of_matcher
from ...metrics.comparison.pooled import UNDEFINED_RATIO, Clusters, ratio_of_independent
from ...metrics.comparison.separate import (
    event_estimates,
    is_constant,
    largest_skewness,
    means_of,
    permuted_means,
    permuted_ratios,
    pooled_estimates,
)
from ...metrics.comparison.student import difference_of, mean_of
from ...tables.columns import RATIOS
from .pairs import has_ratio, ratio_without_hits, undefined_of_pooled
from .rows import MadeTest, chosen, jackknifed, quality_of_counts, quality_of_groups, quality_of_matchers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from ...metrics.comparison.pooled import Ratio
    from ...metrics.comparison.student import Student
    from ...metrics.uncertainty.jackknife import Floats
    from .rows import Compared, ComparedMetric, PairOfSystems, Test

    Labels = tuple[NDArray[np.int64], NDArray[np.int64]]

_FEWEST_UNITS = 2  # a spread needs two


def compare_values(
    pair: PairOfSystems, metric: str, a: Floats, b: Floats, labels: Labels | None = None
) -> ComparedMetric:
    """Tests of the means of two groups of units.

    Args:
        pair: The two systems.
        metric: The metric.
        a: Values of the units of the first; nan where one has none.
        b: The same of the other.
        labels: The clusters of the units of either; None: units are independent.
    """
    known: tuple[NDArray[np.bool_], ...] = (~np.isnan(a), ~np.isnan(b))
    clusters: tuple[Clusters, ...] = ()
    a, b = a[known[0]], b[known[1]]
    numbers, values = (len(a), len(b)), (a, b)
    if labels is not None:
        clusters = tuple(Clusters.of(of_each[is_known]) for of_each, is_known in zip(labels, known, strict=True))
        a, b = (each.contributions(side) for each, side in zip(clusters, values, strict=True))
    compared: Compared = "contribution" if metric in pair.params.contributions else "mean"
    of_a, of_b = means_of(a, b, in_time=pair.in_time)
    student, undefined = difference_of(of_a, of_b), _undefined(a, b)
    p_value = student.p_value() if undefined != "constant_difference" else math.nan
    if undefined is not None:
        student = replace(student, error=math.nan)
    head = pair.head(metric, sum(numbers), numbers, n_clusters=len(a) + len(b) if clusters else None)
    of_ratio = ratio_of_independent(of_a, of_b) if has_ratio(compared, *values) else UNDEFINED_RATIO
    shared = pair.with_difference(head, (of_a.estimate, of_b.estimate), of_ratio, undefined)
    shared["minimum_detectable_difference"] = pair.detectable(student)
    if compared == "mean" and undefined is None:
        spread = math.hypot(*(mean_of(values).error * math.sqrt(len(values)) for values in (a, b)))
        shared["effect_size"] = student.estimate / spread * math.sqrt(2) if spread > 0 else math.nan
    by_rule, skewness = is_constant(a) or is_constant(b), largest_skewness(a, b)
    in_time = (a, b) if pair.in_time else ()
    return pair.compared(
        compared,
        shared,
        ("welch_t", student),
        [
            _test_of_means(pair, test, (a, b), student, p_value)
            for test in chosen(pair.params.tests, compared, paired=False)
        ],
        lambda test, row: quality_of_groups(
            row, skewness, clusters, in_time, by_bootstrap=test == "bootstrap_t", by_rule=by_rule
        ),
    )


def _test_of_means(
    pair: PairOfSystems, test: Test, values: tuple[Floats, Floats], student: Student, p_value: float
) -> MadeTest:
    resamples, seed = pair.params.resamples, pair.params.seed
    if test == "permutation":
        factor = _factor(student, difference_of(*means_of(*values)))
        permuted = permuted_means(*values, resamples=resamples, seed=seed, factor=factor)
        return MadeTest(test, math.nan, permuted)
    if test == "bootstrap_t" and not math.isnan(student.error):
        bootstrapped = bootstrap_of_groups(*values, resamples=resamples, seed=seed)
        if not math.isnan(bootstrapped.student.error):
            bootstrapped = replace(bootstrapped, student=student)
            return MadeTest(test, student.statistic(), bootstrapped.p_value(), bootstrapped)
    return MadeTest(test, student.statistic(), p_value, student)


def _factor(in_time: Student, independent: Student) -> float:
    """By which the variance of a difference exceeds that of independent units; 1 without a spread."""
    return (in_time.error / independent.error) ** 2 if independent.error > 0 and in_time.error > 0 else 1.0


def _undefined(a: Floats, b: Floats) -> str | None:
    fewest = min(len(a), len(b))
    if fewest < _FEWEST_UNITS:
        return "one_unit" if fewest else "no_unit"
    if is_constant(a) and is_constant(b):
        return "no_difference" if a[0] == b[0] else "constant_difference"
    return None


def compare_counts(
    pair: PairOfSystems, names: tuple[str, ...], a: Floats, b: Floats, n_units: tuple[int, int]
) -> Iterator[ComparedMetric]:
    """Tests of precision, recall and F1 of all counts of two groups of units.

    Args:
        pair: The two systems.
        names: The ratios that are wanted, as metrics.
        a: tp, fp and fn of the units of the first, or of their clusters, shape (A, 3).
        b: The same of the other, shape (B, 3).
        n_units: Units of both.
    """
    of_a, of_b = (pooled_estimates(counts, in_time=pair.in_time) for counts in (a, b))
    permuted = np.full(len(RATIOS), np.nan)
    if "permutation" in pair.params.tests:
        independent = zip(*(pooled_estimates(counts).values() for counts in (a, b)), strict=True)
        pairs = zip(zip(of_a.values(), of_b.values(), strict=True), independent, strict=True)
        factor = np.array([_factor(difference_of(*own), difference_of(*each)) for own, each in pairs])
        resamples, seed = pair.params.resamples, pair.params.seed
        permuted = permuted_ratios(a, b, resamples=resamples, seed=seed, factor=factor)
    for number, ratio in enumerate(RATIOS):
        if f"pooled_{ratio}" not in names:
            continue
        of_ratio = ratio_of_independent(of_a[ratio], of_b[ratio])
        if of_ratio.value == 0:
            of_ratio = ratio_without_hits(pair, ratio, a, b)
        estimates, p_value = (of_a[ratio], of_b[ratio]), float(permuted[number])
        yield _of_pooled(pair, "counts", ratio, (a, b), n_units, estimates, of_ratio, p_value)


def compare_matchers(
    pair: PairOfSystems, names: tuple[str, ...], a: Floats, b: Floats, n_units: tuple[int, int]
) -> Iterator[ComparedMetric]:
    """The same of matchers without labels on different events, see `metrics.comparison.paired`.

    Args:
        pair: The two systems.
        names: The ratios that are wanted, as metrics.
        a: The counts of the table of events of the first, or of clusters of events, shape (A, 6).
        b: The same of the other, shape (B, 6).
        n_units: Events of both.
    """
    of_a, of_b = (event_estimates(counts, in_time=pair.in_time) for counts in (a, b))
    for ratio in RATIOS:
        if f"pooled_{ratio}" in names:
            of_ratio = ratio_of_independent(of_a[ratio], of_b[ratio])
            estimates = of_a[ratio], of_b[ratio]
            yield _of_pooled(pair, "events", ratio, (a, b), n_units, estimates, of_ratio, math.nan)


def _of_pooled(
    pair: PairOfSystems,
    compared: Compared,
    ratio: str,
    counts: tuple[Floats, Floats],
    n_units: tuple[int, int],
    estimates: tuple[Student, Student],
    of_ratio: Ratio,
    permuted: float,
) -> ComparedMetric:
    """One pooled ratio of both groups; `permuted` is the p-value of the permutation test."""
    student, numbers = difference_of(*estimates), (len(counts[0]), len(counts[1]))
    n_clusters = sum(numbers) if pair.params.is_clustered else None
    head = pair.head(f"pooled_{ratio}", sum(n_units), n_units, n_clusters=n_clusters)
    undefined = undefined_of_pooled(min(numbers), student)
    shared = pair.with_difference(head, (estimates[0].estimate, estimates[1].estimate), of_ratio, undefined)
    shared["minimum_detectable_difference"] = pair.detectable(student)
    made = [
        MadeTest(test, math.nan, permuted)
        if test == "permutation"
        else MadeTest(test, student.statistic(), student.p_value(), student)
        for test in chosen(pair.params.tests, compared, paired=False)
    ]
    if compared == "counts":
        quality = quality_of_counts(ratio, counts, jackknifed(ratio, counts) if pair.in_time else ())
    else:
        enough = pair.in_time and min(numbers) >= _FEWEST_UNITS
        quality = quality_of_matchers(counts, [ratios_of_matcher(each)[ratio][1] for each in counts] if enough else ())
    return pair.compared(compared, shared, ("jackknife_t", student), made, quality)
