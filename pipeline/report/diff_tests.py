"""Paired tests of two runs of a stage on the units that both have."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from ..base.columns import RATIOS
from ..base.records import dataclass
from ..base.schemas import GROUPING, TOTAL, group_text, internal_name
from ..metrics.comparison.paired import EVENT_COUNTS, differences, paired_ratios, paired_t
from ..metrics.comparison.pooled import pooled_ratios, standard_errors
from ..metrics.comparison.significance import adjust_p_values, skewness
from ..metrics.uncertainty.limits import DOUBTFUL, FEWEST_CLUSTERS, UNITS_PER_SQUARED_SKEWNESS, quality_of_sizes, worst
from ..stages.compare.contract import MARKS, NUMBERS, has_mark
from ..stages.compare.pairs import are_times
from ..stages.compare.rows import jackknifed, quality_of_days

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ..metrics.uncertainty.jackknife import Floats
    from ..metrics.uncertainty.limits import Quality
    from ..stages.stage import UnitTable
    from .published import PublishedStage


LEVEL = 0.05
CELLS = ("tp", "fp", "fn")
POOLED = tuple(f"pooled_{name}" for name in RATIOS)
IN_PLACE_OF = {"fp": "n_predicted", "fn": "n_true"}  # totals that hold tp too
_FEWEST_UNITS = 2  # a spread needs two
AFTER = " after"  # ending of the columns of the second run


@dataclass(frozen=True)
class Tested:
    """The difference of one metric of one group between two runs, on the units of both.

    Attributes:
        grouping: The grouping, as the tables name it.
        group: The group for people, or `all`.
        metric: What is compared: a column of the units, or a pooled ratio of their counts.
        n_units: Units of both runs that have a value in both.
        n_before: Units of the first run.
        n_after: Units of the second.
        before: Mean or ratio of the first run over the shared units.
        after: The same of the second.
        difference: The second less the first.
        lower: Lower limit of the difference; None where it has none.
        upper: Upper limit.
        test: `paired t` of means, `jackknife t` of ratios of all counts.
        p_value: Two-sided; None where the test cannot be made.
        p_adjusted: The same adjusted by Holm over all groups and metrics of the stage.
        quality: How far the limits can be trusted; None without limits.
    """

    grouping: str
    group: str
    metric: str
    n_units: int
    n_before: int
    n_after: int
    before: float | None
    after: float | None
    difference: float | None
    lower: float | None
    upper: float | None
    test: str
    p_value: float | None
    p_adjusted: float | None
    quality: Quality | None

    @property
    def is_significant(self) -> bool:
        """Whether the adjusted p-value lies below 0.05."""
        return self.p_adjusted is not None and self.p_adjusted < LEVEL


@dataclass(frozen=True)
class SharedUnits:
    """The units of one group: shared rows have the columns of both runs, the second's with an ending.

    Rows of days, of which those nearby may be alike, are in the order of time.
    """

    grouping: str
    group: str
    shared: pl.DataFrame
    n_before: int
    n_after: int
    in_time: bool = False


def differences_of(group: SharedUnits, units: UnitTable, confidence: float) -> Iterator[Tested]:
    """Test every metric of a group."""
    columns = set(group.shared.columns)
    if set(EVENT_COUNTS) <= columns:
        yield from _of_events(group, units, confidence)
        return
    means = [name for name in units.metrics if {name, name + AFTER} <= columns]
    for name in means:
        yield _of_means(group, name, confidence)
    if not means or set(POOLED) & set(units.metrics):
        yield from _of_counts(group, units, confidence)


def _of_means(group: SharedUnits, name: str, confidence: float) -> Tested:
    """Test equal means of a column (Student 1908)."""
    values = group.shared.select(name, name + AFTER).drop_nulls()
    before, after = (values[column].cast(pl.Float64).to_numpy() for column in values.columns)
    test = paired_t(after, before, confidence=confidence)
    quality = _quality_of_means(after, before, in_time=group.in_time) if math.isfinite(test.lower) else None
    numbers, limits = (test.mean_b, test.mean_a, test.difference), (test.lower, test.upper, test.p_value)
    return _tested(group, name, len(values), numbers, limits, "paired t", quality)


def _quality_of_means(after: Floats, before: Floats, *, in_time: bool) -> Quality | None:
    """Return how far Student's interval of the mean difference can be trusted."""
    gaps = differences(after, before)
    is_skewed = len(after) < UNITS_PER_SQUARED_SKEWNESS * skewness(gaps) ** 2
    sizes: Quality = "few_clusters" if len(after) < FEWEST_CLUSTERS else "good"
    return worst([sizes, quality_of_days([gaps] if in_time else []), "skewed" if is_skewed else None])


