"""Tables of geocoding that need the distances themselves, and a second look at coordinates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from pipeline.metrics.geocoding.accuracy import error_statistics
from pipeline.metrics.geocoding.distance import likely_swapped
from pipeline.metrics.uncertainty.jackknife import (
    covariance,
    effective_degrees,
    leave_one_out,
    log_interval,
    t_quantile,
)
from pipeline.plan.nodes import After, CrossCheck
from pipeline.queries.dialect import column, double
from pipeline.queries.load import statement
from pipeline.stages.geocoding.contract import ERRORS, OUTCOMES
from pipeline.tables.groupings import Grouping
from pipeline.tables.schemas import GROUPING
from pipeline.tables.sweep import REPLICATE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pipeline.stages.geocoding.contract import GeocodingParameters

TABLE = "geocoding_outcomes"
FARTHER_KM = 1000.0
FEWEST_EXCHANGED = 0.01
_COORDINATES = ("predicted_latitude", "predicted_longitude", "gold_latitude", "gold_longitude")


def errors(params: GeocodingParameters, by: Sequence[str]) -> After:
    """Mean, median and area of the distances of every group, also of one that has spurious predictions alone."""

    def finish(found: pl.DataFrame, given: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        rows = found.sort(*by, REPLICATE, "distance_km", nulls_last=True)
        frames = [_of_group(rows.clear(), params).clear()]
        for grouping in params.groupings:
            columns, label = grouping.columns, pl.lit(grouping.label).alias(GROUPING.name)
            for part in rows.partition_by(columns, maintain_order=True) if columns else [rows]:
                values = (pl.lit(part[name][0], dtype=part.schema[name]).alias(name) for name in columns)
                frames.append(_of_group(part, params).select(label, *values, pl.all()))
            if columns:
                groups = given["groups"].select(columns).unique()
                others = groups.join(rows, on=columns, how="anti", nulls_equal=True)
                frames.append(others.select(label, *columns).join(_of_group(rows.clear(), params), how="cross"))
        return pl.concat(frames[1:] or frames, how="diagonal")

    groups = {"groups": exp.select(*map(column, by)).distinct().from_("toponyms")} if by else {}
    return After("geocoding_errors", None, statement("geocoding/errors", by), {}, groups, finish)


def _of_group(rows: pl.DataFrame, params: GeocodingParameters) -> pl.DataFrame:
    distances = rows["distance_km"].fill_null(np.nan).to_numpy()
    found = error_statistics(distances, missing=params.missing_errors)
    lower, upper = _limits(rows, params)
    values = found | {"mean_km_lower": lower, "mean_km_upper": upper}
    types = {each.name: pl.Int64() if each.type == "BIGINT" else pl.Float64() for each in ERRORS}
    frame = pl.DataFrame({name: [values[name]] for name in types}, schema=types)
    return frame.with_columns(pl.col(pl.Float64).fill_nan(None))


def _limits(rows: pl.DataFrame, params: GeocodingParameters) -> tuple[float, float]:
    """Limits of the mean, symmetric on the log scale, from the sums of replicates."""
    known = rows.drop_nulls("distance_km")
    if params.uncertainty == "none" or params.missing_errors != "exclude" or known[REPLICATE].n_unique() < 2:  # noqa: PLR2004
        return np.nan, np.nan
    _, replicate = np.unique(known[REPLICATE].to_numpy(), return_inverse=True)
    total = np.bincount(replicate, known["distance_km"].to_numpy())
    number = np.bincount(replicate)
    rest = leave_one_out(total) / leave_one_out(number)
    quantile = t_quantile(params.confidence, effective_degrees(rest))
    limits = log_interval(np.asarray(total.sum() / number.sum()), np.sqrt(covariance(rest)), quantile)
    return float(limits[0]), float(limits[1])


def outcomes(by: Sequence[str], lowest_score: float) -> After:
    """Every gold mention at the smallest tolerance, with all grouping columns.

    Args:
        by: The grouping columns.
        lowest_score: Minus the largest distance that is within that tolerance.
    """

    def finish(found: pl.DataFrame, _: Mapping[str, pl.DataFrame]) -> pl.DataFrame:
        found = found.rename({f"gold_{name}": name for name in ("start", "end", "text")})
        names = [each.name for each in OUTCOMES if each.name != "mention"]
        first = ["doc_id", "start", "end", "mention_id"]
        rows = found.sort(*by, *first, *(name for name in names if name not in first), nulls_last=True)
        number = pl.int_range(1, pl.len() + 1, dtype=pl.Int64)
        number = (number.over(by) if by else number).alias("mention")
        return rows.select(pl.lit(Grouping(tuple(by)).label).alias(GROUPING.name), *by, number, *names)

    params = {"lowest_score": lowest_score}
    return After(TABLE, None, statement("geocoding/outcomes", by), params, {}, finish)


def exchanged() -> CrossCheck:
    """Whether many predictions look as if latitude and longitude were exchanged."""
    located = exp.cast(exp.CountIf(this=column("is_located")), "BIGINT")
    far = exp.GT(this=column("distance_km"), expression=double(FARTHER_KM))
    frames = {
        "located": exp.select(exp.alias_(located, "n_rows")).from_("toponyms").where(column("is_gold")),
        "far": exp.select(*(column(name) for name in _COORDINATES)).from_("toponyms").where(column("is_gold"), far),
    }

    def compare(found: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
        number = int(likely_swapped(*(found["far"][name].to_numpy() for name in _COORDINATES)).sum())
        n_located = found["located"].item() or 0
        if number <= FEWEST_EXCHANGED * n_located:
            return ()
        share = f"{number:,} of {n_located:,} located mentions"
        return (f"{share} would be right with latitude and longitude exchanged: check the columns",)

    return CrossCheck(frames, compare)
