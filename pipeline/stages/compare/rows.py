"""Rows of the tables of compare: tests and their marks, claims with a margin, posteriors; and what they say."""

from __future__ import annotations

import math
from dataclasses import field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import polars as pl

from ...base.columns import RATIOS
from ...base.records import dataclass
from ...base.schemas import GROUPING, TOTAL, grouping_columns
from ...base.visible_text import cleaned
from ...metrics import posteriors
from ...metrics.comparison.pooled import effective_counts, pooled_ratios
from ...metrics.comparison.significance import adjust_p_values, claims_within, detectable_difference, level_of_claims
from ...metrics.uncertainty.clusters import may_neighbours_be_alike
from ...metrics.uncertainty.jackknife import leave_one_out
from ...metrics.uncertainty.limits import (
    FEWEST_CLUSTERS,
    FEWEST_EVENTS,
    INTERVAL_QUALITY,
    N_CLUSTERS,
    UNITS_PER_SQUARED_SKEWNESS,
    quality_of_events,
    quality_of_sizes,
    worst,
)
from ..stage import DOUBT, doubt, number, of_group
from .contract import EVENT_COUNTS, MARKS, POOLED, Test

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from ...metrics.comparison.pooled import Clusters, EffectiveCounts, Inference, Ratio, Student
    from ...metrics.comparison.significance import Claim
    from ...metrics.uncertainty.jackknife import Floats
    from ...metrics.uncertainty.limits import Quality
    from .contract import CompareParameters


Compared = Literal["mean", "contribution", "counts", "events"]  # values, contributions, ratios of counts, around events

CELLS = ("tp", "fp", "fn")

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
    """The tests that fit what is compared, the one that gives the interval first."""
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
    """The null hypothesis of a test in words."""
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

    It is told from what units contribute to a number, in their order, shape (U,), of one or several systems.
    """
    is_alike = any(may_neighbours_be_alike(contributions[:, None]) for contributions in in_time)
    return "correlated_days" if is_alike else None


def jackknifed(ratio: str, systems: Sequence[Floats]) -> list[Floats]:
    """A pooled ratio of every system without each unit in turn, shape (U,); of a single unit nothing."""
    number = list(RATIOS).index(ratio)
    return [pooled_ratios(leave_one_out(counts))[:, number] for counts in systems if len(counts) > 1]


def quality_of_pairs(
    row: Row, gaps: Floats, clusters: Clusters | None = None, *, in_time: bool, by_bootstrap: bool
) -> Quality | None:
    """How far the interval of a mean difference can be trusted; units that tie say little.

    Gaps, shape (U,), are the differences within units, or what clusters contribute to the difference.
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

    Systems are tp, fp and fn that decide together, shape (U, 3): both added where they have the same units, else each
    by itself.
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
    """The same of matchers without labels: events, shape (U, 6), are the clusters, and their matches the sizes."""

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


# What the rows of a pair of systems share, paired or not: how one metric of it becomes rows of the result tables.


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
    """The common part of all rows of a pair.

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
        """The columns that say what is compared, on how many units, of each system if these differ, and clusters."""
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
    """Claims of one metric of one pair, without `p_adjusted` and `holds`; no row where the metric has no margin."""
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
    """Posteriors of the named ratios of all units' counts, and which system is better.

    Counts are tp, fp and fn of so many units, or of their clusters, the same ones if the stage pairs them, shape (A,
    3).
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


# What is known of the numbers of systems beside their units: the difference of numbers that are far off is so, too.


def marked(row: Row, params: CompareParameters) -> Row:
    """A row about two systems, with the marks of either; a row without limits has none."""
    if row[INTERVAL_QUALITY] is None:
        return row
    systems = {row["system_a"], row["system_b"], *(params.of if len(params.of) == 1 else ())}
    stages = {mark: getattr(params, key) for key, mark in MARKS.items()}
    marks = [mark for mark, names in stages.items() if not systems.isdisjoint(names)]
    return row | {INTERVAL_QUALITY: worst([row[INTERVAL_QUALITY], *marks])}


# What rows say in plain words: of the largest gap between systems, and of claims within a margin.


MAIN = "pooled_f1"  # the metric that is told first
LEVEL = 0.05  # of the tests, as in the sentence of the summary
MOST_GAPS, MOST_CLAIMS = 2, 3  # that are told
_CLAIMS = ("equivalent", "a_not_worse", "b_not_worse")  # the strongest first


