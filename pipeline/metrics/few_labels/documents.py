"""Precision, recall and F1 of all documents from those that were drawn and judged whole, with limits.

A document stands for so many documents of its stratum; sums of mentions, or of ratios of documents, are weighted sums
over judged documents. Limits are quantiles of draws, as those of rows (`curve`): each document has a gamma weight with
the shape 1 - 2 / n in a stratum with n judged documents (Rubin 1981; Ghosh & Meeden 1997), shrunk by the root of
1 - n / N. To draws are added mentions that may have been missed, a third each (Kerman 2011), in the heaviest document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ...records import dataclass
from .draws import Population, merged_strata, scaled

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..matching.spans import Average

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]
    Bools: TypeAlias = NDArray[np.bool_]
    Values: TypeAlias = "dict[tuple[Average, str], Floats]"

NAMES = ("precision", "recall", "f1")
_DRAWS = 1_000
_UNSEEN = 1 / 3  # mentions: the neutral prior of Kerman (2011)
_AT_ONCE = 4_000_000  # numbers in an array


@dataclass(frozen=True)
class DocumentDesign:
    """Documents that were drawn and judged; strata with too few of them are merged.

    Attributes:
        stratum: Shape (D,).
        weight: Shape (D,): how many documents a document stands for; adds up to the size of its stratum.
        fraction: Shape (H,): share of the documents of a stratum that are judged.
    """

    stratum: Integers
    weight: Floats
    fraction: Floats

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
        shape = np.maximum(1 - 2 / np.maximum(judged, 1), 0.2)[self.stratum]
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
    """What judged documents say of all documents, at rising thresholds.

    Attributes:
        tp: Shape (G, K): weights of true positives by replicate.
        fp: Those of false positives.
        fn: Those of misses.
        values: Shape (3, K): each ratio of each average with its lower and its upper limit, nan where undefined.
    """

    tp: Floats
    fp: Floats
    fn: Floats
    values: Values


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
    unseen = random.gamma(_UNSEEN, size=(3, _DRAWS, 1)) * _heaviest(design, mentions.in_group)
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
        keys: list[tuple[Average, str]] = [(average, name) for average in averages for name in NAMES]
        return EstimatedScores(nothing, nothing, nothing, {key: np.zeros((3, 0)) for key in keys})
    tp, fp, fn = (np.concatenate(side, axis=1) for side in zip(*(block[:3] for block in blocks), strict=True))
    values = {key: np.concatenate([block[3][key] for block in blocks], axis=1) for key in blocks[0][3]}
    return EstimatedScores(tp, fp, fn, values)


def _heaviest(design: DocumentDesign, in_group: Bools) -> float:
    """Weight of the heaviest document where not all are judged."""
    open_strata = in_group & (design.fraction < 1)[design.stratum]
    return float(design.weight[open_strata].max(initial=0.0))


def _sums(weights: Floats, tp: Floats, fp: Floats, mentions: JudgedMentions) -> Iterator[tuple[str, Floats]]:
    """Weighted sums of mentions, and of the ratios of documents, each of shape (S, K)."""
    gold, documents = mentions.gold, mentions.in_group.astype(np.float64)[:, None]
    yield from (("tp", weights @ tp), ("fp", weights @ fp), ("gold", weights @ np.broadcast_to(gold, tp.shape)))
    yield "documents", weights @ np.broadcast_to(documents, tp.shape)
    for name, below in zip(NAMES, (tp + fp, gold + 0 * tp, (tp + fp + gold) / 2), strict=True):
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
    for name in NAMES:
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
        return {name: (sums[name] + hit) / (sums[f"n_{name}"] + hit + lacking[name]) for name in NAMES}
    values = {}
    for name in NAMES[:2]:
        total = sums[name] + sums["documents"] - sums[f"n_{name}"]
        values[name] = (total + hit) / (sums["documents"] + hit + lacking[name])
    product, total = values["precision"] * values["recall"], values["precision"] + values["recall"]
    return values | {"f1": np.where(total == 0, 0.0, 2 * product / total)}
