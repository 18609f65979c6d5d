"""Thresholds as decisions: costs and net benefit, alerts shared out, other prevalences, and other data."""

from __future__ import annotations

import math
from fractions import Fraction
from math import gcd, lcm
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, model_validator

from ...base.records import dataclass
from ..uncertainty.jackknife import covariance, leave_one_out
from ..uncertainty.proportions import Confusion, Weights, intervals_of_clusters, intervals_of_rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats, Limits
    from ..uncertainty.replicates import Resampling

    Ints: TypeAlias = NDArray[np.int64]


MAX_DECIMALS = 9
_MAX_COST = 1e9

_Amount = Annotated[float, Field(ge=-_MAX_COST, le=_MAX_COST)]


def short(value: float) -> str:
    """A number without zeros that say nothing."""
    rounded = f"{value:g}"
    return rounded if float(rounded) == value else repr(value)


class Cost(BaseModel):
    """What a row costs by its outcome, in any unit; a negative cost is a gain.

    Attributes:
        fp: A false positive; more than a true negative.
        fn: A false negative; more than a true positive.
        tp: A true positive.
        tn: A true negative.
    """

    model_config = ConfigDict(defer_build=True, frozen=True, extra="forbid")

    fp: _Amount
    fn: _Amount
    tp: _Amount = 0.0
    tn: _Amount = 0.0

    @model_validator(mode="after")
    def _reasonable(self) -> Cost:
        if self.fp <= self.tn or self.fn <= self.tp:
            message = (
                "a false positive must cost more than a true negative, and a false negative more than a true positive, "
                "for example { fp = 1, fn = 20 }: else it is best to retrieve all rows or none, whatever they score"
            )
            raise ValueError(message)
        if any(round(value, MAX_DECIMALS) != value for value in self.by_outcome):
            message = f"a cost has more than {MAX_DECIMALS} decimals"
            raise ValueError(message)
        return self

    @property
    def by_outcome(self) -> tuple[float, float, float, float]:
        """The costs of a true positive, a false positive, a false negative and a true negative."""
        return self.tp, self.fp, self.fn, self.tn

    @property
    def whole(self) -> tuple[int, int, int, int]:
        """`by_outcome` in the largest unit of which all costs are multiples, so that totals of counts are exact."""
        exact = [Fraction(repr(value)) for value in self.by_outcome]
        denominator = lcm(*(value.denominator for value in exact))
        tp, fp, fn, tn = (value.numerator * (denominator // value.denominator) for value in exact)
        unit = gcd(tp, fp, fn, tn)
        return tp // unit, fp // unit, fn // unit, tn // unit

    @property
    def text(self) -> str:
        """As the column `criterion` has it: `fp:1,fn:20`."""
        further = ((name, value) for name, value in (("tp", self.tp), ("tn", self.tn)) if value)
        return ",".join(f"{name}:{short(value)}" for name, value in (("fp", self.fp), ("fn", self.fn), *further))


# Thresholds that keep a minimum on new data, although they are chosen on the same rows that are counted.
#
# A threshold that is picked because its precision is high looks better than it is. What is promised here holds for
# whatever threshold is chosen among those that pass: with probability `confidence` all of them keep the minimum. Two
# arguments give it without a correction for the number of thresholds, which may be as many as there are scores:
#
# - Recall never rises with the threshold, so there is a strictest threshold that keeps the minimum. The thresholds are
#   tested from the lowest up until a test fails, each at the full level: to pass one that is too strict, the test of
#   the lowest of these must err (closed, fixed-sequence tests: Maurer, Hothorn & Lehmacher 1995).
# - Precision may rise and fall. Its thresholds are tested in sequences from stricter to lower ones, each sequence until
#   a test fails. A sequence starts where a number of rows is retrieved that does not depend on labels: at the fewest
#   rows that could pass, if all were true, at four times as many, and so on. Every sequence has its share of the level
#   (fixed sequences with several starts: Angelopoulos, Bates, Candès, Jordan & Lei 2025, section 4.2).
#
# The tests are one-sided limits, so that a promise is as good as these are for a single threshold.


Bools: TypeAlias = "NDArray[np.bool_]"
Lower: TypeAlias = "Callable[[float], Floats]"  # lower limits at all thresholds, rising, by two-sided confidence

_WIDER = 4  # each sequence starts at so many times the rows of the one before
_MOST_STARTS = 64


def keeps_recall(lower: Lower, minimum: float, confidence: float) -> Bools:
    """Whether each threshold keeps a minimum recall.

    Args:
        lower: Lower limits of recall, shape (K,), at rising thresholds; nan where there is none.
        minimum: The least recall.
        confidence: Of all that pass together, such as 0.95.

    Returns:
        Shape (K,); true up to the first threshold whose limit is below the minimum.
    """
    return np.logical_and.accumulate(lower(2 * confidence - 1) >= minimum)


def keeps_precision(lower: Lower, retrieved: Floats, minimum: float, confidence: float) -> Bools:
    """Whether each threshold keeps a minimum precision, shape (K,).

    Arguments are those of `keeps_recall`, with the rows that each threshold retrieves, which do not rise.
    """
    starts = _starts(retrieved, minimum, 1 - confidence)
    keeps = np.zeros(len(retrieved), dtype=np.bool_)
    if not starts:
        return keeps
    passes = lower(1 - 2 * (1 - confidence) / len(starts)) >= minimum
    for start in starts:
        # from the start down to the first threshold that fails
        run = passes[start::-1]
        length = len(run) if run.all() else int(np.argmin(run))
        keeps[start - length + 1 : start + 1] = True
    return keeps


def _starts(retrieved: Floats, minimum: float, level: float) -> list[int]:
    """Where the sequences of tests of precision start: thresholds by number, the strictest first."""
    most = retrieved.max(initial=0)
    starts: list[int] = []
    for number in range(1, _MOST_STARTS):
        sizes = _fewest(minimum, level / number) * float(_WIDER) ** np.arange(number + 1)
        # the strictest threshold that retrieves so many rows; several sizes may share one
        sizes = sizes[sizes <= most]
        starts = list(dict.fromkeys(int(np.flatnonzero(retrieved >= size)[-1]) for size in sizes))
        if len(starts) <= number:
            break
    return starts


def _fewest(minimum: float, level: float) -> float:
    """The fewest rows that could pass: all true, their exact lower limit is the minimum; infinite for 1."""
    if minimum <= 0:
        return 1.0
    return math.ceil(math.log(level) / math.log(minimum)) if minimum < 1 else math.inf


# What a choice of a threshold gives on data that it was not made on.
#
# The best F-beta of a curve is the highest of many noisy values, and better than what its threshold gives on new
# data. Here the threshold is chosen on the clusters of all folds but one, what it retrieves is counted on that fold,
# and the counts of all folds are pooled (cross-validation: Stone 1974; pooled counts, because ratios of small folds
# are biased: Forman & Scholz 2010). No count then takes part in the choice that it is counted for. The choice is made
# on nine tenths of the data, so the result is a little pessimistic.


Choice: TypeAlias = "Callable[[Sequence[Floats]], Ints]"  # numbers of thresholds, shape (N,), from counts of (N, K)

FOLDS = 10


def by_fold(counts: Sequence[NDArray[Any]], folds: int = FOLDS) -> list[NDArray[Any]]:
    """Additive counts by replicate, each of shape (G, K), added up by fold, shape (F, K): the g-th is in g modulo F.

    There are fewer folds if there are fewer replicates.
    """
    if len(counts[0]) <= folds:
        return list(counts)
    return [np.stack([count[fold::folds].sum(axis=0) for fold in range(folds)]) for count in counts]


def cross_fitted(counts: Sequence[NDArray[Any]], choose: Choice) -> list[Floats]:
    """Counts at thresholds that were chosen without them.

    Args:
        counts: Additive counts, such as tp, fp and fn, each of shape (N, F, K): by group, fold and threshold, with
            F ≥ 2. Folds are independent.
        choose: The numbers of the thresholds that it takes from the totals without a fold, each of shape (N, K); -1:
            none will do.

    Returns:
        The pooled counts, shape (N,) for each of `counts`; nan where some fold is left without a choice.
    """
    sums = [count.sum(axis=1) for count in counts]
    pooled = [np.zeros(len(count)) for count in counts]
    for fold in range(counts[0].shape[1]):  # one after the other, as all at once would take as many times the memory
        held_out = [count[:, fold] for count in counts]
        chosen = choose([total - count for total, count in zip(sums, held_out, strict=True)])
        at_choices = (np.take_along_axis(count, chosen[:, None], axis=1)[:, 0] for count in held_out)
        chosen_counts = (np.where(chosen < 0, np.nan, count) for count in at_choices)
        pooled = [total + count for total, count in zip(pooled, chosen_counts, strict=True)]
    return pooled


def at_choices(count: NDArray[Any], chosen: Ints) -> NDArray[Any]:
    """Counts by replicate at the threshold of its fold, shape (G, 1), from those at all thresholds, shape (G, K).

    The g-th replicate is in fold g modulo F, as in `by_fold`; of each fold the number of its threshold is given.
    """
    return np.take_along_axis(count, chosen[np.arange(len(count)) % len(chosen), None], axis=1)


def split_rows(
    retrieved: Ints, total: int, weights: tuple[Floats, float] | None = None, *, seed: int = 0
) -> tuple[Floats, Floats]:
    """Counts of independent rows, each in a fold at random, as replicates for `cross_fitted`.

    Rows of one bin are alike, so that a multinomial split of its count is a random split of its rows.

    Args:
        retrieved: Rows at or above rising thresholds, shape (K,).
        total: All rows.
        weights: The same of their weights, which rows of one bin then share equally; None: counts are wanted.
        seed: The same seed gives the same folds.

    Returns:
        By fold, of which there are F: what is at or above each threshold, shape (F, K), and all there is, shape (F, 1).
    """
    bins = _bins(retrieved, total)
    split = np.random.default_rng(seed).multinomial(bins, np.full(FOLDS, 1 / FOLDS)).T.astype(np.float64)
    if weights is not None:
        split *= np.divide(_bins(*weights), bins, out=np.zeros(len(bins)), where=bins > 0)
    return split[:, 1:][:, ::-1].cumsum(axis=1)[:, ::-1], split.sum(axis=1, keepdims=True)


def _bins(retrieved: NDArray[Any], total: float) -> NDArray[Any]:
    """Rows that no threshold retrieves, and rows that each threshold retrieves beyond the next higher one."""
    at_or_above = np.concatenate([[total], retrieved, [0]])
    return np.asarray(at_or_above[:-1] - at_or_above[1:])


# The mean of what rows are worth by their outcome: cost per row, and net benefit.
#
# Every row is a true or false positive or negative, and each of the four has a value: what it costs, or for net benefit
# (Vickers & Elkin 2006) 1 for a true positive, minus the odds of the threshold probability for a false positive, and 0.
# The mean over rows lies between the lowest and the highest of these values, so that on that scale it is a share:
# values are its hits and what they lack of the highest its misses. Limits are those of a share (`proportions`) with the
# variance of the mean, and a row that was not observed may have the highest or the lowest value: one miss that costs 20
# false alarms can hide in a sample without any.


_SHARE = "recall"  # of hits, given as true positives, and misses, given as false negatives


@dataclass(frozen=True)
class Payoffs:
    """The worth of a true positive, a false positive, a false negative and a true negative, perhaps by threshold."""

    tp: Floats | float
    fp: Floats | float
    fn: Floats | float
    tn: Floats | float

    @classmethod
    def of_net_benefit(cls, probabilities: Floats) -> Payoffs:
        """Net benefit of retrieving by a threshold probability p below 1: tp / n - fp / n × p / (1 - p)."""
        return cls(1.0, -probabilities / (1 - probabilities), 0.0, 0.0)

    @classmethod
    def beyond_all(cls, probabilities: Floats) -> Payoffs:
        """Net benefit in excess of retrieving every row."""
        return cls(0.0, 0.0, -1.0, probabilities / (1 - probabilities))

    @property
    def values(self) -> tuple[Floats | float, ...]:
        """In the order of `Confusion`."""
        return self.tp, self.fp, self.fn, self.tn

    def at(self, thresholds: slice) -> Payoffs:
        """Those of some of the thresholds."""
        return Payoffs(*(value[thresholds] if isinstance(value, np.ndarray) else value for value in self.values))

    @np.errstate(divide="ignore", invalid="ignore")
    def mean(self, counts: Confusion) -> Floats:
        """The mean over rows, of weights if the counts are; nan without any row."""
        return _total(counts, self.values) / _total(counts, (1.0,) * 4)

    def _range(self) -> tuple[Floats, Floats]:
        """The lowest value, and by how much the highest exceeds it."""
        table = np.stack(np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in self.values)))
        return table.min(axis=0), table.max(axis=0) - table.min(axis=0)

    @np.errstate(divide="ignore", invalid="ignore")
    def limits_of_rows(self, counts: Confusion, weights: Weights | None, confidence: float) -> Limits:
        """Limits of the mean where rows are independent, as for `intervals_of_rows`; nan without any row."""
        low, width = self._range()
        units = [(value - low) / width for value in self.values]
        hits, misses = _total(counts, units), _total(counts, [1 - unit for unit in units])
        share, size = hits / (hits + misses), hits + misses
        squares = counts if weights is None else weights.squares
        variance = _total(squares, [(unit - share) ** 2 for unit in units]) / size**2
        effect = np.where((hits > 0) & (misses > 0), variance * size / (share * (1 - share)), 1.0)
        heaviest = 1.0 if weights is None else np.maximum(weights.positive, weights.negative)
        spread = Weights(_as_share(effect * hits, effect * misses), np.maximum(heaviest, 0.0), 0.0)
        limits = intervals_of_rows(_as_share(hits, misses), spread, confidence, names=[_SHARE])[_SHARE]
        lower, upper = (low + width * limit for limit in limits)
        return lower, upper

    def limits_of_clusters(
        self,
        replicates: Confusion,
        confidence: float,
        *,
        heaviest: tuple[float, float] | None = None,
        crossed: Sequence[Confusion] = (),
        resampling: Resampling | None = None,
    ) -> Limits:
        """Limits of the mean of one group where only replicates, groups of clusters, are independent.

        The arguments are as for `intervals_of_clusters`, the values numbers or of shape (K,), as the limits are.
        """
        low, width = self._range()
        units = [(value - low) / width for value in self.values]
        most = 1.0 if heaviest is None else max(heaviest)
        shares = [
            _as_share(_total(counts, units), _total(counts, [1 - unit for unit in units]), in_time=counts.in_time)
            for counts in (replicates, *crossed)
        ]
        limits = intervals_of_clusters(
            shares[0], confidence, heaviest=(most, most), names=[_SHARE], crossed=shares[1:], resampling=resampling
        )[_SHARE]
        lower, upper = (low + width * limit for limit in limits)
        return lower, upper


