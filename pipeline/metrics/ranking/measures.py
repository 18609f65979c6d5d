"""Measures of rankings by name and cutoff, from the ranks of judged documents, for all rankings at once."""

from __future__ import annotations

import math
import re
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from ...base.records import dataclass
from .average_precision import tie_gains

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..uncertainty.jackknife import Floats


# Names of measures of rankings, as people write them: `nDCG@10`, `nDCG(gain=exponential)@10`, `RBP(p=0.8)`.
#
# The notation is that of ir_measures (MacAvaney, Macdonald and Ounis 2022): a name, its parameters in parentheses, and
# `@` with the cutoff.


Gain: TypeAlias = Literal["identity", "exponential"]
Kind: TypeAlias = Literal["nDCG", "AP", "P", "R", "RR", "Success", "Judged", "RBP", "ERR"]

EXPONENTIAL: Gain = "exponential"
PERSISTENCE = 0.8  # of RBP, where none is given, as in ir_measures
GREATEST_GRADE = 4.0  # of ERR, where none is given, as in gdeval of TREC
MOST_GRADE = 50.0  # beyond it, 2 ** grade swamps every other document
DEEPEST = 10**9
PARAMETERS: Mapping[Kind, tuple[str, ...]] = {
    "nDCG": ("gain",),
    "AP": ("rel",),
    "P": ("rel",),
    "R": ("rel",),
    "RR": ("rel",),
    "Success": ("rel",),
    "Judged": (),
    "RBP": ("p", "rel", "max_grade"),
    "ERR": ("max_grade",),
}
NEEDS_CUTOFF: tuple[Kind, ...] = ("P", "R", "Success", "Judged")
_ALIASES: Mapping[str, Kind] = {"map": "AP", "mrr": "RR", "precision": "P", "recall": "R"}
_GAINS: Mapping[str, Gain] = {
    "identity": "identity",
    "log2": "identity",
    "exponential": "exponential",
    "exp-log2": "exponential",
}
_FORM = re.compile(r"\s*(?P<name>[A-Za-z]+)\s*(?:\((?P<parameters>[^()]*)\))?\s*(?:@\s*(?P<k>[0-9]+))?\s*")


@dataclass(frozen=True)
class RankingMeasure:
    """One measure.

    Attributes:
        kind: What is measured.
        k: Number of first documents that count; None: all.
        rel: Least relevance of a relevant document; None: that of the stage.
        gain: What a document of nDCG is worth: its relevance (`identity`: Järvelin and Kekäläinen 2002, as in
            trec_eval), or 2 to the power of it, less 1 (`exponential`: Burges et al. 2005).
        p: Persistence of RBP: the probability to look at the next document.
        max_grade: Highest relevance on the scale: of ERR, and of RBP with graded gains; None: RBP with gains 0 and 1.
    """

    kind: Kind
    k: int | None = None
    rel: float | None = None
    gain: Gain = "identity"
    p: float = PERSISTENCE
    max_grade: float | None = None

    @property
    def name(self) -> str:
        """The measure in the notation, one for each measure."""
        written = {
            "gain": self.gain if self.gain == EXPONENTIAL else None,
            "p": _number(self.p) if self.kind == "RBP" else None,
            "rel": None if self.rel is None else _number(self.rel),
            "max_grade": None if self.max_grade is None or self._is_usual else _number(self.max_grade),
        }
        words = ", ".join(f"{name}={text}" for name, text in written.items() if text is not None)
        return self.kind + (f"({words})" if words else "") + ("" if self.k is None else f"@{self.k}")

    @property
    def _is_usual(self) -> bool:
        return self.kind == "ERR" and self.max_grade == GREATEST_GRADE

    @property
    def is_graded(self) -> bool:
        """Whether it takes gains from the relevance, so that every relevance above 0 counts."""
        return self.kind in {"nDCG", "ERR"} or (self.kind == "RBP" and self.max_grade is not None)


