"""Counts of one group as arrays, and the sums over its documents, at every threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from pipeline.plan.count_tables import REPLICATE
from pipeline.stages.entity_recognition.document_sums import SUMS
from pipeline.tables.sweep import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import polars as pl
    from numpy.typing import NDArray

Ints: TypeAlias = "NDArray[np.int64]"
Floats: TypeAlias = "NDArray[np.float64]"


@dataclass(frozen=True)
class Group:
    """Counts of one group.

    Attributes:
        thresholds: Shape (K,), rising; one nan where everything is retrieved at once.
        tp: Retrieved matched predictions by replicate and threshold, shape (G, K).
        fp: Other retrieved predictions, likewise.
        n_gold: Gold mentions by replicate, shape (G,).
        n_documents: Number of documents.
        sums: Sums over documents, see `document_sums.sums_of_documents`, each of shape (G, K); empty where no average
            over documents is wanted.
    """

    thresholds: Floats
    tp: Ints
    fp: Ints
    n_gold: Ints
    n_documents: int
    sums: Mapping[str, Floats]


def from_above(table: NDArray[Any], *, strict: bool) -> NDArray[Any]:
    """Sums over bins (axis 1) from the highest down; strict: without the bin itself."""
    above = table[:, ::-1].cumsum(axis=1)[:, ::-1]
    return np.asarray(above - table) if strict else above


def group_of(
    counts: pl.DataFrame,
    sums: pl.DataFrame | None,
    replicates: Ints,
    n_documents: int,
    thresholds: Sequence[float] | None,
    *,
    inclusive: bool,
) -> Group:
    """The counts of one group as arrays.

    Args:
        counts: Its rows of the count table, with `replicate`, `threshold`, `tp`, `fp`, `n_gold`.
        sums: Its rows of the sums of documents; None: they are not wanted.
        replicates: Replicates of its documents, in any order.
        n_documents: Number of its documents.
        thresholds: The thresholds; None: every score of the group.
        inclusive: Without thresholds: whether a score equal to the threshold is retrieved.
    """
    edge = counts[THRESHOLD].to_numpy()
    values = np.unique(edge[~np.isnan(edge)]) if thresholds is None else np.asarray(thresholds, dtype=np.float64)
    at_once = len(values) == 0
    values = np.full(1, np.nan) if at_once else values
    strict = thresholds is None and not inclusive and not at_once
    replicates = np.unique(np.concatenate([counts[REPLICATE].to_numpy(), replicates]))
    size = len(replicates), len(values)
    row = np.searchsorted(replicates, counts[REPLICATE].to_numpy())
    bins = _bins(edge, values)
    tables = {}
    for name in ("tp", "fp"):
        table = _table(row, bins, counts[name].to_numpy(), size)
        tables[name] = from_above(table[:, 1:], strict=strict)
    gold = np.zeros(len(replicates), dtype=np.int64)
    np.add.at(gold, row, counts["n_gold"].to_numpy())
    of_documents = {} if sums is None else _of_documents(sums, values, replicates, strict=strict)
    return Group(values, tables["tp"], tables["fp"], gold, n_documents, of_documents)


def _of_documents(sums: pl.DataFrame, values: Floats, replicates: Ints, *, strict: bool) -> dict[str, Floats]:
    row = np.searchsorted(replicates, sums[REPLICATE].to_numpy())
    bins = _bins(sums[THRESHOLD].to_numpy(), values)
    made = {}
    for name in SUMS:
        table = _table(row, bins, sums[name].to_numpy(), (len(replicates), len(values)))
        made[name] = table[:, :1] + from_above(table[:, 1:], strict=strict)
    return made


def _table(row: Ints, bins: Ints, values: NDArray[Any], size: tuple[int, int]) -> NDArray[Any]:
    """Values by replicate and bin; first those of bin -1, which no threshold retrieves."""
    table = np.zeros((size[0], size[1] + 1), dtype=values.dtype)
    np.add.at(table, (row, bins + 1), values)
    return table


def _bins(edge: Floats, values: Floats) -> Ints:
    """Threshold of each row; without thresholds all rows are retrieved by the only one."""
    if np.isnan(values[0]):
        return np.zeros(len(edge), dtype=np.int64)
    return np.where(np.isnan(edge), -1, np.searchsorted(values, np.nan_to_num(edge)))
