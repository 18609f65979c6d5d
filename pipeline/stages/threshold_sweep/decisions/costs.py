"""Cost per row of threshold_sweep, with its interval: at the operating points, and of groups put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ....metrics.curves.choice_columns import COST, cost_columns
from ....metrics.curves.operating_points import CRITERION
from ....metrics.curves.payoffs import Payoffs
from ....metrics.uncertainty.limits import limit_series
from ....tables.ratios import divide
from ....tables.schemas import Column, limits_of
from ...parameters import FEWEST_REPLICATES
from ...stage import doubt
from ..choosing import outcomes
from ..contract import HEAVIEST
from ..uncertainty import confusion_of_rows
from ..unit_columns import COST as OF_UNIT
from ..unit_columns import TABLE as UNITS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ....metrics.uncertainty.jackknife import Floats
    from ..contract import ThresholdSweepParameters
    from .cuts import Cuts

COST_PER_ROW = "cost_per_row"
PER_ROW = (
    Column(
        COST_PER_ROW,
        "DOUBLE",
        "cost divided by all rows, of the weights if there are any; NULL: not reached, or a criterion without costs",
        nullable=True,
    ),
    *limits_of(COST_PER_ROW),
)


def further_columns(params: ThresholdSweepParameters) -> dict[str, tuple[Column, ...]]:
    """The columns of costs that operating points and units have if a criterion has costs."""
    columns = cost_columns(params.operating_points)
    return {"threshold_sweep_operating_points": (*columns, *PER_ROW), UNITS: (OF_UNIT,)} if columns else {}


def with_cost_per_row(
    points: pl.DataFrame, labels: Sequence[str], params: ThresholdSweepParameters, cuts: Callable[[], Cuts] | None
) -> pl.DataFrame:
    """Rows of outcomes with `cost_per_row` and its limits; as they are if no criterion has costs.

    Args:
        points: With `criterion`, `cost`, the outcomes, their weights and squares, and the heaviest weights.
        labels: Columns that tell the rows apart, `criterion` among them.
        params: The parameters.
        cuts: The counts of the rows by replicate, told apart by the labels, where clusters are independent; None:
            intervals between clusters are beyond the budget.
    """
    costs = [point for point in params.operating_points if point.cost is not None]
    if not costs:
        return points
    counts = outcomes()
    total = counts.retrieved + counts.fn + (counts.tn if counts.tn is not None else 0.0)
    payoffs = {point.text: Payoffs(*point.cost.by_outcome) for point in costs if point.cost is not None}
    points = points.with_columns(divide(pl.col(COST), total).alias(COST_PER_ROW))
    limits = np.full((2, points.height), np.nan)
    if params.cluster is None and params.is_replicated:
        for criterion, payoff in payoffs.items():
            rows = points.with_row_index("_row").filter(pl.col(CRITERION) == criterion, pl.col(COST).is_not_null())
            limits[:, rows["_row"].to_numpy()] = payoff.limits_of_rows(*confusion_of_rows(rows), params.confidence)
    elif params.is_replicated and cuts is not None:
        _fill_of_clusters(limits, points, labels, cuts(), payoffs, params)
    return points.with_columns(*limit_series(COST_PER_ROW, (limits[0], limits[1])))


def _fill_of_clusters(
    limits: Floats,
    points: pl.DataFrame,
    labels: Sequence[str],
    cuts: Cuts,
    payoffs: Mapping[str, Payoffs],
    params: ThresholdSweepParameters,
) -> None:
    """Write the limits of every row that has a cost."""
    numbers = {label: number for number, label in enumerate(points.select(labels).rows())}
    criteria, has_cost = points[CRITERION].to_list(), points[COST].is_not_null().to_list()
    for label, (counts, *crossed) in cuts.by_replicate():
        number = numbers[label]
        replicates = min(len(clustering.tp) for clustering in (counts, *crossed))
        if not has_cost[number] or replicates < FEWEST_REPLICATES:
            continue
        heaviest = points.select(HEAVIEST).row(number) if cuts.kind == "weight" else None
        of_row = payoffs[criteria[number]].limits_of_clusters(
            counts, params.confidence, heaviest=heaviest, crossed=crossed, resampling=params.resampling
        )
        limits[:, number] = [limit[0] for limit in of_row]


def is_about_cost(points: pl.DataFrame) -> bool:
    """Whether the criterion of some operating points has costs."""
    return COST_PER_ROW in points.columns and points[COST_PER_ROW].null_count() < points.height


def cost_text(row: Mapping[str, object]) -> str:
    """The cost per row for people, without limits."""
    return _short(row[COST_PER_ROW])


def cost_cell(row: Mapping[str, object], quality: str) -> str:
    """The cost per row and its limits for people, with a mark where these are doubtful."""
    lower, upper = (row[f"{COST_PER_ROW}_{side}"] for side in ("lower", "upper"))
    dash = "–" if isinstance(lower, float) and lower >= 0 else " to "
    limits = "" if lower is None else f" ({_short(lower)}{dash}{_short(upper)}){doubt(row, quality)}"
    return f"{cost_text(row)}{limits}"


def _short(value: object) -> str:
    return f"{value:.3g}" if isinstance(value, float) else "–"