def _of_counts(group: SharedUnits, units: UnitTable, confidence: float) -> Iterator[Tested]:
    """Test equal precision, recall and F1 of the counts of all shared units, by the jackknife over units."""
    names = _count_names(group.shared, units)
    if names is None:
        return
    counted = group.shared.select(*names, *(name + AFTER for name in names)).drop_nulls()
    before, after = (_cells(counted, names, ending) for ending in ("", AFTER))
    errors = standard_errors(after, before)
    ratios_before, ratios_after = (pooled_ratios(cells.sum(axis=0)) for cells in (before, after))
    gaps = ratios_after - ratios_before
    halves, p_values = errors.half_width(confidence), errors.p_values(gaps)
    tp, fp, fn = np.moveaxis(before + after, -1, 0)
    sizes = np.stack([tp + fp, tp + fn, tp + fp + fn], axis=-1)  # the denominators
    for number, ratio in enumerate(RATIOS):
        numbers = ratios_before[number], ratios_after[number], gaps[number]
        limits = gaps[number] - halves[number], gaps[number] + halves[number], p_values[number]
        quality = quality_of_sizes(sizes[:, number]) if math.isfinite(halves[number]) else None
        if quality is not None and group.in_time:
            of_after, of_before = jackknifed(ratio, [after, before])
            quality = worst([quality, quality_of_days([of_after - of_before])])
        yield _tested(group, f"pooled {ratio}", len(counted), numbers, limits, "jackknife t", quality)


def _count_names(shared: pl.DataFrame, units: UnitTable) -> tuple[str, ...] | None:
    """Return the columns of tp, of fp or all predictions, and of fn or all positives; None without these counts."""
    names = []
    for cell in CELLS:
        total = IN_PLACE_OF.get(cell, cell)
        candidates = (units.columns.get(cell, cell), units.columns.get(total, total))
        name = next((name for name in candidates if {name, name + AFTER} <= set(shared.columns)), None)
        if name is None:
            return None
        names.append(name)
    return tuple(names)


def _cells(counted: pl.DataFrame, names: Sequence[str], ending: str) -> Floats:
    """Return tp, fp and fn of every unit, shape (U, 3)."""
    columns = [counted[name + ending].cast(pl.Float64).to_numpy() for name in names]
    cells = [columns[0]]
    for cell, name, values in zip(CELLS[1:], names[1:], columns[1:], strict=True):
        cells.append(values if name == cell else values - columns[0])
    return np.stack(cells, axis=-1)


def _of_events(group: SharedUnits, units: UnitTable, confidence: float) -> Iterator[Tested]:
    """Test equal precision, recall and F1 without labels, from counts around the shared events."""
    counted = group.shared.drop_nulls([*EVENT_COUNTS, *(name + AFTER for name in EVENT_COUNTS)])
    if counted.height < _FEWEST_UNITS:
        return
    before, after = (
        counted.select(pl.col(units.unit).alias("event_id"), *(pl.col(n + ending).alias(n) for n in EVENT_COUNTS))
        for ending in ("", AFTER)
    )
    matches = sum(frame[name].to_numpy() for frame in (before, after) for name in ("m_before", "m_after"))
    for name, ratio in paired_ratios(after, before).items():
        half = ratio.half_width(confidence)
        numbers = ratio.value_b, ratio.value_a, ratio.difference
        limits = ratio.difference - half, ratio.difference + half, ratio.t_p_value()
        quality = quality_of_sizes(np.asarray(matches)) if math.isfinite(half) else None
        yield _tested(group, f"pooled {name}", counted.height, numbers, limits, "jackknife t", quality)


