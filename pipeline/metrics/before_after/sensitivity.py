"""How sensitive the before/after estimates are to the recall reference and to equal false positive rates."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import scipy

from ...base.columns import THRESHOLD
from ...base.records import dataclass
from ..curves.operating_points import pick
from ..uncertainty.clusters import JackknifeSpread
from ..uncertainty.jackknife import leave_one_out
from ..uncertainty.limits import Interval, limit_series
from .assumption import placebo
from .estimates import ReferenceRule, Sums, references_of, with_estimates
from .formulas import in_doubles
from .intervals import MIN_REPLICATES, intervals_of_sums

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats, Limits
    from ..uncertainty.limits import Reason
    from .assumption import NearAndFar
    from .estimates import Counts
    from .formulas import Numbers
    from .intervals import Choice


# The false positive rate standardised to the pairs after the event: direct standardisation over strata.
#
# Chance matches can be more frequent in some strata, such as certain days of the week. If the compared pairs after the
# event are spread over the strata differently from those before it, the plain rate M_b / N_b belongs to the wrong
# mixture. Applying each stratum's rate before the event to its pairs after the event (Miettinen 1972) corrects this:
#
#     FP_adj = sum over s of (M_b,s / N_b,s) N_a,s       FPR_adj = FP_adj / N_a
#
# Everything else follows from FP_adj as the plain estimates do from FP.


ADJUSTED_NAMES = ("fpr", "precision")


@dataclass(frozen=True)
class Stratum:
    """Counts of one stratum by replicate.

    Attributes:
        m_before: Shape (G, T): matches before the event at or above each threshold.
        n_before: Shape (G,): compared pairs before the event.
        n_after: Shape (G,): the same after it.
    """

    m_before: Counts
    n_before: Counts
    n_after: Counts


@dataclass(frozen=True)
class Standardised:
    """Estimated false positives after the event.

    Attributes:
        fp: Shape (T,).
        fp_jackknifed: Shape (G, T): `fp` without each replicate in turn, scaled up to the size of the full totals; nan
            where a stratum is then left with pairs after the event but none before it. The array has no rows if there
            are fewer than two replicates.
        n_strata: Number of strata with at least one compared pair.
        n_unsupported: Number of pairs after the event in strata that have no pair before it; `fp` does not include
            their false positives.
    """

    fp: Floats
    fp_jackknifed: Floats
    n_strata: int
    n_unsupported: int


def standardise(strata: Iterable[Stratum], replicates: int, thresholds: int) -> Standardised:
    """Sum the expected false positives over the strata, in the order in which they come.

    Args:
        strata: The strata; their arrays have the same shapes.
        replicates: Number of replicates, G.
        thresholds: Number of thresholds, T.
    """
    fp, n_strata, n_unsupported = np.zeros(thresholds), 0, 0
    fp_jackknifed = np.zeros((replicates if replicates >= MIN_REPLICATES else 0, thresholds))
    for stratum in strata:
        n_before, n_after = int(stratum.n_before.sum()), int(stratum.n_after.sum())
        n_strata += n_before + n_after > 0
        if n_before:
            fp += stratum.m_before.sum(axis=0).astype(np.float64) * n_after / n_before
        else:
            n_unsupported += n_after
        if n_after and len(fp_jackknifed):
            fp_jackknifed += _jackknifed_false_positives(stratum)
    return Standardised(fp, fp_jackknifed, n_strata, n_unsupported)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _jackknifed_false_positives(stratum: Stratum) -> Floats:
    """False positives of a stratum without each replicate in turn; 0 where it then has no pair after the event."""
    matches, before, after = (
        leave_one_out(counts) for counts in (stratum.m_before, stratum.n_before[:, None], stratum.n_after[:, None])
    )
    return np.where(after > 0, matches / before * after, 0.0)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def adjusted_intervals(
    standardised: Standardised,
    m_after: Counts,
    n_before: Counts,
    n_after: Counts,
    *,
    reference: int | None,
    confidence: float,
    reference_recalls: Sequence[float] = (1.0,),
    choice: Choice | None = None,
) -> dict[str, Interval]:
    """Intervals of the ratios based on the standardised rate, computed as `intervals` computes them for the plain rate.

    The standardised rate takes the place of M_b / N_b, both in the totals and without each replicate. The weights of
    the strata therefore vary with the replicates, as they would vary with other events.

    Args:
        standardised: Result of `standardise`, restricted to replicates with at least one pair.
        m_after: Shape (G, T): matches after the event, of the same replicates.
        n_before: Shape (G,): compared pairs before the event, in all strata.
        n_after: Shape (G,): the same after it.
        reference: Index of the threshold that recall is measured against, or None if there is none.
        confidence: Such as 0.95.
        reference_recalls: As for `intervals`.
        choice: As for `intervals`.
    """
    size = m_after.shape[1]
    if len(n_before) < MIN_REPLICATES or not n_after.any():
        return dict.fromkeys(ADJUSTED_NAMES, Interval.none(size, "one_replicate"))
    if standardised.n_unsupported or np.isnan(standardised.fp_jackknifed).any():
        reason: Reason = "unsupported_stratum" if standardised.n_unsupported else "thin_stratum"
        return dict.fromkeys(ADJUSTED_NAMES, Interval.none(size, reason))
    counts = (m_after, n_before[:, None], n_after[:, None])
    sums = [values.sum(axis=0).astype(np.float64) for values in counts]
    without = [leave_one_out(values) for values in counts]
    totals = adjusted_sums(standardised.fp, sums, reference, reference_recalls[0])
    jackknifed = adjusted_sums(standardised.fp_jackknifed, without, reference, reference_recalls[0])
    spread = JackknifeSpread((len(n_before),))
    limits = intervals_of_sums(totals, jackknifed, spread, reference_recalls, confidence=confidence, choice=choice)
    return {name: limits[name] for name in ADJUSTED_NAMES}


def adjusted_sums(fp: Floats, counts: Sequence[Floats], reference: int | None, reference_recall: float) -> Sums:
    """The sums in which the standardised rate takes the place of the plain one.

    FP / N_a × N_b is the M_b that gives the rate by which FP of the N_a pairs after the event would be false positives
    if all of them were negative.

    Args:
        fp: As in `Standardised`: totals, or without each replicate.
        counts: M_a, N_b and N_a likewise.
        reference: Index of the threshold that recall is measured against, or None if there is none.
        reference_recall: What recall is believed to be there.
    """
    m_after, n_before, n_after = counts
    return Sums.of(reference, reference_recall, [fp / n_after * n_before, m_after, n_before, n_after])


_RULES: tuple[ReferenceRule, ...] = ("lowest", "max")
_MIN_PRECISIONS = (0.01, 0.05, 0.1, 0.2)
_KAPPAS = np.geomspace(1.0, 100.0, 400)
_F1_LOSS = 0.01  # that overturns the choice of a threshold


def over_references(
    sweep: pl.DataFrame,
    keys: Sequence[str],
    chosen: pl.DataFrame,
    min_precision_of_run: float,
    reference_recall: float = 1.0,
) -> pl.DataFrame:
    """Recall at a chosen threshold and the best threshold, for every reference rule and minimum precision.

    Args:
        sweep: As for `estimates`.
        keys: Columns that identify a group.
        chosen: One row per group: `keys` and `threshold`, the threshold whose recall is wanted.
        min_precision_of_run: The minimum precision of this run, used in addition to 0.01, 0.05, 0.1 and 0.2.
        reference_recall: What recall is believed to be at every reference.

    Returns:
        One row per group, rule and minimum precision: `rule`, `min_precision`, `reference_threshold`,
        `reference_precision`, `reference_tp`, `threshold` (the chosen one), `recall`, `f1`, `best_threshold` and
        `best_f1`. Without a reference all columns but `rule`, `min_precision` and `threshold` are NULL.
    """
    frames: list[pl.DataFrame] = []
    results: list[tuple[pl.DataFrame, pl.DataFrame]] = []
    for rule, min_precision in product(_RULES, sorted({*_MIN_PRECISIONS, min_precision_of_run})):
        references = references_of(sweep, keys, rule=rule, min_precision=min_precision)
        # most minimum precisions lead to the same references, which give the same result
        result = next((result for others, result in results if others.equals(references)), None)
        if result is None:
            result = _one_reference(sweep, keys, chosen, references, reference_recall)
            results.append((references, result))
        labels = [pl.lit(rule).alias("rule"), pl.lit(min_precision).alias("min_precision")]
        frames.append(result.with_columns(labels))
    return pl.concat(frames)


def _one_reference(
    sweep: pl.DataFrame, keys: Sequence[str], chosen: pl.DataFrame, references: pl.DataFrame, reference_recall: float
) -> pl.DataFrame:
    curve = with_estimates(sweep, keys, references, reference_recall, ("precision", "tp", "recall", "f1"))
    reference = curve.filter("is_reference").select(
        *keys,
        pl.col(THRESHOLD).alias("reference_threshold"),
        pl.col("precision").alias("reference_precision"),
        pl.col("tp").alias("reference_tp"),
    )
    best = pick(curve, keys, criterion="max_f1", among=pl.lit(value=True), best=pl.col("f1")).select(
        *keys, pl.col(THRESHOLD).alias("best_threshold"), pl.col("f1").alias("best_f1")
    )
    at_chosen = chosen.select(*keys, THRESHOLD).join(
        curve.select(*keys, THRESHOLD, "recall", "f1"), on=[*keys, THRESHOLD], how="left", nulls_equal=True
    )
    joined = at_chosen.join(reference, on=list(keys), how="left", nulls_equal=True)
    return joined.join(best, on=list(keys), how="left", nulls_equal=True)


def overturning_kappa(
    m_before: NDArray[np.int64],
    m_after: NDArray[np.int64],
    n_before: int,
    n_after: int,
    *,
    reference: int,
    chosen: int,
    reference_recall: float = 1.0,
) -> float:
    """Smallest κ ≥ 1 in FPR_after = κ FPR_before at which some other threshold has an F1 higher by more than 0.01.

    The recall reference is held fixed. κ is searched in 400 steps from 1 to 100.

    Args:
        m_before: Matches before the event at every threshold, shape (T,).
        m_after: Matches after it, shape (T,).
        n_before: Compared pairs before the event.
        n_after: Compared pairs after it.
        reference: Index of the recall reference.
        chosen: Index of the chosen threshold.
        reference_recall: What recall is believed to be at the reference, r0.

    Returns:
        κ, or nan if no κ up to 100 overturns the choice.
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        # for every κ and threshold, shape (400, T); F1 is 0 where nothing right is retrieved
        rates = _KAPPAS[:, None] * (m_before / n_before)[None, :]
        numbers = _at_rates(rates, m_after, n_after, reference, reference_recall)
        f1 = np.where(numbers["tp_at_reference"] > 0, np.nan_to_num(numbers["f1"]), 0.0)
    overturned = np.nonzero(f1.max(axis=1) - f1[:, chosen] > _F1_LOSS)[0]
    return float(_KAPPAS[overturned[0]]) if len(overturned) else float("nan")


