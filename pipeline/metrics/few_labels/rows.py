"""What is known of all rows, and of the labelled ones."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]


@dataclass(frozen=True)
class Population:
    """Sizes of strata, in the order of their scores within a group, so that neighbours are alike.

    Attributes:
        cuts: Shape (K,): falling scores. A row is retrieved by a cut if its score is at least as high. For average
            precision they include the scores of all labelled rows.
        retrieved: Shape (H, K): rows of each stratum that each cut retrieves, or their weights.
        size: Shape (H,): rows of each stratum, or their weights, those below all cuts included.
        rows: Shape (H,): numbers of rows, where the others are weights; else None.
        proxy: Shape (H, K): sums of the proxy over the rows that each cut retrieves, or None.
        proxy_size: Shape (H,): sums of the proxy over all rows of each stratum, or None.
    """

    cuts: Floats
    retrieved: Floats
    size: Floats
    rows: Floats | None = None
    proxy: Floats | None = None
    proxy_size: Floats | None = None

    @property
    def numbers(self) -> Floats:
        """Shape (H,): how many rows each stratum has."""
        return self.size if self.rows is None else self.rows

    def merged(self, into: Integers) -> Population:
        """The sizes of merged strata; `into` is the new number of every stratum, from 0."""
        member = np.arange(int(into.max()) + 1)[:, None] == into

        def added(values: Floats | None) -> Floats | None:
            return None if values is None else np.asarray(member @ values, dtype=np.float64)

        return Population(
            self.cuts,
            np.asarray(member @ self.retrieved, dtype=np.float64),
            np.asarray(member @ self.size, dtype=np.float64),
            added(self.rows),
            added(self.proxy),
            added(self.proxy_size),
        )


@dataclass(frozen=True)
class Labelled:
    """The rows that were drawn and labelled, in any order.

    Attributes:
        stratum: Shape (n,): index of the stratum.
        score: Shape (n,).
        label: Shape (n,): whether the row is true.
        weight: Shape (n,): how heavy a row is beside others of its stratum: its own weight over its probability of
            being drawn; all 1 where rows of a stratum are drawn alike and weigh the same.
        proxy: Shape (n,), or None.
        cluster: Shape (n,): whatever was drawn together has one number; None where rows were drawn one by one.
    """

    stratum: Integers
    score: Floats
    label: NDArray[np.bool_]
    weight: Floats
    proxy: Floats | None = None
    cluster: Integers | None = None

    def take(self, order: Integers) -> Labelled:
        """The rows in another order."""
        return Labelled(
            self.stratum[order],
            self.score[order],
            self.label[order],
            self.weight[order],
            None if self.proxy is None else self.proxy[order],
            None if self.cluster is None else self.cluster[order],
        )
