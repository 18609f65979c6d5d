"""How the bootstrap draws replicates again, and which of the ordered results bound the tails."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]

DEFAULT_RESAMPLES, FEWEST_RESAMPLES, MOST_RESAMPLES = 999, 99, 100_000
MOST_UNITS = 1_000  # units that are resampled each by itself; more of them are put together
_WEIGHTS_AT_ONCE = 4_000_000
_NEAR = 1e-9


@dataclass(frozen=True)
class Resampling:
    """How replicates are drawn again.

    Attributes:
        resamples: Number of resamples, B.
        seed: The same seed draws the same replicates.
    """

    resamples: int = DEFAULT_RESAMPLES
    seed: int = 0

    def weights(self, replicates: int) -> Iterator[Floats]:
        """How often each of G replicates is drawn: blocks of resamples, shape (b, G), whole numbers that add up to G.

        The same resamples come whatever the size of the blocks.
        """
        if self.resamples * replicates <= _WEIGHTS_AT_ONCE:
            yield _all_weights(self, replicates)
            return
        rng, at_once = np.random.default_rng(self.seed), max(1, _WEIGHTS_AT_ONCE // replicates)
        for start in range(0, self.resamples, at_once):
            yield _drawn(rng, replicates, min(at_once, self.resamples - start))

    def rank(self, confidence: float) -> int:
        """Which of the ordered values bounds the tail on each side, from 1; 0: too few resamples for the confidence."""
        return math.floor((self.resamples + 1) * (1 - confidence) / 2 + _NEAR)

    def quantiles(self, distances: Floats, confidence: float) -> tuple[Floats, Floats]:
        """Quantiles of studentised distances, shape (B, …): those with equal tails, or the symmetric ones if farther.

        Those with equal tails follow the skewness of the sample, which may be that of one large cluster: on the short
        side they can be as near as one standard error. Quantiles of the absolute distances (Hall 1988) bound them from
        below. A distance that is nan counts as beyond both limits.

        Returns:
            Lower and upper quantile, shape (…); infinite where so many distances are.
        """
        rank = self.rank(confidence)
        if rank == 0:
            nothing = np.full(distances.shape[1:], np.inf)
            return -nothing, nothing
        is_missing, last = np.isnan(distances), len(distances)
        low = np.partition(np.where(is_missing, -np.inf, distances), rank - 1, axis=0)[rank - 1]
        above = np.where(is_missing, np.inf, distances)
        high = np.partition(above, last - rank, axis=0)[-rank]
        of_both = math.floor((last + 1) * (1 - confidence) + _NEAR)
        symmetric = np.partition(np.abs(above), last - of_both, axis=0)[-of_both]
        return np.minimum(low, -symmetric), np.maximum(high, symmetric)


def _drawn(rng: np.random.Generator, replicates: int, resamples: int) -> Floats:
    shares = np.full(replicates, 1 / replicates)
    return rng.multinomial(replicates, shares, size=resamples).astype(np.float64)


@lru_cache(maxsize=2)
def _all_weights(resampling: Resampling, replicates: int) -> Floats:
    weights = _drawn(np.random.default_rng(resampling.seed), replicates, resampling.resamples)
    weights.flags.writeable = False
    return weights
