"""Tables of threshold_sweep that are made only if the config asks for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...plan.optional_tables import OptionalTable
from .bands.columns import BANDS
from .decisions import at_prevalence, pooled_points

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .contract import ThresholdSweepParameters

OF_RATES = "operating_points = [{ beta = 1 }], for example,"
GROUPS_AND_TOTAL = 'by with the total and groups, by = [[], ["site"]] for example,'
CAPACITY = "an operating point with max_alerts or max_alert_share"
WEIGHTED = "rows have weights, and alerts are shared out only where every row counts once"


def requested_tables(params: ThresholdSweepParameters, *, weighted: bool) -> Iterator[OptionalTable]:
    """Every such table, with whether it is asked for.

    Args:
        params: The parameters.
        weighted: Whether rows have weights.
    """
    net_benefit = "threshold_sweep_net_benefit"
    yield OptionalTable(BANDS.name, "bands", params.bands)
    yield OptionalTable(net_benefit, "net_benefit", params.net_benefit)
    yield from _of_groups(params, weighted=weighted)
    yield from _at_prevalence(params)


def _of_groups(params: ThresholdSweepParameters, *, weighted: bool) -> Iterator[OptionalTable]:
    """The tables of all groups together, and of the alerts that each gets."""
    points, allocations = pooled_points.TABLES
    has_groups = bool(pooled_points.groupings_to_pool(params))
    has_capacity = any(point.has_capacity for point in params.operating_points)
    yield OptionalTable(points, "by", has_groups, wish=GROUPS_AND_TOTAL)
    wishes = {CAPACITY: has_capacity, GROUPS_AND_TOTAL: has_groups}
    yield OptionalTable(
        allocations,
        "by" if has_capacity else "operating_points",
        has_capacity and has_groups,
        wish=" and ".join(wish for wish, is_there in wishes.items() if not is_there),
        lacking=WEIGHTED if weighted else "",
    )


def _at_prevalence(params: ThresholdSweepParameters) -> Iterator[OptionalTable]:
    """The tables at other shares of positives."""
    curve, points = at_prevalence.TABLES
    is_asked, wish = bool(params.prevalences), "prevalence = 0.05, for example,"
    yield OptionalTable(curve, "prevalence", is_asked, wish=wish)
    has_points = bool(at_prevalence.criteria_at_prevalence(params))
    yield OptionalTable(
        points,
        "operating_points" if is_asked else "prevalence",
        is_asked and has_points,
        wish=OF_RATES if is_asked else wish,
    )
