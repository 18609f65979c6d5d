"""Weights and influences of rows by replicate, and the sampling error of areas that follows from them.

Rows with two parents, such as a user and an item, have a replicate of each. Their sums are made by the first parent, by
the second, and by the intersections of both, in one pass over the rows; see `uncertainty.spread`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ..uncertainty.clusters import combined_spread
from ..uncertainty.spread import CELLS_OF_BOTH, replicate_of_both
from .influence import shifts_of_clusters

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from ..uncertainty.clusters import Spread
    from .influence import Shifts

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"
Pair: TypeAlias = "tuple[Floats, Floats]"  # of the positives and of the negatives

CLASSES = ("positive", "negative")


class ReplicateSums:
    """Sums of weights, and of weights times influences, by group, class and replicate of each clustering.

    Args:
        groups: Number of groups.
        areas: Names of the areas whose influences are added up.
        replicates: Number of replicates; 0: rows are independent, and nothing is added.
        second_replicates: Number of those of the second parent of rows that have two; 0 if they have one.
        in_time: Whether replicates follow each other in time.
    """

    def __init__(
        self,
        groups: int,
        areas: Sequence[str],
        replicates: int,
        second_replicates: int = 0,
        *,
        in_time: bool = False,
    ) -> None:
        self._in_time = in_time
        of_second = (second_replicates, CELLS_OF_BOTH) if second_replicates else ()
        self._sizes = (replicates, *of_second)  # of each clustering; their replicates follow one another on axis 1
        names = [f"{kind}_{side}" for kind in ("weight", *areas) for side in CLASSES]
        self._sums = {name: np.zeros((groups, sum(self._sizes))) for name in names}

    def adding(
        self, group: Integers, replicate: Integers, second_replicate: Integers | None
    ) -> Callable[[str, Floats], None]:
        """A function that adds values of these rows to the sums of a name.

        Args:
            group: Index of the group of each row.
            replicate: Index of its replicate.
            second_replicate: That of its second parent; None if it has one parent.
        """
        clusterings = [replicate]
        if second_replicate is not None:
            clusterings += [second_replicate, replicate_of_both(replicate, second_replicate)]
        offsets = np.cumsum(self._sizes) - self._sizes
        width = sum(self._sizes)
        cells = [group * width + offset + numbers for offset, numbers in zip(offsets, clusterings, strict=True)]

        def add(name: str, values: Floats) -> None:
            sums = self._sums[name]
            for cell in cells:
                sums += np.bincount(cell, weights=values, minlength=sums.size).reshape(sums.shape)

        return add

    def spread_and_shifts(self, area: str, slope: Floats) -> tuple[Spread, Shifts]:
        """The sampling error of an area in every group, and what each replicate of the first parent moves.

        Args:
            area: Its name.
            slope: Shape (groups,); as for `influence.variance_of_rows`.
        """
        shifts = [shifts_of_clusters(*sums, slope, in_time=self._in_time) for sums in self._of_clusterings(area)]
        return combined_spread([of_clustering.spread for of_clustering in shifts]), shifts[0]

    def _of_clusterings(self, area: str) -> Iterator[tuple[Pair, Pair]]:
        """Weights and influences of both classes, each of shape (replicates, groups), by each clustering."""
        names = [f"{kind}_{side}" for kind in ("weight", area) for side in CLASSES]
        for size, end in zip(self._sizes, np.cumsum(self._sizes), strict=True):
            weights = [self._sums[name][:, end - size : end].T for name in names]
            yield (weights[0], weights[1]), (weights[2], weights[3])
