"""Measures of rankings from the ranks of their judged documents, for all rankings at once.

Documents with equal scores form a tie that takes several ranks. Where ties are broken, every tie holds one document.
For a tie, a measure takes its mean over all orders of the documents in the tie (McSherry & Najork 2008).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from ...records import dataclass
from .ties import tie_gains

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats

Interpolation: TypeAlias = Literal["trec_eval_10", "trec_eval_9"]

RECALL_LEVELS = tuple(level / 10 for level in range(11))
_ADDED: dict[Interpolation, float] = {"trec_eval_10": 0.5, "trec_eval_9": 0.9}  # to level × R, then rounded down
_NEGLIGIBLE = 1e-18  # probability that the first hit comes this late


@dataclass(frozen=True)
class Ties:
    """Ties that hold judged documents; other ties are left out. Each array has shape (B,).

    Attributes:
        ranking: Number of the ranking, from 0, ascending; within a ranking, the best score comes first.
        before: Number of documents ranked above the tie.
        size: Number of documents in the tie, judged or not.
        hits: Number of relevant documents in the tie.
        misses: Number of documents in the tie that are judged and not relevant.
    """

    ranking: NDArray[np.int64]
    before: Floats
    size: Floats
    hits: Floats
    misses: Floats


@dataclass(frozen=True)
class Judged:
    """Judged documents for the query of every ranking, retrieved or not; each array has shape (rankings,).

    Attributes:
        relevant: Number of relevant documents.
        nonrelevant: Number of documents that are judged and not relevant.
    """

    relevant: Floats
    nonrelevant: Floats


@dataclass(frozen=True)
class Measures:
    """Measures of rankings, each of shape (rankings,) unless stated otherwise; without a relevant document they are 0.

    Attributes:
        retrieved_relevant: Number of relevant documents in the ranking.
        retrieved_nonrelevant: Number of documents in the ranking that are judged and not relevant.
        precision_sum: Sum of the precision at every relevant document: average precision times its divisor.
        relevant_at_r: Number of relevant documents among the first R, R being the number of relevant documents.
        reciprocal_rank: 1 / rank of the first relevant document.
        bpref: Preference for relevant over judged nonrelevant documents.
        interpolated: Highest precision at or after each recall in `RECALL_LEVELS`, shape (rankings, 11).
        hits: Number of relevant documents among the first k, shape (rankings, cutoffs).
        straddled: Whether a tie of relevant and other documents extends across cut-off k, shape (rankings, cutoffs).
        mixed: Whether any tie holds relevant and other documents, so that the order within it matters.
    """

    retrieved_relevant: Floats
    retrieved_nonrelevant: Floats
    precision_sum: Floats
    relevant_at_r: Floats
    reciprocal_rank: Floats
    bpref: Floats
    interpolated: Floats
    hits: Floats
    straddled: NDArray[np.bool_]
    mixed: NDArray[np.bool_]


def measures(
    ties: Ties, judged: Judged, cutoffs: Sequence[int], interpolation: Interpolation = "trec_eval_10"
) -> Measures:
    """Every measure of every ranking.

    Interpolated precision at recall r is the highest precision at a rank with at least r R relevant documents, where
    r R is made a whole number as trec_eval does (`m_iprec_at_recall.c`): ⌊r R + 0.5⌋ since version 10.0, ⌊r R + 0.9⌋ up
    to version 9.0.8, each sum taken in doubles. For ties that mix relevant and other documents
    it has no closed form: it then refers to the order with relevant documents first, and `mixed` is true. Bpref is
    (1/R) Σ (1 - min(n, R) / min(N, R)) over the retrieved relevant documents, n being the number of judged nonrelevant
    documents above and N the number of all judged nonrelevant documents (Buckley & Voorhees 2004, as in trec_eval).

    Args:
        ties: The ties of all rankings.
        judged: Numbers of judged documents for the queries of the rankings.
        cutoffs: The cut-offs k.
        interpolation: The version of trec_eval whose whole numbers of hits interpolated precision asks for.
    """
    count = len(judged.relevant)
    above, nonrelevant_above = (sums_before(ties.ranking, counts) for counts in (ties.hits, ties.misses))
    mixed = (ties.hits > 0) & (ties.hits < ties.size)

    def added(values: Floats) -> Floats:
        return np.bincount(ties.ranking, values, count).astype(np.float64)

    def first(k: Floats | float) -> Floats:
        return added(ties.hits * (np.clip(k - ties.before, 0, ties.size) / ties.size))

    def across(k: int) -> NDArray[np.bool_]:
        inside = (ties.before < k) & (k < ties.before + ties.size)
        return added((mixed & inside).astype(np.float64)) > 0

    n_relevant = judged.relevant[ties.ranking]
    return Measures(
        retrieved_relevant=added(ties.hits),
        retrieved_nonrelevant=added(ties.misses),
        precision_sum=added(tie_gains(ties.before, above, ties.size, ties.hits)),
        relevant_at_r=first(n_relevant),
        reciprocal_rank=reciprocal_ranks(ties, above, count),
        bpref=_over(added(_preferences(ties, nonrelevant_above, judged)), judged.relevant),
        interpolated=_interpolated(ties, above, judged.relevant, _ADDED[interpolation]),
        hits=np.stack([first(k) for k in cutoffs], axis=1),
        straddled=np.stack([across(k) for k in cutoffs], axis=1),
        mixed=added(mixed.astype(np.float64)) > 0,
    )


def _over(sums: Floats, divisor: Floats) -> Floats:
    return np.divide(sums, divisor, out=np.zeros_like(sums), where=divisor > 0)


def sums_before(ranking: NDArray[np.int64], values: Floats) -> Floats:
    """Sum of the earlier values of the same ranking."""
    before = np.cumsum(values) - values
    return np.asarray(before - before[np.searchsorted(ranking, ranking)] if len(before) else before)


def reciprocal_ranks(ties: Ties, above: Floats, count: int, deepest: float = np.inf) -> Floats:
    """Expected 1 / rank of the first hit, which lies in the first tie with a hit; 0 without any down to a rank.

    It is the i-th document of the tie with a negative hypergeometric probability.

    Args:
        ties: The ties of all rankings.
        above: Number of hits above each tie.
        count: Number of rankings.
        deepest: The last rank that counts.
    """
    start = np.flatnonzero((above == 0) & (ties.hits > 0))
    mean_reciprocal_rank = np.zeros(count)
    before, size, hits = ties.before[start], ties.size[start], ties.hits[start]
    chance, total = hits / size, np.zeros(len(start))
    active, rank_in_tie = np.flatnonzero(before < deepest), 1
    while len(active):
        total[active] += chance[active] / (before[active] + rank_in_tie)
        # P(first hit at i + 1) = P(first hit at i) × (g - r - i + 1) / (g - i), in a tie of g with r hits
        lower = size[active] - rank_in_tie
        chance[active] *= np.divide(lower - hits[active] + 1, lower, out=np.zeros(len(active)), where=lower > 0)
        rank_in_tie += 1
        active = active[(chance[active] > _NEGLIGIBLE) & (before[active] + rank_in_tie <= deepest)]
    mean_reciprocal_rank[ties.ranking[start]] = total
    return mean_reciprocal_rank


def _preferences(ties: Ties, above: Floats, judged: Judged) -> Floats:
    """What the relevant documents of each tie contribute to bpref times R.

    Of the b nonrelevant documents in its tie, a relevant document has 0 … b above it, each number equally likely.
    """
    relevant, nonrelevant = judged.relevant[ties.ranking], judged.nonrelevant[ties.ranking]
    below_limit = np.clip(relevant - above, 0, ties.misses + 1)
    lost = below_limit * above + below_limit * (below_limit - 1) / 2 + (ties.misses + 1 - below_limit) * relevant
    mean = lost / (ties.misses + 1)
    return ties.hits * (1 - _over(mean, np.minimum(relevant, nonrelevant)))


def _interpolated(ties: Ties, above: Floats, relevant: Floats, added: float) -> Floats:
    precisions = np.zeros((len(relevant), len(RECALL_LEVELS)))
    hit = ties.hits > 0
    ranking, reached = ties.ranking[hit], (above + ties.hits)[hit]
    if not len(ranking):
        return precisions
    precision = reached / (ties.before + ties.hits)[hit]
    starts = np.flatnonzero(np.concatenate([[True], ranking[1:] != ranking[:-1]]))
    for column, level in enumerate(RECALL_LEVELS):
        enough = reached >= np.floor(level * relevant[ranking] + added)
        precisions[ranking[starts], column] = np.maximum.reduceat(np.where(enough, precision, 0.0), starts)
    return precisions
