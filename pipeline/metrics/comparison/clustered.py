"""Units that lie in clusters, such as queries that are copies of each other: what stands in their place in tests.

Units of one cluster are not independent, clusters are. Counts are added up within clusters, which are then the units of
every test of pooled ratios. A mean over units is a ratio of sums over clusters, Σ s_g / Σ n_g, and what a cluster
contributes to it is its pseudo-value (Tukey 1958): the mean of the pseudo-values is the mean over units, and their
standard deviation over √G its standard error by leaving out each cluster in turn. Of clusters of one size they are the
means of the clusters.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...records import dataclass
from .pooled import effective_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats


@dataclass(frozen=True)
class Clusters:
    """The clusters of some units.

    Attributes:
        of_units: Shape (U,): the number of the cluster of each unit, from 0; every number occurs.
    """

    of_units: NDArray[np.int64]

    @classmethod
    def of(cls, labels: NDArray[np.int64]) -> Clusters:
        """The clusters with these labels, one for each unit; labels that do not occur are passed over."""
        return cls(np.unique(labels, return_inverse=True)[1].reshape(-1).astype(np.int64))

    @property
    def sizes(self) -> Floats:
        """Number of units of every cluster, shape (G,)."""
        return np.bincount(self.of_units).astype(np.float64)

    @property
    def degrees(self) -> float:
        """Degrees of freedom of a variance between them: their effective number less one, at least 1."""
        return max(float(effective_number(self.sizes)) - 1, 1.0)

    def sums(self, values: Floats) -> Floats:
        """Sums over the units of every cluster, shape (G, …), of values of shape (U, …)."""
        totals = np.zeros((len(self.sizes), *values.shape[1:]))
        np.add.at(totals, self.of_units, values)
        return totals

    def means(self, values: Floats) -> Floats:
        """Means over the units of every cluster, shape (G,)."""
        return self.sums(values) / self.sizes

    def contributions(self, values: Floats) -> Floats:
        """Pseudo-values of the mean over units, shape (G,); of a single cluster the mean itself.

        Args:
            values: One value per unit, shape (U,).
        """
        sums, sizes = self.sums(values), self.sizes
        number = len(sizes)
        if number < 2:  # noqa: PLR2004 - nothing is left without a single cluster
            return sums / sizes
        without = (sums.sum() - sums) / (sizes.sum() - sizes)
        return np.asarray(sums.sum() / sizes.sum() + (number - 1) * (without.mean() - without))
