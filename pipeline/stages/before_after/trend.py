"""The match rate by day before the event: what it needs counted, and the table `before_after_trend`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...metrics.before_after.intervals import MIN_REPLICATES
from ...metrics.before_after.trend import CrossedMatches, trend
from ...metrics.uncertainty.cube import GroupCounts
from ...plan.counts import CountFunction, Query
from ...tables.columns import by_group, doubles, nulls, texts
from ...tables.sweep import REPLICATE, SECOND_REPLICATE, THRESHOLD, add_up
from .timelines import pairs_by_day

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import sqlglot.expressions as exp
    from numpy.typing import NDArray

    from ...metrics.before_after.timelines import Span
    from ...metrics.uncertainty.reasons import Reason
    from .contract import BeforeAfterParameters, Compared
    from .matchers import Matchers

TABLE = "before_after_trend"
COUNTED = "lag_pairs"
KEY, VALUE = "lag_days", "n_pairs"
HOURS = 24
LEAST_OF_GIVEN = 0.95
MOMENTS = "moments"  # sums of the days, in the middle of which matches lie
VALUES = ("slope", "slope_lower", "slope_upper", "p_value")


def counts(
    compared: Compared,
    bounds: Mapping[str, float],
    timelines: tuple[Mapping[str, exp.Query], Span] | None,
    matchers: Matchers,
) -> Iterator[Query | CountFunction]:
    """What counts the compared pairs of every day before the event; nothing where they cannot be known.

    Args:
        compared: Where the numbers of compared pairs come from.
        bounds: Which lags lie before the event.
        timelines: Queries of the rows `events` and `articles`, and the window; None: their times are not known.
        matchers: Who compared them.
    """
    if compared == "pairs":
        params = {name: bounds[name] for name in ("before_start", "before_end")}
        yield Query("before_after/pairs_by_day", params, (VALUE,), (KEY,), into=COUNTED)
    elif timelines is not None:
        frames, span = timelines

        def compute(rows: Mapping[str, pl.DataFrame], segment: Sequence[str]) -> pl.DataFrame:
            counted = pairs_by_day(rows["events"], rows["articles"], span, matchers.known(segment))
            return matchers.repeated(counted, rows, segment)

        yield CountFunction(
            "before_after/pairs_by_day", {**frames, **matchers.frames()}, compute, (VALUE,), (KEY,), COUNTED
        )


def table(params: BeforeAfterParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """The table `before_after_trend`, for at least one group.

    Args:
        params: The parameters of the stage.
        counts: The count tables `counts`, `lags` and, where known, `lag_pairs`.
        keys: Columns that identify a group.
    """
    groups = counts["counts"].select(keys).unique().sort(keys, nulls_last=True)
    before = counts["lags"].filter(pl.col(KEY) < 0, pl.col(THRESHOLD).is_not_null())
    matches, pairs = by_group(before, keys), by_group(counts.get(COUNTED, before.clear()), keys)
    compared = by_group(add_up(counts["counts"], [*keys, REPLICATE], ["n_before"]), keys)
    no_pairs = counts[COUNTED].clear() if COUNTED in counts else None
    frames = [
        _trend(params, groups[row], matches.get(key, before.clear()), pairs.get(key, no_pairs), compared[key])
        for row, key in enumerate(groups.rows())
    ]
    return pl.concat(frames)


def _trend(
    params: BeforeAfterParameters,
    group: pl.DataFrame,
    matches: pl.DataFrame,
    pairs: pl.DataFrame | None,
    compared: pl.DataFrame,
) -> pl.DataFrame:
    """The rows of one group; `pairs` is None where the compared pairs of a day are not known."""
    moments = pl.Series(MOMENTS, matches["matches"].to_numpy() * _middle(params, matches[KEY].to_numpy()))
    counts = GroupCounts.of(
        matches.with_columns(moments), params.lag_thresholds, replicates=compared[REPLICATE].to_numpy()
    )
    hits = counts.at_or_above("matches")
    rows = group.join(pl.DataFrame({THRESHOLD: counts.thresholds, "matches": hits.sum(axis=0)}), how="cross")
    if pairs is None or _contradicted(matches, pairs, compared):
        return _untested(rows, None, "unknown_pairs")
    with_pairs = pairs.filter(pl.col(VALUE) > 0)
    days = np.unique(with_pairs[KEY].to_numpy())
    if params.uncertainty == "none":
        return _untested(rows, len(days), "none")
    table = _by_day(with_pairs, counts.replicates, days)
    middle = _middle(params, days)
    slopes = trend(
        hits.astype(np.float64),
        counts.at_or_above(MOMENTS),
        table,
        middle,
        confidence=params.confidence,
        crossed=_crossed(counts, params.lag_thresholds),
    )
    values = (slopes.slope, slopes.lower, slopes.upper, slopes.p_value)
    columns = (doubles(name, column) for name, column in zip(VALUES, values, strict=True))
    return rows.with_columns(_n_days(len(days)), *columns, texts("undefined", slopes.reason))


def is_crossed(counts: Mapping[str, pl.DataFrame]) -> bool:
    """Whether the matches of a day are counted by both parents of the pairs."""
    return SECOND_REPLICATE in counts["lags"].columns


def _crossed(counts: GroupCounts, thresholds: Sequence[float]) -> CrossedMatches | None:
    """The matches by both parents of the pairs; None where there is one, or one replicate of the second has all."""
    if SECOND_REPLICATE not in counts.counts.columns:
        return None
    cells = counts.counts.select(REPLICATE, SECOND_REPLICATE).unique().sort(REPLICATE, SECOND_REPLICATE)
    seconds = cells[SECOND_REPLICATE].unique().sort()
    if len(seconds) < MIN_REPLICATES:
        return None
    numbered = cells.with_row_index("_cell")
    rows = counts.counts.join(numbered, on=[REPLICATE, SECOND_REPLICATE], how="left", maintain_order="left")
    of_cells = GroupCounts.of(rows.with_columns(pl.col("_cell").cast(pl.Int64).alias(REPLICATE)), thresholds)
    return CrossedMatches(
        of_cells.at_or_above("matches").astype(np.float64),
        of_cells.at_or_above(MOMENTS),
        np.searchsorted(counts.replicates, cells[REPLICATE].to_numpy()),
        np.searchsorted(seconds.to_numpy(), cells[SECOND_REPLICATE].to_numpy()),
        len(seconds),
    )


def _untested(rows: pl.DataFrame, n_days: int | None, reason: Reason) -> pl.DataFrame:
    return rows.with_columns(_n_days(n_days), *nulls(VALUES), pl.lit(reason).alias("undefined"))


def _n_days(number: int | None) -> pl.Expr:
    return pl.lit(number, dtype=pl.Int64).alias("n_days")


def _by_day(pairs: pl.DataFrame, replicates: NDArray[np.int64], days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Compared pairs, shape (replicates, days)."""
    table = np.zeros((len(replicates), len(days)), dtype=np.int64)
    cell = np.searchsorted(replicates, pairs[REPLICATE].to_numpy()), np.searchsorted(days, pairs[KEY].to_numpy())
    np.add.at(table, cell, pairs[VALUE].to_numpy())
    return table