def _total(counts: Confusion, values: Sequence[Floats | float]) -> Floats:
    """The sum of values over rows."""
    outcomes = zip(counts.outcomes, values, strict=True)
    return np.asarray(sum(np.asarray(side, np.float64) * value for side, value in outcomes))


def _as_share(hits: Floats, misses: Floats, *, in_time: bool = False) -> Confusion:
    nothing = np.zeros_like(hits)
    return Confusion(hits, nothing, misses, nothing, in_time=in_time)


def of_smaller(first: Limits, second: Limits) -> Limits:
    """Limits of the smaller of two means: both are at least the lower of the lower limits.

    The smaller mean is one of the two, so that it is above its own lower limit, and below both upper ones.
    """
    return np.minimum(first[0], second[0]), np.minimum(first[1], second[1])


# How a number of alerts is shared out over groups so that they hold the most true positives.
#
# Every group is cut at one of its thresholds, or nothing of it is retrieved. With a limited number of alerts that is
# a knapsack with one choice from each group. Where every group's curve is concave, alerts go where the next ones hold
# the most true positives (marginal precision). Whatever the curves are like, the optimum is found exactly, by dynamic
# programming over the number of alerts.


NOTHING = -1  # the choice in a group of which nothing is retrieved
MOST_STEPS = 300_000_000  # alerts × choices of all groups
MOST_CELLS = 50_000_000  # alerts × groups


