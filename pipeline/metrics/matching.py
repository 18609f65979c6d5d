"""One-to-one matching of predictions with the truth: of points, of mentions, of rows with equal keys."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal, TypeAlias

import numpy as np
import polars as pl

from ..base.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray


# Maximum one-to-one matching of items with slots, in which better items go first.
#
# Every item may take one slot from a range of slots, and both ends of the ranges are non-decreasing over the items.
# This is the case for points on a line with a margin: the items are predictions, the slots are true points, both
# sorted.
#
# A set of items can be matched completely if no run of slots is wanted by more items than it has slots (Hall 1935).
# Such sets are the independent sets of a transversal matroid (Edmonds & Fulkerson 1965). Accepting the items by
# descending score, each one if it still fits, therefore gives a maximum matching of all items at or above every score
# at once. Accepting an item x contracts the matroid by x, which takes just a subtraction here: let c(s) be the number
# of accepted items whose range starts before slot s, and C(s) the number of those whose range ends at or before s; the
# remaining items then have the ranges
#
#     first' = max over s ≤ first of (s - c(s))        last' = min over s ≥ last of (s - C(s))
#
# (for one x: `first -= first > first_x` and `last -= last ≥ last_x`), and an item fits if and only if first ≤ last.


Bools: TypeAlias = "NDArray[np.bool_]"
Ints: TypeAlias = "NDArray[np.int64]"

_WIDEST_SIDE_BY_SIDE = 256
_FEWEST_TO_DIVIDE = 64
_ELEMENTS_AT_A_TIME = 1 << 18


def match_greedily(first: Ints, stop: Ints, score: NDArray[np.float64]) -> Bools:
    """Items of the maximum matching that takes higher scores first.

    For every v, the number of matched items with a score ≥ v is the size of the largest matching of all items with a
    score ≥ v. Items with equal scores enter together: how many of them are matched is determined; which ones is
    arbitrary, and the earlier ones are chosen.

    Items fall into components that share no slot, and components of equal size are processed side by side. Up to 256
    items, a component of w items costs O(w²) additions. A larger component is split into two halves by score, and the
    lower half is contracted by the matched items of the upper half: O(w log² w).

    Args:
        first: First slot of every item, shape (N,), non-decreasing.
        stop: One after the last slot of every item, non-decreasing; an item with stop ≤ first has no slot.
        score: Finite scores of the items; higher is better.

    Returns:
        Whether each item is matched, shape (N,).
    """
    matched = np.zeros(len(first), dtype=np.bool_)
    items = np.flatnonzero(first < stop)
    starts = component_starts(first[items], stop[items])
    sizes = np.diff(starts, append=len(items))
    matched[items[starts[sizes == 1]]] = True
    for rows in _batches(starts, sizes):
        batch = items[rows]
        order = np.argsort(-score[batch], axis=1, kind="stable")
        batch = np.take_along_axis(batch, order, axis=1)
        base = first[items[rows[:, :1]]]
        matched[batch] = _side_by_side(first[batch] - base, stop[batch] - base - 1)
    for component in np.flatnonzero(sizes > _WIDEST_SIDE_BY_SIDE):
        members = items[starts[component] : starts[component] + sizes[component]]
        base = first[members[0]]
        members = members[np.argsort(-score[members], kind="stable")]
        matched[members] = _by_halves(first[members] - base, stop[members] - base - 1)
    return matched


def component_starts(first: Ints, stop: Ints) -> Ints:
    """Index of the first item in every run of items that are linked by shared slots.

    First slots, and those one after the last, which are above them, are non-decreasing.
    """
    if not len(first):
        return np.empty(0, dtype=np.int64)
    return np.flatnonzero(np.concatenate([[True], first[1:] >= stop[:-1]]))


def _batches(starts: Ints, sizes: Ints) -> Iterator[Ints]:
    """Components of one size, as rows of item numbers, in batches of a limited number of elements."""
    for size in np.unique(sizes[(sizes > 1) & (sizes <= _WIDEST_SIDE_BY_SIDE)]):
        chosen = starts[sizes == size]
        step = max(1, _ELEMENTS_AT_A_TIME // int(size))
        for at in range(0, len(chosen), step):
            yield chosen[at : at + step, np.newaxis] + np.arange(size)


def _side_by_side(first: Ints, last: Ints) -> Bools:
    """Matched items of many components, shape (components, items), items by descending score."""
    kind = np.int16 if last.max() < np.iinfo(np.int16).max else np.int32
    lowest, highest = (np.ascontiguousarray(slots.T, dtype=kind) for slots in (first, last))
    matched = np.empty(lowest.shape, dtype=np.bool_)
    out_of_reach = np.iinfo(kind).max
    for rank in range(len(lowest)):
        fits = np.less_equal(lowest[rank], highest[rank], out=matched[rank])
        taken_first = np.where(fits, lowest[rank], out_of_reach)
        taken_last = np.where(fits, highest[rank], out_of_reach)
        # contract the ranges of all later items by the accepted one: first -= first > x's, last -= last ≥ x's
        later_lowest, later_highest = lowest[rank + 1 :], highest[rank + 1 :]
        np.subtract(later_lowest, later_lowest > taken_first, out=later_lowest)
        np.subtract(later_highest, later_highest >= taken_last, out=later_highest)
    return matched.T


def _by_halves(first: Ints, last: Ints) -> Bools:
    """Matched items of one component, by descending score."""
    if len(first) <= _FEWEST_TO_DIVIDE:
        return _side_by_side(first[np.newaxis], last[np.newaxis])[0] if len(first) else np.empty(0, dtype=np.bool_)
    half = len(first) // 2
    matched = np.zeros(len(first), dtype=np.bool_)
    matched[:half] = _by_halves(first[:half], last[:half])
    lowest = _contracted_first(first[half:], np.sort(first[:half][matched[:half]]))
    highest = _contracted_last(last[half:], np.sort(last[:half][matched[:half]]))
    fits = half + np.flatnonzero(lowest <= highest)
    matched[fits] = _by_halves(lowest[fits - half], highest[fits - half])
    return matched


def _contracted_first(first: Ints, taken: Ints) -> Ints:
    """The maximum over s ≤ first of s minus the number of `taken` (ascending) below s."""
    floor = np.maximum.accumulate(taken - np.arange(len(taken)))
    below = np.searchsorted(taken, first, side="left")
    return np.asarray(np.maximum(first - below, np.append(floor, np.iinfo(np.int64).min)[below - 1]))


def _contracted_last(last: Ints, taken: Ints) -> Ints:
    """The minimum over s ≥ last of s minus the number of `taken` (ascending) up to s."""
    ceiling = np.minimum.accumulate((taken - np.arange(1, len(taken) + 1))[::-1])[::-1]
    until = np.searchsorted(taken, last, side="right")
    return np.asarray(np.minimum(last - until, np.append(ceiling, np.iinfo(np.int64).max)[until]))


# One-to-one matchings in very many, mostly tiny, separate bipartite graphs at once.
#
# A matching uses each gold and each predicted item at most once. Items of the two sides that may be matched are
# joined by an edge, and the connected components are independent of each other. Most components are a single edge or
# a star, which are solved for all components together. The others are minimum-cost assignments, solved by the
# shortest augmenting paths of Jonker and Volgenant (1987) as implemented in scipy.


Floats: TypeAlias = "NDArray[np.float64]"

UNMATCHED = -1

# The assignment clears an array of all columns for every row, so its cost is quadratic in the rows of one call.
_ROWS_PER_CALL = 256
_CLOSENESS_STEPS = 1000
_LARGEST_VALUE = 2**50  # sums of whole values up to here are exact in doubles


@dataclass(frozen=True)
class Edges:
    """Pairs that may be matched, each pair once.

    Attributes:
        gold: Index of the gold item, shape (E,).
        predicted: Index of the predicted item, shape (E,).
        closeness: How well the pair agrees, from 0 to 1, where 1 means that the two are identical. It only decides
            between matchings of the same size.
    """

    gold: Ints
    predicted: Ints
    closeness: Floats

    def where(self, mask: NDArray[np.bool_]) -> Edges:
        """The edges that a mask of shape (E,) selects."""
        return Edges(self.gold[mask], self.predicted[mask], self.closeness[mask])


def maximum_matching(edges: Edges, n_gold: int, score: Floats) -> Ints:
    """A largest matching; of all largest ones, that with the highest scores and then with the closest pairs.

    For every threshold t at once, the number of matched predictions with a score ≥ t equals the size of a largest
    matching of the predictions with a score ≥ t. The reason is that the sets of predictions that can be matched are the
    independent sets of a transversal matroid (Edmonds and Fulkerson 1965), so that the set that is best for all
    predictions is best at every threshold (Rado 1957). Among the matchings with this property, the number of identical
    pairs is maximised, and then the sum of closeness, in steps of 0.001.

    Args:
        edges: Pairs that may be matched.
        n_gold: Number of gold items, G.
        score: Finite score of every predicted item, shape (P,); all equal if there are no scores.

    Returns:
        Shape (G,): index of the matched prediction, or -1. Where the preferences above leave a choice, the result
        depends on the order of the items.
    """
    # pairs that share neither item with another pair
    matched = np.full(n_gold, UNMATCHED, dtype=np.int64)
    degree = np.bincount(edges.gold, minlength=n_gold)
    spread = np.bincount(edges.predicted, minlength=len(score))
    shared = spread[edges.predicted] > 1
    several = degree[edges.gold] > 1
    alone = ~shared & ~several
    matched[edges.gold[alone]] = edges.predicted[alone]

    # components in which all edges share one item, and then all others
    centred_on_gold = ~_any_edge(edges.gold, shared, n_gold)[edges.gold]
    star = centred_on_gold | ~_any_edge(edges.predicted, several, len(score))[edges.predicted]
    _match_stars(edges.where(star & ~alone), centred_on_gold[star & ~alone], score, matched)
    _match_components(edges.where(~star), score, matched)
    return matched


def first_come_matching(edges: Edges, n_gold: int, n_predicted: int) -> Ints:
    """The matching of a loop over the gold items that gives each the first prediction that is still free.

    It need not be a largest matching. In every round, all items without an earlier competitor are matched at once; the
    number of rounds is therefore the length of the longest chain of competitors.

    Returns:
        Shape (n_gold,): index of the matched prediction, or -1.
    """
    matched = np.full(n_gold, UNMATCHED, dtype=np.int64)
    order = np.lexsort((edges.predicted, edges.gold))
    gold, predicted = edges.gold[order], edges.predicted[order]
    used = np.zeros(n_predicted, dtype=np.bool_)
    while len(gold):
        # edges that come first among those of their gold item and among those of their prediction
        rank = np.arange(len(gold))
        first_of_gold = np.empty(n_gold, dtype=np.int64)
        first_of_predicted = np.empty(n_predicted, dtype=np.int64)
        first_of_gold[gold[::-1]] = rank[::-1]
        first_of_predicted[predicted[::-1]] = rank[::-1]
        taken = (first_of_gold[gold] == rank) & (first_of_predicted[predicted] == rank)
        matched[gold[taken]] = predicted[taken]
        used[predicted[taken]] = True
        # edges whose items are both still unmatched
        free = (matched[gold] == UNMATCHED) & ~used[predicted]
        gold, predicted = gold[free], predicted[free]
    return matched


def _any_edge(items: Ints, marked: NDArray[np.bool_], size: int) -> NDArray[np.bool_]:
    """Whether any edge of each item is marked."""
    has_marked = np.zeros(size, dtype=np.bool_)
    has_marked[items[marked]] = True
    return has_marked


def _match_stars(edges: Edges, centred_on_gold: NDArray[np.bool_], score: Floats, matched: Ints) -> None:
    """Match the best edge of every component in which all edges share one item."""
    centre = np.where(centred_on_gold, edges.gold, len(matched) + edges.predicted)
    other = np.where(centred_on_gold, edges.predicted, edges.gold)
    order = np.lexsort((other, -edges.closeness, -score[edges.predicted], centre))
    best = order[_starts(centre[order])]
    matched[edges.gold[best]] = edges.predicted[best]


def _starts(values: Ints) -> NDArray[np.bool_]:
    """Whether each value differs from the one before it."""
    return np.concatenate([np.ones(min(len(values), 1), dtype=np.bool_), values[1:] != values[:-1]])


def _match_components(edges: Edges, score: Floats, matched: Ints) -> None:
    """Match components that are not stars in the best way, a few hundred rows at a time."""
    if not len(edges.gold):
        return
    # number the items that occur, and find their components
    golds, gold = np.unique(edges.gold, return_inverse=True)
    predictions, predicted = np.unique(edges.predicted, return_inverse=True)
    of_gold, of_predicted = _components(gold, predicted, len(golds), len(predictions))

    rows, columns = np.argsort(of_gold, kind="stable"), np.argsort(of_predicted, kind="stable")
    value = _values(edges, of_gold, of_predicted, score[predictions], predicted, gold)
    row, column = _positions(rows)[gold], _positions(columns)[predicted]

    # whole components are put together in calls of about 256 rows, and edges sorted by call
    sizes = np.bincount(of_gold)
    call_of_component = (np.cumsum(sizes) - sizes) // _ROWS_PER_CALL
    order = np.lexsort((column, row))
    row, column, value = row[order], column[order], value[order]
    calls = np.unique(call_of_component)
    row_limits = np.append(np.searchsorted(call_of_component[of_gold[rows]], calls), len(rows))
    column_limits = np.append(np.searchsorted(call_of_component[of_predicted[columns]], calls), len(columns))
    edge_limits = np.searchsorted(row, row_limits)
    # rows, columns and edges of each call are contiguous; they are numbered from 0 within the call
    for call in range(len(calls)):
        edges_of_call = slice(edge_limits[call], edge_limits[call + 1])
        first_row, first_column = row_limits[call], column_limits[call]
        shape = row_limits[call + 1] - first_row, column_limits[call + 1] - first_column
        in_call = row[edges_of_call] - first_row, column[edges_of_call] - first_column
        chosen = _assign(*in_call, value[edges_of_call], shape)
        matched_rows = np.flatnonzero(chosen != UNMATCHED)
        won = columns[chosen[matched_rows] + first_column]
        matched[golds[rows[matched_rows + first_row]]] = predictions[won]


def _components(gold: Ints, predicted: Ints, n_gold: int, n_predicted: int) -> tuple[Ints, Ints]:
    """Component number of every gold and every predicted item."""
    from scipy.sparse import coo_array  # noqa: PLC0415
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    size = n_gold + n_predicted
    ones = np.ones(len(gold), dtype=np.int8)
    graph = coo_array((ones, (gold, n_gold + predicted)), shape=(size, size)).tocsr()
    _, labels = connected_components(graph, directed=False)
    labels = labels.astype(np.int64)
    return labels[:n_gold], labels[n_gold:]


def _positions(order: Ints) -> Ints:
    """Inverse of a permutation: the position of every item in the order."""
    positions = np.empty_like(order)
    positions[order] = np.arange(len(order))
    return positions


def _values(edges: Edges, of_gold: Ints, of_predicted: Ints, score: Floats, predicted: Ints, gold: Ints) -> Floats:
    """Value of every edge: whole numbers that rank score before identity before closeness in any sum over a matching.

    A matching has at most n edges, where n is the number of gold items of the component. One level of the score is
    worth s (n + 1)², which outweighs n identical pairs, worth s (n + 1) each; and one identical pair outweighs n pairs
    with a closeness below s.
    """
    # level of every score: its rank among the distinct scores of the component, from 1
    order = np.lexsort((score, of_predicted))
    component, ordered = of_predicted[order], score[order]
    new = _starts(component)
    higher = np.cumsum(new | np.append(True, ordered[1:] != ordered[:-1]))
    level = np.empty(len(score), dtype=np.int64)
    level[order] = higher - np.repeat(higher[new], np.diff(np.append(np.flatnonzero(new), len(order)))) + 1

    # values in steps s of closeness, as many as exact sums allow
    more = np.bincount(of_gold)[of_gold[gold]] + 1
    levels = np.zeros(of_predicted.max() + 1, dtype=np.int64)
    np.maximum.at(levels, of_predicted, level)
    scale = np.clip(_LARGEST_VALUE // (levels[of_gold[gold]] * more**2), 1, _CLOSENESS_STEPS)
    preference = np.where(edges.closeness == 1, scale * more, np.floor(edges.closeness * scale).astype(np.int64))
    return np.asarray(level[predicted] * scale * more**2 + preference, dtype=np.float64)


def _assign(row: Ints, column: Ints, value: Floats, shape: tuple[int, int]) -> Ints:
    """Columns of the matching with the largest sum of values, -1 for rows without a match; edges are sorted by row."""
    from scipy.sparse import coo_array  # noqa: PLC0415
    from scipy.sparse.csgraph import min_weight_full_bipartite_matching  # noqa: PLC0415

    n_rows, n_columns = shape
    # Every row has an extra column with value 0, so that a matching of all rows exists. A stored cost of 0 would not be
    # an edge, hence the + 1.
    cost_of_none = value.max() + 1
    row_numbers = np.arange(n_rows)
    costs = np.concatenate([cost_of_none - value, np.full(n_rows, cost_of_none)])
    indices = np.concatenate([row, row_numbers]), np.concatenate([column, n_columns + row_numbers])
    narrow = tuple(index.astype(np.int32) for index in indices)  # SciPy before 1.14 refuses wider indices here
    graph = coo_array((costs, narrow), shape=(n_rows, n_columns + n_rows)).tocsr()
    rows, columns = min_weight_full_bipartite_matching(graph)
    chosen = np.empty(n_rows, dtype=np.int64)
    chosen[rows] = columns
    chosen[chosen >= n_columns] = UNMATCHED
    return chosen


# One-to-one matching of rows that are equal in all columns of a key, by sorting alone.
#
# Of g gold rows and p predictions with the same key, min(g, p) are matched: the i-th gold row with the i-th
# prediction. Keys are packed into one integer wherever they fit.


WORD_BITS = 63


def match_equal(keys: Sequence[tuple[Ints, Ints]], preference: Sequence[NDArray[np.generic]]) -> Ints:
    """Match the i-th gold row of every key with the i-th prediction of that key.

    Args:
        keys: Columns that must be equal; each is a pair of the values of the gold rows and of the predictions.
        preference: Columns of the predictions that determine the order in which they are matched: lowest values first,
            the first column before the second. Ties are matched in row order.

    Returns:
        Shape (gold rows,): row of the matched prediction, or -1.
    """
    gold, predicted = _one_number(keys)
    golds, predictions = rising_order(gold), _by_preference(predicted, preference)
    wanted, offered = gold[golds], predicted[predictions]
    position = np.searchsorted(offered, wanted)
    if (repeated := wanted[1:] == wanted[:-1]).any():
        position += _position_in_run(repeated)
    # of the gold rows whose position is within the run of equal predictions, the two are matched
    matched = np.full(len(gold), UNMATCHED, dtype=np.int64)
    if not len(offered):
        return matched
    inside = np.minimum(position, len(offered) - 1)
    hits = np.flatnonzero((offered[inside] == wanted) & (inside == position))
    matched[golds[hits]] = predictions[position[hits]]
    return matched


def _one_number(keys: Sequence[tuple[Ints, Ints]]) -> tuple[Ints, Ints]:
    """One number for each gold row and each prediction, equal if and only if all columns are equal."""
    words = packed(keys)
    number = words[0] if len(words) == 1 else numbered(keys)
    size = len(keys[0][0])
    return number[:size], number[size:]


def _by_preference(key: Ints, preference: Sequence[NDArray[np.generic]]) -> Ints:
    """Rows sorted by key; only rows with a repeated key have to be sorted by preference as well."""
    order = rising_order(key)
    if not preference:
        return order
    ordered = key[order]
    again = np.flatnonzero(ordered[1:] == ordered[:-1])
    repeated = np.union1d(again, again + 1)
    rows = order[repeated]
    order[repeated] = rows[np.lexsort((*(column[rows] for column in reversed(preference)), key[rows]))]
    return order


def _position_in_run(repeated: NDArray[np.bool_]) -> Ints:
    """Number of equal rows that precede each row.

    Args:
        repeated: Whether each row from the second on equals the one before it.
    """
    position = np.arange(len(repeated) + 1)
    return position - np.maximum.accumulate(np.where(np.append(False, repeated), 0, position))


def packed(columns: Sequence[tuple[Ints, Ints]]) -> list[Ints]:
    """As few words of 63 bits as possible that sort and compare like the columns; gold rows precede predicted rows.

    The last column takes the lowest bits.
    """
    words: list[Ints] = []
    free_bits = 0
    for sides in columns:
        low, high = min(side.min(initial=0) for side in sides), max(side.max(initial=0) for side in sides)
        bits = max(int(high - low).bit_length(), 1)
        if bits > free_bits:
            words.append(np.zeros(sum(map(len, sides)), dtype=np.int64))
            free_bits = WORD_BITS
        else:
            words[-1] <<= bits
        # both are views: adding to them writes the lowest bits of the word
        gold, predicted = np.split(words[-1], [len(sides[0])])
        gold += sides[0] - low
        predicted += sides[1] - low
        free_bits -= bits
    return words


def numbered(columns: Sequence[tuple[Ints, Ints]]) -> Ints:
    """Number of the combination of values in every row; gold rows precede predicted rows."""
    words = packed(columns)
    number = words[0]
    for word in words[1:]:
        number, dense = (np.unique(values, return_inverse=True)[1] for values in (number, word))
        number = number * (dense.max(initial=0) + 1) + dense
    return np.asarray(np.unique(number, return_inverse=True)[1], dtype=np.int64)


def rising_order(numbers: Ints) -> Ints:
    """Row indices that sort the numbers in ascending order, stably: the result of `numpy.argsort` with "stable".

    Polars sorts on all cores, and recognises runs that are already in order.
    """
    rows = pl.DataFrame({"number": numbers}).select(pl.arg_sort_by("number", maintain_order=True))
    return rows.to_series().to_numpy().astype(np.int64)


# One-to-one matching of gold and predicted mentions of entities in documents, for very many documents at once.
#
# Every rule defines which pairs may be matched. The matching is always one-to-one, so that true positives + misses
# equal the gold mentions and true positives + false positives equal the predictions. Except with `file_order`, it is a
# largest matching, it does not depend on the order of the rows (rows that are equal in every attribute are
# interchangeable), and it prefers predictions with high scores: for every t, the matched predictions with a score ≥ t
# are the true positives at threshold t (see `maximum_matching`).


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
