"""Columns of tables of operating points: what a choice gives elsewhere, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tables.schemas import Column, limits_of_share
from .operating_points import CRITERION

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .operating_points import Criterion

CROSS_FITTED = ("precision_cross_fitted", "recall_cross_fitted", "f1_cross_fitted")
UNDEFINED_CROSS_FITTED = "undefined_cross_fitted"
COLUMNS = (
    Column(
        CROSS_FITTED[0],
        "DOUBLE",
        (
            "precision where the threshold is [chosen on other clusters](methods/threshold_sweep.md#operating-points); "
            "NULL: none can be given"
        ),
        nullable=True,
    ),
    *limits_of_share(CROSS_FITTED[0], CROSS_FITTED[0]),
    Column(
        CROSS_FITTED[1],
        "DOUBLE",
        "recall where the threshold is chosen on other clusters; NULL: none can be given",
        nullable=True,
    ),
    *limits_of_share(CROSS_FITTED[1], CROSS_FITTED[1]),
    Column(
        CROSS_FITTED[2],
        "DOUBLE",
        "F1 where the threshold is chosen on other clusters: what the same choice gives on other data; "
        "NULL: none can be given",
        nullable=True,
    ),
    *limits_of_share(CROSS_FITTED[2], CROSS_FITTED[2]),
    Column(
        UNDEFINED_CROSS_FITTED,
        "VARCHAR",
        (
            "why one of these three ratios is NULL: `confidence`, `given`, `one_replicate`, `not_reached`, "
            "`undefined_ratio`, `none`; NULL: all three are given"
        ),
        nullable=True,
    ),
)
COST, COST_CROSS_FITTED = "cost", "cost_cross_fitted"
COST_COLUMNS = (
    Column(
        COST,
        "DOUBLE",
        "total cost of the outcomes at the threshold, of the weights if there are any; NULL: not reached, or a "
        "criterion without costs",
        nullable=True,
    ),
    Column(
        COST_CROSS_FITTED,
        "DOUBLE",
        "total cost where the threshold is chosen on other clusters; NULL: none can be given",
        nullable=True,
    ),
)


def criterion_column(examples: str) -> Column:
    """The column `criterion` of a table of operating points."""
    meaning = f"what the threshold was chosen for: {examples}, `threshold=6.54`, `max_alerts=500`, `cost=fp:1,fn:20`, …"
    return Column(CRITERION, "VARCHAR", meaning)


def cost_column(criteria: Iterable[Criterion]) -> tuple[Column, ...]:
    """The first of `cost_columns` alone, of stages whose choices are not cross-fitted."""
    return cost_columns(criteria)[:1]


def cost_columns(criteria: Iterable[Criterion]) -> tuple[Column, ...]:
    """The columns that a table of operating points has beside those of its contract: costs, if a criterion has any."""
    return COST_COLUMNS if any(criterion.cost is not None for criterion in criteria) else ()