def allocate(groups: Sequence[tuple[Ints, Ints]], capacity: int) -> list[int] | None:
    """The threshold of every group, so that all together retrieve the most true positives within a capacity.

    Args:
        groups: For every group the rows that each of its thresholds retrieves, and the true positives among them.
        capacity: The most rows to retrieve of all groups.

    Returns:
        The number of a threshold for each group, or `NOTHING`; of several optima one that retrieves the fewest rows.
        None where the search is too large: beyond `MOST_STEPS` or `MOST_CELLS`.
    """
    choices = [_choices(retrieved, hits, capacity) for retrieved, hits in groups]
    most = min(capacity, sum(int(groups[number][0][kept[-1]]) for number, kept in enumerate(choices) if len(kept)))
    if (most + 1) * sum(map(len, choices)) > MOST_STEPS or (most + 1) * len(groups) > MOST_CELLS:
        return None
    best = np.zeros(most + 1, dtype=np.int64)  # most true positives with at most so many alerts
    taken = np.full((len(groups), most + 1), NOTHING, dtype=np.int32)
    for number, (retrieved, hits) in enumerate(groups):
        before = best.copy()
        for threshold in choices[number]:
            alerts, gained = int(retrieved[threshold]), int(hits[threshold])
            with_group = before[: most + 1 - alerts] + gained
            better = with_group > best[alerts:]
            best[alerts:][better] = with_group[better]
            taken[number, alerts:][better] = threshold
    left, allocation = int(np.argmax(best)), [NOTHING] * len(groups)  # the fewest alerts with the most hits
    for number in reversed(range(len(groups))):
        allocation[number] = int(taken[number, left])
        left -= int(groups[number][0][allocation[number]]) if allocation[number] != NOTHING else 0
    return allocation


