"""The table threshold_sweep_averages: micro, macro and weighted averages over groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...metrics.uncertainty.interval_quality import INTERVAL_QUALITY
from ...metrics.uncertainty.limits import UNDEFINED_INTERVAL, limit_names, worst_of
from ...metrics.uncertainty.proportions import PROPORTIONS
from ...tables.columns import THRESHOLD, add_up, nulls
from ...tables.groupings import Grouping
from ...tables.schemas import GROUPING, polars_types
from .tables import AVERAGES
from .uncertainty import kind_of_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from .contract import Average, ThresholdSweepParameters

AREAS = ("average_precision", "pr_auc", "roc_auc")
_POSITIVES = "_positives"  # of a group: how many rows are positive, or how heavy they are together


def averages_table(
    params: ThresholdSweepParameters,
    counts: pl.DataFrame,
    curve: pl.DataFrame,
    areas: pl.DataFrame,
    keys: Sequence[str],
) -> pl.DataFrame:
    """One row per average and threshold, and one for the areas.

    With every distinct score as threshold groups share no threshold, so that only the areas are averaged.

    Args:
        params: The parameters.
        counts: The counts of every bin of the scores.
        curve: The curve with limits.
        areas: The areas with limits.
        keys: Columns that identify a group.
    """
    of_table = {column.name: polars_types(column.type)[0] for column in AVERAGES}
    nothing = pl.DataFrame(schema={name: curve.schema[name] for name in keys} | of_table)
    if not list(params.averaged()):
        return nothing
    by = [name for name in keys if name != GROUPING.name]
    measured = [areas.with_columns(nulls([THRESHOLD]))]
    if params.threshold_values is not None:
        measured.append(curve)
    positives = _positives(counts, keys)
    frames = [frame.join(positives, on=list(keys), how="left", nulls_equal=True) for frame in measured]
    order = [*keys, *(column.name for column in AVERAGES)]
    frames = [frame.sort([*keys, THRESHOLD]) for frame in frames]  # sums of one order are the same to the last bit
    averages = [rows.select(order) for frame in frames for rows in _averages(params, frame, by)]
    return pl.concat(averages) if averages else nothing


def _positives(counts: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """What the groups weigh in a weighted average: their positives, or the weights of these where rows have weights."""
    name = f"{kind_of_counts(counts)}_positive"
    is_weight = name == "weight_positive"
    of_groups = pl.col(name).cast(pl.Float64 if is_weight else pl.Int64)
    return add_up(counts, keys, [name]).select(*keys, of_groups.alias(_POSITIVES))


def _averages(params: ThresholdSweepParameters, frame: pl.DataFrame, by: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The averages over each grouping that has groups, at each threshold of a frame."""
    for grouping, over in params.averaged():
        outer = Grouping(tuple(name for name in grouping.columns if name not in over.columns))
        keys, label = [*outer.columns, THRESHOLD], _label(params, outer)
        rows = frame.filter(pl.col(GROUPING.name) == grouping.label)
        n_groups = rows.group_by(keys).agg(pl.len().cast(pl.Int64).alias("n_groups"))
        for average in params.averages:
            if average == "micro" and label is None:
                continue
            source = frame.filter(pl.col(GROUPING.name) == label) if average == "micro" else rows
            shared = params.cluster is not None
            averages = _average(source, average, keys, shared=shared).join(
                n_groups, on=keys, how="inner", nulls_equal=True
            )
            yield averages.with_columns(
                pl.lit(outer.label).alias(GROUPING.name),
                *(pl.lit(None, dtype=frame.schema[name]).alias(name) for name in by if name not in outer.columns),
                pl.lit(over.label).alias("averaged"),
                pl.lit(average).alias("average"),
            )


def _label(params: ThresholdSweepParameters, outer: Grouping) -> str | None:
    """Label of the grouping that holds all groups together; None if the stage does not have it."""
    return next((each.label for each in params.groupings if set(each.columns) == set(outer.columns)), None)


def _average(rows: pl.DataFrame, average: Average, keys: Sequence[str], *, shared: bool) -> pl.DataFrame:
    """Means where defined, with limits; of a micro average there is one row for each key already.

    Distances of the groups' numbers to their limits are added in quadrature where groups are independent (MOVER: Zou &
    Donner 2008). Groups that share clusters may err together, so that their distances are added as they are, which is
    the widest that any dependence allows.
    """
    present = [name for name in (*PROPORTIONS, *AREAS) if name in rows.columns]
    absent = [name for name in (*PROPORTIONS, *AREAS) if name not in rows.columns]
    undefined = pl.any_horizontal(pl.col(name).is_null() for name in present).sum().cast(pl.Int64).alias("n_undefined")
    aggregates = [expr for name in present for expr in _mean_with_limits(name, average, shared=shared)]
    reason = pl.col(UNDEFINED_INTERVAL).drop_nulls().first().alias(UNDEFINED_INTERVAL)
    quality = worst_of(pl.col(INTERVAL_QUALITY)).alias(INTERVAL_QUALITY)
    frame = rows.group_by(keys, maintain_order=True).agg(*aggregates, undefined, reason, quality)
    missing = pl.any_horizontal(pl.col(f"{name}_lower").is_null() for name in present)
    why = pl.when(missing).then(pl.col(UNDEFINED_INTERVAL).fill_null("undefined_ratio"))
    is_limited = pl.any_horizontal(pl.col(f"{name}_lower").is_not_null() for name in present)
    worst = pl.when(is_limited).then(pl.col(INTERVAL_QUALITY)).alias(INTERVAL_QUALITY)
    return frame.with_columns(why.alias(UNDEFINED_INTERVAL), worst, *nulls([*absent, *limit_names(absent)]))


def _mean_with_limits(name: str, average: Average, *, shared: bool) -> Iterator[pl.Expr]:
    """The mean of one number over the rows of a key, and its limits."""
    value, lower, upper = (pl.col(f"{name}{side}") for side in ("", "_lower", "_upper"))
    if average == "micro":
        yield from (each.mean() for each in (value, lower, upper))
        return
    weight = pl.when(value.is_not_null()).then(pl.col(_POSITIVES) if average == "weighted" else pl.lit(1))
    total = weight.sum()
    mean = value.mean() if average == "macro" else pl.when(total > 0).then((value * weight).sum() / total)
    yield mean.alias(name)
    for limit, sign, side in ((lower, -1, "lower"), (upper, 1, "upper")):
        distances = (limit - value).abs() * weight / total
        distance = distances.sum() if shared else (distances**2).sum().sqrt()
        complete = (total > 0) & ~(value.is_not_null() & limit.is_null()).any()
        yield pl.when(complete).then(mean + sign * distance).alias(f"{name}_{side}")