def measure_of(text: str) -> RankingMeasure:
    """Read a measure; capitals do not matter.

    Raises:
        ValueError: it is no measure, or its parameters do not fit it.
    """
    match = _FORM.fullmatch(text)
    kind = _kind_of(match["name"]) if match else None
    if match is None or kind is None:
        message = (
            f"{text!r} is no measure: write for example nDCG@10, AP@100 or RBP(p=0.8); known: {', '.join(PARAMETERS)}"
        )
        raise ValueError(message)
    k = None if match["k"] is None else int(match["k"])
    if k is not None and not 1 <= k <= DEEPEST:
        message = f"{text!r}: the cutoff must be a number from 1 to {DEEPEST:,}"
        raise ValueError(message)
    if k is None and kind in NEEDS_CUTOFF:
        message = f"{text!r} needs a cutoff, for example {kind}@10"
        raise ValueError(message)
    words = dict(_parameters(text, kind, match["parameters"] or ""))
    if "rel" in words and "max_grade" in words:
        message = f"{text!r}: rel makes gains of 0 and 1, max_grade graded ones: leave one out"
        raise ValueError(message)
    usual = GREATEST_GRADE if kind == "ERR" else None
    return RankingMeasure(
        kind,
        k,
        rel=_within(text, "rel", words.get("rel"), 0, math.inf),
        gain=_gain_of(text, words.get("gain", "identity")),
        p=_persistence(text, words.get("p")),
        max_grade=_within(text, "max_grade", words.get("max_grade"), 0, MOST_GRADE, open_below=True) or usual,
    )


def name_of(text: str) -> str:
    """The name of a measure in the notation; a text that is no measure stays as it is."""
    try:
        return measure_of(text).name
    except ValueError:
        return text


def is_measure(text: str) -> bool:
    """Whether a text is the name of a measure, as the notation writes it."""
    try:
        return measure_of(text).name == text
    except ValueError:
        return False


def _kind_of(name: str) -> Kind | None:
    kinds = {kind.lower(): kind for kind in PARAMETERS} | dict(_ALIASES)
    return kinds.get(name.lower())


