"""What follows from the counts of geocoding: scores at every tolerance, and words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...metrics.geocoding.accuracy import add_ratios
from ...metrics.uncertainty.cube import Cube
from ...metrics.uncertainty.limits import (
    clusters_of,
    intervals_of,
    marked_in_time,
    warnings_of_marks,
    with_clusters,
    with_limits,
)
from ...metrics.uncertainty.proportions import Confusion, intervals_of_clusters
from ...tables.columns import IN_TIME, RATIOS, THRESHOLD, divide
from ...tables.groupings import group_text
from ...tables.schemas import GROUPING
from ..stage import Summary, groups_without, integer, interval, number, of_group
from .contract import COUNT_NAMES, SCORES
from .planning import grid

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...metrics.uncertainty.cube import GroupCounts
    from ...metrics.uncertainty.limits import Interval
    from .contract import GeocodingParameters

SIZES = ("n_gold",)
TOLERANCE = "tolerance_km"
USUAL_KM = 161.0  # a hundred miles


def derive(params: GeocodingParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The scores; errors and single mentions are added by follow-ups."""
    cube = Cube.of_groups(counts["counts"], grid(params).thresholds, in_time=IN_TIME in counts)

    def intervals(_rows: pl.DataFrame, group: GroupCounts) -> dict[str, Interval]:
        replicates = _confusion(group)
        limits = intervals_of_clusters(replicates, params.confidence, resampling=params.resampling)
        return intervals_of({name: limits[name] for name in RATIOS}, len(replicates.tp))

    wanted, events = params.is_replicated, ("tp", "fp", "fn")
    scores = with_limits(
        _scores(cube),
        cube,
        RATIOS,
        intervals,
        wanted=wanted,
        clusters=marked_in_time(clusters_of(cube.counts, cube.keys, SIZES), cube, ["n_located"], _confusion),
        events=events,
        resamples=params.drawn_resamples,
    )
    scores = with_clusters(scores, cube, SIZES, wanted=wanted)
    return {
        "geocoding_scores": scores.select(*cube.keys, *(column.name for column in SCORES)),
    }


def _scores(cube: Cube) -> pl.DataFrame:
    """Counts and ratios of every group at every tolerance."""
    within = cube.at_or_above(["n_located"]).rename({"n_located": "tp"})
    totals = cube.totals(COUNT_NAMES).rename({"n_located": "n_attempted"})
    frame = add_ratios(within.join(totals, on=list(cube.keys), how="left", nulls_equal=True))
    tp, fp, fn, spurious = (pl.col(name) for name in ("tp", "fp", "fn", "n_spurious"))
    reason = pl.when(pl.col("n_attempted") == 0).then(pl.lit("no_prediction"))
    return frame.with_columns(
        pl.col(THRESHOLD).abs().alias(TOLERANCE),
        divide(tp, tp + fp + spurious).alias("precision_end_to_end"),
        divide(2 * tp, 2 * tp + fp + fn + spurious).alias("f1_end_to_end"),
        reason.when(pl.col("n_gold") == 0).then(pl.lit("no_positive")).alias("undefined"),
    )


def _confusion(group: GroupCounts) -> Confusion:
    """Counts of the replicates with gold mentions at every tolerance; nothing is a true negative."""
    gold = group.totals("n_gold")
    with_gold = gold > 0
    tp, attempted = group.at_or_above("n_located")[with_gold], group.totals("n_located")[with_gold]
    fp, fn = attempted[:, None] - tp, gold[with_gold][:, None] - tp
    return Confusion(tp, fp, fn, 0 * tp, in_time=group.in_time)


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Warnings that the numbers themselves give rise to."""
    errors = tables["geocoding_errors"]
    conditions = {
        "no gold mention": (pl.col("n_gold") == 0).all(),  # one group is that of spurious predictions, if any
        "no located gold mention": (pl.col("n_gold") > 0) & (pl.col("n_located") == 0),
    }
    return (*groups_without(errors, conditions), *warnings_of_marks(tables))


def at_usual_tolerance(scores: pl.DataFrame) -> pl.DataFrame:
    """The rows within 161 km, at which geocoders are mostly compared; without it, within the smallest tolerance."""
    within = pl.lit(USUAL_KM) if (scores[TOLERANCE] == USUAL_KM).any() else pl.col(TOLERANCE).min()
    return scores.filter(pl.col(TOLERANCE) == within)


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """Every group at the usual tolerance, with its errors, and the accuracy over the tolerances of the first."""
    scores, errors = tables["geocoding_scores"], tables["geocoding_errors"]
    labels = errors.columns[2 : errors.columns.index("n_gold")]
    keys = [GROUPING.name, *labels]
    shown = at_usual_tolerance(scores).join(errors, on=keys, how="left", nulls_equal=True, suffix="_of_errors")
    shown = shown.sort(pl.col(GROUPING.name) != "all", maintain_order=True)
    if shown.is_empty():
        return Summary(headers=(), rows=(), sentence="There is nothing to judge.")
    rows = tuple(
        (
            group_text(row),
            integer(row["n_gold"]),
            integer(row["n_attempted"]),
            *(interval(row, name) for name in RATIOS),
            number(row["mean_km"]),
            number(row["median_km"]),
        )
        for row in shown.iter_rows(named=True)
    )
    curve = scores.join(shown.head(1).select(keys), on=keys, how="semi", nulls_equal=True).sort(TOLERANCE)
    first_row = shown.row(0, named=True)
    headers = ("group", "gold", "attempted", "precision", "recall", "F1", "mean km", "median km")
    within = (
        f"{first_row['tp']:,} of {first_row['n_attempted']:,} located mentions lie within {first_row[TOLERANCE]:g} km "
        f"of the right place; gold has {first_row['n_gold']:,} mentions."
    )
    return Summary(
        headers=headers,
        rows=rows,
        groupings=tuple(shown[GROUPING.name]),
        sentence=of_group(first_row, within),
        curve=tuple(curve["precision"].to_list()) if curve.height > 2 else None,  # noqa: PLR2004 - a line needs points
        curve_title=f"accuracy within {number(curve[TOLERANCE].min())} to {number(curve[TOLERANCE].max())} km",
    )