def system_text(system: object) -> str:
    """A system or a metric for people, on one line; texts that would be read as something else are in double quotes."""
    if system in {"", "null"}:
        return f'"{system}"'
    return "null" if system is None else cleaned(str(system), layout="")


def different_units(table: pl.DataFrame) -> pl.DataFrame:
    """The rows of a table that compare systems with different units."""
    return table.filter(pl.col("n_units") == pl.col("n_units_a") + pl.col("n_units_b"), pl.col("n_units") > 0)


def has_different_units(row: Mapping[str, Any]) -> bool:
    """Whether a row of a table is one of these; earlier versions, whose units were all shared, do not say."""
    counts = row["n_units_a"], row["n_units_b"]
    return bool(None not in counts and 0 < row["n_units"] == sum(counts))


def is_unadjusted(shown: pl.DataFrame) -> bool:
    """Whether p-values are not adjusted for their number."""
    return set(shown["correction"]) == {"none"}


def key_of_pair(row: Mapping[str, Any]) -> tuple[object, ...]:
    """The key of a pair, metric and group."""
    names = grouping_columns(list(row))
    return (row[GROUPING.name], *(row[name] for name in names), row["metric"], row["system_a"], row["system_b"])


def claims_of_pairs(margins: pl.DataFrame) -> dict[tuple[object, ...], dict[str, Row]]:
    """The rows of one test of every pair and metric of every group, by claim."""
    claims: dict[tuple[object, ...], dict[str, Row]] = {}
    for row in margins.iter_rows(named=True):
        claims.setdefault(key_of_pair(row), {})[row["claim"]] = row
    return claims


def gap_sentences(shown: pl.DataFrame) -> Iterator[str]:
    """Say between which systems the largest gap of every metric is, of one test, where systems have different units."""
    gaps = largest_gaps(shown)
    for row in gaps[:MOST_GAPS]:
        yield of_group(row, _gap(row, shown))
    n_further = len(gaps) - MOST_GAPS
    if n_further > 0:
        yield f"The largest gaps in {n_further:,} further metric{'s' if n_further > 1 else ''} are in the tables."


def largest_gaps(shown: pl.DataFrame) -> list[dict[str, Any]]:
    """The row of the largest difference of every metric, of one test and the total or else the first group."""
    different = different_units(shown)
    total = different.filter(pl.col(GROUPING.name) == TOTAL)
    groups = [GROUPING.name, *grouping_columns(shown.columns)]
    chosen = different.join(different.head(1).select(groups), on=groups, how="semi", nulls_equal=True)
    rows = _with_positives(chosen if total.is_empty() else total)
    largest = rows.filter(pl.col("difference").is_not_null()).sort(
        pl.col("difference").abs(), descending=True, maintain_order=True
    )
    of_metrics = largest.unique("metric", keep="first", maintain_order=True)
    return of_metrics.sort(pl.col("metric") != MAIN, "metric").to_dicts()


def without_positives(tests: pl.DataFrame) -> list[object]:
    """The systems of which nothing is positive: their recall is NULL, and their precision and F1 can only be 0."""
    pooled = tests.filter(pl.col("metric").is_in(POOLED))
    sides = [
        pooled.select(pl.col(f"system_{side}").alias("system"), "metric", pl.col(f"mean_{side}").alias("mean"))
        for side in "ab"
    ]
    systems = pl.concat(sides)
    has_none = ((pl.col("metric") == "pooled_recall") & pl.col("mean").is_null()).any() & (pl.col("mean") == 0).any()
    return systems.group_by("system").agg(has_none.alias("has_none")).filter("has_none")["system"].sort().to_list()


def _with_positives(tests: pl.DataFrame) -> pl.DataFrame:
    """The rows without ratios of counts of systems of which nothing is positive."""
    absent = without_positives(tests)
    is_absent = pl.col("system_a").is_in(absent, nulls_equal=True) | pl.col("system_b").is_in(absent, nulls_equal=True)
    return tests.filter(~(pl.col("metric").is_in(POOLED) & is_absent)) if absent else tests


