"""Counts of one group by replicate, and the sums over its documents, at every threshold."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from ...metrics.uncertainty.cube import GroupCounts
from ...metrics.uncertainty.proportions import Confusion
from ...records import dataclass
from ...tables.sweep import THRESHOLD
from .document_sums import SUMS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from ...tables.sweep import Boundary

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"

EVERYTHING = float("-inf")  # the threshold of a group without scores, whose predictions are all retrieved at once


@dataclass(frozen=True)
class Group:
    """Counts of one group.

    Attributes:
        counts: Mentions by replicate and threshold.
        documents: Sums over documents, see `document_sums.sums_of_documents`, likewise; None where no average over
            documents is wanted.
        n_documents: Number of documents.
    """

    counts: GroupCounts
    documents: GroupCounts | None
    n_documents: int

    @property
    def thresholds(self) -> Floats:
        """Shape (K,), rising; one nan where everything is retrieved at once."""
        return np.where(self.counts.thresholds == EVERYTHING, np.nan, self.counts.thresholds)

    @cached_property
    def tp(self) -> Ints:
        """Retrieved matched predictions by replicate and threshold, shape (G, K)."""
        return self.counts.at_or_above("tp")

    @cached_property
    def fp(self) -> Ints:
        """Other retrieved predictions, likewise."""
        return self.counts.at_or_above("fp")

    @cached_property
    def n_gold(self) -> Ints:
        """Gold mentions by replicate, shape (G,)."""
        return self.counts.totals("n_gold")

    @property
    def confusion(self) -> Confusion:
        """Outcomes of all mentions by replicate and threshold; nothing is a true negative."""
        fn = self.n_gold[:, None] - self.tp
        return Confusion(self.tp, self.fp, fn, np.zeros_like(self.tp), in_time=self.counts.in_time)

    @cached_property
    def sums(self) -> Mapping[str, Floats]:
        """Sums over documents by name, shape (G, K): what they add before any retrieval, and what each bin changes."""
        if self.documents is None:
            return {}
        return {name: self.documents.below(name)[:, None] + self.documents.at_or_above(name) for name in SUMS}


def group_of(
    counts: pl.DataFrame,
    sums: pl.DataFrame | None,
    replicates: Ints,
    n_documents: int,
    thresholds: Sequence[float] | None,
    boundary: Boundary,
    *,
    in_time: bool = False,
) -> Group:
    """The counts of one group.

    Args:
        counts: Its rows of the count table, with `replicate`, `threshold`, `tp`, `fp`, `n_gold`.
        sums: Its rows of the sums of documents; None: they are not wanted.
        replicates: Replicates of its documents, in any order.
        n_documents: Number of its documents.
        thresholds: The thresholds; None: every score of the group.
        boundary: Without thresholds: whether a score equal to the threshold is retrieved.
        in_time: Whether replicates follow each other in time.
    """
    if thresholds is None and counts[THRESHOLD].null_count() == counts.height:
        at_once, thresholds = pl.lit(EVERYTHING).alias(THRESHOLD), (EVERYTHING,)
        counts, sums = counts.with_columns(at_once), None if sums is None else sums.with_columns(at_once)
    group = replace(GroupCounts.of(counts, thresholds, boundary, replicates), in_time=in_time)
    return Group(group, None if sums is None else group.with_counts(sums), n_documents)
