"""Counts of the four outcomes of a threshold, as columns or as arrays, and what criteria ask of them: alerts and costs.

The total cost of a threshold is the sum of what its outcomes cost (Elkan 2001); a cost below 0 is a gain.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ...records import dataclass

if TYPE_CHECKING:
    from .operating_points import Cost, Criterion

Values = TypeVar("Values", pl.Expr, NDArray[np.float64])

_ROUNDING = 1e-12  # sums of weights are rounded
_DIGITS = 14  # costs of weights that differ less are equal


@dataclass(frozen=True)
class Outcomes(Generic[Values]):
    """Counts, or sums of weights, of one shape.

    Attributes:
        tp: True positives.
        fp: False positives.
        fn: False negatives.
        tn: True negatives; None: they are not counted.
        neither: What is retrieved and counts neither as true nor as false; None: nothing.
    """

    tp: Values
    fp: Values
    fn: Values
    tn: Values | None = None
    neither: Values | None = None

    @property
    def retrieved(self) -> Values:
        """What the threshold retrieves."""
        judged = self.tp + self.fp
        return judged if self.neither is None else judged + self.neither

    def cost(self, cost: Cost) -> Values:
        """The total cost."""
        return self._total(*cost.by_outcome)

    def whole_cost(self, cost: Cost) -> Values:
        """The total cost in the unit in which costs are whole numbers, so that equal costs of counts are equal."""
        return self._total(*cost.whole)

    def _total(self, tp: float, fp: float, fn: float, tn: float) -> Values:
        total = self.tp * tp + self.fp * fp + self.fn * fn
        return total + self.tn * tn if tn and self.tn is not None else total

    def excess(self, criterion: Criterion, share: float = 1.0) -> Values:
        """By how much the threshold retrieves more than the capacity of a criterion; 0 or less: it does not.

        Args:
            criterion: With `max_alerts` or `max_alert_share`.
            share: How much of the data there is: `max_alerts` is for all of them.
        """
        if criterion.max_alerts is not None:
            return self.retrieved - criterion.max_alerts * share * (1 + _ROUNDING)
        missed = self.fn if self.tn is None else self.fn + self.tn
        most = (criterion.max_alert_share or 1.0) * (1 + _ROUNDING)
        return self.retrieved - (self.retrieved + missed) * most


def lowest_cost(outcomes: Outcomes[pl.Expr], cost: Cost) -> pl.Expr:
    """What is maximised for the lowest cost; costs of weights that differ by rounding are equal."""
    return -outcomes.whole_cost(cost).cast(pl.Float64).round_sig_figs(_DIGITS)
