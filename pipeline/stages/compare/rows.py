"""What the rows of a pair of systems share, paired or not: how one metric of it becomes rows of the result tables."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING, Any

from ...metrics import posteriors
from ...metrics.comparison.pooled import effective_counts
from ...metrics.comparison.significance import adjust_p_values, claims_within, detectable_difference, level_of_claims
from ...metrics.uncertainty.interval_quality import INTERVAL_QUALITY, N_CLUSTERS, worst
from ...records import dataclass
from ...tables.columns import RATIOS
from ..stage import number
from .qualities import hits_and_misses, hypothesis, jackknifed, quality_of_days, quality_of_share

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from ...metrics.comparison.pooled import EffectiveCounts, Ratio
    from ...metrics.comparison.significance import Claim
    from ...metrics.comparison.student import Inference, Student
    from ...metrics.uncertainty.interval_quality import Quality
    from ...metrics.uncertainty.jackknife import Floats
    from .contract import CompareParameters
    from .qualities import Compared, Test


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


# Rows of compare_margins: claims that one system is not worse than another by more than a margin.


CONTRARY: dict[Claim, str] = {
    "a_not_worse": "a is worse than b by {margin} or more",
    "b_not_worse": "b is worse than a by {margin} or more",
    "equivalent": "a and b differ by {margin} or more",
}
_OF_THE_PAIR = ("metric", "system_a", "system_b", "n_units", "n_units_a", "n_units_b", "n_dropped", "difference")


def margin_rows(params: CompareParameters, compared: ComparedMetric) -> Iterator[Row]:
    """Test the claims of one metric of one pair; no row where the metric has no margin.

    Args:
        params: The parameters of the stage.
        compared: The metric.

    Returns:
        Rows without `p_adjusted` and `holds`.
    """
    head = compared.head
    margin = params.margin_of(head["metric"])
    if margin is None:
        return
    level = level_of_claims(params.confidence)
    for test, (inference, quality) in compared.inferences.items():
        lower, upper = inference.limits(level) if level > 0 else (None, None)
        names = (*_OF_THE_PAIR, "undefined", *([N_CLUSTERS] if N_CLUSTERS in head else []))
        shared = {name: head[name] for name in names} | {
            "interval_lower": lower,
            "interval_upper": upper,
            "interval_confidence": level if level > 0 else None,
            "test": test,
            "margin": float(margin),
            "correction": params.correction,
            INTERVAL_QUALITY: quality,
        }
        is_higher_better = head["metric"] not in params.lower_is_better
        for claim in claims_within(inference, margin, higher_is_better=is_higher_better):
            words = {"claim": claim.claim, "hypothesis": CONTRARY[claim.claim].format(margin=number(float(margin)))}
            yield shared | words | {"statistic": claim.statistic, "p_value": claim.p_value}


def with_decisions(params: CompareParameters, rows: Sequence[Row]) -> list[Row]:
    """The rows of a group with p-values adjusted within claim and test, and whether each claim holds."""
    decided = []
    for key in dict.fromkeys((row["claim"], row["test"]) for row in rows):
        same = [row for row in rows if (row["claim"], row["test"]) == key]
        adjusted = adjust_p_values([row["p_value"] for row in same], params.correction)
        for row, p_adjusted in zip(same, map(float, adjusted), strict=True):
            holds = None if p_adjusted != p_adjusted else p_adjusted <= 1 - params.confidence  # noqa: PLR0124 - nan
            decided.append(row | {"p_adjusted": p_adjusted, "holds": holds})
    return decided


# Rows of compare_posteriors: precision, recall and F1 of two systems, and which is better.


def posterior_rows(
    pair: PairOfSystems, names: tuple[str, ...], a: Floats, b: Floats, n_units: tuple[int, int]
) -> Iterator[Row]:
    """Posteriors of precision, recall and F1 of all units' counts, and which system is better.

    Args:
        pair: The two systems.
        names: The ratios that are wanted, as metrics.
        a: tp, fp and fn of the units of the first system, or of their clusters, shape (A, 3).
        b: The same of the other, shape (B, 3); the same units, if the stage pairs them.
        n_units: Units of both.
    """
    if not (len(a) and len(b)):
        return
    is_paired = pair.params.paired
    n_clusters = (len(a) if is_paired else len(a) + len(b)) if pair.params.is_clustered else None
    numbers = (n_units[0], None) if is_paired else (sum(n_units), n_units)
    for ratio in RATIOS:
        if f"pooled_{ratio}" not in names:
            continue
        of_a, of_b = (_posterior(ratio, counts, pair) for counts in (a, b))
        row = pair.head(f"pooled_{ratio}", *numbers, n_clusters=n_clusters)
        for side, (posterior, counts) in (("a", of_a), ("b", of_b)):
            lower, upper = posterior.interval(pair.params.confidence)
            row |= {f"mean_{side}": float(posterior.mean())}
            row |= {f"mean_{side}_lower": float(lower), f"mean_{side}_upper": float(upper)}
            row |= {f"design_effect_{side}": counts.design_effect, f"counts_{side}": counts.used}
        of_days = quality_of_days(jackknifed(ratio, (a, b)) if pair.in_time else ())
        row[INTERVAL_QUALITY] = worst([*(quality_of_share(ratio, counts) for counts in (a, b)), of_days])
        yield row | {"probability_a_better": float(posteriors.probability_greater(of_a[0], of_b[0]))}


def _posterior(ratio: str, counts: Floats, pair: PairOfSystems) -> tuple[posteriors.BetaPosterior, EffectiveCounts]:
    """Posterior of a ratio from what its counts are worth, and these."""
    params = pair.params
    worth = effective_counts(*hits_and_misses(ratio, counts), params.confidence, in_time=pair.in_time)
    if ratio == "f1":
        return posteriors.f1_posterior(worth.hits, worth.misses, 0.0, params.prior), worth
    return posteriors.precision_posterior(worth.hits, worth.misses, params.prior), worth
