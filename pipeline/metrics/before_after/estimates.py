"""The before/after estimator, from counts to precision, recall and costs, alone and beside a checked sample."""

from __future__ import annotations

from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl
import scipy

from ...base.columns import THRESHOLD, doubles, texts
from ...base.records import dataclass
from ..curves.operating_points import COST, Criterion, Outcomes, holds_at, lowest_cost, pick
from ..uncertainty.jackknife import t_quantile
from .formulas import COUNTS, PAGE, ROUNDING, SHOWN, exactly, in_doubles

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from ...base.columns import Boundary
    from ..uncertainty.clusters import InTime
    from ..uncertainty.jackknife import Floats
    from .formulas import Numbers


# Sums of matches and compared pairs before and after the event, and what follows from them.


Counts: TypeAlias = "NDArray[np.int64]"


@dataclass(frozen=True)
class Sides:
    """Counts before and after the event by the replicates of one clustering.

    Attributes:
        m_before: Shape (G, T): matches before the event at or above each threshold, ascending.
        m_after: Shape (G, T): the same after the event.
        n_before: Shape (G,): compared pairs before the event.
        n_after: Shape (G,): the same after the event.
        in_time: How the replicates follow each other, where they are days; None: they do not.
    """

    m_before: Counts
    m_after: Counts
    n_before: Counts
    n_after: Counts
    in_time: InTime | None = None

    @property
    def used(self) -> NDArray[np.bool_]:
        """Shape (G,): whether a replicate has any compared pair."""
        return np.asarray((self.n_before + self.n_after) > 0)

    @property
    def with_data(self) -> Sides:
        """The replicates that have any compared pair."""
        used, in_time = self.used, None if self.in_time is None else self.in_time[self.used]
        return Sides(self.m_before[used], self.m_after[used], self.n_before[used], self.n_after[used], in_time)

    @property
    def columns(self) -> tuple[Counts, Counts, Counts, Counts]:
        """The four counts; compared pairs have shape (G, 1)."""
        return self.m_before, self.m_after, self.n_before[:, None], self.n_after[:, None]