def with_kappas(
    points: pl.DataFrame, curve: pl.DataFrame, keys: Sequence[str], reference_recall: float = 1.0
) -> pl.DataFrame:
    """Add `kappa_vanishing` and `kappa_overturning` to operating points.

    Args:
        points: One row per group and criterion, with `threshold`.
        curve: Estimates, one row per group × threshold.
        keys: Columns that identify a group.
        reference_recall: What recall is believed to be at the reference.
    """
    curves = {group.select(keys).row(0): group for group in curve.sort(THRESHOLD).partition_by(list(keys))}
    labels = points.select(keys).rows()
    overturning = [
        _overturning(curves[label], threshold, reference_recall) if threshold is not None else None
        for label, threshold in zip(labels, points[THRESHOLD].to_list(), strict=True)
    ]
    column = pl.Series("kappa_overturning", overturning, dtype=pl.Float64).fill_nan(None)
    return points.with_columns(vanishing_kappa().alias("kappa_vanishing"), column)


def _overturning(curve: pl.DataFrame, threshold: float, reference_recall: float) -> float | None:
    reference = curve["is_reference"].arg_max()
    if reference is None or not curve["is_reference"].any() or curve["n_before"][0] == 0:
        return None
    return overturning_kappa(
        curve["m_before"].to_numpy(),
        curve["m_after"].to_numpy(),
        curve["n_before"][0],
        curve["n_after"][0],
        reference=reference,
        chosen=int(np.searchsorted(curve[THRESHOLD].to_numpy(), threshold)),
        reference_recall=reference_recall,
    )