def _choices(retrieved: Ints, hits: Ints, capacity: int) -> list[int]:
    """The thresholds that may be part of an optimum: within the capacity, and with more hits than any with fewer rows.

    In the order of the rows that they retrieve.
    """
    order = np.lexsort((-hits, retrieved))
    order = order[retrieved[order] <= capacity]
    most = np.maximum.accumulate(np.concatenate([[0], hits[order]]))
    return [int(number) for number in order[hits[order] > most[:-1]]]


# Precision, negative predictive value, F1 and cost where the share of positives is another one.
#
# Recall R and the false positive rate F are shares of one class each. If only the shares of the classes change, and
# each class scores as before (prior shift), they stay, and at the prevalence π precision is R π / (R π + F (1 - π))
# by Bayes' theorem. Its odds are R / F times those of π, the odds of the negative predictive value are (1 - F) / (1 -
# R) times those of 1 - π, and F1 = 2 J / (1 + J) of J = R π / (π + F (1 - π)). Limits of these ratios come from the
# limits of R and F (MOVER-R: Donner & Zou 2012; Newcombe 2016), which are those of the curve; between clusters R and
# F go together, with the correlation of their jackknifed values.


@dataclass(frozen=True)
class Rate:
    """A rate with its limits; arrays of one shape, nan where undefined."""

    value: Floats  # the rate
    lower: Floats  # its lower limit
    upper: Floats  # its upper limit

    @property
    def sides(self) -> tuple[Floats, Floats, Floats]:
        """The rate and its limits."""
        return self.value, self.lower, self.upper

    def of_rest(self) -> Rate:
        """The share of the others, 1 - rate."""
        return Rate(1 - self.value, 1 - self.upper, 1 - self.lower)

    def scaled(self, factor: float, added: float = 0.0) -> Rate:
        """Added + factor × rate, for a factor above 0."""
        return Rate(*(added + factor * side for side in self.sides))


