"""The units of one group of rows as arrays, and all pairs of systems in it."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np
import polars as pl

from ...metrics.comparison.pooled import Clusters, pooled_ratios
from ...metrics.uncertainty.interval_quality import INTERVAL_QUALITY, worst
from ...records import dataclass
from ...tables.columns import RATIOS
from ...tables.schemas import GROUPING
from . import pairs, unpaired
from .planning import COUNT, IN_ORDER, METRIC
from .rows import CELLS, EVENT_COUNTS, POOLED, PairOfSystems, posterior_rows

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from ...metrics.uncertainty.interval_quality import Quality
    from ...metrics.uncertainty.jackknife import Floats
    from ..units import UpstreamStage
    from .contract import CompareParameters
    from .rows import ComparedMetric, Row


if TYPE_CHECKING:
    Integers = NDArray[np.int64]


_TIME = r"^\d{4}-\d{2}-\d{2}([ T]\d{2}:[^ ]*)?$"  # a date, or a date with its time


class GroupOfUnits(Protocol):
    """The units of one group."""

    def compared(self) -> Iterator[ComparedMetric]:
        """Return every metric of every pair of systems."""
        ...

    def posteriors(self) -> Iterator[Row]:
        """Return rows of compare_posteriors."""
        ...


def units_of_group(params: CompareParameters, frame: pl.DataFrame, by: Sequence[str]) -> GroupOfUnits:
    """Return the units of one group.

    Args:
        params: The parameters of the stage.
        frame: The rows of the group.
        by: All grouping columns; a unit is known by them too.
    """
    return _PairedUnits(params, frame, by) if params.paired else _SeparateUnits(params, frame)


def pairs_of(systems: Sequence[object], baseline: object) -> Iterator[tuple[int, int]]:
    """Return the numbers of the systems of every pair that is compared: all, or each with the baseline.

    Args:
        systems: The systems in order.
        baseline: The system that the others are compared with, the second of every pair; None: there is none.
    """
    if baseline is None:
        yield from combinations(range(len(systems)), 2)
        return
    is_baseline = [system is not None and str(system) == str(baseline) for system in systems]
    if any(is_baseline):
        second = is_baseline.index(True)
        yield from ((first, second) for first in range(len(systems)) if first != second)


def with_order(units: pl.DataFrame, params: CompareParameters) -> pl.DataFrame:
    """Units with `in_order`, what puts them, or their clusters, in the order of time, if they have one.

    It is the column that the config names, or that of the clusters, or without clusters of the units, if all of its
    values are dates or times, as dates or as text: keys of tables are text.
    """
    name = str(params.cluster_column) if params.is_clustered else "unit"
    if IN_ORDER in units.columns or units.is_empty():
        return units
    return units.with_columns(pl.col(name).alias(IN_ORDER)) if are_times(units[name]) else units


def are_times(values: pl.Series) -> bool:
    """Whether values are dates or times, or all are text that says one."""
    if values.dtype == pl.String:
        return len(values) > 0 and bool(values.str.contains(_TIME).all(ignore_nulls=False))
    return values.dtype.is_temporal()


@dataclass(frozen=True)
class _Columns:
    """What the units hold beside their keys.

    Attributes:
        values: One value per unit, by metric.
        counts: tp, fp and fn, or the counts around events, on the last axis; None: the units have none.
        are_events: Whether the counts are those around events.
        pooled: The metrics that are ratios of all counts.
    """

    values: Mapping[str, Floats]
    counts: Floats | None
    are_events: bool
    pooled: tuple[str, ...]

    @classmethod
    def of(cls, params: CompareParameters, columns: Mapping[str, Floats]) -> _Columns:
        """Sort the columns of a frame, arrays of any shape by name."""
        values = {name.removeprefix(METRIC): array for name, array in columns.items() if name.startswith(METRIC)}
        counted = {name.removeprefix(COUNT): array for name, array in columns.items() if name.startswith(COUNT)}
        metrics = params.metrics or POOLED
        if not counted:
            return cls(values, None, are_events=False, pooled=())
        pooled = tuple(name for name in POOLED if name in metrics)
        if "tp" not in counted:
            return cls(values, np.stack([counted[name] for name in EVENT_COUNTS], axis=-1), True, pooled)
        for name, total in (("fp", "n_predicted"), ("fn", "n_true")):
            if name not in counted:
                counted[name] = counted[total] - counted["tp"]
        counts = np.stack([counted[name] for name in CELLS], axis=-1)
        ratios = pooled_ratios(counts)
        of_units = {name: ratios[..., number] for number, name in enumerate(RATIOS)}
        wanted = {name: array for name, array in of_units.items() if name in metrics and name not in values}
        return cls({**values, **wanted}, counts, are_events=False, pooled=pooled)

    @property
    def has_posteriors(self) -> bool:
        """Whether posteriors can be made."""
        return self.counts is not None and not self.are_events


def _floats(values: pl.Series) -> Floats:
    return values.cast(pl.Float64).to_numpy()


class _PairedUnits:
    """Units that systems share, as matrices: a row for each system, a column for each unit, nan where nothing is."""

    def __init__(self, params: CompareParameters, frame: pl.DataFrame, by: Sequence[str]) -> None:
        self._params = params
        keys = [*by, "unit"]
        self._in_time = IN_ORDER in frame.columns
        frame = _in_order(frame, keys)
        units = frame.select(keys).unique(maintain_order=True).with_row_index("_unit")
        self._systems = frame["system"].unique().sort()
        systems = self._systems.to_frame().with_row_index("_system")
        placed = frame.join(units, on=keys, how="left", nulls_equal=True, maintain_order="left")
        placed = placed.join(systems, on="system", how="left", maintain_order="left")
        self._place = (placed["_system"].to_numpy(), placed["_unit"].to_numpy())
        self._shape = (len(self._systems), units.height)
        self._known = ~np.isnan(self._matrix(pl.Series(np.zeros(frame.height))))
        columns = {name: self._matrix(frame[name]) for name in frame.columns if name.startswith((METRIC, COUNT))}
        self._columns = _Columns.of(params, columns)
        self._labels: Integers | None = None
        if params.is_clustered:
            self._labels = np.zeros(units.height, dtype=np.int64)
            self._labels[self._place[1]] = _labels(frame, params)

    def _matrix(self, values: pl.Series) -> Floats:
        matrix = np.full(self._shape, np.nan)
        matrix[self._place] = _floats(values)
        return matrix

    def _pairs(self) -> Iterator[tuple[PairOfSystems, int, int]]:
        for a, b in pairs_of(self._systems.to_list(), self._params.baseline):
            n_units = int((self._known[a] | self._known[b]).sum())
            yield PairOfSystems(self._params, (self._systems[a], self._systems[b]), n_units, self._in_time), a, b

    def compared(self) -> Iterator[ComparedMetric]:
        """Return every metric of every pair of systems."""
        columns = self._columns
        for pair, a, b in self._pairs():
            for metric, values in columns.values.items():
                yield pairs.compare_values(pair, metric, values[a], values[b], self._labels)
            if columns.counts is not None and columns.pooled:
                compare = pairs.compare_matchers if columns.are_events else pairs.compare_counts
                yield from compare(pair, columns.pooled, columns.counts[a], columns.counts[b], self._labels)

    def posteriors(self) -> Iterator[Row]:
        """Return rows of compare_posteriors."""
        counts = self._columns.counts
        if counts is None or not self._columns.has_posteriors or "bayes" not in self._params.tests:
            return
        for pair, a, b in self._pairs():
            n_units = len(pairs.complete(counts[a], counts[b])[0])
            of_clusters = pairs.complete(counts[a], counts[b], self._labels)
            yield from posterior_rows(pair, self._columns.pooled, *of_clusters, (n_units, n_units))


class _SeparateUnits:
    """Units that belong to one system each, as arrays of every system."""

    def __init__(self, params: CompareParameters, frame: pl.DataFrame) -> None:
        self._params = params
        self._systems = frame["system"].unique().sort(nulls_last=True)
        self._sizes: list[int] = []
        self._columns: list[_Columns] = []
        self._labels: list[Integers | None] = []
        self._in_time = IN_ORDER in frame.columns
        frame = _in_order(frame, ["unit"])
        for system in self._systems:
            units = frame.filter(pl.col("system").eq_missing(pl.lit(system, dtype=frame.schema["system"])))
            columns = {name: _floats(units[name]) for name in units.columns if name.startswith((METRIC, COUNT))}
            self._sizes.append(units.height)
            self._columns.append(_Columns.of(params, columns))
            self._labels.append(_labels(units, params) if params.is_clustered else None)

    def _pairs(self) -> Iterator[tuple[PairOfSystems, int, int]]:
        for a, b in pairs_of(self._systems.to_list(), self._params.baseline):
            n_units = self._sizes[a] + self._sizes[b]
            yield PairOfSystems(self._params, (self._systems[a], self._systems[b]), n_units, self._in_time), a, b

    def compared(self) -> Iterator[ComparedMetric]:
        """Return every metric of every pair of systems."""
        for pair, a, b in self._pairs():
            first, second = self._columns[a], self._columns[b]
            of_a, of_b = self._labels[a], self._labels[b]
            labels = None if of_a is None or of_b is None else (of_a, of_b)
            for metric, values in first.values.items():
                yield unpaired.compare_values(pair, metric, values, second.values[metric], labels)
            if first.counts is not None and first.pooled:
                compare = unpaired.compare_matchers if first.are_events else unpaired.compare_counts
                yield from compare(pair, first.pooled, *self._counts(a, b))

    def posteriors(self) -> Iterator[Row]:
        """Return rows of compare_posteriors."""
        if "bayes" not in self._params.tests:
            return
        for pair, a, b in self._pairs():
            if self._columns[a].has_posteriors:
                yield from posterior_rows(pair, self._columns[a].pooled, *self._counts(a, b))

    def _counts(self, a: int, b: int) -> tuple[Floats, Floats, tuple[int, int]]:
        """Complete counts of the units of two systems, or of their clusters, and the numbers of such units."""
        (first, n_a), (second, n_b) = (_complete(self._columns[each].counts, self._labels[each]) for each in (a, b))
        return first, second, (n_a, n_b)


def _complete(counts: Floats | None, labels: Integers | None) -> tuple[Floats, int]:
    counts = np.zeros((0, 0)) if counts is None else counts
    is_complete = ~np.isnan(counts).any(axis=1)
    used = counts[is_complete]
    return used if labels is None else Clusters.of(labels[is_complete]).sums(used), len(used)


def _labels(frame: pl.DataFrame, params: CompareParameters) -> Integers:
    """The cluster of every row, as a number; clusters in time have rising ones."""
    cluster = str(params.cluster_column)
    if IN_ORDER not in frame.columns:
        return frame[cluster].rank("dense").cast(pl.Int64).to_numpy()
    placed = pl.struct(pl.col(IN_ORDER).min().over(cluster), cluster).rank("dense").cast(pl.Int64)
    return frame.select(placed.alias("_place"))["_place"].to_numpy()


def _in_order(frame: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The rows in the order of time of their units, if they have one; the rows of a unit stand together."""
    if IN_ORDER not in frame.columns:
        return frame
    first = pl.col(IN_ORDER).min().over(keys)
    return frame.sort(first, *keys, nulls_last=True, maintain_order=True)