def vanishing_kappa() -> pl.Expr:
    """The κ in FPR_after = κ FPR_before at which no positive is left among the matches: M_a / (FPR N_a).

    NULL where no false positive is expected. With no positive left, all pairs after the event are negative, so it is
    the uncorrected FP that counts.
    """
    return pl.when(pl.col("fp_uncorrected") > 0).then(pl.col("m_after") / pl.col("fp_uncorrected"))


# How far the false positive rate after the event may differ from that before it: a prior of κ, after over before.
#
# The estimate without labels takes κ = 1. Nothing before the event can prove that: an event draws attention and
# changes what else is written. A conclusion that is drawn from the rate before the event and from labels together
# must therefore hold doubt about κ. It is a gamma distribution with mean 1 and a variance of two terms:
#
# - `DOUBT`², which no data set can take away. With it κ lies between 0.38 and 1.92 in nineteen of twenty cases.
# - The drift that the time before the event shows. The placebo compares the near part with the far part, the trend
#   projects the slope per day from the middle of the time before the event to the middle of the time after it. Each
#   gives a log rate ratio L with a standard error s. If the drift of the rate over such a time is random with
#   variance τ², then E L² = τ² + s², so that L² - s² estimates τ²; the larger of the two is taken, and at least 0
#   (the estimator of moments of DerSimonian & Laird 1986, for a single study).


