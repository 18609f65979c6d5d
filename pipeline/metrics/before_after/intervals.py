"""Intervals of the before/after estimates: of single thresholds, of all together, and of the reference."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import scipy

from ...base.records import dataclass
from ..uncertainty.jackknife import dispersion, fieller_interval, gamma_interval, leave_one_out, t_quantile, tail
from ..uncertainty.limits import Interval, union
from ..uncertainty.replicates import otherwise, studentised
from .estimates import Sums
from .formulas import LIMITED, ROUNDING, Numbers
from .timelines import spread_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ..uncertainty.clusters import JackknifeSpread
    from ..uncertainty.jackknife import Floats, Limits
    from ..uncertainty.limits import Reason
    from ..uncertainty.replicates import Resampling, Statistic, Studentised, Valued
    from .estimates import Counts, Sides
    from .formulas import Estimate


# The before/after estimates from resampled events: studentised statistics of the bootstrap, for `intervals`.
#
# All statistics are functions of six totals: the matches before and after the event at a threshold and at the
# reference, and the compared pairs before and after it. The false positive rate F and the ratio F / H, which is 1 -
# precision, are taken as logarithms. Recall and F1 are ratios N / D whose denominator may be near 0; what is resampled
# is N - r D with the ratio r of the sample, so that `fieller_interval` with these quantiles gives their limits (Hwang
# 1995).


_Ratio: TypeAlias = "Callable[[_Estimators], tuple[_Form, _Form]]"


@dataclass(frozen=True)
class _Form:
    """A number with its derivatives by the totals, which sums, products, quotients and logarithms carry along.

    Attributes:
        value: The number.
        slopes: Its derivative by each total.
    """

    value: Floats
    slopes: tuple[Floats, ...]

    @classmethod
    def of(cls, totals: Sequence[Floats]) -> list[_Form]:
        """The totals themselves."""
        nothing, unit = np.zeros((1, 1)), np.ones((1, 1))
        return [
            cls(total, tuple(unit if other == number else nothing for other in range(len(totals))))
            for number, total in enumerate(totals)
        ]

    def _with(self, value: Floats, *weighed: tuple[Floats | float, _Form]) -> _Form:
        """Another number, with derivatives that are a weighted sum of the others' (the chain rule)."""
        by_total = zip(*(form.slopes for _, form in weighed), strict=True)
        weights = [weight for weight, _ in weighed]
        return _Form(value, tuple(sum(w * s for w, s in zip(weights, slopes, strict=True)) for slopes in by_total))

    def __add__(self, other: _Form) -> _Form:
        return self._with(self.value + other.value, (1.0, self), (1.0, other))

    def __sub__(self, other: _Form) -> _Form:
        return self._with(self.value - other.value, (1.0, self), (-1.0, other))

    def __mul__(self, other: _Form) -> _Form:
        return self._with(self.value * other.value, (other.value, self), (self.value, other))

    def __truediv__(self, other: _Form) -> _Form:
        quotient = self.value / other.value
        return self._with(quotient, (1 / other.value, self), (-quotient / other.value, other))

    def times(self, number: Floats | float) -> _Form:
        """Multiplied by a constant."""
        return self._with(self.value * number, (number, self))

    def log(self) -> _Form:
        """Its logarithm."""
        return self._with(np.log(self.value), (1 / self.value, self))


