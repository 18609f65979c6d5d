"""Two systems on the same units: the rows of one pair in the result tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.metrics import posteriors
from pipeline.metrics.comparison import paired
from pipeline.metrics.comparison.bootstrap_t import bootstrap_t, skewness
from pipeline.metrics.comparison.paired_tests import (
    PairedT,
    differences,
    paired_t,
    pooled_randomization_tests,
    randomization_test,
    sign_test,
    wilcoxon_signed_rank,
    win_tie_loss,
)
from pipeline.metrics.comparison.pooled import Errors, effective_counts, pooled_ratios, standard_errors
from pipeline.metrics.comparison.significance import minimum_detectable_difference
from pipeline.metrics.uncertainty.marks import quality_of_events, quality_of_sizes
from pipeline.metrics.uncertainty.qualities import (
    FEWEST_CLUSTERS,
    FEWEST_EVENTS,
    INTERVAL_QUALITY,
    UNITS_PER_SQUARED_SKEWNESS,
    worst,
)
from pipeline.stages.compare.contract import EVENT_COUNTS, HYPOTHESES, POOLED_TESTS, SYMMETRIC_EVENTS
from pipeline.tables.ratios import RATIOS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.metrics.comparison.paired_tests import PairedTest
    from pipeline.metrics.comparison.pooled import EffectiveCounts
    from pipeline.metrics.uncertainty.jackknife import Floats
    from pipeline.metrics.uncertainty.qualities import Quality
    from pipeline.stages.compare.contract import CompareParameters, Test

Row = dict[str, Any]
POWER = 0.8
_NO_ERROR = Errors(np.full(1, np.nan), np.full(1, np.nan))


@dataclass(frozen=True)
class Pair:
    """What is the same in all rows of a pair and metric.

    Attributes:
        params: The parameters of the stage.
        systems: Names of the two.
        n_known: Units that at least one of the two has.
    """

    params: CompareParameters
    systems: tuple[object, object]
    n_known: int

    def _head(self, metric: str, n_units: int) -> Row:
        a, b = self.systems
        head = {"metric": metric, "system_a": a, "system_b": b}
        return head | {"n_units": n_units, "n_dropped": self.n_known - n_units}

    def _detectable(self, deviation: float, n_units: int) -> float:
        level = 1 - self.params.confidence
        if level >= POWER or not deviation > 0:
            return math.nan
        return minimum_detectable_difference(deviation, n_units, power=POWER, significance=level)

    def compare_values(self, metric: str, a: Floats, b: Floats) -> Iterator[Row]:
        """Tests of the mean of one value per unit.

        Args:
            metric: Its name.
            a: Values of the first system; nan where it has none.
            b: The same of the other, the same units in the same order.
        """
        both = ~(np.isnan(a) | np.isnan(b))
        a, b = a[both], b[both]
        student = paired_t(a, b, confidence=self.params.confidence)
        deviation = float((a - b).std(ddof=1)) if len(a) > 1 and differences(a, b).any() else math.nan
        wins, ties, losses = win_tie_loss(a, b)
        shared = self._head(metric, len(a)) | {
            "mean_a": student.mean_a,
            "mean_b": student.mean_b,
            "difference": student.difference,
            "difference_lower": student.lower,
            "difference_upper": student.upper,
            "effect_size": student.effect_size,
            "skewness": skewness(differences(a, b)),
            "wins_a": wins,
            "ties": ties,
            "wins_b": losses,
            "minimum_detectable_difference": self._detectable(deviation, len(a)),
            "undefined": _undefined(a, b),
        }
        for test, compare in self._tests_of_means(student, a, b):
            result = compare()
            row = shared | {"test": test, "hypothesis": HYPOTHESES[test]}
            if isinstance(result, PairedT):
                row |= {"difference_lower": result.lower, "difference_upper": result.upper}
            row[INTERVAL_QUALITY] = _quality_of_means(row, by_bootstrap=test == "bootstrap_t")
            yield row | {"statistic": result.statistic, "p_value": result.p_value}

    def _tests_of_means(
        self, student: PairedT, a: Floats, b: Floats
    ) -> Iterator[tuple[Test, Callable[[], PairedTest]]]:
        """The tests of one value per unit that are asked for, in the order of the parameters."""
        resamples, seed, confidence = self.params.resamples, self.params.seed, self.params.confidence
        tests: dict[Test, Callable[[], PairedTest]] = {
            "paired_t": lambda: student,
            "bootstrap_t": lambda: bootstrap_t(a, b, confidence=confidence, resamples=resamples, seed=seed),
            "wilcoxon": lambda: wilcoxon_signed_rank(a, b),
            "sign": lambda: sign_test(a, b),
            "randomization": lambda: randomization_test(a, b, resamples=resamples, seed=seed),
        }
        return ((test, tests[test]) for test in self.params.tests if test in tests)

    def compare_counts(self, names: tuple[str, ...], a: Floats, b: Floats) -> Iterator[Row]:
        """Randomization tests of precision, recall and F1 of all units' counts.

        Args:
            names: The ratios that are wanted, as metrics.
            a: tp, fp and fn of the first system, shape (U, 3); nan where it has none.
            b: The same of the other.
        """
        a, b = _complete(a, b)
        errors = standard_errors(a, b)
        ratios = pooled_ratios(a.sum(axis=0)), pooled_ratios(b.sum(axis=0))
        p_values = {"jackknife_t": dict(zip(RATIOS, errors.p_values(ratios[0] - ratios[1]), strict=True))}
        if "randomization" in self.params.tests:
            swapped = pooled_randomization_tests(a, b, resamples=self.params.resamples, seed=self.params.seed)
            p_values["randomization"] = {name: test.p_value for name, test in swapped.items()}
        for number, ratio in enumerate(RATIOS):
            if f"pooled_{ratio}" in names:
                error = Errors(errors.error[[number]], errors.degrees[[number]])
                shared = self._pooled(f"pooled_{ratio}", len(a), ratios[0][number], ratios[1][number], error)
                for test in self._pooled_tests():
                    row = {"test": test, "hypothesis": HYPOTHESES[test], "p_value": float(p_values[test][ratio])}
                    yield shared | row | _quality_of_counts(shared, a + b, ratio)

    def compare_matchers(self, names: tuple[str, ...], a: Floats, b: Floats) -> Iterator[Row]:
        """The same of matchers without labels, from counts before and after events; see `metrics.comparison.paired`.

        Args:
            names: The ratios that are wanted, as metrics.
            a: The counts of the table of events of the first matcher, shape (U, 6); nan where it has none.
            b: The same of the other.
        """
        a, b = _complete(a, b)
        ratios = paired.paired_ratios(_events(a), _events(b)) if len(a) > 1 else {}
        for ratio in RATIOS:
            if f"pooled_{ratio}" not in names:
                continue
            result = ratios.get(ratio)
            values = (
                (math.nan, math.nan, _NO_ERROR) if result is None else (result.value_a, result.value_b, result.errors)
            )
            shared = self._pooled(f"pooled_{ratio}", len(a), *values)
            for test in self._pooled_tests():
                row = {"test": test, "hypothesis": _hypothesis_of_events(test), "p_value": math.nan}
                if result is not None:
                    flips = test == "randomization"
                    seed, resamples = self.params.seed, self.params.resamples
                    row["p_value"] = result.flip_p_value(resamples, seed) if flips else result.t_p_value()
                yield shared | row | _quality_of_matchers(shared, a + b)

    def _pooled_tests(self) -> Iterator[Test]:
        return (test for test in self.params.tests if test in POOLED_TESTS)

    def _pooled(self, metric: str, n_units: int, a: float, b: float, errors: Errors) -> Row:
        """What all tests of a ratio of all counts share."""
        error = float(errors.error[0])
        half = float(errors.half_width(self.params.confidence)[0]) if n_units > 1 else math.nan
        undefined = "one_unit" if n_units == 1 else None if n_units else "no_unit"
        if undefined is None:
            undefined = "undefined_ratio" if math.isnan(a - b) else None
        if undefined is None and math.isnan(error):
            undefined = "one_unit_decides"
        return self._head(metric, n_units) | {
            "mean_a": float(a),
            "mean_b": float(b),
            "difference": float(a - b),
            "difference_lower": float(a - b - half),
            "difference_upper": float(a - b + half),
            "minimum_detectable_difference": self._detectable(error * math.sqrt(n_units), n_units),
            "undefined": undefined,
        }

    def posterior_rows(self, names: tuple[str, ...], a: Floats, b: Floats) -> Iterator[Row]:
        """Posteriors of precision, recall and F1 of all units' counts, and which system is better.

        Args:
            names: The ratios that are wanted, as metrics.
            a: tp, fp and fn of the first system, shape (U, 3); nan where it has none.
            b: The same of the other.
        """
        a, b = _complete(a, b)
        for ratio in RATIOS:
            if f"pooled_{ratio}" not in names or not len(a):
                continue
            of_a, of_b = (_posterior(ratio, counts, self.params) for counts in (a, b))
            row = self._head(f"pooled_{ratio}", len(a))
            for side, (posterior, counts) in (("a", of_a), ("b", of_b)):
                lower, upper = posterior.interval(self.params.confidence)
                row |= {f"mean_{side}": float(posterior.mean())}
                row |= {f"mean_{side}_lower": float(lower), f"mean_{side}_upper": float(upper)}
                row |= {f"design_effect_{side}": counts.design_effect, f"counts_{side}": counts.used}
            row[INTERVAL_QUALITY] = worst(_quality_of_ratio(ratio, counts) for counts in (a, b))
            yield row | {"probability_a_better": float(posteriors.probability_greater(of_a[0], of_b[0]))}


def _posterior(
    ratio: str, counts: Floats, params: CompareParameters
) -> tuple[posteriors.BetaPosterior, EffectiveCounts]:
    """Posterior of a ratio from what its counts are worth, and these."""
    worth = effective_counts(*_hits_and_misses(ratio, counts), params.confidence)
    if ratio == "f1":
        return posteriors.f1_posterior(worth.hits, worth.misses, 0.0, params.prior), worth
    return posteriors.precision_posterior(worth.hits, worth.misses, params.prior), worth


def _quality_of_means(row: Row, *, by_bootstrap: bool) -> Quality | None:
    """How far the interval of a mean difference can be trusted; every unit is a cluster, and units that tie say little.

    Args:
        row: With the limits, the skewness of the differences, and wins, ties and losses.
        by_bootstrap: Whether the limits allow for skewness.
    """
    if not math.isfinite(row["difference_lower"]):
        return None
    number, skewed = row["n_units"], row["skewness"]
    is_skewed = not by_bootstrap and number < UNITS_PER_SQUARED_SKEWNESS * skewed**2
    few = row["wins_a"] + row["wins_b"] < FEWEST_EVENTS
    sizes: Quality = "few_clusters" if number < FEWEST_CLUSTERS else "good"
    return worst([sizes, "skewed" if is_skewed else None, "few_events_of_interest" if few else None])


def _quality_of_counts(shared: Row, counts: Floats, ratio: str) -> dict[str, Quality | None]:
    """How far the interval of a difference of pooled ratios can be trusted, from the counts of both systems."""
    if not math.isfinite(shared["difference_lower"]):
        return {INTERVAL_QUALITY: None}
    return {INTERVAL_QUALITY: _quality_of_ratio(ratio, counts)}


def _quality_of_ratio(ratio: str, counts: Floats) -> Quality | None:
    """How far an interval of a pooled ratio can be trusted, from tp, fp and fn of every unit, shape (U, 3)."""
    hits, misses = _hits_and_misses(ratio, counts)
    return worst([quality_of_sizes(hits + misses), quality_of_events(hits.sum(), misses.sum())])


def _quality_of_matchers(shared: Row, counts: Floats) -> dict[str, Quality | None]:
    """The same of matchers without labels: events are the clusters, and their matches the sizes."""
    if not math.isfinite(shared["difference_lower"]):
        return {INTERVAL_QUALITY: None}
    before, after = (counts[:, EVENT_COUNTS.index(name)] for name in ("m_before", "m_after"))
    quality = worst([quality_of_sizes(before + after), quality_of_events(before.sum(), after.sum())])
    return {INTERVAL_QUALITY: quality}


def _hits_and_misses(ratio: str, counts: Floats) -> tuple[Floats, Floats]:
    """The counts of every unit that a ratio weighs against each other."""
    tp, fp, fn = np.moveaxis(counts, -1, 0)
    return tp, {"precision": fp, "recall": fn, "f1": fp + fn}[ratio]


def _hypothesis_of_events(test: Test) -> str:
    return SYMMETRIC_EVENTS if test == "randomization" else HYPOTHESES[test]


def _complete(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The units of which both have all counts."""
    both = ~(np.isnan(a) | np.isnan(b)).any(axis=1)
    return a[both], b[both]


def _events(counts: Floats) -> pl.DataFrame:
    columns = {name: pl.Series(counts[:, number], dtype=pl.Int64) for number, name in enumerate(paired.EVENT_COUNTS)}
    return pl.DataFrame({"event_id": np.arange(len(counts)), **columns})


def _undefined(a: Floats, b: Floats) -> str | None:
    if len(a) < 2:  # noqa: PLR2004 - a spread needs two
        return "one_unit" if len(a) else "no_unit"
    gap = differences(a, b)
    if (gap == gap[0]).all():
        return "constant_difference" if gap[0] else "no_difference"
    return None
