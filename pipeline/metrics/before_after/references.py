"""The doubt in the recall reference, which is chosen from the same data as everything else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import scipy

from ...records import dataclass

if TYPE_CHECKING:
    from ..uncertainty.jackknife import Floats
    from ..uncertainty.spread import JackknifeSpread
    from .sums import Sums


@dataclass(frozen=True)
class Choice:
    """How a reference is chosen among the thresholds.

    Attributes:
        rule: `lowest`: the lowest threshold with enough precision; `max`: the one with the most true positives among
            those.
        min_precision: Enough precision, uncorrected.
    """

    rule: Literal["lowest", "max"]
    min_precision: float


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def doubt_in_choice(totals: Sums, jackknifed: Sums, spread: JackknifeSpread, choice: Choice) -> float:
    """Variance of 1 / A, A being the number of positives, over the thresholds that might have been the reference.

    Every threshold k gives an estimate A_k. With w_k for the probability that k is chosen in another sample, the
    variance is sum w_k (1 / A_k - 1 / A)²: that of a mixture about the estimate at hand.

    Args:
        totals: Totals with the reference at hand.
        jackknifed: The same totals without each replicate in turn.
        spread: The clusterings of these replicates.
        choice: How the reference was chosen.
    """
    gaps = totals.reference_recall - totals.fpr
    inverse = np.where((gaps > 0) & (totals.tp > 0), gaps / totals.tp, np.nan)
    weights = np.where(np.isnan(inverse), 0.0, _probabilities(totals, jackknifed, spread, choice))
    if not weights.sum() > 0 or totals.reference is None:
        return 0.0
    squares = (inverse - inverse[totals.reference]) ** 2
    return float(np.nansum(weights * squares) / weights.sum())


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _probabilities(totals: Sums, jackknifed: Sums, spread: JackknifeSpread, choice: Choice) -> Floats:
    """How likely every threshold is to be chosen in another sample, as if its errors were normal; shape (T,).

    `lowest`: precision at neighbouring thresholds varies together, so that the first threshold with enough of it is
    the first whose standardised distance from the minimum exceeds one normal variate that all share. `max`: how likely
    a threshold is to have more true positives than the reference at hand.
    """
    enough = _standardised(_excess(totals, choice), _excess(jackknifed, choice), spread)
    if choice.rule == "lowest":
        reached = np.maximum.accumulate(scipy.special.ndtr(enough))
        return np.asarray(np.diff(reached, prepend=0.0))
    more = _standardised(totals.tp - totals.tp_reference, jackknifed.tp - jackknifed.tp_reference, spread)
    return np.asarray(scipy.special.ndtr(enough) * scipy.special.ndtr(more))


def _excess(sums: Sums, choice: Choice) -> Floats:
    """True positives above those that the minimum precision asks for: TP - minimum × M_a."""
    return sums.tp - choice.min_precision * sums.m_after


@np.errstate(divide="ignore", invalid="ignore", over="ignore")
def _standardised(values: Floats, jackknifed: Floats, spread: JackknifeSpread) -> Floats:
    """Values over their standard errors; of values without any spread, infinite with their sign, and 0 for 0."""
    return np.nan_to_num(values / np.sqrt(spread.variance(jackknifed)), nan=0.0, posinf=np.inf, neginf=-np.inf)