@dataclass(frozen=True)
class _Estimators:
    """Numbers of the page with their derivatives.

    Attributes:
        totals: M_b, M_a, N_b and N_a, and at the reference M_b and M_a.
        reference_recall: r0.
    """

    totals: Sequence[_Form]
    reference_recall: float

    @property
    def fpr(self) -> _Form:
        """F = M_b / N_b."""
        return self._number("fpr", self.totals[:2])

    @property
    def tp(self) -> _Form:
        """TP = M_a - F N_a."""
        return self._number("tp_uncorrected", self.totals[:2])

    @property
    def tp_reference(self) -> _Form:
        """TP0."""
        return self._number("tp_uncorrected", self.totals[4:])

    @property
    def gap(self) -> _Form:
        """The difference r0 - F0."""
        of_reference = self._number("fpr", self.totals[4:])
        return _Form(self.reference_recall - of_reference.value, tuple(-slope for slope in of_reference.slopes))

    def _number(self, name: str, matches: Sequence[_Form]) -> _Form:
        """A number that needs no reference, of matches before and after the event."""
        counts = zip(("m_before", "m_after", "n_before", "n_after"), (*matches, *self.totals[2:4]), strict=True)
        form: _Form = Numbers(dict(counts), {}, lambda value, *_condition: value)[name]
        return form

    def recall(self) -> tuple[_Form, _Form]:
        """TP (r0 - F0) + F TP0 and TP0."""
        return self.tp * self.gap + self.fpr * self.tp_reference, self.tp_reference

    def f1(self) -> tuple[_Form, _Form]:
        """The same numerator, and half of M_a (r0 - F0) + TP0."""
        return self.recall()[0], (self.totals[1] * self.gap + self.tp_reference).times(0.5)

    def recall_uncorrected(self) -> tuple[_Form, _Form]:
        """TP and TP0."""
        return self.tp, self.tp_reference

    def f1_uncorrected(self) -> tuple[_Form, _Form]:
        """TP and half of M_a + TP0."""
        return self.tp, (self.totals[1] + self.tp_reference).times(0.5)

    def precision(self) -> _Form:
        """The logarithm of F / H with H = M_a / (N_a - TP0 / (r0 - F0))."""
        negatives = self.totals[3] - self.tp_reference / self.gap
        return self.fpr.log() - self.totals[1].log() + negatives.log()


def _log_rate(totals: Sequence[Floats], _sample: Sequence[Floats]) -> Valued:
    """The logarithm of F, and its derivatives."""
    matches, pairs = totals
    return np.log(matches / pairs), (1 / matches, -1 / pairs)


def _log_rates(totals: Sequence[Floats], sample: Sequence[Floats]) -> Valued:
    """The logarithm of F / H, and its derivatives."""
    (before, before_slopes), (after, after_slopes) = (_log_rate(side, sample) for side in (totals[:2], totals[2:]))
    return before - after, (*before_slopes, *(-slope for slope in after_slopes))


def _difference(ratio: _Ratio, reference_recall: float) -> Statistic:
    """The statistic N - r D with r = N / D of the sample."""

    def top_and_bottom(totals: Sequence[Floats]) -> tuple[_Form, _Form]:
        return ratio(_Estimators(_Form.of(totals), reference_recall))

    def statistic(totals: Sequence[Floats], sample: Sequence[Floats]) -> Valued:
        (top, bottom), (top_of_sample, bottom_of_sample) = top_and_bottom(totals), top_and_bottom(sample)
        form = top - bottom.times(top_of_sample.value / bottom_of_sample.value)
        return form.value, form.slopes

    return statistic


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def resampled(
    sides: Sides, *, reference: int | None, reference_recall: float, confidence: float, resampling: Resampling
) -> dict[str, Studentised]:
    """Studentised statistics of all ratios at every threshold.

    Args:
        sides: The counts by replicates of events, at least two, all of which have compared pairs.
        reference: Index of the threshold that recall is measured against; None: ratios that need it are left out.
        reference_recall: What recall is believed to be at the reference.
        confidence: Such as 0.95.
        resampling: How events are drawn.

    Returns:
        By ratio: the logarithms of F and of F / H (precisions), and N - r D for recall and F1.
    """
    m_before, m_after, n_before, n_after = sides.columns

    def taken(statistic: Statistic, *counts: Counts) -> Studentised:
        return studentised(statistic, counts, confidence, resampling)

    statistics = {
        "fpr": taken(_log_rate, m_before, n_before),
        "precision_uncorrected": taken(_log_rates, m_before, n_before, m_after, n_after),
    }
    if reference is None:
        return statistics
    counts = (*sides.columns, m_before[:, [reference]], m_after[:, [reference]])

    def precision(totals: Sequence[Floats], _sample: Sequence[Floats]) -> Valued:
        form = _Estimators(_Form.of(totals), reference_recall).precision()
        return form.value, form.slopes

    statistics["precision"] = taken(precision, *counts)
    ratios = (_Estimators.recall, _Estimators.f1, _Estimators.recall_uncorrected, _Estimators.f1_uncorrected)
    for ratio in ratios:
        statistics[ratio.__name__] = taken(_difference(ratio, reference_recall), *counts)
    return statistics


# The doubt in the recall reference, which is chosen from the same data as everything else.


