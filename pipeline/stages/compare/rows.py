"""What the rows of a pair of systems share, paired or not: how one metric of it becomes rows of the result tables."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ...metrics.comparison.significance import detectable_difference
from ...metrics.uncertainty.qualities import INTERVAL_QUALITY, N_CLUSTERS
from ...records import dataclass
from .fitting import hypothesis

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...metrics.comparison.ratio import Ratio
    from ...metrics.comparison.student import Inference, Student
    from ...metrics.uncertainty.qualities import Quality
    from .contract import CompareParameters
    from .fitting import Compared, Test

Row = dict[str, Any]
POWER = 0.8


@dataclass(frozen=True)
class MadeTest:
    """The outcome of one test.

    Attributes:
        test: Its name.
        statistic: Its statistic; nan where it has none.
        p_value: Two-sided; nan where undefined.
        inference: What its own interval is made from; None: it has none of its own.
    """

    test: Test
    statistic: float
    p_value: float
    inference: Inference | None = None


@dataclass(frozen=True)
class ComparedMetric:
    """One metric of one pair.

    Attributes:
        head: What all its rows share.
        rows: Rows of `compare_tests`, still without `p_adjusted`.
        inferences: What claims within a margin are tested with, by the test that gives it, and how far its interval can
            be trusted.
    """

    head: Row
    rows: list[Row]
    inferences: dict[Test, tuple[Inference, Quality | None]] = field(default_factory=dict)


@dataclass(frozen=True)
class PairOfSystems:
    """What is the same in all rows of a pair.

    Attributes:
        params: The parameters of the stage.
        systems: Names of the two.
        n_known: Units that at least one of the two has.
        in_time: Whether units, or their clusters, follow each other in time, in the order in which they are given.
    """

    params: CompareParameters
    systems: tuple[object, object]
    n_known: int
    in_time: bool = False

    def head(
        self, metric: str, n_units: int, of_each: tuple[int, int] | None = None, *, n_clusters: int | None = None
    ) -> Row:
        """The columns that say what is compared, on how many units.

        Args:
            metric: The metric.
            n_units: Units of the test.
            of_each: Those of each system; None: the same units.
            n_clusters: Clusters that they lie in; None: they are independent.
        """
        a, b = self.systems
        n_a, n_b = of_each or (n_units, n_units)
        return {
            "metric": metric,
            "system_a": a,
            "system_b": b,
            "n_units": n_units,
            "n_units_a": n_a,
            "n_units_b": n_b,
            "n_dropped": self.n_known - n_units,
        } | ({} if n_clusters is None else {N_CLUSTERS: n_clusters})

    def with_difference(self, head: Row, means: tuple[float, float], ratio: Ratio, undefined: str | None) -> Row:
        """The same with the means, their difference and their ratio."""
        lower, upper = ratio.limits(self.params.confidence)
        return head | {
            "mean_a": means[0],
            "mean_b": means[1],
            "difference": means[0] - means[1],
            "ratio": ratio.value,
            "ratio_lower": lower,
            "ratio_upper": upper,
            "undefined": undefined,
        }

    def detectable(self, difference: Student) -> float:
        """The true difference that a t test with this standard error would find with a probability of 0.8."""
        level = 1 - self.params.confidence
        if level >= POWER or not difference.error > 0:
            return math.nan
        return detectable_difference(difference.error, difference.degrees, power=POWER, significance=level)

    def compared(
        self,
        compared: Compared,
        shared: Row,
        base: tuple[Test, Inference],
        tests: Iterable[MadeTest],
        quality: Callable[[Test, Row], Quality | None],
    ) -> ComparedMetric:
        """Put the rows of one metric together.

        Args:
            compared: What kind of metric it is.
            shared: What its rows share.
            base: The interval of the tests that have none of their own, with the test that it is made by.
            tests: The outcomes of the tests.
            quality: How far the interval by a test can be trusted, from a row with its limits.
        """
        rows, inferences = [], {}
        for made in tests:
            row = shared | self._limits(made.inference or base[1])
            row |= {INTERVAL_QUALITY: quality(made.test if made.inference else base[0], row)}
            if made.inference is not None:
                inferences[made.test] = (made.inference, row[INTERVAL_QUALITY])
            words = {
                "test": made.test,
                "hypothesis": hypothesis(made.test, compared, clustered=self.params.is_clustered),
            }
            numbers = {"statistic": made.statistic, "p_value": made.p_value, "correction": self.params.correction}
            rows.append(row | words | numbers)
        if not inferences:
            inferences[base[0]] = base[1], quality(base[0], shared | self._limits(base[1]))
        return ComparedMetric(shared, rows, inferences)

    def _limits(self, inference: Inference) -> Row:
        lower, upper = inference.limits(self.params.confidence)
        return {"difference_lower": lower, "difference_upper": upper}
