"""Counts of labels in cells of scores, group by group, and how uncertain they leave the areas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...records import dataclass
from .area_bounds import average_precision_bounds, roc_auc_bounds
from .cell_grids import OpenCells
from .ordered_areas import ROW_AREAS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from .area_bounds import Bounds
    from .ordered_areas import Rows


@dataclass(frozen=True)
class Extremes:
    """Lowest and highest score of each cell.

    Attributes:
        lowest: Shape (cells,).
        highest: Shape (cells,).
    """

    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]


@dataclass(frozen=True)
class AreaCells:
    """Cells in ascending order of group and score.

    Attributes:
        rows: Counts, one row for each cell.
        extremes: Lowest and highest score of each cell; None if unknown, in which case no cell is taken to hold a
            single score.
    """

    rows: Rows
    extremes: Extremes | None

    def bounds(self, groups: int, *, weighted: bool) -> dict[str, list[Bounds]]:
        """Bounds for every group, by name of the area.

        Args:
            groups: Number of groups; the bounds of a group without cells are undefined.
            weighted: Whether rows have weights.
        """
        rows = self.rows
        by_area: dict[str, list[Bounds]] = {area: [] for area in ROW_AREAS}
        single = np.zeros(len(rows), dtype=np.bool_)
        if self.extremes is not None:
            single = self.extremes.lowest == self.extremes.highest
        for cells in _cells_of_groups(rows.group, groups):
            positive, negative = rows.positive[cells], rows.negative[cells]
            first = np.full(len(positive), 0.0 if weighted else 1.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                by_area["average_precision"].append(average_precision_bounds(positive, negative, single[cells], first))
                by_area["roc_auc"].append(roc_auc_bounds(positive, negative, single[cells]))
        return by_area

    def open(self, bounds: dict[str, list[Bounds]], extremes: Extremes) -> OpenCells:
        """How much the cells leave open, in ascending order of score over all groups.

        Args:
            bounds: Bounds as returned by `bounds`.
            extremes: Lowest and highest score of each cell.
        """
        groups = len(bounds[ROW_AREAS[0]])
        left = np.zeros(len(self.rows))
        for number, cells in enumerate(_cells_of_groups(self.rows.group, groups)):
            left[cells] = sum(np.nan_to_num(bounds[area][number].open) for area in ROW_AREAS)
        order = np.argsort(extremes.lowest, kind="stable")
        order = order[np.isfinite(extremes.lowest[order])]  # a tie at minus infinity is one cell, and stays one
        return OpenCells(extremes.lowest[order], float(extremes.highest.max()), left[order])


def _cells_of_groups(group: NDArray[np.int64], groups: int) -> Iterator[slice]:
    """The cells of each group, in the order of the group numbers; the cells of one group are contiguous."""
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(group), 1), dtype=bool), group[1:] != group[:-1]]))
    ends = np.append(starts[1:], len(group))[: len(starts)]
    slices = {int(group[start]): slice(int(start), int(end)) for start, end in zip(starts, ends, strict=True)}
    for number in range(groups):
        yield slices.get(number, slice(0, 0))