@dataclass(frozen=True)
class Choice:
    """How a reference is chosen among the thresholds.

    Attributes:
        rule: `lowest`: the lowest threshold with enough precision; `max`: the one with the most true positives among
            those.
        min_precision: Enough precision, uncorrected.
    """

    rule: Literal["lowest", "max"]
    min_precision: float


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def doubt_in_choice(totals: Sums, jackknifed: Sums, spread: JackknifeSpread, choice: Choice) -> float:
    """Variance of 1 / A, A being the number of positives, over the thresholds that might have been the reference.

    Every threshold k gives an estimate A_k. With w_k for the probability that k is chosen in another sample, the
    variance is sum w_k (1 / A_k - 1 / A)²: that of a mixture about the estimate at hand.

    Args:
        totals: Totals with the reference at hand.
        jackknifed: The same totals without each replicate in turn.
        spread: The clusterings of these replicates.
        choice: How the reference was chosen.
    """
    gaps = totals.reference_recall - totals.fpr
    inverse = np.where((gaps > 0) & (totals.tp > 0), gaps / totals.tp, np.nan)
    weights = np.where(np.isnan(inverse), 0.0, _probabilities(totals, jackknifed, spread, choice))
    if not weights.sum() > 0 or totals.reference is None:
        return 0.0
    squares = (inverse - inverse[totals.reference]) ** 2
    return float(np.nansum(weights * squares) / weights.sum())


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _probabilities(totals: Sums, jackknifed: Sums, spread: JackknifeSpread, choice: Choice) -> Floats:
    """How likely every threshold is to be chosen in another sample, as if its errors were normal; shape (T,).

    `lowest`: precision at neighbouring thresholds varies together, so that the first threshold with enough of it is
    the first whose standardised distance from the minimum exceeds one normal variate that all share. `max`: how likely
    a threshold is to have more true positives than the reference at hand.
    """
    enough = _standardised(_excess(totals, choice), _excess(jackknifed, choice), spread)
    if choice.rule == "lowest":
        reached = np.maximum.accumulate(scipy.special.ndtr(enough))
        return np.asarray(np.diff(reached, prepend=0.0))
    more = _standardised(totals.tp - totals.tp_reference, jackknifed.tp - jackknifed.tp_reference, spread)
    return np.asarray(scipy.special.ndtr(enough) * scipy.special.ndtr(more))


def _excess(sums: Sums, choice: Choice) -> Floats:
    """True positives above those that the minimum precision asks for: TP - minimum × M_a."""
    return sums.tp - choice.min_precision * sums.m_after


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _standardised(values: Floats, jackknifed: Floats, spread: JackknifeSpread) -> Floats:
    """Values over their standard errors; of values without any spread, infinite with their sign, and 0 for 0."""
    return np.nan_to_num(values / np.sqrt(spread.variance(jackknifed)), nan=0.0, posinf=np.inf, neginf=-np.inf)


# Intervals of the before/after estimates from counts per replicate.
#
# Everything follows from three statistics and their jackknife covariances: the false positive rate F = M_b / N_b, the
# match rate after the event H = M_a / N_a, and the true positives of the source text, TP = M_a - F N_a.
#
# - F: M_b is an overdispersed count with gamma limits, which also exist for M_b = 0 and approach those of the log scale
#   when there are many matches (`gamma_interval`, `dispersion`).
# - P = 1 - F / H: the limits of F and of H are combined on the log scale (MOVER: Zou & Donner 2008). Corrected, H is
#   M_a / (N_a - A).
# - R and F1 are ratios with uncertain denominators, which get Fieller's (1954) limits. Written without dividing by the
#   number of positives A = TP0 / (r0 - F0), where 0 stands for the reference,
#
#       R = (TP (r0 - F0) + F TP0) / TP0        F1 = 2 (TP (r0 - F0) + F TP0) / (M_a (r0 - F0) + TP0)
#
#   The limits are [0, 1] where TP0 does not differ from 0 significantly, as where F0 approaches r0.
# - The reference is chosen from the same data. What the estimates would be at the other thresholds that might have been
#   chosen, weighted by how likely that is, adds to the variance (`doubt_in_choice`).
# - Where recall at the reference is given as a range, the limits hold for every value in it.
#
# Quantiles are those of Student's t with one degree of freedom less than there are replicates with data, or fewer
# where a few replicates make up most of the variance (`effective_degrees`).


