"""Two systems on the same units: the rows of one pair in the result tables."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.metrics.comparison import paired, posteriors
from pipeline.metrics.comparison.paired_tests import (
    differences,
    paired_t,
    pooled_randomization_tests,
    randomization_test,
    sign_test,
    wilcoxon_signed_rank,
    win_tie_loss,
)
from pipeline.metrics.comparison.pooled import standard_errors
from pipeline.metrics.comparison.significance import minimum_detectable_difference
from pipeline.metrics.uncertainty.jackknife import t_quantile
from pipeline.tables.ratios import RATIOS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pipeline.metrics.comparison.paired_tests import PairedTest
    from pipeline.metrics.uncertainty.jackknife import Floats
    from pipeline.stages.compare.contract import CompareParameters

Row = dict[str, Any]
POWER = 0.8


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
            "wins_a": wins,
            "ties": ties,
            "wins_b": losses,
            "minimum_detectable_difference": self._detectable(deviation, len(a)),
            "undefined": _undefined(a, b),
        }
        tests: dict[str, Callable[[], PairedTest]] = {
            "paired_t": lambda: student,
            "wilcoxon": lambda: wilcoxon_signed_rank(a, b),
            "sign": lambda: sign_test(a, b),
            "randomization": lambda: randomization_test(a, b, resamples=self.params.resamples, seed=self.params.seed),
        }
        for test in (name for name in self.params.tests if name in tests):
            result = tests[test]()
            yield shared | {"test": test, "statistic": result.statistic, "p_value": result.p_value}

    def compare_counts(self, names: tuple[str, ...], a: Floats, b: Floats) -> Iterator[Row]:
        """Randomization tests of precision, recall and F1 of all units' counts.

        Args:
            names: The ratios that are wanted, as metrics.
            a: tp, fp and fn of the first system, shape (U, 3); nan where it has none.
            b: The same of the other.
        """
        a, b = _complete(a, b)
        error = standard_errors(a, b)
        tests = pooled_randomization_tests(a, b, resamples=self.params.resamples, seed=self.params.seed)
        for number, ratio in enumerate(RATIOS):
            test = tests[ratio]
            values = (test.mean_a, test.mean_b, float(error[number]), test.p_value)
            if f"pooled_{ratio}" in names:
                yield self._pooled(f"pooled_{ratio}", len(a), *values)

    def compare_matchers(self, names: tuple[str, ...], a: Floats, b: Floats) -> Iterator[Row]:
        """The same of matchers without labels, from counts before and after events; see `metrics.paired`.

        Args:
            names: The ratios that are wanted, as metrics.
            a: The counts of the table of events of the first matcher, shape (U, 6); nan where it has none.
            b: The same of the other.
        """
        a, b = _complete(a, b)
        n_units = len(a)
        if n_units < 2:  # noqa: PLR2004 - a spread needs two
            yield from (self._pooled(name, n_units, *[math.nan] * 4) for name in names)
            return
        frames = [_events(each) for each in (a, b)]
        confidence, flips = self.params.confidence, self.params.resamples
        comparison = paired.compare_matchers(*frames, confidence=confidence, flips=flips, seed=self.params.seed)
        quantile = float(t_quantile(confidence, n_units - 1))
        for row in comparison.iter_rows(named=True):
            numbers = {name: math.nan if value is None else value for name, value in row.items()}
            error = (numbers["difference_upper"] - numbers["difference"]) / quantile
            if f"pooled_{row['metric']}" in names:
                values = (numbers["value_a"], numbers["value_b"], error, numbers["p_value"])
                yield self._pooled(f"pooled_{row['metric']}", n_units, *values)

    def _pooled(self, metric: str, n_units: int, a: float, b: float, error: float, p_value: float) -> Row:
        half = float(t_quantile(self.params.confidence, n_units - 1)) * error if n_units > 1 else math.nan
        undefined = "one_unit" if n_units == 1 else None if n_units else "no_unit"
        if undefined is None:
            undefined = "undefined_ratio" if math.isnan(a - b) else None
        if undefined is None and math.isnan(error):
            undefined = "one_unit_decides"
        return self._head(metric, n_units) | {
            "mean_a": a,
            "mean_b": b,
            "difference": a - b,
            "difference_lower": a - b - half,
            "difference_upper": a - b + half,
            "minimum_detectable_difference": self._detectable(error * math.sqrt(n_units), n_units),
            "undefined": undefined,
            "test": "randomization",
            "p_value": p_value,
        }

    def posterior_rows(self, names: tuple[str, ...], a: Floats, b: Floats) -> Iterator[Row]:
        """Posteriors of precision, recall and F1 of all units' counts, and which system is better.

        Args:
            names: The ratios that are wanted, as metrics.
            a: tp, fp and fn of the first system, shape (U, 3); nan where it has none.
            b: The same of the other.
        """
        a, b = _complete(a, b)
        of_a, of_b = (_posteriors(each.sum(axis=0), self.params.prior) for each in (a, b))
        for ratio in RATIOS:
            if f"pooled_{ratio}" not in names or not len(a):
                continue
            row = self._head(f"pooled_{ratio}", len(a))
            for side, posterior in (("a", of_a[ratio]), ("b", of_b[ratio])):
                lower, upper = posterior.interval(self.params.confidence)
                row |= {f"mean_{side}": float(posterior.mean())}
                row |= {f"mean_{side}_lower": float(lower), f"mean_{side}_upper": float(upper)}
            better = posteriors.probability_greater(of_a[ratio], of_b[ratio])
            yield row | {"probability_a_better": float(better)}


def _posteriors(totals: Floats, prior: float) -> dict[str, posteriors.BetaPosterior]:
    tp, fp, fn = totals
    return {
        "precision": posteriors.precision_posterior(tp, fp, prior),
        "recall": posteriors.recall_posterior(tp, fn, prior),
        "f1": posteriors.f1_posterior(tp, fp, fn, prior),
    }


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
