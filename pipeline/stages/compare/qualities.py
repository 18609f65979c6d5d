"""Which tests compare knows, what each says, and which of them fit what is compared."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import numpy as np

from ...metrics.comparison.pooled import pooled_ratios
from ...metrics.uncertainty.interval_quality import FEWEST_CLUSTERS, FEWEST_EVENTS, UNITS_PER_SQUARED_SKEWNESS, worst
from ...metrics.uncertainty.jackknife import leave_one_out
from ...metrics.uncertainty.limits import quality_of_events, quality_of_sizes
from ...metrics.uncertainty.serial import may_neighbours_be_alike
from ...tables.columns import RATIOS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...metrics.comparison.clustered import Clusters
    from ...metrics.uncertainty.interval_quality import Quality
    from ...metrics.uncertainty.jackknife import Floats
    from .rows import Row


Test = Literal[
    "paired_t",
    "bootstrap_t",
    "wilcoxon",
    "sign",
    "randomization",
    "jackknife_t",
    "welch_t",
    "permutation",
    "bayes",
]
Compared = Literal["mean", "contribution", "counts", "events"]  # values, contributions, ratios of counts, around events

CELLS = ("tp", "fp", "fn")
EVENT_COUNTS = ("n_before", "n_after", "m_before", "m_after", "m_before_reference", "m_after_reference")
POOLED = tuple(f"pooled_{name}" for name in RATIOS)

# unless the config says otherwise
PAIRED_TESTS: tuple[Test, ...] = ("paired_t", "bootstrap_t", "randomization", "bayes")
UNPAIRED_TESTS: tuple[Test, ...] = ("welch_t", "jackknife_t", "bayes")
NEEDS_PAIRS: tuple[Test, ...] = ("paired_t", "wilcoxon", "sign", "randomization")
NEEDS_GROUPS: tuple[Test, ...] = ("welch_t", "permutation")
WITH_INTERVAL: tuple[Test, ...] = ("paired_t", "bootstrap_t", "jackknife_t", "welch_t")

_PAIRED: dict[Compared, tuple[Test, ...]] = {
    "mean": ("paired_t", "bootstrap_t", "wilcoxon", "sign", "randomization"),
    "contribution": ("paired_t", "bootstrap_t"),
    "counts": ("jackknife_t", "randomization", "bayes"),
    "events": ("jackknife_t", "randomization"),
}
_UNPAIRED: dict[Compared, tuple[Test, ...]] = {
    "mean": ("welch_t", "bootstrap_t", "permutation"),
    "contribution": ("welch_t", "bootstrap_t"),
    "counts": ("jackknife_t", "permutation", "bayes"),
    "events": ("jackknife_t",),
}
_HYPOTHESES: dict[Test, str] = {
    "paired_t": "equal means",
    "bootstrap_t": "equal means",
    "welch_t": "equal means",
    "wilcoxon": "differences symmetric about 0",
    "sign": "median difference 0",
    "randomization": "systems exchangeable within units",
    "permutation": "units exchangeable between systems",
    "jackknife_t": "equal ratios of all counts",
}


def fitting(compared: Compared, *, paired: bool) -> tuple[Test, ...]:
    """The tests that fit, the one that gives the interval first.

    Args:
        compared: What is compared.
        paired: Whether the systems have the same units.
    """
    return (_PAIRED if paired else _UNPAIRED)[compared]


def chosen(tests: Sequence[Test], compared: Compared, *, paired: bool) -> tuple[Test, ...]:
    """Those of some tests that fit and give p-values, in their order."""
    return tuple(test for test in tests if test in fitting(compared, paired=paired) and test != "bayes")


_HYPOTHESES_OF_CLUSTERS: dict[Test, str] = {
    "wilcoxon": "differences of the means of clusters symmetric about 0",
    "sign": "median difference of the means of clusters 0",
    "randomization": "systems exchangeable within clusters",
    "permutation": "clusters exchangeable between systems",
}


def hypothesis(test: Test, compared: Compared, *, clustered: bool = False) -> str:
    """The null hypothesis of a test in words.

    Args:
        test: The test.
        compared: What is compared.
        clustered: Whether units lie in clusters.
    """
    if compared == "contribution":
        return "equal means of contributions"
    if clustered and test in _HYPOTHESES_OF_CLUSTERS and compared != "events":
        return _HYPOTHESES_OF_CLUSTERS[test]
    if compared == "events" and test == "randomization":
        return "contributions of events to the difference symmetric about 0"
    return _HYPOTHESES[test]


# How far the intervals of compare can be trusted.


LARGEST_SKEWNESS = 1 / math.sqrt(UNITS_PER_SQUARED_SKEWNESS)  # of a mean, that Student's t bears
LARGEST_FOR_BOOTSTRAP = 3 * LARGEST_SKEWNESS


def has_interval(row: Row) -> bool:
    """Whether a row has limits of the difference."""
    return math.isfinite(row["difference_lower"])


def quality_of_days(in_time: Sequence[Floats]) -> Quality | None:
    """The mark of limits whose units, or clusters, are alike if they follow each other in time.

    Args:
        in_time: What units contribute to a number, in their order, shape (U,), of one or several systems; none: they
            have no order.
    """
    is_alike = any(may_neighbours_be_alike(contributions[:, None]) for contributions in in_time)
    return "correlated_days" if is_alike else None


def jackknifed(ratio: str, systems: Sequence[Floats]) -> list[Floats]:
    """A pooled ratio of every system without each unit in turn, shape (U,); of a single unit nothing.

    Args:
        ratio: The ratio.
        systems: tp, fp and fn of every unit, shape (U, 3).
    """
    number = list(RATIOS).index(ratio)
    return [pooled_ratios(leave_one_out(counts))[:, number] for counts in systems if len(counts) > 1]


def quality_of_pairs(
    row: Row, gaps: Floats, clusters: Clusters | None = None, *, in_time: bool, by_bootstrap: bool
) -> Quality | None:
    """How far the interval of a mean difference can be trusted; units that tie say little.

    Args:
        row: With the limits, and the skewness of the differences.
        gaps: The differences within units, or what clusters contribute to the difference, shape (U,).
        clusters: Those of the units; None: every unit is one.
        in_time: Whether the differences follow each other in time.
        by_bootstrap: Whether the limits allow for skewness.
    """
    if not has_interval(row):
        return None
    number, skewed = len(gaps), row["skewness"]
    is_skewed = not by_bootstrap and number < UNITS_PER_SQUARED_SKEWNESS * skewed**2
    few = np.count_nonzero(gaps) < FEWEST_EVENTS
    sizes: Quality = "few_clusters" if number < FEWEST_CLUSTERS else "good"
    if clusters is not None:
        sizes = quality_of_sizes(clusters.sizes)
    of_days = quality_of_days([gaps] if in_time else [])
    return worst([sizes, of_days, "skewed" if is_skewed else None, "few_events_of_interest" if few else None])


def quality_of_groups(
    row: Row,
    skewness: float,
    clusters: Sequence[Clusters] = (),
    in_time: Sequence[Floats] = (),
    *,
    by_bootstrap: bool,
    by_rule: bool,
) -> Quality | None:
    """How far the interval of a difference of means of different units can be trusted.

    Args:
        row: With the limits and the numbers of units.
        skewness: Of the difference, with the sizes of both groups added.
        clusters: Those of the units of both groups; none: every unit is one.
        in_time: The values of both groups if they follow each other in time, else none.
        by_bootstrap: Whether the limits allow for skewness.
        by_rule: Whether a group has no spread, and that of the other stands in for it.
    """
    if not has_interval(row):
        return None
    is_few = min(row["n_units_a"], row["n_units_b"]) < FEWEST_CLUSTERS
    is_skewed = skewness > (LARGEST_FOR_BOOTSTRAP if by_bootstrap else LARGEST_SKEWNESS)
    sizes: Quality = "few_clusters" if is_few else "good"
    of_clusters = (quality_of_sizes(each.sizes) for each in clusters)
    marks: tuple[Quality | None, ...] = ("skewed" if is_skewed else None, "at_edge" if by_rule else None)
    return worst([sizes, *of_clusters, quality_of_days(in_time), *marks])


def quality_of_share(ratio: str, counts: Floats) -> Quality | None:
    """How far an interval of a pooled ratio can be trusted, from tp, fp and fn of every unit, shape (U, 3)."""
    hits, misses = hits_and_misses(ratio, counts)
    return worst([quality_of_sizes(hits + misses), quality_of_events(hits.sum(), misses.sum())])


def quality_of_counts(
    ratio: str, systems: Sequence[Floats], in_time: Sequence[Floats] = ()
) -> Callable[[Test, Row], Quality | None]:
    """The same of a difference of pooled ratios, as a function of the test and a row with its limits.

    Args:
        ratio: The ratio.
        systems: tp, fp and fn that decide together, shape (U, 3): both systems added where they have the same units,
            else each by itself.
        in_time: As for `quality_of_days`.
    """

    def quality(_: Test, row: Row) -> Quality | None:
        if not has_interval(row):
            return None
        by_rule = row["ratio"] == 0  # whose upper limit has no spread to rest on
        of_systems = (quality_of_share(ratio, counts) for counts in systems)
        return worst([*of_systems, quality_of_days(in_time), "at_edge" if by_rule else None])

    return quality


def quality_of_matchers(
    systems: Sequence[Floats], in_time: Sequence[Floats] = ()
) -> Callable[[Test, Row], Quality | None]:
    """The same of matchers without labels: events are the clusters, and their matches the sizes.

    Args:
        systems: The counts of the table of events, shape (U, 6), likewise.
        in_time: As for `quality_of_days`.
    """

    def quality(_: Test, row: Row) -> Quality | None:
        return worst([*map(_quality_of_events, systems), quality_of_days(in_time)]) if has_interval(row) else None

    return quality


def _quality_of_events(counts: Floats) -> Quality | None:
    before, after = (counts[:, EVENT_COUNTS.index(name)] for name in ("m_before", "m_after"))
    return worst([quality_of_sizes(before + after), quality_of_events(before.sum(), after.sum())])


def hits_and_misses(ratio: str, counts: Floats) -> tuple[Floats, Floats]:
    """The counts of every unit that a ratio weighs against each other."""
    tp, fp, fn = np.moveaxis(counts, -1, 0)
    return tp, {"precision": fp, "recall": fn, "f1": fp + fn}[ratio]
