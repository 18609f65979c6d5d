"""Two systems on the same or on different units: units of a group of rows as arrays, and the rows of all pairs."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...base.columns import RATIOS
from ...base.records import dataclass
from ...metrics.comparison import paired
from ...metrics.comparison.paired import (
    differences,
    event_estimates,
    is_constant,
    largest_skewness,
    means_of,
    paired_t,
    permuted_means,
    permuted_ratios,
    pooled_estimates,
    pooled_randomization_tests,
    randomization_test,
    ratios_of_matcher,
    sign_test,
    wilcoxon_signed_rank,
    win_tie_loss,
)
from ...metrics.comparison.pooled import (
    UNDEFINED_RATIO,
    Clusters,
    Student,
    difference_of,
    effective_counts,
    effective_units,
    jackknife_errors,
    mean_of,
    pooled_ratios,
    ratio_of_independent,
    ratio_of_jackknifed,
    ratio_of_no_hits,
    ratio_on_same_units,
)
from ...metrics.comparison.significance import (
    bootstrap_of_groups,
    bootstrap_of_pairs,
    minimum_detectable_difference,
    skewness,
)
from ...metrics.uncertainty.clusters import over_time
from ...metrics.uncertainty.jackknife import leave_one_out
from ...metrics.uncertainty.limits import N_CLUSTERS
from .contract import EVENT_COUNTS, POOLED
from .planning import COUNT, IN_ORDER, METRIC
from .rows import (
    CELLS,
    POWER,
    MadeTest,
    PairOfSystems,
    chosen,
    hits_and_misses,
    jackknifed,
    posterior_rows,
    quality_of_counts,
    quality_of_groups,
    quality_of_matchers,
    quality_of_pairs,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from numpy.typing import NDArray

    from ...metrics.comparison.paired import PairedT, PairedTest
    from ...metrics.comparison.pooled import Ratio
    from ...metrics.uncertainty.jackknife import Floats
    from .contract import Test
    from .rows import Compared, ComparedMetric, Row

    Integers = NDArray[np.int64]
    Labels = tuple[NDArray[np.int64], NDArray[np.int64]]
    from collections.abc import Mapping, Sequence

    from .contract import CompareParameters


# Two systems on the same units: the rows of one pair in the result tables.


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
        """The independent clusters, with the means of their units."""
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
        """The factor by which the variance of the difference exceeds that of independent units."""
        return float(over_time(differences(*self.contributions)).factor) if self.in_time else 1.0


def compare_values(
    pair: PairOfSystems, metric: str, a: Floats, b: Floats, labels: Integers | None = None
) -> ComparedMetric:
    """Tests of the mean of one value per unit, nan where a system has none, of the same units in the same order.

    Labels, shape (U,), are the clusters of the units; None: units are independent.
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
    """Whether a ratio of means makes sense: values have a true zero, or are contributions to areas clearly above 0."""
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
    """Tests of the named ratios, precision, recall and F1 of all units' counts.

    Counts are tp, fp and fn, shape (U, 3), nan where a system has none; labels as for `compare_values`.
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

    Counts are those of the table of events, shape (U, 6).
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
    """The common part of all tests of a ratio of all counts."""
    n_units: int = head[N_CLUSTERS] if N_CLUSTERS in head else head["n_units"]
    undefined = undefined_of_pooled(min(n_units, _FEWEST_UNITS), student)
    detectable = _detectable(pair, student.error * math.sqrt(n_units), n_units)
    return pair.with_difference(head, values, ratio, undefined) | {"minimum_detectable_difference": detectable}


def undefined_of_pooled(fewest: int, student: Student) -> str | None:
    """Why a difference of pooled ratios, of at least so many units, or its interval, is NULL; None: it is not."""
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


# Two systems on different units: the rows of one pair in the result tables.


def compare_unpaired_values(
    pair: PairOfSystems, metric: str, a: Floats, b: Floats, labels: Labels | None = None
) -> ComparedMetric:
    """Tests of the means of two groups of units, nan where one has no value, with the clusters of either, if any."""
    known: tuple[NDArray[np.bool_], ...] = (~np.isnan(a), ~np.isnan(b))
    clusters: tuple[Clusters, ...] = ()
    a, b = a[known[0]], b[known[1]]
    numbers, values = (len(a), len(b)), (a, b)
    if labels is not None:
        clusters = tuple(Clusters.of(of_each[is_known]) for of_each, is_known in zip(labels, known, strict=True))
        a, b = (each.contributions(side) for each, side in zip(clusters, values, strict=True))
    compared: Compared = "contribution" if metric in pair.params.contributions else "mean"
    of_a, of_b = means_of(a, b, in_time=pair.in_time)
    student, undefined = difference_of(of_a, of_b), _undefined_of_unpaired(a, b)
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
            _unpaired_test_of_means(pair, test, (a, b), student, p_value)
            for test in chosen(pair.params.tests, compared, paired=False)
        ],
        lambda test, row: quality_of_groups(
            row, skewness, clusters, in_time, by_bootstrap=test == "bootstrap_t", by_rule=by_rule
        ),
    )


def _unpaired_test_of_means(
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
    """The factor by which a variance exceeds that of independent units; 1 without a spread."""
    return (in_time.error / independent.error) ** 2 if independent.error > 0 and in_time.error > 0 else 1.0


def _undefined_of_unpaired(a: Floats, b: Floats) -> str | None:
    fewest = min(len(a), len(b))
    if fewest < _FEWEST_UNITS:
        return "one_unit" if fewest else "no_unit"
    if is_constant(a) and is_constant(b):
        return "no_difference" if a[0] == b[0] else "constant_difference"
    return None


def compare_unpaired_counts(
    pair: PairOfSystems, names: tuple[str, ...], a: Floats, b: Floats, n_units: tuple[int, int]
) -> Iterator[ComparedMetric]:
    """Tests of the named ratios, precision, recall and F1 of all counts of two groups of units.

    Counts are tp, fp and fn of so many units, or of their clusters, shape (A, 3) and (B, 3).
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


