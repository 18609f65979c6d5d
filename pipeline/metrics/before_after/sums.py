"""Sums of matches and compared pairs before and after the event, and what follows from them."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats
    from ..uncertainty.serial import InTime

Counts: TypeAlias = "NDArray[np.int64]"

ROUNDING = 1e-12  # relative error within which doubles of a number of pairs are taken to be equal


@dataclass(frozen=True)
class Sides:
    """Counts before and after the event by the replicates of one clustering.

    Attributes:
        m_before: Shape (G, T): matches before the event at or above each threshold, ascending.
        m_after: Shape (G, T): the same after the event.
        n_before: Shape (G,): compared pairs before the event.
        n_after: Shape (G,): the same after the event.
        in_time: How the replicates follow each other, where they are days; None: they do not.
    """

    m_before: Counts
    m_after: Counts
    n_before: Counts
    n_after: Counts
    in_time: InTime | None = None

    @property
    def used(self) -> NDArray[np.bool_]:
        """Shape (G,): whether a replicate has any compared pair."""
        return np.asarray((self.n_before + self.n_after) > 0)

    @property
    def with_data(self) -> Sides:
        """The replicates that have any compared pair."""
        used, in_time = self.used, None if self.in_time is None else self.in_time[self.used]
        return Sides(self.m_before[used], self.m_after[used], self.n_before[used], self.n_after[used], in_time)

    @property
    def columns(self) -> tuple[Counts, Counts, Counts, Counts]:
        """The four counts, those of compared pairs of shape (G, 1)."""
        return self.m_before, self.m_after, self.n_before[:, None], self.n_after[:, None]


@dataclass(frozen=True)
class Sums:
    """Totals of shape (T,) and (1,), or totals without each replicate, which then have the replicates on axis 0.

    Attributes:
        reference: Index of the threshold that recall is measured against, or None.
        reference_recall: What recall is believed to be at the reference, r0.
        m_before: M_b, matches before the event.
        m_after: M_a, matches after the event.
        n_before: N_b, compared pairs before the event.
        n_after: N_a, compared pairs after the event.
    """

    reference: int | None
    reference_recall: float
    m_before: Floats
    m_after: Floats
    n_before: Floats
    n_after: Floats

    @classmethod
    def of(cls, reference: int | None, reference_recall: float, counts: Sequence[Counts | Floats]) -> Sums:
        """Sums as doubles, of the four counts in the order of the attributes."""
        return cls(reference, reference_recall, *(np.asarray(values, dtype=np.float64) for values in counts))

    @cached_property
    def fpr(self) -> Floats:
        """False positive rate, M_b / N_b."""
        return self.m_before / self.n_before

    @cached_property
    def tp(self) -> Floats:
        """Estimated true positives of the source text, M_a - F N_a."""
        return self.m_after - self.fpr * self.n_after

    @cached_property
    def tp_reference(self) -> Floats:
        """The same at the reference, TP0."""
        return self._at_reference(self.tp)

    @cached_property
    def gap(self) -> Floats:
        """Recall less the false positive rate, both at the reference: r0 - F0."""
        return self.reference_recall - self._at_reference(self.fpr)

    @cached_property
    def positives(self) -> Floats:
        """A: the number of positives, estimated at the reference: TP0 / (r0 - F0) (Rogan & Gladen 1978)."""
        return np.where(self.gap > 0, self.tp_reference / self.gap, np.nan)

    @property
    def is_possible(self) -> NDArray[np.bool_]:
        """Shape (1,): whether there are, rounding apart, no more estimated positives than pairs after the event."""
        return np.asarray(self.positives <= self.n_after * (1 + ROUNDING))

    @cached_property
    def tp_corrected(self) -> Floats:
        """True positives when FP is not overestimated: TP + F A."""
        return self.tp + self.fpr * self.positives

    @cached_property
    def found(self) -> Floats:
        """The corrected true positives times r0 - F0, which is also defined where that is 0: TP (r0 - F0) + F TP0."""
        return self.tp * self.gap + self.fpr * self.tp_reference

    @cached_property
    def precision(self) -> Floats:
        """Corrected precision; nan where nothing is retrieved or positives are not identified."""
        return self.tp_corrected / self.m_after

    def _at_reference(self, values: Floats) -> Floats:
        return np.full_like(values[..., :1], np.nan) if self.reference is None else values[..., [self.reference]]
