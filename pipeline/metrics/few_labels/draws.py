"""A stratified sample, of rows or of whole documents: which to label, what is known of them, and what follows.

Of rows follow totals at falling cuts, and draws of them; the numbers of a curve are made of these in `curve`. Of judged
documents follow precision, recall and F1.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...base.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..matching import Average

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Values: TypeAlias = "dict[tuple[Average, str], Floats]"


@dataclass(frozen=True)
class Population:
    """Sizes of strata, in the order of their scores within a group, so that neighbours are alike.

    Attributes:
        cuts: Shape (K,): falling scores. A row is retrieved by a cut if its score is at least as high. For average
            precision they include the scores of all labelled rows.
        retrieved: Shape (H, K): rows of each stratum that each cut retrieves, or their weights.
        size: Shape (H,): rows of each stratum, or their weights, those below all cuts included.
        rows: Shape (H,): numbers of rows, where the others are weights; else None.
        proxy: Shape (H, K): sums of the proxy over the rows that each cut retrieves, or None.
        proxy_size: Shape (H,): sums of the proxy over all rows of each stratum, or None.
    """

    cuts: Floats
    retrieved: Floats
    size: Floats
    rows: Floats | None = None
    proxy: Floats | None = None
    proxy_size: Floats | None = None

    @property
    def numbers(self) -> Floats:
        """Shape (H,): how many rows each stratum has."""
        return self.size if self.rows is None else self.rows

    def merged(self, into: Integers) -> Population:
        """The sizes of merged strata; `into` is the new number of every stratum, from 0."""
        member = np.arange(int(into.max()) + 1)[:, None] == into

        sums = {name: member @ values for name, values in vars(self).items() if name != "cuts" and values is not None}
        return replace(self, **{name: np.asarray(values, dtype=np.float64) for name, values in sums.items()})


@dataclass(frozen=True)
class Labelled:
    """The rows that were drawn and labelled, in any order.

    Attributes:
        stratum: Shape (n,): index of the stratum.
        score: Shape (n,).
        label: Shape (n,): whether the row is true.
        weight: Shape (n,): how heavy a row is beside others of its stratum: its own weight over its probability of
            being drawn; all 1 where rows of a stratum are drawn alike and weigh the same.
        proxy: Shape (n,), or None.
        cluster: Shape (n,): whatever was drawn together has one number; None where rows were drawn one by one.
    """

    stratum: Integers
    score: Floats
    label: NDArray[np.bool_]
    weight: Floats
    proxy: Floats | None = None
    cluster: Integers | None = None

    def take(self, order: Integers) -> Labelled:
        """The rows in another order."""
        return replace(self, **{name: values[order] for name, values in vars(self).items() if values is not None})


# Totals of a stratified sample at falling cuts, and draws that say how far they can be trusted.
#
# Of every stratum the number of rows at or above each cut is known; labels are known of a sample. With weights that add
# up to the size N of the stratum, a share p = Σ w y / N of its rows is true, and of its rows at or above a cut
#
#     tp = p N(cut) + c Σ (y - p) w [score ≥ cut],    c = 1 + (1 - n / N) / (n - 1)
#
# are: the difference estimator with p in the place of every label that is not known (Cochran 1977, chapter 7), where c
# takes account of p being estimated from the same rows. It is unbiased whether or not p is the same throughout the
# stratum. A proxy f, known of every row, takes p's place: y is λ f plus a rest, the total of f is known, and the rest
# is estimated. λ is tuned by stratum (PPI++, Angelopoulos, Duchi & Zrnic 2023), with the help of all strata where one
# has few rows that tell it, and shrunk as far as the sample cannot tell it from 0.
#
# Draws are those of the Bayesian bootstrap (Rubin 1981), which is the Pólya posterior of a finite population (Ghosh &
# Meeden 1997): each row of a stratum, or each cluster, gets a gamma weight. Sampling without replacement shrinks them
# by the root of 1 - n / N.


_FEWEST = 5  # labels of a stratum, below which it is taken together with a neighbour
_LEAST_SHAPE = 0.2  # of a gamma weight, where a stratum has hardly a row
_ROWS_OF_MODEL = 5  # rows of a stratum that weigh as much as what all strata say of a proxy
_SMALLEST = 1e-12


@dataclass(frozen=True)
class Totals:
    """Estimated or drawn totals, in the weight of rows."""

    tp: Floats  # shape (B, K): true rows at or above each cut
    positives: Floats  # shape (B,): true rows


@dataclass(frozen=True)
class Design:
    """A sample beside the population that it was drawn from; strata with too few labels are merged."""

    population: Population  # sizes of the strata that are left
    stratum: Integers  # shape (n,): of every labelled row, in rising order of `first`
    first: Integers  # shape (n,): the first of the falling cuts that retrieves the row; K where none does
    label: Floats  # shape (n,): 1 or 0
    weight: Floats  # shape (n,): how many rows a row stands for; adds up to the size of its stratum
    fraction: Floats  # shape (H,): share of the rows of a stratum that are labelled
    cluster: Integers  # shape (n,): what is drawn together; each row by itself without clusters
    proxy: Floats  # shape (n,): λ f, all 0 without a proxy
    proxy_retrieved: Floats  # shape (K,): total of λ f at or above each cut
    proxy_total: float  # total of λ f

    @classmethod
    def of(cls, population: Population, labelled: Labelled) -> Design:
        """Sort the sample, merge strata that have too few labels, and tune the proxy."""
        first = np.searchsorted(-population.cuts, -labelled.score, side="left")
        order = np.argsort(first, kind="stable")
        rows = labelled.take(order)
        raw = scaled(rows.weight, rows.stratum, population.size)
        merged = merged_strata(population, np.bincount(rows.stratum, minlength=len(population.size)))
        strata = population.merged(merged)
        stratum = merged[rows.stratum]
        weight = scaled(raw, stratum, strata.size)
        labels = np.bincount(stratum, minlength=len(strata.size))
        slope = _slopes(stratum, rows, weight, strata)
        cluster = np.unique(rows.cluster, return_inverse=True)[1] if rows.cluster is not None else np.arange(len(order))
        return cls(
            population=strata,
            stratum=stratum,
            first=first[order],
            label=rows.label.astype(np.float64),
            weight=weight,
            fraction=np.minimum(labels / strata.numbers, 1.0) if rows.cluster is None else np.zeros(len(labels)),
            cluster=cluster.astype(np.int64),
            proxy=slope[stratum] * (0.0 if rows.proxy is None else rows.proxy),
            proxy_retrieved=np.zeros(len(strata.cuts)) if strata.proxy is None else slope @ strata.proxy,
            proxy_total=0.0 if strata.proxy_size is None else float(slope @ strata.proxy_size),
        )

    def estimate(self) -> Totals:
        """The estimated totals, B = 1."""
        return self._totals(self.weight[None, :])

    def draw(self, draws: int, random: np.random.Generator) -> Totals:
        """Totals as they may be, given the sample."""
        weight = random.gamma(self._shapes(), size=(draws, int(self.cluster.max()) + 1))[:, self.cluster] * self.weight
        sums = self._by_stratum(weight)
        weight *= (self.population.size / _without_zeros(sums))[:, self.stratum]
        shrunk = np.sqrt(1 - self.fraction)[self.stratum]
        return self._totals(self.weight + (weight - self.weight) * shrunk)

    def heaviest(self) -> tuple[Floats, Floats]:
        """Weight of the heaviest row that may lie at or above each cut, and below it, each of shape (K,).

        It is that of the labelled rows there; of a stratum without a labelled row there, that of its heaviest row. True
        rows of one cluster come together, as many as they do on average over the true rows.
        """
        above, below = np.zeros((2, len(self.population.cuts)))
        at = np.arange(len(above))
        for stratum, (size, retrieved) in enumerate(zip(self.population.size, self.population.retrieved, strict=True)):
            rows = self.stratum == stratum
            if not rows.any() or self.fraction[stratum] == 1:
                continue
            first, weight = self.first[rows], self.weight[rows]
            number = np.searchsorted(first, at, side="right")
            most = weight.max()
            falling = np.append(np.maximum.accumulate(weight[::-1])[::-1], most)
            rising = np.insert(np.maximum.accumulate(weight), 0, most)
            above = np.maximum(above, np.where(retrieved > 0, rising[number], 0.0))
            below = np.maximum(below, np.where(retrieved < size, falling[number], 0.0))
        return above * self._together(), below * self._together()

    def seen(self, label: float) -> tuple[Integers, Integers]:
        """How many labelled rows with a label lie at or above each cut, and below it."""
        first = self.first[self.label == label]
        above = np.searchsorted(first, np.arange(len(self.population.cuts)), side="right")
        return above, len(first) - above

    def _together(self) -> float:
        trues = np.bincount(self.cluster, self.label)
        return float((trues**2).sum() / trues.sum()) if trues.any() else 1.0

    def _shapes(self) -> Floats:
        """Shapes of the gamma weights of clusters: with (n - 2) / n the variance of a mean is s² / n."""
        pairs = np.unique(np.stack([self.stratum, self.cluster]), axis=1)
        clusters = np.bincount(pairs[0], minlength=len(self.population.size))
        shape = np.full(int(self.cluster.max()) + 1, 1.0)
        np.minimum.at(shape, pairs[1], np.maximum(1 - 2 / clusters, _LEAST_SHAPE)[pairs[0]])
        return shape

    def _by_stratum(self, values: Floats) -> Floats:
        """Sums over the rows of every stratum, shape (B, H)."""
        member = self.stratum[:, None] == np.arange(len(self.population.size))
        return np.asarray(values @ member.astype(np.float64))

    def _totals(self, weight: Floats) -> Totals:
        strata = self.population
        unexplained = weight * (self.label - self.proxy)
        share = self._by_stratum(unexplained) / _without_zeros(strata.size)
        expected = share @ strata.retrieved + self.proxy_retrieved
        if (self.fraction == 1).all():  # to the last digit what the labels say
            unexplained, share, expected = weight * self.label, np.zeros_like(share), np.zeros_like(expected)
        labels = np.bincount(self.stratum, minlength=len(strata.size))
        of_one_sample = 1 + (1 - self.fraction) / np.maximum(labels - 1, 1)
        running = np.cumsum((unexplained - weight * share[:, self.stratum]) * of_one_sample[self.stratum], axis=1)
        running = np.concatenate([np.zeros((len(weight), 1)), running], axis=1)
        upto = np.searchsorted(self.first, np.arange(len(strata.cuts)), side="right")
        tp = np.maximum.accumulate(np.clip(running[:, upto] + expected, 0.0, strata.retrieved.sum(axis=0)), axis=1)
        positives = running[:, -1] + share @ strata.size + self.proxy_total
        return Totals(tp, np.clip(positives, tp[:, -1], strata.size.sum()))


def merged_strata(population: Population, labels: Integers) -> Integers:
    """The merged stratum of every stratum: each has five labels, if all strata together have so many.

    A stratum with too few labels, unless all its rows are labelled, is taken together with the neighbour that has
    fewer, in the order of the strata. The variance then holds the difference of the two (collapsed strata, Cochran
    1977, 5A.12).
    """
    groups = [[stratum] for stratum in range(len(labels)) if population.size[stratum] > 0]
    sizes = [int(labels[group].sum()) for group in groups]
    needed = [min(_FEWEST, float(population.numbers[group].sum())) for group in groups]
    while len(groups) > 1 and any(size < need for size, need in zip(sizes, needed, strict=True)):
        least = int(np.argmin([size - need for size, need in zip(sizes, needed, strict=True)]))
        beside = [other for other in (least - 1, least + 1) if 0 <= other < len(groups)]
        other = min(beside, key=lambda neighbour: sizes[neighbour])
        low, high = sorted((least, other))
        groups[low] += groups.pop(high)
        sizes[low] += sizes.pop(high)
        needed[low] = min(_FEWEST, needed[low] + needed.pop(high))
    merged = np.zeros(len(labels), dtype=np.int64)
    for number, group in enumerate(groups):
        merged[group] = number
    return merged


def _slopes(stratum: Integers, rows: Labelled, weight: Floats, strata: Population) -> Floats:
    """λ of every stratum, shape (H,), which is 0 without a proxy.

    That of the labelled rows of a stratum alone would move the estimate where few rows have a proxy unlike the others'
    (call them odd): if none was drawn λ is 0, and if one was, all odd rows of the stratum count. Three things hold
    against it. λ is the more that of a model the fewer odd rows were drawn: true rows have one mean proxy in all strata
    and false rows another, so that the mean of all rows says how many are true (Rogan & Gladen 1978), and
    Cov(y, f) = p (1 - p) times the difference of the two. It is less the fewer odd rows were to be expected in the
    sample, since limits cannot know what odd rows that were not drawn would say. And one factor for all strata, by
    which the variance is least, times 1 - 1 / F with its F, and 0 for F of 1 or less, leaves little of a proxy that
    tells nothing.
    """
    n_strata, number = len(strata.size), np.bincount(stratum, minlength=len(strata.size))
    true = rows.label
    if rows.proxy is None or strata.proxy_size is None or true.all() or not true.any():
        return np.zeros(n_strata)

    def sums(values: Floats) -> Floats:
        return np.asarray(np.bincount(stratum, values, n_strata), dtype=np.float64)

    def about_the_mean(values: Floats) -> Floats:
        return np.asarray(values - (sums(values) / _without_zeros(number))[stratum])

    label, proxy = about_the_mean(true.astype(np.float64)), about_the_mean(rows.proxy)
    mean = strata.proxy_size / _without_zeros(strata.size)
    is_share = all(((values >= 0) & (values <= 1)).all() for values in (rows.proxy, mean))
    widest = mean * (1 - mean) if is_share else sums(proxy**2) / _without_zeros(number)
    most = 1.0 if is_share else max(float((proxy**2).max()), _SMALLEST)
    difference = rows.proxy[true].mean() - rows.proxy[~true].mean()
    share = np.clip((mean - rows.proxy[~true].mean()) / (difference or np.inf), 0.0, 1.0)
    spread = widest * min((proxy**2).sum() / max(widest[stratum].sum(), _SMALLEST), 1.0)
    of_model = share * (1 - share) * difference / _without_zeros(np.where(spread > _SMALLEST, spread, 0.0))
    odd_drawn, odd_expected = sums(proxy**2) / most, number * widest / most
    of_rows = sums(label * proxy) / _without_zeros(sums(proxy**2))
    slope = (odd_drawn * of_rows + _ROWS_OF_MODEL * of_model) / (odd_drawn + _ROWS_OF_MODEL)
    slope *= odd_expected / (odd_expected + 1)
    explained = slope[stratum] * proxy
    part_of_variance = weight**2 * (number / np.maximum(number - 1, 1))[stratum]
    together, alone = (part_of_variance * explained * label).sum(), (part_of_variance * explained**2).sum()
    factor = np.clip(together / max(alone, _SMALLEST), 0.0, 1.0)
    doubt = ((part_of_variance * explained * (label - factor * explained)) ** 2).sum()
    shrunk = np.clip(1 - doubt / max(together**2, _SMALLEST), 0.0, 1.0)
    return np.where(number < strata.numbers, slope * factor * shrunk, 0.0)


def scaled(weight: Floats, stratum: Integers, size: Floats) -> Floats:
    """Weights that add up to the size of each stratum."""
    return np.asarray(weight * (size / _without_zeros(np.bincount(stratum, weight, len(size))))[stratum])


def _without_zeros(values: Floats | Integers) -> Floats:
    return np.where(values == 0, np.inf, values)


# Which rows to label: strata by score, how many rows of each, and in which order.
#
# A row that is true with probability p is worth √(p (1 - p)) labels: strata of equal sums with equally many labels are
# those of Dalenius & Hodges (1959), and their allocation is Neyman's (1934). What scores say of p may be wrong, and a
# stratum that is thought to hold no true row is what makes recall doubtful: a third of the labels goes to rows alike.


_ALIKE = 1 / 3  # of the labels, for rows whatever their scores
_MOST_STRATA = 16
PER_STRATUM = 10  # labels, at least, if there are several strata
_NOTHING = 1e-300


def worth_of_cells(score: Floats, rows: Integers) -> Floats:
    """How many of all labels a cell of rows is worth, shape (C,); adds up to 1.

    Args:
        score: Shape (C,): rising scores. If all lie between 0 and 1, they are taken as probabilities; else a row is
            worth the inverse of its rank from the top, so that each tenfold of rows is worth as much.
        rows: Shape (C,): numbers of rows with these scores.
    """
    if not len(score):
        return np.zeros(0)
    is_share = bool(score[0] >= 0 and score[-1] <= 1)
    above = np.cumsum(rows[::-1])[::-1]
    worth = np.sqrt(score * (1 - score)) * rows if is_share else _of_ranks(above - rows, above)
    return _with_rows_alike(worth, rows)


def worth_of_rows_alike(score: Floats, rows: Integers) -> Floats:  # noqa: ARG001 - called as `worth_of_cells`
    """How many of all labels a cell is worth where a row is worth as much as any other, shape (C,); adds up to 1."""
    return np.asarray(rows / max(rows.sum(), 1))


def worth_of_documents(mentions: Floats, rows: Integers) -> Floats:
    """How many of all drawn documents a cell of them, with so many predicted mentions each, is worth; adds up to 1.

    What is wrong of m mentions varies by about the root of m, and mentions that are missed by something where there is
    none.
    """
    return _with_rows_alike(np.sqrt(mentions + 1) * rows, rows)


def worth_after_labels(worth: Floats, rows: Integers, labels: Integers, trues: Integers) -> Floats:
    """The worth of strata, half from earlier labels and half as before, shape (H,); adds up to 1.

    Strata whose few labels happen to hold no true row would else get no more, and limits would be too low: of average
    precision they held the truth in .88 of samples. The share of true rows in a stratum is that of its labels and of
    one more row, which is as true as all rows are on average.

    Args:
        worth: Shape (H,): before there were labels.
        rows: Shape (H,): numbers of rows.
        labels: Shape (H,): labelled rows.
        trues: Shape (H,): true ones among them.
    """
    seen = labels > 0
    average = (rows[seen] @ (trues[seen] / labels[seen]) + 0.5) / (rows[seen].sum() + 1) if seen.any() else 0.5
    share = (trues + average) / (labels + 1)
    from_labels = _with_rows_alike(np.sqrt(share * (1 - share)) * rows, rows)
    return np.asarray((from_labels + worth / max(worth.sum(), _NOTHING)) / 2)


def strata_of_cells(worth: Floats, size: int) -> Integers:
    """The stratum of each cell, from 0 at the lowest scores: 1, 2, 4, 8 or 16 of about equal worth.

    Strata for more labels lie within strata for fewer, so that rows drawn at random from these are random there.

    Args:
        worth: Shape (C,): in rising order of scores.
        size: How many labels there are.
    """
    strata = 1
    while 2 * strata <= min(_MOST_STRATA, size // PER_STRATUM):
        strata *= 2
    middle = np.cumsum(worth) - worth / 2
    finest = np.minimum((middle / max(worth.sum(), _NOTHING) * _MOST_STRATA).astype(np.int64), _MOST_STRATA - 1)
    return np.asarray(np.unique(finest * strata // _MOST_STRATA, return_inverse=True)[1], dtype=np.int64)


def allocation(worth: Floats, rows: Integers, size: int) -> Integers:
    """How many rows of each stratum to label, shape (H,): in proportion to their worth, five at least, all at most.

    If there are more labels than rows, all rows are labelled.
    """
    least = np.minimum(rows, _FEWEST)
    return _shared_out(worth, rows, size, least if least.sum() <= size else np.zeros_like(rows))


def _shared_out(worth: Floats, rows: Integers, size: int, least: Integers) -> Integers:
    """Whole numbers in proportion to worth, each between `least` and `rows`, that add up to `size` or to all rows."""
    size = min(size, int(rows.sum()))
    shares = least.astype(np.float64)
    free = rows > 0
    while free.any():  # whatever a stratum cannot have, or has to have, is no longer shared out
        left = size - shares[~free].sum()
        by = worth if worth[free].sum() > _NOTHING else rows
        wanted = np.where(free, left * (by / by[free].sum()), shares)
        too_much, too_few = free & (wanted > rows), free & (wanted < least)
        fixed = too_much if (wanted - rows)[too_much].sum() >= (least - wanted)[too_few].sum() else too_few
        shares = np.where(too_much, rows, np.where(too_few, least, wanted)) if fixed.any() else wanted
        if not fixed.any():
            break
        free &= ~fixed
    return _rounded(shares, rows, size)


def further(worth: Floats, rows: Integers, drawn: Integers, size: int) -> Integers:
    """How many more rows of each stratum to label, shape (H,), where so many of them have been drawn before."""
    lacking = np.maximum(allocation(worth, rows, int(drawn.sum()) + size) - drawn, 0)
    return _shared_out(lacking.astype(np.float64), rows - drawn, size, np.zeros_like(rows))


def places(stratum: Integers, rank: Integers, numbers: Integers) -> Floats:
    """Where each row stands in the sheet: sorted by these, the first k rows hold every stratum in its share.

    Of each drawn row are given the stratum and its rank in the random order of that, from 0; `numbers` is how many each
    stratum has.
    """
    return np.asarray((rank + 0.5) / numbers[stratum])


def _of_ranks(below: Floats | Integers, upto: Floats | Integers) -> Floats:
    """Σ 1 / rank over the ranks of each cell, by the logarithm."""
    return np.asarray(np.log((upto + 0.5) / (below + 0.5)))


def _with_rows_alike(worth: Floats | Integers, rows: Integers) -> Floats:
    alike = rows / max(rows.sum(), 1)
    total = worth.sum()
    return np.asarray(alike if total <= 0 else (1 - _ALIKE) * worth / total + _ALIKE * alike)


def _rounded(shares: Floats, rows: Integers, size: int) -> Integers:
    """Whole numbers that add up to `size`, by the largest remainders."""
    numbers = np.floor(shares + 1e-9).astype(np.int64)
    order = np.argsort(-(shares - numbers), kind="stable")
    for stratum in [*order, *order]:
        if numbers.sum() >= size:
            break
        numbers[stratum] += numbers[stratum] < rows[stratum]
    return numbers


# Precision, recall and F1 of all documents from those that were drawn and judged whole, with limits.
#
# A document stands for so many documents of its stratum; sums of mentions, or of ratios of documents, are weighted sums
# over judged documents. Limits are quantiles of draws, as those of rows (`curve`): each document has a gamma weight
# with the shape 1 - 2 / n in a stratum with n judged documents (Rubin 1981; Ghosh & Meeden 1997), shrunk by the root of
# 1 - n / N. To draws are added mentions that may have been missed, a third each (Kerman 2011), in the heaviest
# document.


_NAMES = ("precision", "recall", "f1")
_DRAWS = 1_000
_UNSEEN = 1 / 3  # mentions: the neutral prior of Kerman (2011)
_AT_ONCE = 4_000_000  # numbers in an array


@dataclass(frozen=True)
class DocumentDesign:
    """Documents that were drawn and judged; strata with too few of them are merged."""

    stratum: Integers  # shape (D,)
    weight: Floats  # shape (D,): how many documents a document stands for; adds up to the size of its stratum
    fraction: Floats  # shape (H,): share of the documents of a stratum that are judged

    @classmethod
    def of(cls, size: Floats, stratum: Integers, relative: Floats) -> DocumentDesign:
        """The design of a sample.

        Args:
            size: Shape (H,): documents of each stratum, in the order of groups and numbers of mentions.
            stratum: Shape (D,): of each judged document.
            relative: Shape (D,): how heavy it is beside others of its stratum.
        """
        population = Population(np.zeros(0), np.zeros((len(size), 0)), size)
        merged = merged_strata(population, np.bincount(stratum, minlength=len(size)))
        sizes = population.merged(merged).size
        weight = scaled(scaled(relative, stratum, size), merged[stratum], sizes)
        judged = np.bincount(merged[stratum], minlength=len(sizes))
        return cls(merged[stratum], weight, np.minimum(judged / sizes, 1.0))

    def draws(self, number: int, random: np.random.Generator) -> Floats:
        """Weights as they may be, shape (B, D)."""
        judged = np.bincount(self.stratum, minlength=len(self.fraction))
        shape = np.maximum(1 - 2 / np.maximum(judged, 1), _LEAST_SHAPE)[self.stratum]
        weight = random.gamma(shape, size=(number, len(shape))) * self.weight
        for stratum in range(len(judged)):
            rows = self.stratum == stratum
            total = weight[:, rows].sum(axis=1, keepdims=True)
            weight[:, rows] *= self.weight[rows].sum() / np.where(total > 0, total, np.inf)
        return np.asarray(self.weight + (weight - self.weight) * np.sqrt(1 - self.fraction)[self.stratum])


@dataclass(frozen=True)
class JudgedMentions:
    """Mentions of judged documents of one group.

    Attributes:
        document: Shape (n,): index of the document.
        retrieving: Shape (n,): how many of the rising thresholds retrieve the prediction; 0 without a prediction.
        is_gold: Shape (n,): whether there is a gold mention.
        in_group: Shape (D,): which documents are of the group.
    """

    document: Integers
    retrieving: Integers
    is_gold: Bools
    in_group: Bools

    def counts(self, start: int, stop: int) -> tuple[Floats, Floats]:
        """True and false positives of each document at some thresholds, each of shape (D, K)."""
        width = stop - start
        within = np.clip(self.retrieving - start, 0, width)
        sides = []
        for side in (self.is_gold, ~self.is_gold):
            cell = self.document[side] * (width + 1) + within[side]
            number = np.bincount(cell, minlength=len(self.in_group) * (width + 1)).reshape(-1, width + 1)
            sides.append(np.cumsum(number[:, :0:-1], axis=1)[:, ::-1].astype(np.float64))
        return sides[0], sides[1]

    @property
    def gold(self) -> Floats:
        """Shape (D, 1): gold mentions of each document."""
        number = np.bincount(self.document[self.is_gold], minlength=len(self.in_group))
        return number.astype(np.float64)[:, None]


@dataclass(frozen=True)
class EstimatedScores:
    """Estimates for all documents from the judged ones, at rising thresholds."""

    tp: Floats  # shape (G, K): weights of true positives by replicate
    fp: Floats  # those of false positives
    fn: Floats  # those of misses
    values: Values  # shape (3, K): each ratio of each average with its lower and its upper limit, nan where undefined


def estimated_scores(
    design: DocumentDesign,
    mentions: JudgedMentions,
    size: int,
    averages: Sequence[Average],
    replicate: Integers,
    *,
    confidence: float = 0.95,
    seed: int = 0,
) -> EstimatedScores:
    """Estimate the scores of one group.

    Args:
        design: The judged documents of all groups.
        mentions: Their mentions in the group.
        size: K, how many thresholds there are.
        averages: Which averages.
        replicate: Shape (D,): number of the replicate of each document, from 0.
        confidence: Of the limits.
        seed: Of the draws.
    """
    random = np.random.default_rng(seed)
    draws = design.draws(_DRAWS, random)
    # mentions that were not seen are in the heaviest document, where not all are judged
    is_open = mentions.in_group & (design.fraction < 1)[design.stratum]
    unseen = random.gamma(_UNSEEN, size=(3, _DRAWS, 1)) * float(design.weight[is_open].max(initial=0.0))
    members = (replicate == np.arange(int(replicate.max(initial=-1)) + 1)[:, None]) * design.weight
    weights = np.concatenate([design.weight[None, :], draws, members])
    width = max(1, _AT_ONCE // max(len(weights), len(design.weight), 1))
    tail = (1 - confidence) / 2
    blocks = []
    for start in range(0, size, width):
        tp, fp = mentions.counts(start, min(start + width, size))
        sums = dict(_sums(weights, tp, fp, mentions))
        of_estimate = {name: values[:1] for name, values in sums.items()}
        of_draws = {name: values[1 : _DRAWS + 1] for name, values in sums.items()}
        block: Values = {}
        for average in averages:
            block |= dict(_limited(average, of_estimate, of_draws, unseen, tail, (tp, fp, mentions.gold)))
        counts = [sums[name][_DRAWS + 1 :] for name in ("tp", "fp", "gold")]
        blocks.append((counts[0], counts[1], counts[2] - counts[0], block))
    if not blocks:
        nothing = np.zeros((len(members), 0))
        keys: list[tuple[Average, str]] = [(average, name) for average in averages for name in _NAMES]
        return EstimatedScores(nothing, nothing, nothing, {key: np.zeros((3, 0)) for key in keys})
    tp, fp, fn = (np.concatenate(side, axis=1) for side in zip(*(block[:3] for block in blocks), strict=True))
    values = {key: np.concatenate([block[3][key] for block in blocks], axis=1) for key in blocks[0][3]}
    return EstimatedScores(tp, fp, fn, values)


def _sums(weights: Floats, tp: Floats, fp: Floats, mentions: JudgedMentions) -> Iterator[tuple[str, Floats]]:
    """Weighted sums of mentions, and of the ratios of documents, each of shape (S, K)."""
    gold, documents = mentions.gold, mentions.in_group.astype(np.float64)[:, None]
    yield from (("tp", weights @ tp), ("fp", weights @ fp), ("gold", weights @ np.broadcast_to(gold, tp.shape)))
    yield "documents", weights @ np.broadcast_to(documents, tp.shape)
    for name, below in zip(_NAMES, (tp + fp, gold + 0 * tp, (tp + fp + gold) / 2), strict=True):
        ratio = np.divide(tp, below, out=np.zeros_like(tp), where=below > 0)
        yield from ((name, weights @ ratio), (f"n_{name}", weights @ (below > 0).astype(np.float64)))


def _limited(
    average: Average,
    estimate: Mapping[str, Floats],
    drawn: Mapping[str, Floats],
    unseen: Floats,
    tail: float,
    counts: tuple[Floats, Floats, Floats],
) -> Iterator[tuple[tuple[Average, str], Floats]]:
    """Each ratio of an average with its limits."""
    tp, fp, gold = counts
    hit, false, missed = unseen
    of_estimate = _ratios(average, estimate, (0.0, 0.0, 0.0))
    low, high = _ratios(average, drawn, (0.0, false, missed)), _ratios(average, drawn, (hit, 0.0, 0.0))
    none_wrong = fp.sum(axis=0) == 0
    none_missed = gold.sum() - tp.sum(axis=0) == 0
    without_fault = {"precision": none_wrong, "recall": none_missed, "f1": none_wrong & none_missed}
    is_census = not np.any(unseen)
    for name in _NAMES:
        value = of_estimate[name][0]
        lower, upper = np.quantile(low[name], tail, axis=0), np.quantile(high[name], 1 - tail, axis=0)
        lower, upper = np.fmin(lower, value), np.fmax(upper, value)
        if not is_census:
            upper = np.where(without_fault[name], 1.0, upper)
        lower, upper = (np.where(np.isnan(value), np.nan, limit) for limit in (lower, upper))
        if average == "semeval" and name == "f1":  # the harmonic mean of two means has none
            lower, upper = np.full((2, len(value)), np.nan)
        yield (average, name), np.stack([value, lower, upper])


@np.errstate(divide="ignore", invalid="ignore")
def _ratios(
    average: Average, sums: Mapping[str, Floats], added: tuple[Floats | float, Floats | float, Floats | float]
) -> dict[str, Floats]:
    """The ratios of an average, with mentions that were not seen: hits, false ones and misses."""
    hit, false, missed = added
    if average in {"micro", "semeval_micro"}:
        tp, fp, fn = sums["tp"] + hit, sums["fp"] + false, sums["gold"] - sums["tp"] + missed
        values = {"precision": tp / (tp + fp), "recall": tp / (tp + fn), "f1": 2 * tp / (2 * tp + fp + fn)}
        return values if average == "micro" else {name: np.nan_to_num(value, nan=1.0) for name, value in values.items()}
    lacking = {"precision": false, "recall": missed, "f1": false + missed}
    if average == "macro":
        return {name: (sums[name] + hit) / (sums[f"n_{name}"] + hit + lacking[name]) for name in _NAMES}
    values = {}
    for name in _NAMES[:2]:
        total = sums[name] + sums["documents"] - sums[f"n_{name}"]
        values[name] = (total + hit) / (sums["documents"] + hit + lacking[name])
    product, total = values["precision"] * values["recall"], values["precision"] + values["recall"]
    return values | {"f1": np.where(total == 0, 0.0, 2 * product / total)}