def compare_unpaired_matchers(
    pair: PairOfSystems, names: tuple[str, ...], a: Floats, b: Floats, n_units: tuple[int, int]
) -> Iterator[ComparedMetric]:
    """The same of matchers without labels on different events, see `metrics.comparison.paired`.

    Counts are those of the table of events, or of clusters of events, shape (A, 6) and (B, 6).
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


# The units of one group of rows as arrays, and all pairs of systems in it.


_TIME = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:[^ ]*)?$"  # a date, or a date with its time


def units_of_group(params: CompareParameters, frame: pl.DataFrame, by: Sequence[str]) -> _PairedUnits | _SeparateUnits:
    """Return the units of one group of rows; shared units are known by all grouping columns, too."""
    return _PairedUnits(params, frame, by) if params.paired else _SeparateUnits(params, frame)


def pairs_of(systems: Sequence[object], baseline: object) -> Iterator[tuple[int, int]]:
    """Return the numbers of the systems of every pair: all pairs, or each system and then the baseline."""
    if baseline is None:
        yield from combinations(range(len(systems)), 2)
        return
    is_baseline = [system is not None and str(system) == str(baseline) for system in systems]
    if any(is_baseline):
        second = is_baseline.index(True)
        yield from ((first, second) for first in range(len(systems)) if first != second)


def with_order(units: pl.DataFrame, params: CompareParameters) -> pl.DataFrame:
    """Units with `in_order`, what puts them, or their clusters, in the order of time, if they have one.

    It is the column that the config names, or that of the clusters, or without clusters of the units, if all of its
    values are dates or times, as dates or as text: keys of tables are text.
    """
    name = str(params.cluster_column) if params.is_clustered else "unit"
    if IN_ORDER in units.columns or units.is_empty():
        return units
    return units.with_columns(pl.col(name).alias(IN_ORDER)) if are_times(units[name]) else units


def are_times(values: pl.Series) -> bool:
    """Whether values are dates or times, or all are text that says one."""
    if values.dtype == pl.String:
        return len(values) > 0 and bool(values.str.contains(_TIME).all(ignore_nulls=False))
    return values.dtype.is_temporal()


@dataclass(frozen=True)
class _Columns:
    """The columns of the units beside their keys.

    Attributes:
        values: One value per unit, by metric.
        counts: tp, fp and fn, or the counts around events, on the last axis; None: the units have none.
        are_events: Whether the counts are those around events.
        pooled: The metrics that are ratios of all counts.
    """

    values: Mapping[str, Floats]
    counts: Floats | None
    are_events: bool
    pooled: tuple[str, ...]

    @classmethod
    def of(cls, params: CompareParameters, columns: Mapping[str, Floats]) -> _Columns:
        """Sort the columns of a frame, arrays of any shape by name."""
        values = {name.removeprefix(METRIC): array for name, array in columns.items() if name.startswith(METRIC)}
        counted = {name.removeprefix(COUNT): array for name, array in columns.items() if name.startswith(COUNT)}
        metrics = params.metrics or POOLED
        if not counted:
            return cls(values, None, are_events=False, pooled=())
        pooled = tuple(name for name in POOLED if name in metrics)
        if "tp" not in counted:
            return cls(values, np.stack([counted[name] for name in EVENT_COUNTS], axis=-1), True, pooled)
        for name, total in (("fp", "n_predicted"), ("fn", "n_true")):
            if name not in counted:
                counted[name] = counted[total] - counted["tp"]
        counts = np.stack([counted[name] for name in CELLS], axis=-1)
        ratios = pooled_ratios(counts)
        of_units = {name: ratios[..., number] for number, name in enumerate(RATIOS)}
        wanted = {name: array for name, array in of_units.items() if name in metrics and name not in values}
        return cls({**values, **wanted}, counts, are_events=False, pooled=pooled)

    @property
    def has_posteriors(self) -> bool:
        """Whether posteriors can be made."""
        return self.counts is not None and not self.are_events


def _floats(values: pl.Series) -> Floats:
    return values.cast(pl.Float64).to_numpy()


class _PairedUnits:
    """Units that systems share, as matrices: a row for each system, a column for each unit, nan where nothing is."""

    def __init__(self, params: CompareParameters, frame: pl.DataFrame, by: Sequence[str]) -> None:
        self._params = params
        keys = [*by, "unit"]
        self._in_time = IN_ORDER in frame.columns
        frame = _in_order(frame, keys)
        units = frame.select(keys).unique(maintain_order=True).with_row_index("_unit")
        self._systems = frame["system"].unique().sort()
        systems = self._systems.to_frame().with_row_index("_system")
        placed = frame.join(units, on=keys, how="left", nulls_equal=True, maintain_order="left")
        placed = placed.join(systems, on="system", how="left", maintain_order="left")
        self._place = (placed["_system"].to_numpy(), placed["_unit"].to_numpy())
        self._shape = (len(self._systems), units.height)
        self._known = ~np.isnan(self._matrix(pl.Series(np.zeros(frame.height))))
        columns = {name: self._matrix(frame[name]) for name in frame.columns if name.startswith((METRIC, COUNT))}
        self._columns = _Columns.of(params, columns)
        self._labels: Integers | None = None
        if params.is_clustered:
            self._labels = np.zeros(units.height, dtype=np.int64)
            self._labels[self._place[1]] = _labels(frame, params)

    def _matrix(self, values: pl.Series) -> Floats:
        matrix = np.full(self._shape, np.nan)
        matrix[self._place] = _floats(values)
        return matrix

    def _pairs(self) -> Iterator[tuple[PairOfSystems, int, int]]:
        for a, b in pairs_of(self._systems.to_list(), self._params.baseline):
            n_units = int((self._known[a] | self._known[b]).sum())
            yield PairOfSystems(self._params, (self._systems[a], self._systems[b]), n_units, self._in_time), a, b

    def compared(self) -> Iterator[ComparedMetric]:
        """Return every metric of every pair of systems."""
        columns = self._columns
        for pair, a, b in self._pairs():
            for metric, values in columns.values.items():
                yield compare_values(pair, metric, values[a], values[b], self._labels)
            if columns.counts is not None and columns.pooled:
                compare = compare_matchers if columns.are_events else compare_counts
                yield from compare(pair, columns.pooled, columns.counts[a], columns.counts[b], self._labels)

    def posteriors(self) -> Iterator[Row]:
        """Return rows of compare_posteriors."""
        counts = self._columns.counts
        if counts is None or not self._columns.has_posteriors or "bayes" not in self._params.tests:
            return
        for pair, a, b in self._pairs():
            n_units = len(complete(counts[a], counts[b])[0])
            of_clusters = complete(counts[a], counts[b], self._labels)
            yield from posterior_rows(pair, self._columns.pooled, *of_clusters, (n_units, n_units))


class _SeparateUnits:
    """Units that belong to one system each, as arrays of every system."""

    def __init__(self, params: CompareParameters, frame: pl.DataFrame) -> None:
        self._params = params
        self._systems = frame["system"].unique().sort(nulls_last=True)
        self._sizes: list[int] = []
        self._columns: list[_Columns] = []
        self._labels: list[Integers | None] = []
        self._in_time = IN_ORDER in frame.columns
        frame = _in_order(frame, ["unit"])
        for system in self._systems:
            units = frame.filter(pl.col("system").eq_missing(pl.lit(system, dtype=frame.schema["system"])))
            columns = {name: _floats(units[name]) for name in units.columns if name.startswith((METRIC, COUNT))}
            self._sizes.append(units.height)
            self._columns.append(_Columns.of(params, columns))
            self._labels.append(_labels(units, params) if params.is_clustered else None)

    def _pairs(self) -> Iterator[tuple[PairOfSystems, int, int]]:
        for a, b in pairs_of(self._systems.to_list(), self._params.baseline):
            n_units = self._sizes[a] + self._sizes[b]
            yield PairOfSystems(self._params, (self._systems[a], self._systems[b]), n_units, self._in_time), a, b

    def compared(self) -> Iterator[ComparedMetric]:
        """Return every metric of every pair of systems."""
        for pair, a, b in self._pairs():
            first, second = self._columns[a], self._columns[b]
            of_a, of_b = self._labels[a], self._labels[b]
            labels = None if of_a is None or of_b is None else (of_a, of_b)
            for metric, values in first.values.items():
                yield compare_unpaired_values(pair, metric, values, second.values[metric], labels)
            if first.counts is not None and first.pooled:
                compare = compare_unpaired_matchers if first.are_events else compare_unpaired_counts
                yield from compare(pair, first.pooled, *self._counts(a, b))

    def posteriors(self) -> Iterator[Row]:
        """Return rows of compare_posteriors."""
        if "bayes" not in self._params.tests:
            return
        for pair, a, b in self._pairs():
            if self._columns[a].has_posteriors:
                yield from posterior_rows(pair, self._columns[a].pooled, *self._counts(a, b))

    def _counts(self, a: int, b: int) -> tuple[Floats, Floats, tuple[int, int]]:
        """Complete counts of the units of two systems, or of their clusters, and the numbers of such units."""
        (first, n_a), (second, n_b) = (_complete(self._columns[each].counts, self._labels[each]) for each in (a, b))
        return first, second, (n_a, n_b)


def _complete(counts: Floats | None, labels: Integers | None) -> tuple[Floats, int]:
    counts = np.zeros((0, 0)) if counts is None else counts
    is_complete = ~np.isnan(counts).any(axis=1)
    used = counts[is_complete]
    return used if labels is None else Clusters.of(labels[is_complete]).sums(used), len(used)


def _labels(frame: pl.DataFrame, params: CompareParameters) -> Integers:
    """The cluster of every row, as a number; clusters in time have rising ones."""
    cluster = str(params.cluster_column)
    if IN_ORDER not in frame.columns:
        return frame[cluster].rank("dense").cast(pl.Int64).to_numpy()
    placed = pl.struct(pl.col(IN_ORDER).min().over(cluster), cluster).rank("dense").cast(pl.Int64)
    return frame.select(placed.alias("_place"))["_place"].to_numpy()


def _in_order(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The rows in the order of time of their units, if they have one; the rows of a unit stand together."""
    if IN_ORDER not in frame.columns:
        return frame
    first = pl.col(IN_ORDER).min().over(keys)
    return frame.sort(first, *keys, nulls_last=True, maintain_order=True)