DOUBT = 0.4  # standard deviation of κ that remains when nothing drifts before the event
ONE_ERROR = 0.6826894921370859  # confidence of an interval of one standard error on both sides


@dataclass(frozen=True)
class LogRatio:
    """A measured drift of the false positive rate; shapes are (T,), or single numbers.

    Attributes:
        value: Natural logarithm of the later rate over the earlier one; nan where it is not known.
        error: Its standard error; nan likewise.
    """

    value: Floats
    error: Floats

    @property
    def excess(self) -> Floats:
        """Estimate of the variance of the drift, ≥ 0; 0 where it is not known."""
        return np.nan_to_num(np.maximum(self.value**2 - self.error**2, 0.0))


def placebo_ratio(
    m_far: Counts, m_near: Counts, n_far: Counts, n_near: Counts, *, crossed: Sequence[NearAndFar] = ()
) -> LogRatio:
    """The log rate ratio of the placebo test with its standard error; takes the arguments of `placebo`."""
    tests = placebo(m_far, m_near, n_far, n_near, confidence=ONE_ERROR, crossed=crossed)
    return LogRatio(tests.log_rate_ratio, (tests.upper - tests.lower) / 2)


def kappa_variance(*drifts: LogRatio) -> Floats:
    """Variance of the prior of κ, from what drifts were measured; see the head of this file."""
    excess = np.zeros(1)
    for drift in drifts:
        excess = np.maximum(excess, drift.excess)
    return np.asarray(DOUBT**2 + excess)


def kappa_limits(variance: Floats, confidence: float) -> Limits:
    """The range in which κ lies with this probability, with equal tails."""
    shape = 1 / variance
    tails = ((1 - confidence) / 2, (1 + confidence) / 2)
    lower, upper = (np.asarray(scipy.special.gammaincinv(shape, tail) / shape) for tail in tails)
    return lower, upper


