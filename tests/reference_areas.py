"""Areas under curves from their definitions, and their standard errors from derivatives by the weight of every row.

Slow and plain on purpose. Weights may be complex, so that derivatives come from complex steps, free of cancellation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

STEP = 1e-30


class Area(Protocol):
    """An area of weighted rows.

    Args:
        scores: Shape (n,).
        labels: Shape (n,), boolean.
        weights: Shape (n,); only the distributions within the classes are taken from them.
        share: The share of positives.
    """

    def __call__(
        self, scores: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any], share: complex, /
    ) -> complex: ...


def _classes(labels: NDArray[Any], weights: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Weights of positives and of negatives, each 1 in all."""
    positive, negative = np.where(labels, weights, 0), np.where(labels, 0, weights)
    return positive / positive.sum(), negative / (negative.sum() if not labels.all() else 1)


def average_precision(scores: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any], share: complex, /) -> complex:
    """Mean over positives of the precision at their own score."""
    positive, negative = _classes(labels, weights)
    at_or_above = scores[None] >= scores[:, None]
    hits, false = share * (at_or_above @ positive), (1 - share) * (at_or_above @ negative)
    used = labels & (weights != 0)
    return complex((positive[used] * (hits / np.where(used, hits + false, 1))[used]).sum())


def roc_auc(scores: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any], _: complex, /) -> complex:
    """Probability that a positive scores higher than a negative, ties counting half."""
    positive, negative = _classes(labels, weights)
    higher = (scores[:, None] > scores[None]) + 0.5 * (scores[:, None] == scores[None])
    return complex(positive @ higher @ negative)


def pr_auc_at(thresholds: Sequence[float], boundary: str = ">") -> Area:
    """The mean over true points with the weights of thresholds written out, of section 3 of the design of maths.

    w_t = (prec_{t-1} - prec_{t+1}) / 2 with prec_0 = prec_1, and for the last (prec_{K-1} + prec_K) / 2; a true point
    is worth the sum of w_t over the thresholds that retrieve it.
    """

    def area(scores: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any], share: complex, /) -> complex:
        positive, negative = _classes(labels, weights)
        falling = sorted(set(thresholds), reverse=True)
        retrieved = [scores > mask if boundary == ">" else scores >= mask for mask in falling]
        retrieved = [mask for mask in retrieved if (mask & (weights != 0)).any()]
        hits = [share * positive[mask].sum() for mask in retrieved]
        false = [(1 - share) * negative[mask].sum() for mask in retrieved]
        precision = [one / (one + other) for one, other in zip(hits, false, strict=True)]
        if not precision:
            return 0j
        padded = [precision[0], *precision, -precision[-1]]
        worth = np.zeros(len(scores), dtype=complex)
        for number, mask in enumerate(retrieved, start=1):
            worth += (padded[number - 1] - padded[number + 1]) / 2 * mask
        return complex((positive * worth).sum())

    return area


def value(area: Area, scores: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any]) -> float:
    """The area of a sample."""
    return area(scores, labels, weights, weights[labels].sum() / weights.sum()).real


def shifts(
    area: Area, scores: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any], *, random_sizes: bool
) -> NDArray[np.float64]:
    """Derivative of the area by the logarithm of the weight of every row; the share of positives fixed, or not."""
    rows = []
    for row in range(len(scores)):
        moved = weights.astype(complex)
        moved[row] += 1j * STEP
        basis = moved if random_sizes else weights
        rows.append(area(scores, labels, moved, basis[labels].sum() / basis.sum()).imag / STEP)
    return np.asarray(weights * np.array(rows))


def slope(area: Area, scores: NDArray[Any], labels: NDArray[Any], weights: NDArray[Any]) -> float:
    """Derivative of the area by the logit of the share of positives."""
    share = weights[labels].sum() / weights.sum()
    return area(scores, labels, weights, share + 1j * STEP * share * (1 - share)).imag / STEP


