"""Rows of the figures of compare: pairs and systems by name, metrics side by side."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from ...metrics.uncertainty.qualities import INTERVAL_QUALITY, MEANINGS
from ..figure_blocks import RATIO_NAMES, RATIO_ROLES, keys_of, with_limits
from ..figures import Series
from .fitting import POOLED

if TYPE_CHECKING:
    from collections.abc import Sequence

SYSTEM, PAIR, SYSTEMS = "system", "pair", ("system_a", "system_b")
PAIR_TITLE = "Pair of systems"


def names_of_metrics(metrics: list[str]) -> dict[str, str]:
    """Give every metric a name for figures, of lower-case letters, digits and `_`, that no two of them share.

    Args:
        metrics: The metrics as users name them; `pooled` is the name of the figures of all pooled ratios.
    """
    names: dict[str, str] = {}
    taken = {"", "pooled"}
    for metric in metrics:
        plain = re.sub(r"[^a-z0-9]+", "_", metric.lower()).strip("_")
        candidates = (plain, *(f"{plain}_{number}".strip("_") for number in range(1, len(metrics) + 2)))
        names[metric] = next(candidate for candidate in candidates if candidate not in taken)
        taken.add(names[metric])
    return names


def pair_text() -> pl.Expr:
    """The pair of systems as text."""
    return pl.concat_str((text_of(name, name) for name in SYSTEMS), separator=" − ").alias(PAIR)


def by_system(table: pl.DataFrame, values: Sequence[str]) -> pl.DataFrame:
    """One row per group, metric and system; where its values differ by the system beside it, one for each of these.

    Args:
        table: One row per group, metric and pair.
        values: Columns of the first system without the `_a` in them; `interval_quality` is kept.
    """
    keys = [*keys_of(table), "metric"]
    sides = []
    for side, beside in (("a", "b"), ("b", "a")):
        names = (text_of(f"system_{side}", SYSTEM), text_of(f"system_{beside}", "beside"))
        of_side = (pl.col(name.replace("mean", f"mean_{side}")).alias(name) for name in values)
        sides.append(table.select(*keys, *names, *of_side, INTERVAL_QUALITY))
    systems = pl.concat(sides).unique([*keys, SYSTEM, *values], keep="first", maintain_order=True)
    systems = systems.with_columns(pl.len().over(*keys, SYSTEM).alias("n_values"))
    differ = pl.col("n_values").max().over(keys_of(table), SYSTEM) > 1
    named = pl.when(differ).then(pl.concat_str(SYSTEM, pl.lit(" (beside "), "beside", pl.lit(")"))).otherwise(SYSTEM)
    return systems.with_columns(named.alias(SYSTEM)).sort([*keys, SYSTEM]).drop("beside", "n_values")


def text_of(column: str, name: str) -> pl.Expr:
    """A column of systems as text, NULL as `null`."""
    return pl.col(column).cast(pl.String).fill_null("null").alias(name)


def wide(table: pl.DataFrame, at: str, column: str) -> pl.DataFrame:
    """One row per group and name on the horizontal axis, with a column for each pooled metric, its limits beside it.

    Args:
        table: One row per group, metric and name; `interval_quality` becomes the worst of the metrics.
        at: The column of the names.
        column: The column of the values; its limits, if it has any, are beside it.
    """
    present = [metric for metric in POOLED if metric in set(table["metric"])]
    ends = [end for end in ("", "_lower", "_upper") if f"{column}{end}" in table.columns]
    values = [
        pl.col(f"{column}{end}").filter(pl.col("metric") == metric).first().alias(f"{metric}{end}")
        for metric in present
        for end in ends
    ]
    qualities = list(MEANINGS)
    rank = pl.col(INTERVAL_QUALITY).replace_strict(qualities, range(len(qualities)), return_dtype=pl.Int64)
    worst = rank.min().replace_strict(range(len(qualities)), qualities, return_dtype=pl.String)
    return table.group_by([*keys_of(table), at], maintain_order=True).agg(*values, worst.alias(INTERVAL_QUALITY))


def pooled_series(table: pl.DataFrame) -> tuple[Series, ...]:
    """The pooled metrics that a wide table has, precision last."""
    present = (name for name in RATIO_ROLES if f"pooled_{name}" in table.columns)
    points = (Series(f"pooled_{name}", RATIO_NAMES[name], RATIO_ROLES[name], "point") for name in present)
    return tuple(with_limits(table, point) for point in points)
