"""Estimates with a false positive rate that is adjusted for strata: the table `before_after_adjusted`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...errors import DataError
from ...metrics.before_after.adjusted import (
    ADJUSTED_NAMES,
    Standardised,
    Stratum,
    adjusted_intervals,
    adjusted_sums,
    standardise,
)
from ...metrics.uncertainty.limits import Interval, with_quality
from ...tables.columns import by_group, doubles, texts
from ...tables.schemas import GROUPING
from ...tables.sweep import THRESHOLD, add_up
from . import marks
from .marks import MATCHES
from .strata import COUNTED, KEYS
from .uncertainty import groups_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...metrics.uncertainty.cube import Cube
    from ...metrics.uncertainty.jackknife import Floats
    from ...metrics.uncertainty.reasons import Reason
    from .contract import BeforeAfterParameters
    from .uncertainty import EstimatedGroup

TABLE = "before_after_adjusted"
COUNTS = ("n_strata", "n_after_unsupported")
RATIOS = ("fpr", "fp", "precision", "recall", "f1")
VALUES = (
    *("fpr_adjusted", "fpr_adjusted_lower", "fpr_adjusted_upper", "fp_adjusted", "precision_adjusted"),
    *("precision_adjusted_lower", "precision_adjusted_upper", "recall_adjusted", "f1_adjusted"),
)
ADJUSTED = ("fpr_adjusted", "precision_adjusted")
REASONS = ("undefined", "undefined_interval")
WORDS = ("pairs before", "pairs after", "scored pairs before")


def table(
    curve: pl.DataFrame, counts: Mapping[str, pl.DataFrame], cube: Cube, params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table `before_after_adjusted`; without strata it has no row.

    Args:
        curve: Estimates, one row per group × threshold.
        counts: The count tables, `counts` and `strata` among them.
        cube: The counts of `counts`.
        params: The parameters of the stage.

    Raises:
        DataError: the strata do not hold the pairs that the estimates hold.
    """
    keys = list(cube.keys)
    _check_complete(counts, keys)
    strata = by_group(counts[COUNTED], keys)
    groups = ((group, group.rows.select(keys).row(0)) for group in groups_of(curve, cube))
    frames = [_group(group, strata.get(key, counts[COUNTED].clear()), params) for group, key in groups]
    table = pl.concat([frame.select(*keys, THRESHOLD, *COUNTS, *VALUES, *REASONS, *MATCHES) for frame in frames])
    parents = marks.clusters(cube, params, crossed=False)
    return with_quality(table, ADJUSTED, clusters=parents, keys=keys, events=MATCHES).drop(MATCHES)


