"""Counts of documents as arrays, and the sums over documents that averages are made of, at every threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import polars as pl

from pipeline.metrics.sweep import THRESHOLD
from pipeline.stages.plan import REPLICATE

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"
Values: TypeAlias = "Callable[[Ints, Ints, Ints], tuple[Floats, NDArray[np.bool_]]]"


@dataclass(frozen=True)
class Group:
    """Counts of one group.

    Attributes:
        thresholds: Shape (K,), rising; one nan where everything is retrieved at once.
        tp: Retrieved matched predictions by replicate and threshold, shape (G, K).
        fp: Other retrieved predictions, likewise.
        n_gold: Gold mentions by replicate, shape (G,).
        n_documents: Number of documents.
        documents: The documents' counts.
    """

    thresholds: Floats
    tp: Ints
    fp: Ints
    n_gold: Ints
    n_documents: int
    documents: Documents


@dataclass(frozen=True)
class Documents:
    """Counts of the documents of one group in bins, one row each, sorted by document and falling bin.

    Attributes:
        document: Number of the document, from 0.
        replicate: Number of its replicate.
        bin: Threshold that retrieves the predictions of the row, from 0; -1: none does.
        tp: Matched predictions.
        fp: Other predictions.
        n_gold: Gold mentions.
        strict: Whether a prediction in the bin is retrieved by the thresholds below it only.
        size: Number of replicates and of thresholds.
    """

    document: Ints
    replicate: Ints
    bin: Ints
    tp: Ints
    fp: Ints
    n_gold: Ints
    strict: bool
    size: tuple[int, int]

    def sums(self, values: Values) -> tuple[Floats, Floats]:
        """Sums over documents of a ratio, and numbers of documents where it is defined.

        Every document has one value from each of its bins down to the next, so the sums are those without any
        prediction plus all changes from above.

        Args:
            values: A ratio, and where it is defined, of arrays of tp, fp and gold mentions.

        Returns:
            Two arrays of shape (G, K).
        """
        first = np.ones(len(self.document), dtype=np.bool_)
        first[1:] = self.document[1:] != self.document[:-1]
        place = np.cumsum(first) - 1
        starts = np.flatnonzero(first)
        gold = np.add.reduceat(self.n_gold, starts) if len(starts) else self.n_gold
        retrieved = self.bin >= 0
        after = [_running(np.where(retrieved, each, 0), starts, place) for each in (self.tp, self.fp)]
        before = [total - np.where(retrieved, each, 0) for total, each in zip(after, (self.tp, self.fp), strict=True)]
        none = np.zeros_like(gold)
        known = gold[place]
        initial = _defined(values(none, none, gold))
        new, old = _defined(values(after[0], after[1], known)), _defined(values(before[0], before[1], known))
        rows = self.replicate[retrieved], self.bin[retrieved]
        made = []
        for number in range(2):
            start = np.bincount(self.replicate[starts], initial[number], self.size[0])
            change = np.zeros(self.size)
            np.add.at(change, rows, (new[number] - old[number])[retrieved])
            made.append(start[:, None] + from_above(change, strict=self.strict))
        return made[0], made[1]


def _defined(values: tuple[Floats, NDArray[np.bool_]]) -> tuple[Floats, Floats]:
    value, defined = values
    return np.where(defined, value, 0.0), defined.astype(np.float64)


def _running(values: Ints, starts: Ints, place: Ints) -> Ints:
    """Running sums within documents."""
    total = np.cumsum(values)
    before = (total - values)[starts] if len(starts) else total
    return np.asarray(total - before[place], dtype=np.int64)


def from_above(table: NDArray[Any], *, strict: bool) -> NDArray[Any]:
    """Sums over bins (axis 1) from the highest down; strict: without the bin itself."""
    above = table[:, ::-1].cumsum(axis=1)[:, ::-1]
    return np.asarray(above - table) if strict else above


def group_of(
    counts: pl.DataFrame | None, documents: pl.DataFrame, thresholds: Sequence[float] | None, *, inclusive: bool
) -> Group:
    """The counts of one group as arrays.

    Args:
        counts: Its rows of the count table, with `replicate`, `threshold`, `tp`, `fp`, `n_gold`; None: it has none.
        documents: Its rows of the count table of documents, also with `doc_id`.
        thresholds: The thresholds; None: every score of the group.
        inclusive: Without thresholds: whether a score equal to the threshold is retrieved.
    """
    counts = documents.clear().drop("doc_id") if counts is None else counts
    edge = counts[THRESHOLD].to_numpy()
    values = np.unique(edge[~np.isnan(edge)]) if thresholds is None else np.asarray(thresholds, dtype=np.float64)
    at_once = len(values) == 0
    values = np.full(1, np.nan) if at_once else values
    strict = thresholds is None and not inclusive and not at_once
    replicates = np.unique(np.concatenate([counts[REPLICATE].to_numpy(), documents[REPLICATE].to_numpy()]))
    size = len(replicates), len(values)
    row = np.searchsorted(replicates, counts[REPLICATE].to_numpy())
    bins = _bins(edge, values)
    inside = bins >= 0
    tables = {}
    for name in ("tp", "fp"):
        table = np.zeros(size, dtype=np.int64)
        np.add.at(table, (row[inside], bins[inside]), counts[name].to_numpy()[inside])
        tables[name] = np.asarray(from_above(table, strict=strict), dtype=np.int64)
    gold = np.zeros(len(replicates), dtype=np.int64)
    np.add.at(gold, row, counts["n_gold"].to_numpy())
    of_documents = _documents(documents, values, replicates, strict=strict)
    n_documents = int(of_documents.document.max(initial=-1)) + 1
    return Group(values, tables["tp"], tables["fp"], gold, n_documents, of_documents)


def _bins(edge: Floats, values: Floats) -> Ints:
    """Threshold of each row; without thresholds all rows are retrieved by the only one."""
    if np.isnan(values[0]):
        return np.zeros(len(edge), dtype=np.int64)
    return np.where(np.isnan(edge), -1, np.searchsorted(values, np.nan_to_num(edge)))


def _documents(frame: pl.DataFrame, values: Floats, replicates: Ints, *, strict: bool) -> Documents:
    bins = _bins(frame[THRESHOLD].to_numpy(), values)
    document = frame["doc_id"].rank("dense").cast(pl.Int64).to_numpy() - 1
    order = np.lexsort((-bins, document))
    columns: Mapping[str, Ints] = {name: frame[name].to_numpy()[order] for name in ("tp", "fp", "n_gold")}
    replicate = np.searchsorted(replicates, frame[REPLICATE].to_numpy())[order]
    size = len(replicates), len(values)
    return Documents(document[order], replicate, bins[order], **columns, strict=strict, size=size)
