"""Areas under the curves of one stage, from every score: all rows in order, or cells with certified bounds."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import polars as pl
import sqlglot.expressions as exp

from ..base.columns import REPLICATE, SECOND_REPLICATE, THRESHOLD, add_up, doubles
from ..base.dialect import column, kept
from ..base.errors import DataError, Note
from ..base.records import dataclass
from ..base.schemas import COUNT_TABLE, GROUPING, Grouping
from ..base.sql_files import expand, load
from ..metrics.curves.ordered_areas import (
    BYTES,
    MOST_GROUPS,
    ROW_AREAS,
    OrderedAreas,
    PackedScores,
    Rows,
    SizesDifferError,
    Totals,
)
from ..metrics.curves.trapezoidal_area import AreaCells, CellGrid, Extremes, finer, rounded_outwards
from ..sources.bins import BLOCK
from .count_tables import BIN, SIDES
from .counts import HIGHEST, LOWEST, cells_of
from .nodes import Phase, Statement
from .rows import CELL, IN_CELLS, SCORED, FirstCells, rows_in_cells, span_of_scores

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ..engines.engine import Engine
    from ..metrics.curves.ordered_areas import Estimates
    from ..metrics.curves.trapezoidal_area import Bounds
    from ..metrics.uncertainty.replicates import Resampling
    from .nodes import Progress


FIRST_CELLS = 8  # by the width: mostly they are fine enough
MOST_CELLS = 250_000  # with the ends of every piece still four blocks
CELLS_OF_REPLICATES = 1 << 12
CELLS_OF_TWO_PARENTS = 1 << 9  # pairs of replicates are 64 times as many
MOST_CELLS_OF_GROUPS = 1 << 22
MOST_ROUNDS = 4
ROUNDING = 4e-16
SHARE_OF_MEMORY = 0.25  # of the engine's limit, for rows that are put in order outside it
PART_ROWS = 1 << 16  # arrays of this size stay in the cache of a core
_SIDES = ("positive", "negative")
COUNTS = ("n_positive", "n_negative")
WEIGHTS = ("weight_positive", "weight_negative", "n_weighted_positive", "n_weighted_negative")


@dataclass(frozen=True)
class AreaRequest:
    """Areas under the curves of scored and labelled rows, from every score.

    Attributes:
        rows: The rows: the grouping columns, `replicate`, `score`, `label` and, if weighted, `weight`.
        exact: Whether every score is put in order; else scores are counted in cells, with certified bounds.
        width: Widest bounds that are accepted.
        span: Lowest and highest score that the files promise; only a hint.
        weighted: Whether rows have weights.
        replicated: Whether replicates, not rows, are independent.
        second_replicates: Number of replicates of the second parent of rows that have two, which they then have as the
            column `second_replicate`; 0: they have one.
        in_time: Whether replicates follow each other in time.
        random_sizes: Whether the number of positives would differ in another sample; see `metrics.curves.influence`.
        missed: Whether rows may have the score minus infinity: they tie below all others.
        confidence: Of the quantiles of the bootstrap.
        resampling: How it draws replicates; None: no quantiles.
        in_memory: Whether the rows were passed in, so that no footer can say of them what does not hold.
    """

    rows: exp.Query
    exact: bool
    width: float
    span: tuple[float, float] | None
    weighted: bool
    replicated: bool
    random_sizes: bool
    missed: bool = False
    second_replicates: int = 0
    in_time: bool = False
    confidence: float = 0.95
    resampling: Resampling | None = None
    in_memory: bool = False

    @property
    def labels(self) -> tuple[str, ...]:
        """The columns that say which replicates a row falls into."""
        second = (SECOND_REPLICATE,) if self.second_replicates else ()
        return (REPLICATE, *second) if self.replicated else ()


def areas(
    engine: Engine,
    request: AreaRequest,
    groupings: Sequence[Grouping],
    by: Sequence[str],
    counts: pl.DataFrame,
    cells: Mapping[tuple[str, ...], pl.DataFrame] | None = None,
    *,
    by_score: bool = False,
) -> tuple[pl.DataFrame, bool]:
    """Areas of every group: one row per group with the areas, their standard errors and, for cells, their bounds.

    Areas come from cells, too, where the engine cannot hand over all rows in order: whether that was so is said beside.

    Args:
        engine: Where the rows are.
        request: What is asked for.
        groupings: The groupings; areas do not add up, but counts in cells do.
        by: All grouping columns.
        counts: The count table, which tells how many positives and negatives a group has.
        cells: What was counted in cells before, by grouping columns, as `swept_cells` has it.
        by_score: Whether the count table has every score as a threshold: then its counts are the rows.
    """
    bare = request.exact and not (request.weighted or request.replicated or request.missed)
    are_rows = by_score and bare and request.in_memory
    if not are_rows:
        engine.define(SCORED, request.rows)
    tables: dict[str, pl.DataFrame] = {}
    first_cells, all_in_order = FirstCells(engine), True
    for grouping in sorted(groupings, key=lambda each: -len(each.columns)):  # cells of coarser ones are sums of theirs
        is_alone = counts[GROUPING.name].n_unique() == 1 and counts[GROUPING.name][0] == grouping.label
        counts_of_grouping = counts if is_alone else counts.filter(pl.col(GROUPING.name) == grouping.label)
        sums = add_up(counts_of_grouping, grouping.columns, [*COUNTS, *WEIGHTS])
        groups = _Groups.of(sums, grouping.columns, weighted=request.weighted)
        replicates = 1 + max(counts_of_grouping[REPLICATE].to_list(), default=0) if request.replicated else 0
        scores = counts_of_grouping.filter(pl.col(THRESHOLD).is_not_null()) if are_rows else None
        work = _Work(engine, request, groups, replicates, first_cells, cells_of(cells or {}, grouping.columns), scores)
        is_exact = request.exact and work.fits_in_order()
        all_in_order = all_in_order and work.fits_in_order()
        tables[grouping.label] = work.exact() if is_exact else work.binned()
    in_order = [tables[grouping.label] for grouping in groupings]
    return pl.concat(in_order, how="diagonal")[[GROUPING.name, *by, *_COLUMNS]], all_in_order


_COLUMNS = (
    *ROW_AREAS,
    *(f"{area}_{part}" for area in ROW_AREAS for part in ("se", "degrees", "skewed", "low", "high", "min", "max")),
    "design_effect",
)


def rows_in_order(request: AreaRequest, grouping: Sequence[str]) -> exp.Select:
    """All rows by group and rising score.

    Ties come in one order whatever the order of the files, so that sums are the same to the last bit.
    """
    names = _names(request, grouping)
    return kept(
        ("in order", names), lambda: exp.select(*map(column, names)).from_(SCORED).order_by(*map(column, names))
    )


def _selected(request: AreaRequest, grouping: Sequence[str]) -> exp.Select:
    names = _names(request, grouping)
    return kept(("selected", names), lambda: exp.select(*map(column, names)).from_(SCORED))


def _names(request: AreaRequest, grouping: Sequence[str]) -> tuple[str, ...]:
    return (*grouping, "score", "label", *(["weight"] if request.weighted else []), *request.labels)


@dataclass(frozen=True)
class _Groups:
    """The groups of one grouping in the order of the engine, NULL last, with their totals."""

    names: tuple[str, ...]
    keys: pl.DataFrame
    totals: Totals
    sizes: NDArray[np.int64]

    @classmethod
    def of(cls, sums: pl.DataFrame, names: Sequence[str], *, weighted: bool) -> _Groups:
        sums = sums.sort(names, nulls_last=True) if names else sums
        keys = sums.select(names)
        kinds = ("weight", "n_weighted") if weighted else ("n", "n")
        of_kinds = (sums[f"{kind}_{side}"].cast(pl.Float64).to_numpy() for kind in kinds for side in _SIDES)
        sizes = sum(sums[f"n_{side}"].cast(pl.Int64).to_numpy() for side in _SIDES)
        return cls(tuple(names), keys, Totals(*of_kinds), np.asarray(sizes))

    @property
    def rows(self) -> int:
        return int(self.sizes.sum())

    @property
    def size(self) -> int:
        return len(self.totals.positives)

    def places(self, rows: pl.DataFrame) -> NDArray[np.int64]:
        """Position of the group of each row; rows of one group stand together."""
        if not self.names:
            return np.broadcast_to(np.int64(0), rows.height)
        keys = rows.select(self.names)
        runs = keys.select(pl.struct(pl.all()).rle_id()).to_series()
        keys_of_runs = keys.filter(runs.is_first_distinct())
        numbered_keys = self.keys.with_row_index("_place")
        places_of_runs = keys_of_runs.join(
            numbered_keys, on=list(self.names), how="left", nulls_equal=True, maintain_order="left"
        )
        return places_of_runs["_place"].cast(pl.Int64).gather(runs).to_numpy()


@dataclass(frozen=True)
class _Work:
    """One grouping of one stage."""

    engine: Engine
    request: AreaRequest
    groups: _Groups
    replicates: int
    first_cells: FirstCells
    swept: pl.DataFrame | None
    scores: pl.DataFrame | None  # counts of each score in order, which stand for the rows

    def exact(self) -> pl.DataFrame:
        """All rows in rising order of score, block by block."""
        collected = self._collector()
        if self.groups.size:
            counted = None if self.scores is None else self._counted(self.scores)
            for rows in counted or (self._packed() if self._fits() else self._in_order()):
                collected.add(rows)
        return self._table(collected, {})

    def _counted(self, scores: pl.DataFrame) -> Iterator[Rows]:
        """Rows with one score together, from their counts."""
        for part in scores.iter_slices(PART_ROWS):
            positive, negative = (part[name].cast(pl.Float64).to_numpy() for name in COUNTS)
            yield Rows(self.groups.places(part), part[THRESHOLD].to_numpy(), positive, negative)

    def _in_order(self) -> Iterator[Rows]:
        """Rows that the engine puts in order; what does not fit into memory it spills."""
        return map(self._rows, self._parts(rows_in_order(self.request, self.groups.names)))

    def fits_in_order(self) -> bool:
        """Whether the engine hands over all rows in order."""
        most = self.engine.most_in_order
        return most is None or self.groups.rows <= most

    def _collector(self) -> OrderedAreas:
        second = self.request.second_replicates if self.replicates else 0
        return OrderedAreas(self.groups.totals, self.replicates, second, in_time=self.request.in_time)

    def _fits(self) -> bool:
        """Whether rows may be put in order in memory: bare scores and labels, few groups, a share of the limit."""
        bare = not (self.request.weighted or self.request.replicated) and self.groups.size <= MOST_GROUPS
        if not bare or self.groups.rows <= PART_ROWS:
            return bare
        return self.groups.rows * BYTES <= SHARE_OF_MEMORY * self.engine.memory()

    def _packed(self) -> Iterator[Rows]:
        """Rows that are put in order here: it takes half the time of the engine's sort, and half the memory."""
        scores = PackedScores(self.groups.sizes)
        try:
            for block in self._parts(_selected(self.request, self.groups.names)):
                scores.add(self.groups.places(block), block["score"].to_numpy(), block["label"].to_numpy())
            for place, score, label in scores.in_order(PART_ROWS):
                positive = label.astype(np.float64)
                yield Rows(place, score, positive, 1 - positive)
        except SizesDifferError as error:
            message = "an input changed while it was read"
            raise DataError(message, remedy="Run again when its writer is done.") from error

    def _parts(self, query: exp.Query) -> Iterator[pl.DataFrame]:
        """Rows of a query in small parts.

        Raises:
            DataError: a page holds NULL where the footer, which the engine believes, says that there is none.
        """
        for block in self.engine.stream(query):
            for name in ("score", "label"):
                if block[name].null_count():
                    message = f"an input is damaged: {name} is NULL in a row, and the footer of its file says in none"
                    raise DataError(
                        message, remedy="It is damaged: restore it from where it came from, or leave it out by a glob."
                    )
            yield from block.iter_slices(PART_ROWS)

    def _rows(self, block: pl.DataFrame) -> Rows:
        label = block["label"].to_numpy()
        positive = label.astype(np.float64)
        labels = _labels(block, self.request)
        place, score = self.groups.places(block), block["score"].to_numpy()
        if not self.request.weighted:
            return Rows(place, score, positive, 1 - positive, **labels)
        weight = block["weight"].to_numpy()
        squares = weight * weight
        return Rows(
            place,
            score,
            weight * positive,
            weight * (1 - positive),
            squares * positive,
            squares * (1 - positive),
            **labels,
        )

    def binned(self) -> pl.DataFrame:
        """Counts per cell, again with other cells while the bounds of a group are too wide; if they stay so, in order.

        Few rows have a cell for every score, so that nothing is left open.
        """
        cells, finest = (self._cells(None), None) if self.groups.rows <= MOST_CELLS else self._narrowed()
        if cells is None:
            # exact areas as their own bounds, but for rounding: of sums, and of what weights leave
            # above a score
            table = self.exact()
            totals, slack = self.groups.totals, ROUNDING * (1 + np.sqrt(self.groups.sizes))
            if self.request.weighted:
                with np.errstate(divide="ignore", invalid="ignore"):
                    slack *= (totals.positives + totals.negatives) / totals.positives
            open_ = pl.lit(pl.Series(slack))
            ends = [pl.max_horizontal(pl.col(area) - open_, 0.0).alias(f"{area}_min") for area in ROW_AREAS] + [
                pl.min_horizontal(pl.col(area) + open_, 1.0).alias(f"{area}_max") for area in ROW_AREAS
            ]
            return table.with_columns(
                pl.when(pl.col(each.meta.output_name()[:-4]).is_not_null()).then(each) for each in ends
            )
        bounds, rows = self._bounds(cells), cells.rows
        if self.replicates:
            coarse = None
            if finest is not None:
                count = CELLS_OF_TWO_PARENTS if self.request.second_replicates else CELLS_OF_REPLICATES
                coarse = finer(cells.open(bounds, self._extremes(finest, once=True)), count)
            rows = self._cells(coarse, replicated=True, once=coarse is not None).rows
        collected = self._collector()
        collected.add(rows)
        return self._table(collected, bounds)

    def _narrowed(self) -> tuple[AreaCells | None, CellGrid | None]:
        """Cells that leave less open than is accepted, and their grid; None if a few rounds do not bring it.

        Where the engine cannot hand over all rows in order, the last round decides, whatever it leaves open. Which
        cells hold a single score, and so leave nothing open, is asked only where counts alone do not suffice.
        """
        most = max(64, MOST_CELLS_OF_GROUPS // max(self.groups.size, 1))
        count = min(MOST_CELLS, most, max(64, math.ceil(FIRST_CELLS / self.request.width)))
        grid = CellGrid(self._span(), (count,))
        for number in range(MOST_ROUNDS):
            counted = self._swept_cells() if number == 0 else None
            counted = counted or self._cells(grid, once=number > 0)
            if self._is_narrow(self._bounds(counted)):
                return counted, grid
            extremes = counted.extremes or self._extremes(grid, once=number > 0)
            cells = AreaCells(counted.rows, extremes)
            bounds = self._bounds(cells)
            if self._is_narrow(bounds):
                return cells, grid
            if number == MOST_ROUNDS - 1 and not self.fits_in_order():
                return cells, grid
            grid = finer(cells.open(bounds, extremes), min(MOST_CELLS, most))
        return None, None

    def _swept_cells(self) -> AreaCells | None:
        """The cells that were counted before; None where none were."""
        if (cells := self.swept) is None:
            return None
        place, positive, negative, lowest, highest = (
            cells[name].cast(pl.Float64).to_numpy() for name in (BIN, *SIDES, LOWEST, HIGHEST)
        )
        return AreaCells(Rows(self.groups.places(cells), place, positive, negative), Extremes(lowest, highest))

    def _bounds(self, cells: AreaCells) -> dict[str, list[Bounds]]:
        return cells.bounds(self.groups.size, weighted=self.request.weighted)

    def _is_narrow(self, bounds: dict[str, list[Bounds]]) -> bool:
        return max(each.highest - each.lowest for area in ROW_AREAS for each in bounds[area]) <= self.request.width

    def _span(self) -> tuple[float, float]:
        """Where cells begin and end: round numbers about the scores, so that few more scores leave the cells alone."""
        return rounded_outwards(*(self.request.span or span_of_scores(self.engine, SCORED)))

    def _cells(self, grid: CellGrid | None, *, replicated: bool = False, once: bool = False) -> AreaCells:
        """Counts in the cells of a grid, which may be made for these rows alone; None: every score is a cell."""
        self.engine.define(IN_CELLS, rows_in_cells(grid, missed=self.request.missed))
        query = load("areas/weighted_cells" if self.request.weighted else "areas/cells")
        labels = self.request.labels if replicated else ()
        if once or replicated or grid is None:
            counted = self.engine.fetch(expand(query, (*self.groups.names, *labels)), once=once)
        else:
            counted = self.first_cells.fetch(query, self.groups.names, grid)
        if replicated:
            counted = counted.sort([*self.groups.names, *CELL, *labels])
        numbers = [name for name in counted.columns if name.startswith(("positive", "negative"))]
        weights = {name: counted[name].cast(pl.Float64).to_numpy() for name in numbers}
        block, cell = (counted[name].cast(pl.Float64).to_numpy() for name in CELL)
        replicates = _labels(counted, self.request) if replicated else {}
        rows = Rows(self.groups.places(counted), block * BLOCK + cell, **weights, **replicates)
        return AreaCells(rows, None if grid else Extremes(cell, cell))

    def _extremes(self, grid: CellGrid, *, once: bool) -> Extremes:
        """Lowest and highest score in each cell of a grid, which may be made for these rows alone."""
        self.engine.define(IN_CELLS, rows_in_cells(grid, missed=self.request.missed))
        query = load("areas/extremes")
        if once:
            extremes = self.engine.fetch(expand(query, self.groups.names), once=True)
        else:
            extremes = self.first_cells.fetch(query, self.groups.names, grid)
        return Extremes(extremes["lowest"].to_numpy(), extremes["highest"].to_numpy())

    def _table(self, collected: OrderedAreas, bounds: dict[str, list[Bounds]]) -> pl.DataFrame:
        found = collected.finish(random_sizes=self.request.random_sizes)
        series = []
        for area in ROW_AREAS:
            value = found.area[area]
            limits = [np.full(self.groups.size, np.nan)] * 2
            if bounds:
                limits = [np.array([getattr(each, end) for each in bounds[area]]) for end in ("lowest", "highest")]
                value = np.where(np.isnan(value), value, (limits[0] + limits[1]) / 2)
                limits = [np.where(np.isnan(value), np.nan, each) for each in limits]
            spread = {"_se": found.se[area], "_degrees": found.degrees[area], "_skewed": found.skewed[area]}
            spread |= self._quantiles(found, area)
            columns = {"": value, **spread, "_min": limits[0], "_max": limits[1]}
            series += [doubles(f"{area}{name}", each) for name, each in columns.items()]
        series.append(doubles("design_effect", found.design_effect))
        label = Grouping(self.groups.names).label
        grouping = pl.Series(GROUPING.name, [label], dtype=pl.String).new_from_index(0, self.groups.size)
        return pl.DataFrame([*self.groups.keys.iter_columns(), *series, grouping])

    def _quantiles(self, estimates: Estimates, area: str) -> dict[str, NDArray[np.float64]]:
        """Quantiles of the bootstrap of an area; nan where it is not wanted."""
        if self.request.resampling is None or area not in estimates.shifts:
            return dict.fromkeys(("_low", "_high"), np.full(self.groups.size, np.nan))
        confidence, resampling = self.request.confidence, self.request.resampling
        low, high = estimates.shifts[area].quantiles(estimates.area[area], confidence, resampling)
        return {"_low": low, "_high": high}


def _labels(rows: pl.DataFrame, request: AreaRequest) -> dict[str, NDArray[Any]]:
    """The replicates of rows, by the names that `Rows` has for them."""
    return {name: rows[name].cast(pl.Int64).to_numpy() for name in request.labels}


# The node of areas under curves, which need every score.


@dataclass(frozen=True)
class Areas(AreaRequest):
    """Areas under the curves of scored and labelled rows, from every score; they become the table `areas`."""

    phase: ClassVar[Phase] = Phase.AREAS
    into: ClassVar[str] = "areas"

    def run(self, engine: Engine, progress: Progress) -> None:
        """Add the table; how many positives and negatives a group has tell the counts."""
        counts = progress.counts
        table, in_order = areas(
            engine, self, counts.groupings, counts.by, counts[COUNT_TABLE], progress.cells, by_score=progress.by_score
        )
        progress.tables[self.into] = table
        if self.exact and not in_order:
            words = (
                f"areas are the middle of certified bounds (method binned) and not exact: {engine.name} hands over at "
                f"most {engine.most_in_order:,} rows in order (driver_rows)"
            )
            progress.warnings.append(Note(words))

    def statements(self, by: Sequence[str]) -> Iterator[Statement]:
        """The rows, and what is asked of them."""
        yield Statement(f"relation {SCORED}", self.rows, SCORED)
        if self.exact:
            yield Statement("rows in order, for areas", rows_in_order(self, by), function=areas)
            return
        yield Statement(f"relation {IN_CELLS}, every score a cell", rows_in_cells(None, missed=self.missed), IN_CELLS)
        cells = load("areas/weighted_cells" if self.weighted else "areas/cells")
        title = f"counts in cells that are made finer until bounds are narrower than {self.width:g}"
        yield Statement(title, expand(cells, by))
        yield Statement("extremes of cells, where counts leave wider bounds", expand(load("areas/extremes"), by))
