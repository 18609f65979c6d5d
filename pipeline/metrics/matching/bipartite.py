"""One-to-one matchings in very many, mostly tiny, separate bipartite graphs at once.

A matching uses each gold and each predicted item at most once. Items of the two sides that may be matched are joined by
an edge, and the connected components are independent of each other. Most components are a single edge or a star, which
are solved for all components together. The others are minimum-cost assignments, solved by the shortest augmenting paths
of Jonker and Volgenant (1987) as implemented in scipy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"
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