Reasons: TypeAlias = "NDArray[np.str_]"

INTERVAL_NAMES = tuple(each.name for each in LIMITED)
FEW_MATCHES = 10
MIN_REPLICATES = 2  # a spread needs two


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def intervals(
    sides: Sequence[Sides],
    *,
    reference: int | None,
    confidence: float,
    reference_recalls: Sequence[float] = (1.0,),
    choice: Choice | None = None,
    resampling: Resampling | None = None,
) -> dict[str, Interval]:
    """Intervals of the ratios at every threshold of one group, for the expectation over new events.

    Args:
        sides: The counts before and after the event by replicate: over events; or over events, over the second parent
            of the pairs, and over the intersections of both.
        reference: Index of the threshold that recall is measured against; None if there is none.
        confidence: Such as 0.95.
        reference_recalls: What recall is believed to be at the reference; of several values the limits hold for each.
        choice: How the reference was chosen; None if it was given.
        resampling: How the bootstrap draws events, which then are the only parents of pairs; its quantiles take the
            place of those of gamma distributions and of Student's t wherever it has any. None: no bootstrap.

    Returns:
        By name: `fpr`, `precision`, `recall`, `f1`, and the last three as the source text has them with the suffix
        `_uncorrected`. Limits lie in [0, 1], except that a negative precision is its own lower limit: every interval
        contains its estimate, that of recall the clipped one. An upper limit of precision below 0 shows that the
        assumption fails.
    """
    events = sides[0]
    if (events.n_before > 0).sum() < MIN_REPLICATES:
        too_few = events.used.sum() < MIN_REPLICATES or events.n_before.any()
        reason: Reason = "one_replicate" if too_few else "no_before"
        return dict.fromkeys(INTERVAL_NAMES, Interval.none(events.m_before.shape[1], reason))
    counts = [clustering.with_data for clustering in sides]
    totals = Sums.of(reference, reference_recalls[0], [values.sum(axis=0) for values in counts[0].columns])
    spread = spread_of(counts)
    columns = zip(*([leave_one_out(values) for values in clustering.columns] for clustering in counts), strict=True)
    jackknifed = Sums.of(reference, reference_recalls[0], [np.concatenate(values) for values in columns])

    def bootstrap(recall: float) -> Mapping[str, Studentised]:
        if resampling is None:
            return {}
        return resampled(
            counts[0], reference=reference, reference_recall=recall, confidence=confidence, resampling=resampling
        )

    return intervals_of_sums(
        totals, jackknifed, spread, reference_recalls, confidence=confidence, choice=choice, bootstrap=bootstrap
    )


def intervals_of_sums(
    totals: Sums,
    jackknifed: Sums,
    spread: JackknifeSpread,
    reference_recalls: Sequence[float],
    *,
    confidence: float,
    choice: Choice | None = None,
    bootstrap: Callable[[float], Mapping[str, Studentised]] = lambda _recall: {},
) -> dict[str, Interval]:
    """The intervals of `intervals` from totals and totals without each replicate.

    Args:
        totals: Totals over all replicates.
        jackknifed: The same totals without each replicate in turn, as from `leave_one_out`.
        spread: The clusterings of these replicates.
        reference_recalls: As for `intervals`.
        confidence: Such as 0.95.
        choice: How the reference was chosen; None if it was given.
        bootstrap: What `resampled` gives for a recall at the reference.
    """
    limits = []
    for recall in dict.fromkeys(reference_recalls):
        sums, without = (replace(each, reference_recall=recall) for each in (totals, jackknifed))
        limits.append(_Limits(sums, without, spread, confidence, choice, bootstrap(recall)).all())
    return {name: union([of_recall[name] for of_recall in limits]) for name in INTERVAL_NAMES}


