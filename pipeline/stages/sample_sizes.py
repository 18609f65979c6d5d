"""What the numbers of a stage rest on, as data: which units are independent, and what grows with their number.

`thresher plan` reads it: how many units an interval or a test needs follows from the published numbers and from this.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING

from ..records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..metrics.planning.pilot import Scale


@dataclass(frozen=True)
class Counted:
    """What a row of results tells the number of.

    Attributes:
        noun: What it is, several of them.
        columns: The columns whose sum the number is; it is not known where a row lacks one of them.
        is_listed: Whether every plan tells of it; else only those of metrics that rest on it.
    """

    noun: str
    columns: tuple[str, ...]
    is_listed: bool = True


@dataclass(frozen=True)
class Labelled:
    """A sample that people check.

    Attributes:
        metric: The number that it gives.
        table: The table that has it.
        labels: The column with the number of checked rows.
        right: The column with the number of right ones among them.
        population: The column, beside the estimate, with the number of rows that the sample is drawn from.
        estimate: The metric that estimates the same without labels.
    """

    metric: str
    table: str
    labels: str
    right: str
    population: str
    estimate: str


@dataclass(frozen=True)
class SampleSizes:
    """What the numbers of a stage rest on.

    Attributes:
        nouns: What is independent, several of them, by the column that identifies it; values of other columns are
            clusters.
        unit: The column that identifies units where the record of the run does not say what is independent.
        units: The column that tells the number of units, by the column that identifies them.
        inputs: The input with a row for each unit, by that column: for the total, where no column tells their number.
        counts: What else there is more of with more units; of those with one noun the first that a row tells.
        rests_on: The noun of what a share is over, by metric.
        scales: How limits are made, by metric.
        other_scale: How limits of all other metrics are made; None: these are not planned.
        bounds: Where limits are cut off, for scales that do not end there.
        clusters: The table that tells the effective number of clusters of every group; empty: units are all alike.
        sized_by: The noun of the rows that make the size of a cluster there; empty: others than any ratio is over.
        has_groups: Whether many units are put into groups.
        is_paired: Whether its numbers are differences of two systems on the same units.
        labelled: The sample that people check, if it draws one.
    """

    nouns: Mapping[str, str]
    unit: str = ""
    units: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    counts: tuple[Counted, ...] = ()
    rests_on: Mapping[str, str] = field(default_factory=dict)
    scales: Mapping[str, Scale] = field(default_factory=dict)
    other_scale: Scale | None = None
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    clusters: str = ""
    sized_by: str = ""
    has_groups: bool = True
    is_paired: bool = False
    labelled: Labelled | None = None
