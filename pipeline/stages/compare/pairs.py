"""Two systems on the same units: the rows of one pair in the result tables."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...metrics.comparison import paired
from ...metrics.comparison.bootstrap_t import bootstrap_of_pairs, skewness
from ...metrics.comparison.paired import (
    differences,
    paired_t,
    pooled_randomization_tests,
    randomization_test,
    sign_test,
    wilcoxon_signed_rank,
    win_tie_loss,
)
from ...metrics.comparison.pooled import (
    UNDEFINED_RATIO,
    Clusters,
    effective_counts,
    effective_units,
    jackknife_errors,
    pooled_ratios,
    ratio_of_jackknifed,
    ratio_of_no_hits,
    ratio_on_same_units,
)
from ...metrics.comparison.separate import pooled_estimates
from ...metrics.comparison.significance import minimum_detectable_difference
from ...metrics.comparison.student import Student, mean_of
from ...metrics.uncertainty.interval_quality import N_CLUSTERS
from ...metrics.uncertainty.jackknife import leave_one_out
from ...metrics.uncertainty.serial import over_time
from ...records import dataclass
from ...tables.columns import RATIOS
from .rows import (
    EVENT_COUNTS,
    POWER,
    MadeTest,
    chosen,
    hits_and_misses,
    quality_of_counts,
    quality_of_matchers,
    quality_of_pairs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ...metrics.comparison.paired import PairedT, PairedTest
    from ...metrics.comparison.pooled import Ratio
    from ...metrics.uncertainty.jackknife import Floats
    from .rows import Compared, ComparedMetric, PairOfSystems, Row, Test

    Integers = NDArray[np.int64]

_FEWEST_UNITS = 2  # a spread needs two
_CLEARLY = 3.0  # standard errors of an area


@dataclass(frozen=True)
class _Values:
    """One value of both systems for every unit, with the clusters of the units; None: they are independent.

    `in_time` tells that units, or clusters, follow each other in time.
    """

    units: tuple[Floats, Floats]
    clusters: Clusters | None
    in_time: bool

    @property
    def contributions(self) -> tuple[Floats, Floats]:
        """What is independent, with the means of the units as its means."""
        return self.units if self.clusters is None else self._of_both(self.clusters.contributions)

    @property
    def means(self) -> tuple[Floats, Floats]:
        """The values of units, or the means of clusters."""
        return self.units if self.clusters is None else self._of_both(self.clusters.means)

    @property
    def sums(self) -> tuple[Floats, Floats]:
        """The values of units, or the sums of clusters, which systems swap together."""
        return self.units if self.clusters is None else self._of_both(self.clusters.sums)

    def _of_both(self, taken: Callable[[Floats], Floats]) -> tuple[Floats, Floats]:
        return taken(self.units[0]), taken(self.units[1])

    def student(self) -> PairedT:
        """The paired t test, with the degrees of freedom of clusters, and with the covariances of those nearby."""
        student = paired_t(*self.contributions)
        if math.isnan(student.statistic):
            return student
        if self.clusters is not None:
            student = replace(student, degrees=min(student.n_units - 1.0, self.clusters.degrees))
        if not self.in_time:
            return student
        nearby = student.student.over_time(differences(*self.contributions))
        return replace(student, statistic=nearby.statistic(), error=nearby.error, degrees=nearby.degrees)

    @property
    def factor(self) -> float:
        """By which the variance of the difference exceeds that of independent units."""
        return float(over_time(differences(*self.contributions)).factor) if self.in_time else 1.0


def compare_values(
    pair: PairOfSystems, metric: str, a: Floats, b: Floats, labels: Integers | None = None
) -> ComparedMetric:
    """Tests of the mean of one value per unit.

    Args:
        pair: The two systems.
        metric: The metric.
        a: Values of the first system; nan where it has none.
        b: The same of the other, the same units in the same order.
        labels: Shape (U,): the clusters of the units; None: units are independent.
    """
    both = ~(np.isnan(a) | np.isnan(b))
    a, b = a[both], b[both]
    compared: Compared = "contribution" if metric in pair.params.contributions else "mean"
    values = _Values((a, b), None if labels is None else Clusters.of(labels[both]), pair.in_time)
    independent = values.contributions
    student, gaps = values.student(), differences(*independent)
    head = pair.head(metric, len(a), n_clusters=None if labels is None else len(gaps))
    is_ratio = has_ratio(compared, a, b)
    ratio = ratio_on_same_units(*independent, in_time=pair.in_time) if is_ratio else UNDEFINED_RATIO
    shared = pair.with_difference(head, (student.mean_a, student.mean_b), ratio, _undefined(*independent))
    shared |= {"difference": student.difference, "skewness": skewness(gaps)}
    if compared == "mean":
        wins, ties, losses = win_tie_loss(a, b)
        effect_size = paired_t(a, b).effect_size if labels is not None else student.effect_size
        shared |= {"effect_size": effect_size, "wins_a": wins, "ties": ties, "wins_b": losses}
    shared["minimum_detectable_difference"] = pair.detectable(student.student)
    names = chosen(pair.params.tests, compared, paired=True)
    return pair.compared(
        compared,
        shared,
        ("paired_t", student.student),
        (_test_of_means(pair, test, values, student) for test in names),
        lambda test, row: quality_of_pairs(
            row, gaps, values.clusters, in_time=pair.in_time, by_bootstrap=test == "bootstrap_t"
        ),
    )


def has_ratio(compared: Compared, a: Floats, b: Floats) -> bool:
    """Whether a ratio of means makes sense: values have a true zero, or are contributions to areas clearly above 0.

    Args:
        compared: What the values are.
        a: Those of the first system.
        b: Those of the other.
    """
    if compared == "contribution":
        means = mean_of(a), mean_of(b)
        return all(mean.estimate > _CLEARLY * mean.error for mean in means)
    return bool(min(a.min(initial=0.0), b.min(initial=0.0)) >= 0)


def _detectable(pair: PairOfSystems, deviation: float, n_units: int) -> float:
    level = 1 - pair.params.confidence
    if level >= POWER or not deviation > 0:
        return math.nan
    return minimum_detectable_difference(deviation, n_units, power=POWER, significance=level)


def _test_of_means(pair: PairOfSystems, test: Test, values: _Values, student: PairedT) -> MadeTest:
    resamples, seed = pair.params.resamples, pair.params.seed
    if test == "paired_t":
        p_value = student.p_value if math.isnan(student.degrees) else student.student.p_value()
        return MadeTest(test, student.statistic, p_value, student.student)
    if test == "bootstrap_t":
        bootstrapped = bootstrap_of_pairs(*values.contributions, resamples=resamples, seed=seed)
        bootstrapped = replace(bootstrapped, student=student.student)
        p_value = student.p_value if math.isnan(student.statistic) else bootstrapped.p_value()
        return MadeTest(test, student.statistic, p_value, bootstrapped)
    tests: dict[Test, Callable[[], PairedTest]] = {
        "wilcoxon": lambda: wilcoxon_signed_rank(*values.means),
        "sign": lambda: sign_test(*values.means),
        "randomization": lambda: randomization_test(*values.sums, resamples=resamples, seed=seed, factor=values.factor),
    }
    result = tests[test]()
    return MadeTest(test, result.statistic, result.p_value)


def compare_counts(
    pair: PairOfSystems, names: tuple[str, ...], a: Floats, b: Floats, labels: Integers | None = None
) -> Iterator[ComparedMetric]:
    """Tests of precision, recall and F1 of all units' counts.

    Args:
        pair: The two systems.
        names: The ratios that are wanted, as metrics.
        a: tp, fp and fn of the first system, shape (U, 3); nan where it has none.
        b: The same of the other.
        labels: As for `compare_values`.
    """
    n_units, (a, b) = len(complete(a, b)[0]), complete(a, b, labels)
    n_clusters = None if labels is None else len(a)
    totals = pooled_ratios(a.sum(axis=0)), pooled_ratios(b.sum(axis=0))
    jackknifed = (
        (pooled_ratios(leave_one_out(a)), pooled_ratios(leave_one_out(b)))
        if len(a) >= _FEWEST_UNITS
        else (np.full((1, 3), np.nan),) * 2
    )
    units = effective_units(a, b)
    errors = jackknife_errors(jackknifed[0] - jackknifed[1], units, in_time=pair.in_time)
    tests = chosen(pair.params.tests, "counts", paired=True)
    swapped = {}
    if "randomization" in tests:
        resamples, seed = pair.params.resamples, pair.params.seed
        swapped = pooled_randomization_tests(a, b, resamples=resamples, seed=seed, factor=errors.factor)
    for number, ratio in enumerate(RATIOS):
        if f"pooled_{ratio}" not in names:
            continue
        values = float(totals[0][number]), float(totals[1][number])
        student = Student(values[0] - values[1], float(errors.error[number]), float(errors.degrees[number]))
        of_both = jackknifed[0][:, number], jackknifed[1][:, number]
        of_ratio = ratio_of_jackknifed(values, of_both, units[number], in_time=pair.in_time)
        if of_ratio.value == 0:
            of_ratio = ratio_without_hits(pair, ratio, a, b)
        p_value = swapped[ratio].p_value if swapped else math.nan
        head = pair.head(f"pooled_{ratio}", n_units, n_clusters=n_clusters)
        yield pair.compared(
            "counts",
            _pooled(pair, head, values, student, of_ratio),
            ("jackknife_t", student),
            (_test_of_ratio(test, student, p_value) for test in tests),
            quality_of_counts(ratio, [a + b], [of_both[0] - of_both[1]] if pair.in_time else []),
        )


def ratio_without_hits(pair: PairOfSystems, ratio: str, a: Floats, b: Floats) -> Ratio:
    """The ratio of pooled ratios of which the upper one is 0."""
    worth = effective_counts(*hits_and_misses(ratio, a), pair.params.confidence, in_time=pair.in_time)
    of_b = pooled_estimates(b, in_time=pair.in_time)[ratio]
    return ratio_of_no_hits(worth.misses, of_b, pair.params.confidence, is_f1=ratio == "f1")


def compare_matchers(
    pair: PairOfSystems, names: tuple[str, ...], a: Floats, b: Floats, labels: Integers | None = None
) -> Iterator[ComparedMetric]:
    """The same of matchers without labels, from counts before and after events; see `metrics.comparison.paired`.

    Args:
        pair: The two systems.
        names: The ratios that are wanted, as metrics.
        a: The counts of the table of events of the first matcher, shape (U, 6); nan where it has none.
        b: The same of the other.
        labels: As for `compare_values`.
    """
    n_units, (a, b) = len(complete(a, b)[0]), complete(a, b, labels)
    n_clusters = None if labels is None else len(a)
    in_time = pair.in_time
    ratios = paired.paired_ratios(_events(a), _events(b), in_time=in_time) if len(a) >= _FEWEST_UNITS else {}
    tests = chosen(pair.params.tests, "events", paired=True)
    for ratio in RATIOS:
        if f"pooled_{ratio}" not in names:
            continue
        result, head = ratios.get(ratio), pair.head(f"pooled_{ratio}", n_units, n_clusters=n_clusters)
        values, student, of_ratio, p_value = (math.nan, math.nan), Student(*[math.nan] * 3), UNDEFINED_RATIO, math.nan
        if result is not None:
            values = result.value_a, result.value_b
            student = Student(result.difference, float(result.errors.error[0]), float(result.errors.degrees[0]))
            jackknifed = result.jackknifed_a, result.jackknifed_b
            of_ratio = ratio_of_jackknifed(values, jackknifed, len(a), in_time=in_time)
            if "randomization" in tests:
                p_value = result.flip_p_value(pair.params.resamples, pair.params.seed)
        yield pair.compared(
            "events",
            _pooled(pair, head, values, student, of_ratio),
            ("jackknife_t", student),
            [_test_of_ratio(test, student, p_value) for test in tests],
            quality_of_matchers([a + b], [result.jackknifed] if in_time and result is not None else []),
        )


def _test_of_ratio(test: Test, student: Student, p_value: float) -> MadeTest:
    if test == "jackknife_t":
        return MadeTest(test, student.statistic(), student.p_value(), student)
    return MadeTest(test, math.nan, p_value)


def _pooled(pair: PairOfSystems, head: Row, values: tuple[float, float], student: Student, ratio: Ratio) -> Row:
    """What all tests of a ratio of all counts share."""
    n_units: int = head[N_CLUSTERS] if N_CLUSTERS in head else head["n_units"]
    undefined = undefined_of_pooled(min(n_units, _FEWEST_UNITS), student)
    detectable = _detectable(pair, student.error * math.sqrt(n_units), n_units)
    return pair.with_difference(head, values, ratio, undefined) | {"minimum_detectable_difference": detectable}


def undefined_of_pooled(fewest: int, student: Student) -> str | None:
    """Why a difference of pooled ratios, or its interval, is NULL; None: it is not.

    Args:
        fewest: Units of the system with the fewest.
        student: What is known of the difference.
    """
    if fewest < _FEWEST_UNITS:
        return "one_unit" if fewest else "no_unit"
    if math.isnan(student.estimate):
        return "undefined_ratio"
    return "one_unit_decides" if math.isnan(student.error) else None


def complete(a: Floats, b: Floats, labels: Integers | None = None) -> tuple[Floats, Floats]:
    """The units of which both have all counts; with the labels of their clusters the sums of these."""
    both = ~(np.isnan(a) | np.isnan(b)).any(axis=1)
    if labels is None:
        return a[both], b[both]
    clusters = Clusters.of(labels[both])
    return clusters.sums(a[both]), clusters.sums(b[both])


def _events(counts: Floats) -> pl.DataFrame:
    columns = {name: pl.Series(counts[:, number], dtype=pl.Int64) for number, name in enumerate(EVENT_COUNTS)}
    return pl.DataFrame({"event_id": np.arange(len(counts)), **columns})


def _undefined(a: Floats, b: Floats) -> str | None:
    if len(a) < _FEWEST_UNITS:
        return "one_unit" if len(a) else "no_unit"
    gap = differences(a, b)
    if (gap == gap[0]).all():
        return "constant_difference" if gap[0] else "no_difference"
    return None
