"""What follows from the counts of geocoding: scores at every tolerance, and words."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from pipeline.metrics.geocoding.accuracy import add_ratios
from pipeline.metrics.uncertainty.proportions import Confusion, intervals_of_clusters
from pipeline.plan.count_tables import REPLICATE
from pipeline.stages.geocoding.contract import COUNT_NAMES, ERRORS, OUTCOMES, RATIOS, SCORES
from pipeline.stages.geocoding.planning import grid
from pipeline.stages.stage import Summary, group_text, integer, interval, number, of_group
from pipeline.tables.ratios import divide
from pipeline.tables.schemas import GROUPING
from pipeline.tables.sweep import THRESHOLD, add_up, at_or_above

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from pipeline.stages.geocoding.contract import GeocodingParameters
    from pipeline.tables.schemas import Column

BUDGET = 50_000_000
TOLERANCE = "tolerance_km"


def derive(params: GeocodingParameters, counts: Mapping[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    """The scores; errors and single mentions are added by follow-ups."""
    frame = counts["counts"]
    keys = [name for name in frame.columns if name not in {THRESHOLD, REPLICATE, *COUNT_NAMES}]
    scores = _with_intervals(_scores(params, frame, keys), params, frame, keys)
    return {
        "geocoding_scores": scores.select(*keys, *(column.name for column in SCORES)),
        "geocoding_errors": _empty(frame, keys, ERRORS),
        "geocoding_outcomes": _empty(frame, keys, OUTCOMES),
    }


def _empty(frame: pl.DataFrame, keys: Sequence[str], columns: Sequence[Column]) -> pl.DataFrame:
    types = {"BIGINT": pl.Int64(), "DOUBLE": pl.Float64(), "VARCHAR": pl.String(), "KEY": pl.String()}
    own = {column.name: types[column.type] for column in columns}
    return pl.DataFrame(schema={name: frame.schema[name] for name in keys} | own)


def _scores(params: GeocodingParameters, counts: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Counts and ratios of every group at every tolerance."""
    within = at_or_above(counts, keys, ["n_located"], grid(params).thresholds).rename({"n_located": "tp"})
    totals = add_up(counts, keys, COUNT_NAMES).rename({"n_located": "n_attempted"})
    frame = add_ratios(within.join(totals, on=list(keys), how="left", nulls_equal=True))
    tp, fp, fn, spurious = (pl.col(name) for name in ("tp", "fp", "fn", "n_spurious"))
    reason = pl.when(pl.col("n_attempted") == 0).then(pl.lit("no_prediction"))
    return frame.with_columns(
        pl.col(THRESHOLD).abs().alias(TOLERANCE),
        divide(tp, tp + fp + spurious).alias("precision_end_to_end"),
        divide(2 * tp, 2 * tp + fp + fn + spurious).alias("f1_end_to_end"),
        reason.when(pl.col("n_gold") == 0).then(pl.lit("no_positive")).alias("undefined"),
    )


def _with_intervals(
    scores: pl.DataFrame, params: GeocodingParameters, counts: pl.DataFrame, keys: Sequence[str]
) -> pl.DataFrame:
    """The scores with `<ratio>_lower`, `<ratio>_upper` and `undefined_interval`."""
    reason = "none" if params.uncertainty == "none" else None
    if reason is None and scores.height * counts[REPLICATE].n_unique() > BUDGET:
        reason = "budget"
    if counts.is_empty():
        reason = "one_replicate"  # no group, so no row either
    if reason is not None:
        names = [f"{name}_{side}" for name in RATIOS for side in ("lower", "upper")]
        empty = (pl.lit(None, dtype=pl.Float64).alias(name) for name in names)
        return scores.with_columns(*empty, pl.lit(reason).alias("undefined_interval"))
    found = pl.concat(list(_limits_of_groups(params, counts, keys)))
    return scores.join(found, on=[*keys, THRESHOLD], how="left", nulls_equal=True)