def _tested(
    group: SharedUnits,
    metric: str,
    n_units: int,
    numbers: tuple[float, float, float],
    limits: tuple[float, float, float],
    test: str,
    quality: Quality | None,
) -> Tested:
    """A test without its adjusted p-value; numbers are before, after and difference, limits those and the p-value."""
    of_group = (group.grouping, group.group, metric, n_units, group.n_before, group.n_after)
    (before, after, difference), (lower, upper, p_value) = map(finite, numbers), map(finite, limits)
    return Tested(*of_group, before, after, difference, lower, upper, test, p_value, None, quality)


def is_doubtful(test: Tested) -> bool:
    """Whether limits and p-value cannot be vouched for."""
    return test.quality in DOUBTFUL


def finite(value: float) -> float | None:
    """Return a number, or None for nan and infinity."""
    return float(value) if math.isfinite(value) else None


def paired_differences(
    before: PublishedStage, after: PublishedStage, independent: str
) -> tuple[tuple[Tested, ...], str]:
    """Test the differences of a stage between two runs.

    Args:
        before: The stage in the first run.
        after: The same in the second.
        independent: What the stage took as independent, as its facts name it; empty: its units. Where it differs from
            the units, limits are marked as `one_parent`: they know of the units alone.

    Returns:
        The tests, significant ones first, by their p-values; and why there is none, empty if there is one.
    """
    units = after.stage.units
    if units is None:
        return (), f"not tested: {after.stage.kind} has no table of units"
    for stage, words in ((before, "first"), (after, "second")):
        if reason := stage.omitted.get(units.table):
            return (), f"not tested: the {words} run has no table {units.table}: {reason}"
    confidence = float(after.parameters["confidence"])
    groups = list(_groups(before, after, units))
    tested = [result for group in groups for result in differences_of(group, units, confidence)]
    if independent not in {"", units.unit}:
        marked = [None if t.quality is None else worst([t.quality, "one_parent"]) for t in tested]
        tested = [replace(t, quality=quality) for t, quality in zip(tested, marked, strict=True)]
    estimates = [stage.tables.get(NUMBERS.get(stage.stage.kind, "")) for stage in (before, after)]
    for mark in MARKS.values():  # units are of the total alone
        if any(table is not None and has_mark(table, TOTAL, mark) for table in estimates):
            tested = [replace(t, quality=None if t.quality is None else worst([t.quality, mark])) for t in tested]
    if not tested:
        return (), "not tested: no shared units"
    adjusted = adjust_p_values([math.nan if t.p_value is None else t.p_value for t in tested], "holm")
    results = [replace(t, p_adjusted=finite(p)) for t, p in zip(tested, adjusted, strict=True)]
    return tuple(sorted(results, key=_importance)), ""


def _importance(test: Tested) -> tuple[bool, float, float]:
    p_adjusted = math.inf if test.p_adjusted is None else test.p_adjusted
    return not test.is_significant, p_adjusted, -abs(test.difference or 0.0)


def _groups(before: PublishedStage, after: PublishedStage, units: UnitTable) -> Iterator[SharedUnits]:
    """Return the groups that share a unit."""
    tables = before.tables[units.table], after.tables[units.table]
    for grouping in (TOTAL,) if not units.grouped else dict.fromkeys(tables[1][GROUPING.name]):
        by = [] if grouping == TOTAL else [internal_name(name) for name in grouping.split(",")]
        keys = [*by, units.unit]
        if not all(name in table.columns for table in tables for name in keys):
            continue
        old, new = (
            (table.filter(pl.col(GROUPING.name) == grouping)).with_columns(pl.col(keys).cast(pl.String))
            for table in tables
        )
        shared = old.join(new, on=keys, how="inner", nulls_equal=True, suffix=AFTER, maintain_order="left")
        for frame in shared.partition_by(by, maintain_order=True) if by else [shared]:
            if not frame.is_empty():
                n_old, n_new = (_size(table, frame, by) for table in (old, new))
                in_time = are_times(frame[units.unit])
                in_order = frame.sort(units.unit) if in_time else frame
                yield SharedUnits(grouping, group_text(frame.row(0, named=True)), in_order, n_old, n_new, in_time)


def _size(table: pl.DataFrame, group: pl.DataFrame, by: Sequence[str]) -> int:
    """Return how many rows of a table are of the group of some rows."""
    return table.join(group.head(1).select(by), on=by, how="semi", nulls_equal=True).height if by else table.height
