"""How much a unit (event, cluster, document, series) moves a number: the number with it and without it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from ..tables.ratios import divide

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .sections import Asked

CONFUSION = ("tp", "fp", "fn")
OF_COUNTS = ("precision", "recall", "f1")
WITHOUT, INFLUENCE = "without", "influence"


def untold(asked: Asked, units: str, told: Sequence[str] = OF_COUNTS) -> str:
    """Why there is no influence of units on the number that is explained; empty if there is.

    Args:
        asked: What is explained.
        units: What the units are, in words.
        told: The numbers whose value without a unit follows from what is known of the units.
    """
    if asked.measure in told:
        return ""
    return (
        f"what {asked.measure} would be without one of the {units} is not known from their counts; it is known for "
        f"{', '.join(told)}"
    )


def ratio_of(counts: Mapping[str, pl.Expr], measure: str) -> pl.Expr:
    """Precision, recall or F1 of counts; `fpr` too where `tn` is among them.

    Args:
        counts: Expressions of `tp`, `fp`, `fn`, perhaps `tn`.
        measure: The ratio.

    Raises:
        ValueError: it is no ratio of these counts.
    """
    tp, fp, fn = (counts[name] for name in CONFUSION)
    if measure == "precision":
        return divide(tp, tp + fp)
    if measure == "recall":
        return divide(tp, tp + fn)
    if measure == "fpr" and "tn" in counts:
        return divide(fp, fp + counts["tn"])
    if measure == "f1":
        return divide(2 * tp, 2 * tp + fp + fn)
    message = f"{measure} is no ratio of {', '.join(counts)}"
    raise ValueError(message)


def with_influence(units: pl.DataFrame, measure: str, suffix: str = "") -> pl.DataFrame:
    """Units with the ratio of all others, `without`, and `influence`, the difference that the unit makes.

    Args:
        units: One row per unit with `tp`, `fp`, `fn` and perhaps `tn`.
        measure: As for `ratio_of`.
        suffix: Behind the names of the counts, such as `_weight`.

    Returns:
        The rows with the largest influence first; where the others alone have no ratio it is NULL, and comes last.
    """
    names = [name for name in (*CONFUSION, "tn") if f"{name}{suffix}" in units.columns]
    values = {name: pl.col(f"{name}{suffix}").cast(pl.Float64) for name in names}
    totals = units.select(value.sum().alias(name) for name, value in values.items())
    ratio = totals.select(ratio_of({name: pl.col(name) for name in names}, measure).alias(measure)).item()
    others = {name: pl.lit(totals[name].item()) - value for name, value in values.items()}
    return by_influence(units.with_columns(ratio_of(others, measure).alias(WITHOUT)), ratio)


def by_influence(units: pl.DataFrame, ratio: float | None) -> pl.DataFrame:
    """Units with `influence`, the ratio of all less `without`; the largest come first, equal ones keep their order.

    Args:
        units: One row per unit, with the column `without`.
        ratio: The ratio of all units.
    """
    influence = (pl.lit(ratio, dtype=pl.Float64) - pl.col(WITHOUT)).alias(INFLUENCE)
    return units.with_columns(influence).sort(
        pl.col(INFLUENCE).abs(), descending=True, nulls_last=True, maintain_order=True
    )