@dataclass(frozen=True)
class Sums:
    """Totals of shape (T,) and (1,), or totals without each replicate, which then have the replicates on axis 0.

    Attributes:
        reference: Index of the threshold that recall is measured against, or None.
        reference_recall: What recall is believed to be at the reference, r0.
        m_before: M_b, matches before the event.
        m_after: M_a, matches after the event.
        n_before: N_b, compared pairs before the event.
        n_after: N_a, compared pairs after the event.
    """

    reference: int | None
    reference_recall: float
    m_before: Floats
    m_after: Floats
    n_before: Floats
    n_after: Floats

    @classmethod
    def of(cls, reference: int | None, reference_recall: float, counts: Sequence[Counts | Floats]) -> Sums:
        """Sums as doubles, of the four counts in the order of the attributes."""
        return cls(reference, reference_recall, *(np.asarray(values, dtype=np.float64) for values in counts))

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of the page."""
        counts = {name: getattr(self, name) for name in ("m_before", "m_after", "n_before", "n_after")}
        return in_doubles({**counts, "recall_at_reference": np.full(1, self.reference_recall)}, self.reference)

    @property
    def fpr(self) -> Floats:
        """False positive rate, M_b / N_b."""
        return np.asarray(self.numbers["fpr"])

    @property
    def tp(self) -> Floats:
        """Estimated true positives of the source text, M_a - F N_a."""
        return np.asarray(self.numbers["tp_uncorrected"])

    @property
    def tp_reference(self) -> Floats:
        """The same at the reference, TP0."""
        return np.asarray(self.numbers["tp_at_reference"])

    @property
    def gap(self) -> Floats:
        """Recall less the false positive rate, both at the reference: r0 - F0."""
        return np.asarray(self.reference_recall - self.numbers["fpr_at_reference"])

    @property
    def positives(self) -> Floats:
        """A: the number of positives, estimated at the reference: TP0 / (r0 - F0) (Rogan & Gladen 1978)."""
        return np.asarray(self.numbers["positives"])

    @property
    def is_possible(self) -> NDArray[np.bool_]:
        """Shape (1,): whether there are, rounding apart, no more estimated positives than pairs after the event."""
        return np.asarray(self.positives <= self.n_after * (1 + ROUNDING))

    @property
    def is_identified(self) -> NDArray[np.bool_]:
        """Whether the positives can be estimated: there are some at the reference, and not too many."""
        return np.asarray((self.tp_reference > 0) & self.is_possible)

    @cached_property
    def tp_corrected(self) -> Floats:
        """True positives when FP is not overestimated: TP + F A."""
        return self.tp + self.fpr * self.positives

    @cached_property
    def found(self) -> Floats:
        """The corrected true positives times r0 - F0, which is also defined where that is 0: TP (r0 - F0) + F TP0."""
        return self.tp * self.gap + self.fpr * self.tp_reference

    @cached_property
    def precision(self) -> Floats:
        """Corrected precision; nan where nothing is retrieved or positives are not identified."""
        return self.tp_corrected / self.m_after

    @property
    def identified_precision(self) -> Floats:
        """Corrected precision where the positives are identified; nan where it is undefined."""
        precision = np.where(self.is_identified, self.precision, np.nan)
        return np.where(np.isfinite(precision), precision, np.nan)


# What a threshold costs without labels: counts of false positives and misses as the corrected estimates have them.


def estimated_outcomes(keys: Sequence[str]) -> Outcomes[pl.Expr]:
    """Estimated outcomes of a row of the estimates, NULL where its recall is.

    The positives of a group are the true positives at the recall reference over the recall that is believed there;
    those that a threshold does not retrieve are misses, and none where it retrieves more: recall is clipped to 1 there.

    Args:
        keys: Columns that identify a group.
    """
    tp, fp, recall = (pl.when(pl.col("recall").is_not_null()).then(name) for name in ("tp", "fp", "recall"))
    positives = pl.when("is_reference").then(tp / recall).drop_nulls().first().over(list(keys))
    return Outcomes(tp, fp, pl.max_horizontal(positives - tp, pl.lit(0.0)))


def alerts() -> Outcomes[pl.Expr]:
    """Pairs after the event, retrieved and not, for capacities; whether they are true is left open."""
    retrieved, every = (pl.col(name).cast(pl.Float64) for name in ("m_after", "n_after"))
    nothing = pl.lit(0.0)
    return Outcomes(retrieved, nothing, nothing, every - retrieved)


# The estimates: the page in exact fractions, for every row of a sweep.


ReferenceRule = Literal["lowest", "max", "fixed"]

_COLUMNS = tuple(each.name for each in SHOWN)
_TP = "_tp_times_n_before"
_RECALLS = {"recall_raw", "recall"}  # which are r0 at the reference
_CLOSE = 1e-9  # within which a corrected precision is compared with a minimum by exact fractions


def estimates(
    sweep: pl.DataFrame,
    keys: Sequence[str],
    *,
    rule: ReferenceRule = "lowest",
    min_precision: float = 0.05,
    threshold: float | None = None,
    reference_recall: float = 1.0,
) -> pl.DataFrame:
    """Estimates at every threshold.

    Args:
        sweep: One row per group × threshold with the integers `n_before`, `n_after` (compared pairs of the group) and
            `m_before`, `m_after` (pairs at or above the threshold).
        keys: Columns that identify a group.
        rule: Which threshold recall is measured against. `lowest`: the lowest whose precision is at least
            `min_precision` (source text of the method); `max`: among those, the one with the most true positives
            (the gtdnews code; on ties the lowest); `fixed`: `threshold`. Precision and true positives are those of the
            source text, since the corrected ones need the reference.
        min_precision: A fraction with at most 9 decimals, compared exactly.
        threshold: The reference threshold of the rule `fixed`; it must be one of the thresholds.
        reference_recall: r0, what recall is believed to be at the reference; a fraction with at most 9 decimals.

    Returns:
        The rows with the columns of the page, `is_reference` and `undefined`. Precision may be negative and
        `recall_raw` may exceed 1; `recall` is clipped to 1. F1 is computed from counts, 2 TP / (2 TP + FP + FN), so it
        is 0 and not NULL where nothing is retrieved although something could be.
    """
    references = references_of(sweep, keys, rule=rule, min_precision=min_precision, threshold=threshold)
    return with_estimates(sweep, keys, references, reference_recall)


def references_of(
    sweep: pl.DataFrame,
    keys: Sequence[str],
    *,
    rule: ReferenceRule,
    min_precision: float = 0.0,
    threshold: float | None = None,
) -> pl.DataFrame:
    """Return the row of every group that its recall is measured against; a group without one is not in it.

    Args:
        sweep: As for `estimates`.
        keys: Columns that identify a group.
        rule: As for `estimates`.
        min_precision: As for `estimates`.
        threshold: As for `estimates`.
    """
    least = _decimal(min_precision)
    numbers = exactly(sweep, np.full(sweep.height, -1), Fraction(1))
    tp = numbers["tp_uncorrected"]
    is_enough = (
        (sweep[THRESHOLD] == threshold).fill_null(value=False).to_numpy()
        if rule == "fixed"
        else numbers["precision_uncorrected"].has(">=", least)
    )
    # n_before, the divisor of tp_uncorrected, is the same in all rows of a group
    candidates = sweep.with_columns(tp.over_divisors(_TP)).filter(pl.Series(is_enough & tp.has(">", 0)))
    order = [_TP, THRESHOLD] if rule == "max" else [THRESHOLD]
    ranked = candidates.sort(order, descending=[rule == "max", False][: len(order)])
    return ranked.unique(subset=list(keys), keep="first", maintain_order=True).drop(_TP)


def with_estimates(
    sweep: pl.DataFrame,
    keys: Sequence[str],
    references: pl.DataFrame,
    reference_recall: float,
    names: Sequence[str] = _COLUMNS,
) -> pl.DataFrame:
    """Add what the page says of every row, with `is_reference` and `undefined`: why the first missing ratio is NULL.

    Args:
        sweep: As for `estimates`.
        keys: Columns that identify a group.
        references: Result of `references_of`.
        reference_recall: As for `estimates`.
        names: Which numbers of the page.
    """
    numbers, rows = _page(sweep, keys, references, reference_recall)
    is_reference = (sweep[THRESHOLD] == rows["_threshold"]).fill_null(value=False)
    columns = {name: numbers[name].doubles()[: sweep.height] for name in names}
    for name in _RECALLS & columns.keys():  # the formula gives the same there, but for rounding
        columns[name] = np.where(is_reference.to_numpy() & ~np.isnan(columns[name]), reference_recall, columns[name])
    reason = np.full(sweep.height, None, dtype=object)
    for estimate in reversed([each for each in PAGE if each.reason]):
        reason[~numbers[estimate.name].is_defined[: sweep.height]] = estimate.reason
    return sweep.with_columns(
        is_reference.alias("is_reference"),
        *(doubles(name, values) for name, values in columns.items()),
        texts("undefined", reason),
    )


def _page(
    sweep: pl.DataFrame, keys: Sequence[str], references: pl.DataFrame, reference_recall: float
) -> tuple[Numbers, pl.DataFrame]:
    """The page of the rows of a sweep, with the rows of the references behind them, and the reference of each row."""
    counts = sweep[COUNTS].vstack(references[COUNTS])
    row_numbers = pl.int_range(sweep.height, counts.height)
    numbered = references.select(*keys, pl.col(THRESHOLD).alias("_threshold"), row_numbers.alias("_row"))
    rows = sweep.select(keys).join(numbered, on=list(keys), how="left", nulls_equal=True, maintain_order="left")
    reference = np.append(rows["_row"].fill_null(-1).to_numpy(), numbered["_row"].to_numpy())
    return exactly(counts, reference, _decimal(reference_recall)), rows


def _decimal(number: float) -> Fraction:
    """The decimal that a number prints as."""
    return Fraction(repr(float(number)))


def f_beta(beta: float) -> pl.Expr:
    """(1 + β²) P R / (β² P + R) of the columns `precision` and `recall`; 0 where both are 0, else as `f1`."""
    if beta == 1:
        return pl.col("f1")
    square = beta * beta
    weighted = square * pl.col("precision") + pl.col("recall")
    value = (1 + square) * pl.col("precision") * pl.col("recall") / weighted
    return pl.when(pl.col("f1").is_null()).then(None).when(weighted > 0).then(value).otherwise(0.0)


def safe_column(confidence: float) -> str:
    """Name of the working column with the lower limits of precision that hold simultaneously at all thresholds."""
    return f"_precision_at_least_{confidence!r}"


def operating_point(
    curve: pl.DataFrame,
    keys: Sequence[str],
    criterion: Criterion,
    reference_recall: float = 1.0,
    boundary: Boundary = ">=",
) -> pl.DataFrame:
    """The row of every group that a criterion chooses, using exact precision and clipped recall, and its `cost`.

    Args:
        curve: Result of `estimates`; a criterion with a confidence also needs the column named by `safe_column`.
        keys: Columns that identify a group.
        criterion: What the threshold is chosen for.
        reference_recall: As for `estimates`.
        boundary: Whether a score equal to the threshold is retrieved.
    """
    outcomes = estimated_outcomes(keys)
    cost = pl.lit(None) if criterion.cost is None else outcomes.cost(criterion.cost)
    curve = curve.with_columns(cost.cast(pl.Float64).alias(COST))
    if criterion.confidence is not None:
        among, best = pl.col(safe_column(criterion.confidence)) >= criterion.min_precision, pl.col("recall")
    elif criterion.threshold is not None:
        among, best = holds_at(criterion.threshold, boundary)
    elif criterion.cost is not None:
        among, best = pl.lit(value=True), lowest_cost(outcomes, criterion.cost)
    elif criterion.has_capacity:
        among, best = alerts().excess(criterion) <= 0, -pl.col(THRESHOLD)
    elif criterion.beta is not None:
        among, best = pl.lit(value=True), f_beta(criterion.beta)
    elif criterion.min_precision is not None:
        reached = precision_reaches(curve, keys, criterion.min_precision, reference_recall)
        among, best = pl.lit(reached), pl.col("recall")
    else:
        among, best = pl.col("recall") >= criterion.min_recall, pl.col("precision")
    return pick(curve, keys, criterion=criterion.text, among=among, best=best, is_given=criterion.is_given)


def precision_reaches(
    curve: pl.DataFrame, keys: Sequence[str], min_precision: float, reference_recall: float
) -> pl.Series:
    """Whether the corrected precision of every row is at least a minimum; NULL where it is undefined.

    Doubles decide where they differ clearly, and exact fractions of the counts where they do not.

    Args:
        curve: Result of `estimates`.
        keys: Columns that identify a group.
        min_precision: A fraction with at most 9 decimals, taken to be the decimal that it prints as.
        reference_recall: Likewise.
    """
    reached = curve.select((pl.col("precision") >= min_precision).alias("reached"))["reached"]
    is_close = (curve["precision"] - min_precision).abs() <= _CLOSE
    close = is_close.fill_null(value=False).arg_true()
    if close.is_empty():
        return reached
    numbers, _ = _page(curve[close], keys, curve.filter("is_reference"), reference_recall)
    exact = numbers["precision"].has(">=", _decimal(min_precision))
    return reached.scatter(close, exact[: len(close)])


# Precision from a random sample that people checked, alone and combined with the estimate that needs no labels.
#
# The target is the share R / M of correct matches among the M matches of this data set. If k of n sampled matches are
# correct, k is hypergeometric (M, R, n); nothing else is assumed about the matches.
#
# - The sample alone: with Jeffreys' prior, R - k is beta-binomial (M - n; k + 1/2, n - k + 1/2), which is exact for n =
#   M. The limits are its quantiles, but k = n always keeps 1 in the interval and k = 0 always keeps 0 (Brown, Cai &
#   DasGupta 2001).
# - The combination: the false positives M - R are predicted from those before the event, as φ times a negative binomial
#   number (`assumption.predicted`), which is a Poisson number whose mean is gamma distributed. That mean is multiplied
#   by κ, the false positive rate after the event over that before it, whose prior is gamma with mean 1
#   (`sensitivity.kappa_variance`); the product is taken as gamma, with its own mean and variance. The prior of R is a
#   mixture in which this prediction and Jeffreys' prior each have weight one half (the robust prior of Schmidli et al.
#   2014). Bayes' theorem with the hypergeometric likelihood of the sample gives the posterior of R. The worse the
#   sample fits the prediction, the less weight the prediction receives: the limits widen and finally become those of
#   the sample alone.
# - Limits are whole numbers of correct matches, estimates are means. Where nearly all of a distribution lies on one
#   number, its mean can lie beyond a quantile; the limit is then the next whole number on the other side of the mean.
# - Agreement of the two: how far k lies in the tails of its distribution under the prediction (Box 1980), as a
#   two-sided mid-p-value.


VAGUE_WEIGHT = 0.5  # of Jeffreys' prior in the mixture
_TAIL_ROUNDING = 1e-12  # of cumulative probabilities
_MOST_POINTS = 2001  # whole numbers that stand for a range
_MOST_NODES = 200  # numbers that stand for the prior in the test of agreement
_STANDARD_DEVIATIONS = 9.0  # beyond which a distribution is cut off
_MEAN_ROUNDING = 1e-9  # relative, of means


@dataclass(frozen=True)
class Prediction:
    """Prediction of the false positives after the event: φ times a negative binomial number.

    Attributes:
        count: Shape (T,): matches before the event, M_b.
        phi: Shape (T,): dispersion of the false positives, φ.
        degrees: Shape (T,): degrees of freedom of `phi`.
        before: Number of compared pairs before the event.
        after: Shape (1,): number of compared pairs after the event that are negative.
    """

    count: Floats
    phi: Floats
    degrees: Floats
    before: float
    after: Floats

    @property
    def size(self) -> Floats:
        """Shape (T,): size of the negative binomial distribution."""
        return self.count / self.phi + 0.5

    @property
    def probability(self) -> Floats:
        """Shape (1,): probability of the negative binomial distribution."""
        return self.before / (self.before + self.after)

    @property
    def expected(self) -> Floats:
        """Shape (T,): expected false positives."""
        return self.count * (self.after / self.before)


@dataclass(frozen=True)
class AuditedPrecision:
    """The share of correct matches at every threshold.

    Wherever there is an estimate, 0 <= lower <= estimate <= upper <= 1.

    Attributes:
        estimate: Shape (T,): k / n, or the posterior mean of R / M; nan where no match was sampled.
        lower: Lower limit of the share.
        upper: Upper limit of the share.
    """

    estimate: Floats
    lower: Floats
    upper: Floats


def audited_precision(matches: Counts, audited: Counts, right: Counts, *, confidence: float) -> AuditedPrecision:
    """The share of correct matches, estimated from the sample alone.

    Args:
        matches: Shape (T,): M, the matches that the sample was drawn from.
        audited: Shape (T,): n, how many of them were sampled.
        right: Shape (T,): k, how many of the sampled ones are correct.
        confidence: Such as 0.95.
    """
    shares = np.full((3, len(matches)), np.nan)
    for index, (m, n, k) in _sampled(matches, audited, right):
        points = _between(*_likely(m, n, k), m)
        unsampled = points - k  # correct matches that are not in the sample: beta-binomial, up to a constant factor
        log = (
            scipy.special.betaln(unsampled + k + 0.5, m - points + 0.5)
            - scipy.special.gammaln(unsampled + 1)
            - scipy.special.gammaln(m - n - unsampled + 1)
        )
        lower, upper = _limits(points, log, confidence)
        lower, upper = min(lower, float(k * m // n)), max(upper, float(-(-k * m // n)))  # the interval contains k / n
        shares[:, index] = k / n, 0.0 if k == 0 else lower / m, 1.0 if k == n else upper / m
    return AuditedPrecision(*shares)


def combined_precision(
    matches: Counts,
    audited: Counts | Floats,
    right: Counts | Floats,
    prediction: Prediction,
    *,
    confidence: float,
    kappa_variance: Floats | float = 0.0,
) -> tuple[AuditedPrecision, Floats]:
    """The share of correct matches from both the sample and the predicted false positives, and whether the two agree.

    Args:
        matches: Shape (T,): M, the matches after the event.
        audited: Shape (T,): n, how many of them were sampled; by another design, how many drawn alike tell as much.
        right: Shape (T,): k, how many of the sampled ones are correct.
        prediction: Prediction of the false positives among the matches.
        confidence: Such as 0.95.
        kappa_variance: Variance of the prior of κ, shape (T,) or one number; 0: the false positive rates before and
            after the event are known to be equal.

    Returns:
        The combined estimate and the p-value of agreement; both are nan where no match was sampled. The p-value is of
        the sample and the estimate without labels, which takes κ = 1, so it knows of no doubt about κ.
    """
    shares, p_values = np.full((3, len(matches)), np.nan), np.full(len(matches), np.nan)
    # φ is itself estimated: it is raised by the squared ratio of the t quantile to the normal one
    wider = (t_quantile(confidence, prediction.degrees) / scipy.special.ndtri(0.5 + confidence / 2)) ** 2
    phi = prediction.phi * wider
    size, odds = prediction.count / phi + 0.5, float(prediction.after[0] / prediction.before)
    doubtful = _with_doubt(size, odds, np.broadcast_to(kappa_variance, size.shape))
    for index, (m, n, k) in _sampled(matches, audited, right):
        p_values[index] = _Prior(m, float(phi[index]), float(size[index]), odds).agreement(round(n), round(k))
        prior = _Prior(m, float(phi[index]), *(float(values[index]) for values in doubtful))
        points = _support(_likely(m, n, k), prior.range, (m, n, k))
        # logarithm of prior × hypergeometric likelihood, the prior being the mixture
        mixture = np.logaddexp(prior.log(points) + np.log1p(-VAGUE_WEIGHT), _vague(points, m) + np.log(VAGUE_WEIGHT))
        log = mixture + _log_choose(points, k) + _log_choose(m - points, n - k)
        weights = np.exp(log - log.max()) * _widths(points)
        mean = float(weights @ points / weights.sum())
        lower, upper = _around(mean, *_limits(points, log, confidence))
        all_right = k == n and prediction.count[index] == 0
        shares[:, index] = min(max(mean, lower), upper) / m, lower / m, 1.0 if all_right else upper / m
    return AuditedPrecision(*shares), p_values


def _with_doubt(size: Floats, odds: float, kappa_variance: Floats) -> tuple[Floats, Floats]:
    """Size and odds of the negative binomial number whose gamma mean is multiplied by κ: the same mean, wider."""
    # squared coefficient of variation of a product of independent factors of mean 1: (1 + 1/size) (1 + Var κ) - 1
    squared = 1 / size + kappa_variance * (1 + 1 / size)
    return 1 / squared, size * odds * squared


def _vague(points: Floats, m: int) -> Floats:
    """Logarithm of Jeffreys' prior of the number of correct matches among m: beta-binomial (m; 1/2, 1/2)."""
    return np.asarray(
        _log_choose(m, points) + scipy.special.betaln(points + 0.5, m - points + 0.5) - scipy.special.betaln(0.5, 0.5)
    )


