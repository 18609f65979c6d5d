"""Intervals at every threshold, from the replicates of the count table."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypedDict

import numpy as np
import polars as pl

from ...metrics.before_after import estimates as estimator
from ...metrics.before_after.days import spread_of
from ...metrics.before_after.intervals import INTERVAL_NAMES, MIN_REPLICATES, intervals
from ...metrics.before_after.placebo import NearAndFar, realised_precision_interval
from ...metrics.before_after.simultaneous import precision_at_least
from ...metrics.before_after.sums import Sides
from ...metrics.uncertainty.jackknife import leave_one_out
from ...metrics.uncertainty.limits import Interval, with_limits
from ...metrics.uncertainty.qualities import DESIGN_EFFECT
from ...metrics.uncertainty.serial import InTime
from ...records import dataclass
from ...tables.columns import doubles, nulls
from ...tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...metrics.before_after.references import Choice
    from ...metrics.before_after.sums import Counts
    from ...metrics.uncertainty.cube import Cube, GroupCounts
    from ...metrics.uncertainty.jackknife import Floats
    from .contract import BeforeAfterParameters

REALISED = "precision_realised"


class _Known(TypedDict):
    """What is known of the recall reference: arguments of `intervals`."""

    reference: int | None
    reference_recalls: tuple[float, ...]
    choice: Choice | None


@dataclass(frozen=True)
class EstimatedGroup:
    """The estimates of one group and the counts that they rest on.

    Attributes:
        rows: Its rows of the estimates, by rising threshold.
        counts: Its counts by replicate at these thresholds.
    """

    rows: pl.DataFrame
    counts: GroupCounts

    @cached_property
    def sides(self) -> tuple[Counts, Counts, Counts, Counts]:
        """Matches before and after the event, shape (G, T), and compared pairs before and after it, shape (G,)."""
        sides = self.clusterings[0]
        return sides.m_before, sides.m_after, sides.n_before, sides.n_after

    @cached_property
    def near(self) -> tuple[Counts, Counts]:
        """Matches and compared pairs in the near part of the time before the event.

        No pair at all where user-supplied numbers contradict the timelines.
        """
        matches, pairs = self.counts.at_or_above("m_near"), self.counts.totals("n_near")
        more_pairs = pairs > self.counts.totals("n_before")
        more_matches = matches.max(axis=1, initial=0) > pairs
        return matches, np.zeros_like(pairs) if more_pairs.any() or more_matches.any() else pairs

    @cached_property
    def crossed_periods(self) -> tuple[NearAndFar, ...]:
        """The time before the event in two parts, by the second parent of pairs and by both; none: they have none."""
        crossed = []
        for sides, counts in zip(self.clusterings[1:], self.counts.crossed, strict=False):
            m_near, n_near = counts.at_or_above("m_near"), counts.totals("n_near")
            crossed.append(NearAndFar(sides.m_before - m_near, m_near, sides.n_before - n_near, n_near))
        is_known = all(periods.n_near.any() and periods.n_far.any() for periods in crossed)
        return tuple(crossed) if is_known else ()

    @cached_property
    def clusterings(self) -> tuple[Sides, ...]:
        """The counts by every clustering of the pairs, that over events first.

        That alone where the compared pairs of the second parent are not known, or where one of its replicates has all.
        """
        by_events, *crossed = (_sides(counts) for counts in (self.counts, *self.counts.crossed))
        is_known = all(sides.n_before.astype(bool).sum() >= MIN_REPLICATES for sides in crossed)
        return (by_events, *crossed) if is_known else (by_events,)

    @property
    def reference(self) -> int | None:
        """Index of the recall reference."""
        references = np.flatnonzero(self.rows["is_reference"].to_numpy())
        return int(references[0]) if len(references) else None


def _sides(counts: GroupCounts) -> Sides:
    """The four counts of one clustering."""
    swept, totals = counts.at_or_above, counts.totals
    numbers = np.nan_to_num(counts.replicates, nan=-1).astype(np.int64)  # the time of an article may not be known
    in_time = None if counts.cycle is None else InTime(numbers, counts.cycle)
    return Sides(swept("m_before"), swept("m_after"), totals("n_before"), totals("n_after"), in_time)


def groups_of(curve: pl.DataFrame, cube: Cube) -> Iterator[EstimatedGroup]:
    """Every group of the estimates."""
    for rows, counts in cube.beside(curve):
        yield EstimatedGroup(rows, counts)


def with_intervals(
    curve: pl.DataFrame, cube: Cube, params: BeforeAfterParameters, clusters: pl.DataFrame
) -> pl.DataFrame:
    """The estimates with `<ratio>_lower`, `<ratio>_upper`, `undefined_interval` and `interval_quality`."""

    def of_group(rows: pl.DataFrame, counts: GroupCounts) -> dict[str, Interval]:
        return _intervals(EstimatedGroup(rows, counts), params)

    return with_limits(
        curve,
        cube,
        (*INTERVAL_NAMES, REALISED),
        of_group,
        wanted=params.is_replicated,
        clusters=clusters,
        events=("m_before", "m_after"),
        resamples=params.drawn_resamples,
    )


def with_design_effects(points: pl.DataFrame, cube: Cube, *, wanted: bool) -> pl.DataFrame:
    """Operating points with `design_effect`: the variance of the false positive rate over that of independent pairs.

    Kish (1965): V / (FPR (1 - FPR) / N_b), V being the jackknife variance over events, or over both parents with the
    correlation of days. NULL where V or its divisor is not known or 0.

    Args:
        points: Columns of the keys, `threshold`, `fpr`, `n_before` and others.
        cube: The counts that the estimates rest on.
        wanted: Whether intervals are asked for.
    """
    chosen = points.select(*cube.keys, THRESHOLD, "fpr", "n_before").drop_nulls([THRESHOLD, "fpr"])
    chosen = chosen.unique([*cube.keys, THRESHOLD], maintain_order=True)
    if not wanted or chosen.is_empty() or not cube.within_budget(chosen.height):
        return points.with_columns(nulls([DESIGN_EFFECT]))
    groups = groups_of(chosen, cube)
    effects = pl.concat([group.rows.with_columns(doubles(DESIGN_EFFECT, _design_effect(group))) for group in groups])
    effects = effects.drop("fpr", "n_before")
    return points.join(
        effects, on=[*cube.keys, THRESHOLD], how="left", nulls_equal=True, maintain_order="left", validate="m:1"
    )


@np.errstate(divide="ignore", invalid="ignore")
def _design_effect(group: EstimatedGroup) -> Floats:
    """The design effect of the false positive rate at every threshold of a group; nan where it is not known."""
    used = [sides.with_data for sides in group.clusterings]
    if len(used[0].n_before) < MIN_REPLICATES:
        return np.full(group.rows.height, np.nan)
    without = [leave_one_out(sides.m_before) / leave_one_out(sides.n_before)[:, None] for sides in used]
    fpr, pairs = group.rows["fpr"].to_numpy(), group.rows["n_before"].to_numpy()
    independent = fpr * (1 - fpr) / pairs
    effect = spread_of(used).variance(np.concatenate(without)) / independent
    return np.where(np.isfinite(effect) & (effect > 0), effect, np.nan)


def _intervals(group: EstimatedGroup, params: BeforeAfterParameters) -> dict[str, Interval]:
    """Intervals of the expected ratios and, last, of the realised precision."""
    expected = intervals(
        group.clusterings, **_known(group, params), confidence=params.confidence, resampling=params.resampling
    )
    realised = realised_precision_interval(
        *group.sides,
        *group.near,
        confidence=params.confidence,
        reference=group.reference,
        reference_recalls=params.recall_reference.recalls,
        crossed=group.crossed_periods,
    )
    # Where the realised interval is missing for another reason, one of the others is missing for it, too.
    missing = np.full(group.rows.height, None if group.near[1].any() else "no_near", dtype=object)
    return expected | {REALISED: Interval(realised.lower, realised.upper, missing)}


def with_safe_limits(curve: pl.DataFrame, cube: Cube, params: BeforeAfterParameters) -> pl.DataFrame:
    """The estimates with a working column for each confidence: precision limits that hold at all thresholds together.

    It is NULL where no limit can be given, without replicates, or over the budget.
    """
    confidences = list(dict.fromkeys(point.confidence for point in params.operating_points if point.confidence))
    if not confidences or not cube.within_budget(curve.height):
        return curve.with_columns(nulls(map(estimator.safe_column, confidences)))
    groups = groups_of(curve, cube)
    return pl.concat([each.rows.with_columns(_safe_limits(each, confidences, _known(each, params))) for each in groups])


def _safe_limits(group: EstimatedGroup, confidences: Sequence[float], known: _Known) -> Iterator[pl.Series]:
    for confidence in confidences:
        lower = precision_at_least(group.clusterings, **known, confidence=confidence)
        yield doubles(estimator.safe_column(confidence), lower)


def _known(group: EstimatedGroup, params: BeforeAfterParameters) -> _Known:
    """What is known of the reference of a group."""
    reference = params.recall_reference
    return {"reference": group.reference, "reference_recalls": reference.recalls, "choice": reference.choice}
