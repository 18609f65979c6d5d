"""One-to-one matching of gold and predicted mentions of entities in documents, for very many documents at once.

Every rule defines which pairs may be matched. The matching is always one-to-one, so that true positives + misses equal
the gold mentions and true positives + false positives equal the predictions. Except with `file_order`, it is a largest
matching, it does not depend on the order of the rows (rows that are equal in every attribute are interchangeable), and
it prefers predictions with high scores: for every t, the matched predictions with a score ≥ t are the true positives at
threshold t (see `bipartite.maximum_matching`).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from ...base.records import dataclass
from .bipartite import UNMATCHED, WORD_BITS, Edges, first_come_matching, match_equal, maximum_matching, numbered, packed

if TYPE_CHECKING:
    import polars as pl
    from numpy.typing import NDArray


Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Assignment = Literal["maximum", "file_order"]
ShareOf = Literal["union", "gold"]


@dataclass(frozen=True)
class Mentions:
    """Mentions of all documents in flat arrays of shape (n,), in any order; fastest if sorted by document and start.

    Attributes:
        document: Number of the document, from 0.
        start: Index of the first character.
        end: Index one after the last character; not below `start`.
        code: Number, from 0, for what else must be equal (normalised text, type or both), numbered alike in gold and
            predicted mentions. All 0 if nothing else has to be equal.
        score: Confidence of predictions, finite; None if there is none.
    """

    document: Ints
    start: Ints
    end: Ints
    code: Ints
    score: Floats | None = None

    def __post_init__(self) -> None:
        if len({len(column) for column in (self.document, self.start, self.end, self.code)}) != 1:
            message = "document, start, end and code differ in length"
            raise ValueError(message)
        if (self.end < self.start).any():
            message = "a mention ends before it starts"
            raise ValueError(message)
        if self.score is not None and (len(self.score) != len(self) or not np.isfinite(self.score).all()):
            message = "score must be finite, one for each mention"
            raise ValueError(message)

    def __len__(self) -> int:
        return len(self.document)

    @property
    def scores(self) -> Floats:
        """The scores, or zeros if there are none."""
        return np.zeros(len(self)) if self.score is None else self.score

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Mentions:
        """The mentions in these rows."""
        score = None if self.score is None else self.score[rows]
        return Mentions(self.document[rows], self.start[rows], self.end[rows], self.code[rows], score)


def match_spans(gold: Mentions, predicted: Mentions) -> Ints:
    """Match mentions with the same document, start, end and code.

    Of g equal gold mentions and p equal predictions, min(g, p) are matched: the predictions with the highest scores.

    Returns:
        Shape (len(gold),): row of the matched prediction, or -1.
    """
    keys = [(gold.document, predicted.document), (gold.start, predicted.start)]
    keys += [(gold.end - gold.start, predicted.end - predicted.start), (gold.code, predicted.code)]
    return match_equal(keys, [] if predicted.score is None else [-predicted.score])


def match_texts(gold: Mentions, predicted: Mentions, *, assignment: Assignment = "maximum") -> Ints:
    """Match mentions with the same document and code, wherever they stand in the text.

    Of g equal gold mentions and p equal predictions, min(g, p) are matched: the predictions with the highest scores
    and, on ties, those with the span of a gold mention. Predictions with the span of a gold mention are matched with
    it, the others with the remaining gold mentions in text order.

    Args:
        gold: Gold mentions.
        predicted: Predictions.
        assignment: With `file_order`, every gold mention in turn takes the first prediction that is still free,
            wherever it stands; predictions with higher scores come first. The number of matches is the same.

    Returns:
        Shape (len(gold),): row of the matched prediction, or -1.
    """
    keys = [(gold.document, predicted.document), (gold.code, predicted.code)]
    if assignment == "file_order":
        return match_equal(keys, [] if predicted.score is None else [-predicted.score])
    # which predictions are matched at all: highest scores first, then those with the span of a gold mention
    matched = match_spans(gold, predicted)
    exact = np.zeros(len(predicted), dtype=np.bool_)
    exact[matched[matched != UNMATCHED]] = True
    best = match_equal(keys, [-predicted.scores, ~exact, predicted.start, predicted.end])

    # chosen predictions with the span of a gold mention stay with it; the others are paired in text order
    chosen = np.zeros(len(predicted), dtype=np.bool_)
    chosen[best[best != UNMATCHED]] = True
    matched[~np.append(chosen, False)[matched]] = UNMATCHED
    golds, predictions = _in_text(gold, matched == UNMATCHED), _in_text(predicted, chosen & ~exact)
    open_gold, open_predicted = gold.take(golds), predicted.take(predictions)
    paired = match_equal([(open_gold.document, open_predicted.document), (open_gold.code, open_predicted.code)], [])
    is_paired = paired != UNMATCHED
    matched[golds[is_paired]] = predictions[paired[is_paired]]
    return matched


def match_overlapping(
    gold: Mentions,
    predicted: Mentions,
    *,
    minimum_share: float = 0.0,
    share_of: ShareOf = "union",
    assignment: Assignment = "maximum",
) -> Ints:
    """Match mentions of the same document and code that have characters in common.

    Args:
        gold: Gold mentions.
        predicted: Predictions.
        minimum_share: A pair must have at least one common character, and common characters / length must be at least
            this share.
        share_of: What the length is: the characters in either mention (`union`, the Jaccard index), or those of the
            gold mention.
        assignment: `maximum`: a largest matching; of all largest ones, that with the highest scores, then the most
            identical spans, then the largest sum of Jaccard indices. `file_order`: every gold mention in turn takes the
            first prediction that is still free.

    Returns:
        Shape (len(gold),): row of the matched prediction, or -1.

    Memory is proportional to the number of overlapping pairs: n gold mentions and n predictions that all overlap have
    n² of them.
    """
    # all pairs that overlap, with the length of what they have in common and of their union
    orders = _canonical(gold), _canonical(predicted)
    golds, predictions = gold.take(orders[0]), predicted.take(orders[1])
    left, right = _overlapping(golds, predictions)
    common = np.minimum(golds.end[left], predictions.end[right]) - np.maximum(
        golds.start[left], predictions.start[right]
    )
    length = golds.end[left] - golds.start[left]
    union = length + predictions.end[right] - predictions.start[right] - common
    may_match = (common > 0) & (golds.code[left] == predictions.code[right])
    left, right, common, length, union = (values[may_match] for values in (left, right, common, length, union))
    shares_enough = common / (union if share_of == "union" else length) >= minimum_share
    edges = Edges(left, right, common / union).where(shares_enough)
    return _solve(edges, orders, predictions.scores, assignment)


def match_near(
    gold: Mentions, predicted: Mentions, *, max_centre_distance: float = 10.0, assignment: Assignment = "maximum"
) -> Ints:
    """Match mentions with the same document and code whose centres are close to each other (Gritta et al. 2018).

    Args:
        gold: Gold mentions.
        predicted: Predictions.
        max_centre_distance: The centres (start + end) / 2 must be less than this number of characters apart.
        assignment: As for `match_overlapping`, with the closeness of the centres in place of the Jaccard index;
            `file_order` is the rule of the published scripts.

    Returns:
        Shape (len(gold),): row of the matched prediction, or -1.
    """
    # Twice the centre is a whole number. All documents and codes are laid out on one line, too far apart to match.
    reach = math.ceil(2 * max_centre_distance) - 1
    group = numbered([(gold.document, predicted.document), (gold.code, predicted.code)])
    centre = np.concatenate([gold.start + gold.end, predicted.start + predicted.end])
    line = group * (np.ptp(centre) + reach + 1 if len(centre) else 1) + centre
    on_line = line[: len(gold)], line[len(gold) :]
    orders = np.lexsort((gold.start, on_line[0])), np.lexsort((-predicted.scores, predicted.start, on_line[1]))
    gold_line, predicted_line = on_line[0][orders[0]], on_line[1][orders[1]]
    first = np.searchsorted(predicted_line, gold_line - reach)
    left, right = _ranges(first, np.searchsorted(predicted_line, gold_line + reach, side="right"))
    golds, predictions = gold.take(orders[0]), predicted.take(orders[1])
    identical = (golds.start[left] == predictions.start[right]) & (golds.end[left] == predictions.end[right])
    closeness = (reach + 1 - np.abs(gold_line[left] - predicted_line[right])) / (reach + 2)
    edges = Edges(left, right, np.where(identical, 1.0, closeness))
    return _solve(edges, orders, predictions.scores, assignment)


def _in_text(mentions: Mentions, mask: NDArray[np.bool_]) -> Ints:
    """Rows selected by a mask, in text order; of rows with the same span, the highest scores come first."""
    rows = np.flatnonzero(mask)
    return rows[np.lexsort((-mentions.scores[rows], mentions.end[rows], mentions.start[rows]))]


def _canonical(mentions: Mentions) -> Ints:
    """Rows sorted by document, start, end, code and descending score."""
    empty = np.empty(0, dtype=np.int64)
    columns = [mentions.document, mentions.start, mentions.end, mentions.code]
    words = packed([(column, empty) for column in columns])
    score = [] if mentions.score is None else [-mentions.score]
    return np.lexsort((*score, *reversed(words)))


def _overlapping(gold: Mentions, predicted: Mentions) -> tuple[Ints, Ints]:
    """Pairs in which one mention starts inside the other, each pair once; both sides are in canonical order.

    All documents are laid out on one line. Either the prediction starts inside the gold mention, or the gold mention
    starts inside the prediction but after its start. Both are ranges of starts, however the mentions are nested.
    """
    columns = gold.start, gold.end, predicted.start, predicted.end
    low = min(column.min(initial=0) for column in columns)
    length = max(column.max(initial=0) for column in columns) - low + 1
    if max(mentions.document.max(initial=0) for mentions in (gold, predicted)) >= 2**WORD_BITS // (2 * int(length)):
        message = "the documents have too large numbers; number them from 0"
        raise ValueError(message)
    offsets = gold.document * length - low, predicted.document * length - low
    starts = gold.start + offsets[0], predicted.start + offsets[1]
    ends = gold.end + offsets[0], predicted.end + offsets[1]
    left, right = _ranges(np.searchsorted(starts[1], starts[0]), np.searchsorted(starts[1], ends[0]))
    later, earlier = _ranges(np.searchsorted(starts[0], starts[1], side="right"), np.searchsorted(starts[0], ends[1]))
    return np.concatenate([left, earlier]), np.concatenate([right, later])


def _ranges(starts: Ints, stops: Ints) -> tuple[Ints, Ints]:
    """Every index i paired with every integer from starts[i] up to, but not including, stops[i]."""
    counts = np.maximum(stops - starts, 0)
    index = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return index, np.arange(len(index)) + np.repeat(starts - before, counts)


def _solve(edges: Edges, orders: tuple[Ints, Ints], score: Floats, assignment: Assignment) -> Ints:
    """Matching in terms of the original rows, from edges between sorted rows."""
    if assignment == "file_order":
        rows = Edges(orders[0][edges.gold], orders[1][edges.predicted], edges.closeness)
        return first_come_matching(rows, len(orders[0]), len(orders[1]))
    matching = maximum_matching(edges, len(orders[0]), score)
    matched = np.full(len(matching), UNMATCHED, dtype=np.int64)
    hit = matching != UNMATCHED
    matched[orders[0][hit]] = orders[1][matching[hit]]
    return matched


# What makes the texts of two mentions equal.


def normalised_text(column: pl.Expr) -> pl.Expr:
    """Text without differences in case, Unicode composition and white space; NULL stays NULL.

    Case is folded by converting to lower, upper and again lower case, which also unifies ß, ẞ and ss, and ς and σ. Runs
    of white space become one blank, and none is left at the ends. Letters and their accents are composed (NFC). The
    result differs from Unicode case folding in one letter: the dotless ı becomes i.
    """
    lower = column.str.normalize("NFC").str.to_lowercase()
    case_folded = lower.str.to_uppercase().str.to_lowercase().str.normalize("NFC")
    return case_folded.str.replace_all(r"\s+", " ").str.strip_chars()


# Averages of precision, recall and F1 over documents, from counts per document.
#
# `micro`          ratios of the summed counts; every mention counts the same
# `macro`          means of the ratios of the documents for which a ratio is defined; the number of others is reported
# `semeval`        the macro scores of the scorer of SemEval-2019 Task 12 (Weissenbacher et al. 2019): means over all
#                  documents, where precision is 1 without a prediction, recall is 1 without a gold mention, each by
#                  itself, and F1 is the harmonic mean of the averaged precision and recall, 0 if both are 0
# `semeval_micro`  the micro scores of the same scorer: ratios of the summed counts, by the same two rules


Average = Literal["micro", "macro", "semeval", "semeval_micro"]
POOLED_AVERAGES: frozenset[Average] = frozenset({"micro", "semeval_micro"})  # computed from summed counts only
