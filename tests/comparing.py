"""What compare derives from a few units: one value per unit and system, or tp, fp and fn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
from deriving import derived, saved_counts

from pipeline.base.schemas import internal_name
from pipeline.metrics.comparison.paired import paired_ratios

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from deriving import Derived, Groupings


def units_compared(columns: Mapping[str, Sequence[Any] | pl.Series], by: Groupings = ((),), **keys: object) -> Derived:
    groups = [name for names in by for name in names]
    units = pl.DataFrame(dict(columns)).rename({name: internal_name(name) for name in groups})
    frames = {"counts": saved_counts("compare", [], by), "units": units}
    return derived("compare", frames, {}, units="rows.parquet", by=by, **{"tests": ["paired_t"]} | keys)


def of_values(units: Sequence[tuple[str, int, float | None]], **keys: Any) -> Derived:  # noqa: ANN401
    systems, numbers, values = zip(*units, strict=True)
    return units_compared({"system": systems, "unit": numbers, "metric:delay": values}, metrics=["delay"], **keys)


def of_counts(units: Sequence[tuple[str, int, int, int, int]], **keys: Any) -> Derived:  # noqa: ANN401
    names = ("system", "unit", "count:tp", "count:fp", "count:fn")
    return units_compared(dict(zip(names, zip(*units, strict=True), strict=True)), **keys)


def compare_matchers(
    units_a: pl.DataFrame, units_b: pl.DataFrame, *, confidence: float = 0.95, flips: int = 9999, seed: int = 0
) -> pl.DataFrame:
    """Every ratio of two matchers by `metric`, from their tables of events; NULL where a value is undefined."""
    rows = []
    for name, ratio in paired_ratios(units_a, units_b).items():
        half = ratio.half_width(confidence)
        rows.append(
            {
                "metric": name,
                "n_events": len(ratio.jackknifed),
                "value_a": ratio.value_a,
                "value_b": ratio.value_b,
                "difference": ratio.difference,
                "difference_lower": ratio.difference - half,
                "difference_upper": ratio.difference + half,
                "p_value": ratio.flip_p_value(flips, seed),
            }
        )
    return pl.DataFrame(rows).with_columns(pl.selectors.float().fill_nan(None))
