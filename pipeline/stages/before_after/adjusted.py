"""Estimates with a false positive rate that is adjusted for strata: the table `before_after_adjusted`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.errors import DataError
from pipeline.metrics.before_after.adjusted import NAMES, Standardised, Stratum, adjusted_intervals, standardise
from pipeline.metrics.before_after.intervals import no_interval
from pipeline.plan.count_tables import REPLICATE
from pipeline.stages.before_after.strata import COUNTED, KEYS
from pipeline.stages.before_after.uncertainty import BUDGET, group_counts
from pipeline.tables.schemas import GROUPING
from pipeline.tables.sweep import THRESHOLD, add_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from pipeline.metrics.before_after.intervals import Interval
    from pipeline.stages.before_after.contract import BeforeAfterParameters
    from pipeline.stages.before_after.uncertainty import GroupCounts

TABLE = "before_after_adjusted"
COUNTS = ("n_strata", "n_after_unsupported")
RATIOS = ("fpr", "fp", "precision", "recall", "f1")
VALUES = (
    *("fpr_adjusted", "fpr_adjusted_lower", "fpr_adjusted_upper", "fp_adjusted", "precision_adjusted"),
    *("precision_adjusted_lower", "precision_adjusted_upper", "recall_adjusted", "f1_adjusted"),
)
REASONS = ("undefined", "undefined_interval")
WORDS = ("pairs before", "pairs after", "scored pairs before")


def table(
    curve: pl.DataFrame, counts: Mapping[str, pl.DataFrame], keys: Sequence[str], params: BeforeAfterParameters
) -> pl.DataFrame:
    """The table `before_after_adjusted`; without strata it has no row.

    Args:
        curve: Estimates, one row per group × threshold.
        counts: The count tables `counts` and, with strata, `strata`.
        keys: Columns that identify a group.
        params: The parameters of the stage.

    Raises:
        DataError: the strata do not hold the pairs that the estimates hold.
    """
    if COUNTED not in counts or curve.is_empty():
        types = (*((name, pl.Int64()) for name in COUNTS), *((name, pl.Float64()) for name in VALUES))
        nothing = [
            pl.lit(None, dtype=kind).alias(name) for name, kind in (*types, *((r, pl.String()) for r in REASONS))
        ]
        return curve.clear().select(*keys, THRESHOLD).with_columns(*nothing)
    _check_whole(counts, keys)
    parts = {part.select(keys).row(0): part for part in counts[COUNTED].partition_by(list(keys))}
    return pl.concat(
        [
            _group(group, parts.get(group.rows.select(keys).row(0), counts[COUNTED].clear()), params).select(
                *keys, THRESHOLD, *COUNTS, *VALUES, *REASONS
            )
            for group in group_counts(curve, counts["counts"], keys, params)
        ]
    )


def _check_whole(counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> None:
    """Every pair of the estimates must lie in a stratum, and a stratum cannot have more matches than pairs."""
    names = ["n_before", "n_after", "m_before"]
    whole = add_up(counts["counts"], keys, names)
    strata = add_up(counts[COUNTED], keys, names)
    both = whole.join(strata, on=list(keys), how="left", nulls_equal=True, suffix="_strata").sort(keys)
    for name, words in zip(names, WORDS, strict=True):
        odd = both.filter(pl.col(name) != pl.col(f"{name}_strata").fill_null(0))
        if not odd.is_empty():
            row = odd.row(0, named=True)
            message = (
                f"strata: only {row[f'{name}_strata'] or 0:,} of {row[name]:,} {words} the event have an article that "
                f"is listed in articles ({row[GROUPING.name]})"
            )
            raise DataError(message, remedy="List every article of pairs, or stratify by columns of events.")
    each = add_up(counts[COUNTED], [*keys, *KEYS], names)
    if not each.filter(pl.col("m_before") > pl.col("n_before")).is_empty():
        message = "strata: a stratum has more matches than compared pairs before the event"
        raise DataError(message, remedy="The lags of pairs do not fit the times of events and articles: check these.")


def _group(group: GroupCounts, part: pl.DataFrame, params: BeforeAfterParameters) -> pl.DataFrame:
    """The rows of one group."""
    matches, pairs = group.swept["m_after"], (group.totals["n_before"], group.totals["n_after"])
    used = pairs[0] + pairs[1] > 0
    found = standardise(_strata(group, part, used, params), int(used.sum()), group.rows.height)
    found_limits = _intervals(found, group, used, params)
    values, reason = _estimates(found, matches.sum(axis=0), int(pairs[0].sum()), int(pairs[1].sum()), group.reference)
    for name, each in found_limits.items():  # rounding apart, an interval holds its estimate
        estimate = values[f"{name}_adjusted"]
        values[f"{name}_adjusted_lower"] = np.minimum(each.lower, estimate)
        values[f"{name}_adjusted_upper"] = np.maximum(each.upper, estimate)
    first = [a or b for a, b in zip(found_limits["fpr"].reason, found_limits["precision"].reason, strict=True)]
    return group.rows.with_columns(
        pl.lit(found.n_strata, dtype=pl.Int64).alias("n_strata"),
        pl.lit(found.n_unsupported, dtype=pl.Int64).alias("n_after_unsupported"),
        *(pl.Series(name, values[name], dtype=pl.Float64).fill_nan(None) for name in VALUES),
        pl.Series("undefined", reason.tolist(), dtype=pl.String),
        pl.Series("undefined_interval", first, dtype=pl.String),
    )


def _strata(
    group: GroupCounts, part: pl.DataFrame, used: NDArray[np.bool_], params: BeforeAfterParameters
) -> Iterator[Stratum]:
    """The strata of a group in a fixed order, with the replicates that have data."""
    thresholds, own = group.rows[THRESHOLD].to_numpy(), params.threshold_values is None and not params.inclusive
    for each in part.sort(KEYS).partition_by(KEYS, maintain_order=True):
        place = np.searchsorted(group.replicates, each[REPLICATE].to_numpy())
        edges = each[THRESHOLD].to_numpy()
        inside = ~np.isnan(edges)
        swept = np.zeros((len(group.replicates), len(thresholds)), dtype=np.int64)
        bins = np.searchsorted(thresholds, edges[inside])
        np.add.at(swept, (place[inside], bins), each["m_before"].to_numpy()[inside])
        above = swept[:, ::-1].cumsum(axis=1)[:, ::-1] - (swept if own else np.zeros_like(swept))
        totals = np.zeros((2, len(group.replicates)), dtype=np.int64)
        for row, name in enumerate(("n_before", "n_after")):
            np.add.at(totals[row], place, each[name].to_numpy())
        yield Stratum(above[used], totals[0][used], totals[1][used])


def _intervals(
    found: Standardised, group: GroupCounts, used: NDArray[np.bool_], params: BeforeAfterParameters
) -> dict[str, Interval]:
    if params.uncertainty == "none" or len(group.replicates) * group.rows.height > BUDGET:
        reason = "none" if params.uncertainty == "none" else "budget"
        return dict.fromkeys(NAMES, no_interval(group.rows.height, reason))
    return adjusted_intervals(
        found,
        group.swept["m_after"][used],
        group.totals["n_before"][used],
        group.totals["n_after"][used],
        reference=group.reference,
        confidence=params.confidence,
    )


def _estimates(
    found: Standardised, m_after: NDArray[np.int64], n_before: int, n_after: int, reference: int | None
) -> tuple[dict[str, NDArray[np.float64]], NDArray[np.object_]]:
    """The ratios, by the null rules of the plain estimates, and why the first of them is missing."""
    supported = n_before > 0 and not found.n_unsupported
    fp = found.fp if supported else np.full_like(found.fp, np.nan)
    tp = m_after - fp
    positive = tp[reference] if reference is not None and tp[reference] > 0 else np.nan
    with np.errstate(divide="ignore", invalid="ignore"):
        fpr = fp / n_after if n_after else np.full_like(fp, np.nan)
        precision = np.where(m_after > 0, tp / m_after, np.nan)
        raw = np.where(tp >= 0, tp / positive, np.nan)
        f1 = 2 * np.where(tp >= 0, tp, np.nan) / (m_after + np.maximum(tp, positive))
    reason = np.full(len(fp), None, dtype=object)
    reason[np.isnan(positive)] = "no_reference"
    reason[tp < 0] = "negative_tp"
    reason[m_after == 0] = "no_prediction"
    if not supported:
        reason[:] = "unsupported_stratum" if n_before else "no_before"
    values = (fpr, fp, precision, np.minimum(raw, 1.0), f1)
    return {f"{name}_adjusted": value for name, value in zip(RATIOS, values, strict=True)}, reason
