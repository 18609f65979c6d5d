"""Counts per event with known truth, for many data sets at once: to measure intervals, not to demonstrate a stage.

No pairs are simulated. Every false and every true match falls into a score bin. Given the event, the matches in
different bins are independent Poisson counts, and running sums over the bins from above are nested counts at ascending
thresholds.

False matches come singly or, in bursty data, half of them in bursts: a burst is a Poisson number (plus one) of articles
within one period that share their score, like copies of one wire report.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pipeline.records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

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
            `fpr_reference` to the rate at which 0.3 matches before the event are expected; recall decreases from 1 to
            0.3.
        near_factor: False positive rate in the near part of the time before the event, over that in the far part.
        fpr_reference: False positive rate at the first threshold, the recall reference.
        widening: Additional spread of the event effects at the highest threshold: some events resemble everything.
    """

    events: int
    heterogeneity: float = 0.0
    bursty: bool = False
    positives: float = 20.0
    thresholds: int = 10
    near_factor: float = 1.0
    fpr_reference: float = FPR_REFERENCE
    widening: float = 0.0

    @property
    def fpr(self) -> NDArray[np.float64]:
        """True false positive rate at every threshold, shape (T,)."""
        lowest = FEWEST / (self.events * (PAIRS_FAR + PAIRS_NEAR))
        return np.geomspace(self.fpr_reference, lowest, self.thresholds)

    @property
    def recall(self) -> NDArray[np.float64]:
        """True recall, shape (T,); 1 at the first threshold."""
        return np.linspace(1.0, RECALL_LOWEST, self.thresholds)

    @property
    def m_before(self) -> NDArray[np.float64]:
        """Expected matches before all events, shape (T,)."""
        return self.fpr * (PAIRS_FAR + PAIRS_NEAR) * self.events


@dataclass(frozen=True)
class Batch:
    """Counts of D data sets.

    Attributes:
        far: Shape (D, E, T): matches in the far part of the time before the event.
        near: The same in the near part.
        false_after: False matches after the event.
        true_after: True matches after the event.
        n_far: Shape (D, E): compared pairs in the far part.
        n_near: The same in the near part.
        n_after: The same after the event, including the positives.
    """

    far: NDArray[np.int64]
    near: NDArray[np.int64]
    false_after: NDArray[np.int64]
    true_after: NDArray[np.int64]
    n_far: NDArray[np.int64]
    n_near: NDArray[np.int64]
    n_after: NDArray[np.int64]


def simulate(setting: Setting, datasets: int, rng: np.random.Generator) -> Batch:
    """Simulate data sets of independent events."""
    shape = (datasets, setting.events)
    size = _lognormal(rng, setting.heterogeneity, shape)
    rate = _false_rates(setting, rng, shape) * size[..., None]
    covering = np.where(rng.random(shape) < COVERED, rng.gamma(1.0, setting.positives, shape), 0.0)
    true = _at_or_above(rng.poisson(covering[..., None] * _per_bin(setting.recall)))
    return Batch(
        far=_false(setting, rng, rate * PAIRS_FAR),
        near=_false(setting, rng, rate * (PAIRS_NEAR * setting.near_factor)),
        false_after=_false(setting, rng, rate * PAIRS_AFTER),
        true_after=true,
        n_far=rng.poisson(size * PAIRS_FAR),
        n_near=rng.poisson(size * PAIRS_NEAR),
        n_after=rng.poisson(size * PAIRS_AFTER) + true[..., 0],
    )


def truth(setting: Setting) -> dict[str, NDArray[np.float64]]:
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


def _lognormal(rng: np.random.Generator, variation: float, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Mean 1 and the given coefficient of variation."""
    square = np.log1p(variation**2)
    return np.asarray(rng.lognormal(-square / 2, np.sqrt(square), shape))


def _false_rates(setting: Setting, rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray[np.float64]:
    """False positive rate of every event in every score bin, shape (D, E, T)."""
    per_bin = _per_bin(setting.fpr)
    if setting.heterogeneity > 0:
        effect = rng.gamma(setting.heterogeneity**-2, setting.heterogeneity**2, shape)[..., None]
    else:
        effect = np.ones((*shape, 1))
    spread = setting.widening * np.linspace(0.0, 1.0, setting.thresholds)
    normal = rng.standard_normal(shape)[..., None]
    return np.asarray(per_bin * effect * np.exp(spread * normal - spread**2 / 2))


def _per_bin(at_or_above: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(at_or_above - np.append(at_or_above[1:], 0.0))


def _at_or_above(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.asarray(counts[..., ::-1].cumsum(axis=-1)[..., ::-1])


def _false(setting: Setting, rng: np.random.Generator, mean: NDArray[np.float64]) -> NDArray[np.int64]:
    if not setting.bursty:
        return _at_or_above(rng.poisson(mean))
    bursts = rng.poisson(mean * (IN_BURSTS / BURST_SIZE))
    return _at_or_above(rng.poisson(mean * (1 - IN_BURSTS)) + bursts + rng.poisson(bursts * (BURST_SIZE - 1)))
