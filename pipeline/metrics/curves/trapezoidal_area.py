"""The area under a precision-recall curve by trapezoids, and certified bounds of areas from cells of scores."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np

from ...base.records import dataclass
from .influence import (
    ClassMoments,
    degrees_of_rows,
    shifts_of_clusters,
    variance_of_rows,
)
from .ordered_areas import ROW_AREAS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import ArrayLike, NDArray

    from .influence import Shifts
    from .ordered_areas import Rows


Floats: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True)
class PrAuc:
    """An area and its standard errors.

    Attributes:
        auc: The area; nan without positives.
        se_true_points: Standard error of the mean over true points, treating the precisions as constants, as in the
            published definition. Intervals of ± 1.96 of it cover the true area in only 40 to 80 % of samples.
        se: Linearised standard error that accounts for all randomness; nan with fewer than two positives, or with only
            one negative.
    """

    auc: float
    se_true_points: float
    se: float


def pr_auc(
    scores: ArrayLike, labels: ArrayLike, thresholds: ArrayLike | None = None, boundary: Literal[">=", ">"] = ">"
) -> PrAuc:
    """Area under the precision-recall curve as the mean over true points (Alchemy, University of Washington 2008).

    The thresholds descend: th_1 > … > th_K. A true point first retrieved by th_s is worth (prec_{s-1} + prec_s) / 2,
    with prec_0 = prec_1, one that no threshold retrieves is worth 0, and the area is the mean worth. It equals the
    trapezoid area over recall, extended horizontally from the first point to recall 0.

    Args:
        scores: Shape (n,), finite; higher means more likely to be true.
        labels: Shape (n,), boolean or 0 and 1.
        thresholds: Finite, in any order; repeated ones count once, and those that retrieve nothing are dropped. None:
            enough thresholds to separate all distinct scores and to retrieve every row.
        boundary: Whether a score equal to a threshold is retrieved (`>=`) or not (`>`).

    Raises:
        ValueError: the shapes differ, a score or threshold is not finite, or a label is neither 0 nor 1.
    """
    values, truth = _checked(scores, labels)
    if boundary not in {">=", ">"}:
        message = f"boundary is {boundary!r}, not '>=' or '>'"
        raise ValueError(message)
    side: Literal["left", "right"] = "left" if boundary == ">=" else "right"
    if thresholds is None:
        levels, side = np.unique(values), "left"
    else:
        levels = np.unique(np.asarray(thresholds, dtype=np.float64))
        if not np.isfinite(levels).all():
            message = "a threshold is not finite"
            raise ValueError(message)
    # rows of each class that the descending thresholds retrieve
    descending = levels[::-1]
    classes = np.sort(values[truth]), np.sort(values[~truth])
    above = (len(ordered) - np.searchsorted(ordered, descending, side=side)[None] for ordered in classes)
    sizes = (np.array([len(ordered)]) for ordered in classes)
    areas = true_point_areas(Retrieved(*above, *sizes))
    return PrAuc(float(areas.auc[0]), float(areas.se_true_points[0]), float(areas.se[0]))


def _checked(scores: ArrayLike, labels: ArrayLike) -> tuple[Floats, NDArray[np.bool_]]:
    values, truth = np.asarray(scores, dtype=np.float64), np.asarray(labels)
    if values.ndim != 1 or truth.shape != values.shape:
        message = f"scores and labels must be one-dimensional and of one length, not {values.shape} and {truth.shape}"
        raise ValueError(message)
    if not np.isfinite(values).all():
        message = f"{(~np.isfinite(values)).sum():,} scores are NaN or infinite"
        raise ValueError(message)
    if not np.isin(truth, (0, 1)).all():
        message = "labels must be boolean, or 0 and 1"
        raise ValueError(message)
    return values, truth.astype(bool)


@dataclass(frozen=True)
class Retrieved:
    """Positives and negatives retrieved by descending thresholds, of several groups or replicates of one group.

    Attributes:
        tp: Shape (groups, K): weight of the true points that each threshold retrieves; non-decreasing along K.
        fp: Shape (groups, K): weight of the false points.
        positives: Shape (groups,): weight of all true points.
        negatives: Shape (groups,): weight of all false points.
    """

    tp: NDArray[Any]
    fp: NDArray[Any]
    positives: NDArray[Any]
    negatives: NDArray[Any]

    @property
    def total(self) -> Retrieved:
        """The sum over all groups, as one group."""
        return Retrieved(*(values.sum(axis=0)[None] for values in vars(self).values()))


@dataclass(frozen=True)
class TruePointAreas:
    """Areas of several groups, as arrays of shape (groups,); see `PrAuc`. `degrees`: degrees of freedom of `se`."""

    auc: Floats
    se_true_points: Floats
    se: Floats
    degrees: Floats


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def true_point_areas(
    weights: Retrieved, squares: Retrieved | None = None, rows: Retrieved | None = None, *, random_sizes: bool = False
) -> TruePointAreas:
    """`pr_auc` of several groups, from their counts.

    Args:
        weights: Counts, or sums of weights.
        squares: Sums of squared weights; None if every weight is 1.
        rows: Numbers of rows; None if every weight is 1.
        random_sizes: As for `influence.variance_of_rows`.
    """
    squares, rows = squares or weights, rows or weights
    curve = _Curve.of(weights)
    se, degrees = _errors(curve, weights, squares, rows, random_sizes=random_sizes)
    worth = _moments(weights.tp, squares.tp, (rows.positives, weights.positives, squares.positives), curve.worth)
    return TruePointAreas(curve.auc, np.sqrt(worth.variance), se, degrees)


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def partial_roc_areas(
    weights: Retrieved, squares: Retrieved | None = None, rows: Retrieved | None = None, *, max_fpr: float
) -> tuple[Floats, Floats, Floats]:
    """Area under the ROC curve up to a false positive rate above 0, of several groups; arguments of `true_point_areas`.

    Trapezoids between the thresholds, and on a line to (1, 1) from the last one. The area A is standardised as McClish
    (1989) does, and `roc_auc_score(…, max_fpr=)` of scikit-learn: (1 + (A - m) / (M - m)) / 2 with m = max_fpr² / 2
    and M = max_fpr is 1/2 by chance and 1 at best.

    Returns:
        The areas, nan without positives or negatives; their standard errors; degrees of freedom of these.
    """
    curve = _partial_roc(weights, max_fpr)
    squares, rows = squares or weights, rows or weights
    return (curve.auc, *_errors(curve, weights, squares, rows, random_sizes=False))


def _errors(
    curve: _Curve, weights: Retrieved, squares: Retrieved, rows: Retrieved, *, random_sizes: bool
) -> tuple[Floats, Floats]:
    """Standard errors of areas where rows are independent, and degrees of freedom."""
    moments = (
        _moments(weights.tp, squares.tp, (rows.positives, weights.positives, squares.positives), curve.psi_positive),
        _moments(weights.fp, squares.fp, (rows.negatives, weights.negatives, squares.negatives), curve.psi_negative),
    )
    variance = variance_of_rows(*moments, curve.slope, random_sizes=random_sizes)
    return np.sqrt(variance), degrees_of_rows(*moments, variance)


def replicate_shifts(
    replicates: Retrieved, *crossed: Retrieved, max_fpr: float | None = None, in_time: bool = False
) -> list[Shifts]:
    """How far each replicate, a group of clusters, moves an area of one group; arrays of shape (G,) by clustering.

    Args:
        replicates: By replicate of the clusters; the curve is that of their sum.
        crossed: The same by the second parent of rows that have two, and by the intersections of both.
        max_fpr: The area is that of `partial_roc_areas`; None: `pr_auc`.
        in_time: Whether replicates follow each other in time.
    """
    total = replicates.total
    curve = _Curve.of(total) if max_fpr is None else _partial_roc(total, max_fpr)
    of_clusterings = []
    for clustering in (replicates, *crossed):
        positive, negative = (
            (np.diff(weight, prepend=0, axis=1) * psi).sum(axis=1)
            for weight, psi in ((clustering.tp, curve.psi_positive), (clustering.fp, curve.psi_negative))
        )
        sizes = np.asarray(clustering.positives, np.float64), np.asarray(clustering.negatives, np.float64)
        of_clusterings.append(shifts_of_clusters(sizes, (positive, negative), float(curve.slope[0]), in_time=in_time))
    return of_clusterings


def partial_roc_auc(counts: Retrieved, max_fpr: float) -> Floats:
    """The areas of `partial_roc_areas` alone."""
    return _partial_roc(counts, max_fpr).auc


@dataclass(frozen=True)
class _Curve:
    """The area under a curve and its derivatives; arrays of shape (groups,) or (groups, K)."""

    auc: Floats
    worth: Floats  # of a true point, by the first threshold that retrieves it
    psi_positive: Floats  # influence of a true point, likewise
    psi_negative: Floats  # of a false point
    slope: Floats  # derivative of the area with respect to the logit of the share of positives

    @classmethod
    def of(cls, counts: Retrieved) -> _Curve:
        """The curve of counts; thresholds that retrieve nothing contribute no area."""
        hits, total = np.asarray(counts.tp, dtype=np.float64), np.asarray(counts.positives, dtype=np.float64)
        false = np.asarray(counts.fp, dtype=np.float64)
        retrieved = hits + false
        is_retrieving = retrieved > 0
        with np.errstate(divide="ignore", invalid="ignore"):
            precision, recall = np.where(is_retrieving, hits / retrieved, 0.0), hits / total[:, None]
            # worth of a true point, and the area as the mean worth
            before = np.concatenate([np.zeros((len(hits), 1)), precision[:, :-1]], axis=1)[:, : hits.shape[1]]
            worth = np.where(_first(is_retrieving), precision, (before + precision) / 2)
            auc = np.where(total > 0, (np.diff(hits, prepend=0.0, axis=1) * worth).sum(axis=1) / total, np.nan)
            # derivatives: of the area by precision, and of precision by tp and by fp
            slopes = _by_precision(recall, _first(is_retrieving))
            of_positive = np.where(is_retrieving, slopes * false / retrieved**2, 0.0)
            of_negative = np.where(is_retrieving, -slopes * hits / retrieved**2, 0.0)
        # a point counts at every threshold below its score
        sizes = total[:, None], np.asarray(counts.negatives, dtype=np.float64)[:, None]
        psi_positive, psi_negative = _from_below(of_positive) * sizes[0], _from_below(of_negative) * sizes[1]
        slope = np.where(is_retrieving, slopes * precision * (1 - precision), 0.0).sum(axis=1)
        return cls(auc, worth, worth + psi_positive, psi_negative, slope)


@np.errstate(divide="ignore", invalid="ignore")
def _partial_roc(counts: Retrieved, max_fpr: float) -> _Curve:
    """The partial area of `partial_roc_areas` and its derivatives; what a true point is worth is its influence.

    With recall v over the false positive rate u, a true point adds 1 / positives to v where u is beyond it, and a false
    one moves the rest of the curve to the right, out of the area: its influence is recall there less recall at max_fpr.
    Ties are spread evenly over their step.
    """
    hits, false = (np.asarray(number, dtype=np.float64) for number in (counts.tp, counts.fp))
    positives, negatives = (np.asarray(number, dtype=np.float64) for number in (counts.positives, counts.negatives))
    zero, one = np.zeros((len(hits), 1)), np.ones((len(hits), 1))
    v = np.concatenate([zero, hits / positives[:, None], one], axis=1)
    u = np.concatenate([zero, false / negatives[:, None], one], axis=1)
    # steps of the curve, and the share of each that lies within the area; those straight up lie on one side
    width, rise = np.diff(u, axis=1), np.diff(v, axis=1)
    inside = np.clip(max_fpr - u[:, :-1], 0.0, width)
    share = np.where(width > 0, inside / width, u[:, 1:] <= max_fpr)
    end = (rise * share).sum(axis=1, keepdims=True)  # recall at max_fpr
    psi_positive = np.maximum(max_fpr - u[:, 1:], 0.0) + np.where(width > 0, inside**2 / (2 * width), 0.0)
    psi_negative = share * (v[:, :-1] + rise * share / 2 - end)
    area = (rise * psi_positive).sum(axis=1)
    # standardised; points that no threshold retrieves have no influence, as elsewhere, and the others theirs beside it
    least = max_fpr**2 / 2
    unit = 0.5 / (max_fpr - least)
    psi_positive, psi_negative = ((psi[:, :-1] - psi[:, -1:]) * unit for psi in (psi_positive, psi_negative))
    area = np.where((positives > 0) & (negatives > 0), 0.5 + (area - least) * unit, np.nan)
    return _Curve(area, psi_positive, psi_positive, psi_negative, np.zeros_like(area))


def _first(is_retrieving: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Whether a threshold is the first that retrieves anything."""
    return np.asarray(is_retrieving & (np.cumsum(is_retrieving, axis=1) == 1))