@dataclass(frozen=True)
class _Prior:
    """Distribution of the number of correct matches among m, from the prediction of the false ones.

    Attributes:
        m: Number of matches.
        phi: Dispersion φ: the number of false matches is φ times a negative binomial number.
        size: Size of the negative binomial distribution.
        odds: Compared pairs after the event over those before it; the negative binomial mean is size × odds.
    """

    m: int
    phi: float
    size: float
    odds: float

    @property
    def range(self) -> tuple[float, float]:
        """Range of correct matches outside which the probability is negligible."""
        mean = self.size * self.odds
        spread = np.sqrt(mean * (1 + self.odds)) + 1
        far = mean + _STANDARD_DEVIATIONS * spread + _STANDARD_DEVIATIONS**2 / 2 * self.odds
        return self.m - self.phi * far, self.m - self.phi * (mean - _STANDARD_DEVIATIONS * spread)

    def log(self, points: Floats) -> Floats:
        """Logarithm of the probability of each number of correct matches."""
        return np.asarray(self._raw(points) - self._total)

    def _raw(self, points: Floats) -> Floats:
        false = (self.m - points) / self.phi
        return np.asarray(
            scipy.special.gammaln(false + self.size)
            - scipy.special.gammaln(false + 1)
            - false * np.log1p(1 / self.odds)
        )

    @cached_property
    def _points(self) -> Floats:
        return _between(*self.range, self.m)

    @cached_property
    def _total(self) -> float:
        raw = self._raw(self._points)
        return float(raw.max() + np.log(np.exp(raw - raw.max()) @ _widths(self._points)))

    def agreement(self, n: int, k: int) -> float:
        """Two-sided mid-p-value of finding k correct matches among n sampled ones."""
        nodes, weights = self._nodes
        # the probability of each number in the shorter tail: hypergeometric given R, averaged over the prior of R
        is_lower_tail = k <= n / 2
        numbers = np.arange(k + 1.0) if is_lower_tail else np.arange(k, n + 1.0)
        choices = _log_choose(nodes[:, None], numbers) + _log_choose(self.m - nodes[:, None], n - numbers)
        mass = weights @ np.exp(choices - _log_choose(self.m, n))
        tail, at_k = float(mass.sum()), float(mass[-1 if is_lower_tail else 0])
        return max(min(2 * min(tail - at_k / 2, 1 - tail + at_k / 2), 1.0), 0.0)

    @property
    def _nodes(self) -> tuple[Floats, Floats]:
        """Numbers that represent the distribution, and their probabilities: all points, or evenly spaced quantiles."""
        weights = np.exp(self.log(self._points)) * _widths(self._points)
        if len(weights) <= _MOST_NODES:
            return self._points, weights
        levels = (np.arange(_MOST_NODES) + 0.5) / _MOST_NODES
        middle = np.cumsum(weights) - weights / 2
        return np.rint(np.interp(levels, middle, self._points)), np.full(_MOST_NODES, 1 / _MOST_NODES)