def se_of_rows(
    area: Area,
    scores: NDArray[Any],
    labels: NDArray[Any],
    weights: NDArray[Any] | None = None,
    *,
    random_sizes: bool = False,
) -> float:
    """Standard error where rows are independent: of each class n / (n - 1) times the sum of squared shifts.

    Rows of weight 0 are none of the n.
    """
    weights = np.ones(len(scores)) if weights is None else weights
    moved = shifts(area, scores, labels, weights, random_sizes=False)
    classes = [each & (weights > 0) for each in (labels, ~labels)]
    variance = sum((moved[each] ** 2).sum() * each.sum() / (each.sum() - 1) for each in classes if each.any())
    if random_sizes and not labels.all():
        sizes = ((weights[each] ** 2).sum() / weights[each].sum() ** 2 for each in (labels, ~labels))
        variance += slope(area, scores, labels, weights) ** 2 * sum(sizes)
    return float(np.sqrt(variance))


def se_of_clusters(
    area: Area,
    scores: NDArray[Any],
    labels: NDArray[Any],
    clusters: NDArray[Any],
    weights: NDArray[Any] | None = None,
) -> float:
    """Standard error where clusters are independent: (G - 1) / G times the sum of squared shifts of leaving them out.

    The shift of a cluster in a class is that of its rows over the share of the class that is left without it.
    """
    weights = np.ones(len(scores)) if weights is None else weights
    moved = shifts(area, scores, labels, weights, random_sizes=True)
    left_out = []
    for cluster in np.unique(clusters):
        sums = 0.0
        for in_class in (labels, ~labels):
            rows = in_class & (clusters == cluster)
            sums += moved[rows].sum() / (1 - weights[rows].sum() / weights[in_class].sum())
        left_out.append(sums)
    return float(np.sqrt((len(left_out) - 1) / len(left_out) * np.square(left_out).sum()))


def degrees_of_rows(
    area: Area,
    scores: NDArray[Any],
    labels: NDArray[Any],
    weights: NDArray[Any],
    variance: float,
) -> float:
    """Satterthwaite's degrees of freedom of a variance from each class, by the kurtosis of the influences.

    Kurtosis of rows taken by squared weights, what exceeds 3 three times; at least 3 degrees, or Welch's if these are
    fewer.
    """
    moved = shifts(area, scores, labels, weights, random_sizes=False)
    terms = []
    for in_class in (labels, ~labels):
        w, z, n = weights[in_class], moved[in_class], in_class.sum()
        psi = z / w * w.sum()
        kurtosis = max((w**2 * psi**4).sum() * (w**2).sum() / (w**2 * psi**2).sum() ** 2, 3.0)
        squared_share = (n / (n - 1) * (z**2).sum()) ** 2 / max(w.sum() ** 2 / (w**2).sum() - 1, 1.0)
        terms.append((squared_share * (3 + 3 * (kurtosis - 3) - 1), 2 * squared_share))
    degrees, welch = (2 * variance**2 / sum(each) for each in zip(*terms, strict=True))
    return float(max(degrees, min(3.0, welch), 1.0))


def se_of_two_parents(
    area: Area,
    scores: NDArray[Any],
    labels: NDArray[Any],
    parents: tuple[NDArray[Any], NDArray[Any]],
    weights: NDArray[Any] | None = None,
) -> float:
    """Standard error where rows that share neither parent are independent: a double sum over all pairs of rows.

    Pairs with the same first parent count, and pairs with the same second parent, and those that share both not twice
    (Cameron, Gelbach & Miller 2011, eq. 2.8); at least the smaller of the sums over either parent. A row's shift is
    that of leaving its cluster out, over the share of its class that is left, with (G - 1) / G, as in `se_of_clusters`.
    """
    weights = np.ones(len(scores)) if weights is None else weights
    moved = shifts(area, scores, labels, weights, random_sizes=True)
    return root_of_double_sum(moved, np.where(labels, 1, 0), weights, parents)


def root_of_double_sum(
    moved: NDArray[Any], classes: NDArray[Any], weights: NDArray[Any], parents: tuple[NDArray[Any], NDArray[Any]]
) -> float:
    """The root of the double sum of `se_of_two_parents` over rows of some classes that shift a statistic."""
    sums = []
    for labels in (parents[0], parents[1], parents[0] * 1000 + parents[1]):
        same, same_class = labels[:, None] == labels[None], classes[:, None] == classes[None]
        left = 1 - (same & same_class) @ weights / (same_class @ weights)
        count = len(np.unique(labels))
        sums.append((count - 1) / count * float((moved / left) @ same @ (moved / left)))
    return float(np.sqrt(max(sums[0] + sums[1] - sums[2], min(sums[:2]))))