def _by_precision(recall: Floats, first: NDArray[np.bool_]) -> Floats:
    """Derivative of the area with respect to the precision at each threshold: half the recall between its neighbours.

    The precision of the first threshold extends to recall 0; there it is half the sum of its recall and the next one.
    """
    edges = np.concatenate([np.zeros((len(recall), 1)), recall, recall[:, -1:]], axis=1)
    inner = (edges[:, 2:] - edges[:, :-2]) / 2
    return np.asarray(np.where(first, inner + recall / 2, inner))


def _from_below(values: Floats) -> Floats:
    """Sums over a threshold and all lower ones, because every threshold below its score retrieves a point."""
    return np.asarray(np.cumsum(values[:, ::-1], axis=1)[:, ::-1])


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _moments(
    retrieved: NDArray[Any], squares: NDArray[Any], sizes: tuple[NDArray[Any], NDArray[Any], NDArray[Any]], psi: Floats
) -> ClassMoments:
    """Moments of a class whose members differ only in the first threshold that retrieves them.

    The influence of members that no threshold retrieves is 0.
    """
    rows, weight, square = (np.asarray(size, dtype=np.float64) for size in sizes)
    gained, gained_squares = _gained(retrieved, weight), _gained(squares, square)
    every = np.concatenate([psi, np.zeros((len(psi), 1))], axis=1)
    centred = every - ((gained * every).sum(axis=1) / weight)[:, None]  # the spread then does not cancel
    first = gained_squares * centred
    second = first * centred
    powers = (first, second, second * centred, second * np.square(centred))
    return ClassMoments(rows, weight, square, (gained * centred).sum(axis=1), *(power.sum(axis=1) for power in powers))


