"""Precision, recall, F1, the false positive rate and average precision from few labels, with limits.

Limits are quantiles of draws (`draws`), which know the strata but nothing of rows that were not seen: a stratum in
which no true row was drawn has none in any draw. So each draw gets rows that may have been missed (Fay & Feuer 1997,
who add the heaviest row to the upper limit, and nothing to the lower): for lower limits of precision and recall a third
of a false row above the cut and a third of a true row below it, for upper limits a third of a true row above it, each
as heavy as the heaviest there. Thirds are gamma variables of that shape, the neutral prior of Kerman (2011), so that a
simple random sample gets about the limits of Jeffreys' prior. Where no true row was seen above a cut, or none below, or
no false one, the limit is 0 or 1.

Labels by a judge are corrected for the errors that people found in a part of its answers (Rogan & Gladen 1978):

    true = (judged true - (1 - specificity) rows) / (sensitivity + specificity - 1)

in every draw with a sensitivity and a specificity of their own, from Jeffreys' priors. It is taken for granted that the
judge errs as often at high scores as at low ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from .draws import Design, Totals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from .rows import Labelled, Population

    Floats: TypeAlias = NDArray[np.float64]

_UNSEEN = 1 / 3  # rows: the neutral prior of Kerman (2011)
_DRAWS = 2_000
_AT_ONCE = 2_000_000  # numbers in an array
_LEAST_DIFFERENCE = 0.01  # between the answers of a judge to true rows and to false ones, in a draw
RATIOS = ("precision", "recall", "f1", "fpr")


@dataclass(frozen=True)
class Judge:
    """What people found in a part of the answers of a judge, which was drawn without looking at scores or answers.

    Attributes:
        true_said_true: True rows that the judge called true.
        true_said_false: True rows that the judge called false.
        false_said_false: False rows that the judge called false.
        false_said_true: False rows that the judge called true.
    """

    true_said_true: float
    true_said_false: float
    false_said_false: float
    false_said_true: float

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
class Limited:
    """A number at each cut, or one number, with its limits.

    Attributes:
        estimate: nan where it is not defined: no row is retrieved, or no true row was seen.
        lower: Lower limit.
        upper: Upper limit.
    """

    estimate: Floats
    lower: Floats
    upper: Floats


@dataclass(frozen=True)
class Curve:
    """What a sample says of all rows.

    Attributes:
        at: By name, at each wanted cut: `tp`, `fp`, `fn`, `tn` in rows or their weights, and `precision`, `recall`,
            `f1`, `fpr`.
        average_precision: Of all cuts: rows between two cuts count as tied.
        positives: True rows, or their weight.
    """

    at: Mapping[str, Limited]
    average_precision: Limited
    positives: Limited


def estimated_curve(
    population: Population,
    labelled: Labelled,
    *,
    wanted: NDArray[np.int64] | None = None,
    judge: Judge | None = None,
    confidence: float = 0.95,
    draws: int = _DRAWS,
    seed: int = 0,
) -> Curve:
    """Estimate the curve of all rows, with limits that know the design.

    Args:
        population: What is known of all rows.
        labelled: A sample of them, at least one row.
        wanted: Indices of the cuts whose numbers are wanted; all if not given.
        judge: Whose labels they are, if not people's.
        confidence: Such as 0.95.
        draws: How many, of which limits are quantiles.
        seed: Of the draws.

    Raises:
        ValueError: no row is labelled, or the judge is no better than chance.
    """
    if not len(labelled.label):
        message = "no row is labelled"
        raise ValueError(message)
    design = Design.of(population, labelled)
    at = np.arange(len(population.cuts)) if wanted is None else wanted
    retrieved, total = design.population.retrieved.sum(axis=0), float(design.population.size.sum())
    estimate = _true(design.estimate(), retrieved, total, None if judge is None else judge.rates)
    numbers = _numbers(estimate, retrieved, total, at)
    drawn = _drawn(design, at, judge, draws, seed)
    tails = (0.5 - confidence / 2, 0.5 + confidence / 2)
    limits = {
        name: [np.quantile(values, tail, axis=0) for values, tail in zip(sides, tails, strict=True)]
        for name, sides in drawn.items()
    }
    with np.errstate(invalid="ignore"):  # undefined numbers have limits without them
        limited = {
            name: Limited(numbers[name][0], np.fmin(low, numbers[name][0]), np.fmax(high, numbers[name][0]))
            for name, (low, high) in limits.items()
        }
    average_precision, positives = limited.pop("average_precision"), limited.pop("positives")
    if not design.label.any():
        average_precision = Limited(average_precision.estimate, np.array(0.0), np.array(1.0))
    return Curve(_at_edges(design, at, limited, retrieved), average_precision, positives)


def _true(
    totals: Totals, retrieved: Floats, total: float, rates: tuple[Floats | float, Floats | float] | None
) -> Totals:
    """Totals of true rows, from those that a judge called true."""
    if rates is None:
        return totals
    sensitivity, specificity = rates
    difference = np.maximum(sensitivity + np.asarray(specificity) - 1, _LEAST_DIFFERENCE)
    tp = np.clip((totals.tp - (1 - specificity) * retrieved) / difference, 0.0, retrieved)
    positives = (totals.positives[:, None] - (1 - specificity) * total) / difference
    tp = np.maximum.accumulate(tp, axis=1)
    return Totals(tp, np.clip(np.maximum(positives[:, 0], tp[:, -1]), 0.0, total))


def _numbers(totals: Totals, retrieved: Floats, total: float, at: NDArray[np.int64]) -> dict[str, Floats]:
    numbers = {"average_precision": _average_precision(totals.tp, totals.positives, retrieved)}
    numbers["positives"] = totals.positives
    tp = totals.tp[:, at]
    counts = tp, retrieved[at] - tp, totals.positives[:, None] - tp
    return numbers | _ratios(*counts, total - retrieved[at] - counts[2])


def _drawn(design: Design, at: NDArray[np.int64], judge: Judge | None, draws: int, seed: int) -> dict[str, Floats]:
    """Numbers as they may be, shape (2, B, …): with unseen rows that make them lower, and that make them higher."""
    random = np.random.default_rng(seed)
    retrieved, total = design.population.retrieved.sum(axis=0), float(design.population.size.sum())
    above, below = design.heaviest()
    where = _shares_of_heaviest(design)
    at_once = max(1, _AT_ONCE // (len(retrieved) + len(design.label)))
    blocks = []
    for start in range(0, draws, at_once):
        number = min(at_once, draws - start)
        rates = None if judge is None else judge.draw(number, random)
        totals = _true(design.draw(number, random), retrieved, total, rates)
        true_above, false_above, below_it = random.gamma(_UNSEEN, size=(3, number, 1))
        heaviest = true_above * max(above[-1], below[-1])
        with_unseen = Totals(totals.tp + heaviest * where, totals.positives + heaviest[:, 0])
        tp, fp, fn = totals.tp[:, at], retrieved[at] - totals.tp[:, at], totals.positives[:, None] - totals.tp[:, at]
        tn = np.maximum(total - retrieved[at] - fn, 0.0)
        best = _ratios(tp + true_above * above[at], fp, fn, tn)
        worst = _ratios(tp, fp + false_above * above[at], fn + below_it * below[at], tn)
        best["average_precision"] = _average_precision(totals.tp, totals.positives, retrieved)
        worst["average_precision"] = _average_precision(with_unseen.tp, with_unseen.positives, retrieved)
        best["positives"], worst["positives"] = with_unseen.positives, totals.positives
        for name in ("fp", "fn", "tn", "fpr"):
            best[name], worst[name] = worst[name], best[name]
        blocks.append({name: np.stack([worst[name], best[name]]) for name in best})
    return {name: np.concatenate([block[name] for block in blocks], axis=1) for name in blocks[0]}


def _shares_of_heaviest(design: Design) -> Floats:
    """Shape (K,): share of the rows at or above each cut in the stratum whose rows are the heaviest."""
    stratum = int(design.stratum[np.argmax(design.weight)])
    return np.asarray(design.population.retrieved[stratum] / design.population.size[stratum])


def _ratios(tp: Floats, fp: Floats, fn: Floats, tn: Floats) -> dict[str, Floats]:
    """The counts and their ratios, nan where nothing is divided by nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        ratios = {
            "precision": tp / (tp + fp),
            "recall": tp / (tp + fn),
            "f1": 2 * tp / (2 * tp + fp + fn),
            "fpr": fp / (fp + tn),
        }
    return {"tp": tp, "fp": fp, "fn": fn, "tn": tn} | ratios


