"""Areas under the curves of one stage, from every score: all rows in order, or cells with certified bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from pipeline.dialect import column
from pipeline.metrics.area_bounds import average_precision_bounds, roc_auc_bounds
from pipeline.metrics.cell_grids import CellGrid, OpenCells, finer
from pipeline.metrics.ordered_areas import AREAS, OrderedAreas, Rows, Totals
from pipeline.metrics.sweep import add_up
from pipeline.queries import expand, load
from pipeline.schemas import GROUPING
from pipeline.sources.bins import piecewise_cells
from pipeline.stages.plan import REPLICATE

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from pipeline.engines.engine import Engine
    from pipeline.metrics.area_bounds import Bounds
    from pipeline.stages.plan import Areas

MOST_CELLS = 1 << 18
CELLS_OF_REPLICATES = 1 << 12
MOST_CELLS_OF_GROUPS = 1 << 22
MOST_ROUNDS = 4
ROUNDING = 1e-14
PART_ROWS = 1 << 16  # arrays of this size stay in the cache of a core
COUNTS = ("n_positive", "n_negative")
WEIGHTS = ("weight_positive", "weight_negative", "squares_positive", "squares_negative")


def areas(
    engine: Engine, asked: Areas, groupings: Sequence[Sequence[str]], by: Sequence[str], counts: pl.DataFrame
) -> pl.DataFrame:
    """Areas of every group: one row per group with the areas, their standard errors and, for cells, their bounds.

    Args:
        engine: Where the rows are.
        asked: What is asked for.
        groupings: The groupings; areas do not add up, so each is asked for by itself.
        by: All grouping columns.
        counts: The count table, which tells how many positives and negatives a group has.
    """
    engine.define("scored", asked.rows)
    parts = []
    for grouping in groupings:
        name = ",".join(grouping) or "all"
        own = counts.filter(pl.col(GROUPING.name) == name)
        groups = _Groups.of(add_up(own, [*grouping], [*COUNTS, *WEIGHTS]), grouping, weighted=asked.weighted)
        replicates = 1 + max(own[REPLICATE].to_list(), default=0) if asked.replicated else 0
        work = _Work(engine, asked, groups, replicates)
        parts.append(work.exact() if asked.exact else work.binned())
    return pl.concat(parts, how="diagonal").select(GROUPING.name, *by, *_COLUMNS)


_COLUMNS = (*AREAS, *(f"{area}_{part}" for area in AREAS for part in ("se", "degrees", "min", "max")))


def rows_in_order(asked: Areas, grouping: Sequence[str]) -> exp.Select:
    """All rows by group and rising score.

    Ties come in one order whatever the order of the files, so that sums are the same to the last bit.
    """
    names = [
        *grouping,
        "score",
        "label",
        *(["weight"] if asked.weighted else []),
        *([REPLICATE] if asked.replicated else []),
    ]
    columns = [column(name) for name in names]
    return exp.select(*columns).from_("scored").order_by(*(each.copy() for each in columns))


@dataclass(frozen=True)
class _Groups:
    """The groups of one grouping, with their totals."""

    names: tuple[str, ...]
    keys: pl.DataFrame
    totals: Totals

    @classmethod
    def of(cls, sums: pl.DataFrame, names: Sequence[str], *, weighted: bool) -> _Groups:
        keys = sums.select(_without_zero_sign(sums, names))
        rows, weights, squares = (
            [sums[f"{kind}_{side}"].cast(pl.Float64).to_numpy() for side in ("positive", "negative")]
            for kind in (("n", "weight", "squares") if weighted else ("n", "n", "n"))
        )
        return cls(tuple(names), keys, Totals(*weights, *squares, *rows))

    @property
    def rows(self) -> float:
        return float((self.totals.n_positive + self.totals.n_negative).sum())

    @property
    def size(self) -> int:
        return len(self.totals.positives)

    def places(self, rows: pl.DataFrame) -> NDArray[np.int64]:
        """Position of the group of each row; rows of one group stand together."""
        if not self.names:
            return np.zeros(rows.height, dtype=np.int64)
        keys = rows.select(_without_zero_sign(rows, self.names))
        runs = keys.select(pl.struct(pl.all()).rle_id()).to_series()
        first = keys.filter(runs.is_first_distinct())
        known = self.keys.with_row_index("_place")
        found = first.join(known, on=list(self.names), how="left", nulls_equal=True, maintain_order="left")
        return found["_place"].cast(pl.Int64).gather(runs).to_numpy()


def _without_zero_sign(frame: pl.DataFrame, names: Sequence[str]) -> list[pl.Expr]:
    return [pl.col(name) + 0.0 if frame.schema[name].is_float() else pl.col(name) for name in names]


@dataclass(frozen=True)
class _Work:
    """One grouping of one stage."""

    engine: Engine
    asked: Areas
    groups: _Groups
    replicates: int

    def exact(self) -> pl.DataFrame:
        """All rows in rising order of score, block by block."""
        collected = OrderedAreas(self.groups.totals, self.replicates)
        if self.groups.size:
            for block in self.engine.stream(rows_in_order(self.asked, self.groups.names)):
                for part in block.iter_slices(PART_ROWS):
                    collected.add(self._rows(part))
        return self._table(collected, {})

    def _rows(self, block: pl.DataFrame) -> Rows:
        label = block["label"].to_numpy()
        positive = label.astype(np.float64)
        replicate = block[REPLICATE].cast(pl.Int64).to_numpy() if self.replicates else None
        place, score = self.groups.places(block), block["score"].to_numpy()
        if not self.asked.weighted:
            return Rows(place, score, positive, 1 - positive, replicate=replicate)
        weight = block["weight"].to_numpy()
        squares = weight * weight
        return Rows(
            place,
            score,
            weight * positive,
            weight * (1 - positive),
            squares * positive,
            squares * (1 - positive),
            replicate,
        )

    def binned(self) -> pl.DataFrame:
        """Counts per cell, again with other cells while the bounds of a group are too wide; if they stay so, in order.

        Few rows have a cell for every score, so that nothing is left open.
        """
        found, finest = (self._cells(None), None) if self.groups.rows <= MOST_CELLS else self._narrowed()
        if found is None:
            return self._with_own_bounds(self.exact())
        bounds = _bounds(found, self.groups.size, weighted=self.asked.weighted)
        collected = OrderedAreas(self.groups.totals, self.replicates)
        if self.replicates:
            coarse = None if finest is None else finer(found.open(bounds), CELLS_OF_REPLICATES)
            found = self._cells(coarse, replicated=True)
        collected.add(found.rows)
        return self._table(collected, bounds)

    @staticmethod
    def _with_own_bounds(table: pl.DataFrame) -> pl.DataFrame:
        """Exact areas as their own bounds, but for rounding."""
        ends = [pl.max_horizontal(pl.col(area) - ROUNDING, 0.0).alias(f"{area}_min") for area in AREAS] + [
            pl.min_horizontal(pl.col(area) + ROUNDING, 1.0).alias(f"{area}_max") for area in AREAS
        ]
        return table.with_columns(
            pl.when(pl.col(each.meta.output_name()[:-4]).is_not_null()).then(each) for each in ends
        )

    def _narrowed(self) -> tuple[_Cells | None, CellGrid | None]:
        """Cells that leave less open than is accepted; None if a few rounds do not bring it."""
        most = max(64, MOST_CELLS_OF_GROUPS // max(self.groups.size, 1))
        count = min(MOST_CELLS, most, max(64, math.ceil(2 / self.asked.width)))
        grid = CellGrid(self._span(), (count,))
        for _ in range(MOST_ROUNDS):
            found = self._cells(grid)
            bounds = _bounds(found, self.groups.size, weighted=self.asked.weighted)
            widths = [each.highest - each.lowest for area in AREAS for each in bounds[area]]
            if max(widths) <= self.asked.width:
                return found, grid
            grid = finer(found.open(bounds), min(MOST_CELLS, most))
        return None, None

    def _span(self) -> tuple[float, float]:
        if self.asked.span is not None:
            return self.asked.span
        ends = (exp.alias_(exp.Min(this=column("score")), "low"), exp.alias_(exp.Max(this=column("score")), "high"))
        low, high = self.engine.fetch(exp.select(*ends).from_("scored")).row(0)
        return float(low), float(high)

    def _cells(self, grid: CellGrid | None, *, replicated: bool = False) -> _Cells:
        """Counts in the cells of a grid; None: every score is a cell."""
        score = column("score")
        value = score if grid is None else piecewise_cells(score, grid.edges, grid.sizes)
        cell = exp.alias_(value, "cell")
        self.engine.define("scored_cells", exp.select("*", cell).from_("scored"))
        query = load("areas/weighted_cells" if self.asked.weighted else "areas/cells")
        names = (*self.groups.names, REPLICATE) if replicated else self.groups.names
        found = self.engine.fetch(expand(query, names))
        if replicated:
            found = found.sort([*self.groups.names, "cell", REPLICATE])
        numbers = [name for name in found.columns if name.startswith(("positive", "negative"))]
        weights = {name: found[name].cast(pl.Float64).to_numpy() for name in numbers}
        replicate = found[REPLICATE].cast(pl.Int64).to_numpy() if replicated else None
        rows = Rows(
            self.groups.places(found), found["cell"].cast(pl.Float64).to_numpy(), **weights, replicate=replicate
        )
        return _Cells(rows, found["lowest"].to_numpy(), found["highest"].to_numpy())

    def _table(self, collected: OrderedAreas, bounds: dict[str, list[Bounds]]) -> pl.DataFrame:
        found = collected.finish(random_sizes=self.asked.random_sizes)
        series = []
        for area in AREAS:
            value = found.area[area]
            limits = [np.full(self.groups.size, np.nan)] * 2
            if bounds:
                limits = [np.array([getattr(each, end) for each in bounds[area]]) for end in ("lowest", "highest")]
                value = np.where(np.isnan(value), value, (limits[0] + limits[1]) / 2)
                limits = [np.where(np.isnan(value), np.nan, each) for each in limits]
            spread = {"_se": found.se[area], "_degrees": found.degrees[area]}
            columns = {"": value, **spread, "_min": limits[0], "_max": limits[1]}
            series += [pl.Series(f"{area}{name}", each).fill_nan(None) for name, each in columns.items()]
        grouping = pl.lit(",".join(self.groups.names) or "all").alias(GROUPING.name)
        return self.groups.keys.with_columns(grouping, *series) if self.groups.names else _alone(grouping, series)


def _alone(grouping: pl.Expr, series: list[pl.Series]) -> pl.DataFrame:
    return pl.DataFrame(series).with_columns(grouping)


@dataclass(frozen=True)
class _Cells:
    """Cells in rising order of group and score, with the lowest and highest score in each."""

    rows: Rows
    lowest: NDArray[np.float64]
    highest: NDArray[np.float64]

    def open(self, bounds: dict[str, list[Bounds]]) -> OpenCells:
        """What the cells leave open, in rising order of score over all groups."""
        groups = len(bounds[AREAS[0]])
        left = np.zeros(len(self.lowest))
        for number, part in enumerate(_parts(self.rows.group, groups)):
            left[part] = sum(np.nan_to_num(bounds[area][number].open) for area in AREAS)
        order = np.argsort(self.lowest, kind="stable")
        return OpenCells(self.lowest[order], float(self.highest.max()), left[order])


def _bounds(cells: _Cells, groups: int, *, weighted: bool) -> dict[str, list[Bounds]]:
    """Bounds of every group, by area."""
    rows, single = cells.rows, cells.lowest == cells.highest
    found: dict[str, list[Bounds]] = {area: [] for area in AREAS}
    for part in _parts(rows.group, groups):
        positive, negative = rows.positive[part], rows.negative[part]
        first = np.full(len(positive), 0.0 if weighted else 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            found["average_precision"].append(average_precision_bounds(positive, negative, single[part], first))
            found["roc_auc"].append(roc_auc_bounds(positive, negative, single[part]))
    return found


def _parts(group: NDArray[np.int64], groups: int) -> Iterator[slice]:
    """The rows of each group, in the order of the totals; rows of one group stand together."""
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(group), 1), dtype=bool), group[1:] != group[:-1]]))
    ends = np.append(starts[1:], len(group))[: len(starts)]
    place = {int(group[start]): slice(int(start), int(end)) for start, end in zip(starts, ends, strict=True)}
    for number in range(groups):
        yield place.get(number, slice(0, 0))
