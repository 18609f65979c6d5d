"""Counts per event with known truth, for many data sets at once: to measure intervals, not to demonstrate a stage.

No pairs are simulated. Every false and every true match falls into a score bin. Given the event, the matches in
different bins are independent Poisson counts, and running sums over the bins from above are nested counts at ascending
thresholds.

False matches come singly or, in bursty data, half of them in bursts: a burst is a Poisson number (plus one) of articles
within one period that share their score, like copies of one wire report.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from labelled_rows import lognormal

from pipeline.metrics.before_after.estimates import Sides

if TYPE_CHECKING:
    from collections.abc import Iterator

    from harness import Floats, Integers

PAIRS_FAR, PAIRS_NEAR, PAIRS_AFTER = 750.0, 250.0, 400.0
FPR_REFERENCE = 0.1
COVERED = 0.4
IN_BURSTS, BURST_SIZE = 0.5, 4.0
FEWEST = 0.3
RECALL_LOWEST = 0.3


@dataclass(frozen=True)
class Setting:
    """The setting of a simulation.

    Attributes:
        events: Number of events.
        heterogeneity: Coefficient of variation of the event effects: gamma on the false positive rate, lognormal on
            the number of compared pairs.
        bursty: Whether half of the false matches come in bursts.
        positives: Mean number of articles that cover a covered event (gamma mixture, CV 1).
        thresholds: Number of thresholds. The false positive rate decreases evenly on the log scale, from
            `fpr_reference` to `lowest`; recall decreases from 1 to 0.3.
        near_factor: False positive rate in the near part of the time before the event, over that in the far part.
        fpr_reference: False positive rate at the first threshold, the recall reference.
        lowest: That at the last threshold; 0: the one at which 0.3 matches before all events are expected.
    """

    events: int
    heterogeneity: float = 0.0
    bursty: bool = False
    positives: float = 20.0
    thresholds: int = 10
    near_factor: float = 1.0
    fpr_reference: float = FPR_REFERENCE
    lowest: float = 0.0

    @property
    def fpr(self) -> Floats:
        """True false positive rate at every threshold, shape (T,)."""
        lowest = self.lowest or FEWEST / (self.events * (PAIRS_FAR + PAIRS_NEAR))
        return np.geomspace(self.fpr_reference, lowest, self.thresholds)

    @property
    def recall(self) -> Floats:
        """True recall, shape (T,); 1 at the first threshold."""
        return np.linspace(1.0, RECALL_LOWEST, self.thresholds)

    @property
    def m_before(self) -> Floats:
        """Expected matches before all events, shape (T,)."""
        return self.fpr * (PAIRS_FAR + PAIRS_NEAR) * self.events


@dataclass(frozen=True)
class Counts:
    """Counts of one data set, matches of shape (E, T) and compared pairs of shape (E,); or of D, with an axis more.

    `far` and `near` are matches in both parts of the time before the event; compared pairs after it include positives.
    """

    far: Integers
    near: Integers
    false_after: Integers
    true_after: Integers
    n_far: Integers
    n_near: Integers
    n_after: Integers

    def __iter__(self) -> Iterator[Counts]:
        for index in range(len(self.n_far)):
            yield Counts(*(values[index] for values in vars(self).values()))

    @property
    def sides(self) -> Sides:
        """Matches before and after the event, and pairs before and after it."""
        return Sides(self.far + self.near, self.false_after + self.true_after, self.n_far + self.n_near, self.n_after)

    @property
    def totals(self) -> tuple[Floats, Floats, Floats, Floats]:
        """The same of all events: of matches shape (T,), of pairs numbers."""
        sides = self.sides
        m_before, m_after = sides.m_before.sum(axis=0), sides.m_after.sum(axis=0)
        return m_before, m_after, sides.n_before.sum(axis=0), sides.n_after.sum(axis=0)

    def corrected(self) -> tuple[Floats, Floats]:
        """Estimates of the true matches at every threshold, and of all positives."""
        m_before, m_after, n_before, n_after = self.totals
        rates = m_before / n_before
        raw = m_after - rates * n_after
        positives = raw[0] / (1 - rates[0])
        return raw + rates * positives, positives


def simulate(setting: Setting, datasets: int, rng: np.random.Generator) -> Counts:
    """Simulate data sets of independent events."""
    shape = (datasets, setting.events)
    size = lognormal(rng, setting.heterogeneity, shape)
    rate = _false_rates(setting, rng, shape) * size[..., None]
    covering = np.where(rng.random(shape) < COVERED, rng.gamma(1.0, setting.positives, shape), 0.0)
    true = _at_or_above(rng.poisson(covering[..., None] * _per_bin(setting.recall)))
    return Counts(
        far=_false(setting, rng, rate * PAIRS_FAR),
        near=_false(setting, rng, rate * (PAIRS_NEAR * setting.near_factor)),
        false_after=_false(setting, rng, rate * PAIRS_AFTER),
        true_after=true,
        n_far=rng.poisson(size * PAIRS_FAR),
        n_near=rng.poisson(size * PAIRS_NEAR),
        n_after=rng.poisson(size * PAIRS_AFTER) + true[..., 0],
    )


def truth(setting: Setting) -> dict[str, Floats]:
    """What the estimators estimate, by name, at expected counts; shape (T,).

    `precision`, `recall` and `f1` are the actual ones, from expected true and false matches. Those with the suffix
    `_uncorrected` are what the formulas of the source text converge to, which differs from the actual ones no matter
    how many events there are.
    """
    positives = COVERED * setting.positives
    true = positives * setting.recall
    matched = setting.fpr * PAIRS_AFTER + true
    tp = matched - setting.fpr * (PAIRS_AFTER + positives)
    return {
        "fpr": setting.fpr,
        "precision": true / matched,
        "recall": setting.recall,
        "f1": 2 * true / (matched + positives),
        "precision_uncorrected": tp / matched,
        "recall_uncorrected": tp / tp[0],
        "f1_uncorrected": 2 * tp / (matched + tp[0]),
    }


def _false_rates(setting: Setting, rng: np.random.Generator, shape: tuple[int, ...]) -> Floats:
    """False positive rate of every event in every score bin, shape (D, E, T)."""
    effect = np.ones((*shape, 1))
    if setting.heterogeneity > 0:
        effect = rng.gamma(setting.heterogeneity**-2, setting.heterogeneity**2, shape)[..., None]
    rng.standard_normal(shape)  # of an effect that no setting has any more: draws stay those of published tables
    return np.asarray(_per_bin(setting.fpr) * effect)


def _per_bin(at_or_above: Floats) -> Floats:
    return np.asarray(at_or_above - np.append(at_or_above[1:], 0.0))


def _at_or_above(counts: Integers) -> Integers:
    return np.asarray(counts[..., ::-1].cumsum(axis=-1)[..., ::-1])


def _false(setting: Setting, rng: np.random.Generator, mean: Floats) -> Integers:
    if not setting.bursty:
        return _at_or_above(rng.poisson(mean))
    bursts = rng.poisson(mean * (IN_BURSTS / BURST_SIZE))
    return _at_or_above(rng.poisson(mean * (1 - IN_BURSTS)) + bursts + rng.poisson(bursts * (BURST_SIZE - 1)))