@dataclass(frozen=True)
class Rates:
    """Recall and false positive rate at thresholds."""

    recall: Rate  # share of the positives that is retrieved
    fpr: Rate  # share of the negatives that is
    correlation: Floats  # of the errors of both, of their shape; 0 where rows are independent

    def precision(self, prevalence: float) -> Rate:
        """Share of positives among what is retrieved; nan where nothing is."""
        odds = prevalence / (1 - prevalence)
        return _of_odds(self.recall, self.fpr, odds, self.correlation)

    def negative_predictive_value(self, prevalence: float) -> Rate:
        """Share of negatives among what is not retrieved; nan where everything is."""
        odds = (1 - prevalence) / prevalence
        return _of_odds(self.fpr.of_rest(), self.recall.of_rest(), odds, self.correlation)

    @np.errstate(divide="ignore", invalid="ignore")
    def f1(self, prevalence: float) -> Rate:
        """Harmonic mean of precision and recall."""
        positives, retrieved = self.recall.scaled(prevalence), self.fpr.scaled(1 - prevalence, prevalence)
        lower, upper = _ratio_limits(positives, retrieved, self.correlation)
        sides = (positives.value / retrieved.value, lower, upper)
        value, lower, upper = (2 * side / (1 + side) for side in (np.minimum(side, 1.0) for side in sides))
        return Rate(value, np.minimum(lower, value), np.maximum(upper, value))

    def alert_share(self, prevalence: float) -> Floats:
        """Share of all rows that is retrieved."""
        return self.recall.value * prevalence + self.fpr.value * (1 - prevalence)

    def cost_per_row(self, cost: Cost, prevalence: float) -> Rate:
        """The mean cost, with limits made from the limits of both rates (MOVER: Zou & Donner 2008)."""
        of_hits, of_alarms = (cost.fn - cost.tp) * prevalence, (cost.fp - cost.tn) * (1 - prevalence)
        value = cost.fn * prevalence + cost.tn * (1 - prevalence) - of_hits * self.recall.value
        value = value + of_alarms * self.fpr.value

        def distance(hits: Floats, alarms: Floats) -> Floats:
            """How far a limit lies from the mean if both rates move to a limit: the cost of fewer hits, more alarms."""
            first, second = of_hits * (hits - self.recall.value), of_alarms * (alarms - self.fpr.value)
            square = first**2 + second**2 + 2 * self.correlation * first * second
            return np.asarray(np.sqrt(np.maximum(square, 0.0)))

        return Rate(
            value,
            value - distance(self.recall.upper, self.fpr.lower),
            value + distance(self.recall.lower, self.fpr.upper),
        )


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _of_odds(over: Rate, under: Rate, factor: float, correlation: Floats) -> Rate:
    """The share whose odds are the ratio of two rates times a factor."""
    lower, upper = (factor * limit for limit in _ratio_limits(over, under, correlation))
    value = factor * over.value / (factor * over.value + under.value)
    # infinite odds are a share of 1
    lower, upper = (np.where(np.isinf(odds), 1.0, odds / (1 + odds)) for odds in (lower, upper))
    return Rate(value, np.minimum(lower, value), np.maximum(upper, value))


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _ratio_limits(over: Rate, under: Rate, correlation: Floats) -> Limits:
    """Limits of the ratio of two rates, recovered from the limits of both.

    A ratio θ is inside if over - θ under is nearer to 0 than the distances of both to their limits allow together,
    which gives a quadratic for each limit (Donner & Zou 2012, with the correlation as in Zou & Donner 2008). The upper
    limit is infinite where the denominator may be 0, and both are nan where a rate or one of its limits is.
    """

    def products(of_over: Floats, of_under: Floats) -> tuple[Floats, Floats, Floats]:
        """The coefficients of the quadratic, from the limit of either rate."""
        shared = correlation * (of_over - over.value) * (of_under - under.value)
        return (
            of_under * (2 * under.value - of_under),
            over.value * under.value + shared,
            of_over * (2 * over.value - of_over),
        )

    square, half, constant = products(over.lower, under.upper)
    root = np.sqrt(np.maximum(half**2 - square * constant, 0.0))
    # two forms of one root: in either the terms are added up where they do not cancel
    lower = np.where(half >= 0, constant / (half + root), (half - root) / square)
    square, half, constant = products(over.upper, under.lower)
    upper = (half + np.sqrt(np.maximum(half**2 - square * constant, 0.0))) / square
    defined = ~np.isnan([*over.sides, *under.sides]).any(axis=0)
    lower = np.where(defined, np.nan_to_num(np.maximum(lower, 0.0), nan=0.0), np.nan)
    return lower, np.where(defined, np.where(square > 0, upper, np.inf), np.nan)


@np.errstate(divide="ignore", invalid="ignore")
def correlation_of_rates(clusterings: Sequence[Confusion]) -> Floats:
    """The correlation of the errors of recall and false positive rate between clusters; 0 where one does not vary.

    Counts by replicate have the shape (G, K), G ≥ 2; those of two parents and of their intersections are combined as
    variances are (`clusters.combined`).
    """
    moments = []
    for counts in clusterings:
        tp, fp, fn, tn = map(leave_one_out, counts.outcomes)
        recall, fpr = tp / (tp + fn), fp / (fp + tn)
        moments.append((covariance(recall), covariance(fpr), covariance(recall, fpr)))
    of_recall, of_fpr, shared = moments[0]
    if len(moments) > 1:
        of_recall, of_fpr, shared = (first + second - both for first, second, both in zip(*moments, strict=True))
    return np.asarray(np.clip(np.nan_to_num(shared / np.sqrt(of_recall * of_fpr), posinf=0.0, neginf=0.0), -1.0, 1.0))
