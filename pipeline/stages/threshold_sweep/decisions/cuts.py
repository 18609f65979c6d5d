"""Outcomes where groups are cut at thresholds, by replicate: of single groups, or of several put together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import numpy as np
import polars as pl

from ....metrics.uncertainty.proportions import Confusion
from ....records import dataclass
from ....tables.columns import by_group
from ....tables.sweep import REPLICATE, THRESHOLD
from ..uncertainty import CONFUSION, kind_of_counts

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ....metrics.uncertainty.cube import Cube

CUT = "_cut"
Kind = Literal["n", "weight", "squares"]


@dataclass(frozen=True)
class Cuts:
    """Counts at thresholds, by what the cuts are told apart by.

    Attributes:
        labels: What a cut is told by.
        frames: For the one clustering, or for both parents and their intersections: columns `labels`, `replicate`, and
            for every kind of counts the outcomes, such as `n_tp` and `weight_fn`.
        kind: The counts that ratios are of.
        in_time: Whether the replicates follow each other in time.
    """

    labels: tuple[str, ...]
    frames: tuple[pl.DataFrame, ...]
    kind: Literal["n", "weight"]
    in_time: bool = False

    @classmethod
    def of(cls, cube: Cube, cuts: pl.DataFrame, labels: Sequence[str]) -> Cuts:
        """Cut every group.

        Args:
            cube: The counts of the groups.
            cuts: The keys of the cube, `labels`, and `_cut`: the threshold, NULL where nothing of a group is retrieved.
                A group is in no cut of which it has no row.
            labels: What tells cuts apart; counts of groups with the same labels are added up.
        """
        names = list(dict.fromkeys(labels))
        is_above = cube.thresholds is None and cube.boundary == ">"
        frames = (_cut(counts, cuts, list(cube.keys), names, is_above=is_above) for counts in _clusterings(cube))
        return cls(tuple(names), tuple(frames), kind_of_counts(cube.counts), cube.in_time)

    def totals(self) -> pl.DataFrame:
        """One row per cut: the labels and the outcomes of all replicates; weights and squares as DOUBLE."""
        names = [f"{kind}_{outcome}" for kind in ("n", "weight", "squares") for outcome in CONFUSION]
        summed = self.frames[0].group_by(self.labels, maintain_order=True).agg(pl.col(names).sum())
        return summed.with_columns(pl.col(name).cast(pl.Float64) for name in names[len(CONFUSION) :])

    def by_replicate(self) -> Iterator[tuple[tuple[object, ...], list[Confusion]]]:
        """The labels of every cut, and its counts by replicate, of shape (G, 1), by each clustering."""
        tables = [by_group(frame, self.labels) for frame in self.frames]
        for label, rows in tables[0].items():
            yield label, [self._confusion(rows), *(self._confusion(table[label]) for table in tables[1:])]

    def _confusion(self, rows: pl.DataFrame) -> Confusion:
        rows = rows.sort(REPLICATE)
        columns = (rows[f"{self.kind}_{outcome}"].cast(pl.Float64).to_numpy() for outcome in CONFUSION)
        return Confusion(*(np.asarray(column)[:, None] for column in columns), in_time=self.in_time)


def _clusterings(cube: Cube) -> tuple[pl.DataFrame, ...]:
    return (cube.counts, *cube.crossed)


def _cut(
    counts: pl.DataFrame, cuts: pl.DataFrame, keys: list[str], labels: list[str], *, is_above: bool
) -> pl.DataFrame:
    """The outcomes by labels and replicate; sums of decimals are exact."""
    joined = counts.join(cuts.select(*dict.fromkeys((*keys, *labels, CUT))), on=keys, how="inner", nulls_equal=True)
    at, cut = pl.col(THRESHOLD), pl.col(CUT)
    retrieved = (at > cut if is_above else at >= cut).fill_null(value=False)
    sums = []
    for kind in ("n", "weight", "squares"):
        sides = (pl.col(f"{kind}_positive"), pl.col(f"{kind}_negative"))
        hits = [side.filter(retrieved).sum() for side in sides]
        misses = [side.filter(~retrieved).sum() for side in sides]
        sums += [value.alias(f"{kind}_{name}") for value, name in zip((*hits, *misses), CONFUSION, strict=True)]
    summed = joined.group_by([*labels, REPLICATE]).agg(*sums)
    return summed.sort([*labels, REPLICATE], nulls_last=True)
