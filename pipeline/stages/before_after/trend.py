"""The match rate by day before the event: what it needs counted, and the table `before_after_trend`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from pipeline.metrics.before_after.trend import trend
from pipeline.plan.count_tables import REPLICATE
from pipeline.plan.counts import CountFunction, Query
from pipeline.stages.before_after.timelines import pairs_by_day
from pipeline.tables.sweep import THRESHOLD, add_up

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import sqlglot.expressions as exp
    from numpy.typing import NDArray

    from pipeline.metrics.before_after.timelines import Span
    from pipeline.stages.before_after.contract import BeforeAfterParameters, Compared
    from pipeline.stages.before_after.matchers import Matchers

TABLE = "before_after_trend"
COUNTED = "lag_pairs"
KEY, VALUE = "lag_days", "n_pairs"
HOURS = 24
LEAST_OF_GIVEN = 0.95
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

        def compute(found: Mapping[str, pl.DataFrame], segment: Sequence[str]) -> pl.DataFrame:
            counted = pairs_by_day(found["events"], found["articles"], span, matchers.known(segment))
            return matchers.repeated(counted, found, segment)

        yield CountFunction(
            "before_after/pairs_by_day", {**frames, **matchers.frames()}, compute, (VALUE,), (KEY,), COUNTED
        )


def table(params: BeforeAfterParameters, counts: Mapping[str, pl.DataFrame], keys: Sequence[str]) -> pl.DataFrame:
    """The table `before_after_trend`; without `lag_thresholds` it has no row.

    Args:
        params: The parameters of the stage.
        counts: The count tables `counts`, `lags` and, where known, `lag_pairs`.
        keys: Columns that identify a group.
    """
    groups = counts["counts"].select(keys).unique().sort(keys, nulls_last=True)
    if not params.lag_thresholds or groups.is_empty():
        rows = _rows(groups.clear(), np.array(params.lag_thresholds), 0)
        return rows.with_columns(_count("n_days", None), *_nothing(), pl.lit(None, dtype=pl.String).alias("undefined"))
    before = counts["lags"].filter(pl.col(KEY) < 0, pl.col(THRESHOLD).is_not_null())
    matches, pairs = _by_group(before, keys), _by_group(counts.get(COUNTED, before.clear()), keys)
    given = _by_group(add_up(counts["counts"], [*keys, REPLICATE], ["n_before"]), keys)
    none = counts[COUNTED].clear() if COUNTED in counts else None
    found = [
        _trend(params, groups[place], matches.get(label, before.clear()), pairs.get(label, none), given[label])
        for place, label in enumerate(groups.rows())
    ]
    return pl.concat(found)


def _by_group(frame: pl.DataFrame, keys: Sequence[str]) -> dict[tuple[object, ...], pl.DataFrame]:
    return {part.select(keys).row(0): part for part in frame.partition_by(list(keys))}


def _count(name: str, value: int | None) -> pl.Expr:
    return pl.lit(value, dtype=pl.Int64).alias(name)


def _nothing() -> list[pl.Expr]:
    return [pl.lit(None, dtype=pl.Float64).alias(name) for name in VALUES]


def _rows(group: pl.DataFrame, thresholds: NDArray[np.float64], matches: NDArray[np.float64] | int) -> pl.DataFrame:
    whole = np.broadcast_to(matches, len(thresholds)).astype(np.int64)
    frame = pl.DataFrame({THRESHOLD: thresholds, "matches": whole}, schema={THRESHOLD: pl.Float64, "matches": pl.Int64})
    return group.join(frame, how="cross")


def _trend(
    params: BeforeAfterParameters,
    group: pl.DataFrame,
    matches: pl.DataFrame,
    pairs: pl.DataFrame | None,
    given: pl.DataFrame,
) -> pl.DataFrame:
    """The rows of one group; `pairs` is None where the compared pairs of a day are not known."""
    replicates, thresholds = np.unique(given[REPLICATE].to_numpy()), np.array(params.lag_thresholds)
    hits = _at_or_above(matches, matches["matches"].to_numpy(), replicates, thresholds)
    rows = _rows(group, thresholds, hits.sum(axis=0))
    if pairs is None or _contradicted(matches, pairs, given):
        return rows.with_columns(_count("n_days", None), *_nothing(), pl.lit("unknown_pairs").alias("undefined"))
    days = np.unique(pairs.filter(pl.col(VALUE) > 0)[KEY].to_numpy())
    n_days = _count("n_days", len(days))
    if params.uncertainty == "none":
        return rows.with_columns(n_days, *_nothing(), pl.lit("none").alias("undefined"))
    moments = _at_or_above(
        matches, matches["matches"].to_numpy() * _middle(params, matches[KEY].to_numpy()), replicates, thresholds
    )
    table = _pairs(pairs.filter(pl.col(VALUE) > 0), replicates, days)
    found = trend(hits, moments, table, _middle(params, days), confidence=params.confidence)
    arrays = (found.slope, found.lower, found.upper, found.p_value)
    values = (pl.Series(name, each).fill_nan(None) for name, each in zip(VALUES, arrays, strict=True))
    return rows.with_columns(n_days, *values, pl.Series("undefined", found.reason.tolist(), dtype=pl.String))


def _at_or_above(
    matches: pl.DataFrame, values: NDArray[Any], replicates: NDArray[np.int64], thresholds: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Sums of values at or above each threshold, shape (replicates, thresholds)."""
    found = np.zeros((len(replicates), len(thresholds)))
    place = np.searchsorted(replicates, matches[REPLICATE].to_numpy())
    np.add.at(found, (place, np.searchsorted(thresholds, matches[THRESHOLD].to_numpy())), values)
    return found[:, ::-1].cumsum(axis=1)[:, ::-1]


def _pairs(pairs: pl.DataFrame, replicates: NDArray[np.int64], days: NDArray[np.int64]) -> NDArray[np.int64]:
    """Compared pairs, shape (replicates, days)."""
    found = np.zeros((len(replicates), len(days)), dtype=np.int64)
    index = np.searchsorted(replicates, pairs[REPLICATE].to_numpy()), np.searchsorted(days, pairs[KEY].to_numpy())
    np.add.at(found, index, pairs[VALUE].to_numpy())
    return found


def _contradicted(matches: pl.DataFrame, pairs: pl.DataFrame, given: pl.DataFrame) -> bool:
    """Whether the times do not fit: a day has more matches than pairs, or all days more or far fewer than are given."""
    keys = [REPLICATE, KEY]
    days = add_up(matches, keys, ["matches"]).join(add_up(pairs, keys, [VALUE]), on=keys, how="left")
    all_days = add_up(pairs, [REPLICATE], [VALUE]).join(add_up(given, [REPLICATE], ["n_before"]), on=REPLICATE)
    more = days.filter(pl.col("matches") > pl.col(VALUE).fill_null(0))
    too_few = int(all_days[VALUE].sum()) < LEAST_OF_GIVEN * int(given["n_before"].sum())
    return too_few or not (more.is_empty() and all_days.filter(pl.col(VALUE) > pl.col("n_before")).is_empty())


def _middle(params: BeforeAfterParameters, days: NDArray[np.int64]) -> NDArray[np.float64]:
    """Middle of the part of each day that lies in the window, in days from the event."""
    start, end = days.astype(np.float64), days + 1.0
    if params.window is not None:
        start = np.maximum(start, -params.window.before / HOURS)
        end = np.minimum(end, -params.window.gap / HOURS)
    return np.asarray((start + end) / 2)
