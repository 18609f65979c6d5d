"""The table threshold_sweep_averages: micro, macro and weighted averages over groups."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.stages.threshold_sweep.contract import AVERAGES, RATIOS
from pipeline.tables.groupings import Grouping
from pipeline.tables.schemas import GROUPING
from pipeline.tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from pipeline.stages.threshold_sweep.contract import Average, ThresholdSweepParameters

AREAS = ("average_precision", "pr_auc", "roc_auc")


def averages_table(
    params: ThresholdSweepParameters, curve: pl.DataFrame, areas: pl.DataFrame, keys: Sequence[str]
) -> pl.DataFrame:
    """One row per average and threshold, and one for the areas.

    With every distinct score as threshold groups share no threshold, so that only the areas are averaged.
    """
    by = [name for name in keys if name != GROUPING.name]
    positives = areas.select(*keys, "n_positive")
    frames = [areas.with_columns(pl.lit(None, dtype=pl.Float64).alias(THRESHOLD))]
    if params.threshold_values is not None:
        frames.append(curve.join(positives, on=list(keys), how="left", nulls_equal=True))
    order = [*keys, *(column.name for column in AVERAGES)]
    frames = [frame.sort([*keys, THRESHOLD]) for frame in frames]  # sums of one order are the same to the last bit
    parts = [part.select(order) for frame in frames for part in _averages(params, frame, by)]
    if parts:
        return pl.concat(parts)
    types = {"VARCHAR": pl.String(), "BIGINT": pl.Int64(), "DOUBLE": pl.Float64()}
    own = {column.name: types[column.type] for column in AVERAGES}
    return pl.DataFrame(schema={name: curve.schema[name] for name in keys} | own)


def _averages(params: ThresholdSweepParameters, frame: pl.DataFrame, by: Sequence[str]) -> Iterator[pl.DataFrame]:
    """The averages over each grouping that has groups, at each threshold of a frame."""
    for grouping, over in params.averaged():
        rest = Grouping(tuple(name for name in grouping.columns if name not in over.columns))
        keys = [*rest.columns, THRESHOLD]
        rows = frame.filter(pl.col(GROUPING.name) == grouping.label)
        whole = frame.filter(pl.col(GROUPING.name) == _name(params, rest)) if _name(params, rest) else None
        for average in params.averages:
            if average == "micro" and whole is None:
                continue
            source = whole if average == "micro" and whole is not None else rows
            made = _average(source, average, keys)
            groups = rows.group_by(keys).agg(pl.len().cast(pl.Int64).alias("n_groups"))
            made = made.join(groups, on=keys, how="inner", nulls_equal=True)
            missing = [name for name in by if name not in rest.columns]
            yield made.with_columns(
                pl.lit(rest.label).alias(GROUPING.name),
                *(pl.lit(None, dtype=frame.schema[name]).alias(name) for name in missing),
                pl.lit(over.label).alias("averaged"),
                pl.lit(average).alias("average"),
            )


def _name(params: ThresholdSweepParameters, rest: Grouping) -> str | None:
    """The grouping that holds all groups together, as it is called; None if the stage does not have it."""
    return next((each.label for each in params.groupings if set(each.columns) == set(rest.columns)), None)


def _average(rows: pl.DataFrame, average: Average, keys: Sequence[str]) -> pl.DataFrame:
    """Means where defined; of a micro average there is one row for each key already."""
    present = [name for name in (*RATIOS, *AREAS) if name in rows.columns]
    absent = [name for name in (*RATIOS, *AREAS) if name not in rows.columns]
    undefined = pl.any_horizontal(pl.col(name).is_null() for name in present).sum().cast(pl.Int64).alias("n_undefined")

    def mean(name: str) -> pl.Expr:
        if average != "weighted":
            return pl.col(name).mean()
        weight = pl.when(pl.col(name).is_not_null()).then(pl.col("n_positive"))
        total = (pl.col(name) * weight).sum() / weight.sum()
        return pl.when(weight.sum() > 0).then(total).alias(name)

    made = rows.group_by(keys).agg(*(mean(name) for name in present), undefined)
    return made.with_columns(pl.lit(None, dtype=pl.Float64).alias(name) for name in absent)