def _sampled(
    matches: Counts, audited: Counts | Floats, right: Counts | Floats
) -> Iterator[tuple[int, tuple[int, float, float]]]:
    for index in np.nonzero(audited)[0]:
        yield int(index), (int(matches[index]), audited[index].item(), right[index].item())


def _likely(m: int, n: float, k: float) -> tuple[float, float]:
    """Range of correct matches among m outside which the sample makes the number practically impossible."""
    share = (k + 0.5) / (n + 1)
    spread = np.sqrt(share * (1 - share) / (n + 2))
    reach = _STANDARD_DEVIATIONS * spread + _STANDARD_DEVIATIONS**2 / (n + 2)
    low, high = max(share - reach, 0.0), min(share + reach, 1.0)
    return k + (m - n) * low, k + (m - n) * high


def _support(likely: tuple[float, float], expected: tuple[float, float], sample: tuple[int, float, float]) -> Floats:
    """Numbers of correct matches that the sample allows, dense where the sample or the prediction expects them.

    The range between the two is covered as well, so that no single number has to represent a wide gap.
    """
    m, n, k = sample
    least, most = float(k), float(m - n + k)
    ranges = (likely, expected, (min(likely[0], expected[0]), max(likely[1], expected[1])))
    clipped = ((min(max(low, least), most), max(min(high, most), least)) for low, high in ranges)
    return np.unique(np.concatenate([_between(low, high, m) for low, high in clipped]))