@dataclass(frozen=True)
class _Limits:
    """Limits of all ratios, from the totals and the totals without each replicate."""

    totals: Sums
    jackknifed: Sums
    spread: JackknifeSpread
    confidence: float
    choice: Choice | None
    bootstrap: Mapping[str, Studentised]

    @np.errstate(divide="ignore", invalid="ignore", over="ignore")
    def all(self) -> dict[str, Interval]:
        """Every interval by its name, with the reasons of those that are missing."""
        totals, always = self.totals, np.full(len(self.totals.m_before), "")
        after = np.where(totals.n_after > 0, always, "no_prediction")
        predicted = np.where(totals.m_after > 0, after, "no_prediction")
        referred = np.where(totals.tp_reference > 0, after, "no_reference")
        identified = np.where(totals.gap > 0, referred, np.where(referred == "", "unidentified", referred))
        possible = np.where((identified == "") & ~totals.is_possible, "all_positive", identified)
        measured = np.where((possible == "") & (totals.tp_corrected < 0), "negative_tp", possible)
        plain = np.where(totals.tp < 0, "negative_tp", referred)
        precise = np.where(predicted == "", identified, predicted)
        is_full = totals.positives >= totals.n_after * (1 - ROUNDING)
        precise = np.where((precise == "") & is_full, "all_positive", precise)
        of_source = self._f1_uncorrected()
        closed = {
            "fpr": as_interval((np.minimum(self._fpr[0], totals.fpr), np.minimum(self._fpr[1], 1.0)), always),
            "precision": as_interval(self._corrected_precision, precise),
            "recall": as_interval(self._recall(), measured, unit=True),
            "f1": as_interval(self._f1(), measured, unit=True),
            "precision_uncorrected": as_interval(self._uncorrected_precision, predicted),
            "recall_uncorrected": as_interval(self._recall_uncorrected(), plain, unit=True),
            "f1_uncorrected": as_interval(of_source, self._moving(of_source, plain), unit=True),
        }
        return closed | {each.name: self._of_further(each) for each in LIMITED if each.name not in closed}

    def _of_further(self, estimate: Estimate) -> Interval:
        """Student's limits of another number of the page, from what it is without each replicate."""
        value, jackknifed = (np.asarray(sums.numbers[estimate.name]) for sums in (self.totals, self.jackknifed))
        half = t_quantile(self.confidence, self.spread.degrees(jackknifed)) * np.sqrt(self.spread.variance(jackknifed))
        lower, upper = np.maximum(value - half, np.minimum(value, 0.0)), value + half
        if estimate.scale != "log":  # a share
            upper = np.minimum(upper, np.maximum(value, 1.0))
        return Interval.of((lower, upper), "undefined_ratio")

    def _mean_count(self, count: Floats, rate: Floats, pairs: Floats) -> Limits:
        """Limits of the means of nested counts, with their dispersion and its degrees of freedom from the replicates.

        Args:
            count: Shape (T,), not rising.
            rate: Count / pairs without each replicate.
            pairs: What the counts are divided by; held fixed.
        """
        observed = self.spread.variance(rate) * pairs**2 / np.maximum(count, 1.0)
        phi, degrees = dispersion(observed, self.spread.degrees(rate), count)
        return gamma_interval(count, phi, tail(self.confidence, degrees))

    @cached_property
    def _fpr(self) -> Limits:
        totals = self.totals
        lower, upper = self._mean_count(totals.m_before, self.jackknifed.fpr, totals.n_before)
        closed = lower / totals.n_before, upper / totals.n_before
        if "fpr" not in self.bootstrap:
            return closed
        low, high = self.bootstrap["fpr"].limits
        return otherwise((np.exp(low), np.exp(high)), closed)

    @cached_property
    def _uncorrected_precision(self) -> Limits:
        closed = self._mover(self.totals.n_after, self.jackknifed.n_after, np.zeros(1))
        return self._resampled_precision("precision_uncorrected", np.zeros(1), closed)

    @cached_property
    def _corrected_precision(self) -> Limits:
        """Limits of 1 - F / H with H = M_a / (N_a - A); the error of A is expressed as the error of log(N_a - A)."""
        totals, jackknifed = self.totals, self.jackknifed
        negatives = totals.n_after - totals.positives
        doubt = self._doubt * (totals.positives**2 / negatives) ** 2
        closed = self._mover(negatives, jackknifed.n_after - jackknifed.positives, doubt)
        return self._resampled_precision("precision", doubt, closed)

    def _resampled_precision(self, name: str, doubt: Floats, closed: Limits) -> Limits:
        """Limits of 1 - F / H from resampled log(F / H), and the closed ones where there is none.

        Args:
            name: Which precision.
            doubt: As for `_mover`; half an interval of it is added in quadrature.
            closed: Limits of `_mover`.
        """
        if name not in self.bootstrap:
            return closed
        statistic = self.bootstrap[name]
        half = t_quantile(self.confidence, self.spread.most_degrees) ** 2 * doubt
        low, high = statistic.limits
        down, up = (np.sqrt((end - statistic.value) ** 2 + half) for end in (low, high))
        lower, upper = 1 - np.exp(statistic.value + up), 1 - np.exp(statistic.value - down)
        estimate = 1 - np.exp(statistic.value)
        return otherwise((np.minimum(np.maximum(lower, 0.0), estimate), upper), closed)

    def _mover(self, base: Floats, jackknifed_base: Floats, doubt: Floats) -> Limits:
        """Limits of 1 - F / H, with H = M_a / base (MOVER: Zou & Donner 2008).

        The distances of log F and log H to their limits are added in quadrature. The sum is scaled by the ratio of the
        variance of log F - log H to the variance that it would have if F and H were independent. Half a match takes
        the place of M_b = 0.

        Args:
            base: Shape (1,): the pairs after the event that H refers to.
            jackknifed_base: The same without each replicate.
            doubt: Variance of log(base) that does not come from the replicates.
        """
        totals, jackknifed = self.totals, self.jackknifed
        jackknifed_h = jackknifed.m_after / jackknifed_base
        h, centre = totals.m_after / base, np.maximum(totals.m_before, 0.5) / totals.n_before
        # limits of F and of H, each on its own
        f_lower, f_upper = self._fpr
        h_lower, h_upper = self._mean_count(totals.m_after, jackknifed_h, base)
        # Var(log F - log H) over its value under independence, by the delta method; 1 where it cannot be estimated
        var_f, var_h, shared = self.spread.moments(jackknifed.fpr, jackknifed_h, centre / h)
        independent = var_f / centre**2 + var_h / h**2
        joint = np.maximum(1 - 2 * shared / (centre * h * independent), 0.0)
        joint = np.where((totals.m_before > 0) & (independent > 0), joint, 1.0)
        # distances to the limits of log F - log H, upwards and downwards
        doubtful = t_quantile(self.confidence, self.spread.most_degrees) ** 2 * doubt
        up = np.sqrt(joint * (np.log(f_upper / centre) ** 2 + np.log(h * base / h_lower) ** 2) + doubtful)
        down = np.sqrt(joint * (np.log(centre / f_lower) ** 2 + np.log(h_upper / (h * base)) ** 2) + doubtful)
        # back to precision, in which the directions are reversed; the interval contains the estimate
        estimate = 1 - totals.fpr / h
        lower = np.maximum(1 - centre / h * np.exp(up), 0.0)
        upper = 1 - np.where(totals.m_before > 0, centre / h * np.exp(-down), 0.0)
        return np.minimum(lower, estimate), np.maximum(upper, estimate)

    @cached_property
    def _doubt(self) -> Floats:
        """Variance of 1 / A that comes from the choice of the reference; 0 where it was given."""
        if self.choice is None or self.totals.reference is None:
            return np.zeros(1)
        return np.full(1, doubt_in_choice(self.totals, self.jackknifed, self.spread, self.choice))

    @cached_property
    def _rare(self) -> Floats:
        """The addition to the variance of TP where fewer than ten matches are observed after the event.

        The fewer the matches, the closer the variance comes to the value with which t reaches the upper gamma limit of
        the mean of M_a.
        """
        totals, jackknifed = self.totals, self.jackknifed
        _, upper = self._mean_count(totals.m_after, jackknifed.m_after / jackknifed.n_after, totals.n_after)
        reached = ((upper - totals.m_after) / t_quantile(self.confidence, self.spread.most_degrees)) ** 2
        missing = np.maximum(reached - self.spread.variance(jackknifed.m_after), 0.0)
        return np.clip(1 - totals.m_after / FEW_MATCHES, 0.0, 1.0) * missing

    def _fieller(
        self, name: str, tops: tuple[Floats, Floats], bottoms: tuple[Floats, Floats], more: Floats
    ) -> tuple[Limits, Limits]:
        """Fieller's limits of a ratio, by t with all degrees of freedom and by t with the effective ones.

        Quantiles of the bootstrap replace both: N - r D is high at the lower limit of r, and low at the upper one.

        Args:
            name: Which ratio.
            tops: The numerator in the totals, and without each replicate.
            bottoms: The denominator likewise.
            more: What is added to the variance of the numerator.
        """
        (top, jackknifed_top), (bottom, jackknifed_bottom) = tops, bottoms
        of_top, of_bottom, shared = self.spread.moments(jackknifed_top, jackknifed_bottom, top / bottom)
        variances = of_top + more, of_bottom, shared
        degrees = self.spread.most_degrees, self.spread.degrees(jackknifed_top / jackknifed_bottom)
        plain, wide = (fieller_interval(top, bottom, variances, t_quantile(self.confidence, d)) for d in degrees)
        if name not in self.bootstrap:
            return plain, wide
        statistic = self.bootstrap[name]
        quantiles = [np.where(np.isfinite(q), np.maximum(q, 0.0), np.nan) for q in (statistic.high, -statistic.low)]
        lower, upper = (
            fieller_interval(top, bottom, variances, quantile)[side] for side, quantile in enumerate(quantiles)
        )
        return otherwise((lower, upper), plain), otherwise((lower, upper), wide)

    def _recall_uncorrected(self) -> Limits:
        totals, jackknifed = self.totals, self.jackknifed
        bottoms = totals.tp_reference, jackknifed.tp_reference
        (lower, upper), _ = self._fieller("recall_uncorrected", (totals.tp, jackknifed.tp), bottoms, self._rare)
        return np.where(self._is_reference, 1.0, lower), np.where(self._is_reference, 1.0, upper)

    def _f1_uncorrected(self) -> Limits:
        """Fieller's limits, the upper one with the effective degrees, because sums of true matches are skewed.

        At the reference R = 1, so that F1 = 2 P / (1 + P) takes its limits from those of P.
        """
        totals, jackknifed = self.totals, self.jackknifed
        half = (totals.m_after + totals.tp_reference) / 2, (jackknifed.m_after + jackknifed.tp_reference) / 2
        (lower, _), (_, upper) = self._fieller("f1_uncorrected", (totals.tp, jackknifed.tp), half, self._rare)
        estimate = 2 * totals.tp / (totals.m_after + np.maximum(totals.tp, totals.tp_reference))
        return self._f1_around(estimate, (lower, upper), self._uncorrected_precision, 1.0)

    def _recall(self) -> Limits:
        """Fieller's limits of recall; at a reference that was given recall is known by assumption."""
        totals, jackknifed = self.totals, self.jackknifed
        tops, bottoms = (totals.found, jackknifed.found), (totals.tp_reference, jackknifed.tp_reference)
        chosen = (totals.tp_reference * totals.tp) ** 2 * self._doubt
        (lower, upper), _ = self._fieller("recall", tops, bottoms, self._rare * totals.gap**2 + chosen)
        is_known = self._is_reference & (self._doubt == 0)
        lower, upper = (np.where(is_known, totals.reference_recall, limit) for limit in (lower, upper))
        raw = np.where(self._is_reference, totals.reference_recall, totals.tp_corrected / totals.positives)
        estimate = np.minimum(raw, 1.0)
        return np.minimum(lower, estimate), np.maximum(upper, estimate)

    def _f1(self) -> Limits:
        """Fieller's limits, the upper one with the effective degrees; at the reference from the limits of precision."""
        totals, jackknifed = self.totals, self.jackknifed
        halves = [(sums.m_after * sums.gap + sums.tp_reference) / 2 for sums in (totals, jackknifed)]
        # the derivative of F1 by 1 / A, times the denominator of F1
        slope = 2 * (totals.tp - totals.fpr * totals.m_after) / (totals.m_after / totals.positives + 1) ** 2
        chosen = (halves[0] * slope) ** 2 * self._doubt
        tops = totals.found, jackknifed.found
        more = self._rare * totals.gap**2 + chosen
        (lower, _), (_, upper) = self._fieller("f1", tops, (halves[0], halves[1]), more)
        right = totals.tp_corrected
        estimate = 2 * right / (totals.m_after + np.maximum(right, totals.positives))
        return self._f1_around(estimate, (lower, upper), self._corrected_precision, totals.reference_recall)

    def _f1_around(self, estimate: Floats, limits: Limits, precision: Limits, recall: float) -> Limits:
        """Limits of F1 that hold its estimate, at the reference 2 P R / (P + R) of the limits of P and the known R."""
        low, high = (2 * p * recall / (p + recall) for p in np.maximum(precision, 0.0))
        lower, upper = (
            np.where(self._is_reference, known, limit) for known, limit in zip((low, high), limits, strict=True)
        )
        return np.minimum(lower, estimate), np.maximum(upper, estimate)

    def _moving(self, limits: Limits, reason: Reasons) -> Reasons:
        """The reasons with `no_limit` where the replicates are all alike, as where every pair matches."""
        is_still = ~self._is_reference & (limits[1] - limits[0] <= ROUNDING)
        return np.where((reason == "") & is_still, "no_limit", reason)

    @property
    def _is_reference(self) -> NDArray[np.bool_]:
        """Shape (T,): whether a threshold is the reference."""
        reference = -1 if self.totals.reference is None else self.totals.reference
        return np.asarray(np.arange(len(self.totals.m_before)) == reference)


