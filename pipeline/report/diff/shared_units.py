"""Paired tests of two runs of a stage on the units that both have."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from ...metrics.comparison.significance import adjust_p_values
from ...metrics.uncertainty.qualities import worst
from ...stages.compare.group_units import are_times
from ...stages.compare.sides import MARKS, NUMBERS, has_mark
from ...tables.groupings import TOTAL, group_text, internal_name
from ...tables.schemas import GROUPING
from .tested import AFTER, SharedUnits, differences_of, finite

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...stages.stage import UnitTable
    from ..published import PublishedStage
    from .tested import Tested


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
        old, new = (_as_text(table.filter(pl.col(GROUPING.name) == grouping), keys) for table in tables)
        shared = old.join(new, on=keys, how="inner", nulls_equal=True, suffix=AFTER, maintain_order="left")
        for frame in shared.partition_by(by, maintain_order=True) if by else [shared]:
            if not frame.is_empty():
                n_old, n_new = (_size(table, frame, by) for table in (old, new))
                in_time = are_times(frame[units.unit])
                in_order = frame.sort(units.unit) if in_time else frame
                yield SharedUnits(grouping, group_text(frame.row(0, named=True)), in_order, n_old, n_new, in_time)


def _as_text(table: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return the table with keys as text: their types may differ between runs."""
    return table.with_columns(pl.col(keys).cast(pl.String))


def _size(table: pl.DataFrame, group: pl.DataFrame, by: Sequence[str]) -> int:
    """Return how many rows of a table are of the group of some rows."""
    return table.join(group.head(1).select(by), on=by, how="semi", nulls_equal=True).height if by else table.height
