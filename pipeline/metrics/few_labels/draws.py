"""Totals of a stratified sample at falling cuts, and draws that say how far they can be trusted.

Of every stratum the number of rows at or above each cut is known; labels are known of a sample. With weights that add
up to the size N of the stratum, a share p = Σ w y / N of its rows is true, and of its rows at or above a cut

    tp = p N(cut) + c Σ (y - p) w [score ≥ cut],    c = 1 + (1 - n / N) / (n - 1)

are: the difference estimator with p in the place of every label that is not known (Cochran 1977, chapter 7), where c
takes account of p being estimated from the same rows. It is unbiased whether or not p is the same throughout the
stratum. A proxy f, known of every row, takes p's place: y is λ f plus a rest, the total of f is known, and the rest is
estimated. λ is tuned by stratum (PPI++, Angelopoulos, Duchi & Zrnic 2023), with the help of all strata where one has
few rows that tell it, and shrunk as far as the sample cannot tell it from 0.

Draws are those of the Bayesian bootstrap (Rubin 1981), which is the Pólya posterior of a finite population (Ghosh &
Meeden 1997): each row of a stratum, or each cluster, gets a gamma weight. Sampling without replacement shrinks them by
the root of 1 - n / N.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .rows import Labelled, Population

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]

FEWEST = 5  # labels of a stratum, below which it is taken together with a neighbour
_LEAST_SHAPE = 0.2  # of a gamma weight, where a stratum has hardly a row
_ROWS_OF_MODEL = 5  # rows of a stratum that weigh as much as what all strata say of a proxy
_SMALLEST = 1e-12


@dataclass(frozen=True)
class Totals:
    """Estimated or drawn totals, in the weight of rows.

    Attributes:
        tp: Shape (B, K): true rows at or above each cut.
        positives: Shape (B,): true rows.
    """

    tp: Floats
    positives: Floats


@dataclass(frozen=True)
class Design:
    """A sample beside the population that it was drawn from; strata with too few labels are merged.

    Attributes:
        population: Sizes of the strata that are left.
        stratum: Shape (n,): of every labelled row, in rising order of `first`.
        first: Shape (n,): the first of the falling cuts that retrieves the row; K where none does.
        label: Shape (n,): 1 or 0.
        weight: Shape (n,): how many rows a row stands for; adds up to the size of its stratum.
        fraction: Shape (H,): share of the rows of a stratum that are labelled.
        cluster: Shape (n,): what is drawn together; each row by itself without clusters.
        proxy: Shape (n,): λ f, all 0 without a proxy.
        proxy_retrieved: Shape (K,): total of λ f at or above each cut.
        proxy_total: Total of λ f.
    """

    population: Population
    stratum: Integers
    first: Integers
    label: Floats
    weight: Floats
    fraction: Floats
    cluster: Integers
    proxy: Floats
    proxy_retrieved: Floats
    proxy_total: float

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
    """The merged stratum of every stratum: each has `FEWEST` labels, if all strata together have so many.

    A stratum with too few labels, unless all its rows are labelled, is taken together with the neighbour that has
    fewer, in the order of the strata. The variance then holds the difference of the two (collapsed strata, Cochran
    1977, 5A.12).
    """
    groups = [[stratum] for stratum in range(len(labels)) if population.size[stratum] > 0]
    sizes = [int(labels[group].sum()) for group in groups]
    needed = [min(FEWEST, float(population.numbers[group].sum())) for group in groups]
    while len(groups) > 1 and any(size < need for size, need in zip(sizes, needed, strict=True)):
        least = int(np.argmin([size - need for size, need in zip(sizes, needed, strict=True)]))
        beside = [other for other in (least - 1, least + 1) if 0 <= other < len(groups)]
        other = min(beside, key=lambda neighbour: sizes[neighbour])
        low, high = sorted((least, other))
        groups[low] += groups.pop(high)
        sizes[low] += sizes.pop(high)
        needed[low] = min(FEWEST, needed[low] + needed.pop(high))
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
    which the variance is least, times 1 - 1 / F with its F, and 0 for F of 1 or less, leaves out a proxy that tells
    nothing.
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
