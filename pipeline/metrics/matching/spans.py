"""One-to-one matching of gold and predicted mentions of entities in documents, for very many documents at once.

Every rule says which pairs may be matched; the matching is always one-to-one, so true positives + misses are the gold
mentions and true positives + false positives the predictions. Except for the order of file it is a largest matching,
it does not depend on the order of the rows (rows equal in every attribute are interchangeable), and it takes
predictions with a high score first: the matched predictions with a score ≥ t are then the true positives at threshold
t, for every t (see `bipartite_matching.maximum_matching`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np

from pipeline.metrics.matching.bipartite import UNMATCHED, Edges, first_come_matching, maximum_matching
from pipeline.metrics.matching.equal import WORD_BITS, match_equal, numbered, packed

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Assignment = Literal["maximum", "file_order"]
ShareOf = Literal["union", "gold"]


@dataclass(frozen=True)
class Mentions:
    """Mentions of all documents in flat arrays of shape (n,), in any order; fastest when sorted by document and start.

    Attributes:
        document: Number of the document, from 0.
        start: First character.
        end: Character after the last; not before `start`.
        code: Number that stands for what else must be equal (normalised text, type or both), from 0; the same for gold
            and predicted mentions. All 0 where nothing else matters.
        score: Confidence of predictions, finite; None: without.
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
        """Scores; zeros where there are none."""
        return np.zeros(len(self)) if self.score is None else self.score

    def take(self, rows: NDArray[np.int64] | NDArray[np.bool_]) -> Mentions:
        """The mentions in these rows."""
        score = None if self.score is None else self.score[rows]
        return Mentions(self.document[rows], self.start[rows], self.end[rows], self.code[rows], score)


def match_spans(gold: Mentions, predicted: Mentions) -> Ints:
    """Matching of mentions with the same document, start, end and code.

    Of g equal gold mentions and p equal predictions min(g, p) are matched, those with the highest scores.

    Returns:
        Shape (len(gold),): row of the matched prediction, or -1.
    """
    keys = [(gold.document, predicted.document), (gold.start, predicted.start)]
    keys += [(gold.end - gold.start, predicted.end - predicted.start), (gold.code, predicted.code)]
    return match_equal(keys, [] if predicted.score is None else [-predicted.score])


def match_texts(gold: Mentions, predicted: Mentions, *, assignment: Assignment = "maximum") -> Ints:
    """Matching of mentions with the same document and code, wherever they stand.

    Of g equal gold mentions and p equal predictions min(g, p) are matched: the predictions with the highest scores,
    among these the ones at the place of a gold mention. Predictions at the place of a gold mention go to it, the others
    to the remaining gold mentions in the order of the text.

    Args:
        gold: Gold mentions.
        predicted: Predictions.
        assignment: `file_order`: every gold mention in turn takes the first prediction still free, wherever it stands;
            of scored predictions the highest come first. As many are matched.

    Returns:
        Shape (len(gold),): row of the matched prediction, or -1.
    """
    keys = [(gold.document, predicted.document), (gold.code, predicted.code)]
    if assignment == "file_order":
        return match_equal(keys, [] if predicted.score is None else [-predicted.score])
    matched = match_spans(gold, predicted)
    exact = np.zeros(len(predicted), dtype=np.bool_)
    exact[matched[matched != UNMATCHED]] = True
    best = match_equal(keys, [-predicted.scores, ~exact, predicted.start, predicted.end])

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
    """Matching of mentions of the same document and code that have characters in common.

    Args:
        gold: Gold mentions.
        predicted: Predictions.
        minimum_share: The pair needs at least one common character, and common characters / length ≥ this.
        share_of: The length: characters in either mention (`union`, the Jaccard index), or of the gold mention.
        assignment: `maximum`: a largest matching; among the largest, highest scores, then most identical spans, then
            largest sum of Jaccard indices. `file_order`: every gold mention in turn takes the first prediction still
            free.

    Returns:
        Shape (len(gold),): row of the matched prediction, or -1.

    Memory is proportional to the pairs that overlap: n mentions that all overlap each other have n² of them.
    """
    orders = _canonical(gold), _canonical(predicted)
    golds, predictions = gold.take(orders[0]), predicted.take(orders[1])
    left, right = _overlapping(golds, predictions)
    common = np.minimum(golds.end[left], predictions.end[right]) - np.maximum(
        golds.start[left], predictions.start[right]
    )
    length = golds.end[left] - golds.start[left]
    union = length + predictions.end[right] - predictions.start[right] - common
    kept = (common > 0) & (golds.code[left] == predictions.code[right])
    left, right, common, length, union = (each[kept] for each in (left, right, common, length, union))
    kept = common / (union if share_of == "union" else length) >= minimum_share
    edges = Edges(left, right, common / union).where(kept)
    return _solve(edges, orders, predictions.scores, assignment)