# Precision and recall as κ, the false positive rate after the event over that before it, runs from 0.75 to 1.5.


KAPPAS = np.geomspace(0.75, 1.5, 31)
BANDS = ("precision_over_kappa", "recall_over_kappa")
_COUNTS = ("m_before", "m_after", "n_before", "n_after")


@np.errstate(divide="ignore", invalid="ignore")
def ratios_over_kappa(chosen: Floats, reference: Floats, reference_recall: float = 1.0) -> tuple[Floats, Floats]:
    """Corrected precision and recall at one threshold for every κ in `KAPPAS`.

    They follow as on the page of formulas, with κ M_b / N_b as the false positive rate at both thresholds.

    Args:
        chosen: M_b, M_a, N_b and N_a at the threshold, shape (4,).
        reference: The same at the recall reference.
        reference_recall: What recall is believed to be there, r0.

    Returns:
        Two arrays of the shape of `KAPPAS`. Precision may be negative, recall is clipped to [0, 1]; nan where there is
        no estimate of the positives: A is not between 0 and N_a, or there is no pair before the event.
    """
    m_before, m_after = np.stack([chosen[:2], reference[:2]], axis=1)  # at the threshold, and at the reference
    rates = KAPPAS[:, None] * m_before / chosen[2]
    numbers = _at_rates(rates, m_after, chosen[3], 1, reference_recall)
    tp = np.where(numbers["tp_at_reference"] > 0, numbers["tp"], np.nan)[:, 0]  # no positives are none to estimate from
    precision = tp / np.where(m_after[0] > 0, m_after[0], np.nan)
    return np.asarray(precision), np.asarray(np.clip(tp / numbers["positives"][:, 0], 0.0, 1.0))


def _at_rates(
    rates: Floats, m_after: Floats | NDArray[np.int64], n_after: float, reference: int, reference_recall: float
) -> Numbers:
    """The page where the false positive rates after the event are others than those before it."""
    counts = {"fpr": rates, "m_after": np.asarray(m_after, np.float64), "n_after": np.full(1, float(n_after))}
    return in_doubles({**counts, "recall_at_reference": np.full(1, reference_recall)}, reference)


def with_bands(
    points: pl.DataFrame, curve: pl.DataFrame, keys: Sequence[str], reference_recall: float = 1.0
) -> pl.DataFrame:
    """Add `precision_over_kappa_lower`, `…_upper`, and the like for recall, to operating points.

    Args:
        points: One row per group and criterion, with `threshold` and the counts.
        curve: Estimates, one row per group × threshold; `is_reference` marks the recall reference.
        keys: Columns that identify a group.
        reference_recall: What recall is believed to be at the reference.

    Returns:
        The lowest and the highest value over all κ; NULL where there is no reference, no match, or no estimate of the
        positives for one of the κ.
    """
    names = [f"_{name}" for name in _COUNTS]
    references = curve.filter("is_reference").select(
        *keys, *(pl.col(name).alias(alias) for name, alias in zip(_COUNTS, names, strict=True))
    )
    joined = points.select(*keys, THRESHOLD, *_COUNTS).join(
        references, on=list(keys), how="left", nulls_equal=True, maintain_order="left"
    )
    counts, of_references = (
        joined.select(columns).cast(pl.Float64).fill_null(np.nan).to_numpy() for columns in (_COUNTS, names)
    )
    values = [
        ratios_over_kappa(chosen, reference, reference_recall)
        for chosen, reference in zip(counts, of_references, strict=True)
    ]
    bands = np.array(values).reshape(len(values), len(BANDS), len(KAPPAS))
    return points.with_columns(
        *(
            series
            for index, name in enumerate(BANDS)
            for series in limit_series(name, (bands[:, index].min(axis=1), bands[:, index].max(axis=1)))
        )
    )