def _limits_of_groups(params: GeocodingParameters, counts: pl.DataFrame, keys: Sequence[str]) -> Iterator[pl.DataFrame]:
    thresholds = np.asarray(grid(params).thresholds)
    for part in counts.partition_by(list(keys), maintain_order=True):
        with_gold = part.filter(pl.col("n_gold") > 0)[REPLICATE].unique().sort().to_numpy()
        rows = part.filter(pl.col(REPLICATE).is_in(with_gold))
        replicate = np.searchsorted(with_gold, rows[REPLICATE].to_numpy())
        edge = rows[THRESHOLD].to_numpy()
        inside = ~np.isnan(edge)
        table = np.zeros((len(with_gold), len(thresholds)))
        place = replicate[inside], np.searchsorted(thresholds, edge[inside])
        np.add.at(table, place, rows["n_located"].to_numpy()[inside])
        tp = table[:, ::-1].cumsum(axis=1)[:, ::-1]
        attempted, gold = (np.bincount(replicate, rows[name], len(with_gold)) for name in ("n_located", "n_gold"))
        yield _limits(
            part, keys, thresholds, Confusion(tp, attempted[:, None] - tp, gold[:, None] - tp, 0 * tp), params
        )


def _limits(
    part: pl.DataFrame, keys: Sequence[str], thresholds: np.ndarray, replicates: Confusion, params: GeocodingParameters
) -> pl.DataFrame:
    found = intervals_of_clusters(replicates, params.confidence)
    frame = part.select(keys)[[0] * len(thresholds)].with_columns(pl.Series(THRESHOLD, thresholds))
    missing = np.zeros(len(thresholds), dtype=np.bool_)
    for name in RATIOS:
        for side, values in zip(("lower", "upper"), found[name], strict=True):
            frame = frame.with_columns(pl.Series(f"{name}_{side}", values, dtype=pl.Float64).fill_nan(None))
            missing |= np.isnan(values)
    reason = "one_replicate" if len(replicates.tp) == 1 else "undefined_ratio"
    words = pl.Series("undefined_interval", [reason if each else None for each in missing.tolist()], dtype=pl.String)
    return frame.with_columns(words)


def warnings(tables: Mapping[str, pl.DataFrame]) -> tuple[str, ...]:
    """Doubts that the numbers themselves raise."""
    errors = tables["geocoding_errors"]
    found = []
    for words, condition in (
        ("no gold mention", (pl.col("n_gold") == 0).all()),  # one group is that of spurious predictions, if any
        ("no located gold mention", (pl.col("n_gold") > 0) & (pl.col("n_located") == 0)),
    ):
        groups = errors.filter(condition).height
        if groups:
            where = "there is" if errors.height == 1 else f"{groups:,} of {errors.height:,} groups have"
            found.append(f"{where} {words}: what needs one is NULL")
    return tuple(found)


def summarize(tables: Mapping[str, pl.DataFrame]) -> Summary:
    """Every group at the largest tolerance, with its errors, and the accuracy over the tolerances of the first."""
    scores, errors = tables["geocoding_scores"], tables["geocoding_errors"]
    labels = errors.columns[2 : errors.columns.index("n_gold")]
    keys = [GROUPING.name, *labels]
    largest = scores.filter(pl.col(TOLERANCE) == pl.col(TOLERANCE).max())
    shown = largest.join(errors, on=keys, how="left", nulls_equal=True, suffix="_of_errors")
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
    one = scores.join(shown.head(1).select(keys), on=keys, how="semi", nulls_equal=True).sort(TOLERANCE)
    first = shown.row(0, named=True)
    headers = ("group", "gold", "attempted", "precision", "recall", "F1", "mean km", "median km")
    within = f"{first['tp']:,} of {first['n_attempted']:,} located mentions lie within {first[TOLERANCE]:g} km"
    return Summary(
        headers=headers,
        rows=rows,
        groupings=tuple(shown[GROUPING.name]),
        sentence=of_group(first, f"{within}, of {first['n_gold']:,} gold mentions."),
        curve=tuple(one["precision"].to_list()) if one.height > 2 else None,  # noqa: PLR2004 - a line needs points
        curve_title=f"accuracy from {number(one[TOLERANCE].min())} to {number(one[TOLERANCE].max())} km",
    )
