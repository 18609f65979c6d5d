"""Where the numbers of compare come from: the units in which two systems differ most."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from pipeline.plan.nodes import Relation
from pipeline.stages.compare.planning import COUNT, METRIC
from pipeline.stages.evidence import Evidence, Measure
from pipeline.stages.sections import EXPLAINED_ROWS, Section

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.stages.sections import Asked

_MEASURES = ("difference", "mean_a", "mean_b", "p_value", "p_adjusted", "effect_size")


def _compared(asked: Asked) -> tuple[str, ...]:
    """Columns of the units that the metric of the row is made of: its values, or all counts."""
    units = next(node for node in asked.plan.nodes if isinstance(node, Relation) and node.into == "units")
    names = tuple(units.query.named_selects)
    value = f"{METRIC}{asked.row['metric']}"
    return (value,) if value in names else tuple(name for name in names if name.startswith(COUNT))


def _columns(asked: Asked) -> tuple[str, ...]:
    return ("unit", "system", *asked.by, *_compared(asked))


def _differences(units: pl.DataFrame, _frames: Mapping[str, pl.DataFrame], asked: Asked) -> pl.DataFrame:
    """Units of both systems side by side, and the differences; the largest first, of counts the largest together."""
    names = _compared(asked)
    keys = ["unit", *asked.by]
    sides = [
        units.filter(pl.col("system") == asked.row[f"system_{side}"]).select(
            *keys, *(pl.col(name).alias(f"{_plain(name)}_{side}") for name in names)
        )
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
        *(Measure(name, "compare_tests") for name in _MEASURES[1:]),
    ),
    sections=(
        Section(
            "units",
            "Units with the largest differences",
            "Units of both systems side by side, the largest differences first; of ratios of all counts the largest "
            "differences of counts.",
            "compare/explain/units",
            finish=_differences,
            ranks=True,
            segment=_columns,
            inputs={"units": {"unit": "unit"}},
        ),
    ),
    rows=lambda _asked: {EXPLAINED_ROWS: "units"},
    threshold="",
    values=lambda _asked: {},
    independent="units",
    decides=("metrics", "tests", "correction", "missing_units", "resamples", "seed"),
)