def match_near(
    gold: Mentions,
    predicted: Mentions,
    *,
    max_centre_distance: float = 10.0,
    assignment: Assignment = "maximum",
) -> Ints:
    """Matching of mentions with the same document and code whose centres are close (Gritta et al. 2018).

    Args:
        gold: Gold mentions.
        predicted: Predictions.
        max_centre_distance: The centres (start + end) / 2 are less than this number of characters apart.
        assignment: As for `match_overlapping`, with closer centres in place of the Jaccard index; `file_order` is that
            of the published scripts.

    Returns:
        Shape (len(gold),): row of the matched prediction, or -1.
    """
    reach = math.ceil(2 * max_centre_distance) - 1
    group = numbered([(gold.document, predicted.document), (gold.code, predicted.code)])
    centre = np.concatenate([gold.start + gold.end, predicted.start + predicted.end])
    line = group * (np.ptp(centre) + reach + 1 if len(centre) else 1) + centre
    on_line = line[: len(gold)], line[len(gold) :]
    orders = np.lexsort((gold.start, on_line[0])), np.lexsort((-predicted.scores, predicted.start, on_line[1]))
    gold_line, predicted_line = on_line[0][orders[0]], on_line[1][orders[1]]
    left, right = _ranges(
        np.searchsorted(predicted_line, gold_line - reach),
        np.searchsorted(predicted_line, gold_line + reach, side="right"),
    )
    golds, predictions = gold.take(orders[0]), predicted.take(orders[1])
    identical = (golds.start[left] == predictions.start[right]) & (golds.end[left] == predictions.end[right])
    closeness = (reach + 1 - np.abs(gold_line[left] - predicted_line[right])) / (reach + 2)
    edges = Edges(left, right, np.where(identical, 1.0, closeness))
    return _solve(edges, orders, predictions.scores, assignment)


def document_counts(gold: Mentions, predicted: Mentions, matched: Ints, n_documents: int) -> tuple[Ints, Ints, Ints]:
    """True positives, false positives and misses of every document, each of shape (n_documents,)."""
    true = np.bincount(gold.document[matched != UNMATCHED], minlength=n_documents)
    n_gold = np.bincount(gold.document, minlength=n_documents)
    n_predicted = np.bincount(predicted.document, minlength=n_documents)
    return true, n_predicted - true, n_gold - true


def _in_text(mentions: Mentions, mask: NDArray[np.bool_]) -> Ints:
    """Rows of a mask in the order of the text; of those with one span the highest scores first."""
    rows = np.flatnonzero(mask)
    return rows[np.lexsort((-mentions.scores[rows], mentions.end[rows], mentions.start[rows]))]


def _canonical(mentions: Mentions) -> Ints:
    """Rows in the order of document, start, end, code and descending score."""
    empty = np.empty(0, dtype=np.int64)
    columns = [mentions.document, mentions.start, mentions.end, mentions.code]
    words = packed([(column, empty) for column in columns])
    score = [] if mentions.score is None else [-mentions.score]
    return np.lexsort((*score, *reversed(words)))


def _overlapping(gold: Mentions, predicted: Mentions) -> tuple[Ints, Ints]:
    """Pairs in which one mention starts inside the other, each once; both sides in canonical order.

    All documents are laid out on one line. Either the prediction starts inside the gold mention, or the gold mention
    starts inside the prediction but after its start: both are ranges of starts, however the mentions are nested.
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
    """Every index i with every integer from starts[i] to before stops[i]."""
    counts = np.maximum(stops - starts, 0)
    index = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return index, np.arange(len(index)) + np.repeat(starts - before, counts)


def _solve(edges: Edges, orders: tuple[Ints, Ints], score: Floats, assignment: Assignment) -> Ints:
    """Matching of rows from the edges of rows that have been put in order."""
    if assignment == "file_order":
        rows = Edges(orders[0][edges.gold], orders[1][edges.predicted], edges.closeness)
        return first_come_matching(rows, len(orders[0]), len(orders[1]))
    matching = maximum_matching(edges, len(orders[0]), score)
    matched = np.full(len(matching), UNMATCHED, dtype=np.int64)
    hit = matching != UNMATCHED
    matched[orders[0][hit]] = orders[1][matching[hit]]
    return matched
