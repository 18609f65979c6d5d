"""Judged documents by their relevance."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats


@dataclass(frozen=True)
class Grades:
    """Judged documents of ties, or of the queries of rankings, by relevance; each array has shape (G,).

    Attributes:
        of: Number of the tie, or of the ranking, ascending; of a ranking, the highest relevance comes first.
        relevance: The relevance, at least 0.
        number: Number of documents that have it.
    """

    of: NDArray[np.int64]
    relevance: Floats
    number: Floats

    def totals(self, values: Floats, count: int) -> Floats:
        """Sum of values of the documents by tie or ranking, shape (count,)."""
        return np.bincount(self.of, values * self.number, count).astype(np.float64)