def _contradicted(matches: pl.DataFrame, pairs: pl.DataFrame, compared: pl.DataFrame) -> bool:
    """Whether the times do not fit: a day has more matches than pairs, or all days more or far fewer than are given."""
    keys = [REPLICATE, KEY]
    days = add_up(matches, keys, ["matches"]).join(add_up(pairs, keys, [VALUE]), on=keys, how="left")
    all_days = add_up(pairs, [REPLICATE], [VALUE]).join(add_up(compared, [REPLICATE], ["n_before"]), on=REPLICATE)
    more = days.filter(pl.col("matches") > pl.col(VALUE).fill_null(0))
    too_few = int(all_days[VALUE].sum()) < LEAST_OF_GIVEN * int(compared["n_before"].sum())
    return too_few or not (more.is_empty() and all_days.filter(pl.col(VALUE) > pl.col("n_before")).is_empty())


def _middle(params: BeforeAfterParameters, days: NDArray[np.int64]) -> NDArray[np.float64]:
    """Middle of the part of each day that lies in the window, in days from the event."""
    start, end = days.astype(np.float64), days + 1.0
    if params.window is not None:
        start = np.maximum(start, -params.window.before / HOURS)
        end = np.minimum(end, -params.window.gap / HOURS)
    return np.asarray((start + end) / 2)
