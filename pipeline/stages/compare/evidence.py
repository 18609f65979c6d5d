"""Where the numbers of compare come from: the units in which two systems differ most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ...plan.nodes import Relation
from ..sections import EXPLAINED_ROWS, Evidence, Measure, Section
from .planning import COUNT, METRIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..sections import Asked

_MEASURES = ("mean_a", "mean_b", "p_value", "p_adjusted", "effect_size")
_PULL = "pull"


def _compared(asked: Asked) -> tuple[str, ...]:
    """Columns of the units that the metric of the row is made of: its values, or all counts."""
    units = next(node for node in asked.plan.nodes if isinstance(node, Relation) and node.into == "units")
    names = tuple(units.query.named_selects)
    value = f"{METRIC}{asked.row['metric']}"
    return (value,) if value in names else tuple(name for name in names if name.startswith(COUNT))


def _columns(asked: Asked) -> tuple[str, ...]:
    return ("unit", "system", *asked.by, *_compared(asked))


def _of_system(units: pl.DataFrame, asked: Asked, side: str) -> pl.DataFrame:
    """The units of the first or of the other system."""
    system = pl.lit(asked.row[f"system_{side}"], dtype=units.schema["system"])
    return units.filter(pl.col("system").eq_missing(system))


def _telling(units: pl.DataFrame, frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    return _differences(units, frames, asked) if asked.params.paired else _pulls(units, asked)


def _pulls(units: pl.DataFrame, asked: Asked) -> pl.DataFrame:
    """Units of both systems below each other, those first that lie farthest from the mean of their system.

    Of counts those with the most.
    """
    names = _compared(asked)
    values = [pl.col(name).cast(pl.Float64) for name in names]
    if len(names) == 1:
        values = [(value - value.mean()).abs() for value in values]
    systems = [_of_system(units, asked, side).with_columns(pl.sum_horizontal(values).alias(_PULL)) for side in "ab"]
    keys = ["system", "unit", *asked.by]
    order = pl.concat(systems).sort(_PULL, *keys, descending=[True] + [False] * len(keys), nulls_last=True)
    return order.select(*keys, *(pl.col(name).alias(_plain(name)) for name in names))


def _differences(units: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Units of both systems side by side, and the differences; the largest first, of counts the largest together."""
    names = _compared(asked)
    keys = ["unit", *asked.by]
    sides = [
        _of_system(units, asked, side).select(*keys, *(pl.col(name).alias(f"{_plain(name)}_{side}") for name in names))
        for side in "ab"
    ]
    paired = sides[0].join(sides[1], on=keys, how="inner", nulls_equal=True)
    differences = [
        (pl.col(f"{_plain(name)}_a") - pl.col(f"{_plain(name)}_b")).alias(f"{_plain(name)}_difference")
        for name in names
    ]
    paired = paired.with_columns(differences)
    size = pl.sum_horizontal(pl.col(f"{_plain(name)}_difference").abs().cast(pl.Float64) for name in names)
    return paired.sort(size, *(pl.col(key) for key in keys), descending=[True] + [False] * len(keys), nulls_last=True)


def _plain(name: str) -> str:
    return name.removeprefix(METRIC).removeprefix(COUNT)


EVIDENCE = Evidence(
    measures=(
        Measure("difference", "compare_tests", ((("difference", "mean_a - mean_b"),),)),
        Measure("ratio", "compare_tests", ((("ratio", "mean_a / mean_b"),),)),
        *(Measure(name, "compare_tests") for name in _MEASURES),
    ),
    sections=(
        Section(
            "units",
            "Units that decide the difference",
            "Units of both systems side by side, the largest differences first; of ratios of all counts the largest "
            "differences of counts. With paired = false units of either system, those first that lie farthest from its "
            "mean, or have the most counts.",
            "compare/explain/units",
            finish=_telling,
            ranks=True,
            segment=_columns,
            inputs={"units": {"unit": "unit"}},
        ),
    ),
    rows=lambda _asked: {EXPLAINED_ROWS: "units"},
    threshold="",
    values=lambda _asked: {},
    preferred={"test": "paired_t"},  # whose limits tell the spread that plans start from
    independent="units",
    decides=(
        "metrics",
        "paired",
        "baseline",
        "tests",
        "margin",
        "lower_is_better",
        "contributions",
        "correction",
        "missing_units",
        "resamples",
        "seed",
    ),
)
