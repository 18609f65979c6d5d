"""Sums over the rows of every unit: counts at a threshold, and what the rows add to the areas of their group."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
import polars as pl

from ..metrics.curves.unit_influences import Steps, influences_of_thresholds, influences_of_ties, steps_of_scores
from ..records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from ..metrics.curves.unit_influences import Influences

Floats: TypeAlias = "NDArray[np.float64]"
Integers: TypeAlias = "NDArray[np.int64]"

AREAS = ("average_precision", "pr_auc", "roc_auc")
SIDES = ("negative", "positive")  # by the label as an integer
PLACE, UNIT = "_place", "unit"


@dataclass(frozen=True)
class GroupCurves:
    """What is known of the groups of one grouping before their rows are read again.

    Attributes:
        columns: The grouping columns.
        groups: One row per group: its values of the grouping columns, and whatever else is known of it.
        lowest: Shape (groups,): lowest score that the chosen threshold retrieves; nan: none was chosen.
        thresholds: In ascending order of group and value.
        retrieved: What each threshold retrieves.
        at_or_above: Whether a score equal to a threshold is retrieved.
        rows: Number of rows of all groups.
    """

    columns: tuple[str, ...]
    groups: pl.DataFrame
    lowest: Floats
    thresholds: Floats
    retrieved: Steps
    at_or_above: bool
    rows: int

    @property
    def size(self) -> int:
        """Number of groups."""
        return self.groups.height

    @property
    def numbered(self) -> pl.DataFrame:
        """The grouping columns and the index of every group."""
        return self.groups.select(*self.columns, pl.int_range(pl.len(), dtype=pl.Int64).alias(PLACE))

    def places(self, rows: pl.DataFrame) -> pl.Series:
        """Index of the group of each row."""
        if not self.columns:
            return pl.Series(PLACE, np.zeros(rows.height, dtype=np.int64))
        keys = list(self.columns)
        joined = rows.select(keys).join(self.numbered, on=keys, how="left", nulls_equal=True, maintain_order="left")
        return joined[PLACE]

    def steps(self, group: Integers, scores: Floats) -> Integers:
        """Index of the highest threshold that retrieves each score; -1: none does."""
        groups = self.retrieved.group, group
        return steps_of_scores(groups, self.thresholds, scores, at_or_above=self.at_or_above)


@dataclass(frozen=True)
class SummedUnits:
    """The units of one grouping.

    Attributes:
        frame: One row per group and unit, in their order: `PLACE`, `UNIT`, and of each side `n_<side>` rows,
            `n_retrieved_<side>` of them retrieved by the chosen threshold, the same as `weight_…` where rows have
            weights, and `<area>_<side>`, the sum of influences times weights.
        slopes: Shape (groups,) by area: derivative with respect to the logit of the share of positives.
    """

    frame: pl.DataFrame
    slopes: Mapping[str, Floats]


def slopes_of(influences: Mapping[str, Influences]) -> dict[str, Floats]:
    """The slopes alone."""
    return {area: of_area.slope for area, of_area in influences.items()}


def sums_of_rows(rows: pl.DataFrame, curves: GroupCurves, *, weighted: bool) -> SummedUnits:
    """Add up all rows at once, every score a tie.

    Sums are made in an order of all that is read of a row, so that they do not depend on the order of the rows.

    Args:
        rows: The grouping columns, `unit`, `score`, `label`, and `weight` if weighted.
        curves: What is known of the groups.
        weighted: Whether rows have weights.
    """
    number = pl.col(UNIT).rank("dense").cast(pl.Int64).alias("_unit")
    names = ["score", "label", *(["weight"] if weighted else [])]
    placed = rows.select(curves.places(rows), number, pl.col("score") + 0.0, *names[1:]).sort(PLACE, *names)
    group, unit, score = (placed[name].to_numpy() for name in (PLACE, "_unit", "score"))
    label = placed["label"].to_numpy()
    weight = placed["weight"].to_numpy() if weighted else np.ones(placed.height)
    influences, steps = _influences(curves, group, score, label, weight)
    values = {"n": np.ones(placed.height)}
    with np.errstate(invalid="ignore"):
        values["n_retrieved"] = (score >= curves.lowest[group]).astype(np.float64)
    if weighted:
        values |= {"weight": weight, "weight_retrieved": weight * values["n_retrieved"]}
    for area, of_area in influences.items():
        positive, negative = (np.append(psi, 0.0) for psi in (of_area.positive, of_area.negative))  # 0 at step -1
        values[area] = weight * np.where(label, positive[steps[area]], negative[steps[area]])
    frame = _added_up(group, unit, label, values)
    units = rows.select(UNIT, number).unique("_unit").sort("_unit")[UNIT]
    named = units.gather(frame["_unit"] - 1)
    return SummedUnits(frame.drop("_unit").insert_column(1, named), slopes_of(influences))


def _influences(
    curves: GroupCurves, group: Integers, score: Floats, label: NDArray[np.bool_], weight: Floats
) -> tuple[dict[str, Influences], dict[str, Integers]]:
    """The influences on each area by step, and the step of every row; rows in ascending order of group and score."""
    begins = np.diff(group, prepend=-1) != 0
    begins[1:] |= score[1:] != score[:-1]
    starts = np.flatnonzero(begins)
    tie = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(score))))
    sides = (np.where(label, weight, 0.0), np.where(label, 0.0, weight))
    positive, negative = (np.add.reduceat(side, starts) if len(starts) else side for side in sides)
    ties = Steps.of_ties(group[starts], positive, negative, curves.size)
    influences = influences_of_ties(ties) | {"pr_auc": influences_of_thresholds(curves.retrieved)}
    steps = dict.fromkeys(influences, tie) | {"pr_auc": curves.steps(group, score)}
    return influences, steps


def _added_up(group: Integers, unit: Integers, label: NDArray[np.bool_], values: Mapping[str, Floats]) -> pl.DataFrame:
    """Sums by group and unit, of each side."""
    order = np.lexsort((unit, group))  # stable: the rows of a unit keep their order
    group, unit, label = group[order], unit[order], label[order]
    starts = np.flatnonzero((np.diff(group, prepend=-1) != 0) | (np.diff(unit, prepend=-1) != 0))
    columns = {PLACE: group[starts], "_unit": unit[starts]}
    for name, value in values.items():
        for side, is_side in zip(SIDES, (~label, label), strict=True):
            of_side = np.where(is_side, value[order], 0.0)
            columns[f"{name}_{side}"] = np.add.reduceat(of_side, starts) if len(starts) else of_side
    counts = [pl.col(f"{name}_{side}").cast(pl.Int64) for name in ("n", "n_retrieved") for side in SIDES]
    return pl.DataFrame(columns).with_columns(counts)