def _parameters(text: str, kind: Kind, written: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for item in written.split(",") if written.strip() else ():
        name, sign, value = (word.strip() for word in item.partition("="))
        name = "gain" if name == "dcg" else name  # as ir_measures calls it
        allowed = PARAMETERS[kind]
        if not sign or name not in allowed:
            fitting = f"it has {', '.join(allowed)}" if allowed else "it has no parameters"
            message = f"{text!r}: {item.strip()!r} is no parameter of {kind}; {fitting}"
            raise ValueError(message)
        if name in dict(pairs):
            message = f"{text!r} has {name} twice"
            raise ValueError(message)
        pairs.append((name, value.strip("'\"")))
    return pairs


def _gain_of(text: str, value: str) -> Gain:
    if value not in _GAINS:
        message = f"{text!r}: gain is identity (the relevance) or exponential (2 ** relevance - 1)"
        raise ValueError(message)
    return _GAINS[value]


def _persistence(text: str, value: str | None) -> float:
    p = PERSISTENCE if value is None else _float(text, "p", value)
    if not 0 < p < 1:
        message = f"{text!r}: p must be above 0 and below 1"
        raise ValueError(message)
    return p


def _within(
    text: str, name: str, value: str | None, low: float, high: float, *, open_below: bool = False
) -> float | None:
    if value is None:
        return None
    number = _float(text, name, value)
    if not low <= number <= high or math.isinf(number) or (open_below and number == low):
        message = f"{text!r}: {name} must be {'above' if open_below else 'at least'} {low:g}"
        raise ValueError(message + ("" if math.isinf(high) else f" and at most {high:g}"))
    return number


def _float(text: str, name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        message = f"{text!r}: {name} = {value!r} is no number"
        raise ValueError(message) from None


def _number(value: float) -> str:
    return repr(value).removesuffix(".0")


# Measures of rankings from the ranks of their judged documents, for all rankings at once.
#
# Documents with equal scores form a tie that takes several ranks. Where ties are broken, every tie holds one document.
# For a tie, a measure takes its mean over all orders of the documents in the tie (McSherry & Najork 2008).


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

    Interpolated precision at recall r is the highest precision at a rank with at least r R relevant documents, where r
    R is made a whole number as trec_eval does (`m_iprec_at_recall.c`): ⌊r R + 0.5⌋ since version 10.0, ⌊r R + 0.9⌋ up
    to version 9.0.8, each sum taken in doubles. For ties that mix relevant and other documents it has no closed form:
    it then refers to the order with relevant documents first, and `mixed` is true. Bpref is (1/R) Σ (1 - min(n, R) /
    min(N, R)) over the retrieved relevant documents, n being the number of judged nonrelevant documents above and N the
    number of all judged nonrelevant documents (Buckley & Voorhees 2004, as in trec_eval). Interpolation is the version
    of trec_eval whose whole numbers of hits interpolated precision asks for.
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
    """The contribution of the relevant documents of each tie to bpref times R.

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


# Expected reciprocal rank: a reader looks at documents in order and stops at the one that satisfies.


_CELLS = 1 << 20  # of one matrix of ties and ranks


def expected_reciprocal_rank(ties: Ties, grades: Grades, stop: Floats, count: int, counted: Floats) -> Floats:
    """Σ_rank 1 / rank · R_rank Π_{i < rank} (1 - R_i), R being the probability to stop at a document.

    Chapelle, Metzler, Zhang and Grinspan (2009) take R = (2^relevance - 1) / 2^(highest relevance). For a tie of g
    documents after N others, let E_j be the mean of the product of 1 - R over all sets of j of its documents. The
    document at place j + 1 of a random order stops a reader who came that far with the probability E_j - E_{j + 1}, so
    that the tie adds

        Π_above (1 - R)  Σ_{j=0…c-1} (E_j - E_{j+1}) / (N + j + 1)

    Args:
        ties: The ties of all rankings.
        grades: The judged documents of the ties.
        stop: Probability to stop at each of them, shape (G,), below 1.
        count: Number of rankings.
        counted: Ranks of every tie that count, c, shape (B,).

    Returns:
        Shape (count,).
    """
    number = len(ties.size)
    passing = np.ones(number)
    np.multiply.at(passing, grades.of, (1 - stop) ** grades.number)
    satisfied = grades.totals(stop, number)
    added = np.where(counted > 0, satisfied / (ties.before + 1), 0.0)  # of single documents
    tied = np.flatnonzero((ties.size > 1) & (counted > 0) & (satisfied > 0))
    # E_j is at most the mean of 1 - R to the power of j (Maclaurin's inequality): few readers come far
    mean = np.clip(satisfied[tied] / ties.size[tied], np.finfo(np.float64).tiny, 0.999)
    counted = counted.copy()
    counted[tied] = np.minimum(counted[tied], np.ceil(np.log(_NEGLIGIBLE) / np.log1p(-mean)))
    for chunk in _chunks(tied, counted):
        added[chunk] = _stops(ties, grades, stop, chunk, counted)
    return np.bincount(ties.ranking, _reached(ties, passing) * added, count).astype(np.float64)


def _reached(ties: Ties, passing: Floats) -> Floats:
    """Product of what the earlier ties of the same ranking let pass."""
    reached = np.ones(len(passing))
    index = np.arange(len(passing)) - np.searchsorted(ties.ranking, ties.ranking)
    order = np.argsort(index, kind="stable")
    ends = np.cumsum(np.bincount(index))
    for start, end in pairwise(ends.tolist()):
        later = order[start:end]
        reached[later] = reached[later - 1] * passing[later - 1]
    return reached


def _chunks(tied: NDArray[np.int64], counted: Floats) -> Iterator[NDArray[np.int64]]:
    """Ties with about as many ranks, together."""
    ordered = tied[np.argsort(counted[tied], kind="stable")]
    start = 0
    while start < len(ordered):
        size = max(1, int(_CELLS // (counted[ordered[start]] + 1)))
        while size > 1 and counted[ordered[min(start + size, len(ordered)) - 1]] * size > 2 * _CELLS:
            size //= 2
        yield ordered[start : start + size]
        start += size


def _stops(ties: Ties, grades: Grades, stop: Floats, chunk: NDArray[np.int64], counted: Floats) -> Floats:
    """Σ (E_j - E_{j+1}) / (N + j + 1) of some ties.

    E_j of m documents follows from that of one fewer: ((m - j) E_j + j (1 - R) E_{j - 1}) / m for the one with R.
    """
    row_of = np.full(len(ties.size), -1, dtype=np.int64)
    row_of[chunk] = np.arange(len(chunk))
    is_in = (row_of[grades.of] >= 0) & (stop > 0)
    number = grades.number[is_in].astype(np.int64)
    row = np.repeat(row_of[grades.of[is_in]], number)
    passing = np.repeat(1 - stop[is_in], number)
    order = np.argsort(row, kind="stable")
    row, passing = row[order], passing[order]
    index = np.arange(len(row)) - np.searchsorted(row, row)  # of the document among those of its tie
    n_stopping = np.bincount(row, minlength=len(chunk))
    by_index, ends = np.argsort(index, kind="stable"), np.cumsum(np.bincount(index))
    ranks = np.arange(int(counted[chunk].max()) + 1)
    means = (ranks <= (ties.size[chunk] - n_stopping)[:, None]).astype(np.float64)
    for step, (start, end) in enumerate(pairwise([0, *ends.tolist()])):
        rows, factor = row[by_index[start:end]], passing[by_index[start:end], None]
        size = (ties.size[chunk] - n_stopping)[rows, None] + step + 1
        before = means[rows]
        shifted = np.concatenate([np.zeros((len(rows), 1)), before[:, :-1]], axis=1)
        means[rows] = ((size - ranks) * before + ranks * factor * shifted) / size
    weights = np.where(ranks[:-1] < counted[chunk, None], 1 / (ties.before[chunk, None] + ranks[:-1] + 1), 0.0)
    return np.asarray(((means[:, :-1] - means[:, 1:]) * weights).sum(axis=1))


# Measures of rankings down to a cutoff, with relevance as a grade, for all rankings at once.
#
# Of documents with equal scores every order is equally likely, and a measure is its mean over these orders, in closed
# form (McSherry and Najork 2008); where ties are broken, every tie holds one document. Throughout, a tie holds g
# documents after N others, of which the first c = min(g, k - N), at least 0, count down to the cutoff k.


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

    The level is the least relevance of a relevant document, unless the measure says it.

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


def _judged(measure: RankingMeasure, rankings: GradedRankings) -> Floats:
    """Share of the first min(k, n) documents that are judged, n being the number of retrieved ones; 0 without any."""
    judged = rankings.per_tie(np.ones(len(rankings.grades.of)))
    first = rankings.per_ranking(judged * _counted(measure, rankings) / rankings.ties.size)
    return _over(first, np.minimum(measure.k or np.inf, rankings.n_retrieved))


def _ndcg(measure: RankingMeasure, rankings: GradedRankings) -> Floats:
    """DCG relative to the best order of the judged documents, each down to k (Järvelin and Kekäläinen 2002).

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


# Judged documents by their relevance.


@dataclass(frozen=True)
class Grades:
    """Judged documents of ties, or of the queries of rankings, by relevance; each array has shape (G,).

    Attributes:
        of: Number of the tie, or of the ranking, ascending; of a ranking, the highest relevance comes first.
        relevance: The relevance, at least 0.
        number: Number of documents that have it.
    """

    of: NDArray[np.int64]
    relevance: Floats
    number: Floats

    def totals(self, values: Floats, count: int) -> Floats:
        """Sum of values of the documents by tie or ranking, shape (count,)."""
        return np.bincount(self.of, values * self.number, count).astype(np.float64)
