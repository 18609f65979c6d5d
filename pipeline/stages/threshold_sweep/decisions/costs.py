"""Cost per row of threshold_sweep, at operating points and of groups put together, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from ....metrics.curves.decisions import Payoffs
from ....metrics.curves.operating_points import COST, CRITERION, cost_columns
from ....metrics.uncertainty.limits import limit_series
from ....metrics.uncertainty.proportions import Confusion
from ....records import dataclass
from ....tables.columns import REPLICATE, THRESHOLD, by_group, divide
from ....tables.schemas import Column, limits_of
from ...parameters import FEWEST_REPLICATES
from ...stage import doubt
from ..contract import HEAVIEST
from ..uncertainty import CONFUSION, confusion_of_rows, kind_of_counts, outcomes
from ..units import COST as OF_UNIT
from ..units import TABLE as UNITS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from ....metrics.uncertainty.cube import Cube
    from ....metrics.uncertainty.jackknife import Floats
    from ..contract import ThresholdSweepParameters


# Cost per row of threshold_sweep, with its interval: at the operating points, and of groups put together.


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


def columns_of_costs(params: ThresholdSweepParameters) -> dict[str, tuple[Column, ...]]:
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


# Outcomes where groups are cut at thresholds, by replicate: of single groups, or of several put together.


CUT = "_cut"
Kind = Literal["n", "weight", "squares"]


@dataclass(frozen=True)
class Cuts:
    """Counts at thresholds, by what the cuts are told apart by.

    Attributes:
        labels: What a cut is told by.
        frames: For the one clustering, or for both parents and their intersections: columns `labels`, `replicate`, and
            for every kind of counts the outcomes, such as `n_tp` and `weight_fn`.
        kind: The counts that ratios are of.
        in_time: Whether the replicates follow each other in time.
    """

    labels: tuple[str, ...]
    frames: tuple[pl.DataFrame, ...]
    kind: Literal["n", "weight"]
    in_time: bool = False

    @classmethod
    def of(cls, cube: Cube, cuts: pl.DataFrame, labels: Sequence[str]) -> Cuts:
        """Cut every group.

        Args:
            cube: The counts of the groups.
            cuts: The keys of the cube, `labels`, and `_cut`: the threshold, NULL where nothing of a group is retrieved.
                A group is in no cut of which it has no row.
            labels: What tells cuts apart; counts of groups with the same labels are added up.
        """
        names = list(dict.fromkeys(labels))
        is_above = cube.thresholds is None and cube.boundary == ">"
        frames = (_cut(counts, cuts, list(cube.keys), names, is_above=is_above) for counts in _clusterings(cube))
        return cls(tuple(names), tuple(frames), kind_of_counts(cube.counts), cube.in_time)

    def totals(self) -> pl.DataFrame:
        """One row per cut: the labels and the outcomes of all replicates; weights and squares as DOUBLE."""
        names = [f"{kind}_{outcome}" for kind in ("n", "weight", "squares") for outcome in CONFUSION]
        summed = self.frames[0].group_by(self.labels, maintain_order=True).agg(pl.col(names).sum())
        return summed.with_columns(pl.col(name).cast(pl.Float64) for name in names[len(CONFUSION) :])

    def by_replicate(self) -> Iterator[tuple[tuple[object, ...], list[Confusion]]]:
        """The labels of every cut, and its counts by replicate, of shape (G, 1), by each clustering."""
        tables = [by_group(frame, self.labels) for frame in self.frames]
        for label, rows in tables[0].items():
            yield label, [self._confusion(rows), *(self._confusion(table[label]) for table in tables[1:])]

    def _confusion(self, rows: pl.DataFrame) -> Confusion:
        rows = rows.sort(REPLICATE)
        columns = (rows[f"{self.kind}_{outcome}"].cast(pl.Float64).to_numpy() for outcome in CONFUSION)
        return Confusion(*(np.asarray(column)[:, None] for column in columns), in_time=self.in_time)


def _clusterings(cube: Cube) -> tuple[pl.DataFrame, ...]:
    return (cube.counts, *cube.crossed)


def _cut(
    counts: pl.DataFrame, cuts: pl.DataFrame, keys: list[str], labels: list[str], *, is_above: bool
) -> pl.DataFrame:
    """The outcomes by labels and replicate; sums of decimals are exact."""
    joined = counts.join(cuts.select(*dict.fromkeys((*keys, *labels, CUT))), on=keys, how="inner", nulls_equal=True)
    at, cut = pl.col(THRESHOLD), pl.col(CUT)
    retrieved = (at > cut if is_above else at >= cut).fill_null(value=False)
    sums = []
    for kind in ("n", "weight", "squares"):
        sides = (pl.col(f"{kind}_positive"), pl.col(f"{kind}_negative"))
        hits = [side.filter(retrieved).sum() for side in sides]
        misses = [side.filter(~retrieved).sum() for side in sides]
        sums += [value.alias(f"{kind}_{name}") for value, name in zip((*hits, *misses), CONFUSION, strict=True)]
    summed = joined.group_by([*labels, REPLICATE]).agg(*sums)
    return summed.sort([*labels, REPLICATE], nulls_last=True)
