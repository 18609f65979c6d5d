"""Measures of rankings down to a cutoff, with relevance as a grade, for all rankings at once.

Of documents with equal scores every order is equally likely, and a measure is its mean over these orders, in closed
form (McSherry and Najork 2008); where ties are broken, every tie holds one document. Throughout, a tie holds g
documents after N others, of which the first c = min(g, k - N), at least 0, count down to the cutoff k.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...records import dataclass
from .cascade import expected_reciprocal_rank
from .measures import Ties, reciprocal_ranks, sums_before
from .notation import EXPONENTIAL
from .ties import tie_gains

if TYPE_CHECKING:
    from ..uncertainty.jackknife import Floats
    from .grades import Grades
    from .notation import RankingMeasure


@dataclass(frozen=True)
class GradedRankings:
    """Rankings with the relevance of their documents.

    Attributes:
        ties: Ties that hold judged documents.
        grades: The judged documents of these ties.
        judged: The judged documents of the query of every ranking, retrieved or not.
        n_retrieved: Number of documents of every ranking, shape (rankings,).
    """

    ties: Ties
    grades: Grades
    judged: Grades
    n_retrieved: Floats

    @property
    def count(self) -> int:
        """Number of rankings."""
        return len(self.n_retrieved)

    def per_tie(self, values: Floats) -> Floats:
        """Sum of values of the judged documents of every tie."""
        return self.grades.totals(values, len(self.ties.size))

    def per_ranking(self, values: Floats) -> Floats:
        """Sum of values of every tie, by ranking."""
        return np.bincount(self.ties.ranking, values, self.count).astype(np.float64)


def measure_values(measure: RankingMeasure, rankings: GradedRankings, level: float) -> Floats:
    """A measure of every ranking, shape (rankings,).

    Args:
        measure: The measure.
        rankings: The rankings.
        level: Least relevance of a relevant document, unless the measure says it.

    Returns:
        Values from 0 to 1; nan where no document of the query counts as relevant, or of graded measures none has a
        relevance above 0. Judged@k is defined for every query.
    """
    if measure.kind == "Judged":
        return _judged(measure, rankings)
    if measure.kind == "nDCG":
        return _ndcg(measure, rankings)
    level = level if measure.rel is None else measure.rel
    relevance = rankings.judged.relevance
    counts = (relevance > 0) if measure.is_graded else (relevance >= level)
    n_relevant = rankings.judged.totals(counts.astype(np.float64), rankings.count)
    values = _graded(measure, rankings) if measure.is_graded else _binary(measure, rankings, level, n_relevant)
    return np.where(n_relevant > 0, values, np.nan)


def _graded(measure: RankingMeasure, rankings: GradedRankings) -> Floats:
    highest = measure.max_grade or 0.0
    if measure.kind == "ERR":
        stop = (np.exp2(rankings.grades.relevance) - 1) / np.exp2(highest)
        return expected_reciprocal_rank(
            rankings.ties, rankings.grades, stop, rankings.count, _counted(measure, rankings)
        )
    return _persistent(measure, rankings, rankings.per_tie(rankings.grades.relevance / highest))


def _binary(measure: RankingMeasure, rankings: GradedRankings, level: float, n_relevant: Floats) -> Floats:
    """Measures that know relevant documents and others.

    P@k and R@k are hits / k and hits / R; a tie adds c r / g expected hits.
    """
    ties, counted = rankings.ties, _counted(measure, rankings)
    hits = rankings.per_tie((rankings.grades.relevance >= level).astype(np.float64))
    above = sums_before(ties.ranking, hits)
    if measure.kind == "AP":
        gains = tie_gains(ties.before, above, ties.size, hits, counted)
        return _over(rankings.per_ranking(gains), n_relevant)
    if measure.kind == "RR":
        found_at = Ties(ties.ranking, ties.before, ties.size, hits, ties.misses)
        return reciprocal_ranks(found_at, above, rankings.count, measure.k or np.inf)
    if measure.kind == "Success":
        return _success(rankings, hits, counted)
    if measure.kind == "RBP":
        return _persistent(measure, rankings, hits)
    first = rankings.per_ranking(hits * counted / ties.size)
    return first / (measure.k or 1) if measure.kind == "P" else _over(first, n_relevant)


def _counted(measure: RankingMeasure, rankings: GradedRankings) -> Floats:
    """Ranks of every tie that are not beyond the cutoff, c."""
    ties = rankings.ties
    return ties.size if measure.k is None else np.clip(measure.k - ties.before, 0, ties.size)


def _over(sums: Floats, divisor: Floats) -> Floats:
    return np.divide(sums, divisor, out=np.zeros_like(sums), where=divisor > 0)


def _judged(measure: RankingMeasure, rankings: GradedRankings) -> Floats:
    """Share of the first min(k, n) documents that are judged, n being the number of retrieved ones; 0 without any."""
    judged = rankings.per_tie(np.ones(len(rankings.grades.of)))
    first = rankings.per_ranking(judged * _counted(measure, rankings) / rankings.ties.size)
    return _over(first, np.minimum(measure.k or np.inf, rankings.n_retrieved))


def _ndcg(measure: RankingMeasure, rankings: GradedRankings) -> Floats:
    """DCG over that of the judged documents in the best order, each down to k (Järvelin and Kekäläinen 2002).

    DCG = Σ gain / log2(1 + rank), the gain being the relevance, or 2 to the power of it, less 1 (Burges et al. 2005).
    A tie whose gains sum to G adds G / g Σ_{i=1…c} 1 / log2(1 + N + i).
    """
    ties, judged = rankings.ties, rankings.judged
    gains = rankings.per_tie(_gain(measure, rankings.grades.relevance)) / ties.size
    dcg = rankings.per_ranking(gains * discounts(ties.before, _counted(measure, rankings)))
    # every judged document by itself, in the same order of sums as a perfect ranking has them
    before = sums_before(judged.of, judged.number)
    number = judged.number if measure.k is None else np.clip(measure.k - before, 0, judged.number)
    repeats = np.where(judged.relevance > 0, number, 0).astype(np.int64)
    of, gain = (np.repeat(values, repeats) for values in (judged.of, _gain(measure, judged.relevance)))
    rank = np.arange(len(of)) - np.searchsorted(of, of) + 1.0
    ideal = np.bincount(of, gain * (1 / np.log2(1 + rank)), rankings.count)
    return np.asarray(np.divide(dcg, ideal, out=np.full(rankings.count, np.nan), where=ideal > 0))


def _gain(measure: RankingMeasure, relevance: Floats) -> Floats:
    return np.exp2(relevance) - 1 if measure.gain == EXPONENTIAL else relevance


def discounts(before: Floats, count: Floats) -> Floats:
    """Σ_{i=1…c} 1 / log2(1 + N + i) for N documents before and c ranks, both of one shape."""
    sums = np.where(count == 1, 1 / np.log2(2 + before), 0.0)
    several = count > 1
    if several.any():
        ranks = np.arange(1, int((before + count)[several].max()) + 1)
        until = np.concatenate([[0.0], np.cumsum(1 / np.log2(1 + ranks))])
        start = before[several].astype(np.int64)
        sums[several] = until[start + count[several].astype(np.int64)] - until[start]
    return sums


def _persistent(measure: RankingMeasure, rankings: GradedRankings, gains: Floats) -> Floats:
    """Rank-biased precision, (1 - p) Σ gain p^(rank - 1) (Moffat and Zobel 2008).

    A tie whose gains sum to G adds G / g p^N (1 - p^c).
    """
    ties, p = rankings.ties, measure.p
    weights = p**ties.before * -np.expm1(_counted(measure, rankings) * np.log(p))
    return rankings.per_ranking(gains / ties.size * weights)


def _success(rankings: GradedRankings, hits: Floats, counted: Floats) -> Floats:
    """Probability that a relevant document is among the first k: 1 less the product over ties of C(g - r, c) / C(g, c).

    The quotient is a product of min(r, c) factors, as C(g - r, c) / C(g, c) = C(g - c, r) / C(g, r).
    """
    ties = rankings.ties
    missing = np.ones(len(hits))
    fewer, more = np.minimum(hits, counted), np.maximum(hits, counted)
    active, step = np.flatnonzero(fewer > 0), 0
    while len(active):
        left = ties.size[active] - step
        missing[active] *= np.clip(left - more[active], 0, None) / left
        step += 1
        active = active[(fewer[active] > step) & (missing[active] > 0)]
    none = np.ones(rankings.count)
    np.multiply.at(none, ties.ranking, missing)
    return 1 - none