def _between(low: float, high: float, m: int) -> Floats:
    """Whole numbers between two limits, within 0 … m: all of them, or evenly spaced ones; at least one."""
    low = min(max(np.floor(low), 0.0), float(m))
    high = max(min(np.ceil(high), float(m)), low)
    return np.unique(np.rint(np.linspace(low, high, int(min(high - low + 1, _MOST_POINTS)))))


def _widths(points: Floats) -> Floats:
    """How many whole numbers each of the chosen numbers represents."""
    edges = np.concatenate([points[:1] - 0.5, (points[1:] + points[:-1]) / 2, points[-1:] + 0.5])
    return np.diff(edges)


def _limits(points: Floats, log: Floats, confidence: float) -> tuple[float, float]:
    """Limits that leave at most half of 1 - confidence on each side; rounding never makes them narrower."""
    weights = np.exp(log - log.max()) * _widths(points)
    below = np.cumsum(weights) / weights.sum()
    tail = (1 - confidence) / 2
    indices = np.searchsorted(below, tail - _TAIL_ROUNDING), np.searchsorted(below, 1 - tail + _TAIL_ROUNDING)
    first, last = (min(int(index), len(points) - 1) for index in indices)
    return float(points[first]), float(points[last])


def _around(mean: float, low: float, high: float) -> tuple[float, float]:
    """The limits, moved out to the whole numbers on both sides of a mean; a mean of one number is that number."""
    rounding = _MEAN_ROUNDING * (1 + mean)
    return min(low, float(np.floor(mean + rounding))), max(high, float(np.ceil(mean - rounding)))


def _log_choose(n: Floats | float, k: Floats | float) -> NDArray[np.float64]:
    """Logarithm of a binomial coefficient; -inf where k is not from 0 to n."""
    n, k = np.asarray(n, dtype=np.float64), np.asarray(k, dtype=np.float64)
    inside = (k >= 0) & (k <= n)
    n_, k_ = np.where(inside, n, 1.0), np.where(inside, k, 0.0)
    return np.where(
        inside,
        scipy.special.gammaln(n_ + 1) - scipy.special.gammaln(k_ + 1) - scipy.special.gammaln(n_ - k_ + 1),
        -np.inf,
    )