def _gap(row: Row, shown: pl.DataFrame) -> str:
    """One gap in words: who has the highest and who the lowest value."""
    names = (GROUPING.name, *grouping_columns(shown.columns), "metric")
    rows = _with_positives(shown.filter(pl.col(name).eq_missing(pl.lit(row[name])) for name in names[:-1]))
    rows = rows.filter(pl.col("metric") == row["metric"])
    systems = pl.concat([rows["system_a"], rows["system_b"]]).unique()
    against = rows["system_b"].unique()
    is_from_baseline = against.len() == 1 and systems.len() > 2  # noqa: PLR2004 - else it is a single pair
    of = f" from {system_text(against[0])}" if is_from_baseline else f" among {systems.len():,} systems"
    sides = [(row["mean_a"], row["system_a"]), (row["mean_b"], row["system_b"])]
    (high, best), (low, worst) = sides if row["difference"] >= 0 else sides[::-1]
    words = f"{system_text(best)} has {number(high)}, {system_text(worst)} {number(low)}"
    ratio = f", {number(low / high)} times as much" if row["ratio"] is not None and low > 0 else ""
    what = f"{'difference' if is_from_baseline else 'gap'} in {system_text(row['metric'])}"
    head = f"The largest {what}{of}" if rows.height > 1 else f"The {what}"
    largest = f"{head} is {number(abs(row['difference']))}: {words}{ratio} ({_chance(row, rows)})."
    return f"{largest}{_clearest(row, rows)}"


def _clearest(largest: Row, rows: pl.DataFrame) -> str:
    """The difference with the smallest p-value, if that is not the largest one; empty if none is below 5%."""
    clear = rows.filter(pl.col("p_adjusted") < LEVEL).sort("p_adjusted", maintain_order=True).head(1).to_dicts()
    if not clear or is_unadjusted(rows) or key_of_pair(clear[0]) == key_of_pair(largest):
        return ""
    (row,) = clear
    a, b = system_text(row["system_a"]), system_text(row["system_b"])
    return f" The clearest is between {a} and {b}: {number(row['difference'])} ({_chance(row, rows)})."


def _chance(row: Row, rows: pl.DataFrame) -> str:
    """The p-value of the largest of some differences, which was chosen among them."""
    if row["p_adjusted"] is None:
        return f"no p-value: {row['undefined'] or 'it has no test'}"
    if is_unadjusted(rows) and rows.height > 1:
        return "no p-value, as those of the largest difference need a correction"
    return f"adjusted p = {row['p_adjusted']:.2g} by {row['test']}"


def margin_sentences(margins: pl.DataFrame) -> Iterator[str]:
    """Say which systems are shown not to be worse than others, or equivalent, within the margin, by one test."""
    pairs = claims_of_pairs(margins)
    shown = [claim for claims in pairs.values() if (claim := strongest(claims)) is not None]
    n_open, of = len(pairs) - len(shown), f"{len(pairs):,} pairs and metrics" if len(pairs) > 1 else "the pair"
    if len(shown) <= MOST_CLAIMS:
        yield from (of_group(row, claim_sentence(row)) for row in shown)
    else:
        yield f"Of {of}, {len(shown):,} are shown not to be worse, or to be equivalent, within the margin."
    if n_open and len(pairs) > 1:
        yield f"Nothing is shown of {n_open:,} of the {of}, which is no proof that they differ."
    elif n_open:
        yield "Nothing is shown of the pair within the margin, which is no proof that the two differ."


def strongest(claims: Mapping[str, Row]) -> Row | None:
    """The strongest claim that holds; None: none does."""
    return next((claims[name] for name in _CLAIMS if name in claims and claims[name]["holds"]), None)


def claim_sentence(row: Row) -> str:
    """One claim that holds, in words."""
    a, b = system_text(row["system_a"]), system_text(row["system_b"])
    metric, margin = system_text(row["metric"]), number(row["margin"])
    limits = ""
    if row["interval_lower"] is not None and row["interval_upper"] is not None:
        level = f"{100 * row['interval_confidence']:.10g}%"
        limits = f"{level} interval {number(row['interval_lower'])} to {number(row['interval_upper'])}"
        limits += " (doubtful)" if doubt(row) == DOUBT else ""
    evidence = "; ".join(text for text in (limits, f"adjusted p = {row['p_adjusted']:.2g}") if text)
    if row["claim"] == "equivalent":
        return f"In {metric}, {a} and {b} are equivalent within {margin} ({evidence})."
    better, worse = (a, b) if row["claim"] == "a_not_worse" else (b, a)
    return f"In {metric}, {better} is not worse than {worse} by more than {margin} ({evidence})."
