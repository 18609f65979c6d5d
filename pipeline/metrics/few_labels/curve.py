"""Precision, recall, F1, other numbers of a curve, and areas from few labels, with limits.

Limits are quantiles of draws (`draws`), which know the strata but nothing of rows that were not seen: a stratum in
which no true row was drawn has none in any draw. So each draw gets rows that may have been missed (Fay & Feuer 1997,
who add the heaviest row to the upper limit, and nothing to the lower): for lower limits of precision and recall a third
of a false row above the cut and a quarter of a true row below it, for upper limits a third of a true row above it, each
as heavy as the heaviest there. Thirds are gamma variables of that shape, the neutral prior of Kerman (2011), so that a
simple random sample gets about the limits of Jeffreys' prior. Where no true row was seen above a cut, or none below, or
no false one, the limit is 0 or 1.

Labels by a judge are corrected for the errors that people found in a part of its answers (Rogan & Gladen 1978):

    true = (judged true - (1 - specificity) rows) / (sensitivity + specificity - 1)

in every draw with a sensitivity and a specificity of their own, from Jeffreys' priors. It is taken for granted that the
judge errs as often at high scores as at low ones.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...base.columns import INDEX_OF, RATIO_OF
from ...base.records import dataclass
from ..curves.trapezoidal_area import Retrieved, partial_roc_auc
from ..uncertainty.proportions import Confusion, index_of
from .draws import Design, Totals

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from ..curves.decisions import Payoffs
    from .draws import Labelled, Population

    Floats: TypeAlias = NDArray[np.float64]
    _Number: TypeAlias = Callable[[Confusion, slice], Floats]  # of outcomes at those wanted cuts

_UNSEEN = 1 / 3  # rows: the neutral prior of Kerman (2011)
_OF_JEFFREYS = 1 / 2
_UNSEEN_BELOW = 1 / 4  # true rows below a cut: with a third limits of recall hold too often where true rows are rare
_DRAWS, _FEWEST_DRAWS = 2_000, 400
_KEPT = 20_000_000  # numbers of all draws
_AT_ONCE = 2_000_000  # numbers in an array
_ROUNDING = 1e-12
_FEWEST_ABOVE = 10  # labelled rows or clusters above a cut, below which their own share counts, too
_LEAST_DIFFERENCE = 0.01  # between the answers of a judge to true rows and to false ones, in a draw
COUNTS = ("tp", "fp", "fn", "tn")
RATIOS = ("precision", "recall", "f1", "fpr")
_FALLING = {"fp", "fn", "tn", "fpr"}  # the more of what is found is true, the less they are


@dataclass(frozen=True)
class Judge:
    """People's findings on a part of a judge's answers, drawn without a look at scores or answers."""

    true_said_true: float  # true rows that the judge called true
    true_said_false: float  # true rows that the judge called false
    false_said_false: float  # false rows that the judge called false
    false_said_true: float  # false rows that the judge called true

    @property
    def rates(self) -> tuple[float, float]:
        """Sensitivity and specificity.

        Raises:
            ValueError: no true row or no false row was checked, or the judge is no better than chance.
        """
        trues, falses = self.true_said_true + self.true_said_false, self.false_said_false + self.false_said_true
        if not trues or not falses:
            message = "the checked rows must hold a true and a false one"
            raise ValueError(message)
        sensitivity, specificity = self.true_said_true / trues, self.false_said_false / falses
        if sensitivity + specificity <= 1 + _LEAST_DIFFERENCE:
            rates = f"{sensitivity:.2f} of true rows true, and {1 - specificity:.2f} of false ones"
            message = f"the judge is no better than chance: it calls {rates}"
            raise ValueError(message)
        return sensitivity, specificity

    def draw(self, draws: int, random: np.random.Generator) -> tuple[Floats, Floats]:
        """Sensitivities and specificities as they may be, each of shape (B, 1)."""
        return (
            random.beta(self.true_said_true + 0.5, self.true_said_false + 0.5, size=(draws, 1)),
            random.beta(self.false_said_false + 0.5, self.false_said_true + 0.5, size=(draws, 1)),
        )


@dataclass(frozen=True)
class _Limited:
    """A number at each cut, or one number, with its limits; nan where no row is retrieved, or no true row was seen."""

    estimate: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class Curve:
    """Estimates for all rows from a sample.

    Attributes:
        at: By name, at each wanted cut: `tp`, `fp`, `fn`, `tn` in rows or their weights, and the ratios.
        areas: `average_precision` and `roc_auc` of all cuts, between which rows count as tied, and `pr_auc` of the
            wanted ones, by trapezoids, as is `partial_roc_auc`, if it is asked for.
        deviations: Standard errors of the areas: the standard deviations of their draws.
        positives: True rows, or their weight.
        largest: Of precision, recall and the false positive rate, shape (B,): the largest standardised error of each
            draw over the wanted cuts, for bands; empty if they are not wanted.
    """

    at: Mapping[str, _Limited]
    areas: Mapping[str, _Limited]
    deviations: Mapping[str, float]
    positives: _Limited
    largest: Mapping[str, Floats]


def estimated_curve(
    population: Population,
    labelled: Labelled,
    *,
    wanted: NDArray[np.int64] | None = None,
    names: Sequence[str] = RATIOS,
    payoffs: Mapping[str, Payoffs] | None = None,
    banded: Sequence[str] = (),
    judge: Judge | None = None,
    max_fpr: float | None = None,
    confidence: float = 0.95,
    draws: int | None = None,
    seed: int = 0,
) -> Curve:
    """Estimate the curve of all rows, with limits that know the design.

    Args:
        population: What is known of all rows.
        labelled: A sample of them, at least one row.
        wanted: Rising indices of the cuts whose numbers are wanted; all if not given.
        names: The ratios and indices that are wanted at them, from those of `tables.ratios`.
        payoffs: By name, what outcomes are worth at the wanted cuts; its mean over rows is wanted, too.
        banded: Those of the names whose largest errors are wanted.
        judge: Whose labels they are, if not people's.
        max_fpr: The false positive rate up to which the area under the ROC curve is wanted, too.
        confidence: Such as 0.95.
        draws: How many, of which limits are quantiles; default: 2,000, and down to 400 where cuts are many.
        seed: Of the draws.

    Raises:
        ValueError: no row is labelled, or the judge is no better than chance.
    """
    if not len(labelled.label):
        message = "no row is labelled"
        raise ValueError(message)
    design = Design.of(population, labelled)
    at = np.arange(len(population.cuts)) if wanted is None else wanted
    rows = _Rows(design.population.retrieved.sum(axis=0), float(design.population.size.sum()), at)
    if draws is None:
        draws = int(np.clip(_KEPT // len(population.cuts), _FEWEST_DRAWS, _DRAWS))
    estimate = rows.true(design.estimate(), None if judge is None else judge.rates)
    drawn = _drawn(design, rows, judge, draws, seed)
    unseen = _Unseen.of(design, draws, np.random.default_rng((seed, 1)))
    tails = (0.5 - confidence / 2, 0.5 + confidence / 2)
    numbers: dict[str, _Number] = {name: partial(_value, name) for name in (*COUNTS, *names)}
    numbers |= {name: partial(_mean, payoff) for name, payoff in (payoffs or {}).items()}
    above = _Above.of(design, rows, np.random.default_rng((seed, 2))) if judge is None else None
    limited, largest = _limited(rows, estimate, drawn, (unseen, above), numbers, banded, tails)
    sides = unseen.throughout(drawn), unseen.at_the_top(drawn, estimate)
    functions: dict[str, Callable[[_Rows, Totals], Floats]] = dict(_AREAS)
    if max_fpr is not None:
        functions["partial_roc_auc"] = partial(_partial_roc_auc, max_fpr)
    areas, deviations = _areas(functions, rows, estimate, drawn, sides, tails)
    if not design.label.any():
        areas = {name: _Limited(area.estimate, np.array(0.0), np.array(1.0)) for name, area in areas.items()}
    positives = _Limited(
        estimate.positives[0],
        np.fmin(np.quantile(drawn.positives, tails[0]), estimate.positives[0]),
        np.fmax(np.quantile(unseen.throughout(drawn).positives, tails[1]), estimate.positives[0]),
    )
    return Curve(_at_edges(design, rows, limited), areas, deviations, positives, largest)


@dataclass(frozen=True)
class _Rows:
    """Rows at or above each cut, shape (K,), how many there are in all, and the cuts whose numbers are wanted."""

    retrieved: Floats
    total: float
    at: NDArray[np.int64]

    def true(self, totals: Totals, rates: tuple[Floats | float, Floats | float] | None) -> Totals:
        """Totals of true rows, from those that a judge called true."""
        if rates is None:
            return totals
        sensitivity, specificity = rates
        difference = np.maximum(sensitivity + np.asarray(specificity) - 1, _LEAST_DIFFERENCE)
        tp = np.clip((totals.tp - (1 - specificity) * self.retrieved) / difference, 0.0, self.retrieved)
        positives = (totals.positives[:, None] - (1 - specificity) * self.total) / difference
        tp = np.maximum.accumulate(tp, axis=1)
        return Totals(tp, np.clip(np.maximum(positives[:, 0], tp[:, -1]), 0.0, self.total))

    def confusion(self, totals: Totals, at: NDArray[np.int64]) -> Confusion:
        """The four outcomes at some cuts, shape (B, T)."""
        tp, retrieved = totals.tp[:, at], self.retrieved[at]
        fn = totals.positives[:, None] - tp
        return Confusion(tp, retrieved - tp, fn, np.maximum(self.total - retrieved - fn, 0.0))


def _limited(
    rows: _Rows,
    estimate: Totals,
    drawn: Totals,
    doubts: tuple[_Unseen, _Above | None],
    numbers: Mapping[str, _Number],
    banded: Sequence[str],
    tails: tuple[float, float],
) -> tuple[dict[str, _Limited], dict[str, Floats]]:
    """The numbers at the wanted cuts with their limits, and the largest errors, a few cuts at a time."""
    unseen, above = doubts
    blocks: dict[str, list[_Limited]] = {name: [] for name in numbers}
    largest = {name: np.zeros(len(drawn.positives)) for name in banded}
    at_once = max(1, _AT_ONCE // len(drawn.positives))
    for start in range(0, max(len(rows.at), 1), at_once):
        block = slice(start, start + at_once)
        at = rows.at[block]
        of_estimate, of_draws = (rows.confusion(totals, at) for totals in (estimate, drawn))
        sides = unseen.low(of_draws, at), unseen.high(of_draws, at)
        swapped = unseen.low(of_draws, at, swapped=True), unseen.high(of_draws, at, swapped=True)
        few = None if above is None else above.in_place_of(of_draws, at)
        for name, number in numbers.items():
            value = number(of_estimate, block)[0]
            low, high = (
                np.quantile([number(side, block) for side in _sides(name, sides, swapped, upper=upper)], tail, axis=1)
                for upper, tail in zip((False, True), tails, strict=True)
            )
            if few is not None:
                of_few = np.quantile(number(few, block), tails, axis=0)
                low, high = np.vstack([low, of_few[:1]]), np.vstack([high, of_few[1:]])
            # undefined numbers have limits without them
            blocks[name].append(_Limited(value, np.fmin(low.min(axis=0), value), np.fmax(high.max(axis=0), value)))
            if name in largest:
                largest[name] = np.maximum(largest[name], _largest_errors(number(of_draws, block)))
    limited = {
        name: _Limited(*(np.concatenate(side) for side in zip(*(vars(each).values() for each in block), strict=True)))
        for name, block in blocks.items()
    }
    return limited, largest


def _sides(
    name: str, sides: tuple[Confusion, Confusion], swapped: tuple[Confusion, Confusion], *, upper: bool
) -> tuple[Confusion, ...]:
    """The outcomes with unseen rows that make a number lower, or higher; both where the number does not tell.

    Means of payoffs are about all rows, which are as many as before, so that one row there is another one less.
    """
    if name not in COUNTS and name not in RATIO_OF and name not in INDEX_OF:
        return swapped
    return (sides[upper != (name in _FALLING)],)


def _largest_errors(values: Floats) -> Floats:
    """Shape (B,): the largest standardised error of each draw over the cuts at which all draws are defined."""
    defined = values[:, np.isfinite(values).all(axis=0)]
    spread = defined.std(axis=0)
    errors = np.abs(defined - defined.mean(axis=0))[:, spread > _ROUNDING] / spread[spread > _ROUNDING]
    return np.asarray(errors.max(axis=1, initial=0.0))


def _mean(payoffs: Payoffs, counts: Confusion, cuts: slice) -> Floats:
    """The mean worth of rows."""
    return payoffs.at(cuts).mean(counts)


def _value(name: str, counts: Confusion, _cuts: slice) -> Floats:
    """A number of the outcomes, nan where nothing is divided by nothing."""
    outcomes = dict(zip(COUNTS, counts.outcomes, strict=True))
    if name in outcomes:
        return outcomes[name]
    if name in INDEX_OF:
        return index_of(INDEX_OF[name], counts)
    over, under = RATIO_OF[name].fraction(outcomes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(over / under)


def _drawn(design: Design, rows: _Rows, judge: Judge | None, draws: int, seed: int) -> Totals:
    """Totals as they may be, given the sample."""
    random = np.random.default_rng(seed)
    at_once = max(1, _AT_ONCE // (len(rows.retrieved) + len(design.label)))
    blocks = []
    for start in range(0, draws, at_once):
        number = min(at_once, draws - start)
        rates = None if judge is None else judge.draw(number, random)
        blocks.append(rows.true(design.draw(number, random), rates))
    return Totals(np.concatenate([block.tp for block in blocks]), np.concatenate([block.positives for block in blocks]))


@dataclass(frozen=True)
class _Unseen:
    """Rows that may have been missed, in each draw: how heavy they are at each cut, and how many.

    Of the stratum whose rows are the heaviest, `share` is that of its rows at or above each cut.
    """

    above: Floats  # shape (K,)
    below: Floats
    share: Floats
    true_above: Floats  # shape (B, 1)
    false_above: Floats
    true_below: Floats

    @classmethod
    def of(cls, design: Design, draws: int, random: np.random.Generator) -> _Unseen:
        """Draw how many were missed."""
        stratum = int(design.stratum[np.argmax(design.weight)])
        share = design.population.retrieved[stratum] / design.population.size[stratum]
        missed = (random.gamma(shape, size=(draws, 1)) for shape in (_UNSEEN, _UNSEEN, _UNSEEN_BELOW))
        return cls(*design.heaviest(), np.asarray(share), *missed)

    def low(self, counts: Confusion, at: NDArray[np.int64], *, swapped: bool = False) -> Confusion:
        """Outcomes at some cuts with the rows that make precision and recall lower, shape (B, T).

        If they are swapped, the rows are in the place of others, not beside them.
        """
        false, true = self.false_above * self.above[at], self.true_below * self.below[at]
        if not swapped:
            return Confusion(counts.tp, counts.fp + false, counts.fn + true, counts.tn)
        false, true = np.minimum(false, counts.tp), np.minimum(true, counts.tn)
        return Confusion(counts.tp - false, counts.fp + false, counts.fn + true, counts.tn - true)

    def high(self, counts: Confusion, at: NDArray[np.int64], *, swapped: bool = False) -> Confusion:
        """Outcomes at some cuts with the rows that make them higher, likewise."""
        true = self.true_above * self.above[at]
        true = np.minimum(true, counts.fp) if swapped else true
        return Confusion(counts.tp + true, counts.fp - true if swapped else counts.fp, counts.fn, counts.tn)

    def at_the_top(self, drawn: Totals, estimate: Totals) -> Totals:
        """Totals with true rows missed above the cut that finds a quarter of them, which make areas higher."""
        cut = int(np.searchsorted(estimate.tp[0], estimate.positives[0] / 4))
        missed = self.true_above / 2 * np.minimum(self.above, self.above[min(cut, len(self.above) - 1)])
        return Totals(drawn.tp + missed, drawn.positives + missed[:, -1])

    def throughout(self, drawn: Totals) -> Totals:
        """Totals with true rows that were missed in the stratum of the heaviest rows, which make areas lower."""
        heaviest = self.true_above * max(self.above[-1], self.below[-1])
        return Totals(drawn.tp + heaviest * self.share, drawn.positives + heaviest[:, 0])


@dataclass(frozen=True)
class _Above:
    """The labelled rows above each cut alone, for cuts above which they are few.

    What is estimated takes the share of a stratum for its rows without a label. Where a cut parts a stratum of which
    hardly a row above the cut was drawn, that share says little of them, and draws know no other: limits then reach as
    far as those of the share among the drawn rows above the cut, with Jeffreys' prior. Arrays have the shape (K,).
    """

    share: Floats  # of true ones, by weight
    size: Floats  # how many of equal weight, or clusters, they count as (Kish 1965)
    doubt: Floats  # share of all rows above the cut that have no label
    retrieved: Floats  # all rows there
    is_few: NDArray[np.bool_]
    random: np.random.Generator

    @classmethod
    def of(cls, design: Design, rows: _Rows, random: np.random.Generator) -> _Above | None:
        """The rows of a sample; None if a proxy tells of the others, or if they are few above no cut that is wanted."""
        upto = np.searchsorted(design.first, np.arange(len(rows.retrieved)), side="right")

        def above(values: Floats) -> Floats:
            return np.concatenate([[0.0], np.cumsum(values)])[upto]

        is_new = np.zeros(len(design.label))
        is_new[np.unique(design.cluster, return_index=True)[1]] = 1
        weight, number = above(design.weight), above(is_new)
        labelled = above(design.weight * design.fraction[design.stratum])
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(weight > 0, above(design.weight * design.label) / weight, 0.5)
            size = np.where(weight > 0, np.minimum(weight**2 / above(design.weight**2), number), 0.0)
            doubt = np.clip(1 - labelled / rows.retrieved, 0.0, 1.0)
        is_few = (number < _FEWEST_ABOVE) & (rows.retrieved > 0) & (doubt > _ROUNDING)
        if design.proxy.any() or not is_few[rows.at].any():
            return None
        return cls(share, size, doubt, rows.retrieved, is_few, random)

    def in_place_of(self, counts: Confusion, at: NDArray[np.int64]) -> Confusion | None:
        """Outcomes at some cuts, shape (B, T), as these rows say where they are few; None if they are so nowhere."""
        few = self.is_few[at]
        if not few.any():
            return None
        share, size, retrieved = (values[at][few] for values in (self.share, self.size, self.retrieved))
        shape = (len(counts.tp), len(share))
        drawn = self.random.beta(size * share + _OF_JEFFREYS, size * (1 - share) + _OF_JEFFREYS, size=shape)
        tp = counts.tp.copy()
        tp[:, few] = retrieved * (share + (drawn - share) * np.sqrt(self.doubt[at][few]))
        return Confusion(tp, counts.tp + counts.fp - tp, counts.fn, counts.tn)


def _areas(
    functions: Mapping[str, Callable[[_Rows, Totals], Floats]],
    rows: _Rows,
    estimate: Totals,
    drawn: Totals,
    with_unseen: tuple[Totals, Totals],
    tails: tuple[float, float],
) -> tuple[dict[str, _Limited], dict[str, float]]:
    """The areas with their limits and their standard errors.

    An area is a sum of products of what was estimated from the same rows, so that the estimate lies above the truth, on
    average, about as far as draws above the estimate: the limit on that side is moved by as much.
    """
    areas, deviations = {}, {}
    for name, area in functions.items():
        value, of_draws = area(rows, estimate)[0], area(rows, drawn)
        lower, upper = (area(rows, totals) for totals in with_unseen)
        is_defined = ~np.isnan(of_draws) & ~np.isnan(lower)
        low, high = np.nan, np.nan
        deviations[name] = np.nan
        if is_defined.any():
            moved = float(of_draws[is_defined].mean() - value)
            low = np.quantile(lower[is_defined], tails[0]) - max(moved, 0.0)
            high = np.quantile(upper[is_defined], tails[1]) - min(moved, 0.0)
            deviations[name] = float(np.std(of_draws[is_defined]))
        areas[name] = _Limited(value, np.clip(np.fmin(low, value), 0.0, None), np.clip(np.fmax(high, value), None, 1.0))
    return areas, deviations


def _average_precision(rows: _Rows, totals: Totals) -> Floats:
    """Shape (B,): Σ Δtp / P × tp / retrieved over the cuts; true rows below all cuts have a precision of 0."""
    steps = np.diff(totals.tp, axis=1, prepend=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(rows.retrieved > 0, np.minimum(totals.tp / rows.retrieved, 1.0), 0.0)
        return np.asarray((steps * precision).sum(axis=1) / totals.positives)


def _pr_auc(rows: _Rows, totals: Totals) -> Floats:
    """Shape (B,): a true row is worth the mean of the precisions of its cut and of the one above it."""
    tp, retrieved = totals.tp[:, rows.at], rows.retrieved[rows.at]
    tp, retrieved = tp[:, retrieved > 0], retrieved[retrieved > 0]
    steps = np.diff(tp, axis=1, prepend=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.minimum(tp / retrieved, 1.0)
        before = np.concatenate([precision[:, :1], precision[:, :-1]], axis=1)
        return np.asarray((steps * (before + precision)).sum(axis=1) / (2 * totals.positives))


def _roc_auc(rows: _Rows, totals: Totals) -> Floats:
    """Shape (B,): trapezoids of recall over the false positive rate; rows below all cuts count as tied."""
    negatives = rows.total - totals.positives
    zero = np.zeros((len(totals.tp), 1))
    tp = np.concatenate([zero, totals.tp, totals.positives[:, None]], axis=1)
    false = np.maximum.accumulate(np.maximum(rows.retrieved - totals.tp, 0.0), axis=1)
    fp = np.concatenate([zero, np.minimum(false, negatives[:, None]), negatives[:, None]], axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        doubled = (np.diff(fp, axis=1) * (tp[:, 1:] + tp[:, :-1])).sum(axis=1)
        return np.asarray(doubled / (2 * totals.positives * negatives))


def _partial_roc_auc(max_fpr: float, rows: _Rows, totals: Totals) -> Floats:
    """Shape (B,): trapezoids up to a false positive rate between the wanted cuts, standardised."""
    tp = totals.tp[:, rows.at]
    fp = np.maximum.accumulate(np.maximum(rows.retrieved[rows.at] - tp, 0.0), axis=1)
    negatives = rows.total - totals.positives
    counts = Retrieved(tp, np.minimum(fp, negatives[:, None]), totals.positives, negatives)
    return partial_roc_auc(counts, max_fpr)


_AREAS = {"average_precision": _average_precision, "pr_auc": _pr_auc, "roc_auc": _roc_auc}


def _at_edges(design: Design, rows: _Rows, limited: Mapping[str, _Limited]) -> dict[str, _Limited]:
    """The limits, at 0 or 1 where the sample excludes nothing; none where no row is retrieved."""
    hits, misses = (numbers[rows.at] for numbers in design.seen(1.0))
    false_above, _ = (numbers[rows.at] for numbers in design.seen(0.0))
    is_census = bool((design.fraction == 1).all())
    lowest = dict.fromkeys(("tp", "precision", "recall", "f1"), hits == 0)
    lowest |= dict.fromkeys(("fp", "fpr"), false_above == 0) | {"fn": misses == 0}
    highest = {"precision": false_above == 0, "recall": misses == 0, "f1": (false_above == 0) & (misses == 0)}
    highest |= {"specificity": false_above == 0, "npv": misses == 0}
    none = {"precision": rows.retrieved[rows.at] == 0}
    edged = {}
    for name, numbers in limited.items():
        lower, upper = numbers.lower, numbers.upper
        if not is_census:
            lower = np.where(lowest.get(name, False), 0.0, lower)
            upper = np.where(highest.get(name, False), 1.0, upper)
        nothing = none.get(name, False)
        edged[name] = _Limited(numbers.estimate, np.where(nothing, np.nan, lower), np.where(nothing, np.nan, upper))
    return edged