def _gained(retrieved: NDArray[Any], total: Floats) -> Floats:
    """Weight first retrieved by each threshold and, in the last column, the weight that none retrieves."""
    return np.diff(np.asarray(retrieved, dtype=np.float64), prepend=0.0, append=total[:, None], axis=1)


_ROUNDING = 4e-16


@dataclass(frozen=True)
class Bounds:
    """Lowest and highest area over all possible orders inside the cells, and what each cell leaves open of it."""

    lowest: float
    highest: float
    open: Floats


def average_precision_bounds(positive: Floats, negative: Floats, single: NDArray[np.bool_], first: Floats) -> Bounds:
    """Bounds of the average precision of one group.

    Take a cell with p positives and q negatives, with T positives and F negatives above it. It contributes at most
    p (T + p) / (T + p + F), if its positives tie above its negatives, and at least the sum over i = 1..p of
    (T + i) / (T + i + F + q), if its positives come one by one below its negatives. The sum is replaced by that of its
    chord, which is smaller because the terms are concave in i. A cell with a single score contributes exactly
    p (T + p) / (T + p + F + q).

    Args:
        positive: Shape (cells,), cells in ascending order of score: weight of the positives.
        negative: Weight of the negatives.
        single: Whether all scores of the cell are known to be equal.
        first: Smallest weight that a positive of the cell can have: 1 without weights, otherwise 0.
    """
    total = positive.sum()
    hits, false = _above(positive), _above(negative)

    def precision(p: Floats, q: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(hits + p > 0, (hits + p) / (hits + p + false + q), 0.0)

    least = positive * (precision(np.minimum(first, positive), negative) + precision(positive, negative)) / 2
    tied, most = positive * precision(positive, negative), positive * precision(positive, np.zeros_like(negative))
    return _bounds(np.where(single, tied, least) / total, np.where(single, tied, most) / total)


def roc_auc_bounds(positive: Floats, negative: Floats, single: NDArray[np.bool_]) -> Bounds:
    """Bounds of the area under the ROC curve of one group; for the arguments see `average_precision_bounds`.

    The area is the share of positive-negative pairs in the right order. A cell contributes p times the negatives below
    it, and none to all of the p q pairs inside it; half of them if they tie.
    """
    below = np.cumsum(negative) - negative
    pairs = positive.sum() * negative.sum()
    least, inside = positive * below, positive * negative
    most = least + np.where(single, inside / 2, inside)
    return _bounds((least + np.where(single, inside / 2, 0.0)) / pairs, most / pairs)


def _above(values: Floats) -> Floats:
    return np.cumsum(values[::-1])[::-1] - values


def _bounds(least: Floats, most: Floats) -> Bounds:
    """Sums of the contributions, widened by the largest possible rounding error."""
    slack = _ROUNDING * (1 + np.sqrt(len(least)))
    lowest, highest = max(float(least.sum()) - slack, 0.0), min(float(most.sum()) + slack, 1.0)
    return Bounds(lowest, highest, most - least)


PIECES = 24
_QUARTERS = np.array([0.0, 0.25, 0.5, 0.75])
_BINADE = 1 << 52  # doubles between one power of two and the next


@dataclass(frozen=True)
class CellGrid:
    """Intervals of scores, each divided into cells of equal width."""

    edges: tuple[float, ...]  # ascending; interval i lies between edge i and edge i + 1
    sizes: tuple[int, ...]  # number of cells in each interval, one fewer than the edges

    @property
    def cells(self) -> int:
        """Total number of cells, including one below and one above each interval."""
        return sum(self.sizes) + 2 * len(self.sizes)


@dataclass(frozen=True)
class OpenCells:
    """Lowest score of each cell, ascending, the highest of all, and how much each leaves open of the areas."""

    lowest: Floats
    highest: float
    left: Floats


def finer(cells: OpenCells, count: int) -> CellGrid:
    """A grid of about `count` cells that is fine where the previous cells leave much open.

    Dividing a cell into m cells leaves about 1/m of it open. The sum is smallest if the new cells are distributed in
    proportion to the square root of what each previous cell leaves open. Where the rows lie inside a cell is unknown:
    its share is spread evenly over the floating-point numbers in it, which are dense near 0, as scores often are.
    """
    # cumulative share of the new cells, over the ordinals of the scores among all doubles
    share = np.sqrt(np.maximum(cells.left, 0.0))
    share = share if share.any() else np.ones_like(share)
    mass = np.concatenate([np.zeros(1), np.cumsum(share)]) / share.sum()
    ordinals = _ordinal(np.append(cells.lowest, _next_double(cells.highest)))
    reached = np.searchsorted(mass, np.linspace(0, 1, PIECES + 1)[1:-1])
    cuts = np.unique(np.concatenate([[0, len(ordinals) - 1], reached - 1, reached]))
    # about PIECES intervals with equal shares; those wider than a binade are divided in four
    coarse = np.unique(ordinals[np.clip(cuts, 0, len(ordinals) - 1)])
    between = coarse[:-1, None] + np.multiply.outer(np.diff(coarse), _QUARTERS)
    wide = np.diff(coarse) > _BINADE
    ends = np.unique(np.concatenate([coarse, between[wide].ravel()]))
    shares = np.diff(np.interp(ends, *_rising(ordinals, mass)))
    # back to scores, with a number of cells for every interval
    edges = np.unique(_number(ends))
    if len(edges) < 2:  # noqa: PLR2004 - all scores lie nearer to each other than ordinals tell
        return CellGrid((float(cells.lowest[0]), float(_next_double(np.asarray(cells.highest)))), (count,))
    if len(edges) < len(ends):  # ordinals are doubles here, and neighbours may be rounded to one number
        shares = np.diff(np.interp(_ordinal(edges), *_rising(ordinals, mass)))
    return CellGrid(tuple(edges.tolist()), tuple(np.maximum(shares * count, 1).astype(np.int64).tolist()))


def _rising(ordinals: Floats, mass: Floats) -> tuple[Floats, Floats]:
    """Each ordinal once, with the mass below it."""
    unique, first = np.unique(ordinals, return_index=True)
    return unique, np.append(mass[first[:-1]], mass[-1])


def _next_double(number: Floats | float) -> Floats:
    """The next double; beyond the largest, infinity, without the warning that numpy gives."""
    with np.errstate(over="ignore"):
        return np.asarray(np.nextafter(number, np.inf))


def _ordinal(numbers: Floats) -> Floats:
    """Ordinal of a double among all doubles, 0 for 0; returned as a double."""
    bits = np.asarray(numbers, dtype=np.float64).view(np.int64)
    return np.where(bits >= 0, bits, -(bits & 0x7FFFFFFFFFFFFFFF)).astype(np.float64)


def _number(ordinals: Floats) -> Floats:
    """The double with this ordinal, the inverse of `_ordinal` except for the rounding of large ordinals."""
    size = np.abs(ordinals).astype(np.int64)
    values = size.view(np.float64)
    return np.where(ordinals >= 0, values, -values)


def rounded_outwards(low: float, high: float) -> tuple[float, float]:
    """Round the ends of an interval outwards, so that somewhat other ends are rounded to the same.

    They become multiples of a power of two of which 8 to 16 fit between the ends; they stay where they are equal, or
    too near or too far apart for such a number.
    """
    width = high - low
    unit = 2.0 ** (math.floor(math.log2(width)) - 3) if 0 < width < math.inf else 0.0
    if not unit:
        return low, high
    # an end that is tiny beside the unit is 0 once divided: it must not be left outside
    wider = min(low, math.floor(low / unit) * unit), max(high, math.ceil(high / unit) * unit)
    return wider if all(map(math.isfinite, wider)) else (low, high)


@dataclass(frozen=True)
class Extremes:
    """Lowest and highest score of each cell, shape (cells,)."""

    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]


