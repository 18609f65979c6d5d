"""What the numbers of a stage rest on, as data: which units are independent, and what grows with their number.

`thresher plan` reads it: how many units an interval or a test needs follows from the published numbers and from this.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pipeline.metrics.planning.pilot import Scale


@dataclass(frozen=True)
class Counted:
    """What a row of results tells the number of.

    Attributes:
        noun: What it is, several of them.
        columns: The columns whose sum the number is; it is not known where a row lacks one of them.
    """

    noun: str
    columns: tuple[str, ...]


@dataclass(frozen=True)
class SampleSizes:
    """What the numbers of a stage rest on.

    Attributes:
        nouns: What is independent, several of them, by the column that identifies it; others are values of a column.
        unit: The column that identifies units where the record of the run does not say what is independent.
        units: The column that tells the number of units, by the column that identifies them.
        inputs: The input with a row for each unit, by that column: for the total, where no column tells their number.
        counts: What else there is more of with more units; of those with one noun the first that a row tells.
        rests_on: The noun of what a share is over, by metric.
        scales: How limits are made, by metric, where they are not those of a share.
        other_scale: How limits of all other metrics are made.
        bounds: Where limits are cut off, for scales that do not end there.
        clusters: The table that tells the effective number of clusters of every group; empty: units are all alike.
        has_groups: Whether many units are put into groups.
        is_paired: Whether its numbers are differences of two systems on the same units.
    """

    nouns: Mapping[str, str]
    unit: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    counts: tuple[Counted, ...] = ()
    rests_on: Mapping[str, str] = field(default_factory=dict)
    scales: Mapping[str, Scale] = field(default_factory=dict)
    other_scale: Scale = "share"
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    clusters: str = ""
    has_groups: bool = True
    is_paired: bool = False