def _check_complete(counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> None:
    """Every pair of the estimates must lie in a stratum, and a stratum cannot have more matches than pairs."""
    names = ["n_before", "n_after", "m_before"]
    pairs = add_up(counts["counts"], keys, names)
    strata = add_up(counts[COUNTED], keys, names)
    both = pairs.join(strata, on=list(keys), how="left", nulls_equal=True, suffix="_strata").sort(keys)
    for name, words in zip(names, WORDS, strict=True):
        odd = both.filter(pl.col(name) != pl.col(f"{name}_strata").fill_null(0))
        if not odd.is_empty():
            row = odd.row(0, named=True)
            message = (
                f"strata: only {row[f'{name}_strata'] or 0:,} of {row[name]:,} {words} the event have an article that "
                f"is listed in articles ({row[GROUPING.name]})"
            )
            raise DataError(message, remedy="List every article of pairs, or stratify by columns of events.")
    by_stratum = add_up(counts[COUNTED], [*keys, *KEYS], names)
    if not by_stratum.filter(pl.col("m_before") > pl.col("n_before")).is_empty():
        message = "strata: a stratum has more matches than compared pairs before the event"
        raise DataError(message, remedy="The lags of pairs do not fit the times of events and articles: check these.")


def _group(group: EstimatedGroup, strata: pl.DataFrame, params: BeforeAfterParameters) -> pl.DataFrame:
    """The rows of one group."""
    _, m_after, n_before, n_after = group.sides
    used = n_before + n_after > 0
    standardised = standardise(_strata(group, strata, used), int(used.sum()), group.rows.height)
    intervals = _intervals(standardised, group, used, params)
    counts = [np.atleast_1d(column.sum(axis=0)).astype(np.float64) for column in (m_after, n_before, n_after)]
    values, reason = _estimates(standardised, counts, group.reference, params.recall_reference.middle)
    for name, interval in intervals.items():  # rounding apart, an interval holds its estimate
        estimate = values[f"{name}_adjusted"]
        values[f"{name}_adjusted_lower"] = np.minimum(interval.lower, estimate)
        values[f"{name}_adjusted_upper"] = np.maximum(interval.upper, estimate)
    first = (a or b for a, b in zip(intervals["fpr"].reason, intervals["precision"].reason, strict=True))
    return group.rows.with_columns(
        pl.lit(standardised.n_strata, dtype=pl.Int64).alias("n_strata"),
        pl.lit(standardised.n_unsupported, dtype=pl.Int64).alias("n_after_unsupported"),
        *(doubles(name, values[name]) for name in VALUES),
        texts("undefined", reason),
        texts("undefined_interval", first),
    )


def _strata(group: EstimatedGroup, strata: pl.DataFrame, used: NDArray[np.bool_]) -> Iterator[Stratum]:
    """The strata of a group in a fixed order, with the replicates that have data."""
    for rows in strata.sort(KEYS).partition_by(KEYS, maintain_order=True):
        counts = group.counts.with_counts(rows)
        n_before, n_after = (counts.totals(name)[used] for name in ("n_before", "n_after"))
        yield Stratum(counts.at_or_above("m_before")[used], n_before, n_after)


def _intervals(
    standardised: Standardised, group: EstimatedGroup, used: NDArray[np.bool_], params: BeforeAfterParameters
) -> dict[str, Interval]:
    if params.uncertainty == "none" or not group.counts.within_budget:
        reason: Reason = "none" if params.uncertainty == "none" else "budget"
        return dict.fromkeys(ADJUSTED_NAMES, Interval.none(group.rows.height, reason))
    _, m_after, n_before, n_after = group.sides
    return adjusted_intervals(
        standardised,
        m_after[used],
        n_before[used],
        n_after[used],
        reference=group.reference,
        confidence=params.confidence,
        reference_recalls=params.recall_reference.recalls,
        choice=params.recall_reference.choice,
    )


@np.errstate(divide="ignore", invalid="ignore")
def _estimates(
    standardised: Standardised, counts: Sequence[Floats], reference: int | None, reference_recall: float
) -> tuple[dict[str, Floats], NDArray[np.object_]]:
    """The ratios, by the null rules of the plain estimates, and why the first of them is missing.

    Args:
        standardised: The false positives, if all pairs after the event were negative.
        counts: M_a, N_b and N_a.
        reference: Index of the recall reference.
        reference_recall: What recall is believed to be there.
    """
    is_supported = bool(counts[1] > 0) and not standardised.n_unsupported
    fp = standardised.fp if is_supported else np.full_like(standardised.fp, np.nan)
    sums = adjusted_sums(fp, counts, reference, reference_recall)
    identified = (sums.tp_reference > 0) & sums.is_possible
    tp = np.where(identified, sums.tp_corrected, np.nan)
    found = np.where(tp >= 0, tp, np.nan)
    recall = np.minimum(found / sums.positives, 1.0)
    f1 = 2 * found / (sums.m_after + np.maximum(found, sums.positives))
    values = (sums.fpr, sums.m_after - tp, tp / sums.m_after, recall, f1)
    reasons = {
        "unsupported_stratum" if counts[1] > 0 else "no_before": not is_supported,
        "no_prediction": sums.m_after == 0,
        "no_reference": ~(sums.tp_reference > 0),
        "unidentified": ~(sums.gap > 0),
        "all_positive": ~sums.is_possible,
        "negative_tp": tp < 0,
    }
    reason = np.full(len(fp), None, dtype=object)
    for name, holds in reversed(reasons.items()):
        reason[np.broadcast_to(holds, len(fp))] = name
    named = {
        f"{name}_adjusted": np.where(np.isfinite(of_name), of_name, np.nan)
        for name, of_name in zip(RATIOS, values, strict=True)
    }
    return named, reason