@dataclass(frozen=True)
class AreaCells:
    """Cells in ascending order of group and score.

    Attributes:
        rows: Counts, one row for each cell.
        extremes: Lowest and highest score of each cell; None if unknown, in which case no cell is taken to hold a
            single score.
    """

    rows: Rows
    extremes: Extremes | None

    def bounds(self, groups: int, *, weighted: bool) -> dict[str, list[Bounds]]:
        """Bounds for every group, by name of the area; those of a group without cells are undefined."""
        rows = self.rows
        by_area: dict[str, list[Bounds]] = {area: [] for area in ROW_AREAS}
        single = np.zeros(len(rows), dtype=np.bool_)
        if self.extremes is not None:
            single = self.extremes.lowest == self.extremes.highest
        for cells in _cells_of_groups(rows.group, groups):
            positive, negative = rows.positive[cells], rows.negative[cells]
            first = np.full(len(positive), 0.0 if weighted else 1.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                by_area["average_precision"].append(average_precision_bounds(positive, negative, single[cells], first))
                by_area["roc_auc"].append(roc_auc_bounds(positive, negative, single[cells]))
        return by_area

    def open(self, bounds: dict[str, list[Bounds]], extremes: Extremes) -> OpenCells:
        """How much the cells leave open of the areas with these bounds, in ascending order of score over all groups."""
        groups = len(bounds[ROW_AREAS[0]])
        left = np.zeros(len(self.rows))
        for number, cells in enumerate(_cells_of_groups(self.rows.group, groups)):
            left[cells] = sum(np.nan_to_num(bounds[area][number].open) for area in ROW_AREAS)
        order = np.argsort(extremes.lowest, kind="stable")
        order = order[np.isfinite(extremes.lowest[order])]  # a tie at minus infinity is one cell, and stays one
        return OpenCells(extremes.lowest[order], float(extremes.highest.max()), left[order])


def _cells_of_groups(group: NDArray[np.int64], groups: int) -> Iterator[slice]:
    """The cells of each group, in the order of the group numbers; the cells of one group are contiguous."""
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(group), 1), dtype=bool), group[1:] != group[:-1]]))
    ends = np.append(starts[1:], len(group))[: len(starts)]
    slices = {int(group[start]): slice(int(start), int(end)) for start, end in zip(starts, ends, strict=True)}
    for number in range(groups):
        yield slices.get(number, slice(0, 0))