def as_interval(limits: Limits, reason: Reasons, *, unit: bool = False) -> Interval:
    """Limits as an `Interval`.

    Args:
        limits: Lower and upper limits, shape (T,).
        reason: Why there is no interval; empty where there is one.
        unit: Whether an interval that covers all of [0, 1] counts as `unbounded`.
    """
    lower, upper = limits
    reason = np.where((reason == "") & np.isnan(lower + upper), "one_replicate", reason)
    if unit:
        reason = np.where((reason == "") & (lower <= 0) & (upper >= 1), "unbounded", reason)
    is_defined, objects = reason == "", reason.astype(object)
    objects[is_defined] = None
    return Interval(np.where(is_defined, lower, np.nan), np.where(is_defined, upper, np.nan), objects)


# Limits that hold simultaneously at all thresholds, so that a threshold may be chosen after looking at them.


_DRAWS = 1999


def single_confidence(contributions: Floats, confidence: float, *, draws: int = _DRAWS, seed: int = 0) -> float:
    """Two-sided confidence of pointwise limits whose upper limits hold simultaneously with a one-sided confidence.

    The signs of the replicates are flipped at random, jointly for all thresholds, to find the distribution of the
    largest standardised sum (wild bootstrap: Davidson & Flachaire 2008). The result is never stricter than Bonferroni's
    correction.

    Args:
        contributions: Shape (G, T): each replicate's contribution to the error at each threshold.
        confidence: One-sided confidence of all limits together.
        draws: Number of random draws.
        seed: The same seed gives the same result.
    """
    scale = np.sqrt((contributions**2).sum(axis=0))
    used = scale > 0
    share = (1 - confidence) / int(contributions.shape[1])
    if not used.any():
        return 1 - 2 * share
    signs = np.random.default_rng(seed).integers(0, 2, (draws, len(contributions))) * 2.0 - 1.0
    largest = (signs @ (contributions[:, used] / scale[used])).max(axis=1)
    critical = float(np.quantile(largest, confidence, method="higher"))
    return 1 - 2 * max(float(scipy.special.ndtr(-critical)), share)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def precision_at_least(
    sides: Sequence[Sides],
    *,
    reference: int | None,
    confidence: float,
    reference_recalls: Sequence[float] = (1.0,),
    choice: Choice | None = None,
) -> Floats:
    """Lower limits of precision that hold simultaneously at all thresholds.

    Whichever threshold is chosen by its limit, its precision is at least that limit, with this confidence.

    Args:
        sides: As for `intervals`.
        reference: As for `intervals`.
        confidence: One-sided, such as 0.95.
        reference_recalls: As for `intervals`.
        choice: As for `intervals`.

    Returns:
        Shape (T,); nan where no limit can be given.
    """
    events = sides[0].with_data
    if (events.n_before > 0).sum() < MIN_REPLICATES:
        return np.full(events.m_before.shape[1], np.nan)
    recall = min(reference_recalls)
    shares = [Sums.of(reference, recall, [leave_one_out(n) for n in way.with_data.columns]) for way in sides]
    # 1 - P without each replicate; its deviations from the mean are the contributions to the error
    contributions = [
        np.nan_to_num(sums.precision - sums.precision.mean(axis=0), posinf=0.0, neginf=0.0) for sums in shares
    ]
    # of two parents, the one that asks for the stricter limits
    single = max(single_confidence(of_way, confidence) for of_way in contributions[:2])
    limits = intervals(
        sides, reference=reference, confidence=single, reference_recalls=reference_recalls, choice=choice
    )
    return limits["precision"].lower
