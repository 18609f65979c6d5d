"""Sums over rows of which only the cell of the score is known: midpoints of certified bounds.

A cell holds so many positives and negatives, and its lowest and its highest score. A term of a row lies between what it
is at one and at the other, because it rises or falls with the score. The sum of the midpoints is then nowhere farther
from the sum of the terms than the sum of half their distances, called *open* here. All of it is for scores from 0 to 1.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

Floats: TypeAlias = "NDArray[np.float64]"

NEAREST = 1e-15  # a probability nearer to 0 or 1 counts as so far away
_ROUNDING = 4e-15  # of a term, in proportion to it, and of what is added for it in 15 decimals


@dataclass(frozen=True)
class Cells:
    """Rows in cells; all arrays have one shape.

    Attributes:
        positive: Number of rows with a true label.
        negative: Number of the others.
        lowest: Lowest score, from 0 to 1.
        highest: Highest score.
    """

    positive: Floats
    negative: Floats
    lowest: Floats
    highest: Floats

    def losses(self) -> dict[str, Floats]:
        """Sums of logarithms of the likelihood, of their squares, and of squared errors, and what is open of them."""
        ends = [np.clip(each, NEAREST, 1 - NEAREST) for each in (self.lowest, self.highest)]
        positive, negative = _between(*map(np.log, ends)), _between(*(np.log(1 - each) for each in ends))
        first, first_open = self._total(positive, negative)
        second, _ = self._total((positive[0] ** 2, 0.0), (negative[0] ** 2, 0.0))
        of_positives = _between(*((1 - each) ** 2 for each in (self.lowest, self.highest)))
        errors, errors_open = self._total(of_positives, _between(self.lowest**2, self.highest**2))
        return {
            "first": first,
            "first_open": first_open,
            "second": second,
            "squared_errors": errors,
            "squared_errors_open": errors_open,
        }

    def moments(self) -> dict[str, Floats]:
        """Sums that tables of calibration are made of, with half of what is open of the scores."""
        score, squares = _between(self.lowest, self.highest), _between(self.lowest**2, self.highest**2)
        scores, scores_open = self._total(score, score)
        slope = 1 - 2 * score[0]
        rows = self.positive + self.negative
        return {
            "scores": scores,
            "scores_open": scores_open,
            "scores_positive": self.positive * score[0],
            "score_squares": rows * squares[0],
            "test_variance": rows * slope**2 * score[0] * (1 - score[0]),
        }

    def _total(
        self, positive: tuple[Floats, Floats | float], negative: tuple[Floats, Floats | float]
    ) -> tuple[Floats, Floats]:
        """The sum over the rows of a cell of midpoints, and of half distances, widened by what rounding can do."""
        total = self.positive * positive[0] + self.negative * negative[0]
        left = self.positive * positive[1] + self.negative * negative[1]
        return total, left + _ROUNDING * (self.positive + self.negative + np.abs(total))


def _between(one: Floats, other: Floats) -> tuple[Floats, Floats]:
    """Midpoint and half the distance of two ends."""
    return (one + other) / 2, np.abs(other - one) / 2
