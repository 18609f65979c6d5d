"""Tables of geocoding that need the distances themselves, and a second look at coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ...metrics.geocoding.accuracy import error_statistics
from ...metrics.geocoding.distance import likely_swapped
from ...metrics.uncertainty.bootstrap import otherwise, ratio_limits
from ...metrics.uncertainty.clusters import effective_number, spread_of_shifts
from ...metrics.uncertainty.interval_quality import INTERVAL_QUALITY, worst
from ...metrics.uncertainty.jackknife import leave_one_out, log_interval, t_quantile
from ...metrics.uncertainty.limits import quality_of_sizes
from ...metrics.uncertainty.serial import may_neighbours_be_alike
from ...plan.nodes import After, CrossCheck
from ...queries.load import statement
from ...tables.columns import REPLICATE
from ...tables.groupings import Grouping
from ...tables.schemas import GROUPING, polars_types
from .contract import ERRORS, OUTCOMES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ...metrics.uncertainty.interval_quality import Quality
    from .contract import GeocodingParameters


TABLE = "geocoding_outcomes"
FARTHER_KM = 1000.0
FEWEST_EXCHANGED = 0.01
_COORDINATES = ("predicted_latitude", "predicted_longitude", "gold_latitude", "gold_longitude")


def errors(params: GeocodingParameters, by: Sequence[str], *, in_time: bool) -> After:
    """Mean, median and area of the distances of every group, also of one that has spurious predictions alone."""

    def finish(distances: pl.DataFrame, frames: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        rows = distances.sort(*by, REPLICATE, "distance_km", nulls_last=True)
        statistics = [_of_group(rows.clear(), params).clear()]
        for grouping in params.groupings:
            columns, label = grouping.columns, pl.lit(grouping.label).alias(GROUPING.name)
            for group in rows.partition_by(columns, maintain_order=True) if columns else [rows]:
                values = (pl.lit(group[name][0], dtype=group.schema[name]).alias(name) for name in columns)
                statistics.append(_of_group(group, params, in_time=in_time).select(label, *values, pl.all()))
            if columns:
                groups = frames["groups"].select(columns).unique()
                empty_groups = groups.join(rows, on=columns, how="anti", nulls_equal=True)
                statistics.append(
                    empty_groups.select(label, *columns).join(_of_group(rows.clear(), params), how="cross")
                )
        return pl.concat(statistics[1:] or statistics, how="diagonal")

    groups = {"groups": statement("geocoding/groups", by)} if by else {}
    return After("geocoding_errors", None, statement("geocoding/errors", by), {}, groups, finish)


def _of_group(rows: pl.DataFrame, params: GeocodingParameters, *, in_time: bool = False) -> pl.DataFrame:
    distances = rows["distance_km"].to_numpy()
    lower, upper, quality = _limits(rows, params, in_time=in_time)
    values: dict[str, float | str | None] = {**error_statistics(distances, missing=params.missing_errors)}
    values |= {"mean_km_lower": lower, "mean_km_upper": upper, INTERVAL_QUALITY: quality}
    types = {column.name: polars_types(column.type)[0] for column in ERRORS}
    frame = pl.DataFrame({name: [values[name]] for name in types}, schema=types)
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def _limits(rows: pl.DataFrame, params: GeocodingParameters, *, in_time: bool) -> tuple[float, float, Quality | None]:
    """Limits of the mean on the log scale, from the sums of replicates, and how far to trust them."""
    located = rows.drop_nulls("distance_km")
    if params.uncertainty == "none" or params.missing_errors != "exclude" or located[REPLICATE].n_unique() < 2:  # noqa: PLR2004
        return np.nan, np.nan, None
    _, replicate = np.unique(located[REPLICATE].to_numpy(), return_inverse=True)
    total = np.bincount(replicate, located["distance_km"].to_numpy())
    number = np.bincount(replicate)
    means = leave_one_out(total) / leave_one_out(number)
    shifts = means - means.mean(axis=0)
    spread = spread_of_shifts(shifts, effective_number(number), in_time=in_time)
    quantile = t_quantile(params.confidence, spread.degrees)
    limits = log_interval(np.asarray(total.sum() / number.sum()), np.sqrt(spread.variance), quantile)
    if params.resampling is not None:
        resampled = ratio_limits(total[:, None], number[:, None], params.confidence, params.resampling)
        limits = otherwise((resampled[0][0], resampled[1][0]), limits)
    if np.isnan(limits[0]):
        return float(limits[0]), float(limits[1]), None
    of_time: Quality = "correlated_days" if in_time and may_neighbours_be_alike(shifts[:, None]) else "good"
    return float(limits[0]), float(limits[1]), worst([quality_of_sizes(number), of_time])


def outcomes(by: Sequence[str], lowest_score: float) -> After:
    """Every gold mention at the smallest tolerance, with all grouping columns.

    Args:
        by: The grouping columns.
        lowest_score: Minus the largest distance that is within that tolerance.
    """

    def finish(mentions: pl.DataFrame, _: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        mentions = mentions.rename({f"gold_{name}": name for name in ("start", "end", "text")})
        names = [column.name for column in OUTCOMES if column.name != "mention"]
        place_columns = ["doc_id", "start", "end", "mention_id"]
        rows = mentions.sort(
            *by, *place_columns, *(name for name in names if name not in place_columns), nulls_last=True
        )
        number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
        number = (number.over(by) if by else number).alias("mention")
        return rows.select(pl.lit(Grouping(tuple(by)).label).alias(GROUPING.name), *by, number, *names)

    return After(TABLE, None, statement("geocoding/outcomes", by), {"lowest_score": lowest_score}, {}, finish)


def exchanged() -> CrossCheck:
    """Whether many predictions look as if latitude and longitude were exchanged."""
    frames = {
        "located": statement("geocoding/located_mentions"),
        "far": statement("geocoding/far_mentions", values={"farther_km": FARTHER_KM}),
    }

    def compare(frames: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        coordinates = (frames["far"][name].to_numpy() for name in _COORDINATES)
        number, n_located = int(likely_swapped(*coordinates).sum()), frames["located"].item() or 0
        if number <= FEWEST_EXCHANGED * n_located:
            return ()
        share = f"{number:,} of {n_located:,} located mentions"
        return (f"{share} would be right with latitude and longitude exchanged: check the columns",)

    return CrossCheck(frames, compare)