# What is known of the numbers of systems beside their units: the difference of numbers that are far off is so, too.


MARKS: dict[str, Quality] = {  # by key of the parameters
    "failed": "assumption_failed",
    "correlated": "correlated_days",
}
NUMBERS = {"before_after": "before_after_estimates"}  # that have the marks, by kind of stage


def stages_with(mark: Quality, upstream: Sequence[UpstreamStage], grouping: str) -> Iterator[str]:
    """Yield the stages whose numbers have a mark, or whose clusters have an order that their units do not tell.

    Args:
        mark: The mark.
        upstream: The stages, whose tables are not there yet while a config is only checked.
        grouping: Their grouping whose units are compared.
    """
    import polars as pl  # noqa: PLC0415 - the command line reads parameters without it

    for stage in upstream:
        path = Path(stage.file(NUMBERS[stage.kind])) if stage.kind in NUMBERS else None
        is_marked = path is not None and path.exists() and has_mark(pl.read_parquet(path), grouping, mark)
        is_untold = mark == MARKS["correlated"] and stage.cluster_order is not None
        if is_marked or is_untold:
            yield stage.name


def has_mark(numbers: pl.DataFrame, grouping: str, mark: Quality) -> bool:
    """Whether the numbers of a grouping have a mark."""
    quality = dict(numbers.group_by(GROUPING.name).agg(INTERVAL_QUALITY).iter_rows()).get(grouping, [])
    return mark in quality


def marked(row: Row, params: CompareParameters) -> Row:
    """A row about two systems, with the marks of either; a row without limits has none."""
    if row[INTERVAL_QUALITY] is None:
        return row
    systems = {row["system_a"], row["system_b"], *(params.of if len(params.of) == 1 else ())}
    stages = {mark: getattr(params, key) for key, mark in MARKS.items()}
    marks = [mark for mark, names in stages.items() if not systems.isdisjoint(names)]
    return row | {INTERVAL_QUALITY: worst([row[INTERVAL_QUALITY], *marks])}