def _average_precision(tp: Floats, positives: Floats, retrieved: Floats) -> Floats:
    """Shape (B,): Σ Δtp / P × tp / retrieved over the cuts; true rows below all cuts have a precision of 0."""
    steps = np.diff(tp, axis=1, prepend=0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(retrieved > 0, np.minimum(tp / retrieved, 1.0), 0.0)
        return np.asarray((steps * precision).sum(axis=1) / positives)


def _at_edges(
    design: Design, at: NDArray[np.int64], limited: Mapping[str, Limited], retrieved: Floats
) -> dict[str, Limited]:
    """The limits, at 0 or 1 where the sample excludes nothing; none where no row is retrieved."""
    hits, misses = (numbers[at] for numbers in design.seen(1.0))
    false_above, _ = (numbers[at] for numbers in design.seen(0.0))
    is_census = bool((design.fraction == 1).all())
    lowest = dict.fromkeys(("tp", "precision", "recall", "f1"), hits == 0)
    lowest |= dict.fromkeys(("fp", "fpr"), false_above == 0) | {"fn": misses == 0}
    highest = {"precision": false_above == 0, "recall": misses == 0, "f1": (false_above == 0) & (misses == 0)}
    none = {"precision": retrieved[at] == 0}
    edged = {}
    for name, numbers in limited.items():
        lower, upper = numbers.lower, numbers.upper
        if not is_census:
            lower = np.where(lowest.get(name, False), 0.0, lower)
            upper = np.where(highest.get(name, False), 1.0, upper)
        nothing = none.get(name, False)
        edged[name] = Limited(numbers.estimate, np.where(nothing, np.nan, lower), np.where(nothing, np.nan, upper))
    return edged
