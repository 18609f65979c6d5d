"""Made-up points of several series, and what is true of them by brute force."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from hypothesis import strategies as st

from pipeline.metrics.change_points.windows import Margin, Points

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

INTEGERS = st.integers(0, 25)
EIGHTHS = st.integers(0, 60).map(lambda number: number / 8)


@dataclass(frozen=True)
class Case:
    """True and predicted points in the order of input, and a margin."""

    true_series: NDArray[np.int64]
    true_position: NDArray[Any]
    series: NDArray[np.int64]
    position: NDArray[Any]
    score: NDArray[np.float64]
    margin: Margin

    @property
    def true_order(self) -> NDArray[np.int64]:
        """Place in the input of every sorted true point."""
        return np.lexsort((self.true_position, self.true_series))

    @property
    def order(self) -> NDArray[np.int64]:
        """Place in the input of every sorted prediction."""
        return np.lexsort((self.position, self.series))

    @property
    def truth(self) -> Points:
        return Points(self.true_series[self.true_order], self.true_position[self.true_order])

    @property
    def predictions(self) -> Points:
        return Points(self.series[self.order], self.position[self.order])

    @property
    def near(self) -> NDArray[np.bool_]:
        """Whether prediction (row) and true point (column) match, in the order of input."""
        difference = self.position[:, np.newaxis] - self.true_position[np.newaxis]
        low, high = -self.margin.before, self.margin.after
        inside = (difference >= low) & (difference <= high)
        if not self.margin.closed:
            inside = (difference > low) & (difference < high)
        return np.asarray(inside & (self.series[:, np.newaxis] == self.true_series[np.newaxis]))

    def thresholds(self) -> Iterator[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
        """For every score: predictions at or above it, in the order of input and sorted."""
        for score in np.unique(self.score):
            entered = self.score >= score
            yield entered, entered[self.order]


@st.composite
def cases(draw: st.DrawFn, *, closed: bool | None = None, sorted_input: bool = False) -> Case:
    """Few series, few scores and few positions, so that ties, duplicates and conflicts are common."""
    values: st.SearchStrategy[Any] = draw(st.sampled_from([INTEGERS, EIGHTHS]))
    kind = np.int64 if values is INTEGERS else np.float64
    n_series = draw(st.integers(1, 3))
    point = st.tuples(st.integers(0, n_series - 1), values)
    truth = draw(st.lists(point, max_size=12))
    predicted = draw(st.lists(st.tuples(point, st.integers(0, 4)), max_size=16))
    if sorted_input:
        truth, predicted = sorted(truth), sorted(predicted, key=lambda point: point[0])
    side = st.integers(0, 6) if kind == np.int64 else st.integers(0, 20).map(lambda number: number / 8)
    margin = Margin(draw(side), draw(side), draw(st.booleans()) if closed is None else closed)
    return Case(
        np.array([series for series, _ in truth], dtype=np.int64),
        np.array([position for _, position in truth], dtype=kind),
        np.array([series for (series, _), _ in predicted], dtype=np.int64),
        np.array([position for (_, position), _ in predicted], dtype=kind),
        np.array([score for _, score in predicted], dtype=np.float64),
        margin,
    )


def one_series(positions: list[int], kind: type = np.int64) -> Points:
    """Sorted points of series 0."""
    return Points(np.zeros(len(positions), dtype=np.int64), np.array(sorted(positions), dtype=kind))
